/* Inside of vv_sha256: the blocks of two messages at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VV_SHA256_BLOCK = 64 };

/*
 * Takes blocks blocks from each of two messages into their states, eight words each. False, and nothing is done, where
 * the processor has no instructions for SHA-256.
 */
bool vv_sha256_pair(uint32_t a[8], const uint8_t *p, uint32_t b[8], const uint8_t *q, size_t blocks);
