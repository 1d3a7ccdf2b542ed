/*
 * Checkpoints: what a stream and its executions have come to, for any thread to read while they run.
 *
 * The consumer takes a look after each publication, and else at most every 10 ms and for a twentieth of its time; a
 * reader copies the last look. Both do so under one lock that is never held over anything slow, so that neither waits
 * for the other's work.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/varve.h"

struct vv_slot;

typedef struct {
    pthread_mutex_t lock; /* of what follows, of the slots' views, and of what these point to */
    varve_stream_state stream;
    uint64_t oldest_ns; /* monotonic: since when something is pending; 0 = nothing is */
    uint64_t next_ns;   /* the consumer's: no look before that */
} vv_checkpoint;

void vv_checkpoint_init(varve_session *s);
void vv_checkpoint_done(varve_session *s);

/* Consumer: a look; published says that a cycle has just ended. */
void vv_checkpoint_take(varve_session *s, bool published);
/* Consumer: the slot is about to be free. */
void vv_checkpoint_leave(varve_session *s, struct vv_slot *slot);

/* Who a root is: NULL where its generation is over. */
struct vv_slot *vv_root_current(const varve_root *root);
