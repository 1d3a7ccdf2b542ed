/*
 * The control block: the host, a slot for each profiler, their states, and the one way to a profiler's callbacks.
 *
 *     pre-initialize ──> init at startup, init at attach ──> active ──> detaching ──> none
 *
 * A slot belongs to whoever moved it out of none, until it is active; from then on to nobody, and whoever moves it to
 * detaching has queued it for the detach looks, which alone end it. Its memory stays a slot for ever. What a profiler
 * gave is behind `iface_`, which only one function reads (behind the pin, after the look at the state), and only
 * attaching and ending write.
 */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "control/contract.h"
#include "control/gate.h"

/* The numbers are the design's. */
typedef enum {
    VV_STATUS_NONE = 0,
    VV_STATUS_DETACHING = 1,
    VV_STATUS_INIT_STARTUP = 2,
    VV_STATUS_INIT_ATTACH = 3,
    VV_STATUS_ACTIVE = 4,
    VV_STATUS_PRE_INITIALIZE = 5,
} vv_status;
enum { VV_STATUSES = 6 };

typedef struct {
    varve_callbacks callbacks;
    void *me;
} vv_iface;

/* Where a detaching is. */
typedef enum { VV_DETACH_NONE, VV_DETACH_QUEUED, VV_DETACH_EVACUATED, VV_DETACH_ENDED } vv_detach_state;

struct varve_profiler {
    _Alignas(64) _Atomic uint32_t status;
    _Atomic uint64_t requested; /* the mask as the profiler set it */
    _Atomic(const vv_iface *) iface_;
    unsigned number; /* of the slot, and in the gate */
    varve_host *host;
    vv_iface iface_memory;
    /* Since attaching: */
    varve_load_kind kind;
    _Atomic uint64_t implemented_bits; /* of the mask */
    bool can_detach, has_hooks;
    void (*ended)(void *ended_me);
    void *ended_me;
    /* Since detaching: */
    _Atomic uint32_t detach_state;
    _Atomic uint32_t hint_ms;
    _Atomic uint64_t requested_at_ms;
};

enum { VV_SLOTS = 1 + VV_GATE_NOTIFY_COUNT };
_Static_assert(VV_SLOTS <= 64, "sets of slots are words");

/* A host's life. */
typedef enum { VV_HOST_NONE, VV_HOST_OPEN, VV_HOST_STARTED, VV_HOST_CLOSING, VV_HOST_LEAKED } vv_host_state;

struct varve_host {
    _Alignas(64) _Atomic uint64_t mask; /* first: varve_host_mask */
    _Atomic uint64_t occupied;          /* slots that are active or detaching */
    _Atomic uint32_t state;
    _Atomic(const varve_hooks *) hooks;
    varve_hooks hooks_memory;
    varve_host_functions functions;
    void *me;
    uint64_t supported;
    bool check_ids, manual_detach;
    char name[64], language_version[64];
    _Atomic uint64_t detaching; /* the queue: slots that a look has to end */
    _Atomic uint32_t looking;   /* somebody looks at it */
    void (*wait)(void *wait_me, uint64_t ms);
    void *wait_me;
    sem_t wake, looked;
    _Atomic uint32_t thread_state;
    pthread_t thread;
    varve_profiler slots[VV_SLOTS];
};

/* Between two points of attaching and detaching; the tests step in there. NULL: nothing. */
typedef enum {
    VV_POINT_INITIALIZED,  /* initialize has returned */
    VV_POINT_ACTIVE,       /* the status is active */
    VV_POINT_PUBLISHED,    /* the mask is, too */
    VV_POINT_FLUSHED,      /* everybody can see it */
    VV_POINT_DETACHING,    /* the status is detaching */
    VV_POINT_QUEUED,
} vv_point;
extern void (*vv_point_probe)(vv_point point);

bool vv_status_is_legal(vv_status from, vv_status to);
/* Moves the slot on; false where it is not in `from`, or the transition is none. None, detaching and active are flushed
 * to all threads. Async-signal-safe. */
bool vv_status_move(varve_profiler *p, vv_status from, vv_status to);
static inline vv_status vv_status_of(const varve_profiler *p)
{
    return (vv_status)atomic_load_explicit(&p->status, memory_order_acquire);
}

/* Computes the host's mask anew from those of the active slots. Any thread, also several; async-signal-safe. */
void vv_mask_update(varve_host *host);

/* Copies the callbacks, before the profiler is initialized; forgets them, when nobody is inside any more. */
void vv_iface_set(varve_profiler *p, const varve_callbacks *callbacks, void *me);
void vv_iface_clear(varve_profiler *p);

/* One callback of one profiler: vv_call_<event>(profiler, ...), for each event. The slot is pinned meanwhile. */
#define CALL(name, bit, flags, contract, params, names, text) \
    void vv_call_##name(varve_profiler *profiler VARVE_TAIL_ params);
VARVE_EVENTS(CALL)
#undef CALL

/* The rules of an info function, before its arguments are looked at. */
varve_code vv_info_check(const varve_profiler *self, vv_info i, bool triggers);
extern const varve_info vv_info_table;
varve_code vv_detach_request(varve_profiler *p, uint32_t hint_ms);
bool vv_detach_start(varve_host *host);
/* Ends the detach thread. False: something is detaching still. */
bool vv_detach_stop(varve_host *host);
