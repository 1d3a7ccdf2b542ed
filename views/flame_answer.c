#include "config.h"

#include <stdlib.h>

#include "base/text.h"
#include "views/cause.h"
#include "views/drawing.h"
#include "views/functions.h"

static const struct {
    const char *name, *unit;
} metrics[] = {
    [VV_METRIC_INCLUSIVE] = {"inclusive_ns", "ns"}, [VV_METRIC_SELF] = {"self_ns", "ns"},
    [VV_METRIC_AWAIT] = {"await_ns", "ns"}, [VV_METRIC_AWAIT_SUBTREE] = {"await_subtree_ns", "ns"},
    [VV_METRIC_CALLS] = {"calls", "calls"}, [VV_METRIC_ERRORS] = {"errors", "errors"},
};

static const char *const columns[] = {
    "parent", "function", "edge", "line", "calls", "open", "errors", "cancelled", "inclusive_ns", "self_ns", "await_ns",
    "unattributed_ns", "flags", "nodes",
};

/* Of a comparison: rows have lists of these numbers instead. */
static const char *const compared_columns[] = {
    "parent", "function", "edge", "line", "state", "base", "head", "delta", "delta_of_base", "delta_of_total",
    "delta_of_parent", "flags", "nodes",
};
static const char *const compared_numbers[] = {"calls", "open", "errors", "cancelled", "inclusive_ns", "self_ns",
                                               "await_ns"};

typedef enum { PHASE_HEAD, PHASE_FUNCTIONS, PHASE_NODES, PHASE_CONTEXTS, PHASE_PATHS, PHASE_TAIL } phase;

/* An answer on its way: what it is about is held until the last piece. */
typedef struct {
    vv_query q;              /* whose looks are held; no parameters */
    vv_comparison c;         /* the scope; of several executions the merged tree */
    vv_loaded loaded;        /* of a single one */
    const vv_tree *whole;    /* before anything is left out */
    vv_draw_plan plan;
    vv_drawing drawing;      /* of a comparison with the numbers of both sides together */
    vv_drawing side[VV_SIDES];
    vv_drawing sizes[VV_SIDES]; /* of a side alone, for its denominators */
    vv_cause cause;
    bool ids;
    uint32_t *functions, function_count; /* of the tree, in the order of the answer */
    uint32_t *function_at;               /* by function of the tree: its place in the answer */
    phase phase;
    size_t at;
} state;

static vv_code read_edges(vv_query *q, unsigned *ret, vv_error *err)
{
    const vv_str *s = vv_query_value(q, "edges");
    if (!s)
        return VV_OK;
    unsigned edges = 0;
    for (size_t from = 0, to; from <= s->n; from = to + 1) {
        for (to = from; to < s->n && s->p[to] != ',';)
            to++;
        unsigned e = 0;
        while (e < VV_EDGES && !vv_str_eq((vv_str){s->p + from, to - from}, vv_cstr(vv_node_edge_name((uint8_t)e))))
            e++;
        if (e == VV_EDGES)
            return vv_query_fail(q, "edges", err, "must be a list of root, call, spawn, with commas");
        edges |= 1u << e;
    }
    *ret = edges;
    return VV_OK;
}

static vv_code read_root(vv_query *q, vv_flame_options *o, vv_error *err)
{
    const vv_str *s = vv_query_value(q, "root");
    if (!s)
        return VV_OK;
    o->has_root = true;
    o->root_is_path = s->n == 32;
    if (vv_unhex(o->root, o->root_is_path ? 16 : 32, *s))
        return VV_OK;
    return vv_query_fail(q, "root", err, "must be a context key (64 hexadecimal digits) or a path_id (32)");
}

static vv_code read_transforms(vv_query *q, state *st, vv_error *err)
{
    const vv_str *s;
    for (size_t at = 0; (s = vv_query_each(q, "transform", &at));)
        if (st->plan.transform_count == VV_ARRAY_LEN(st->plan.transforms)
            || !vv_transform_parse(&st->plan.transforms[st->plan.transform_count++], *s))
            return vv_query_fail(q, "transform", err, "must be focus:TEXT, hide:TEXT, collapse:TEXT or only_user");
    return VV_OK;
}

