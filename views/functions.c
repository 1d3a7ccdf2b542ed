#include "config.h"

#include "views/functions.h"

#include <stdlib.h>

#include "base/grow.h"

enum { TEXTS_MAX = 256 * 1024 * 1024 };

static void add_own(vv_function_row *row, const vv_tree *t, const vv_node *n)
{
    const vv_counters *c = n->counters;
    if (!row->function)
        row->function = &t->functions[n->function];
    row->contexts++;
    row->calls += c->started;
    row->errors += c->error;
    row->cancelled += c->cancelled;
    row->open += vv_counters_open(c);
    row->self_ns = vv_sat128(row->self_ns, n->self_ns);
    row->await_ns = vv_sat128(row->await_ns, c->await_ns);
    row->timing_incomplete |= (n->flags & VV_NODE_TIMING_INCOMPLETE) != 0;
}

vv_code vv_function_rows(const vv_tree *t, vv_function_row **ret, size_t *ret_count, vv_error *err)
{
    size_t n = (size_t)t->node_count + 1;
    vv_function_grouping g;
    uint32_t *group = malloc(n * sizeof *group);
    uint8_t *once = malloc(n);
    vv_code rc = vv_function_grouping_make(&g, t, err);
    vv_function_row *rows = calloc((size_t)g.count + 1, sizeof *rows);
    if (rc == VV_OK && (!group || !once || !rows))
        rc = vv_fail(err, VV_ERR_NOMEM, "no memory for the table of functions");
    for (uint32_t i = 0; rc == VV_OK && i < t->node_count; i++)
        group[i] = t->nodes[i].function == VV_NONE ? VV_NONE : g.of[t->nodes[i].function];
    if (rc == VV_OK)
        rc = vv_tree_once(t, group, g.count, NULL, once, err);
    for (uint32_t i = 0; rc == VV_OK && i < t->node_count; i++) {
        if (group[i] == VV_NONE)
            continue;
        vv_function_row *row = &rows[group[i]];
        add_own(row, t, &t->nodes[i]);
        if (once[i])
            row->inclusive_ns = vv_sat128(row->inclusive_ns, t->nodes[i].counters->inclusive_ns);
    }
    *ret_count = g.count;
    free(group);
    free(once);
    vv_function_grouping_done(&g);
    if (rc == VV_OK)
        *ret = rows;
    else
        free(rows);
    return rc;
}

static vv_str copy_str(vv_arena *a, vv_str s)
{
    return s.p ? vv_arena_str(a, s) : s;
}

static vv_opt_str copy_opt(vv_arena *a, vv_opt_str s)
{
    return s.present ? (vv_opt_str){.present = true, .s = copy_str(a, s.s)} : s;
}

const vv_function *vv_function_copy(vv_arena *a, const vv_function *f)
{
    vv_function *c = vv_arena_alloc(a, sizeof *c);
    if (!c)
        return NULL;
    *c = *f;
    c->fqn = copy_str(a, f->fqn);
    c->display_name = copy_str(a, f->display_name);
    c->definition_key = copy_opt(a, f->definition_key);
    c->kind_detail = copy_opt(a, f->kind_detail);
    c->source_file = copy_opt(a, f->source_file);
    c->package = copy_opt(a, f->package);
    c->namespaces = NULL;
    c->namespace_count = 0;
    const vv_str *const texts[] = {&c->fqn, &c->display_name, &c->definition_key.s, &c->kind_detail.s,
                                   &c->source_file.s, &c->package.s};
    for (size_t i = 0; i < VV_ARRAY_LEN(texts); i++)
        if (texts[i]->n && !texts[i]->p)
            return NULL;
    return c;
}

static vv_code no_memory(vv_error *err)
{
    return vv_fail(err, VV_ERR_NOMEM, "no memory for the table of functions");
}

/* The group of a function, new where there is none. */
static vv_code find_group(vv_function_groups *g, const vv_function_ref *f, vv_function_group **ret, vv_error *err)
{
    uint8_t key[32];
    bool fresh;
    vv_function_ref_key(f, key);
    uint32_t at = vv_map_put(&g->map, key, &fresh);
    if (at == VV_MAP_NONE)
        return no_memory(err);
    if (!vv_grow(&g->items, &g->cap, at, sizeof *g->items))
        return no_memory(err);
    *ret = &g->items[at];
    if (!fresh)
        return VV_OK;
    **ret = (vv_function_group){.function = *f};
    memcpy((*ret)->key, key, sizeof key);
    (*ret)->function.def = f->def ? vv_function_copy(&g->texts, f->def) : NULL;
    g->count = at + 1;
    return f->def && !(*ret)->function.def ? no_memory(err) : VV_OK;
}

static void add_row(vv_function_row *to, const vv_function_row *r)
{
    to->contexts += r->contexts;
    to->calls += r->calls;
    to->errors += r->errors;
    to->cancelled += r->cancelled;
    to->open += r->open;
    to->self_ns = vv_sat128(to->self_ns, r->self_ns);
    to->inclusive_ns = vv_sat128(to->inclusive_ns, r->inclusive_ns);
    to->await_ns = vv_sat128(to->await_ns, r->await_ns);
    to->timing_incomplete |= r->timing_incomplete;
}

static void add_nameless(vv_nameless *to, const vv_node *n)
{
    to->contexts++;
    to->calls += n->counters->started;
    to->self_ns = vv_sat128(to->self_ns, n->self_ns);
}

