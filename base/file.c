#include "config.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void vv_blob_done(vv_blob *b)
{
    free(b->p);
    *b = (vv_blob){NULL, 0};
}

void vv_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* What the program closed of its standard descriptors meanwhile: a copy above them. */
static int move_above(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), os = errno;
    close(fd);
    errno = os;
    return above;
}

/* One for all threads: who comes while another stands in must not find the numbers free when that one goes. */
static struct {
    pthread_mutex_t lock;
    unsigned users;
    bool ours[STDERR_FILENO + 1];
} standing = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void take_places(void)
{
    int fd;
    while ((fd = open("/", O_PATH | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
        standing.ours[fd] = true;
    if (fd >= 0)
        close(fd);
}

static void give_back(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        int flags = standing.ours[fd] ? fcntl(fd, F_GETFL) : -1;
        /* The program may have put a file of its own there meanwhile. */
        if (flags >= 0 && flags & O_PATH)
            close(fd);
        standing.ours[fd] = false;
    }
}

static void before_fork(void)
{
    pthread_mutex_lock(&standing.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&standing.lock);
}

static void in_child(void)
{
    give_back();
    standing.users = 0;
    pthread_mutex_init(&standing.lock, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

vv_standing vv_standing_in(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&standing.lock);
    bool closed = !is_open(STDIN_FILENO) || !is_open(STDOUT_FILENO) || !is_open(STDERR_FILENO);
    vv_standing s = {.in = closed || standing.users};
    if (closed)
        take_places();
    standing.users += s.in;
    pthread_mutex_unlock(&standing.lock);
    return s;
}

void vv_standing_done(vv_standing *s)
{
    int os = errno;
    pthread_mutex_lock(&standing.lock);
    if (s->in && standing.users && --standing.users == 0)
        give_back();
    s->in = false;
    pthread_mutex_unlock(&standing.lock);
    errno = os;
}

int vv_open_above(int dirfd, const char *path, int flags, mode_t mode)
{
    VV_CLEANUP(vv_standing_done) vv_standing s = vv_standing_in();
    return move_above(openat(dirfd, path, flags | O_CLOEXEC, mode));
}

int vv_socket_above(int domain, int type, int protocol)
{
    VV_CLEANUP(vv_standing_done) vv_standing s = vv_standing_in();
    return move_above(socket(domain, type | SOCK_CLOEXEC, protocol));
}

int vv_accept_above(int fd, int flags)
{
    VV_CLEANUP(vv_standing_done) vv_standing s = vv_standing_in();
    return move_above(accept4(fd, NULL, NULL, flags | SOCK_CLOEXEC));
}

static vv_code read_exactly(int fd, uint8_t *p, size_t n, vv_error *err)
{
    for (size_t at = 0; at < n;) {
        ssize_t k = read(fd, p + at, n - at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return vv_fail_os(err, errno, "read");
        if (k == 0)
            return vv_fail_decode(err, "Truncated", at, "the file shrank while it was read");
        at += (size_t)k;
    }
    return VV_OK;
}

vv_code vv_file_read(int dirfd, const char *name, uint64_t max, vv_blob *ret, vv_error *err)
{
    /* O_NONBLOCK so that opening a FIFO returns; it changes nothing for regular files. */
    VV_CLEANUP(vv_close) int fd = vv_open_above(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0 && (errno == ELOOP || errno == ENXIO))
        return vv_fail_decode(err, "NotRegularFile", 0, "%s is not a regular file", name);
    if (fd < 0)
        return vv_fail_os(err, errno, "open %s", name);
    struct stat st;
    if (fstat(fd, &st) < 0)
        return vv_fail_os(err, errno, "stat %s", name);
    if (!S_ISREG(st.st_mode))
        return vv_fail_decode(err, "NotRegularFile", 0, "%s is not a regular file", name);
    if ((uint64_t)st.st_size > max || (uint64_t)st.st_size > SIZE_MAX - 1) {
        vv_fail(err, VV_ERR_LIMIT, "%s has %lld bytes, more than %llu", name, (long long)st.st_size,
                (unsigned long long)max);
        if (err)
            err->name = "FileTooLarge";
        return VV_ERR_LIMIT;
    }
    vv_blob b = {malloc((size_t)st.st_size + 1), (size_t)st.st_size};
    if (!b.p)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the %zu bytes of %s", b.n, name);
    vv_code rc = read_exactly(fd, b.p, b.n, err);
    if (rc != VV_OK) {
        vv_context(err, "%s", name);
        vv_blob_done(&b);
        return rc;
    }
    b.p[b.n] = 0;
    *ret = b;
    return VV_OK;
}

vv_code vv_write_all(int fd, const void *p, size_t n, vv_error *err)
{
    const uint8_t *b = p;
    while (n) {
        ssize_t k = write(fd, b, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return vv_fail_os(err, errno, "write");
        b += k;
        n -= (size_t)k;
    }
    return VV_OK;
}

vv_code vv_mkdirs(int dirfd, const char *path, vv_error *err)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part)
        return vv_fail(err, VV_ERR_ARG, "directory path of %zu bytes", n);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != 0)
            continue;
        part[i] = 0;
        if (mkdirat(dirfd, part, 0777) < 0 && errno != EEXIST)
            return vv_fail_os(err, errno, "make directory %s", part);
        if (i < n)
            part[i] = '/';
    }
    struct stat st;
    if (fstatat(dirfd, path, &st, 0) < 0)
        return vv_fail_os(err, errno, "stat %s", path);
    if (!S_ISDIR(st.st_mode))
        return vv_fail_os(err, ENOTDIR, "%s", path);
    return VV_OK;
}

vv_code vv_lock(int fd, bool exclusive, bool wait, vv_error *err)
{
    int op = (exclusive ? LOCK_EX : LOCK_SH) | (wait ? 0 : LOCK_NB);
    while (flock(fd, op) < 0) {
        if (errno == EINTR)
            continue;
        if (errno == EWOULDBLOCK)
            return vv_fail(err, VV_ERR_BUSY, "the lock is held by another process");
        return vv_fail_os(err, errno, "flock");
    }
    return VV_OK;
}

void vv_unlock(int fd)
{
    flock(fd, LOCK_UN);
}
