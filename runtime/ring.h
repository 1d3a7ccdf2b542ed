/*
 * Rings: one for each (engine, OS thread), a chain of 256 KiB segments with one producer, the OS thread, and one
 * consumer.
 *
 * A push takes room (vv_ring_room), writes the record's words from the last to the first, and moves `at`. There is no
 * commit index: see record.h. A full segment rolls: a spare one or a new one is linked, and a parked consumer is woken.
 * Where memory has no room for one the push is refused, and nothing was written.
 *
 * Life: active until its OS thread ends, then orphaned; the consumer pools it once it is drained, or once its engine
 * is gone, and the next OS thread that needs one claims it. A ring is freed when both its session and its OS thread
 * have let go of it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "runtime/governor.h"
#include "runtime/sizing.h"
#include "runtime/wake.h"

typedef struct vv_segment vv_segment;
struct vv_segment {
    _Atomic(vv_segment *) next;
    uint64_t pad[7];
    uint64_t words[];
};
enum { VV_SEGMENT_WORDS = (VV_SEGMENT_BYTES - sizeof(vv_segment)) / 8 };

/* Detached has all bits of the others. */
typedef enum { VV_RING_ACTIVE, VV_RING_ORPHANED, VV_RING_POOLED, VV_RING_DETACHED } vv_ring_state;
_Static_assert(VV_RING_DETACHED == 3, "two bits of a ring's state");

struct varve_engine;
struct vv_lthread;

typedef struct vv_ring vv_ring;
struct vv_ring {
    /* the producer's */
    uint64_t *at, *end;
    uint64_t current; /* number of the thread the last record belongs to, 0 = none */
    vv_segment *head;
    struct varve_engine *engine;
    _Alignas(64) _Atomic uint64_t rolled; /* segments linked so far */
    _Atomic(vv_segment *) first;          /* the first segment, for the consumer's start */
    _Atomic(vv_segment *) spares[VV_RING_SPARES];
    _Atomic uint64_t state; /* claims << 2 | vv_ring_state */
    _Atomic int refs;
    vv_governor *governor;
    vv_wake *wake;
    _Atomic(vv_ring *) next; /* of the session's list, oldest first */
    /* the consumer's */
    _Alignas(64) vv_segment *tail;
    uint64_t *from;
    uint64_t retired;      /* segments left behind */
    struct vv_lthread *decoding;
    void *ignored;         /* the execution whose records are dropped while decoding is NULL */
    uint64_t barrier, snap; /* see consumer.h */
    bool blocked;           /* at from, by a record of blocked_ticks */
    uint64_t blocked_ticks;
    uint64_t doubt, doubt_snap; /* see joins.h */
    const uint64_t *doubt_from;
};

/* The ring that takes nothing: what a thread has before it is bound. */
extern vv_ring vv_no_ring;

/* A new active ring; its first segment comes with the first push. NULL: no memory. Two references: the session's and
 * the caller's. */
vv_ring *vv_ring_new(vv_governor *g, vv_wake *wake, struct varve_engine *engine);
void vv_ring_unref(vv_ring *r);

/*
 * The state moves together with the number of the claim, so that one who had the ring before can't take it from one
 * who has it now. A claim is made of a pooled ring; the first is its maker's.
 */
static inline uint64_t vv_ring_claim_of(const vv_ring *r)
{
    return atomic_load_explicit(&r->state, memory_order_acquire) >> 2;
}

static inline bool vv_ring_is(const vv_ring *r, uint64_t claim, vv_ring_state state)
{
    return atomic_load_explicit(&r->state, memory_order_acquire) == (claim << 2 | (uint64_t)state);
}

static inline bool vv_ring_move(vv_ring *r, uint64_t claim, vv_ring_state from, vv_ring_state to)
{
    uint64_t word = claim << 2 | (uint64_t)from;
    return atomic_compare_exchange_strong(&r->state, &word, claim << 2 | (uint64_t)to);
}

/* False where it is not pooled, or another was first. */
static inline bool vv_ring_claim(vv_ring *r)
{
    uint64_t word = atomic_load_explicit(&r->state, memory_order_relaxed);
    return (word & 3) == VV_RING_POOLED &&
           atomic_compare_exchange_strong(&r->state, &word, ((word >> 2) + 1) << 2 | VV_RING_ACTIVE);
}

/* Whoever has it, it takes nothing more, nor is it handed on: detached. */
static inline void vv_ring_cut_off(vv_ring *r)
{
    atomic_fetch_or(&r->state, VV_RING_DETACHED);
}

/* The session lets go: segments are freed, and the ring refuses from now on. No producer may be inside. */
void vv_ring_detach(vv_ring *r);

/* Any thread: frees the segments that are only kept for the next roll. */
void vv_ring_shed(vv_ring *r, vv_governor *g);

/* Producer: room for n words (at most VV_SEGMENT_WORDS) at r->at, rolling where needed. False: refused. */
bool vv_ring_roll(vv_ring *r, uint64_t n);
static inline bool vv_ring_room(vv_ring *r, uint64_t n)
{
    return VV_LIKELY((uint64_t)(r->end - r->at) >= n) || vv_ring_roll(r, n);
}

/* Producer: the words of a record. The first is stored last. */
static inline void vv_ring_commit(vv_ring *r, uint64_t word0, uint64_t n)
{
    __atomic_store_n(r->at, word0, __ATOMIC_RELEASE);
    r->at += n;
}

/* Consumer: the next record's words, or NULL where the ring is empty. Retires segments on the way; *ret_retired
 * counts them. */
const uint64_t *vv_ring_peek(vv_ring *r, uint64_t *ret_retired);
