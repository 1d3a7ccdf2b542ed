/* LocalIds, runtime ids as text, and the logger: what a language keeps with profiling on and off. */
#include "config.h"

#include "runtime/varve.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/random.h>

#include "tests/testing.h"

#define K VARVE_SWITCH_KEEP
#define Y VARVE_SWITCH_ON
#define N VARVE_SWITCH_OFF

static bool no_memory, no_entropy;

ssize_t __real_getrandom(void *p, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags);
void *__real_calloc(size_t n, size_t k);
void *__wrap_calloc(size_t n, size_t k);

ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags)
{
    return no_entropy ? -1 : __real_getrandom(p, n, flags);
}

void *__wrap_calloc(size_t n, size_t k)
{
    return no_memory ? NULL : __real_calloc(n, k);
}

/* What capture was told, a line after another, and what is consumed then. */
static const struct {
    const char *name;
    varve_switch told[3][3], want[3];
} sums[] = {
    {"nothing", {{K, K, K}}, {K, K, K}},
    {"one after another", {{Y, K, K}, {K, N, K}, {K, K, Y}}, {Y, N, Y}},
    {"the last word counts", {{Y, N, Y}, {N, Y, K}}, {N, Y, Y}},
    {"back and forth", {{Y, Y, N}, {N, N, Y}, {Y, Y, N}}, {Y, Y, N}},
    {"kept", {{N, N, N}, {K, K, K}, {K, K, K}}, {N, N, N}},
};

START_TEST(gate_capture_adds_up)
{
    varve_local_id *id = varve_local_id_new();
    for (unsigned i = 0; i < 3; i++)
        ck_assert(varve_local_id_capture(id, sums[_i].told[i][0], sums[_i].told[i][1], sums[_i].told[i][2]));
    varve_policy p = {.llm = true};
    ck_assert(varve_local_id_consume(id, &p));
    ck_assert_msg(p.input == sums[_i].want[0] && p.output == sums[_i].want[1] && p.error == sums[_i].want[2], "%s",
                  sums[_i].name);
    ck_assert(p.manual && p.llm);
    ck_assert_mem_eq(p.runtime_id, varve_local_id_bytes(id), 16);
    varve_local_id_unref(id);
}
END_TEST

/* After consumption nothing is taken, through any alias, and nothing changes. */
START_TEST(gate_single_use)
{
    varve_local_id *id = varve_local_id_new(), *alias = varve_local_id_ref(id);
    ck_assert_ptr_eq(alias, id);
    ck_assert(varve_local_id_capture(alias, Y, K, K));
    varve_policy p = {.llm = false}, q = {.llm = true, .output = VARVE_SWITCH_OFF}, before = q;
    ck_assert(varve_local_id_consume(id, &p));
    ck_assert_int_eq(p.input, VARVE_SWITCH_ON); /* said by the alias */
    ck_assert(!varve_local_id_capture(alias, N, N, N));
    ck_assert(!varve_local_id_capture(id, K, K, K));
    ck_assert(!varve_local_id_consume(alias, &q));
    ck_assert(q.llm == before.llm && q.manual == before.manual && q.output == before.output);
    varve_local_id_unref(id);
    ck_assert_mem_eq(varve_local_id_bytes(alias), p.runtime_id, 16); /* an alias keeps it */
    varve_local_id_unref(alias);
}
END_TEST

/* A captured id that is never passed selects nothing: there is no policy without consuming. */
START_TEST(never_passed)
{
    varve_local_id *id = varve_local_id_new();
    ck_assert(varve_local_id_capture(id, Y, Y, Y));
    varve_local_id_unref(id);
    varve_policy p = {.llm = false};
    ck_assert_uint_eq(varve_policy_flags(false, &p), 0);
}
END_TEST

START_TEST(nothing_is_accepted)
{
    varve_policy p = {.llm = true};
    varve_local_id_unref(NULL);
    ck_assert_ptr_null(varve_local_id_ref(NULL));
    ck_assert_ptr_null(varve_local_id_bytes(NULL));
    ck_assert_ptr_null(varve_local_id_text(NULL));
    ck_assert(!varve_local_id_capture(NULL, Y, Y, Y));
    ck_assert(!varve_local_id_consume(NULL, &p));
    ck_assert(!p.manual);
}
END_TEST

START_TEST(unavailable)
{
    no_entropy = true;
    varve_local_id *id = varve_local_id_new();
    no_entropy = false;
    ck_assert_ptr_null(id);
    no_memory = true;
    id = varve_local_id_new();
    no_memory = false;
    ck_assert_ptr_null(id);
}
END_TEST

/* Ids differ, in each of their bytes. */
START_TEST(random_bytes)
{
    enum { IDS = 64 };
    uint8_t varies[16] = {0}, first[16];
    for (unsigned i = 0; i < IDS; i++) {
        varve_local_id *id = varve_local_id_new();
        if (i == 0)
            memcpy(first, varve_local_id_bytes(id), 16);
        for (unsigned k = 0; k < 16; k++)
            varies[k] |= first[k] ^ varve_local_id_bytes(id)[k];
        varve_local_id_unref(id);
    }
    for (unsigned k = 0; k < 16; k++)
        ck_assert_uint_ne(varies[k], 0);
}
END_TEST

/* By RFC 4648's alphabet for URLs. */
static void text_of(const uint8_t b[16], char out[33])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    strcpy(out, "baml_id_1_");
    for (unsigned i = 0; i < 22; i++) {
        unsigned v = 0;
        for (unsigned bit = 6 * i; bit < 6 * i + 6; bit++)
            v = v << 1 | (bit < 128 ? b[bit / 8] >> (7 - bit % 8) & 1 : 0);
        out[10 + i] = digits[v];
    }
    out[32] = 0;
}

