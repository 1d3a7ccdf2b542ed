#include "config.h"

#include "format/cct.h"

#include "tests/testing.h"

#include "tests/format/fixture.h"

/* The section's verdict; rows go to rows and over (may be NULL), their counts to n. */
static vv_code decode(const uint8_t *p, size_t len, uint8_t health, uint64_t count, vv_cct_row *rows,
                      vv_cct_overflow *over, size_t n[2], vv_error *err)
{
    vv_cct_cursor c;
    vv_cct_row row;
    vv_cct_overflow o;
    size_t k[2] = {0, 0};
    vv_cct_open(&c, p, len, health, count);
    while (vv_cct_next_context(&c, rows ? &rows[k[0]] : &row))
        k[0]++;
    while (vv_cct_next_overflow(&c, over ? &over[k[1]] : &o))
        k[1]++;
    if (n)
        memcpy(n, k, sizeof k);
    return vv_cct_finish(&c, err);
}

static bool counters_eq(const vv_counters *a, const vv_counters *b)
{
    return a->started == b->started && a->selected == b->selected && a->ok == b->ok && a->error == b->error &&
           a->cancelled == b->cancelled && a->exited == b->exited && a->inclusive_ns == b->inclusive_ns &&
           a->direct_child_ns == b->direct_child_ns && a->await_ns == b->await_ns && a->await_count == b->await_count;
}

/* The same with deltas taken as they lie. */
static vv_code decode_by_deltas(const uint8_t *p, size_t len, uint8_t health, uint64_t count, vv_error *err)
{
    vv_cct_cursor c, plain;
    vv_cct_row row, want;
    vv_cct_open(&c, p, len, health, count);
    vv_cct_open(&plain, p, len, health, count);
    for (;;) {
        const uint8_t *delta = vv_cct_next_delta(&c);
        bool is_row = delta || vv_cct_next_context(&c, &row);
        ck_assert(vv_cct_next_context(&plain, &want) == is_row);
        if (!is_row)
            break;
        ck_assert(want.defined == !delta);
        ck_assert_mem_eq(delta ? delta : row.key.b, want.key.b, 32);
        if (!delta)
            continue;
        vv_counters sum = {.started = 1, .await_ns = 1}, want_sum = sum;
        ck_assert_uint_eq(vv_counters_add_encoded(&sum, delta + VV_CCT_DELTA_COUNTERS),
                          vv_counters_add(&want_sum, &want.counters));
        ck_assert(counters_eq(&sum, &want_sum));
    }
    return vv_cct_finish(&c, err);
}

static void check(const uint8_t *p, size_t n, uint8_t health, uint64_t count, const char *want)
{
    vv_error err = {0};
    uint8_t *exact = test_exact(p, n);
    vv_code rc = decode(exact, n, health, count, NULL, NULL, NULL, &err);
    TEST_NAME(rc, &err, want);
    vv_error_clear(&err);
    rc = decode_by_deltas(exact, n, health, count, &err);
    TEST_NAME(rc, &err, want);
    free(exact);
}

START_TEST(vector_both_ways)
{
    vv_blob v = test_vector("cct_payload");
    vv_cct_row rows[1];
    vv_cct_overflow over[1];
    size_t n[2];
    ck_assert_uint_eq(v.n, 192);
    ck_assert_int_eq(decode(v.p, v.n, 0, 1, rows, over, n, NULL), VV_OK);
    ck_assert_uint_eq(n[0], 1);
    ck_assert_uint_eq(n[1], 0);
    const vv_tuple *t = &rows[0].tuple;
    ck_assert(rows[0].defined && !t->has_parent && t->has_site);
    ck_assert_mem_eq(t->program.b, "\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11", 16);
    ck_assert_uint_eq(t->function_id, 7);
    ck_assert_uint_eq(t->edge, VV_EDGE_ROOT);
    ck_assert(t->site.file == 1 && t->site.start == 2 && t->site.end == 3 && t->site.line == 4);
    const vv_counters *c = &rows[0].counters;
    ck_assert(c->started == 1 && c->selected == 1 && c->ok == 1);
    ck_assert(c->error == 0 && c->cancelled == 0 && c->exited == 0);
    ck_assert(c->inclusive_ns == 100 && c->direct_child_ns == 0 && c->await_ns == 20 && c->await_count == 2);
    vv_wr w = vv_wr_growing(1000);
    vv_wr_u64(&w, 1);
    vv_cct_encode_row(&w, &rows[0]);
    vv_wr_u64(&w, 0);
    test_wrote(&w, v.p, v.n);
    vv_wr_done(&w);
    vv_blob_done(&v);
}
END_TEST

