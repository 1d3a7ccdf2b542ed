/*
 * The equations of calls and awaits: each way to lose an interval or a call has its own term, and what is left is what
 * a reader finds in the committed rows. The consumer is the test itself.
 */
#include "config.h"

#include "runtime/session.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>

#include "tests/runtime/inside.h"

uint64_t size_of_files;

enum { SMALL = 8921088 };

typedef struct {
    bad_disk disk;
    rig g;
    uint32_t main, leaf;
    varve_thread *thread;
    vv_exec *exec;
} run;

/* An execution whose main is open, its start committed. */
static void begin(run *r)
{
    r->disk = (bad_disk){.times = 0};
    r->g = rig_stepped(store_make_quick(), SMALL, &r->disk);
    r->main = function(r->g.engine, "main");
    r->leaf = function(r->g.engine, "leaf");
    r->thread = rig_begin(&r->g);
    varve_call_begin(r->thread, r->main, 0);
    ck_assert(publish(r->g.session));
    r->exec = r->g.session->decoder.execs;
}

static void wait_once(varve_thread *t)
{
    uint64_t now = varve_ticks();
    varve_await_begin(t, now);
    varve_await_end(t, now + 1000);
}

/* Ends it, and holds both equations against the store. Returns the terms. */
static vv_accounting finish(run *r)
{
    varve_call_end(r->thread, VARVE_CALL_OK);
    rig_end(&r->g);
    publish(r->g.session);
    ck_assert_ptr_null(r->g.session->decoder.execs);
    vv_accounting a = r->g.session->decoder.over;
    look *l = rig_close(&r->g);
    vv_counters sum = totals_with_overflow(l);
    assert_accounts(&a, &sum);
    for (uint32_t i = 0; i < l->fold->context_count; i++)
        ck_assert(l->fold->contexts[i].defined);
    rig_remove(&r->g);
    return a;
}

/* Of calls and awaits, not of the root's span. */
static bool is_population(const char *name)
{
    return !strncmp(name, "await_", 6) || !strncmp(name, "invocations_", 12) || !strncmp(name, "self_", 5);
}

/* Only these terms are not zero, besides the two sides of the calls. */
static void assert_terms(const vv_accounting *a, const uint64_t want[VV_ACCOUNTS])
{
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        if (is_population(vv_account_name((vv_account)i)) && i != VV_ACCOUNT_CALLS_ATTEMPTED &&
            i != VV_ACCOUNT_CALLS_FOLDED)
            ck_assert_msg(a->v[i] == want[i], "%s is %" PRIu64 ", not %" PRIu64, vv_account_name((vv_account)i),
                          a->v[i], want[i]);
}

/* A call that never waits ends in one word; one or ten waits make one longer record, with sum and count. */
START_TEST(gate_await_encoding)
{
    run r;
    begin(&r);
    static const unsigned waits[] = {0, 1, 10};
    for (unsigned i = 0; i < VV_ARRAY_LEN(waits); i++) {
        varve_call_begin(r.thread, r.leaf, 0);
        const uint64_t *at = r.thread ? vv_session_ring(r.g.session, r.g.engine)->at : NULL;
        for (unsigned k = 0; k < waits[i]; k++)
            wait_once(r.thread);
        ck_assert_ptr_eq(vv_session_ring(r.g.session, r.g.engine)->at, at);
        varve_call_end(r.thread, VARVE_CALL_OK);
        ck_assert_int_eq(vv_session_ring(r.g.session, r.g.engine)->at - at, waits[i] ? 3 : 1);
    }
    vv_accounting a = finish(&r);
    assert_terms(&a, (uint64_t[VV_ACCOUNTS]){[VV_ACCOUNT_AWAIT_STARTED] = 11, [VV_ACCOUNT_AWAIT_FOLDED] = 11,
                                             [VV_ACCOUNT_SELF_UNDERFLOW] = a.v[VV_ACCOUNT_SELF_UNDERFLOW]});
}
END_TEST

