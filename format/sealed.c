#include "config.h"

#include "format/sealed.h"

#include <inttypes.h>

#include "base/sha256.h"

vv_code vv_seal_check(const uint8_t *p, size_t n, vv_error *err)
{
    if (n < VV_SEAL_BYTES)
        return vv_fail_decode(err, "Truncated", n, "%zu bytes are too few for a sealed file", n);
    uint8_t sum[VV_SHA256_BYTES];
    vv_sha256(p, n - VV_SEAL_BYTES, sum);
    if (memcmp(sum, p + n - VV_SEAL_BYTES, VV_SEAL_BYTES) != 0)
        return vv_fail_decode(err, "InvalidChecksum", n - VV_SEAL_BYTES, "the checksum does not match");
    return VV_OK;
}

void vv_seal_append(vv_wr *w, size_t from)
{
    uint8_t sum[VV_SHA256_BYTES];
    if (!vv_wr_ok(w) || from > w->len)
        return;
    vv_sha256(w->buf + from, w->len - from, sum);
    vv_wr_bytes(w, sum, sizeof sum);
}

vv_code vv_sealed_open(vv_rd *ret, const vv_sealed_kind *kind, const uint8_t *p, size_t n, bool trusted, vv_error *err)
{
    if (!trusted || n < VV_SEAL_BYTES) {
        vv_code rc = vv_seal_check(p, n, err);
        if (rc != VV_OK)
            return rc;
    }
    *ret = vv_rd_init(p, n - VV_SEAL_BYTES);
    const uint8_t *magic = vv_rd_take(ret, VV_MAGIC_BYTES);
    if (magic && memcmp(magic, kind->magic, VV_MAGIC_BYTES) != 0)
        return vv_fail_decode(err, "InvalidMagic", 0, "no %s", kind->what);
    uint16_t version = vv_rd_u16(ret);
    if (vv_rd_ok(ret) && version != kind->version)
        return vv_fail_decode(err, "UnsupportedVersion", VV_MAGIC_BYTES, "%s version %u", kind->what, version);
    return VV_OK;
}

void vv_sealed_begin(vv_wr *w, const vv_sealed_kind *kind)
{
    vv_wr_bytes(w, kind->magic, VV_MAGIC_BYTES);
    vv_wr_u16(w, kind->version);
}

vv_code vv_head_open(vv_segment_head *ret, const vv_sealed_kind *kind, const uint8_t *p, size_t n, const vv_euid *euid,
                     uint64_t sequence, bool trusted, vv_error *err)
{
    vv_code rc = vv_sealed_open(&ret->r, kind, p, n, trusted, err);
    if (rc != VV_OK)
        return rc;
    ret->sequence = vv_rd_u64(&ret->r);
    vv_rd_copy(&ret->r, ret->euid.b, sizeof ret->euid.b);
    if (!vv_rd_ok(&ret->r))
        return vv_rd_error(&ret->r, kind->what, err);
    if (euid && memcmp(euid, &ret->euid, sizeof *euid) != 0)
        return vv_fail_decode(err, "EuidMismatch", 18, "the segment belongs to another stream");
    if (sequence && sequence != ret->sequence)
        return vv_fail_decode(err, "SequenceMismatch", 10, "the segment says sequence %" PRIu64 " instead of %" PRIu64,
                              ret->sequence, sequence);
    return VV_OK;
}

vv_code vv_head_payload(vv_segment_head *h, const vv_sealed_kind *kind, vv_error *err)
{
    uint64_t len = vv_rd_u64(&h->r);
    if (len > vv_rd_left(&h->r))
        vv_rd_fail(&h->r, "Truncated");
    else if (len < vv_rd_left(&h->r))
        vv_rd_fail(&h->r, "TrailingBytes");
    return vv_rd_error(&h->r, kind->what, err);
}

void vv_head_begin(vv_wr *w, const vv_sealed_kind *kind, const vv_euid *euid, uint64_t sequence)
{
    vv_sealed_begin(w, kind);
    vv_wr_u64(w, sequence);
    vv_wr_bytes(w, euid->b, sizeof euid->b);
}

void vv_head_end(vv_wr *w, size_t header, uint64_t count)
{
    vv_wr_patch64(w, header - 16, count);
    vv_wr_patch64(w, header - 8, w->len - header);
    vv_seal_append(w, 0);
}
