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

/*
 * The fields "state", "base", "head", "delta" and the ratios. on: the sides that have the row; the first number is the
 * metric, without which there are no ratios; total and parent are the base's, and 0 where there is none.
 */
void vv_comparison_json(vv_json *j, const vv_scope *s, const bool on[VV_SIDES], const vv_comparison_number *numbers,
                        size_t n, vv_u128 total, vv_u128 parent);

/* The list of an answer with base=: what its rows are of, and how each is written. */
typedef struct {
    const char *view; /* as cursors name it */
    const char *of, *metric, *unit;
    vv_merge_visit *visit; /* gathers, of each execution; cls is the state */
    /* Offers the rows that were gathered, by vv_comparison_key. */
    vv_code (*offer)(void *state, vv_query *q, vv_page *page, vv_error *err);
    void (*population)(vv_json *j, const void *state, vv_side side); /* fields of what all rows of a side are of */
    void (*row)(vv_json *j, const void *state, uint32_t row);        /* fields of one row */
} vv_comparison_list;

/* The whole answer, once the view's own parameters are read. c: zeroed, of the state, and done with at the end. */
VV_MUST_CHECK vv_code vv_comparison_answer(vv_answer *a, vv_query *q, vv_comparison *c, const vv_comparison_list *list,
                                           void *state, vv_error *err);

/* The answers of spans and errors with base=. */
vv_view vv_answer_span_comparison, vv_answer_error_comparison;
