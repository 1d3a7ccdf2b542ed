/* Engines that come and go within a session: what they held comes back once nothing uses it. */
#include "config.h"

#include "runtime/session.h"

#include <errno.h>
#include <pthread.h>

#include "tests/runtime/inside.h"

uint64_t size_of_files;

enum { ENGINES = 3000, AT_ONCE = 10, MEDIUM = 32 << 20 };

static varve_engine *opened(varve_session *v, uint32_t *ret_function)
{
    varve_engine *e = varve_engine_open(v, &(varve_engine_info){.source_label = "a program"});
    ck_assert_ptr_nonnull(e);
    uint32_t file = varve_file_add(e, "file");
    ck_assert_uint_gt(varve_site_add(e, file, 1, 2, 3), 0);
    *ret_function = function(e, "main");
    return e;
}

/* An execution with a child, the handle of its root. */
static varve_root *record(varve_engine *e, uint32_t f)
{
    varve_thread *t;
    varve_root *r = varve_root_begin(e, NULL, &t);
    ck_assert_ptr_nonnull(r);
    varve_call_begin(t, f, 1);
    varve_thread *child = varve_thread_spawn(t, 0, 1, "child", 5);
    varve_thread_start(child, varve_ticks());
    call_once(child, f);
    varve_thread_end(child, VARVE_THREAD_COMPLETED);
    varve_call_end(t, VARVE_CALL_OK);
    execution_end(r, t);
    return r;
}

static bool commit(varve_session *v)
{
    bool ok = publish(v);
    vv_engines_retire(v);
    return ok;
}

static uint64_t used(const varve_session *v)
{
    return atomic_load(&v->governor.pools[VV_POOL_GENERAL].used);
}

/* Opened, used, closed, thousands of times: the governor holds as much after as before, to the byte, and old handles
 * of roots do nothing. */
START_TEST(gate_closed_engines)
{
    test_store s = store_make_quick();
    varve_session *v = passive(&s, MEDIUM, NULL);
    uint64_t held = 0;
    varve_root *old = NULL;
    for (unsigned i = 1; i <= ENGINES; i++) {
        uint32_t f;
        varve_engine *e = opened(v, &f);
        varve_root *r = record(e, f);
        varve_engine_close(e);
        varve_execution_state st;
        if (old) {
            varve_root_end(old, VARVE_PANICKED);
            varve_execution_checkpoint(old, &st);
        }
        if (i % AT_ONCE)
            continue;
        ck_assert(commit(v));
        old = r;
        ck_assert_ptr_null(atomic_load(&v->engines));
        ck_assert_ptr_null(v->last_engine);
        ck_assert_uint_eq(atomic_load(&v->engines_closed), 0);
        held = held ? held : used(v);
        ck_assert_uint_eq(used(v), held);
    }
    varve_session_close(v);
    look l = look_store(s.root);
    ck_assert_uint_eq(l.store->streams[0].execution_count, ENGINES);
    look_fold(&l, 0, ENGINES - 1);
    assert_whole(&l);
    ck_assert_uint_eq(started(&l, "main~main"), 1);
    look_done(&l);
    store_remove(&s);
}
END_TEST

/* What still runs keeps its engine, whoever closed it and what comes after; a lost announcement keeps it too. */
START_TEST(kept_while_used)
{
    test_store s = store_make_quick();
    bad_disk disk = {.times = 0};
    vv_wstore_hooks hooks = {.step = bad_disk_step, .ctx = &disk};
    varve_session *v = passive(&s, MEDIUM, &hooks);
    uint32_t f, g;
    varve_engine *first = opened(v, &f), *second = opened(v, &g);
    varve_thread *t, *u;
    varve_root *r = varve_root_begin(first, NULL, &t);
    varve_call_begin(t, f, 0);
    varve_root_begin(second, NULL, &u);
    varve_engine_close(second); /* its root is abandoned, and its thread goes on */
    varve_engine_close(first);
    ck_assert(commit(v));
    ck_assert_uint_eq(atomic_load(&v->engines_closed), 2);
    call_once(u, g);
    varve_thread_end(u, VARVE_THREAD_COMPLETED);
    ck_assert(commit(v));
    ck_assert_uint_eq(atomic_load(&v->engines_closed), 1);
    ck_assert_ptr_eq(atomic_load(&v->engines), first);
    ck_assert_ptr_eq(v->last_engine, first);
    varve_call_end(t, VARVE_CALL_OK);
    execution_end(r, t);
    ck_assert(commit(v));
    ck_assert_ptr_null(atomic_load(&v->engines));
    varve_engine *third = opened(v, &f);
    ck_assert_uint_eq(third->id, 3);
    disk = (bad_disk){VV_STEP_WRITE, EIO, .times = 2}; /* its table, and its announcement */
    record(third, f);
    varve_engine_close(third);
    ck_assert(!commit(v));
    ck_assert_uint_eq(atomic_load(&v->engines_closed), 1);
    commit(v);
    ck_assert_uint_eq(atomic_load(&v->engines_closed), 0);
    varve_session_close(v);
    look l = look_store(s.root);
    ck_assert_uint_eq(l.store->streams[0].engine_count, 3);
    look_done(&l);
    store_remove(&s);
}
END_TEST

enum { WORKERS = 4, ROUNDS = 150 };

static void *open_and_close(void *arg)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t f;
        varve_engine *e = opened(arg, &f);
        record(e, f);
        varve_engine_close(e);
        if (i % 10 == 9)
            ck_assert(varve_flush(arg, 60000));
    }
    return NULL;
}

/* The same from several OS threads, with a consumer; rings change hands. */
START_TEST(closed_under_load)
{
    test_store s = store_make_quick();
    varve_session *v = session_at(&s, 5);
    for (unsigned round = 0; round < 2; round++) {
        pthread_t ids[WORKERS];
        for (unsigned i = 0; i < WORKERS; i++)
            ck_assert_int_eq(pthread_create(&ids[i], NULL, open_and_close, v), 0);
        for (unsigned i = 0; i < WORKERS; i++)
            pthread_join(ids[i], NULL);
    }
    ck_assert(varve_flush(v, 60000));
    ck_assert_uint_eq(atomic_load(&v->engines_closed), 0);
    varve_status st = status_of(v);
    ck_assert_uint_eq(st.records_lost + st.roots_refused, 0);
    varve_session_close(v);
    look l = look_store(s.root);
    ck_assert_uint_eq(l.store->streams[0].execution_count, 2 * WORKERS * ROUNDS);
    look_fold(&l, 0, 0);
    assert_whole(&l);
    look_done(&l);
    store_remove(&s);
}
END_TEST

int main(void)
{
    TCase *c = test_case("engines", 120);
    tcase_add_test(c, gate_closed_engines);
    tcase_add_test(c, kept_while_used);
    tcase_add_test(c, closed_under_load);
    return test_run();
}
