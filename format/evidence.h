/*
 * The evidence section of a data group: facts (docs/store.md).
 *
 *   payload := fact_count u64, fact_count x { tag u8, body_len u32, body }
 *
 * The decoder is a cursor over the caller's bytes; texts in a fact are views into them. Tags 0 to 9 are read, 0 to 7
 * written.
 */
#pragma once

#include "format/cct.h"

/* A context by key, or the overflow bucket of a reason and edge. */
typedef struct {
    bool overflow;
    uint8_t reason, edge;
    vv_context_key key;
} vv_context_ref;

/* Why a captured value is lost, and an error's capture: the codes on disk. */
typedef enum {
    VV_VALUE_LOST_MEMORY,
    VV_VALUE_LOST_TRANSPORT,
    VV_VALUE_LOST_ERROR_TRANSPORT,
    VV_VALUE_LOST_TOO_LARGE,
    VV_VALUE_LOST_COPY,
    VV_VALUE_LOST_ENCODE,
    VV_VALUE_LOST_CAS_WRITE,
    VV_VALUE_LOST_CAS_CONFLICT,
    VV_VALUE_LOST_DISK,
    VV_VALUE_LOST_PUBLISH,
    VV_VALUE_LOST_UNAVAILABLE,
    VV_VALUE_LOSSES,
} vv_value_loss;
typedef enum {
    VV_CAPTURE_LOST_TRANSPORT,
    VV_CAPTURE_LOST_JOIN,
    VV_CAPTURE_LOST_START,
    VV_CAPTURE_LOST_QUEUE,
    VV_CAPTURE_LOST_PUBLISH,
    VV_CAPTURE_LOST_DISK,
    VV_CAPTURE_LOST_UNAVAILABLE,
    VV_CAPTURE_LOSSES,
} vv_capture_loss;

/* A captured value: available with its content id, or lost. */
typedef struct {
    bool lost;
    uint8_t loss; /* vv_value_loss */
    uint16_t codec;
    uint64_t bytes; /* of the body */
    vv_cid cid;
} vv_value_state;

enum { VV_ROLE_INPUT = 1, VV_ROLE_OUTPUT = 2, VV_ROLE_ERROR = 4, VV_ROLES_ALL = 7 };
enum { VV_REASON_ROOT = 1, VV_REASON_LLM = 2, VV_REASON_MANUAL = 4, VV_REASONS_ALL = 7 };

typedef enum { VV_CALL_OK, VV_CALL_ERRORED, VV_CALL_CANCELLED, VV_CALL_EXITED } vv_call_status;
typedef enum { VV_THREAD_COMPLETED, VV_THREAD_CANCELLED, VV_THREAD_ERRORED } vv_thread_status;
const char *vv_call_status_name(vv_call_status s);     /* "Ok" "Errored" "Cancelled" "Exited" */
const char *vv_thread_status_name(vv_thread_status s); /* "Completed" "Cancelled" "Errored" */

typedef enum {
    VV_FACT_SPAN_START,
    VV_FACT_SPAN_END,
    VV_FACT_SPAN_RUNTIME_ID,
    VV_FACT_VALUE,
    VV_FACT_ERROR_CAPTURE,
    VV_FACT_TERMINAL_ERROR,
    VV_FACT_THREAD_START,
    VV_FACT_THREAD_END,
    VV_FACT_LOG,
    VV_FACT_CALL_SCOPE,
} vv_fact_tag;
enum { VV_FACTS = 10, VV_THREAD_NAME_MAX = 256 };

typedef struct {
    vv_call_ref call, parent;
    vv_thread_ref thread;
    vv_context_ref context;
    bool has_parent, has_site, has_runtime_id;
    uint8_t edge, reasons, roles;
    uint32_t function_id, annotation_ordinal;
    vv_site site;
    uint64_t started_ns;
    vv_runtime_id runtime_id;
} vv_span_start;

typedef struct {
    vv_call_ref call;
    uint64_t ended_ns, inclusive_ns;
    uint8_t status; /* vv_call_status */
} vv_span_end;

typedef struct {
    vv_call_ref call;
    uint32_t ordinal;
    vv_runtime_id id;
} vv_span_runtime_id;

typedef struct {
    vv_call_ref call;
    vv_context_ref context;
    uint8_t role; /* 0 input, 1 output */
    vv_value_state value;
} vv_value_occurrence;

/* Mind the order of the site's fields on disk: file, line, start, end. vv_site keeps them by name. */
typedef struct {
    vv_capture_id id;
    vv_call_ref throw_call;
    vv_context_ref context;
    bool has_site;
    uint8_t kind, source; /* 0 fresh 1 rethrow; 0 bytecode 1 native call 2 engine call 3 future resume */
    uint32_t function_id;
    vv_site site;
    vv_value_state value;
} vv_error_capture;

typedef struct {
    vv_call_ref call;
    bool lost;
    uint8_t loss; /* vv_capture_loss */
    vv_capture_id capture;
} vv_terminal_error;

typedef struct {
    vv_thread_ref thread, parent;
    vv_call_ref spawn_call;
    bool has_parent, has_spawn_call, has_spawn_site;
    uint8_t kind; /* 0 root, 1 spawn */
    vv_site spawn_site;
    uint64_t started_ns;
    vv_str name; /* at most VV_THREAD_NAME_MAX bytes */
} vv_thread_start;

typedef struct {
    vv_thread_ref thread;
    uint64_t ended_ns;
    uint8_t status; /* vv_thread_status */
} vv_thread_end;

typedef struct {
    bool has_call, has_site, has_column;
    vv_call_ref call;
    uint64_t timestamp_ms;
    vv_opt_str level, message, event, distinct_id;
    vv_site site;
    uint32_t column;
    vv_value_state context, data;
} vv_log_event;

typedef struct {
    vv_call_ref call;
    vv_opt_str distinct_id;
    vv_value_state context;
} vv_call_scope;

typedef struct {
    vv_fact_tag tag;
    union {
        vv_span_start span_start;
        vv_span_end span_end;
        vv_span_runtime_id span_runtime_id;
        vv_value_occurrence value;
        vv_error_capture error_capture;
        vv_terminal_error terminal_error;
        vv_thread_start thread_start;
        vv_thread_end thread_end;
        vv_log_event log;
        vv_call_scope call_scope;
    };
} vv_fact;

typedef struct {
    vv_rd r;
    uint64_t left, facts, expected;
    const char *inner; /* after InvalidNestedError: the fault inside; else NULL */
} vv_evidence_cursor;

/*
 * Starts on a section's bytes; record_count is the group header's. Facts until vv_evidence_next says false, then
 * vv_evidence_finish. Error names: Truncated, InvalidTag, InvalidBits, NameTooLong, InvalidUtf8, InvalidNestedError
 * (the inner name in the message), TrailingBytes, RecordCountMismatch. Facts before an error are valid, the section is
 * not.
 */
void vv_evidence_open(vv_evidence_cursor *c, const uint8_t *p, size_t n, uint64_t record_count);
bool vv_evidence_next(vv_evidence_cursor *c, vv_fact *ret);
VV_MUST_CHECK vv_code vv_evidence_finish(vv_evidence_cursor *c, vv_error *err);

/* Appends one fact with its tag and length (tags 0 to 7; a longer thread name is cut on a character boundary). */
void vv_fact_encode(vv_wr *w, const vv_fact *f);
