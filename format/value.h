/*
 * Captured value bodies (codec 1, the store format section 16) as JSON. The body is a protobuf message of nested values; the reader
 * is bounded by depth, items and output bytes and never recurses over the input's depth.
 *
 * Shapes: null, string, int (exact), float, bool, bytes {"$bytes": base64, "length"}, class {"$class": name, fields...} ...
 * as docs/value-json.md lists them; an elided subtree is {"$omitted": reason, "message"}; what a bound cut is
 * {"$cut": "depth" | "bytes"}; an unset oneof is {"$unknown": true}.
 */
#pragma once

#include "base/json.h"

typedef struct {
    unsigned max_depth;  /* of containers */
    size_t max_bytes;    /* of JSON */
} vv_value_limits;

/* Writes one JSON value. On a malformed body returns CORRUPT (names Truncated, InvalidTag, InvalidUtf8, TrailingBytes) and *j holds an
 * unspecified partial value: write into a scratch writer. *ret_cut: a limit cut something. */
VV_MUST_CHECK vv_code vv_value_json(vv_json *j, const uint8_t *body, size_t n, const vv_value_limits *limits, bool *ret_cut,
                                    vv_error *err);
