#include "config.h"

#include <stdlib.h>

#include "views/flame_view.h"
#include "views/functions.h"

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
    vv_flame_view v;
    uint32_t *functions, function_count; /* of the tree, in the order of the answer */
    uint32_t *function_at;               /* by function of the tree: its place in the answer */
    phase phase;
    size_t at;
} state;

/* Numbers the functions that the rows name, in the order they are met. */
static vv_code list_functions(state *st, vv_error *err)
{
    const vv_tree *t = st->v.drawing.tree;
    size_t n = (size_t)t->function_count + 1;
    st->functions = malloc(n * sizeof *st->functions);
    st->function_at = malloc(n * sizeof *st->function_at);
    if (!st->functions || !st->function_at)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for function names");
    memset(st->function_at, 0xff, n * sizeof *st->function_at);
    for (size_t i = 0; i < st->v.drawing.flame.row_count; i++) {
        uint32_t node = st->v.drawing.flame.rows[i].node;
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
    size_t n = (size_t)st->v.whole->node_count + 1;
    if (st->v.c.paths)
        return VV_OK;
    st->v.c.paths = malloc(n * sizeof *st->v.c.paths);
    st->v.c.has_path = calloc(n, sizeof *st->v.c.has_path);
    if (!st->v.c.paths || !st->v.c.has_path)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for path ids");
    vv_tree_paths(st->v.whole, st->v.c.paths, st->v.c.has_path);
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
                       .await_ns = c->await_ns, .child_ns = c->direct_child_ns, .nodes = 1};
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

/* As vv_flame_view_sides has it of a row. */
static void sides_at_top_json(const state *st, vv_json *j)
{
    static const char *const keys[VV_SIDES] = {[VV_SIDE_HEAD] = "head", [VV_SIDE_BASE] = "base"};
    vv_sliver s[VV_SIDES];
    bool on[VV_SIDES], any = false;
    for (size_t side = 0; side < VV_SIDES; side++) {
        s[side] = numbers_at_top(&st->v.side[side]);
        on[side] = vv_sliver_counts(&s[side]);
        any |= on[side];
    }
    if (!any)
        on[VV_SIDE_HEAD] = on[VV_SIDE_BASE] = true;
    for (size_t side = VV_SIDES; side-- > 0;) {
        if (!vv_json_kv_opt_obj(j, keys[side], vv_scope_number_known(&st->v.c.scope, on, (vv_side)side)))
            continue;
        numbers_json(j, &s[side]);
        vv_json_end_obj(j);
    }
}

/* The function in the middle, and its row's numbers: those of the one node at the top, which may be filtered out. */
static void sandwich_json(const state *st, vv_json *j)
{
    vv_sliver s = numbers_at_top(&st->v.drawing);
    vv_json_kv_obj(j, "function");
    vv_function_fields_json(j, &st->v.whole->functions[st->v.plan.groups.first[st->v.plan.group]]);
    vv_json_end_obj(j);
    if (!vv_json_kv_opt_obj(j, "function_totals", s.nodes))
        return;
    if (st->v.c.scope.compares)
        sides_at_top_json(st, j);
    else
        numbers_json(j, &s);
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
    const vv_scope *s = &st->v.c.scope;
    bool up = vv_flame_view_goes_up(&st->v);
    vv_scope_head_json(j, &st->v.q, s, st->v.drawing.flame.truncated, &st->v.drawing.filtered);
    vv_json_kv_obj(j, "metric");
    vv_json_kv_cstr(j, "name", vv_metric_names[st->v.plan.options.metric].name);
    vv_json_kv_cstr(j, "unit", vv_metric_names[st->v.plan.options.metric].unit);
    vv_json_end_obj(j);
    vv_json_kv_cstr(j, "order", up ? "bottom_up" : "top_down");
    if (vv_flame_view_is_sandwich(&st->v))
        sandwich_json(st, j);
    vv_scope_totals_json(j, s);
    denominators_json(j, "denominators", &st->v.drawing.flame);
    if (s->compares) {
        denominators_json(j, "base_denominators", &st->v.sizes[VV_SIDE_BASE].flame);
        denominators_json(j, "head_denominators", &st->v.sizes[VV_SIDE_HEAD].flame);
        vv_cause_json(j, &st->v.c, &st->v.cause);
    }
    vv_json_kv_arr(j, "functions");
}

static void function_json(const state *st, vv_json *j, size_t at)
{
    vv_json_obj(j);
    vv_function_fields_json(j, &st->v.drawing.tree->functions[st->functions[at]]);
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
    if (st->v.c.scope.compares) {
        words_json(j, "columns", compared_columns, VV_ARRAY_LEN(compared_columns));
        words_json(j, "numbers", compared_numbers, VV_ARRAY_LEN(compared_numbers));
    } else {
        words_json(j, "columns", columns, VV_ARRAY_LEN(columns));
    }
    vv_json_kv_arr(j, "nodes");
}

static void place_json(const state *st, vv_json *j, size_t at, const vv_node *n)
{
    uint32_t parent = st->v.drawing.flame.rows[at].parent;
    vv_json_i64(j, parent == VV_NONE ? -1 : (int64_t)parent);
    vv_json_i64(j, n && n->function != VV_NONE ? (int64_t)st->function_at[n->function] : -1);
    vv_json_cstr(j, n ? vv_node_edge_name(n->edge) : "folded");
    if (n && n->line)
        vv_json_u64(j, n->line);
    else
        vv_json_null(j);
}

static void row_numbers_json(vv_json *j, const vv_sliver *s)
{
    vv_json_u128(j, s->calls);
    vv_json_i128(j, s->open);
    vv_json_u128(j, s->errors);
    vv_json_u128(j, s->cancelled);
    vv_json_u128(j, s->inclusive_ns);
    vv_json_u128(j, s->self_ns);
    vv_json_u128(j, s->await_ns);
}

/* As vv_node_edge_name has them. */
static const vv_json_word edge_words[] = {
    [VV_EDGE_ROOT] = VV_JSON_WORD("root"),
    [VV_EDGE_CALL] = VV_JSON_WORD("call"),
    [VV_EDGE_SPAWN] = VV_JSON_WORD("spawn"),
    [VV_EDGE_UNKNOWN] = VV_JSON_WORD("unknown"),
};
static const vv_json_word folded_word = VV_JSON_WORD("folded");

/* Where the row hangs, and what it is. */
static void put_place(vv_json_row *row, const state *st, uint32_t parent, const vv_node *n)
{
    uint32_t function = n ? n->function : VV_NONE;
    vv_json_row_i128(row, parent == VV_NONE ? -1 : (int64_t)parent);
    vv_json_row_i128(row, function == VV_NONE ? -1 : (int64_t)st->function_at[function]);
    vv_json_row_word(row, n ? &edge_words[n->edge <= VV_EDGE_UNKNOWN ? n->edge : VV_EDGE_UNKNOWN] : &folded_word);
    if (n && n->line)
        vv_json_row_u128(row, n->line);
    else
        vv_json_row_word(row, &vv_json_word_null);
}

static void put_sliver(vv_json_row *row, const vv_sliver *s)
{
    vv_json_row_u128(row, s->calls);
    vv_json_row_i128(row, s->open);
    vv_json_row_u128(row, s->errors);
    vv_json_row_u128(row, s->cancelled);
    vv_json_row_u128(row, s->inclusive_ns);
    vv_json_row_u128(row, s->self_ns);
    vv_json_row_u128(row, s->await_ns);
    vv_json_row_difference(row, s->child_ns, s->call_child_ns);
    vv_json_row_u128(row, s->flags);
    vv_json_row_u128(row, s->nodes);
}

/* Most calls have ended well, and waited for nothing. */
static void put_node(vv_json_row *row, const vv_tree *t, uint32_t node, const vv_node *n)
{
    static const vv_json_word zeros = {"0,0,0,", 6};
    const vv_counters *c = n->counters;
    vv_u128 children = vv_node_call_children(t, node);
    vv_json_row_u128(row, c->started);
    if (c->started == c->ok && !(c->error | c->cancelled | c->exited)) {
        vv_json_row_word(row, &zeros);
    } else {
        vv_json_row_i128(row, vv_counters_open(c));
        vv_json_row_u128(row, c->error);
        vv_json_row_u128(row, c->cancelled);
    }
    vv_json_row_u128(row, c->inclusive_ns);
    vv_json_row_u128(row, n->self_ns);
    if (!c->await_ns && c->direct_child_ns == children && !n->flags) {
        vv_json_row_word(row, &zeros);
    } else {
        vv_json_row_u128(row, c->await_ns);
        vv_json_row_difference(row, c->direct_child_ns, children);
        vv_json_row_u128(row, n->flags);
    }
    vv_json_row_u128(row, 1);
}

static void rows_json(const state *st, vv_json *j, size_t from, size_t end)
{
    const vv_drawing *d = &st->v.drawing;
    vv_json_row row;
    if (!vv_json_rows_begin(j, end - from, VV_ARRAY_LEN(columns), &row))
        return;
    for (size_t at = from; at < end; at++) {
        const vv_flame_row *r = &d->flame.rows[at];
        const vv_node *n = r->node == VV_NONE ? NULL : &d->tree->nodes[r->node];
        vv_json_row_open(&row);
        put_place(&row, st, r->parent, n);
        if (n)
            put_node(&row, d->tree, r->node, n);
        else
            put_sliver(&row, &d->flame.slivers[r->sliver]);
        vv_json_row_close(&row);
    }
    vv_json_rows_end(j, row);
}

static void side_json(vv_json *j, bool known, const vv_sliver *s)
{
    if (!known) {
        vv_json_null(j);
        return;
    }
    vv_json_arr(j);
    row_numbers_json(j, s);
    vv_json_end_arr(j);
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
    uint32_t parent = st->v.drawing.flame.rows[at].parent;
    vv_sliver sides[VV_SIDES];
    bool on[VV_SIDES];
    if (parent == VV_NONE)
        return 0;
    vv_flame_view_sides(&st->v, parent, sides, on);
    return vv_sliver_value(&sides[VV_SIDE_BASE], st->v.plan.options.metric);
}

static void compared_row_json(const state *st, vv_json *j, size_t at)
{
    const vv_scope *scope = &st->v.c.scope;
    vv_metric m = st->v.plan.options.metric;
    vv_sliver sides[VV_SIDES];
    bool on[VV_SIDES];
    const vv_node *n;
    vv_sliver s = vv_drawing_row(&st->v.drawing, at, &n);
    vv_flame_view_sides(&st->v, at, sides, on);
    bool has_base = vv_scope_number_known(scope, on, VV_SIDE_BASE);
    bool has_head = vv_scope_number_known(scope, on, VV_SIDE_HEAD), both = has_base && has_head;
    vv_u128 from = vv_sliver_value(&sides[VV_SIDE_BASE], m), to = vv_sliver_value(&sides[VV_SIDE_HEAD], m);
    vv_json_arr(j);
    place_json(st, j, at, n);
    vv_json_cstr(j, vv_delta_state_word(vv_scope_state(scope, on)));
    side_json(j, has_base, &sides[VV_SIDE_BASE]);
    side_json(j, has_head, &sides[VV_SIDE_HEAD]);
    change_json(j, both, &sides[VV_SIDE_BASE], &sides[VV_SIDE_HEAD]);
    vv_delta_ratio_json(j, both, from, to, from);
    vv_delta_ratio_json(j, both, from, to, st->v.sizes[VV_SIDE_BASE].flame.of_total);
    vv_delta_ratio_json(j, both, from, to, parent_value(st, at));
    vv_json_u64(j, s.flags);
    vv_json_u64(j, s.nodes);
    vv_json_end_arr(j);
}

static void compared_rows_json(const state *st, vv_json *j, size_t from, size_t end)
{
    for (size_t at = from; at < end; at++)
        compared_row_json(st, j, at);
}

static void context_json(const state *st, vv_json *j, size_t at)
{
    uint32_t node = st->v.drawing.flame.rows[at].node;
    const vv_node *n = node == VV_NONE ? NULL : &st->v.drawing.tree->nodes[node];
    if (n && n->key && st->v.plan.order == VV_DRAW_TOP_DOWN) {
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
    uint32_t node = vv_flame_view_origin(&st->v, at);
    if (node != VV_NONE && st->v.c.has_path[node])
        vv_json_hex(j, st->v.c.paths[node].b, sizeof st->v.c.paths[node].b);
    else
        vv_json_null(j);
}

static void tail_json(const state *st, vv_json *j)
{
    const vv_sliver *folded = &st->v.drawing.flame.folded;
    vv_json_kv_obj(j, "folded");
    vv_json_kv_u64(j, "nodes", folded->nodes);
    if (st->v.c.scope.compares) {
        const vv_sliver *base = &st->v.side[VV_SIDE_BASE].flame.folded, *head = &st->v.side[VV_SIDE_HEAD].flame.folded;
        vv_json_kv_u128(j, "base_calls", base->calls);
        vv_json_kv_u128(j, "head_calls", head->calls);
        vv_json_kv_u128(j, "base_self_ns", base->self_ns);
        vv_json_kv_u128(j, "head_self_ns", head->self_ns);
    } else {
        vv_json_kv_u128(j, "calls", folded->calls);
        vv_json_kv_u128(j, "self_ns", folded->self_ns);
    }
    vv_json_end_obj(j);
    vv_json_kv_bool(j, "truncated", st->v.drawing.flame.truncated);
    vv_json_end_obj(j);
}

static void enter(state *st, phase next)
{
    st->phase = next;
    st->at = 0;
}

enum { ROWS = 32 }; /* written at a time: a fraction of a piece */

/* Writes some items, or what stands between two lists; false after the last. */
static bool more(void *cls, vv_json *j)
{
    state *st = cls;
    size_t rows = st->v.drawing.flame.row_count;
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
            size_t from = st->at;
            st->at = rows - from < ROWS ? rows : from + ROWS;
            (st->v.c.scope.compares ? compared_rows_json : rows_json)(st, j, from, st->at);
            return true;
        }
        vv_json_end_arr(j);
        enter(st, st->v.ids ? PHASE_CONTEXTS : PHASE_TAIL);
        if (st->v.ids) {
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
    vv_flame_view_done(&st->v);
    free(st->functions);
    free(st->function_at);
    free(st);
}

static vv_code answer(vv_answer *a, vv_draw_order what, vv_query *q, vv_error *err)
{
    state *st = calloc(1, sizeof *st);
    if (!st)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for an answer");
    vv_code rc = vv_flame_view_make(&st->v, what, q, err);
    if (rc == VV_OK)
        rc = list_functions(st, err);
    if (rc == VV_OK && st->v.ids)
        rc = find_paths(st, err);
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
