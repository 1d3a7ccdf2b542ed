/* The 26 health counters of an execution, in their order on disk (docs/store.md). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define VV_HEALTH_FIELDS(X)                          \
    X(corrupt_records)                               \
    X(active_thread_capacity_exceeded)               \
    X(active_call_capacity_exceeded)                 \
    X(join_capacity_exceeded)                        \
    X(unmatched_call_facts)                          \
    X(unmatched_thread_facts)                        \
    X(clock_invalid)                                 \
    X(cct_segment_publish_failed)                    \
    X(evidence_queue_full)                           \
    X(evidence_segment_publish_failed)               \
    X(structural_transport_exceeded)                 \
    X(value_attempt_transport_exceeded)              \
    X(applicable_error_unwinds)                      \
    X(error_captures_queued)                         \
    X(error_captures_committed)                      \
    X(error_capture_attempt_transport_exceeded)      \
    X(error_capture_missing_structural_join)         \
    X(error_capture_start_uncommitted)               \
    X(error_capture_evidence_queue_full)             \
    X(error_capture_evidence_publish_failed)         \
    X(terminal_error_links_observed)                 \
    X(terminal_error_links_queued)                   \
    X(terminal_error_links_committed)                \
    X(terminal_error_link_transport_exceeded)        \
    X(terminal_error_link_start_uncommitted)         \
    X(terminal_error_link_evidence_publish_failed)

enum {
#define VV_HEALTH_ENUM(name) VV_H_##name,
    VV_HEALTH_FIELDS(VV_HEALTH_ENUM)
#undef VV_HEALTH_ENUM
    VV_HEALTH_COUNT
};

enum { VV_HEALTH_BYTES = 208 };

typedef struct {
    uint64_t v[VV_HEALTH_COUNT];
} vv_health;

/* The field's name, as the store format spells it. */
const char *vv_health_name(unsigned field);

/* True for the fields that mean loss (0 to 11, 15 to 19, 23 to 25); the others are accounting. */
bool vv_health_is_loss(unsigned field);

void vv_health_encode(vv_wr *w, const vv_health *h);
void vv_health_decode(vv_rd *r, vv_health *ret);
