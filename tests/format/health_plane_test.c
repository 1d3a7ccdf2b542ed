#include "config.h"

#include "format/health_plane.h"

#include "tests/testing.h"

static vv_code walk(const uint8_t *p, size_t n, const vv_euid *euid, uint64_t sequence, vv_wr *again, vv_error *err)
{
    vv_health_segment s;
    vv_code rc = vv_health_open(&s, p, n, euid, sequence, false, err);
    if (rc != VV_OK)
        return rc;
    if (again)
        vv_health_begin(again, &s.euid, s.sequence);
    vv_health_record r;
    bool more = true;
    while ((rc = vv_health_next(&s, &r, &more, err)) == VV_OK && more) {
        if (again)
            vv_health_add(again, &r.root, r.count);
        vv_str name;
        uint64_t value;
        unsigned terms = r.count, seen = 0;
        for (; vv_health_term(&r, &name, &value); seen++) {
            char text[VV_HEALTH_NAME_MAX + 1];
            snprintf(text, sizeof text, "%.*s", (int)name.n, name.p);
            if (again)
                vv_health_add_term(again, text, value);
        }
        ck_assert_uint_eq(seen, terms);
    }
    if (again)
        vv_health_end(again, s.record_count);
    return rc;
}

/* A body written out by hand: sequence 3 of stream 0909.., one root with the terms "a" = 5 and "b.c" = 2^64 - 1. */
static const char body[] = "5641525648" "4c5431" "0001" "0000000000000003" "09090909090909090909090909090909"
                           "0000000000000001" "000000000000003e"
                           "0707070707070707070707070707070707070707070707070707070707070707" "0002"
                           "00000001" "61" "0000000000000005"
                           "00000003" "622e63" "ffffffffffffffff";

static vv_wr sealed(const uint8_t *p, size_t n)
{
    vv_wr w = vv_wr_growing(1 << 20);
    vv_wr_bytes(&w, p, n);
    vv_seal_append(&w, 0);
    ck_assert(vv_wr_ok(&w));
    return w;
}

START_TEST(by_hand_both_ways)
{
    vv_blob b = test_unhex(body);
    vv_wr file = sealed(b.p, b.n), again = vv_wr_growing(1 << 20);
    vv_euid euid, other;
    memset(euid.b, 9, sizeof euid.b);
    memset(other.b, 8, sizeof other.b);
    vv_error err = {0};
    ck_assert_int_eq(walk(file.buf, file.len, &euid, 3, &again, &err), VV_OK);
    ck_assert(vv_wr_ok(&again) && again.len == file.len && memcmp(again.buf, file.buf, file.len) == 0);
    TEST_NAME(walk(file.buf, file.len, &other, 3, NULL, &err), &err, "EuidMismatch");
    err = (vv_error){0};
    TEST_NAME(walk(file.buf, file.len, &euid, 4, NULL, &err), &err, "SequenceMismatch");
    vv_health_segment s;
    vv_health_record r;
    bool more;
    uint64_t v;
    ck_assert_int_eq(vv_health_open(&s, file.buf, file.len, NULL, 0, true, NULL), VV_OK);
    ck_assert(vv_health_next(&s, &r, &more, NULL) == VV_OK && more && r.count == 2 && r.root.b[0] == 7);
    ck_assert(vv_health_find(&r, "a", &v) && v == 5);
    ck_assert(vv_health_find(&r, "b.c", &v) && v == UINT64_MAX);
    ck_assert(!vv_health_find(&r, "b", &v) && v == 0);
    ck_assert(!vv_health_find(&r, "b.cc", &v));
    ck_assert_uint_eq(vv_health_sum(&r, "b."), UINT64_MAX);
    ck_assert_uint_eq(vv_health_sum(&r, ""), UINT64_MAX);
    ck_assert_uint_eq(vv_health_sum(&r, "c"), 0);
    ck_assert(vv_health_next(&s, &r, &more, NULL) == VV_OK && !more);
    vv_wr_done(&file);
    vv_wr_done(&again);
    vv_blob_done(&b);
}
END_TEST

