/* The control block: states, masks, attaching without a hole, callbacks and the questions in them. */
#include "config.h"

#include <pthread.h>

#include "tests/control/fake.h"

static void *told_of;
static unsigned violations;

static void count_violation(void *me, const varve_violation *v)
{
    told_of = me;
    (void)v;
    violations++;
}

START_TEST(a_life)
{
    varve_host *host = fake_open();
    fake_profiler p = {.mask = VARVE_MON_MODULE_LOADS};
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    ck_assert_int_eq(p.kind, VARVE_AT_STARTUP);
    varve_host_started(host);
    ck_assert_uint_eq(varve_host_mask(host), VARVE_MON_MODULE_LOADS);
    VARVE_RAISE(host, module_loaded, 1, 2);
    VARVE_RAISE(host, exception_caught, 1, 2);
    VARVE_RAISE(host, module_unloaded, 1);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_module_loaded), 1);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_module_unloaded), 1);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_exception_caught), 0);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_attach_complete), 0);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_OK);
    ck_assert_uint_eq(varve_host_mask(host), 0);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_E_DETACHING);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_detached), 0);
    ck_assert_uint_eq(varve_host_detach_step(host, NULL), 0);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_detached), 1);
    ck_assert_uint_eq(p.ended, 1);
    /* The slot keeps neither code of the profiler nor what it wanted, for the next one that takes it. */
    ck_assert_ptr_null(atomic_load(&p.self->iface_));
    ck_assert_uint_eq(atomic_load(&p.self->requested), 0);
    ck_assert(varve_host_close(host));
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_shutdown), 0);
}
END_TEST

/* T1. Every pair of states, in the table and by a slot that is in the first one. */
static const struct {
    vv_status from, to[3];
    unsigned n;
} legal[] = {
    {VV_STATUS_NONE, {VV_STATUS_PRE_INITIALIZE, VV_STATUS_INIT_STARTUP, VV_STATUS_INIT_ATTACH}, 3},
    {VV_STATUS_PRE_INITIALIZE, {VV_STATUS_NONE, VV_STATUS_INIT_STARTUP, VV_STATUS_INIT_ATTACH}, 3},
    {VV_STATUS_INIT_STARTUP, {VV_STATUS_ACTIVE, VV_STATUS_NONE}, 2},
    {VV_STATUS_INIT_ATTACH, {VV_STATUS_ACTIVE, VV_STATUS_NONE}, 2},
    {VV_STATUS_ACTIVE, {VV_STATUS_NONE, VV_STATUS_DETACHING}, 2},
    {VV_STATUS_DETACHING, {VV_STATUS_NONE}, 1},
};

START_TEST(t1_transitions)
{
    varve_on_violation(count_violation, NULL);
    ck_assert_int_eq(VV_STATUS_NONE, 0);
    ck_assert_int_eq(VV_STATUS_DETACHING, 1);
    ck_assert_int_eq(VV_STATUS_INIT_STARTUP, 2);
    ck_assert_int_eq(VV_STATUS_INIT_ATTACH, 3);
    ck_assert_int_eq(VV_STATUS_ACTIVE, 4);
    ck_assert_int_eq(VV_STATUS_PRE_INITIALIZE, 5);
    for (unsigned from = 0; from < VV_STATUSES; from++)
        for (unsigned to = 0; to < VV_STATUSES; to++) {
            bool want = false;
            for (unsigned i = 0; i < VV_ARRAY_LEN(legal); i++)
                for (unsigned k = 0; k < legal[i].n; k++)
                    want = want || (legal[i].from == from && legal[i].to[k] == to);
            ck_assert_msg(vv_status_is_legal((vv_status)from, (vv_status)to) == want, "from %u to %u", from, to);
            varve_profiler p = {.status = from};
            violations = 0;
            ck_assert_int_eq(vv_status_move(&p, (vv_status)from, (vv_status)to), want);
            ck_assert_uint_eq(vv_status_of(&p), want ? to : from);
            ck_assert_uint_eq(violations, !want);
            varve_profiler elsewhere = {.status = (from + 1) % VV_STATUSES};
            ck_assert(!vv_status_move(&elsewhere, (vv_status)from, (vv_status)to));
            ck_assert_uint_eq(vv_status_of(&elsewhere), (from + 1) % VV_STATUSES);
        }
}
END_TEST

