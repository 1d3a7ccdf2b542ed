/*
 * Captured values by their content ids (docs/http-api.md): what is stored of one, decoded within bounds, and its body.
 *
 * A value is content, and the same in every state of the store; whether its object is there is not.
 */
#pragma once

#include "format/value_path.h"
#include "reader/object.h"
#include "views/executions.h"

enum { VV_VALUE_BYTES = 64 * 1024, VV_VALUE_BYTES_MAX = 4 * 1024 * 1024 };
enum { VV_VALUE_LEVELS = 32, VV_VALUE_LEVELS_MAX = 64, VV_VALUE_USES = 100, VV_VALUE_USES_MAX = 1000 };
/* Larger bodies are neither looked into nor given out. */
#define VV_VALUE_BODY_MAX ((uint64_t)64 << 20)

/* What the value can't be shown for. */
typedef struct {
    const char *word;  /* "available" "missing" "damaged" "too_large" "unreadable" "other_codec" "malformed" */
    const char *fault; /* an error name, or NULL */
} vv_value_status;
vv_value_status vv_value_status_of(const vv_object *o);

/* The content id that q->id is. ARG. */
VV_MUST_CHECK vv_code vv_query_cid(vv_query *q, vv_cid *ret, vv_error *err);
/* The object that q->id names, opened but not verified. ARG where it is no content id; NOTFOUND where it is missing. */
VV_MUST_CHECK vv_code vv_query_object(vv_query *q, vv_object *ret, vv_error *err);

/* What the object's file is now, for tags of answers about it: cheap, nothing is opened. False where it has none. */
enum { VV_VALUE_STAMP = 128 };
bool vv_value_stamp(vv_query *q, char out[VV_VALUE_STAMP]);

/* A value with its body, and the place in it that the parameter "path" leads to. */
typedef struct {
    vv_object object;
    vv_value_status status;
    uint8_t *body; /* of an available or malformed one; owned */
    bool is_large; /* others who want a large one wait for this one's end */
    vv_value_place place;
} vv_value_loaded;

/*
 * NOTFOUND where the path leads nowhere (q->reach), ARG where it is none. Loading large bodies waits for others who do.
 * Every other state of the object is an answer.
 */
VV_MUST_CHECK vv_code vv_value_load(vv_query *q, vv_value_loaded *ret, vv_error *err);
void vv_value_loaded_done(vv_value_loaded *v); /* accepts a zeroed one */

/* The parameters max_bytes and max_depth, or their defaults. */
typedef struct {
    uint64_t bytes, depth;
} vv_value_bounds;
VV_MUST_CHECK vv_code vv_query_bounds(vv_query *q, vv_value_bounds *ret, vv_error *err);

/* The answer about a loaded value. One that turns out to be malformed while it is shown gets that status. */
VV_MUST_CHECK vv_code vv_value_json(vv_json *j, const vv_query *q, vv_value_loaded *v, const vv_value_bounds *b,
                                    vv_error *err);
/* The answer /values/{id}: path, max_bytes, max_depth. */
VV_MUST_CHECK vv_code vv_view_value(vv_json *j, vv_query *q, vv_error *err);
/* One place that a value was captured at. Views into the fold. */
typedef struct {
    const char *role; /* "input" "output" "error" "log_context" "log_data" "scope_context" */
    const vv_call_ref *call;       /* NULL: of none */
    const vv_capture_id *capture;  /* of an error, else NULL */
    bool has_log, has_function;
    uint64_t log;                  /* its number in the execution, from 0 */
    uint32_t function;
    const vv_context_ref *context; /* NULL: unknown */
    const vv_value_state *value;
} vv_value_use;
typedef void vv_value_use_fn(void *state, const vv_found *f, const vv_profile *p, const vv_value_use *u);
/*
 * Tells of a page of them in their order, and collects the evidence of all executions that were searched for it (the
 * caller's to free, on failure too). *ret_next: the next page's cursor, empty on the last one.
 */
VV_MUST_CHECK vv_code vv_value_uses(vv_query *q, vv_value_use_fn *tell, void *state, vv_evidence *ret_evidence,
                                    char ret_next[VV_CURSOR_TEXT], vv_error *err);
/*
 * /values/{id}/uses: limit, cursor. Whether the object is there or not. Executions are looked at one after the other,
 * newest first, so memory goes by one execution and one page.
 */
VV_MUST_CHECK vv_code vv_view_value_uses(vv_json *j, vv_query *q, vv_error *err);