START_TEST(vector_faults)
{
    vv_blob v = test_vector("cct_payload");
    for (size_t n = 0; n < v.n; n++)
        check(v.p, n, 0, 1, "Truncated");
    uint8_t *longer = test_longer(v.p, v.n);
    check(longer, v.n + 1, 0, 1, "TrailingBytes");
    free(longer);
    check(v.p, v.n, 0, 2, "RecordCountMismatch");
    check(v.p, v.n, 0, 0, "RecordCountMismatch");
    check(v.p, v.n, 0x80, 1, "InvalidHealth");
    check(v.p, v.n, 8, 1, "InvalidHealth");
    for (uint8_t health = 0; health < 8; health++)
        check(v.p, v.n, health, 1, NULL);
    v.p[8] ^= 0xff;
    check(v.p, v.n, 0, 1, "InvalidContextKey");
    vv_blob_done(&v);
}
END_TEST

/* Every single bit: counters are free, the rest must be noticed. */
START_TEST(vector_bit_flips)
{
    vv_blob v = test_vector("cct_payload");
    for (size_t bit = 0; bit < v.n * 8; bit++) {
        uint8_t *p = test_exact(v.p, v.n);
        p[bit / 8] ^= (uint8_t)(1 << bit % 8);
        vv_error err = {0};
        bool in_counters = bit / 8 >= 80 && bit / 8 < 184;
        vv_code rc = decode(p, v.n, 0, 1, NULL, NULL, NULL, &err);
        ck_assert_msg((rc == VV_OK) == in_counters, "bit %zu: %s", bit, err.msg);
        free(p);
    }
    vv_blob_done(&v);
}
END_TEST

