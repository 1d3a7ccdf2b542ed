/*
 * A ring's words and segments in every interleaving of its producer and its consumer: nothing is read that was not
 * written, nothing is skipped. The steps are those of runtime/ring.c and of the decoder's reading, one memory operation
 * each.
 */
#include "config.h"

#include "tests/runtime/model.h"

enum { SEGMENTS = 3, WORDS = 4, RECORDS = 6, NO_SEGMENT = 0 };

/* Segments are numbered from 1; a record k has 1 + k % 2 words: the first is k + 1, the other 0x80 | (k + 1). */
typedef struct {
    uint8_t words[SEGMENTS][WORDS];
    uint8_t next[SEGMENTS];
    uint8_t spare[2];
    uint8_t fresh; /* segments that were never in use */
    /* the producer's */
    uint8_t pc, made, head, at, taken;
    /* the consumer's */
    uint8_t cpc, tail, from, seen, payload, zeroed, done, link;
    uint8_t bad;
} ring;
_Static_assert(sizeof(ring) <= MODEL_BYTES, "a state");

static unsigned words_of(unsigned record)
{
    return 1 + record % 2;
}

static void init(void *state, unsigned wrong)
{
    ring *r = state;
    (void)wrong;
    r->head = r->tail = 1;
    r->fresh = SEGMENTS - 1;
}

static uint8_t *word(ring *r, unsigned segment, unsigned i)
{
    return &r->words[segment - 1][i];
}

/* Rolls: a spare, or a fresh one; false where there is none now. */
static bool take_segment(ring *r)
{
    for (unsigned i = 0; i < 2; i++)
        if (r->spare[i]) {
            r->taken = r->spare[i];
            r->spare[i] = NO_SEGMENT;
            return true;
        }
    if (!r->fresh)
        return false;
    r->taken = (uint8_t)(SEGMENTS + 1 - r->fresh);
    r->fresh--;
    r->next[r->taken - 1] = NO_SEGMENT;
    return true;
}

enum { P_START, P_LINK, P_SECOND, P_FIRST, P_LATE };

/* Mistake 1: the first word goes before the second. */
static bool produce(ring *r, unsigned wrong)
{
    unsigned n = words_of(r->made);
    switch (r->pc) {
    case P_START:
        if (r->made == RECORDS)
            return false;
        if (r->at + n > WORDS) {
            if (!take_segment(r))
                return false;
            r->pc = P_LINK;
        } else {
            r->pc = n == 2 && wrong != 1 ? P_SECOND : P_FIRST;
        }
        return true;
    case P_LINK:
        r->next[r->head - 1] = r->taken;
        r->head = r->taken;
        r->at = 0;
        r->pc = P_START;
        return true;
    case P_SECOND:
        *word(r, r->head, r->at + 1u) = (uint8_t)(0x80 | (r->made + 1));
        r->pc = P_FIRST;
        return true;
    case P_FIRST:
        *word(r, r->head, r->at) = (uint8_t)(r->made + 1);
        if (n == 2 && wrong == 1) {
            r->pc = P_LATE;
            return true;
        }
        break;
    case P_LATE:
        *word(r, r->head, r->at + 1u) = (uint8_t)(0x80 | (r->made + 1));
        break;
    default:
        return false;
    }
    r->at = (uint8_t)(r->at + n);
    r->made++;
    r->pc = P_START;
    return true;
}

enum { C_WORD, C_PAYLOAD, C_NEXT, C_AGAIN, C_ZERO, C_SPARE };

static void take(ring *r, uint8_t first)
{
    r->bad = r->bad || first != r->seen + 1;
    r->cpc = words_of(r->seen) == 2 ? C_PAYLOAD : C_WORD;
    if (r->cpc == C_WORD) {
        r->seen++;
        r->from++;
    }
}

static void leave_segment(ring *r)
{
    r->done = r->tail;
    r->tail = r->link;
    r->from = 0;
    r->zeroed = 0;
    r->cpc = C_ZERO;
}

/* Mistake 2: after the link was seen, the word is not looked at again. Mistake 3: a segment is a spare before it is
 * zero. Mistake 4: it is not made zero. */
static bool consume(ring *r, unsigned wrong)
{
    uint8_t w;
    switch (r->cpc) {
    case C_WORD:
        if (r->seen == RECORDS)
            return false;
        w = r->from < WORDS ? *word(r, r->tail, r->from) : 0;
        if (w)
            take(r, w);
        else
            r->cpc = C_NEXT;
        return true;
    case C_PAYLOAD:
        r->bad = r->bad || *word(r, r->tail, r->from + 1u) != (0x80 | (r->seen + 1));
        r->seen++;
        r->from = (uint8_t)(r->from + 2);
        r->cpc = C_WORD;
        return true;
    case C_NEXT:
        r->link = r->next[r->tail - 1];
        if (!r->link)
            r->cpc = C_WORD;
        else if (wrong == 2)
            leave_segment(r);
        else
            r->cpc = C_AGAIN;
        return true;
    case C_AGAIN:
        w = r->from < WORDS ? *word(r, r->tail, r->from) : 0;
        if (w)
            take(r, w);
        else
            leave_segment(r);
        return true;
    case C_ZERO:
        if (wrong == 4 || (wrong == 3 && r->zeroed == 0)) {
            r->zeroed = wrong == 4 ? WORDS : 1;
            r->spare[r->spare[0] != NO_SEGMENT] = r->done;
            r->next[r->done - 1] = NO_SEGMENT;
            r->cpc = wrong == 4 ? C_WORD : C_ZERO;
            return true;
        }
        if (r->zeroed - (wrong == 3) < WORDS) {
            *word(r, r->done, r->zeroed - (wrong == 3 ? 1u : 0u)) = 0;
            r->zeroed++;
            return true;
        }
        r->cpc = wrong == 3 ? C_WORD : C_SPARE;
        return true;
    case C_SPARE:
        r->next[r->done - 1] = NO_SEGMENT;
        r->spare[r->spare[0] != NO_SEGMENT] = r->done;
        r->cpc = C_WORD;
        return true;
    default:
        return false;
    }
}

static bool step(void *state, unsigned actor, unsigned wrong)
{
    return actor == 0 ? produce(state, wrong) : consume(state, wrong);
}

static const char *check(const void *state)
{
    const ring *r = state;
    return r->bad ? "a word that was not written, or one too many" : NULL;
}

static const char *check_end(const void *state)
{
    const ring *r = state;
    return r->seen != RECORDS ? "a record was never read" : NULL;
}

/* Hand-off over segment links and recycling: six records of one or two words through three segments of four. */
START_TEST(gate_model_ring)
{
    model m = {2, init, step, check, check_end};
    model_assert(&m, 4, 200);
}
END_TEST

int main(void)
{
    TCase *c = test_case("model_ring", 60);
    tcase_add_test(c, gate_model_ring);
    return test_run();
}
