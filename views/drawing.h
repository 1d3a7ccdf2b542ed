/*
 * A flame graph, a bottom-up one, or the tree of one function's callers or callees: what a tree of contexts becomes by
 * transforms, edges, root and order (docs/http-api.md). A comparison draws the same one with the numbers of each side.
 */
#pragma once

#include "views/invert.h"

typedef enum { VV_DRAW_TOP_DOWN, VV_DRAW_BOTTOM_UP, VV_DRAW_CALLERS, VV_DRAW_CALLEES } vv_draw_order;

typedef struct {
    vv_draw_order order;
    vv_flame_options options;
    vv_transform transforms[VV_QUERY_TRANSFORMS];
    size_t transform_count;
    vv_budget *budget;           /* what drawings borrow from */
    size_t borrowed;             /* by those by this plan that are there */
    vv_function_grouping groups; /* of the tree's functions; of all orders but top down */
    uint32_t group;              /* of the function whose callers or callees are asked for */
} vv_draw_plan;

typedef struct {
    vv_tree source;         /* what is drawn: borrowed */
    vv_derived transformed; /* the tree after the transforms, if any */
    vv_tree cut;            /* that tree, or the source: borrowed */
    vv_derived turned;      /* the tree of callers, callees, or from the bottom up */
    const vv_tree *tree;    /* whose nodes the rows are */
    vv_flame flame;
    vv_filtered filtered;
    vv_budget *budget;
    size_t bytes;           /* borrowed from it */
} vv_drawing;

/*
 * Draws t. like: the drawing, by the same plan, of a tree with the same nodes, by whose sizes this one is laid out:
 * rows are the same then, one by one. NULL: by its own. The caller is done with ret on every path; ret must not move.
 * NOMEM, and LIMIT where the budget has no room for it.
 */
VV_MUST_CHECK vv_code vv_drawing_make(vv_drawing *ret, const vv_draw_plan *plan, const vv_tree *t,
                                      const vv_drawing *like, vv_error *err);
void vv_drawing_done(vv_drawing *d); /* accepts a zeroed one */

/* The numbers of a row, and its node (NULL: a sliver). */
vv_sliver vv_drawing_row(const vv_drawing *d, size_t at, const vv_node **ret_node);