/* Options and callbacks that are none. */
START_TEST(refusals)
{
    varve_host *host, *second;
    varve_host_options old = {sizeof old, VARVE_CONTRACT_VERSION + 1000, .name = "x"};
    ck_assert_int_eq(varve_host_open(&old, &host), VARVE_E_ARG);
    ck_assert_int_eq(varve_host_open(NULL, &host), VARVE_E_ARG);
    host = fake_open();
    old.version = VARVE_CONTRACT_VERSION;
    ck_assert_int_eq(varve_host_open(&old, &second), VARVE_E_BUSY);
    fake_profiler p = {0}, q = {.answer = VARVE_E_UNAVAILABLE};
    varve_callbacks c = fake_callbacks;
    c.version += 1000;
    ck_assert_int_eq(fake_attach_as(host, &p, &c, false), VARVE_E_ARG);
    c = fake_callbacks;
    c.initialize = NULL;
    ck_assert_int_eq(fake_attach_as(host, &p, &c, false), VARVE_E_ARG);
    c = fake_callbacks;
    c.size = 4;
    ck_assert_int_eq(fake_attach_as(host, &p, &c, false), VARVE_E_ARG);
    ck_assert_int_eq(fake_attach_as(host, &p, NULL, false), VARVE_E_ARG);
    ck_assert_uint_eq(p.ended, 0);
    ck_assert_int_eq(fake_attach(host, &q, false), VARVE_E_REFUSED);
    ck_assert_uint_eq(q.ended, 1);
    ck_assert_int_eq(vv_status_of(q.self), VV_STATUS_NONE);
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    fake_profiler extra = {0};
    ck_assert_int_eq(fake_attach(host, &extra, false), VARVE_E_BUSY);
    static fake_profiler many[VV_GATE_NOTIFY_COUNT];
    for (unsigned i = 0; i < VV_GATE_NOTIFY_COUNT; i++)
        ck_assert_int_eq(fake_attach(host, &many[i], true), VARVE_OK);
    ck_assert_int_eq(fake_attach(host, &extra, true), VARVE_E_BUSY);
    ck_assert(varve_host_close(host));
    ck_assert_int_eq(fake_attach(host, &extra, true), VARVE_E_NOT_INITIALIZED);
    ck_assert_uint_eq(fake_count(&many[31], VV_EVENT_shutdown), 1);
    ck_assert_uint_eq(many[31].ended, 0);
    fake_open();
}
END_TEST

/* A profiler that was made when there were fewer callbacks, and a host with fewer functions. */
START_TEST(older_and_newer)
{
    varve_host_functions few = {.size = offsetof(varve_host_functions, describe_domain)};
    few.force_collection = (varve_code(*)(void *))1; /* beyond the size: not looked at */
    varve_host *host = fake_open_with((varve_host_options){.manual_detach = true, .functions = &few});
    ck_assert_ptr_null(host->functions.force_collection);
    varve_callbacks c = fake_callbacks;
    c.size = offsetof(varve_callbacks, module_loaded);
    fake_profiler p = {.mask = VARVE_MON_DOMAIN_LOADS | VARVE_MON_MODULE_LOADS};
    ck_assert_int_eq(fake_attach_as(host, &p, &c, false), VARVE_OK);
    ck_assert_uint_eq(varve_host_mask(host), VARVE_MON_DOMAIN_LOADS);
    VARVE_RAISE(host, module_loaded, 1, 1);
    VARVE_RAISE(host, domain_loaded, 1);
    varve_raise_module_loaded(host, 1, 1);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_module_loaded), 0);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_domain_loaded), 1);
    struct {
        varve_host_desc known;
        uint64_t unknown;
    } newer = {.known.size = sizeof newer, .unknown = 9};
    struct {
        size_t size;
        const char *name, *canary;
    } older = {offsetof(varve_host_desc, version), NULL, "untouched"};
    ck_assert_int_eq(p.info->describe_host(p.self, &newer.known), VARVE_OK);
    ck_assert_str_eq(newer.known.version, "1");
    ck_assert_uint_eq(newer.known.supported, vv_known_bits());
    ck_assert_uint_eq(newer.unknown, 0);
    ck_assert_int_eq(p.info->describe_host(p.self, (varve_host_desc *)(void *)&older), VARVE_OK);
    ck_assert_str_eq(older.name, "fake");
    ck_assert_str_eq(older.canary, "untouched");
}
END_TEST

