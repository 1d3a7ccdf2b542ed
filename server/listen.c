#include "config.h"

#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

enum { BACKLOG = 256, HANDED_FD = 3, LOCK_TRIES = 400, LOCK_STEP_NS = 5000000 };

typedef union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
} address;

/* "ADDR:PORT" or "[ADDR6]:PORT" into an address. */
static bool parse_address(const char *text, address *a, socklen_t *len)
{
    char host[64];
    const char *colon = strrchr(text, ':'), *from = text;
    char *end;
    if (!colon || colon[1] < '0' || colon[1] > '9')
        return false;
    unsigned long port = strtoul(colon + 1, &end, 10);
    size_t n = (size_t)(colon - text);
    bool v6 = n >= 2 && text[0] == '[' && colon[-1] == ']';
    if (*end || port > 65535 || n >= sizeof host)
        return false;
    if (v6) {
        from++;
        n -= 2;
    }
    memcpy(host, from, n);
    host[n] = 0;
    if (strcmp(host, "localhost") == 0)
        strcpy(host, "127.0.0.1");
    *a = (address){0};
    if (v6) {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_port = htons((uint16_t)port);
        *len = sizeof a->v6;
        return inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1;
    }
    a->v4.sin_family = AF_INET;
    a->v4.sin_port = htons((uint16_t)port);
    *len = sizeof a->v4;
    return inet_pton(AF_INET, host, &a->v4.sin_addr) == 1;
}

