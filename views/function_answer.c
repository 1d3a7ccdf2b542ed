#include "config.h"

#include <stdlib.h>

#include "views/facts.h"
#include "views/functions.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000 };

static vv_code read_sort(vv_query *q, vv_function_sort *ret, vv_error *err)
{
    static const char *const names[] = {"execution+", "base+", "sort", "q", "limit", "cursor", NULL};
    unsigned by = VV_SORT_SELF;
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_query_word(q, "sort", vv_function_sorts, VV_FUNCTION_SORTS, &by, err);
    *ret = (vv_function_sort)by;
    return rc;
}

static void numbers_json(vv_json *j, const vv_function_row *r)
{
    vv_json_kv_u128(j, "calls", r->calls);
    vv_json_kv_i128(j, "open", r->open);
    vv_json_kv_u128(j, "errors", r->errors);
    vv_json_kv_u128(j, "cancelled", r->cancelled);
    vv_json_kv_u128(j, "self_ns", r->self_ns);
    vv_json_kv_u128(j, "inclusive_ns", r->inclusive_ns);
    vv_json_kv_u128(j, "await_ns", r->await_ns);
    vv_json_kv_u64(j, "contexts", r->contexts);
    vv_json_kv_bool(j, "timing_complete", !r->timing_incomplete);
}

static void delta_json(vv_json *j, const vv_function_row *base, const vv_function_row *head)
{
    const struct {
        const char *key;
        vv_u128 base, head;
    } numbers[] = {
        {"calls", base->calls, head->calls},
        {"errors", base->errors, head->errors},
        {"cancelled", base->cancelled, head->cancelled},
        {"self_ns", base->self_ns, head->self_ns},
        {"inclusive_ns", base->inclusive_ns, head->inclusive_ns},
        {"await_ns", base->await_ns, head->await_ns},
        {"contexts", base->contexts, head->contexts},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(numbers); i++) {
        vv_json_key(j, numbers[i].key);
        vv_delta_json(j, numbers[i].base, numbers[i].head);
    }
    vv_json_key(j, "open");
    vv_delta_signed_json(j, base->open, head->open);
}

/* What the answer is made of. */
typedef struct {
    const vv_query *q;
    vv_function_sort by;
    const vv_scope *scope;
    const vv_function_groups *groups;
    vv_u128 base_total; /* of what is sorted by */
} answer;

/* A function has no parent: its callers are many. */
static void comparison_json(vv_json *j, const answer *a, const vv_function_group *g)
{
    const vv_function_row *base = &g->side[VV_SIDE_BASE], *head = &g->side[VV_SIDE_HEAD];
    bool has_base = vv_scope_number_known(a->scope, g->on, VV_SIDE_BASE);
    bool has_head = vv_scope_number_known(a->scope, g->on, VV_SIDE_HEAD);
    vv_u128 from = vv_function_value(base, a->by), to = vv_function_value(head, a->by);
    vv_json_kv_cstr(j, "state", vv_delta_state_word(vv_scope_state(a->scope, g->on)));
    if (vv_json_kv_opt_obj(j, "base", has_base)) {
        numbers_json(j, base);
        vv_json_end_obj(j);
    }
    if (vv_json_kv_opt_obj(j, "head", has_head)) {
        numbers_json(j, head);
        vv_json_end_obj(j);
    }
    if (vv_json_kv_opt_obj(j, "delta", has_base && has_head)) {
        delta_json(j, base, head);
        vv_json_end_obj(j);
    }
    vv_json_key(j, "delta_of_base");
    vv_delta_ratio_json(j, has_base && has_head, from, to, from);
    vv_json_key(j, "delta_of_total");
    vv_delta_ratio_json(j, has_base && has_head, from, to, a->base_total);
    vv_json_kv_null(j, "delta_of_parent");
}

static void row_json(vv_json *j, const answer *a, const vv_function_group *g)
{
    vv_json_obj(j);
    vv_function_fields_json(j, &g->function);
    if (a->scope->compares)
        comparison_json(j, a, g);
    else
        numbers_json(j, &g->side[VV_SIDE_HEAD]);
    vv_json_end_obj(j);
}

static void nameless_json(vv_json *j, const char *key, const vv_nameless *n)
{
    vv_json_kv_obj(j, key);
    vv_json_kv_u64(j, "contexts", n->contexts);
    vv_json_kv_u128(j, "calls", n->calls);
    vv_json_kv_u128(j, "self_ns", n->self_ns);
    vv_json_end_obj(j);
}

/* Calls that no function can be named for: they stand beside the rows, so that all sums come out. */
static void unattributed_json(vv_json *j, const char *key, const answer *a, vv_side side)
{
    if (!vv_json_kv_opt_obj(j, key, a->scope->known[side]))
        return;
    nameless_json(j, "overflow", &a->groups->overflow[side]);
    nameless_json(j, "undefined", &a->groups->undefined[side]);
    vv_json_end_obj(j);
}

