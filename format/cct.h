/*
 * The calling-context section of a data group (docs/store.md).
 *
 *   payload := context_count u64, context_count x { key[32] opt tuple counters[104] },
 *              overflow_count u64, overflow_count x { reason u8 edge u8 counters[104] }
 *
 * Every row is additive: readers sum rows by key with saturation. A row without a tuple is a delta for a context
 * that is defined elsewhere. The decoder is a cursor over the caller's bytes: it copies a row at a time, allocates
 * nothing and checks each present tuple against its key. Rows handed out before an error are valid rows, but the
 * section as a whole is bad and the caller must drop what it took.
 */
#pragma once

#include "format/context.h"

typedef struct {
    uint64_t started, selected, ok, error, cancelled, exited;
    vv_u128 inclusive_ns, direct_child_ns, await_ns;
    uint64_t await_count;
} vv_counters;

enum { VV_COUNTERS_BYTES = 104, VV_CCT_DELTA_COUNTERS = 33, VV_CCT_ROW_MIN = 137, VV_CCT_OVERFLOW_ROW = 106 };

/* Health bits of a group. */
enum {
    VV_HEALTH_COUNTER_SATURATED = 1,
    VV_HEALTH_AWAIT_SATURATED = 2,
    VV_HEALTH_SELF_UNDERFLOW = 4,
    VV_HEALTH_ALL = 7,
};

typedef enum { VV_OVERFLOW_MEMORY = 0, VV_OVERFLOW_INVALID_PARENT = 1 } vv_overflow_reason;
enum { VV_OVERFLOW_REASONS = 2 };
/* "ContextMemoryUnavailableAfterDrain", "InvalidParentContext". */
const char *vv_overflow_reason_name(vv_overflow_reason r);

/* dst += src with saturation; returns the health bits that saturation raises. */
uint8_t vv_counters_add(vv_counters *dst, const vv_counters *src);
/* The same from a row's encoded counters, VV_COUNTERS_BYTES of them. */
uint8_t vv_counters_add_encoded(vv_counters *dst, const uint8_t *src);
bool vv_counters_zero(const vv_counters *c);
/* inclusive - min(direct child + await), clamped at 0. *ret_complete (may be NULL): the deduction did not exceed
 * inclusive. */
vv_u128 vv_counters_self(const vv_counters *c, bool *ret_complete);

typedef struct {
    vv_context_key key;
    bool defined;   /* the tuple is present */
    vv_tuple tuple;
    vv_counters counters;
    const uint8_t *encoded; /* decoders: the tuple's bytes, a view, where defined */
    size_t encoded_len;
} vv_cct_row;

typedef struct {
    vv_overflow_reason reason;
    vv_edge edge;
    vv_counters counters;
} vv_cct_overflow;

typedef struct {
    vv_rd r;
    uint64_t contexts_left, overflow_left, records, expected;
    bool in_overflow;
    /* skip the key check: the caller makes up for it (vv_cct_check_key) or verified the bytes before */
    bool trust_keys;
} vv_cct_cursor;

/*
 * Starts on a section's bytes; health and record_count are the group header's. Then rows until vv_cct_next_context says
 * false, then overflow rows until vv_cct_next_overflow does, then vv_cct_finish. Error names, in decode order:
 * InvalidHealth, Truncated, InvalidTag, InvalidContextKey, TrailingBytes, RecordCountMismatch. A cursor that failed
 * yields no more rows.
 */
void vv_cct_open(vv_cct_cursor *c, const uint8_t *p, size_t n, uint8_t health, uint64_t record_count);
bool vv_cct_next_context(vv_cct_cursor *c, vv_cct_row *ret);
/*
 * Takes the next row where it defines nothing, as it lies: key, the tag 0, and at VV_CCT_DELTA_COUNTERS its counters.
 * NULL: it is no such row, or no whole one; vv_cct_next_context says which.
 */
static inline const uint8_t *vv_cct_next_delta(vv_cct_cursor *c)
{
    const uint8_t *p = c->r.at;
    if (c->contexts_left == 0 || vv_rd_left(&c->r) < VV_CCT_ROW_MIN || p[VV_CCT_DELTA_COUNTERS - 1] != 0)
        return NULL;
    c->contexts_left--;
    c->r.at = p + VV_CCT_ROW_MIN;
    return p;
}
/*
 * For a cursor that trusts keys: checks the tuple of the row just read against its key. A definition equal to one that
 * was checked before needs no check of its own. False: the cursor has failed, as if the row had not been read.
 */
bool vv_cct_check_key(vv_cct_cursor *c, const vv_cct_row *row);
bool vv_cct_next_overflow(vv_cct_cursor *c, vv_cct_overflow *ret);
/* VV_OK, or the first failure by name. */
VV_MUST_CHECK vv_code vv_cct_finish(vv_cct_cursor *c, vv_error *err);

/* Row encoders. The writer emits counts itself: a u64 before each of the two lists. */
void vv_cct_encode_row(vv_wr *w, const vv_cct_row *row);
void vv_cct_encode_overflow(vv_wr *w, const vv_cct_overflow *row);
void vv_counters_encode(vv_wr *w, const vv_counters *c);
