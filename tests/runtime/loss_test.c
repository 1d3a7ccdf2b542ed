/*
 * What memory, order and the store take away is counted, and the rest stays exact. The consumer is the test itself (or
 * its passes are taken one by one), so every order is made on purpose.
 */
#include "config.h"

#include "runtime/session.h"

#include <errno.h>
#include <pthread.h>

#include "tests/runtime/inside.h"

uint64_t size_of_files;

enum { SMALL = 8921088 };

/* A full ring drops whole subtrees at the begin; what was recorded before and after is exact, and nothing blocks. */
START_TEST(refused)
{
    rig g = rig_stepped(store_make(), SMALL, NULL);
    uint32_t f_main = function(g.engine, "main"), f_a = function(g.engine, "a");
    uint32_t f_b = function(g.engine, "b"), f_c = function(g.engine, "c");
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f_main, 0);
    uint64_t calls = 0, lost_calls = 0;
    for (unsigned round = 0; round < 3; round++) {
        /* Until memory is out; each a holds a b, and its end may be what is refused. */
        for (varve_status st = {.records_lost = lost_calls};; calls++) {
            varve_call_begin(t, f_a, 0);
            call_once(t, f_b);
            varve_call_end(t, VARVE_CALL_OK);
            uint64_t before = st.records_lost;
            varve_session_status(g.session, &st);
            if (st.records_lost != before)
                break;
            ck_assert_uint_lt(calls, 10000000);
        }
        ck_assert_uint_eq(varve_thread_depth(t), 1);
        varve_call_begin(t, f_a, 0);
        varve_call_begin(t, f_b, 0);
        ck_assert_uint_eq(varve_thread_depth(t), 3);
        varve_call_end(t, VARVE_CALL_OK);
        varve_call_end(t, VARVE_CALL_OK);
        varve_thread *c = varve_thread_spawn(t, 0, 0, "a name that finds no room in a full ring", 40);
        ck_assert_ptr_nonnull(c);
        varve_thread_end(c, VARVE_THREAD_COMPLETED);
        varve_status st = status_of(g.session);
        lost_calls = st.records_lost;
        ck_assert(publish(g.session));
        /* Room again: all is recorded from the same frame on. */
        call_once(t, f_c);
    }
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    ck_assert(publish(g.session));
    look *l = rig_close(&g);
    ck_assert_int_eq(l->execution->index_state, VV_INDEX_COMPLETE);
    const uint64_t *h = l->execution->health.v;
    ck_assert_uint_eq(h[VV_H_structural_transport_exceeded], lost_calls);
    ck_assert_uint_eq(started(l, "main"), 1);
    ck_assert_uint_eq(counters_of(l, "main").ok, 1);
    ck_assert_uint_eq(started(l, "main>c"), 3);
    vv_counters a = counters_of(l, "main>a"), b = counters_of(l, "main>a>b");
    ck_assert_uint_ge(a.started, calls);
    ck_assert_uint_le(a.started, calls + 3);
    ck_assert_uint_le(a.started - b.started, 3);
    /* Starts without an end are the unmatched ones. */
    ck_assert_uint_eq(a.started - a.ok + b.started - b.ok, h[VV_H_unmatched_call_facts]);
    ck_assert_uint_eq(h[VV_H_unmatched_thread_facts], 0);
    rig_remove(&g);
}
END_TEST

static void *on_its_own_ring(void *arg)
{
    void (**f)(void *) = arg;
    (*f)(arg);
    return NULL;
}

static void elsewhere(void *arg)
{
    pthread_t id;
    ck_assert_int_eq(pthread_create(&id, NULL, on_its_own_ring, arg), 0);
    pthread_join(id, NULL);
}

typedef struct {
    void (*run)(void *);
    varve_thread *thread, *spawned;
    uint32_t f;
} job;

static void start_and_call(void *arg)
{
    job *j = arg;
    varve_thread_start(j->thread, varve_ticks());
    varve_call_begin(j->thread, j->f, 0);
    j->spawned = varve_thread_spawn(j->thread, 0, 0, NULL, 0);
}

static void finish_child(void *arg)
{
    job *j = arg;
    varve_thread_bind(j->thread);
    varve_call_begin(j->thread, j->f, 0);
    varve_thread_end(j->thread, VARVE_THREAD_COMPLETED);
}

static vv_decoded drain(varve_session *v, unsigned n, bool *moved)
{
    vv_ring *r = atomic_load(&v->rings);
    while (n--)
        r = atomic_load(&r->next);
    return vv_decoder_drain(&v->decoder, r, 1000, false, moved);
}

/* Three generations on three rings, read youngest first; then a thread that goes on elsewhere, its later leg read
 * first. */
