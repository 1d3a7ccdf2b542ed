/* Rings by themselves, and their life in a session: rolling, recycling, refusing, pooling; and the consumer's sleep. */
#include "config.h"

#include "runtime/ring.h"

#include <pthread.h>
#include <sched.h>

#include "tests/runtime/inside.h"

uint64_t size_of_files;

enum { MEDIUM = 32 << 20 };

static vv_governor governor;
static vv_wake wake;

static uint64_t ring_charge(void)
{
    return vv_alloc_charge(VV_OWN_POPULATION, sizeof(vv_ring));
}

static vv_ring *ring_of(uint64_t segments)
{
    uint64_t limits[VV_POOLS] = {[VV_POOL_GENERAL] = segments * VV_SEGMENT_BYTES + ring_charge()};
    vv_governor_init(&governor, limits);
    vv_wake_init(&wake);
    vv_ring *r = vv_ring_new(&governor, &wake, NULL);
    ck_assert_ptr_nonnull(r);
    return r;
}

static void ring_done(vv_ring *r)
{
    vv_ring_detach(r);
    ck_assert(!vv_ring_room(r, 1)); /* refuses from now on */
    vv_ring_unref(r);
    ck_assert_uint_eq(atomic_load(&governor.pools[VV_POOL_GENERAL].used), 0);
    vv_wake_done(&wake);
}

static bool push(vv_ring *r, uint64_t value, unsigned n)
{
    if (!vv_ring_room(r, n))
        return false;
    for (unsigned i = 1; i < n; i++)
        r->at[i] = value;
    vv_ring_commit(r, value, n);
    return true;
}

/* The next record, of n words. */
static void expect(vv_ring *r, uint64_t value, unsigned n)
{
    uint64_t retired;
    const uint64_t *w = vv_ring_peek(r, &retired);
    ck_assert_ptr_nonnull(w);
    for (unsigned i = 0; i < n; i++)
        ck_assert_uint_eq(w[i], value);
    r->from += n;
}

static void expect_none(vv_ring *r)
{
    uint64_t retired;
    ck_assert_ptr_null(vv_ring_peek(r, &retired));
}

/* Records that don't divide a segment, over many segments, read as they come: the memory of four segments is enough for
 * any number, and goes back whole. */
START_TEST(gate_recycled_segments)
{
    vv_ring *r = ring_of(4);
    uint64_t made = 0, read = 0;
    while (made < 40ULL * VV_SEGMENT_WORDS / 7) {
        for (unsigned i = 0; i < 5000; i++, made++)
            ck_assert(push(r, made + 1, 7));
        while (read < made)
            expect(r, ++read, 7);
        expect_none(r);
    }
    ck_assert_uint_ge(r->retired, 39);
    ck_assert_uint_eq(atomic_load(&governor.denials[VV_POOL_GENERAL][VV_OWN_TRANSPORT]), 0);
    unsigned spares = 0;
    for (unsigned i = 0; i < VV_RING_SPARES; i++)
        spares += atomic_load(&r->spares[i]) != NULL;
    ck_assert_uint_le(atomic_load(&governor.pools[VV_POOL_GENERAL].used),
                      (spares + 1) * (uint64_t)VV_SEGMENT_BYTES + ring_charge());
    ring_done(r);
}
END_TEST

/* Two segments and no memory for a third: the push is refused, nothing of it is there, and all before it is. Once one
 * was read there is room again. A record larger than a segment is never taken. */
START_TEST(gate_refused_push)
{
    vv_ring *r = ring_of(2);
    uint64_t made = 0;
    while (push(r, made + 1, 100))
        made++;
    ck_assert_uint_eq(made, 2 * (VV_SEGMENT_WORDS / 100));
    ck_assert(!push(r, 7, 100));
    ck_assert(push(r, made + 1, 1)); /* what is left of the second */
    ck_assert(!vv_ring_roll(r, VV_SEGMENT_WORDS + 1));
    for (uint64_t i = 1; i <= made; i++)
        expect(r, i, 100);
    expect(r, made + 1, 1);
    expect_none(r);
    ck_assert(push(r, 9, 100));
    expect(r, 9, 100);
    ring_done(r);
}
END_TEST

