/* The VM raises every event, each as often as things happened, and answers every question. */
#include "config.h"

#include "tests/control/fake.h"

#include "tests/control/app.h"

enum { N = 9, WAITS = 2 * (N - 3), MANY = 64 };

static fake_profiler main_profiler;
static const varve_info *info;
static varve_profiler *self;
static _Atomic unsigned answers, collections_asked;
static _Atomic varve_function_id seen_function;

static void expect(varve_code got, varve_code want)
{
    ck_assert_msg(got == want, "got %s, wanted %s", varve_code_name(got), varve_code_name(want));
    atomic_fetch_add(&answers, 1);
}

static size_t count_of(varve_live_kind kind)
{
    uintptr_t ids[MANY];
    size_t n = 0;
    expect(info->enumerate(self, kind, ids, MANY, &n), VARVE_OK);
    ck_assert_uint_le(n, MANY);
    return n;
}

static void ask_about_function(varve_function_id id)
{
    varve_function_desc f = {.size = sizeof f};
    varve_code known = info->describe_function(self, id, VARVE_DONT_LOAD, &f);
    ck_assert(known == VARVE_OK || known == VARVE_E_UNAVAILABLE);
    expect(info->describe_function(self, id, VARVE_MAY_LOAD, &f), VARVE_OK);
    ck_assert_int_eq(strncmp(f.name, "app.", 4), 0);
    expect(info->describe_function(self, id, VARVE_DONT_LOAD, &f), VARVE_OK);
    uint32_t lines[MANY];
    size_t n;
    expect(info->function_lines(self, id, VARVE_DONT_LOAD, lines, MANY, &n), VARVE_OK);
    ck_assert_uint_gt(n, 1);
    ck_assert_uint_eq(lines[0], f.line);
    varve_module_desc m = {.size = sizeof m};
    expect(info->describe_module(self, f.module, &m), VARVE_OK);
    ck_assert_str_eq(m.path, "app.vm");
    varve_domain_desc d = {.size = sizeof d};
    expect(info->describe_domain(self, m.domain, &d), VARVE_OK);
    ck_assert_str_eq(d.name, "all");
}

static void ask_about_stack(void)
{
    varve_frame top, frames[MANY];
    varve_thread_id thread = 0;
    size_t n;
    expect(info->current_call(self, &top), VARVE_OK);
    atomic_store(&seen_function, top.function);
    expect(info->current_thread(self, &thread), VARVE_OK);
    varve_thread_desc t = {.size = sizeof t};
    expect(info->describe_thread(self, thread, &t), VARVE_OK);
    ck_assert_ptr_nonnull(t.name);
    expect(info->stack_snapshot(self, thread, frames, MANY, &n), VARVE_OK);
    ck_assert(n >= 1 && n <= VM_DEPTH && frames[0].function == top.function && frames[0].line == top.line);
    size_t again;
    expect(info->stack_snapshot(self, 0, NULL, 0, &again), VARVE_OK);
    ck_assert_uint_eq(again, n);
}

static int64_t value(varve_values_kind kind)
{
    varve_value v;
    size_t n;
    expect(info->call_values(self, kind, &v, 1, &n), VARVE_OK);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(v.kind, VARVE_VALUE_INT);
    return v.as.integer;
}

/* Every thread stands still. */
static void ask_about_all_stacks(void)
{
    uintptr_t threads[MANY];
    size_t n, frames;
    expect(info->enumerate(self, VARVE_LIVE_THREADS, threads, MANY, &n), VARVE_OK);
    for (size_t i = 0; i < n; i++)
        expect(info->stack_snapshot(self, threads[i], NULL, 0, &frames), VARVE_OK);
    VARVE_CONTRACT_VIOLATION(VARVE_ITEM_SAFEPOINT, "that it is refused is what is looked at");
    expect(info->force_collection(self), VARVE_E_CALL_SEQUENCE);
}