START_TEST(gate_text_form)
{
    char want[33], got[33];
    uint8_t back[16];
    varve_local_id *id = varve_local_id_new();
    text_of(varve_local_id_bytes(id), want);
    ck_assert_str_eq(varve_local_id_text(id), want);
    varve_runtime_id_text(varve_local_id_bytes(id), got);
    ck_assert_str_eq(got, want);
    ck_assert(varve_runtime_id_parse(want, 32, back));
    ck_assert_mem_eq(back, varve_local_id_bytes(id), 16);
    varve_local_id_unref(id);
}
END_TEST

static const struct {
    const char *text;
    bool ok;
} texts[] = {
    {"baml_id_1_AAAAAAAAAAAAAAAAAAAAAA", true},
    {"baml_id_1_AAAAAAAAAAAAAAAAAAAAAB", false}, /* slack bits */
    {"baml_id_1_AAAAAAAAAAAAAAAAAAAAA", false},
    {"baml_id_1_AAAAAAAAAAAAAAAAAAAAAAA", false},
    {"baml_id_1_AAAAAAAAAAAAAAAAAAAAAA==", false},
    {"baml_id_1_AAAAAAAAAAAAAAAAAAAA+A", false},
    {"baml_id_2_AAAAAAAAAAAAAAAAAAAAAA", false},
    {"baml_call_1_AAAAAAAAAAAAAAAAAAAA", false},
    {"", false},
};

START_TEST(parsing_is_strict)
{
    uint8_t id[16];
    memset(id, 7, sizeof id);
    ck_assert_int_eq(varve_runtime_id_parse(texts[_i].text, strlen(texts[_i].text), id), texts[_i].ok);
    ck_assert_uint_eq(id[15], texts[_i].ok ? 0 : 7);
    ck_assert(!varve_runtime_id_parse(NULL, 0, id));
}
END_TEST

/* Threads that share one id, from a start that all wait for. */
enum { RACERS = 4, ROUNDS = 300 };
static pthread_barrier_t line;
static varve_local_id *shared;
static struct {
    bool won, denied;
    varve_policy policy;
} racers[RACERS];

static void *race(void *arg)
{
    size_t i = (size_t)arg;
    for (unsigned k = 0; k < ROUNDS; k++) {
        pthread_barrier_wait(&line); /* the id is made */
        varve_local_id *mine = varve_local_id_ref(shared);
        varve_switch all = i % 2 ? Y : N;
        racers[i].denied = !varve_local_id_capture(mine, all, all, all);
        racers[i].won = varve_local_id_consume(mine, &racers[i].policy);
        varve_local_id_unref(mine);
        pthread_barrier_wait(&line); /* all are done */
        pthread_barrier_wait(&line); /* and it was looked at */
    }
    return NULL;
}

/* Whoever comes first has it, and nobody else; and what it has is what one call of capture said as a whole. */
START_TEST(gate_one_of_many_consumes)
{
    pthread_t threads[RACERS];
    pthread_barrier_init(&line, NULL, RACERS + 1);
    for (size_t i = 0; i < RACERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, race, (void *)i), 0);
    for (unsigned k = 0; k < ROUNDS; k++) {
        shared = varve_local_id_new();
        pthread_barrier_wait(&line);
        pthread_barrier_wait(&line);
        unsigned won = 0;
        for (unsigned i = 0; i < RACERS; i++) {
            won += racers[i].won;
            const varve_policy *p = &racers[i].policy;
            ck_assert(!racers[i].won || !racers[i].denied);
            ck_assert(!racers[i].won || (p->manual && p->input != K && p->input == p->output && p->output == p->error));
        }
        ck_assert_uint_eq(won, 1);
        varve_local_id_unref(shared);
        memset(racers, 0, sizeof racers);
        pthread_barrier_wait(&line);
    }
    for (unsigned i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&line);
}
END_TEST

static void sink(void *ctx, const varve_log_event *event)
{
    *(const varve_log_event **)ctx = event;
}

START_TEST(gate_logger)
{
    const varve_log_event *got = NULL;
    varve_logger l = {.least = VARVE_LOG_INFO, .sink = sink, .ctx = &got};
    varve_log_event e = {.level = VARVE_LOG_INFO, .name = "shop", .message = "paid", .n = 4, .fields = &l};
    varve_log(&l, &e);
    ck_assert_ptr_eq(got, &e);
    got = NULL;
    e.level = VARVE_LOG_DEBUG;
    varve_log(&l, &e);
    varve_log(NULL, &e);
    varve_log(&l, NULL);
    ck_assert_ptr_null(got);
    ck_assert(varve_log_wants(&l, VARVE_LOG_ERROR) && !varve_log_wants(&l, VARVE_LOG_DEBUG));
    ck_assert(!varve_log_wants(NULL, VARVE_LOG_ERROR));
    l.sink = NULL;
    e.level = VARVE_LOG_ERROR;
    varve_log(&l, &e);
    ck_assert(!varve_log_wants(&l, VARVE_LOG_ERROR));
}
END_TEST

int main(void)
{
    TCase *c = test_case("local id", 60);
    tcase_add_loop_test(c, gate_capture_adds_up, 0, (int)VV_ARRAY_LEN(sums));
    tcase_add_test(c, gate_single_use);
    tcase_add_test(c, never_passed);
    tcase_add_test(c, nothing_is_accepted);
    tcase_add_test(c, unavailable);
    tcase_add_test(c, random_bytes);
    tcase_add_test(c, gate_text_form);
    tcase_add_loop_test(c, parsing_is_strict, 0, (int)VV_ARRAY_LEN(texts));
    tcase_add_test(c, gate_one_of_many_consumes);
    tcase_add_test(c, gate_logger);
    return test_run();
}
