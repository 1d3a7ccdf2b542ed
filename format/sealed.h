/*
 * What sealed files have in common: a magic, a version, and at the end the SHA-256 of all before it; segments besides
 * say whose they are, and which. See docs/store.md.
 */
#pragma once

#include "base/bytes.h"
#include "format/ids.h"

enum { VV_MAGIC_BYTES = 8, VV_SEAL_BYTES = 32 };

/* What a kind of sealed file begins with. */
typedef struct {
    char magic[VV_MAGIC_BYTES + 1];
    uint16_t version;
    const char *what; /* names it in errors: "segment" */
} vv_sealed_kind;

/* Only the seal: at least 32 bytes, and the last 32 are the SHA-256 of the rest. Errors Truncated, InvalidChecksum. */
VV_MUST_CHECK vv_code vv_seal_check(const uint8_t *p, size_t n, vv_error *err);
/* Appends the SHA-256 of all that w holds from offset from on. */
void vv_seal_append(vv_wr *w, size_t from);

/*
 * Checks the seal (not where the file is trusted: verified by this process before), magic and version; *ret then reads
 * what follows, up to the seal. Errors: Truncated, InvalidChecksum, InvalidMagic, UnsupportedVersion. A file that ends
 * inside magic or version fails the reader instead.
 */
VV_MUST_CHECK vv_code vv_sealed_open(vv_rd *ret, const vv_sealed_kind *kind, const uint8_t *p, size_t n, bool trusted,
                                     vv_error *err);
void vv_sealed_begin(vv_wr *w, const vv_sealed_kind *kind);

/* What every segment begins with. */
typedef struct {
    uint64_t sequence;
    vv_euid euid;
    vv_rd r; /* behind the euid, in front of the seal */
} vv_segment_head;

/*
 * As vv_sealed_open, and the stream's id (where euid is given) and the sequence (where it is not 0) must be those:
 * EuidMismatch, SequenceMismatch.
 */
VV_MUST_CHECK vv_code vv_head_open(vv_segment_head *ret, const vv_sealed_kind *kind, const uint8_t *p, size_t n,
                                   const vv_euid *euid, uint64_t sequence, bool trusted, vv_error *err);
/* The payload's length, the last field of a header: all that is left. Truncated, TrailingBytes. */
VV_MUST_CHECK vv_code vv_head_payload(vv_segment_head *h, const vv_sealed_kind *kind, vv_error *err);

void vv_head_begin(vv_wr *w, const vv_sealed_kind *kind, const vv_euid *euid, uint64_t sequence);
/* Patches count and payload length, the last two fields of a header of header bytes, and seals. */
void vv_head_end(vv_wr *w, size_t header, uint64_t count);
