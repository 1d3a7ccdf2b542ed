/*
 * A forest of calling contexts with their numbers: what flame graphs and tables of functions are drawn from. One
 * execution is one (views/profile.h); what is merged, turned round or transformed is another, made the same way: fill
 * the nodes with their parents, then link.
 *
 * Nodes may come in any order and any depth; a cycle (which no honest store holds) is cut. Immutable once linked and
 * shareable between threads.
 */
#pragma once

#include "format/cct.h"
#include "format/function_table.h"

#define VV_NONE UINT32_MAX
enum { VV_EDGE_UNKNOWN = 3 }; /* beside vv_edge: a context without a definition */

/* Bits of a node, as answers carry them (docs/http-api.md). */
enum {
    VV_NODE_OPEN = 1,
    VV_NODE_OVERFLOW = 2,
    VV_NODE_ORPHAN = 4, /* names a parent that is not in the fold */
    VV_NODE_UNDEFINED = 8,
    VV_NODE_TIMING_INCOMPLETE = 16,
    VV_NODE_SLIVER = 32,
    VV_NODE_WAY = 64, /* stands only as the way to what a focus keeps */
};

typedef struct {
    uint32_t parent;   /* index, or VV_NONE at the top */
    uint32_t function; /* index into functions, or VV_NONE for overflow and undefined */
    uint32_t line;     /* of the call site; 0 = unknown */
    uint8_t edge, flags;
    uint8_t reason;    /* vv_overflow_reason of an overflow bucket */
    const vv_counters *counters; /* the producer's, as long as the tree lives */
    const uint8_t *key;          /* the 32 bytes of its context key, the producer's; NULL where it has none */
    vv_u128 self_ns;
} vv_node;

typedef struct {
    vv_program_id program;
    uint32_t id;
    const vv_function *def; /* NULL where no readable table has it; the producer's */
} vv_function_ref;

typedef struct vv_tree {
    vv_node *nodes;
    uint32_t node_count;
    uint32_t *order;               /* all nodes, parents before children */
    uint32_t *child_first, *child; /* children of i: child[child_first[i] .. child_first[i + 1]) */
    uint32_t *tops;
    uint32_t top_count;
    bool laid_out;                 /* nodes lie in the order of a walk: vv_tree_lay_out */
    vv_function_ref *functions;    /* malloc'd by the producer, freed with the tree */
    uint32_t function_count;
    const vv_u128 *call_child_ns;  /* the producer's: by node, where its children do not tell it; or NULL */
    const struct vv_tree *sized_by; /* the same nodes with the numbers that it is laid out by; NULL: its own */
} vv_tree;

/* Zeroed nodes, and room for the rest. NOMEM leaves what vv_tree_clear takes. */
VV_MUST_CHECK vv_code vv_tree_make(vv_tree *ret, uint32_t node_count, vv_error *err);
/*
 * Fills order, children and tops from the nodes' parents, which must be VV_NONE or less than node_count. A node in a
 * cycle loses its parent and becomes an orphan.
 */
VV_MUST_CHECK vv_code vv_tree_link(vv_tree *t, vv_error *err);
/*
 * Numbers the nodes of a linked tree anew, in the order of a walk: each node, then its children, largest inclusive time
 * first (equals by key), so that who walks the tree walks memory. Nodes without a key come last, as they were. at[i] is
 * where node i went, NULL where nobody asks. Children may be in any order before; the producer's arrays by node are not
 * moved. NOMEM, and the tree is as it was. Takes VV_TREE_LAY_OUT_NODE bytes a node while it works.
 */
enum { VV_TREE_LAY_OUT_NODE = sizeof(vv_node) + 4 * sizeof(void *) };
VV_MUST_CHECK vv_code vv_tree_lay_out(vv_tree *t, uint32_t *at, vv_error *err);
void vv_tree_clear(vv_tree *t); /* accepts a zeroed one */
/* Memory held, without what the producer owns. */
size_t vv_tree_bytes(const vv_tree *t);

/* The function's name for people: fqn, or an empty view where no table has it. */
vv_str vv_function_ref_name(const vv_function_ref *f);

/* started - completed in all four ways. */
__int128 vv_counters_open(const vv_counters *c);

/*
 * Inclusive time of a node's Call children as they were recorded; its direct-child time exceeds that by what is
 * unattributed.
 */
vv_u128 vv_node_call_children(const vv_tree *t, uint32_t node);

/*
 * path_id of every node, by its index (docs/http-api.md); has[i] is false where it is null: undefined, below an
 * undefined or missing one, overflow. paths and has hold node_count items.
 */
void vv_tree_paths(const vv_tree *t, vv_path_id *paths, bool *has);

extern const char *const vv_overflow_reasons[VV_OVERFLOW_REASONS];
/* "overflow:<reason>:<edge>" of an overflow node. */
enum { VV_OVERFLOW_ID = 64 };
void vv_node_overflow_id(const vv_node *n, char out[VV_OVERFLOW_ID]);

/*
 * Recursion counted once: once[i] tells whether node i has no other of its group above it over Call edges alone.
 * group[i] < group_count, or VV_NONE for a node of no group (once is false then). Only nodes with in[i] count, and a
 * path ends where one is not in; in may be NULL (all are).
 */
VV_MUST_CHECK vv_code vv_tree_once(const vv_tree *t, const uint32_t *group, uint32_t group_count, const uint8_t *in,
                                   uint8_t *once, vv_error *err);

/* What functions are grouped by, as 32 bytes: definition key, else fqn, else program and number. */
void vv_function_ref_key(const vv_function_ref *f, uint8_t out[32]);

typedef struct {
    uint32_t *of;          /* by function of the tree: its group; groups are in the order of their keys */
    uint8_t (*keys)[32];   /* by group */
    uint32_t *first;       /* by group: its first function */
    uint32_t count;
} vv_function_grouping;

VV_MUST_CHECK vv_code vv_function_grouping_make(vv_function_grouping *ret, const vv_tree *t, vv_error *err);
void vv_function_grouping_done(vv_function_grouping *g); /* accepts a zeroed one */

/* "root" "call" "spawn" "unknown". */
const char *vv_node_edge_name(uint8_t edge);
