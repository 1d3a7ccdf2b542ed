/*
 * Functions of one execution (docs/http-api.md): a row each, grouped by definition key, else fqn, else program and
 * number; inclusive time counts recursion once. Sorted, searched, paged.
 */
#pragma once

#include "views/executions.h"

typedef struct {
    const vv_function_ref *function; /* one of the group's */
    uint64_t contexts;
    vv_u128 calls, errors, cancelled, self_ns, inclusive_ns, await_ns;
    __int128 open;
    bool timing_incomplete;
} vv_function_row;

/* All rows, in no order that means anything. The caller frees. */
VV_MUST_CHECK vv_code vv_function_rows(const vv_tree *t, vv_function_row **ret, size_t *ret_count, vv_error *err);

/* Sorts rows by one of the words that `sort` takes (its index); largest first, ties by name and identity. */
extern const char *const vv_function_sorts[];
enum { VV_FUNCTION_SORTS = 7 };
void vv_function_rows_sort(vv_function_row *rows, size_t n, unsigned by);

/* The answer: execution, sort (self_ns inclusive_ns await_ns calls errors contexts name), q, limit, cursor. */
VV_MUST_CHECK vv_code vv_view_functions(vv_json *j, vv_query *q, vv_error *err);

/* The fields of a function, into an open object. ref may be NULL (all null). */
void vv_function_fields_json(vv_json *j, const vv_function_ref *ref);
