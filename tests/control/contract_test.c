/*
 * The checks of a debug build: each item of a contract, held and broken, by regions, by the frame below, by scopes that
 * accept it. Allocation is seen by way of malloc itself.
 */
#include "config.h"

#include <setjmp.h>
#include <signal.h>

#include "tests/control/fake.h"

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

/* Every allocation of this program's objects, the library's among them. */
void *__wrap_malloc(size_t n)
{
    varve_allocating();
    return __real_malloc(n);
}

static struct {
    unsigned n;
    uint32_t items;
    varve_violation last;
} seen;

static void see(void *me, const varve_violation *v)
{
    (void)me;
    seen.n++;
    seen.items |= v->item;
    seen.last = *v;
}

static varve_host *host;
static fake_profiler profiler;

static void open_host(const varve_host_functions *f, uint64_t mask)
{
    ck_assert(varve_on_violation(see, NULL));
    host = fake_open_with((varve_host_options){.manual_detach = true, .functions = f});
    profiler.mask = mask;
    ck_assert_int_eq(fake_attach(host, &profiler, false), VARVE_OK);
    varve_host_started(host);
    seen.n = seen.items = 0;
}

static void want(unsigned n, uint32_t items)
{
    ck_assert_msg(seen.n == n && seen.items == items, "wanted %u (%#x), saw %u (%#x), the last: %s inside of %s", n,
                  items, seen.n, seen.items, seen.n ? seen.last.what : "", seen.n ? seen.last.inside_of : "");
    seen.n = seen.items = 0;
}

static void do_nothing(void)
{
}

static void lock_one(void)
{
    varve_lock_taken(1);
}

static void unlock_one(void)
{
    varve_lock_released(1);
}

static void raise_free(void)
{
    VARVE_RAISE(host, module_loaded, 1, 1);
}

static void raise_stopped(void)
{
    VARVE_RAISE(host, world_stopped);
}

static void raise_collection(void)
{
    VARVE_RAISE(host, collection_started, 0, false);
}

static void raise_allocated(void)
{
    VARVE_RAISE(host, object_allocated, 1, 8, 0);
}

/* What a region says of an event: module_loaded allows everything, the others less. */
static const struct {
    void (*enter)(void), (*leave)(void), (*raise)(void);
    uint32_t items;
} regions[] = {
    {do_nothing, do_nothing, raise_free, 0},
    {varve_borrow_enter, varve_borrow_leave, raise_free, VARVE_ITEM_MODE},
    {varve_no_safepoint_enter, varve_no_safepoint_leave, raise_free, VARVE_ITEM_SAFEPOINT},
    {varve_no_lock_enter, varve_no_lock_leave, raise_free, VARVE_ITEM_LOCK},
    {varve_no_alloc_enter, varve_no_alloc_leave, raise_free, VARVE_ITEM_ALLOC},
    {varve_nosuspend_enter, varve_nosuspend_leave, raise_free, VARVE_ITEM_LOCK | VARVE_ITEM_ALLOC},
    {lock_one, unlock_one, raise_free, VARVE_ITEM_HOST_LOCKS},
    {do_nothing, do_nothing, raise_stopped, 0},
    {varve_no_safepoint_enter, varve_no_safepoint_leave, raise_stopped, 0},
    {varve_no_lock_enter, varve_no_lock_leave, raise_stopped, 0},
    {varve_no_alloc_enter, varve_no_alloc_leave, raise_stopped, 0},
    {varve_nosuspend_enter, varve_nosuspend_leave, raise_stopped, 0},
    {varve_borrow_enter, varve_borrow_leave, raise_stopped, VARVE_ITEM_MODE},
    {varve_no_safepoint_enter, varve_no_safepoint_leave, raise_collection, 0},
    {varve_no_lock_enter, varve_no_lock_leave, raise_collection, VARVE_ITEM_LOCK},
    {varve_borrow_enter, varve_borrow_leave, raise_allocated, 0},
    {lock_one, unlock_one, raise_allocated, VARVE_ITEM_HOST_LOCKS},
};

START_TEST(gate_regions)
{
    open_host(NULL, vv_known_bits() & ~(uint64_t)VV_IMMUTABLE_BITS);
    regions[_i].enter();
    regions[_i].raise();
    regions[_i].leave();
    want((unsigned)__builtin_popcount(regions[_i].items), regions[_i].items);
    regions[_i].raise();
    want(0, 0);
}
END_TEST

/* What a callback does, against what its row allows. */
static void take_lock(void)
{
    varve_lock_taken(3);
    varve_lock_released(3);
}

static void allocate(void)
{
    void *volatile p = malloc(8);
    free(p);
}

static void collect(void)
{
    profiler.info->force_collection(profiler.self);
}

static void describe(void)
{
    varve_function_desc d = {.size = sizeof d};
    profiler.info->describe_function(profiler.self, 1, VARVE_DONT_LOAD, &d);
}

static void ask_thread(void)
{
    varve_thread_id id;
    profiler.info->current_thread(profiler.self, &id);
}

