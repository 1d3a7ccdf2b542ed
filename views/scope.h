/*
 * The executions that a question is about: one, several that are taken together, or two sides of a comparison
 * (docs/http-api.md). Each is loaded when its turn comes and given back at once, so that a thousand of them need no
 * more memory than the largest. Owned by one thread.
 */
#pragma once

#include "views/delta.h"
#include "views/executions.h"

typedef enum { VV_SIDE_HEAD, VV_SIDE_BASE } vv_side;
enum { VV_SIDES = 2 };

typedef struct {
    vv_library *library;
    const vv_look *look;
    vv_found found;
    bool on[VV_SIDES];
} vv_scope_item;

typedef struct {
    vv_scope_item *items; /* each once: the head's, newest first, then those of the base alone */
    size_t count;
    bool compares;   /* there is a base */
    bool one_engine; /* all are of one engine of one process: contexts are the same by their keys */
    vv_evidence evidence, sides[VV_SIDES]; /* of all; of each side. From here on filled by vv_scope_fold */
    bool known[VV_SIDES]; /* the data of at least one could be folded */
    vv_totals totals[VV_SIDES];
} vv_scope;

/*
 * Reads execution= (or takes q->id, where the resource has it in its path) and base=. One that is named twice counts
 * once. ARG, NOTFOUND, AMBIGUOUS.
 */
VV_MUST_CHECK vv_code vv_scope_read(vv_scope *ret, vv_query *q, vv_error *err);
void vv_scope_done(vv_scope *s); /* accepts a zeroed one */

/* Only one, and no comparison: its own tree will do. */
static inline bool vv_scope_is_single(const vv_scope *s)
{
    return s->count == 1 && !s->compares;
}

/* Loads one after the other, gathers evidence and totals, and shows each to visit (may be NULL). */
typedef vv_code vv_scope_visit(void *cls, const vv_scope_item *item, const vv_loaded *x, vv_error *err);
VV_MUST_CHECK vv_code vv_scope_fold(vv_scope *s, vv_scope_visit *visit, void *cls, vv_error *err);

/* The evidence and totals of one that the caller loads himself. */
VV_MUST_CHECK vv_code vv_scope_gather(vv_scope *s, const vv_scope_item *item, const vv_digest *d, vv_error *err);

/*
 * What is not there on a side did not happen there. Otherwise, where something may be missing, nothing is known of it.
 */
bool vv_scope_absence_known(const vv_scope *s, vv_side side);
/* Of something that is there on these sides. */
vv_delta_state vv_scope_state(const vv_scope *s, const bool on[VV_SIDES]);
/* Whether its number on a side is known, be it 0. */
bool vv_scope_number_known(const vv_scope *s, const bool on[VV_SIDES], vv_side side);

/* As vv_head_json; of more than one execution, or a comparison, also which they are and what is known of each side. */
void vv_scope_head_json(vv_json *j, const vv_query *q, const vv_scope *s, bool truncated, const vv_filtered *filtered);
/* "totals", and of a comparison "base_totals". */
void vv_scope_totals_json(vv_json *j, const vv_scope *s);
