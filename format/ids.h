/*
 * Identities of the store and their text forms (docs/store.md).
 *
 * References are kept as their raw big-endian bytes: order is memcmp, and a reference hashes and compares without
 * decoding. Accessors take the numbers out. Values, no ownership, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"

typedef struct { uint8_t b[16]; } vv_euid;        /* process and stream: UUIDv7 bytes */
typedef struct { uint8_t b[16]; } vv_program_id;
typedef struct { uint8_t b[16]; } vv_runtime_id;
typedef struct { uint8_t b[16]; } vv_path_id;     /* docs/http-api.md */
typedef struct { uint8_t b[32]; } vv_thread_ref;  /* euid, engine u64, thread u64; of a root thread: the execution */
typedef struct { uint8_t b[40]; } vv_call_ref;    /* thread ref, call u64 */
typedef struct { uint8_t b[40]; } vv_capture_id;  /* thread ref, unwind ordinal u64 */
typedef struct { uint8_t b[32]; } vv_context_key;
typedef struct { uint8_t b[32]; } vv_cid;         /* of a value in cas/ */

static inline uint64_t vv_thread_engine(const vv_thread_ref *t)
{
    return vv_be64(t->b + 16);
}

static inline uint64_t vv_thread_number(const vv_thread_ref *t)
{
    return vv_be64(t->b + 24);
}

static inline uint64_t vv_call_number(const vv_call_ref *c)
{
    return vv_be64(c->b + 32);
}

static inline uint64_t vv_capture_ordinal(const vv_capture_id *c)
{
    return vv_be64(c->b + 32);
}

static inline vv_thread_ref vv_thread_ref_make(const vv_euid *euid, uint64_t engine, uint64_t thread)
{
    vv_thread_ref t;
    memcpy(t.b, euid->b, 16);
    vv_put64(t.b + 16, engine);
    vv_put64(t.b + 24, thread);
    return t;
}

static inline vv_call_ref vv_call_ref_make(const vv_thread_ref *thread, uint64_t call)
{
    vv_call_ref c;
    memcpy(c.b, thread->b, 32);
    vv_put64(c.b + 32, call);
    return c;
}

static inline vv_thread_ref vv_call_thread(const vv_call_ref *c)
{
    vv_thread_ref t;
    memcpy(t.b, c->b, 32);
    return t;
}

static inline vv_capture_id vv_capture_id_make(const vv_thread_ref *thread, uint64_t ordinal)
{
    vv_capture_id c;
    memcpy(c.b, thread->b, 32);
    for (int i = 0; i < 8; i++)
        c.b[32 + i] = (uint8_t)(ordinal >> (56 - 8 * i));
    return c;
}

static inline vv_thread_ref vv_capture_thread(const vv_capture_id *c)
{
    vv_thread_ref t;
    memcpy(t.b, c->b, 32);
    return t;
}

/* Sizes of the texts with their NUL. */
enum { VV_THREAD_TEXT = 59, VV_CALL_TEXT = 68, VV_RUNTIME_TEXT = 33, VV_CID_TEXT = 73 };

void vv_thread_text(char out[VV_THREAD_TEXT], const vv_thread_ref *t);       /* baml_thread_1_... */
void vv_call_text(char out[VV_CALL_TEXT], const vv_call_ref *c);             /* baml_call_1_... */
void vv_runtime_text(char out[VV_RUNTIME_TEXT], const vv_runtime_id *r);     /* baml_id_1_... */
void vv_cid_text(char out[VV_CID_TEXT], const vv_cid *c);                    /* bamlv_1_ and 64 digits */

/*
 * Strict readers. Error names, in the order they are checked: InvalidPrefix, InvalidBase64, InvalidLength (expected and
 * actual in the message), UnsupportedVersion (thread and call).
 */
VV_MUST_CHECK vv_code vv_thread_parse(vv_str s, vv_thread_ref *ret, vv_error *err);
VV_MUST_CHECK vv_code vv_call_parse(vv_str s, vv_call_ref *ret, vv_error *err);
VV_MUST_CHECK vv_code vv_runtime_parse(vv_str s, vv_runtime_id *ret, vv_error *err);
/* "bamlv_1_" and 64 hexadecimal digits of either case, or those alone; false for anything else. */
bool vv_cid_parse(vv_str s, vv_cid *ret);

/* A fresh UUIDv7 (ms since the epoch and random bits as RFC 9562 lays them out). random has 10 bytes; pure. */
void vv_uuid7_make(uint8_t out[16], uint64_t unix_ms, const uint8_t random[10]);
/* The same from the clock and getrandom(2); with no entropy the random bits are zero. */
void vv_uuid7_new(uint8_t out[16]);
/* 16 random bytes as UUIDv4. */
void vv_uuid4_new(uint8_t out[16]);

/*
 * Program hash, current form: the first 16 bytes of SHA-256 over the domain string, the framed version
 * and the framed path and content of each file in ascending order of path bytes. The caller sorts.
 */
typedef struct { vv_str path, content; } vv_program_file;
void vv_program_hash(uint8_t out[32], vv_str version, const vv_program_file *files, size_t n);
