/*
 * The index: a SQLite database beside no store and part of none, that remembers between processes which segments were
 * verified, where their groups begin, and what the list says of executions (docs/index.md).
 *
 * It is a cache. Whatever is wrong with it (missing, damaged, another version's, locked, on a full or read-only disk)
 * costs time and never an answer: nothing here fails but for memory. One process writes it at a time; others read.
 * All calls may come from any thread.
 */
#pragma once

#include "base/file.h"
#include "format/ids.h"
#include "reader/ledger.h"

typedef struct vv_index vv_index;

/* A database beyond this grows no further. */
#define VV_INDEX_MAX_BYTES ((uint64_t)2 << 30)

typedef struct {
    /* NULL: in the cache directory, named by the store's identity. ":memory:": nowhere. */
    const char *path;
    uint64_t max_bytes; /* 0: VV_INDEX_MAX_BYTES */
    /* Told what a user may want to know, one line without its end; NULL: nobody. Any thread, also during open. */
    void (*say)(void *state, const char *line);
    void *say_state;
} vv_index_options;

/* For the store of a live source, which stays open as long as the index. VV_ERR_NOMEM only. */
VV_MUST_CHECK vv_code vv_index_open(vv_index **ret, vv_source *source, const vv_index_options *o, vv_error *err);
void vv_index_close(vv_index *x); /* after what was told is written; accepts NULL */

/* For vv_source_set_ledger; as long as the index is open. */
vv_seg_ledger *vv_index_ledger(vv_index *x);

/* Where it is, or NULL where it was of no use from the start. */
const char *vv_index_path(const vv_index *x);
/* Is this process the one that writes it? */
bool vv_index_writes(vv_index *x);

/*
 * What was kept of an execution under that key, which stands for all that it depends on; false where nothing. *ret is
 * the caller's.
 */
bool vv_index_summary(vv_index *x, const vv_thread_ref *root, const uint8_t key[32], vv_blob *ret);
/* Takes the place of what was kept of the execution. The bytes are copied; at most VV_SUMMARY_MAX. */
enum { VV_SUMMARY_MAX = 1 << 20 };
void vv_index_keep_summary(vv_index *x, const vv_thread_ref *root, const uint8_t key[32], const void *p, size_t n);

/* These are all the streams there are: others are forgotten. Ids ascend. */
void vv_index_retain(vv_index *x, const vv_euid *ids, size_t count);

/* Waits until what was told so far is written, or given up. */
void vv_index_flush(vv_index *x);
