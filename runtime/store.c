#include "config.h"

#include "runtime/store.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "format/usage.h"
#include "runtime/store_inside.h"

enum { LOCK_WAIT_MS = 5000, STREAM_LOCK_WAIT_MS = 100 };

/* Streams this process has open: flock alone would not tell two of our own descriptors apart from two processes'. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static vv_wstore *open_stores;

const char *vv_step_name(vv_step s)
{
    static const char *const names[VV_STEPS] = {
        "lock", "ledger-read", "directory", "create", "write", "fsync-file", "rename", "fsync-directory",
        "ledger-write", "ledger-fsync", "ledger-rename", "fsync-root", "unlock",
    };
    return (unsigned)s < VV_STEPS ? names[s] : "?";
}

vv_latch vv_latch_of(int os)
{
    return os == ENOSPC || os == EDQUOT || os == EFBIG ? VV_LATCH_DISK : os == EACCES || os == EPERM || os == EROFS
               ? VV_LATCH_PERMISSION : VV_LATCH_UNAVAILABLE;
}

vv_latch vv_wstore_latch(const vv_wstore *s)
{
    return (vv_latch)atomic_load_explicit(&s->latch, memory_order_acquire);
}

bool vv_wstore_is_indeterminate(const vv_wstore *s)
{
    return atomic_load_explicit(&s->indeterminate, memory_order_acquire);
}

bool vv_wstore_takes_roots(const vv_wstore *s)
{
    return vv_wstore_latch(s) == VV_LATCH_OPEN && !vv_wstore_is_indeterminate(s);
}

void vv_latch_close(vv_wstore *s, vv_latch why)
{
    int open = VV_LATCH_OPEN;
    atomic_compare_exchange_strong(&s->latch, &open, (int)why);
}

vv_code vv_lock_within(int fd, bool exclusive, unsigned ms, vv_error *err)
{
    for (unsigned waited = 0, nap = 1;; waited += nap, nap = waited < 20 ? 1 : 5) {
        vv_code rc = vv_lock(fd, exclusive, false, NULL);
        if (rc != VV_ERR_BUSY)
            return rc == VV_OK ? rc : vv_fail(err, rc, "the lock could not be taken");
        if (waited >= ms)
            return vv_fail(err, VV_ERR_BUSY, "another process holds the lock");
        nanosleep(&(struct timespec){.tv_nsec = nap * 1000000L}, NULL);
    }
}

static vv_code open_lock_file(int dirfd, const char *name, int *ret, vv_error *err)
{
    *ret = vv_open_above(dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0666);
    return *ret < 0 ? vv_fail_os(err, errno, "open %s", name) : VV_OK;
}

/* The first line that trims to '*'. */
static bool ignores_all(const vv_blob *b)
{
    const char *p = (const char *)b->p, *end = p + b->n;
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        const char *q = nl ? nl : end;
        while (p < q && (*p == ' ' || *p == '\t' || *p == '\r'))
            p++;
        const char *e = q;
        while (e > p && (e[-1] == ' ' || e[-1] == '\t' || e[-1] == '\r'))
            e--;
        if (e - p == 1 && *p == '*')
            return true;
        p = q + 1;
    }
    return false;
}

/* The nearest .baml at or above the root gets a .gitignore with '*'. Best effort. */
static void write_gitignore(const char *root)
{
    char path[PATH_MAX];
    size_t n = strlen(root);
    while (n) {
        size_t from = n;
        while (from && root[from - 1] != '/')
            from--;
        if (n - from == 5 && memcmp(root + from, ".baml", 5) == 0)
            break;
        n = from ? from - 1 : 0;
    }
    if (!n || n + sizeof "/.gitignore" > sizeof path)
        return;
    snprintf(path, sizeof path, "%.*s/.gitignore", (int)n, root);
    VV_CLEANUP(vv_blob_done) vv_blob old = {NULL, 0};
    vv_code rc = vv_file_read(AT_FDCWD, path, 1 << 20, &old, NULL);
    if ((rc != VV_OK && rc != VV_ERR_NOTFOUND) || ignores_all(&old))
        return;
    VV_CLEANUP(vv_close)
    int fd = vv_open_above(AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0666);
    if (fd < 0)
        return;
    bool gap = old.n && old.p[old.n - 1] != '\n';
    if (vv_write_all(fd, gap ? "\n*\n" : "*\n", gap ? 3 : 2, NULL) != VV_OK)
        return;
}