START_TEST(gate_await_clock_invalid)
{
    run r;
    begin(&r);
    uint64_t now = varve_ticks();
    varve_await_begin(r.thread, now);
    varve_await_end(r.thread, now - 100000);
    vv_accounting a = finish(&r);
    assert_terms(&a, (uint64_t[VV_ACCOUNTS]){[VV_ACCOUNT_AWAIT_STARTED] = 1, [VV_ACCOUNT_AWAIT_LOST_CLOCK] = 1});
}
END_TEST

START_TEST(gate_await_saturated)
{
    run r;
    begin(&r);
    uint64_t from = varve_ticks(), to = from + (1ULL << 62), sum = 0, n = 0;
    for (; sum < UINT64_MAX; n++) {
        varve_await_begin(r.thread, from);
        varve_await_end(r.thread, to);
        sum = vv_sat64(sum, vv_clock_ns(&r.g.session->clock, to) - vv_clock_ns(&r.g.session->clock, from));
    }
    uint8_t *health = &r.exec->cct.health;
    varve_call_end(r.thread, VARVE_CALL_OK);
    settle(r.g.session);
    ck_assert_uint_eq(*health & VV_HEALTH_AWAIT_SATURATED, VV_HEALTH_AWAIT_SATURATED);
    vv_accounting a = finish(&r);
    assert_terms(&a, (uint64_t[VV_ACCOUNTS]){[VV_ACCOUNT_AWAIT_STARTED] = n, [VV_ACCOUNT_AWAIT_FOLDED] = n - 1,
                                             [VV_ACCOUNT_AWAIT_LOST_SATURATED] = 1, [VV_ACCOUNT_SELF_UNDERFLOW] = 1});
}
END_TEST

/* Takes all the memory that is left. */
static uint64_t take_memory(run *r)
{
    vv_governor *g = &r->g.session->governor;
    uint64_t n = g->pools[VV_POOL_GENERAL].limit - atomic_load(&g->pools[VV_POOL_GENERAL].used);
    ck_assert(vv_reserve(g, VV_POOL_GENERAL, VV_OWN_POPULATION, n));
    return n;
}

static void give_memory(run *r, uint64_t n)
{
    vv_release(&r->g.session->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, n);
}

/* All that was recorded is read while no memory is left. */
static void settle_without_memory(run *r)
{
    r->g.session->decoder.relieved_ticks = varve_ticks() + vv_clock_lead(&r->g.session->clock);
    uint64_t n = take_memory(r);
    settle(r->g.session);
    give_memory(r, n);
}

START_TEST(gate_await_memory_exceeded)
{
    run r;
    begin(&r);
    for (unsigned i = 0; i < 3; i++) { /* the room that the root's own mark brought with it */
        varve_call_begin(r.thread, r.leaf, 0);
        wait_once(r.thread);
    }
    varve_call_begin(r.thread, r.leaf, 0);
    uint64_t n = take_memory(&r);
    wait_once(r.thread);
    give_memory(&r, n);
    wait_once(r.thread);
    for (unsigned i = 0; i < 4; i++)
        varve_call_end(r.thread, VARVE_CALL_OK);
    vv_accounting a = finish(&r);
    assert_terms(&a, (uint64_t[VV_ACCOUNTS]){[VV_ACCOUNT_AWAIT_STARTED] = 5, [VV_ACCOUNT_AWAIT_FOLDED] = 4,
                                             [VV_ACCOUNT_AWAIT_LOST_MEMORY] = 1,
                                             [VV_ACCOUNT_SELF_UNDERFLOW] = a.v[VV_ACCOUNT_SELF_UNDERFLOW]});
}
END_TEST

