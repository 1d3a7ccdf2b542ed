/*
 * Checkpoints and counters: what a host may ask while it runs, that it is true of what is committed, and that asking
 * races with nothing.
 */
#include "config.h"

#include "runtime/session.h"

#include <errno.h>
#include <pthread.h>

#include "tests/runtime/inside.h"

uint64_t size_of_files;

enum { PLENTY = 64 << 20 };

static varve_stream_state stream_of(varve_session *v)
{
    varve_stream_state st;
    ck_assert(varve_stream_checkpoint(v, &st));
    return st;
}

/* A cycle as the consumer takes it. */
static void cycle(varve_session *v)
{
    v->consumer.next_publish_ns = 0;
    vv_consumer_pass(v);
    vv_checkpoint_take(v, false);
}

static void look_again(varve_session *v)
{
    settle(v);
    v->checkpoint.next_ns = 0;
    vv_checkpoint_take(v, false);
}

START_TEST(gate_checkpoints_of_a_life)
{
    bad_disk disk = {.times = 0};
    rig g = rig_stepped(store_make(), PLENTY, &disk);
    uint32_t f_main = function(g.engine, "main");
    varve_stream_state st = stream_of(g.session);
    ck_assert(!st.meta_high_water && !st.data_high_water && !st.pending_groups && !st.publication_in_flight);
    varve_thread *t = rig_begin(&g);
    varve_execution_state x;
    ck_assert(varve_execution_checkpoint(g.root, &x));
    ck_assert(x.engine == 1 && x.thread == 1 && !x.queued_facts && !x.first_data);
    varve_call_begin(t, f_main, 0);
    look_again(g.session);
    st = stream_of(g.session);
    ck_assert_uint_eq(st.pending_groups, 1);
    ck_assert_uint_eq(st.pending_meta, 2); /* the engine and the start */
    ck_assert(varve_execution_checkpoint(g.root, &x));
    ck_assert(x.parts[VARVE_PART_SPAN_STARTS].all == 1 && x.parts[VARVE_PART_SPAN_STARTS].queued == 1 &&
              !x.parts[VARVE_PART_SPAN_STARTS].committed && x.open_spans == 1);
    ck_assert(x.queued_facts == 2 && x.queued_bytes > 0); /* the starts of its thread and of its first call */
    uint64_t age = st.oldest_pending_ns;
    look_again(g.session);
    ck_assert_uint_ge(stream_of(g.session).oldest_pending_ns, age);
    cycle(g.session);
    st = stream_of(g.session);
    ck_assert(st.meta_high_water == 1 && st.data_high_water == 1 && st.health_high_water == 0);
    ck_assert(!st.pending_groups && !st.pending_meta && !st.oldest_pending_ns);
    ck_assert(varve_execution_checkpoint(g.root, &x));
    ck_assert(!x.queued_facts && x.first_data == 1 && x.last_data == 1);
    ck_assert(x.parts[VARVE_PART_SPAN_STARTS].all == 1 && !x.parts[VARVE_PART_SPAN_STARTS].queued &&
              x.parts[VARVE_PART_SPAN_STARTS].committed == 1 && x.open_spans == 1);
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    ck_assert(varve_execution_checkpoint(g.root, &x)); /* the consumer has not seen it */
    look_again(g.session);
    /* None after the slot's release, though its end is not written. */
    ck_assert(!varve_execution_checkpoint(g.root, &x));
    ck_assert_uint_eq(stream_of(g.session).pending_meta, 1);
    cycle(g.session);
    st = stream_of(g.session);
    ck_assert(st.meta_high_water == 2 && st.data_high_water == 2 && st.health_high_water == 1 && !st.pending_meta);
    /* The slot's next execution is not the old handle's. */
    varve_root *again = varve_root_begin(g.engine, NULL, &t);
    ck_assert(!varve_execution_checkpoint(g.root, &x) && varve_execution_checkpoint(again, &x) && x.thread == 2);
    execution_end(again, t);
    settle(g.session);
    varve_session_close(g.session);
    rig_remove(&g);
}
END_TEST

