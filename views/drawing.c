#include "config.h"

#include "views/drawing.h"

#include <stdlib.h>

static vv_code transform(vv_drawing *d, const vv_draw_plan *plan, const vv_drawing *like, vv_error *err)
{
    d->cut = d->source;
    if (plan->transform_count) {
        vv_code rc = vv_transform_tree(&d->transformed, &d->source, plan->transforms, plan->transform_count, err);
        if (rc != VV_OK)
            return rc;
        d->filtered = d->transformed.filtered;
        d->cut = d->transformed.tree;
    }
    d->cut.sized_by = like ? &like->cut : NULL;
    return VV_OK;
}

static vv_code draw_callees(vv_drawing *d, const vv_draw_plan *plan, const vv_flame_part *part, const vv_drawing *like,
                            vv_error *err)
{
    vv_flame_options o = plan->options;
    o.edges = VV_FLAME_ALL_EDGES;
    vv_code rc = vv_callees_tree(&d->turned, &d->cut, part, &plan->groups, plan->group, err);
    if (rc != VV_OK)
        return rc;
    d->turned.tree.sized_by = like ? &like->turned.tree : NULL;
    rc = vv_flame_build(&d->flame, &d->turned.tree, &o, err);
    d->flame.of_total = part->of_total;
    d->flame.of_filtered = part->of_filtered;
    d->flame.filtered = part->filtered;
    return rc;
}

/* From the bottom up, callers or callees, out of what edges and root leave of the tree. */
static vv_code turn(vv_drawing *d, const vv_draw_plan *plan, const vv_drawing *like, vv_error *err)
{
    vv_flame_part part;
    vv_code rc = vv_flame_part_make(&part, &d->cut, &plan->options, err);
    if (rc != VV_OK)
        return rc;
    uint32_t group = plan->order == VV_DRAW_CALLERS ? plan->group : VV_NONE;
    if (plan->order == VV_DRAW_CALLEES)
        rc = draw_callees(d, plan, &part, like, err);
    else
        rc = vv_flame_invert(&d->flame, &d->turned, &d->cut, &part, &plan->groups, group, &plan->options, err);
    d->tree = &d->turned.tree;
    vv_flame_part_done(&part);
    return rc;
}

/* The most that it takes at a time: the parts that are made one after the other are there together in the end. */
static size_t most_bytes(const vv_draw_plan *plan, const vv_tree *t)
{
    const size_t part = sizeof(vv_u128) + sizeof(uint8_t) + sizeof(uint32_t);
    size_t n = plan->transform_count ? vv_transform_most(t->node_count) : 0;
    switch (plan->order) {
    case VV_DRAW_TOP_DOWN:
        return n + vv_flame_most(t->node_count, &plan->options);
    case VV_DRAW_CALLEES: /* the tree that is derived is no larger than what a transform makes */
        return n + t->node_count * part + vv_transform_most(t->node_count)
            + vv_flame_most(t->node_count, &plan->options);
    case VV_DRAW_BOTTOM_UP:
    case VV_DRAW_CALLERS:
        break;
    }
    return n + t->node_count * part + vv_invert_most(t, &plan->options);
}

static vv_code take_room(vv_drawing *d, const vv_draw_plan *plan, vv_error *err)
{
    size_t n = most_bytes(plan, &d->source);
    if (!vv_budget_borrow(plan->budget, n, plan->borrowed))
        return vv_fail(err, VV_ERR_LIMIT, "the table behind the answer may need %zu bytes, more than is left of %zu", n,
                       vv_budget_max(plan->budget));
    d->budget = plan->budget;
    d->bytes = n;
    return VV_OK;
}

/* Gives back what is not held for the answer. */
static void settle_room(vv_drawing *d)
{
    size_t held = vv_flame_bytes(&d->flame) + vv_derived_bytes(&d->turned) + vv_derived_bytes(&d->transformed);
    if (held < d->bytes) {
        vv_budget_repay(d->budget, d->bytes - held);
        d->bytes = held;
    }
}

vv_code vv_drawing_make(vv_drawing *ret, const vv_draw_plan *plan, const vv_tree *t, const vv_drawing *like,
                        vv_error *err)
{
    vv_drawing *d = ret;
    *d = (vv_drawing){.source = *t};
    d->source.sized_by = like ? &like->source : NULL;
    vv_code rc = take_room(d, plan, err);
    if (rc == VV_OK)
        rc = transform(d, plan, like, err);
    d->tree = &d->cut;
    if (rc == VV_OK)
        rc = plan->order == VV_DRAW_TOP_DOWN ? vv_flame_build(&d->flame, &d->cut, &plan->options, err)
                                             : turn(d, plan, like, err);
    if (rc == VV_OK && plan->transform_count)
        rc = vv_flame_total(&d->flame.of_total, &d->source, plan->options.metric, err);
    d->filtered.nodes += d->flame.filtered.nodes;
    d->filtered.calls += d->flame.filtered.calls;
    d->filtered.self_ns = vv_sat128(d->filtered.self_ns, d->flame.filtered.self_ns);
    settle_room(d);
    return rc;
}

void vv_drawing_done(vv_drawing *d)
{
    vv_flame_done(&d->flame);
    vv_derived_done(&d->turned);
    vv_derived_done(&d->transformed);
    vv_budget_repay(d->budget, d->bytes);
    d->bytes = 0;
}

vv_sliver vv_drawing_row(const vv_drawing *d, size_t at, const vv_node **ret_node)
{
    const vv_flame_row *r = &d->flame.rows[at];
    const vv_node *n = r->node == VV_NONE ? NULL : &d->tree->nodes[r->node];
    *ret_node = n;
    if (!n)
        return d->flame.slivers[r->sliver];
    const vv_counters *c = n->counters;
    return (vv_sliver){c->started, c->error, c->cancelled, c->inclusive_ns, n->self_ns, c->await_ns,
                       c->direct_child_ns, vv_node_call_children(d->tree, r->node), vv_counters_open(c), 1, n->flags};
}
