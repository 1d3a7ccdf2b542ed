/*
 * Detaching and closing, in every state: what is inside a callback holds it up, nothing else does, and nothing is
 * touched after it. Looks are made by hand; threads wait for each other on semaphores.
 */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/control/fake.h"

/* A callback that stays until it is let go, and the thread that is in it. */
typedef struct {
    varve_host *host;
    sem_t inside, go;
    pthread_t thread;
    pid_t tid;
    bool registered;
} guest;

static void stay(void *me, vv_event e)
{
    fake_profiler *p = me;
    guest *g = p->mine;
    if (e != VV_EVENT_module_loaded)
        return;
    sem_post(&g->inside);
    while (sem_wait(&g->go) != 0)
        continue;
}

static void *visit(void *of)
{
    guest *g = of;
    g->tid = gettid();
    if (g->registered)
        varve_host_thread_add(g->host, (varve_thread_id)g->tid);
    VARVE_RAISE(g->host, module_loaded, 1, 1);
    if (g->registered)
        varve_host_thread_remove(g->host);
    return NULL;
}

/* Returns when the thread is inside. */
static void go_in(guest *g, varve_host *host, bool registered)
{
    g->host = host;
    g->registered = registered;
    sem_init(&g->inside, 0, 0);
    sem_init(&g->go, 0, 0);
    ck_assert_int_eq(pthread_create(&g->thread, NULL, visit, g), 0);
    sem_wait(&g->inside);
}

/* Returns when it has left, and its thread has ended. */
static void let_go(guest *g)
{
    sem_post(&g->go);
    pthread_join(g->thread, NULL);
}

START_TEST(t4_waits_for_a_callback)
{
    varve_host *host = fake_open();
    guest g = {0};
    fake_profiler p = {.mask = VARVE_MON_MODULE_LOADS, .inside = stay, .mine = &g};
    int tid = -1;
    varve_host_started(host);
    ck_assert_int_eq(fake_attach(host, &p, _i >= 2), VARVE_OK);
    go_in(&g, host, _i % 2);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_OK);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_ge(varve_host_detach_step(host, &tid), 300);
        ck_assert_int_eq(tid, g.tid);
        ck_assert_uint_eq(p.ended, 0);
        ck_assert_int_eq(vv_status_of(p.self), VV_STATUS_DETACHING);
    }
    VARVE_RAISE(host, module_loaded, 1, 1); /* would stay */
    varve_raise_module_loaded(host, 1, 1);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_module_loaded), 0);
    let_go(&g);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_module_loaded), 1);
    ck_assert_uint_eq(varve_host_detach_step(host, NULL), 0);
    ck_assert_uint_eq(p.ended, 1);
    ck_assert_int_eq(vv_status_of(p.self), VV_STATUS_NONE);
    ck_assert(varve_host_close(host));
}
END_TEST

/* Requested in a callback of its own: it ends after that has returned. */
static varve_code requested;

static void leave_from_inside(void *me, vv_event e)
{
    fake_profiler *p = me;
    if (e == VV_EVENT_module_loaded) {
        requested = p->info->request_detach(p->self, 0);
        ck_assert(!vv_gate_is_evacuated(p->self->number, NULL));
        ck_assert_uint_eq(p->ended, 0);
    }
}

START_TEST(from_inside)
{
    varve_host *host = fake_open();
    fake_profiler p = {.mask = VARVE_MON_MODULE_LOADS, .inside = leave_from_inside};
    varve_host_started(host);
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    VARVE_RAISE(host, module_loaded, 1, 1);
    ck_assert_int_eq(requested, VARVE_OK);
    ck_assert_uint_eq(varve_host_detach_step(host, NULL), 0);
    ck_assert_uint_eq(p.ended, 1);
}
END_TEST

/* Who may not be detached, and when. */
START_TEST(conditions)
{
    varve_host *host = fake_open();
    varve_callbacks c = fake_callbacks;
    c.detached = NULL;
    fake_profiler p = {0}, q = {0};
    ck_assert_int_eq(fake_attach_as(host, &p, &c, false), VARVE_OK);
    ck_assert_int_eq(fake_attach(host, &q, true), VARVE_OK);
    ck_assert_int_eq(q.info->request_detach(q.self, 0), VARVE_E_NOT_INITIALIZED);
    varve_host_started(host);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_E_NOT_DETACHABLE);
    ck_assert_int_eq(varve_host_request_detach(host, q.self, 0), VARVE_OK);
    ck_assert_int_eq(varve_host_request_detach(host, q.self, 0), VARVE_E_DETACHING);
    ck_assert_int_eq(varve_host_request_detach(host, NULL, 0), VARVE_E_ARG);
}
END_TEST

