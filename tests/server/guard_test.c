#include "config.h"

#include "server/guard.h"
#include "server/etag.h"
#include "server/range.h"
#include "server/token.h"

#include "tests/testing.h"

static const struct {
    const char *name, *host, *origin, *target;
    unsigned hosts, origins;
    int want; /* status, 0 = passes */
} checks[] = {
    {"plain", "127.0.0.1:8278", NULL, "/", 1, 0, 0},
    {"without a port", "localhost", NULL, "/api/v1", 1, 0, 0},
    {"letters of any case", "LocalHost:8278", NULL, "/", 1, 0, 0},
    {"IPv6", "[::1]:8278", NULL, "/", 1, 0, 0},
    {"allowed", "box.lan:8278", NULL, "/", 1, 0, 0},
    {"no Host", NULL, NULL, "/", 0, 0, 421},
    {"empty Host", "", NULL, "/", 1, 0, 421},
    {"two Hosts", "localhost", NULL, "/", 2, 0, 421},
    {"another port", "localhost:80", NULL, "/", 1, 0, 421},
    {"another name", "evil.example", NULL, "/", 1, 0, 421},
    {"a longer name", "localhost.evil.example", NULL, "/", 1, 0, 421},
    {"a longer port", "localhost:82780", NULL, "/", 1, 0, 421},
    {"user in Host", "localhost@evil", NULL, "/", 1, 0, 421},
    {"own Origin", "localhost:8278", "http://localhost:8278", "/", 1, 1, 0},
    {"own Origin by number", "localhost:8278", "http://127.0.0.1:8278", "/", 1, 1, 0},
    {"Origin null", "localhost:8278", "null", "/", 1, 1, 403},
    {"Origin of another scheme", "localhost:8278", "https://localhost:8278", "/", 1, 1, 403},
    {"Origin of another port", "localhost:8278", "http://localhost:3000", "/", 1, 1, 403},
    {"Origin without port", "localhost:8278", "http://localhost", "/", 1, 1, 403},
    {"another Origin", "localhost:8278", "http://evil.example", "/", 1, 1, 403},
    {"two Origins", "localhost:8278", "http://localhost:8278", "/", 1, 2, 403},
    {"NUL", "localhost", NULL, "/api%00", 1, 0, 400},
    {"slash", "localhost", NULL, "/api%2fv1", 1, 0, 400},
    {"slash in capitals", "localhost", NULL, "/api%2Fv1", 1, 0, 400},
    {"backslash", "localhost", NULL, "/api%5Cv1", 1, 0, 400},
    {"plain backslash", "localhost", NULL, "/api\\v1", 1, 0, 400},
    {"dots", "localhost", NULL, "/a/../b", 1, 0, 400},
    {"encoded dots", "localhost", NULL, "/a/%2e%2E/b", 1, 0, 400},
    {"half encoded dots", "localhost", NULL, "/a/.%2e", 1, 0, 400},
    {"dots at the end", "localhost", NULL, "/..", 1, 0, 400},
    {"one dot before a query of dots", "localhost", NULL, "/a.?x=..", 1, 0, 0},
    {"not ASCII", "localhost", NULL, "/\xc3\xa9", 1, 0, 400},
    {"control", "localhost", NULL, "/a\tb", 1, 0, 400},
    {"absolute form", "localhost", NULL, "http://localhost/", 1, 0, 400},
    {"asterisk", "localhost", NULL, "*", 1, 0, 400},
    {"empty", "localhost", NULL, "", 1, 0, 400},
    {"unknown", "localhost", NULL, NULL, 1, 0, 400},
    {"Host goes first", "evil", "http://evil", "/..", 1, 1, 421},
};

START_TEST(a_request_is_checked)
{
    vv_guard g = vv_guard_init(8278);
    ck_assert(vv_guard_allow(&g, "box.lan"));
    vv_request rq = {.method = "GET", .target = checks[_i].target, .host = checks[_i].host, .origin = checks[_i].origin,
                     .host_count = checks[_i].hosts, .origin_count = checks[_i].origins};
    vv_problem p;
    vv_response rs = {0};
    bool passes = vv_guard_check(&g, &rq, &p);
    if (!passes)
        vv_problem_respond(&rs, &p);
    ck_assert_msg((int)rs.status == checks[_i].want, "%s: wanted %d, got %u", checks[_i].name, checks[_i].want,
                  rs.status);
    vv_response_done(&rs);
}
END_TEST

