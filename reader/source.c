#include "config.h"

#include "reader/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"
#include "reader/source_ops.h"

void vv_names_done(vv_names *n)
{
    free(n->names);
    *n = (vv_names){NULL, 0};
}

/* Collects names in one growing block, then hands them out sorted. */
typedef struct {
    char *text;
    size_t *at;
    size_t len, cap, count, at_cap;
} names_builder;

static vv_code add_name(void *state, vv_str name, vv_error *err)
{
    names_builder *b = state;
    size_t n = name.n;
    if (b->count == VV_SOURCE_NAMES_MAX)
        return vv_fail(err, VV_ERR_LIMIT, "a directory of more than %d names", VV_SOURCE_NAMES_MAX);
    if (!vv_grow(&b->at, &b->at_cap, b->count, sizeof *b->at))
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a directory");
    if (n + 1 > b->cap - b->len) {
        size_t cap = (b->cap + n + 1) * 2;
        char *text = realloc(b->text, cap);
        if (!text)
            return vv_fail(err, VV_ERR_NOMEM, "no memory for a directory");
        b->text = text;
        b->cap = cap;
    }
    b->at[b->count++] = b->len;
    memcpy(b->text + b->len, name.p, n);
    b->text[b->len + n] = 0;
    b->len += n + 1;
    return VV_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static vv_code sort_names(const names_builder *b, vv_names *ret, vv_error *err)
{
    char **names = malloc(b->count * sizeof *names + b->len + 1);
    if (!names)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a directory");
    char *text = (char *)(names + b->count);
    if (b->len)
        memcpy(text, b->text, b->len);
    for (size_t i = 0; i < b->count; i++)
        names[i] = text + b->at[i];
    if (b->count)
        qsort(names, b->count, sizeof *names, by_bytes);
    *ret = (vv_names){names, 0};
    for (size_t i = 0; i < b->count; i++)
        if (i == 0 || strcmp(names[i], names[ret->count - 1]) != 0)
            names[ret->count++] = names[i];
    return VV_OK;
}

static void names_builder_done(names_builder *b)
{
    free(b->text);
    free(b->at);
}

/* For a path that leads through what is no directory: says which part of it that is. */
static vv_code fail_not_dir(const char *path, vv_error *err)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    for (size_t i = 1; i < n && i < sizeof part; i++) {
        struct stat st;
        if (path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (stat(part, &st) == 0 && !S_ISDIR(st.st_mode))
            return vv_fail(err, VV_ERR_IO, "no store at %s: %s is not a directory", path, part);
    }
    return vv_fail(err, VV_ERR_IO, "no store at %s: a part of that is not a directory", path);
}

vv_code vv_source_open(vv_source **ret, const char *path, vv_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT)
        return vv_fail(err, VV_ERR_NOTFOUND, "no store at %s", path);
    if (fd < 0 && errno == ENOTDIR)
        return fail_not_dir(path, err);
    if (fd < 0)
        return vv_fail_os(err, errno, "open %s", path);
    struct stat st;
    if (fstat(fd, &st) < 0) {
        int os = errno;
        close(fd);
        return vv_fail_os(err, os, "stat %s", path);
    }
    if (S_ISDIR(st.st_mode))
        return vv_source_open_dir(ret, path, fd, err);
    if (S_ISREG(st.st_mode))
        return vv_source_open_archive(ret, path, fd, err);
    close(fd);
    return vv_fail(err, VV_ERR_ARG, "%s is neither a directory nor an archive of a store", path);
}

void vv_source_close(vv_source *s)
{
    if (!s)
        return;
    s->ops->close(s);
    free(s->path);
    free(s);
}

const char *vv_source_path(const vv_source *s)
{
    return s->path;
}

bool vv_source_is_live(const vv_source *s)
{
    return s->live;
}

int vv_source_dirfd(const vv_source *s)
{
    return s->dirfd;
}