static bool is_sandwich(const state *st)
{
    return st->plan.order == VV_DRAW_CALLERS || st->plan.order == VV_DRAW_CALLEES;
}

static vv_code read_options(vv_query *q, state *st, vv_error *err)
{
    static const char *const flame_names[] = {"execution+", "base+", "metric", "order", "root", "depth", "width",
                                              "max_nodes", "edges", "transform+", "ids", NULL};
    static const char *const sandwich_names[] = {"execution+", "base+", "function", "metric", "depth", "width",
                                                 "max_nodes", "edges", "transform+", NULL};
    static const char *const orders[] = {[VV_DRAW_TOP_DOWN] = "top_down", [VV_DRAW_BOTTOM_UP] = "bottom_up"};
    static const char *const switches[] = {"0", "1"};
    const char *words[VV_ARRAY_LEN(metrics)];
    for (size_t i = 0; i < VV_ARRAY_LEN(metrics); i++)
        words[i] = metrics[i].name;
    vv_flame_options *o = &st->plan.options;
    unsigned metric = VV_METRIC_INCLUSIVE, order = 0, ids = 0;
    *o = vv_flame_defaults();
    vv_code rc = vv_query_check(q, is_sandwich(st) ? sandwich_names : flame_names, err);
    if (rc == VV_OK)
        rc = vv_query_word(q, "metric", words, VV_ARRAY_LEN(words), &metric, err);
    if (rc == VV_OK)
        rc = vv_query_word(q, "order", orders, VV_ARRAY_LEN(orders), &order, err);
    if (rc == VV_OK)
        rc = vv_query_word(q, "ids", switches, VV_ARRAY_LEN(switches), &ids, err);
    if (rc == VV_OK)
        rc = vv_query_number(q, "depth", 1, UINT32_MAX, &o->depth, err);
    if (rc == VV_OK)
        rc = vv_query_number(q, "width", 1, 1000000, &o->width, err);
    if (rc == VV_OK)
        rc = vv_query_number(q, "max_nodes", 1, VV_FLAME_MAX_NODES_LIMIT, &o->max_nodes, err);
    if (rc == VV_OK)
        rc = read_edges(q, &o->edges, err);
    if (rc == VV_OK)
        rc = read_root(q, o, err);
    if (rc == VV_OK)
        rc = read_transforms(q, st, err);
    if (rc == VV_OK && is_sandwich(st) && !vv_query_value(q, "function"))
        rc = vv_query_fail(q, "function", err, "is required: a definition key, a full name, or # and a number");
    if (rc == VV_OK && !is_sandwich(st))
        st->plan.order = (vv_draw_order)order;
    o->metric = (vv_metric)metric;
    st->ids = ids;
    return rc;
}

/* Numbers the functions that the rows name, in the order they are met. */
static vv_code list_functions(state *st, vv_error *err)
{
    const vv_tree *t = st->drawing.tree;
    size_t n = (size_t)t->function_count + 1;
    st->functions = malloc(n * sizeof *st->functions);
    st->function_at = malloc(n * sizeof *st->function_at);
    if (!st->functions || !st->function_at)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for function names");
    memset(st->function_at, 0xff, n * sizeof *st->function_at);
    for (size_t i = 0; i < st->drawing.flame.row_count; i++) {
        uint32_t node = st->drawing.flame.rows[i].node;
        uint32_t f = node == VV_NONE ? VV_NONE : t->nodes[node].function;
        if (f == VV_NONE || st->function_at[f] != VV_NONE)
            continue;
        st->function_at[f] = st->function_count;
        st->functions[st->function_count++] = f;
    }
    return VV_OK;
}

static vv_code find_paths(state *st, vv_error *err)
{
    size_t n = (size_t)st->whole->node_count + 1;
    if (st->c.paths)
        return VV_OK;
    st->c.paths = malloc(n * sizeof *st->c.paths);
    st->c.has_path = calloc(n, sizeof *st->c.has_path);
    if (!st->c.paths || !st->c.has_path)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for path ids");
    vv_tree_paths(st->whole, st->c.paths, st->c.has_path);
    return VV_OK;
}

