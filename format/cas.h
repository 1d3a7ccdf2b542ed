/*
 * Content-addressed objects (docs/store.md):
 *
 *   "BAMLVAL1" u16(1) codec u16 body_len u64 cid[32] body sha256[32]        84 + body bytes
 *   cid := SHA-256("baml-value-v1" codec u16 body)
 */
#pragma once

#include "base/sha256.h"
#include "format/ids.h"

enum { VV_CAS_HEAD = 52, VV_CAS_TAIL = 32, VV_CAS_FIXED = VV_CAS_HEAD + VV_CAS_TAIL };
enum { VV_CODEC_VALUE = 1, VV_CODEC_FUNCTION_TABLE = 2 };

typedef struct {
    uint16_t codec;
    vv_cid cid;
    const uint8_t *body; /* view */
    size_t body_len;
} vv_cas_object;

void vv_cid_of(vv_cid *ret, uint16_t codec, const void *body, size_t n);
/* Begins the digest that is the content id, once the body has gone into it: for who has the body in pieces. */
void vv_cid_begin(vv_sha256_ctx *c, uint16_t codec);
/* What an object has before and after its body, for who would not copy that. cid is the body's. */
void vv_cas_frame(uint8_t head[VV_CAS_HEAD], uint8_t tail[VV_CAS_TAIL], uint16_t codec, const vv_cid *cid,
                  const void *body, size_t n);
void vv_cas_encode(vv_wr *w, uint16_t codec, const void *body, size_t n);
/*
 * Errors, in order: Truncated, InvalidChecksum, InvalidMagic, UnsupportedVersion, Truncated, TrailingBytes,
 * InvalidChecksum (the body does not hash to the embedded cid), CasIdentityMismatch (where expect is given and the cid
 * is another).
 */
VV_MUST_CHECK vv_code vv_cas_decode(vv_cas_object *ret, const uint8_t *p, size_t n, const vv_cid *expect,
                                    vv_error *err);
/*
 * What the head alone says of a file of size bytes, for who would not read the body yet: codec, cid and body_len (body
 * is NULL). Errors: InvalidMagic, UnsupportedVersion, Truncated, TrailingBytes.
 */
VV_MUST_CHECK vv_code vv_cas_head(vv_cas_object *ret, const uint8_t head[VV_CAS_HEAD], uint64_t size, vv_error *err);

/* "cas/sha256/<2 hex>/<64 hex>.bamlvalue", relative to the store root. */
enum { VV_CAS_PATH = 90 };
void vv_cas_path(char out[VV_CAS_PATH], const vv_cid *cid);
