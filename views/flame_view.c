#include "config.h"

#include "views/flame_view.h"

#include "base/text.h"
#include "views/pick.h"

const vv_metric_name vv_metric_names[] = {
    [VV_METRIC_INCLUSIVE] = {"inclusive_ns", "ns"}, [VV_METRIC_SELF] = {"self_ns", "ns"},
    [VV_METRIC_AWAIT] = {"await_ns", "ns"}, [VV_METRIC_AWAIT_SUBTREE] = {"await_subtree_ns", "ns"},
    [VV_METRIC_CALLS] = {"calls", "calls"}, [VV_METRIC_ERRORS] = {"errors", "errors"},
};

#define DAMAGED "the data is damaged, and what can be read of it has no such %s"

/* What is not there may have been. */
static bool is_damaged(const vv_flame_view *v)
{
    const vv_scope *s = &v->c.scope;
    return s->evidence.verdict == VV_VERDICT_DAMAGED || !s->known[VV_SIDE_HEAD]
        || (s->compares && !s->known[VV_SIDE_BASE]);
}

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

static vv_code read_transforms(vv_query *q, vv_flame_view *v, vv_error *err)
{
    const vv_str *s;
    for (size_t at = 0; (s = vv_query_each(q, "transform", &at));)
        if (v->plan.transform_count == VV_ARRAY_LEN(v->plan.transforms)
            || !vv_transform_parse(&v->plan.transforms[v->plan.transform_count++], *s))
            return vv_query_fail(q, "transform", err, "must be focus:TEXT, hide:TEXT, collapse:TEXT or only_user");
    return VV_OK;
}

static vv_code read_options(vv_query *q, vv_flame_view *v, vv_error *err)
{
    static const char *const flame_names[] = {"execution+", "base+", "metric", "order", "root", "depth", "width",
                                              "max_nodes", "edges", "transform+", "ids", NULL};
    static const char *const sandwich_names[] = {"execution+", "base+", "function", "metric", "depth", "width",
                                                 "max_nodes", "edges", "transform+", NULL};
    static const char *const orders[] = {[VV_DRAW_TOP_DOWN] = "top_down", [VV_DRAW_BOTTOM_UP] = "bottom_up"};
    static const char *const switches[] = {"0", "1"};
    const char *words[VV_ARRAY_LEN(vv_metric_names)];
    for (size_t i = 0; i < VV_ARRAY_LEN(vv_metric_names); i++)
        words[i] = vv_metric_names[i].name;
    vv_flame_options *o = &v->plan.options;
    unsigned metric = VV_METRIC_INCLUSIVE, order = 0, ids = 0;
    *o = vv_flame_defaults();
    vv_code rc = vv_query_check(q, vv_flame_view_is_sandwich(v) ? sandwich_names : flame_names, err);
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
        rc = read_transforms(q, v, err);
    const vv_str *function = vv_query_value(q, "function");
    if (rc == VV_OK && vv_flame_view_is_sandwich(v) && !(function && function->n))
        rc = vv_query_fail(q, "function", err, "must be a definition key, a full name, or # and a number");
    if (rc == VV_OK && !vv_flame_view_is_sandwich(v))
        v->plan.order = (vv_draw_order)order;
    o->metric = (vv_metric)metric;
    v->ids = ids;
    return rc;
}

/* The same drawing with the numbers of each side; and each side's own sizes, of which one row is enough. */
static vv_code draw_sides(vv_flame_view *v, vv_error *err)
{
    vv_code rc = VV_OK;
    uint64_t max_nodes = v->plan.options.max_nodes;
    v->plan.borrowed = v->drawing.bytes;
    for (size_t side = 0; side < VV_SIDES && rc == VV_OK; side++) {
        const vv_tree *t = &v->c.merged.side[side];
        rc = vv_drawing_make(&v->side[side], &v->plan, t, &v->drawing, err);
        if (rc == VV_OK && v->side[side].flame.row_count != v->drawing.flame.row_count)
            rc = vv_fail(err, VV_ERR_CORRUPT, "two drawings of one tree differ");
        v->plan.options.max_nodes = 1;
        v->plan.borrowed += v->side[side].bytes;
        if (rc == VV_OK)
            rc = vv_drawing_make(&v->sizes[side], &v->plan, t, NULL, err);
        v->plan.options.max_nodes = max_nodes;
        v->plan.borrowed += v->sizes[side].bytes;
    }
    return rc == VV_OK ? vv_cause_find(&v->cause, &v->c, err) : rc;
}

