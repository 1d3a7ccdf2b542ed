/*
 * Ends connections whose file has become too short for the body that was promised of it. The HTTP library lets the
 * system send files; where one ends too early, it would ask again for ever. One thread, asleep while no file is sent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct vv_file_watch vv_file_watch;

/* A file on its way to a client. Zeroed: none. */
typedef struct vv_watched_file {
    int file;     /* a descriptor of its own, while it is watched */
    uint64_t end; /* the file must be so long */
    int socket;   /* shut down where it is not */
    struct vv_watched_file *older, *newer;
    bool watched;
} vv_watched_file;

VV_MUST_CHECK vv_code vv_file_watch_start(vv_file_watch **ret, vv_error *err);
void vv_file_watch_stop(vv_file_watch *w); /* after the last file has been left; accepts NULL */

/* fd is duplicated. False where that can't be done: the file shall not be sent then. Any thread. */
bool vv_file_watch_enter(vv_file_watch *w, vv_watched_file *f, int fd, uint64_t end, int socket);
/* Before the socket is closed. Accepts one that was never entered, or has been left. Any thread. */
void vv_file_watch_leave(vv_file_watch *w, vv_watched_file *f);
