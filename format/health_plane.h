/*
 * The health plane, streams/<euid>/health/<20 digits>.varvehealth: the terms of the equations of executions that ended,
 * beside the 26 counters of their RootEnded records. Our own extension: other readers look past it, and a reader needs
 * no file of it.
 *
 *   "VARVHLT1" u16(1) sequence u64 euid[16] record_count u64 payload_len u64   payload   sha256[32]
 *   record  := root[32]  u16 n  n x { str name, u64 value }        names ascending by bytes, each once
 *
 * The decoder is a cursor over the caller's bytes, which stay alive as long as anything taken from it. It allocates
 * nothing.
 */
#pragma once

#include "format/segment.h"

enum {
    VV_HEALTH_PLANE_VERSION = 1,
    VV_HEALTH_PLANE_HEADER = 50,
    VV_HEALTH_NAME_MAX = 255,
    VV_HEALTH_RECORD_FIXED = 34,
    VV_HEALTH_TERM_FIXED = 12,
};

typedef struct {
    uint64_t sequence;
    vv_euid euid;
    uint64_t record_count;
    vv_rd payload;
    uint64_t records_done;
} vv_health_segment;

typedef struct {
    vv_thread_ref root;
    uint16_t count;
    vv_rd terms; /* at the first; checked as a whole */
} vv_health_record;

/* As vv_data_open: Truncated, InvalidChecksum (skipped where trusted), InvalidMagic, UnsupportedVersion, EuidMismatch,
 * SequenceMismatch, TrailingBytes. */
VV_MUST_CHECK vv_code vv_health_open(vv_health_segment *s, const uint8_t *p, size_t n, const vv_euid *euid,
                                     uint64_t sequence, bool trusted, vv_error *err);
/*
 * The next record; *ret_more = false at the end. Errors: Truncated, TrailingBytes, HealthNameInvalid (empty, over
 * VV_HEALTH_NAME_MAX bytes, or no UTF-8), HealthNameOrder (not ascending). A reader must walk all records before it
 * trusts one.
 */
VV_MUST_CHECK vv_code vv_health_next(vv_health_segment *s, vv_health_record *ret, bool *ret_more, vv_error *err);

/* The terms of a checked record in order; false at the end. */
bool vv_health_term(vv_health_record *r, vv_str *ret_name, uint64_t *ret_value);
/* The value of one term; false where the record has none of that name. */
bool vv_health_find(const vv_health_record *r, const char *name, uint64_t *ret_value);
/* Sum of the terms whose names begin with prefix, saturating; 0 where there is none. */
uint64_t vv_health_sum(const vv_health_record *r, const char *prefix);

/* Writer, into an empty w: begin, records (each followed by exactly n terms in order), end. A bad name fails the writer
 * as HealthNameInvalid; order is the caller's promise. */
void vv_health_begin(vv_wr *w, const vv_euid *euid, uint64_t sequence);
void vv_health_add(vv_wr *w, const vv_thread_ref *root, uint16_t n);
void vv_health_add_term(vv_wr *w, const char *name, uint64_t value);
void vv_health_end(vv_wr *w, uint64_t record_count);
