/*
 * Inside of vv_index: the bytes of rows. Each row ends in a sum over all of it, so that a bit that tipped on disk makes
 * the row void and nothing else.
 */
#pragma once

#include <sqlite3.h>

#include "index/index.h"

enum { VV_ROW_SUM = 16 };

/* The number as SQLite keeps it: two's complement. Sequences beyond INT64_MAX are not kept. */
static inline int64_t vv_row_int(uint64_t v)
{
    return (int64_t)v;
}

void vv_file_row_sum(uint8_t out[VV_ROW_SUM], const vv_euid *euid, vv_plane plane, uint64_t sequence,
                     const vv_file_ident *ident, const uint8_t *groups, size_t n);
void vv_summary_row_sum(uint8_t out[VV_ROW_SUM], const vv_thread_ref *root, const uint8_t key[32], const void *body,
                        size_t n);

/* Offsets and keys of a data segment as bytes; none for other planes. */
static inline size_t vv_groups_size(const vv_seg_row *row)
{
    return row->off ? 8 * (size_t)row->group_count + 4 : 0;
}
void vv_groups_put(uint8_t *out, const vv_seg_row *row);
/* False for bytes that are none, and without memory. */
bool vv_groups_get(vv_seg_row *row, const uint8_t *p, size_t n);
