#include "config.h"

#include "format/ids.h"

#include "tests/testing.h"

#include "tests/format/fixture.h"

START_TEST(runtime_id_text)
{
    vv_runtime_id id, back;
    memset(&id, 0x0b, sizeof id);
    char text[VV_RUNTIME_TEXT];
    vv_runtime_text(text, &id);
    ck_assert_str_eq(text, "baml_id_1_CwsLCwsLCwsLCwsLCwsLCw");
    ck_assert_uint_eq(strlen(text), VV_RUNTIME_TEXT - 1);
    ck_assert_int_eq(vv_runtime_parse(vv_cstr(text), &back, NULL), VV_OK);
    ck_assert_mem_eq(&back, &id, sizeof id);
}
END_TEST

START_TEST(thread_and_call_texts)
{
    vv_euid euid;
    memset(&euid, 9, sizeof euid);
    vv_thread_ref t = vv_thread_ref_make(&euid, 10, 11), t2;
    char text[VV_CALL_TEXT];
    vv_thread_text(text, &t);
    cJSON *all = test_json("tests/fixtures/vectors.json");
    const cJSON *wire = cJSON_GetObjectItemCaseSensitive(all, "wire_thread");
    ck_assert_str_eq(text, cJSON_GetObjectItemCaseSensitive(wire, "text")->valuestring);
    cJSON_Delete(all);
    ck_assert_uint_eq(strlen(text), VV_THREAD_TEXT - 1);
    ck_assert_int_eq(vv_thread_parse(vv_cstr(text), &t2, NULL), VV_OK);
    ck_assert_mem_eq(&t2, &t, sizeof t);
    ck_assert_uint_eq(vv_thread_engine(&t2), 10);
    ck_assert_uint_eq(vv_thread_number(&t2), 11);

    memset(&euid, 7, sizeof euid);
    t = vv_thread_ref_make(&euid, 2, 3);
    vv_call_ref c = vv_call_ref_make(&t, 4), c2;
    vv_call_text(text, &c);
    ck_assert_uint_eq(strlen(text), VV_CALL_TEXT - 1);
    ck_assert_int_eq(vv_call_parse(vv_cstr(text), &c2, NULL), VV_OK);
    ck_assert_mem_eq(&c2, &c, sizeof c);
    ck_assert_uint_eq(vv_call_number(&c2), 4);
    t2 = vv_call_thread(&c2);
    ck_assert_mem_eq(&t2, &t, sizeof t);
}
END_TEST

typedef enum { THREAD, CALL, RUNTIME } kind;

static vv_code parse(kind k, vv_str s, vv_error *err)
{
    vv_thread_ref t;
    vv_call_ref c;
    vv_runtime_id r;
    switch (k) {
    case THREAD:
        return vv_thread_parse(s, &t, err);
    case CALL:
        return vv_call_parse(s, &c, err);
    case RUNTIME:
        return vv_runtime_parse(s, &r, err);
    }
    return VV_ERR_ARG;
}

/* A text of prefix and the base64url of n bytes, the first of which is given. */
static const char *made(const char *prefix, uint8_t first, size_t n)
{
    static char text[400];
    uint8_t bytes[256] = {first};
    strcpy(text, prefix);
    vv_base64url(text + strlen(prefix), bytes, n);
    return text;
}

