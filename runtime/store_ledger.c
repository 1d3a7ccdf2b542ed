/* What a store's files weigh, as the ledger has it and as it is, and writing bytes for good. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "format/usage.h"
#include "runtime/store_inside.h"

static bool is_ledger(const char *path)
{
    return strcmp(path, "publish.lock") == 0 || strcmp(path, "usage.state") == 0 ||
           strcmp(path, "tmp/usage-state.pending") == 0;
}

vv_code vv_ledger_scan(vv_wstore *s, uint64_t *ret, vv_error *err)
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

int vv_write_bytes(vv_wstore *s, int fd, const uint8_t *p, size_t n)
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

int vv_sync_dir(vv_wstore *s, const char *path)
{
    VV_CLEANUP(vv_close) int fd = vv_open_above(s->root_fd, path, O_RDONLY | O_DIRECTORY, 0);
    return fd < 0 || fsync(fd) < 0 ? errno : 0;
}

int vv_ledger_write(vv_wstore *s, uint64_t total)
{
    uint8_t bytes[VV_USAGE_BYTES];
    vv_usage_encode(bytes, total);
    int os = vv_at_step(s, VV_STEP_LEDGER_WRITE);
    if (os)
        return os;
    static const char pending[] = "tmp/usage-state.pending";
    VV_CLEANUP(vv_close)
    int fd = vv_open_above(s->root_fd, pending, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return errno;
    if ((os = vv_write_bytes(s, fd, bytes, sizeof bytes)) || (os = vv_at_step(s, VV_STEP_LEDGER_FSYNC)))
        return os;
    if (fsync(fd) < 0)
        return errno;
    if ((os = vv_at_step(s, VV_STEP_LEDGER_RENAME)))
        return os;
    if (renameat(s->root_fd, pending, s->root_fd, "usage.state") < 0)
        return errno;
    if ((os = vv_at_step(s, VV_STEP_FSYNC_ROOT)))
        return os;
    return fsync(s->root_fd) < 0 ? errno : 0;
}

vv_code vv_ledger_read(vv_wstore *s, uint64_t *ret, vv_error *err)
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

uint64_t vv_disk_free(vv_wstore *s)
{
    if (s->hooks.free_bytes)
        return s->hooks.free_bytes(s->hooks.ctx);
    struct statvfs v;
    if (fstatvfs(s->root_fd, &v) < 0)
        return 0;
    return (uint64_t)v.f_bavail * v.f_frsize;
}

bool vv_disk_has(vv_wstore *s, uint64_t usage, uint64_t need)
{
    uint64_t left = vv_disk_free(s);
    return vv_sat64(usage, need) <= s->max_project_bytes && (left > need ? left - need : 0) >= s->minimum_free_bytes;
}