/* The high water waits for the directory. */
START_TEST(gate_high_water_moves_after_the_directory_fsync)
{
    bad_disk disk = {.times = 0};
    rig g = rig_stepped(store_make(), PLENTY, &disk);
    uint32_t f_main = function(g.engine, "main");
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f_main, 0);
    settle(g.session);
    cycle(g.session);
    varve_call_end(t, VARVE_CALL_OK);
    settle(g.session);
    disk = (bad_disk){VV_STEP_FSYNC_DIRECTORY, EIO, .times = ALWAYS};
    cycle(g.session);
    varve_stream_state st = stream_of(g.session);
    varve_execution_state x;
    ck_assert(st.publication_in_flight && st.data_high_water == 1 && st.pending_groups == 1);
    ck_assert(varve_execution_checkpoint(g.root, &x) && x.publication_in_flight && x.last_data == 1);
    cycle(g.session);
    ck_assert(stream_of(g.session).publication_in_flight && stream_of(g.session).data_high_water == 1);
    disk.times = 0;
    cycle(g.session);
    st = stream_of(g.session);
    ck_assert(!st.publication_in_flight && st.data_high_water == 2 && !st.pending_groups);
    ck_assert(varve_execution_checkpoint(g.root, &x) && !x.publication_in_flight && x.last_data == 2);
    rig_end(&g);
    settle(g.session);
    varve_session_close(g.session);
    rig_remove(&g);
}
END_TEST

/* A look takes a twentieth of the time until the next one at most, which is 10 ms at least and 100 ms at most. */
START_TEST(looks_take_little_time)
{
    enum { ROOTS = 200, MS = 1000000 };
    rig g = rig_stepped(store_make(), PLENTY, NULL);
    varve_root *roots[ROOTS];
    varve_thread *threads[ROOTS];
    for (unsigned i = 0; i < ROOTS; i++)
        roots[i] = varve_root_begin(g.engine, NULL, &threads[i]);
    settle(g.session);
    uint64_t before = vv_clock_monotonic_ns();
    vv_checkpoint_take(g.session, true);
    uint64_t after = vv_clock_monotonic_ns(), most = 20 * (after - before);
    most = most < 10 * MS ? 10 * MS : most > 100 * MS ? 100 * MS : most;
    uint64_t next = g.session->checkpoint.next_ns;
    ck_assert(next >= before + 10 * MS && next <= after + most);
    for (unsigned i = 0; i < ROOTS; i++)
        execution_end(roots[i], threads[i]);
    varve_session_close(g.session);
    rig_remove(&g);
}
END_TEST

/* Each of the process's counters moves where it is meant to. */
START_TEST(gate_process_counters)
{
    bad_disk disk = {.times = 0};
    rig g = rig_stepped(store_make(), 8921088, &disk);
    uint32_t f_main = function(g.engine, "main");
    varve_process_counts was, is;
    varve_process_counters(&was);
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f_main, 0);
    settle(g.session);
    disk = (bad_disk){VV_STEP_WRITE, EIO, .times = ALWAYS};
    cycle(g.session);
    varve_process_counters(&is);
    ck_assert_uint_eq(is.function_table_publish_failed - was.function_table_publish_failed, 1);
    ck_assert_uint_eq(is.meta_batch_lost - was.meta_batch_lost, 1);
    disk.times = 0;
    cycle(g.session);
    varve_call_end(t, VARVE_CALL_OK);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    varve_root_end(g.root, VARVE_ABANDONED);
    settle(g.session);
    disk.times = ALWAYS;
    cycle(g.session);
    varve_process_counters(&is);
    ck_assert_uint_eq(is.root_abandoned - was.root_abandoned, 1);
    ck_assert_uint_eq(is.root_ended_lost - was.root_ended_lost, 1);
    ck_assert_uint_eq(is.meta_batch_lost - was.meta_batch_lost, 2);
    ck_assert_uint_eq(is.health_record_lost - was.health_record_lost, 1);
    disk.times = 0;
    uint64_t begun = 0, refused = 0;
    for (; !refused; begun++)
        refused += varve_root_begin(g.engine, NULL, &t) == NULL;
    varve_process_counters(&is);
    ck_assert_uint_eq(is.profiler_execution_state_unavailable - was.profiler_execution_state_unavailable, 1);
    varve_session_close(g.session);
    varve_process_counters(&is);
    ck_assert_uint_eq(is.root_abandoned - was.root_abandoned, begun); /* one was refused, one was ended by hand */
    rig_remove(&g);
}
END_TEST

