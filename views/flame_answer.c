#include "config.h"

#include <stdlib.h>

#include "base/text.h"
#include "views/executions.h"
#include "views/functions.h"
#include "views/invert.h"

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

typedef enum { PHASE_HEAD, PHASE_FUNCTIONS, PHASE_NODES, PHASE_CONTEXTS, PHASE_PATHS, PHASE_TAIL } phase;

/* What is asked: a flame graph, or one function's callers or callees, which are the same table. */
typedef enum { TOP_DOWN, BOTTOM_UP, CALLERS, CALLEES } question;

/* An answer on its way: what it is about is held until the last piece. */
typedef struct {
    vv_library *library;
    const vv_look *look;
    vv_loaded loaded;
    question question;
    vv_flame_options options;
    vv_transform transforms[VV_QUERY_TRANSFORMS];
    size_t transform_count;
    vv_derived transformed; /* the tree after them, if any */
    vv_derived turned;      /* the tree of callers or callees */
    const vv_tree *tree;    /* what the rows show */
    vv_filtered filtered;
    vv_function_grouping groups;
    uint32_t group; /* of the function asked for */
    bool ids;
    vv_flame flame;
    uint32_t *functions, function_count; /* of the tree, in the order of the answer */
    uint32_t *function_at;               /* by function of the tree: its place in the answer */
    vv_path_id *paths;
    bool *has_path;
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
        if (st->transform_count == VV_ARRAY_LEN(st->transforms)
            || !vv_transform_parse(&st->transforms[st->transform_count++], *s))
            return vv_query_fail(q, "transform", err, "must be focus:TEXT, hide:TEXT, collapse:TEXT or only_user");
    return VV_OK;
}

static bool is_sandwich(const state *st)
{
    return st->question == CALLERS || st->question == CALLEES;
}

static vv_code read_options(vv_query *q, state *st, vv_error *err)
{
    static const char *const flame_names[] = {"execution", "metric", "order", "root", "depth", "width", "max_nodes",
                                              "edges", "transform+", "ids", NULL};
    static const char *const sandwich_names[] = {"execution", "function", "metric", "depth", "width", "max_nodes",
                                                 "edges", "transform+", NULL};
    static const char *const orders[] = {[TOP_DOWN] = "top_down", [BOTTOM_UP] = "bottom_up"};
    static const char *const switches[] = {"0", "1"};
    const char *words[VV_ARRAY_LEN(metrics)];
    for (size_t i = 0; i < VV_ARRAY_LEN(metrics); i++)
        words[i] = metrics[i].name;
    vv_flame_options *o = &st->options;
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
        st->question = (question)order;
    o->metric = (vv_metric)metric;
    st->ids = ids;
    return rc;
}

/* Numbers the functions that the rows name, in the order they are met. */
static vv_code list_functions(state *st, vv_error *err)
{
    size_t n = (size_t)st->tree->function_count + 1;
    st->functions = malloc(n * sizeof *st->functions);
    st->function_at = malloc(n * sizeof *st->function_at);
    if (!st->functions || !st->function_at)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for function names");
    memset(st->function_at, 0xff, n * sizeof *st->function_at);
    for (size_t i = 0; i < st->flame.row_count; i++) {
        uint32_t node = st->flame.rows[i].node;
        uint32_t f = node == VV_NONE ? VV_NONE : st->tree->nodes[node].function;
        if (f == VV_NONE || st->function_at[f] != VV_NONE)
            continue;
        st->function_at[f] = st->function_count;
        st->functions[st->function_count++] = f;
    }
    return VV_OK;
}

static vv_code find_paths(state *st, vv_error *err)
{
    size_t n = (size_t)st->loaded.profile->tree.node_count + 1;
    st->paths = malloc(n * sizeof *st->paths);
    st->has_path = calloc(n, sizeof *st->has_path);
    if (!st->paths || !st->has_path)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for path ids");
    vv_tree_paths(&st->loaded.profile->tree, st->paths, st->has_path);
    return VV_OK;
}

/* The function in the middle, and its row's numbers: those of the one node at the top, which may be filtered out. */
static void sandwich_json(const state *st, vv_json *j)
{
    const vv_tree *t = st->tree;
    const vv_node *n = t->top_count ? &t->nodes[t->tops[0]] : NULL;
    vv_json_kv_obj(j, "function");
    vv_function_fields_json(j, &st->loaded.profile->tree.functions[st->groups.first[st->group]]);
    vv_json_end_obj(j);
    vv_json_key(j, "function_totals");
    if (!n) {
        vv_json_null(j);
    } else {
        vv_json_obj(j);
        vv_json_kv_u64(j, "calls", n->counters->started);
        vv_json_kv_i128(j, "open", vv_counters_open(n->counters));
        vv_json_kv_u64(j, "errors", n->counters->error);
        vv_json_kv_u64(j, "cancelled", n->counters->cancelled);
        vv_json_kv_u128(j, "self_ns", n->self_ns);
        vv_json_kv_u128(j, "inclusive_ns", n->counters->inclusive_ns);
        vv_json_kv_u128(j, "await_ns", n->counters->await_ns);
        vv_json_end_obj(j);
    }
}

