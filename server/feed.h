/*
 * What changed in a store from one state to the next, for those who follow it: each stream is remembered with the turn
 * at which it last changed, so that a follower who comes with any turn is told the newest state of just what is
 * different, and nothing is queued for anybody. A cursor is the number of a turn and of this feed.
 *
 * Owned by one thread at a time (server/hub.c locks it).
 */
#pragma once

#include "base/json.h"
#include "views/library.h"

typedef struct vv_feed vv_feed;

enum {
    VV_FEED_CURSOR = 40,   /* room for a cursor's text */
    VV_FEED_GONE = 1024,   /* streams that are no more, and are remembered */
};

/* epoch tells this feed's cursors from others'. NULL without memory. */
vv_feed *vv_feed_new(uint64_t epoch);
void vv_feed_free(vv_feed *f); /* accepts NULL */

/*
 * The store is in the state of look now, NULL: there is no store. True where that is another state than before. Without
 * memory the state stays the former one, and the next turn tells of both changes.
 */
bool vv_feed_turn(vv_feed *f, const vv_look *look);

/*
 * The present state apart from the feed, which may go on meanwhile: cheap, it shares what is large. To be read by any
 * one thread, and freed. NULL without memory.
 */
VV_MUST_CHECK vv_feed *vv_feed_share(const vv_feed *f);

/* The number of the present state. */
uint64_t vv_feed_now(const vv_feed *f);
/* The state that a cursor names; false where it is none of this feed's, or changes since are not all known. */
bool vv_feed_find(const vv_feed *f, vv_str cursor, uint64_t *ret_turn);
/* Whether the changes since that turn, which vv_feed_find gave earlier, are still all known. */
bool vv_feed_knows(const vv_feed *f, uint64_t turn);
void vv_feed_cursor(const vv_feed *f, uint64_t turn, char out[VV_FEED_CURSOR]);

/* An event as a JSON object: what changed since a turn, or, without one (NULL), the whole state. */
void vv_feed_json(vv_json *j, const vv_feed *f, const uint64_t *since);
