/* The memory governor: pools that don't borrow, all or nothing, one relief, least charges. */
#include "config.h"

#include "runtime/governor.h"

#include <pthread.h>

#include "runtime/sizing.h"
#include "tests/testing.h"

static const uint64_t limits[VV_POOLS] = {1 << 20, 2 << 20, 4 << 20};

enum { ASKERS = 16 };

static vv_governor shared;
static pthread_barrier_t start;

static void *ask_a_quarter(void *arg)
{
    bool *got = arg;
    pthread_barrier_wait(&start);
    *got = vv_reserve(&shared, VV_POOL_GENERAL, VV_OWN_CALLS, limits[VV_POOL_GENERAL] / 4);
    return NULL;
}

/* Sixteen threads, each asking for a quarter of the pool: four get it, whatever the order. */
START_TEST(gate_sixteen_askers)
{
    for (unsigned round = 0; round < 50; round++) {
        vv_governor_init(&shared, limits);
        pthread_barrier_init(&start, NULL, ASKERS);
        pthread_t id[ASKERS];
        bool got[ASKERS];
        unsigned n = 0;
        for (unsigned i = 0; i < ASKERS; i++)
            ck_assert_int_eq(pthread_create(&id[i], NULL, ask_a_quarter, &got[i]), 0);
        for (unsigned i = 0; i < ASKERS; i++)
            pthread_join(id[i], NULL);
        for (unsigned i = 0; i < ASKERS; i++)
            n += got[i];
        ck_assert_uint_eq(n, 4);
        ck_assert_uint_eq(atomic_load(&shared.pools[VV_POOL_GENERAL].used), limits[VV_POOL_GENERAL]);
        ck_assert_uint_eq(atomic_load(&shared.denials[VV_POOL_GENERAL][VV_OWN_CALLS]), ASKERS - 4);
        pthread_barrier_destroy(&start);
    }
}
END_TEST

/* Each pool takes its limit to the byte and no more, whatever the others hold; each owner's denial is its own. */
START_TEST(gate_pools_do_not_borrow)
{
    vv_governor g;
    vv_governor_init(&g, limits);
    for (unsigned p = 0; p < VV_POOLS; p++)
        ck_assert(vv_reserve(&g, p, VV_OWN_WRITER, limits[p]));
    for (unsigned p = 0; p < VV_POOLS; p++) {
        vv_release(&g, p, VV_OWN_WRITER, limits[p]);
        for (unsigned k = 0; k < VV_POOLS; k++)
            for (unsigned o = 0; o < VV_OWNERS && k != p; o++)
                ck_assert(!vv_reserve(&g, k, o, 1));
        ck_assert(!vv_reserve(&g, p, VV_OWN_VALUES, limits[p] + 1));
        ck_assert(!vv_reserve(&g, p, VV_OWN_VALUES, UINT64_MAX));
        ck_assert(vv_reserve(&g, p, VV_OWN_VALUES, limits[p]));
    }
    for (unsigned p = 0; p < VV_POOLS; p++)
        for (unsigned o = 0; o < VV_OWNERS; o++)
            ck_assert_uint_eq(atomic_load(&g.denials[p][o]), VV_POOLS - 1 + (o == VV_OWN_VALUES ? 2 : 0));
}
END_TEST

typedef struct {
    vv_governor *g;
    uint64_t cached;
    unsigned calls;
} cache;

static void give_back(void *ctx)
{
    cache *c = ctx;
    c->calls++;
    vv_release(c->g, VV_POOL_GENERAL, VV_OWN_TRANSPORT, c->cached);
    c->cached = 0;
}