static uint64_t told_mask;
static unsigned mask_changes;

static void mask_changed(void *me, uint64_t mask)
{
    (void)me;
    told_mask = mask;
    mask_changes++;
}

START_TEST(masks)
{
    static const varve_host_functions f = {.size = sizeof f, .mask_changed = mask_changed};
    uint64_t got = 1, values = VARVE_CALL_ARGUMENTS | VARVE_CALL_RESULTS;
    uint64_t supported = vv_known_bits() & ~(uint64_t)VARVE_MON_THREADS;
    varve_host *host = fake_open_with(
        (varve_host_options){.manual_detach = true, .functions = &f, .supported = supported});
    fake_profiler p = {.mask = VARVE_MON_EXCEPTIONS | VARVE_CALL_ARGUMENTS}, q = {.mask = VARVE_MON_COLLECTIONS};
    fake_profiler late = {0}, wrong = {.mask = VARVE_CALL_ARGUMENTS};
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    ck_assert_uint_eq(varve_host_mask(host), p.mask);
    ck_assert_int_eq(fake_attach(host, &q, true), VARVE_OK);
    ck_assert_uint_eq(varve_host_mask(host), p.mask | q.mask);
    ck_assert_uint_eq(told_mask, p.mask | q.mask);
    ck_assert_uint_eq(mask_changes, 2);
    ck_assert_int_eq(fake_attach(host, &wrong, true), VARVE_E_REFUSED);
    ck_assert_int_eq(q.info->set_event_mask(q.self, values), VARVE_E_MAIN_ONLY);
    ck_assert_int_eq(p.info->set_event_mask(p.self, UINT64_C(1) << 60), VARVE_E_ARG);
    ck_assert_int_eq(p.info->set_event_mask(p.self, 0x2), VARVE_E_ARG);
    ck_assert_int_eq(p.info->set_event_mask(p.self, VARVE_MON_THREADS), VARVE_E_UNSUPPORTED);
    ck_assert_int_eq(p.info->set_event_mask(p.self, VARVE_MON_EXCEPTIONS), VARVE_E_IMMUTABLE);
    ck_assert_int_eq(p.info->set_event_mask(p.self, values), VARVE_E_IMMUTABLE);
    ck_assert_int_eq(p.info->get_event_mask(p.self, &got), VARVE_OK);
    ck_assert_uint_eq(got, p.mask);
    ck_assert_uint_eq(mask_changes, 2);
    ck_assert_int_eq(p.info->set_event_mask(p.self, VARVE_CALL_ARGUMENTS), VARVE_OK);
    ck_assert_uint_eq(varve_host_mask(host), VARVE_CALL_ARGUMENTS | VARVE_MON_COLLECTIONS);
    varve_host_started(host);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_E_NOT_DETACHABLE);
    ck_assert_int_eq(q.info->request_detach(q.self, 0), VARVE_OK);
    ck_assert_uint_eq(varve_host_mask(host), VARVE_CALL_ARGUMENTS);
    ck_assert_int_eq(q.info->set_event_mask(q.self, VARVE_MON_COLLECTIONS), VARVE_E_DETACHING);
    ck_assert_int_eq(fake_attach(host, &late, true), VARVE_OK);
    ck_assert_int_eq(late.kind, VARVE_AT_ATTACH);
    ck_assert_uint_eq(fake_count(&late, VV_EVENT_attach_complete), 1);
    ck_assert_int_eq(late.info->set_event_mask(late.self, VARVE_MON_COLLECTIONS), VARVE_OK);
}
END_TEST

