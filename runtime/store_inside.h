/*
 * The store's parts for each other: opening and closing (store.c), what its files weigh (store_ledger.c), how a file is
 * published (store_publish.c), and objects (store_objects.c). The owner's thread only, but for the latch.
 */
#pragma once

#include <sys/stat.h>
#include <time.h>

#include "runtime/store.h"

enum { VV_STREAM_PATH = 64, VV_FILE_PATH = 128 };

/* Which file it is, and as of when: while all this is the same, so are its bytes. */
typedef struct {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
} vv_file_id;

/* An object that was read whole or written by us, and as which file. */
typedef struct {
    vv_cid cid;
    vv_file_id file;
} vv_known_object;

struct vv_wstore {
    char *root;
    vv_euid euid;
    char stream[VV_STREAM_PATH]; /* streams/<hex>, relative to the root */
    int root_fd, lease_fd, stream_fd, publish_fd;
    uint64_t max_project_bytes, minimum_free_bytes;
    vv_wstore_hooks hooks;
    uint64_t high[VV_PLANES];
    bool patient, waited_in_vain, gave_way_in_vain;
    _Atomic uint64_t lock_timeouts;
    _Atomic int latch;
    _Atomic bool indeterminate;
    /* the indeterminate publication */
    int pending_plane;
    uint64_t pending_sequence;
    char pending_dir[VV_FILE_PATH];
    /* objects: what is known of them (NULL: nothing yet, or no memory), when publish.lock was held for them, and
     * how long it was waited for, ever */
    vv_governor *governor;
    vv_known_object *known;
    bool known_denied;
    uint64_t holds_from_ms, held_until_ms, waited_ns;
    struct vv_wstore *next_open;
};

static inline int vv_at_step(vv_wstore *s, vv_step at)
{
    return s->hooks.step ? s->hooks.step(s->hooks.ctx, at) : 0;
}

static inline vv_published vv_lost(vv_latch why)
{
    return (vv_published){VV_LOST, why, 0};
}

/* store.c */

/* Why a step that failed so lost its file. */
vv_latch vv_latch_of(int os);
/* Closes the latch, unless it is. */
void vv_latch_close(vv_wstore *s, vv_latch why);
/* flock with an end to the waiting: BUSY. */
VV_MUST_CHECK vv_code vv_lock_within(int fd, bool exclusive, unsigned ms, vv_error *err);
/* Whether somebody opens the store and waits for publish.lock. */
bool vv_somebody_opens(int publish_fd);

/* store_ledger.c; all under publish.lock. Where an int is returned it is 0 or an errno. */

/* What the files below the root weigh. A link or special file fails it. */
VV_MUST_CHECK vv_code vv_ledger_scan(vv_wstore *s, uint64_t *ret, vv_error *err);
VV_MUST_CHECK vv_code vv_ledger_read(vv_wstore *s, uint64_t *ret, vv_error *err);
/* The new total, durable. */
VV_MUST_CHECK int vv_ledger_write(vv_wstore *s, uint64_t total);
/* Whether there is room for so much more, by the project's limit and the disk's. */
bool vv_disk_has(vv_wstore *s, uint64_t usage, uint64_t need);
uint64_t vv_disk_free(vv_wstore *s);
VV_MUST_CHECK int vv_write_bytes(vv_wstore *s, int fd, const uint8_t *p, size_t n);
VV_MUST_CHECK int vv_sync_dir(vv_wstore *s, const char *path);

/* store_publish.c */

/* A file to be: up to three pieces, one after the other. */
typedef struct {
    const char *dir, *path; /* relative to the root */
    int plane;              /* -1: an object */
    uint64_t sequence;
    struct {
        const uint8_t *p;
        size_t n;
    } pieces[3];
    size_t n; /* of all */
} vv_publication;

/* publish.lock, held, and what the ledger must learn before it is let go. */
typedef struct {
    uint64_t usage; /* the ledger's total, once it was read, and what came since */
    uint64_t bytes; /* what came since */
    bool read;
} vv_hold;

/* Takes the lock and empties *h. False: *ret says why not. */
VV_MUST_CHECK bool vv_hold_begin(vv_wstore *s, vv_hold *h, vv_published *ret);
/*
 * Puts one file in its place, durably. COMMITTED; LOST, for an object with VV_LATCH_CONFLICT where another file came to
 * that name; INDETERMINATE: the last thing in this hold. *ret_file (may be NULL) is which file it became.
 */
vv_published vv_hold_place(vv_wstore *s, vv_hold *h, const vv_publication *p, vv_file_id *ret_file);
/*
 * Writes the ledger and lets the lock go. False: files were placed and the ledger did not take them: what `last` placed
 * is now indeterminate, and the lock stays held. last may be NULL where none was.
 */
VV_MUST_CHECK bool vv_hold_end(vv_wstore *s, vv_hold *h, const vv_publication *last);

static inline vv_file_id vv_file_id_of(const struct stat *st)
{
    return (vv_file_id){st->st_dev, st->st_ino, st->st_size, st->st_ctim};
}

static inline bool vv_same_file(const vv_file_id *a, const vv_file_id *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* store_objects.c */

void vv_known_objects_done(vv_wstore *s);
