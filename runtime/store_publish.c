/*
 * Publication: a hold of publish.lock in which files are put in their places, each durable before the next is begun,
 * and the ledger is written once.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "format/usage.h"
#include "runtime/store_inside.h"

enum { PATIENT_WAIT_MS = 2000, PUBLISH_WAIT_MS = 250, LATE_WAIT_MS = 20, GIVE_WAY_MS = 5000, TMP_PATH = 64 };

/* Lets those who open go first, for a while: one of them may be stopped. */
static void give_way(vv_wstore *s)
{
    if (s->patient)
        return;
    unsigned ms = s->gave_way_in_vain ? 0 : GIVE_WAY_MS;
    bool opens = vv_somebody_opens(s->publish_fd);
    for (; ms && opens; ms--) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        opens = vv_somebody_opens(s->publish_fd);
    }
    s->gave_way_in_vain = opens;
}

bool vv_hold_begin(vv_wstore *s, vv_hold *h, vv_published *ret)
{
    *h = (vv_hold){0};
    *ret = (vv_published){VV_BLOCKED, VV_LATCH_OPEN, 0};
    /* While a publication is indeterminate the lock is ours already. */
    if (vv_wstore_is_indeterminate(s))
        return false;
    give_way(s);
    int os = vv_at_step(s, VV_STEP_LOCK);
    unsigned wait_ms = s->patient ? PATIENT_WAIT_MS : s->waited_in_vain ? LATE_WAIT_MS : PUBLISH_WAIT_MS;
    vv_code rc = os ? VV_ERR_IO : vv_lock_within(s->publish_fd, true, wait_ms, NULL);
    s->waited_in_vain = rc == VV_ERR_BUSY;
    if (rc == VV_ERR_BUSY)
        atomic_fetch_add_explicit(&s->lock_timeouts, 1, memory_order_relaxed);
    else if (rc != VV_OK)
        *ret = vv_lost(os ? vv_latch_of(os) : VV_LATCH_UNAVAILABLE);
    return rc == VV_OK;
}

/* A file of so many bytes is there that the ledger does not know. */
static void grow(vv_hold *h, uint64_t n)
{
    h->usage = vv_sat64(h->usage, n);
    h->bytes = vv_sat64(h->bytes, n);
}

/* A step before the rename failed: the temporary stays and is charged, for bytes that the ledger does not know could be
 * spent twice. */
static vv_published fail_before(vv_wstore *s, vv_hold *h, int os, const char *tmp)
{
    struct stat st;
    if (vv_latch_of(os) == VV_LATCH_DISK)
        vv_latch_close(s, VV_LATCH_DISK);
    if (tmp && fstatat(s->root_fd, tmp, &st, AT_SYMLINK_NOFOLLOW) == 0)
        grow(h, (uint64_t)st.st_size);
    return vv_lost(vv_latch_of(os));
}

static void set_indeterminate(vv_wstore *s, const vv_publication *p)
{
    s->pending_plane = p->plane;
    s->pending_sequence = p->sequence;
    snprintf(s->pending_dir, sizeof s->pending_dir, "%s", p->dir);
    atomic_store_explicit(&s->indeterminate, true, memory_order_release);
}

