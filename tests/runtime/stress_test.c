/*
 * Many at once: OS threads that pass logical threads on to each other, spawn, await, begin and end executions, name
 * functions, while others flush and ask for the status. What they say they did is what is read back. Made for
 * ThreadSanitizer.
 */
#include "config.h"

#include "runtime/varve.h"

#include <pthread.h>
#include <stdatomic.h>

#include "tests/runtime/host.h"

uint64_t size_of_files;

enum { OS_THREADS = 4, TASKS = 12, HOPS = 60, DEPTH_MAX = 10 };

/* A logical thread on its way. Whoever holds it runs it for one hop. */
typedef struct task {
    struct task *next;
    varve_thread *thread;
    struct run *run;
    unsigned hops, depth;
    bool started, awaiting;
    test_rng rng;
} task;

/* An execution: its root returns early, its tasks go on. */
typedef struct run {
    varve_root *root;
    _Atomic uint64_t begins, ends, awaits, threads;
} run;

typedef struct {
    varve_session *session;
    varve_engine *engine;
    _Atomic uint32_t functions[4];
    pthread_mutex_t lock;
    pthread_cond_t more;
    task *queue, **tail;
    unsigned live;
} crowd;

static void put(crowd *c, task *t)
{
    t->next = NULL;
    pthread_mutex_lock(&c->lock);
    *c->tail = t;
    c->tail = &t->next;
    pthread_cond_signal(&c->more);
    pthread_mutex_unlock(&c->lock);
}

static task *take(crowd *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->queue && c->live)
        pthread_cond_wait(&c->more, &c->lock);
    task *t = c->queue;
    if (t) {
        c->queue = t->next;
        if (!c->queue)
            c->tail = &c->queue;
    }
    pthread_mutex_unlock(&c->lock);
    return t;
}

static void gone(crowd *c, int n)
{
    pthread_mutex_lock(&c->lock);
    c->live -= (unsigned)n;
    if (!c->live)
        pthread_cond_broadcast(&c->more);
    pthread_mutex_unlock(&c->lock);
}

static uint32_t some_function(crowd *c, test_rng *g)
{
    _Atomic uint32_t *f = &c->functions[test_below(g, VV_ARRAY_LEN(c->functions))];
    if (!atomic_load(f)) {
        char name[32];
        snprintf(name, sizeof name, "f%u", (unsigned)(f - c->functions));
        atomic_store(f, function(c->engine, name));
    }
    return atomic_load(f);
}

static void spawn(crowd *c, task *t)
{
    varve_thread *child = varve_thread_spawn(t->thread, (unsigned)test_below(&t->rng, 3), 0, "child", 5);
    ck_assert_ptr_nonnull(child);
    task *n = calloc(1, sizeof *n);
    *n = (task){.thread = child, .run = t->run, .hops = t->hops / 2, .rng = {test_random(&t->rng)}};
    atomic_fetch_add(&t->run->threads, 1);
    gone(c, -1);
    put(c, n);
}

static void call(crowd *c, task *t)
{
    if (t->depth < DEPTH_MAX && test_below(&t->rng, 2)) {
        varve_call_begin(t->thread, some_function(c, &t->rng),
                         varve_site_add(c->engine, 1, (uint32_t)test_below(&t->rng, 3), 9, 1));
        t->depth++;
        atomic_fetch_add(&t->run->begins, 1);
    } else if (t->depth) {
        varve_call_end(t->thread, VARVE_CALL_OK);
        t->depth--;
        atomic_fetch_add(&t->run->ends, 1);
    }
}

/* False: the task is over. */
static bool hop(crowd *c, task *t)
{
    if (!t->started) {
        varve_thread_start(t->thread, varve_ticks());
        t->started = true;
    } else {
        varve_thread_bind(t->thread);
    }
    if (t->awaiting)
        varve_await_end(t->thread, varve_ticks());
    t->awaiting = false;
    for (unsigned i = (unsigned)test_below(&t->rng, 200); i > 0; i--)
        call(c, t);
    if (t->depth && t->hops > 4 && test_below(&t->rng, 8) == 0)
        spawn(c, t);
    if (t->hops-- > 0) {
        if (t->depth && test_below(&t->rng, 2)) {
            t->awaiting = true;
            varve_await_begin(t->thread, varve_ticks());
            atomic_fetch_add(&t->run->awaits, 1);
        }
        return true;
    }
    atomic_fetch_add(&t->run->ends, t->depth);
    varve_thread_end(t->thread, VARVE_THREAD_COMPLETED);
    return false;
}

static void *run_tasks(void *arg)
{
    crowd *c = arg;
    for (task *t; (t = take(c));) {
        if (hop(c, t)) {
            put(c, t);
        } else {
            free(t);
            gone(c, 1);
        }
    }
    return NULL;
}

