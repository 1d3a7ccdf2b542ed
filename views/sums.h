/*
 * Digests of immutable files, remembered by which file it was: whoever reads one range by range, or asks whether it has
 * changed, does not make us hash it each time. Any thread.
 */
#pragma once

#include "base/sha256.h"
#include "reader/source.h"

typedef struct vv_sums vv_sums;

vv_sums *vv_sums_new(void); /* NULL without memory */
void vv_sums_free(vv_sums *s);

/* Finds a digest. *ret_keep is true before, and shall be false after where it is none to be remembered. */
typedef vv_code vv_sum_fn(void *state, uint8_t sum[VV_SHA256_BYTES], bool *ret_keep, vv_error *err);

/*
 * The digest that find gives for a file that was just opened, and has not been read since; find is not called where the
 * digest is remembered of this very file. of tells digests of one file apart: the content id that the file was verified
 * against, or NULL. Several who ask for the digest of one large file wait for the first. Errors are those of find.
 */
VV_MUST_CHECK vv_code vv_sums_get(vv_sums *s, const vv_open_file *file, const uint8_t of[VV_SHA256_BYTES],
                                  vv_sum_fn *find, void *state, uint8_t sum[VV_SHA256_BYTES], vv_error *err);