static const struct {
    const char *host;
    bool want;
} hosts[] = {
    {"box", true}, {"box.lan", true}, {"a_b-c.1", true}, {"192.168.0.7", true}, {"[::1]", true},
    {"[fe80::1.2.3.4]", true}, {"", false}, {"a:80", false}, {"::1", false}, {"[::1", false}, {"[]", false},
    {"[::1]:80", false}, {"a/b", false}, {"http://a", false}, {"a b", false}, {"*", false}, {"\xc3\xa9", false},
};

START_TEST(a_host_to_allow_is_one)
{
    ck_assert_msg(vv_guard_is_host(hosts[_i].host) == hosts[_i].want, "%s", hosts[_i].host);
}
END_TEST

static const struct {
    const char *raw, *path, *names; /* names and values, each followed by a blank; NULL = refused */
} targets[] = {
    {"/", "/", ""},
    {"/?", "/", ""},
    {"/a%20b", "/a b", ""},
    {"/a?x=1&y=2", "/a", "x 1 y 2 "},
    {"/a?x", "/a", "x  "},
    {"/a?x=", "/a", "x  "},
    {"/a?x=1=2", "/a", "x 1=2 "},
    {"/a?q=a+b%2Bc", "/a", "q a b+c "},
    {"/a?q=%c3%a9", "/a", "q \xc3\xa9 "},
    {"/a?%78=1", "/a", "x 1 "},
    {"/a?x=1&x=2", NULL, NULL},
    {"/a?base=2&x=1&base=1&base=2", "/a", "base 2 x 1 base 1 base 2 "},
    {"/a?base=2&x=1&base=1&x=2", NULL, NULL},
    {"/a?execution&%65xecution=", "/a", "execution  execution  "},
    {"/a?as_of=1&as_of=1", NULL, NULL},
    {"/a?token=1&token=2", NULL, NULL},
    {"/a?x=1&%78=2", NULL, NULL},
    {"/a?&x=1", NULL, NULL},
    {"/a?x=1&", NULL, NULL},
    {"/a?=1", NULL, NULL},
    {"/a?x=%", NULL, NULL},
    {"/a?x=%4", NULL, NULL},
    {"/a?x=%zz", NULL, NULL},
    {"/a?x=%00", NULL, NULL},
    {"/a?x=%ff", NULL, NULL},
    {"/a%zz", NULL, NULL},
    {"/a%", NULL, NULL},
};

START_TEST(a_target_is_taken_apart)
{
    vv_target t;
    vv_problem p;
    uint8_t *raw = test_exact(targets[_i].raw, strlen(targets[_i].raw) + 1);
    bool good = vv_target_parse((char *)raw, &t, &p);
    ck_assert_msg(good == (targets[_i].path != NULL), "%s", targets[_i].raw);
    if (good) {
        char names[256] = "";
        ck_assert_str_eq(t.path, targets[_i].path);
        for (size_t i = 0; i < t.param_count; i++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s %s ", t.params[i].name.p,
                     t.params[i].value.p);
        ck_assert_str_eq(names, targets[_i].names);
    }
    vv_target_done(&t);
    free(raw);
}
END_TEST

START_TEST(a_query_of_many_parameters_is_refused)
{
    char raw[1024] = "/?p0";
    for (int i = 1; i <= VV_TARGET_PARAMS; i++)
        snprintf(raw + strlen(raw), sizeof raw - strlen(raw), "&p%d", i);
    uint8_t *exact = test_exact(raw, strlen(raw) + 1);
    vv_target t;
    vv_problem p;
    ck_assert(!vv_target_parse((char *)exact, &t, &p));
    vv_target_done(&t);
    free(exact);
}
END_TEST

START_TEST(executions_are_a_thousand_at_most)
{
    vv_wr w = vv_wr_growing(1 << 20);
    vv_wr_bytes(&w, "/?x", 3);
    for (int i = 0; i < VV_QUERY_EXECUTIONS; i++)
        vv_wr_bytes(&w, "&execution=1&base=2", 19);
    for (int more = 0; more < 2; more++) {
        vv_wr_u8(&w, 0);
        uint8_t *exact = test_exact(w.buf, w.len--);
        vv_target t;
        vv_problem p;
        ck_assert_int_eq(vv_target_parse((char *)exact, &t, &p), !more);
        if (!more)
            ck_assert_uint_eq(t.param_count, 2 * VV_QUERY_EXECUTIONS + 1);
        vv_target_done(&t);
        free(exact);
        vv_wr_bytes(&w, "&base=3", 7);
    }
    vv_wr_done(&w);
}
END_TEST

