/*
 * One execution as the views see it: its fold, the names of its functions, and its contexts as a forest.
 *
 * Nodes are the fold's contexts in their order there, then the overflow buckets that are present. Parents are found
 * without recursion and a chain of any depth is fine; a cycle (which no honest store holds) is cut. Immutable once
 * built and shareable between threads.
 */
#pragma once

#include "reader/fold.h"

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
};

typedef struct {
    uint32_t parent;   /* index, or VV_NONE at the top */
    uint32_t function; /* index into functions, or VV_NONE for overflow and undefined */
    uint32_t line;     /* of the call site; 0 = unknown */
    uint8_t edge, flags;
    const vv_counters *counters;
    vv_u128 self_ns;
} vv_node;

typedef struct {
    vv_program_id program;
    uint32_t id;
    const vv_function *def; /* NULL where no readable table has it */
} vv_function_ref;

typedef struct {
    vv_fold *fold;
    vv_function_table table;
    bool has_table;
    bool lacks_newest_table; /* a table that the engine named last could not be read */

    vv_node *nodes;
    uint32_t context_count, node_count;
    uint32_t *order;              /* all nodes, parents before children */
    uint32_t *child_first, *child; /* children of i: child[child_first[i] .. child_first[i + 1]) */
    uint32_t *tops;
    uint32_t top_count;
    vv_function_ref *functions;
    uint32_t function_count;
    size_t bytes;                 /* memory held, the fold's included */
    void *holder;                 /* the library's */
} vv_profile;

/*
 * Builds around a fold, which it takes over on every path. stream and execution are only read here. NOMEM is returned.
 */
VV_MUST_CHECK vv_code vv_profile_new(vv_profile **ret, vv_fold *fold, const vv_store *store, const vv_stream *stream,
                                     const vv_execution *execution, vv_error *err);
void vv_profile_free(vv_profile *p);

/* The function's name for people: fqn, or an empty view where no table has it. */
vv_str vv_function_ref_name(const vv_function_ref *f);

/* started - completed in all four ways. */
__int128 vv_counters_open(const vv_counters *c);

/*
 * path_id of every context, by node index (docs/http-api.md); has[i] is false where it is null: undefined, below an
 * undefined or missing one, overflow. paths and has hold node_count items.
 */
void vv_profile_paths(const vv_profile *p, vv_path_id *paths, bool *has);

/* "overflow:<reason>:<edge>" of an overflow node. */
enum { VV_OVERFLOW_ID = 64 };
void vv_profile_overflow_id(const vv_profile *p, uint32_t node, char out[VV_OVERFLOW_ID]);

/* "root" "call" "spawn" "unknown". */
const char *vv_node_edge_name(uint8_t edge);
