#include "config.h"

#include "format/value_path.h"

#include "format/value_write.h"

#include "tests/testing.h"

/* A path's steps in one text: "3" an index, "'k'" a key, each with the offset of its end. */
static void describe(const vv_value_path *p, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < p->count; i++) {
        const vv_path_step *s = &p->steps[i];
        if (s->is_index)
            n += (size_t)snprintf(out + n, cap - n, "%" PRIu64 "@%zu ", s->index, s->end);
        else
            n += (size_t)snprintf(out + n, cap - n, "'%.*s'@%zu ", (int)s->key.n, s->key.p, s->end);
    }
}

static const struct {
    const char *text, *steps;
} good[] = {
    {"", ""},
    {"$", ""},
    {"$.a", "'a'@3 "},
    {".a", "'a'@2 "},
    {"a", "'a'@1 "},
    {"a.b", "'a'@1 'b'@3 "},
    {"_a9.B_", "'_a9'@3 'B_'@6 "},
    {"$[0]", "0@4 "},
    {"[0]", "0@3 "},
    {"[18446744073709551615]", "18446744073709551615@22 "},
    {"$.items[12].name", "'items'@7 12@11 'name'@16 "},
    {"$[\"a b\"]", "'a b'@8 "},
    {"$['a b']", "'a b'@8 "},
    {"['it\\'s']", "'it's'@9 "},
    {"['\"']", "'\"'@5 "},
    {"[\"\"]", "''@4 "},
    {"[\"]\"][\".\"]", "']'@5 '.'@10 "},
    {"[\"a\\n\\t\\\\\\/\\b\"]", "'a\n\t\\/\b'@15 "},
    {"[\"\\u0041\\u00e9\\u20ac\"]", "'A\xc3\xa9\xe2\x82\xac'@22 "},
    {"[\"\\ud83d\\ude00\"]", "'\xf0\x9f\x98\x80'@16 "},
    {"$.\xc3\xa9", "'\xc3\xa9'@4 "},
    {"[\"$id\"]", "'$id'@7 "},
};

START_TEST(paths_are_read)
{
    vv_value_path p;
    vv_error err = {0};
    char steps[512];
    char *exact = (char *)test_exact(good[_i].text, strlen(good[_i].text));
    ck_assert_msg(vv_value_path_parse(&p, (vv_str){exact, strlen(good[_i].text)}, &err) == VV_OK, "%s: %s",
                  good[_i].text, err.msg);
    describe(&p, steps, sizeof steps);
    ck_assert_str_eq(steps, good[_i].steps);
    vv_value_path_done(&p);
    free(exact);
}
END_TEST

static const struct {
    const char *text;
    size_t off;
} bad[] = {
    {"$a", 1},      {"$$", 1},          {".", 1},           {"..a", 1},         {"a.", 2},       {"a..b", 2},
    {"a b", 1},     {"[", 1},           {"[]", 1},          {"[a]", 1},         {"[1", 2},       {"[1 ]", 2},
    {"[-1]", 1},    {"[+1]", 1},        {"[01]", 3},        {"[\"a]", 4},       {"['a\"]", 5},   {"[\"a\"", 4},
    {"[\"a\"x]", 4}, {"[\"\\x\"]", 4},   {"[\"\\u12\"]", 4}, {"[\"\\ud800\"]", 8}, {"[\"\\udc00\"]", 8},
    {"[\"\\", 3},   {"0", 0},           {".0", 1},          {"*", 0},           {"$.a-b", 3},    {"[0]a", 3},
    {"[18446744073709551616]", 20},     {" ", 0},           {"[\"\\ud800\\u0041\"]", 14},
};

START_TEST(what_is_no_path_is_refused)
{
    vv_value_path p;
    vv_error err = {0};
    char *exact = (char *)test_exact(bad[_i].text, strlen(bad[_i].text));
    ck_assert_msg(vv_value_path_parse(&p, (vv_str){exact, strlen(bad[_i].text)}, &err) == VV_ERR_ARG, "%s",
                  bad[_i].text);
    ck_assert_msg(err.off == bad[_i].off, "%s: at byte %" PRIu64 ", not %zu", bad[_i].text, err.off, bad[_i].off);
    ck_assert_ptr_null(p.keys);
    free(exact);
}
END_TEST

START_TEST(steps_are_bounded)
{
    char text[3 * (VV_PATH_STEPS + 1) + 1] = "";
    vv_value_path p;
    for (int i = 0; i < VV_PATH_STEPS; i++)
        strcat(text, "[0]");
    ck_assert(vv_value_path_parse(&p, vv_cstr(text), NULL) == VV_OK);
    ck_assert_uint_eq(p.count, VV_PATH_STEPS);
    vv_value_path_done(&p);
    strcat(text, "[0]");
    ck_assert(vv_value_path_parse(&p, vv_cstr(text), NULL) == VV_ERR_ARG);
}
END_TEST

