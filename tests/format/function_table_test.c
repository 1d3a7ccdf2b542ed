#include "config.h"

#include "format/function_table.h"

#include "tests/testing.h"

#include "tests/format/fixture.h"

static void check(const uint8_t *p, size_t n, const char *want)
{
    vv_function_table t = {0};
    vv_error err = {0};
    uint8_t *exact = test_exact(p, n);
    TEST_NAME(vv_function_table_decode(&t, exact, n, &err), &err, want);
    free(exact);
    vv_function_table_done(&t);
}

static bool opt_is(vv_opt_str s, const char *want)
{
    return want ? s.present && vv_str_eq(s.s, vv_cstr(want)) : !s.present;
}

START_TEST(vector_both_ways)
{
    vv_blob v = test_vector("function_table");
    ck_assert_uint_eq(v.n, 172);
    vv_function_table t;
    ck_assert_int_eq(vv_function_table_decode(&t, v.p, v.n, NULL), VV_OK);
    vv_wr w = vv_wr_growing(1000);
    vv_function_table_encode(&w, t.functions, t.function_count, t.files, t.file_count);
    test_wrote(&w, v.p, v.n);
    vv_wr_done(&w);
    memset(v.p, 0, v.n); /* the table keeps its own copy */
    vv_blob_done(&v);

    ck_assert_uint_eq(t.function_count, 2);
    const vv_function *f = vv_function_table_find(&t, 1);
    ck_assert(vv_str_eq(f->fqn, vv_cstr("app.Score")) && vv_str_eq(f->display_name, vv_cstr("Score")));
    ck_assert(opt_is(f->definition_key, "function:app.Score") && f->kind == VV_FN_BYTECODE);
    ck_assert(opt_is(f->kind_detail, NULL) && f->origin == VV_FN_USER && opt_is(f->source_file, "app.baml"));
    ck_assert(f->has_span && f->file_id == 3 && f->span_start == 10 && f->span_end == 90);
    ck_assert(opt_is(f->package, "app") && f->namespace_count == 1);
    ck_assert(vv_str_eq(f->namespaces[0], vv_cstr("inner")));
    f = vv_function_table_find(&t, 2);
    ck_assert(vv_str_eq(f->fqn, vv_cstr("baml.sys.print")) && opt_is(f->definition_key, NULL));
    ck_assert(f->kind == VV_FN_SYSOP && opt_is(f->kind_detail, "print") && f->origin == VV_FN_BUILTIN);
    ck_assert(opt_is(f->source_file, NULL) && !f->has_span && opt_is(f->package, NULL) && f->namespace_count == 0);
    ck_assert_ptr_null(vv_function_table_find(&t, 0));
    ck_assert_ptr_null(vv_function_table_find(&t, 3));
    ck_assert(t.file_count == 1 && vv_str_eq(vv_function_table_file(&t, 3)->path, vv_cstr("app.baml")));
    ck_assert_ptr_null(vv_function_table_file(&t, 1));
    vv_function_table_done(&t);
    vv_function_table_done(&t);
}
END_TEST

