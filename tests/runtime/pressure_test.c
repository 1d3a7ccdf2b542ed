/* Under pressure memory stays what was asked for, the host goes on, and what is lost is counted. */
#include "config.h"

#include "runtime/session.h"

#include <pthread.h>

#include "tests/runtime/inside.h"

uint64_t size_of_files;

enum { MEDIUM = 32 << 20, HOSTS = 8, ROUNDS = 6 };

typedef struct {
    varve_session *session;
    varve_thread *thread;
    uint32_t functions[64];
    uint64_t calls;
    pthread_barrier_t *meet;
    test_rng rng;
} host;

/* New paths, spawns and awaits until well after memory is out. */
static void press(host *h)
{
    for (unsigned refused = 0; refused < 2000;) {
        uint64_t before = atomic_load(&h->session->records_lost);
        for (unsigned i = 0; i < 30; i++) {
            varve_call_begin(h->thread, h->functions[test_below(&h->rng, VV_ARRAY_LEN(h->functions))], 0);
            h->calls++;
            varve_await_begin(h->thread, varve_ticks());
            varve_await_end(h->thread, varve_ticks());
        }
        varve_thread *c = varve_thread_spawn(h->thread, 0, 0, "a child", 7);
        varve_thread_start(c, varve_ticks());
        varve_thread_end(c, VARVE_THREAD_COMPLETED);
        for (unsigned i = 0; i < 30; i++)
            varve_call_end(h->thread, VARVE_CALL_OK);
        refused += atomic_load(&h->session->records_lost) != before;
    }
}

static void *press_rounds(void *arg)
{
    host *h = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        press(h);
        pthread_barrier_wait(h->meet);
        pthread_barrier_wait(h->meet);
    }
    varve_thread_end(h->thread, VARVE_THREAD_COMPLETED);
    return NULL;
}

/* Eight OS threads against a consumer that only reads when all have run out of memory: what the process holds for it is
 * the figure and a margin for the allocator and stacks. */
START_TEST(gate_memory_inside_the_governor)
{
    test_store s = store_make();
    static host h[HOSTS];
    pthread_t id[HOSTS];
    pthread_barrier_t meet;
    pthread_barrier_init(&meet, NULL, HOSTS + 1);
    uint64_t before = resident(), most = 0;
    varve_session *v = passive(&s, MEDIUM, NULL);
    varve_engine *e = varve_engine_open(v, NULL);
    varve_root *roots[HOSTS];
    for (unsigned i = 0; i < HOSTS; i++) {
        h[i] = (host){.session = v, .meet = &meet, .rng = {i}};
        for (unsigned k = 0; k < VV_ARRAY_LEN(h[i].functions); k++) {
            char name[32];
            snprintf(name, sizeof name, "f%u", k);
            h[i].functions[k] = i ? h[0].functions[k] : function(e, name);
        }
        roots[i] = varve_root_begin(e, NULL, &h[i].thread);
        ck_assert_int_eq(pthread_create(&id[i], NULL, press_rounds, &h[i]), 0);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&meet);
        most = resident() > most ? resident() : most;
        for (unsigned k = 0; k < 20; k++) {
            vv_consumer_pass(v);
            most = resident() > most ? resident() : most;
        }
        pthread_barrier_wait(&meet);
    }
    uint64_t calls = 0;
    for (unsigned i = 0; i < HOSTS; i++) {
        pthread_join(id[i], NULL);
        varve_root_end(roots[i], VARVE_SUCCEEDED);
        calls += h[i].calls;
    }
    for (unsigned i = 0; i < 10; i++)
        publish(v);
    for (unsigned p = 0; p < VV_POOLS; p++)
        ck_assert_uint_le(atomic_load(&v->governor.pools[p].used), v->governor.pools[p].limit);
    ck_assert_uint_eq(atomic_load(&v->governor.pools[VV_POOL_CONTROL].used), v->fixed_control);
    ck_assert_uint_eq(atomic_load(&v->governor.pools[VV_POOL_MANUAL].used), 0);
    varve_session_close(v);
    look l = look_store(s.root);
    ck_assert_uint_eq(l.store->streams[0].execution_count, HOSTS);
    uint64_t started = 0, lost = 0;
    for (unsigned i = 0; i < HOSTS; i++) {
        look_fold(&l, 0, i);
        ck_assert_int_eq(l.execution->index_state, VV_INDEX_COMPLETE);
        started += totals_with_overflow(&l).started;
        lost += l.execution->health.v[VV_H_structural_transport_exceeded];
    }
    look_done(&l);
    ck_assert_uint_gt(lost, 0);
    ck_assert_uint_lt(started, calls);
    ck_assert_uint_ge(started + lost, calls); /* lost ends and threads are among the lost */
    uint64_t margin = MEDIUM / 8 + HOSTS * (64 << 10) + (4 << 20);
    fprintf(stderr, "# %" PRIu64 " bytes resident of %d\n", most - before, MEDIUM);
    ck_assert_msg(TEST_SANITIZED || most - before <= MEDIUM + margin, "%" PRIu64 " bytes resident", most - before);
    pthread_barrier_destroy(&meet);
    store_remove(&s);
}
END_TEST

enum { COROUTINES = 1000000, ALIVE = 1000 };

/* A million coroutines, a thousand of them alive at a time: what was recorded of one is gone with it. */
START_TEST(gate_million_coroutines)
{
    rig g = rig_live(store_make(), 1000);
    uint32_t f = function(g.engine, "f");
    static varve_thread *alive[ALIVE];
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f, 0);
    uint64_t settled = 0, most = 0;
    for (unsigned i = 0; i < COROUTINES; i++) {
        varve_thread **c = &alive[i % ALIVE];
        varve_thread_end(*c, VARVE_THREAD_COMPLETED);
        *c = varve_thread_spawn(t, 0, 0, NULL, 0);
        varve_thread_start(*c, varve_ticks());
        varve_call_begin(*c, f, 0);
        if (i % 1000)
            continue;
        if (i % 20000 == 0) /* a host that outruns the consumer would lose, counted */
            ck_assert(varve_flush(g.session, 60000));
        uint64_t now = resident();
        if (i == COROUTINES / 4)
            settled = now;
        most = now > most ? now : most;
    }
    for (unsigned i = 0; i < ALIVE; i++)
        varve_thread_end(alive[i], VARVE_THREAD_COMPLETED);
    rig_end(&g);
    ck_assert(varve_flush(g.session, 60000));
    varve_status st = status_of(g.session);
    ck_assert_uint_eq(st.records_lost, 0);
    ck_assert_uint_eq(st.batches_lost, 0);
    ck_assert_uint_eq(g.engine->threads.count, 0);
    varve_session_close(g.session);
    fprintf(stderr, "# %" PRIu64 " bytes resident after a quarter, at most %" PRIu64 "\n", settled, most);
    ck_assert_msg(TEST_SANITIZED || most <= settled + (24 << 20), "%" PRIu64 " grew to %" PRIu64, settled, most);
    rig_remove(&g);
}
END_TEST

int main(void)
{
    TCase *c = test_case("pressure", 120);
    tcase_add_test(c, gate_memory_inside_the_governor);
    tcase_add_test(c, gate_million_coroutines);
    return test_run();
}
