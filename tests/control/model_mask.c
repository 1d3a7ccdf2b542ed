/*
 * The sum of the masks, in every order of two profilers that change theirs, step by step: store one's own, read the
 * sum, add up both, exchange where it differs, look again. When both have returned the sum is right. Without the second
 * look an older sum can take the place of a newer one that happens to be equal to what it replaces.
 */
#include "config.h"

#include "tests/runtime/model.h"

enum { RIGHT, NO_SECOND_LOOK };

/* Where an actor is; it adds one mask a step. */
typedef enum { STORE, READ, ADD_FIRST, ADD_SECOND, EXCHANGE, DONE } place;
typedef struct {
    uint8_t global, masks[2];
    struct {
        uint8_t at, change, now, sum;
    } actor[2];
} masks;

/* What each sets in turn: the first bit is for both, the others each has alone. */
enum { CHANGES = 3 };
static const uint8_t changes[2][CHANGES] = {{1, 2, 3}, {1, 4, 1}};

static void init(void *state, unsigned wrong)
{
    (void)state;
    (void)wrong;
}

static place next_change(masks *s, unsigned who)
{
    return ++s->actor[who].change == CHANGES ? DONE : STORE;
}

static bool step(void *state, unsigned who, unsigned wrong)
{
    masks *s = state;
    uint8_t *at = &s->actor[who].at, *now = &s->actor[who].now, *sum = &s->actor[who].sum;
    switch ((place)*at) {
    case STORE:
        s->masks[who] = changes[who][s->actor[who].change];
        *at = READ;
        return true;
    case READ:
        *now = s->global;
        *at = ADD_FIRST;
        return true;
    case ADD_FIRST:
        *sum = s->masks[0];
        *at = ADD_SECOND;
        return true;
    case ADD_SECOND:
        *sum |= s->masks[1];
        *at = (uint8_t)(*sum == *now ? next_change(s, who) : EXCHANGE);
        return true;
    case EXCHANGE:
        if (s->global != *now) {
            *now = s->global;
            *at = ADD_FIRST;
            return true;
        }
        s->global = *sum;
        *at = (uint8_t)(wrong == NO_SECOND_LOOK ? next_change(s, who) : READ);
        return true;
    case DONE:
        break;
    }
    return false;
}

static const char *check(const void *state)
{
    (void)state;
    return NULL;
}

static const char *check_end(const void *state)
{
    const masks *s = state;
    return s->global == (s->masks[0] | s->masks[1]) ? NULL : "the sum is not that of the masks";
}

START_TEST(gate_sum_of_masks)
{
    model m = {2, init, step, check, check_end};
    model_assert(&m, NO_SECOND_LOOK, 500);
}
END_TEST

int main(void)
{
    TCase *c = test_case("model_mask", 60);
    tcase_add_test(c, gate_sum_of_masks);
    return test_run();
}
