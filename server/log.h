/*
 * The log of requests, a line each:
 *
 *     2026-11-30T10:15:00.123Z GET /api/v1/flame?execution=latest 200 51234 12.345ms
 *
 * time of the end, method, target (escaped, without a token), status, bytes of the body, duration. Lines wait in a
 * bounded queue for a thread that writes them: no answer ever waits for the log. What finds no room, or can't be
 * written, is counted, and the count is logged once something can be. All calls but open and close may come from any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct vv_log vv_log;

typedef struct {
    const char *method, *target; /* as the client wrote them; NULL: not known */
    unsigned status;
    uint64_t bytes, duration_ns;
} vv_log_entry;

/* Told once that lines of a file are lost, and why: by the thread that writes, which may wait for it. */
typedef void vv_log_say(void *state, const char *line);

/* path NULL: standard error. The file is made (0600) or appended to. say may be NULL. */
VV_MUST_CHECK vv_code vv_log_open(vv_log **ret, const char *path, vv_log_say *say, void *say_state, vv_error *err);
void vv_log_write(vv_log *l, const vv_log_entry *e); /* accepts a NULL log */
/* Opens the file anew before the next line: after somebody has moved it away. Without effect on standard error. */
void vv_log_reopen(vv_log *l); /* accepts NULL */
/* Writes what is left, for at most a second. */
void vv_log_close(vv_log *l); /* accepts NULL */

enum { VV_LOG_LINE = 1024 };
/* One line with its newline; its length. unix_ns is when the answer ended. */
size_t vv_log_line(char out[VV_LOG_LINE], const vv_log_entry *e, uint64_t unix_ns);
