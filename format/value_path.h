/*
 * Paths into captured values (docs/value-json.md): reading one, and walking it into a body.
 *
 *   path := [ "$" ] step*          the first step may be a bare name where there is no "$"
 *   step := "." name | "[" index "]" | "[" quoted "]"
 */
#pragma once

#include "base/bytes.h"

enum { VV_PATH_STEPS = 128 };

typedef struct {
    bool is_index;
    uint64_t index;
    vv_str key; /* in the path's own copy */
    size_t end; /* in the text: behind the step */
} vv_path_step;

typedef struct {
    vv_path_step steps[VV_PATH_STEPS];
    size_t count;
    char *keys; /* owned */
} vv_value_path;

/* ARG, with the offset of the fault in the message and in err->off, which quotes nothing of the text. */
VV_MUST_CHECK vv_code vv_value_path_parse(vv_value_path *ret, vv_str text, vv_error *err);
void vv_value_path_done(vv_value_path *p); /* accepts a zeroed one */

typedef enum {
    VV_KIND_UNKNOWN,
    VV_KIND_NULL,
    VV_KIND_STRING,
    VV_KIND_INT,
    VV_KIND_FLOAT,
    VV_KIND_BOOL,
    VV_KIND_CLASS,
    VV_KIND_ENUM,
    VV_KIND_LIST,
    VV_KIND_MAP,
    VV_KIND_MEDIA,
    VV_KIND_BYTES,
    VV_KIND_BIGINT,
    VV_KIND_OMITTED,
    VV_KINDS,
} vv_value_kind;
/* "unknown", "null", "string", ... */
const char *vv_value_kind_word(vv_value_kind k);

/* How far a path leads. */
typedef struct {
    size_t matched;      /* steps */
    const uint8_t *body; /* the value that they lead to, a message as a whole body is; a view */
    size_t body_len;
    vv_value_kind kind;
    bool has_items;
    uint64_t items;      /* of a list, map or class */
} vv_value_place;

/*
 * Walks as many steps as the value has. Of a key that a map holds twice the last entry counts. Errors: CORRUPT as
 * vv_value_show; what lies beside the way is not checked.
 */
VV_MUST_CHECK vv_code vv_value_walk(vv_value_place *ret, const uint8_t *body, size_t n, const vv_value_path *path,
                                    vv_error *err);
