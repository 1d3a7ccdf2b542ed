/* Counts of the whole process, over all its sessions. Any thread; they only grow. */
#pragma once

#include <stdint.h>

/* In the order of varve_process_counts. */
typedef enum {
    VV_COUNT_META_BATCH_LOST,
    VV_COUNT_ROOT_ENDED_LOST,
    VV_COUNT_FUNCTION_TABLE_PUBLISH_FAILED,
    VV_COUNT_EXECUTION_STATE_UNAVAILABLE,
    VV_COUNT_THREAD_LEASE_UNAVAILABLE,
    VV_COUNT_ROOT_ABANDONED,
    VV_COUNT_HEALTH_RECORD_LOST,
    VV_PROCESS_COUNTS,
} vv_process_count;

/* Saturating. */
void vv_count(vv_process_count what, uint64_t n);
