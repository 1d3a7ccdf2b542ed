/*
 * What an execution's calls and awaits came to, beyond the store's 26 health fields: the terms of two equations that
 * hold once the execution has ended and its last group is committed or lost.
 *
 *   await_intervals_started = await_intervals_folded + all await_lost.*
 *   invocations_attempted   = invocations_folded + all invocations_lost.*
 *
 * Folded means: in committed rows, so that a reader finds the same sum over contexts and overflow buckets. self_time_*
 * is no loss of an interval but a call whose parts exceed it. Each entry: identifier, name; ascending by name.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/bytes.h"

#define VV_ACCOUNTS_TABLE(X) \
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
    X(CALLS_ATTEMPTED, "invocations_attempted") \
    X(CALLS_FOLDED, "invocations_folded") \
    X(CALLS_LOST_PUBLISH, "invocations_lost.cct_segment_publish_failed") \
    X(CALLS_LOST_DISK, "invocations_lost.disk_guard_exceeded") \
    X(CALLS_LOST_UNRECONCILED, "invocations_lost.invocation_unreconciled") \
    X(CALLS_LOST_TRANSPORT, "invocations_lost.transport_memory_exceeded") \
    X(CALLS_LOST_UNMATCHED, "invocations_lost.unmatched_call_fact") \
    X(SELF_UNDERFLOW, "self_time_underflow")

typedef enum {
#define X(id, name) VV_ACCOUNT_##id,
    VV_ACCOUNTS_TABLE(X)
#undef X
        VV_ACCOUNTS
} vv_account;

/* Of one execution; the consumer's. */
typedef struct {
    uint64_t v[VV_ACCOUNTS];
} vv_accounting;

/* The names of the extension plane. */
const char *vv_account_name(vv_account a);

static inline void vv_account_add(vv_accounting *a, vv_account what, uint64_t n)
{
    a->v[what] = vv_sat64(a->v[what], n);
}
