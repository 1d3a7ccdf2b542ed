/*
 * Rings that wait for another: when to stop waiting.
 *
 * A record that rests on one of another ring blocks its ring (see decoder.h). As its cause was written before it, the
 * cause is not behind what the rings held when the block was seen. So a doubt is opened: where each ring stands is
 * noted, and once every ring was read to there, or has itself not moved, a cause is known to be lost. Of the rings that
 * wait, the one whose record is the oldest can't wait for what is behind another's, so it is the one that goes on.
 *
 * Waiting is bounded besides: where all that is behind blocked rings takes more than a share of the memory, or
 * memory was denied for a ring, the oldest goes on too, and what is known to be late is counted as
 * join_capacity_exceeded.
 *
 * Owned by the consumer thread.
 */
#pragma once

#include "runtime/decoder.h"

struct varve_session;

typedef struct {
    uint64_t doubt; /* number of the current one */
    bool open;
    uint64_t denials; /* of rings, when last looked at */
} vv_joins;

/* A ring was drained as far as it went. */
void vv_joins_note(vv_joins *j, vv_ring *r, vv_decoded got);
/* After a sweep over all rings: the ring that must go on without its cause, and why; NULL: none yet. */
vv_ring *vv_joins_pick(struct varve_session *s, vv_force *ret_why);
/* Segments that may wait behind blocked rings. */
uint64_t vv_joins_limit(const struct varve_session *s);