START_TEST(prop_random_targets_are_read_within_bounds)
{
    test_rng g = test_seeded("targets");
    static const char letters[] = "/?&=%+.aZ0%2e%00%ff";
    for (int round = 0; round < 20000; round++) {
        char raw[64];
        size_t n = test_below(&g, sizeof raw - 1);
        for (size_t i = 0; i < n; i++)
            raw[i] = letters[test_below(&g, sizeof letters - 1)];
        raw[n] = 0;
        uint8_t *exact = test_exact(raw, n + 1);
        vv_guard guard = vv_guard_init(1);
        vv_request rq = {.method = "GET", .target = (char *)exact, .host = "localhost", .host_count = 1};
        vv_problem p;
        vv_target t = {0};
        if (vv_guard_check(&guard, &rq, &p))
            (void)!vv_target_parse((char *)exact, &t, &p);
        vv_target_done(&t);
        free(exact);
    }
}
END_TEST

static const struct {
    const char *accept;
    vv_coding want;
} codings[] = {
    {NULL, VV_CODING_IDENTITY},          {"", VV_CODING_IDENTITY},
    {"gzip", VV_CODING_GZIP},            {"GZIP", VV_CODING_GZIP},
    {"zstd", VV_CODING_ZSTD},            {"gzip, deflate, br, zstd", VV_CODING_ZSTD},
    {"gzip;q=1.0, zstd;q=0.5", VV_CODING_GZIP}, {"gzip;q=0", VV_CODING_IDENTITY},
    {"*", VV_CODING_ZSTD},               {"*;q=0.5, zstd;q=0", VV_CODING_GZIP},
    {"br, identity", VV_CODING_IDENTITY}, {"gzip ; q=0.3 , zstd;q=0.200", VV_CODING_GZIP},
    {"gzipx", VV_CODING_IDENTITY},       {",,gzip,", VV_CODING_GZIP},
    {"gzip;q=", VV_CODING_IDENTITY},
};

START_TEST(a_coding_is_chosen)
{
    ck_assert_msg(vv_coding_choose(codings[_i].accept) == codings[_i].want, "%s", codings[_i].accept);
}
END_TEST

static const struct {
    const char *header;
    bool want;
} etags[] = {
    {NULL, false}, {"", false}, {"*", true}, {"\"abc\"", true}, {"W/\"abc\"", true}, {"\"abc-gzip\"", true},
    {"\"x\", \"abc\"", true}, {"\"abcd\"", false}, {"\"ab\"", false}, {"abc", false}, {"\"abc", false},
    {"\"x\"", false},
};

START_TEST(an_etag_is_compared)
{
    ck_assert_msg(vv_etag_matches(etags[_i].header, "abc") == etags[_i].want, "%s", etags[_i].header);
}
END_TEST

START_TEST(a_token_is_asked_for)
{
    vv_token t;
    vv_token_init(&t, "0123456789abcdef", 8278);
    vv_request rq = {.method = "GET", .target = "/a?x=1&token=0123456789abcdef&y=2"};
    vv_target target, none = {0};
    vv_problem p;
    ck_assert(vv_target_parse(rq.target, &target, &p));
    ck_assert_int_eq(vv_token_check(&t, &rq, &target), VV_TOKEN_TRADE);
    ck_assert_int_eq(vv_token_check(&t, &rq, &none), VV_TOKEN_BAD);
    vv_response rs = {0};
    vv_token_trade(&t, &rq, &rs);
    ck_assert_uint_eq(rs.status, 303);
    ck_assert_str_eq(vv_response_get(&rs, "Location"), "/a?x=1&y=2");
    char cookie[200];
    snprintf(cookie, sizeof cookie, "other=1; %.*s", (int)strcspn(vv_response_get(&rs, "Set-Cookie"), ";"),
             vv_response_get(&rs, "Set-Cookie"));
    rq.cookie = cookie;
    ck_assert_int_eq(vv_token_check(&t, &rq, &none), VV_TOKEN_GOOD);
    vv_token elsewhere; /* a server beside this one, on another port */
    vv_token_init(&elsewhere, "0123456789abcdef", 8279);
    ck_assert_int_eq(vv_token_check(&elsewhere, &rq, &none), VV_TOKEN_BAD);
    cookie[strlen(cookie) - 1] ^= 1;
    ck_assert_int_eq(vv_token_check(&t, &rq, &none), VV_TOKEN_BAD);
    rq.cookie = NULL;
    rq.authorization = "Bearer 0123456789abcdef";
    ck_assert_int_eq(vv_token_check(&t, &rq, &none), VV_TOKEN_GOOD);
    rq.authorization = "Bearer 0123456789abcdee";
    ck_assert_int_eq(vv_token_check(&t, &rq, &none), VV_TOKEN_BAD);
    vv_token_init(&t, NULL, 8278);
    ck_assert_int_eq(vv_token_check(&t, &rq, &none), VV_TOKEN_GOOD);
    vv_target_done(&target);
    vv_response_done(&rs);
}
END_TEST

