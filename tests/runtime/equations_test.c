/*
 * The equations at the end of every execution, under load, with losses of every kind made on purpose: threads that
 * record more than their memory holds, waits, spawns that find no room, publications that fail before or after their
 * rename, selected calls with values and errors. What each execution says of itself must agree with what a reader
 * finds, and nothing there names what is not.
 */
#include "config.h"

#include "runtime/session.h"

#include <errno.h>
#include <pthread.h>

#include "tests/runtime/evidence.h"
#include "tests/runtime/inside.h"

uint64_t size_of_files;

enum { WORKERS = 3, ROOTS = 40, FUNCTIONS = 24, SMALL = 8921088, SEEDS = 6 };

typedef struct {
    varve_engine *engine;
    uint32_t functions[FUNCTIONS];
    _Atomic uint64_t steps; /* of publications */
    uint64_t seed;
    bool whole_disk;  /* no faults: memory alone is short */
} load;

typedef struct {
    load *load;
    uint64_t number;
} worker;

/* About one publication in twelve fails, at any of its steps; one that hangs after its rename does so for a while. */
static int fail_step(void *ctx, vv_step at)
{
    load *l = ctx;
    if (l->whole_disk)
        return 0;
    test_rng g = {l->seed ^ atomic_fetch_add(&l->steps, 1)};
    return test_below(&g, 12 * VV_STEPS) == (uint64_t)at ? EIO : 0;
}

static void give(varve_thread *t, varve_role role, test_rng *g)
{
    static const char text[2000];
    varve_capture *c = varve_value_begin(t, role);
    varve_put_text(c, text, test_below(g, 20) ? test_below(g, 12) : sizeof text); /* few: objects take their time */
    varve_capture_end(c);
}

/* What selected calls do, besides. */
static void selected(load *l, varve_thread *t, test_rng *g)
{
    varve_policy p = {.llm = test_below(g, 2), .manual = test_below(g, 2), .output = (varve_switch)test_below(g, 3),
                      .error = VARVE_SWITCH_ON};
    uint8_t id[16] = {1};
    varve_call_begin_as(t, l->functions[test_below(g, FUNCTIONS)], 0, varve_ticks(), &p);
    give(t, VARVE_INPUT, g);
    varve_call_set_runtime_id(t, (unsigned)test_below(g, 3), id);
    if (test_below(g, 4) == 0)
        return; /* stays open */
    if (test_below(g, 3)) {
        give(t, VARVE_OUTPUT, g);
        varve_call_end(t, VARVE_CALL_OK);
        return;
    }
    uint64_t ends = test_below(g, varve_thread_depth(t) + 1);
    varve_capture *c = varve_error_begin(t, &(varve_error){.ends = ends, .kind = (varve_error_kind)test_below(g, 2)});
    varve_put_int(c, (int64_t)test_below(g, 100));
    varve_capture_end(c);
    while (ends--)
        varve_call_end(t, VARVE_CALL_ERRORED);
}

static void calls(load *l, varve_thread *t, test_rng *g, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t what = test_below(g, 16), depth = varve_thread_depth(t);
        if (depth < 2 || (what < 7 && depth < 60))
            varve_call_begin(t, l->functions[test_below(g, FUNCTIONS)], 0);
        else
            varve_call_end(t, (varve_call_status)test_below(g, 4));
        if (what == 14 && test_below(g, 8) == 0)
            selected(l, t, g);
        if (what == 15) {
            uint64_t now = varve_ticks();
            varve_await_begin(t, now);
            varve_await_end(t, test_below(g, 8) ? varve_ticks() : now - 1000);
        }
    }
}

/* A thread that goes on elsewhere, for a while. */
typedef struct {
    load *load;
    varve_thread *thread;
    uint64_t seed;
} leg;

static void *go_on(void *arg)
{
    leg *l = arg;
    test_rng g = {l->seed};
    varve_thread_bind(l->thread);
    calls(l->load, l->thread, &g, 300);
    return NULL;
}

static void elsewhere(load *l, varve_thread *t, test_rng *g)
{
    leg one = {l, t, test_random(g)};
    pthread_t id;
    if (pthread_create(&id, NULL, go_on, &one) == 0)
        pthread_join(id, NULL);
    varve_thread_bind(t);
}

