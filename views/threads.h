/*
 * The threads of an execution as lanes (docs/http-api.md): what spawned each, from when to when it ran, and what of it
 * was recorded. A thread that recorded calls or errors name, and no record of its own, is a lane too.
 */
#pragma once

#include "views/facts.h"
#include "views/listing.h"

typedef struct {
    vv_thread_ref thread;
    const vv_fold_thread *record; /* NULL: it is only named by others */
    uint64_t spans, errors;       /* recorded in it */
    bool has_first;
    uint64_t first_ns, last_ns;   /* of what is recorded in it: its span where no start and end are */
    uint8_t issues;               /* bits of vv_thread_issue_kind */
} vv_lane;

typedef struct {
    bool known;           /* false where the fold failed */
    uint64_t lanes, started, ended;
    vv_lane *all;
    vv_page page;         /* rows are indexes of all */
} vv_lane_list;

/* Reads the parameters that page, before an execution is loaded. */
VV_MUST_CHECK vv_code vv_lane_list_read(vv_lane_list *ret, vv_query *q, vv_error *err);
/* Fills what was read: by start, unknown ones last, then by id. */
VV_MUST_CHECK vv_code vv_lane_list_make(vv_lane_list *l, vv_query *q, const vv_profile *p, vv_error *err);
void vv_lane_list_done(vv_lane_list *l); /* accepts a zeroed one */

enum { VV_LANE_ISSUES = 4 };
extern const char *const vv_lane_issue_words[VV_LANE_ISSUES]; /* by bit; the last: it has no record at all */
