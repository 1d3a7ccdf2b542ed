#include "config.h"

#include "reader/segment_read.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pages.h"
#include "base/sha256.h"
#include "format/health_plane.h"

enum {
    PEEK_FROM = 1 << 20,        /* larger files must agree with their header before they are read */
    HASH_APART_FROM = 64 << 20, /* larger files are hashed in pieces before they are held in memory */
    HASH_STEP = 256 << 10,      /* what the processor's cache holds two of */
};

void vv_group_buffer_done(vv_group_buffer *b)
{
    free(b->p);
    *b = (vv_group_buffer){NULL, 0};
}

bool vv_group_buffer_room(vv_group_buffer *b, size_t n)
{
    if (n <= b->cap)
        return true;
    size_t cap = b->cap * 2 > n ? b->cap * 2 : n;
    uint8_t *p = realloc(b->p, cap);
    if (!p)
        return false;
    vv_pages_hint(p, cap);
    b->p = p;
    b->cap = cap;
    return true;
}

/* The stated length must be the file's. */
static vv_code peek(const vv_open_file *f, vv_plane plane, vv_error *err)
{
    uint8_t head[VV_META_HEADER];
    static const size_t headers[VV_PLANES] = {VV_META_HEADER, VV_DATA_HEADER, VV_HEALTH_PLANE_HEADER};
    size_t n = headers[plane];
    vv_code rc = vv_open_file_read(f, 0, head, n, err);
    if (rc != VV_OK)
        return rc;
    if (vv_be64(head + n - 8) != f->ident.size - n - VV_SEAL_BYTES)
        return vv_fail_decode(err, "InvalidChecksum", n - 8, "the segment's length is not the file's");
    return VV_OK;
}

vv_code vv_segment_check_size(const vv_open_file *f, vv_plane plane, vv_error *err)
{
    uint64_t size = f->ident.size;
    if (size > VV_SEGMENT_FILE_MAX)
        return vv_fail_decode(err, "FileTooLarge", 0, "a segment of %llu bytes", (unsigned long long)size);
    return size > PEEK_FROM ? peek(f, plane, err) : VV_OK;
}

static vv_code open_checked(vv_segment_reading *r, vv_source *source, const char *path, vv_plane plane)
{
    vv_code rc = vv_source_open_file(source, path, &r->file, &r->fault);
    if (rc != VV_OK)
        return rc;
    r->ident = r->file.ident;
    r->trusted = r->ident.size > VV_SEAL_BYTES;
    return vv_segment_check_size(&r->file, plane, &r->fault);
}

void vv_segment_open(vv_segment_reading *r, vv_source *source, const char *path, vv_plane plane)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    *r = (vv_segment_reading){.file = {.fd = -1}, .began_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec};
    r->rc = open_checked(r, source, path, plane);
}

bool vv_segment_pairs(const vv_segment_reading *a, const vv_segment_reading *b)
{
    const vv_segment_reading *const both[] = {a, b};
    for (size_t i = 0; i < VV_ARRAY_LEN(both); i++)
        if (both[i]->rc != VV_OK || !both[i]->trusted || both[i]->is_known || both[i]->ident.size > HASH_APART_FROM)
            return false;
    return true;
}

/* A checksum under way, in steps that stay in the processor's cache. */
typedef struct {
    vv_segment_reading *r;
    uint8_t *to; /* the whole file, or one step of it */
    bool whole;
    uint64_t at, end;
    vv_sha256_ctx ctx;
} hashing;

static hashing hashing_init(vv_segment_reading *r, uint8_t *to, bool whole)
{
    hashing h = {.r = r, .to = to, .whole = whole, .end = r->ident.size - VV_SEAL_BYTES};
    vv_sha256_init(&h.ctx);
    return h;
}

static size_t step_of(const hashing *h)
{
    return h->end - h->at < HASH_STEP ? (size_t)(h->end - h->at) : HASH_STEP;
}

