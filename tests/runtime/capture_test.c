#include "config.h"

#include "runtime/capture.h"

#include "format/evidence.h"
#include "tests/testing.h"

enum { LEAST = 512, LIMIT = 1 << 20, PLENTY = 8 << 20 };

static uint64_t used(const vv_governor *g, vv_pool pool)
{
    return atomic_load(&g->pools[pool].used);
}

static void check_used(const vv_governor *g, uint64_t general, uint64_t manual)
{
    ck_assert_uint_eq(used(g, VV_POOL_CONTROL), 0);
    ck_assert_uint_eq(used(g, VV_POOL_GENERAL), general);
    ck_assert_uint_eq(used(g, VV_POOL_MANUAL), manual);
}

static vv_governor new_governor(uint64_t general, uint64_t manual)
{
    const uint64_t limits[VV_POOLS] = {[VV_POOL_GENERAL] = general, [VV_POOL_MANUAL] = manual};
    vv_governor g;
    vv_governor_init(&g, limits);
    return g;
}

/* A list of n ints: 4 + 4n bytes and what the list's own length takes more. */
static void put_ints(varve_capture *c, unsigned n)
{
    varve_list_begin(c);
    for (unsigned i = 0; i < n; i++)
        varve_put_int(c, i % 100);
    varve_list_end(c);
}

/* ... as it should have been written. */
static void check_ints(const vv_body *b, unsigned n)
{
    static const uint8_t item[] = {0x12, 2, 0x20};
    ck_assert_uint_ge(b->cap, b->len);
    ck_assert_uint_eq(b->bytes[0], 0x5a);
    const uint8_t *p = b->bytes + b->len - 4 * (size_t)n;
    for (unsigned i = 0; i < n; i++, p += 4) {
        ck_assert_mem_eq(p, item, 3);
        ck_assert_uint_eq(p[3], i % 100);
    }
}

START_TEST(gate_small_value_is_one_block)
{
    vv_governor g = new_governor(LEAST, 0);
    varve_capture *c = vv_capture_new(&g, false, LIMIT);
    ck_assert_ptr_nonnull(c);
    check_used(&g, LEAST, 0);
    ck_assert_ptr_null(vv_capture_new(&g, false, LIMIT));
    varve_map_begin(c);
    varve_map_key(c, "key", 3);
    char text[230];
    memset(text, 'x', sizeof text);
    varve_put_text(c, text, sizeof text);
    varve_map_end(c);
    ck_assert(!varve_capture_is_lost(c));
    check_used(&g, LEAST, 0);
    vv_body b;
    ck_assert_int_eq(vv_capture_take(c, &b), -1);
    check_used(&g, LEAST, 0);
    ck_assert_uint_eq(b.len, 3 + 3 + 5 + 3 + 3 + sizeof text);
    ck_assert_mem_eq(b.bytes, "\x62\xf4\x01\x1a\xf1\x01\x0a\x03key\x12\xe9\x01\x1a\xe6\x01x", 18);
    vv_body_free(&g, &b);
    vv_body_free(&g, &b);
    check_used(&g, 0, 0);
}
END_TEST

