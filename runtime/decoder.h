/*
 * The decoder: turns the records of the rings into counts, facts and ends.
 *
 * Rings are read in any order. A record that rests on one of another ring (a thread's start on its spawn, a thread's
 * next leg on its earlier one) blocks its ring until the other was read; as the producer saw the cause first, so does a
 * reader that sees the effect. When to go on without it (force) is a matter of joins.h.
 *
 * Owned by the consumer thread. Nothing recurses.
 */
#pragma once

#include "runtime/clock.h"
#include "runtime/exec.h"
#include "runtime/objects.h"
#include "runtime/ring.h"

typedef enum { VV_DECODED_ALL, VV_DECODED_BLOCKED, VV_DECODED_BOUND } vv_decoded;
/* A record whose cause is not there: wait; or go on, as the cause is lost, or as waiting costs too much. */
typedef enum { VV_FORCE_NONE, VV_FORCE_LOST, VV_FORCE_PRESSURE } vv_force;

typedef struct {
    vv_governor *governor;
    vv_clock *clock;
    vv_registry *registry;
    _Atomic(vv_ring *) *rings; /* the session's list */
    vv_euid euid;
    uint32_t epoch_nodes; /* nodes of an execution that call for a rollover */
    /* Makes room: publishes, and rolls the execution (if not NULL) over. Its nodes' indexes change. */
    void (*relieve)(void *ctx, vv_exec *x);
    void *ctx;
    vv_exec *execs;          /* all, oldest last */
    vv_exec *admitted, **admitted_end; /* by next_admitted: RootStarted is to be written */
    _Atomic uint64_t admissions_lost; /* roots without memory */
    _Atomic uint64_t stray_records;   /* of threads that nobody knows */
    vv_accounting over;      /* sums of the executions that are dropped */
    vv_objects objects;      /* captured values */
    const vv_wstore *store;  /* that they go to */
    _Atomic uint64_t facts_lost; /* without memory */
    uint64_t fact_count;     /* queued, all executions */
    uint64_t fact_limit;     /* as many call for a publication */
    uint64_t facts_due;      /* the count at which the next one is asked for */
    uint64_t relieved_ticks; /* when memory was last denied and made room for */
    vv_clock_line line;      /* of the clock, for this drain */
    uint64_t line_end, later;
} vv_decoder;

/* Executions for all slots that were admitted since; they are queued in admitted. Without memory slot->exec stays
 * NULL. */
void vv_decoder_admit(vv_decoder *d);
/* Room for a fact, before it is made: what is published on the way may change what it can say. manual: Manual may be
 * used. False: denied, and counted. Then the fact, with the part that it is. */
VV_MUST_CHECK bool vv_fact_room(vv_decoder *d, vv_exec *x, bool manual);
void vv_fact_add(vv_decoder *d, vv_exec *x, const vv_fact *f, vv_part part);

/* Forgets an execution for good. */
void vv_decoder_drop(vv_decoder *d, vv_exec *x);

/* Reads a ring until it is empty, blocked, or max_segments were left behind; force is for its next record only.
 * *ret_moved: something was read. */
vv_decoded vv_decoder_drain(vv_decoder *d, vv_ring *r, unsigned max_segments, vv_force force, bool *ret_moved);

/* Frees what the records of a ring own that will not be decoded. No producer may be inside. */
void vv_decoder_discard(vv_ring *r, vv_governor *g);

/* The ring's next record says whose it is. */
void vv_decoder_leave(vv_ring *r);

/* What is left of the threads of an execution that has none: counted as unmatched. Producer counters are taken over. */
void vv_decoder_finish(vv_decoder *d, vv_exec *x);

/* Rolls an execution over after a seal; false where memory for the maps is denied. */
bool vv_decoder_rollover(vv_decoder *d, vv_exec *x);
