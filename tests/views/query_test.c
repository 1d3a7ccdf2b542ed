#include "config.h"

#include "views/query.h"

#include "tests/testing.h"

/* A query of "name=value" pairs. */
static vv_query query_of(const char *const *pairs, vv_param *params)
{
    vv_query q = {.params = params};
    for (; *pairs; pairs++) {
        size_t n = strcspn(*pairs, "=");
        params[q.param_count++] = (vv_param){{*pairs, n}, vv_cstr(*pairs + n + 1)};
    }
    return q;
}

static const struct {
    const char *pairs[6];
    const char *blamed; /* the text that the parameter at fault begins with; NULL = none */
} checks[] = {
    {{"a=1", "execution=1"}, NULL},
    {{"execution=1", "execution=1", "a=", "execution=2"}, NULL},
    {{"a=1", "execution=1", "a=1"}, "a="},
    {{"b=1", "b=2"}, "b="},
    {{"as_of=1", "as_of=1"}, "as_of"},
    {{"execution+=1"}, "execution+"},
    {{"executio=1"}, "executio"},
    {{"c=1"}, "c="},
};

START_TEST(only_what_a_view_lets_be_is_repeated)
{
    static const char *const names[] = {"a", "b", "execution+", NULL};
    vv_param params[6];
    vv_error err = {0};
    vv_query q = query_of(checks[_i].pairs, params);
    const char *blamed = checks[_i].blamed;
    ck_assert_int_eq(vv_query_check(&q, names, &err), blamed ? VV_ERR_ARG : VV_OK);
    ck_assert_int_eq(q.parameter != NULL, blamed != NULL);
    ck_assert(!blamed || strncmp(q.parameter, blamed, strlen(blamed)) == 0);
}
END_TEST

START_TEST(repeated_values_come_in_order)
{
    static const char *const pairs[] = {"x=1", "base=3", "y=2", "base=1", "base=3", NULL};
    vv_param params[5];
    vv_query q = query_of(pairs, params);
    char got[8] = "";
    size_t at = 0, n = 0;
    for (const vv_str *s; (s = vv_query_each(&q, "base", &at));)
        got[n++] = *s->p;
    ck_assert_str_eq(got, "313");
    ck_assert(vv_str_eq(*vv_query_value(&q, "base"), vv_cstr("3")));
    ck_assert_ptr_null(vv_query_value(&q, "z"));
}
END_TEST

/* A cursor of the first query, shown to the second one. */
static const struct {
    const char *first[6], *second[6];
    bool same;
} cursors[] = {
    {{"a=1", "b=2"}, {"b=2", "a=1"}, true},
    {{"a=1", "limit=2"}, {"a=1", "as_of=7"}, true},
    {{"a=1"}, {"a=2"}, false},
    {{"a=1"}, {"b=1"}, false},
    {{"transform=1", "a=1", "transform=2"}, {"transform=1", "transform=2", "a=1"}, true},
    {{"transform=1", "transform=2"}, {"transform=2", "transform=1"}, false},
    {{"base=1", "base=1"}, {"a=1"}, false},
    {{"base=1", "base=1"}, {"base=2", "base=2"}, false},
    {{"base=1", "base=1", "base=1"}, {"base=1"}, false},
};

START_TEST(a_cursor_belongs_to_its_query)
{
    vv_param params[6];
    char text[VV_CURSOR_TEXT];
    uint8_t position[4] = {1, 2, 3, 4}, got[4];
    bool given;
    vv_query q = query_of(cursors[_i].first, params);
    vv_query_cursor_text(&q, "view", position, sizeof position, text);
    q = query_of(cursors[_i].second, params);
    params[q.param_count++] = (vv_param){vv_cstr("cursor"), vv_cstr(text)};
    vv_code rc = vv_query_cursor(&q, "view", got, sizeof got, &given, NULL);
    ck_assert_int_eq(rc, cursors[_i].same ? VV_OK : VV_ERR_ARG);
    ck_assert(!cursors[_i].same || memcmp(got, position, sizeof got) == 0);
}
END_TEST

/* The paths of two resources of one view, whose words are not to be taken for each other's. */
static const struct {
    const char *first[3], *second[3];
    bool same;
} resources[] = {
    {{"a", "b", ""}, {"a", "b", ""}, true},
    {{"a", "", ""}, {"b", "", ""}, false},
    {{"a", "", ""}, {"", "", ""}, false},
    {{"a", "b", ""}, {"a", "c", ""}, false},
    {{"a", "b", "c"}, {"a", "b", "d"}, false},
    {{"ab", "c", ""}, {"a", "bc", ""}, false},
    {{"latest", "", ""}, {"a", "", ""}, false},
};

START_TEST(a_cursor_belongs_to_its_resource)
{
    const char *const *a = resources[_i].first, *const *b = resources[_i].second;
    char text[VV_CURSOR_TEXT];
    uint8_t position[4] = {1, 2, 3, 4}, got[4];
    bool given;
    vv_query q = {.id = vv_cstr(a[0]), .sub = vv_cstr(a[1]), .third = vv_cstr(a[2])};
    vv_query_cursor_text(&q, "view", position, sizeof position, text);
    const vv_param cursor = {vv_cstr("cursor"), vv_cstr(text)};
    q = (vv_query){.id = vv_cstr(b[0]), .sub = vv_cstr(b[1]), .third = vv_cstr(b[2]), .params = &cursor,
                   .param_count = 1};
    vv_code rc = vv_query_cursor(&q, "view", got, sizeof got, &given, NULL);
    ck_assert_int_eq(rc, resources[_i].same ? VV_OK : VV_ERR_ARG);
    ck_assert(!resources[_i].same || memcmp(got, position, sizeof got) == 0);
}
END_TEST

int main(void)
{
    TCase *t = test_case("query", 0);
    tcase_add_loop_test(t, only_what_a_view_lets_be_is_repeated, 0, VV_ARRAY_LEN(checks));
    tcase_add_test(t, repeated_values_come_in_order);
    tcase_add_loop_test(t, a_cursor_belongs_to_its_query, 0, VV_ARRAY_LEN(cursors));
    tcase_add_loop_test(t, a_cursor_belongs_to_its_resource, 0, VV_ARRAY_LEN(resources));
    return test_run();
}