static const struct {
    vv_event in;
    void (*raise)(void), (*action)(void);
    uint32_t items;
} actions[] = {
    {VV_EVENT_module_loaded, raise_free, take_lock, 0},
    {VV_EVENT_module_loaded, raise_free, allocate, 0},
    {VV_EVENT_module_loaded, raise_free, varve_safepoint, 0},
    {VV_EVENT_module_loaded, raise_free, collect, 0},
    {VV_EVENT_collection_started, raise_collection, take_lock, 0},
    {VV_EVENT_collection_started, raise_collection, varve_safepoint, VARVE_ITEM_SAFEPOINT},
    {VV_EVENT_collection_started, raise_collection, collect, VARVE_ITEM_SAFEPOINT},
    {VV_EVENT_collection_started, raise_collection, describe, 0},
    {VV_EVENT_world_stopped, raise_stopped, take_lock, VARVE_ITEM_LOCK},
    {VV_EVENT_world_stopped, raise_stopped, allocate, VARVE_ITEM_ALLOC},
    {VV_EVENT_world_stopped, raise_stopped, describe, VARVE_ITEM_LOCK | VARVE_ITEM_ALLOC},
    {VV_EVENT_world_stopped, raise_stopped, ask_thread, 0},
    {VV_EVENT_object_allocated, raise_allocated, collect, VARVE_ITEM_SAFEPOINT | VARVE_ITEM_MODE},
};
static unsigned acting;

static void act(void *me, vv_event e)
{
    (void)me;
    if (e == actions[acting].in)
        actions[acting].action();
}

START_TEST(gate_composition)
{
    open_host(NULL, vv_known_bits() & ~(uint64_t)VV_IMMUTABLE_BITS);
    acting = (unsigned)_i;
    profiler.inside = act;
    actions[_i].raise();
    want((unsigned)__builtin_popcount(actions[_i].items), actions[_i].items);
    ck_assert_ptr_null(vv_self.top);
    actions[_i].action();
    want(0, 0);
}
END_TEST

/* The host's answers are held to the rows of the functions that they answer. */
static varve_code allocating_answer(void *me, varve_thread_id *ret_thread)
{
    (void)me;
    allocate();
    *ret_thread = 1;
    return VARVE_OK;
}

static varve_code locking_answer(void *me, varve_live_kind kind, uintptr_t *into, size_t room, size_t *ret_count)
{
    (void)me;
    (void)kind;
    (void)into;
    (void)room;
    take_lock();
    *ret_count = 0;
    return VARVE_OK;
}

static varve_code locking_name(void *me, varve_domain_id domain, varve_domain_desc *ret)
{
    (void)me;
    (void)domain;
    (void)ret;
    take_lock();
    return VARVE_OK;
}

START_TEST(gate_answers)
{
    static const varve_host_functions f = {.size = sizeof f, .current_thread = allocating_answer,
                                           .enumerate = locking_answer, .describe_domain = locking_name};
    open_host(&f, 0);
    ask_thread();
    want(1, VARVE_ITEM_ALLOC);
    ck_assert_str_eq(seen.last.inside_of, "current_thread");
    size_t n;
    profiler.info->enumerate(profiler.self, VARVE_LIVE_THREADS, NULL, 0, &n);
    want(0, 0);
    varve_domain_desc d = {.size = sizeof d};
    profiler.info->describe_domain(profiler.self, 1, &d);
    want(1, VARVE_ITEM_LOCK);
    varve_no_lock_enter();
    profiler.info->enumerate(profiler.self, VARVE_LIVE_THREADS, NULL, 0, &n);
    varve_no_lock_leave();
    want(2, VARVE_ITEM_LOCK); /* asked where it may not be, and done */
}
END_TEST

/* Nothing is raised, asked or attached with an allocation of the library's own. */
START_TEST(gate_no_allocation)
{
    open_host(NULL, VARVE_MON_SUSPENSIONS);
    uint64_t mask;
    varve_no_alloc_enter(); /* the assertions allocate */
    raise_stopped();
    varve_code set = profiler.info->set_event_mask(profiler.self, 0);
    varve_code got = profiler.info->get_event_mask(profiler.self, &mask);
    varve_code detached = profiler.info->request_detach(profiler.self, 0);
    varve_no_alloc_leave();
    ck_assert(set == VARVE_OK && got == VARVE_OK && detached == VARVE_OK);
    want(0, 0);
}
END_TEST

START_TEST(gate_locks)
{
    open_host(NULL, 0);
    varve_lock_taken(1);
    varve_lock_taken(4);
    varve_lock_released(1);
    varve_lock_taken(5);
    want(0, 0);
    varve_lock_taken(5);
    want(1, VARVE_ITEM_HOST_LOCKS);
    varve_lock_released(5);
    varve_lock_released(5);
    varve_lock_taken(2);
    want(1, VARVE_ITEM_HOST_LOCKS);
    varve_lock_released(2);
    varve_lock_released(4);
    ck_assert_uint_eq(vv_self.locks, 0);
    for (unsigned i = 1; i <= 2 * VV_RANKS; i++)
        varve_lock_taken(i);
    for (unsigned i = 1; i <= 2 * VV_RANKS; i++)
        varve_lock_released(i);
    ck_assert_uint_eq(vv_self.locks, 0);
    varve_lock_released(1);
    ck_assert_uint_eq(vv_self.locks, 0);
}
END_TEST