/* The awaited end is refused, and so are a call with a wait inside: their whole counts are loss. */
START_TEST(gate_awaited_end_transport_exceeded)
{
    run r;
    begin(&r);
    varve_call_begin(r.thread, r.leaf, 0);
    for (unsigned i = 0; i < 3; i++)
        wait_once(r.thread);
    /* A ring that is full, and can't roll. */
    uint64_t n = take_memory(&r);
    vv_ring *ring = vv_session_ring(r.g.session, r.g.engine);
    ck_assert_ptr_null(atomic_load(&ring->spares[0]));
    uint64_t *end = ring->end;
    ring->end = ring->at;
    varve_call_begin(r.thread, r.leaf, 0);
    wait_once(r.thread);
    varve_call_end(r.thread, VARVE_CALL_OK);
    varve_call_end(r.thread, VARVE_CALL_OK);
    ring->end = end;
    give_memory(&r, n);
    publish(r.g.session);
    wait_once(r.thread);
    vv_accounting a = finish(&r);
    assert_terms(&a, (uint64_t[VV_ACCOUNTS]){[VV_ACCOUNT_AWAIT_STARTED] = 5, [VV_ACCOUNT_AWAIT_FOLDED] = 1,
                                             [VV_ACCOUNT_AWAIT_LOST_TRANSPORT] = 4,
                                             [VV_ACCOUNT_CALLS_LOST_TRANSPORT] = 1,
                                             [VV_ACCOUNT_SELF_UNDERFLOW] = a.v[VV_ACCOUNT_SELF_UNDERFLOW]});
}
END_TEST

/* The consumer has no memory for a thread: its calls and awaits are unmatched. */
START_TEST(gate_awaited_end_unmatched)
{
    run r;
    begin(&r);
    varve_thread *t = varve_thread_spawn(r.thread, 0, 0, NULL, 0);
    varve_thread_start(t, varve_ticks());
    varve_call_begin(t, r.leaf, 0);
    wait_once(t);
    wait_once(t);
    varve_call_end(t, VARVE_CALL_OK);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    settle_without_memory(&r);
    vv_accounting a = finish(&r);
    assert_terms(&a, (uint64_t[VV_ACCOUNTS]){[VV_ACCOUNT_AWAIT_STARTED] = 2, [VV_ACCOUNT_AWAIT_LOST_UNMATCHED] = 2,
                                             [VV_ACCOUNT_CALLS_LOST_UNMATCHED] = 1});
}
END_TEST

/* A call without memory for its frame spawns, in its own name and in its callers': the children are counted below an
 * invalid parent, with all their calls. */
START_TEST(gate_spawn_from_a_call_without_a_frame)
{
    run r;
    begin(&r);
    varve_thread *t = varve_thread_spawn(r.thread, 0, 0, NULL, 0);
    varve_thread_start(t, varve_ticks());
    settle(r.g.session);
    varve_call_begin(t, r.leaf, 0);
    settle_without_memory(&r);
    for (unsigned up = 0; up < 3; up++) {
        varve_thread *child = varve_thread_spawn(t, up, 0, NULL, 0);
        varve_thread_start(child, varve_ticks());
        call_once(child, r.leaf);
        varve_thread_end(child, VARVE_THREAD_COMPLETED);
    }
    settle(r.g.session);
    const vv_counters *below = &r.exec->cct.overflow[VV_OVERFLOW_INVALID_PARENT][VV_EDGE_SPAWN];
    ck_assert_uint_eq(below->started, 4); /* and the call without a frame */
    ck_assert_uint_eq(below->ok, 3);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    vv_accounting a = finish(&r);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_CALLS_FOLDED], a.v[VV_ACCOUNT_CALLS_ATTEMPTED]);
}
END_TEST

/* A difference that no reason explains. */
START_TEST(gate_await_unreconciled)
{
    run r;
    begin(&r);
    wait_once(r.thread);
    atomic_fetch_add(&r.exec->slot->accounts[VV_ACCOUNT_AWAIT_STARTED], 3);
    vv_accounting a = finish(&r);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_AWAIT_LOST_UNRECONCILED], 3);
}
END_TEST