static const struct {
    const char *header;
    uint64_t size;
    vv_range_kind want;
    uint64_t first, last;
} ranges[] = {
    {NULL, 10, VV_RANGE_WHOLE, 0, 0},
    {"", 10, VV_RANGE_WHOLE, 0, 0},
    {"bytes=0-0", 10, VV_RANGE_PART, 0, 0},
    {"Bytes=0-0", 10, VV_RANGE_PART, 0, 0},
    {"bytes= 2-3 ", 10, VV_RANGE_PART, 2, 3},
    {"bytes=2-", 10, VV_RANGE_PART, 2, 9},
    {"bytes=2-10", 10, VV_RANGE_PART, 2, 9},
    {"bytes=9-9", 10, VV_RANGE_PART, 9, 9},
    {"bytes=10-", 10, VV_RANGE_OUTSIDE, 0, 0},
    {"bytes=10-12", 10, VV_RANGE_OUTSIDE, 0, 0},
    {"bytes=-1", 10, VV_RANGE_PART, 9, 9},
    {"bytes=-10", 10, VV_RANGE_PART, 0, 9},
    {"bytes=-11", 10, VV_RANGE_PART, 0, 9},
    {"bytes=-0", 10, VV_RANGE_OUTSIDE, 0, 0},
    {"bytes=-5", 0, VV_RANGE_OUTSIDE, 0, 0},
    {"bytes=0-", 0, VV_RANGE_OUTSIDE, 0, 0},
    {"bytes=3-2", 10, VV_RANGE_WHOLE, 0, 0},
    {"bytes=-", 10, VV_RANGE_WHOLE, 0, 0},
    {"bytes=1", 10, VV_RANGE_WHOLE, 0, 0},
    {"bytes=1-2,4-5", 10, VV_RANGE_WHOLE, 0, 0},
    {"bytes=1-2x", 10, VV_RANGE_WHOLE, 0, 0},
    {"bytes=+1-2", 10, VV_RANGE_WHOLE, 0, 0},
    {"bytes=1--2", 10, VV_RANGE_WHOLE, 0, 0},
    {"bytes", 10, VV_RANGE_WHOLE, 0, 0},
    {"items=0-1", 10, VV_RANGE_WHOLE, 0, 0},
    {"bytes=0-18446744073709551615", 10, VV_RANGE_PART, 0, 9},
    {"bytes=0-99999999999999999999999", 10, VV_RANGE_PART, 0, 9},
    {"bytes=99999999999999999999999-", 10, VV_RANGE_OUTSIDE, 0, 0},
    {"bytes=-99999999999999999999999", 10, VV_RANGE_PART, 0, 9},
    {"bytes=0-", UINT64_MAX, VV_RANGE_PART, 0, UINT64_MAX - 1},
};

START_TEST(a_range_is_read)
{
    uint64_t first = 0, last = 0;
    ck_assert_msg(vv_range_of(ranges[_i].header, ranges[_i].size, &first, &last) == ranges[_i].want, "%s",
                  ranges[_i].header);
    ck_assert_uint_eq(first, ranges[_i].first);
    ck_assert_uint_eq(last, ranges[_i].last);
}
END_TEST

int main(void)
{
    TCase *t = test_case("guard", 0);
    tcase_add_loop_test(t, a_request_is_checked, 0, (int)VV_ARRAY_LEN(checks));
    tcase_add_loop_test(t, a_host_to_allow_is_one, 0, (int)VV_ARRAY_LEN(hosts));
    tcase_add_loop_test(t, a_target_is_taken_apart, 0, (int)VV_ARRAY_LEN(targets));
    tcase_add_test(t, a_query_of_many_parameters_is_refused);
    tcase_add_test(t, executions_are_a_thousand_at_most);
    tcase_add_test(t, prop_random_targets_are_read_within_bounds);
    tcase_add_loop_test(t, a_coding_is_chosen, 0, (int)VV_ARRAY_LEN(codings));
    tcase_add_loop_test(t, an_etag_is_compared, 0, (int)VV_ARRAY_LEN(etags));
    tcase_add_loop_test(t, a_range_is_read, 0, (int)VV_ARRAY_LEN(ranges));
    tcase_add_test(t, a_token_is_asked_for);
    return test_run();
}
