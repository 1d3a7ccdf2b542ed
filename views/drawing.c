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

vv_code vv_drawing_make(vv_drawing *ret, const vv_draw_plan *plan, const vv_tree *t, const vv_drawing *like,
                        vv_error *err)
{
    vv_drawing *d = ret;
    *d = (vv_drawing){.source = *t};
    d->source.sized_by = like ? &like->source : NULL;
    vv_code rc = transform(d, plan, like, err);
    d->tree = &d->cut;
    if (rc == VV_OK)
        rc = plan->order == VV_DRAW_TOP_DOWN ? vv_flame_build(&d->flame, &d->cut, &plan->options, err)
                                             : turn(d, plan, like, err);
    if (rc == VV_OK && plan->transform_count)
        rc = vv_flame_total(&d->flame.of_total, &d->source, plan->options.metric, err);
    d->filtered.nodes += d->flame.filtered.nodes;
    d->filtered.calls += d->flame.filtered.calls;
    d->filtered.self_ns = vv_sat128(d->filtered.self_ns, d->flame.filtered.self_ns);
    return rc;
}

void vv_drawing_done(vv_drawing *d)
{
    vv_flame_done(&d->flame);
    vv_derived_done(&d->turned);
    vv_derived_done(&d->transformed);
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
