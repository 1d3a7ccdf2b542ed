/*
 * SHA-256 by OpenSSL.
 *
 * The low-level interface is used on purpose: it allocates nothing and can't fail, which the runtime needs (it
 * may not abort its host) and a defining row's key needs for speed (an EVP call costs more than its 100-byte hash).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define VV_SHA256_BYTES 32

typedef struct {
    uint64_t opaque[16]; /* holds a SHA256_CTX; asserted in the .c */
} vv_sha256_ctx;

void vv_sha256_init(vv_sha256_ctx *c);
void vv_sha256_update(vv_sha256_ctx *c, const void *p, size_t n);
void vv_sha256_final(vv_sha256_ctx *c, uint8_t out[VV_SHA256_BYTES]);

/*
 * n bytes to each of two hashes. Where the processor has instructions for SHA-256 that is nearly twice as fast as one
 * after the other, as long as both have had multiples of 64 bytes before.
 */
void vv_sha256_update_pair(vv_sha256_ctx *a, const void *p, vv_sha256_ctx *b, const void *q, size_t n);

/* One shot. */
void vv_sha256(const void *p, size_t n, uint8_t out[VV_SHA256_BYTES]);
