#include "config.h"

#include "server/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "server/token.h"

enum {
    QUEUE = 256 * 1024,
    WRITE_MAX = 4096, /* of a pipe that poll calls writable: as much fits, whatever else is in it */
    POLL_MS = 200,
    CLOSE_NS = 1000000000,
};

struct vv_log {
    char *path; /* NULL: standard error */
    int fd;
    vv_log_say *say;
    void *say_state;
    bool said; /* the writing thread's */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char queue[QUEUE];
    size_t from, len; /* of what waits, in a ring */
    uint64_t lost;    /* lines that the log does not tell of yet */
    bool reopen, stop;
    struct timespec stop_at; /* when to give up what waits */
};

static const char hex[] = "0123456789abcdef";

/* Printable ASCII as it is, anything else as \xNN; n bytes of room, with a mark where it is cut. */
static size_t escape(char *out, size_t n, const char *s)
{
    size_t len = 0;
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        bool plain = c > 0x20 && c < 0x7f && c != '\\' && c != '"';
        if (len + 4 + 3 > n) {
            memcpy(out + len, "...", 3);
            return len + 3;
        }
        if (plain) {
            out[len++] = (char)c;
        } else {
            const char code[] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
            memcpy(out + len, code, sizeof code);
            len += sizeof code;
        }
    }
    return len;
}

size_t vv_log_line(char out[VV_LOG_LINE], const vv_log_entry *e, uint64_t unix_ns)
{
    enum { METHOD = 32, TARGET = 800 };
    char time[32], method[METHOD] = "-", target[TARGET] = "-";
    time_t seconds = (time_t)(unix_ns / 1000000000u);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &tm);
    if (e->method)
        method[escape(method, METHOD - 1, e->method)] = 0;
    vv_wr bare = vv_wr_growing(1 << 20);
    if (e->target && vv_token_strip(e->target, &bare))
        target[escape(target, TARGET - 1, (const char *)bare.buf)] = 0;
    vv_wr_done(&bare);
    int n = snprintf(out, VV_LOG_LINE, "%s.%03uZ %s %s %u %llu %llu.%03ums\n", time,
                     (unsigned)(unix_ns / 1000000 % 1000), method, target, e->status, (unsigned long long)e->bytes,
                     (unsigned long long)(e->duration_ns / 1000000), (unsigned)(e->duration_ns / 1000 % 1000));
    return n < 0 ? 0 : n < VV_LOG_LINE ? (size_t)n : VV_LOG_LINE - 1;
}

/* Under the lock. */
static bool put(vv_log *l, const char *line, size_t n)
{
    if (QUEUE - l->len < n)
        return false;
    size_t to = (l->from + l->len) % QUEUE, first = QUEUE - to < n ? QUEUE - to : n;
    memcpy(l->queue + to, line, first);
    memcpy(l->queue, line + first, n - first);
    l->len += n;
    return true;
}

void vv_log_write(vv_log *l, const vv_log_entry *e)
{
    char line[VV_LOG_LINE], note[80];
    struct timespec now;
    if (!l)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    size_t n = vv_log_line(line, e, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    pthread_mutex_lock(&l->lock);
    int k = l->lost ? snprintf(note, sizeof note, "# %llu lines are lost\n", (unsigned long long)l->lost) : 0;
    if (QUEUE - l->len >= (size_t)k + n) {
        put(l, note, (size_t)k);
        put(l, line, n);
        l->lost = 0;
    } else {
        l->lost++;
    }
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
}

/* What waits may wait further. */
static bool may_wait(const vv_log *l)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return !l->stop || now.tv_sec < l->stop_at.tv_sec
        || (now.tv_sec == l->stop_at.tv_sec && now.tv_nsec < l->stop_at.tv_nsec);
}

/* The lines that end in p[0..n), and those that one of them says are lost; begins: at the beginning of a line. */
static uint64_t lines_of(const char *p, size_t n, bool begins)
{
    uint64_t lines = 0;
    for (const char *end; n && (end = memchr(p, '\n', n)); n -= (size_t)(end + 1 - p), p = end + 1, begins = true)
        lines += begins && *p == '#' ? strtoull(p + 1, NULL, 10) : 1;
    return lines;
}