static void on_entered(void)
{
    ask_about_stack();
    ask_about_function(atomic_load(&seen_function));
    ck_assert_int_le(value(VARVE_VALUES_ARGUMENTS), N);
    size_t n;
    expect(info->call_values(self, VARVE_VALUES_RESULTS, NULL, 0, &n), VARVE_E_UNAVAILABLE);
    if (!atomic_exchange(&collections_asked, 1))
        expect(info->force_collection(self), VARVE_OK);
}

static void inside(void *me, vv_event e)
{
    const fake_profiler *p = me;
    varve_value v;
    size_t n;
    if (e == VV_EVENT_initialize) {
        info = p->info;
        self = p->self;
    } else if (e == VV_EVENT_call_entered) {
        on_entered();
    } else if (e == VV_EVENT_call_left) {
        if (info->call_values(self, VARVE_VALUES_RESULTS, &v, 1, &n) == VARVE_OK)
            value(VARVE_VALUES_RESULTS);
    } else if (e == VV_EVENT_collection_started) {
        ask_about_all_stacks();
    } else if (e == VV_EVENT_function_loaded) {
        ck_assert_uint_eq(count_of(VARVE_LIVE_FUNCTIONS), VV_ARRAY_LEN(app_bodies));
    } else if (e == VV_EVENT_module_loaded || e == VV_EVENT_module_unloaded) {
        ck_assert_uint_eq(count_of(VARVE_LIVE_MODULES), 1);
    } else if (e == VV_EVENT_domain_loaded || e == VV_EVENT_domain_unloaded) {
        ck_assert_uint_eq(count_of(VARVE_LIVE_DOMAINS), 1);
    } else if (e == VV_EVENT_thread_created || e == VV_EVENT_thread_destroyed) {
        ck_assert_uint_ge(count_of(VARVE_LIVE_THREADS), 1);
    }
}

static void check_ids(varve_host_options *o)
{
    o->check_ids = true;
}

static void expect_counts(unsigned rounds)
{
    const struct {
        vv_event e;
        unsigned want;
    } table[] = {
        {VV_EVENT_domain_loaded, 1},
        {VV_EVENT_domain_unloaded, 1},
        {VV_EVENT_module_loaded, 1},
        {VV_EVENT_module_unloaded, 1},
        {VV_EVENT_function_loaded, VV_ARRAY_LEN(app_bodies)},
        {VV_EVENT_function_unloaded, VV_ARRAY_LEN(app_bodies)},
        {VV_EVENT_thread_created, 3 * rounds},
        {VV_EVENT_thread_started, 3 * rounds},
        {VV_EVENT_thread_destroyed, 3 * rounds},
        {VV_EVENT_call_entered, (unsigned)app_calls(N) * rounds},
        {VV_EVENT_call_left, (unsigned)app_calls(N) * rounds},
        {VV_EVENT_exception_thrown, rounds},
        {VV_EVENT_exception_caught, rounds},
        {VV_EVENT_exception_unwound, APP_DIGS * rounds},
        {VV_EVENT_thread_suspended, WAITS * rounds},
        {VV_EVENT_thread_resumed, WAITS * rounds},
        {VV_EVENT_object_allocated, APP_OBJECTS * rounds},
        {VV_EVENT_object_freed, APP_OBJECTS * rounds},
        /* one a round by the app, the profiler's, and the last */
        {VV_EVENT_world_stopping, rounds + 2},
        {VV_EVENT_world_stopped, rounds + 2},
        {VV_EVENT_world_resumed, rounds + 2},
        {VV_EVENT_collection_started, rounds + 2},
        {VV_EVENT_collection_ended, rounds + 2},
        {VV_EVENT_shutdown, 1},
    };
    for (unsigned i = 0; i < VV_ARRAY_LEN(table); i++)
        ck_assert_msg(fake_count(&main_profiler, table[i].e) == table[i].want, "%s: %u, wanted %u",
                      vv_event_rows[table[i].e].name, fake_count(&main_profiler, table[i].e), table[i].want);
}

