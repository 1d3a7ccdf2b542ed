/*
 * Records of one logical thread lie in many rings, which are read in any order: what depends on another ring waits, for
 * as long as the cause can come, and no longer.
 */
#include "config.h"

#include "runtime/session.h"

#include <pthread.h>
#include <semaphore.h>

#include "runtime/record.h"
#include "tests/runtime/inside.h"

uint64_t size_of_files;

enum { MEDIUM = 32 << 20, HANDS = 4 };

/* An OS thread that does one thing at a time for the test, so that each has its ring and all is in order. */
typedef struct {
    pthread_t id;
    sem_t go, done;
    void (*job)(void *);
    void *arg;
} hand;

static void *work(void *arg)
{
    hand *h = arg;
    for (;;) {
        sem_wait(&h->go);
        if (!h->job)
            return NULL;
        h->job(h->arg);
        sem_post(&h->done);
    }
}

static void hands_start(hand *h)
{
    for (unsigned i = 0; i < HANDS; i++) {
        sem_init(&h[i].go, 0, 0);
        sem_init(&h[i].done, 0, 0);
        ck_assert_int_eq(pthread_create(&h[i].id, NULL, work, &h[i]), 0);
    }
}

static void let(hand *h, void (*job)(void *), void *arg)
{
    h->job = job;
    h->arg = arg;
    sem_post(&h->go);
    sem_wait(&h->done);
}

static void hands_stop(hand *h)
{
    for (unsigned i = 0; i < HANDS; i++) {
        h[i].job = NULL;
        sem_post(&h[i].go);
        pthread_join(h[i].id, NULL);
        sem_destroy(&h[i].go);
        sem_destroy(&h[i].done);
    }
}

typedef struct {
    const rig *rig;
    varve_thread **threads;
    unsigned count, calls;
    uint32_t f;
} batch;

static void make_ring(void *arg)
{
    batch *b = arg;
    ck_assert_ptr_nonnull(vv_session_ring(b->rig->session, b->rig->engine));
}

static void start_all(void *arg)
{
    batch *b = arg;
    for (unsigned i = 0; i < b->count; i++) {
        varve_thread_start(b->threads[i], varve_ticks());
        varve_call_begin(b->threads[i], b->f, 0);
    }
}

static void call_all(void *arg)
{
    batch *b = arg;
    for (unsigned i = 0; i < b->count; i++) {
        varve_thread_bind(b->threads[i]);
        for (unsigned k = 0; k < b->calls; k++)
            call_once(b->threads[i], b->f);
    }
}

static void end_all(void *arg)
{
    batch *b = arg;
    for (unsigned i = 0; i < b->count; i++) {
        varve_thread_bind(b->threads[i]);
        varve_thread_end(b->threads[i], VARVE_THREAD_COMPLETED);
    }
}

static void *settle_it(void *arg)
{
    settle(arg);
    return NULL;
}

static void on_small_stack(varve_session *v)
{
    pthread_attr_t attr;
    pthread_t id;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 512 << 10);
    ck_assert_int_eq(pthread_create(&id, &attr, settle_it, v), 0);
    pthread_join(id, NULL);
    pthread_attr_destroy(&attr);
}

enum { SIBLINGS = 6000 };

/* Six thousand siblings whose starts are read before their spawns, their ends before their starts; a consumer with
 * little stack. Their parent has ended before the first of them starts. */
START_TEST(gate_blocked_siblings)
{
    hand h[HANDS];
    hands_start(h);
    rig g = rig_stepped(store_make(), 64 << 20, NULL);
    uint32_t f_main = function(g.engine, "main"), f_work = function(g.engine, "work");
    batch b = {&g, calloc(SIBLINGS, sizeof *b.threads), SIBLINGS, 0, f_work};
    for (unsigned i = 0; i < 3; i++)
        let(&h[i], make_ring, &b);
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f_main, 0);
    for (unsigned i = 0; i < SIBLINGS; i++)
        b.threads[i] = varve_thread_spawn(t, 0, 0, NULL, 0);
    rig_end(&g);
    let(&h[1], start_all, &b);
    let(&h[0], end_all, &b);
    on_small_stack(g.session);
    ck_assert(publish(g.session));
    look *l = rig_close(&g);
    hands_stop(h);
    free(b.threads);
    assert_whole(l);
    ck_assert_uint_eq(l->fold->thread_count, 1 + SIBLINGS);
    ck_assert_uint_eq(started(l, "main~work"), SIBLINGS);
    rig_remove(&g);
}
END_TEST

/* The cause is behind many segments of another ring, more than a pass reads: the ring waits that long, and nothing is
 * given up. */
