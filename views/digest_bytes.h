/*
 * A digest as bytes, for the index: what a list says of an execution, to be told again without loading it. For this
 * machine only; VV_INDEX_VERSION stands for their layout.
 */
#pragma once

#include "index/index.h"
#include "views/digest.h"

/*
 * All that the digest of an execution depends on: the signature of what the library goes by, and the files of its
 * tables.
 */
void vv_digest_key(uint8_t out[32], const uint8_t signature[32], const vv_store *store, const vv_stream *stream,
                   const vv_execution *execution);

/*
 * May it be told again? Not while it runs, and not where a file that the look has could not be read: that may pass.
 */
bool vv_digest_is_lasting(const vv_execution *execution, const vv_profile *p);

/* Appends; a digest that does not fit fails the writer. */
void vv_digest_put(vv_wr *w, const vv_digest *d);
/* CORRUPT where the bytes are no digest; NOMEM. */
VV_MUST_CHECK vv_code vv_digest_get(vv_digest **ret, const uint8_t *p, size_t n, vv_error *err);
