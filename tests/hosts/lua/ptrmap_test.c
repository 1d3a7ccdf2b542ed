#include "config.h"

#include "hosts/lua/ptrmap.h"
#include "tests/testing.h"

#define KEYS 512

/* Random puts and removals against an array; keys share homes, as their low bits are few. */
START_TEST(map_as_array)
{
    const char *text_seed = getenv("VV_SEED");
    unsigned seed = text_seed ? (unsigned)strtoul(text_seed, NULL, 10) : 1;
    fprintf(stderr, "# VV_SEED=%u\n", seed);
    static char keys[KEYS * 64];
    void *want[KEYS] = {0};
    vl_ptrmap m = {0};
    ck_assert_ptr_null(vl_ptrmap_get(&m, keys));
    ck_assert_ptr_null(vl_ptrmap_remove(&m, keys));
    for (int round = 0; round < 200000; round++) {
        size_t k = (size_t)rand_r(&seed) % KEYS;
        const void *key = keys + k * 64;
        if (rand_r(&seed) % 2) {
            want[k] = keys + (size_t)rand_r(&seed) % sizeof keys;
            ck_assert(vl_ptrmap_put(&m, key, want[k]));
        } else {
            ck_assert_ptr_eq(vl_ptrmap_remove(&m, key), want[k]);
            want[k] = NULL;
        }
        size_t other = (size_t)rand_r(&seed) % KEYS;
        ck_assert_ptr_eq(vl_ptrmap_get(&m, keys + other * 64), want[other]);
    }
    vl_ptrmap_done(&m);
}
END_TEST

int main(void)
{
    TCase *tc = test_case("ptrmap", 0);
    tcase_add_test(tc, map_as_array);
    return test_run();
}
