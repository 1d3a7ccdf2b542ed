/*
 * The writer's side of a store: opening, locks, the ledger of bytes, and the publication of files.
 *
 * A publication is that of docs/store.md step by step: file, fsync, rename, fsync of the directory, ledger,
 * fsync of the root. Up to the rename a failure loses the file and nothing else. After it the file may be there for
 * good, so the failure is indeterminate: publish.lock stays held and everything else is blocked until vv_wstore_resolve
 * succeeds. Objects go in batches that hold the lock once and write the ledger once.
 *
 * Owned by one thread at a time, but for vv_wstore_latch and vv_wstore_takes_roots, which any thread may call.
 */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "format/cas.h"
#include "format/segment.h"
#include "runtime/governor.h"

/* The named steps of a publication, in their order. The hook is called before each. */
typedef enum {
    VV_STEP_LOCK,
    VV_STEP_LEDGER_READ,
    VV_STEP_DIRECTORY,
    VV_STEP_CREATE,
    VV_STEP_WRITE,
    VV_STEP_FSYNC_FILE,
    VV_STEP_RENAME,
    VV_STEP_FSYNC_DIRECTORY,
    VV_STEP_LEDGER_WRITE,
    VV_STEP_LEDGER_FSYNC,
    VV_STEP_LEDGER_RENAME,
    VV_STEP_FSYNC_ROOT,
    VV_STEP_UNLOCK,
    VV_STEPS,
} vv_step;
const char *vv_step_name(vv_step s);

/* How the store meets the system; a test puts faults in. The members may be NULL. */
typedef struct {
    int (*step)(void *ctx, vv_step step);                          /* 0, or the errno the step fails with */
    ssize_t (*write)(void *ctx, int fd, const void *p, size_t n);  /* as write(2) */
    uint64_t (*free_bytes)(void *ctx);
    void *ctx;
} vv_wstore_hooks;

/* Why a batch was lost, or a store takes none. */
typedef enum {
    VV_LATCH_OPEN,
    VV_LATCH_DISK,        /* the project's limit, the minimum of free space, ENOSPC */
    VV_LATCH_UNAVAILABLE,
    VV_LATCH_PERMISSION,
    VV_LATCH_CONFLICT,    /* a file of that name is there already */
} vv_latch;

typedef enum { VV_COMMITTED, VV_REUSED, VV_LOST, VV_BLOCKED, VV_INDETERMINATE } vv_outcome;

typedef struct {
    vv_outcome outcome;
    vv_latch reason;    /* of VV_LOST */
    uint64_t sequence; /* of a segment, where committed or indeterminate */
} vv_published;

typedef struct {
    const char *root; /* absolute */
    vv_euid euid;
    uint64_t max_project_bytes, minimum_free_bytes;
    vv_wstore_hooks hooks;
    vv_governor *governor; /* charged for what is remembered of values (Writer, General); NULL: nothing is */
} vv_wstore_options;

typedef struct vv_wstore vv_wstore;

/* Opens (creating what is missing) a stream for writing. Waits at most 5 s for locks. BUSY: the stream is in use. */
VV_MUST_CHECK vv_code vv_wstore_open(vv_wstore **ret, const vv_wstore_options *options, vv_error *err);
/* Releases all locks. NULL is fine. */
void vv_wstore_close(vv_wstore *s);
/* In a forked child: closes the descriptors only, so that the parent's locks end with the parent. */
void vv_wstore_forked(vv_wstore *s);

/*
 * How long a publication waits for publish.lock before its outcome is BLOCKED: a quarter of a second, hardly at all
 * where the last one waited in vain, 2 s while patient (for a flush). Others' processes may be stopped while they hold
 * it. Before that, but not while patient, it lets those go first who open the store, for at most 5 s. Each wait in
 * vain is counted; any thread may ask for the count.
 */
void vv_wstore_be_patient(vv_wstore *s, bool patient);
uint64_t vv_wstore_lock_timeouts(const vv_wstore *s);

/* The latch: once not open it stays so until the store is closed. Any thread. */
vv_latch vv_wstore_latch(const vv_wstore *s);
/* Whether the outcome of a publication is unknown, so that nothing else is published. One load; any thread. */
bool vv_wstore_is_indeterminate(const vv_wstore *s);

/* Whether new executions make sense: the latch is open and nothing is indeterminate. Two loads; any thread. */
bool vv_wstore_takes_roots(const vv_wstore *s);

/* Whether n bytes are within the limits just now: a look without the lock, of an answer that may be old at once. */
bool vv_wstore_fits(vv_wstore *s, uint64_t n);
uint64_t vv_wstore_high(const vv_wstore *s, vv_plane p);

/*
 * The sequence a segment must carry, and its publication: whole encoded files. terminal lets a meta batch with
 * RootEnded records try through the latch. Outcomes: COMMITTED, LOST, BLOCKED, INDETERMINATE.
 */
uint64_t vv_wstore_next(const vv_wstore *s, vv_plane p);
vv_published vv_wstore_publish(vv_wstore *s, vv_plane p, const uint8_t *file, size_t n, bool terminal);

enum { VV_OBJECTS_IN_A_HOLD = 64 }; /* so many may one hold of publish.lock settle */

/* A CAS object to be: its body is written from where it is. */
typedef struct {
    vv_cid cid; /* of the codec and body: vv_cid_of */
    uint16_t codec;
    const uint8_t *body;
    size_t len;
} vv_wstore_object;

/*
 * Publishes n objects in their order; ret[i] is what became of each. Also REUSED: one that is there is compared whole,
 * without publish.lock, and must be the same file (device, inode, size, time of change) under it. Where a value was
 * read or written by this session already and its file is still that one, it is not read again. A different file of its
 * name is LOST with VV_LATCH_CONFLICT, and stays as it is. What is lost does not keep the others from being tried.
 *
 * The lock is held for a part at a time: so many objects, bytes and ms, so that others get their turn. The ledger is
 * written at the end of each.
 *
 * False: blocked, or one is INDETERMINATE; those that were not settled before are BLOCKED.
 */
bool vv_wstore_publish_objects(vv_wstore *s, const vv_wstore_object *objects, size_t n, vv_published *ret);
/* The same for one. */
vv_published vv_wstore_publish_object(vv_wstore *s, const vv_wstore_object *object);
/* How long objects have waited for their turn and the lock, ever: time that says nothing of the disk. */
uint64_t vv_wstore_waited_ns(const vv_wstore *s);

/* True where no publication is indeterminate (any more). *ret_plane (a vv_plane, -1 for an object) and
 * *ret_sequence say what was committed by this call; *ret_settled that something was. */
bool vv_wstore_resolve(vv_wstore *s, bool *ret_settled, int *ret_plane, uint64_t *ret_sequence);
