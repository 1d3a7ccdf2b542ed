/* What a host records is what a reader counts: calls, threads, awaits, times, tables; live and at the end. */
#include "config.h"

#include "runtime/varve.h"

#include <pthread.h>

#include "tests/runtime/host.h"

uint64_t size_of_files;

static void fib(varve_thread *t, uint32_t f, unsigned n)
{
    varve_call_begin(t, f, 0);
    if (n > 1) {
        fib(t, f, n - 1);
        fib(t, f, n - 2);
    }
    varve_call_end(t, VARVE_CALL_OK);
}

START_TEST(counts_and_times)
{
    test_store s = store_make();
    varve_session *v = session_at(&s, 1000);
    varve_engine *e = varve_engine_open(v, &(varve_engine_info){.source_label = "prog", .revision_label = "r1"});
    uint32_t file = varve_file_add(e, "dir/prog.x");
    uint32_t f_main = varve_function_add(
        e, &(varve_function_info){
               .fqn = "main", .definition_key = "m:main", .source_file = "dir/prog.x", .span_start = 3, .span_end = 9});
    uint32_t f_fib = function(e, "fib"), f_leaf = function(e, "leaf");
    uint32_t site1 = varve_site_add(e, file, 10, 12, 1), site2 = varve_site_add(e, file, 20, 22, 2);
    ck_assert_uint_eq(site1, varve_site_add(e, file, 10, 12, 1));
    ck_assert_uint_ne(site1, site2);
    ck_assert_uint_eq(file, varve_file_add(e, "dir/prog.x"));
    uint8_t id[16];
    memset(id, 0x5a, sizeof id);
    varve_thread *t;
    varve_root *r = varve_root_begin(e, id, &t);
    ck_assert_ptr_nonnull(r);
    varve_call_begin(t, f_main, 0);
    ck_assert_uint_eq(varve_thread_depth(t), 1);
    for (unsigned i = 0; i < 10; i++) {
        varve_call_begin(t, f_leaf, i % 2 ? site1 : site2);
        varve_call_end(t, (varve_call_status)(i % 4));
    }
    fib(t, f_fib, 4);
    call_once(t, 0);
    varve_call_end(t, VARVE_CALL_OK);
    execution_end(r, t);
    varve_root_end(r, VARVE_ABANDONED);
    varve_engine_close(e);
    varve_session_close(v);

    look l = look_at(&s);
    assert_whole(&l);
    ck_assert_int_eq(l.execution->status, VV_EXEC_SUCCEEDED);
    ck_assert_mem_eq(l.execution->runtime_id.b, id, 16);
    ck_assert_str_eq("prog", l.execution->engine->source.s.p ? "prog" : "");
    ck_assert_uint_eq(started(&l, "main"), 1);
    vv_counters leaf = counters_of(&l, "main>leaf");
    ck_assert_uint_eq(leaf.started, 10);
    ck_assert_uint_eq(leaf.ok, 3);
    ck_assert_uint_eq(leaf.error, 3);
    ck_assert_uint_eq(leaf.cancelled, 2);
    ck_assert_uint_eq(leaf.exited, 2);
    ck_assert_uint_eq(started(&l, "main>fib"), 1);
    ck_assert_uint_eq(started(&l, "main>fib>fib"), 2);
    ck_assert_uint_eq(started(&l, "main>fib>fib>fib"), 4);
    ck_assert_uint_eq(started(&l, "main>fib>fib>fib>fib"), 2);
    ck_assert_uint_eq(started(&l, "main>#0"), 1);
    ck_assert_uint_eq(totals(&l).started, 21);
    ck_assert_uint_eq(l.fold->context_count, 8); /* leaf has two sites */
    ck_assert(self_of_all(&l) == counters_of(&l, "main").inclusive_ns);
    const vv_function *m = vv_function_table_find(&l.table, f_main);
    ck_assert(m->has_span && m->span_start == 3 && m->span_end == 9);
    ck_assert_uint_eq(l.fold->thread_count, 1);
    ck_assert(l.fold->threads[0].has_start && l.fold->threads[0].has_end);
    ck_assert_uint_eq(l.fold->threads[0].start.kind, 0);
    assert_ledger(s.root);
    look_done(&l);
    store_remove(&s);
}
END_TEST

