#include "config.h"

#include <lauxlib.h>
#include <string.h>

#include "hosts/lua/layout.h"
#include "hosts/lua/names.h"
#include "tests/testing.h"

/* Each text and its functions: first line, last line, path. */
static const struct {
    const char *text, *want;
} cases[] = {
    {"", "0-0 "},
    {"x = 1", "0-0 "},
    {"function f() end", "0-0 |1-1 f"},
    {"function a.b.c:d() end", "0-0 |1-1 a.b.c:d"},
    {"local function f()\nend", "0-0 |1-2 f"},
    {"local\nfunction\nf\n()\nend", "0-0 |4-5 f"},
    {"function\nf\n()\nend", "0-0 |1-4 f"},
    {"f = function\n() end", "0-0 |2-2 f"},
    {"local f = function() end", "0-0 |1-1 f"},
    {"local f <const>, g = function() end, function() end", "0-0 |1-1 f|1-1 g"},
    {"a.b, c = function() end, function() end", "0-0 |1-1 a.b|1-1 c"},
    {"a['b'] = function() end a[\"c\"].d = function() end a[1] = function() end", "0-0 |1-1 a.b|1-1 a.c.d|1-1 a[1]"},
    {"a[i] = function() end a[b.c] = function() end", "0-0 |1-1 fn#1|1-1 fn#2"},
    {"f().x = function() end", "0-0 |1-1 fn#1"},
    {"t = { k = function() end, ['j'] = function() end; function() end }", "0-0 |1-1 t.k|1-1 t.j|1-1 fn#1"},
    {"t = { u = { v = function() end }, [2] = function() end }", "0-0 |1-1 t.u.v|1-1 t[2]"},
    {"return { k = function() end }", "0-0 |1-1 k"},
    {"return function() return function() end end", "0-0 |1-1 fn#1|1-1 fn#1.fn#1"},
    {"f(function() end, function() end)", "0-0 |1-1 fn#1|1-1 fn#2"},
    {"f{ on = function() end }", "0-0 |1-1 on"},
    {"function f() end function f() end f = function() end", "0-0 |1-1 f|1-1 f#2|1-1 f#3"},
    {"function o() local function i() end local i = function() end end", "0-0 |1-1 o|1-1 o.i|1-1 o.i#2"},
    {"M.f = M.f or function() end", "0-0 |1-1 M.f"},
    {"local x = (function() end)()", "0-0 |1-1 fn#1"},
    {"local x = f(function() end)", "0-0 |1-1 fn#1"},
    {"if a then b = function() end elseif c then d = function() end else e = function() end end",
     "0-0 |1-1 b|1-1 d|1-1 e"},
    {"while a do b = function() end end repeat c = function() end until function() end",
     "0-0 |1-1 b|1-1 c|1-1 fn#1"},
    {"for i = 1, 2 do f = function() end end for k in p() do g = function() end end", "0-0 |1-1 f|1-1 g"},
    {"-- function no() end\n--[[ function\nno() end ]] function f() end --[==[ ]] ]==] function g() end",
     "0-0 |3-3 f|3-3 g"},
    {"s = 'function no() end' t = [[\nfunction no() end\n]] function f() end", "0-0 |3-3 f"},
    {"s = 'a\\\nb\\z\n\n c\\'' function f() end", "0-0 |4-4 f"},
    {"x = a..function() end y = a == function() end", "0-0 |1-1 fn#1|1-1 fn#2"},
    {"goto l ::l:: f = function(...) return ... end", "0-0 |1-1 f"},
    {"x = 0x1p+4 y = 3e-2 z = 1 ..2 f = function() end", "0-0 |1-1 f"},
    {"f'text' g = function() end", "0-0 |1-1 g"},
    {"a = 1; b = function() end; c.d = function() end", "0-0 |1-1 b|1-1 c.d"},
    {"a = b\nc = function() end", "0-0 |2-2 c"},
    {"\r\nfunction f()\r\nend\n\rfunction g() end", "0-0 |2-3 f|4-4 g"},
    {"f(a)\n(b)(function() end)", "0-0 |2-2 fn#1"},
    {"t = { f = a and function() end or function() end }", "0-0 |1-1 t.f|1-1 t.f#2"},
};

