/*
 * A value on its way from the host to the consumer: written by the host's varve_put_... calls, charged to Values.
 *
 * One reservation that grows: before each allocation, in the pool where it began; where General denies it, a value of a
 * call selected by hand moves to Manual. A small value is one block with its handle, of the least charge. A loss gives
 * back at once what was written; the handle, of the least charge, stays until it is taken.
 *
 * One thread at a time owns a capture.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "format/value_write.h"
#include "runtime/body.h"
#include "runtime/governor.h"
#include "runtime/varve.h"

/* What the value is of: kept for the producer, which alone reads and writes it. */
typedef struct {
    varve_thread *thread;
    unsigned kind;
    uint64_t extra[4];
} vv_capture_of;

enum { VV_CAPTURE_BLOCK = 448 }; /* the handle and the first bytes: the most that the least charge of Values pays for */

struct varve_capture {
    vv_capture_of of;
    vv_governor *governor;
    vv_pool pool, body_pool; /* of this block, and of the bytes */
    bool manual;
    vv_vw w;
    uint8_t first[];
};

/* NULL: the least charge was denied in General and, where manual, in Manual too. limit is of the body's bytes. */
VV_MUST_CHECK varve_capture *vv_capture_new(vv_governor *g, bool manual, size_t limit);
/* Frees the handle. -1: *ret is the body, the caller's (vv_body_free); else why it is lost (vv_value_loss), and there
 * is none. */
VV_MUST_CHECK int vv_capture_take(varve_capture *c, vv_body *ret);
