#include "config.h"

#include "views/delta.h"

#include "tests/testing.h"

static const vv_u128 most = ~(vv_u128)0;

static const struct {
    int base_bits, head_bits; /* 2^bits - 1; -1: 0 */
    const char *want;
} deltas[] = {
    {-1, -1, "0"},
    {1, 3, "6"},
    {3, 1, "-6"},
    {-1, 53, "9007199254740991"},
    {53, -1, "-9007199254740991"},
    {-1, 54, "\"18014398509481983\""},
    {54, -1, "\"-18014398509481983\""},
    {-1, 127, "\"170141183460469231731687303715884105727\""},
    {127, -1, "\"-170141183460469231731687303715884105727\""},
    {-1, 128, "\"340282366920938463463374607431768211455\""},
    {128, -1, "\"-340282366920938463463374607431768211455\""},
    {127, 128, "\"170141183460469231731687303715884105728\""},
    {128, 127, "\"-170141183460469231731687303715884105728\""},
    {128, 128, "0"},
};

static vv_u128 of_bits(int bits)
{
    return bits < 0 ? 0 : bits == 128 ? most : ((vv_u128)1 << bits) - 1;
}

static void expect(const vv_wr *w, const char *want)
{
    ck_assert_uint_eq(w->len, strlen(want));
    ck_assert(memcmp(w->buf, want, w->len) == 0);
}

START_TEST(a_change_is_exact)
{
    uint8_t buf[64];
    vv_wr w = vv_wr_fixed(buf, sizeof buf);
    vv_json j = vv_json_init(&w);
    vv_delta_json(&j, of_bits(deltas[_i].base_bits), of_bits(deltas[_i].head_bits));
    expect(&w, deltas[_i].want);
}
END_TEST

static const struct {
    __int128 base, head;
    const char *want;
} changes[] = {
    {0, 0, "0"},
    {-3, 4, "7"},
    {4, -3, "-7"},
    {-5, -5, "0"},
    {INT64_MIN, INT64_MAX, "\"18446744073709551615\""},
    {INT64_MAX, INT64_MIN, "\"-18446744073709551615\""},
};

START_TEST(a_change_of_signed_numbers_is_exact)
{
    uint8_t buf[64];
    vv_wr w = vv_wr_fixed(buf, sizeof buf);
    vv_json j = vv_json_init(&w);
    vv_delta_signed_json(&j, changes[_i].base, changes[_i].head);
    expect(&w, changes[_i].want);
}
END_TEST

static const struct {
    bool known;
    vv_u128 base, head, whole;
    const char *want;
} ratios[] = {
    {true, 4, 6, 4, "0.5"},         {true, 6, 4, 3, "-0.666667"}, {true, 5, 5, 5, "0"},
    {true, 0, 7, 0, "null"},        {false, 4, 6, 4, "null"},     {true, 3, 0, 3, "-1"},
    {true, 0, 1, 3000000, "0.000000333333"},
};

START_TEST(a_ratio_needs_a_whole)
{
    uint8_t buf[64];
    vv_wr w = vv_wr_fixed(buf, sizeof buf);
    vv_json j = vv_json_init(&w);
    vv_delta_ratio_json(&j, ratios[_i].known, ratios[_i].base, ratios[_i].head, ratios[_i].whole);
    expect(&w, ratios[_i].want);
}
END_TEST

int main(void)
{
    TCase *t = test_case("delta", 0);
    tcase_add_loop_test(t, a_change_is_exact, 0, VV_ARRAY_LEN(deltas));
    tcase_add_loop_test(t, a_change_of_signed_numbers_is_exact, 0, VV_ARRAY_LEN(changes));
    tcase_add_loop_test(t, a_ratio_needs_a_whole, 0, VV_ARRAY_LEN(ratios));
    return test_run();
}