static void *work(void *arg)
{
    worker *w = arg;
    load *l = w->load;
    test_rng g = {l->seed * 1000 + w->number};
    for (unsigned i = 0; i < ROOTS; i++) {
        varve_thread *t;
        varve_root *r = varve_root_begin(l->engine, NULL, &t);
        calls(l, t, &g, (unsigned)test_below(&g, i % 8 == 7 ? 200000 : 2000));
        varve_thread *child = varve_thread_spawn(t, 0, 0, "child", 5);
        varve_thread_start(child, varve_ticks());
        calls(l, child, &g, 500);
        if (i % 8 == 3) {
            elsewhere(l, t, &g);
            elsewhere(l, child, &g);
        }
        varve_root_end(r, (varve_root_status)test_below(&g, 5));
        varve_thread_end(t, (varve_thread_status)test_below(&g, 3));
        calls(l, child, &g, 100);
        varve_thread_end(child, (varve_thread_status)test_below(&g, 3));
    }
    return NULL;
}

static uint64_t term(const vv_execution *x, const char *name)
{
    uint64_t v;
    ck_assert_msg(vv_health_find(&x->terms, name, &v), "no term %s", name);
    return v;
}

static void check_execution(const look *l, uint64_t seed, uint64_t *lost)
{
    const vv_execution *x = l->execution;
    vv_counters sum = totals_with_overflow(l);
    uint64_t calls_lost = vv_health_sum(&x->terms, "invocations_lost.");
    uint64_t awaits_lost = vv_health_sum(&x->terms, "await_lost.");
    ck_assert_msg(term(x, "invocations_attempted") == term(x, "invocations_folded") + calls_lost, "seed %" PRIu64,
                  seed);
    ck_assert_msg(term(x, "await_intervals_started") == term(x, "await_intervals_folded") + awaits_lost,
                  "seed %" PRIu64, seed);
    ck_assert_msg(sum.started == term(x, "invocations_folded"), "seed %" PRIu64 ": %" PRIu64 " found of %" PRIu64, seed,
                  sum.started, term(x, "invocations_folded"));
    ck_assert_msg(sum.await_count == term(x, "await_intervals_folded"), "seed %" PRIu64, seed);
    found_evidence found;
    vv_accounting a;
    const char *bad = evidence_of(l, &found);
    ck_assert_msg(!*bad, "seed %" PRIu64 ": %s", seed, bad);
    ck_assert_msg(evidence_terms(x, &a), "seed %" PRIu64, seed);
    bad = x->has_end ? evidence_agrees(l, &a, &found) : "";
    ck_assert_msg(!*bad, "seed %" PRIu64 ": %s", seed, bad);
    /* Nothing dangles, and what is lost shows in the format's own counters too. */
    ck_assert_msg(l->fold->issue_count == 0, "seed %" PRIu64 ": %zu issues", seed, l->fold->issue_count);
    bool told = false;
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        told = told || (vv_health_is_loss(i) && x->health.v[i]);
    ck_assert_msg(told || !calls_lost, "seed %" PRIu64, seed);
    *lost += calls_lost + awaits_lost;
}

START_TEST(gate_equations_under_load)
{
    const char *env = getenv("VV_SEED");
    static load l; /* a consumer that hangs would still use it */
    l = (load){.seed = (env ? strtoull(env, NULL, 0) : 20240607) + (uint64_t)_i, .whole_disk = _i == 0};
    fprintf(stderr, "# VV_SEED=%" PRIu64 "\n", l.seed);
    test_store s = store_make_quick();
    varve_session *v = session_tested(&s, 3, SMALL, &(vv_session_test){.hooks = {.step = fail_step, .ctx = &l}});
    l.engine = varve_engine_open(v, &(varve_engine_info){.roles = VARVE_ALL_ROLES});
    for (unsigned i = 0; i < FUNCTIONS; i++)
        l.functions[i] = function(l.engine, "f");
    worker w[WORKERS];
    pthread_t id[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
        w[i] = (worker){&l, i};
        ck_assert_int_eq(pthread_create(&id[i], NULL, work, &w[i]), 0);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(id[i], NULL);
    varve_session_close(v);
    look seen = look_store(s.root);
    uint64_t lost = 0, checked = 0;
    const vv_stream *stream = &seen.store->streams[0];
    for (size_t i = 0; i < stream->execution_count; i++) {
        if (!vv_stream_execution_at(stream, i)->has_terms)
            continue;
        look_fold(&seen, 0, i);
        check_execution(&seen, l.seed, &lost);
        checked++;
    }
    fprintf(stderr, "# %" PRIu64 " of %zu executions, %" PRIu64 " lost\n", checked, stream->execution_count, lost);
    /* A fault may shut the store at once, or take the batch of all ends. */
    ck_assert(checked > 0 || !l.whole_disk);
    look_done(&seen);
    store_remove(&s);
}
END_TEST

int main(void)
{
    TCase *t = test_case("load", 60);
    tcase_add_loop_test(t, gate_equations_under_load, 0, SEEDS);
    return test_run();
}
