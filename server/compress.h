/* Content codings: which one a client takes, and compressing a body piece by piece. */
#pragma once

#include "base/bytes.h"

typedef enum { VV_CODING_IDENTITY, VV_CODING_GZIP, VV_CODING_ZSTD } vv_coding;

/* As Content-Encoding has it; NULL for identity. */
const char *vv_coding_name(vv_coding c);

/*
 * The coding to answer with: of those that Accept-Encoding (may be NULL) takes the one it likes best, zstd before
 * gzip.
 */
vv_coding vv_coding_choose(const char *accept_encoding);

typedef struct vv_compressor vv_compressor;

/* NULL without memory. c is not identity. One thread at a time. */
vv_compressor *vv_compressor_new(vv_coding c);
void vv_compressor_free(vv_compressor *z);
/* Compresses n bytes and appends what comes out to w; finish ends the stream. False on failure. */
VV_MUST_CHECK bool vv_compress(vv_compressor *z, const void *p, size_t n, bool finish, vv_wr *w);
