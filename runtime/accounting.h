/*
 * What an execution's calls, awaits and exact evidence came to, beyond the store's 26 health fields: the terms of
 * equations that hold once the execution has ended and its last group is committed or lost.
 *
 *   invocations_attempted           = invocations_folded + all invocations_lost.*
 *   await_intervals_started         = await_intervals_folded + all await_lost.*
 *   spans_selected                  = span_starts_committed + all span_start_lost.*
 *   span_starts_committed           = span_ends_committed + all span_end_lost.*
 *   runtime_id_annotations_observed = runtime_id_annotations_committed + all runtime_id_annotation_lost.*
 *   applicable_value_attempts       = value_occurrences_available + all value_lost.*
 *   applicable_error_unwinds        = error_captures_committed + all error_capture_lost.*
 *   error_captures_committed        = error_values_available + all error_value_lost.*
 *   terminal_error_links_observed   = terminal_error_links_committed + all terminal_error_link_lost.*
 *
 * Folded means: in committed rows, so that a reader finds the same sum over contexts and overflow buckets. self_time_*
 * is no loss of an interval but a call whose parts exceed it. Losses of values are in the order of their codes
 * (vv_account_of_value). Each entry: identifier, name; ascending by name.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define VV_ACCOUNTS_TABLE(X) \
    X(ERRORS_APPLICABLE, "applicable_error_unwinds") \
    X(VALUES_APPLICABLE, "applicable_value_attempts") \
    X(AWAIT_FOLDED, "await_intervals_folded") \
    X(AWAIT_STARTED, "await_intervals_started") \
    X(AWAIT_LOST_MEMORY, "await_lost.await_accumulator_memory_exceeded") \
    X(AWAIT_LOST_CLOCK, "await_lost.await_clock_invalid") \
    X(AWAIT_LOST_SATURATED, "await_lost.await_counter_saturated") \
    X(AWAIT_LOST_UNRECONCILED, "await_lost.await_interval_unreconciled") \
    X(AWAIT_LOST_TRANSPORT, "await_lost.awaited_end_transport_exceeded") \
    X(AWAIT_LOST_UNMATCHED, "await_lost.awaited_end_unmatched") \
    X(AWAIT_LOST_PUBLISH, "await_lost.cct_segment_publish_failed") \
    X(AWAIT_LOST_DISK, "await_lost.disk_guard_exceeded") \
    X(ERROR_LOST_DISK, "error_capture_lost.disk_guard_exceeded") \
    X(ERROR_LOST_TRANSPORT, "error_capture_lost.error_capture_attempt_transport_exceeded") \
    X(ERROR_LOST_QUEUE, "error_capture_lost.evidence_queue_full") \
    X(ERROR_LOST_PUBLISH, "error_capture_lost.evidence_segment_publish_failed") \
    X(ERROR_LOST_JOIN, "error_capture_lost.missing_structural_join") \
    X(ERROR_LOST_START, "error_capture_lost.start_uncommitted") \
    X(ERRORS_COMMITTED, "error_captures_committed") \
    X(ERROR_VALUE_LOST_CAS_CONFLICT, "error_value_lost.cas_conflict") \
    X(ERROR_VALUE_LOST_CAS_WRITE, "error_value_lost.cas_write_failed") \
    X(ERROR_VALUE_LOST_COPY, "error_value_lost.copy_failed") \
    X(ERROR_VALUE_LOST_DISK, "error_value_lost.disk_guard_exceeded") \
    X(ERROR_VALUE_LOST_ENCODE, "error_value_lost.encode_failed") \
    X(ERROR_VALUE_LOST_ATTEMPT_TRANSPORT, "error_value_lost.error_capture_attempt_transport_exceeded") \
    X(ERROR_VALUE_LOST_PUBLISH, "error_value_lost.evidence_segment_publish_failed") \
    X(ERROR_VALUE_LOST_UNAVAILABLE, "error_value_lost.store_unavailable") \
    X(ERROR_VALUE_LOST_TRANSPORT, "error_value_lost.value_attempt_transport_exceeded") \
    X(ERROR_VALUE_LOST_MEMORY, "error_value_lost.value_memory_exceeded") \
    X(ERROR_VALUE_LOST_TOO_LARGE, "error_value_lost.value_too_large") \
    X(ERROR_VALUES_AVAILABLE, "error_values_available") \
    X(CALLS_ATTEMPTED, "invocations_attempted") \
    X(CALLS_FOLDED, "invocations_folded") \
    X(CALLS_LOST_PUBLISH, "invocations_lost.cct_segment_publish_failed") \
    X(CALLS_LOST_DISK, "invocations_lost.disk_guard_exceeded") \
    X(CALLS_LOST_UNRECONCILED, "invocations_lost.invocation_unreconciled") \
    X(CALLS_LOST_TRANSPORT, "invocations_lost.transport_memory_exceeded") \
    X(CALLS_LOST_UNMATCHED, "invocations_lost.unmatched_call_fact") \
    X(ID_LOST_DISK, "runtime_id_annotation_lost.disk_guard_exceeded") \
    X(ID_LOST_QUEUE, "runtime_id_annotation_lost.evidence_queue_full") \
    X(ID_LOST_PUBLISH, "runtime_id_annotation_lost.evidence_segment_publish_failed") \
    X(ID_LOST_JOIN, "runtime_id_annotation_lost.missing_structural_join") \
    X(ID_LOST_TRANSPORT, "runtime_id_annotation_lost.runtime_id_annotation_transport_exceeded") \
    X(ID_LOST_START, "runtime_id_annotation_lost.start_uncommitted") \
    X(IDS_COMMITTED, "runtime_id_annotations_committed") \
    X(IDS_OBSERVED, "runtime_id_annotations_observed") \
    X(SELF_UNDERFLOW, "self_time_underflow") \
    X(END_LOST_DISK, "span_end_lost.disk_guard_exceeded") \
    X(END_LOST_QUEUE, "span_end_lost.evidence_queue_full") \
    X(END_LOST_PUBLISH, "span_end_lost.evidence_segment_publish_failed") \
    X(END_LOST_JOIN, "span_end_lost.missing_structural_join") \
    X(END_LOST_TRANSPORT, "span_end_lost.structural_end_transport_exceeded") \
    X(ENDS_COMMITTED, "span_ends_committed") \
    X(START_LOST_CALLS, "span_start_lost.active_call_capacity_exceeded") \
    X(START_LOST_DISK, "span_start_lost.disk_guard_exceeded") \
    X(START_LOST_QUEUE, "span_start_lost.evidence_queue_full") \
    X(START_LOST_PUBLISH, "span_start_lost.evidence_segment_publish_failed") \
    X(START_LOST_JOIN, "span_start_lost.missing_structural_join") \
    X(START_LOST_TRANSPORT, "span_start_lost.structural_start_transport_exceeded") \
    X(STARTS_COMMITTED, "span_starts_committed") \
    X(SPANS_SELECTED, "spans_selected") \
    X(LINK_LOST_DISK, "terminal_error_link_lost.disk_guard_exceeded") \
    X(LINK_LOST_QUEUE, "terminal_error_link_lost.evidence_queue_full") \
    X(LINK_LOST_PUBLISH, "terminal_error_link_lost.evidence_segment_publish_failed") \
    X(LINK_LOST_JOIN, "terminal_error_link_lost.missing_structural_join") \
    X(LINK_LOST_START, "terminal_error_link_lost.start_uncommitted") \
    X(LINK_LOST_TRANSPORT, "terminal_error_link_lost.terminal_error_link_transport_exceeded") \
    X(LINKS_COMMITTED, "terminal_error_links_committed") \
    X(LINKS_OBSERVED, "terminal_error_links_observed") \
    X(VALUE_LOST_CAS_CONFLICT, "value_lost.cas_conflict") \
    X(VALUE_LOST_CAS_WRITE, "value_lost.cas_write_failed") \
    X(VALUE_LOST_COPY, "value_lost.copy_failed") \
    X(VALUE_LOST_DISK, "value_lost.disk_guard_exceeded") \
    X(VALUE_LOST_ENCODE, "value_lost.encode_failed") \
    X(VALUE_LOST_ATTEMPT_TRANSPORT, "value_lost.error_capture_attempt_transport_exceeded") \
    X(VALUE_LOST_QUEUE, "value_lost.evidence_queue_full") \
    X(VALUE_LOST_PUBLISH, "value_lost.evidence_segment_publish_failed") \
    X(VALUE_LOST_JOIN, "value_lost.missing_structural_join") \
    X(VALUE_LOST_START, "value_lost.start_uncommitted") \
    X(VALUE_LOST_UNAVAILABLE, "value_lost.store_unavailable") \
    X(VALUE_LOST_TRANSPORT, "value_lost.value_attempt_transport_exceeded") \
    X(VALUE_LOST_MEMORY, "value_lost.value_memory_exceeded") \
    X(VALUE_LOST_TOO_LARGE, "value_lost.value_too_large") \
    X(VALUES_AVAILABLE, "value_occurrences_available")

typedef enum {
#define X(id, name) VV_ACCOUNT_##id,
    VV_ACCOUNTS_TABLE(X)
#undef X
        VV_ACCOUNTS
} vv_account;

/* Of one execution; the consumer's. */
typedef struct vv_accounting {
    uint64_t v[VV_ACCOUNTS];
} vv_accounting;

/* The names of the extension plane. */
const char *vv_account_name(vv_account a);
/* A reason among losses: its term is not stored where it is 0. */
bool vv_account_is_loss(vv_account a);
/* The term of a value that was lost with this code (format/evidence.h), of an input or output, or of an error. */
vv_account vv_account_of_value(unsigned code, bool error);

/* The equations of exact evidence, in the order of varve_part: losses are a range of terms; join is the one for what no
 * other reason explains. */
enum { VV_EVIDENCE_PARTS = 6 };
typedef struct {
    uint8_t all, committed, first_lost, last_lost, join;
} vv_evidence_equation;
extern const vv_evidence_equation vv_evidence_equations[VV_EVIDENCE_PARTS];
uint64_t vv_account_losses(const struct vv_accounting *a, const vv_evidence_equation *e);
/* What no reason explains becomes MissingStructuralJoin: records whose thread had lost its state. Calls and awaits have
 * terms of their own for that. */
void vv_account_reconcile(struct vv_accounting *a);

static inline void vv_account_add(vv_accounting *a, vv_account what, uint64_t n)
{
    a->v[what] = vv_sat64(a->v[what], n);
}
