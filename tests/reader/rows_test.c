#include "config.h"

#include "reader/fold.h"

#include "tests/testing.h"

#include "tests/reader/build.h"

enum { CONTEXTS = 300, SEGMENTS = 12 };

static int by_key(const void *a, const void *b)
{
    return memcmp(((const vv_cct_row *)a)->key.b, ((const vv_cct_row *)b)->key.b, 32);
}

typedef enum { ASCENDING, DESCENDING, MIXED, ORDERS } order;

/* Some of the contexts, in that order; what they add goes to want. */
static size_t some_rows(test_rng *g, order in, const vv_cct_row *all, vv_cct_row *ret, uint64_t *want)
{
    size_t n = 0;
    uint64_t one_in = 1 + test_below(g, 4);
    for (size_t i = 0; i < CONTEXTS; i++) {
        if (test_below(g, one_in) != 0)
            continue;
        ret[n] = all[i];
        ret[n].defined = test_below(g, 2);
        ret[n].counters.started = test_below(g, 1000);
        want[i] += ret[n++].counters.started;
    }
    for (size_t i = 0; in == DESCENDING && i < n / 2; i++) {
        vv_cct_row t = ret[i];
        ret[i] = ret[n - 1 - i];
        ret[n - 1 - i] = t;
    }
    for (size_t i = 1; in == MIXED && i < n; i++) {
        size_t k = test_below(g, i + 1);
        vv_cct_row t = ret[i];
        ret[i] = ret[k];
        ret[k] = t;
    }
    return n;
}

static void add_segment(test_store *t, uint64_t seq, const vv_cct_row *rows, size_t n)
{
    vv_wr w = vv_wr_growing(1 << 20);
    vv_data_begin(&w, &t->euid, seq);
    test_group g;
    test_group_begin(&g);
    for (size_t i = 0; i < n; i++)
        test_group_row(&g, &rows[i]);
    vv_thread_ref root = test_thread(t, 1);
    test_group_end(&g, &w, &root);
    vv_data_end(&w, 1);
    test_store_segment(t, VV_PLANE_DATA, seq, w);
}

/* Whatever the order of a group's rows, and whichever contexts it has: each is found once, and its rows add up. */
START_TEST(rows_in_any_order)
{
    test_rng g = test_seeded("rows");
    vv_cct_row all[CONTEXTS], some[CONTEXTS];
    for (uint32_t i = 0; i < CONTEXTS; i++)
        all[i] = test_context(i + 1, true);
    qsort(all, CONTEXTS, sizeof all[0], by_key);
    for (int round = 0; round < 60; round++) {
        uint64_t want[CONTEXTS] = {0};
        bool met[CONTEXTS] = {false};
        test_store t;
        test_store_begin(&t);
        vv_meta_record meta[] = {test_started(&t, 1), test_ended(&t, 1, 1, SEGMENTS, SEGMENTS)};
        test_store_meta(&t, 1, 0, meta, VV_ARRAY_LEN(meta));
        for (uint64_t seq = 1; seq <= SEGMENTS; seq++) {
            order in = round % 2 ? (order)test_below(&g, ORDERS) : ASCENDING;
            size_t n = some_rows(&g, in, all, some, want);
            for (size_t i = 0; i < n; i++)
                met[(const vv_cct_row *)bsearch(&some[i], all, CONTEXTS, sizeof all[0], by_key) - all] = true;
            add_segment(&t, seq, some, n);
        }
        test_store_open(&t);
        vv_fold *f = test_load(&t, 1);
        ck_assert(!f->failed && f->complete);
        size_t count = 0;
        for (size_t i = 0; i < CONTEXTS; i++) {
            uint32_t at = vv_fold_find_context(f, &all[i].key);
            ck_assert((at != VV_MAP_NONE) == met[i]);
            count += met[i];
            if (!met[i])
                continue;
            ck_assert_mem_eq(f->contexts[at].key.b, all[i].key.b, 32);
            ck_assert_uint_eq(f->contexts[at].counters.started, want[i]);
        }
        ck_assert_uint_eq(f->context_count, count);
        uint32_t *at = vv_fold_order_contexts(f);
        for (size_t i = 1; i < count; i++)
            ck_assert_int_lt(memcmp(&f->contexts[at[i - 1]].key, &f->contexts[at[i]].key, 32), 0);
        free(at);
        vv_fold_free(f);
        test_store_done(&t);
    }
}
END_TEST

int main(void)
{
    TCase *t = test_case("rows", 60);
    tcase_add_test(t, rows_in_any_order);
    return test_run();
}