/* Every prefix of the file, and every prefix of the body under a right seal; every bit of the file. */
START_TEST(cut_and_flipped)
{
    vv_blob b = test_unhex(body);
    vv_wr file = sealed(b.p, b.n);
    for (size_t k = 0; k < file.len; k++) {
        uint8_t *exact = test_exact(file.buf, k);
        vv_error err = {0};
        TEST_NAME(walk(exact, k, NULL, 0, NULL, &err), &err, k < 32 ? "Truncated" : "InvalidChecksum");
        free(exact);
    }
    for (size_t k = 0; k < b.n; k++) {
        vv_wr part = sealed(b.p, k);
        uint8_t *exact = test_exact(part.buf, part.len);
        vv_error err = {0};
        TEST_NAME(walk(exact, part.len, NULL, 0, NULL, &err), &err, "Truncated");
        free(exact);
        vv_wr_done(&part);
    }
    for (size_t bit = 0; bit < file.len * 8; bit++) {
        vv_error err = {0};
        file.buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
        TEST_NAME(walk(file.buf, file.len, NULL, 0, NULL, &err), &err, "InvalidChecksum");
        file.buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    vv_wr_done(&file);
    vv_blob_done(&b);
}
END_TEST

static const struct {
    const char *what;
    size_t at;
    uint8_t byte;
    const char *want;
} edits[] = {
    {"another magic", 0, 'B', "InvalidMagic"},
    {"another version", 9, 2, "UnsupportedVersion"},
    {"a record too many", 41, 2, "Truncated"},
    {"a record too few", 41, 0, "TrailingBytes"},
    {"a payload too long", 49, 0x3f, "Truncated"},
    {"a payload too short", 49, 0x3d, "TrailingBytes"},
    {"a term too many", 83, 3, "Truncated"},
    {"a term too few", 83, 1, "TrailingBytes"},
    {"an empty name", 87, 0, "HealthNameInvalid"},
    {"a name too long for the file", 84, 1, "Truncated"},
    {"a name that is no text", 88, 0xff, "HealthNameInvalid"},
    {"names in reverse", 88, 'c', "HealthNameOrder"},
};

START_TEST(strict)
{
    vv_blob b = test_unhex(body);
    uint8_t *copy = test_exact(b.p, b.n);
    copy[edits[_i].at] = edits[_i].byte;
    vv_wr file = sealed(copy, b.n);
    uint8_t *exact = test_exact(file.buf, file.len);
    vv_error err = {0};
    ck_assert_msg(walk(exact, file.len, NULL, 0, NULL, &err) != VV_OK, "%s passed", edits[_i].what);
    ck_assert_msg(strcmp(err.name, edits[_i].want) == 0, "%s: %s", edits[_i].what, err.name);
    free(exact);
    free(copy);
    vv_wr_done(&file);
    vv_blob_done(&b);
}
END_TEST

/* The same name twice, and a name that continues the one before it. */
START_TEST(order_of_names)
{
    static const struct {
        const char *first, *second, *want;
    } pairs[] = {{"a", "a", "HealthNameOrder"}, {"a", "a.b", NULL}, {"a.b", "a", "HealthNameOrder"}, {"a", "b", NULL}};
    for (size_t i = 0; i < VV_ARRAY_LEN(pairs); i++) {
        vv_wr w = vv_wr_growing(1 << 16);
        vv_euid euid = {{0}};
        vv_thread_ref root = {{0}};
        vv_health_begin(&w, &euid, 1);
        vv_health_add(&w, &root, 2);
        vv_health_add_term(&w, pairs[i].first, 1);
        vv_health_add_term(&w, pairs[i].second, 1);
        vv_health_end(&w, 1);
        vv_error err = {0};
        vv_code rc = walk(w.buf, w.len, NULL, 1, NULL, &err);
        if (pairs[i].want)
            TEST_NAME(rc, &err, pairs[i].want);
        else
            ck_assert_int_eq(rc, VV_OK);
        vv_wr_done(&w);
    }
}
END_TEST

START_TEST(bad_names_are_not_written)
{
    char over[VV_HEALTH_NAME_MAX + 2];
    memset(over, 'n', sizeof over - 1);
    over[sizeof over - 1] = 0;
    const char *bad[] = {"", "\xff", over};
    for (size_t i = 0; i < VV_ARRAY_LEN(bad); i++) {
        vv_wr w = vv_wr_growing(1 << 16);
        vv_health_add_term(&w, bad[i], 0);
        ck_assert(!vv_wr_ok(&w));
        vv_wr_done(&w);
    }
}
END_TEST

int main(void)
{
    TCase *t = test_case("codec", 0);
    tcase_add_test(t, by_hand_both_ways);
    tcase_add_test(t, cut_and_flipped);
    tcase_add_loop_test(t, strict, 0, (int)VV_ARRAY_LEN(edits));
    tcase_add_test(t, order_of_names);
    tcase_add_test(t, bad_names_are_not_written);
    return test_run();
}
