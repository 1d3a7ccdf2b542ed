#include "config.h"

#include "base/json.h"

#include <inttypes.h>
#include <math.h>

#include "tests/testing.h"

static vv_wr out;
static vv_json j;

static void setup(void)
{
    out = vv_wr_growing(1 << 20);
    j = vv_json_init(&out);
}

static void teardown(void)
{
    vv_wr_done(&out);
}

/* What was written is exactly text, and one complete value. */
static void expect(const char *text)
{
    ck_assert_msg(out.len == strlen(text) && memcmp(out.buf, text, out.len) == 0, "wanted %s, got %.*s", text,
                  (int)out.len, (const char *)out.buf);
    ck_assert(vv_json_done(&j));
    vv_wr_reset(&out);
    j = vv_json_init(&out);
}

START_TEST(nesting_and_commas)
{
    vv_json_obj(&j);
    vv_json_key(&j, "a");
    vv_json_arr(&j);
    vv_json_null(&j);
    vv_json_arr(&j);
    vv_json_end_arr(&j);
    vv_json_bool(&j, true);
    vv_json_end_arr(&j);
    vv_json_kv_u64(&j, "b", 1);
    vv_json_key(&j, "c");
    vv_json_obj(&j);
    ck_assert(!vv_json_done(&j));
    vv_json_end_obj(&j);
    vv_json_end_obj(&j);
    expect("{\"a\":[null,[],true],\"b\":1,\"c\":{}}");
}
END_TEST

START_TEST(fields_that_may_be_absent)
{
    vv_json_obj(&j);
    vv_json_kv_opt_hex(&j, "a", "\x01\xff", 2);
    vv_json_kv_opt_hex(&j, "b", NULL, 2);
    ck_assert(vv_json_kv_opt_obj(&j, "c", true));
    vv_json_kv_i128(&j, "d", -1);
    vv_json_end_obj(&j);
    ck_assert(!vv_json_kv_opt_obj(&j, "e", false));
    vv_json_kv_arr(&j, "f");
    vv_json_end_arr(&j);
    vv_json_kv_obj(&j, "g");
    vv_json_end_obj(&j);
    vv_json_end_obj(&j);
    expect("{\"a\":\"01ff\",\"b\":null,\"c\":{\"d\":-1},\"e\":null,\"f\":[],\"g\":{}}");
}
END_TEST