START_TEST(gate_waits_for_a_backlog)
{
    hand h[HANDS];
    hands_start(h);
    rig g = rig_stepped(store_make(), 256 << 20, NULL);
    varve_thread *child;
    batch b = {&g, &child, 1, 0, function(g.engine, "f")};
    let(&h[0], make_ring, &b);
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, b.f, 0);
    enum { CALLS = 2000000 }; /* 183 segments */
    for (unsigned i = 0; i < CALLS; i++)
        call_once(t, b.f);
    child = varve_thread_spawn(t, 0, 0, NULL, 0);
    let(&h[0], start_all, &b);
    let(&h[0], end_all, &b);
    rig_end(&g);
    ck_assert(publish(g.session));
    look *l = rig_close(&g);
    hands_stop(h);
    assert_whole(l);
    ck_assert_uint_eq(started(l, "f>f"), CALLS);
    ck_assert_uint_eq(started(l, "f~f"), 1);
    rig_remove(&g);
}
END_TEST

/* As if memory had been denied when the thread's spawn was read. */
static void forget(varve_session *v, varve_engine *e, uint64_t number)
{
    vv_lthread *t = vv_lthread_find(e, number);
    ck_assert_ptr_nonnull(t);
    vv_lthread_drop(t, &v->governor);
}

/* A cause that is lost, while another ring always has more: the ring goes on within two looks at the others, and what
 * can't be placed is counted. */
START_TEST(gate_lost_cause_under_load)
{
    hand h[HANDS];
    hands_start(h);
    rig g = rig_stepped(store_make(), 256 << 20, NULL);
    varve_thread *busy, *child;
    batch b = {&g, &child, 1, 10, function(g.engine, "f")}, noise = {&g, &busy, 1, 600000, b.f};
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, b.f, 0);
    child = varve_thread_spawn(t, 0, 0, NULL, 0); /* number 2 */
    settle(g.session);
    forget(g.session, g.engine, 2);
    varve_root *r2 = varve_root_begin(g.engine, NULL, &busy);
    let(&h[0], start_all, &b);
    let(&h[0], call_all, &b);
    let(&h[0], end_all, &b);
    rig_end(&g);
    unsigned passes = 0;
    for (; vv_slot_phase(&g.session->registry.slots[0]) != VV_PHASE_FREE; passes++) {
        let(&h[1], call_all, &noise); /* 55 segments */
        vv_consumer_pass(g.session);
        ck_assert_uint_lt(passes, 20);
    }
    execution_end(r2, busy);
    for (unsigned i = 0; i < 20; i++)
        ck_assert(publish(g.session));
    look *l = rig_close(&g);
    hands_stop(h);
    ck_assert_int_eq(l->execution->index_state, VV_INDEX_COMPLETE);
    const uint64_t *health = l->execution->health.v;
    ck_assert_uint_eq(started(l, "f"), 1);
    ck_assert_uint_eq(health[VV_H_unmatched_thread_facts], 2); /* its start and its end */
    ck_assert_uint_eq(health[VV_H_unmatched_call_facts], 11 + 10);
    ck_assert_uint_eq(health[VV_H_join_capacity_exceeded], 0);
    look_fold(l, 0, 1);
    assert_whole(l);
    ck_assert_uint_eq(started(l, "f"), passes * 600000);
    rig_remove(&g);
}
END_TEST

/* What waits takes more than its share of memory: the oldest goes on at once, counted as too much to join. */
START_TEST(gate_join_capacity)
{
    hand h[HANDS];
    hands_start(h);
    rig g = rig_stepped(store_make(), MEDIUM, NULL);
    varve_thread *child;
    batch b = {&g, &child, 1, 0, function(g.engine, "f")};
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, b.f, 0);
    child = varve_thread_spawn(t, 0, 0, NULL, 0);
    settle(g.session);
    forget(g.session, g.engine, 2);
    let(&h[0], start_all, &b);
    b.calls = (unsigned)(vv_joins_limit(g.session) + 2) * VV_SEGMENT_WORDS / (VV_WORDS_BEGIN + VV_WORDS_END);
    let(&h[0], call_all, &b);
    bool moved;
    vv_force why = VV_FORCE_NONE;
    vv_ring *ring = atomic_load(&atomic_load(&g.session->rings)->next);
    ck_assert_int_eq(vv_decoder_drain(&g.session->decoder, ring, 16, why, &moved), VV_DECODED_BLOCKED);
    vv_joins_note(&g.session->consumer.joins, ring, VV_DECODED_BLOCKED);
    ck_assert_ptr_eq(vv_joins_pick(g.session, &why), ring);
    ck_assert_int_eq(why, VV_FORCE_PRESSURE);
    let(&h[0], end_all, &b);
    rig_end(&g);
    for (unsigned i = 0; i < 5; i++)
        ck_assert(publish(g.session));
    look *l = rig_close(&g);
    hands_stop(h);
    ck_assert_int_eq(l->execution->index_state, VV_INDEX_COMPLETE);
    ck_assert_uint_eq(l->execution->health.v[VV_H_join_capacity_exceeded], 1);
    ck_assert_uint_eq(l->execution->health.v[VV_H_unmatched_call_facts], 1 + 2 * (uint64_t)b.calls);
    rig_remove(&g);
}
END_TEST