/* Steps 4 to 6: the temporary file, whole and on disk. 0 or an errno; *ret_fd is negative where it was not made. */
static int write_temporary(vv_wstore *s, const vv_publication *p, const char *tmp, int *ret_fd)
{
    int os = vv_at_step(s, VV_STEP_DIRECTORY);
    if (os)
        return os;
    vv_error err = {.code = VV_OK};
    if (vv_mkdirs(s->root_fd, p->dir, &err) != VV_OK)
        return err.os ? err.os : EIO;
    if ((os = vv_at_step(s, VV_STEP_CREATE)))
        return os;
    *ret_fd = vv_open_above(s->root_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    if (*ret_fd < 0)
        return errno;
    os = vv_at_step(s, VV_STEP_WRITE);
    for (size_t i = 0; !os && i < VV_ARRAY_LEN(p->pieces); i++)
        os = vv_write_bytes(s, *ret_fd, p->pieces[i].p, p->pieces[i].n);
    if (os || (os = vv_at_step(s, VV_STEP_FSYNC_FILE)))
        return os;
    return fsync(*ret_fd) < 0 ? errno : 0;
}

/* Never over a file that is there: EEXIST. Where the file system can't promise that, the lock and a look must do. */
static int rename_new(vv_wstore *s, const char *from, const char *to)
{
    if (renameat2(s->root_fd, from, s->root_fd, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    struct stat st;
    if (fstatat(s->root_fd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return EEXIST;
    return renameat(s->root_fd, from, s->root_fd, to) < 0 ? errno : 0;
}

/* A file of that name came while ours was written. An object's may well be equal; a segment's is a stranger's. */
static vv_published fail_occupied(vv_wstore *s, vv_hold *h, const vv_publication *p, const char *tmp)
{
    bool object = p->plane < 0;
    if (!object)
        vv_latch_close(s, VV_LATCH_UNAVAILABLE);
    if (!object || unlinkat(s->root_fd, tmp, 0) < 0)
        grow(h, p->n);
    return vv_lost(VV_LATCH_CONFLICT);
}

/* Whether there is room for n bytes more, and the ledger's own file aside. */
static bool has_room(vv_wstore *s, vv_hold *h, size_t n, vv_published *ret)
{
    if (!h->read && (vv_at_step(s, VV_STEP_LEDGER_READ) || vv_ledger_read(s, &h->usage, NULL) != VV_OK)) {
        vv_latch_close(s, VV_LATCH_UNAVAILABLE);
        *ret = vv_lost(VV_LATCH_UNAVAILABLE);
        return false;
    }
    h->read = true;
    if (vv_disk_has(s, h->usage, n + VV_USAGE_BYTES))
        return true;
    vv_latch_close(s, VV_LATCH_DISK);
    *ret = vv_lost(VV_LATCH_DISK);
    return false;
}

vv_published vv_hold_place(vv_wstore *s, vv_hold *h, const vv_publication *p, vv_file_id *ret_file)
{
    struct stat st;
    vv_published why;
    if (fstatat(s->root_fd, p->path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (p->plane >= 0)
            vv_latch_close(s, VV_LATCH_UNAVAILABLE);
        return vv_lost(VV_LATCH_CONFLICT);
    }
    if (!has_room(s, h, p->n, &why))
        return why;
    uint8_t id[16];
    char hex[33], tmp[TMP_PATH];
    vv_uuid4_new(id);
    vv_hex(hex, id, sizeof id);
    snprintf(tmp, sizeof tmp, "tmp/%s.pending", hex);
    VV_CLEANUP(vv_close) int fd = -1;
    int os = write_temporary(s, p, tmp, &fd);
    if (os || (os = vv_at_step(s, VV_STEP_RENAME)))
        return fail_before(s, h, os, fd < 0 ? NULL : tmp);
    if ((os = rename_new(s, tmp, p->path)))
        return os == EEXIST ? fail_occupied(s, h, p, tmp) : fail_before(s, h, os, tmp);
    grow(h, p->n);
    if (vv_at_step(s, VV_STEP_FSYNC_DIRECTORY) || vv_sync_dir(s, p->dir)) {
        set_indeterminate(s, p);
        return (vv_published){VV_INDETERMINATE, VV_LATCH_OPEN, p->sequence};
    }
    if (ret_file)
        *ret_file = fstat(fd, &st) == 0 ? vv_file_id_of(&st) : (vv_file_id){0};
    return (vv_published){VV_COMMITTED, VV_LATCH_OPEN, p->sequence};
}

bool vv_hold_end(vv_wstore *s, vv_hold *h, const vv_publication *last)
{
    if (h->bytes && vv_ledger_write(s, h->usage)) {
        if (last) {
            set_indeterminate(s, last);
            return false;
        }
        vv_latch_close(s, VV_LATCH_UNAVAILABLE);
    }
    vv_at_step(s, VV_STEP_UNLOCK);
    vv_unlock(s->publish_fd);
    return true;
}

bool vv_wstore_fits(vv_wstore *s, uint64_t n)
{
    uint64_t usage;
    return vv_ledger_read(s, &usage, NULL) == VV_OK && vv_disk_has(s, usage, n);
}

void vv_wstore_be_patient(vv_wstore *s, bool patient)
{
    s->patient = patient;
}

uint64_t vv_wstore_lock_timeouts(const vv_wstore *s)
{
    return atomic_load_explicit(&s->lock_timeouts, memory_order_relaxed);
}

uint64_t vv_wstore_high(const vv_wstore *s, vv_plane p)
{
    return s->high[p];
}

uint64_t vv_wstore_next(const vv_wstore *s, vv_plane p)
{
    return s->high[p] + 1;
}

vv_published vv_wstore_publish(vv_wstore *s, vv_plane plane, const uint8_t *file, size_t n, bool terminal)
{
    uint64_t sequence = vv_wstore_next(s, plane);
    if (sequence == 0)
        return vv_lost(VV_LATCH_UNAVAILABLE);
    if (!terminal && vv_wstore_latch(s) != VV_LATCH_OPEN)
        return vv_lost(vv_wstore_latch(s));
    char name[VV_SEGMENT_NAME], dir[VV_STREAM_PATH + 8], path[VV_FILE_PATH];
    vv_segment_name(name, plane, sequence);
    snprintf(dir, sizeof dir, "%s/%s", s->stream, vv_plane_dir(plane));
    snprintf(path, sizeof path, "%s/%s", dir, name);
    const vv_publication p = {dir, path, (int)plane, sequence, {{file, n}}, n};
    vv_hold h;
    vv_published out;
    if (!vv_hold_begin(s, &h, &out))
        return out;
    out = vv_hold_place(s, &h, &p, NULL);
    if (out.outcome == VV_INDETERMINATE)
        return out;
    bool committed = out.outcome == VV_COMMITTED;
    if (!vv_hold_end(s, &h, committed ? &p : NULL))
        return (vv_published){VV_INDETERMINATE, VV_LATCH_OPEN, sequence};
    if (committed)
        s->high[plane] = sequence;
    return out;
}

bool vv_wstore_resolve(vv_wstore *s, bool *ret_settled, int *ret_plane, uint64_t *ret_sequence)
{
    *ret_settled = false;
    if (!vv_wstore_is_indeterminate(s))
        return true;
    uint64_t usage;
    if (vv_at_step(s, VV_STEP_FSYNC_DIRECTORY) || vv_sync_dir(s, s->pending_dir) ||
        vv_ledger_scan(s, &usage, NULL) != VV_OK || vv_ledger_write(s, usage))
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
