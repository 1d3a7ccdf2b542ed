/*
 * The registry of executions: a fixed array of slots, each owned by the lease count of its threads.
 *
 * A root takes a slot with two leases: the guard's, which vv_slot_return gives back, and the root thread's. Each spawn
 * acquires one, each thread's end releases one. Whoever releases the last makes the slot ready for the consumer,
 * exactly once: by then the root's status is set, and no producer is left. The consumer frees the slot at hand-off,
 * before anything is published.
 *
 * Generation, phase and status share one word, so that a compare-and-swap of an old handle can't hit the slot's next
 * execution. A slot whose generations are used up is retired, so no handle ever means another execution.
 *
 * Ordering. Everything a thread recorded comes before its release; the last releaser acquires all of that, then moves
 * the phase and links the slot into the ready list with release; the consumer takes the list with acquire.
 *
 * Lists of free, admitted and ready slots are stacks; nothing is ever scanned but at a close, and nothing locks.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/ids.h"
#include "runtime/accounting.h"
#include "runtime/governor.h"
#include "runtime/varve.h"

typedef enum { VV_PHASE_FREE, VV_PHASE_OPEN, VV_PHASE_RETURNED, VV_PHASE_CLOSING, VV_PHASE_RELEASED } vv_phase;
enum { VV_STATUS_NONE = 255, VV_GENERATION_MAX = (1 << 24) - 1, VV_SLOT_ALIGN = 256 };

/* What producers leave for the consumer: executions that began, and such whose last thread has ended. */
typedef enum { VV_ADMITTED, VV_READY, VV_SLOT_LISTS } vv_slot_list;

struct varve_engine;
struct vv_exec;

typedef struct vv_slot vv_slot;
struct vv_slot {
    _Alignas(VV_SLOT_ALIGN) _Atomic uint64_t threads; /* leases */
    _Atomic uint64_t control;                         /* generation << 32 | status << 8 | phase */
    _Atomic uint64_t lost;                            /* records that were refused */
    _Atomic uint64_t accounts[VV_ACCOUNTS];           /* what its producers know */
    _Atomic uint64_t closing_ticks;
    uint32_t index;
    struct varve_session *session;
    /* facts of admission, written before the slot is in the admitted list */
    _Atomic(struct varve_engine *) engine;
    uint64_t thread, admitted_ticks;
    vv_runtime_id runtime_id;
    vv_slot *next[VV_SLOT_LISTS];
    _Atomic uint32_t next_free; /* index + 1 */
    struct vv_exec *exec;       /* the consumer's */
    _Atomic(const varve_execution_state *) view; /* of checkpoints, under their lock */
};

typedef struct {
    vv_slot *slots;
    uint32_t count;
    _Atomic uint64_t free; /* changes << 32 | index + 1 of the top */
    _Atomic(vv_slot *) lists[VV_SLOT_LISTS];
} vv_registry;

VV_MUST_CHECK bool vv_registry_init(vv_registry *r, uint32_t count, struct varve_session *session);
void vv_registry_done(vv_registry *r);

static inline uint32_t vv_slot_generation(const vv_slot *s)
{
    return (uint32_t)(atomic_load_explicit(&s->control, memory_order_acquire) >> 32);
}

static inline vv_phase vv_slot_phase(const vv_slot *s)
{
    return (vv_phase)(atomic_load_explicit(&s->control, memory_order_acquire) & 0xff);
}

/* The root's, or VV_STATUS_NONE. */
static inline uint8_t vv_slot_status(const vv_slot *s)
{
    return (uint8_t)(atomic_load_explicit(&s->control, memory_order_acquire) >> 8);
}

/* Takes a free slot with both leases; NULL where there is none. It is not open yet, and nothing after this can fail. */
vv_slot *vv_slot_reserve(vv_registry *r);
/* The slot opens and becomes visible to the consumer. Its facts are set. */
void vv_slot_admit(vv_registry *r, vv_slot *s);
/* Consumer, at hand-off: a slot that was ready is free again. */
void vv_slot_free(vv_registry *r, vv_slot *s);

/* A lease more. False where the execution is not open, the generation is not its, or the count is full. */
VV_MUST_CHECK bool vv_slot_acquire(vv_registry *r, vv_slot *s, uint32_t generation, uint64_t ticks);
/* A lease less. True: it was the last, and the slot is in the ready list. */
bool vv_slot_release(vv_registry *r, vv_slot *s, uint64_t ticks);
/* Sets the root's status if it has none, and gives the guard's lease back then. False: another was first, or the
 * generation is over. *ret_last as vv_slot_release. */
bool vv_slot_return(vv_registry *r, vv_slot *s, uint32_t generation, uint8_t status, uint64_t ticks, bool *ret_last);
/* As vv_slot_return, and all leases of its threads are void: for a root that is dropped when nobody can end it. */
bool vv_slot_drop(vv_registry *r, vv_slot *s, uint8_t status, uint64_t ticks);

/* Consumer: all that came since the last call, oldest first, linked by next[which]. */
vv_slot *vv_registry_take(vv_registry *r, vv_slot_list which);