/* A random program: logical threads that hop over the hands' rings, refused pushes, rings read in random order. */
enum { LOGICAL_MAX = 24, DEPTH_MAX = 6, STEPS = 400, PATHS = 4096, NAMES = 2 };

typedef struct {
    char path[64]; /* of the spawning call */
    char calls[DEPTH_MAX + 1];
    unsigned depth, real; /* open calls; of these, recorded */
    varve_thread *handle;
    bool alive, started, muted;
} logical;

typedef struct {
    char text[64];
    uint64_t started;
} path_count;

typedef struct {
    varve_session *session;
    varve_engine *engine;
    uint32_t f[NAMES];
    logical t[LOGICAL_MAX];
    unsigned count;
    path_count paths[PATHS];
    unsigned path_count;
    uint64_t recorded, threads_told, threads_unmatched;
    test_rng rng;
    bool lossy;
    unsigned which; /* the thread of this step */
} program;

static void expect(program *p, const char *path)
{
    p->recorded++;
    for (unsigned i = 0; i < p->path_count; i++)
        if (strcmp(p->paths[i].text, path) == 0) {
            p->paths[i].started++;
            return;
        }
    ck_assert_uint_lt(p->path_count, PATHS);
    snprintf(p->paths[p->path_count].text, sizeof p->paths[0].text, "%s", path);
    p->paths[p->path_count++].started = 1;
}

/* "~a>b" below the spawning path. */
static void path_now(const logical *t, unsigned depth, char *out, size_t n)
{
    size_t len = (size_t)snprintf(out, n, "%s", t->path);
    for (unsigned i = 0; i < depth; i++)
        len += (size_t)snprintf(out + len, n - len, "%s%c", i ? ">" : *t->path ? "~" : "", t->calls[i]);
}

static void random_begin(program *p, logical *t, bool refuse)
{
    if (t->depth == DEPTH_MAX)
        return;
    unsigned f = (unsigned)test_below(&p->rng, NAMES);
    bool kept = !refuse && !t->muted && t->real == t->depth;
    varve_call_begin(t->handle, p->f[f], 0);
    t->calls[t->depth++] = (char)('a' + f);
    if (!kept)
        return;
    t->real = t->depth;
    char text[64];
    path_now(t, t->depth, text, sizeof text);
    expect(p, text);
}

static void random_end(logical *t)
{
    if (!t->depth)
        return;
    varve_call_end(t->handle, VARVE_CALL_OK);
    t->depth--;
    t->real = t->real < t->depth ? t->real : t->depth;
}

static void random_spawn(program *p, logical *t, bool refuse)
{
    if (p->count == LOGICAL_MAX || !t->depth || strlen(t->path) > 40)
        return;
    logical *c = &p->t[p->count++];
    *c = (logical){.alive = true, .muted = refuse || t->muted || t->real < t->depth};
    path_now(t, t->depth, c->path, sizeof c->path);
    c->handle = varve_thread_spawn(t->handle, 0, 0, NULL, 0);
    ck_assert_ptr_nonnull(c->handle);
}

static void random_finish(program *p, logical *t, bool refuse)
{
    varve_thread_end(t->handle, VARVE_THREAD_COMPLETED);
    t->alive = false;
    p->threads_unmatched += refuse && !t->muted;
}

/* Runs on a hand. A push is refused as when memory is out. */
static void step(void *arg)
{
    program *p = arg;
    logical *t = &p->t[p->which];
    bool refuse = p->lossy && test_below(&p->rng, 4) == 0;
    vv_ring *r = vv_session_ring(p->session, p->engine);
    uint64_t *end = r->end;
    if (t->started)
        varve_thread_bind(t->handle);
    if (refuse) {
        r->end = r->at;
        r->governor = NULL;
    }
    unsigned what = (unsigned)test_below(&p->rng, 10);
    if (!t->started) {
        varve_thread_start(t->handle, varve_ticks());
        t->started = true;
        p->threads_told += !refuse && !t->muted;
        p->threads_unmatched += refuse && !t->muted;
        t->muted = t->muted || refuse;
    } else if (what < 5) {
        random_begin(p, t, refuse);
    } else if (what < 8) {
        random_end(t);
    } else if (what < 9) {
        random_spawn(p, t, refuse);
    } else if (p->which && test_below(&p->rng, 3) == 0) {
        random_finish(p, t, refuse);
    }
    if (refuse) {
        r->governor = &p->session->governor;
        r->end = end;
    }
}

