#include "config.h"

#include "format/usage.h"

#include "base/sha256.h"

static const char magic[8] = {'B', 'A', 'M', 'L', 'U', 'S', 'E', '1'};

void vv_usage_encode(uint8_t out[VV_USAGE_BYTES], uint64_t total)
{
    memcpy(out, magic, sizeof magic);
    vv_put64(out + 8, total);
    vv_sha256(out, 16, out + 16);
}

vv_code vv_usage_decode(const uint8_t *p, size_t n, uint64_t *ret_total, vv_error *err)
{
    if (n < VV_USAGE_BYTES)
        return vv_fail_decode(err, "Truncated", n, "usage ledger of %zu bytes", n);
    if (n > VV_USAGE_BYTES)
        return vv_fail_decode(err, "TrailingBytes", VV_USAGE_BYTES, "usage ledger of %zu bytes", n);
    uint8_t sum[VV_SHA256_BYTES];
    vv_sha256(p, 16, sum);
    if (memcmp(sum, p + 16, sizeof sum) != 0)
        return vv_fail_decode(err, "InvalidChecksum", 16, "usage ledger: the checksum does not match");
    if (memcmp(p, magic, sizeof magic) != 0)
        return vv_fail_decode(err, "InvalidMagic", 0, "not a usage ledger");
    *ret_total = vv_be64(p + 8);
    return VV_OK;
}
