/*
 * The session: everything of one store that is open for writing. See varve.h for its rules.
 *
 * Sessions are listed in the process, so that a fork can switch them off in the child.
 */
#pragma once

#include <pthread.h>

#include "runtime/checkpoint.h"
#include "runtime/clock.h"
#include "runtime/consumer.h"
#include "runtime/decoder.h"
#include "runtime/engine.h"
#include "runtime/execution.h"
#include "runtime/governor.h"
#include "runtime/process.h"
#include "runtime/ring.h"
#include "runtime/sizing.h"
#include "runtime/store.h"
#include "runtime/varve.h"
#include "runtime/wake.h"
#include "runtime/writer.h"

/* The free handles of logical threads (producer.c). */
typedef struct {
    varve_thread *roots; /* one a slot */
    pthread_mutex_t lock; /* of the rest */
    varve_thread *free;
    struct vv_handle_slab *slabs;
} vv_handles;

struct varve_session {
    _Atomic int state; /* varve_state */
    char *root;        /* absolute */
    char reason[384];  /* of a session that is off; set before it is handed out */
    char version[256];
    vv_governor governor;
    vv_sizing sizing;
    vv_clock clock;
    vv_wake wake;
    vv_registry registry;
    vv_wstore *store;
    uint64_t fixed_control, fixed_general; /* charged for the registry and for its meta records */
    pthread_mutex_t lock;   /* of the lists of engines and rings */
    _Atomic(varve_engine *) engines;
    varve_engine *last_engine;
    uint64_t engine_count;           /* ever opened */
    _Atomic uint64_t engines_closed; /* and not freed yet */
    _Atomic(vv_ring *) rings;
    const char *unflushed; /* at close, NULL or why not all was written */
    _Atomic uint64_t roots_begun, roots_refused, roots_abandoned, leases_refused;
    _Atomic uint64_t records_lost, awaits_lost, runtime_ids;
    uint64_t runtime_seed[2];
    vv_handles handles;
    vv_decoder decoder;
    vv_writer writer;
    vv_consumer consumer;
    vv_checkpoint checkpoint;
    uint64_t publish_interval_ns;
    varve_session *next_session;
};

/* What only tests choose. */
typedef struct {
    vv_wstore_hooks hooks;
    bool no_consumer;  /* nobody drains: the test calls vv_consumer_pass itself */
    const uint8_t *euid; /* 16 bytes: reopen this stream */
    vv_governor_test governor;
} vv_session_test;

varve_session *vv_session_open(const varve_options *options, const vv_session_test *test);

/* False: no memory. */
bool vv_handles_init(varve_session *s, uint32_t slots);
/* What open threads know of their losses goes to their executions. No thread may be inside. */
void vv_handles_settle(varve_session *s);
/* Frees all handles of threads, also of those that never ended. */
void vv_handles_done(varve_session *s);

/* Consumer, after a cycle: frees the closed engines that nothing uses any more. True: some were. */
bool vv_engines_retire(varve_session *s);

/* The calling OS thread's ring for an engine, made where there is none; NULL: no memory. */
vv_ring *vv_session_ring(varve_session *s, varve_engine *e);

static inline void vv_root_abandoned(varve_session *s)
{
    atomic_fetch_add_explicit(&s->roots_abandoned, 1, memory_order_relaxed);
    vv_count(VV_COUNT_ROOT_ABANDONED, 1);
}

static inline bool vv_session_active(const varve_session *s)
{
    return atomic_load_explicit(&s->state, memory_order_relaxed) == VARVE_ACTIVE;
}