/* The next n bytes, or NULL: the reading has failed. */
static const uint8_t *read_step(hashing *h, size_t n)
{
    uint8_t *to = h->whole ? h->to + h->at : h->to;
    h->r->rc = vv_open_file_read(&h->r->file, h->at, to, n, &h->r->fault);
    h->at += n;
    return h->r->rc == VV_OK ? to : NULL;
}

static void hash_step(hashing *h, size_t n)
{
    const uint8_t *p = read_step(h, n);
    if (p)
        vv_sha256_update(&h->ctx, p, n);
}

static void hash_step_of_both(hashing *a, hashing *b, size_t n)
{
    const uint8_t *p = read_step(a, n), *q = read_step(b, n);
    if (p && q)
        vv_sha256_update_pair(&a->ctx, p, &b->ctx, q, n);
    else if (p)
        vv_sha256_update(&a->ctx, p, n);
    else if (q)
        vv_sha256_update(&b->ctx, q, n);
}

/* As far as the shorter of the two goes. */
static void hash_both(hashing *a, hashing *b)
{
    for (;;) {
        size_t n = step_of(a) < step_of(b) ? step_of(a) : step_of(b);
        if (n == 0 || a->r->rc != VV_OK || b->r->rc != VV_OK)
            return;
        hash_step_of_both(a, b, n);
    }
}

static void hash_rest(hashing *h)
{
    vv_segment_reading *r = h->r;
    while (h->at < h->end && r->rc == VV_OK)
        hash_step(h, step_of(h));
    uint8_t sum[VV_SHA256_BYTES], apart[VV_SEAL_BYTES], *seal = h->whole ? h->to + h->end : apart;
    vv_sha256_final(&h->ctx, sum);
    if (r->rc == VV_OK)
        r->rc = vv_open_file_read(&r->file, h->end, seal, VV_SEAL_BYTES, &r->fault);
    if (r->rc == VV_OK && memcmp(sum, seal, sizeof sum) != 0)
        r->rc = vv_fail_decode(&r->fault, "InvalidChecksum", h->end, "the segment's checksum");
}

static void hash_apart(vv_segment_reading *r)
{
    uint8_t *step = malloc(HASH_STEP);
    if (!step) {
        r->rc = vv_fail(&r->fault, VV_ERR_NOMEM, "no memory to verify a segment");
        return;
    }
    hashing h = hashing_init(r, step, false);
    hash_rest(&h);
    free(step);
}

static void make_room(vv_segment_reading *r, vv_group_buffer *buf)
{
    if (r->rc == VV_OK && !vv_group_buffer_room(buf, (size_t)r->ident.size + 1))
        r->rc = vv_fail(&r->fault, VV_ERR_NOMEM, "no memory for the %llu bytes of a segment",
                        (unsigned long long)r->ident.size);
}

static void read_one(vv_segment_reading *r, vv_group_buffer *buf)
{
    uint64_t size = r->ident.size;
    bool apart = size > HASH_APART_FROM;
    if (r->rc == VV_OK && apart && !r->is_known)
        hash_apart(r);
    make_room(r, buf);
    if (r->rc != VV_OK)
        return;
    if (apart || !r->trusted || r->is_known) {
        r->rc = vv_open_file_read(&r->file, 0, buf->p, (size_t)size, &r->fault);
        return;
    }
    hashing h = hashing_init(r, buf->p, true);
    hash_rest(&h);
}

static void read_both(vv_segment_reading *a, vv_group_buffer *a_buf, vv_segment_reading *b, vv_group_buffer *b_buf)
{
    make_room(a, a_buf);
    make_room(b, b_buf);
    hashing x = hashing_init(a, a_buf->p, true), y = hashing_init(b, b_buf->p, true);
    hash_both(&x, &y);
    hash_rest(&x);
    hash_rest(&y);
}

void vv_segment_read(vv_segment_reading *a, vv_group_buffer *a_buf, vv_segment_reading *b, vv_group_buffer *b_buf)
{
    if (b)
        read_both(a, a_buf, b, b_buf);
    else
        read_one(a, a_buf);
    vv_open_file_close(&a->file);
    if (b)
        vv_open_file_close(&b->file);
}