/* A denied reservation asks for relief once and is tried again once: what a cache held is enough, or it is counted. */
START_TEST(gate_denial_routine)
{
    vv_governor g;
    vv_governor_init(&g, limits);
    cache c = {&g, 300000, 0};
    vv_governor_on_denial(&g, give_back, &c);
    ck_assert(vv_reserve(&g, VV_POOL_GENERAL, VV_OWN_TRANSPORT, limits[VV_POOL_GENERAL]));
    ck_assert_uint_eq(c.calls, 0);
    ck_assert(vv_reserve(&g, VV_POOL_GENERAL, VV_OWN_CALLS, 300000));
    ck_assert_uint_eq(c.calls, 1);
    ck_assert_uint_eq(atomic_load(&g.denials[VV_POOL_GENERAL][VV_OWN_CALLS]), 0);
    ck_assert(!vv_reserve(&g, VV_POOL_GENERAL, VV_OWN_CALLS, 1));
    ck_assert_uint_eq(c.calls, 2);
    ck_assert_uint_eq(atomic_load(&g.denials[VV_POOL_GENERAL][VV_OWN_CALLS]), 1);
    ck_assert_uint_eq(atomic_load(&g.pools[VV_POOL_GENERAL].used), limits[VV_POOL_GENERAL]);
}
END_TEST

/* What an occupied item of each owner is charged at least, reserved or allocated; both give back what they took. */
static const struct {
    vv_owner owner;
    uint64_t least;
} least[] = {
    {VV_OWN_TRANSPORT, 262144}, {VV_OWN_POPULATION, 256}, {VV_OWN_CALLS, 320},    {VV_OWN_JOINS, 256},
    {VV_OWN_EVIDENCE, 256},     {VV_OWN_VALUES, 512},     {VV_OWN_WRITER, 65536},
};
_Static_assert(VV_ARRAY_LEN(least) == VV_OWNERS, "each owner");

START_TEST(gate_least_charges)
{
    vv_owner owner = least[_i].owner;
    uint64_t n = least[_i].least;
    vv_governor g;
    vv_governor_init(&g, limits);
    _Atomic uint64_t *used = &g.pools[VV_POOL_GENERAL].used;
    const uint64_t sizes[] = {1, n - 1, n, n + 1, 3 * n};
    for (unsigned i = 0; i < VV_ARRAY_LEN(sizes); i++) {
        ck_assert(vv_reserve(&g, VV_POOL_GENERAL, owner, sizes[i]));
        ck_assert_uint_eq(atomic_load(used), sizes[i] < n ? n : sizes[i]);
        vv_release(&g, VV_POOL_GENERAL, owner, sizes[i]);
        ck_assert_uint_eq(atomic_load(used), 0);
    }
    void *tiny = vv_gov_alloc(&g, VV_POOL_GENERAL, owner, 1);
    ck_assert_ptr_nonnull(tiny);
    ck_assert_uint_eq(atomic_load(used), n);
    tiny = vv_gov_grow(&g, VV_POOL_GENERAL, owner, tiny, 1, 100);
    ck_assert_uint_eq(atomic_load(used), n);
    vv_gov_free(&g, VV_POOL_GENERAL, owner, tiny, 100);
    vv_release(&g, VV_POOL_GENERAL, owner, 0);
    ck_assert_uint_eq(atomic_load(used), 0);
}
END_TEST

/* Growth, failure and free leave nothing behind. */
START_TEST(charges_of_a_block)
{
    static const uint64_t wide[VV_POOLS] = {0, 0, 100000};
    vv_governor g;
    vv_governor_init(&g, wide);
    _Atomic uint64_t *used = &g.pools[VV_POOL_GENERAL].used;
    uint8_t *p = vv_gov_alloc(&g, VV_POOL_GENERAL, VV_OWN_CALLS, 1000);
    ck_assert_uint_eq(atomic_load(used), 1024 + 64);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_uint_eq(p[i], 0);
    memset(p, 7, 1000);
    p = vv_gov_grow(&g, VV_POOL_GENERAL, VV_OWN_CALLS, p, 1000, 2000);
    ck_assert_uint_eq(atomic_load(used), 2048 + 64);
    for (unsigned i = 0; i < 2000; i++)
        ck_assert_uint_eq(p[i], i < 1000 ? 7 : 0);
    ck_assert_ptr_null(vv_gov_grow(&g, VV_POOL_GENERAL, VV_OWN_CALLS, p, 2000, 99000));
    ck_assert_uint_eq(p[999], 7);
    ck_assert_ptr_null(vv_gov_alloc(&g, VV_POOL_GENERAL, VV_OWN_CALLS, SIZE_MAX));
    vv_gov_free(&g, VV_POOL_GENERAL, VV_OWN_CALLS, p, 2000);
    vv_gov_free(&g, VV_POOL_GENERAL, VV_OWN_CALLS, NULL, 77);
    ck_assert_uint_eq(atomic_load(used), 0);
    ck_assert_uint_eq(vv_alloc_charge(VV_OWN_CALLS, VV_ALLOC_LARGE + 1), VV_ALLOC_LARGE + VV_ALLOC_PAGE);
}
END_TEST