static void finish_one(void *arg)
{
    program *p = arg;
    if (p->t[p->which].started)
        varve_thread_bind(p->t[p->which].handle);
    random_finish(p, &p->t[p->which], false);
}

static void drain_some(program *p)
{
    unsigned n = (unsigned)test_below(&p->rng, HANDS + 1);
    bool moved;
    vv_decoder_admit(&p->session->decoder);
    for (vv_ring *r = atomic_load(&p->session->rings); r; r = atomic_load(&r->next))
        if (n-- == 0)
            vv_decoder_drain(&p->session->decoder, r, 16, VV_FORCE_NONE, &moved);
}

static void run_program(unsigned round, bool lossy)
{
    static program p;
    memset(&p, 0, sizeof p);
    hand h[HANDS];
    hands_start(h);
    test_store s = store_make();
    p.session = passive(&s, MEDIUM, NULL);
    p.engine = varve_engine_open(p.session, NULL);
    p.f[0] = function(p.engine, "a");
    p.f[1] = function(p.engine, "b");
    p.rng = test_seeded("random program");
    p.rng.state += round * 7919ULL + lossy;
    p.lossy = lossy;
    varve_root *root = varve_root_begin(p.engine, NULL, &p.t[0].handle);
    p.t[0].alive = p.t[0].started = true;
    p.count = 1;
    p.threads_told = 1;
    for (unsigned i = 0; i < STEPS; i++) {
        p.which = (unsigned)test_below(&p.rng, p.count);
        if (p.t[p.which].alive)
            let(&h[test_below(&p.rng, HANDS)], step, &p);
        if (test_below(&p.rng, 3) == 0)
            drain_some(&p);
    }
    for (unsigned i = 0; i < p.count; i++) {
        p.which = p.count - 1 - i;
        if (p.t[p.which].alive)
            let(&h[test_below(&p.rng, HANDS)], finish_one, &p);
    }
    varve_root_end(root, VARVE_SUCCEEDED);
    ck_assert(publish(p.session));
    varve_status st = status_of(p.session);
    varve_session_close(p.session);
    hands_stop(h);
    look l = look_at(&s);
    if (!lossy)
        assert_whole(&l);
    const uint64_t *health = l.execution->health.v;
    ck_assert_uint_eq(health[VV_H_structural_transport_exceeded], st.records_lost);
    ck_assert_uint_eq(health[VV_H_join_capacity_exceeded], 0);
    ck_assert_uint_eq(health[VV_H_unmatched_thread_facts], p.threads_unmatched);
    vv_counters sum = totals(&l);
    ck_assert_uint_eq(sum.started, p.recorded);
    ck_assert_uint_eq(sum.ok + health[VV_H_unmatched_call_facts], p.recorded);
    for (unsigned i = 0; i < p.path_count; i++)
        ck_assert_msg(started(&l, p.paths[i].text) == p.paths[i].started, "round %u, path %s", round, p.paths[i].text);
    ck_assert_uint_eq(l.fold->thread_count, p.threads_told);
    look_done(&l);
    store_remove(&s);
}

/* Every order of reading gives the tree that the program walked. */
START_TEST(gate_random_orders)
{
    for (unsigned i = 0; i < 25; i++)
        run_program((unsigned)_i * 25 + i, false);
}
END_TEST

/* Begins, ends, spawns, starts and their corrections are refused at random: what was recorded is still placed where the
 * program was, and every loss is counted. */
START_TEST(gate_random_losses)
{
    for (unsigned i = 0; i < 25; i++)
        run_program((unsigned)_i * 25 + i, true);
}
END_TEST

int main(void)
{
    TCase *c = test_case("joins", 60);
    tcase_add_test(c, gate_blocked_siblings);
    tcase_add_test(c, gate_waits_for_a_backlog);
    tcase_add_test(c, gate_lost_cause_under_load);
    tcase_add_test(c, gate_join_capacity);
    tcase_add_loop_test(c, gate_random_orders, 0, 3);
    tcase_add_loop_test(c, gate_random_losses, 0, 3);
    return test_run();
}