START_TEST(unsigned_are_exact)
{
    static const struct {
        uint64_t v;
        const char *text, *full;
    } rows[] = {
        {0, "0", "0"},
        {9007199254740991u, "9007199254740991", "9007199254740991"},
        {9007199254740992u, "\"9007199254740992\"", "9007199254740992"},
        {UINT64_MAX, "\"18446744073709551615\"", "18446744073709551615"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        vv_json_u64(&j, rows[i].v);
        expect(rows[i].text);
        vv_json_u128(&j, rows[i].v);
        expect(rows[i].text);
        vv_json_u64_full(&j, rows[i].v);
        expect(rows[i].full);
    }
    vv_json_u128(&j, ~(vv_u128)0);
    expect("\"340282366920938463463374607431768211455\"");
    vv_json_u128_text(&j, 7);
    expect("\"7\"");
}
END_TEST

START_TEST(signed_are_exact)
{
    vv_json_i64(&j, -9007199254740991);
    expect("-9007199254740991");
    vv_json_i64(&j, -9007199254740992);
    expect("\"-9007199254740992\"");
    vv_json_i64(&j, INT64_MIN);
    expect("\"-9223372036854775808\"");
    vv_json_i64(&j, INT64_MAX);
    expect("\"9223372036854775807\"");
    vv_json_i64(&j, -1);
    expect("-1");
    vv_json_i128(&j, (__int128)((vv_u128)1 << 127));
    expect("\"-170141183460469231731687303715884105728\"");
    vv_json_i128(&j, 12);
    expect("12");
}
END_TEST

/* A row writes what the single calls do. */
START_TEST(rows_are_as_exact)
{
    uint64_t seed = 1;
    for (unsigned shift = 0; shift < 128; shift++)
        for (int k = -2; k < 40; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            vv_u128 v = ((vv_u128)1 << shift) + (vv_u128)(__int128)(k < 3 ? k : (__int128)(seed >> (63 - shift / 2)));
            static const vv_json_word folded = VV_JSON_WORD("folded");
            vv_json_row r;
            ck_assert(vv_json_rows_begin(&j, 1, 5, &r));
            vv_json_row_open(&r);
            vv_json_row_u128(&r, v);
            vv_json_row_i128(&r, (__int128)v);
            vv_json_row_difference(&r, 5, v);
            vv_json_row_word(&r, &folded);
            vv_json_row_word(&r, &vv_json_word_null);
            vv_json_row_close(&r);
            vv_json_rows_end(&j, r);
            char got[256];
            ck_assert_uint_lt(out.len, sizeof got);
            memcpy(got, out.buf, out.len);
            got[out.len] = 0;
            vv_wr_reset(&out);
            j = vv_json_init(&out);
            vv_json_arr(&j);
            vv_json_u128(&j, v);
            vv_json_i128(&j, (__int128)v);
            if (v <= 5 || v - 5 <= (vv_u128)1 << 127) {
                vv_json_i128(&j, (__int128)(5 - v));
            } else { /* beyond what signed numbers hold */
                char text[48];
                snprintf(text, sizeof text, "\"-");
                vv_u128_text(text + 2, v - 5);
                strcat(text, "\"");
                vv_json_raw(&j, vv_cstr(text));
            }
            vv_json_cstr(&j, "folded");
            vv_json_null(&j);
            vv_json_end_arr(&j);
            expect(got);
        }
    for (unsigned digits = 1; digits <= 20; digits++) { /* by the C library */
        uint64_t power = 1;
        for (unsigned i = 1; i < digits; i++)
            power *= 10;
        for (int k = -1; k < 2; k++) {
            uint8_t text[20];
            char want[24];
            uint64_t v = power + (uint64_t)(int64_t)k;
            size_t n = (size_t)(vv_json_digits(text, v) - text);
            ck_assert_int_eq((int)n, snprintf(want, sizeof want, "%" PRIu64, v));
            ck_assert_mem_eq(text, want, n);
        }
    }
}
END_TEST

START_TEST(rows_have_commas)
{
    vv_json_row r;
    vv_json_arr(&j);
    ck_assert(vv_json_rows_begin(&j, 1, 0, &r));
    vv_json_row_open(&r);
    vv_json_row_close(&r);
    vv_json_rows_end(&j, r);
    ck_assert(vv_json_rows_begin(&j, 2, 3, &r));
    for (unsigned v = 7; v < 9; v++) {
        vv_json_row_open(&r);
        vv_json_row_u128(&r, v);
        vv_json_row_close(&r);
    }
    vv_json_rows_end(&j, r);
    vv_json_u64(&j, 1);
    vv_json_end_arr(&j);
    expect("[[],[7],[8],1]");
}
END_TEST

START_TEST(doubles_read_back_equal)
{
    vv_json_double(&j, 0.1);
    expect("0.1");
    vv_json_double(&j, NAN);
    expect("null");
    vv_json_double(&j, -INFINITY);
    expect("null");
    test_rng g = test_seeded("doubles");
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = test_random(&g);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        vv_json_double(&j, v);
        vv_wr_u8(&out, 0);
        double back = strtod((const char *)out.buf, NULL);
        ck_assert_mem_eq(&back, &v, sizeof v);
        vv_wr_reset(&out);
    }
}
END_TEST

START_TEST(ratios_are_short)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {0, "0"}, {-0.0, "0"}, {1, "1"}, {0.5, "0.5"}, {1.0 / 3, "0.333333"}, {2.0 / 3, "0.666667"},
        {0.99999999, "1"}, {100, "100"}, {1234567, "1234570"}, {-0.25, "-0.25"}, {1e-7 / 3, "0.0000000333333"},
        {9.9999996, "10"}, {1e21, "1000000000000000000000"}, {NAN, "null"}, {INFINITY, "null"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(cases); i++) {
        vv_json_ratio(&j, cases[i].v);
        expect(cases[i].text);
    }
    test_rng g = test_seeded("ratios");
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = test_random(&g);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v) || fabs(v) < 1e-300)
            continue;
        vv_json_ratio(&j, v);
        vv_wr_u8(&out, 0);
        const char *text = (const char *)out.buf;
        ck_assert_ptr_null(strpbrk(text, "eE"));
        ck_assert(fabs(strtod(text, NULL) - v) <= fabs(v) * 5.1e-6);
        vv_wr_reset(&out);
    }
}
END_TEST

