/*
 * Those who follow the store, each a thread of its own that waits here. One thread watches the store while anybody
 * follows; another one watches the followers' sockets, since a client that hangs up while nothing is sent to it would
 * be noticed by nobody else.
 *
 * A change is told to the followers by the thread that found it (vv_hub_notice), which waits for none of them: a
 * follower who is slow, or does not read at all, is told the newest state once it comes back.
 */
#pragma once

#include "server/feed.h"

typedef struct vv_hub vv_hub;

enum {
    VV_HUB_PLACES = 64,
    VV_HUB_WAIT_MAX = 60,       /* seconds of a long poll */
    VV_HUB_HEARTBEAT = 15,      /* seconds without an event */
};

typedef struct {
    unsigned places;         /* followers at a time; 0: VV_HUB_PLACES */
    uint64_t heartbeat_ns;   /* 0: VV_HUB_HEARTBEAT */
} vv_hub_options;

/* Before the library watches its store; it is borrowed. */
VV_MUST_CHECK vv_code vv_hub_new(vv_hub **ret, vv_library *l, const vv_hub_options *o, vv_error *err);
/* A vv_library_notice; state is the hub. */
void vv_hub_notice(void *hub, const vv_look *look);
/* At most so many places, where there are fewer connections. Before the first follower. */
void vv_hub_limit(vv_hub *h, unsigned places);
/* How many may follow at a time. Any thread, once that is not limited any more. */
unsigned vv_hub_places(const vv_hub *h);
/* Ends all who follow, and lets nobody else. Any thread. */
void vv_hub_stop(vv_hub *h);
void vv_hub_free(vv_hub *h); /* after all followers have gone; accepts NULL */

typedef enum {
    VV_FOLLOW_EVENTS, /* text/event-stream, without end */
    VV_FOLLOW_LINES,  /* application/x-ndjson, without end */
    VV_FOLLOW_ONCE,   /* one JSON object, after at most so long */
} vv_follow_form;

typedef struct vv_follower vv_follower;

/*
 * A follower who knows the state that cursor names (p NULL: none). socket is the client's, NULL: hanging up is not
 * noticed. Errors: LIMIT (no place is free), BUSY (the hub was stopped), NOMEM, IO (no thread).
 */
VV_MUST_CHECK vv_code vv_follower_new(vv_follower **ret, vv_hub *h, vv_follow_form form, vv_str cursor,
                                      uint64_t wait_ns, const int *socket, vv_error *err);
/*
 * Up to cap bytes of what is told, once there is something to tell. 0: that was all; -1: the client has gone, or there
 * is no memory.
 */
ssize_t vv_follower_read(vv_follower *f, char *buf, size_t cap);
void vv_follower_free(vv_follower *f);

/*
 * The object that one who knows the state of cursor is told at once: whether there is one, so that nothing need be
 * waited for. always: even that nothing has changed. Without memory w is not ok.
 */
bool vv_hub_tell(vv_hub *h, vv_str cursor, bool always, vv_wr *w);
