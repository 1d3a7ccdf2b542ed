/*
 * The gate: what is in use is pinned, and what is pinned is not taken away. One gate for all of the process, with a
 * numbered slot for each thing that can go while others use it.
 *
 * A user pins, looks again whether the thing is still there, uses it, and lets go:
 *
 *     vv_gate_pin pin = vv_gate_enter(slot);
 *     if (atomic_load_explicit(&state, memory_order_acquire) == ACTIVE)
 *         use();                              what use() needs is read here, after the look
 *     vv_gate_leave(pin, slot);
 *
 * Whoever takes it away says so, flushes, and waits until nobody is inside. The flush is needed once; who enters after
 * it sees the new state:
 *
 *     atomic_store_explicit(&state, DETACHING, memory_order_release);
 *     vv_gate_flush();
 *     while (!vv_gate_is_evacuated(slot, &tid))
 *         wait a while;
 *     free it;
 *
 * It can't be that the user saw ACTIVE and the other one saw nobody inside: docs/gate.md says why. Each thread counts
 * its pins in a record of its own, with plain loads and stores; a thread without one (no memory, a signal handler
 * before the first use, a thread whose end has begun) counts in a shared counter of the slot. Pins nest, over slots and
 * in one slot, also in signal handlers. Nothing here blocks for longer than a walk over the records takes, prints or
 * aborts.
 *
 * Locks: the gate's own is a leaf. Whoever holds a lock of its own while it calls the gate and takes that lock in a
 * pthread_atfork handler too calls vv_gate_init before it sets the handler.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"

enum {
    VV_GATE_PROFILER = 0,     /* the main profiler */
    VV_GATE_NOTIFY_FIRST = 1, /* those that are only notified */
    VV_GATE_NOTIFY_COUNT = 32,
    VV_GATE_SPARE_FIRST = VV_GATE_NOTIFY_FIRST + VV_GATE_NOTIFY_COUNT, /* for other users */
    VV_GATE_SPARE_COUNT = 7,
    VV_GATE_SLOTS = VV_GATE_SPARE_FIRST + VV_GATE_SPARE_COUNT,
};

/* One thread's pins. The memory stays a record for ever; the thread alone writes `pins` while it lives. */
typedef struct vv_gate_record vv_gate_record;
struct vv_gate_record {
    _Alignas(64) _Atomic uint32_t pins[VV_GATE_SLOTS];
    /* the registry's, under its lock */
    _Alignas(64) vv_gate_record *next_made; /* of all that were ever made */
    vv_gate_record *next_free;
    pid_t tid;
    int state;
};

/* What vv_gate_enter gives and vv_gate_leave takes, on the same thread: where the pin was counted. */
typedef struct {
    vv_gate_record *record; /* NULL: in the slot's shared counter */
} vv_gate_pin;

/* This thread's record, NULL: none. */
extern __thread vv_gate_record *vv_gate_self __attribute__((tls_model("initial-exec")));
/* Whether a user fences, or whoever takes away does it for all (membarrier). */
extern _Atomic bool vv_gate_fenced;

/* ThreadSanitizer does not model fences, and gcc says so; the instruction is executed all the same, and the release and
 * acquire of the counters give the order that it looks at. */
#if defined(__SANITIZE_THREAD__)
#define VV_GATE_ALWAYS_FENCED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VV_GATE_ALWAYS_FENCED 1
#endif
#endif
#ifndef VV_GATE_ALWAYS_FENCED
#define VV_GATE_ALWAYS_FENCED 0
#endif

static inline void vv_gate_fence(void)
{
#if VV_GATE_ALWAYS_FENCED && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
    atomic_thread_fence(memory_order_seq_cst);
#if VV_GATE_ALWAYS_FENCED && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
}

/* The ways that are not quick; see vv_gate_enter, vv_gate_enter_async and vv_gate_leave. */
vv_gate_pin vv_gate_enter_first(unsigned slot);
vv_gate_pin vv_gate_enter_shared(unsigned slot);
void vv_gate_leave_shared(unsigned slot);

static inline vv_gate_pin vv_gate_pin_record(vv_gate_record *r, unsigned slot)
{
    /* The thread's own: a signal handler in between leaves the count as it found it. */
    uint32_t n = atomic_load_explicit(&r->pins[slot], memory_order_relaxed);
    atomic_store_explicit(&r->pins[slot], n + 1, memory_order_relaxed);
    if (VV_GATE_ALWAYS_FENCED || VV_UNLIKELY(atomic_load_explicit(&vv_gate_fenced, memory_order_relaxed)))
        vv_gate_fence();
    else
        atomic_signal_fence(memory_order_seq_cst);
    return (vv_gate_pin){r};
}

/* Pins the slot. The caller then looks at the state (acquire) and uses nothing where it is not what it must be; it lets
 * go in either case. Any thread, not a signal handler: the first use makes the thread's record. */
static inline vv_gate_pin vv_gate_enter(unsigned slot)
{
    vv_gate_record *r = vv_gate_self;
    return VV_LIKELY(r != NULL) ? vv_gate_pin_record(r, slot) : vv_gate_enter_first(slot);
}

/* The same where nothing may be locked or allocated: signal handlers, regions where the host must not be stopped. */
static inline vv_gate_pin vv_gate_enter_async(unsigned slot)
{
    vv_gate_record *r = vv_gate_self;
    return VV_LIKELY(r != NULL) ? vv_gate_pin_record(r, slot) : vv_gate_enter_shared(slot);
}

/* Lets go of one pin, in any order. What the thread did while inside happens before whatever is done after
 * vv_gate_is_evacuated said yes. Async-signal-safe. */
static inline void vv_gate_leave(vv_gate_pin pin, unsigned slot)
{
    if (VV_UNLIKELY(!pin.record)) {
        vv_gate_leave_shared(slot);
        return;
    }
    uint32_t n = atomic_load_explicit(&pin.record->pins[slot], memory_order_relaxed);
    atomic_store_explicit(&pin.record->pins[slot], n - 1, memory_order_release);
}

/* Once for the process, and by itself where it is needed; a caller may do it earlier, before it has threads or sets
 * fork handlers of its own. */
void vv_gate_init(void);

/* Makes this thread's record now rather than at its first pin. False: it can't have one, and pins by the shared
 * counters. Not in signal handlers. */
bool vv_gate_register(void);

/* Pins of this slot that this thread holds. Async-signal-safe. */
uint32_t vv_gate_held(unsigned slot);

/* Makes the store before it visible to all who enter from now on, and all who entered before visible to
 * vv_gate_is_evacuated. Costs some microseconds where other threads run. Any thread, also one that holds pins. */
void vv_gate_flush(void);

/* True: nobody is inside the slot who entered before the last flush. False: *ret_tid (may be NULL) is the system's
 * number of a thread that is, 0 where it is one without a record. Any thread; the caller's own pins count too. */
bool vv_gate_is_evacuated(unsigned slot, pid_t *ret_tid);

/* True in a child of fork: only the forking thread's pins are left, and no thread of the parent's is there to wait for.
 * The gate works on. Async-signal-safe. */
bool vv_gate_is_forked(void);

/* Called on a thread that ends with pins of a slot, which are then taken back: its callback was left by pthread_exit
 * or by a jump. NULL (the default): not told. No lock is held. */
typedef void (*vv_gate_violation)(pid_t tid, unsigned slot, uint32_t pins);
void vv_gate_on_violation(vv_gate_violation fn);