START_TEST(strings_are_escaped)
{
    static const struct {
        const char *s;
        size_t n;
        const char *text;
    } rows[] = {
        {"", 0, "\"\""},
        {"plain ~", 7, "\"plain ~\""},
        {"\"\\/\b\f\n\r\t", 8, "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
        {"\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\\u007f\""},
        {"<script>&", 9, "\"\\u003cscript\\u003e\\u0026\""},
        {"\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa", 9, "\"\\u2028\\u2029\xe2\x80\xaa\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"a\xff\xc3z", 4, "\"a\xef\xbf\xbd\xef\xbf\xbdz\""},
        {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xf0\x9f\x98", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xc0\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        char *s = (char *)test_exact(rows[i].s, rows[i].n);
        vv_json_str(&j, (vv_str){s, rows[i].n});
        expect(rows[i].text);
        free(s);
    }
    vv_json_cstr(&j, NULL);
    expect("null");
    vv_json_obj(&j);
    vv_json_key_str(&j, vv_cstr("a\"<"));
    vv_json_cstr(&j, "b");
    vv_json_end_obj(&j);
    expect("{\"a\\\"\\u003c\":\"b\"}");
}
END_TEST

START_TEST(bytes_and_doubtful_text)
{
    vv_json_hex(&j, "\x00\xab\xff", 3);
    expect("\"00abff\"");
    vv_json_base64(&j, "abcd", 4);
    expect("\"YWJjZA==\"");
    vv_json_base64(&j, "", 0);
    expect("\"\"");
    vv_json_text(&j, vv_cstr("fine"));
    expect("\"fine\"");
    vv_json_text(&j, vv_cstr("a\xff"));
    expect("{\"base64\":\"Yf8=\",\"preview\":\"a\xef\xbf\xbd\"}");
}
END_TEST

/* Long inputs go out in pieces: the pieces must join. */
START_TEST(long_bytes_join)
{
    uint8_t b[1000];
    test_rng g = test_seeded("long bytes");
    test_fill(&g, b, sizeof b);
    for (size_t n = 0; n < sizeof b; n += 7) {
        char want[2100] = "\"";
        vv_hex(want + 1, b, n);
        strcat(want, "\"");
        vv_json_hex(&j, b, n);
        expect(want);
        vv_base64(want + 1, b, n);
        strcat(want, "\"");
        vv_json_base64(&j, b, n);
        expect(want);
    }
}
END_TEST

START_TEST(sixty_four_levels)
{
    for (int i = 0; i < 64; i++)
        vv_json_arr(&j);
    for (int i = 0; i < 64; i++)
        vv_json_end_arr(&j);
    ck_assert(vv_json_done(&j));
    ck_assert_uint_eq(out.len, 128);
}
END_TEST

START_TEST(parts_written_apart)
{
    vv_json_obj(&j);
    vv_json_key(&j, "a");
    vv_json_raw(&j, vv_cstr("[1,{\"b\":2}]"));
    vv_json_kv_arr(&j, "c");
    vv_json_raw(&j, vv_cstr("3"));
    vv_json_raw(&j, vv_cstr("[]"));
    vv_json_end_arr(&j);
    vv_json_end_obj(&j);
    expect("{\"a\":[1,{\"b\":2}],\"c\":[3,[]]}");
}
END_TEST

START_TEST(a_full_writer_is_not_done)
{
    char small[4];
    vv_wr w = vv_wr_fixed(small, sizeof small);
    vv_json k = vv_json_init(&w);
    vv_json_cstr(&k, "too long");
    ck_assert(!vv_json_done(&k));
}
END_TEST

int main(void)
{
    TCase *t = test_case("json", 0);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, nesting_and_commas);
    tcase_add_test(t, fields_that_may_be_absent);
    tcase_add_test(t, unsigned_are_exact);
    tcase_add_test(t, signed_are_exact);
    tcase_add_test(t, rows_are_as_exact);
    tcase_add_test(t, rows_have_commas);
    tcase_add_test(t, doubles_read_back_equal);
    tcase_add_test(t, ratios_are_short);
    tcase_add_test(t, strings_are_escaped);
    tcase_add_test(t, bytes_and_doubtful_text);
    tcase_add_test(t, long_bytes_join);
    tcase_add_test(t, sixty_four_levels);
    tcase_add_test(t, parts_written_apart);
    tcase_add_test(t, a_full_writer_is_not_done);
    return test_run();
}
