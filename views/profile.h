/*
 * One execution as the views see it: its fold, the names of its functions, and its contexts as a forest.
 *
 * Nodes are the fold's contexts in the order of a walk (vv_tree_lay_out), then the overflow buckets that are present.
 * Immutable once built and shareable between threads.
 */
#pragma once

#include "reader/fold.h"
#include "views/tables.h"
#include "views/tree.h"

typedef struct {
    vv_fold *fold;
    vv_function_table table;      /* the shared one's */
    vv_shared_table *shared;
    bool has_table;
    const char *table_fault; /* why the table that the engine named last can't be read: an error's name; NULL: it can */

    vv_tree tree;
    vv_u128 *call_child_ns;       /* the tree's */
    vv_counters *counters;        /* the tree's, by node: in the fold they lie in the order of the store's keys */
    uint32_t *context_at, *node_at; /* by node, where its context is in the fold; by context, where its node is */
    uint32_t context_count;       /* the first nodes; overflow buckets follow */
    vv_tables *tables;
    vv_budget *budget;            /* the fold's */
    size_t bytes;                 /* of it, for what stands here: the fold and the shared table have their own */
    void *holder;                 /* the library's */
} vv_profile;

/*
 * Builds around a fold, which it takes over on every path, out of the fold's budget and tables (NULL where no engine
 * names one), which outlive it. stream and execution are only read here. NOMEM and LIMIT are returned.
 */
VV_MUST_CHECK vv_code vv_profile_new(vv_profile **ret, vv_fold *fold, vv_tables *tables, const vv_store *store,
                                     const vv_stream *stream, const vv_execution *execution, vv_error *err);
/* The fold's context of a node; NULL: it is an overflow bucket. */
const vv_fold_context *vv_profile_context(const vv_profile *p, uint32_t node);
void vv_profile_free(vv_profile *p);
