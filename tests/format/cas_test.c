#include "config.h"

#include "format/cas.h"

#include "format/segment.h"
#include "format/usage.h"
#include "tests/testing.h"

#include "tests/format/fixture.h"

START_TEST(cid_vector)
{
    vv_blob want = test_vector("value_cid");
    vv_cid cid, other;
    static const char body[] = "\0baml-value-body\xff";
    vv_cid_of(&cid, VV_CODEC_VALUE, body, sizeof body - 1);
    ck_assert_mem_eq(&cid, want.p, 32);
    vv_cid_of(&other, VV_CODEC_FUNCTION_TABLE, body, sizeof body - 1);
    ck_assert_mem_ne(&cid, &other, 32);
    vv_blob_done(&want);
}
END_TEST

START_TEST(object_vector_both_ways)
{
    vv_blob v = test_vector("cas_object_value_int7");
    vv_cas_object o;
    vv_error err = {0};
    ck_assert_int_eq(vv_cas_decode(&o, v.p, v.n, NULL, NULL), VV_OK);
    ck_assert(o.codec == VV_CODEC_VALUE && o.body_len == 2 && memcmp(o.body, "\x20\x07", 2) == 0);
    ck_assert_int_eq(vv_cas_decode(&o, v.p, v.n, &o.cid, NULL), VV_OK);
    vv_cid other = o.cid;
    other.b[0] ^= 1;
    TEST_NAME(vv_cas_decode(&o, v.p, v.n, &other, &err), &err, "CasIdentityMismatch");
    vv_wr w = vv_wr_growing(1000);
    vv_wr_u8(&w, 7); /* an object need not begin its buffer */
    vv_cas_encode(&w, VV_CODEC_VALUE, "\x20\x07", 2);
    ck_assert_uint_eq(w.len, v.n + 1);
    ck_assert_mem_eq(w.buf + 1, v.p, v.n);
    vv_wr_reset(&w);
    vv_cas_encode(&w, 9, "", 0);
    ck_assert_uint_eq(w.len, VV_CAS_FIXED);
    ck_assert(vv_cas_decode(&o, w.buf, w.len, NULL, NULL) == VV_OK && o.codec == 9 && o.body_len == 0);
    vv_wr_done(&w);
    vv_blob_done(&v);
}
END_TEST

START_TEST(object_cuts_and_flips)
{
    vv_blob v = test_vector("cas_object_value_int7");
    vv_cas_object o;
    for (size_t n = 0; n < v.n; n++) {
        uint8_t *exact = test_exact(v.p, n);
        vv_error err = {0};
        TEST_NAME(vv_cas_decode(&o, exact, n, NULL, &err), &err, n < 32 ? "Truncated" : "InvalidChecksum");
        free(exact);
    }
    for (size_t bit = 0; bit < v.n * 8; bit++) {
        uint8_t *exact = test_exact(v.p, v.n);
        exact[bit / 8] ^= (uint8_t)(1 << bit % 8);
        vv_error err = {0};
        TEST_NAME(vv_cas_decode(&o, exact, v.n, NULL, &err), &err, "InvalidChecksum");
        free(exact);
    }
    vv_blob_done(&v);
}
END_TEST

/* One byte changed or the body cut, and sealed again. Offsets: version 8, codec 10, length 12, cid 20, body 52. */
START_TEST(object_errors_by_name)
{
    static const struct {
        size_t at;
        uint8_t value;
        size_t n; /* bytes of the body that are kept, of 54 */
        const char *name;
    } rows[] = {
        {0, 'X', 54, "InvalidMagic"},   {9, 2, 54, "UnsupportedVersion"}, {8, 1, 54, "UnsupportedVersion"},
        {19, 3, 54, "Truncated"},       {12, 0xff, 54, "Truncated"},      {19, 1, 54, "TrailingBytes"},
        {11, 2, 54, "InvalidChecksum"}, {20, 0, 54, "InvalidChecksum"},   {53, 8, 54, "InvalidChecksum"},
        {0, 'B', 7, "Truncated"},       {0, 'B', 9, "Truncated"},         {0, 'B', 30, "Truncated"},
        {0, 'B', 53, "Truncated"},      {0, 'B', 0, "Truncated"},         {0, 'B', 54, NULL},
    };
    vv_blob v = test_vector("cas_object_value_int7");
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        vv_wr w = vv_wr_growing(1000);
        vv_wr_bytes(&w, v.p, 54);
        w.buf[rows[i].at] = rows[i].value;
        w.len = rows[i].n;
        vv_seal_append(&w, 0);
        uint8_t *exact = test_exact(w.buf, w.len);
        vv_cas_object o;
        vv_error err = {0};
        TEST_NAME(vv_cas_decode(&o, exact, w.len, NULL, &err), &err, rows[i].name);
        free(exact);
        vv_wr_done(&w);
    }
    vv_blob_done(&v);
}
END_TEST

START_TEST(paths)
{
    vv_cid cid;
    for (size_t i = 0; i < sizeof cid; i++)
        cid.b[i] = (uint8_t)(0xa0 + i);
    char path[VV_CAS_PATH];
    vv_cas_path(path, &cid);
    ck_assert_str_eq(path, "cas/sha256/a0/a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf.bamlvalue");
}
END_TEST

START_TEST(usage_ledger)
{
    uint8_t b[VV_USAGE_BYTES + 1] = {0};
    uint64_t total;
    vv_error err = {0};
    vv_usage_encode(b, 0x0102030405060708);
    ck_assert_mem_eq(b, "BAMLUSE1\1\2\3\4\5\6\7\10", 16);
    ck_assert_int_eq(vv_usage_decode(b, VV_USAGE_BYTES, &total, NULL), VV_OK);
    ck_assert_uint_eq(total, 0x0102030405060708);
    for (size_t n = 0; n < VV_USAGE_BYTES; n++) {
        uint8_t *exact = test_exact(b, n);
        TEST_NAME(vv_usage_decode(exact, n, &total, &err), &err, "Truncated");
        free(exact);
    }
    TEST_NAME(vv_usage_decode(b, sizeof b, &total, &err), &err, "TrailingBytes");
    for (size_t bit = 0; bit < VV_USAGE_BYTES * 8; bit++) {
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        TEST_NAME(vv_usage_decode(b, VV_USAGE_BYTES, &total, &err), &err, "InvalidChecksum");
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    b[7] = '2';
    vv_sha256(b, 16, b + 16);
    TEST_NAME(vv_usage_decode(b, VV_USAGE_BYTES, &total, &err), &err, "InvalidMagic");
}
END_TEST

int main(void)
{
    TCase *t = test_case("cas", 0);
    tcase_add_test(t, cid_vector);
    tcase_add_test(t, object_vector_both_ways);
    tcase_add_test(t, object_cuts_and_flips);
    tcase_add_test(t, object_errors_by_name);
    tcase_add_test(t, paths);
    tcase_add_test(t, usage_ledger);
    return test_run();
}
