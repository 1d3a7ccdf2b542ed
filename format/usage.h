/* usage.state, the ledger of bytes under the store root (docs/store.md): "BAMLUSE1" total u64
 * sha256[32]. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

enum { VV_USAGE_BYTES = 48 };

void vv_usage_encode(uint8_t out[VV_USAGE_BYTES], uint64_t total);
/* Errors: Truncated, TrailingBytes, InvalidChecksum, InvalidMagic. */
VV_MUST_CHECK vv_code vv_usage_decode(const uint8_t *p, size_t n, uint64_t *ret_total, vv_error *err);