static vv_code add_execution(void *cls, const vv_scope_item *item, const vv_loaded *x, vv_error *err)
{
    vv_function_groups *g = cls;
    const vv_tree *t = &x->profile->tree;
    vv_function_row *rows;
    size_t n;
    vv_code rc = vv_function_rows(t, &rows, &n, err);
    if (rc != VV_OK)
        return rc;
    for (size_t i = 0; i < n && rc == VV_OK; i++) {
        vv_function_group *group = NULL;
        rc = find_group(g, rows[i].function, &group, err);
        for (size_t side = 0; side < VV_SIDES && rc == VV_OK; side++)
            if (item->on[side]) {
                group->on[side] = true;
                add_row(&group->side[side], &rows[i]);
            }
    }
    free(rows);
    for (uint32_t i = 0; i < t->node_count; i++)
        for (size_t side = 0; side < VV_SIDES; side++) {
            if (item->on[side] && t->nodes[i].flags & VV_NODE_OVERFLOW)
                add_nameless(&g->overflow[side], &t->nodes[i]);
            if (item->on[side] && t->nodes[i].flags & VV_NODE_UNDEFINED)
                add_nameless(&g->undefined[side], &t->nodes[i]);
        }
    return rc;
}

vv_code vv_function_groups_make(vv_function_groups *ret, vv_scope *s, vv_error *err)
{
    *ret = (vv_function_groups){.texts = vv_arena_init(TEXTS_MAX)};
    vv_map_init(&ret->map, sizeof ret->items->key);
    return vv_scope_fold(s, add_execution, ret, err);
}

void vv_function_groups_done(vv_function_groups *g)
{
    vv_map_done(&g->map);
    free(g->items);
    vv_arena_done(&g->texts);
    *g = (vv_function_groups){.count = 0};
}

const char *const vv_function_sorts[] = {"self_ns", "inclusive_ns", "await_ns", "calls", "errors", "contexts", "name"};

vv_u128 vv_function_value(const vv_function_row *r, vv_function_sort by)
{
    switch (by) {
    case VV_SORT_SELF:
    case VV_SORT_NAME:
        return r->self_ns;
    case VV_SORT_INCLUSIVE:
        return r->inclusive_ns;
    case VV_SORT_AWAIT:
        return r->await_ns;
    case VV_SORT_CALLS:
        return r->calls;
    case VV_SORT_ERRORS:
        return r->errors;
    case VV_SORT_CONTEXTS:
        return r->contexts;
    }
    return 0;
}

static vv_u128 sort_value(const vv_function_group *g, bool compares, vv_function_sort by)
{
    if (by == VV_SORT_NAME)
        return 0;
    vv_u128 head = vv_function_value(&g->side[VV_SIDE_HEAD], by);
    vv_u128 base = vv_function_value(&g->side[VV_SIDE_BASE], by);
    return !compares || head >= base ? head - base : base - head; /* without a base that is 0 */
}

static void find_place(vv_function_group *g, vv_u128 value)
{
    vv_str name = vv_function_ref_name(&g->function);
    uint8_t *p = g->place;
    memset(p, 0, sizeof g->place);
    vv_put64(p, ~(uint64_t)(value >> 64));
    vv_put64(p + 8, ~(uint64_t)value);
    p[16] = !g->function.def;
    if (name.n)
        memcpy(p + 17, name.p, name.n < VV_FUNCTION_NAME ? name.n : VV_FUNCTION_NAME);
    memcpy(p + 17 + VV_FUNCTION_NAME, g->key, sizeof g->key);
}

static int by_place(const void *a, const void *b)
{
    const vv_function_group *x = a, *y = b;
    return memcmp(x->place, y->place, sizeof x->place);
}

void vv_function_groups_sort(vv_function_groups *g, const vv_scope *s, vv_function_sort by)
{
    for (uint32_t i = 0; i < g->count; i++)
        find_place(&g->items[i], sort_value(&g->items[i], s->compares, by));
    if (g->count)
        qsort(g->items, g->count, sizeof *g->items, by_place);
}

void vv_function_fields_json(vv_json *j, const vv_function_ref *ref)
{
    const vv_function *d = ref->def;
    vv_json_kv_str_or_null(j, "name", d ? &d->fqn : NULL);
    vv_json_kv_str_or_null(j, "display_name", d ? &d->display_name : NULL);
    vv_json_kv_opt_str(j, "definition_key", d ? &d->definition_key : NULL);
    vv_json_kv_u64(j, "function_id", ref->id);
    vv_json_kv_hex(j, "program", ref->program.b, sizeof ref->program.b);
    vv_json_kv_cstr(j, "kind", d ? vv_fn_kind_name(d->kind) : NULL);
    vv_json_kv_cstr(j, "origin", d ? vv_fn_origin_name(d->origin) : NULL);
    vv_json_kv_opt_str(j, "file", d ? &d->source_file : NULL);
    vv_json_key(j, "line");
    if (d && vv_fn_line(d))
        vv_json_u64(j, vv_fn_line(d));
    else
        vv_json_null(j);
    vv_json_key(j, "span");
    if (d && d->has_span) {
        vv_json_arr(j);
        vv_json_u64(j, d->span_start);
        vv_json_u64(j, d->span_end);
        vv_json_end_arr(j);
    } else {
        vv_json_null(j);
    }
}
