/*
 * Bounded big-endian reading and writing of bytes.
 *
 * vv_rd is a value: three pointers and a sticky failure. After a failure every read yields zero and nothing is
 * left, so a decoder reads straight down and checks once, and `while (vv_rd_left(&r))` ends. The first failure
 * keeps its name and offset. No read ever looks past `end`, and no size from the input is used before it was
 * compared with what is left.
 *
 * vv_wr is a growing (or fixed) buffer with a mandatory maximum and the same sticky failure.
 *
 * Both are owned by one thread at a time. Integers are unsigned and big-endian (docs/store.md).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"

typedef unsigned __int128 vv_u128;

typedef struct {
    const uint8_t *base, *at, *end;
    const char *why; /* name of the first failure, or NULL */
    size_t bad_off;  /* its offset from base */
} vv_rd;

/* A view of text or bytes inside somebody else's buffer. Not NUL-terminated. */
typedef struct {
    const char *p;
    size_t n;
} vv_str;

/* Text that may be absent. */
typedef struct {
    bool present;
    vv_str s;
} vv_opt_str;

static inline vv_str vv_cstr(const char *s)
{
    return (vv_str){s, s ? strlen(s) : 0};
}

static inline bool vv_str_eq(vv_str a, vv_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline vv_rd vv_rd_init(const void *p, size_t n)
{
    static const uint8_t nothing;
    const uint8_t *b = p ? (const uint8_t *)p : &nothing;
    return (vv_rd){b, b, p ? b + n : b, NULL, 0};
}

static inline size_t vv_rd_left(const vv_rd *r)
{
    return (size_t)(r->end - r->at);
}

static inline size_t vv_rd_off(const vv_rd *r)
{
    return (size_t)(r->at - r->base);
}

static inline bool vv_rd_ok(const vv_rd *r)
{
    return r->why == NULL;
}

/* Marks the failure (the first one is kept) and empties the reader. why is a literal. */
static inline void vv_rd_fail(vv_rd *r, const char *why)
{
    if (!r->why) {
        r->why = why;
        r->bad_off = vv_rd_off(r);
    }
    r->at = r->end;
}

/* The next n bytes, or NULL and the failure "Truncated" where fewer are left. */
static inline const uint8_t *vv_rd_take(vv_rd *r, uint64_t n)
{
    if (VV_UNLIKELY(n > vv_rd_left(r))) {
        vv_rd_fail(r, "Truncated");
        return NULL;
    }
    const uint8_t *p = r->at;
    r->at += n;
    return p;
}

static inline uint16_t vv_be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t vv_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t vv_be64(const uint8_t *p)
{
    return (uint64_t)vv_be32(p) << 32 | vv_be32(p + 4);
}

static inline uint8_t vv_rd_u8(vv_rd *r)
{
    const uint8_t *p = vv_rd_take(r, 1);
    return p ? *p : 0;
}

static inline uint16_t vv_rd_u16(vv_rd *r)
{
    const uint8_t *p = vv_rd_take(r, 2);
    return p ? vv_be16(p) : 0;
}

static inline uint32_t vv_rd_u32(vv_rd *r)
{
    const uint8_t *p = vv_rd_take(r, 4);
    return p ? vv_be32(p) : 0;
}

static inline uint64_t vv_rd_u64(vv_rd *r)
{
    const uint8_t *p = vv_rd_take(r, 8);
    return p ? vv_be64(p) : 0;
}

static inline vv_u128 vv_rd_u128(vv_rd *r)
{
    const uint8_t *p = vv_rd_take(r, 16);
    return p ? (vv_u128)vv_be64(p) << 64 | vv_be64(p + 8) : 0;
}

/* Copies n bytes out; zeroes dst on failure. */
static inline void vv_rd_copy(vv_rd *r, void *dst, size_t n)
{
    const uint8_t *p = vv_rd_take(r, n);
    if (p)
        memcpy(dst, p, n);
    else
        memset(dst, 0, n);
}

/* A view of the next n bytes as text; not checked for UTF-8. */
static inline vv_str vv_rd_str(vv_rd *r, uint64_t n)
{
    const uint8_t *p = vv_rd_take(r, n);
    return p ? (vv_str){(const char *)p, (size_t)n} : (vv_str){NULL, 0};
}

/* A reader of the next n bytes that can't see past them; this one skips them at once. */
static inline vv_rd vv_rd_sub(vv_rd *r, uint64_t n)
{
    const uint8_t *p = vv_rd_take(r, n);
    return p ? vv_rd_init(p, (size_t)n) : vv_rd_init(NULL, 0);
}

/* Reads a u64 count of items of at least min_each bytes and refuses one that what is left can't hold. */
static inline uint64_t vv_rd_count(vv_rd *r, size_t min_each)
{
    uint64_t n = vv_rd_u64(r);
    if (n > vv_rd_left(r) / min_each) {
        vv_rd_fail(r, "Truncated");
        return 0;
    }
    return n;
}

/* Turns the reader's failure into an error (offset included); VV_OK where there is none. what names the thing read. */
vv_code vv_rd_error(const vv_rd *r, const char *what, vv_error *err);

typedef struct {
    uint8_t *buf;
    size_t len, cap, max;
    const char *why; /* "OutOfMemory", "LimitExceeded", or a codec's own name; sticky */
    bool fixed;      /* buf belongs to the caller and does not grow */
} vv_wr;

/* A growing writer of at most max bytes; owns its buffer (vv_wr_done). */
static inline vv_wr vv_wr_growing(size_t max)
{
    return (vv_wr){NULL, 0, 0, max, NULL, false};
}

/* A writer into the caller's buffer. */
static inline vv_wr vv_wr_fixed(void *buf, size_t n)
{
    return (vv_wr){(uint8_t *)buf, 0, n, n, NULL, true};
}

void vv_wr_done(vv_wr *w); /* frees; accepts a zeroed or fixed writer */

static inline bool vv_wr_ok(const vv_wr *w)
{
    return w->why == NULL;
}

static inline void vv_wr_fail(vv_wr *w, const char *why)
{
    if (!w->why)
        w->why = why;
}

/* Forgets content and failure, keeps the buffer. */
static inline void vv_wr_reset(vv_wr *w)
{
    w->len = 0;
    w->why = NULL;
}

/* Makes room for n more bytes; false and a sticky failure where that can't be. */
bool vv_wr_grow(vv_wr *w, size_t n);

/* n bytes to be filled in by the caller (valid until the next write), or NULL. */
static inline uint8_t *vv_wr_take(vv_wr *w, size_t n)
{
    if (VV_UNLIKELY(w->why || n > w->cap - w->len) && !vv_wr_grow(w, n))
        return NULL;
    uint8_t *p = w->buf + w->len;
    w->len += n;
    return p;
}

static inline void vv_put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void vv_put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static inline void vv_put64(uint8_t *p, uint64_t v)
{
    vv_put32(p, (uint32_t)(v >> 32));
    vv_put32(p + 4, (uint32_t)v);
}

static inline void vv_wr_bytes(vv_wr *w, const void *src, size_t n)
{
    uint8_t *p = vv_wr_take(w, n);
    if (p && n)
        memcpy(p, src, n);
}

/* Without the NUL. */
static inline void vv_wr_cstr(vv_wr *w, const char *text)
{
    vv_wr_bytes(w, text, strlen(text));
}

static inline void vv_wr_u8(vv_wr *w, uint8_t v)
{
    uint8_t *p = vv_wr_take(w, 1);
    if (p)
        *p = v;
}

static inline void vv_wr_u16(vv_wr *w, uint16_t v)
{
    uint8_t *p = vv_wr_take(w, 2);
    if (p)
        vv_put16(p, v);
}

static inline void vv_wr_u32(vv_wr *w, uint32_t v)
{
    uint8_t *p = vv_wr_take(w, 4);
    if (p)
        vv_put32(p, v);
}

static inline void vv_wr_u64(vv_wr *w, uint64_t v)
{
    uint8_t *p = vv_wr_take(w, 8);
    if (p)
        vv_put64(p, v);
}

static inline void vv_wr_u128(vv_wr *w, vv_u128 v)
{
    uint8_t *p = vv_wr_take(w, 16);
    if (p) {
        vv_put64(p, (uint64_t)(v >> 64));
        vv_put64(p + 8, (uint64_t)v);
    }
}

/* A text's length as u32 and its bytes; over VV_STR_MAX bytes fail the writer as StringTooLong. */
enum { VV_STR_MAX = 65536 };
void vv_wr_str(vv_wr *w, vv_str s);
/* A byte, 0 or 1, and the text where it is there. */
void vv_wr_opt_str(vv_wr *w, const vv_opt_str *s);

/* Overwrites bytes already written at off; off + width must not exceed len. */
static inline void vv_wr_patch32(vv_wr *w, size_t off, uint32_t v)
{
    if (vv_wr_ok(w) && off + 4 <= w->len)
        vv_put32(w->buf + off, v);
}

static inline void vv_wr_patch64(vv_wr *w, size_t off, uint64_t v)
{
    if (vv_wr_ok(w) && off + 8 <= w->len)
        vv_put64(w->buf + off, v);
}

/* Reports the writer's failure as an error; VV_OK where there is none. what names the thing written. */
vv_code vv_wr_error(const vv_wr *w, const char *what, vv_error *err);

/* Adds with saturation, as all stored counters do (docs/store.md). */
static inline uint64_t vv_sat64(uint64_t a, uint64_t b)
{
    uint64_t s;
    return __builtin_add_overflow(a, b, &s) ? UINT64_MAX : s;
}

static inline vv_u128 vv_sat128(vv_u128 a, vv_u128 b)
{
    vv_u128 s;
    return __builtin_add_overflow(a, b, &s) ? ~(vv_u128)0 : s;
}