/* The highest sequence of a plane; its seal must hold, but of the plane that nobody needs. */
static vv_code find_high(vv_wstore *s, vv_plane p, vv_error *err)
{
    char dir[VV_STREAM_PATH + 8];
    snprintf(dir, sizeof dir, "%s/%s", s->stream, vv_plane_dir(p));
    char *path = NULL;
    if (asprintf(&path, "%s/%s", s->root, dir) < 0)
        return vv_fail(err, VV_ERR_NOMEM, "no memory");
    char *paths[] = {path, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
    uint64_t high = 0, sequence;
    for (FTSENT *f; walk && (f = fts_read(walk));) {
        if (f->fts_level == 1 && vv_segment_parse(f->fts_name, p, &sequence) && sequence > high)
            high = sequence;
        if (f->fts_level >= 1)
            fts_set(walk, f, FTS_SKIP);
    }
    vv_code rc = walk ? VV_OK : vv_fail_os(err, errno, "list %s", dir);
    if (walk)
        fts_close(walk);
    free(path);
    s->high[p] = high;
    if (rc != VV_OK || !high || p == VV_PLANE_HEALTH)
        return rc;
    char name[VV_SEGMENT_NAME], file[VV_FILE_PATH];
    vv_segment_name(name, p, high);
    snprintf(file, sizeof file, "%s/%s", dir, name);
    VV_CLEANUP(vv_blob_done) vv_blob b = {NULL, 0};
    rc = vv_file_read(s->root_fd, file, UINT32_MAX, &b, err);
    return rc == VV_OK ? vv_seal_check(b.p, b.n, err) : rc;
}

static vv_code make_directories(vv_wstore *s, vv_error *err)
{
    for (unsigned p = 0; p < VV_PLANES; p++) {
        char dir[VV_STREAM_PATH + 8];
        snprintf(dir, sizeof dir, "%s/%s", s->stream, vv_plane_dir((vv_plane)p));
        vv_code rc = vv_mkdirs(s->root_fd, dir, err);
        if (rc != VV_OK)
            return rc;
    }
    vv_code rc = vv_mkdirs(s->root_fd, "cas/sha256", err);
    return rc == VV_OK ? vv_mkdirs(s->root_fd, "tmp", err) : rc;
}

static vv_code take_stream(vv_wstore *s, vv_error *err)
{
    char name[VV_STREAM_PATH + 16];
    snprintf(name, sizeof name, "%s/stream.lock", s->stream);
    vv_code rc = open_lock_file(s->root_fd, name, &s->stream_fd, err);
    /* A reader that asks whether the stream is alive holds the lock for a moment. */
    return rc == VV_OK ? vv_lock_within(s->stream_fd, true, STREAM_LOCK_WAIT_MS, err) : rc;
}

/*
 * Who opens a store says so by a second lock on publish.lock, of the other kind and shared, which means nothing to
 * other programs: those that publish all the time would else take the lock again before one that naps has looked.
 */
static void announce(int fd, bool opening)
{
    struct flock first_byte = {.l_type = opening ? F_RDLCK : F_UNLCK, .l_whence = SEEK_SET, .l_len = 1};
    fcntl(fd, F_OFD_SETLK, &first_byte);
}

bool vv_somebody_opens(int fd)
{
    struct flock first_byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &first_byte) == 0 && first_byte.l_type != F_UNLCK;
}

static vv_code open_ledger(vv_wstore *s, vv_error *err)
{
    vv_code rc = open_lock_file(s->root_fd, "publish.lock", &s->publish_fd, err);
    if (rc != VV_OK)
        return rc;
    announce(s->publish_fd, true);
    rc = vv_lock_within(s->publish_fd, true, LOCK_WAIT_MS, err);
    announce(s->publish_fd, false);
    if (rc != VV_OK)
        return rc;
    uint64_t usage;
    rc = vv_ledger_scan(s, &usage, err);
    if (rc == VV_OK) {
        int os = vv_ledger_write(s, usage);
        if (os)
            rc = vv_fail_os(err, os, "write usage.state");
        else if (usage > s->max_project_bytes || vv_disk_free(s) < s->minimum_free_bytes)
            vv_latch_close(s, VV_LATCH_DISK);
    }
    vv_unlock(s->publish_fd);
    return rc;
}

static vv_code settle_planes(vv_wstore *s, vv_error *err)
{
    for (unsigned p = 0; p < VV_PLANES; p++) {
        char dir[VV_STREAM_PATH + 8];
        snprintf(dir, sizeof dir, "%s/%s", s->stream, vv_plane_dir((vv_plane)p));
        vv_code rc = find_high(s, (vv_plane)p, err);
        int os = rc == VV_OK ? vv_sync_dir(s, dir) : 0;
        if (os)
            rc = vv_fail_os(err, os, "fsync %s", dir);
        if (rc != VV_OK)
            return rc;
    }
    return VV_OK;
}

/* A root that is a link is opened where it leads to: there its lease is, and below it nothing may be a link. */
static vv_code follow_root(vv_wstore *s, vv_error *err)
{
    struct stat st;
    if (lstat(s->root, &st) < 0 || !S_ISLNK(st.st_mode))
        return VV_OK;
    char *real = realpath(s->root, NULL);
    if (!real)
        return vv_fail_os(err, errno, "follow the link");
    free(s->root);
    s->root = real;
    return VV_OK;
}

