/* What a store takes on disk, by kind of file, and what is in it (docs/http-api.md). */
#pragma once

#include "views/query.h"

typedef enum {
    VV_USE_META,
    VV_USE_DATA,
    VV_USE_HEALTH,
    VV_USE_CAS,
    VV_USE_TMP,    /* on its way into the store */
    VV_USE_ORPHAN, /* that nobody reads or will take away: what a dead writer left, and names that are none of ours */
    VV_USE_LEGACY, /* of a format before this one */
    VV_USE_OTHER,  /* locks, the ledger of use, planes that are reserved */
    VV_USES,
} vv_use_kind;
extern const char *const vv_use_words[VV_USES];

typedef struct {
    uint64_t files, bytes;
} vv_use;

/* Segments of a plane by state, as vv_seg_state, and sequences without a file below the highest. */
typedef struct {
    uint64_t good, corrupt, unreadable, missing;
} vv_segment_counts;

typedef struct {
    vv_use use[VV_USES], total;
    uint64_t irregular;       /* names of links, devices and the like, and of directories that can't be read */
    bool has_ledger;          /* the store's own ledger can be read */
    uint64_t ledger, counted; /* bytes by it, and by what is there */
    bool is_settled;          /* no writer is at work: the two must be equal */
    uint64_t streams, alive, unreadable, executions, running;
    uint64_t starting;        /* streams without a segment, of which it is not known whether they are alive */
    vv_segment_counts meta, data;
} vv_store_use;

/* Walks through the whole store. */
VV_MUST_CHECK vv_code vv_store_use_of(vv_store_use *ret, const vv_look *look, vv_error *err);

/* Executions that have data and no entry in the index. */
enum { VV_ORPHANS_SHOWN = 1000 };
typedef struct {
    vv_thread_ref *roots; /* the first of them: by stream, then as they were met */
    size_t count;
    uint64_t total;
} vv_orphans;
/* Reads all data segments' groups. */
VV_MUST_CHECK vv_code vv_orphans_of(vv_orphans *ret, const vv_look *look, vv_error *err);
void vv_orphans_done(vv_orphans *o); /* accepts a zeroed one */
/* /store: scan. */
VV_MUST_CHECK vv_code vv_view_store(vv_json *j, vv_query *q, vv_error *err);
