/*
 * What the meta and the health plane of a stream say: its engines and executions. Looks between which both planes and
 * the writer are the same share one index, and one that finds only new executions and ends goes on from the former's.
 */
#pragma once

#include "reader/execution_list.h"

struct vv_engine_list;

typedef struct {
    unsigned refs; /* atomic */
    vv_seg_list meta, health;
    vv_range *bad; /* of meta: runs of sequences, as vv_extent has them */
    size_t bad_count;
    struct vv_engine_list *engines;
    vv_execution_list executions;
    vv_health_record *waiting; /* terms whose end has not come, as they came */
    size_t waiting_count;
} vv_meta_index;

/* Empty, for its lists to be filled; with one holder. NULL without memory. */
vv_meta_index *vv_meta_index_new(void);
vv_meta_index *vv_meta_index_ref(vv_meta_index *x);
void vv_meta_index_unref(vv_meta_index *x); /* accepts NULL */

/*
 * Makes x of its lists, and fills what s says of the planes; s->alive and s->unprobed are set. former is the stream in
 * an earlier look, known its index; or NULL. Errors: NOMEM; else what makes the stream fail: Io,
 * MetaDuplicateRootStarted, MetaDuplicateRootEnded, RangeTooLarge.
 */
VV_MUST_CHECK vv_code vv_meta_index_make(vv_meta_index *x, vv_stream *s, const vv_stream *former,
                                         const vv_meta_index *known, vv_error *err);

/* Memory that it holds and another one of the same stream (may be NULL) does not; about. */
size_t vv_meta_index_bytes(const vv_meta_index *x, const vv_meta_index *other);