START_TEST(each_part)
{
    vv_governor g = new_governor(PLENTY, 0);
    varve_capture *c = vv_capture_new(&g, false, LIMIT);
    varve_object_begin(c, "A");
    varve_map_key(c, "l", 1);
    varve_list_begin(c);
    varve_put_null(c);
    varve_put_bool(c, true);
    varve_put_int(c, -1);
    varve_put_float(c, 1.5);
    varve_put_text(c, "\xff", 1);
    varve_put_bytes(c, "\xff", 1);
    varve_put_bigint(c, "-1f", 3);
    varve_put_enum(c, "E", "v");
    varve_put_omitted(c, VARVE_OMITTED_CYCLE, "m");
    varve_list_end(c);
    varve_map_key(c, "m", 1);
    varve_map_begin(c);
    varve_map_end(c);
    varve_object_end(c);
    vv_body b;
    ck_assert_int_eq(vv_capture_take(c, &b), -1);
    vv_blob want = test_unhex("3a9f01" "0a0141" "129001" "0a016c" "128a015a8701"
                              "12021200" "12023001" "120b20ffffffffffffffffff01" "120929000000000000f83f"
                              "12031a013f" "12049a0101ff" "1206a201032d3166" "120842060a0145120176"
                              "12483a46" "0a1762616d6c2e74726163652e4f6d697474656456616c7565"
                              "121b0a06726561736f6e12111a0f6379636c69635265666572656e6365"
                              "120e0a076d65737361676512031a016d"
                              "12070a016d12026200");
    ck_assert_uint_eq(b.len, want.n);
    ck_assert_mem_eq(b.bytes, want.p, want.n);
    vv_blob_done(&want);
    vv_body_free(&g, &b);
    check_used(&g, 0, 0);
}
END_TEST

/* Nothing is wanted: nothing happens. */
START_TEST(no_capture)
{
    varve_put_null(NULL);
    varve_put_bool(NULL, true);
    varve_put_int(NULL, 1);
    varve_put_float(NULL, 1);
    varve_put_text(NULL, "x", 1);
    varve_put_bytes(NULL, "x", 1);
    varve_put_bigint(NULL, "1", 1);
    varve_put_enum(NULL, "x", "y");
    varve_put_omitted(NULL, VARVE_OMITTED_INVALID, "x");
    put_ints(NULL, 3);
    varve_map_begin(NULL);
    varve_map_key(NULL, "x", 1);
    varve_map_end(NULL);
    varve_object_begin(NULL, "x");
    varve_object_end(NULL);
    varve_capture_fail(NULL);
    ck_assert(varve_capture_is_lost(NULL));
}
END_TEST

/* The reservation of this number is denied, and all after it. */
typedef struct {
    unsigned seen, from, to;
} denials;

static bool denies(void *ctx, vv_owner owner)
{
    denials *d = ctx;
    ck_assert_int_eq(owner, VV_OWN_VALUES);
    unsigned n = d->seen++;
    return n >= d->from && n < d->to;
}

/* Each denial in turn loses the value whole, at once, and nothing else; it is told once. */
START_TEST(gate_denied_while_growing)
{
    enum { INTS = 50000 };
    for (unsigned at = 0;; at++) {
        vv_governor g = new_governor(PLENTY, PLENTY);
        denials d = {.from = at, .to = at + 1};
        g.test = (vv_governor_test){.denies = denies, .ctx = &d};
        varve_capture *c = vv_capture_new(&g, false, LIMIT);
        ck_assert(!c == (at == 0));
        if (!c) {
            check_used(&g, 0, 0);
            continue;
        }
        put_ints(c, INTS);
        bool lost = varve_capture_is_lost(c);
        ck_assert(lost == (d.seen > at));
        if (lost) {
            check_used(&g, LEAST, 0);
            ck_assert_uint_eq(d.seen, at + 1);
            put_ints(c, INTS);
            varve_capture_fail(c);
        }
        vv_body b = {0};
        ck_assert_int_eq(vv_capture_take(c, &b), lost ? VV_VALUE_LOST_MEMORY : -1);
        if (!lost) {
            check_ints(&b, INTS);
            check_used(&g, vv_alloc_charge(VV_OWN_VALUES, b.cap), 0);
        }
        vv_body_free(&g, &b);
        check_used(&g, 0, 0);
        ck_assert_uint_eq(atomic_load(&g.denials[VV_POOL_GENERAL][VV_OWN_VALUES]), lost);
        if (!lost) {
            ck_assert_uint_gt(at, 8);
            return;
        }
    }
}
END_TEST

