/*
 * One calling context (docs/http-api.md): how it is reached, what is counted in it, what it calls, and what is known
 * of its single calls.
 */
#pragma once

#include "views/facts.h"
#include "views/listing.h"

/* Calls of a context that stand for the others. */
typedef enum {
    VV_EXEMPLAR_SLOWEST,
    VV_EXEMPLAR_FIRST,
    VV_EXEMPLAR_LAST,
    VV_EXEMPLAR_FAILING,
    VV_EXEMPLARS,
} vv_exemplar;
extern const char *const vv_exemplar_words[VV_EXEMPLARS];

enum { VV_PERCENTILES = 3 };
extern const unsigned vv_percentiles[VV_PERCENTILES]; /* 50, 90, 99 */

typedef struct {
    uint32_t node;
    vv_u128 errors_below, await_subtree_ns;
    vv_context_ref ref;
    bool has_path;              /* no path id where a part of the chain is not known */
    vv_path_id path;
    uint32_t *chain;            /* nodes from the top to this one, which is the last */
    size_t chain_count;
    bool chain_complete;        /* it begins at a context without a parent */
    uint64_t children;          /* in all */
    vv_page page;               /* rows are nodes: the largest children first, then by key */
    uint64_t retained, ended;   /* spans of the context, those with an end */
    uint64_t captures, fresh;   /* errors that were thrown in it, and recorded */
    bool has_exemplar[VV_EXEMPLARS];
    uint32_t exemplars[VV_EXEMPLARS]; /* spans */
    uint64_t min_ns, max_ns, percentiles[VV_PERCENTILES]; /* of those with an end: by nearest rank; none: unknown */
} vv_context_view;

/* Reads execution, limit and cursor, and what key q->id is: before anything is loaded. */
VV_MUST_CHECK vv_code vv_context_read(vv_context_view *ret, vv_query *q, vv_error *err);
/*
 * The execution: the one that the parameter names, else the only one that has the context. Loads as few as it can.
 * NOTFOUND; AMBIGUOUS with q->matches, the newest first.
 */
VV_MUST_CHECK vv_code vv_context_find(const vv_context_view *c, vv_query *q, vv_found *ret, vv_error *err);
/* Fills what was read. NOTFOUND where the execution has no such context, or is damaged. */
VV_MUST_CHECK vv_code vv_context_make(vv_context_view *c, vv_query *q, const vv_profile *p, vv_error *err);
void vv_context_done(vv_context_view *c); /* accepts a zeroed one */
