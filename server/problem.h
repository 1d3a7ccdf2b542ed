/* Errors as application/problem+json (RFC 9457). No captured data and no absolute path go into one. */
#pragma once

#include "server/message.h"

typedef enum {
    VV_PROBLEM_BAD_TARGET,
    VV_PROBLEM_BAD_PARAMETER,
    VV_PROBLEM_UNAUTHORIZED,
    VV_PROBLEM_BAD_ORIGIN,
    VV_PROBLEM_NOT_FOUND,
    VV_PROBLEM_NO_STORE,
    VV_PROBLEM_METHOD,
    VV_PROBLEM_AMBIGUOUS,
    VV_PROBLEM_GONE,
    VV_PROBLEM_MISDIRECTED,
    VV_PROBLEM_BODY,
    VV_PROBLEM_VALUE,
    VV_PROBLEM_SEGMENT,
    VV_PROBLEM_RANGE,
    VV_PROBLEM_INTERNAL,
    VV_PROBLEM_STORE,
    VV_PROBLEM_BUSY,
    VV_PROBLEM_FOLLOWERS,
    VV_PROBLEM_STRANGER,
    VV_PROBLEM_STOPPING,
    VV_PROBLEM_BAD_REQUEST,
} vv_problem_kind;

typedef struct {
    vv_problem_kind kind;
    const char *parameter; /* at fault, or NULL */
    const char *remedy;    /* NULL: the kind's own */
    const char *as_of;     /* with GONE: the present token */
    const vv_thread_ref *matches;
    size_t match_count;
    const char *state;     /* of a value that is not given out, or NULL */
    vv_reach reach;
    char detail[256];
} vv_problem;

/* Sets kind and detail, forgets the rest. */
VV_PRINTF(3, 4) void vv_problem_set(vv_problem *p, vv_problem_kind kind, const char *fmt, ...);

/* The status, the document and its headers into an empty response. */
void vv_problem_respond(vv_response *r, const vv_problem *p);
