/*
 * Segment files of a stream's plane (docs/http-api.md): which are there and in what state, as of a look; and the digest
 * of one as it lies on disk.
 */
#pragma once

#include "reader/segments.h"
#include "views/listing.h"

/* One plane of one stream. */
typedef struct {
    vv_euid euid;
    vv_plane plane;
    const vv_stream *stream;
    const vv_seg_list *list; /* of the look */
} vv_plane_found;

/* The plane that q->id and q->sub name: ARG, NOTFOUND. */
VV_MUST_CHECK vv_code vv_query_plane(vv_query *q, vv_plane_found *ret, vv_error *err);

/*
 * Opens the segment file that q->id, q->sub and q->third name, whatever it holds, and whether the look knows it or not:
 * ARG, NOTFOUND, IO, CORRUPT (no regular file). name is what it is called to who keeps it, path where it lies.
 */
enum { VV_SEGMENT_SAVED_NAME = 33 + VV_SEGMENT_NAME };
VV_MUST_CHECK vv_code vv_query_segment(vv_query *q, vv_open_file *ret, char name[VV_SEGMENT_SAVED_NAME], vv_error *err);

/* The SHA-256 of a whole file that was just opened, in bounded memory; remembered. IO; CORRUPT where it shrank. */
VV_MUST_CHECK vv_code vv_file_sum(vv_library *l, const vv_open_file *file, uint8_t sum[VV_SHA256_BYTES], vv_error *err);

/* A segment, or a run of sequences that have no file below one that has. */
typedef struct {
    uint64_t first, last;
    size_t at;    /* in the list */
    bool missing; /* it is in none */
} vv_segment_row;

typedef struct {
    vv_plane_found found;
    vv_page page;
    vv_segment_row *rows; /* page.count of them, ascending */
} vv_segment_rows;

/* Parameters after, limit and cursor. */
VV_MUST_CHECK vv_code vv_segment_rows_make(vv_segment_rows *ret, vv_query *q, vv_error *err);
void vv_segment_rows_done(vv_segment_rows *r); /* accepts a zeroed one */

/* What is told of a row. */
typedef struct {
    const char *state; /* "good" "corrupt" "unreadable" "missing" */
    const char *error; /* an error name, or NULL */
    bool has_file;     /* of a file that could be read, the next two */
    uint64_t bytes;
    uint8_t sum[VV_SHA256_BYTES];
    bool has_count;    /* of a good one: records, or groups of a data segment */
    uint64_t count;
} vv_segment_facts;

/* Reads the file through, where its digest is not known. NOMEM is returned. */
VV_MUST_CHECK vv_code vv_segment_facts_of(vv_segment_facts *ret, vv_library *l, const vv_look *look,
                                          const vv_plane_found *found, const vv_segment_row *row, vv_error *err);

/* The numbers of a plane: highest sequence up to which none is missing or bad, and the highest one. */
void vv_plane_waters(const vv_plane_found *f, uint64_t *ret_contiguous, uint64_t *ret_highest);