static vv_sliver numbers_at_top(const vv_drawing *d)
{
    const vv_node *n = d->tree->top_count ? &d->tree->nodes[d->tree->tops[0]] : NULL;
    if (!n)
        return (vv_sliver){.nodes = 0};
    const vv_counters *c = n->counters;
    return (vv_sliver){.calls = c->started, .open = vv_counters_open(c), .errors = c->error,
                       .cancelled = c->cancelled, .inclusive_ns = c->inclusive_ns, .self_ns = n->self_ns,
                       .await_ns = c->await_ns, .nodes = 1};
}

static void numbers_json(vv_json *j, const vv_sliver *s)
{
    vv_json_kv_u128(j, "calls", s->calls);
    vv_json_kv_i128(j, "open", s->open);
    vv_json_kv_u128(j, "errors", s->errors);
    vv_json_kv_u128(j, "cancelled", s->cancelled);
    vv_json_kv_u128(j, "self_ns", s->self_ns);
    vv_json_kv_u128(j, "inclusive_ns", s->inclusive_ns);
    vv_json_kv_u128(j, "await_ns", s->await_ns);
}

/* The function in the middle, and its row's numbers: those of the one node at the top, which may be filtered out. */
static void sandwich_json(const state *st, vv_json *j)
{
    static const char *const keys[VV_SIDES] = {[VV_SIDE_HEAD] = "head", [VV_SIDE_BASE] = "base"};
    vv_sliver s = numbers_at_top(&st->drawing);
    vv_json_kv_obj(j, "function");
    vv_function_fields_json(j, &st->whole->functions[st->plan.groups.first[st->plan.group]]);
    vv_json_end_obj(j);
    if (!vv_json_kv_opt_obj(j, "function_totals", s.nodes))
        return;
    if (!st->c.scope.compares)
        numbers_json(j, &s);
    for (size_t side = st->c.scope.compares ? VV_SIDES : 0; side-- > 0;) {
        s = numbers_at_top(&st->side[side]);
        vv_json_kv_obj(j, keys[side]);
        numbers_json(j, &s);
        vv_json_end_obj(j);
    }
    vv_json_end_obj(j);
}

static void denominators_json(vv_json *j, const char *key, const vv_flame *f)
{
    vv_json_kv_obj(j, key);
    vv_json_kv_u128(j, "of_total", f->of_total);
    vv_json_kv_u128(j, "of_filtered", f->of_filtered);
    vv_json_kv_u128(j, "of_root", f->of_root);
    vv_json_end_obj(j);
}

static void head_json(const state *st, vv_json *j)
{
    const vv_scope *s = &st->c.scope;
    vv_draw_order order = st->plan.order;
    bool up = order == VV_DRAW_BOTTOM_UP || order == VV_DRAW_CALLERS;
    vv_scope_head_json(j, &st->q, s, st->drawing.flame.truncated, &st->drawing.filtered);
    vv_json_kv_obj(j, "metric");
    vv_json_kv_cstr(j, "name", metrics[st->plan.options.metric].name);
    vv_json_kv_cstr(j, "unit", metrics[st->plan.options.metric].unit);
    vv_json_end_obj(j);
    vv_json_kv_cstr(j, "order", up ? "bottom_up" : "top_down");
    if (is_sandwich(st))
        sandwich_json(st, j);
    vv_scope_totals_json(j, s);
    denominators_json(j, "denominators", &st->drawing.flame);
    if (s->compares) {
        denominators_json(j, "base_denominators", &st->sizes[VV_SIDE_BASE].flame);
        denominators_json(j, "head_denominators", &st->sizes[VV_SIDE_HEAD].flame);
        vv_cause_json(j, &st->c, &st->cause);
    }
    vv_json_kv_arr(j, "functions");
}

static void function_json(const state *st, vv_json *j, size_t at)
{
    vv_json_obj(j);
    vv_function_fields_json(j, &st->drawing.tree->functions[st->functions[at]]);
    vv_json_end_obj(j);
}

