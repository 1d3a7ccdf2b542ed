#include "config.h"

#include "base/text.h"

#include "base/sha256.h"
#include "tests/testing.h"

START_TEST(hexadecimal)
{
    char s[9];
    uint8_t b[4];
    vv_hex(s, "\x00\x9a\xff\x10", 4);
    ck_assert_str_eq(s, "009aff10");
    ck_assert(vv_unhex(b, 4, vv_cstr("009AfF10")));
    ck_assert_mem_eq(b, "\x00\x9a\xff\x10", 4);
    static const char *const bad[] = {"", "0", "009aff1", "009aff100", "009aff1g", "009aff 1", "-09aff10", "0x9aff10"};
    for (size_t i = 0; i < VV_ARRAY_LEN(bad); i++)
        ck_assert_msg(!vv_unhex(b, 4, vv_cstr(bad[i])), "%s", bad[i]);
    ck_assert(vv_unhex(b, 0, vv_cstr("")));
}
END_TEST

/* RFC 4648's own examples. */
START_TEST(base64_both_alphabets)
{
    static const struct {
        const char *plain, *padded, *url;
    } rows[] = {
        {"", "", ""},
        {"f", "Zg==", "Zg"},
        {"fo", "Zm8=", "Zm8"},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg==", "Zm9vYg"},
        {"fooba", "Zm9vYmE=", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
        {"\xfb\xff", "+/8=", "-_8"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        char s[16];
        size_t n = strlen(rows[i].plain);
        ck_assert_uint_eq(vv_base64(s, rows[i].plain, n), strlen(rows[i].padded));
        ck_assert_str_eq(s, rows[i].padded);
        ck_assert_uint_eq(vv_base64url(s, rows[i].plain, n), strlen(rows[i].url));
        ck_assert_str_eq(s, rows[i].url);
        uint8_t back[16];
        ck_assert_int_eq(vv_unbase64url(back, vv_cstr(rows[i].url)), (ptrdiff_t)n);
        ck_assert_mem_eq(back, rows[i].plain, n);
    }
}
END_TEST

START_TEST(base64url_is_strict)
{
    static const char *const bad[] = {"Z",    "Zm9vY",  "Zg==", "Zm8=", "Z+",       "Z/",
                                      "Zm 8", "Zm\n8", "Zh",   "Zm9",  "\xc3\xa9", "Zg.."};
    uint8_t b[16];
    for (size_t i = 0; i < VV_ARRAY_LEN(bad); i++)
        ck_assert_msg(vv_unbase64url(b, vv_cstr(bad[i])) == -1, "%s", bad[i]);
}
END_TEST

START_TEST(base64url_has_one_text_for_each_bytes)
{
    test_rng g = test_seeded("base64url");
    for (int i = 0; i < 20000; i++) {
        uint8_t b[40], back[40];
        char s[60];
        size_t n = test_below(&g, sizeof b);
        test_fill(&g, b, n);
        size_t len = vv_base64url(s, b, n);
        char *exact = (char *)test_exact(s, len);
        ck_assert_int_eq(vv_unbase64url(back, (vv_str){exact, len}), (ptrdiff_t)n);
        ck_assert_mem_eq(back, b, n);
        if (len) {
            exact[test_below(&g, len)] ^= (char)(1 + test_below(&g, 255));
            ptrdiff_t m = vv_unbase64url(back, (vv_str){exact, len});
            ck_assert(m == -1 || memcmp(back, b, n) != 0);
        }
        free(exact);
    }
}
END_TEST

START_TEST(utf8)
{
    static const struct {
        const char *s;
        bool valid;
    } rows[] = {
        {"", true},
        {"ascii", true},
        {"\xc2\x80", true},
        {"\xdf\xbf", true},
        {"\xe0\xa0\x80", true},
        {"\xed\x9f\xbf", true},
        {"\xee\x80\x80", true},
        {"\xf0\x90\x80\x80", true},
        {"\xf4\x8f\xbf\xbf", true},
        {"\x80", false},
        {"\xc1\xbf", false},
        {"\xc2", false},
        {"\xc2\xc2", false},
        {"\xe0\x9f\xbf", false},
        {"\xed\xa0\x80", false},
        {"\xe2\x82", false},
        {"\xe2\x82" "A", false},
        {"\xf0\x9f\x98" "A", false},
        {"\xf0\x8f\xbf\xbf", false},
        {"\xf4\x90\x80\x80", false},
        {"\xf5\x80\x80\x80", false},
        {"\xf0\x9f\x98", false},
        {"a\xff", false},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        size_t n = strlen(rows[i].s);
        char *s = (char *)test_exact(rows[i].s, n);
        ck_assert_msg(vv_utf8_valid((vv_str){s, n}) == rows[i].valid, "row %zu", i);
        free(s);
    }
}
END_TEST

START_TEST(cut_on_a_character_boundary)
{
    const char *s = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z"; /* 1 2 3 4 1 bytes */
    static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    for (size_t max = 0; max < VV_ARRAY_LEN(want); max++)
        ck_assert_uint_eq(vv_utf8_cut(vv_cstr(s), max), want[max]);
}
END_TEST

START_TEST(mended_text_is_valid)
{
    char s[] = "a\xff\xc3\xa9\xe2\x82z";
    vv_utf8_mend(s, strlen(s));
    ck_assert_str_eq(s, "a?\xc3\xa9??z");
    test_rng g = test_seeded("mend");
    for (int i = 0; i < 5000; i++) {
        size_t n = test_below(&g, 24);
        char *p = malloc(n + 1);
        test_fill(&g, p, n);
        vv_utf8_mend(p, n);
        char *exact = (char *)test_exact(p, n);
        ck_assert(vv_utf8_valid((vv_str){exact, n}));
        free(exact);
        free(p);
    }
}
END_TEST

/* One thing among plain text, at every place of the words that are looked at whole. */
START_TEST(text_is_mended_at_every_place)
{
    enum { LONGEST = 28 };
    static const struct {
        const char *it, *mended;
    } cases[] = {
        {"\xff", "?"},
        {"\x80", "?"},
        {"\xc3", "?"},
        {"\xc3\xa9", "\xc3\xa9"},
        {"\xe2\x82\xac", "\xe2\x82\xac"},
        {"\xe2\x82", "??"},
        {"\xed\xa0\x80", "???"},
    };
    for (size_t k = 0; k < VV_ARRAY_LEN(cases); k++)
        for (size_t at = 0; at < LONGEST; at++)
            for (size_t rest = 0; rest < LONGEST; rest++) {
                char text[2 * LONGEST + 8], want[sizeof text];
                int n = snprintf(text, sizeof text, "%.*s%s%.*s", (int)at, "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", cases[k].it,
                                 (int)rest, "zzzzzzzzzzzzzzzzzzzzzzzzzzzz");
                snprintf(want, sizeof want, "%.*s%s%.*s", (int)at, "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", cases[k].mended,
                         (int)rest, "zzzzzzzzzzzzzzzzzzzzzzzzzzzz");
                char *exact = (char *)test_exact(text, (size_t)n);
                ck_assert_int_eq(vv_utf8_valid((vv_str){exact, (size_t)n}), strcmp(cases[k].it, cases[k].mended) == 0);
                vv_utf8_mend(exact, (size_t)n);
                ck_assert_mem_eq(exact, want, (size_t)n);
                free(exact);
            }
}
END_TEST

START_TEST(tamed_text_moves_no_terminal)
{
    static const struct {
        const char *raw, *tame;
    } cases[] = {
        {"plain \xc3\xa9 \xf0\x9f\x98\x80", "plain \xc3\xa9 \xf0\x9f\x98\x80"},
        {"\033[31m\n\t\x7f", "?[31m???"},
        {"\xc2\x9b" "31m \xc2\x80\xc2\x9f\xc2\xa0", "??31m ????\xc2\xa0"},
        {"\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa6\xd8\x9c", "???????????"},
        {"\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa", "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa"},
        {"\x9b\xff\xc2", "???"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(cases); i++) {
        char text[64];
        strcpy(text, cases[i].raw);
        vv_text_tame(text, strlen(text));
        ck_assert_str_eq(text, cases[i].tame);
    }
}
END_TEST

START_TEST(decimal_of_128_bits)
{
    char s[40];
    ck_assert_uint_eq(vv_u128_text(s, 0), 1);
    ck_assert_str_eq(s, "0");
    vv_u128_text(s, (vv_u128)UINT64_MAX + 1);
    ck_assert_str_eq(s, "18446744073709551616");
    ck_assert_uint_eq(vv_u128_text(s, ~(vv_u128)0), 39);
    ck_assert_str_eq(s, "340282366920938463463374607431768211455");
}
END_TEST

/* FIPS 180-2's examples, in one piece and cut at every place. */
START_TEST(numbers)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
        size_t digits;
    } rows[] = {
        {"0", true, 0, 1}, {"7", true, 7, 1}, {"007", true, 7, 3}, {"18446744073709551615", true, UINT64_MAX, 20},
        {"18446744073709551616", false, 0, 20}, {"99999999999999999999", false, 0, 20},
        {"000000000000000000001", false, 0, 21}, {"", false, 0, 0}, {"-1", false, 0, 0}, {"+1", false, 0, 0},
        {" 1", false, 0, 0}, {"1 ", false, 0, 1}, {"12ms", false, 0, 2}, {"0x10", false, 0, 1}, {"1e3", false, 0, 1},
        {"\xd9\xa1", false, 0, 0},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        uint64_t v = 4711;
        ck_assert_msg(vv_str_u64(vv_cstr(rows[i].text), &v) == rows[i].good, "%s", rows[i].text);
        ck_assert_uint_eq(v, rows[i].good ? rows[i].value : 4711);
        ck_assert_uint_eq(vv_str_digits(vv_cstr(rows[i].text)), rows[i].digits);
    }
    uint64_t v;
    ck_assert(!vv_str_u64((vv_str){"1\0", 2}, &v));
    ck_assert(vv_str_u64((vv_str){"123", 2}, &v) && v == 12);
}
END_TEST

START_TEST(sha256)
{
    static const char abc[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    uint8_t sum[32];
    char hex[65];
    vv_sha256("abc", 3, sum);
    vv_hex(hex, sum, 32);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    vv_sha256(NULL, 0, sum);
    vv_hex(hex, sum, 32);
    ck_assert_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    for (size_t cut = 0; cut < sizeof abc; cut++) {
        vv_sha256_ctx c;
        vv_sha256_init(&c);
        vv_sha256_update(&c, abc, cut);
        vv_sha256_update(&c, abc + cut, sizeof abc - 1 - cut);
        vv_sha256_final(&c, sum);
        vv_hex(hex, sum, 32);
        ck_assert_str_eq(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    }
}
END_TEST

/* Two hashes at once are the two hashes: any length, and whatever they had before. */
START_TEST(sha256_of_a_pair)
{
    enum { MAX = 1000 };
    static const size_t before[] = {0, 0, 1, 63, 64, 65, 128};
    test_rng g = test_seeded("sha256");
    for (size_t n = 0; n <= MAX; n += n < 260 ? 1 : 37) {
        uint8_t head[128], bytes[2][MAX], sum[32], want[32];
        test_fill(&g, head, sizeof head);
        test_fill(&g, bytes, sizeof bytes);
        size_t had[2] = {before[test_below(&g, VV_ARRAY_LEN(before))], before[test_below(&g, VV_ARRAY_LEN(before))]};
        vv_sha256_ctx pair[2];
        for (size_t i = 0; i < 2; i++) {
            vv_sha256_init(&pair[i]);
            vv_sha256_update(&pair[i], head, had[i]);
        }
        uint8_t *p = test_exact(bytes[0], n), *q = test_exact(bytes[1], n);
        vv_sha256_update_pair(&pair[0], p, &pair[1], q, n);
        vv_sha256_update_pair(&pair[1], p, &pair[0], q, n);
        for (size_t i = 0; i < 2; i++) {
            vv_sha256_ctx alone;
            vv_sha256_init(&alone);
            vv_sha256_update(&alone, head, had[i]);
            vv_sha256_update(&alone, bytes[i], n);
            vv_sha256_update(&alone, bytes[1 - i], n);
            vv_sha256_final(&alone, want);
            vv_sha256_final(&pair[i], sum);
            ck_assert_mem_eq(sum, want, sizeof sum);
        }
        free(p);
        free(q);
    }
}
END_TEST

/* More than 2^32 bits, where the count of them carries into its second word. */
START_TEST(sha256_of_a_long_pair)
{
    enum { STEP = 8 << 20, STEPS = 66 };
    uint8_t *zeros = calloc(1, STEP), sum[2][32], want[32];
    ck_assert_ptr_nonnull(zeros);
    vv_sha256_ctx pair[2], alone;
    vv_sha256_init(&pair[0]);
    vv_sha256_init(&pair[1]);
    vv_sha256_init(&alone);
    for (int i = 0; i < STEPS; i++) {
        vv_sha256_update_pair(&pair[0], zeros, &pair[1], zeros, STEP);
        vv_sha256_update(&alone, zeros, STEP);
    }
    vv_sha256_final(&pair[0], sum[0]);
    vv_sha256_final(&pair[1], sum[1]);
    vv_sha256_final(&alone, want);
    ck_assert_mem_eq(sum[0], want, 32);
    ck_assert_mem_eq(sum[1], want, 32);
    free(zeros);
}
END_TEST

int main(void)
{
    TCase *t = test_case("text", 0);
    tcase_add_test(t, hexadecimal);
    tcase_add_test(t, base64_both_alphabets);
    tcase_add_test(t, base64url_is_strict);
    tcase_add_test(t, base64url_has_one_text_for_each_bytes);
    tcase_add_test(t, utf8);
    tcase_add_test(t, cut_on_a_character_boundary);
    tcase_add_test(t, mended_text_is_valid);
    tcase_add_test(t, text_is_mended_at_every_place);
    tcase_add_test(t, tamed_text_moves_no_terminal);
    tcase_add_test(t, decimal_of_128_bits);
    tcase_add_test(t, numbers);
    tcase_add_test(t, sha256);
    tcase_add_test(t, sha256_of_a_pair);
    tcase_add_test(t, sha256_of_a_long_pair);
    return test_run();
}