/* Coroutines by hand: each switch is one instant, charged as await on both sides, so that self times add up to the
 * whole. */
START_TEST(awaits_balance)
{
    rig g = rig_live(store_make(), 1000);
    uint32_t f_main = function(g.engine, "main"), f_resume = function(g.engine, "resume");
    uint32_t f_co = function(g.engine, "co"), f_in = function(g.engine, "in");
    varve_thread *t = rig_begin(&g), *c;
    varve_call_begin(t, f_main, 0);
    c = varve_thread_spawn(t, 0, 0, "worker", 6);
    ck_assert_ptr_nonnull(c);
    uint64_t now;
    for (unsigned i = 0; i < 3; i++) {
        now = varve_ticks();
        varve_call_begin_at(t, f_resume, 0, now);
        now = varve_ticks();
        varve_await_begin(t, now);
        if (i == 0) {
            varve_thread_start(c, now);
            varve_call_begin_at(c, f_co, 0, now);
        } else {
            varve_await_end(c, now);
        }
        call_once(c, f_in);
        now = varve_ticks();
        if (i == 2) {
            varve_call_end_at(c, VARVE_CALL_OK, now);
            varve_thread_end_at(c, VARVE_THREAD_COMPLETED, now);
        } else {
            varve_await_begin(c, now);
        }
        varve_await_end(t, now);
        varve_call_end(t, VARVE_CALL_OK);
    }
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(started(l, "main>resume"), 3);
    ck_assert_uint_eq(counters_of(l, "main>resume").await_count, 3);
    ck_assert_uint_eq(started(l, "main~co"), 1);
    ck_assert_uint_eq(counters_of(l, "main~co").await_count, 2);
    ck_assert_uint_eq(started(l, "main~co>in"), 3);
    ck_assert(self_of_all(l) == counters_of(l, "main").inclusive_ns);
    rig_remove(&g);
}
END_TEST

/* A coroutine that dies suspended: its last await closes at the tick of its end, and its open calls end as
 * cancelled. */
START_TEST(dies_suspended)
{
    rig g = rig_live(store_make(), 1000);
    uint32_t f_main = function(g.engine, "main"), f_co = function(g.engine, "co"), f_in = function(g.engine, "in");
    varve_thread *t = rig_begin(&g), *c;
    varve_call_begin(t, f_main, 0);
    c = varve_thread_spawn(t, 0, 0, NULL, 0);
    uint64_t now = varve_ticks();
    varve_await_begin(t, now);
    varve_thread_start(c, now);
    varve_call_begin_at(c, f_co, 0, now);
    varve_call_begin(c, f_in, 0);
    now = varve_ticks();
    varve_await_begin(c, now);
    varve_await_end(t, now);
    ck_assert_uint_eq(varve_thread_depth(c), 2);
    varve_thread_end(c, VARVE_THREAD_CANCELLED);
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    look *l = rig_close(&g);
    assert_whole(l);
    vv_counters co = counters_of(l, "main~co"), in = counters_of(l, "main~co>in");
    ck_assert_uint_eq(co.cancelled, 1);
    ck_assert_uint_eq(in.cancelled, 1);
    ck_assert_uint_eq(in.await_count, 1);
    ck_assert(co.direct_child_ns == in.inclusive_ns);
    ck_assert(self_of_all(l) == counters_of(l, "main").inclusive_ns);
    rig_remove(&g);
}
END_TEST