static void words_json(vv_json *j, const char *key, const char *const *words, size_t n)
{
    vv_json_kv_arr(j, key);
    for (size_t i = 0; i < n; i++)
        vv_json_cstr(j, words[i]);
    vv_json_end_arr(j);
}

static void columns_json(const state *st, vv_json *j)
{
    vv_json_end_arr(j);
    if (st->c.scope.compares) {
        words_json(j, "columns", compared_columns, VV_ARRAY_LEN(compared_columns));
        words_json(j, "numbers", compared_numbers, VV_ARRAY_LEN(compared_numbers));
    } else {
        words_json(j, "columns", columns, VV_ARRAY_LEN(columns));
    }
    vv_json_kv_arr(j, "nodes");
}

static void place_row(const state *st, vv_json_row *r, size_t at, const vv_node *n)
{
    uint32_t parent = st->drawing.flame.rows[at].parent;
    vv_json_row_i128(r, parent == VV_NONE ? -1 : (__int128)parent);
    vv_json_row_i128(r, n && n->function != VV_NONE ? (__int128)st->function_at[n->function] : -1);
    vv_json_row_word(r, n ? vv_node_edge_name(n->edge) : "folded");
    if (n && n->line)
        vv_json_row_u128(r, n->line);
    else
        vv_json_row_word(r, NULL);
}

static void numbers_row(vv_json_row *r, const vv_sliver *s)
{
    vv_json_row_u128(r, s->calls);
    vv_json_row_i128(r, s->open);
    vv_json_row_u128(r, s->errors);
    vv_json_row_u128(r, s->cancelled);
    vv_json_row_u128(r, s->inclusive_ns);
    vv_json_row_u128(r, s->self_ns);
    vv_json_row_u128(r, s->await_ns);
}

static void row_json(const state *st, vv_json *j, size_t at)
{
    const vv_node *n;
    vv_json_row r;
    vv_sliver s = vv_drawing_row(&st->drawing, at, &n);
    if (!vv_json_row_begin(j, VV_ARRAY_LEN(columns), &r))
        return;
    place_row(st, &r, at, n);
    numbers_row(&r, &s);
    vv_json_row_difference(&r, s.child_ns, s.call_child_ns);
    vv_json_row_u128(&r, s.flags);
    vv_json_row_u128(&r, s.nodes);
    vv_json_row_end(j, &r);
}

static vv_u128 value_of(const vv_sliver *s, vv_metric m)
{
    switch (m) {
    case VV_METRIC_INCLUSIVE:
        return s->inclusive_ns;
    case VV_METRIC_SELF:
        return s->self_ns;
    case VV_METRIC_AWAIT:
    case VV_METRIC_AWAIT_SUBTREE:
        return s->await_ns;
    case VV_METRIC_CALLS:
        return s->calls;
    case VV_METRIC_ERRORS:
        return s->errors;
    }
    return 0;
}

static bool has_numbers(const vv_sliver *s)
{
    return s->calls || s->errors || s->cancelled || s->open || s->inclusive_ns || s->self_ns || s->await_ns
        || s->child_ns;
}

/* The context that a row shows, in the tree before anything was left out; VV_NONE where it stands for several. */
static uint32_t origin_of(const state *st, size_t at)
{
    uint32_t node = st->drawing.flame.rows[at].node;
    if (node == VV_NONE || st->plan.order != VV_DRAW_TOP_DOWN)
        return VV_NONE;
    return st->drawing.transformed.origin ? st->drawing.transformed.origin[node] : node;
}

/* Both sides of a row, and which of them have it: a row of many contexts is where it counts anything. */
static void sides_of(const state *st, size_t at, vv_sliver sides[VV_SIDES], bool on[VV_SIDES])
{
    uint32_t origin = origin_of(st, at);
    const vv_node *n;
    for (size_t side = 0; side < VV_SIDES; side++) {
        sides[side] = vv_drawing_row(&st->side[side], at, &n);
        on[side] = origin == VV_NONE ? has_numbers(&sides[side]) : st->c.merged.on[origin][side];
    }
    if (!on[VV_SIDE_HEAD] && !on[VV_SIDE_BASE])
        on[VV_SIDE_HEAD] = on[VV_SIDE_BASE] = true;
}