START_TEST(malformed_ids)
{
    static const struct {
        kind kind;
        const char *prefix; /* with n = 0: the whole text */
        uint8_t first;
        size_t n;
        const char *name;
    } rows[] = {
        {THREAD, "bad", 0, 0, "InvalidPrefix"},
        {CALL, "bad", 0, 0, "InvalidPrefix"},
        {RUNTIME, "bad", 0, 0, "InvalidPrefix"},
        {RUNTIME, "", 0, 0, "InvalidPrefix"},
        {CALL, "baml_call_1", 0, 0, "InvalidPrefix"},
        {CALL, "BAML_CALL_1_", 0, 0, "InvalidPrefix"},
        {CALL, "baml_call_1_!", 0, 0, "InvalidBase64"},
        {THREAD, "baml_thread_1_!", 0, 0, "InvalidBase64"},
        {RUNTIME, "baml_id_1_CwsLCwsLCwsLCwsLCwsLCw==", 0, 0, "InvalidBase64"},
        {RUNTIME, "baml_id_1_CwsLCwsLCwsLCwsLCwsLCx", 0, 0, "InvalidBase64"},
        {RUNTIME, "baml_id_1_CwsLCwsLCwsLCwsLCwsLC", 0, 0, "InvalidBase64"},
        {RUNTIME, "baml_id_1_C+sLCwsLCwsLCwsLCwsLCw", 0, 0, "InvalidBase64"},
        {CALL, "baml_call_1_", 0, 0, "InvalidLength"},
        {CALL, "baml_call_1_", 1, 40, "InvalidLength"},
        {CALL, "baml_call_1_", 1, 42, "InvalidLength"},
        {THREAD, "baml_thread_1_", 1, 32, "InvalidLength"},
        {THREAD, "baml_thread_1_", 1, 34, "InvalidLength"},
        {THREAD, "baml_thread_1_", 99, 200, "InvalidLength"},
        {RUNTIME, "baml_id_1_", 0, 15, "InvalidLength"},
        {RUNTIME, "baml_id_1_", 0, 17, "InvalidLength"},
        {CALL, "baml_call_1_", 99, 41, "UnsupportedVersion"},
        {CALL, "baml_call_1_", 0, 41, "UnsupportedVersion"},
        {THREAD, "baml_thread_1_", 99, 33, "UnsupportedVersion"},
        {CALL, "baml_call_1_", 1, 41, NULL},
        {THREAD, "baml_thread_1_", 1, 33, NULL},
        {RUNTIME, "baml_id_1_", 99, 16, NULL},
        {CALL, "baml_thread_1_", 1, 33, "InvalidPrefix"},
        {RUNTIME, "baml_thread_1_", 1, 33, "InvalidPrefix"},
        {THREAD, "baml_call_1_", 1, 41, "InvalidPrefix"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        const char *text = made(rows[i].prefix, rows[i].first, rows[i].n);
        vv_error err = {0};
        char *exact = (char *)test_exact(text, strlen(text));
        vv_code rc = parse(rows[i].kind, (vv_str){exact, strlen(text)}, &err);
        free(exact);
        if (rows[i].n == 40)
            ck_assert_ptr_nonnull(strstr(err.msg, "40 bytes instead of 41"));
        if (rows[i].first == 99 && rows[i].n == 33)
            ck_assert_ptr_nonnull(strstr(err.msg, "99"));
        TEST_NAME(rc, &err, rows[i].name);
    }
}
END_TEST

START_TEST(any_length_of_text)
{
    for (size_t n = 0; n < 200; n++) {
        vv_error err = {0};
        vv_code rc = parse(CALL, vv_cstr(made("baml_call_1_", 1, n)), &err);
        TEST_NAME(rc, &err, n == 41 ? NULL : "InvalidLength");
    }
}
END_TEST

START_TEST(mutated_texts_never_parse_as_the_same_id)
{
    test_rng g = test_seeded("id texts");
    for (int i = 0; i < 20000; i++) {
        vv_call_ref c, back;
        test_fill(&g, &c, sizeof c);
        char text[VV_CALL_TEXT];
        vv_call_text(text, &c);
        ck_assert_int_eq(vv_call_parse(vv_cstr(text), &back, NULL), VV_OK);
        ck_assert_mem_eq(&back, &c, sizeof c);
        text[test_below(&g, VV_CALL_TEXT - 1)] ^= (char)(1 + test_below(&g, 127));
        char *exact = (char *)test_exact(text, VV_CALL_TEXT - 1);
        if (vv_call_parse((vv_str){exact, VV_CALL_TEXT - 1}, &back, NULL) == VV_OK)
            ck_assert_mem_ne(&back, &c, sizeof c);
        free(exact);
    }
}
END_TEST

START_TEST(uuid7)
{
    static const uint8_t none[10], ones[10] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    static const uint8_t want[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0x70, 0, 0x80};
    uint8_t got[16], next[16];
    vv_uuid7_make(got, 0x0123456789ab, none);
    ck_assert_mem_eq(got, want, 16);
    vv_uuid7_make(got, 0, ones);
    ck_assert_mem_eq(got, "\0\0\0\0\0\0\x7f\xff\xbf\xff\xff\xff\xff\xff\xff\xff", 16);
    vv_uuid7_new(got);
    vv_uuid7_new(next);
    ck_assert_mem_ne(got, next, 16);
    ck_assert_int_eq(got[6] >> 4, 7);
    ck_assert_int_eq(got[8] >> 6, 2);
    ck_assert_uint_gt(vv_be32(got) >> 8, 0x0180000 >> 8); /* after 2022 */
    vv_uuid4_new(got);
    vv_uuid4_new(next);
    ck_assert_mem_ne(got, next, 16);
    ck_assert_int_eq(got[6] >> 4, 4);
    ck_assert_int_eq(got[8] >> 6, 2);
}
END_TEST

START_TEST(program_hash)
{
    const vv_program_file files[] = {
        {vv_cstr("a.baml"), vv_cstr("alpha")},
        {vv_cstr("b.baml"), vv_cstr("beta")},
    };
    uint8_t sum[32];
    char hex[65];
    vv_program_hash(sum, vv_cstr("0.17.0"), files, 2);
    vv_hex(hex, sum, 32);
    ck_assert_str_eq(hex, "e98260b82b3b024bcc7d3b56fee3632a840cc8b05abf9ebcbd28882b16ef3049");
}
END_TEST

int main(void)
{
    TCase *t = test_case("ids", 0);
    tcase_add_test(t, runtime_id_text);
    tcase_add_test(t, thread_and_call_texts);
    tcase_add_test(t, malformed_ids);
    tcase_add_test(t, any_length_of_text);
    tcase_add_test(t, mutated_texts_never_parse_as_the_same_id);
    tcase_add_test(t, uuid7);
    tcase_add_test(t, program_hash);
    return test_run();
}