static bool row_matches(const vv_function_group *g, const vv_str *text)
{
    vv_text_field fields[VV_FUNCTION_TEXTS];
    size_t n = g->function.def ? vv_function_texts(g->function.def, fields) : 0;
    bool matches = !text || text->n == 0;
    for (size_t i = 0; i < n && !matches; i++)
        matches = vv_text_contains(fields[i].text, *text);
    return matches;
}

static void answer_head_json(vv_json *j, const answer *a, bool more, size_t rows)
{
    static const char *const units[] = {"ns", "ns", "ns", "calls", "errors", "contexts", "ns"};
    const vv_scope *s = a->scope;
    vv_scope_head_json(j, a->q, s, more, NULL);
    if (s->compares) {
        vv_json_kv_obj(j, "metric");
        vv_json_kv_cstr(j, "name", vv_function_sorts[a->by == VV_SORT_NAME ? VV_SORT_SELF : a->by]);
        vv_json_kv_cstr(j, "unit", units[a->by]);
        vv_json_end_obj(j);
    }
    vv_scope_totals_json(j, s);
    unattributed_json(j, "unattributed", a, VV_SIDE_HEAD);
    if (s->compares)
        unattributed_json(j, "base_unattributed", a, VV_SIDE_BASE);
    vv_json_kv_u64(j, "total_rows", rows);
}

void vv_function_page_done(vv_function_page *p)
{
    free(p->items);
    p->items = NULL;
}

vv_code vv_function_page_read(vv_function_page *ret, vv_query *q, vv_error *err)
{
    *ret = (vv_function_page){.limit = LIMIT_DEFAULT, .text = vv_query_value(q, "q")};
    vv_code rc = vv_query_number(q, "limit", 1, LIMIT_MAX, &ret->limit, err);
    if (rc == VV_OK)
        rc = vv_query_cursor(q, "functions", ret->after, sizeof ret->after, &ret->has_cursor, err);
    return rc;
}

/* A cursor is the place of the last row: what stands before it has been shown, wherever that row is by now. */
vv_code vv_function_page_fill(vv_function_page *p, const vv_query *q, const vv_function_groups *g, vv_error *err)
{
    bool more = false;
    p->items = malloc((p->limit < g->count ? p->limit : g->count) * sizeof *p->items + 1);
    if (!p->items)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a page");
    for (size_t i = 0; i < g->count; i++) {
        if (!row_matches(&g->items[i], p->text))
            continue;
        p->rows++;
        if (p->has_cursor && memcmp(g->items[i].place, p->after, sizeof p->after) <= 0)
            continue;
        if (p->count < p->limit)
            p->items[p->count++] = &g->items[i];
        else
            more = true;
    }
    if (more)
        vv_query_cursor_text(q, "functions", p->items[p->count - 1]->place, VV_FUNCTION_PLACE, p->next);
    return VV_OK;
}

static void answer_json(vv_json *j, const answer *a, const vv_function_page *p)
{
    answer_head_json(j, a, *p->next != '\0', p->rows);
    vv_json_kv_arr(j, "items");
    for (size_t i = 0; i < p->count; i++)
        row_json(j, a, p->items[i]);
    vv_json_end_arr(j);
    vv_json_kv_cstr(j, "next", *p->next ? p->next : NULL);
    vv_json_end_obj(j);
}

/* What a change is measured against: the base's total. */
static vv_u128 total_of_base(const vv_scope *s, const vv_function_groups *g, vv_function_sort by)
{
    const vv_totals *t = &s->totals[VV_SIDE_BASE];
    const vv_function_row all = {.calls = t->calls, .errors = t->errors, .self_ns = t->self_ns,
                                 .inclusive_ns = t->inclusive_ns, .await_ns = t->await_ns};
    vv_u128 contexts = 0;
    for (size_t i = 0; i < g->count; i++)
        contexts += g->items[i].side[VV_SIDE_BASE].contexts;
    return by == VV_SORT_CONTEXTS ? contexts : vv_function_value(&all, by);
}

vv_code vv_view_functions(vv_json *j, vv_query *q, vv_error *err)
{
    vv_function_sort by;
    vv_scope s = {.items = NULL};
    vv_function_groups g = {.count = 0};
    vv_function_page p = {.items = NULL};
    vv_code rc = read_sort(q, &by, err);
    if (rc == VV_OK)
        rc = vv_function_page_read(&p, q, err);
    if (rc == VV_OK)
        rc = vv_scope_read(&s, q, err);
    if (rc == VV_OK)
        rc = vv_function_groups_make(&g, &s, err);
    if (rc == VV_OK) {
        vv_function_groups_sort(&g, &s, by);
        rc = vv_function_page_fill(&p, q, &g, err);
    }
    if (rc == VV_OK) {
        answer a = {q, by, &s, &g, total_of_base(&s, &g, by)};
        answer_json(j, &a, &p);
    }
    vv_function_page_done(&p);
    vv_function_groups_done(&g);
    vv_scope_done(&s);
    return rc;
}