START_TEST(rings_in_reverse)
{
    rig g = rig_stepped(store_make(), 32 << 20, NULL);
    uint32_t f_main = function(g.engine, "main"), f_a = function(g.engine, "a"), f_b = function(g.engine, "b");
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f_main, 0);
    job a = {start_and_call, varve_thread_spawn(t, 0, 0, NULL, 0), NULL, f_a};
    /* One OS thread each, alive until all have recorded, so that no ring is shared. */
    elsewhere(&a);
    job b = {start_and_call, a.spawned, NULL, f_b};
    elsewhere(&b);
    /* a goes on, on a third ring. */
    job more = {finish_child, a.thread, NULL, f_b};
    elsewhere(&more);
    varve_thread_end(b.spawned, VARVE_THREAD_CANCELLED);
    job last = {finish_child, b.thread, NULL, f_a};
    elsewhere(&last);
    vv_decoder_admit(&g.session->decoder);
    bool moved = false;
    ck_assert_int_eq(drain(g.session, 4, &moved), VV_DECODED_BLOCKED);
    ck_assert_int_eq(drain(g.session, 3, &moved), VV_DECODED_BLOCKED);
    ck_assert_int_eq(drain(g.session, 2, &moved), VV_DECODED_BLOCKED);
    ck_assert_int_eq(drain(g.session, 1, &moved), VV_DECODED_BLOCKED);
    ck_assert(!moved);
    ck_assert_int_ne(drain(g.session, 0, &moved), VV_DECODED_BOUND);
    ck_assert_int_eq(drain(g.session, 3, &moved), VV_DECODED_BLOCKED); /* its earlier leg is on ring 1 */
    ck_assert_int_eq(drain(g.session, 1, &moved), VV_DECODED_ALL);
    ck_assert_int_eq(drain(g.session, 4, &moved), VV_DECODED_BLOCKED);
    ck_assert_int_eq(drain(g.session, 2, &moved), VV_DECODED_ALL);
    ck_assert_int_eq(drain(g.session, 4, &moved), VV_DECODED_ALL);
    ck_assert_int_eq(drain(g.session, 3, &moved), VV_DECODED_ALL);
    ck_assert_int_eq(drain(g.session, 0, &moved), VV_DECODED_ALL);
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    ck_assert(publish(g.session));
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(started(l, "main~a"), 1);
    ck_assert_uint_eq(started(l, "main~a>b"), 1);
    ck_assert_uint_eq(started(l, "main~a~b"), 1);
    ck_assert_uint_eq(started(l, "main~a~b>a"), 1);
    ck_assert_uint_eq(l->fold->thread_count, 3);
    rig_remove(&g);
}
END_TEST

/* A lost segment: its counts are gone, its definitions are written again, so no committed context lacks a parent. */
START_TEST(lost_segment)
{
    bad_disk disk = {VV_STEP_WRITE, EIO, .times = 0};
    rig g = rig_stepped(store_make(), 32 << 20, &disk);
    uint32_t f_main = function(g.engine, "main"), f_a = function(g.engine, "a"), f_b = function(g.engine, "b");
    varve_thread *t = rig_begin(&g);
    ck_assert(publish(g.session));
    varve_call_begin(t, f_main, 0);
    varve_call_begin(t, f_a, 0);
    settle(g.session);
    disk.times = 1;
    ck_assert(!publish(g.session));
    call_once(t, f_b);
    varve_call_end(t, VARVE_CALL_OK);
    ck_assert(publish(g.session));
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    ck_assert(publish(g.session));
    look *l = rig_close(&g);
    ck_assert_uint_eq(l->execution->health.v[VV_H_cct_segment_publish_failed], 1);
    ck_assert_uint_eq(started(l, "main"), 0);
    ck_assert_uint_eq(counters_of(l, "main").ok, 1);
    ck_assert_uint_eq(started(l, "main>a"), 0);
    ck_assert_uint_eq(counters_of(l, "main>a").ok, 1);
    ck_assert_uint_eq(started(l, "main>a>b"), 1);
    ck_assert_uint_eq(l->execution->count, 3);
    assert_ledger(g.store.root);
    rig_remove(&g);
}
END_TEST

/* Each publication of a run is made indeterminate in turn: in the end everything is there, once. */
START_TEST(indeterminate_everywhere)
{
    bad_disk disk = {VV_STEP_FSYNC_DIRECTORY, EIO, .after = (unsigned)_i, .times = 1};
    rig g = rig_stepped(store_make(), 32 << 20, &disk);
    uint32_t f_main = function(g.engine, "main"), f_a = function(g.engine, "a");
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f_main, 0);
    unsigned failed = !publish(g.session);
    if (failed) {
        varve_thread *none;
        ck_assert_ptr_null(varve_root_begin(g.engine, NULL, &none));
    }
    call_once(t, f_a);
    failed += !publish(g.session);
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    failed += !publish(g.session);
    failed += !publish(g.session);
    ck_assert(publish(g.session));
    ck_assert_uint_eq(failed, 1);
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(l->stream->execution_count, 1);
    ck_assert_uint_eq(started(l, "main"), 1);
    ck_assert_uint_eq(started(l, "main>a"), 1);
    ck_assert_uint_eq(totals(l).ok, 2);
    assert_ledger(g.store.root);
    rig_remove(&g);
}
END_TEST