/* The first time that lines are lost somebody is told. */
static void tell(vv_log *l, const char *why)
{
    char line[512];
    if (l->said || !l->say || !l->path)
        return;
    l->said = true;
    snprintf(line, sizeof line, "log %.300s: %s; its lines are lost, and counted once it can be written", l->path, why);
    l->say(l->say_state, line);
}

/* What of a chunk could not be written. */
static void lose(vv_log *l, const char *p, size_t n, bool begins, int os)
{
    char room[128];
    pthread_mutex_lock(&l->lock);
    l->lost += lines_of(p, n, begins);
    pthread_mutex_unlock(&l->lock);
    tell(l, strerror_r(os, room, sizeof room));
}

/* Takes whole lines, up to a write's worth, out of the queue, unless there are none and an end is asked for. */
static size_t take(vv_log *l, char *out, bool *ret_reopen)
{
    pthread_mutex_lock(&l->lock);
    while (l->len == 0 && !l->stop && !l->reopen)
        pthread_cond_wait(&l->changed, &l->lock);
    size_t n = l->len < WRITE_MAX ? l->len : WRITE_MAX, first = QUEUE - l->from < n ? QUEUE - l->from : n;
    memcpy(out, l->queue + l->from, first);
    memcpy(out + first, l->queue, n - first);
    while (n && out[n - 1] != '\n')
        n--;
    l->from = (l->from + n) % QUEUE;
    l->len -= n;
    *ret_reopen = l->reopen;
    l->reopen = false;
    pthread_mutex_unlock(&l->lock);
    return n;
}

/* False where it is given up. A failing file loses its lines, and is tried again with the next ones. */
static bool write_all(vv_log *l, const char *chunk, size_t n)
{
    const char *p = chunk;
    while (n) {
        struct pollfd ready = {.fd = l->fd, .events = POLLOUT};
        int count = poll(&ready, 1, POLL_MS);
        if (count > 0) {
            ssize_t done = write(l->fd, p, n);
            if (done < 0 && errno != EAGAIN && errno != EINTR) {
                lose(l, p, n, p == chunk || p[-1] == '\n', errno);
                return true;
            }
            p += done > 0 ? done : 0;
            n -= done > 0 ? (size_t)done : 0;
        }
        pthread_mutex_lock(&l->lock);
        bool go_on = may_wait(l), overflows = l->lost > 0;
        pthread_mutex_unlock(&l->lock);
        if (count == 0 && overflows)
            tell(l, "nobody reads it, or too slowly");
        if (!go_on)
            return false;
    }
    return true;
}

static void *run(void *arg)
{
    vv_log *l = arg;
    char out[WRITE_MAX];
    for (;;) {
        bool reopen;
        size_t n = take(l, out, &reopen);
        if (reopen && l->path) {
            int fd = open_file(l->path);
            if (fd >= 0) {
                vv_close(&l->fd);
                l->fd = fd;
            }
        }
        if ((n == 0 && !reopen) || !write_all(l, out, n))
            return NULL;
    }
}

vv_code vv_log_open(vv_log **ret, const char *path, vv_log_say *say, void *say_state, vv_error *err)
{
    vv_log *l = calloc(1, sizeof *l);
    if (!l)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a log");
    l->say = say;
    l->say_state = say_state;
    l->path = path ? strdup(path) : NULL;
    l->fd = path ? open_file(path) : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    int os = errno;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    if (l->fd >= 0 && (!path || l->path) && pthread_create(&l->thread, NULL, run, l) == 0) {
        *ret = l;
        return VV_OK;
    }
    bool opened = l->fd >= 0;
    vv_close(&l->fd);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    free(l->path);
    free(l);
    return opened ? vv_fail(err, VV_ERR_NOMEM, "no memory for a log")
                  : vv_fail_os(err, os, "log %s", path ? path : "standard error");
}

void vv_log_reopen(vv_log *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->reopen = true;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

void vv_log_close(vv_log *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    clock_gettime(CLOCK_MONOTONIC, &l->stop_at);
    l->stop_at.tv_sec += CLOSE_NS / 1000000000;
    l->stop = true;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    vv_close(&l->fd);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    free(l->path);
    free(l);
}
