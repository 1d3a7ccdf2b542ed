/* GET /api/v1/follow: what a request for it asks, and the response that goes on. */
#pragma once

#include "server/hub.h"
#include "server/message.h"

typedef struct {
    vv_follow_form form;
    vv_str cursor;   /* p NULL: none */
    uint64_t wait_s;
} vv_follow_ask;

/* Errors: ARG, with the parameter named in q. */
VV_MUST_CHECK vv_code vv_follow_check(vv_follow_ask *ret, const vv_request *rq, vv_query *q, vv_error *err);

/*
 * Into a response whose body goes on for as long as the client follows. Errors as vv_follower_new; the response is
 * untouched then.
 */
VV_MUST_CHECK vv_code vv_follow_respond(vv_response *rs, const vv_request *rq, const vv_follow_ask *ask, vv_hub *h,
                                        vv_error *err);
