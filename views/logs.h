/*
 * Log events that were recorded (docs/http-api.md): found by what is known of them, in a total order, page by page.
 * Varve's own writer records none; stores of others may hold some.
 */
#pragma once

#include "views/facts.h"
#include "views/listing.h"

typedef struct {
    const vv_str *level, *event, *text; /* parameters, or NULL */
    bool has_call, has_thread;
    vv_call_ref call;
    vv_thread_ref thread;
    vv_times times;
    bool as_recorded; /* in that order, else by time */
} vv_log_filter;

/* What stands beside the rows. */
enum { VV_LOG_LEVELS = 16 };
typedef struct {
    bool known; /* false where the fold failed */
    uint64_t logs, matched;
    struct {
        bool present; /* false: of those without a level */
        vv_str name;
        uint64_t logs;
    } levels[VV_LOG_LEVELS]; /* as they were met first */
    size_t level_count;
    uint64_t other_levels; /* logs of levels that found no room */
} vv_log_population;

typedef struct {
    vv_log_filter filter;
    vv_log_population population;
    vv_page page; /* rows are indexes of logs */
} vv_log_list;

/* Reads the parameters that filter, order and page, as far as that needs no execution: before one is loaded. */
VV_MUST_CHECK vv_code vv_log_list_read(vv_log_list *ret, vv_query *q, vv_error *err);
/* Fills what was read. NOTFOUND for a call or a thread that the execution lacks. */
VV_MUST_CHECK vv_code vv_log_list_make(vv_log_list *l, vv_query *q, const vv_profile *p, vv_error *err);
void vv_log_list_done(vv_log_list *l); /* accepts a zeroed one */

/* Its time in nanoseconds since 1970; false where that is beyond what they can hold. */
bool vv_log_time(const vv_log_event *e, uint64_t *ret_unix_ns);