/* Set and cleared by two threads at once, the mask is right as soon as both have returned. */
static void *set_and_clear(void *of)
{
    fake_profiler *p = of;
    for (unsigned i = 0; i < 20000; i++) {
        p->info->set_event_mask(p->self, i % 2 ? VARVE_MON_EXCEPTIONS : VARVE_MON_EXCEPTIONS | VARVE_MON_COLLECTIONS);
        ck_assert_uint_eq(varve_host_mask(p->self->host) & VARVE_MON_EXCEPTIONS, VARVE_MON_EXCEPTIONS);
    }
    return NULL;
}

START_TEST(masks_at_once)
{
    varve_host *host = fake_open();
    fake_profiler p[2] = {{.mask = VARVE_MON_EXCEPTIONS}, {.mask = VARVE_MON_EXCEPTIONS}};
    pthread_t threads[2];
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(fake_attach(host, &p[i], i), VARVE_OK);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, set_and_clear, &p[i]), 0);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(varve_host_mask(host), VARVE_MON_EXCEPTIONS);
}
END_TEST

/*
 * T5. One object lives through insert, raise loaded, remove, raise unloaded, each at one of the points of an attach, in
 * this order. Whatever the points: at the end the profiler knows of it if it lives, and does not if it is dead.
 */
enum { STEPS = 4, AT_BEFORE = 0, AT_PROBES = 1, AT_ENUMERATE = AT_PROBES + VV_POINT_DETACHING, AT_ENUMERATED, AT_AFTER,
       POINTS };
typedef enum { STEP_INSERT, STEP_LOADED, STEP_REMOVE, STEP_UNLOADED } life_step;
static struct {
    varve_host *host;
    fake_profiler profiler;
    unsigned at[STEPS]; /* POINTS: never */
    unsigned next;
    bool in_table, known;
} life;

static void live(unsigned point)
{
    for (; life.next < STEPS && life.at[life.next] == point; life.next++)
        switch ((life_step)life.next) {
        case STEP_INSERT:
            life.in_table = true;
            break;
        case STEP_LOADED:
            VARVE_RAISE(life.host, module_loaded, 1, 1);
            break;
        case STEP_REMOVE:
            life.in_table = false;
            break;
        case STEP_UNLOADED:
            VARVE_RAISE(life.host, module_unloaded, 1);
            break;
        }
}

static void live_at(vv_point point)
{
    if (point < VV_POINT_DETACHING)
        live(AT_PROBES + point);
}

static varve_code enumerate_life(void *me, varve_live_kind kind, uintptr_t *into, size_t room, size_t *ret_count)
{
    (void)me;
    ck_assert_int_eq(kind, VARVE_LIVE_MODULES);
    if (room && life.in_table)
        into[0] = 1;
    *ret_count = life.in_table;
    return VARVE_OK;
}

static void learn(void *me, vv_event e)
{
    fake_profiler *p = me;
    uintptr_t ids[4];
    size_t n = 0;
    if (e == VV_EVENT_module_loaded)
        life.known = true;
    if (e == VV_EVENT_module_unloaded)
        life.known = false;
    if (e != VV_EVENT_attach_complete)
        return;
    live(AT_ENUMERATE);
    ck_assert_int_eq(p->info->enumerate(p->self, VARVE_LIVE_MODULES, ids, 4, &n), VARVE_OK);
    life.known = life.known || n;
    live(AT_ENUMERATED);
}

