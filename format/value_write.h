/*
 * Writes captured value bodies (codec 1, docs/value-json.md) part by part: the counterpart of format/value.h.
 *
 * One value is put; containers nest. A map's or an object's entries are a key and then a value each. The bytes are
 * protobuf in its one canonical form (shortest lengths, fields in order of their tags, members of the oneof also where
 * they are zero, other texts not where they are empty), so equal calls give equal bytes.
 *
 * The buffer is the caller's. It grows by the caller's function, which is asked before each allocation, and never for
 * more than the limit and VV_VW_OPEN_BYTES, where open containers are noted (at the buffer's end). A body of exactly
 * the limit fits.
 *
 * Containers nest up to VV_VALUE_DEPTH: a map takes three nested messages, and other readers of protobuf stop at 100 of
 * them. What is deeper becomes one omitted value (unsupportedValue) each, and its parts are passed over, in whatever
 * order they come. A reader shows as many levels as it has room for and marks the rest.
 *
 * After the first failure nothing more is written, and all calls do nothing. Owned by one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

enum { VV_VALUE_DEPTH = 32, VV_VW_FRAME = 8, VV_VW_OPEN_BYTES = VV_VALUE_DEPTH * VV_VW_FRAME };

typedef enum {
    VV_VW_OK,
    VV_VW_DENIED,    /* no memory to grow */
    VV_VW_TOO_LARGE, /* it would exceed the limit */
    VV_VW_MISUSED,   /* not one value: a key without a value, a second top value, an end without its begin, bad hex */
    VV_VW_GIVEN_UP,  /* the caller said so */
    VV_VW_FAULTS,
} vv_vw_fault;

typedef enum {
    VV_OMIT_ARGUMENT,
    VV_OMIT_UNSUPPORTED,
    VV_OMIT_HOST_OWNED,
    VV_OMIT_INVALID,
    VV_OMIT_CYCLE,
    VV_OMISSIONS,
} vv_omission;

/* A buffer of want bytes that begins with the cap bytes of buf, which is void then; NULL: denied, and buf stays. */
typedef uint8_t *vv_vw_grow(void *ctx, uint8_t *buf, size_t cap, size_t want);

typedef struct {
    uint8_t *buf; /* the body so far is its first len bytes */
    size_t len, cap, limit;
    vv_vw_grow *grow;
    void *ctx;
    uint64_t skip; /* begun containers that are too deep */
    vv_vw_fault fault;
    uint32_t entry; /* the length of the open entry; valid where keyed */
    uint8_t depth;
    bool keyed, begun; /* a key waits for its value; the top value is there */
} vv_vw;

/* buf may be NULL (cap 0). Limits above 1 GiB are 1 GiB. */
void vv_vw_init(vv_vw *w, void *buf, size_t cap, size_t limit, vv_vw_grow *grow, void *ctx);
/* No more is to come: VV_VW_OK where buf and len are one whole value. */
VV_MUST_CHECK vv_vw_fault vv_vw_finish(vv_vw *w);
void vv_vw_give_up(vv_vw *w);

/* Texts are made valid UTF-8 ('?' for a bad byte). */
void vv_vw_null(vv_vw *w);
void vv_vw_bool(vv_vw *w, bool v);
void vv_vw_int(vv_vw *w, int64_t v);
void vv_vw_float(vv_vw *w, double v);
void vv_vw_text(vv_vw *w, const char *p, size_t n);
void vv_vw_bytes(vv_vw *w, const void *p, size_t n);
void vv_vw_bigint(vv_vw *w, const char *hex, size_t n); /* lowercase digits, '-' before them where negative */
/* NULL is the empty text, here and below. */
void vv_vw_enum(vv_vw *w, const char *type, const char *variant);
void vv_vw_omitted(vv_vw *w, vv_omission why, const char *message);

void vv_vw_list(vv_vw *w);
void vv_vw_end_list(vv_vw *w);
void vv_vw_map(vv_vw *w);
void vv_vw_end_map(vv_vw *w);
void vv_vw_object(vv_vw *w, const char *class_name);
void vv_vw_end_object(vv_vw *w);
/* Of the next value of the innermost map or object. */
void vv_vw_key(vv_vw *w, const char *p, size_t n);
