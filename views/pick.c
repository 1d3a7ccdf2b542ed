#include "config.h"

#include "views/pick.h"

#include "base/text.h"

/* "#7", or "#7/" and a program's id; false: the text is a name. */
typedef struct {
    uint32_t id;
    bool has_program;
    vv_program_id program;
} number;

static bool read_number(number *ret, vv_str s)
{
    uint64_t v = 0;
    size_t at = 1;
    *ret = (number){0};
    for (; at < s.n && s.p[at] >= '0' && s.p[at] <= '9' && v <= UINT32_MAX; at++)
        v = v * 10 + (uint64_t)(s.p[at] - '0');
    if (s.n < 2 || s.p[0] != '#' || at == 1 || v > UINT32_MAX)
        return false;
    ret->id = (uint32_t)v;
    if (at == s.n)
        return true;
    ret->has_program = s.p[at] == '/';
    return ret->has_program && vv_unhex(ret->program.b, sizeof ret->program.b, (vv_str){s.p + at + 1, s.n - at - 1});
}

static bool is_number(const vv_function_ref *f, const number *n)
{
    return f->id == n->id && (!n->has_program || memcmp(f->program.b, n->program.b, sizeof n->program.b) == 0);
}

static bool has_key(const vv_function_ref *f, vv_str s)
{
    return f->def && f->def->definition_key.present && s.n && vv_str_eq(f->def->definition_key.s, s);
}

static bool has_name(const vv_function_ref *f, vv_str s)
{
    return f->def && vv_str_eq(f->def->fqn, s);
}

static vv_code fail(vv_query *q, vv_code code, vv_error *err, const char *what)
{
    q->parameter = "function";
    q->match_count = 0;
    return vv_fail(err, code, "%s", what);
}

vv_code vv_query_function(vv_query *q, const vv_tree *t, const vv_function_grouping *g, uint32_t *ret, vv_error *err)
{
    enum { NUMBER, KEY, NAME, WAYS };
    const vv_str *s = vv_query_value(q, "function");
    number n = {0};
    if (!s)
        return vv_query_fail(q, "function", err, "must be a definition key, a full name, or # and a number");
    bool numbered = read_number(&n, *s);
    for (unsigned way = numbered ? NUMBER : KEY; way < WAYS; way++) {
        uint32_t found = VV_NONE;
        for (uint32_t i = 0; i < t->function_count; i++) {
            const vv_function_ref *f = &t->functions[i];
            bool is = way == NUMBER ? is_number(f, &n) : way == KEY ? has_key(f, *s) : has_name(f, *s);
            if (!is)
                continue;
            if (found != VV_NONE && g->of[i] != found)
                return fail(q, VV_ERR_AMBIGUOUS, err,
                            "that stands for several functions; use a definition key, or #number/program");
            found = g->of[i];
        }
        if (found != VV_NONE) {
            *ret = found;
            return VV_OK;
        }
    }
    return fail(q, VV_ERR_NOTFOUND, err, "no call of such a function was recorded");
}
