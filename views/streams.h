/* Streams, one for each recorded process (docs/http-api.md). */
#pragma once

#include "views/query.h"

/* /streams (limit, cursor) and /streams/{euid}. */
VV_MUST_CHECK vv_code vv_view_streams(vv_json *j, vv_query *q, vv_error *err);
VV_MUST_CHECK vv_code vv_view_stream(vv_json *j, vv_query *q, vv_error *err);
