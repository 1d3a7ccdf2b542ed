/*
 * A store as the views see it over time: the present look at it, some former ones, and the profiles that were loaded,
 * kept up to a number of bytes.
 *
 * A vv_look is one set of high waters: whoever holds it gets the same numbers however the store grows. Profiles and
 * digests are shared between looks where nothing that they depend on has changed, and loaded once however many
 * threads ask. All calls may come from any thread; what is handed out is released by its own call.
 */
#pragma once

#include "index/index.h"
#include "views/digest.h"
#include "views/order.h"
#include "views/sums.h"

typedef struct vv_library vv_library;

typedef struct {
    const vv_store *store;
    char generation[65]; /* in hex; it is the as_of token too */
} vv_look;

/*
 * arg names a store as vv_store_path_of takes it (NULL: the resolver's); it need not exist yet, and is resolved anew
 * until it does. max_bytes bounds what is loaded, by all threads together: what nobody uses is given up, oldest use
 * first, and who would exceed it all the same gets LIMIT. poll_ns is the age up to which a look counts as present where
 * changes are not told, 0 = look at each call.
 */
VV_MUST_CHECK vv_code vv_library_open(vv_library **ret, const char *arg, size_t max_bytes, uint64_t poll_ns,
                                      vv_error *err);
/*
 * Lets the library use an index of the store, where that is a directory: before the first look. o is copied, and what
 * it points to outlives the library. Answers are the same with and without.
 */
VV_MUST_CHECK vv_code vv_library_use_index(vv_library *l, const vv_index_options *o, vv_error *err);
/* What it loads comes out of this; so does what is made of several executions. It lives as long as the library. */
vv_budget *vv_library_budget(vv_library *l);
/*
 * Lets the library watch the store, so that a look is taken only when something may have changed (reader/watch.h):
 * before the first look. notice (may be NULL) is told each look that becomes the present one, NULL where there is no
 * store any more: in order, by the thread that took the look. It must not call vv_library_look; it may hold the look.
 */
typedef void vv_library_notice(void *state, const vv_look *look);
VV_MUST_CHECK vv_code vv_library_watch(vv_library *l, vv_library_notice *notice, void *state, vv_error *err);
/* Readable while the store may have changed; -1 where that is never told. */
int vv_library_watch_fd(const vv_library *l);
/* When (CLOCK_MONOTONIC) a look should be taken although nothing is told. */
uint64_t vv_library_due_ns(const vv_library *l);
void vv_library_close(vv_library *l); /* after everything handed out has been released */

/* The present look. Errors: NOTFOUND while there is no store; others where it can't be read. */
VV_MUST_CHECK vv_code vv_library_look(vv_library *l, const vv_look **ret, vv_error *err);
/*
 * The look of an as_of token, one of the last that this process took. NOTFOUND named "LookGone" where it is not at
 * hand.
 */
VV_MUST_CHECK vv_code vv_library_look_at(vv_library *l, vv_str as_of, const vv_look **ret, vv_error *err);
/* One more holder of a look that the caller holds. */
const vv_look *vv_look_hold(vv_library *l, const vv_look *look);
void vv_look_release(vv_library *l, const vv_look *look);

/*
 * The executions of a look, for its holder; given back by vv_order_unref, before the look. It is made once for each of
 * the looks that were asked last. NOMEM.
 */
VV_MUST_CHECK vv_code vv_library_order(vv_library *l, const vv_look *look, const vv_order **ret, vv_error *err);

/* An execution loaded as of a look. */
VV_MUST_CHECK vv_code vv_library_profile(vv_library *l, const vv_look *look, const vv_stream *stream,
                                         const vv_execution *execution, const vv_profile **ret, vv_error *err);
void vv_profile_release(vv_library *l, const vv_profile *p);

/* Its digest, without loading it where the digest is still known. */
VV_MUST_CHECK vv_code vv_library_digest(vv_library *l, const vv_look *look, const vv_stream *stream,
                                        const vv_execution *execution, const vv_digest **ret, vv_error *err);
void vv_digest_release(vv_library *l, const vv_digest *d);

/* What is remembered of the digests of files of this library's stores. */
vv_sums *vv_library_sums(vv_library *l);

/* Nanoseconds that this thread has spent loading, or waiting for others to load; reset starts anew. */
uint64_t vv_library_load_ns(bool reset);
