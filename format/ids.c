#include "config.h"

#include "format/ids.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "base/sha256.h"
#include "base/text.h"

#define THREAD_PREFIX "baml_thread_1_"
#define CALL_PREFIX "baml_call_1_"
#define RUNTIME_PREFIX "baml_id_1_"
#define CID_PREFIX "bamlv_1_"

/* The version byte in front of a thread's or call's bytes. */
enum { TEXT_VERSION = 1, PAYLOAD_MAX = 41 };

static void write_text(char *out, const char *prefix, bool versioned, const uint8_t *id, size_t n)
{
    uint8_t payload[PAYLOAD_MAX] = {TEXT_VERSION};
    memcpy(payload + versioned, id, n);
    size_t len = strlen(prefix);
    memcpy(out, prefix, len);
    vv_base64url(out + len, payload, n + versioned);
}

void vv_thread_text(char out[VV_THREAD_TEXT], const vv_thread_ref *t)
{
    write_text(out, THREAD_PREFIX, true, t->b, sizeof t->b);
}

void vv_call_text(char out[VV_CALL_TEXT], const vv_call_ref *c)
{
    write_text(out, CALL_PREFIX, true, c->b, sizeof c->b);
}

void vv_runtime_text(char out[VV_RUNTIME_TEXT], const vv_runtime_id *r)
{
    write_text(out, RUNTIME_PREFIX, false, r->b, sizeof r->b);
}

/*
 * Decodes text of any length into out, which keeps the first PAYLOAD_MAX bytes; returns the whole length, or -1. Pieces
 * of whole 4-character groups have no slack bits, so only the last one can be non-canonical.
 */
static ptrdiff_t decode_payload(uint8_t out[PAYLOAD_MAX], vv_str s)
{
    size_t len = 0;
    for (size_t at = 0; at < s.n; at += 64) {
        uint8_t piece[48];
        ptrdiff_t n = vv_unbase64url(piece, (vv_str){s.p + at, s.n - at < 64 ? s.n - at : 64});
        if (n < 0)
            return -1;
        if (len < PAYLOAD_MAX) {
            size_t keep = PAYLOAD_MAX - len < (size_t)n ? PAYLOAD_MAX - len : (size_t)n;
            memcpy(out + len, piece, keep);
        }
        len += (size_t)n;
    }
    return (ptrdiff_t)len;
}

static vv_code parse_text(vv_str s, const char *prefix, bool versioned, uint8_t *id, size_t n, vv_error *err)
{
    size_t len = strlen(prefix);
    if (s.n < len || memcmp(s.p, prefix, len) != 0)
        return vv_fail_decode(err, "InvalidPrefix", 0, "the id does not begin with %s", prefix);
    uint8_t payload[PAYLOAD_MAX];
    ptrdiff_t got = decode_payload(payload, (vv_str){s.p + len, s.n - len});
    if (got < 0)
        return vv_fail_decode(err, "InvalidBase64", len, "the id is not canonical base64url after %s", prefix);
    if ((size_t)got != n + versioned)
        return vv_fail_decode(err, "InvalidLength", len, "the id holds %td bytes instead of %zu", got, n + versioned);
    if (versioned && payload[0] != TEXT_VERSION)
        return vv_fail_decode(err, "UnsupportedVersion", len, "id version %u", payload[0]);
    memcpy(id, payload + versioned, n);
    return VV_OK;
}

vv_code vv_thread_parse(vv_str s, vv_thread_ref *ret, vv_error *err)
{
    return parse_text(s, THREAD_PREFIX, true, ret->b, sizeof ret->b, err);
}

vv_code vv_call_parse(vv_str s, vv_call_ref *ret, vv_error *err)
{
    return parse_text(s, CALL_PREFIX, true, ret->b, sizeof ret->b, err);
}

vv_code vv_runtime_parse(vv_str s, vv_runtime_id *ret, vv_error *err)
{
    return parse_text(s, RUNTIME_PREFIX, false, ret->b, sizeof ret->b, err);
}

void vv_cid_text(char out[VV_CID_TEXT], const vv_cid *c)
{
    memcpy(out, CID_PREFIX, sizeof CID_PREFIX - 1);
    vv_hex(out + sizeof CID_PREFIX - 1, c->b, sizeof c->b);
}

bool vv_cid_parse(vv_str s, vv_cid *ret)
{
    const size_t n = sizeof CID_PREFIX - 1;
    if (s.n > n && memcmp(s.p, CID_PREFIX, n) == 0)
        s = (vv_str){s.p + n, s.n - n};
    return vv_unhex(ret->b, sizeof ret->b, s);
}

void vv_uuid7_make(uint8_t out[16], uint64_t unix_ms, const uint8_t random[10])
{
    uint8_t ms[8];
    vv_put64(ms, unix_ms);
    memcpy(out, ms + 2, 6);
    memcpy(out + 6, random, 10);
    out[6] = 0x70 | (out[6] & 0x0f);
    out[8] = 0x80 | (out[8] & 0x3f);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void vv_uuid7_new(uint8_t out[16])
{
    uint8_t random[10];
    if (!vv_random(random, sizeof random))
        memset(random, 0, sizeof random);
    vv_uuid7_make(out, clock_ns(CLOCK_REALTIME) / 1000000u, random);
}

/* Unique on this machine, though guessable: what is left where the kernel has no entropy yet. */
static void fill_unique(uint8_t p[16])
{
    static atomic_uint counter;
    uint8_t seed[28], sum[VV_SHA256_BYTES];
    vv_put64(seed, clock_ns(CLOCK_REALTIME));
    vv_put64(seed + 8, clock_ns(CLOCK_MONOTONIC));
    vv_put64(seed + 16, (uint64_t)getpid());
    vv_put32(seed + 24, atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed));
    vv_sha256(seed, sizeof seed, sum);
    memcpy(p, sum, 16);
}

void vv_uuid4_new(uint8_t out[16])
{
    if (!vv_random(out, 16))
        fill_unique(out);
    out[6] = 0x40 | (out[6] & 0x0f);
    out[8] = 0x80 | (out[8] & 0x3f);
}

static void hash_framed(vv_sha256_ctx *c, vv_str s)
{
    uint8_t len[8];
    vv_put64(len, s.n);
    vv_sha256_update(c, len, sizeof len);
    vv_sha256_update(c, s.p, s.n);
}

void vv_program_hash(uint8_t out[32], vv_str version, const vv_program_file *files, size_t n)
{
    static const char domain[] = "baml-program-v1";
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, domain, sizeof domain - 1);
    hash_framed(&c, version);
    for (size_t i = 0; i < n; i++) {
        hash_framed(&c, files[i].path);
        hash_framed(&c, files[i].content);
    }
    vv_sha256_final(&c, out);
}