START_TEST(crowded)
{
    test_store s = store_make();
    test_rng g = test_seeded("crowded");
    crowd c = {.session = session_at(&s, 3), .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};
    c.tail = &c.queue;
    c.engine = varve_engine_open(c.session, NULL);
    varve_file_add(c.engine, "file");
    static run runs[TASKS];
    c.live = TASKS;
    for (unsigned i = 0; i < TASKS; i++) {
        varve_thread *t;
        runs[i].root = varve_root_begin(c.engine, NULL, &t);
        atomic_store(&runs[i].threads, 1);
        task *n = calloc(1, sizeof *n);
        *n = (task){.thread = t, .run = &runs[i], .hops = HOPS, .started = true, .rng = {test_random(&g)}};
        varve_root_end(runs[i].root, VARVE_SUCCEEDED);
        put(&c, n);
    }
    pthread_t id[OS_THREADS];
    for (unsigned i = 0; i < OS_THREADS; i++)
        ck_assert_int_eq(pthread_create(&id[i], NULL, run_tasks, &c), 0);
    for (unsigned i = 0; i < 10; i++) {
        varve_status st = status_of(c.session);
        ck_assert_int_eq(st.state, VARVE_ACTIVE);
        ck_assert(varve_flush(c.session, 60000));
    }
    for (unsigned i = 0; i < OS_THREADS; i++)
        pthread_join(id[i], NULL);
    varve_engine_close(c.engine);
    varve_session_close(c.session);
    look l = look_store(s.root);
    ck_assert_uint_eq(l.store->streams[0].execution_count, TASKS);
    for (unsigned i = 0; i < TASKS; i++) {
        look_fold(&l, 0, i);
        assert_whole(&l);
        vv_counters sum = totals_with_overflow(&l); /* memory may be short for so many paths */
        ck_assert_uint_eq(sum.started, atomic_load(&runs[i].begins));
        ck_assert_uint_eq(sum.ok, atomic_load(&runs[i].ends));
        ck_assert_uint_eq(sum.await_count, atomic_load(&runs[i].awaits));
        ck_assert_uint_eq(l.fold->thread_count, atomic_load(&runs[i].threads));
        ck_assert(self_of_all(&l) > 0);
    }
    look_done(&l);
    assert_ledger(s.root);
    store_remove(&s);
}
END_TEST

enum { CHURNERS = 4, CHURN = 3000, KEPT = 16 };

typedef struct {
    varve_engine *engine;
    uint32_t f;
    unsigned begun, refused;
    test_rng rng;
} churner;

/* Executions that begin, end and are forgotten; handles of those long over are ended once more, at random. */
static void *churn_roots(void *arg)
{
    churner *c = arg;
    varve_root *old[KEPT] = {NULL};
    for (unsigned i = 0; i < CHURN; i++) {
        varve_thread *t, *child;
        varve_root *r = varve_root_begin(c->engine, NULL, &t);
        c->begun += r != NULL;
        c->refused += !r;
        varve_call_begin(t, c->f, 0);
        child = test_below(&c->rng, 2) ? varve_thread_spawn(t, 0, 0, NULL, 0) : NULL;
        varve_root_end(old[test_below(&c->rng, KEPT)], VARVE_PANICKED);
        bool first = test_below(&c->rng, 2);
        if (first)
            varve_root_end(r, VARVE_SUCCEEDED);
        varve_thread_end(t, VARVE_THREAD_COMPLETED);
        varve_root_end(old[test_below(&c->rng, KEPT)], VARVE_PANICKED);
        if (!first)
            varve_root_end(r, VARVE_SUCCEEDED);
        varve_thread_start(child, varve_ticks());
        varve_thread_end(child, VARVE_THREAD_COMPLETED);
        if (r)
            old[test_below(&c->rng, KEPT)] = r;
    }
    return NULL;
}

/* Slots in turn over by four threads that hold old handles, while another engine closes with roots open: every
 * execution ends once, as it ended itself. */
START_TEST(gate_churned_slots)
{
    test_store s = store_make();
    varve_options o = options_in(&s, NULL);
    o.memory_bytes = 32 << 20;
    varve_session *v = varve_session_open(&o);
    varve_engine *e = varve_engine_open(v, NULL);
    test_rng g = test_seeded("churned_slots");
    churner c[CHURNERS];
    pthread_t id[CHURNERS];
    for (unsigned i = 0; i < CHURNERS; i++) {
        c[i] = (churner){.engine = e, .f = function(e, "f"), .rng = {test_random(&g)}};
        ck_assert_int_eq(pthread_create(&id[i], NULL, churn_roots, &c[i]), 0);
    }
    unsigned dropped = 0, begun = 0, refused = 0;
    for (unsigned i = 0; i < 20; i++) {
        varve_engine *other = varve_engine_open(v, NULL);
        varve_thread *t;
        varve_root *r = varve_root_begin(other, NULL, &t);
        dropped += r != NULL;
        refused += !r;
        varve_engine_close(other);
        varve_root_end(r, VARVE_SUCCEEDED);
        varve_thread_end(t, VARVE_THREAD_COMPLETED);
        ck_assert(varve_flush(v, 60000));
    }
    for (unsigned i = 0; i < CHURNERS; i++) {
        pthread_join(id[i], NULL);
        begun += c[i].begun;
        refused += c[i].refused;
    }
    ck_assert(varve_flush(v, 60000));
    varve_status st = status_of(v);
    ck_assert_uint_eq(st.roots_begun, begun + dropped);
    ck_assert_uint_eq(st.roots_refused, refused);
    ck_assert_uint_eq(st.roots_abandoned, dropped);
    ck_assert_uint_eq(st.threads_refused, 0);
    varve_session_close(v);
    look l = look_store(s.root);
    const vv_stream *stream = &l.store->streams[0];
    ck_assert_uint_eq(stream->execution_count, begun + dropped);
    unsigned by_status[8] = {0};
    for (size_t i = 0; i < stream->execution_count; i++) {
        ck_assert_int_eq(vv_stream_execution_at(stream, i)->index_state, VV_INDEX_COMPLETE);
        by_status[vv_stream_execution_at(stream, i)->status & 7]++;
    }
    ck_assert_uint_eq(by_status[VV_EXEC_SUCCEEDED & 7], begun);
    ck_assert_uint_eq(by_status[VV_EXEC_ABANDONED & 7], dropped);
    look_done(&l);
    store_remove(&s);
}
END_TEST

int main(void)
{
    TCase *c = test_case("stress", 60);
    tcase_add_test(c, crowded);
    tcase_add_test(c, gate_churned_slots);
    return test_run();
}
