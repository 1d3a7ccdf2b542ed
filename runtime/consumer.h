/*
 * The consumer: the one thread of a session that drains rings, folds, and publishes.
 *
 * It sleeps unless there is a backlog, and wakes when a ring's segment is full, a root has ended, somebody flushes, or
 * after 50 ms (or the publish interval, if shorter). A barrier makes ends and flushes exact: it notes where each ring
 * stands and is passed when each was read to there.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/joins.h"

struct varve_session;
struct vv_slot;

typedef struct {
    pthread_t thread;
    bool started;
    _Atomic bool stop;
    pthread_mutex_t lock; /* of the next five */
    pthread_cond_t flushed;
    uint64_t flush_asked, flush_done; /* tickets */
    bool flush_ok;                    /* of flush_done */
    bool finished;                    /* the thread has left its loop */
    _Atomic bool flush_pending;       /* flush_asked has moved */
    /* the thread's own */
    uint64_t barrier;         /* number of the current one */
    bool barrier_open;
    struct vv_slot *closing;  /* executions that wait for it, by next[VV_READY] */
    uint64_t barrier_flush;   /* the flush ticket that waits for it */
    uint64_t next_publish_ns; /* monotonic */
    vv_joins joins;
} vv_consumer;

/* False: no thread. */
bool vv_consumer_start(struct varve_session *s);
/* Tells the thread to end and waits until deadline_ns (monotonic). False: it is stuck. */
bool vv_consumer_stop(struct varve_session *s, uint64_t deadline_ns);
/* Waits until all that was recorded before is committed. */
bool vv_consumer_flush(struct varve_session *s, uint64_t timeout_ms);
/* One round of work; true: there is a backlog. The thread's own, or a test's that runs none. */
bool vv_consumer_pass(struct varve_session *s);
void vv_consumer_init(struct varve_session *s);
void vv_consumer_done(struct varve_session *s);
