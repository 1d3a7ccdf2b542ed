#include "config.h"

#include "format/cas.h"

#include "base/text.h"
#include "format/sealed.h"

static const vv_sealed_kind kind = {"BAMLVAL1", 1, "content-addressed object"};

void vv_cid_begin(vv_sha256_ctx *c, uint16_t codec)
{
    uint8_t head[15] = "baml-value-v1";
    vv_put16(head + 13, codec);
    vv_sha256_init(c);
    vv_sha256_update(c, head, sizeof head);
}

void vv_cid_of(vv_cid *ret, uint16_t codec, const void *body, size_t n)
{
    vv_sha256_ctx c;
    vv_cid_begin(&c, codec);
    vv_sha256_update(&c, body, n);
    vv_sha256_final(&c, ret->b);
}

void vv_cas_frame(uint8_t head[VV_CAS_HEAD], uint8_t tail[VV_CAS_TAIL], uint16_t codec, const vv_cid *cid,
                  const void *body, size_t n)
{
    vv_wr w = vv_wr_fixed(head, VV_CAS_HEAD);
    vv_sealed_begin(&w, &kind);
    vv_wr_u16(&w, codec);
    vv_wr_u64(&w, n);
    vv_wr_bytes(&w, cid->b, sizeof cid->b);
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, head, VV_CAS_HEAD);
    vv_sha256_update(&c, body, n);
    vv_sha256_final(&c, tail);
}

void vv_cas_encode(vv_wr *w, uint16_t codec, const void *body, size_t n)
{
    uint8_t head[VV_CAS_HEAD], tail[VV_CAS_TAIL];
    vv_cid cid;
    vv_cid_of(&cid, codec, body, n);
    vv_cas_frame(head, tail, codec, &cid, body, n);
    vv_wr_bytes(w, head, sizeof head);
    vv_wr_bytes(w, body, n);
    vv_wr_bytes(w, tail, sizeof tail);
}

vv_code vv_cas_decode(vv_cas_object *ret, const uint8_t *p, size_t n, const vv_cid *expect, vv_error *err)
{
    vv_rd r;
    vv_code rc = vv_sealed_open(&r, &kind, p, n, false, err);
    if (rc != VV_OK)
        return rc;
    vv_cas_object o = {.codec = vv_rd_u16(&r)};
    uint64_t body_len = vv_rd_u64(&r);
    vv_rd_copy(&r, o.cid.b, sizeof o.cid.b);
    o.body = vv_rd_take(&r, body_len);
    o.body_len = (size_t)body_len;
    if (vv_rd_left(&r))
        vv_rd_fail(&r, "TrailingBytes");
    if (!vv_rd_ok(&r))
        return vv_rd_error(&r, "object", err);
    vv_cid cid;
    vv_cid_of(&cid, o.codec, o.body, o.body_len);
    if (memcmp(&cid, &o.cid, sizeof cid) != 0)
        return vv_fail_decode(err, "InvalidChecksum", 20, "object: the body does not hash to its content id");
    if (expect && memcmp(&cid, expect, sizeof cid) != 0)
        return vv_fail_decode(err, "CasIdentityMismatch", 20, "object: it holds another content id than its name");
    *ret = o;
    return VV_OK;
}

vv_code vv_cas_head(vv_cas_object *ret, const uint8_t head[VV_CAS_HEAD], uint64_t size, vv_error *err)
{
    vv_rd r = vv_rd_init(head, VV_CAS_HEAD);
    if (memcmp(vv_rd_take(&r, VV_MAGIC_BYTES), kind.magic, VV_MAGIC_BYTES) != 0)
        return vv_fail_decode(err, "InvalidMagic", 0, "no %s", kind.what);
    uint16_t version = vv_rd_u16(&r);
    if (version != kind.version)
        return vv_fail_decode(err, "UnsupportedVersion", VV_MAGIC_BYTES, "%s version %u", kind.what, version);
    *ret = (vv_cas_object){.codec = vv_rd_u16(&r)};
    uint64_t body_len = vv_rd_u64(&r), stands = size < VV_CAS_FIXED ? 0 : size - VV_CAS_FIXED;
    vv_rd_copy(&r, ret->cid.b, sizeof ret->cid.b);
    if (size < VV_CAS_FIXED || body_len > stands)
        return vv_fail_decode(err, "Truncated", size, "object: the file ends before its body");
    if (body_len < stands)
        return vv_fail_decode(err, "TrailingBytes", VV_CAS_FIXED + body_len, "object: the file goes on after its seal");
    ret->body_len = (size_t)body_len;
    return VV_OK;
}

void vv_cas_path(char out[VV_CAS_PATH], const vv_cid *cid)
{
    char hex[65];
    vv_hex(hex, cid->b, sizeof cid->b);
    memcpy(out, "cas/sha256/", 11);
    memcpy(out + 11, hex, 2);
    out[13] = '/';
    memcpy(out + 14, hex, 64);
    memcpy(out + 78, ".bamlvalue", 11);
}