START_TEST(vector_faults)
{
    vv_blob v = test_vector("function_table");
    for (size_t n = 0; n < v.n; n++)
        check(v.p, n, "Truncated");
    uint8_t *longer = test_longer(v.p, v.n);
    check(longer, v.n + 1, "TrailingBytes");
    free(longer);
    /*
     * Offsets: version 0, count 2, function 1 at 6: fqn 10, display 23, key option 32, kind 55, detail option 56,
     * origin 57, file option 58, span option 71, package option 84, namespaces 92; function 2 at 103; files 152, file
     * id 156.
     */
    static const struct {
        size_t at;
        uint8_t value;
        const char *name;
    } rows[] = {
        {1, 2, "UnsupportedVersion"}, {0, 1, "UnsupportedVersion"}, {32, 2, "InvalidTag"},
        {56, 2, "InvalidTag"},        {58, 2, "InvalidTag"},        {71, 2, "InvalidTag"},
        {84, 2, "InvalidTag"},        {14, 0xff, "InvalidUtf8"},    {37, 0xc0, "InvalidUtf8"},
        {98, 0x80, "InvalidUtf8"},    {171, 0xff, "InvalidUtf8"},   {106, 1, "Unordered"},
        {106, 0, "Unordered"},        {9, 2, "Unordered"},          {10, 0xff, "Truncated"},
        {2, 0xff, "Unordered"}, /* the file count reads as a third function's id */
        {152, 0xff, "Truncated"},     {55, 200, NULL},
        {57, 77, NULL},               {92, 0xff, "Truncated"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        uint8_t *p = test_exact(v.p, v.n);
        p[rows[i].at] = rows[i].value;
        check(p, v.n, rows[i].name);
        free(p);
    }
    vv_blob_done(&v);
}
END_TEST

START_TEST(unlisted_codes_read_as_unknown)
{
    vv_blob v = test_vector("function_table");
    v.p[55] = 4;
    v.p[57] = 255;
    vv_function_table t;
    ck_assert_int_eq(vv_function_table_decode(&t, v.p, v.n, NULL), VV_OK);
    ck_assert_uint_eq(t.functions[0].kind, VV_FN_KIND_UNKNOWN);
    ck_assert_uint_eq(t.functions[0].origin, VV_FN_ORIGIN_UNKNOWN);
    ck_assert_ptr_null(vv_fn_kind_name(t.functions[0].kind));
    ck_assert_ptr_null(vv_fn_origin_name(t.functions[0].origin));
    ck_assert_str_eq(vv_fn_kind_name(VV_FN_NATIVE_UNRESOLVED), "native_unresolved");
    ck_assert_str_eq(vv_fn_origin_name(VV_FN_AUTO_DERIVE), "auto_derive");
    vv_function_table_done(&t);
    vv_blob_done(&v);
}
END_TEST

START_TEST(empty_and_hostile_counts)
{
    uint8_t b[10] = {0, 1};
    check(b, sizeof b, NULL);
    memset(b + 2, 0xff, 4);
    check(b, sizeof b, "Truncated");
    memset(b + 2, 0, 4);
    memset(b + 6, 0xff, 4);
    check(b, sizeof b, "Truncated");
    vv_function_table none = {0};
    ck_assert_ptr_null(vv_function_table_find(&none, 1));
    ck_assert_ptr_null(vv_function_table_file(&none, 1));
}
END_TEST

START_TEST(encoder_refuses)
{
    vv_function f[2] = {{.id = 2}, {.id = 2}};
    vv_wr w = vv_wr_growing(1 << 20);
    vv_function_table_encode(&w, f, 2, NULL, 0);
    ck_assert_str_eq(w.why, "Unordered");
    vv_wr_reset(&w);
    vv_source_file files[2] = {{.id = 2}, {.id = 1}};
    vv_function_table_encode(&w, NULL, 0, files, 2);
    ck_assert_str_eq(w.why, "Unordered");
    vv_wr_reset(&w);
    char *text = malloc(65537);
    memset(text, 'a', 65537);
    f[0].fqn = (vv_str){text, 65536};
    vv_function_table_encode(&w, f, 1, NULL, 0);
    ck_assert(vv_wr_ok(&w));
    check(w.buf, w.len, NULL);
    vv_wr_reset(&w);
    f[0].package = (vv_opt_str){true, {text, 65537}};
    vv_function_table_encode(&w, f, 1, NULL, 0);
    ck_assert_str_eq(w.why, "StringTooLong");
    vv_error err = {0};
    ck_assert_int_eq(vv_wr_error(&w, "function table", &err), VV_ERR_LIMIT);
    ck_assert_str_eq(err.name, "StringTooLong");
    vv_wr_done(&w);
    free(text);
}
END_TEST

START_TEST(name_key)
{
    char scratch[12];
    vv_str key;
    vv_function f = {.id = 7, .fqn = vv_cstr("a.f"), .definition_key = {true, vv_cstr("function:a.f")}};
    ck_assert_int_eq(vv_function_name_key(&f, 7, scratch, &key), VV_NAME_DEFINITION_KEY);
    ck_assert(vv_str_eq(key, vv_cstr("function:a.f")));
    f.definition_key.s.n = 0;
    ck_assert_int_eq(vv_function_name_key(&f, 7, scratch, &key), VV_NAME_FQN);
    ck_assert(vv_str_eq(key, vv_cstr("a.f")));
    f.fqn.n = 0;
    ck_assert_int_eq(vv_function_name_key(&f, 7, scratch, &key), VV_NAME_NUMBER);
    ck_assert(vv_str_eq(key, vv_cstr("#7")));
    ck_assert_int_eq(vv_function_name_key(NULL, UINT32_MAX, scratch, &key), VV_NAME_NUMBER);
    ck_assert(vv_str_eq(key, vv_cstr("#4294967295")));
}
END_TEST

START_TEST(prop_mutations_end_by_a_known_name)
{
    static const char *const names[] = {"Truncated",   "UnsupportedVersion", "InvalidTag",
                                        "InvalidUtf8", "Unordered",          "TrailingBytes"};
    test_rng g = test_seeded("function table mutations");
    vv_blob v = test_vector("function_table");
    for (int round = 0; round < 30000; round++) {
        size_t n = test_below(&g, 4) ? v.n : test_below(&g, v.n + 1);
        uint8_t *p = test_exact(v.p, n);
        for (uint64_t i = test_below(&g, 4); i && n; i--)
            p[test_below(&g, n)] = test_below(&g, 2) ? (uint8_t)test_random(&g) : (uint8_t)test_below(&g, 4);
        vv_function_table t = {0};
        vv_error err = {0};
        if (vv_function_table_decode(&t, p, n, &err) != VV_OK) {
            bool known = false;
            for (size_t i = 0; i < VV_ARRAY_LEN(names); i++)
                known |= strcmp(names[i], err.name) == 0;
            ck_assert_msg(known, "%s", err.name);
        }
        vv_function_table_done(&t);
        free(p);
    }
    vv_blob_done(&v);
}
END_TEST

START_TEST(finds_among_many)
{
    enum { N = 1000 };
    vv_function *f = calloc(N, sizeof *f);
    for (uint32_t i = 0; i < N; i++)
        f[i] = (vv_function){.id = i * 3 + 1, .fqn = vv_cstr("f")};
    vv_wr w = vv_wr_growing(1 << 20);
    vv_function_table_encode(&w, f, N, NULL, 0);
    vv_function_table t;
    ck_assert_int_eq(vv_function_table_decode(&t, w.buf, w.len, NULL), VV_OK);
    for (uint32_t id = 0; id < 3 * N + 3; id++) {
        const vv_function *got = vv_function_table_find(&t, id);
        if (id % 3 == 1 && id < 3 * N)
            ck_assert_uint_eq(got->id, id);
        else
            ck_assert_ptr_null(got);
    }
    vv_function_table_done(&t);
    vv_wr_done(&w);
    free(f);
}
END_TEST

START_TEST(line_of_a_definition)
{
    static const struct {
        const char *detail;
        uint32_t want;
    } rows[] = {{"line 42", 42}, {"line 4294967295", UINT32_MAX}, {"line 4294967296", 0}, {"line ", 0}, {"line 4x", 0},
                {"line -1", 0},  {"print", 0},                    {"", 0},                {NULL, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        vv_function f = {.kind_detail = {rows[i].detail != NULL, vv_cstr(rows[i].detail)}};
        ck_assert_uint_eq(vv_fn_line(&f), rows[i].want);
    }
    char text[VV_FN_LINE_TEXT];
    vv_fn_line_text(text, UINT32_MAX);
    ck_assert_str_eq(text, "line 4294967295");
}
END_TEST

int main(void)
{
    TCase *t = test_case("function_table", 0);
    tcase_add_test(t, vector_both_ways);
    tcase_add_test(t, vector_faults);
    tcase_add_test(t, unlisted_codes_read_as_unknown);
    tcase_add_test(t, empty_and_hostile_counts);
    tcase_add_test(t, encoder_refuses);
    tcase_add_test(t, name_key);
    tcase_add_test(t, line_of_a_definition);
    tcase_add_test(t, prop_mutations_end_by_a_known_name);
    tcase_add_test(t, finds_among_many);
    return test_run();
}
