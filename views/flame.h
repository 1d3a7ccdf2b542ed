/*
 * A tree of calling contexts as a flat table for a flame graph, top down (docs/http-api.md). Parents come
 * before their children; what is too small, too deep or too much folds into one sliver a parent, which keeps the sums.
 *
 * A sliver's calls, open, errors, cancelled, self, await and unattributed time are sums over everything it replaces.
 * Its inclusive time is that of the folded Call children of its parent (at the top: of the folded top-level nodes), so
 * a parent's time still comes out as self + await + Call children and slivers + unattributed.
 */
#pragma once

#include "views/answer.h"

typedef enum { VV_METRIC_INCLUSIVE, VV_METRIC_SELF, VV_METRIC_AWAIT, VV_METRIC_AWAIT_SUBTREE, VV_METRIC_CALLS,
               VV_METRIC_ERRORS } vv_metric;

typedef struct {
    vv_metric metric;
    uint64_t depth, width, max_nodes; /* levels shown; pixels (0 = no folding by width); nodes that stay */
    unsigned edges;                   /* bit 1 << vv_edge: the kinds that are followed below a top-level node */
    bool has_root;
    bool root_is_path;
    uint8_t root[32];                 /* a context key, or 16 bytes of path_id */
} vv_flame_options;

enum { VV_FLAME_ALL_EDGES = 7, VV_FLAME_MAX_NODES = 20000, VV_FLAME_MAX_NODES_LIMIT = 1000000 };
static inline vv_flame_options vv_flame_defaults(void)
{
    return (vv_flame_options){.depth = UINT32_MAX, .max_nodes = VV_FLAME_MAX_NODES, .edges = VV_FLAME_ALL_EDGES};
}

typedef struct {
    vv_u128 calls, errors, cancelled, inclusive_ns, self_ns, await_ns;
    vv_u128 child_ns, call_child_ns; /* unattributed time is their difference, which may not fit a signed number */
    __int128 open;
    uint64_t nodes;
    uint8_t flags;
} vv_sliver;

typedef struct {
    uint32_t parent; /* row, or VV_NONE */
    uint32_t node;   /* of the tree; VV_NONE: a sliver */
    uint32_t sliver; /* index, where node is VV_NONE */
} vv_flame_row;

typedef struct {
    vv_flame_row *rows;
    size_t row_count;
    vv_sliver *slivers;
    size_t sliver_count;
    vv_sliver folded;                        /* all slivers together */
    vv_u128 of_total, of_filtered, of_root;  /* size of the top-level nodes: of all, with edges= only, below root= */
    vv_filtered filtered;                    /* what edges= leaves out */
    bool truncated;                          /* max_nodes folded something */
    bool root_found;
} vv_flame;

/* The most memory that a build of n nodes takes, what it holds in the end included; and what it holds. Bytes. */
size_t vv_flame_most(uint32_t n, const vv_flame_options *o);
size_t vv_flame_bytes(const vv_flame *f);
/* For who fills one: gives back what rows and slivers do not need. */
void vv_flame_shrink(vv_flame *f);

/* A node's own number in a metric. */
vv_u128 vv_node_value(const vv_node *n, vv_metric m);

/* The size of a whole tree: what denominators are for all of it. NOMEM. */
VV_MUST_CHECK vv_code vv_flame_total(vv_u128 *ret, const vv_tree *t, vv_metric m, vv_error *err);

/* What edges and root leave of a tree, for trees that are made of it. */
typedef struct {
    uint8_t *in;   /* by node: is it part? */
    vv_u128 *size; /* by node, as laid out top down */
    vv_u128 of_total, of_filtered, of_root;
    vv_filtered filtered;
    bool root_found;
} vv_flame_part;

VV_MUST_CHECK vv_code vv_flame_part_make(vv_flame_part *ret, const vv_tree *t, const vv_flame_options *o,
                                         vv_error *err);
void vv_flame_part_done(vv_flame_part *p); /* accepts a zeroed one */

VV_MUST_CHECK vv_code vv_flame_build(vv_flame *ret, const vv_tree *t, const vv_flame_options *o, vv_error *err);
void vv_flame_done(vv_flame *f); /* accepts a zeroed one */