static void side_json(vv_json *j, bool known, const vv_sliver *s)
{
    if (!known) {
        vv_json_null(j);
        return;
    }
    vv_json_arr(j);
    vv_json_u128(j, s->calls);
    vv_json_i128(j, s->open);
    vv_json_u128(j, s->errors);
    vv_json_u128(j, s->cancelled);
    vv_json_u128(j, s->inclusive_ns);
    vv_json_u128(j, s->self_ns);
    vv_json_u128(j, s->await_ns);
    vv_json_end_arr(j);
}

static void place_json(const state *st, vv_json *j, size_t at, const vv_node *n)
{
    uint32_t parent = st->drawing.flame.rows[at].parent;
    vv_json_i64(j, parent == VV_NONE ? -1 : (int64_t)parent);
    vv_json_i64(j, n && n->function != VV_NONE ? (int64_t)st->function_at[n->function] : -1);
    vv_json_cstr(j, n ? vv_node_edge_name(n->edge) : "folded");
    if (n && n->line)
        vv_json_u64(j, n->line);
    else
        vv_json_null(j);
}

static void change_json(vv_json *j, bool known, const vv_sliver *base, const vv_sliver *head)
{
    if (!known) {
        vv_json_null(j);
        return;
    }
    vv_json_arr(j);
    vv_delta_json(j, base->calls, head->calls);
    vv_delta_signed_json(j, base->open, head->open);
    vv_delta_json(j, base->errors, head->errors);
    vv_delta_json(j, base->cancelled, head->cancelled);
    vv_delta_json(j, base->inclusive_ns, head->inclusive_ns);
    vv_delta_json(j, base->self_ns, head->self_ns);
    vv_delta_json(j, base->await_ns, head->await_ns);
    vv_json_end_arr(j);
}

/* A parent's number in the base; 0 where there is none, or it is not known. */
static vv_u128 parent_value(const state *st, size_t at)
{
    uint32_t parent = st->drawing.flame.rows[at].parent;
    vv_sliver sides[VV_SIDES];
    bool on[VV_SIDES];
    if (parent == VV_NONE)
        return 0;
    sides_of(st, parent, sides, on);
    return value_of(&sides[VV_SIDE_BASE], st->plan.options.metric);
}

static void compared_row_json(const state *st, vv_json *j, size_t at)
{
    const vv_scope *scope = &st->c.scope;
    vv_metric m = st->plan.options.metric;
    vv_sliver sides[VV_SIDES];
    bool on[VV_SIDES];
    const vv_node *n;
    vv_sliver s = vv_drawing_row(&st->drawing, at, &n);
    sides_of(st, at, sides, on);
    bool has_base = vv_scope_number_known(scope, on, VV_SIDE_BASE);
    bool has_head = vv_scope_number_known(scope, on, VV_SIDE_HEAD), both = has_base && has_head;
    vv_u128 from = value_of(&sides[VV_SIDE_BASE], m), to = value_of(&sides[VV_SIDE_HEAD], m);
    vv_json_arr(j);
    place_json(st, j, at, n);
    vv_json_cstr(j, vv_delta_state_word(vv_scope_state(scope, on)));
    side_json(j, has_base, &sides[VV_SIDE_BASE]);
    side_json(j, has_head, &sides[VV_SIDE_HEAD]);
    change_json(j, both, &sides[VV_SIDE_BASE], &sides[VV_SIDE_HEAD]);
    vv_delta_ratio_json(j, both, from, to, from);
    vv_delta_ratio_json(j, both, from, to, st->sizes[VV_SIDE_BASE].flame.of_total);
    vv_delta_ratio_json(j, both, from, to, parent_value(st, at));
    vv_json_u64(j, s.flags);
    vv_json_u64(j, s.nodes);
    vv_json_end_arr(j);
}

