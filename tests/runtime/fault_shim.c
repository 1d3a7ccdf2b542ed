/*
 * Preloaded into a program, fails system calls on its profile store, as a bad or full disk would:
 *
 *   FAULT_CALL    open, write, fsync or rename
 *   FAULT_ERRNO   the number it fails with
 *   FAULT_MARK    a file that is made when it does
 *   FAULT_AT      the first call that fails, from 1; FAULT_COUNT (1): so many fail
 *
 * Only files below a directory "profiles-v1" count; reads pass.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHIM __attribute__((visibility("default")))

static atomic_ulong calls;

static bool fails(const char *call)
{
    const char *which = getenv("FAULT_CALL"), *os = getenv("FAULT_ERRNO"), *at = getenv("FAULT_AT");
    const char *count = getenv("FAULT_COUNT");
    if (!which || !os || !at || strcmp(which, call) != 0)
        return false;
    unsigned long n = atomic_fetch_add(&calls, 1) + 1, first = strtoul(at, NULL, 10);
    if (n < first || n - first >= (count ? strtoul(count, NULL, 10) : 1))
        return false;
    const char *mark = getenv("FAULT_MARK");
    int fd = mark ? open(mark, O_WRONLY | O_CREAT, 0600) : -1;
    if (fd >= 0)
        close(fd);
    errno = atoi(os);
    return true;
}

static bool in_store(int fd)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0)
        return false;
    path[n] = 0;
    return strstr(path, "/profiles-v1") != NULL;
}

/* By way of a union, as ISO C knows no pointer that is both. */
#define NEXT(name, type) \
    static type next; \
    if (!next) { \
        union { \
            void *p; \
            type f; \
        } u = {dlsym(RTLD_NEXT, name)}; \
        next = u.f; \
    }

SHIM int openat(int dirfd, const char *path, int flags, ...)
{
    typedef int (*open_fn)(int, const char *, int, ...);
    NEXT("openat", open_fn)
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
        if (strstr(path, ".pending") && fails("open"))
            return -1;
    }
    return next(dirfd, path, flags, mode);
}

SHIM ssize_t write(int fd, const void *p, size_t n)
{
    typedef ssize_t (*write_fn)(int, const void *, size_t);
    NEXT("write", write_fn)
    return in_store(fd) && fails("write") ? -1 : next(fd, p, n);
}

SHIM int fsync(int fd)
{
    typedef int (*fsync_fn)(int);
    NEXT("fsync", fsync_fn)
    return in_store(fd) && fails("fsync") ? -1 : next(fd);
}

SHIM int renameat2(int fromdir, const char *from, int todir, const char *to, unsigned flags)
{
    typedef int (*rename_fn)(int, const char *, int, const char *, unsigned);
    NEXT("renameat2", rename_fn)
    return in_store(fromdir) && fails("rename") ? -1 : next(fromdir, from, todir, to, flags);
}

SHIM int renameat(int fromdir, const char *from, int todir, const char *to)
{
    typedef int (*rename_fn)(int, const char *, int, const char *);
    NEXT("renameat", rename_fn)
    return in_store(fromdir) && fails("rename") ? -1 : next(fromdir, from, todir, to);
}
