/*
 * The registry of executions: a fixed array of slots, each owned by the lease count of its threads.
 *
 * A root takes a slot with two leases: the guard's, which vv_slot_return gives back, and the root thread's. Each spawn
 * acquires one, each thread's end releases one. Whoever releases the last makes the slot ready for the consumer,
 * exactly once: by then the root's status is set, and no producer is left. The consumer frees the slot at hand-off,
 * before anything is published, and its generation then moves on, so an old handle means nothing.
 *
 * Lists of admitted and of ready slots are stacks that the consumer takes as a whole; nothing is ever scanned.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/ids.h"
#include "runtime/accounting.h"
#include "runtime/governor.h"

typedef enum { VV_PHASE_FREE, VV_PHASE_OPEN, VV_PHASE_RETURNED, VV_PHASE_CLOSING } vv_phase;
enum { VV_STATUS_NONE = 255 };

struct varve_engine;
struct vv_exec;

typedef struct vv_slot vv_slot;
struct vv_slot {
    _Alignas(64) _Atomic uint64_t threads; /* leases */
    _Atomic uint64_t lost;                 /* records that were refused */
    _Atomic uint64_t accounts[VV_ACCOUNTS]; /* what its producers know */
    _Atomic uint64_t closing_ticks;
    _Atomic uint32_t generation;
    _Atomic uint8_t phase;
    _Atomic uint8_t status;
    uint32_t index;
    /* facts of admission, written before the slot is in the admitted list */
    struct varve_engine *engine;
    uint64_t thread, admitted_ticks;
    vv_runtime_id runtime_id;
    vv_slot *next_admitted, *next_ready, *next_free;
    struct vv_exec *exec; /* the consumer's */
};

typedef struct {
    vv_slot *slots;
    uint32_t count;
    vv_slot *free;
    pthread_mutex_t lock; /* of the free list */
    _Atomic(vv_slot *) admitted, ready;
} vv_registry;

VV_MUST_CHECK bool vv_registry_init(vv_registry *r, uint32_t count);
void vv_registry_done(vv_registry *r);

/* Takes a free slot with both leases; NULL where there is none. It is not open yet. */
vv_slot *vv_slot_reserve(vv_registry *r);
/* The slot becomes visible to the consumer. Its facts are set. */
void vv_slot_admit(vv_registry *r, vv_slot *s);
/* Before admission: gives the slot back. After it: the consumer's hand-off. */
void vv_slot_free(vv_registry *r, vv_slot *s);

/* A lease more; false where the execution is not open or the count is full. */
VV_MUST_CHECK bool vv_slot_acquire(vv_slot *s);
/* A lease less. True: it was the last, and the slot is in the ready list. */
bool vv_slot_release(vv_registry *r, vv_slot *s, uint64_t ticks);
/* Sets the root's status if it has none, and gives the guard's lease back then. True as vv_slot_release. */
bool vv_slot_return(vv_registry *r, vv_slot *s, uint32_t generation, uint8_t status, uint64_t ticks);

/* Consumer: all that came since the last call, oldest first, linked by next_admitted or next_ready. */
vv_slot *vv_registry_take_admitted(vv_registry *r);
vv_slot *vv_registry_take_ready(vv_registry *r);
