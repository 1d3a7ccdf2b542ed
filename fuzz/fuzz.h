/*
 * What the fuzz targets share. A target is fuzz/fuzz_<name>.c with LLVMFuzzerTestOneInput, and a corpus in
 * fuzz/corpus/<name>/. `make check` replays the corpus through fuzz/standalone.c; configured with --enable-fuzzing, the
 * same file is a libFuzzer program that `make fuzz-run` runs.
 *
 * A target aborts where a decoder breaks its promise; the sanitizers see the rest.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(cond)                                                             \
    do {                                                                             \
        if (!(cond)) {                                                               \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #cond); \
            abort();                                                                 \
        }                                                                            \
    } while (0)

/* A copy in memory of exactly n bytes whose last 32 are the seal of the rest: a checksum stops no mutation. */
static inline uint8_t *fuzz_resealed(const uint8_t *p, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    FUZZ_CHECK(copy);
    if (n)
        memcpy(copy, p, n);
    if (n >= 32)
        vv_sha256(copy, n - 32, copy + n - 32);
    return copy;
}

/* The input as it is, then sealed. */
static inline void fuzz_with_seal(const uint8_t *p, size_t n, void (*fuzz)(const uint8_t *, size_t))
{
    fuzz(p, n);
    uint8_t *sealed = fuzz_resealed(p, n);
    fuzz(sealed, n);
    free(sealed);
}
