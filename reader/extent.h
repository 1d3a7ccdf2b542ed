/* How far the sequences of a plane reach, and which of them are not there. */
#pragma once

#include "reader/segments.h"

/* A range with more sequences without a file than this is refused (RangeTooLarge). */
enum { VV_MISSING_MAX = 1000000 };

typedef struct {
    uint64_t first, last;
} vv_range;

typedef struct {
    uint64_t high;       /* the highest name; 0: there is none */
    uint64_t contiguous; /* the highest sequence with no missing or undecodable one up to it */
    vv_range *bad;       /* runs of missing or undecodable sequences up to the highest name */
    size_t bad_count;
} vv_extent;

/* The caller frees ret->bad. NOMEM. */
VV_MUST_CHECK vv_code vv_extent_of(vv_extent *ret, const vv_seg_list *l, vv_error *err);
