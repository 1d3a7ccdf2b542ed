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
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "format/usage.h"

enum { STREAM_PATH = 64, FILE_PATH = 128, LOCK_WAIT_MS = 5000, STREAM_LOCK_WAIT_MS = 100,
       PATIENT_WAIT_MS = 2000, PUBLISH_WAIT_MS = 250, LATE_WAIT_MS = 20, GIVE_WAY_MS = 5000, OBJECT_TRIES = 8 };

struct vv_wstore {
    char *root;
    vv_euid euid;
    char stream[STREAM_PATH]; /* streams/<hex>, relative to the root */
    int root_fd, lease_fd, stream_fd, publish_fd;
    uint64_t max_project_bytes, minimum_free_bytes;
    vv_wstore_hooks hooks;
    uint64_t high[VV_PLANES];
    bool patient, waited_in_vain, gave_way_in_vain;
    _Atomic uint64_t lock_timeouts;
    _Atomic int latch;
    _Atomic bool indeterminate;
    /* the indeterminate publication */
    int pending_plane;
    uint64_t pending_sequence;
    char pending_dir[FILE_PATH];
    struct vv_wstore *next_open;
};

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

static int step(vv_wstore *s, vv_step at)
{
    return s->hooks.step ? s->hooks.step(s->hooks.ctx, at) : 0;
}

static vv_latch latch_of(int os)
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

static void latch(vv_wstore *s, vv_latch why)
{
    int open = VV_LATCH_OPEN;
    atomic_compare_exchange_strong(&s->latch, &open, (int)why);
}

uint64_t vv_wstore_high(const vv_wstore *s, vv_plane p)
{
    return s->high[p];
}

uint64_t vv_wstore_next(const vv_wstore *s, vv_plane p)
{
    return s->high[p] + 1;
}

/* flock with an end to the waiting. */
static vv_code lock_within(int fd, bool exclusive, unsigned ms, vv_error *err)
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

static bool is_ledger(const char *path)
{
    return strcmp(path, "publish.lock") == 0 || strcmp(path, "usage.state") == 0 ||
           strcmp(path, "tmp/usage-state.pending") == 0;
}

/* What the files below the root weigh. A link or special file fails it. */
static vv_code scan_usage(vv_wstore *s, uint64_t *ret, vv_error *err)
{
    uint64_t total = VV_USAGE_BYTES;
    char *paths[] = {s->root, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!walk)
        return vv_fail_os(err, errno, "scan %s", s->root);
    size_t skip = strlen(s->root) + 1;
    vv_code rc = VV_OK;
    errno = 0;
    for (FTSENT *f; rc == VV_OK && (f = fts_read(walk)); errno = 0) {
        if (f->fts_info == FTS_F) {
            if (!is_ledger(f->fts_path + skip))
                total = vv_sat64(total, (uint64_t)f->fts_statp->st_size);
        } else if (f->fts_info == FTS_DNR || f->fts_info == FTS_ERR || f->fts_info == FTS_NS) {
            if (f->fts_errno != ENOENT)
                rc = vv_fail_os(err, f->fts_errno, "scan %s", f->fts_path);
        } else if (f->fts_info != FTS_D && f->fts_info != FTS_DP) {
            rc = vv_fail(err, VV_ERR_CORRUPT, "%s is neither file nor directory", f->fts_path);
        }
    }
    if (rc == VV_OK && errno)
        rc = vv_fail_os(err, errno, "scan %s", s->root);
    fts_close(walk);
    *ret = total;
    return rc;
}

