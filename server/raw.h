/*
 * The bodies of values as they are stored: a range of one, as an attachment, in bounded memory (docs/http-api.md). What
 * was verified once is remembered by its file (views/sums.h).
 */
#pragma once

#include "server/problem.h"

/*
 * Answers GET or HEAD of the body that q->id names, with 200, 206, 304, 416, or 409 where the object can't be given
 * out. Errors (ARG, NOTFOUND, NOMEM) are the caller's to answer.
 */
VV_MUST_CHECK vv_code vv_raw_respond(vv_response *rs, const vv_request *rq, vv_query *q, vv_error *err);