/* Offsets in the vector: count 0, key 8, opt 40, program 41, opt parent 57, function 58, opt site 62, edge 79. */
START_TEST(each_error_by_name)
{
    static const struct {
        size_t at;
        uint8_t value;
        const char *name;
    } rows[] = {
        {0, 0xff, "Truncated"}, {7, 2, "Truncated"},   {40, 2, "InvalidTag"},        {57, 2, "InvalidTag"},
        {62, 2, "InvalidTag"},  {79, 3, "InvalidTag"}, {41, 0, "InvalidContextKey"}, {79, 1, "InvalidContextKey"},
        {191, 1, "Truncated"},  {184, 1, "Truncated"}, {40, 0, "TrailingBytes"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        vv_blob v = test_vector("cct_payload");
        v.p[rows[i].at] = rows[i].value;
        vv_error err = {0};
        vv_code rc = decode(v.p, v.n, 0, 1, NULL, NULL, NULL, &err);
        TEST_NAME(rc, &err, rows[i].name);
        vv_blob_done(&v);
    }
}
END_TEST

/* Overflow rows alone: no contexts, then count and rows of 106 bytes. */
START_TEST(overflow_rows)
{
    vv_cct_overflow row = {VV_OVERFLOW_INVALID_PARENT, VV_EDGE_SPAWN, {.started = 5, .await_count = 9}}, back[1];
    vv_wr w = vv_wr_growing(1000);
    vv_wr_u64(&w, 0);
    vv_wr_u64(&w, 1);
    vv_cct_encode_overflow(&w, &row);
    size_t n[2];
    ck_assert_uint_eq(w.len, 16 + VV_CCT_OVERFLOW_ROW);
    ck_assert_int_eq(decode(w.buf, w.len, 0, 1, NULL, back, n, NULL), VV_OK);
    ck_assert_uint_eq(n[1], 1);
    ck_assert(back[0].reason == row.reason && back[0].edge == row.edge && back[0].counters.started == 5 &&
              back[0].counters.await_count == 9);
    for (size_t k = 0; k < w.len; k++)
        check(w.buf, k, 0, 1, "Truncated");
    check(w.buf, w.len, 0, 2, "RecordCountMismatch");
    w.buf[16] = 2;
    check(w.buf, w.len, 0, 1, "InvalidTag");
    w.buf[16] = 0;
    w.buf[17] = 3;
    check(w.buf, w.len, 0, 1, "InvalidTag");
    w.buf[17] = 0;
    w.buf[15] = 2;
    check(w.buf, w.len, 0, 1, "Truncated");
    w.buf[15] = 0;
    check(w.buf, w.len, 0, 1, "TrailingBytes");
    check(w.buf, 16, 0, 0, NULL);
    check(NULL, 0, 0, 0, "Truncated");
    check(NULL, 0, 0, 3, "Truncated");
    ck_assert_str_eq(vv_overflow_reason_name(VV_OVERFLOW_MEMORY), "ContextMemoryUnavailableAfterDrain");
    ck_assert_str_eq(vv_overflow_reason_name(VV_OVERFLOW_INVALID_PARENT), "InvalidParentContext");
    ck_assert_ptr_null(vv_overflow_reason_name((vv_overflow_reason)2));
    vv_wr_done(&w);
}
END_TEST

/* A caller that takes no rows still gets the whole verdict. */
START_TEST(finish_reads_what_was_left)
{
    vv_blob v = test_vector("cct_payload");
    vv_cct_cursor c;
    vv_error err = {0};
    vv_cct_open(&c, v.p, v.n, 0, 1);
    ck_assert_int_eq(vv_cct_finish(&c, &err), VV_OK);
    v.p[8] ^= 1;
    vv_cct_open(&c, v.p, v.n, 0, 1);
    TEST_NAME(vv_cct_finish(&c, &err), &err, "InvalidContextKey");
    vv_cct_open(&c, v.p, v.n, 0, 1);
    c.trust_keys = true;
    ck_assert_int_eq(vv_cct_finish(&c, &err), VV_OK);
    vv_blob_done(&v);
}
END_TEST

static void random_counters(test_rng *g, vv_counters *c)
{
    test_fill(g, c, sizeof *c);
}

static void random_tuple(test_rng *g, vv_tuple *t)
{
    memset(t, 0, sizeof *t);
    test_fill(g, &t->program, sizeof t->program);
    t->function_id = (uint32_t)test_random(g);
    t->edge = (uint8_t)test_below(g, VV_EDGES);
    t->has_parent = test_below(g, 2);
    if (t->has_parent)
        test_fill(g, &t->parent, sizeof t->parent);
    t->has_site = test_below(g, 2);
    if (t->has_site)
        test_fill(g, &t->site, sizeof t->site);
}

enum { ROWS = 6 };

/* Encodes random rows into w; returns the record count. */
static uint64_t random_section(test_rng *g, vv_wr *w, vv_cct_row *rows, vv_cct_overflow *over, size_t n[2])
{
    n[0] = test_below(g, ROWS);
    n[1] = test_below(g, ROWS);
    vv_wr_u64(w, n[0]);
    for (size_t i = 0; i < n[0]; i++) {
        memset(&rows[i], 0, sizeof rows[i]);
        rows[i].defined = test_below(g, 2);
        if (rows[i].defined) {
            random_tuple(g, &rows[i].tuple);
            vv_context_key_of(&rows[i].key, &rows[i].tuple);
        } else {
            test_fill(g, &rows[i].key, sizeof rows[i].key);
        }
        random_counters(g, &rows[i].counters);
        vv_cct_encode_row(w, &rows[i]);
    }
    vv_wr_u64(w, n[1]);
    for (size_t i = 0; i < n[1]; i++) {
        over[i].reason = (vv_overflow_reason)test_below(g, VV_OVERFLOW_REASONS);
        over[i].edge = (vv_edge)test_below(g, VV_EDGES);
        random_counters(g, &over[i].counters);
        vv_cct_encode_overflow(w, &over[i]);
    }
    return n[0] + n[1];
}

START_TEST(prop_round_trip)
{
    test_rng g = test_seeded("cct round trip");
    for (int round = 0; round < 2000; round++) {
        vv_cct_row rows[ROWS], back[ROWS];
        vv_cct_overflow over[ROWS], over_back[ROWS];
        size_t n[2], m[2];
        vv_wr w = vv_wr_growing(1 << 16);
        uint64_t count = random_section(&g, &w, rows, over, n);
        uint8_t *exact = test_exact(w.buf, w.len);
        ck_assert_int_eq(decode(exact, w.len, 0, count, back, over_back, m, NULL), VV_OK);
        ck_assert(n[0] == m[0] && n[1] == m[1]);
        for (size_t i = 0; i < n[0]; i++) {
            ck_assert_mem_eq(&rows[i].key, &back[i].key, 32);
            ck_assert(rows[i].defined == back[i].defined && counters_eq(&rows[i].counters, &back[i].counters));
            ck_assert(!rows[i].defined || vv_tuple_eq(&rows[i].tuple, &back[i].tuple));
        }
        for (size_t i = 0; i < n[1]; i++)
            ck_assert(over[i].reason == over_back[i].reason && over[i].edge == over_back[i].edge &&
                      counters_eq(&over[i].counters, &over_back[i].counters));
        free(exact);
        check(w.buf, w.len, 0, count, NULL);
        /* Any cut is Truncated, whatever the shape. */
        check(w.buf, test_below(&g, w.len), 0, count, "Truncated");
        vv_wr_done(&w);
    }
}
END_TEST

START_TEST(prop_mutations_end_by_a_known_name)
{
    static const char *const names[] = {"InvalidHealth",     "Truncated",     "InvalidTag",
                                        "InvalidContextKey", "TrailingBytes", "RecordCountMismatch"};
    test_rng g = test_seeded("cct mutations");
    for (int round = 0; round < 5000; round++) {
        vv_cct_row rows[ROWS];
        vv_cct_overflow over[ROWS];
        size_t n[2];
        vv_wr w = vv_wr_growing(1 << 16);
        uint64_t count = random_section(&g, &w, rows, over, n);
        for (uint64_t i = 1 + test_below(&g, 3); i; i--)
            w.buf[test_below(&g, w.len)] = (uint8_t)test_random(&g);
        size_t len = test_below(&g, 4) ? w.len : test_below(&g, w.len + 1);
        uint8_t *exact = test_exact(w.buf, len);
        vv_error err = {0}, same = {0};
        vv_code rc = decode(exact, len, 0, count, NULL, NULL, NULL, &err);
        ck_assert_int_eq(decode_by_deltas(exact, len, 0, count, &same), rc);
        if (rc != VV_OK) {
            ck_assert_str_eq(same.name, err.name);
            ck_assert_uint_eq(same.off, err.off);
            bool known = false;
            for (size_t i = 0; i < VV_ARRAY_LEN(names); i++)
                known |= strcmp(names[i], err.name) == 0;
            ck_assert_msg(known, "%s", err.name);
            ck_assert_uint_le(err.off, len);
        }
        free(exact);
        vv_wr_done(&w);
    }
}
END_TEST

START_TEST(counters_saturate)
{
    vv_counters a = {.started = UINT64_MAX, .inclusive_ns = 5}, one = {.started = 1, .inclusive_ns = 1};
    ck_assert_uint_eq(vv_counters_add(&a, &one), VV_HEALTH_COUNTER_SATURATED);
    ck_assert(a.started == UINT64_MAX && a.inclusive_ns == 6);
    vv_counters b = {.await_ns = ~(vv_u128)0}, c = {.await_ns = 1};
    ck_assert_uint_eq(vv_counters_add(&b, &c), VV_HEALTH_AWAIT_SATURATED);
    ck_assert(b.await_ns == ~(vv_u128)0);
    vv_counters d = {.await_count = UINT64_MAX}, e = {.await_count = UINT64_MAX};
    ck_assert_uint_eq(vv_counters_add(&d, &e), VV_HEALTH_AWAIT_SATURATED);
    vv_counters f = {.direct_child_ns = ~(vv_u128)0, .await_count = UINT64_MAX};
    vv_counters both = {.direct_child_ns = 2, .await_count = 1};
    ck_assert_uint_eq(vv_counters_add(&f, &both), VV_HEALTH_COUNTER_SATURATED | VV_HEALTH_AWAIT_SATURATED);
    ck_assert_uint_eq(vv_counters_add(&both, &one), 0);
    ck_assert(!vv_counters_zero(&a));
    ck_assert(vv_counters_zero(&(vv_counters){0}));
    ck_assert(!vv_counters_zero(&(vv_counters){.await_ns = (vv_u128)1 << 100}));
}
END_TEST

START_TEST(self_time)
{
    bool complete;
    vv_u128 max = ~(vv_u128)0;
    static const struct {
        vv_u128 inclusive, self;
        bool complete;
    } rows[] = {{10, 3, true}, {7, 0, true}, {6, 0, false}};
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        vv_counters c = {.inclusive_ns = rows[i].inclusive, .direct_child_ns = 3, .await_ns = 4};
        ck_assert(vv_counters_self(&c, &complete) == rows[i].self);
        ck_assert(complete == rows[i].complete);
    }
    ck_assert(vv_counters_self(&(vv_counters){.inclusive_ns = max, .direct_child_ns = max, .await_ns = 4}, NULL) == 0);
}
END_TEST

int main(void)
{
    TCase *t = test_case("cct", 0);
    tcase_add_test(t, vector_both_ways);
    tcase_add_test(t, vector_faults);
    tcase_add_test(t, vector_bit_flips);
    tcase_add_test(t, each_error_by_name);
    tcase_add_test(t, overflow_rows);
    tcase_add_test(t, finish_reads_what_was_left);
    tcase_add_test(t, prop_round_trip);
    tcase_add_test(t, prop_mutations_end_by_a_known_name);
    tcase_add_test(t, counters_saturate);
    tcase_add_test(t, self_time);
    return test_run();
}
