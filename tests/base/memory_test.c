#include "config.h"

#include "base/arena.h"
#include "base/grow.h"
#include "base/map.h"
#include "tests/testing.h"

START_TEST(map_numbers_keys_densely)
{
    enum { KEYS = 100000 };
    vv_map m;
    vv_map_init(&m, 8);
    ck_assert_uint_eq(vv_map_find(&m, "12345678"), VV_MAP_NONE);
    for (uint64_t i = 0; i < KEYS; i++) {
        uint8_t key[8];
        vv_put64(key, i * i);
        bool fresh;
        ck_assert_uint_eq(vv_map_put(&m, key, &fresh), (uint32_t)i);
        ck_assert(fresh);
        ck_assert_uint_eq(vv_map_put(&m, key, &fresh), (uint32_t)i);
        ck_assert(!fresh);
    }
    ck_assert_uint_eq(m.count, KEYS);
    for (uint64_t i = 0; i < KEYS; i++) {
        uint8_t key[8];
        vv_put64(key, i * i);
        ck_assert_uint_eq(vv_map_find(&m, key), (uint32_t)i);
        ck_assert_mem_eq(vv_map_key(&m, (uint32_t)i), key, 8);
        vv_put64(key, i * i + (UINT64_C(1) << 60));
        ck_assert_uint_eq(vv_map_find(&m, key), VV_MAP_NONE);
    }
    ck_assert_uint_ge(vv_map_bytes(&m), KEYS * 8);
    vv_map_done(&m);
    vv_map_done(&m);
}
END_TEST

START_TEST(map_reserved_and_asked_for_many)
{
    enum { KEYS = 1000, ASKED = 2 * KEYS + 3 };
    static const uint32_t reserve[] = {0, 1, 48, 49, KEYS, 5000};
    static uint64_t keys[ASKED];
    static const void *asked[ASKED];
    static uint32_t found[ASKED];
    for (uint64_t i = 0; i < ASKED; i++) {
        keys[i] = i * 0x9e3779b97f4a7c15u;
        asked[i] = &keys[i];
    }
    for (size_t k = 0; k < VV_ARRAY_LEN(reserve); k++) {
        vv_map m;
        vv_map_init(&m, 8);
        vv_map_find_many(&m, asked, 20, found);
        ck_assert_uint_eq(found[0], VV_MAP_NONE);
        ck_assert_uint_eq(found[19], VV_MAP_NONE);
        ck_assert(vv_map_reserve(&m, reserve[k]));
        size_t held = vv_map_bytes(&m);
        for (uint32_t i = 0; i < KEYS; i++) {
            if (i == 500)
                ck_assert(vv_map_reserve(&m, 100)); /* less than there is */
            ck_assert_uint_eq(vv_map_put(&m, &keys[i], NULL), i);
        }
        if (reserve[k] >= KEYS)
            ck_assert_uint_eq(vv_map_bytes(&m), held);
        vv_map_find_many(&m, asked, ASKED, found);
        for (uint32_t i = 0; i < ASKED; i++)
            ck_assert_uint_eq(found[i], i < KEYS ? i : VV_MAP_NONE);
        ck_assert(!vv_map_reserve(&m, UINT32_MAX));
        ck_assert_uint_eq(vv_map_find(&m, &keys[7]), 7);
        vv_map_done(&m);
    }
}
END_TEST

/* A table held so full that probes run into each other, against a plain array. */
START_TEST(map_agrees_with_a_linear_search)
{
    static const size_t widths[] = {1, 3, 16, 40};
    test_rng g = test_seeded("map");
    for (size_t w = 0; w < VV_ARRAY_LEN(widths); w++) {
        size_t n = widths[w];
        uint8_t keys[600][40];
        uint32_t count = 0;
        vv_map m;
        vv_map_init(&m, n);
        for (int step = 0; step < 600; step++) {
            uint8_t key[40] = {0};
            key[n - 1] = (uint8_t)test_random(&g);
            key[0] ^= (uint8_t)test_below(&g, 3);
            uint32_t want = 0;
            while (want < count && memcmp(keys[want], key, n) != 0)
                want++;
            uint8_t *exact = test_exact(key, n);
            ck_assert_uint_eq(vv_map_find(&m, exact), want < count ? want : VV_MAP_NONE);
            ck_assert_uint_eq(vv_map_put(&m, exact, NULL), want);
            free(exact);
            if (want == count)
                memcpy(keys[count++], key, n);
        }
        ck_assert_uint_eq(m.count, count);
        vv_map_done(&m);
    }
}
END_TEST

