#include "config.h"

#include "base/sha256.h"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "base/sha256_pair.h"

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

static void count_bytes(SHA256_CTX *c, size_t n)
{
    uint64_t bits = ((uint64_t)c->Nh << 32 | c->Nl) + (uint64_t)n * 8;
    c->Nl = (SHA_LONG)bits;
    c->Nh = (SHA_LONG)(bits >> 32);
}

void vv_sha256_update_pair(vv_sha256_ctx *a, const void *p, vv_sha256_ctx *b, const void *q, size_t n)
{
    SHA256_CTX *x = (SHA256_CTX *)(void *)a, *y = (SHA256_CTX *)(void *)b;
    size_t whole = n - n % VV_SHA256_BLOCK;
    if (x->num || y->num || !vv_sha256_pair(x->h, p, y->h, q, whole / VV_SHA256_BLOCK))
        whole = 0;
    count_bytes(x, whole);
    count_bytes(y, whole);
    vv_sha256_update(a, (const uint8_t *)p + whole, n - whole);
    vv_sha256_update(b, (const uint8_t *)q + whole, n - whole);
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