static vv_code draw(vv_flame_view *v, vv_query *q, vv_error *err)
{
    vv_code rc = VV_OK;
    v->plan.budget = vv_library_budget(q->library);
    if (v->plan.order != VV_DRAW_TOP_DOWN)
        rc = vv_function_grouping_make(&v->plan.groups, v->whole, err);
    if (rc == VV_OK && vv_flame_view_is_sandwich(v))
        rc = vv_query_function(q, v->whole, &v->plan.groups, &v->plan.group, err);
    if (rc == VV_ERR_NOTFOUND && is_damaged(v)) {
        vv_error_clear(err); /* else the first text stays */
        return vv_fail(err, rc, DAMAGED, "function");
    }
    if (rc == VV_OK)
        rc = vv_drawing_make(&v->drawing, &v->plan, v->whole, NULL, err);
    return rc == VV_OK && v->c.scope.compares ? draw_sides(v, err) : rc;
}

/* The tree: that of the one execution, held, or of several as one. */
static vv_code load(vv_flame_view *v, vv_error *err)
{
    vv_scope *s = &v->c.scope;
    if (!vv_scope_is_single(s)) {
        v->whole = &v->c.merged.tree;
        return vv_comparison_make(&v->c, NULL, NULL, err);
    }
    vv_code rc = vv_query_load(&v->q, &s->items[0].found, &v->loaded, err);
    if (rc != VV_OK)
        return rc;
    v->whole = &v->loaded.profile->tree;
    return vv_scope_gather(s, &s->items[0], v->loaded.digest, err);
}

static vv_code prepare(vv_flame_view *v, vv_query *q, vv_error *err)
{
    vv_code rc = read_options(q, v, err);
    if (rc == VV_OK)
        rc = vv_scope_read(&v->c.scope, q, err);
    if (rc == VV_OK)
        rc = load(v, err);
    if (rc == VV_OK)
        rc = draw(v, q, err);
    if (rc == VV_OK && v->plan.options.has_root && !v->drawing.flame.root_found) {
        q->parameter = "root";
        if (is_damaged(v))
            return vv_fail(err, VV_ERR_NOTFOUND, DAMAGED, "context");
        return vv_fail(err, VV_ERR_NOTFOUND, v->plan.transform_count ? "the transforms leave no such context"
                                                                     : "there is no such context");
    }
    return rc;
}

vv_code vv_flame_view_make(vv_flame_view *ret, vv_draw_order what, vv_query *q, vv_error *err)
{
    *ret = (vv_flame_view){.plan = {.order = what}};
    ret->q = (vv_query){.library = q->library, .look = vv_look_hold(q->library, q->look)};
    if (q->base_look) {
        ret->q.base_library = q->base_library;
        ret->q.base_look = vv_look_hold(q->base_library, q->base_look);
    }
    return prepare(ret, q, err);
}

void vv_flame_view_done(vv_flame_view *v)
{
    if (!v->q.library)
        return;
    for (size_t side = 0; side < VV_SIDES; side++) {
        vv_drawing_done(&v->sizes[side]);
        vv_drawing_done(&v->side[side]);
    }
    vv_drawing_done(&v->drawing);
    vv_function_grouping_done(&v->plan.groups);
    vv_comparison_done(&v->c);
    vv_loaded_release(v->q.library, &v->loaded);
    vv_look_release(v->q.library, v->q.look);
    if (v->q.base_look)
        vv_look_release(v->q.base_library, v->q.base_look);
    *v = (vv_flame_view){.ids = false};
}

vv_u128 vv_sliver_value(const vv_sliver *s, vv_metric m)
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

bool vv_sliver_counts(const vv_sliver *s)
{
    return s->calls || s->errors || s->cancelled || s->open || s->inclusive_ns || s->self_ns || s->await_ns
        || s->child_ns;
}

uint32_t vv_flame_view_origin(const vv_flame_view *v, size_t at)
{
    uint32_t node = v->drawing.flame.rows[at].node;
    if (node == VV_NONE || v->plan.order != VV_DRAW_TOP_DOWN)
        return VV_NONE;
    return v->drawing.transformed.origin ? v->drawing.transformed.origin[node] : node;
}

void vv_flame_view_sides(const vv_flame_view *v, size_t at, vv_sliver sides[VV_SIDES], bool on[VV_SIDES])
{
    uint32_t origin = vv_flame_view_origin(v, at);
    const vv_node *n;
    for (size_t side = 0; side < VV_SIDES; side++) {
        sides[side] = vv_drawing_row(&v->side[side], at, &n);
        on[side] = origin == VV_NONE ? vv_sliver_counts(&sides[side]) : v->c.merged.on[origin][side];
    }
    if (!on[VV_SIDE_HEAD] && !on[VV_SIDE_BASE])
        on[VV_SIDE_HEAD] = on[VV_SIDE_BASE] = true;
}
