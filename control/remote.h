/*
 * How another process speaks to a running host: one request and one answer, each one packet, on an abstract unix socket
 * of sequenced packets that is named after the host's process. No file is left behind, whatever happens to either side.
 *
 *     request = magic u32, version u16, verb u8, text, text
 *     answer  = magic u32, version u16, outcome u8, text
 *     text    = length u32, bytes
 *
 * All big-endian. The head up to the version stays as it is in all versions: a host answers a version that it does not
 * know with VV_REMOTE_VERSION, in its own. Both sides check who the other is: the client, that the process that listens
 * is the one it means and runs under its own user (unless it is root); the host, that the client is its own user or
 * root. Nobody else's bytes are read.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/bytes.h"
#include "base/error.h"

enum {
    VV_REMOTE_MAGIC = 0x76617276, /* "varv" */
    VV_REMOTE_PROTOCOL = 1,
    VV_REMOTE_REQUEST_MAX = 16 << 10,
    VV_REMOTE_ANSWER_MAX = 1 << 10,
};

typedef enum { VV_REMOTE_ATTACH = 1, VV_REMOTE_DETACH = 2 } vv_remote_verb;

/* attach: subject is the plug-in's absolute path. detach: its name, "" = the only one. */
typedef struct {
    vv_remote_verb verb;
    vv_str subject, arguments;
} vv_remote_request;

typedef enum {
    VV_REMOTE_DONE = 0,
    VV_REMOTE_REFUSED = 1, /* the text says why */
    VV_REMOTE_PENDING = 2, /* asked for, and not done yet: a callback still runs */
    VV_REMOTE_INVALID = 3, /* no request that one can read */
    VV_REMOTE_VERSION = 4, /* the text is empty; the head has the host's version */
} vv_remote_outcome;

typedef struct {
    vv_remote_outcome outcome;
    uint16_t version;
    char text[VV_REMOTE_ANSWER_MAX]; /* one line, NUL-terminated */
} vv_remote_answer;

/* The socket's name; returns its length. */
socklen_t vv_remote_address(struct sockaddr_un *ret, pid_t pid);

void vv_remote_put_request(vv_wr *w, const vv_remote_request *q);
/* VV_OK; or the outcome to answer with, VV_REMOTE_INVALID or VV_REMOTE_VERSION, in *ret_outcome and VV_ERR_CORRUPT. The
 * texts are views of p. */
vv_code vv_remote_get_request(const void *p, size_t n, vv_remote_request *ret, vv_remote_outcome *ret_outcome);
/* The text is cut to what fits. */
void vv_remote_put_answer(vv_wr *w, vv_remote_outcome outcome, const char *text);
vv_code vv_remote_get_answer(const void *p, size_t n, vv_remote_answer *ret, vv_error *err);

/*
 * Asks process pid and waits for its answer, timeout_ms at most. VV_ERR_NOTFOUND: no such process; VV_ERR_ARG: it is no
 * host that listens, another user's, or not what listens under its name; VV_ERR_LIMIT: no answer in time; VV_ERR_IO: it
 * went away; VV_ERR_CORRUPT: no answer that one can read.
 */
vv_code vv_remote_ask(pid_t pid, const vv_remote_request *q, unsigned timeout_ms, vv_remote_answer *ret,
                      vv_error *err);
