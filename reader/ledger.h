/*
 * What somebody remembers of segment files that were verified before, perhaps by a process that has ended. A source
 * that has a ledger (vv_source_set_ledger) lets its segments be verified once: a file whose identity is the remembered
 * one is not hashed again, and a data segment's bytes are not even read.
 *
 * Nothing is believed that could be checked for less than it saves: group offsets are checked against the file's size,
 * and what lies at an offset is decoded and compared when it is used. All calls may come from any thread.
 */
#pragma once

#include "format/segment.h"
#include "reader/source.h"

/* One verified file. Group i of a data segment lies in off[i] .. off[i + 1] (group_count + 1 of them) and key[i] is the
 * low half of its root's thread number; other planes have none. */
typedef struct {
    uint64_t sequence;
    vv_file_ident ident;
    uint32_t group_count;
    const uint32_t *key;
    uint32_t *off; /* of rows that were recalled: malloc, and key lies behind its offsets */
} vv_seg_row;

typedef struct {
    vv_seg_row *rows; /* ascending by sequence, each once */
    size_t count;
} vv_seg_rows;
void vv_seg_rows_done(vv_seg_rows *r); /* accepts a zeroed one; frees off where it is not NULL */

/* The first member of whatever implements it. */
typedef struct vv_seg_ledger vv_seg_ledger;
struct vv_seg_ledger {
    /* All that is remembered of a plane. */
    void (*recall)(vv_seg_ledger *l, const vv_euid *euid, vv_plane plane, vv_seg_rows *ret);
    /* A file was verified. The row is only read during the call. */
    void (*keep)(vv_seg_ledger *l, const vv_euid *euid, vv_plane plane, const vv_seg_row *row);
    /* What was remembered of this file is not so, or the file has gone. */
    void (*forget)(vv_seg_ledger *l, const vv_euid *euid, vv_plane plane, uint64_t sequence);
};