static void attach_while_it_lives(void)
{
    static const varve_host_functions f = {.size = sizeof f, .enumerate = enumerate_life};
    life.host = fake_open_with((varve_host_options){.manual_detach = true, .functions = &f});
    varve_host_started(life.host);
    life.profiler = (fake_profiler){.mask = VARVE_MON_MODULE_LOADS, .inside = learn};
    life.next = 0;
    life.in_table = life.known = false;
    live(AT_BEFORE);
    ck_assert_int_eq(fake_attach(life.host, &life.profiler, false), VARVE_OK);
    live(AT_AFTER);
    ck_assert_msg(life.known == life.in_table, "inserted at %u, told at %u, removed at %u, told at %u: %s", life.at[0],
                  life.at[1], life.at[2], life.at[3], life.known ? "known though dead" : "a hole");
    ck_assert(varve_host_close(life.host));
}

START_TEST(t5_no_hole)
{
    unsigned orders = 0;
    vv_point_probe = live_at;
    for (unsigned a = 0; a < POINTS; a++)
        for (unsigned b = a; b < POINTS; b++)
            for (unsigned c = b; c <= POINTS; c++)
                for (unsigned d = c; d <= POINTS; d++) {
                    if ((c == POINTS) != (d == POINTS))
                        continue;
                    life.at[0] = a, life.at[1] = b, life.at[2] = c, life.at[3] = d;
                    attach_while_it_lives();
                    orders++;
                }
    fprintf(stderr, "# %u orders\n", orders);
    ck_assert_uint_eq(orders, 330 + 36);
}
END_TEST

/* T6. A callback asks for a collection, whose callback forbids safepoints; afterwards the first one is as it was. */
static varve_host *nest_host;
static unsigned nested;

static varve_code collect(void *me)
{
    (void)me;
    VARVE_RAISE(nest_host, collection_started, 0, true);
    VARVE_RAISE(nest_host, collection_ended, 1, 2);
    return VARVE_OK;
}

static void nest(void *me, vv_event e)
{
    fake_profiler *p = me;
    if (e == VV_EVENT_call_entered) {
        ck_assert_uint_eq(vv_self.flags, VV_IN_CALLBACK | VV_IN_TRIGGERS);
        ck_assert_int_eq(p->info->force_collection(p->self), VARVE_OK);
        ck_assert_uint_eq(vv_self.flags, VV_IN_CALLBACK | VV_IN_TRIGGERS);
        ck_assert_int_eq(p->info->force_collection(p->self), VARVE_OK);
        ck_assert_uint_eq(vv_gate_held(p->self->number), 1);
    }
    if (e == VV_EVENT_collection_started) {
        ck_assert_uint_eq(vv_self.flags, VV_IN_CALLBACK);
        ck_assert_uint_eq(vv_gate_held(p->self->number), 2);
        ck_assert_int_eq(p->info->force_collection(p->self), VARVE_E_CALL_SEQUENCE);
        nested++;
    }
}

START_TEST(t6_nesting)
{
    static const varve_host_functions f = {.size = sizeof f, .force_collection = collect};
    nest_host = fake_open_with((varve_host_options){.manual_detach = true, .functions = &f});
    fake_profiler p = {.mask = VARVE_MON_ENTER_LEAVE | VARVE_MON_COLLECTIONS, .inside = nest};
    ck_assert_int_eq(fake_attach(nest_host, &p, false), VARVE_OK);
    varve_host_started(nest_host);
    varve_host_thread_add(nest_host, 5);
    VARVE_RAISE(nest_host, call_entered, 5, 1, NULL, 0);
    ck_assert_uint_eq(vv_self.flags, 0);
    ck_assert_uint_eq(vv_gate_held(p.self->number), 0);
    ck_assert_uint_eq(nested, 2);
    ck_assert_int_eq(p.info->force_collection(p.self), VARVE_E_CALL_SEQUENCE);
}
END_TEST

static varve_code count_nothing(void *me, varve_live_kind kind, uintptr_t *into, size_t room, size_t *ret_count)
{
    (void)me;
    (void)kind;
    (void)into;
    (void)room;
    *ret_count = 0;
    return VARVE_OK;
}

