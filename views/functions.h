/*
 * Functions of executions (docs/http-api.md): a row each, grouped by definition key, else fqn, else program and number;
 * inclusive time counts recursion once in each execution. Several executions sum up, a base stands beside them. Sorted,
 * searched, paged.
 */
#pragma once

#include "views/scope.h"

typedef struct {
    const vv_function_ref *function; /* one of the group's */
    uint64_t contexts;
    vv_u128 calls, errors, cancelled, self_ns, inclusive_ns, await_ns;
    __int128 open;
    bool timing_incomplete;
} vv_function_row;

/* All rows, in no order that means anything. The caller frees. */
VV_MUST_CHECK vv_code vv_function_rows(const vv_tree *t, vv_function_row **ret, size_t *ret_count, vv_error *err);

/* Where a row stands in the list: its value, whether it has a name, the name's first bytes, what it is grouped by. */
enum { VV_FUNCTION_NAME = 87, VV_FUNCTION_PLACE = 16 + 1 + VV_FUNCTION_NAME + 32 };

/* A function in all executions of a scope. */
typedef struct {
    uint8_t key[32];                  /* what it is grouped by */
    uint8_t place[VV_FUNCTION_PLACE]; /* once sorted; ascending */
    vv_function_ref function;   /* the newest execution's that has it: the head's, if any */
    bool on[VV_SIDES];
    vv_function_row side[VV_SIDES]; /* without their function */
} vv_function_group;

/* Calls that no function can be named for. */
typedef struct {
    uint64_t contexts;
    vv_u128 calls, self_ns;
} vv_nameless;

typedef struct {
    vv_map map; /* of keys */
    vv_function_group *items; /* by the map's index, until sorted */
    uint32_t count;
    size_t cap;
    vv_arena texts;
    vv_nameless overflow[VV_SIDES], undefined[VV_SIDES];
} vv_function_groups;

/* Folds the scope. The caller is done with ret on every path. */
VV_MUST_CHECK vv_code vv_function_groups_make(vv_function_groups *ret, vv_scope *s, vv_error *err);
void vv_function_groups_done(vv_function_groups *g); /* accepts a zeroed one */

/* Words that `sort` takes, and the values that they stand for. */
typedef enum { VV_SORT_SELF, VV_SORT_INCLUSIVE, VV_SORT_AWAIT, VV_SORT_CALLS, VV_SORT_ERRORS, VV_SORT_CONTEXTS,
               VV_SORT_NAME } vv_function_sort;
extern const char *const vv_function_sorts[];
enum { VV_FUNCTION_SORTS = 7 };
/* Of a name: its own time. */
vv_u128 vv_function_value(const vv_function_row *r, vv_function_sort by);
/*
 * Largest first, in a comparison the largest change; ties by name (as much of it as a place holds) and key. Functions
 * without a name come last. The map is of no use afterwards.
 */
void vv_function_groups_sort(vv_function_groups *g, const vv_scope *s, vv_function_sort by);

/* Which rows of sorted groups are wanted (q, limit, cursor), then these rows. */
typedef struct {
    uint64_t limit;
    const vv_str *text;
    bool has_cursor;
    uint8_t after[VV_FUNCTION_PLACE];
    const vv_function_group **items;
    size_t count;
    size_t rows;               /* that q keeps, on all pages */
    char next[VV_CURSOR_TEXT]; /* empty on the last page */
} vv_function_page;
VV_MUST_CHECK vv_code vv_function_page_read(vv_function_page *ret, vv_query *q, vv_error *err);
VV_MUST_CHECK vv_code vv_function_page_fill(vv_function_page *p, const vv_query *q, const vv_function_groups *g,
                                            vv_error *err);
void vv_function_page_done(vv_function_page *p);

/* The answer: execution, base, sort (self_ns inclusive_ns await_ns calls errors contexts name), q, limit, cursor. */
VV_MUST_CHECK vv_code vv_view_functions(vv_json *j, vv_query *q, vv_error *err);

/* The fields of a function, into an open object. */
void vv_function_fields_json(vv_json *j, const vv_function_ref *ref);
/* A copy of a function's description; NULL at the arena's cap. */
const vv_function *vv_function_copy(vv_arena *a, const vv_function *f);
