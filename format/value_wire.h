/*
 * Inside of the readers of captured values (format/value.h): the fields of their messages, bounded, without recursion.
 *
 * A vv_wire keeps the first fault of all that is read with it. After a fault readers yield nothing more. Views into the
 * body; owned by one thread.
 */
#pragma once

#include "base/bytes.h"

enum { VV_WIRE_VARINT = 0, VV_WIRE_FIXED64 = 1, VV_WIRE_LEN = 2, VV_WIRE_FIXED32 = 5 };

/* The fields of a value message: one oneof. */
enum {
    VV_VALUE_NULL = 2,
    VV_VALUE_STRING = 3,
    VV_VALUE_INT = 4,
    VV_VALUE_FLOAT = 5,
    VV_VALUE_BOOL = 6,
    VV_VALUE_CLASS = 7,
    VV_VALUE_ENUM = 8,
    VV_VALUE_LIST = 11,
    VV_VALUE_MAP = 12,
    VV_VALUE_MEDIA = 17,
    VV_VALUE_BYTES = 19,
    VV_VALUE_BIGINT = 20,
    VV_VALUE_FIELDS,
};

enum { VV_CLASS_NAME = 1, VV_CLASS_ENTRY = 2, VV_LIST_ITEM = 2, VV_MAP_ENTRY = 3 };
enum { VV_ENTRY_KEY = 1, VV_ENTRY_VALUE = 2, VV_ENUM_TYPE = 1, VV_ENUM_VARIANT = 2 };
enum { VV_MEDIA_KIND = 1, VV_MEDIA_MIME = 2, VV_MEDIA_URL = 3, VV_MEDIA_FILE = 5 };

#define VV_OMITTED_CLASS "baml.trace.OmittedValue"

typedef struct {
    const uint8_t *base; /* of the body: offsets of faults count from here */
    const char *why;     /* the first fault: Truncated, InvalidTag, InvalidUtf8, InvalidHex */
    size_t bad_off;
} vv_wire;

typedef struct {
    const uint8_t *at; /* where it begins */
    uint32_t number;
    uint8_t wire;
    uint64_t scalar; /* of a varint or fixed field */
    vv_rd bytes;     /* of a LEN field */
} vv_field;

/* why is a literal. */
void vv_wire_fail(vv_wire *w, const uint8_t *at, const char *why);
/* The fault as an error. */
VV_MUST_CHECK vv_code vv_wire_error(const vv_wire *w, vv_error *err);

/* The next field of a message; false at its end or at a fault. */
bool vv_wire_next(vv_wire *w, vv_rd *r, vv_field *ret);
/* False and a fault where the field is of another wire type. */
bool vv_wire_expect(vv_wire *w, const vv_field *f, uint8_t wire);
/* The text of a field; empty and a fault where it is none. */
vv_str vv_wire_text(vv_wire *w, const vv_field *f);
/* The last one of a message: protobuf's rule for a field that repeats. */
vv_opt_str vv_wire_text_of(vv_wire *w, vv_rd r, uint32_t number);
uint64_t vv_wire_varint_of(vv_wire *w, vv_rd r, uint32_t number);
/* Which member of the oneof a value message has: the last one. False where none is set. */
bool vv_wire_value(vv_wire *w, vv_rd r, vv_field *ret);
/* An entry of a class or map: its key, and its value message (empty where absent). */
vv_str vv_wire_entry(vv_wire *w, vv_rd entry, vv_rd *ret_value);