static varve_code no_frames(void *me, varve_thread_id thread, varve_frame *into, size_t room, size_t *ret_count)
{
    (void)thread;
    return count_nothing(me, VARVE_LIVE_THREADS, (uintptr_t *)(void *)into, room, ret_count);
}

static void *ask_elsewhere(void *of)
{
    fake_profiler *p = of;
    size_t n;
    ck_assert_int_eq(p->info->enumerate(p->self, VARVE_LIVE_THREADS, NULL, 0, &n), VARVE_OK);
    return NULL;
}

START_TEST(t7_synchronous)
{
    static const varve_host_functions f = {.size = sizeof f, .enumerate = count_nothing};
    varve_host *host = fake_open_with((varve_host_options){.manual_detach = true, .functions = &f});
    fake_profiler p = {0};
    size_t n;
    pthread_t thread;
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    varve_host_thread_add(host, 5);
    ck_assert_int_eq(varve_host_thread_add(host, 6), VARVE_E_ARG);
    ck_assert_int_eq(p.info->enumerate(p.self, VARVE_LIVE_THREADS, NULL, 0, &n), VARVE_E_CALL_SEQUENCE);
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_elsewhere, &p), 0);
    pthread_join(thread, NULL);
    varve_host_thread_remove(host);
    ck_assert_int_eq(p.info->enumerate(p.self, VARVE_LIVE_THREADS, NULL, 0, &n), VARVE_OK);
    uintptr_t id;
    ck_assert_int_eq(p.info->enumerate(p.self, VARVE_LIVE_THREADS, NULL, 1, &n), VARVE_E_ARG);
    ck_assert_int_eq(p.info->enumerate(p.self, VARVE_LIVE_THREADS, &id, 1, NULL), VARVE_E_ARG);
    ck_assert_int_eq(p.info->enumerate(p.self, (varve_live_kind)4, &id, 1, &n), VARVE_E_ARG);
}
END_TEST

START_TEST(t8_asynchronous)
{
    static const varve_host_functions f = {.size = sizeof f, .stack_snapshot = no_frames};
    varve_host *host = fake_open_with((varve_host_options){.manual_detach = true, .functions = &f});
    fake_profiler p = {0};
    size_t n;
    uint64_t mask;
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    varve_host_thread_add(host, 5);
    ck_assert_int_eq(p.info->stack_snapshot(p.self, 0, NULL, 0, &n), VARVE_OK);
    varve_nosuspend_enter();
    varve_nosuspend_enter();
    ck_assert_int_eq(p.info->stack_snapshot(p.self, 0, NULL, 0, &n), VARVE_E_ASYNC_UNSAFE);
    varve_nosuspend_leave();
    ck_assert_int_eq(p.info->stack_snapshot(p.self, 0, NULL, 0, &n), VARVE_E_ASYNC_UNSAFE);
    ck_assert_int_eq(p.info->get_event_mask(p.self, &mask), VARVE_OK);
    varve_nosuspend_leave();
    ck_assert_int_eq(p.info->stack_snapshot(p.self, 0, NULL, 0, &n), VARVE_OK);
}
END_TEST

/* The fast path: hooks, only from the start, only for the main one, and for good. */
static unsigned entered;

static void hook_enter(void *thread, uintptr_t function, uintptr_t site)
{
    (void)site;
    entered += thread && function;
}

static void hook_enter_at(void *thread, uintptr_t function, uintptr_t site, uint64_t ticks)
{
    (void)ticks;
    hook_enter(thread, function, site);
}

static void hook_leave(void *thread, varve_ending how)
{
    (void)thread;
    (void)how;
}

static void hook_leave_at(void *thread, varve_ending how, uint64_t ticks)
{
    (void)ticks;
    hook_leave(thread, how);
}

static const varve_hooks hooks = {.size = sizeof hooks, .enter = hook_enter, .enter_at = hook_enter_at,
                                  .leave = hook_leave, .leave_at = hook_leave_at};