static bool is_loopback(const address *a)
{
    if (a->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
    return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
}

/* What a bound address is called. */
static void name_address(vv_listener *l, const address *a)
{
    char text[INET6_ADDRSTRLEN] = "";
    bool v6 = a->any.sa_family == AF_INET6;
    const void *bytes = v6 ? (const void *)&a->v6.sin6_addr : (const void *)&a->v4.sin_addr;
    inet_ntop(a->any.sa_family, bytes, text, sizeof text);
    l->port = ntohs(v6 ? a->v6.sin6_port : a->v4.sin_port);
    l->reachable = !is_loopback(a);
    snprintf(l->literal, sizeof l->literal, v6 ? "[%s]" : "%s", text);
    snprintf(l->name, sizeof l->name, "http://%s:%u/", l->literal, l->port);
}

static void name_path(vv_listener *l, const char *path)
{
    char cwd[4096 - VV_LISTEN_PATH];
    bool whole = *path == '/' || !getcwd(cwd, sizeof cwd);
    l->local = true;
    snprintf(l->name, sizeof l->name, "unix:%s%s%s", whole ? "" : cwd, whole ? "" : "/", path);
}

static vv_code bind_address(vv_listener *l, const address *a, socklen_t len, const char *text, vv_error *err)
{
    int one = 1, fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return vv_fail_os(err, errno, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (a->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    address bound;
    socklen_t bound_len = sizeof bound;
    if (bind(fd, &a->any, len) != 0 || listen(fd, BACKLOG) != 0 || getsockname(fd, &bound.any, &bound_len) != 0) {
        int os = errno;
        close(fd);
        if (os == EADDRINUSE)
            return vv_fail(err, VV_ERR_EXISTS, "%s is in use by another program", text);
        return vv_fail_os(err, os, "listening on %s", text);
    }
    l->fd = fd;
    name_address(l, &bound);
    return VV_OK;
}

/* Whether somebody accepts connections there. */
static bool is_answered(const address *a, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return true;
    bool answered = connect(fd, &a->any, len) == 0 || (errno != ECONNREFUSED && errno != ENOENT);
    close(fd);
    return answered;
}

/* Removes a socket that nobody answers on any more: its owner was killed. */
static vv_code clear_stale(const address *a, socklen_t len, vv_error *err)
{
    struct stat st;
    const char *path = a->un.sun_path;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? VV_OK : vv_fail_os(err, errno, "%s", path);
    if (!S_ISSOCK(st.st_mode))
        return vv_fail(err, VV_ERR_EXISTS, "%s is there and no socket", path);
    if (is_answered(a, len))
        return vv_fail(err, VV_ERR_EXISTS, "%s is in use by another program", path);
    return unlink(path) == 0 || errno == ENOENT ? VV_OK : vv_fail_os(err, errno, "%s", path);
}

/* Of two that start at once only one may take a stale socket over: it holds the directory's lock meanwhile. */
static vv_code lock_directory(int *ret, const char *path, vv_error *err)
{
    char dir[VV_LISTEN_PATH];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    memcpy(dir, path, n);
    dir[n] = 0;
    const char *name = slash ? n ? dir : "/" : ".";
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return vv_fail_os(err, errno, "%s", name);
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if (i == LOCK_TRIES) {
            close(fd);
            return vv_fail(err, VV_ERR_EXISTS, "the directory of %s is locked by another program", path);
        }
        nanosleep(&(struct timespec){.tv_nsec = LOCK_STEP_NS}, NULL);
    }
    *ret = fd;
    return VV_OK;
}

static vv_code bind_path(vv_listener *l, const address *a, socklen_t len, vv_error *err)
{
    struct stat st;
    const char *path = a->un.sun_path;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return vv_fail_os(err, errno, "socket");
    /* The mode of the socket is the mode that its file is made with: at no time can others connect. */
    if (fchmod(fd, 0600) != 0 || bind(fd, &a->any, len) != 0 || lstat(path, &st) != 0 || listen(fd, BACKLOG) != 0) {
        int os = errno;
        close(fd);
        return vv_fail_os(err, os, "listening on %s", path);
    }
    l->fd = fd;
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    strcpy(l->path, path);
    name_path(l, path);
    return VV_OK;
}

static vv_code open_path(vv_listener *l, const char *path, vv_error *err)
{
    address a = {.un.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n == 0)
        return vv_fail(err, VV_ERR_ARG, "unix: needs the path of a socket behind it");
    if (n >= sizeof a.un.sun_path || n >= sizeof l->path)
        return vv_fail(err, VV_ERR_ARG, "the path of a socket has at most %zu bytes, not %zu; take a shorter one",
                       sizeof a.un.sun_path - 1, n);
    memcpy(a.un.sun_path, path, n);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    int lock = -1;
    vv_code rc = lock_directory(&lock, path, err);
    if (rc == VV_OK)
        rc = clear_stale(&a, len, err);
    if (rc == VV_OK)
        rc = bind_path(l, &a, len, err);
    vv_close(&lock);
    return rc;
}

vv_code vv_listen_open(vv_listener *ret, const char *text, vv_error *err)
{
    address a;
    socklen_t len = 0;
    *ret = (vv_listener){.fd = -1};
    if (strncmp(text, "unix:", 5) == 0)
        return open_path(ret, text + 5, err);
    if (!parse_address(text, &a, &len))
        return vv_fail(err, VV_ERR_ARG,
                       "\"%.100s\" is not an address to listen on (ADDR:PORT, [ADDR6]:PORT, unix:PATH)", text);
    return bind_address(ret, &a, len, text, err);
}

static bool number_of(const char *text, unsigned long *ret)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    *ret = strtoul(text, &end, 10);
    return errno == 0 && *end == 0;
}

bool vv_listen_is_handed(void)
{
    unsigned long pid;
    return getenv("LISTEN_FDS") && number_of(getenv("LISTEN_PID"), &pid) && pid == (unsigned long)getpid();
}

/* What the socket is, or ARG. */
static vv_code inspect(vv_listener *l, vv_error *err)
{
    address a = {0};
    socklen_t len = sizeof a, n = sizeof(int);
    int type = 0, listens = 0;
    if (getsockopt(l->fd, SOL_SOCKET, SO_TYPE, &type, &n) != 0 || getsockname(l->fd, &a.any, &len) != 0)
        return vv_fail(err, VV_ERR_ARG, "LISTEN_FDS: file descriptor %d is no socket", l->fd);
    n = sizeof listens;
    if (type != SOCK_STREAM || getsockopt(l->fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) != 0 || !listens)
        return vv_fail(err, VV_ERR_ARG, "LISTEN_FDS: file descriptor %d is no stream socket that listens", l->fd);
    switch (a.any.sa_family) {
    case AF_INET:
    case AF_INET6:
        name_address(l, &a);
        return VV_OK;
    case AF_UNIX:
        if (len < sizeof a.un)
            ((char *)&a)[len] = 0;
        name_path(l, len > offsetof(struct sockaddr_un, sun_path) && a.un.sun_path[0] ? a.un.sun_path : "@");
        return VV_OK;
    default:
        return vv_fail(err, VV_ERR_ARG, "LISTEN_FDS: file descriptor %d is neither a TCP nor a Unix socket", l->fd);
    }
}

vv_code vv_listen_take(vv_listener *ret, vv_error *err)
{
    unsigned long count = 0;
    *ret = (vv_listener){.fd = -1};
    bool good = number_of(getenv("LISTEN_FDS"), &count);
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDNAMES");
    if (!good || count == 0)
        return vv_fail(err, VV_ERR_ARG, "LISTEN_FDS is not a number of sockets");
    if (count != 1)
        return vv_fail(err, VV_ERR_ARG, "LISTEN_FDS hands over %lu sockets, and one is served; leave one in the unit",
                       count);
    vv_listener l = {.fd = HANDED_FD};
    vv_code rc = inspect(&l, err);
    if (rc != VV_OK)
        return rc;
    fcntl(l.fd, F_SETFD, FD_CLOEXEC);
    *ret = l;
    return VV_OK;
}

void vv_listen_hide(vv_listener *l)
{
    struct stat st;
    if (l->path[0] && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
        unlink(l->path);
    l->path[0] = 0;
}

void vv_listen_close(vv_listener *l)
{
    vv_listen_hide(l);
    vv_close(&l->fd);
}
