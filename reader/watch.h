/*
 * Knows whether a store may have changed since it was last looked at, without touching the disk: inotify on its
 * directories, and behind it a slow poll, for what no notification tells (changes made on another machine, say). Where
 * there are fewer watches than directories, or the file system tells nothing, the poll is quicker.
 *
 *     vv_watch_new -> vv_watch_store (before the first look) -> { vv_watch_take -> look -> vv_watch_looked }
 *
 * Directories are watched before they are listed, so that what comes in between is seen twice rather than never. A
 * writer's death shows as its lock file being closed, a moment before the lock is let go: a stream that seems alive
 * then is probed again, for half a second.
 *
 * Memory is bounded by the number of watches and of changed streams; where more happens than fits, everything counts as
 * changed. Owned by one thread at a time; now_ns is of CLOCK_MONOTONIC.
 */
#pragma once

#include "reader/changes.h"
#include "reader/store.h"

typedef struct vv_watch vv_watch;

enum { VV_WATCHES = 1 << 17 };
#define VV_POLL_SLOW_NS UINT64_C(2000000000)
#define VV_POLL_QUICK_NS UINT64_C(100000000)
#define VV_POLL_PLACE_NS UINT64_C(1000000000)

/* At most max_watches directories; 0: no notification at all. Errors: NOMEM. */
VV_MUST_CHECK vv_code vv_watch_new(vv_watch **ret, unsigned max_watches, vv_error *err);
void vv_watch_free(vv_watch *w); /* accepts NULL */

/* Readable (poll) while something has happened that vv_watch_take has not seen; -1 where nothing is ever told. */
int vv_watch_fd(const vv_watch *w);
/* Everything is watched: what vv_watch_take does not name has not changed, but for what only the poll can find. */
bool vv_watch_is_complete(const vv_watch *w);

/* From now on this store is watched, which must stay open; everything of it counts as changed. */
void vv_watch_store(vv_watch *w, vv_source *source, uint64_t now_ns);
/*
 * From now on the coming of a store at path is watched, in the nearest directory above that is there. True where that
 * is another one than before, so that it is worth looking again.
 */
bool vv_watch_place(vv_watch *w, const char *path, uint64_t now_ns);
/* The store is not used any more: nothing is watched. */
void vv_watch_nothing(vv_watch *w);

/* May something have changed that was not taken, or is the poll due? Reads what has happened. */
bool vv_watch_pending(vv_watch *w, uint64_t now_ns);
/* Hands out what may have changed, and forgets it. *ret is the watch's, until the next call. */
void vv_watch_take(vv_watch *w, vv_changes *ret, uint64_t now_ns);
/* A look at what was taken was finished. store: NULL where it failed; then all of it counts as changed still. */
void vv_watch_looked(vv_watch *w, const vv_store *store, uint64_t began_ns, uint64_t now_ns);
/* When a look is worth taking although nothing is told; UINT64_MAX: never. */
uint64_t vv_watch_due_ns(const vv_watch *w);