static varve_code hooked;

static void set_hooks(void *me, vv_event e)
{
    fake_profiler *p = me;
    varve_hooks incomplete = hooks;
    if (e != VV_EVENT_initialize)
        return;
    incomplete.leave = NULL;
    ck_assert_int_ne(p->info->set_hooks(p->self, &incomplete), VARVE_OK);
    ck_assert_int_ne(p->info->set_hooks(p->self, NULL), VARVE_OK);
    hooked = p->info->set_hooks(p->self, &hooks);
}

/* Who takes the place of a profiler that set hooks and a mask, and then refused, has neither. */
START_TEST(refused_leaves_nothing)
{
    varve_host *host = fake_open();
    fake_profiler refusing = {.mask = VARVE_MON_MODULE_LOADS, .inside = set_hooks, .answer = VARVE_E_ARG}, p = {0};
    ck_assert_int_eq(fake_attach(host, &refusing, false), VARVE_E_REFUSED);
    ck_assert_uint_eq(atomic_load(&refusing.self->requested), 0);
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    ck_assert_ptr_eq(p.self, refusing.self);
    varve_host_started(host);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_OK);
    ck_assert_uint_eq(varve_host_detach_step(host, NULL), 0);
    ck_assert(varve_host_close(host));
}
END_TEST

START_TEST(fast_path)
{
    varve_host *host = fake_open();
    fake_profiler p = {.inside = set_hooks}, refusing = {.inside = set_hooks, .answer = VARVE_E_ARG}, q = p, late = p;
    ck_assert_int_eq(fake_attach(host, &refusing, false), VARVE_E_REFUSED);
    ck_assert_int_eq(hooked, VARVE_OK);
    ck_assert_ptr_null(varve_host_hooks(host));
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    ck_assert_int_eq(fake_attach(host, &q, true), VARVE_OK);
    ck_assert_int_eq(hooked, VARVE_E_MAIN_ONLY);
    varve_host_started(host);
    const varve_hooks *h = varve_host_hooks(host);
    ck_assert_ptr_nonnull(h);
    h->enter(&p, 1, 0);
    ck_assert_uint_eq(entered, 1);
    ck_assert_int_eq(p.info->set_hooks(p.self, &hooks), VARVE_E_INIT_ONLY);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_E_NOT_DETACHABLE);
    ck_assert_int_eq(fake_attach(host, &late, true), VARVE_OK);
    ck_assert_int_eq(hooked, VARVE_E_NOT_AFTER_ATTACH);
}
END_TEST

/* A question that needs a callback, out of a fast hook: there is none. Out of the slow path there is. */
static fake_profiler *asking;
static varve_code from_hook, from_event;

static void ask_in_hook(void *thread, uintptr_t function, uintptr_t site)
{
    size_t n;
    hook_enter(thread, function, site);
    from_hook = asking->info->call_values(asking->self, VARVE_VALUES_ARGUMENTS, NULL, 0, &n);
}

static void ask_in_event(void *me, vv_event e)
{
    fake_profiler *p = me;
    varve_hooks mine = hooks;
    varve_value value;
    size_t n = 0;
    mine.enter = ask_in_hook;
    if (e == VV_EVENT_initialize)
        p->info->set_hooks(p->self, &mine);
    if (e == VV_EVENT_call_entered)
        from_event = p->info->call_values(p->self, VARVE_VALUES_ARGUMENTS, &value, 1, &n);
    if (e == VV_EVENT_call_left)
        ck_assert_int_eq(p->info->call_values(p->self, VARVE_VALUES_RESULTS, &value, 1, &n), VARVE_E_UNAVAILABLE);
}

static varve_code one_value(void *me, varve_values_kind which, varve_value *into, size_t room, size_t *ret_count)
{
    (void)me;
    ck_assert_int_eq(which, VARVE_VALUES_ARGUMENTS);
    if (room)
        into[0] = (varve_value){VARVE_VALUE_INT, {.integer = 42}};
    *ret_count = 1;
    return VARVE_OK;
}

