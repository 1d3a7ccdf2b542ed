/*
 * Sealed segment files of the two planes (docs/store.md): body and SHA-256 of the body.
 *
 *   data  "BAMLDAT1" u16(2) sequence u64 euid[16] group_count u64 payload_len u64   payload   sha256[32]
 *   group root[32] cct_health u8 cct_records u64 cct_len u64 cct  evidence_records u64 evidence_len u64 evidence
 *   meta  "BAMLMET1" u16(2) sequence u64 euid[16] data_high_water u64 record_count u64 payload_len u64  payload  sha256
 *
 * Decoders are cursors over the caller's bytes, which stay alive as long as anything taken from them. They allocate
 * nothing.
 */
#pragma once

#include "format/evidence.h"
#include "format/health.h"
#include "format/sealed.h"

enum {
    VV_SEGMENT_VERSION = 2,
    VV_DATA_HEADER = 50,
    VV_META_HEADER = 58,
    VV_GROUP_FIXED = 65,
};

typedef struct {
    uint64_t sequence;
    vv_euid euid;
    uint64_t group_count;
    vv_rd payload;
    uint64_t groups_done;
    bool has_previous;
    vv_thread_ref previous;
    const char *inner; /* after InvalidCct: the section's own error name; else NULL */
} vv_data_segment;

typedef struct {
    vv_thread_ref root;
    uint8_t cct_health;
    uint64_t cct_records, evidence_records;
    const uint8_t *cct, *evidence; /* views; sections are decoded by vv_cct_open and vv_evidence_open */
    uint64_t cct_len, evidence_len;
    uint64_t off, len;             /* of the whole group in the file */
} vv_group;

/* A section of length 0 and count 0 is absent; length 0 with a count is handed to the decoder (it fails as
 * Truncated). */
static inline bool vv_group_has_cct(const vv_group *g)
{
    return g->cct_len || g->cct_records;
}

static inline bool vv_group_has_evidence(const vv_group *g)
{
    return g->evidence_len || g->evidence_records;
}

/*
 * Opens a data segment. Checks in this order: at least 32 bytes (Truncated), checksum (InvalidChecksum; skipped where
 * trusted, for a file this process has verified before), InvalidMagic, UnsupportedVersion, EuidMismatch (where euid is
 * not NULL), SequenceMismatch (where sequence is not 0; stricter than the reference), payload length (Truncated,
 * TrailingBytes).
 */
VV_MUST_CHECK vv_code vv_data_open(vv_data_segment *s, const uint8_t *p, size_t n, const vv_euid *euid,
                                   uint64_t sequence, bool trusted, vv_error *err);
/*
 * The next group; *ret_more = false at the end, after the payload was found used up. Errors: DataDuplicateGroup,
 * DataGroupOrder, InvalidCct (InvalidHealth in the message and in inner), Truncated, DataEmptyGroup, TrailingBytes. A
 * reader must walk all groups before it trusts one: a segment with a bad group is corrupt as a whole.
 */
VV_MUST_CHECK vv_code vv_data_next(vv_data_segment *s, vv_group *ret, bool *ret_more, vv_error *err);

/* Writer, into an empty w: begin, groups in strictly ascending root order, end (patches counts, appends the seal). An
 * evidence section that is NULL but has a length is the caller's to write, right behind its group. */
void vv_data_begin(vv_wr *w, const vv_euid *euid, uint64_t sequence);
void vv_data_add(vv_wr *w, const vv_group *g);
void vv_data_end(vv_wr *w, uint64_t group_count);

typedef enum { VV_META_STREAM_STARTED, VV_META_ENGINE_STARTED, VV_META_ROOT_STARTED, VV_META_ROOT_ENDED } vv_meta_tag;

typedef enum {
    VV_EXEC_SUCCEEDED,
    VV_EXEC_FAILED,
    VV_EXEC_CANCELLED,
    VV_EXEC_PANICKED,
    VV_EXEC_ABANDONED,
} vv_exec_status;
enum { VV_ROOT_START_LOST = 1 }; /* bit 0 of RootEnded.flags */

typedef struct {
    uint32_t pid;
    uint64_t zero_unix_ns; /* wall clock of tick zero: wall = zero + any *_ns */
    vv_str version, os_arch;
} vv_stream_started;

typedef struct {
    uint64_t engine_id;
    vv_program_id program;
    bool has_table;
    vv_cid table;
    vv_opt_str revision, source;
} vv_engine_started;

typedef struct {
    vv_thread_ref root;
    uint64_t started_ns;
    vv_runtime_id runtime_id;
} vv_root_started;

typedef struct {
    vv_thread_ref root;
    uint64_t ended_ns;
    uint8_t status, flags;
    uint64_t first, last, count; /* data sequences that hold groups of this execution */
    vv_health health;
} vv_root_ended;

typedef struct {
    vv_meta_tag tag;
    union {
        vv_stream_started stream_started;
        vv_engine_started engine_started;
        vv_root_started root_started;
        vv_root_ended root_ended;
    };
} vv_meta_record;

typedef struct {
    uint64_t sequence;
    vv_euid euid;
    uint64_t data_high_water, record_count;
    vv_rd payload;
    uint64_t records_done;
} vv_meta_segment;

/* As vv_data_open. */
VV_MUST_CHECK vv_code vv_meta_open(vv_meta_segment *s, const uint8_t *p, size_t n, const vv_euid *euid,
                                   uint64_t sequence, bool trusted, vv_error *err);
/*
 * The next record; *ret_more = false at the end. Errors: MetaUnknownTag, MetaInvalidStatus, MetaInvalidHealth,
 * InvalidKind, InvalidUtf8, Truncated, TrailingBytes, MetaStreamStartedMisplaced. A reader must walk all records before
 * it trusts one.
 */
VV_MUST_CHECK vv_code vv_meta_next(vv_meta_segment *s, vv_meta_record *ret, bool *ret_more, vv_error *err);

void vv_meta_begin(vv_wr *w, const vv_euid *euid, uint64_t sequence, uint64_t data_high_water);
void vv_meta_add(vv_wr *w, const vv_meta_record *m); /* a text over 65536 bytes fails the writer as StringTooLong */
void vv_meta_end(vv_wr *w, uint64_t record_count);

/* Segment file names: 20 digits and the plane's extension. */
enum { VV_SEGMENT_NAME = 34 };
typedef enum { VV_PLANE_META, VV_PLANE_DATA, VV_PLANE_HEALTH, VV_PLANES } vv_plane;
const char *vv_plane_dir(vv_plane p); /* "meta", "data", "health" */
void vv_segment_name(char out[VV_SEGMENT_NAME], vv_plane p, uint64_t sequence);
/* True and the sequence where name is a segment's: a stem of exactly 20 digits that fit u64, at least 1, the
 * extension. */
bool vv_segment_parse(const char *name, vv_plane p, uint64_t *ret_sequence);