typedef struct {
    varve_thread *thread;
    uint32_t f;
    unsigned calls;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    varve_thread_start(w->thread, varve_ticks());
    varve_call_begin(w->thread, w->f, 0);
    for (unsigned i = 0; i < w->calls; i++)
        fib(w->thread, w->f, 5);
    varve_call_end(w->thread, VARVE_CALL_OK);
    varve_thread_end(w->thread, VARVE_THREAD_COMPLETED);
    return NULL;
}

enum { WORKERS = 4, FIB5 = 15 };

/* Workers of other OS threads, spawned from the frame one up, some of them still at work after the root returned. */
START_TEST(os_threads)
{
    rig g = rig_live(store_make(), 20);
    uint32_t f_main = function(g.engine, "main"), f_pool = function(g.engine, "pool");
    uint32_t f_work = function(g.engine, "work");
    uint32_t site = varve_site_add(g.engine, varve_file_add(g.engine, "m"), 1, 2, 3);
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f_main, 0);
    varve_call_begin(t, f_pool, 0);
    worker w[WORKERS];
    pthread_t id[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
        w[i] = (worker){varve_thread_spawn(t, 1, site, "w\xff", 2), f_work, 2000};
        ck_assert_ptr_nonnull(w[i].thread);
        ck_assert_int_eq(pthread_create(&id[i], NULL, work, &w[i]), 0);
    }
    varve_call_end(t, VARVE_CALL_OK);
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(id[i], NULL);
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(started(l, "main>pool"), 1);
    ck_assert_uint_eq(started(l, "main~work"), WORKERS);
    ck_assert_uint_eq(totals(l).started, 2 + WORKERS * (1 + 2000 * FIB5));
    ck_assert_uint_eq(totals(l).ok, totals(l).started);
    ck_assert_uint_eq(l->fold->thread_count, 1 + WORKERS);
    for (size_t i = 0; i < l->fold->thread_count; i++) {
        const vv_thread_start *a = &l->fold->threads[i].start;
        if (!a->has_parent)
            continue;
        ck_assert(a->has_spawn_call && a->has_spawn_site && a->spawn_site.line == 3);
        ck_assert_uint_eq(vv_call_number(&a->spawn_call), 1);
        ck_assert(vv_str_eq(a->name, vv_cstr("w?")));
    }
    rig_remove(&g);
}
END_TEST

/* A running program is read while it runs: open calls are started, not completed; then a new function appears. */
START_TEST(live_and_growing)
{
    rig g = rig_live(store_make(), 1000);
    uint32_t f_main = function(g.engine, "main"), f_a = function(g.engine, "a");
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f_main, 0);
    fib(t, f_a, 3);
    ck_assert(varve_flush(g.session, 10000));
    look l = look_at(&g.store);
    ck_assert(l.stream->alive);
    ck_assert_int_eq(l.execution->status, VV_EXEC_RUNNING);
    ck_assert_uint_eq(started(&l, "main"), 1);
    ck_assert_uint_eq(counters_of(&l, "main").ok, 0);
    ck_assert_uint_eq(totals(&l).ok, 5);
    ck_assert_uint_eq(l.table.function_count, 2);
    look_done(&l);
    /* Not referred to yet: no new table. */
    uint32_t f_b = function(g.engine, "b");
    fib(t, f_a, 3);
    ck_assert(varve_flush(g.session, 10000));
    l = look_at(&g.store);
    ck_assert_uint_eq(l.stream->engine_count, 1);
    look_done(&l);
    fib(t, f_b, 1);
    ck_assert(varve_flush(g.session, 10000));
    l = look_at(&g.store);
    ck_assert_uint_eq(l.stream->engine_count, 2);
    ck_assert_uint_eq(l.table.function_count, 3);
    ck_assert_uint_eq(started(&l, "main>b"), 1);
    ck_assert_mem_eq(&l.stream->engines[0].program, &l.stream->engines[1].program, 16);
    ck_assert_uint_eq(l.table.file_count, 0);
    look_done(&l);
    /* A file that only a call site names comes with a table too. */
    varve_call_begin(t, f_b, varve_site_add(g.engine, varve_file_add(g.engine, "late"), 1, 2, 3));
    varve_call_end(t, VARVE_CALL_OK);
    ck_assert(varve_flush(g.session, 10000));
    l = look_at(&g.store);
    ck_assert_uint_eq(l.stream->engine_count, 3);
    ck_assert_uint_eq(l.table.file_count, 1);
    look_done(&l);
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    varve_session_close(g.session);
    l = look_at(&g.store);
    assert_whole(&l);
    ck_assert_uint_eq(totals(&l).started, 13);
    ck_assert(self_of_all(&l) == counters_of(&l, "main").inclusive_ns);
    look_done(&l);
    rig_remove(&g);
}
END_TEST

