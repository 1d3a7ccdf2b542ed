/*
 * Attach and detach, over and over, while threads raise events as fast as they can, some of them in turn registered.
 * What a profiler has is allocated when it is attached and freed when it has ended, so that a callback that came too
 * late would be seen by AddressSanitizer, and by its own mark elsewhere. VV_DETACH_ROUNDS: how often, for `make soak`.
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>

#include "tests/control/fake.h"

enum { ROUNDS = 100, RAISERS = 3, AT_ONCE = 3 };

/* What the profiler owns: alive while it may be called. */
typedef struct {
    _Atomic uint32_t mark;
    varve_profiler *self;
    const varve_info *info;
    _Atomic uint64_t calls;
    _Atomic uint32_t leaving;
    bool from_inside;
    _Atomic unsigned *ended;
} subject;
enum { ALIVE = 0x51ab, DEAD = 0xdead };

static _Atomic bool over;
static varve_host *host;
static _Atomic uint64_t total;

static void initialize(void *me, varve_profiler *self, const varve_info *info, varve_load_kind kind, varve_code *ret)
{
    subject *s = me;
    (void)kind;
    s->self = self;
    s->info = info;
    *ret = info->set_event_mask(self, VARVE_MON_MODULE_LOADS | VARVE_MON_THREADS);
}

static void touch(subject *s)
{
    ck_assert_uint_eq(atomic_load(&s->mark), ALIVE);
    uint64_t n = atomic_fetch_add(&s->calls, 1);
    if (n >= 20 && s->from_inside && !atomic_exchange(&s->leaving, 1))
        ck_assert_int_eq(s->info->request_detach(s->self, 1), VARVE_OK);
    ck_assert_uint_eq(atomic_load(&s->mark), ALIVE);
}

static void module_loaded(void *me, varve_module_id module, varve_domain_id domain)
{
    (void)module;
    (void)domain;
    touch(me);
}

static void thread_moved(void *me, varve_thread_id thread)
{
    (void)thread;
    touch(me);
    VARVE_RAISE(host, module_loaded, 1, 1);
}

static void detached(void *me)
{
    ck_assert_uint_eq(atomic_load(&((subject *)me)->mark), ALIVE);
}

static void ended(void *me)
{
    subject *s = me;
    _Atomic unsigned *count = s->ended;
    atomic_store(&s->mark, DEAD);
    atomic_fetch_add(&total, atomic_load(&s->calls));
    free(s);
    atomic_fetch_add(count, 1);
}

static const varve_callbacks callbacks = {
    .size = sizeof callbacks,
    .version = VARVE_CONTRACT_VERSION,
    .initialize = initialize,
    .detached = detached,
    .module_loaded = module_loaded,
    .thread_moved = thread_moved,
};

/* New threads every now and then, so that threads begin and end under it too. */
static void *raise_for_a_while(void *of)
{
    bool registered = (uintptr_t)of % 2;
    if (registered)
        varve_host_thread_add(host, 9);
    for (unsigned i = 0; i < 5000 && !atomic_load(&over); i++) {
        VARVE_RAISE(host, module_loaded, 1, 1);
        VARVE_RAISE(host, thread_moved, 5);
    }
    if (registered)
        varve_host_thread_remove(host);
    return NULL;
}

static void *raise_always(void *of)
{
    for (uintptr_t n = (uintptr_t)of; !atomic_load(&over); n++) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, raise_for_a_while, (void *)n), 0);
        pthread_join(thread, NULL);
    }
    return NULL;
}

static void wait_a_little(void *me, uint64_t ms)
{
    (void)me;
    (void)ms;
    sched_yield();
}

static subject *subject_new(bool from_inside, _Atomic unsigned *count)
{
    subject *s = calloc(1, sizeof *s);
    ck_assert_ptr_nonnull(s);
    s->mark = ALIVE;
    s->from_inside = from_inside;
    s->ended = count;
    return s;
}

/* Several at once; a slot is free again a moment after `ended`, so the next one may have to ask twice. */
static void one_round(unsigned round, _Atomic unsigned *count)
{
    varve_profiler *p[AT_ONCE];
    bool asks[AT_ONCE];
    for (unsigned i = 0; i < AT_ONCE; i++) {
        asks[i] = (round + i) % 2;
        subject *s = subject_new(asks[i], count);
        varve_attach_options o = {sizeof o, &callbacks, s, i != 0, ended, s};
        varve_code code;
        while ((code = varve_host_attach(host, &o, &p[i])) == VARVE_E_BUSY)
            sched_yield();
        ck_assert_int_eq(code, VARVE_OK);
    }
    for (unsigned i = 0; i < AT_ONCE; i++)
        if (!asks[i])
            ck_assert_int_eq(varve_host_request_detach(host, p[i], 1), VARVE_OK);
    while (atomic_load(count) < AT_ONCE * (round + 1))
        sched_yield();
}

START_TEST(gate_detach_under_load)
{
    const char *asked_for = getenv("VV_DETACH_ROUNDS");
    unsigned rounds = asked_for ? (unsigned)atoi(asked_for) : ROUNDS;
    _Atomic unsigned count = 0;
    pthread_t threads[RAISERS];
    host = fake_open_with((varve_host_options){.wait = wait_a_little});
    varve_host_started(host);
    for (unsigned i = 0; i < RAISERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, raise_always, (void *)(uintptr_t)i), 0);
    for (unsigned i = 0; i < rounds; i++)
        one_round(i, &count);
    atomic_store(&over, true);
    for (unsigned i = 0; i < RAISERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert(varve_host_close(host));
    ck_assert_uint_eq(count, rounds * AT_ONCE);
    fprintf(stderr, "# %u rounds, %" PRIu64 " callbacks\n", rounds, atomic_load(&total));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("load");
    TCase *c = tcase_create("load");
    tcase_set_timeout(c, 3600);
    tcase_add_test(c, gate_detach_under_load);
    suite_add_tcase(s, c);
    return test_main(s);
}
