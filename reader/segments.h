/*
 * The segment files of one plane of one stream, each verified once: checksum, header, and every record or group header
 * walked. Where the source has a ledger, once for all processes (reader/ledger.h).
 *
 * What was learnt of a file is shared between successive looks at the store (reference counted, immutable), so that a
 * file is read again only where its size, mtime or inode changed. A data segment keeps where its groups begin, so that
 * an execution is loaded by reading its own groups and no neighbour's.
 */
#pragma once

#include "format/health_plane.h"
#include "reader/changes.h"
#include "reader/segment_read.h"

typedef enum {
    VV_SEG_OK,
    VV_SEG_CORRUPT,    /* does not decode: why says how */
    VV_SEG_UNREADABLE, /* no regular file, or the system refused */
} vv_seg_state;

/* There is one of them for each file of a store, so it is kept small. */
typedef struct {
    unsigned refs; /* atomic */
    uint8_t state; /* vv_seg_state */
    bool keys_ascend;
    bool recalled; /* the groups are a ledger's word: not read by this process */
    bool open_end; /* its one group ends at the file's seal: off[1] is not known any more */
    uint32_t group_count;
    const char *why; /* literal */
    uint64_t sequence;
    uint32_t mark;    /* tells the file, as good as surely, from another one of the same name */
    int64_t mtime_ns; /* 0: not known any more */
    union {
        vv_blob bytes;   /* of a meta or health segment: executions hold views into them */
        uint32_t one[3]; /* of a data segment of one group: what off leads to */
    };
    /*
     * A data segment's groups: group i lies in off[i] .. off[i + 1]; behind those numbers stands a key each, the low
     * half of its thread number (vv_seg_keys). NULL of other segments.
     */
    uint32_t *off;
} vv_seg;

static inline const uint32_t *vv_seg_keys(const vv_seg *s)
{
    return s->off + s->group_count + 1;
}

/*
 * Segments that have a file, ascending by sequence. A list that goes on where its former one ended shares its memory:
 * what only grows costs no more than what is new, and good data segments take four bytes each, or their groups'.
 * Lists that follow each other are made by one thread at a time, and may be read by any. A zeroed one is empty.
 */
typedef struct {
    struct vv_seg_array *array;
    size_t count;
    size_t entries;   /* of the array: segments, or packs of them */
    int64_t mtime_ns; /* of the newest segment's file; 0: not known any more */
} vv_seg_list;

/* Segment i < count: the list's, or in room; as long as both are there. */
const vv_seg *vv_seg_at(const vv_seg_list *l, size_t i, vv_seg *room);

/* Segments of successive sequences and the same state from i on: one at least, and as many as cost one step. */
typedef struct {
    uint64_t first;
    size_t count;
    vv_seg_state state;
} vv_seg_run;
vv_seg_run vv_seg_run_at(const vv_seg_list *l, size_t i);

/* Room for "streams/<32 hex>/meta/<segment name>". */
enum { VV_STREAM_PATH = 96 };
void vv_stream_dir(char out[VV_STREAM_PATH], const vv_euid *euid);
void vv_plane_path(char out[VV_STREAM_PATH], const vv_euid *euid, vv_plane plane);
void vv_segment_path(char out[VV_STREAM_PATH], const vv_euid *euid, vv_plane plane, uint64_t sequence);

/*
 * Lists a plane's segments by name and verifies those that former (may be NULL) does not know. A missing directory is
 * an empty plane. Fails where the directory can't be listed; a bad file is a state, not a failure.
 */
VV_MUST_CHECK vv_code vv_seg_list_load(vv_seg_list *ret, vv_source *source, const vv_euid *euid, vv_plane plane,
                                       const vv_seg_list *former, vv_error *err);
/* The same where only the named segments may have changed since former (not NULL): the others are shared unseen. */
VV_MUST_CHECK vv_code vv_seg_list_update(vv_seg_list *ret, vv_source *source, const vv_euid *euid, vv_plane plane,
                                         const vv_seg_list *former, const vv_plane_change *change, vv_error *err);
void vv_seg_list_done(vv_seg_list *l); /* accepts a zeroed list */
/* Memory that it holds and the former one (may be zeroed) does not; about. */
size_t vv_seg_list_bytes(const vv_seg_list *l, const vv_seg_list *former);
bool vv_seg_list_same(const vv_seg_list *a, const vv_seg_list *b);
/* Does it begin with all that the former one has? */
bool vv_seg_list_begins(const vv_seg_list *l, const vv_seg_list *former);
/*
 * A number that differs, as good as surely, between two looks where any file of these sequences came, went or became
 * another one, or is found good or bad where it was not.
 */
uint64_t vv_seg_list_stamp(const vv_seg_list *l, uint64_t first, uint64_t last);
/* Index of the first segment with at least this sequence; count where there is none. */
size_t vv_seg_list_from(const vv_seg_list *l, uint64_t sequence);

/*
 * The group of root in a verified data segment; *ret_found false where it has none. The group's bytes are in buf until
 * its next use. Errors: NOTFOUND (the file has gone), IO, CORRUPT (it changed under us), LIMIT (a group of more than
 * max bytes), NOMEM.
 */
VV_MUST_CHECK vv_code vv_seg_group(vv_source *source, const vv_euid *euid, const vv_seg *seg, const vv_thread_ref *root,
                                   size_t max, vv_group_buffer *buf, vv_group *ret, bool *ret_found, vv_error *err);

/* Calls fn with the root of each group in order; false from it is NOMEM. Other errors as vv_seg_group. */
typedef bool vv_root_fn(void *state, const vv_thread_ref *root);
VV_MUST_CHECK vv_code vv_seg_roots(vv_source *source, const vv_euid *euid, const vv_seg *seg, vv_root_fn *fn,
                                   void *state, vv_error *err);
