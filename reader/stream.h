/* Inside of vv_store: opening one stream. */
#pragma once

#include "reader/meta_index.h"

struct vv_stream_core {
    unsigned refs; /* atomic */
    vv_meta_index *index;
    vv_seg_list data;
    vv_range *data_bad;
};

/*
 * Fills *ret. former is the same stream in an earlier look, or NULL; change says what may be different since (NULL:
 * everything). A stream that can't be opened is marked failed; only NOMEM is returned.
 */
VV_MUST_CHECK vv_code vv_stream_open(vv_stream *ret, vv_source *source, const vv_euid *euid, const vv_stream *former,
                                     const vv_stream_change *change, vv_error *err);
/* One more holder of what a stream's pointers lead to. */
vv_stream vv_stream_share(const vv_stream *s);
void vv_stream_done(vv_stream *s);
/* Memory of what its pointers lead to, and those of another look at it (may be NULL) do not: about. */
size_t vv_stream_bytes(const vv_stream *s, const vv_stream *other);