/* What is there when an execution starts is told with it, so that a reader looks for its groups behind that. */
START_TEST(starts_behind_what_is_there)
{
    rig g = rig_live(store_make(), 3600000);
    uint32_t f = function(g.engine, "f");
    for (unsigned i = 0; i < 3; i++) {
        record_execution(g.engine, f, 1);
        ck_assert(varve_flush(g.session, 10000));
    }
    varve_session_close(g.session);
    look l = look_store(g.store.root);
    for (unsigned i = 0; i < 3; i++) {
        look_fold(&l, 0, i);
        ck_assert_uint_eq(l.execution->start_high_water, i);
        ck_assert_uint_eq(l.execution->first, i + 1);
    }
    look_done(&l);
    store_remove(&g.store);
}
END_TEST

/* Without a flush the counts of a running program are there after a publish interval. */
START_TEST(published_by_time)
{
    rig g = rig_live(store_make(), 30);
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, function(g.engine, "main"), 0);
    bool seen = false;
    for (unsigned i = 0; i < 2000 && !seen; i++) {
        usleep(5000);
        look l = look_store(g.store.root);
        seen = l.store->stream_count && l.store->streams[0].execution_count && l.store->streams[0].data_high;
        look_done(&l);
    }
    ck_assert(seen);
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    varve_session_close(g.session);
    rig_remove(&g);
}
END_TEST

/* Many short executions are few files. */
START_TEST(thousand_roots)
{
    rig g = rig_live(store_make(), 60000);
    uint32_t f = function(g.engine, "case");
    for (unsigned i = 0; i < 1000; i++) {
        varve_thread *t;
        varve_root *r = varve_root_begin(g.engine, NULL, &t);
        ck_assert_ptr_nonnull(r);
        fib(t, f, i % 5);
        execution_end(r, t);
    }
    ck_assert(varve_flush(g.session, 20000));
    look l = look_store(g.store.root);
    ck_assert_uint_eq(l.store->streams[0].execution_count, 1000);
    ck_assert_uint_le(l.store->streams[0].meta_high, 2);
    ck_assert_uint_le(l.store->streams[0].data_high, 2);
    static const uint64_t want[] = {1, 1, 3, 5, 9};
    for (size_t i = 0; i < 1000; i += 37) {
        look_fold(&l, 0, i);
        assert_whole(&l);
        ck_assert_uint_eq(totals(&l).started, want[i % 5]);
    }
    look_done(&l);
    varve_session_close(g.session);
    assert_ledger(g.store.root);
    rig_remove(&g);
}
END_TEST

enum { DEEP = 180000 };

START_TEST(deep)
{
    rig g = rig_live(store_make(), 50);
    uint32_t f = function(g.engine, "down");
    varve_thread *t = rig_begin(&g);
    for (unsigned i = 0; i < DEEP; i++)
        varve_call_begin(t, f, 0);
    ck_assert(varve_flush(g.session, 30000));
    for (unsigned i = 0; i < DEEP; i++)
        varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(l->fold->context_count, DEEP);
    vv_counters all = totals(l);
    ck_assert_uint_eq(all.started, DEEP);
    ck_assert_uint_eq(all.ok, DEEP);
    vv_u128 most = 0;
    for (uint32_t i = 0; i < DEEP; i++) {
        vv_u128 ns = l->fold->contexts[i].counters.inclusive_ns;
        most = ns > most ? ns : most;
    }
    ck_assert(self_of_all(l) == most);
    rig_remove(&g);
}
END_TEST

