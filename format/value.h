/*
 * Captured value bodies (codec 1, docs/store.md) as JSON. The body is a protobuf message of nested
 * values; the reader is bounded by depth and output and does not recurse over the input's depth.
 *
 * Shapes are listed in docs/value-json.md: JSON's own types where they fit, else an object whose first key begins
 * with '$' ("$class", "$enum", "$media", "$bytes", "$bigint", "$int", "$float", "$omitted", "$unknown", "$cut"). A data
 * key that begins with '$' gets another one, so a captured map never looks like one of these.
 */
#pragma once

#include "base/json.h"

typedef struct {
    unsigned max_depth; /* of containers; the JSON writer's own 64 levels bound it too */
    size_t max_bytes;   /* of JSON; the escapes of the text that meets the bound, and closing brackets, may pass it */
} vv_value_limits;

/*
 * Writes one JSON value. On a malformed body returns CORRUPT (names Truncated, InvalidTag, InvalidUtf8, InvalidHex) and
 * *j holds an unspecified partial value: write into a scratch writer. *ret_cut: a limit cut something; what is cut is
 * not checked. j needs two free levels.
 */
VV_MUST_CHECK vv_code vv_value_show(vv_json *j, const uint8_t *body, size_t n, const vv_value_limits *limits,
                                    bool *ret_cut, vv_error *err);