/* How long the looks are apart: what is left of the hint, then the hint, within limits. */
START_TEST(hints)
{
    static const struct {
        uint32_t hint;
        uint64_t ms;
    } rows[] = {{0, 2500}, {1, 300}, {400, 400}, {4000, 4000}, {60000, 5000}};
    varve_host *host = fake_open();
    guest g = {0};
    fake_profiler p = {.mask = VARVE_MON_MODULE_LOADS, .inside = stay, .mine = &g};
    varve_host_started(host);
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    go_in(&g, host, false);
    ck_assert_int_eq(p.info->request_detach(p.self, rows[_i].hint), VARVE_OK);
    uint64_t first = varve_host_detach_step(host, NULL);
    ck_assert_uint_ge(first, 300);
    ck_assert_uint_le(first, rows[_i].ms);
    atomic_store(&p.self->requested_at_ms, 0); /* as if the hint were long over */
    ck_assert_uint_eq(varve_host_detach_step(host, NULL), rows[_i].ms);
    let_go(&g);
    ck_assert_uint_eq(varve_host_detach_step(host, NULL), 0);
}
END_TEST

/* H1. A thread that the host does not know counts too, one without a record of the gate's as well. */
START_TEST(h1_unknown_threads)
{
    varve_host *host = fake_open();
    fake_profiler p = {.mask = VARVE_MON_MODULE_LOADS};
    varve_host_started(host);
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    vv_gate_pin pin = vv_gate_enter_shared(p.self->number);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_OK);
    ck_assert_uint_ne(varve_host_detach_step(host, NULL), 0);
    vv_gate_leave(pin, p.self->number);
    ck_assert_uint_eq(varve_host_detach_step(host, NULL), 0);
}
END_TEST

/* H2. The host ends while a thread is inside: nothing is freed, and the thread finds all as it was. */
START_TEST(h2_shutdown_leaks)
{
    varve_host *host = fake_open(), *again;
    guest g = {0};
    fake_profiler p = {.mask = VARVE_MON_MODULE_LOADS, .inside = stay, .mine = &g}, q = {.mask = p.mask};
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    ck_assert_int_eq(fake_attach(host, &q, true), VARVE_OK);
    varve_host_started(host);
    go_in(&g, host, true);
    ck_assert(!varve_host_close(host));
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_shutdown), 1);
    ck_assert_uint_eq(fake_count(&q, VV_EVENT_shutdown), 1);
    ck_assert_uint_eq(p.ended, 0);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_module_loaded), 0);
    ck_assert_ptr_eq(p.self->iface_memory.me, &p);
    let_go(&g);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_module_loaded), 1);
    ck_assert_uint_eq(fake_count(&q, VV_EVENT_module_loaded), 0); /* its turn came after the end */
    ck_assert_uint_eq(varve_host_mask(host), 0);
    varve_host_options o = {sizeof o, VARVE_CONTRACT_VERSION, .name = "again"};
    ck_assert_int_eq(varve_host_open(&o, &again), VARVE_E_BUSY);
}
END_TEST

/* The same while one is detaching: whoever looks goes on with it. */
START_TEST(h2_shutdown_while_detaching)
{
    varve_host *host = fake_open();
    guest g = {0};
    fake_profiler p = {.mask = VARVE_MON_MODULE_LOADS, .inside = stay, .mine = &g};
    varve_host_started(host);
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    go_in(&g, host, true);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_OK);
    ck_assert(!varve_host_close(host));
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_shutdown), 0);
    ck_assert_uint_eq(p.ended, 0);
    let_go(&g);
    ck_assert_uint_eq(varve_host_detach_step(host, NULL), 0);
    ck_assert_uint_eq(p.ended, 1);
}
END_TEST

/* H3. Several detach at once, some of them held up; each ends when its own turn has come. */
static void request_other(void *me, vv_event e)
{
    fake_profiler *p = me, *other = p->mine;
    if (e == VV_EVENT_detached)
        ck_assert_int_eq(other->info->request_detach(other->self, 0), VARVE_OK);
}