/* Keys appended, with or without room made before and puts between, are found as if each had been put. */
START_TEST(map_appended_to)
{
    enum { KEYS = 700 };
    static const uint32_t reserve[] = {0, 1, 100, KEYS, 2 * KEYS}, put_each[] = {1, 7, 300, UINT32_MAX};
    for (size_t c = 0; c < VV_ARRAY_LEN(reserve) * VV_ARRAY_LEN(put_each); c++) {
        uint32_t each = put_each[c / VV_ARRAY_LEN(reserve)];
        vv_map m;
        vv_map_init(&m, 8);
        ck_assert(vv_map_catch_up(&m));
        ck_assert(vv_map_reserve(&m, reserve[c % VV_ARRAY_LEN(reserve)]));
        for (uint32_t i = 0; i < KEYS; i++) {
            uint64_t key = i * UINT64_C(0x9e3779b97f4a7c15), former = (i / 2) * UINT64_C(0x9e3779b97f4a7c15);
            bool puts = i % each == each - 1, fresh = false;
            ck_assert_uint_eq(puts ? vv_map_put(&m, &key, &fresh) : vv_map_append(&m, &key), i);
            ck_assert(fresh == puts);
            if (puts && i)
                ck_assert_uint_eq(vv_map_put(&m, &former, NULL), i / 2);
        }
        uint64_t last = (KEYS - 1) * UINT64_C(0x9e3779b97f4a7c15);
        uint32_t early = vv_map_find(&m, &last);
        ck_assert(early == VV_MAP_NONE || early == KEYS - 1);
        ck_assert(vv_map_catch_up(&m));
        ck_assert(vv_map_catch_up(&m));
        ck_assert_uint_eq(m.count, KEYS);
        for (uint32_t i = 0; i < 2 * KEYS; i++) {
            uint64_t key = i * UINT64_C(0x9e3779b97f4a7c15);
            ck_assert_uint_eq(vv_map_find(&m, &key), i < KEYS ? i : VV_MAP_NONE);
        }
        vv_map_done(&m);
    }
}
END_TEST