/* A logical thread that moves between two OS threads, back and forth. */
typedef struct {
    pthread_barrier_t *meet;
    varve_thread *thread;
    uint32_t f;
    unsigned parity;
} mover;

enum { MOVES = 200 };

static void *move(void *arg)
{
    mover *m = arg;
    for (unsigned i = 0; i < MOVES; i++) {
        if (i % 2 == m->parity) {
            varve_thread_bind(m->thread);
            varve_call_begin(m->thread, m->f, 0);
            if (i % 3 == 0) {
                varve_call_end(m->thread, VARVE_CALL_OK);
                varve_call_begin(m->thread, m->f, 0);
            }
        }
        pthread_barrier_wait(m->meet);
    }
    for (unsigned i = 0; i < MOVES; i++) {
        if (i % 2 == m->parity) {
            varve_thread_bind(m->thread);
            varve_call_end(m->thread, VARVE_CALL_OK);
        }
        pthread_barrier_wait(m->meet);
    }
    return NULL;
}

START_TEST(moves)
{
    rig g = rig_live(store_make(), 5);
    uint32_t f = function(g.engine, "f");
    varve_thread *t = rig_begin(&g);
    pthread_barrier_t meet;
    pthread_barrier_init(&meet, NULL, 2);
    mover m[2] = {{&meet, t, f, 0}, {&meet, t, f, 1}};
    pthread_t id[2];
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&id[i], NULL, move, &m[i]), 0);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(id[i], NULL);
    pthread_barrier_destroy(&meet);
    varve_thread_bind(t);
    rig_end(&g);
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(l->fold->context_count, MOVES);
    ck_assert_uint_eq(totals(l).started, MOVES + (MOVES + 2) / 3);
    ck_assert_uint_eq(totals(l).ok, totals(l).started);
    rig_remove(&g);
}
END_TEST

/* OS threads that come and go share few rings, and a thread that never started leaves no trace. */
START_TEST(churn)
{
    rig g = rig_live(store_make(), 5);
    uint32_t f = function(g.engine, "f");
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f, 0);
    for (unsigned i = 0; i < 64; i++) {
        worker w = {varve_thread_spawn(t, 0, 0, NULL, 0), f, 1};
        pthread_t id;
        ck_assert_int_eq(pthread_create(&id, NULL, work, &w), 0);
        pthread_join(id, NULL);
        varve_thread_end(varve_thread_spawn(t, 0, 0, "never", 5), VARVE_THREAD_CANCELLED);
    }
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(l->fold->thread_count, 65);
    ck_assert_uint_eq(totals(l).started, 1 + 64 * (1 + FIB5));
    rig_remove(&g);
}
END_TEST

/* A root that is still open when its session closes is abandoned, and what is open in it never ended. */
START_TEST(left_open)
{
    rig g = rig_live(store_make(), 1000);
    varve_call_begin(rig_begin(&g), function(g.engine, "f"), 0);
    look *l = rig_close(&g);
    ck_assert_int_eq(l->execution->status, VV_EXEC_ABANDONED);
    ck_assert_int_eq(l->execution->index_state, VV_INDEX_COMPLETE);
    ck_assert_uint_eq(totals(l).started, 1);
    ck_assert_uint_eq(l->execution->health.v[VV_H_unmatched_call_facts], 1);
    ck_assert_uint_eq(l->execution->health.v[VV_H_unmatched_thread_facts], 1);
    rig_remove(&g);
}
END_TEST

