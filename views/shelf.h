/*
 * Executions that are loaded: profiles, and the digests of many more, within one sum of memory. Each is loaded once
 * however many threads ask for it; what nobody uses is given up, oldest use first. One that runs on is kept by reading
 * what is new. A library has one; all calls may come from any thread.
 */
#pragma once

#include "index/index.h"
#include "views/digest.h"

typedef struct vv_shelf vv_shelf;

/* max_bytes bounds all that is loaded, or being loaded: who would exceed it gets LIMIT. NULL without memory. */
vv_shelf *vv_shelf_new(size_t max_bytes);
void vv_shelf_free(vv_shelf *sh); /* accepts NULL; after everything handed out has been released */
vv_budget *vv_shelf_budget(vv_shelf *sh);

/* An execution of a store, as it stands in stream. */
typedef struct {
    const vv_store *store;
    vv_index *index; /* the store's, or NULL */
    const vv_stream *stream;
    const vv_execution *execution;
} vv_shelf_item;

/* What is handed out is immutable, and held until it is released. NOMEM, LIMIT. */
VV_MUST_CHECK vv_code vv_shelf_profile(vv_shelf *sh, const vv_shelf_item *x, const vv_profile **ret, vv_error *err);
/* The digest, without loading the execution where it is still known, here or to the index. */
VV_MUST_CHECK vv_code vv_shelf_digest(vv_shelf *sh, const vv_shelf_item *x, const vv_digest **ret, vv_error *err);
/* Of a profile or digest: its holder. */
void vv_shelf_release(vv_shelf *sh, void *holder);

/* Nanoseconds that this thread has spent loading, or waiting for others to load; reset starts anew. */
uint64_t vv_shelf_load_ns(bool reset);
