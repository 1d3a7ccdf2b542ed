/* Inside of vv_store: opening one stream. */
#pragma once

#include "base/map.h"
#include "reader/segments.h"
#include "reader/store.h"

struct vv_stream_core {
    unsigned refs; /* atomic */
    vv_seg_list meta, data, health;
    vv_map by_root; /* root -> index of the execution */
    vv_range *meta_gaps, *meta_bad, *data_bad;
    vv_engine *engines;
    vv_execution *executions;
};

/* A range with more sequences without a file than this is refused (RangeTooLarge). */
enum { VV_MISSING_MAX = 1000000 };

/*
 * Fills *ret. former is the same stream in an earlier look, or NULL; change says what may be different since (NULL:
 * everything). A stream that can't be opened is marked failed; only NOMEM is returned.
 */
VV_MUST_CHECK vv_code vv_stream_open(vv_stream *ret, vv_source *source, const vv_euid *euid, const vv_stream *former,
                                     const vv_stream_change *change, vv_error *err);
/* One more holder of what a stream's pointers lead to. */
vv_stream vv_stream_share(const vv_stream *s);
void vv_stream_done(vv_stream *s);
/* Memory of what its pointers lead to, segments aside: about. */
size_t vv_stream_bytes(const vv_stream *s);
