#include "config.h"

#include "server/compress.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "server/accept.h"

enum { STEP = 32 * 1024, ZSTD_LEVEL = 3, GZIP_LEVEL = 5, GZIP_WINDOW = 15 + 16 };

static const char *const names[] = {NULL, "gzip", "zstd"};

const char *vv_coding_name(vv_coding c)
{
    return names[c];
}

vv_coding vv_coding_choose(const char *accept)
{
    int q[VV_ARRAY_LEN(names)] = {[VV_CODING_IDENTITY] = 0, [VV_CODING_GZIP] = -1, [VV_CODING_ZSTD] = -1}, any = -1;
    unsigned w;
    vv_str name;
    for (const char *at = accept ? accept : ""; vv_accept_next(&at, &name, &w);) {
        for (unsigned c = VV_CODING_GZIP; c < VV_ARRAY_LEN(names); c++)
            if (vv_accept_is(name, names[c]))
                q[c] = (int)w;
        if (vv_accept_is(name, "*"))
            any = (int)w;
    }
    vv_coding best = VV_CODING_IDENTITY;
    for (unsigned c = VV_CODING_GZIP; c < VV_ARRAY_LEN(names); c++) {
        int weight = q[c] >= 0 ? q[c] : any;
        if (weight > 0 && (best == VV_CODING_IDENTITY || weight >= q[best])) {
            q[c] = weight;
            best = (vv_coding)c;
        }
    }
    return best;
}

struct vv_compressor {
    vv_coding coding;
    z_stream gz;
    ZSTD_CCtx *zstd;
};

vv_compressor *vv_compressor_new(vv_coding c)
{
    vv_compressor *z = calloc(1, sizeof *z);
    if (!z)
        return NULL;
    z->coding = c;
    bool good;
    if (c == VV_CODING_ZSTD) {
        z->zstd = ZSTD_createCCtx();
        good = z->zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(z->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL));
    } else {
        good = deflateInit2(&z->gz, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    }
    if (!good) {
        ZSTD_freeCCtx(z->zstd);
        free(z);
        return NULL;
    }
    return z;
}

void vv_compressor_free(vv_compressor *z)
{
    if (!z)
        return;
    if (z->coding == VV_CODING_GZIP)
        deflateEnd(&z->gz);
    ZSTD_freeCCtx(z->zstd);
    free(z);
}

static bool compress_gzip(vv_compressor *z, const void *p, size_t n, bool finish, vv_wr *w)
{
    z->gz.next_in = (Bytef *)p;
    z->gz.avail_in = (uInt)n;
    int rc;
    do {
        uint8_t out[STEP];
        z->gz.next_out = out;
        z->gz.avail_out = sizeof out;
        rc = deflate(&z->gz, finish ? Z_FINISH : Z_NO_FLUSH);
        if (rc == Z_STREAM_ERROR)
            return false;
        vv_wr_bytes(w, out, sizeof out - z->gz.avail_out);
    } while (finish ? rc != Z_STREAM_END : z->gz.avail_out == 0);
    return vv_wr_ok(w);
}

static bool compress_zstd(vv_compressor *z, const void *p, size_t n, bool finish, vv_wr *w)
{
    ZSTD_inBuffer in = {p, n, 0};
    size_t left;
    do {
        uint8_t out[STEP];
        ZSTD_outBuffer o = {out, sizeof out, 0};
        left = ZSTD_compressStream2(z->zstd, &o, &in, finish ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return false;
        vv_wr_bytes(w, out, o.pos);
    } while (finish ? left != 0 : in.pos < in.size);
    return vv_wr_ok(w);
}

bool vv_compress(vv_compressor *z, const void *p, size_t n, bool finish, vv_wr *w)
{
    const uint8_t *at = p;
    enum { PART = 1 << 30 }; /* zlib counts in 32 bits */
    for (; n > PART; at += PART, n -= PART)
        if (!(z->coding == VV_CODING_ZSTD ? compress_zstd : compress_gzip)(z, at, PART, false, w))
            return false;
    return (z->coding == VV_CODING_ZSTD ? compress_zstd : compress_gzip)(z, at, n, finish, w);
}