/* What General denies a call selected by hand, Manual gives: at any reservation, and from there on. */
START_TEST(gate_manual_reserve)
{
    enum { INTS = 50000 };
    unsigned moved = 0;
    for (unsigned at = 0;; at++) {
        vv_governor g = new_governor(PLENTY, PLENTY);
        denials d = {.from = at, .to = at + 1};
        g.test = (vv_governor_test){.denies = denies, .ctx = &d};
        varve_capture *c = vv_capture_new(&g, true, LIMIT);
        ck_assert_ptr_nonnull(c);
        put_ints(c, INTS);
        bool hit = d.seen > at;
        uint64_t body = vv_alloc_charge(VV_OWN_VALUES, c->w.cap);
        if (!hit)
            check_used(&g, LEAST + body, 0);
        else if (at == 0)
            check_used(&g, 0, LEAST + body);
        else
            check_used(&g, LEAST, body);
        vv_body b = {0};
        ck_assert_int_eq(vv_capture_take(c, &b), -1);
        ck_assert_int_eq(b.pool, hit ? VV_POOL_MANUAL : VV_POOL_GENERAL);
        check_ints(&b, INTS);
        vv_body_free(&g, &b);
        check_used(&g, 0, 0);
        if (!hit)
            break;
        moved++;
    }
    ck_assert_uint_gt(moved, 8);
}
END_TEST

/* Both denied: lost. In Manual already: General is not asked again. */
START_TEST(manual_reserve_is_bounded)
{
    for (unsigned at = 0;; at++) {
        vv_governor g = new_governor(PLENTY, PLENTY);
        denials d = {.from = at, .to = at + 2};
        g.test = (vv_governor_test){.denies = denies, .ctx = &d};
        varve_capture *c = vv_capture_new(&g, true, LIMIT);
        ck_assert(!c == (at == 0));
        if (!c)
            continue;
        put_ints(c, 5000);
        vv_body b = {0};
        bool hit = d.seen > at;
        ck_assert_int_eq(vv_capture_take(c, &b), hit ? VV_VALUE_LOST_MEMORY : -1);
        vv_body_free(&g, &b);
        check_used(&g, 0, 0);
        if (!hit)
            break;
    }
    vv_governor g = new_governor(LEAST - 1, 100000);
    varve_capture *c = vv_capture_new(&g, true, LIMIT);
    check_used(&g, 0, LEAST);
    put_ints(c, 50000);
    ck_assert(varve_capture_is_lost(c));
    check_used(&g, 0, LEAST);
    ck_assert_uint_eq(atomic_load(&g.denials[VV_POOL_GENERAL][VV_OWN_VALUES]), 1);
    ck_assert_uint_eq(atomic_load(&g.denials[VV_POOL_MANUAL][VV_OWN_VALUES]), 1);
    vv_body b;
    ck_assert_int_eq(vv_capture_take(c, &b), VV_VALUE_LOST_MEMORY);
    check_used(&g, 0, 0);
}
END_TEST

/* A body of the limit fits, one of a byte more does not; and no block goes beyond the limit and the open containers. */
START_TEST(gate_single_value_limit)
{
    static const size_t limits[] = {5, 255, 256, 279, 280, 281, 512, 559, 560, 561, 4096, 65536, 131072, 295424};
    static const char zeros[295425];
    for (size_t i = 0; i < VV_ARRAY_LEN(limits); i++) {
        for (size_t over = 0; over < 3; over++) {
            vv_governor g = new_governor(PLENTY, 0);
            size_t limit = limits[i], n = limit - 1 + over;
            /* A text takes a byte of tag, and as many of length as hold seven bits each. */
            size_t head = n - 2 < 1 << 7 ? 2 : n - 3 < 1 << 14 ? 3 : 4;
            varve_capture *c = vv_capture_new(&g, false, limit);
            varve_put_text(c, zeros, n - head);
            ck_assert(varve_capture_is_lost(c) == (over == 2));
            size_t first = VV_CAPTURE_BLOCK - offsetof(varve_capture, first);
            ck_assert_uint_le(c->w.cap, limit + VV_VW_OPEN_BYTES > first ? limit + VV_VW_OPEN_BYTES : first);
            if (over == 2)
                check_used(&g, LEAST, 0);
            vv_body b = {0};
            ck_assert_int_eq(vv_capture_take(c, &b), over == 2 ? VV_VALUE_LOST_TOO_LARGE : -1);
            ck_assert(over == 2 || b.len == n);
            vv_body_free(&g, &b);
            check_used(&g, 0, 0);
        }
    }
}
END_TEST