START_TEST(h3_two_at_once)
{
    varve_host *host = fake_open();
    guest g = {0};
    fake_profiler p[4] = {{.mask = VARVE_MON_MODULE_LOADS, .inside = stay, .mine = &g}};
    varve_host_started(host);
    p[1].inside = request_other;
    p[1].mine = &p[3];
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(fake_attach(host, &p[i], i != 0), VARVE_OK);
    go_in(&g, host, true);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(p[i].info->request_detach(p[i].self, 0), VARVE_OK);
    ck_assert_uint_ne(varve_host_detach_step(host, NULL), 0);
    ck_assert_uint_eq(p[0].ended, 0);
    ck_assert_uint_eq(p[1].ended, 1);
    ck_assert_uint_eq(p[2].ended, 1);
    ck_assert_uint_eq(p[3].ended, 1);
    let_go(&g);
    ck_assert_uint_eq(varve_host_detach_step(host, NULL), 0);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(p[i].ended, 1);
        ck_assert_uint_eq(fake_count(&p[i], VV_EVENT_detached), 1);
        ck_assert_int_eq(p[i].self->detach_state, VV_DETACH_NONE);
    }
    ck_assert_uint_eq(varve_host_detach_step(host, NULL), 0);
    ck_assert(varve_host_close(host));
}
END_TEST

/* H4. A thread that stays in one profiler holds up that one only, though its event was for all of them. */
START_TEST(h4_one_slot_at_a_time)
{
    varve_host *host = fake_open();
    guest g = {0};
    fake_profiler p[3] = {{.mask = VARVE_MON_MODULE_LOADS}, {.mask = VARVE_MON_MODULE_LOADS},
                          {.mask = VARVE_MON_MODULE_LOADS}};
    varve_host_started(host);
    p[1].inside = stay;
    p[1].mine = &g;
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(fake_attach(host, &p[i], i != 0), VARVE_OK);
    go_in(&g, host, true);
    ck_assert_uint_eq(fake_count(&p[0], VV_EVENT_module_loaded), 1);
    for (unsigned i = 0; i < 3; i += 2) {
        ck_assert_int_eq(p[i].info->request_detach(p[i].self, 0), VARVE_OK);
        ck_assert_uint_eq(varve_host_detach_step(host, NULL), 0);
        ck_assert_uint_eq(p[i].ended, 1);
    }
    let_go(&g);
    ck_assert_uint_eq(fake_count(&p[2], VV_EVENT_module_loaded), 0);
    ck_assert_uint_eq(fake_count(&p[1], VV_EVENT_module_loaded), 1);
}
END_TEST

/* H5. A thread that ends in a callback is told of, and holds up nobody. */
static _Atomic unsigned ends_inside;

static void count_end(void *me, const varve_violation *v)
{
    (void)me;
    if (v->item == VARVE_ITEM_THROW)
        atomic_fetch_add(&ends_inside, 1);
}

static void end_inside(void *me, vv_event e)
{
    (void)me;
    if (e == VV_EVENT_module_loaded)
        pthread_exit(NULL);
}

START_TEST(h5_a_thread_ends_inside)
{
    varve_host *host = fake_open();
    guest g = {.host = host, .registered = true};
    fake_profiler p = {.mask = VARVE_MON_MODULE_LOADS, .inside = end_inside};
    ck_assert(varve_on_violation(count_end, NULL));
    varve_host_started(host);
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    ck_assert_int_eq(pthread_create(&g.thread, NULL, visit, &g), 0);
    pthread_join(g.thread, NULL);
    ck_assert_uint_eq(ends_inside, 1);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_OK);
    ck_assert_uint_eq(varve_host_detach_step(host, NULL), 0);
    ck_assert_uint_eq(p.ended, 1);
}
END_TEST

/*
 * H7. A plug-in detaches itself, once in a callback and once on a thread of its own, and its code goes away. The thread
 * that unloads it is the host's, and so is what unloads it.
 */
static sem_t unloaded;

static void unload(void *handle)
{
    ck_assert_int_eq(dlclose(handle), 0);
    sem_post(&unloaded);
}

static void wait_a_little(void *me, uint64_t ms)
{
    (void)me;
    (void)ms;
    sched_yield();
}