uint64_t vv_source_bytes_read(const vv_source *s)
{
    return __atomic_load_n(&s->bytes_read, __ATOMIC_RELAXED);
}

bool vv_file_ident_is_settled(const vv_file_ident *i)
{
    struct timespec now;
    if (!i->inode || clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0)
        return false;
    int64_t ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    return ns > i->ctime_ns && ns > i->mtime_ns;
}

void vv_source_set_ledger(vv_source *s, struct vv_seg_ledger *ledger)
{
    s->ledger = s->live ? ledger : NULL;
}

vv_code vv_source_walk(vv_source *s, vv_source_walk_fn *fn, void *state, vv_error *err)
{
    return s->ops->walk(s, fn, state, err);
}

vv_code vv_source_list(vv_source *s, const char *dir, vv_names *ret, vv_error *err)
{
    VV_CLEANUP(names_builder_done) names_builder b = {0};
    vv_code rc = s->ops->each(s, dir, add_name, &b, err);
    return rc == VV_OK ? sort_names(&b, ret, err) : rc;
}

vv_code vv_source_each(vv_source *s, const char *dir, vv_source_name_fn *fn, void *state, vv_error *err)
{
    return s->ops->each(s, dir, fn, state, err);
}

vv_code vv_source_open_file(vv_source *s, const char *path, vv_open_file *ret, vv_error *err)
{
    vv_code rc = s->ops->open(s, path, ret, err);
    if (rc == VV_OK)
        ret->count = &s->bytes_read;
    return rc;
}

vv_code vv_source_ident(vv_source *s, const char *path, vv_file_ident *ret, vv_error *err)
{
    return s->ops->ident(s, path, ret, err);
}

vv_code vv_open_file_read(const vv_open_file *f, uint64_t off, void *dst, size_t n, vv_error *err)
{
    if (off > f->ident.size || n > f->ident.size - off)
        return vv_fail_decode(err, "Truncated", off, "the file ends before %zu more bytes", n);
    if (f->count)
        __atomic_fetch_add(f->count, n, __ATOMIC_RELAXED);
    if (f->fd < 0) {
        if (n)
            memcpy(dst, f->mem + off, n);
        return VV_OK;
    }
    for (size_t at = 0; at < n;) {
        ssize_t k = pread(f->fd, (uint8_t *)dst + at, n - at, (off_t)(f->off + off + at));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return vv_fail_os(err, errno, "read");
        if (k == 0)
            return vv_fail_decode(err, "Truncated", off + at, "the file shrank while it was read");
        at += (size_t)k;
    }
    return VV_OK;
}

void vv_open_file_close(vv_open_file *f)
{
    if (f->owns_fd)
        vv_close(&f->fd);
    *f = (vv_open_file){.fd = -1};
}

vv_code vv_source_read(vv_source *s, const char *path, uint64_t max, vv_blob *ret, vv_error *err)
{
    VV_CLEANUP(vv_open_file_close) vv_open_file f = {.fd = -1};
    vv_code rc = vv_source_open_file(s, path, &f, err);
    if (rc != VV_OK)
        return rc;
    if (f.ident.size > max || f.ident.size > SIZE_MAX - 1) {
        vv_fail(err, VV_ERR_LIMIT, "%s has %llu bytes, more than %llu", path, (unsigned long long)f.ident.size,
                (unsigned long long)max);
        if (err)
            err->name = "FileTooLarge";
        return VV_ERR_LIMIT;
    }
    vv_blob b = {malloc((size_t)f.ident.size + 1), (size_t)f.ident.size};
    if (!b.p)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the %zu bytes of %s", b.n, path);
    rc = vv_open_file_read(&f, 0, b.p, b.n, err);
    if (rc != VV_OK) {
        vv_context(err, "%s", path);
        vv_blob_done(&b);
        return rc;
    }
    b.p[b.n] = 0;
    *ret = b;
    return VV_OK;
}
