/* Byte ranges (RFC 9110, section 14). Pure functions. */
#pragma once

#include <stdint.h>

typedef enum {
    VV_RANGE_WHOLE,   /* no range, or one that may be ignored: several, another unit, nonsense */
    VV_RANGE_PART,    /* *first to *last, both included */
    VV_RANGE_OUTSIDE, /* none of it is there: 416 */
} vv_range_kind;

/* What the header Range (may be NULL) asks of a body of size bytes. */
vv_range_kind vv_range_of(const char *header, uint64_t size, uint64_t *first, uint64_t *last);
