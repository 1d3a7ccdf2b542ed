/*
 * The stream writer: one cycle takes what the decoder has and publishes it, as docs/store.md has it: captured values
 * (objects), new starts (meta), groups in root order packed into data segments, the terms of ends (health), ends
 * (meta). Each batch is committed, or lost once and counted; none is tried twice. Owned by the consumer thread; the
 * counters are read by any.
 */
#pragma once

#include "runtime/decoder.h"
#include "runtime/store.h"

typedef struct {
    vv_exec *exec;
    uint32_t first_ref, refs;
    uint64_t started, awaits; /* calls and intervals in its rows */
    bool cct, evidence;
} vv_flight;

/*
 * Where the data batch stands. Open: groups may join. Sealed: encoded, and publish.lock could not be had; it is tried
 * again as it is. Renamed: its file is there, and the directory's sync is awaited (the store is indeterminate). It
 * leaves as Committed or Lost, once, in settle.
 */
typedef enum { VV_BATCH_OPEN, VV_BATCH_SEALED, VV_BATCH_RENAMED } vv_batch;

typedef struct {
    vv_wstore *store;
    vv_decoder *decoder;
    vv_governor *governor;
    _Atomic(varve_engine *) *engines; /* the session's list */
    vv_euid euid;
    const char *version;
    size_t segment_target;
    size_t objects_target; /* so many bytes of values call for a cycle */
    vv_exec *ended, **ended_end; /* by next_ended: RootEnded is to be written */
    uint64_t group_bytes;        /* of groups encoded at hand-off */
    bool urgent;                 /* a group could not be kept: publish at once */
    vv_wr file, cct;             /* a file to be, of whatever plane; the rows of a group */
    uint64_t file_groups;
    vv_batch batch;
    vv_cct_ref *refs;
    uint32_t refs_used, refs_cap;
    vv_flight *flight; /* groups of the data batch */
    uint32_t flight_count, flight_cap;
    enum { VV_META_NONE, VV_META_STARTS, VV_META_ENDS } meta_in_flight; /* an indeterminate meta batch */
    uint64_t starts_in_flight, ends_in_flight;
    uint64_t charged;
    _Atomic uint64_t batches_lost, root_ends_lost, tables_lost;
} vv_writer;

/* False: no memory. */
VV_MUST_CHECK bool vv_writer_init(vv_writer *w, vv_wstore *store, vv_decoder *d, _Atomic(varve_engine *) *engines,
                                  const char *version, size_t segment_target, size_t objects_target);
void vv_writer_done(vv_writer *w);

/* The session ends: what was not published by now is counted as lost. */
void vv_writer_abandon(vv_writer *w);

/* An execution has ended: it leaves its slot, and what it still has waits, as small as may be. */
void vv_writer_hand_off(vv_writer *w, vv_exec *x);
/* Whether a cycle would write anything. */
bool vv_writer_has_work(const vv_writer *w);
/* How much it would write: groups, and meta records. */
void vv_writer_pending(const vv_writer *w, uint64_t *ret_groups, uint64_t *ret_meta);
/* Whether so much is pending that a cycle should not wait for its time. */
bool vv_writer_is_full(const vv_writer *w);
/* One cycle. True where all that was pending is committed. */
bool vv_writer_cycle(vv_writer *w);