static void head_json(const state *st, vv_json *j)
{
    const vv_flame *f = &st->flame;
    const vv_digest *d = st->loaded.digest;
    vv_head_json(j, st->look, &d->evidence, f->truncated, &st->filtered);
    vv_json_kv_obj(j, "metric");
    vv_json_kv_cstr(j, "name", metrics[st->options.metric].name);
    vv_json_kv_cstr(j, "unit", metrics[st->options.metric].unit);
    vv_json_end_obj(j);
    vv_json_kv_cstr(j, "order", st->question == BOTTOM_UP || st->question == CALLERS ? "bottom_up" : "top_down");
    if (is_sandwich(st))
        sandwich_json(st, j);
    vv_json_key(j, "totals");
    vv_totals_json(j, d->known, &d->totals);
    vv_json_kv_obj(j, "denominators");
    vv_json_kv_u128(j, "of_total", f->of_total);
    vv_json_kv_u128(j, "of_filtered", f->of_filtered);
    vv_json_kv_u128(j, "of_root", f->of_root);
    vv_json_end_obj(j);
    vv_json_kv_arr(j, "functions");
}

static void function_json(const state *st, vv_json *j, size_t at)
{
    vv_json_obj(j);
    vv_function_fields_json(j, &st->tree->functions[st->functions[at]]);
    vv_json_end_obj(j);
}

static void columns_json(vv_json *j)
{
    vv_json_end_arr(j);
    vv_json_kv_arr(j, "columns");
    for (size_t i = 0; i < VV_ARRAY_LEN(columns); i++)
        vv_json_cstr(j, columns[i]);
    vv_json_end_arr(j);
    vv_json_kv_arr(j, "nodes");
}

/* a - b in full. */
static void difference_json(vv_json *j, vv_u128 a, vv_u128 b)
{
    const vv_u128 limit = (vv_u128)1 << 127;
    if (a >= b) {
        vv_json_u128(j, a - b);
    } else if (b - a < limit) {
        vv_json_i128(j, -(__int128)(b - a));
    } else {
        char text[44] = "-";
        vv_u128_text(text + 1, b - a);
        vv_json_cstr(j, text);
    }
}

static void row_json(const state *st, vv_json *j, size_t at)
{
    const vv_flame_row *r = &st->flame.rows[at];
    const vv_node *n = r->node == VV_NONE ? NULL : &st->tree->nodes[r->node];
    vv_sliver s;
    if (n)
        s = (vv_sliver){n->counters->started, n->counters->error, n->counters->cancelled, n->counters->inclusive_ns,
                        n->self_ns, n->counters->await_ns, n->counters->direct_child_ns,
                        vv_node_call_children(st->tree, r->node), vv_counters_open(n->counters), 1, n->flags};
    else
        s = st->flame.slivers[r->sliver];
    vv_json_arr(j);
    vv_json_i64(j, r->parent == VV_NONE ? -1 : (int64_t)r->parent);
    vv_json_i64(j, n && n->function != VV_NONE ? (int64_t)st->function_at[n->function] : -1);
    vv_json_cstr(j, n ? vv_node_edge_name(n->edge) : "folded");
    if (n && n->line)
        vv_json_u64(j, n->line);
    else
        vv_json_null(j);
    vv_json_u128(j, s.calls);
    vv_json_i128(j, s.open);
    vv_json_u128(j, s.errors);
    vv_json_u128(j, s.cancelled);
    vv_json_u128(j, s.inclusive_ns);
    vv_json_u128(j, s.self_ns);
    vv_json_u128(j, s.await_ns);
    difference_json(j, s.child_ns, s.call_child_ns);
    vv_json_u64(j, s.flags);
    vv_json_u64(j, s.nodes);
    vv_json_end_arr(j);
}