START_TEST(slow_path)
{
    static const varve_host_functions f = {.size = sizeof f, .call_values = one_value};
    varve_host *host = fake_open_with((varve_host_options){.manual_detach = true, .functions = &f});
    fake_profiler p = {.mask = VARVE_MON_ENTER_LEAVE | VARVE_CALL_ARGUMENTS, .inside = ask_in_event};
    asking = &p;
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    varve_host_started(host);
    varve_host_thread_add(host, 5);
    varve_host_hooks(host)->enter(&p, 1, 0);
    VARVE_RAISE(host, call_entered, 5, 1, NULL, 0);
    VARVE_RAISE(host, call_left, 5, 1, VARVE_ENDED_OK, 0);
    ck_assert_int_eq(from_hook, VARVE_E_CALL_SEQUENCE);
    ck_assert_int_eq(from_event, VARVE_OK);
}
END_TEST

/* Ids are not looked at, unless the host was opened to. */
static bool is_even(void *me, varve_live_kind kind, uintptr_t id)
{
    (void)me;
    (void)kind;
    return id % 2 == 0;
}

static varve_code name_module(void *me, varve_module_id module, varve_module_desc *ret)
{
    (void)me;
    ret->name = module == 2 ? "two" : "other";
    return module == 4 ? VARVE_E_UNAVAILABLE : VARVE_OK;
}

START_TEST(ids)
{
    static const varve_host_functions f = {.size = sizeof f, .describe_module = name_module, .id_is_live = is_even};
    varve_host *host = fake_open_with((varve_host_options){.manual_detach = true, .functions = &f, .check_ids = _i});
    fake_profiler p = {0};
    varve_module_desc d = {.size = sizeof d, .name = "before"};
    varve_domain_desc domain = {.size = sizeof domain};
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    ck_assert_int_eq(p.info->describe_module(p.self, 4, &d), VARVE_E_UNAVAILABLE);
    ck_assert_str_eq(d.name, "before");
    ck_assert_int_eq(p.info->describe_module(p.self, 2, &d), VARVE_OK);
    ck_assert_str_eq(d.name, "two");
    ck_assert_int_eq(p.info->describe_module(p.self, 3, &d), _i ? VARVE_E_ARG : VARVE_OK);
    ck_assert_int_eq(p.info->describe_module(p.self, 2, NULL), VARVE_E_ARG);
    ck_assert_int_eq(p.info->describe_domain(p.self, 2, &domain), VARVE_E_UNSUPPORTED);
}
END_TEST

START_TEST(code_names)
{
    ck_assert_str_eq(varve_code_name(VARVE_OK), "VARVE_OK");
    ck_assert_str_eq(varve_code_name(VARVE_E_NO_MEMORY), "VARVE_E_NO_MEMORY");
    for (unsigned i = 0; i <= VARVE_E_NO_MEMORY; i++)
        ck_assert_ptr_nonnull(varve_code_name((varve_code)i));
    ck_assert_str_eq(varve_code_name((varve_code)77), "unknown");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("block");
    TCase *c = tcase_create("block");
    tcase_add_test(c, a_life);
    tcase_add_test(c, t1_transitions);
    tcase_add_test(c, refusals);
    tcase_add_test(c, older_and_newer);
    tcase_add_test(c, masks);
    tcase_add_test(c, masks_at_once);
    tcase_add_test(c, t5_no_hole);
    tcase_add_test(c, t6_nesting);
    tcase_add_test(c, t7_synchronous);
    tcase_add_test(c, t8_asynchronous);
    tcase_add_test(c, refused_leaves_nothing);
    tcase_add_test(c, fast_path);
    tcase_add_test(c, slow_path);
    tcase_add_loop_test(c, ids, 0, 2);
    tcase_add_test(c, code_names);
    suite_add_tcase(s, c);
    return test_main(s);
}
