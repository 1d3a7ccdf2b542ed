/*
 * Trees made of other trees (docs/http-api.md, "Transforms"): what a question leaves out of a tree of contexts, and
 * where the time of that goes. Each transform works on what the ones before it left.
 *
 * Time is never lost between a node and what stands below it: inclusive = self + await + Call children + unattributed
 * holds after a transform where it held before.
 */
#pragma once

#include "base/arena.h"
#include "views/evidence.h"
#include "views/tree.h"

typedef enum {
    VV_FOCUS,    /* keeps matches, all below them, and the way to them, which keeps no numbers of its own */
    VV_HIDE,     /* takes matches out: what they called moves up, their own time goes to their caller */
    VV_COLLAPSE, /* matches take in all that they call */
    VV_ONLY_USER /* hides functions that are known not to be the user's */
} vv_transform_kind;

typedef struct {
    vv_transform_kind kind;
    vv_str text; /* what a name, display name, file or package must contain; of VV_ONLY_USER none */
} vv_transform;

/* A tree that was made of another one, whose functions, keys and counters it goes on using. */
typedef struct {
    vv_tree tree;
    uint32_t *origin;        /* by node: which of the source it is; NULL where each may be several */
    vv_counters *counters;   /* of nodes whose numbers are not the source's */
    vv_u128 *call_child_ns;
    uint8_t (*keys)[32];     /* what equals are ordered by, where it is not the source's keys */
    vv_filtered filtered;    /* of the source, what no node shows any more */
} vv_derived;

/* "focus:TEXT", "hide:TEXT", "collapse:TEXT" (TEXT of at least one byte), "only_user"; false: none of them. */
bool vv_transform_parse(vv_transform *ret, vv_str s);

VV_MUST_CHECK vv_code vv_transform_tree(vv_derived *ret, const vv_tree *t, const vv_transform *list, size_t n,
                                        vv_error *err);
/* The most memory that transforms of n nodes take; what a derived tree holds. Bytes. */
size_t vv_transform_most(uint32_t n);
size_t vv_derived_bytes(const vv_derived *d);
void vv_derived_done(vv_derived *d); /* accepts a zeroed one */