/* All bytes or an errno. */
static int write_bytes(vv_wstore *s, int fd, const uint8_t *p, size_t n)
{
    while (n) {
        ssize_t k = s->hooks.write ? s->hooks.write(s->hooks.ctx, fd, p, n) : write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return k < 0 ? errno : EIO;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

static int sync_dir(vv_wstore *s, const char *path)
{
    VV_CLEANUP(vv_close) int fd = vv_open_above(s->root_fd, path, O_RDONLY | O_DIRECTORY, 0);
    return fd < 0 || fsync(fd) < 0 ? errno : 0;
}

/* The ledger's new total, durable. 0 or an errno. */
static int write_ledger(vv_wstore *s, uint64_t total)
{
    uint8_t bytes[VV_USAGE_BYTES];
    vv_usage_encode(bytes, total);
    int os = step(s, VV_STEP_LEDGER_WRITE);
    if (os)
        return os;
    static const char pending[] = "tmp/usage-state.pending";
    VV_CLEANUP(vv_close)
    int fd = vv_open_above(s->root_fd, pending, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return errno;
    if ((os = write_bytes(s, fd, bytes, sizeof bytes)) || (os = step(s, VV_STEP_LEDGER_FSYNC)))
        return os;
    if (fsync(fd) < 0)
        return errno;
    if ((os = step(s, VV_STEP_LEDGER_RENAME)))
        return os;
    if (renameat(s->root_fd, pending, s->root_fd, "usage.state") < 0)
        return errno;
    if ((os = step(s, VV_STEP_FSYNC_ROOT)))
        return os;
    return fsync(s->root_fd) < 0 ? errno : 0;
}

static vv_code read_ledger(vv_wstore *s, uint64_t *ret, vv_error *err)
{
    uint8_t bytes[VV_USAGE_BYTES + 1]; /* one more tells a longer file */
    size_t n = 0;
    VV_CLEANUP(vv_close)
    int fd = vv_open_above(s->root_fd, "usage.state", O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return vv_fail_os(err, errno, "open usage.state");
    for (ssize_t k; n < sizeof bytes && (k = read(fd, bytes + n, sizeof bytes - n)) != 0;) {
        if (k < 0 && errno != EINTR)
            return vv_fail_os(err, errno, "read usage.state");
        n += k > 0 ? (size_t)k : 0;
    }
    return vv_usage_decode(bytes, n, ret, err);
}

static uint64_t free_bytes(vv_wstore *s)
{
    if (s->hooks.free_bytes)
        return s->hooks.free_bytes(s->hooks.ctx);
    struct statvfs v;
    if (fstatvfs(s->root_fd, &v) < 0)
        return 0;
    return (uint64_t)v.f_bavail * v.f_frsize;
}

static bool disk_has(vv_wstore *s, uint64_t usage, uint64_t need)
{
    uint64_t left = free_bytes(s);
    return vv_sat64(usage, need) <= s->max_project_bytes && (left > need ? left - need : 0) >= s->minimum_free_bytes;
}

/* The highest sequence of a plane; its seal must hold, but of the plane that nobody needs. */
static vv_code find_high(vv_wstore *s, vv_plane p, vv_error *err)
{
    char dir[STREAM_PATH + 8];
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
    char name[VV_SEGMENT_NAME], file[FILE_PATH];
    vv_segment_name(name, p, high);
    snprintf(file, sizeof file, "%s/%s", dir, name);
    VV_CLEANUP(vv_blob_done) vv_blob b = {NULL, 0};
    rc = vv_file_read(s->root_fd, file, UINT32_MAX, &b, err);
    return rc == VV_OK ? vv_seal_check(b.p, b.n, err) : rc;
}

static vv_code make_directories(vv_wstore *s, vv_error *err)
{
    for (unsigned p = 0; p < VV_PLANES; p++) {
        char dir[STREAM_PATH + 8];
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
    char name[STREAM_PATH + 16];
    snprintf(name, sizeof name, "%s/stream.lock", s->stream);
    vv_code rc = open_lock_file(s->root_fd, name, &s->stream_fd, err);
    /* A reader that asks whether the stream is alive holds the lock for a moment. */
    return rc == VV_OK ? lock_within(s->stream_fd, true, STREAM_LOCK_WAIT_MS, err) : rc;
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

static bool somebody_opens(int fd)
{
    struct flock first_byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &first_byte) == 0 && first_byte.l_type != F_UNLCK;
}

/* Lets those who open go first, for a while: one of them may be stopped. */
static void give_way(vv_wstore *s)
{
    if (s->patient)
        return;
    unsigned ms = s->gave_way_in_vain ? 0 : GIVE_WAY_MS;
    bool opens = somebody_opens(s->publish_fd);
    for (; ms && opens; ms--) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        opens = somebody_opens(s->publish_fd);
    }
    s->gave_way_in_vain = opens;
}

static vv_code open_ledger(vv_wstore *s, vv_error *err)
{
    vv_code rc = open_lock_file(s->root_fd, "publish.lock", &s->publish_fd, err);
    if (rc != VV_OK)
        return rc;
    announce(s->publish_fd, true);
    rc = lock_within(s->publish_fd, true, LOCK_WAIT_MS, err);
    announce(s->publish_fd, false);
    if (rc != VV_OK)
        return rc;
    uint64_t usage;
    rc = scan_usage(s, &usage, err);
    if (rc == VV_OK) {
        int os = write_ledger(s, usage);
        if (os)
            rc = vv_fail_os(err, os, "write usage.state");
        else if (usage > s->max_project_bytes || free_bytes(s) < s->minimum_free_bytes)
            latch(s, VV_LATCH_DISK);
    }
    vv_unlock(s->publish_fd);
    return rc;
}

static vv_code settle_planes(vv_wstore *s, vv_error *err)
{
    for (unsigned p = 0; p < VV_PLANES; p++) {
        char dir[STREAM_PATH + 8];
        snprintf(dir, sizeof dir, "%s/%s", s->stream, vv_plane_dir((vv_plane)p));
        vv_code rc = find_high(s, (vv_plane)p, err);
        int os = rc == VV_OK ? sync_dir(s, dir) : 0;
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
        rc = lock_within(s->lease_fd, false, LOCK_WAIT_MS, err);
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

static vv_published lost(vv_latch why)
{
    return (vv_published){VV_LOST, why, 0};
}

/* A step before the rename failed: the temporary stays and is charged. */
static vv_published fail_before(vv_wstore *s, int os, uint64_t usage, const char *tmp)
{
    struct stat st;
    if (latch_of(os) == VV_LATCH_DISK)
        latch(s, VV_LATCH_DISK);
    /* Bytes that the ledger does not know could be spent twice. */
    if (tmp && fstatat(s->root_fd, tmp, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size &&
        write_ledger(s, vv_sat64(usage, (uint64_t)st.st_size)))
        latch(s, VV_LATCH_UNAVAILABLE);
    vv_unlock(s->publish_fd);
    return lost(latch_of(os));
}

static vv_published fail_latched(vv_wstore *s, vv_latch latched, vv_latch why)
{
    latch(s, latched);
    vv_unlock(s->publish_fd);
    return lost(why);
}

typedef struct {
    const char *dir, *path; /* relative to the root */
    int plane;              /* -1: a CAS object */
    uint64_t sequence;
    const uint8_t *file;
    size_t n;
} publication;

static vv_published indeterminate(vv_wstore *s, const publication *p)
{
    s->pending_plane = p->plane;
    s->pending_sequence = p->sequence;
    snprintf(s->pending_dir, sizeof s->pending_dir, "%s", p->dir);
    atomic_store_explicit(&s->indeterminate, true, memory_order_release);
    return (vv_published){VV_INDETERMINATE, VV_LATCH_OPEN, p->sequence};
}

/* Steps 4 to 6: the temporary file, whole and on disk. 0 or an errno. */
static int write_temporary(vv_wstore *s, const publication *p, const char *tmp, bool *ret_made)
{
    int os = step(s, VV_STEP_DIRECTORY);
    if (os)
        return os;
    vv_error err = {.code = VV_OK};
    if (vv_mkdirs(s->root_fd, p->dir, &err) != VV_OK)
        return err.os ? err.os : EIO;
    if ((os = step(s, VV_STEP_CREATE)))
        return os;
    VV_CLEANUP(vv_close)
    int fd = vv_open_above(s->root_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    if (fd < 0)
        return errno;
    *ret_made = true;
    if ((os = step(s, VV_STEP_WRITE)) || (os = write_bytes(s, fd, p->file, p->n)) || (os = step(s, VV_STEP_FSYNC_FILE)))
        return os;
    return fsync(fd) < 0 ? errno : 0;
}

/* Under publish.lock, which is released unless the outcome is indeterminate. */
static vv_published publish_locked(vv_wstore *s, const publication *p)
{
    struct stat st;
    bool object = p->plane < 0;
    if (fstatat(s->root_fd, p->path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!object)
            return fail_latched(s, VV_LATCH_UNAVAILABLE, VV_LATCH_CONFLICT);
        vv_unlock(s->publish_fd);
        return lost(VV_LATCH_CONFLICT);
    }
    uint64_t usage;
    if (step(s, VV_STEP_LEDGER_READ) || read_ledger(s, &usage, NULL) != VV_OK)
        return fail_latched(s, VV_LATCH_UNAVAILABLE, VV_LATCH_UNAVAILABLE);
    if (!disk_has(s, usage, p->n + VV_USAGE_BYTES))
        return fail_latched(s, VV_LATCH_DISK, VV_LATCH_DISK);
    uint8_t id[16];
    char hex[33], tmp[64];
    vv_uuid4_new(id);
    vv_hex(hex, id, sizeof id);
    snprintf(tmp, sizeof tmp, "tmp/%s.pending", hex);
    bool made = false;
    int os = write_temporary(s, p, tmp, &made);
    if (os)
        return fail_before(s, os, usage, made ? tmp : NULL);
    if (fstatat(s->root_fd, p->path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (object) {
            unlinkat(s->root_fd, tmp, 0);
            vv_unlock(s->publish_fd);
            return lost(VV_LATCH_CONFLICT);
        }
        write_ledger(s, usage + p->n);
        return fail_latched(s, VV_LATCH_UNAVAILABLE, VV_LATCH_CONFLICT);
    }
    if ((os = step(s, VV_STEP_RENAME)) == 0 && renameat(s->root_fd, tmp, s->root_fd, p->path) < 0)
        os = errno;
    if (os)
        return fail_before(s, os, usage, tmp);
    if (step(s, VV_STEP_FSYNC_DIRECTORY) || sync_dir(s, p->dir) || write_ledger(s, usage + p->n))
        return indeterminate(s, p);
    step(s, VV_STEP_UNLOCK);
    vv_unlock(s->publish_fd);
    if (!object)
        s->high[p->plane] = p->sequence;
    return (vv_published){VV_COMMITTED, VV_LATCH_OPEN, p->sequence};
}

bool vv_wstore_fits(vv_wstore *s, uint64_t n)
{
    uint64_t usage;
    return read_ledger(s, &usage, NULL) == VV_OK && disk_has(s, usage, n);
}

void vv_wstore_be_patient(vv_wstore *s, bool patient)
{
    s->patient = patient;
}

uint64_t vv_wstore_lock_timeouts(const vv_wstore *s)
{
    return atomic_load_explicit(&s->lock_timeouts, memory_order_relaxed);
}

/* Takes publish.lock. False: *ret says why not. */
static bool take_publish_lock(vv_wstore *s, vv_published *ret)
{
    *ret = (vv_published){VV_BLOCKED, VV_LATCH_OPEN, 0};
    /* While a publication is indeterminate the lock is ours already. */
    if (atomic_load_explicit(&s->indeterminate, memory_order_relaxed))
        return false;
    give_way(s);
    int os = step(s, VV_STEP_LOCK);
    unsigned wait_ms = s->patient ? PATIENT_WAIT_MS : s->waited_in_vain ? LATE_WAIT_MS : PUBLISH_WAIT_MS;
    vv_code rc = os ? VV_ERR_IO : lock_within(s->publish_fd, true, wait_ms, NULL);
    s->waited_in_vain = rc == VV_ERR_BUSY;
    if (rc == VV_ERR_BUSY)
        atomic_fetch_add_explicit(&s->lock_timeouts, 1, memory_order_relaxed);
    else if (rc != VV_OK)
        *ret = lost(os ? latch_of(os) : VV_LATCH_UNAVAILABLE);
    return rc == VV_OK;
}

static vv_published publish(vv_wstore *s, const publication *p, bool terminal)
{
    if (!terminal && vv_wstore_latch(s) != VV_LATCH_OPEN)
        return lost(vv_wstore_latch(s));
    vv_published out;
    return take_publish_lock(s, &out) ? publish_locked(s, p) : out;
}

vv_published vv_wstore_publish(vv_wstore *s, vv_plane plane, const uint8_t *file, size_t n, bool terminal)
{
    uint64_t sequence = vv_wstore_next(s, plane);
    if (sequence == 0)
        return lost(VV_LATCH_UNAVAILABLE);
    char name[VV_SEGMENT_NAME], dir[STREAM_PATH + 8], path[FILE_PATH];
    vv_segment_name(name, plane, sequence);
    snprintf(dir, sizeof dir, "%s/%s", s->stream, vv_plane_dir(plane));
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return publish(s, &(publication){dir, path, (int)plane, sequence, file, n}, terminal);
}

/* Which file it is: immutable, so the same one has the same bytes. */
static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

typedef enum { OBJECT_ABSENT, OBJECT_GOOD, OBJECT_BAD, OBJECT_UNREADABLE } object_state;

/* Reads and hashes the whole object of that name; *ret_st says which file was read. */
static object_state verify_object(vv_wstore *s, const char *path, const vv_cid *cid, size_t n, struct stat *ret_st)
{
    VV_CLEANUP(vv_close) int fd = vv_open_above(s->root_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return errno == ENOENT ? OBJECT_ABSENT : errno == ELOOP ? OBJECT_BAD : OBJECT_UNREADABLE;
    if (fstat(fd, ret_st) < 0)
        return OBJECT_UNREADABLE;
    if (!S_ISREG(ret_st->st_mode) || ret_st->st_size < 0 || (uint64_t)ret_st->st_size != n)
        return OBJECT_BAD;
    uint8_t *bytes = malloc(n + 1);
    size_t got = 0;
    for (ssize_t k = 1; bytes && k != 0 && got < n;) {
        k = read(fd, bytes + got, n - got);
        got += k > 0 ? (size_t)k : 0;
        if (k < 0 && errno != EINTR)
            break;
    }
    vv_cas_object o;
    object_state state = !bytes || got < n                                 ? OBJECT_UNREADABLE
                         : vv_cas_decode(&o, bytes, n, cid, NULL) == VV_OK ? OBJECT_GOOD
                                                                           : OBJECT_BAD;
    free(bytes);
    return state;
}

/* Under publish.lock: is the file that was verified still the one of that name? False: it must be looked at again. */
static bool accept_object(vv_wstore *s, const char *path, const struct stat *verified, vv_published *ret)
{
    if (!take_publish_lock(s, ret))
        return true;
    struct stat now;
    bool same = fstatat(s->root_fd, path, &now, AT_SYMLINK_NOFOLLOW) == 0 && same_file(verified, &now);
    vv_unlock(s->publish_fd);
    *ret = (vv_published){VV_REUSED, VV_LATCH_OPEN, 0};
    return same;
}

vv_published vv_wstore_publish_object(vv_wstore *s, const vv_cid *cid, const uint8_t *file, size_t n)
{
    char path[VV_CAS_PATH], dir[VV_CAS_PATH];
    vv_cas_path(path, cid);
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = 0;
    for (unsigned tries = 0; tries < OBJECT_TRIES; tries++) {
        struct stat st;
        object_state state = verify_object(s, path, cid, n, &st);
        if (state == OBJECT_BAD || state == OBJECT_UNREADABLE)
            return lost(state == OBJECT_BAD ? VV_LATCH_CONFLICT : VV_LATCH_UNAVAILABLE);
        vv_published out;
        if (state == OBJECT_GOOD) {
            if (accept_object(s, path, &st, &out))
                return out;
            continue;
        }
        out = publish(s, &(publication){dir, path, -1, 0, file, n}, false);
        /* Another process was faster: its object is looked at in its turn. */
        if (out.outcome != VV_LOST || out.reason != VV_LATCH_CONFLICT)
            return out;
    }
    return lost(VV_LATCH_UNAVAILABLE);
}

bool vv_wstore_resolve(vv_wstore *s, bool *ret_settled, int *ret_plane, uint64_t *ret_sequence)
{
    *ret_settled = false;
    if (!atomic_load_explicit(&s->indeterminate, memory_order_relaxed))
        return true;
    uint64_t usage;
    if (step(s, VV_STEP_FSYNC_DIRECTORY) || sync_dir(s, s->pending_dir) || scan_usage(s, &usage, NULL) != VV_OK ||
        write_ledger(s, usage))
        return false;
    if (s->pending_plane >= 0)
        s->high[s->pending_plane] = s->pending_sequence;
    *ret_settled = true;
    *ret_plane = s->pending_plane;
    *ret_sequence = s->pending_sequence;
    atomic_store_explicit(&s->indeterminate, false, memory_order_release);
    vv_unlock(s->publish_fd);
    return true;
}
