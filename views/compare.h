/*
 * Comparisons whose rows are calling paths (docs/http-api.md): the executions of both sides in one tree, and what rows
 * about its nodes have in common. Owned by one thread.
 */
#pragma once

#include "views/listing.h"
#include "views/merge.h"

typedef struct {
    vv_scope scope;
    vv_merged merged;
    vv_path_id *paths; /* by node */
    bool *has_path;
} vv_comparison;

/* Folds the scope that was read; visit as vv_merged_make has it. The caller is done with c on every path. */
VV_MUST_CHECK vv_code vv_comparison_make(vv_comparison *c, vv_merge_visit *visit, void *cls, vv_error *err);
void vv_comparison_done(vv_comparison *c); /* accepts a zeroed one */

/*
 * Where a row stands in a page: the largest change first, then by what it is about, which is the node (or VV_NONE, a
 * context that is not there) and n more bytes.
 */
enum { VV_COMPARISON_KEY = 16 + 32 };
void vv_comparison_key(const vv_comparison *c, uint32_t node, const void *more, size_t n, vv_u128 base, vv_u128 head,
                       uint8_t out[VV_COMPARISON_KEY]);

/* Fields of an open object: the function of the node, and where it stands. */
void vv_comparison_place_json(vv_json *j, const vv_comparison *c, uint32_t node);

/* A number of a row: unknown where a side lacks what it is of. */
typedef struct {
    const char *key;
    bool known[VV_SIDES];
    vv_u128 value[VV_SIDES];
} vv_comparison_number;

/* What a row says, however it is shown. */
enum { VV_COMPARISON_NUMBERS = 9 };
typedef struct {
    uint32_t node;     /* where it stands; VV_NONE: in a context that is not there */
    bool on[VV_SIDES]; /* the sides that have it */
    size_t count;
    vv_comparison_number numbers[VV_COMPARISON_NUMBERS]; /* the first one is the metric, of which the ratios are */
    vv_u128 total, parent;          /* the base's that ratios are of; 0 where there is none */
    const vv_function_ref *thrower; /* of errors: the function, what kind they are, and where from; else NULL */
    const char *kind, *source;
} vv_comparison_row;

/* A list with base=: what its rows are of, and how they are gathered and written. */
typedef struct {
    const char *view; /* as cursors name it */
    const char *of, *metric, *unit;
    vv_merge_visit *visit; /* gathers, of each execution; cls is the state */
    /* Offers the rows that were gathered, by vv_comparison_key. */
    vv_code (*offer)(void *state, vv_query *q, vv_page *page, vv_error *err);
    vv_u128 (*counted)(const void *state, vv_side side); /* what all rows of a side are of */
    void (*population)(vv_json *j, const void *state, vv_side side); /* fields that say what that is */
    void (*row)(const void *state, uint32_t row, vv_comparison_row *ret);
    void (*rest)(vv_json *j, const void *state, uint32_t row); /* more fields of a row; may be NULL */
} vv_comparison_list;

/* A page of such a list, for whom it is shown to. */
typedef struct {
    const vv_comparison_list *list;
    const vv_comparison *c;
    const vv_page *page;
    const void *state;
} vv_compared;
typedef vv_code vv_comparison_show(void *cls, const vv_query *q, const vv_compared *x, vv_error *err);

/*
 * Gathers and shows, once the view's own parameters are read. c: zeroed, of the state, and done with at the end.
 */
VV_MUST_CHECK vv_code vv_comparison_run(vv_query *q, vv_comparison *c, const vv_comparison_list *list, void *state,
                                        vv_comparison_show *show, void *cls, vv_error *err);

/* Spans and errors, with base=. */
typedef vv_code vv_compare(vv_query *q, vv_comparison_show *show, void *cls, vv_error *err);
vv_compare vv_compare_spans, vv_compare_errors;
/* The show that writes the answer; cls is a vv_answer. */
vv_comparison_show vv_comparison_answer;