/* The batch with an execution's start is lost: its end says so, and its data is found all the same. */
START_TEST(lost_start)
{
    bad_disk disk = {VV_STEP_RENAME, EIO, .after = 1, .times = 0};
    rig g = rig_stepped(store_make(), 32 << 20, &disk);
    uint32_t f_main = function(g.engine, "main");
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f_main, 0);
    disk.times = 1;
    ck_assert(!publish(g.session));
    varve_call_end(t, VARVE_CALL_OK);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    varve_root_end(g.root, VARVE_FAILED);
    ck_assert(publish(g.session));
    look *l = rig_close(&g);
    ck_assert_int_eq(l->execution->index_state, VV_INDEX_ROOT_STARTED_LOST);
    ck_assert_int_eq(l->execution->status, VV_EXEC_FAILED);
    ck_assert(l->stream->has_header);
    ck_assert_uint_eq(started(l, "main"), 1);
    rig_remove(&g);
}
END_TEST

/* Many more contexts than memory holds: the rest is counted in overflow, every start once, and time still adds up. */
START_TEST(overflow)
{
    rig g = rig_stepped(store_make(), SMALL, NULL);
    uint32_t f = function(g.engine, "down");
    varve_thread *t = rig_begin(&g);
    enum { DEEP = 60000 };
    for (unsigned i = 0; i < DEEP; i++) {
        varve_call_begin(t, f, 0);
        if (i % 4000 == 0)
            settle(g.session);
    }
    settle(g.session);
    for (unsigned i = 0; i < DEEP; i++) {
        varve_call_end(t, VARVE_CALL_OK);
        if (i % 4000 == 0)
            settle(g.session);
    }
    rig_end(&g);
    ck_assert(publish(g.session));
    varve_status st = status_of(g.session);
    ck_assert_uint_eq(st.records_lost, 0);
    look *l = rig_close(&g);
    vv_counters all = totals(l), over = overflow_totals(l);
    ck_assert_uint_eq(all.started + over.started, DEEP);
    ck_assert_uint_gt(over.started, 0);
    ck_assert_uint_eq(all.ok + over.ok + l->execution->health.v[VV_H_unmatched_call_facts], DEEP);
    ck_assert_int_eq(l->execution->index_state, VV_INDEX_COMPLETE);
    rig_remove(&g);
}
END_TEST

/* No more slots than the memory policy gives; the rest is refused and counted, and slots come back at hand-off. */
START_TEST(slots)
{
    rig g = rig_stepped(store_make(), SMALL, NULL);
    uint32_t f = function(g.engine, "f");
    enum { SLOTS = 224 };
    static varve_root *r[SLOTS];
    static varve_thread *t[SLOTS];
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < SLOTS; i++) {
            r[i] = varve_root_begin(g.engine, NULL, &t[i]);
            ck_assert_ptr_nonnull(r[i]);
        }
        varve_thread *none;
        ck_assert_ptr_null(varve_root_begin(g.engine, NULL, &none));
        for (unsigned i = 0; i < SLOTS; i++) {
            call_once(t[i], f);
            varve_root_end(r[i], VARVE_SUCCEEDED);
            varve_thread_end(t[i], VARVE_THREAD_COMPLETED);
        }
        settle(g.session);
        varve_root_end(r[0], VARVE_FAILED); /* over: means nothing */
    }
    ck_assert(publish(g.session));
    varve_status st = status_of(g.session);
    ck_assert_uint_eq(st.roots_begun, 3 * SLOTS);
    ck_assert_uint_eq(st.roots_refused, 3);
    ck_assert_uint_eq(atomic_load(&g.session->governor.pools[VV_POOL_CONTROL].used), g.session->fixed_control);
    look *l = rig_close(&g);
    ck_assert_uint_eq(l->store->streams[0].execution_count, 3 * SLOTS);
    look_fold(l, 0, 3 * SLOTS - 1);
    assert_whole(l);
    rig_remove(&g);
}
END_TEST

int main(void)
{
    TCase *c = test_case("loss", 60);
    tcase_add_test(c, refused);
    tcase_add_test(c, rings_in_reverse);
    tcase_add_test(c, lost_segment);
    tcase_add_loop_test(c, indeterminate_everywhere, 0, 6);
    tcase_add_test(c, lost_start);
    tcase_add_test(c, overflow);
    tcase_add_test(c, slots);
    return test_run();
}