/* A backlog of many segments that is read at once: two are kept, the rest is free. */
START_TEST(gate_spares_are_few)
{
    vv_ring *r = ring_of(12);
    for (uint64_t i = 0; i < 10 * (VV_SEGMENT_WORDS / 100); i++)
        ck_assert(push(r, i + 1, 100));
    for (uint64_t i = 0; i < 10 * (VV_SEGMENT_WORDS / 100); i++)
        expect(r, i + 1, 100);
    expect_none(r);
    ck_assert_uint_eq(atomic_load(&governor.pools[VV_POOL_GENERAL].used),
                      (1 + VV_RING_SPARES) * (uint64_t)VV_SEGMENT_BYTES + ring_charge());
    vv_ring_shed(r, &governor);
    ck_assert_uint_eq(atomic_load(&governor.pools[VV_POOL_GENERAL].used),
                      (uint64_t)VV_SEGMENT_BYTES + ring_charge());
    ring_done(r);
}
END_TEST

typedef struct {
    varve_session *session;
    varve_engine *engine;
    vv_ring *ring;
    uint32_t f;
    unsigned calls;
    pthread_barrier_t *meet;
} visitor;

static void *visit(void *arg)
{
    visitor *v = arg;
    record_execution(v->engine, v->f, v->calls);
    v->ring = vv_session_ring(v->session, v->engine);
    if (v->meet)
        pthread_barrier_wait(v->meet);
    return NULL;
}

static void visit_once(visitor *v)
{
    pthread_t id;
    ck_assert_int_eq(pthread_create(&id, NULL, visit, v), 0);
    pthread_join(id, NULL);
}

/* The ring of a thread that has died is pooled once it was read to its end, not before, and serves the next thread, of
 * another engine too; two at a time get two. */