static uint8_t *grow(void *ctx, uint8_t *buf, size_t cap, size_t want)
{
    (void)ctx;
    (void)cap;
    return realloc(buf, want);
}

/* {"a": [10, {"b": null, "b": true}], "a b": Point{x: 1.5}, "o": omitted, "": "", "e": enum} */
static vv_vw sample(void)
{
    vv_vw w;
    vv_vw_init(&w, NULL, 0, 1 << 20, grow, NULL);
    vv_vw_map(&w);
    vv_vw_key(&w, "a", 1);
    vv_vw_list(&w);
    vv_vw_int(&w, 10);
    vv_vw_map(&w);
    vv_vw_key(&w, "b", 1);
    vv_vw_null(&w);
    vv_vw_key(&w, "b", 1);
    vv_vw_bool(&w, true);
    vv_vw_end_map(&w);
    vv_vw_end_list(&w);
    vv_vw_key(&w, "a b", 3);
    vv_vw_object(&w, "Point");
    vv_vw_key(&w, "x", 1);
    vv_vw_float(&w, 1.5);
    vv_vw_end_object(&w);
    vv_vw_key(&w, "o", 1);
    vv_vw_omitted(&w, VV_OMIT_CYCLE, "reason");
    vv_vw_key(&w, "", 0);
    vv_vw_text(&w, "", 0);
    vv_vw_key(&w, "e", 1);
    vv_vw_enum(&w, "Color", "Red");
    vv_vw_end_map(&w);
    ck_assert_int_eq(vv_vw_finish(&w), VV_VW_OK);
    return w;
}

static const struct {
    const char *path, *kind;
    size_t matched;
    int items; /* -1: none */
} walks[] = {
    {"$", "map", 0, 5},
    {"$.a", "list", 1, 2},
    {"$.a[0]", "int", 2, -1},
    {"$.a[1]", "map", 2, 2},
    {"$.a[1].b", "bool", 3, -1},
    {"$['a b']", "class", 1, 1},
    {"$['a b'].x", "float", 2, -1},
    {"$.o", "omitted", 1, -1},
    {"$['']", "string", 1, -1},
    {"$.e", "enum", 1, -1},
    {"$.nothing", "map", 0, 0},
    {"$.a[2]", "list", 1, 0},
    {"$.a.b", "list", 1, 0},
    {"$[0]", "map", 0, 0},
    {"$.o.reason", "omitted", 1, -1},
    {"$.a[0][0]", "int", 2, -1},
    {"$.e.variant", "enum", 1, -1},
};

START_TEST(a_path_is_walked)
{
    vv_vw w = sample();
    vv_value_path p;
    vv_value_place at;
    vv_error err = {0};
    uint8_t *exact = test_exact(w.buf, w.len);
    ck_assert(vv_value_path_parse(&p, vv_cstr(walks[_i].path), &err) == VV_OK);
    ck_assert_msg(vv_value_walk(&at, exact, w.len, &p, &err) == VV_OK, "%s", err.msg);
    ck_assert_str_eq(vv_value_kind_word(at.kind), walks[_i].kind);
    ck_assert_uint_eq(at.matched, walks[_i].matched);
    ck_assert_int_eq(at.has_items, walks[_i].items >= 0);
    if (walks[_i].items > 0)
        ck_assert_uint_eq(at.items, (uint64_t)walks[_i].items);
    vv_value_path_done(&p);
    free(exact);
    free(w.buf);
}
END_TEST

/* A walk over each prefix of a body ends, inside of it, in a place or a fault. */
START_TEST(cut_bodies_are_walked_to_their_end)
{
    vv_vw w = sample();
    for (size_t i = 0; i < VV_ARRAY_LEN(walks); i++) {
        vv_value_path p;
        ck_assert(vv_value_path_parse(&p, vv_cstr(walks[i].path), NULL) == VV_OK);
        for (size_t n = 0; n < w.len; n++) {
            uint8_t *exact = test_exact(w.buf, n);
            vv_value_place at;
            vv_error err = {0};
            if (vv_value_walk(&at, exact, n, &p, &err) == VV_OK)
                ck_assert(n == 0 && at.matched == 0 && at.kind == VV_KIND_UNKNOWN);
            else
                ck_assert(err.code == VV_ERR_CORRUPT && err.name && err.off <= n);
            free(exact);
        }
        vv_value_path_done(&p);
    }
    free(w.buf);
}
END_TEST

int main(void)
{
    TCase *c = test_case("paths", 0);
    tcase_add_loop_test(c, paths_are_read, 0, VV_ARRAY_LEN(good));
    tcase_add_loop_test(c, what_is_no_path_is_refused, 0, VV_ARRAY_LEN(bad));
    tcase_add_test(c, steps_are_bounded);
    tcase_add_loop_test(c, a_path_is_walked, 0, VV_ARRAY_LEN(walks));
    tcase_add_test(c, cut_bodies_are_walked_to_their_end);
    return test_run();
}
