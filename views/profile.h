/*
 * One execution as the views see it: its fold, the names of its functions, and its contexts as a forest.
 *
 * Nodes are the fold's contexts in their order there, then the overflow buckets that are present. Immutable once built
 * and shareable between threads.
 */
#pragma once

#include "reader/fold.h"
#include "views/tree.h"

typedef struct {
    vv_fold *fold;
    vv_function_table table;
    bool has_table;
    bool lacks_newest_table; /* a table that the engine named last could not be read */

    vv_tree tree;
    uint32_t context_count;       /* the first nodes; overflow buckets follow */
    size_t bytes;                 /* memory held, the fold's included */
    void *holder;                 /* the library's */
} vv_profile;

/*
 * Builds around a fold, which it takes over on every path. stream and execution are only read here. NOMEM is returned.
 */
VV_MUST_CHECK vv_code vv_profile_new(vv_profile **ret, vv_fold *fold, const vv_store *store, const vv_stream *stream,
                                     const vv_execution *execution, vv_error *err);
void vv_profile_free(vv_profile *p);
