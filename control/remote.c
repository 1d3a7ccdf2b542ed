#include "config.h"

#include "control/remote.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/text.h"

socklen_t vv_remote_address(struct sockaddr_un *ret, pid_t pid)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(ret->sun_path + 1, sizeof ret->sun_path - 1, "varve-host.%ld", (long)pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void put_head(vv_wr *w)
{
    vv_wr_u32(w, VV_REMOTE_MAGIC);
    vv_wr_u16(w, VV_REMOTE_PROTOCOL);
}

void vv_remote_put_request(vv_wr *w, const vv_remote_request *q)
{
    put_head(w);
    vv_wr_u8(w, (uint8_t)q->verb);
    vv_wr_str(w, q->subject);
    vv_wr_str(w, q->arguments);
}

/* A text that is handed on as a C string. */
static vv_str get_text(vv_rd *r)
{
    vv_str s = vv_rd_str(r, vv_rd_u32(r));
    if (s.n && memchr(s.p, '\0', s.n))
        vv_rd_fail(r, "InvalidText");
    return s;
}

static void finish(vv_rd *r)
{
    if (vv_rd_left(r))
        vv_rd_fail(r, "TrailingBytes");
}

vv_code vv_remote_get_request(const void *p, size_t n, vv_remote_request *ret, vv_remote_outcome *ret_outcome)
{
    vv_rd r = vv_rd_init(p, n);
    *ret_outcome = VV_REMOTE_INVALID;
    if (vv_rd_u32(&r) != VV_REMOTE_MAGIC)
        return VV_ERR_CORRUPT;
    if (vv_rd_u16(&r) != VV_REMOTE_PROTOCOL && vv_rd_ok(&r)) {
        *ret_outcome = VV_REMOTE_VERSION;
        return VV_ERR_CORRUPT;
    }
    uint8_t verb = vv_rd_u8(&r);
    if (verb != VV_REMOTE_ATTACH && verb != VV_REMOTE_DETACH)
        return VV_ERR_CORRUPT;
    vv_remote_request q = {.verb = (vv_remote_verb)verb};
    q.subject = get_text(&r);
    q.arguments = get_text(&r);
    finish(&r);
    if (!vv_rd_ok(&r))
        return VV_ERR_CORRUPT;
    *ret = q;
    return VV_OK;
}

void vv_remote_put_answer(vv_wr *w, vv_remote_outcome outcome, const char *text)
{
    enum { HEAD = 4 + 2 + 1 + 4 };
    put_head(w);
    vv_wr_u8(w, (uint8_t)outcome);
    vv_str s = vv_cstr(text);
    s.n = vv_utf8_cut(s, VV_REMOTE_ANSWER_MAX - HEAD - 1);
    vv_wr_str(w, s);
}

vv_code vv_remote_get_answer(const void *p, size_t n, vv_remote_answer *ret, vv_error *err)
{
    vv_rd r = vv_rd_init(p, n);
    vv_remote_answer a = {.outcome = VV_REMOTE_VERSION};
    if (vv_rd_u32(&r) != VV_REMOTE_MAGIC)
        vv_rd_fail(&r, "InvalidMagic");
    a.version = vv_rd_u16(&r);
    if (vv_rd_ok(&r) && a.version != VV_REMOTE_PROTOCOL) {
        *ret = a;
        return VV_OK;
    }
    uint8_t outcome = vv_rd_u8(&r);
    if (outcome > VV_REMOTE_VERSION)
        vv_rd_fail(&r, "InvalidOutcome");
    vv_str text = get_text(&r);
    finish(&r);
    if (text.n >= sizeof a.text)
        vv_rd_fail(&r, "TextTooLong");
    vv_code rc = vv_rd_error(&r, "the answer", err);
    if (rc != VV_OK)
        return rc;
    a.outcome = (vv_remote_outcome)outcome;
    if (text.n)
        memcpy(a.text, text.p, text.n);
    vv_text_tame(a.text, text.n);
    *ret = a;
    return VV_OK;
}

static vv_code check_peer(int fd, pid_t pid, vv_error *err)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0)
        return vv_fail_os(err, errno, "process %ld", (long)pid);
    if (peer.pid != pid)
        return vv_fail(err, VV_ERR_ARG, "process %ld is not what listens under its name", (long)pid);
    if (geteuid() != 0 && peer.uid != geteuid())
        return vv_fail(err, VV_ERR_ARG, "process %ld belongs to another user", (long)pid);
    return VV_OK;
}

static vv_code no_host(pid_t pid, int os, vv_error *err)
{
    if (os != ECONNREFUSED)
        return vv_fail_os(err, os, "process %ld can't be reached", (long)pid);
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return vv_fail(err, VV_ERR_NOTFOUND, "there is no process %ld", (long)pid);
    return vv_fail(err, VV_ERR_ARG, "process %ld is no host that listens", (long)pid);
}

static vv_code lost(pid_t pid, int os, unsigned timeout_ms, vv_error *err)
{
    if (os == EAGAIN || os == EWOULDBLOCK)
        return vv_fail(err, VV_ERR_LIMIT, "process %ld did not answer within %u ms", (long)pid, timeout_ms);
    return vv_fail(err, VV_ERR_IO, "process %ld went away before it answered", (long)pid);
}

static vv_code dial(int fd, pid_t pid, unsigned timeout_ms, vv_error *err)
{
    /* The first one also bounds connect. */
    struct timeval wait = {.tv_sec = timeout_ms / 1000, .tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    struct sockaddr_un at;
    socklen_t n = vv_remote_address(&at, pid);
    if (TEMP_FAILURE_RETRY(connect(fd, (const struct sockaddr *)&at, n)) != 0)
        return errno == EAGAIN ? lost(pid, errno, timeout_ms, err) : no_host(pid, errno, err);
    return check_peer(fd, pid, err);
}

static vv_code converse(int fd, pid_t pid, const vv_remote_request *q, unsigned timeout_ms, vv_remote_answer *ret,
                        vv_error *err)
{
    uint8_t packet[VV_REMOTE_REQUEST_MAX];
    vv_wr w = vv_wr_fixed(packet, sizeof packet);
    vv_remote_put_request(&w, q);
    if (!vv_wr_ok(&w))
        return vv_fail(err, VV_ERR_ARG, "the plug-in's path and arguments are longer than %d bytes",
                       VV_REMOTE_REQUEST_MAX);
    vv_code rc = dial(fd, pid, timeout_ms, err);
    if (rc != VV_OK)
        return rc;
    if (TEMP_FAILURE_RETRY(send(fd, packet, w.len, MSG_NOSIGNAL)) < 0)
        return lost(pid, errno, timeout_ms, err);
    ssize_t got = TEMP_FAILURE_RETRY(recv(fd, packet, sizeof packet, 0));
    if (got <= 0)
        return lost(pid, got ? errno : 0, timeout_ms, err);
    return vv_remote_get_answer(packet, (size_t)got, ret, err);
}

vv_code vv_remote_ask(pid_t pid, const vv_remote_request *q, unsigned timeout_ms, vv_remote_answer *ret,
                      vv_error *err)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return vv_fail_os(err, errno, "socket");
    vv_code rc = converse(fd, pid, q, timeout_ms, ret, err);
    close(fd);
    return rc;
}
