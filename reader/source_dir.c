#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reader/source_ops.h"

typedef struct {
    vv_source base;
    int lease_fd;
} dir_source;

/* openat that refuses links in every component, by hand: for kernels and sandboxes without openat2. */
static int open_parts(int dirfd, const char *path, int flags)
{
    char part[NAME_MAX + 1];
    int at = dirfd;
    for (;;) {
        const char *slash = strchr(path, '/');
        size_t n = slash ? (size_t)(slash - path) : strlen(path);
        if (n >= sizeof part) {
            errno = ENAMETOOLONG;
            n = 0;
        }
        memcpy(part, path, n);
        part[n] = 0;
        int fd = n ? openat(at, part, (slash ? O_RDONLY | O_DIRECTORY : flags) | O_NOFOLLOW | O_CLOEXEC) : -1;
        int os = errno;
        if (at != dirfd)
            close(at);
        errno = os;
        if (fd < 0 || !slash)
            return fd;
        at = fd;
        path = slash + 1;
    }
}

static int open_beneath(int dirfd, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .resolve = RESOLVE_NO_SYMLINKS};
    int fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL))
        return open_parts(dirfd, path, flags);
    return fd;
}

static vv_code dir_each(vv_source *s, const char *dir, vv_source_name_fn *fn, void *state, vv_error *err)
{
    int fd = open_beneath(s->dirfd, dir, O_RDONLY | O_DIRECTORY);
    if (fd < 0 && errno == ENOENT)
        return vv_fail(err, VV_ERR_NOTFOUND, "no directory %s", dir);
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return vv_fail_decode(err, "NotDirectory", 0, "%s is not a directory", dir);
    if (fd < 0)
        return vv_fail_os(err, errno, "open directory %s", dir);
    DIR *d = fdopendir(fd);
    if (!d) {
        int os = errno;
        close(fd);
        return vv_fail_os(err, os, "open directory %s", dir);
    }
    vv_code rc = VV_OK;
    const struct dirent *e;
    while (errno = 0, rc == VV_OK && (e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = fn(state, vv_cstr(e->d_name), err);
    if (rc == VV_OK && errno)
        rc = vv_fail_os(err, errno, "list %s", dir);
    closedir(d);
    return rc;
}

static int64_t in_ns(const struct timespec *t)
{
    return (int64_t)((uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec);
}

static vv_code take_stat(const struct stat *st, const char *path, vv_file_ident *ret, vv_error *err)
{
    if (!S_ISREG(st->st_mode))
        return vv_fail_decode(err, "NotRegularFile", 0, "%s is not a regular file", path);
    *ret = (vv_file_ident){
        .size = (uint64_t)st->st_size,
        .device = st->st_dev,
        .inode = st->st_ino,
        .mtime_ns = in_ns(&st->st_mtim),
        .ctime_ns = in_ns(&st->st_ctim),
    };
    return VV_OK;
}

static vv_code dir_open(vv_source *s, const char *path, vv_open_file *ret, vv_error *err)
{
    /* O_NONBLOCK so that opening a FIFO returns; it changes nothing for regular files. */
    VV_CLEANUP(vv_close) int fd = open_beneath(s->dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && (errno == ELOOP || errno == ENXIO))
        return vv_fail_decode(err, "NotRegularFile", 0, "%s is not a regular file", path);
    if (fd < 0)
        return vv_fail_os(err, errno, "open %s", path);
    struct stat st;
    if (fstat(fd, &st) < 0)
        return vv_fail_os(err, errno, "stat %s", path);
    vv_file_ident ident;
    vv_code rc = take_stat(&st, path, &ident, err);
    if (rc != VV_OK)
        return rc;
    *ret = (vv_open_file){.fd = fd, .owns_fd = true, .ident = ident};
    fd = -1;
    return VV_OK;
}

static vv_code dir_ident(vv_source *s, const char *path, vv_file_ident *ret, vv_error *err)
{
    struct stat st;
    if (fstatat(s->dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return vv_fail_os(err, errno, "stat %s", path);
    return take_stat(&st, path, ret, err);
}

/* A walk: the directories on the way down, and the path of the entry at hand. */
typedef struct {
    DIR *open[VV_WALK_DEPTH];
    size_t len[VV_WALK_DEPTH]; /* of the path up to each, with the slash behind it */
    size_t depth;
    char path[VV_WALK_DEPTH * (NAME_MAX + 1) + 1];
} walk;

/* False where it can't be read, with errno. */
static bool walk_down(walk *w, int dirfd, const char *name, size_t len)
{
    if (w->depth == VV_WALK_DEPTH) {
        errno = ELOOP;
        return false;
    }
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int os = errno;
        vv_close(&fd);
        errno = os;
        return false;
    }
    w->len[w->depth] = len;
    w->open[w->depth++] = d;
    return true;
}

static void walk_up(walk *w)
{
    closedir(w->open[--w->depth]);
}

static void walk_entry(walk *w, const char *name, vv_source_walk_fn *fn, void *state)
{
    struct stat st;
    DIR *in = w->open[w->depth - 1];
    size_t len = w->len[w->depth - 1], n = strlen(name);
    if (n > NAME_MAX || fstatat(dirfd(in), name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return; /* it has gone */
    memcpy(w->path + len, name, n + 1);
    if (S_ISDIR(st.st_mode)) {
        memcpy(w->path + len + n, "/", 2);
        if (walk_down(w, dirfd(in), name, len + n + 1) || errno == ENOENT)
            return;
        w->path[len + n] = 0;
    }
    const vv_source_entry e = {w->path, S_ISREG(st.st_mode), S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0};
    fn(state, &e);
}

static vv_code dir_walk(vv_source *s, vv_source_walk_fn *fn, void *state, vv_error *err)
{
    walk *w = malloc(sizeof *w);
    if (!w)
        return vv_fail(err, VV_ERR_NOMEM, "no memory to walk through a store");
    w->depth = 0;
    vv_code rc = VV_OK;
    if (!walk_down(w, s->dirfd, ".", 0))
        rc = vv_fail_os(err, errno, "list the store");
    while (rc == VV_OK && w->depth) {
        const struct dirent *e = readdir(w->open[w->depth - 1]);
        if (!e)
            walk_up(w);
        else if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            walk_entry(w, e->d_name, fn, state);
    }
    free(w);
    return rc;
}

static void dir_close(vv_source *s)
{
    dir_source *d = (dir_source *)s;
    vv_close(&d->base.dirfd);
    vv_close(&d->lease_fd);
}

static const vv_source_ops dir_ops = {dir_each, dir_open, dir_ident, dir_walk, dir_close};

static bool is_dir_at(int dirfd, const char *name)
{
    struct stat st;
    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/*
 * The lease beside the root, shared, so that nothing removes the store while it is read. Best effort: a read-only place
 * has none. It is created only for what looks like a store.
 */
static int take_lease(const char *root, int root_fd)
{
    char path[PATH_MAX + 8];
    if (!realpath(root, path) || strcmp(path, "/") == 0)
        return -1;
    strcat(path, ".lock");
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fd = open(path, flags);
    if (fd < 0 && errno == ENOENT && is_dir_at(root_fd, "streams"))
        fd = open(path, flags | O_CREAT, 0666);
    struct stat st;
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || vv_lock(fd, false, true, NULL) != VV_OK))
        vv_close(&fd);
    return fd;
}

/* A directory given by name may hold the store one or two levels down. */
static const char *inner_root(int root_fd)
{
    static const char *const inner[] = {"profiles-v1", ".baml/profiles-v1"};
    for (size_t i = 0; i < VV_ARRAY_LEN(inner) && !is_dir_at(root_fd, "streams"); i++)
        if (is_dir_at(root_fd, inner[i]))
            return inner[i];
    return NULL;
}

vv_code vv_source_open_dir(vv_source **ret, const char *path, int root_fd, vv_error *err)
{
    VV_CLEANUP(vv_close) int fd = root_fd;
    char *root = strdup(path);
    const char *inner = inner_root(fd);
    if (inner && root) {
        int down = openat(fd, inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char *joined = NULL;
        if (down < 0 || asprintf(&joined, "%s/%s", path, inner) < 0) {
            vv_close(&down);
            free(root);
            return vv_fail_os(err, errno, "open %s/%s", path, inner);
        }
        free(root);
        root = joined;
        vv_close(&fd);
        fd = down;
    }
    dir_source *d = calloc(1, sizeof *d);
    if (!d || !root) {
        free(d);
        free(root);
        return vv_fail(err, VV_ERR_NOMEM, "no memory to open %s", path);
    }
    *d = (dir_source){.base = {.ops = &dir_ops, .path = root, .dirfd = fd, .live = true}};
    fd = -1;
    d->lease_fd = take_lease(root, d->base.dirfd);
    *ret = &d->base;
    return VV_OK;
}