/* The same part by part: it is lost as soon as a part goes beyond. */
START_TEST(limit_part_by_part)
{
    enum { BYTES = 200000 };
    vv_governor g = new_governor(PLENTY, 0);
    varve_capture *c = vv_capture_new(&g, false, BYTES);
    varve_list_begin(c);
    unsigned put = 0;
    for (; !varve_capture_is_lost(c); put++)
        varve_put_int(c, 1);
    ck_assert_uint_eq(put, (BYTES - 2) / 4 + 1);
    check_used(&g, LEAST, 0);
    vv_body b;
    ck_assert_int_eq(vv_capture_take(c, &b), VV_VALUE_LOST_TOO_LARGE);
    check_used(&g, 0, 0);
    /* As many as fit with the list's length: 1 + 3 + 4n. */
    for (unsigned over = 0; over < 2; over++) {
        c = vv_capture_new(&g, false, BYTES);
        put_ints(c, (BYTES - 4) / 4 + over);
        ck_assert_int_eq(vv_capture_take(c, &b), over ? VV_VALUE_LOST_TOO_LARGE : -1);
        if (!over) {
            ck_assert_uint_eq(b.len, BYTES);
            vv_body_free(&g, &b);
        }
        check_used(&g, 0, 0);
    }
}
END_TEST

static void nothing(varve_capture *c)
{
    (void)c;
}

static void unbalanced(varve_capture *c)
{
    varve_list_begin(c);
    put_ints(c, 1000);
}

static void two_values(varve_capture *c)
{
    put_ints(c, 1000);
    varve_put_null(c);
}

static void given_up(varve_capture *c)
{
    put_ints(c, 1000);
    varve_capture_fail(c);
}

static void misused_then_given_up(varve_capture *c)
{
    varve_map_end(c);
    varve_capture_fail(c);
}

static void bad_omission(varve_capture *c)
{
    varve_put_omitted(c, (varve_omission)77, "x");
}

static const struct {
    void (*put)(varve_capture *c);
    int loss;
} losses[] = {
    {nothing, VV_VALUE_LOST_ENCODE},  {unbalanced, VV_VALUE_LOST_ENCODE},
    {two_values, VV_VALUE_LOST_ENCODE}, {given_up, VV_VALUE_LOST_COPY},
    {misused_then_given_up, VV_VALUE_LOST_ENCODE}, {bad_omission, VV_VALUE_LOST_ENCODE},
};

START_TEST(gate_losses)
{
    vv_governor g = new_governor(PLENTY, 0);
    varve_capture *c = vv_capture_new(&g, false, LIMIT);
    losses[_i].put(c);
    if (varve_capture_is_lost(c))
        check_used(&g, LEAST, 0);
    vv_body b = {.len = 7};
    ck_assert_int_eq(vv_capture_take(c, &b), losses[_i].loss);
    ck_assert_uint_eq(b.len, 7);
    check_used(&g, 0, 0);
}
END_TEST

int main(void)
{
    TCase *c = test_case("capture", 60);
    tcase_add_test(c, gate_small_value_is_one_block);
    tcase_add_test(c, each_part);
    tcase_add_test(c, no_capture);
    tcase_add_test(c, gate_denied_while_growing);
    tcase_add_test(c, gate_manual_reserve);
    tcase_add_test(c, manual_reserve_is_bounded);
    tcase_add_test(c, gate_single_value_limit);
    tcase_add_test(c, limit_part_by_part);
    tcase_add_loop_test(c, gate_losses, 0, (int)VV_ARRAY_LEN(losses));
    return test_run();
}