static void context_json(const state *st, vv_json *j, size_t at)
{
    uint32_t node = st->flame.rows[at].node;
    const vv_node *n = node == VV_NONE ? NULL : &st->tree->nodes[node];
    if (n && n->key && st->question == TOP_DOWN) {
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
    uint32_t node = st->flame.rows[at].node;
    if (node != VV_NONE && st->transformed.origin)
        node = st->transformed.origin[node];
    if (node != VV_NONE && st->question == TOP_DOWN && st->has_path[node])
        vv_json_hex(j, st->paths[node].b, sizeof st->paths[node].b);
    else
        vv_json_null(j);
}

static void tail_json(const state *st, vv_json *j)
{
    vv_json_kv_obj(j, "folded");
    vv_json_kv_u64(j, "nodes", st->flame.folded.nodes);
    vv_json_kv_u128(j, "calls", st->flame.folded.calls);
    vv_json_kv_u128(j, "self_ns", st->flame.folded.self_ns);
    vv_json_end_obj(j);
    vv_json_kv_bool(j, "truncated", st->flame.truncated);
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
    size_t rows = st->flame.row_count;
    switch (st->phase) {
    case PHASE_HEAD:
        head_json(st, j);
        enter(st, PHASE_FUNCTIONS);
        return true;
    case PHASE_FUNCTIONS:
        if (st->at < st->function_count) {
            function_json(st, j, st->at++);
        } else {
            columns_json(j);
            enter(st, PHASE_NODES);
        }
        return true;
    case PHASE_NODES:
        if (st->at < rows) {
            row_json(st, j, st->at++);
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
    vv_flame_done(&st->flame);
    free(st->functions);
    free(st->function_at);
    free(st->paths);
    free(st->has_path);
    vv_function_grouping_done(&st->groups);
    vv_derived_done(&st->turned);
    vv_derived_done(&st->transformed);
    vv_loaded_release(st->library, &st->loaded);
    vv_look_release(st->library, st->look);
    free(st);
}

/* What the question is about: the execution's tree, after the transforms. */
static vv_code transform(state *st, vv_error *err)
{
    st->tree = &st->loaded.profile->tree;
    if (st->transform_count == 0)
        return VV_OK;
    vv_code rc = vv_transform_tree(&st->transformed, st->tree, st->transforms, st->transform_count, err);
    st->filtered = st->transformed.filtered;
    st->tree = &st->transformed.tree;
    return rc;
}

/* Callers or callees, out of what edges and root leave of the tree. */
static vv_code turn(state *st, vv_error *err)
{
    vv_flame_part part;
    vv_code rc = vv_flame_part_make(&part, st->tree, &st->options, err);
    if (rc != VV_OK)
        return rc;
    if (st->question == CALLEES) {
        vv_flame_options o = st->options;
        o.edges = VV_FLAME_ALL_EDGES;
        rc = vv_callees_tree(&st->turned, st->tree, &part, &st->groups, st->group, err);
        if (rc == VV_OK)
            rc = vv_flame_build(&st->flame, &st->turned.tree, &o, err);
        st->flame.of_total = part.of_total;
        st->flame.of_filtered = part.of_filtered;
        st->flame.filtered = part.filtered;
    } else {
        uint32_t group = st->question == CALLERS ? st->group : VV_NONE;
        rc = vv_flame_invert(&st->flame, &st->turned, st->tree, &part, &st->groups, group, &st->options, err);
    }
    st->tree = &st->turned.tree;
    vv_flame_part_done(&part);
    return rc;
}

static vv_code draw(state *st, vv_query *q, vv_error *err)
{
    const vv_tree *whole = &st->loaded.profile->tree;
    vv_code rc = VV_OK;
    if (st->question != TOP_DOWN)
        rc = vv_function_grouping_make(&st->groups, whole, err);
    if (rc == VV_OK && is_sandwich(st))
        rc = vv_query_function(q, whole, &st->groups, &st->group, err);
    if (rc == VV_OK)
        rc = transform(st, err);
    if (rc == VV_OK)
        rc = st->question == TOP_DOWN ? vv_flame_build(&st->flame, st->tree, &st->options, err) : turn(st, err);
    if (rc == VV_OK && st->transform_count)
        rc = vv_flame_total(&st->flame.of_total, whole, st->options.metric, err);
    st->filtered.nodes += st->flame.filtered.nodes;
    st->filtered.calls += st->flame.filtered.calls;
    st->filtered.self_ns = vv_sat128(st->filtered.self_ns, st->flame.filtered.self_ns);
    return rc;
}

static vv_code prepare(state *st, vv_query *q, vv_error *err)
{
    vv_found f;
    vv_code rc = read_options(q, st, err);
    if (rc == VV_OK)
        rc = vv_query_scope(q, &f, err);
    if (rc == VV_OK)
        rc = vv_query_load(q, &f, &st->loaded, err);
    if (rc == VV_OK)
        rc = draw(st, q, err);
    if (rc == VV_OK && st->options.has_root && !st->flame.root_found) {
        q->parameter = "root";
        return vv_fail(err, VV_ERR_NOTFOUND, st->transform_count ? "the transforms leave no such context"
                                                                 : "that execution has no such context");
    }
    if (rc == VV_OK)
        rc = list_functions(st, err);
    if (rc == VV_OK && st->ids)
        rc = find_paths(st, err);
    return rc;
}

static vv_code answer(vv_answer *a, question what, vv_query *q, vv_error *err)
{
    state *st = calloc(1, sizeof *st);
    if (!st)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for an answer");
    st->question = what;
    st->library = q->library;
    st->look = vv_look_hold(q->library, q->look);
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
    return answer(a, TOP_DOWN, q, err);
}

vv_code vv_answer_callers(vv_answer *a, vv_query *q, vv_error *err)
{
    return answer(a, CALLERS, q, err);
}

vv_code vv_answer_callees(vv_answer *a, vv_query *q, vv_error *err)
{
    return answer(a, CALLEES, q, err);
}
