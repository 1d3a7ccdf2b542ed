/* Streams, one for each recorded process (docs/http-api.md). */
#pragma once

#include "views/query.h"

/* A page of a look's streams: count of them, from first on. */
typedef struct {
    size_t first, count;
    char next[VV_CURSOR_TEXT]; /* empty on the last page */
} vv_stream_page;
VV_MUST_CHECK vv_code vv_stream_page_read(vv_stream_page *ret, vv_query *q, vv_error *err);

/* /streams (limit, cursor) and /streams/{euid}. */
VV_MUST_CHECK vv_code vv_view_streams(vv_json *j, vv_query *q, vv_error *err);
VV_MUST_CHECK vv_code vv_view_stream(vv_json *j, vv_query *q, vv_error *err);