static void print_names(const vl_names *names, char *ret, size_t n)
{
    size_t at = 0;
    *ret = '\0';
    for (size_t i = 0; i < names->n && at < n; i++)
        at += (size_t)snprintf(ret + at, n - at, "%s%d-%d %s", i ? "|" : "", names->items[i].line,
                               names->items[i].last_line, names->items[i].path);
}

START_TEST(names_by_place)
{
    char got[1024];
    vl_names names;
    ck_assert_msg(vl_names_parse(cases[_i].text, strlen(cases[_i].text), &names), "refused: %s", cases[_i].text);
    print_names(&names, got, sizeof got);
    vl_names_done(&names);
    ck_assert_str_eq(got, cases[_i].want);
}
END_TEST

/* Walks both trees in pre-order; nesting in these texts is shallow. */
static size_t compare_protos(const vl_proto *p, const vl_names *names, size_t at)
{
    ck_assert_uint_lt(at, names->n);
    ck_assert_int_eq(names->items[at].line, p->linedefined);
    ck_assert_int_eq(names->items[at].last_line, p->lastlinedefined);
    ck_assert_uint_eq(names->items[at].children, (unsigned)p->sizep);
    size_t next = at + 1;
    for (int i = 0; i < p->sizep; i++)
        next = compare_protos(p->p[i], names, next);
    return next;
}

/* What the tokenizer finds are the functions that the compiler makes. */
START_TEST(names_as_compiled)
{
    vl_names names;
    lua_State *L = luaL_newstate();
    ck_assert_ptr_nonnull(L);
    if (vl_layout_holds()) {
        int status = luaL_loadstring(L, cases[_i].text);
        ck_assert_msg(status == LUA_OK, "%s", lua_tostring(L, -1));
        ck_assert(vl_names_parse(cases[_i].text, strlen(cases[_i].text), &names));
        ck_assert_uint_eq(compare_protos(vl_closure_proto(lua_topointer(L, -1)), &names, 0), names.n);
        vl_names_done(&names);
    }
    lua_close(L);
}
END_TEST

/* Any bytes at all: refused or named, within exact memory. */
START_TEST(names_of_noise)
{
    static const char *const words[] = {"function", "end", "(", ")", "{", "}", "[", "]", "=", ",", ".", ":", "name",
                                        "'x'", "[[y]]", "do", "if", "repeat", "until", "local", "--", "\n", "\"",
                                        "[==[", "1e+", "\\", "return"};
    const char *text_seed = getenv("VV_SEED");
    unsigned seed = text_seed ? (unsigned)strtoul(text_seed, NULL, 10) : 1;
    fprintf(stderr, "# VV_SEED=%u\n", seed);
    for (int round = 0; round < 20000; round++) {
        char text[512];
        size_t n = 0;
        for (int k = rand_r(&seed) % 40; k > 0; k--) {
            const char *word = words[(size_t)rand_r(&seed) % (sizeof words / sizeof *words)];
            n += (size_t)snprintf(text + n, sizeof text - n, rand_r(&seed) % 2 ? "%s " : "%s", word);
        }
        if (n && rand_r(&seed) % 8 == 0)
            text[(size_t)rand_r(&seed) % n] = (char)rand_r(&seed);
        char *exact = malloc(n ? n : 1);
        memcpy(exact, text, n);
        vl_names names;
        if (vl_names_parse(exact, n, &names))
            vl_names_done(&names);
        free(exact);
    }
}
END_TEST

START_TEST(numbered_names)
{
    static const uint32_t children[] = {2, 1, 0, 0};
    static const int lines[] = {0, 1, 2, 3};
    vl_names names;
    char got[256];
    ck_assert(vl_names_number(children, lines, 4, &names));
    print_names(&names, got, sizeof got);
    ck_assert_str_eq(got, "0-0 |1-0 fn#1|2-0 fn#1.fn#1|3-0 fn#2");
    vl_names_done(&names);
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
    char *text = malloc(100000);
    memset(text, '{', 100000);
    vl_names names;
    ck_assert(!vl_names_parse(text, 100000, &names));
    free(text);
}
END_TEST

int main(void)
{
    TCase *tc = test_case("names", 0);
    tcase_add_loop_test(tc, names_by_place, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(tc, names_as_compiled, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tc, names_of_noise);
    tcase_add_test(tc, numbered_names);
    tcase_add_test(tc, deep_nesting_is_refused);
    return test_run();
}