/* A child inside an await: together they are longer than the call. */
START_TEST(gate_self_time_underflow)
{
    run r;
    begin(&r);
    uint64_t t0 = varve_ticks();
    varve_call_begin_at(r.thread, r.leaf, 0, t0);
    varve_await_begin(r.thread, t0);
    varve_call_begin_at(r.thread, r.leaf, 0, t0 + 10000);
    varve_call_end_at(r.thread, VARVE_CALL_OK, t0 + 90000);
    varve_await_end(r.thread, t0 + 100000);
    varve_call_end_at(r.thread, VARVE_CALL_OK, t0 + 100000);
    settle(r.g.session);
    ck_assert_uint_eq(r.exec->cct.health & VV_HEALTH_SELF_UNDERFLOW, VV_HEALTH_SELF_UNDERFLOW);
    vv_accounting a = finish(&r);
    ck_assert_uint_ge(a.v[VV_ACCOUNT_SELF_UNDERFLOW], 1);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_AWAIT_FOLDED], 1);
}
END_TEST

static const struct {
    int os;
    vv_account calls, awaits;
} lost_groups[] = {
    {EIO, VV_ACCOUNT_CALLS_LOST_PUBLISH, VV_ACCOUNT_AWAIT_LOST_PUBLISH},
    {ENOSPC, VV_ACCOUNT_CALLS_LOST_DISK, VV_ACCOUNT_AWAIT_LOST_DISK},
};

/* A lost group takes its calls and awaits along, under the reason of the store. */
START_TEST(gate_lost_group)
{
    run r;
    begin(&r);
    varve_call_begin(r.thread, r.leaf, 0);
    wait_once(r.thread);
    varve_call_end(r.thread, VARVE_CALL_OK);
    r.disk = (bad_disk){VV_STEP_WRITE, lost_groups[_i].os, .times = 1};
    ck_assert(!publish(r.g.session));
    vv_accounting a = finish(&r);
    ck_assert_uint_eq(a.v[lost_groups[_i].calls], 1);
    ck_assert_uint_eq(a.v[lost_groups[_i].awaits], 1);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_CALLS_FOLDED], 1);
}
END_TEST

/* Everything at once: threads, little memory, bad disks. */
#ifdef __SANITIZE_THREAD__
enum { ROOTS = 3 };
#else
enum { ROOTS = 60 };
#endif
enum { WORKERS = 4, STEPS = 4000, NAMES = 300 };

static struct {
    varve_engine *engine;
    uint32_t functions[NAMES];
    atomic_bool calm;
    atomic_uint steps;
} load;

static int fail_sometimes(void *ctx, vv_step at)
{
    (void)ctx;
    if (atomic_load(&load.calm) || at == VV_STEP_LEDGER_READ)
        return 0;
    unsigned n = atomic_fetch_add(&load.steps, 1) * 2654435761u >> 16;
    return n % 40 == 0 ? EIO : n % 41 == 0 ? EACCES : 0;
}

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* A random walk on one logical thread; where deep, children are spawned and walk in their turn. */
static void walk(varve_thread *t, uint32_t *state, unsigned steps, unsigned level)
{
    while (steps--) {
        uint32_t what = next(state) % 100;
        if (what < 50 && varve_thread_depth(t) < 300) {
            varve_call_begin(t, load.functions[next(state) % NAMES], 0);
        } else if (what < 90) {
            varve_call_end(t, (varve_call_status)(next(state) % 4));
        } else if (what < 98) {
            uint64_t now = varve_ticks();
            varve_await_begin(t, now);
            varve_await_end(t, what == 97 ? now - 100000 : varve_ticks());
        } else if (level < 3 && steps > 100) {
            varve_thread *child = varve_thread_spawn(t, next(state) % 3, 0, "child", 5);
            varve_thread_start(child, varve_ticks());
            walk(child, state, steps / 3, level + 1);
            varve_thread_end(child, (varve_thread_status)(next(state) % 3));
        }
    }
}

static void *work(void *arg)
{
    uint32_t state = (uint32_t)(uintptr_t)arg;
    for (unsigned i = 0; i < ROOTS; i++) {
        varve_thread *t;
        varve_root *r = varve_root_begin(load.engine, NULL, &t);
        if (!r)
            continue;
        walk(t, &state, STEPS, 0);
        execution_end(r, t);
    }
    return NULL;
}