START_TEST(off)
{
    setenv("BAML_PROFILE", "0", 1);
    varve_session *v = varve_session_open(NULL);
    varve_stream_state st;
    varve_execution_state x;
    ck_assert(!varve_stream_checkpoint(v, &st) && !varve_execution_checkpoint(NULL, &x));
    ck_assert(!varve_stream_checkpoint(NULL, &st));
    varve_session_close(v);
    unsetenv("BAML_PROFILE");
}
END_TEST

typedef struct {
    varve_session *session;
    varve_engine *engine;
    uint32_t main;
    _Atomic(varve_root *) root;
    _Atomic bool done;
} race;

static void *execute(void *arg)
{
    race *a = arg;
    for (unsigned i = 0; i < 300; i++) {
        varve_thread *t;
        varve_root *r = varve_root_begin(a->engine, NULL, &t);
        atomic_store(&a->root, r);
        for (unsigned k = 0; k < 50; k++)
            call_once(t, a->main);
        execution_end(r, t);
        if (i % 30 == 0)
            varve_flush(a->session, 10000);
    }
    atomic_store(&a->done, true);
    return NULL;
}

static void *ask(void *arg)
{
    race *a = arg;
    varve_stream_state was = {.meta_high_water = 0};
    while (!atomic_load(&a->done)) {
        varve_stream_state st;
        varve_execution_state x;
        varve_process_counts c;
        ck_assert(varve_stream_checkpoint(a->session, &st));
        ck_assert(st.meta_high_water >= was.meta_high_water && st.data_high_water >= was.data_high_water);
        was = st;
        if (varve_execution_checkpoint(atomic_load(&a->root), &x))
            ck_assert(x.engine == 1 && x.thread >= 1 && x.first_data <= x.last_data);
        varve_process_counters(&c);
    }
    return NULL;
}

/* Under ThreadSanitizer: three threads ask while executions come and go. */
START_TEST(asked_all_the_time)
{
    test_store s = store_make();
    race a = {.session = session_at(&s, 1)};
    a.engine = varve_engine_open(a.session, NULL);
    a.main = function(a.engine, "main");
    pthread_t worker, askers[3];
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&askers[i], NULL, ask, &a), 0);
    ck_assert_int_eq(pthread_create(&worker, NULL, execute, &a), 0);
    pthread_join(worker, NULL);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(askers[i], NULL);
    ck_assert(varve_flush(a.session, 10000));
    varve_stream_state st = stream_of(a.session);
    ck_assert(!st.pending_groups && !st.pending_meta && st.health_high_water > 0);
    varve_session_close(a.session);
    store_remove(&s);
}
END_TEST

int main(void)
{
    TCase *t = test_case("all", 60);
    tcase_add_test(t, gate_checkpoints_of_a_life);
    tcase_add_test(t, gate_high_water_moves_after_the_directory_fsync);
    tcase_add_test(t, looks_take_little_time);
    tcase_add_test(t, gate_process_counters);
    tcase_add_test(t, off);
    tcase_add_test(t, asked_all_the_time);
    return test_run();
}
