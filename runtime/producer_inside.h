/*
 * What the host's side of the library shares: a logical thread, and how its records reach a ring. Calls and awaits are
 * in producer.c, executions and threads in threads.c, what selected calls add in selected.c.
 *
 * A push that is refused loses its record, counted, and keeps both sides in step: a refused begin drops its whole
 * subtree (skip counts its open calls), a refused end is told later by a resync record. Whatever is not the plain case
 * makes the ring's current thread differ from this one, so the plain case has one test for all of them.
 */
#pragma once

#include "base/attr.h"
#include "runtime/capture.h"
#include "runtime/record.h"
#include "runtime/session.h"

/* An open call that is more than its two records: it has waited, or is selected. */
typedef struct {
    uint64_t depth;
    uint64_t await_ns, await_count;
    varve_capture *output; /* given, until the end says whether the call has one */
    uint8_t roles;         /* of a selected call */
    uint8_t owed;          /* of these, what no value was given for */
    uint8_t output_loss;   /* a value's loss + 1; 0: none known */
    bool selected, manual;
    bool linked;           /* an error that was recorded will end it */
    bool link_lost;        /* likewise, but the record was refused */
} vv_mark;

struct varve_thread {
    vv_ring *ring;
    uint64_t number;
    uint64_t depth;      /* open calls that were recorded */
    uint64_t mark_depth; /* of the innermost mark, 0 = none */
    uint64_t begins;
    uint64_t skip;      /* open calls that were not recorded, the innermost ones */
    uint64_t lost_ends; /* ends that the consumer has not heard of */
    uint64_t lost_begins, suspensions;
    uint64_t asides;  /* records that are no begin and no end: both sides count them */
    uint64_t unwinds; /* errors that were recorded */
    varve_engine *engine;
    vv_slot *slot;
    uint32_t generation; /* of the slot */
    vv_mark *marks;
    uint32_t mark_count, mark_cap;
    vv_pool mark_pool;
    uint64_t await_from;
    bool awaiting, started, muted, moved;
    varve_thread *next_free;
};

static inline varve_session *vv_session_of(const varve_thread *t)
{
    return t->engine->session;
}

static inline void vv_count_loss(varve_thread *t, uint64_t n)
{
    atomic_fetch_add_explicit(&t->slot->lost, n, memory_order_relaxed);
    atomic_fetch_add_explicit(&vv_session_of(t)->records_lost, n, memory_order_relaxed);
}

static inline void vv_account_for(varve_thread *t, vv_account what, uint64_t n)
{
    if (n)
        atomic_fetch_add_explicit(&t->slot->accounts[what], n, memory_order_relaxed);
}

/* The ring, with room for n words of t behind whatever must go first (which is written), or NULL: refused. */
vv_ring *vv_make_room(varve_thread *t, uint64_t n);

/* The next call on t's ring takes the slow path. */
static inline void vv_leave_plain(varve_thread *t)
{
    if (t->ring->current == t->number)
        t->ring->current = 0;
}

/* A begin was refused: its whole subtree is dropped. */
static inline void vv_lose_begin(varve_thread *t)
{
    t->skip++;
    t->lost_begins++;
    vv_count_loss(t, 1);
    vv_leave_plain(t);
}

/* The execution's first call: what its root policy selects. */
bool vv_is_root_call(const varve_thread *t);

/* The mark of the innermost open call; NULL: it has none. */
static inline vv_mark *vv_mark_top(const varve_thread *t)
{
    return t->mark_depth == t->depth && t->depth ? &t->marks[t->mark_count - 1] : NULL;
}

/* A link whose call the consumer hears nothing more of, or not that it has one. */
static inline void vv_lose_link(varve_thread *t)
{
    vv_account_for(t, VV_ACCOUNT_LINKS_OBSERVED, 1);
    vv_account_for(t, VV_ACCOUNT_LINK_LOST_TRANSPORT, 1);
}

/* Room for one mark more; false: no memory. */
bool vv_mark_room(varve_thread *t, bool manual);

/* That of the innermost open call, which has none yet; there is room. */
static inline vv_mark *vv_mark_push(varve_thread *t)
{
    vv_mark *m = &t->marks[t->mark_count++];
    *m = (vv_mark){.depth = t->depth};
    t->mark_depth = t->depth;
    return m;
}

void vv_marks_free(varve_session *s, varve_thread *t);

/* Ends the innermost open call in whatever state. */
void vv_end_slow(varve_thread *t, unsigned status, uint64_t ticks);

/* selected.c: the begin of a call with a selected plan (varve_policy_flags), and what goes before its end. */
void vv_begin_selected(varve_thread *t, uint32_t function, uint32_t site, uint64_t ticks, uint8_t flags,
                       const varve_policy *policy);
void vv_end_selected(varve_thread *t, vv_mark *m, unsigned status);