/* Calls and waits in all rows of a segment. */
static void add_segment(const char *path, vv_counters *sum)
{
    vv_blob b = {0};
    vv_error err = {0};
    ck_assert_int_eq(vv_file_read(AT_FDCWD, path, 1 << 30, &b, &err), VV_OK);
    vv_data_segment seg;
    vv_group g;
    bool more = true;
    ck_assert_msg(vv_data_open(&seg, b.p, b.n, NULL, 0, false, &err) == VV_OK, "%s", err.msg);
    while (vv_data_next(&seg, &g, &more, &err) == VV_OK && more) {
        vv_cct_cursor c;
        vv_cct_row row;
        vv_cct_overflow over;
        vv_cct_open(&c, g.cct, g.cct_len, g.cct_health, g.cct_records);
        while (vv_cct_next_context(&c, &row))
            vv_counters_add(sum, &row.counters);
        while (vv_cct_next_overflow(&c, &over))
            vv_counters_add(sum, &over.counters);
        if (vv_group_has_cct(&g))
            ck_assert_int_eq(vv_cct_finish(&c, &err), VV_OK);
    }
    ck_assert(!more);
    vv_blob_done(&b);
}

static vv_counters sum_of_store(const test_store *s, const vv_euid *euid)
{
    vv_counters sum = {0};
    char hex[33], dir[256], path[600];
    vv_hex(hex, euid->b, sizeof euid->b);
    snprintf(dir, sizeof dir, "%s/streams/%s/data", s->root, hex);
    DIR *d = opendir(dir);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *f; (f = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", dir, f->d_name);
        if (f->d_name[0] != '.')
            add_segment(path, &sum);
    }
    closedir(d);
    return sum;
}

/* Losses of every kind under load, in as many executions as there are: the equations hold over all of them, and the
 * committed rows, each once, are what they call folded. */
START_TEST(gate_equations_under_load)
{
    atomic_store(&load.calm, true);
    test_store s = store_make_quick();
    vv_session_test test = {.hooks = {.step = fail_sometimes}};
    varve_session *v = session_tested(&s, 2, (uint64_t)SMALL << 2 * _i, &test);
    load.engine = varve_engine_open(v, NULL);
    for (unsigned i = 0; i < NAMES; i++)
        load.functions[i] = function(load.engine, "f");
    vv_euid euid = v->decoder.euid;
    atomic_store(&load.calm, false);
    pthread_t ids[WORKERS];
    for (uintptr_t i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_create(&ids[i], NULL, work, (void *)(i + 1 + (uintptr_t)_i * 100)), 0);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(ids[i], NULL);
    atomic_store(&load.calm, true);
    /* Two faults in a row may have closed the store: then a flush says no, but all is over after it. */
    varve_flush(v, 60000);
    varve_flush(v, 60000);
    ck_assert_ptr_null(v->decoder.execs);
    vv_accounting a = v->decoder.over;
    varve_session_close(v);
    vv_counters sum = sum_of_store(&s, &euid);
    assert_accounts(&a, &sum);
    if (_i == 0) { /* where memory is little */
        ck_assert_uint_gt(lost_of(&a, "invocations_lost."), 0);
        ck_assert_uint_gt(lost_of(&a, "await_lost."), 0);
    }
    store_remove(&s);
}
END_TEST

int main(void)
{
    TCase *c = test_case("account", 180);
    tcase_add_test(c, gate_await_encoding);
    tcase_add_test(c, gate_await_clock_invalid);
    tcase_add_test(c, gate_await_saturated);
    tcase_add_test(c, gate_await_memory_exceeded);
    tcase_add_test(c, gate_awaited_end_transport_exceeded);
    tcase_add_test(c, gate_awaited_end_unmatched);
    tcase_add_test(c, gate_spawn_from_a_call_without_a_frame);
    tcase_add_test(c, gate_await_unreconciled);
    tcase_add_test(c, gate_self_time_underflow);
    tcase_add_loop_test(c, gate_lost_group, 0, (int)VV_ARRAY_LEN(lost_groups));
    tcase_add_loop_test(c, gate_equations_under_load, 0, 3);
    return test_run();
}