/* No event of or on a thread whose end was told; an id may be used again once it begins anew. */
START_TEST(gate_destroyed_threads)
{
    open_host(NULL, VARVE_MON_THREADS | VARVE_MON_MODULE_LOADS);
    varve_spawn spawn = {0};
    VARVE_RAISE(host, thread_created, 8, &spawn);
    VARVE_RAISE(host, thread_started, 8, 0);
    VARVE_RAISE(host, thread_destroyed, 8, VARVE_ENDED_OK, 0);
    want(0, 0);
    VARVE_RAISE(host, thread_moved, 8);
    want(1, VARVE_ITEM_THREAD);
    VARVE_RAISE(host, thread_created, 8, &spawn);
    VARVE_RAISE(host, thread_moved, 8);
    want(0, 0);
    varve_host_thread_add(host, 8);
    raise_free();
    VARVE_RAISE(host, thread_destroyed, 8, VARVE_ENDED_OK, 0);
    want(0, 0);
    raise_free();
    want(1, VARVE_ITEM_THREAD);
    varve_host_thread_remove(host);
    raise_free();
    want(0, 0);
}
END_TEST

/* A callback that jumps out over the host, into the callback below. */
static jmp_buf out;

static varve_code raise_in_collection(void *me)
{
    (void)me;
    raise_collection();
    return VARVE_OK;
}

static void jump(void *me, vv_event e)
{
    (void)me;
    if (e == VV_EVENT_module_loaded && setjmp(out) == 0)
        collect();
    if (e == VV_EVENT_collection_started)
        longjmp(out, 1);
}

START_TEST(gate_jumps)
{
    static const varve_host_functions f = {.size = sizeof f, .force_collection = raise_in_collection};
    open_host(&f, VARVE_MON_MODULE_LOADS | VARVE_MON_COLLECTIONS);
    profiler.inside = jump;
    raise_free();
    want(1, VARVE_ITEM_THROW);
    ck_assert_str_eq(seen.last.inside_of, "module_loaded");
    ck_assert_ptr_null(vv_self.top);
}
END_TEST

START_TEST(gate_accepted)
{
    open_host(NULL, VARVE_MON_MODULE_LOADS);
    varve_no_lock_enter();
    {
        VARVE_CONTRACT_VIOLATION(VARVE_ITEM_LOCK, "the test says so");
        raise_free();
        {
            VARVE_CONTRACT_VIOLATION(VARVE_ITEM_ALLOC, "the test says so");
            varve_no_alloc_enter();
            raise_free();
            varve_no_alloc_leave();
        }
        varve_no_alloc_enter();
        varve_allocating();
        varve_no_alloc_leave();
        want(1, VARVE_ITEM_ALLOC);
    }
    raise_free();
    want(1, VARVE_ITEM_LOCK);
    varve_no_lock_leave();
}
END_TEST

START_TEST(gate_too_late)
{
    open_host(NULL, VARVE_MON_MODULE_LOADS);
    ck_assert(varve_host_close(host));
    want(0, 0);
    uint64_t mask;
    ck_assert_int_eq(profiler.info->get_event_mask(profiler.self, &mask), VARVE_E_NOT_INITIALIZED);
    want(1, VARVE_ITEM_STATE);
}
END_TEST

static void close_inside(void *me, vv_event e)
{
    (void)me;
    if (e == VV_EVENT_module_loaded)
        ck_assert(!varve_host_close(host));
}

START_TEST(gate_closed_inside)
{
    open_host(NULL, VARVE_MON_MODULE_LOADS);
    profiler.inside = close_inside;
    raise_free();
    want(1, VARVE_ITEM_STATE);
    ck_assert(varve_host_close(host));
}
END_TEST

/* The default handler ends the process. */
START_TEST(gate_default_stops)
{
    open_host(NULL, VARVE_MON_MODULE_LOADS);
    varve_on_violation(NULL, NULL);
    varve_no_lock_enter();
    raise_free();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("contract");
    TCase *c = tcase_create("contract");
    tcase_add_loop_test(c, gate_regions, 0, VV_ARRAY_LEN(regions));
    tcase_add_loop_test(c, gate_composition, 0, VV_ARRAY_LEN(actions));
    tcase_add_test(c, gate_answers);
    tcase_add_test(c, gate_no_allocation);
    tcase_add_test(c, gate_locks);
    tcase_add_test(c, gate_destroyed_threads);
    tcase_add_test(c, gate_jumps);
    tcase_add_test(c, gate_accepted);
    tcase_add_test(c, gate_too_late);
    tcase_add_test(c, gate_closed_inside);
    tcase_add_test_raise_signal(c, gate_default_stops, SIGABRT);
    suite_add_tcase(s, c);
    return test_main(s);
}
