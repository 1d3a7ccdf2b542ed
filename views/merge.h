/*
 * The calling contexts of several executions as one tree, and of two sides as one tree with numbers of each
 * (docs/http-api.md): matched by their keys within one engine, by calling path across engines. Contexts without a path
 * stay apart, each in a node of its own. Owned by one thread while it is made, immutable then.
 */
#pragma once

#include "views/scope.h"

typedef struct {
    vv_tree tree;            /* with the numbers of both sides together */
    vv_tree side[VV_SIDES];  /* of a comparison: the same nodes with the numbers of one side */
    bool (*on)[VV_SIDES];    /* by node: the sides that have it */
    vv_counters *numbers[VV_SIDES + 1];
    vv_arena texts;          /* names and keys */
    vv_budget *budget;       /* the library's */
    size_t bytes;            /* taken out of it */
} vv_merged;

/*
 * Sees an execution when it has been taken in: its node i is the merged tree's node to[i], whose index holds from then
 * on.
 */
typedef vv_code vv_merge_visit(void *cls, const vv_scope_item *item, const vv_loaded *x, const uint32_t *to,
                               vv_error *err);

/* Folds the scope. visit may be NULL. NOMEM, LIMIT (the library's). The caller is done with ret on every path. */
VV_MUST_CHECK vv_code vv_merged_make(vv_merged *ret, vv_scope *s, vv_merge_visit *visit, void *cls, vv_error *err);
void vv_merged_done(vv_merged *m); /* accepts a zeroed one */