/* Sessions of one process after another, and two at a time in one store. */
START_TEST(sessions)
{
    test_store s = store_make();
    for (unsigned k = 0; k < 2; k++) {
        varve_session *v[2] = {session_at(&s, 1000), session_at(&s, 1000)};
        for (unsigned i = 0; i < 2; i++) {
            varve_engine *e = varve_engine_open(v[i], NULL);
            varve_thread *t;
            varve_root *r = varve_root_begin(e, NULL, &t);
            fib(t, function(e, "f"), 3);
            execution_end(r, t);
        }
        varve_session_close(v[0]);
        varve_session_close(v[1]);
    }
    look l = look_store(s.root);
    ck_assert_uint_eq(l.store->stream_count, 4);
    for (size_t i = 0; i < 4; i++) {
        look_fold(&l, i, 0);
        assert_whole(&l);
        ck_assert_uint_eq(totals(&l).started, 5);
    }
    look_done(&l);
    assert_ledger(s.root);
    store_remove(&s);
}
END_TEST

/* More contexts than an epoch holds: the tree rolls over and nothing is lost or counted twice. */
START_TEST(rollover)
{
    test_store s = store_make();
    uint64_t interval = 60000;
    varve_options little = options_in(&s, &interval);
    little.memory_bytes = 16 << 20;
    rig g = rig_of(s, varve_session_open(&little));
    enum { FUNCTIONS = 160 };
    uint32_t f[FUNCTIONS];
    char name[16];
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        snprintf(name, sizeof name, "f%u", i);
        f[i] = function(g.engine, name);
    }
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f[0], 0);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < FUNCTIONS; i++) {
            varve_call_begin(t, f[i], 0);
            for (unsigned k = 0; k < FUNCTIONS; k++)
                call_once(t, f[k]);
            varve_call_end(t, VARVE_CALL_OK);
            if (i % 32 == 0)
                ck_assert(varve_flush(g.session, 20000)); /* keeps the ring's backlog within this little memory */
        }
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(l->fold->context_count, 1 + FUNCTIONS + FUNCTIONS * FUNCTIONS);
    ck_assert_uint_eq(totals(l).started, 1 + 2 * (FUNCTIONS + FUNCTIONS * FUNCTIONS));
    ck_assert_uint_eq(started(l, "f0>f7>f9"), 2);
    ck_assert(self_of_all(l) == counters_of(l, "f0").inclusive_ns);
    rig_remove(&g);
}
END_TEST

/* Facts leave as segments fill, however fast they come. */
START_TEST(many_threads)
{
    rig g = rig_live(store_make(), 60000);
    uint32_t f = function(g.engine, "f");
    varve_thread *t = rig_begin(&g);
    enum { THREADS = 40000 };
    varve_call_begin(t, f, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        varve_thread *c = varve_thread_spawn(t, 0, 0, "co", 2);
        varve_thread_start(c, varve_ticks());
        call_once(c, f);
        varve_thread_end(c, VARVE_THREAD_COMPLETED);
    }
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(l->fold->thread_count, 1 + THREADS);
    ck_assert_uint_eq(started(l, "f~f"), THREADS);
    ck_assert_uint_ge(l->execution->count, 2 * THREADS / 32768);
    rig_remove(&g);
}
END_TEST

int main(void)
{
    TCase *c = test_case("record", 60);
    tcase_add_test(c, counts_and_times);
    tcase_add_test(c, awaits_balance);
    tcase_add_test(c, dies_suspended);
    tcase_add_test(c, os_threads);
    tcase_add_test(c, live_and_growing);
    tcase_add_test(c, starts_behind_what_is_there);
    tcase_add_test(c, published_by_time);
    tcase_add_test(c, thousand_roots);
    tcase_add_test(c, deep);
    tcase_add_test(c, moves);
    tcase_add_test(c, churn);
    tcase_add_test(c, left_open);
    tcase_add_test(c, sessions);
    tcase_add_test(c, rollover);
    tcase_add_test(c, many_threads);
    return test_run();
}