/* Parent directories, .gitignore, the lease beside the root, the root. */
static vv_code open_root(vv_wstore *s, vv_error *err)
{
    char *slash = strrchr(s->root, '/'), *lease = NULL;
    if (!slash || !slash[1])
        return vv_fail(err, VV_ERR_ARG, "%s names no store", s->root);
    if (slash > s->root) {
        *slash = 0;
        vv_code made = vv_mkdirs(AT_FDCWD, s->root, err);
        *slash = '/';
        if (made != VV_OK)
            return made;
    }
    write_gitignore(s->root);
    vv_code rc = follow_root(s, err);
    if (rc != VV_OK)
        return rc;
    if (asprintf(&lease, "%s.lock", s->root) < 0)
        return vv_fail(err, VV_ERR_NOMEM, "no memory");
    rc = open_lock_file(AT_FDCWD, lease, &s->lease_fd, err);
    free(lease);
    if (rc == VV_OK)
        rc = vv_lock_within(s->lease_fd, false, LOCK_WAIT_MS, err);
    if (rc == VV_OK)
        rc = vv_mkdirs(AT_FDCWD, s->root, err);
    if (rc != VV_OK)
        return rc;
    s->root_fd = vv_open_above(AT_FDCWD, s->root, O_RDONLY | O_DIRECTORY, 0);
    return s->root_fd < 0 ? vv_fail_os(err, errno, "open %s", s->root) : VV_OK;
}

static vv_code open_steps(vv_wstore *s, vv_error *err)
{
    vv_code rc = open_root(s, err);
    if (rc == VV_OK)
        rc = make_directories(s, err);
    if (rc == VV_OK)
        rc = take_stream(s, err);
    if (rc == VV_OK)
        rc = open_ledger(s, err);
    return rc == VV_OK ? settle_planes(s, err) : rc;
}

static bool register_open(vv_wstore *s)
{
    bool fresh = true;
    pthread_mutex_lock(&open_lock);
    for (vv_wstore *o = open_stores; o; o = o->next_open)
        fresh = fresh && memcmp(&o->euid, &s->euid, sizeof s->euid) != 0;
    if (fresh) {
        s->next_open = open_stores;
        open_stores = s;
    }
    pthread_mutex_unlock(&open_lock);
    return fresh;
}

static void unregister_open(vv_wstore *s)
{
    pthread_mutex_lock(&open_lock);
    for (vv_wstore **at = &open_stores; *at; at = &(*at)->next_open)
        if (*at == s) {
            *at = s->next_open;
            break;
        }
    pthread_mutex_unlock(&open_lock);
}

void vv_wstore_forked(vv_wstore *s)
{
    vv_close(&s->stream_fd);
    vv_close(&s->publish_fd);
    vv_close(&s->lease_fd);
    vv_close(&s->root_fd);
}

void vv_wstore_close(vv_wstore *s)
{
    if (!s)
        return;
    unregister_open(s);
    /* Unlocked by name: closing alone would leave the locks to a child that was forked a moment ago. */
    const int held[] = {s->publish_fd, s->stream_fd, s->lease_fd};
    for (size_t i = 0; i < VV_ARRAY_LEN(held); i++)
        if (held[i] >= 0)
            vv_unlock(held[i]);
    vv_wstore_forked(s);
    vv_known_objects_done(s);
    free(s->root);
    free(s);
}

vv_code vv_wstore_open(vv_wstore **ret, const vv_wstore_options *options, vv_error *err)
{
    vv_wstore *s = calloc(1, sizeof *s);
    if (!s)
        return vv_fail(err, VV_ERR_NOMEM, "no memory");
    s->root_fd = s->lease_fd = s->stream_fd = s->publish_fd = -1;
    s->euid = options->euid;
    s->max_project_bytes = options->max_project_bytes;
    s->minimum_free_bytes = options->minimum_free_bytes;
    s->hooks = options->hooks;
    s->governor = options->governor;
    s->root = strdup(options->root);
    char hex[33];
    vv_hex(hex, s->euid.b, sizeof s->euid.b);
    snprintf(s->stream, sizeof s->stream, "streams/%s", hex);
    vv_code rc = !s->root ? vv_fail(err, VV_ERR_NOMEM, "no memory")
                 : !register_open(s) ? vv_fail(err, VV_ERR_BUSY, "the stream is open in this process") : VV_OK;
    if (rc == VV_OK)
        rc = open_steps(s, err);
    if (rc != VV_OK) {
        vv_context(err, "%s", options->root);
        vv_wstore_close(s);
        return rc;
    }
    *ret = s;
    return VV_OK;
}