/* The table of sizing policy 1. */
static const struct {
    uint64_t total, control, manual, general, slots, segment, epoch, queue, single;
} sizes[] = {
    {8921088, 2097152, 2097152, 4726784, 224, 262144, 1181696, 1024, 295424},
    {16 << 20, 2097152, 2097152, 12582912, 224, 393216, 3145728, 1536, 786432},
    {32 << 20, 2097152, 2097152, 29360128, 224, 917504, 7340032, 3584, 1835008},
    {64 << 20, 4194304, 4194304, 58720256, 480, 1835008, 14680064, 7168, 3670016},
    {128 << 20, 8388608, 8388608, 117440512, 992, 3670016, 29360128, 14336, 7340032},
    {256 << 20, 16777216, 16777216, 234881024, 2016, 4194304, 58720256, 16384, 14680064},
    {512 << 20, 16777216, 16777216, 503316480, 2016, 4194304, 67108864, 16384, 16777216},
    {1 << 30, 16777216, 16777216, 1040187392, 2016, 4194304, 67108864, 16384, 16777216},
};

START_TEST(gate_derived_sizing)
{
    vv_sizing z;
    ck_assert(vv_sizing_derive(sizes[_i].total, &z));
    ck_assert_uint_eq(z.control, sizes[_i].control);
    ck_assert_uint_eq(z.manual, sizes[_i].manual);
    ck_assert_uint_eq(z.general, sizes[_i].general);
    ck_assert_uint_eq(z.control + z.manual + z.general, sizes[_i].total);
    ck_assert_uint_eq(z.slots, sizes[_i].slots);
    ck_assert_uint_eq(z.segment_target, sizes[_i].segment);
    ck_assert_uint_eq(z.epoch_target, sizes[_i].epoch);
    ck_assert_uint_eq(z.queue_slots, sizes[_i].queue);
    ck_assert_uint_eq(z.single_value, sizes[_i].single);
}
END_TEST

/* What the profiler takes by itself, of a limited address space. */
START_TEST(gate_default_memory)
{
    ck_assert_uint_eq(vv_sizing_total(UINT64_MAX), 268435456);
    ck_assert_uint_eq(vv_sizing_total(2147483648), 268435456);
    ck_assert_uint_eq(vv_sizing_total(1073741824), 134217728);
    ck_assert_uint_eq(vv_sizing_total(71368704), 8921088);
    ck_assert_uint_eq(vv_sizing_total(1000), 8921088);
}
END_TEST

START_TEST(gate_sizing_refuses_too_little)
{
    vv_sizing z = {.slots = 7};
    ck_assert(!vv_sizing_derive(8921087, &z));
    ck_assert(!vv_sizing_derive(0, &z));
    ck_assert_uint_eq(z.slots, 7);
}
END_TEST

int main(void)
{
    TCase *c = test_case("governor", 30);
    tcase_add_test(c, gate_sixteen_askers);
    tcase_add_test(c, gate_pools_do_not_borrow);
    tcase_add_test(c, gate_denial_routine);
    tcase_add_loop_test(c, gate_least_charges, 0, (int)VV_ARRAY_LEN(least));
    tcase_add_test(c, charges_of_a_block);
    tcase_add_loop_test(c, gate_derived_sizing, 0, (int)VV_ARRAY_LEN(sizes));
    tcase_add_test(c, gate_default_memory);
    tcase_add_test(c, gate_sizing_refuses_too_little);
    return test_run();
}
