/*
 * Where the calls of a comparison changed (docs/http-api.md, "Cause"): from the top down along one callee after the
 * other, as long as its subtree holds nine tenths of the changed calls below its caller, and as it did not merely
 * change in proportion to its caller. Counts are exact, so unlike a time this is the same for equal programs.
 */
#pragma once

#include "views/compare.h"

typedef struct {
    bool changed;         /* anything did */
    uint32_t node;        /* where that led; VV_NONE: no single top-level context holds most of it */
    vv_u128 base, head;   /* calls of the subtree */
    vv_u128 here, all;    /* changed calls: of the subtree, of everything that is matched by path */
    uint64_t own_base, own_head; /* calls of the node itself */
} vv_cause;

VV_MUST_CHECK vv_code vv_cause_find(vv_cause *ret, const vv_comparison *c, vv_error *err);
/* The field "cause": null where no count changed. */
void vv_cause_json(vv_json *j, const vv_comparison *c, const vv_cause *x);