/* A thread that the host does not know asks at any time, but is none that runs calls. */
static void *ask_as_stranger(void *unused)
{
    varve_frame frame;
    varve_domain_desc d = {.size = sizeof d};
    ck_assert_uint_eq(count_of(VARVE_LIVE_THREADS), 0);
    expect(info->current_call(self, &frame), VARVE_E_UNAVAILABLE);
    expect(info->stack_snapshot(self, 0, NULL, 0, &(size_t){0}), VARVE_E_UNAVAILABLE);
    expect(info->describe_domain(self, (varve_domain_id)&frame, &d), VARVE_E_ARG);
    return unused;
}

START_TEST(raises_all_and_answers_all)
{
    main_profiler = (fake_profiler){.inside = inside};
    ck_assert(vm_open(check_ids));
    for (uint32_t i = VV_EVENT_domain_loaded; i < VV_EVENTS; i++)
        main_profiler.mask |= vv_event_rows[i].bit;
    ck_assert_uint_eq(main_profiler.mask | VV_IMMUTABLE_BITS, vv_known_bits());
    main_profiler.mask |= VV_IMMUTABLE_BITS;
    ck_assert_int_eq(fake_attach(vm_host(), &main_profiler, false), VARVE_OK);
    vm_started();
    vm_domain *d = vm_domain_open("all", NULL);
    vm_module *m = vm_load(d, &app);
    unsigned rounds = 0;
    do { /* until a thread has gone on on another OS thread than before */
        int64_t result;
        vm_start(d, vm_function_of(m, 0), N, "main", &result);
        ck_assert_uint_eq(vm_run(3), 0);
        ck_assert_int_eq(result, app_result(N));
        rounds++;
    } while (!fake_count(&main_profiler, VV_EVENT_thread_moved) && rounds < 1000);
    ck_assert_uint_gt(fake_count(&main_profiler, VV_EVENT_thread_moved), 0);
    pthread_t stranger;
    ck_assert_int_eq(pthread_create(&stranger, NULL, ask_as_stranger, NULL), 0);
    pthread_join(stranger, NULL);
    vm_domain_close(d, VARVE_ENDED_OK);
    ck_assert(vm_close());
    expect_counts(rounds);
    ck_assert_uint_gt(atomic_load(&answers), app_calls(N));
}
END_TEST

/* A thread that nobody catches for ends errored, and so do its calls. */
START_TEST(uncaught)
{
    static const vm_op ops[] = {{VM_CALL, 1, 1, 1}, {VM_END, 2, 0, 0}};
    static const vm_op thrower[] = {{VM_THROW, 3, 0, 0}, {VM_END, 4, 0, 0}};
    static const vm_body bodies[] = {{"main", ops, 1}, {"thrower", thrower, 3}};
    static const vm_source source = {"bad", "bad.vm", bodies, VV_ARRAY_LEN(bodies)};
    fake_profiler p = {.mask = VARVE_MON_EXCEPTIONS | VARVE_MON_THREADS};
    ck_assert(vm_open(NULL));
    ck_assert_int_eq(fake_attach(vm_host(), &p, true), VARVE_OK);
    vm_started();
    vm_domain *d = vm_domain_open("bad", NULL);
    vm_start(d, vm_function_of(vm_load(d, &source), 0), 1, "main", NULL);
    ck_assert_uint_eq(vm_run(1), 1);
    vm_domain_close(d, VARVE_ENDED_ERRORED);
    ck_assert(vm_close());
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_exception_thrown), 1);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_exception_unwound), 2);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_exception_caught), 0);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_thread_destroyed), 1);
}
END_TEST

int main(void)
{
    TCase *t = test_case("vm", 120);
    tcase_add_test(t, raises_all_and_answers_all);
    tcase_add_test(t, uncaught);
    return test_run();
}
