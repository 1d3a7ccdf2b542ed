#include "config.h"

#include <stdlib.h>

#include "base/map.h"
#include "views/invert.h"

/* What tells nodes of the tree apart. */
typedef struct {
    uint32_t parent, group, edge;
} place;

typedef struct {
    const vv_tree *t;
    const vv_flame_part *part;
    const vv_function_grouping *g;
    uint32_t function;
    uint32_t *to; /* by context: its node, or VV_NONE */
    uint8_t *once;
    vv_map places;
} work;

static uint32_t group_of(const work *w, uint32_t i)
{
    return w->t->nodes[i].function == VV_NONE ? VV_NONE : w->g->of[w->t->nodes[i].function];
}

/* Finds the node of each context below the function. The function itself is node 0. */
static bool place_contexts(work *w)
{
    memset(w->to, 0xff, w->t->node_count * sizeof *w->to);
    for (uint32_t k = 0; k < w->t->node_count; k++) {
        uint32_t i = w->t->order[k], up = w->t->nodes[i].parent;
        if (!w->part->in[i])
            continue;
        uint32_t above = up != VV_NONE && w->part->in[up] ? w->to[up] : VV_NONE;
        place p = {above, group_of(w, i), w->t->nodes[i].edge};
        if (p.group == w->function)
            p = (place){VV_NONE, w->function, VV_EDGE_ROOT};
        else if (above == VV_NONE)
            continue;
        w->to[i] = vv_map_put(&w->places, &p, NULL);
        if (w->to[i] == VV_MAP_NONE)
            return false;
    }
    return true;
}

static void fill_node(const work *w, vv_derived *d, uint32_t at)
{
    place p;
    memcpy(&p, w->places.keys + (size_t)at * sizeof p, sizeof p);
    vv_node *n = &d->tree.nodes[at];
    *n = (vv_node){.parent = p.parent, .function = VV_NONE, .line = VV_NONE, .edge = (uint8_t)p.edge,
                   .flags = VV_NODE_WAY, .counters = &d->counters[at]};
    if (p.group == VV_NONE)
        return;
    n->function = w->g->first[p.group];
    n->key = d->keys[p.group];
}

/* line begins as VV_NONE, and WAY as set, until a context says otherwise. */
static void add_context(const work *w, vv_derived *d, uint32_t i)
{
    enum { SUM = VV_NODE_OPEN | VV_NODE_TIMING_INCOMPLETE | VV_NODE_UNDEFINED };
    const vv_node *from = &w->t->nodes[i];
    uint32_t at = w->to[i], line = at ? from->line : 0;
    vv_node *n = &d->tree.nodes[at];
    vv_counters c = *from->counters;
    if (!w->once[i])
        c.inclusive_ns = 0;
    vv_counters_add(&d->counters[at], &c);
    n->self_ns = vv_sat128(n->self_ns, from->self_ns);
    d->call_child_ns[at] = vv_sat128(d->call_child_ns[at], vv_node_call_children(w->t, i));
    n->line = n->line == VV_NONE || n->line == line ? line : 0;
    n->flags = (uint8_t)((n->flags & (SUM | (from->flags & VV_NODE_WAY))) | (from->flags & SUM));
}

static vv_code fill(const work *w, vv_derived *d, vv_error *err)
{
    uint32_t n = w->places.count, functions = w->t->function_count;
    vv_code rc = vv_tree_make(&d->tree, n, err);
    d->counters = calloc((size_t)n + 1, sizeof *d->counters);
    d->call_child_ns = calloc((size_t)n + 1, sizeof *d->call_child_ns);
    d->tree.functions = malloc(((size_t)functions + 1) * sizeof *d->tree.functions);
    d->keys = malloc(((size_t)w->g->count + 1) * sizeof *d->keys);
    if (rc == VV_OK && (!d->counters || !d->call_child_ns || !d->tree.functions || !d->keys))
        rc = vv_fail(err, VV_ERR_NOMEM, "no memory for callees");
    if (rc != VV_OK)
        return rc;
    if (functions)
        memcpy(d->tree.functions, w->t->functions, functions * sizeof *d->tree.functions);
    d->tree.function_count = functions;
    d->tree.call_child_ns = d->call_child_ns;
    if (w->g->count)
        memcpy(d->keys, w->g->keys, w->g->count * sizeof *d->keys);
    for (uint32_t at = 0; at < n; at++)
        fill_node(w, d, at);
    for (uint32_t i = 0; i < w->t->node_count; i++)
        if (w->to[i] != VV_NONE)
            add_context(w, d, i);
    return vv_tree_link(&d->tree, err);
}

vv_code vv_callees_tree(vv_derived *ret, const vv_tree *t, const vv_flame_part *part, const vv_function_grouping *g,
                        uint32_t function, vv_error *err)
{
    work w = {.t = t, .part = part, .g = g, .function = function};
    size_t n = (size_t)t->node_count + 1;
    *ret = (vv_derived){0};
    vv_map_init(&w.places, sizeof(place));
    w.to = malloc(n * sizeof *w.to);
    w.once = malloc(n);
    vv_code rc = VV_OK;
    if (!w.to || !w.once || !place_contexts(&w))
        rc = vv_fail(err, VV_ERR_NOMEM, "no memory for callees");
    if (rc == VV_OK)
        rc = vv_tree_once(t, w.to, w.places.count, part->in, w.once, err);
    if (rc == VV_OK)
        rc = fill(&w, ret, err);
    vv_map_done(&w.places);
    free(w.to);
    free(w.once);
    if (rc != VV_OK)
        vv_derived_done(ret);
    return rc;
}