static void context_json(const state *st, vv_json *j, size_t at)
{
    uint32_t node = st->drawing.flame.rows[at].node;
    const vv_node *n = node == VV_NONE ? NULL : &st->drawing.tree->nodes[node];
    if (n && n->key && st->plan.order == VV_DRAW_TOP_DOWN) {
        vv_json_hex(j, n->key, 32);
    } else if (n && n->flags & VV_NODE_OVERFLOW) {
        char id[VV_OVERFLOW_ID];
        vv_node_overflow_id(n, id);
        vv_json_cstr(j, id);
    } else {
        vv_json_null(j);
    }
}

static void path_json(const state *st, vv_json *j, size_t at)
{
    uint32_t node = origin_of(st, at);
    if (node != VV_NONE && st->c.has_path[node])
        vv_json_hex(j, st->c.paths[node].b, sizeof st->c.paths[node].b);
    else
        vv_json_null(j);
}

static void tail_json(const state *st, vv_json *j)
{
    const vv_sliver *folded = &st->drawing.flame.folded;
    vv_json_kv_obj(j, "folded");
    vv_json_kv_u64(j, "nodes", folded->nodes);
    if (st->c.scope.compares) {
        const vv_sliver *base = &st->side[VV_SIDE_BASE].flame.folded, *head = &st->side[VV_SIDE_HEAD].flame.folded;
        vv_json_kv_u128(j, "base_calls", base->calls);
        vv_json_kv_u128(j, "head_calls", head->calls);
        vv_json_kv_u128(j, "base_self_ns", base->self_ns);
        vv_json_kv_u128(j, "head_self_ns", head->self_ns);
    } else {
        vv_json_kv_u128(j, "calls", folded->calls);
        vv_json_kv_u128(j, "self_ns", folded->self_ns);
    }
    vv_json_end_obj(j);
    vv_json_kv_bool(j, "truncated", st->drawing.flame.truncated);
    vv_json_end_obj(j);
}

static void enter(state *st, phase next)
{
    st->phase = next;
    st->at = 0;
}

/* Writes one item, or what stands between two lists; false after the last. */
static bool more(void *cls, vv_json *j)
{
    state *st = cls;
    size_t rows = st->drawing.flame.row_count;
    switch (st->phase) {
    case PHASE_HEAD:
        head_json(st, j);
        enter(st, PHASE_FUNCTIONS);
        return true;
    case PHASE_FUNCTIONS:
        if (st->at < st->function_count) {
            function_json(st, j, st->at++);
        } else {
            columns_json(st, j);
            enter(st, PHASE_NODES);
        }
        return true;
    case PHASE_NODES:
        if (st->at < rows) {
            (st->c.scope.compares ? compared_row_json : row_json)(st, j, st->at);
            st->at++;
            return true;
        }
        vv_json_end_arr(j);
        enter(st, st->ids ? PHASE_CONTEXTS : PHASE_TAIL);
        if (st->ids) {
            vv_json_kv_arr(j, "contexts");
        }
        return true;
    case PHASE_CONTEXTS:
        if (st->at < rows) {
            context_json(st, j, st->at++);
            return true;
        }
        vv_json_end_arr(j);
        vv_json_kv_arr(j, "path_ids");
        enter(st, PHASE_PATHS);
        return true;
    case PHASE_PATHS:
        if (st->at < rows) {
            path_json(st, j, st->at++);
            return true;
        }
        vv_json_end_arr(j);
        enter(st, PHASE_TAIL);
        return true;
    case PHASE_TAIL:
        tail_json(st, j);
        return false;
    }
    return false;
}

static void free_state(void *cls)
{
    state *st = cls;
    for (size_t side = 0; side < VV_SIDES; side++) {
        vv_drawing_done(&st->sizes[side]);
        vv_drawing_done(&st->side[side]);
    }
    vv_drawing_done(&st->drawing);
    free(st->functions);
    free(st->function_at);
    vv_function_grouping_done(&st->plan.groups);
    vv_comparison_done(&st->c);
    vv_loaded_release(st->q.library, &st->loaded);
    vv_look_release(st->q.library, st->q.look);
    if (st->q.base_look)
        vv_look_release(st->q.base_library, st->q.base_look);
    free(st);
}

