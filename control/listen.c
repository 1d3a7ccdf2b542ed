#include "config.h"

#include "control/listen.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/file.h"
#include "base/os_thread.h"

/* How long a client may take to say what it wants. */
enum { REQUEST_WAIT_MS = 2000, BACKLOG = 8 };

/* The descriptors change under the lock, which fork takes too: a child knows them all and closes them. */
static struct {
    pthread_mutex_t lock;
    int listening, client; /* -1: none */
    bool open, stopping;
    pthread_t thread;
    vv_listen_serve *serve;
    void *ctx;
} at = {.lock = PTHREAD_MUTEX_INITIALIZER, .listening = -1, .client = -1};

static void before_fork(void)
{
    pthread_mutex_lock(&at.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&at.lock);
}

static void drop(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void in_child(void)
{
    drop(&at.listening);
    drop(&at.client);
    at.open = at.stopping = false;
    pthread_mutex_unlock(&at.lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

/* Waits for a client and makes it at.client, -1 where it went away meanwhile. False: listening is over. */
static bool next_client(void)
{
    struct pollfd p = {.fd = at.listening, .events = POLLIN};
    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&at.lock);
    bool go_on = !at.stopping;
    at.client = go_on ? vv_accept_above(at.listening, SOCK_NONBLOCK) : -1;
    /* Where the system is out of descriptors or memory: not at full speed. */
    bool starved = go_on && at.client < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR;
    pthread_mutex_unlock(&at.lock);
    if (starved)
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    return go_on;
}

static bool is_allowed(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

/* False: the client said nothing in time, or went away. */
static bool receive(int fd, void *packet, size_t size, size_t *ret_n)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, REQUEST_WAIT_MS) <= 0)
        return false;
    /* With MSG_TRUNC the length is the packet's own: one that was cut is seen. */
    ssize_t n = recv(fd, packet, size, MSG_TRUNC);
    *ret_n = n < 0 ? 0 : (size_t)n;
    return n > 0;
}

/* A client that gave up does not want any more what it asked for. */
static bool is_gone(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0;
}

static void answer(int fd, vv_remote_outcome outcome, const char *text)
{
    uint8_t packet[VV_REMOTE_ANSWER_MAX];
    vv_wr w = vv_wr_fixed(packet, sizeof packet);
    vv_remote_put_answer(&w, outcome, text);
    /* The one packet of this connection has room; a client that does not read is not waited for. */
    if (vv_wr_ok(&w))
        send(fd, packet, w.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void serve(int fd)
{
    static uint8_t packet[VV_REMOTE_REQUEST_MAX + 1]; /* the listener's thread only */
    char text[VV_REMOTE_ANSWER_MAX] = "";
    size_t n;
    if (!is_allowed(fd) || !receive(fd, packet, sizeof packet, &n) || is_gone(fd))
        return;
    vv_remote_request q;
    vv_remote_outcome outcome = VV_REMOTE_INVALID;
    if (n <= VV_REMOTE_REQUEST_MAX && vv_remote_get_request(packet, n, &q, &outcome) == VV_OK)
        outcome = at.serve(at.ctx, &q, text, sizeof text);
    answer(fd, outcome, text);
}

static void *listener(void *unused)
{
    (void)unused;
    /* By itself: naming another thread opens a file, where the program may print. */
    pthread_setname_np(pthread_self(), "varve-control");
    while (next_client()) {
        if (at.client < 0)
            continue;
        serve(at.client);
        pthread_mutex_lock(&at.lock);
        drop(&at.client);
        pthread_mutex_unlock(&at.lock);
    }
    return NULL;
}

static vv_code bind_socket(vv_error *err)
{
    struct sockaddr_un name;
    socklen_t n = vv_remote_address(&name, getpid());
    at.listening = vv_socket_above(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    if (at.listening < 0)
        return vv_fail_os(err, errno, "socket");
    if (bind(at.listening, (const struct sockaddr *)&name, n) == 0 && listen(at.listening, BACKLOG) == 0)
        return VV_OK;
    return errno == EADDRINUSE ? vv_fail(err, VV_ERR_EXISTS, "the name of process %ld is taken", (long)getpid())
                               : vv_fail_os(err, errno, "bind");
}

static vv_code start_thread(vv_error *err)
{
    int os = vv_os_thread_start(&at.thread, VV_STACK_PLUGINS, listener, NULL);
    return os ? vv_fail_os(err, os, "pthread_create") : VV_OK;
}

vv_code vv_listen_open(vv_listen_serve *fn, void *ctx, vv_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&at.lock);
    vv_code rc = at.open ? vv_fail(err, VV_ERR_EXISTS, "this process listens already") : bind_socket(err);
    if (!at.open) {
        at.serve = fn;
        at.ctx = ctx;
        at.stopping = false;
        if (rc == VV_OK)
            rc = start_thread(err);
        at.open = rc == VV_OK;
        if (!at.open)
            drop(&at.listening);
    }
    pthread_mutex_unlock(&at.lock);
    return rc;
}

static bool join(unsigned grace_ms)
{
    struct timespec until = vv_deadline(CLOCK_REALTIME, grace_ms);
    if (pthread_timedjoin_np(at.thread, NULL, &until) == 0)
        return true;
    pthread_detach(at.thread); /* also where the caller is the listener itself */
    return false;
}

bool vv_listen_close(unsigned grace_ms)
{
    pthread_mutex_lock(&at.lock);
    bool open = at.open && !at.stopping, left_behind = at.open && at.stopping;
    if (open) {
        at.stopping = true;
        /* Wakes the thread, wherever it waits. */
        shutdown(at.listening, SHUT_RDWR);
        if (at.client >= 0)
            shutdown(at.client, SHUT_RDWR);
    }
    pthread_mutex_unlock(&at.lock);
    if (!open)
        return !left_behind;
    if (!join(grace_ms))
        return false; /* it still owns its descriptors; nothing can listen here again */
    pthread_mutex_lock(&at.lock);
    drop(&at.listening);
    at.open = false;
    pthread_mutex_unlock(&at.lock);
    return true;
}
