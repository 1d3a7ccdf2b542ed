#include "config.h"

#include "base/sha256.h"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(vv_sha256_ctx), "vv_sha256_ctx must hold a SHA256_CTX");
_Static_assert(SHA256_DIGEST_LENGTH == VV_SHA256_BYTES, "SHA-256 is 32 bytes");

void vv_sha256_init(vv_sha256_ctx *c)
{
    SHA256_Init((SHA256_CTX *)(void *)c);
}

void vv_sha256_update(vv_sha256_ctx *c, const void *p, size_t n)
{
    SHA256_Update((SHA256_CTX *)(void *)c, p, n);
}

void vv_sha256_final(vv_sha256_ctx *c, uint8_t out[VV_SHA256_BYTES])
{
    SHA256_Final(out, (SHA256_CTX *)(void *)c);
}

void vv_sha256(const void *p, size_t n, uint8_t out[VV_SHA256_BYTES])
{
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, p, n);
    vv_sha256_final(&c, out);
}
