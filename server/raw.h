/*
 * The bodies of values as they are stored: a range of one, as an attachment, in bounded memory (docs/http-api.md).
 *
 * A ledger remembers which objects were verified, and by which file, so that a client that reads a body range by range,
 * or asks whether it has changed, does not make the server hash it each time.
 */
#pragma once

#include "server/problem.h"

typedef struct vv_ledger vv_ledger;

vv_ledger *vv_ledger_new(void); /* NULL without memory. Any thread may use it */
void vv_ledger_free(vv_ledger *l);

/*
 * Answers GET or HEAD of the body that q->id names, with 200, 206, 304, 416, or 409 where the object can't be given
 * out. Errors (ARG, NOTFOUND, NOMEM) are the caller's to answer.
 */
VV_MUST_CHECK vv_code vv_raw_respond(vv_response *rs, const vv_request *rq, vv_query *q, vv_ledger *ledger,
                                     vv_error *err);