/* The same drawing with the numbers of each side; and each side's own sizes, of which one row is enough. */
static vv_code draw_sides(state *st, vv_error *err)
{
    vv_code rc = VV_OK;
    uint64_t max_nodes = st->plan.options.max_nodes;
    for (size_t side = 0; side < VV_SIDES && rc == VV_OK; side++) {
        const vv_tree *t = &st->c.merged.side[side];
        rc = vv_drawing_make(&st->side[side], &st->plan, t, &st->drawing, err);
        if (rc == VV_OK && st->side[side].flame.row_count != st->drawing.flame.row_count)
            rc = vv_fail(err, VV_ERR_CORRUPT, "two drawings of one tree differ");
        st->plan.options.max_nodes = 1;
        if (rc == VV_OK)
            rc = vv_drawing_make(&st->sizes[side], &st->plan, t, NULL, err);
        st->plan.options.max_nodes = max_nodes;
    }
    return rc == VV_OK ? vv_cause_find(&st->cause, &st->c, err) : rc;
}

static vv_code draw(state *st, vv_query *q, vv_error *err)
{
    vv_code rc = VV_OK;
    if (st->plan.order != VV_DRAW_TOP_DOWN)
        rc = vv_function_grouping_make(&st->plan.groups, st->whole, err);
    if (rc == VV_OK && is_sandwich(st))
        rc = vv_query_function(q, st->whole, &st->plan.groups, &st->plan.group, err);
    if (rc == VV_OK)
        rc = vv_drawing_make(&st->drawing, &st->plan, st->whole, NULL, err);
    return rc == VV_OK && st->c.scope.compares ? draw_sides(st, err) : rc;
}

/* The tree: that of the one execution, held, or of several as one. */
static vv_code load(state *st, vv_error *err)
{
    vv_scope *s = &st->c.scope;
    if (!vv_scope_is_single(s)) {
        st->whole = &st->c.merged.tree;
        return vv_comparison_make(&st->c, NULL, NULL, err);
    }
    vv_code rc = vv_query_load(&st->q, &s->items[0].found, &st->loaded, err);
    if (rc != VV_OK)
        return rc;
    st->whole = &st->loaded.profile->tree;
    return vv_scope_gather(s, &s->items[0], st->loaded.digest, err);
}

static vv_code prepare(state *st, vv_query *q, vv_error *err)
{
    vv_code rc = read_options(q, st, err);
    if (rc == VV_OK)
        rc = vv_scope_read(&st->c.scope, q, err);
    if (rc == VV_OK)
        rc = load(st, err);
    if (rc == VV_OK)
        rc = draw(st, q, err);
    if (rc == VV_OK && st->plan.options.has_root && !st->drawing.flame.root_found) {
        q->parameter = "root";
        return vv_fail(err, VV_ERR_NOTFOUND, st->plan.transform_count ? "the transforms leave no such context"
                                                                      : "there is no such context");
    }
    if (rc == VV_OK)
        rc = list_functions(st, err);
    if (rc == VV_OK && st->ids)
        rc = find_paths(st, err);
    return rc;
}

static vv_code answer(vv_answer *a, vv_draw_order what, vv_query *q, vv_error *err)
{
    state *st = calloc(1, sizeof *st);
    if (!st)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for an answer");
    st->plan.order = what;
    st->q = (vv_query){.library = q->library, .look = vv_look_hold(q->library, q->look)};
    if (q->base_look) {
        st->q.base_library = q->base_library;
        st->q.base_look = vv_look_hold(q->base_library, q->base_look);
    }
    vv_code rc = prepare(st, q, err);
    if (rc != VV_OK) {
        free_state(st);
        return rc;
    }
    a->more = more;
    a->free_state = free_state;
    a->state = st;
    return VV_OK;
}

vv_code vv_answer_flame(vv_answer *a, vv_query *q, vv_error *err)
{
    return answer(a, VV_DRAW_TOP_DOWN, q, err);
}

vv_code vv_answer_callers(vv_answer *a, vv_query *q, vv_error *err)
{
    return answer(a, VV_DRAW_CALLERS, q, err);
}

vv_code vv_answer_callees(vv_answer *a, vv_query *q, vv_error *err)
{
    return answer(a, VV_DRAW_CALLEES, q, err);
}
