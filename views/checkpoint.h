/*
 * How far the recording of an execution has come (docs/http-api.md): what is committed, and what its process still
 * keeps, as far as committed files tell.
 */
#pragma once

#include "views/facts.h"

typedef struct {
    const char *state; /* "running" "ended" "abandoned" */
    bool known;        /* of what is not committed: false where it has ended, or the fold failed */
    __int128 open_calls;
    uint64_t open_spans, open_threads;
    vv_u128 spans;     /* selected, and not there */
    uint64_t values;   /* selected of what has happened, and not there */
    uint64_t errors;   /* named by spans that they ended, and not there */
    uint64_t contexts; /* counted in, and not defined */
    bool has_written;
    uint64_t written_unix_ns; /* the newest segment file's time */
} vv_checkpoint;

vv_checkpoint vv_checkpoint_of(vv_source *source, const vv_found *f, const vv_loaded *x);

/* /executions/{id}/checkpoint */
VV_MUST_CHECK vv_code vv_view_checkpoint(vv_json *j, vv_query *q, vv_error *err);