START_TEST(gate_pooled_rings)
{
    test_store s = store_make();
    varve_session *v = passive(&s, 64 << 20, NULL);
    varve_engine *e[2] = {varve_engine_open(v, NULL), varve_engine_open(v, NULL)};
    visitor a = {.session = v, .engine = e[0], .f = function(e[0], "f"), .calls = 300000}; /* 27 segments */
    visit_once(&a);
    vv_ring *first = a.ring;
    ck_assert_int_eq(atomic_load(&first->state), VV_RING_ORPHANED);
    bool moved;
    vv_decoder_admit(&v->decoder);
    ck_assert_int_eq(vv_decoder_drain(&v->decoder, first, 16, VV_FORCE_NONE, &moved), VV_DECODED_BOUND);
    ck_assert_uint_eq(first->retired, 16); /* the others have their turn */
    visitor b = {.session = v, .engine = e[0], .f = a.f, .calls = 10};
    visit_once(&b);
    ck_assert_ptr_ne(b.ring, first); /* it was not read yet */
    settle(v);
    ck_assert_int_eq(atomic_load(&first->state), VV_RING_POOLED);
    visitor c = {.session = v, .engine = e[1], .f = function(e[1], "g"), .calls = 10};
    visit_once(&c);
    ck_assert_ptr_eq(c.ring, first);
    settle(v);
    pthread_barrier_t meet;
    pthread_barrier_init(&meet, NULL, 3);
    visitor many[3];
    pthread_t id[3];
    for (unsigned i = 0; i < 3; i++) {
        many[i] = (visitor){.session = v, .engine = e[0], .f = a.f, .calls = 1, .meet = &meet};
        ck_assert_int_eq(pthread_create(&id[i], NULL, visit, &many[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++)
        pthread_join(id[i], NULL);
    ck_assert_ptr_ne(many[0].ring, many[1].ring);
    ck_assert_ptr_ne(many[0].ring, many[2].ring);
    ck_assert_ptr_ne(many[1].ring, many[2].ring);
    unsigned rings = 0;
    for (vv_ring *r = atomic_load(&v->rings); r; r = atomic_load(&r->next))
        rings++;
    ck_assert_uint_eq(rings, 3);
    ck_assert(publish(v));
    varve_session_close(v);
    look l = look_store(s.root);
    ck_assert_uint_eq(l.store->streams[0].execution_count, 6);
    look_fold(&l, 0, 2);
    assert_whole(&l);
    ck_assert_uint_eq(started(&l, "g"), 10);
    look_done(&l);
    pthread_barrier_destroy(&meet);
    store_remove(&s);
}
END_TEST

/* A thread that finds no memory gets what other rings only keep. */
START_TEST(gate_denial_sheds_spares)
{
    rig g = rig_stepped(store_make(), MEDIUM, NULL);
    varve_thread *t = rig_begin(&g);
    uint32_t f = function(g.engine, "f");
    for (unsigned i = 0; i < 60000; i++)
        call_once(t, f);
    settle(g.session);
    vv_ring *mine = vv_session_ring(g.session, g.engine);
    for (unsigned i = 0; i < VV_RING_SPARES; i++)
        ck_assert_ptr_nonnull(atomic_load(&mine->spares[i]));
    visitor a = {.session = g.session, .engine = g.engine, .f = f, .calls = 2000000};
    visit_once(&a);
    for (unsigned i = 0; i < VV_RING_SPARES; i++)
        ck_assert_ptr_null(atomic_load(&mine->spares[i]));
    uint64_t free_bytes = g.session->sizing.general - atomic_load(&g.session->governor.pools[VV_POOL_GENERAL].used);
    ck_assert_uint_lt(free_bytes, VV_SEGMENT_BYTES);
    ck_assert_uint_gt(atomic_load(&g.session->governor.denials[VV_POOL_GENERAL][VV_OWN_TRANSPORT]), 0);
    rig_end(&g);
    publish(g.session);
    varve_session_close(g.session);
    rig_remove(&g);
}
END_TEST

static void *wake_it(void *arg)
{
    vv_wake *w = arg;
    while (!atomic_load(&w->parked))
        sched_yield();
    vv_wake_up(w);
    return NULL;
}

/* A sleeper of ten minutes is woken; a wake before its sleep is not lost; one that was not waited for leaves
 * nothing. */
START_TEST(gate_wake)
{
    const uint64_t long_ns = 600000000000ULL;
    vv_wake_init(&wake);
    pthread_t id;
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(pthread_create(&id, NULL, wake_it, &wake), 0);
        vv_wake_park(&wake);
        vv_wake_sleep(&wake, long_ns);
        pthread_join(id, NULL);
        ck_assert(!atomic_load(&wake.parked));
    }
    vv_wake_park(&wake);
    vv_wake_up(&wake);
    vv_wake_sleep(&wake, long_ns);
    vv_wake_up(&wake); /* nobody sleeps */
    vv_wake_park(&wake);
    vv_wake_unpark(&wake);
    vv_wake_park(&wake);
    vv_wake_sleep(&wake, 1);
    ck_assert(!atomic_load(&wake.parked));
    vv_wake_done(&wake);
}
END_TEST

/* More than a pass reads: the pass says so, and the thread would not sleep. */
START_TEST(gate_no_sleep_over_a_backlog)
{
    rig g = rig_stepped(store_make(), 256 << 20, NULL);
    rig_begin(&g);
    enum { CALLS = 2000000 }; /* 183 segments */
    visitor a = {.session = g.session, .engine = g.engine, .f = function(g.engine, "f"), .calls = CALLS};
    visit_once(&a);
    ck_assert(vv_consumer_pass(g.session));
    unsigned passes = 1;
    while (vv_consumer_pass(g.session))
        ck_assert_uint_lt(++passes, 10);
    ck_assert_uint_eq(a.ring->retired, atomic_load(&a.ring->rolled));
    ck_assert(!vv_consumer_pass(g.session));
    rig_end(&g);
    ck_assert(publish(g.session));
    varve_session_close(g.session);
    rig_remove(&g);
}
END_TEST

int main(void)
{
    TCase *c = test_case("ring", 60);
    tcase_add_test(c, gate_recycled_segments);
    tcase_add_test(c, gate_refused_push);
    tcase_add_test(c, gate_spares_are_few);
    tcase_add_test(c, gate_pooled_rings);
    tcase_add_test(c, gate_denial_sheds_spares);
    tcase_add_test(c, gate_wake);
    tcase_add_test(c, gate_no_sleep_over_a_backlog);
    return test_run();
}
