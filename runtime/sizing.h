/* Sizing policy, version 1: all inner sizes follow from the one memory figure (docs/store.md). Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

enum {
    VV_SEGMENT_BYTES = 262144, /* of a ring */
    VV_RING_SPARES = 2,        /* free segments a ring keeps */
    VV_SLOT_CHARGE = 8192,     /* an execution in the Control pool */
    VV_ITEM_CHARGE = 256,      /* a context: what triggers count with */
    VV_FACT_CHARGE = 128,      /* likewise a fact, which takes about that on the disk */
    VV_META_CHARGE = 320,      /* a queued meta record */
    VV_MEMORY_MIN = 8921088,
};

typedef struct {
    uint64_t control, manual, general; /* pools, bytes */
    uint64_t slots;                    /* executions at a time */
    uint64_t segment_target;           /* bytes of a data segment */
    uint64_t epoch_target;             /* bytes of contexts before a rollover */
    uint64_t queue_slots;
    uint64_t single_value;             /* bytes */
} vv_sizing;

/*
 * The total where the host says none: 256 MiB, or an eighth of the address space that the process may have (UINT64_MAX:
 * no limit), as what the profiler takes the program has no more; not less than VV_MEMORY_MIN.
 */
uint64_t vv_sizing_total(uint64_t address_space);

/* False where total is below VV_MEMORY_MIN. */
VV_MUST_CHECK bool vv_sizing_derive(uint64_t total, vv_sizing *ret);
