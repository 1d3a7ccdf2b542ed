/*
 * The host's side of remote.h: one thread that waits for requests and hands each to the host's own function, one after
 * the other. It blocks in the system while there is none, has all signals masked, and is not there in a child of fork,
 * nor is its socket.
 *
 * One listener a process, as the socket has the process's name.
 */
#pragma once

#include "base/error.h"
#include "control/remote.h"

/* Does what q asks for and says in text (size bytes, preset to "") what became of it. On the listener's thread. */
typedef vv_remote_outcome vv_listen_serve(void *ctx, const vv_remote_request *q, char *text, size_t size);

/* VV_ERR_EXISTS: somebody listens under this process's name already. Any thread. */
vv_code vv_listen_open(vv_listen_serve *serve, void *ctx, vv_error *err);
/* Afterwards nothing is served any more: returns when the thread has ended, or is left behind where a request is still
 * being served after grace_ms (false, also when asked again; ctx must stay). Nothing where nothing listens, or in a
 * child of fork. Not on two threads at once. */
bool vv_listen_close(unsigned grace_ms);
