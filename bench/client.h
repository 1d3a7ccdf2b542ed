/*
 * For benchmarks of the server: `varve serve` as a child, a connection that is kept, and the CPU time of the child.
 * What fails ends the benchmark.
 */
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"

typedef struct {
    pid_t pid;
    unsigned port;
} bench_child;

typedef struct {
    int fd;
    char buf[1 << 16]; /* read and not yet used: [at, end) */
    size_t at, end;
} bench_conn;

typedef struct {
    int status;
    uint64_t bytes; /* of the body, as sent */
} bench_reply;

static inline void bench_die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

/* Keeps this process to the first processor, or to the last one. */
static inline void bench_pin(bool last)
{
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    int chosen = -1;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && (last || chosen < 0))
            chosen = i;
    CPU_ZERO(&one);
    CPU_SET(chosen, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/*
 * Starts argv; with port 0 waits until it prints "listening on http://HOST:PORT/", and takes the port from that. pin:
 * on the last processor alone.
 */
static inline bench_child bench_start(char *const argv[], unsigned port, bool pin)
{
    int out[2];
    bench_child c = {.port = port};
    if (pipe(out) != 0 || (c.pid = fork()) < 0)
        bench_die("can't start a server");
    if (c.pid == 0) {
        if (pin)
            bench_pin(true);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever ends the benchmark */
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        execv(argv[0], argv);
        _exit(127);
    }
    close(out[1]);
    if (port == 0) {
        FILE *f = fdopen(out[0], "r");
        if (!f || fscanf(f, "listening on http://%*[^:]:%u/", &c.port) != 1)
            bench_die("the server did not start");
        fclose(f);
    } else {
        close(out[0]);
    }
    return c;
}

static inline void bench_stop(bench_child *c)
{
    kill(c->pid, SIGTERM);
    waitpid(c->pid, NULL, 0);
}

static inline uint64_t bench_child_cpu_ns(const bench_child *c)
{
    clockid_t id;
    struct timespec t;
    if (clock_getcpuclockid(c->pid, &id) != 0 || clock_gettime(id, &t) != 0)
        bench_die("no CPU time of a child");
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Waits for a server that has been started just now. */
static inline void bench_connect(bench_conn *c, unsigned port)
{
    const struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int one = 1;
    c->at = c->end = 0;
    for (int tries = 0; tries < 2000; tries++) {
        c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (c->fd >= 0 && connect(c->fd, (const struct sockaddr *)&a, sizeof a) == 0) {
            setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            return;
        }
        close(c->fd);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    bench_die("the server can't be reached");
}

static inline void bench_fill(bench_conn *c)
{
    ssize_t n = read(c->fd, c->buf, sizeof c->buf);
    if (n <= 0)
        bench_die("the server hung up");
    c->at = 0;
    c->end = (size_t)n;
}

/* A line without its end. */
static inline void bench_line(bench_conn *c, char *out, size_t max)
{
    size_t n = 0;
    for (char ch = 0; ch != '\n';) {
        if (c->at == c->end)
            bench_fill(c);
        ch = c->buf[c->at++];
        if (ch != '\r' && ch != '\n' && n + 1 < max)
            out[n++] = ch;
    }
    out[n] = 0;
}

/* Takes n bytes; keeps the first of them where keep is not NULL. */
static inline void bench_take(bench_conn *c, uint64_t n, char *keep, size_t max)
{
    size_t kept = 0;
    while (n) {
        if (c->at == c->end)
            bench_fill(c);
        size_t part = c->end - c->at < n ? c->end - c->at : (size_t)n;
        size_t copy = keep ? (part < max - kept ? part : max - kept) : 0;
        if (copy)
            memcpy(keep + kept, c->buf + c->at, copy);
        kept += copy;
        c->at += part;
        n -= part;
    }
}

/* The body of an answer goes into keep as far as that reaches, and a NUL behind it. */
static inline bench_reply bench_read(bench_conn *c, char *keep, size_t max)
{
    char line[4096];
    bench_reply r = {0};
    uint64_t length = 0;
    bool chunked = false;
    bench_line(c, line, sizeof line);
    r.status = atoi(line + strcspn(line, " "));
    for (bench_line(c, line, sizeof line); line[0]; bench_line(c, line, sizeof line)) {
        if (strncasecmp(line, "Content-Length:", 15) == 0)
            length = strtoull(line + 15, NULL, 10);
        chunked |= strncasecmp(line, "Transfer-Encoding:", 18) == 0;
    }
    if (keep)
        memset(keep, 0, max);
    if (r.status == 304 || !chunked) {
        r.bytes = r.status == 304 ? 0 : length;
        bench_take(c, r.bytes, keep, max - 1);
        return r;
    }
    for (;;) {
        bench_line(c, line, sizeof line);
        length = strtoull(line, NULL, 16);
        size_t at = r.bytes < max ? (size_t)r.bytes : max;
        bench_take(c, length, keep && at + 1 < max ? keep + at : NULL, at + 1 < max ? max - 1 - at : 0);
        r.bytes += length;
        bench_line(c, line, sizeof line);
        if (length == 0)
            return r;
    }
}

static inline void bench_send(bench_conn *c, const char *path, const char *headers)
{
    char text[4096];
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path, headers);
    if (write(c->fd, text, (size_t)n) != n)
        bench_die("the server hung up");
}

static inline bench_reply bench_get(bench_conn *c, const char *path, const char *headers, char *keep, size_t max)
{
    bench_send(c, path, headers);
    return bench_read(c, keep, max);
}
