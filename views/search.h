/*
 * Text looked for in a whole store (docs/http-api.md): functions by their names, then execution by execution, the
 * newest first, the execution itself, its threads, errors and recorded calls.
 *
 * An execution is loaded only where the filter of its digest does not rule the text out. What is found, and in which
 * order, does not depend on that, nor on an index.
 */
#pragma once

#include "views/facts.h"

typedef enum {
    VV_HIT_FUNCTION,
    VV_HIT_EXECUTION,
    VV_HIT_THREAD,
    VV_HIT_ERROR,
    VV_HIT_SPAN,
    VV_HIT_TYPES,
} vv_hit_type;
extern const char *const vv_hit_words[VV_HIT_TYPES]; /* "function" "execution" "thread" "error" "span" */

enum { VV_SEARCH_TEXT_MAX = 256, VV_SEARCH_LIMIT = 100, VV_SEARCH_LIMIT_MAX = 1000 };

typedef struct {
    vv_hit_type type;
    const char *matched;        /* the word for what holds the text; the first one of several */
    vv_function_ref function;   /* of a function */
    uint64_t executions;        /* of a function: those of the engines that have it */
    const vv_found *found;      /* the execution; of a function the newest one that has it, NULL where there is none */
    const vv_digest *digest;    /* of an execution */
    const vv_profile *profile;  /* of a thread, error or span */
    size_t at;                  /* of those: in the list of the fold */
} vv_hit;

/* Called for each hit, in order; what it points to is valid during the call. */
typedef void vv_hit_fn(void *state, const vv_hit *hit);

typedef struct {
    vv_evidence evidence;       /* of the executions that were searched, and of what could not be */
    uint64_t tables, tables_unreadable; /* of functions, each once */
    char next[VV_CURSOR_TEXT];  /* empty on the last page */
} vv_search_result;

/* Reads q, kind, limit and cursor from the query. The result is valid, and to be done with, after a failure too. */
VV_MUST_CHECK vv_code vv_search(vv_query *q, vv_hit_fn *tell, void *state, vv_search_result *ret, vv_error *err);
void vv_search_result_done(vv_search_result *r);

/* The answer. */
VV_MUST_CHECK vv_code vv_view_search(vv_json *j, vv_query *q, vv_error *err);
