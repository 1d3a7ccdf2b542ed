/*
 * Bytes of the store as they lie there (docs/http-api.md): bodies of values, once they are verified, and segment files,
 * whatever they hold. What was hashed once is remembered by its file (views/sums.h).
 */
#pragma once

#include "server/file_body.h"
#include "server/problem.h"

/*
 * Answers GET or HEAD of what the query names, with 200, 206, 304, 416, or 409 where it can't be given out. Errors
 * (ARG, NOTFOUND, NOMEM) are the caller's to answer.
 */
typedef vv_code vv_raw(vv_response *rs, const vv_request *rq, vv_query *q, vv_error *err);
vv_raw vv_raw_value, vv_raw_segment;