START_TEST(arena_holds_what_it_gave)
{
    vv_arena a = vv_arena_init(1 << 20);
    char *pieces[200];
    for (size_t i = 0; i < 200; i++) {
        pieces[i] = vv_arena_alloc(&a, i * 7);
        ck_assert_ptr_nonnull(pieces[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        memset(pieces[i], (int)i, i * 7);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * 7; k++)
            ck_assert_int_eq((uint8_t)pieces[i][k], (uint8_t)i);
    vv_str s = vv_arena_str(&a, (vv_str){"abcdef", 3});
    ck_assert_str_eq(s.p, "abc");
    ck_assert_uint_eq(s.n, 3);
    vv_arena_done(&a);
    vv_arena_done(&a);
}
END_TEST

START_TEST(arena_keeps_its_cap)
{
    static const size_t sizes[] = {1, 100, 5000, 20000};
    for (size_t i = 0; i < VV_ARRAY_LEN(sizes); i++) {
        vv_arena a = vv_arena_init(100000);
        size_t given = 0;
        while (vv_arena_alloc(&a, sizes[i]))
            given += sizes[i];
        ck_assert_uint_le(given, 100000);
        ck_assert_uint_le(a.used, 100000);
        ck_assert_uint_ge(given, sizes[i] == 1 ? 5000 : 50000);
        vv_arena_done(&a);
    }
    vv_arena a = vv_arena_init(1000);
    ck_assert_ptr_null(vv_arena_alloc(&a, SIZE_MAX));
    ck_assert_ptr_null(vv_arena_alloc(&a, SIZE_MAX - 8));
    ck_assert_ptr_null(vv_arena_alloc(&a, 1001));
    ck_assert_ptr_null(vv_arena_str(&a, (vv_str){"x", SIZE_MAX}).p);
    ck_assert_ptr_nonnull(vv_arena_alloc(&a, 100));
    vv_arena_done(&a);
    vv_arena none = vv_arena_init(0);
    ck_assert_ptr_null(vv_arena_alloc(&none, 0));
    vv_arena_done(&none);
}
END_TEST

START_TEST(arrays_grow_by_their_end)
{
    enum { ITEMS = 1000 };
    uint32_t *items = NULL;
    size_t cap = 0;
    for (uint32_t i = 0; i < ITEMS; i++) {
        ck_assert(vv_grow(&items, &cap, i, sizeof *items));
        ck_assert_uint_gt(cap, i);
        items[i] = i;
    }
    for (uint32_t i = 0; i < ITEMS; i++)
        ck_assert_uint_eq(items[i], i);
    uint32_t *before = items;
    size_t room = cap;
    ck_assert(!vv_grow(&items, &cap, cap, SIZE_MAX / 2));
    ck_assert_ptr_eq(items, before);
    ck_assert_uint_eq(cap, room);
    free(items);
}
END_TEST

START_TEST(first_error_wins)
{
    vv_error err = {0};
    vv_context(&err, "nothing yet");
    ck_assert_int_eq(err.code, VV_OK);
    ck_assert_int_eq(vv_fail(&err, VV_ERR_LIMIT, "first %d", 1), VV_ERR_LIMIT);
    ck_assert_int_eq(vv_fail(&err, VV_ERR_ARG, "second"), VV_ERR_ARG);
    ck_assert_int_eq(vv_fail_os(&err, 5, "third"), VV_ERR_IO);
    ck_assert_int_eq(err.code, VV_ERR_LIMIT);
    ck_assert_str_eq(err.msg, "first 1");
    vv_context(&err, "file %s", "x");
    ck_assert_str_eq(err.msg, "file x: first 1");
    vv_error_clear(&err);
    ck_assert_int_eq(vv_fail_os(&err, 2, "open %s", "y"), VV_ERR_NOTFOUND);
    ck_assert_int_eq(err.os, 2);
    ck_assert_str_eq(err.msg, "open y: No such file or directory");
    vv_context(&err, "%s", "open y"); /* is there already */
    ck_assert_str_eq(err.msg, "open y: No such file or directory");
    vv_context(&err, "ope");
    ck_assert_str_eq(err.msg, "ope: open y: No such file or directory");
    vv_error_clear(&err);
    ck_assert_int_eq(vv_fail_decode(&err, "InvalidTag", 7, "%0300d", 1), VV_ERR_CORRUPT);
    ck_assert_uint_eq(strlen(err.msg), sizeof err.msg - 1);
    ck_assert_str_eq(err.name, "InvalidTag");
    vv_context(&err, "more");
    ck_assert_uint_eq(strlen(err.msg), sizeof err.msg - 1);
    ck_assert_int_eq(vv_fail(NULL, VV_ERR_BUSY, "no object"), VV_ERR_BUSY);
}
END_TEST

int main(void)
{
    TCase *t = test_case("memory", 60);
    tcase_add_test(t, map_numbers_keys_densely);
    tcase_add_test(t, map_reserved_and_asked_for_many);
    tcase_add_test(t, map_agrees_with_a_linear_search);
    tcase_add_test(t, map_appended_to);
    tcase_add_test(t, arena_holds_what_it_gave);
    tcase_add_test(t, arena_keeps_its_cap);
    tcase_add_test(t, arrays_grow_by_their_end);
    tcase_add_test(t, first_error_wins);
    return test_run();
}
