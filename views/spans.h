/*
 * Calls that were recorded one by one (docs/http-api.md): found by what is known of them, in a total order, page by
 * page; and one of them with what is recorded of it.
 */
#pragma once

#include "views/facts.h"
#include "views/listing.h"

typedef struct {
    bool has_function, has_status, has_thread, has_context, has_reason, has_min_duration;
    vv_name_kind function_kind; /* what the name is compared with */
    vv_str function;
    uint32_t function_id;
    unsigned status;            /* vv_call_status, or VV_SPAN_STATUS_UNKNOWN */
    vv_thread_ref thread;
    vv_context_ref context;
    uint8_t reason;             /* bit */
    uint64_t from, to;          /* ran at some time in from..to, the end not included */
    bool has_from, has_to;
    uint64_t min_duration;
    bool by_duration;           /* longest first, else by start */
} vv_span_filter;

enum { VV_SPAN_STATUS_UNKNOWN = 4 };

/* What stands beside the rows, so that no row means neither "did not happen" nor "all". */
typedef struct {
    bool known;              /* false where the fold failed */
    bool calls_known;        /* false where contexts without a function may hold calls of the one asked for */
    vv_u128 calls, selected; /* as counted in the contexts that the filter's function and context name */
    uint64_t retained;       /* spans of those */
    uint64_t matched;        /* of these, what all of the filter keeps */
    uint64_t without_start;  /* of all spans: they match what can be told without a start */
    uint64_t without_end;    /* of those retained */
} vv_span_population;

typedef struct {
    vv_span_filter filter;
    vv_span_population population;
    vv_page page; /* rows are indexes of spans */
} vv_span_list;

/* Reads the parameters that filter, order and page, as far as that needs no execution: before one is loaded. */
VV_MUST_CHECK vv_code vv_span_list_read(vv_span_list *ret, vv_query *q, vv_error *err);
/* Fills what was read. NOTFOUND for a function, thread or context that the execution lacks. */
VV_MUST_CHECK vv_code vv_span_list_make(vv_span_list *l, vv_query *q, const vv_profile *p, vv_error *err);
void vv_span_list_done(vv_span_list *l); /* accepts a zeroed one */

/* The fields of a span, into an open object. */
void vv_span_fields_json(vv_json *j, const vv_found *f, const vv_profile *p, const vv_fold_span *s);

/* Those that name it: call_id, short_id, function, times, status. */
void vv_span_brief_json(vv_json *j, const vv_found *f, const vv_profile *p, const vv_fold_span *s);

/* Where the parent of a call stands. */
typedef enum { VV_PARENT_NONE, VV_PARENT_RETAINED, VV_PARENT_NOT_RETAINED, VV_PARENT_UNKNOWN } vv_parent;
vv_parent vv_span_parent(const vv_fold *f, const vv_fold_span *s, uint32_t *ret_at);

/* The span that q->sub names: ARG, NOTFOUND. */
VV_MUST_CHECK vv_code vv_span_find(vv_query *q, const vv_profile *p, uint32_t *ret_at, vv_error *err);
/* Indexes of its parents that are retained, the nearest one first; *ret_complete: up to a call without a parent. */
VV_MUST_CHECK vv_code vv_span_parents(const vv_fold *f, uint32_t at, uint32_t **ret, size_t *ret_count,
                                      bool *ret_complete, vv_error *err);

/* Errors of all contexts below a node. NOMEM. */
VV_MUST_CHECK vv_code vv_errors_below(const vv_profile *p, uint32_t node, vv_u128 *ret, vv_error *err);
/* The object "context": what is counted in the context of a call; null where it is not there. */
void vv_context_totals_json(vv_json *j, const vv_profile *p, uint32_t node, vv_u128 errors_below);
