/*
 * A question about flame graphs, or about callers and callees, up to its rows: parameters, executions, and the drawing
 * of their contexts. What shows it, as JSON or in a terminal, comes after. Owned by one thread; must not move.
 */
#pragma once

#include "views/cause.h"
#include "views/drawing.h"

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
} vv_flame_view;

/* What is in the query's order=, if `what` is VV_DRAW_TOP_DOWN. The caller is done with ret on every path. */
VV_MUST_CHECK vv_code vv_flame_view_make(vv_flame_view *ret, vv_draw_order what, vv_query *q, vv_error *err);
void vv_flame_view_done(vv_flame_view *v); /* accepts a zeroed one */

static inline bool vv_flame_view_is_sandwich(const vv_flame_view *v)
{
    return v->plan.order == VV_DRAW_CALLERS || v->plan.order == VV_DRAW_CALLEES;
}

static inline bool vv_flame_view_goes_up(const vv_flame_view *v)
{
    return v->plan.order == VV_DRAW_CALLERS || v->plan.order == VV_DRAW_BOTTOM_UP;
}

/* The context that a row shows, in the tree before anything was left out; VV_NONE where it stands for several. */
uint32_t vv_flame_view_origin(const vv_flame_view *v, size_t at);
/* Of a comparison, both sides of a row, and which have it: a row of many contexts is where it counts anything. */
void vv_flame_view_sides(const vv_flame_view *v, size_t at, vv_sliver sides[VV_SIDES], bool on[VV_SIDES]);
/* Any of the numbers is not 0. */
bool vv_sliver_counts(const vv_sliver *s);
/* A row's own number in a metric. */
vv_u128 vv_sliver_value(const vv_sliver *s, vv_metric m);

/* Names and units of metrics, by vv_metric. */
typedef struct {
    const char *name, *unit;
} vv_metric_name;
extern const vv_metric_name vv_metric_names[];