START_TEST(h7_the_code_goes_away)
{
    varve_host *host = fake_open_with((varve_host_options){.wait = wait_a_little});
    const char *build = getenv("top_builddir");
    char path[4096];
    sem_init(&unloaded, 0, 0);
    varve_host_started(host);
    snprintf(path, sizeof path, "%s/tests/control/.libs/plugin.so", build ? build : ".");
    for (unsigned round = 0; round < 6; round++) {
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        ck_assert_msg(handle, "%s", dlerror());
        varve_plugin_open_fn *open_plugin;
        *(void **)&open_plugin = dlsym(handle, "varve_plugin_open");
        varve_plugin plugin = {0};
        ck_assert_int_eq(open_plugin(VARVE_CONTRACT_VERSION, round % 2 ? "thread" : "callback", &plugin), VARVE_OK);
        varve_profiler *profiler;
        varve_attach_options o = {sizeof o, plugin.callbacks, plugin.me, plugin.notify_only, unload, handle};
        ck_assert_int_eq(varve_host_attach(host, &o, &profiler), VARVE_OK);
        while (vv_status_of(profiler) == VV_STATUS_ACTIVE)
            VARVE_RAISE(host, module_loaded, 1, 1);
        while (sem_wait(&unloaded) != 0)
            continue;
        ck_assert_ptr_null(dlopen(path, RTLD_NOLOAD | RTLD_NOW));
        while (vv_status_of(profiler) != VV_STATUS_NONE)
            sched_yield();
    }
    ck_assert(varve_host_close(host));
}
END_TEST

/* The library's own thread, and its ends: idle, and left to finish on its own. */
START_TEST(detach_thread)
{
    varve_host *host = fake_open_with((varve_host_options){.wait = wait_a_little});
    guest g = {0};
    fake_profiler p = {.mask = VARVE_MON_MODULE_LOADS, .inside = stay, .mine = &g}, q = {.mask = 0};
    varve_host_started(host);
    ck_assert_int_eq(fake_attach(host, &q, true), VARVE_OK);
    ck_assert_int_eq(q.info->request_detach(q.self, 0), VARVE_OK);
    while (vv_status_of(q.self) != VV_STATUS_NONE)
        sched_yield();
    ck_assert_uint_eq(q.ended, 1);
    ck_assert(varve_host_close(host));
    host = fake_open_with((varve_host_options){.wait = wait_a_little});
    varve_host_started(host);
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    go_in(&g, host, true);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_OK);
    ck_assert(!varve_host_close(host));
    ck_assert_uint_eq(p.ended, 0);
    let_go(&g);
    while (!p.ended)
        sched_yield();
}
END_TEST

/* A forked child has no host: no event comes, nothing is answered, nothing waits for threads that are not there. */
START_TEST(forked)
{
    varve_host *host = fake_open_with((varve_host_options){0});
    fake_profiler p = {.mask = VARVE_MON_MODULE_LOADS};
    int status;
    varve_host_started(host);
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    pid_t child = fork();
    if (child == 0) {
        VARVE_CONTRACT_VIOLATION(VARVE_ITEM_STATE, "what the child tries");
        VARVE_RAISE(host, module_loaded, 1, 1);
        varve_raise_module_loaded(host, 1, 1);
        bool quiet = fake_count(&p, VV_EVENT_module_loaded) == 0 &&
            p.info->set_event_mask(p.self, VARVE_MON_MODULE_LOADS) == VARVE_E_NOT_INITIALIZED &&
            p.info->request_detach(p.self, 0) == VARVE_E_NOT_INITIALIZED && !varve_host_close(host) &&
            varve_host_mask(host) == 0;
        _exit(!quiet);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    VARVE_RAISE(host, module_loaded, 1, 1);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_module_loaded), 1);
    ck_assert(varve_host_close(host));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("detach");
    TCase *c = tcase_create("detach");
    tcase_add_loop_test(c, t4_waits_for_a_callback, 0, 4);
    tcase_add_test(c, from_inside);
    tcase_add_test(c, conditions);
    tcase_add_loop_test(c, hints, 0, 5);
    tcase_add_test(c, h1_unknown_threads);
    tcase_add_test(c, h2_shutdown_leaks);
    tcase_add_test(c, h2_shutdown_while_detaching);
    tcase_add_test(c, h3_two_at_once);
    tcase_add_test(c, h4_one_slot_at_a_time);
    tcase_add_test(c, h5_a_thread_ends_inside);
    tcase_add_test(c, h7_the_code_goes_away);
    tcase_add_test(c, detach_thread);
    tcase_add_test(c, forked);
    suite_add_tcase(s, c);
    return test_main(s);
}
