/*
 * Reads segment files whole and verifies their checksums, two files at a time: the processor hashes two messages in
 * little more than the time of one.
 */
#pragma once

#include "format/segment.h"
#include "reader/source.h"

/* Files beyond this are corrupt by decree: offsets are kept in 32 bits. */
#define VV_SEGMENT_FILE_MAX ((uint64_t)UINT32_MAX)

/* A buffer that grows to the largest piece read. */
typedef struct {
    uint8_t *p;
    size_t cap;
} vv_group_buffer;
/* Room for n bytes. False: no memory, and the buffer is as before. */
bool vv_group_buffer_room(vv_group_buffer *b, size_t n);
void vv_group_buffer_done(vv_group_buffer *b);

/* A file that is being read. */
typedef struct {
    vv_open_file file;
    vv_file_ident ident; /* where it could be opened, else zero */
    vv_code rc;          /* what went wrong first, or VV_OK */
    vv_error fault;      /* says it */
    bool trusted;        /* the checksum is verified here: not of a file that is too small to have one */
    bool is_known;       /* set by the caller: it was verified before, and is only read */
    int64_t began_ns;    /* the clock that stamps files, before the file was opened */
} vv_segment_reading;

/*
 * May a segment be as large as the file? Else CORRUPT named FileTooLarge, or InvalidChecksum where a large file's
 * header states another length: a sparse giant is refused by its first bytes.
 */
VV_MUST_CHECK vv_code vv_segment_check_size(const vv_open_file *f, vv_plane plane, vv_error *err);
/* Opens a file. Errors: NOTFOUND, IO; CORRUPT as vv_segment_check_size. */
void vv_segment_open(vv_segment_reading *r, vv_source *source, const char *path, vv_plane plane);
/* Can the two be read at a time? Not where one of them failed, is known or is too large to be held beside another. */
bool vv_segment_pairs(const vv_segment_reading *a, const vv_segment_reading *b);
/*
 * Reads an opened file whole into a buffer, or two that pair (b not NULL) into one each, and closes them. Errors:
 * NOMEM, IO; CORRUPT named InvalidChecksum, or Truncated (the file shrank).
 */
void vv_segment_read(vv_segment_reading *a, vv_group_buffer *a_buf, vv_segment_reading *b, vv_group_buffer *b_buf);
