#include "config.h"

#include "reader/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/text.h"
#include "reader/segments.h"

enum {
    CHANGED_MAX = 1024,   /* streams; of more, all count as changed */
    CLOSING_MAX = 256,    /* streams whose lock was closed while they seemed alive */
    EVENT_BYTES = 16384,
    EVENT_ROUNDS = 64,    /* buffers that one look reads; what comes meanwhile is for the next */
    CLOSING_DELAYS = 10,  /* doubling from 1 ms: half a second */
};
#define POLL_MOST_NS UINT64_C(60000000000)
#define REWATCH_NS UINT64_C(30000000000)
#define MILLISECOND_NS UINT64_C(1000000)
/* A whole look may cost this part of the time, at most: the second where it stands for notification. */
enum { SHARE_SLOW = 100, SHARE_QUICK = 20 };

#define ITSELF (IN_MOVE_SELF | IN_DELETE_SELF | IN_ONLYDIR)
#define NAMES (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR)
#define INSIDE (NAMES | IN_ATTRIB | IN_CLOSE_WRITE | IN_DONT_FOLLOW | IN_EXCL_UNLINK)

typedef enum { SPOT_PLACE, SPOT_PARENT, SPOT_ROOT, SPOT_STREAMS, SPOT_STREAM, SPOT_PLANE } spot_kind;

/* A directory that is watched. */
typedef struct {
    int wd;
    uint8_t kind, plane;
    vv_euid euid;
} spot;

typedef struct {
    vv_euid euid;
    uint64_t due_ns, delay_ns;
} closing;

struct vv_watch {
    int fd;
    unsigned max;
    spot *spots; /* ascending by wd */
    size_t spot_count, spot_cap;
    bool short_of_watches; /* something is not watched */
    bool deaf;             /* the file system tells nothing of what others do */
    vv_source *source;     /* or NULL */
    char name[NAME_MAX + 1]; /* of the root, in its parent */
    char *place;             /* the directory in which a store's coming is watched, or NULL */
    vv_changes noted, taken;
    size_t noted_cap, taken_cap;
    closing closing[CLOSING_MAX];
    size_t closing_count;
    uint64_t due_ns, rewatch_ns;
};

vv_code vv_watch_new(vv_watch **ret, unsigned max_watches, vv_error *err)
{
    vv_watch *w = calloc(1, sizeof *w);
    if (!w)
        return vv_fail(err, VV_ERR_NOMEM, "no memory to watch a store");
    w->max = max_watches;
    /* Where the user has no instance left, polling must do. */
    w->fd = max_watches ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;
    w->due_ns = UINT64_MAX;
    *ret = w;
    return VV_OK;
}

void vv_watch_free(vv_watch *w)
{
    if (!w)
        return;
    vv_close(&w->fd);
    free(w->spots);
    free(w->place);
    free(w->noted.streams);
    free(w->taken.streams);
    free(w);
}

int vv_watch_fd(const vv_watch *w)
{
    return w->fd;
}

bool vv_watch_is_complete(const vv_watch *w)
{
    return w->fd >= 0 && w->source && !w->short_of_watches && !w->deaf;
}

uint64_t vv_watch_due_ns(const vv_watch *w)
{
    uint64_t due = w->due_ns;
    for (size_t i = 0; i < w->closing_count; i++)
        if (w->closing[i].due_ns < due)
            due = w->closing[i].due_ns;
    return due;
}

/* Index of the first spot that is not before wd. */
static size_t spot_from(const vv_watch *w, int wd)
{
    size_t lo = 0, hi = w->spot_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (w->spots[mid].wd < wd)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static spot *find_spot(vv_watch *w, int wd)
{
    size_t i = spot_from(w, wd);
    return i < w->spot_count && w->spots[i].wd == wd ? &w->spots[i] : NULL;
}

static void drop_spot(vv_watch *w, spot *s)
{
    size_t i = (size_t)(s - w->spots);
    memmove(s, s + 1, (--w->spot_count - i) * sizeof *s);
}

/* Descriptors ascend, so as a rule it comes last. False without memory. */
static bool put_spot(vv_watch *w, const spot *s)
{
    spot *known = find_spot(w, s->wd);
    if (known) {
        *known = *s;
        return true;
    }
    if (!vv_grow(&w->spots, &w->spot_cap, w->spot_count, sizeof *w->spots))
        return false;
    size_t i = spot_from(w, s->wd);
    memmove(w->spots + i + 1, w->spots + i, (w->spot_count - i) * sizeof *s);
    w->spots[i] = *s;
    w->spot_count++;
    return true;
}

/* Something goes unwatched from now on: the poll is due at once, and quicker henceforth. */
static void fall_short(vv_watch *w)
{
    w->short_of_watches = true;
    w->due_ns = 0;
}

/* A directory that is not there needs no watch: its coming is seen in the one above. */
static void watch_dir(vv_watch *w, const char *path, uint32_t mask, spot s)
{
    if (w->fd < 0)
        return;
    if (w->spot_count >= w->max) {
        fall_short(w);
        return;
    }
    s.wd = inotify_add_watch(w->fd, path, mask);
    if (s.wd < 0) {
        if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
            fall_short(w);
    } else if (!put_spot(w, &s)) {
        inotify_rm_watch(w->fd, s.wd);
        fall_short(w);
    }
}

static void watch_plane(vv_watch *w, const vv_euid *euid, vv_plane plane)
{
    char rel[VV_STREAM_PATH], path[PATH_MAX + VV_STREAM_PATH];
    vv_plane_path(rel, euid, plane);
    snprintf(path, sizeof path, "%s/%s", vv_source_path(w->source), rel);
    watch_dir(w, path, INSIDE | IN_MODIFY, (spot){.kind = SPOT_PLANE, .plane = (uint8_t)plane, .euid = *euid});
}

static void watch_stream(vv_watch *w, const vv_euid *euid)
{
    char rel[VV_STREAM_PATH], path[PATH_MAX + VV_STREAM_PATH];
    vv_stream_dir(rel, euid);
    snprintf(path, sizeof path, "%s/%s", vv_source_path(w->source), rel);
    watch_dir(w, path, INSIDE, (spot){.kind = SPOT_STREAM, .euid = *euid});
    for (vv_plane p = 0; p < VV_PLANES; p++)
        watch_plane(w, euid, p);
}

static void unwatch_stream(vv_watch *w, const vv_euid *euid)
{
    for (size_t i = w->spot_count; i-- > 0;) {
        spot *s = &w->spots[i];
        if (s->kind < SPOT_STREAM || memcmp(s->euid.b, euid->b, sizeof euid->b) != 0)
            continue;
        inotify_rm_watch(w->fd, s->wd);
        drop_spot(w, s);
    }
}

static void unwatch_all(vv_watch *w)
{
    for (size_t i = 0; i < w->spot_count; i++)
        inotify_rm_watch(w->fd, w->spots[i].wd);
    w->spot_count = 0;
    w->closing_count = 0;
    w->short_of_watches = false;
    free(w->place);
    w->place = NULL;
}

/* Cuts the last name off; false where there is none. */
static bool cut_name(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || !slash[1])
        return false;
    slash[slash == path] = 0;
    return true;
}

/* The root's own coming and going is seen in its parent: a directory that is held open tells nothing of its removal. */
static void watch_root(vv_watch *w)
{
    char path[PATH_MAX];
    if (!realpath(vv_source_path(w->source), path))
        return;
    watch_dir(w, path, NAMES | ITSELF, (spot){.kind = SPOT_ROOT});
    snprintf(w->name, sizeof w->name, "%s", strrchr(path, '/') + 1);
    if (cut_name(path))
        watch_dir(w, path, NAMES | ITSELF, (spot){.kind = SPOT_PARENT});
}

/* Whatever directory above it is renamed takes the store away. Those that may not be watched are left to the poll. */
static void watch_above(vv_watch *w)
{
    char path[PATH_MAX];
    if (w->fd < 0 || !realpath(vv_source_path(w->source), path) || !cut_name(path))
        return;
    while (cut_name(path) && w->spot_count < w->max) {
        spot s = {.wd = inotify_add_watch(w->fd, path, ITSELF), .kind = SPOT_PLACE};
        if (s.wd >= 0 && !put_spot(w, &s))
            inotify_rm_watch(w->fd, s.wd);
    }
}

/* Watches whatever is not watched yet. */
static void watch_all(vv_watch *w, uint64_t now_ns)
{
    VV_CLEANUP(vv_names_done) vv_names names = {0};
    char path[PATH_MAX + VV_STREAM_PATH];
    w->short_of_watches = false;
    w->rewatch_ns = now_ns + REWATCH_NS;
    watch_root(w);
    snprintf(path, sizeof path, "%s/streams", vv_source_path(w->source));
    watch_dir(w, path, INSIDE, (spot){.kind = SPOT_STREAMS});
    bool listed = vv_source_list(w->source, "streams", &names, NULL) == VV_OK;
    for (size_t i = 0; listed && i < names.count; i++) {
        vv_euid euid;
        if (vv_unhex(euid.b, sizeof euid.b, vv_cstr(names.names[i])))
            watch_stream(w, &euid);
    }
    watch_above(w);
}

/* File systems whose files others may change unseen by this machine. */
static bool is_deaf(int dirfd)
{
    static const uint32_t types[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x01021997, /* 9P */
        0x65735546, /* FUSE */
        0x00c36400, /* Ceph */
        0x5346414f, /* AFS */
        0x786f4256, /* shared folders of VirtualBox */
    };
    struct statfs st;
    if (fstatfs(dirfd, &st) != 0)
        return true;
    for (size_t i = 0; i < VV_ARRAY_LEN(types); i++)
        if ((uint32_t)st.f_type == types[i])
            return true;
    return false;
}

static void note_everything(vv_watch *w)
{
    w->noted.all = true;
    w->noted.count = 0;
}

void vv_watch_store(vv_watch *w, vv_source *source, uint64_t now_ns)
{
    unwatch_all(w);
    w->source = source;
    w->deaf = !vv_source_is_live(source) || is_deaf(vv_source_dirfd(source));
    if (vv_source_is_live(source))
        watch_all(w, now_ns);
    w->noted.place = w->noted.listing = false;
    note_everything(w);
    w->due_ns = vv_source_is_live(source) ? now_ns : UINT64_MAX;
}

void vv_watch_nothing(vv_watch *w)
{
    unwatch_all(w);
    w->source = NULL;
    w->due_ns = UINT64_MAX;
}

/* Cuts a path down to the nearest directory that is there. */
static void cut_to_directory(char *path)
{
    struct stat st;
    while (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        char *slash = strrchr(path, '/');
        if (!slash) {
            strcpy(path, ".");
            return;
        }
        if (slash == path) {
            path[1] = 0;
            return;
        }
        *slash = 0;
    }
}

bool vv_watch_place(vv_watch *w, const char *path, uint64_t now_ns)
{
    char *dir = malloc(strlen(path) + 2);
    w->source = NULL;
    w->due_ns = now_ns + VV_POLL_PLACE_NS;
    if (!dir)
        return false;
    strcpy(dir, path);
    cut_to_directory(dir);
    if (w->place && strcmp(w->place, dir) == 0 && w->spot_count) {
        free(dir);
        return false;
    }
    unwatch_all(w);
    w->place = dir;
    watch_dir(w, dir, NAMES | IN_DELETE_SELF | IN_MOVE_SELF, (spot){.kind = SPOT_PLACE});
    w->due_ns = now_ns + VV_POLL_PLACE_NS;
    return w->spot_count > 0;
}

/* The changes of a stream; NULL where everything counts as changed anyway. */
static vv_stream_change *changes_of(vv_watch *w, const vv_euid *euid)
{
    vv_changes *n = &w->noted;
    if (n->all)
        return NULL;
    for (size_t i = n->count; i-- > 0;)
        if (memcmp(n->streams[i].euid.b, euid->b, sizeof euid->b) == 0)
            return &n->streams[i];
    if (n->count == CHANGED_MAX || !vv_grow(&n->streams, &w->noted_cap, n->count, sizeof *n->streams)) {
        note_everything(w);
        return NULL;
    }
    vv_stream_change *s = &n->streams[n->count++];
    *s = (vv_stream_change){.euid = *euid};
    return s;
}

static void note_stream(vv_watch *w, const vv_euid *euid)
{
    vv_stream_change *s = changes_of(w, euid);
    if (s)
        vv_stream_change_all(s);
}

static void note_probe(vv_watch *w, const vv_euid *euid)
{
    vv_stream_change *s = changes_of(w, euid);
    if (s)
        s->probe = true;
}

static void note_closing(vv_watch *w, const vv_euid *euid)
{
    for (size_t i = 0; i < w->closing_count; i++)
        if (memcmp(w->closing[i].euid.b, euid->b, sizeof euid->b) == 0) {
            w->closing[i] = (closing){*euid, 0, MILLISECOND_NS};
            return;
        }
    /* Of more than that the poll will tell. */
    if (w->closing_count < CLOSING_MAX)
        w->closing[w->closing_count++] = (closing){*euid, 0, MILLISECOND_NS};
}

static void see_streams(vv_watch *w, const struct inotify_event *e, const char *name)
{
    vv_euid euid;
    if (!vv_unhex(euid.b, sizeof euid.b, vv_cstr(name)))
        return;
    if (e->mask & (IN_MOVED_FROM | IN_MOVED_TO))
        unwatch_stream(w, &euid);
    if (e->mask & (IN_CREATE | IN_MOVED_TO))
        watch_stream(w, &euid);
    w->noted.listing = true;
    note_stream(w, &euid);
}

static void see_stream(vv_watch *w, const struct inotify_event *e, const char *name, const vv_euid *euid)
{
    if (!*name) {
        note_stream(w, euid);
        return;
    }
    if (strcmp(name, "stream.lock") == 0) {
        if (e->mask & IN_CLOSE_WRITE)
            note_closing(w, euid);
        else
            note_probe(w, euid);
        return;
    }
    for (vv_plane p = 0; p < VV_PLANES; p++) {
        if (strcmp(name, vv_plane_dir(p)) != 0)
            continue;
        if (e->mask & (IN_CREATE | IN_MOVED_TO))
            watch_plane(w, euid, p);
        vv_stream_change *s = changes_of(w, euid);
        if (s)
            s->planes[p].all = true;
    }
}

static void see_plane(vv_watch *w, const char *name, const vv_euid *euid, vv_plane plane)
{
    uint64_t sequence;
    if (!*name) {
        note_stream(w, euid);
    } else if (vv_segment_parse(name, plane, &sequence)) {
        vv_stream_change *s = changes_of(w, euid);
        if (s)
            vv_plane_change_note(&s->planes[plane], sequence);
    }
}

/* Returns whether directories may have come that are not watched. */
static bool see_event(vv_watch *w, const struct inotify_event *e)
{
    const char *name = e->len ? e->name : "";
    if (e->mask & IN_Q_OVERFLOW) {
        note_everything(w);
        w->noted.place = true;
        return true;
    }
    spot *at = find_spot(w, e->wd);
    if (!at)
        return false;
    const spot s = *at; /* the list may grow */
    if (e->mask & (IN_MOVE_SELF | IN_DELETE_SELF)) {
        w->noted.place = true;
        return false;
    }
    if (e->mask & IN_IGNORED) {
        drop_spot(w, at);
        w->noted.place |= s.kind <= SPOT_STREAMS;
        return false;
    }
    switch ((spot_kind)s.kind) {
    case SPOT_PLACE:
        w->noted.place = true;
        break;
    case SPOT_PARENT:
        w->noted.place |= strcmp(name, w->name) == 0;
        break;
    case SPOT_ROOT:
        if (strcmp(name, "streams") != 0)
            break;
        note_everything(w);
        return true;
    case SPOT_STREAMS:
        see_streams(w, e, name);
        break;
    case SPOT_STREAM:
        see_stream(w, e, name, &s.euid);
        break;
    case SPOT_PLANE:
        see_plane(w, name, &s.euid, s.plane);
        break;
    }
    return false;
}

static void drain(vv_watch *w, uint64_t now_ns)
{
    _Alignas(struct inotify_event) char buf[EVENT_BYTES];
    bool again = false;
    for (unsigned round = 0; w->fd >= 0 && round < EVENT_ROUNDS; round++) {
        ssize_t n = read(w->fd, buf, sizeof buf);
        if (n <= 0)
            break;
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *e = (const struct inotify_event *)(buf + at);
            at += (ssize_t)(sizeof *e + e->len);
            again |= see_event(w, e);
        }
    }
    if (again && w->source)
        watch_all(w, now_ns);
}

/* The health plane is no part of the generation, but its files are listed, and its terms are shown. */
static bool is_visible(const vv_stream_change *s)
{
    for (vv_plane p = 0; p < VV_PLANES; p++)
        if (s->planes[p].all || s->planes[p].count)
            return true;
    return s->probe;
}

bool vv_watch_pending(vv_watch *w, uint64_t now_ns)
{
    drain(w, now_ns);
    if (w->noted.all || w->noted.place || w->noted.listing || now_ns >= vv_watch_due_ns(w))
        return true;
    for (size_t i = 0; i < w->noted.count; i++)
        if (is_visible(&w->noted.streams[i]))
            return true;
    return false;
}

void vv_watch_take(vv_watch *w, vv_changes *ret, uint64_t now_ns)
{
    drain(w, now_ns);
    if (now_ns >= w->due_ns) {
        note_everything(w);
        w->noted.place = true;
        if (w->source && w->short_of_watches && now_ns >= w->rewatch_ns)
            watch_all(w, now_ns);
    }
    for (size_t i = 0; i < w->closing_count; i++)
        if (w->closing[i].due_ns <= now_ns)
            note_probe(w, &w->closing[i].euid);
    vv_changes given = w->noted;
    size_t cap = w->noted_cap;
    w->noted = (vv_changes){.streams = w->taken.streams};
    w->noted_cap = w->taken_cap;
    w->taken = given;
    w->taken_cap = cap;
    *ret = given;
}

static uint64_t poll_interval(const vv_watch *w, uint64_t cost_ns)
{
    bool complete = vv_watch_is_complete(w);
    uint64_t least = complete ? VV_POLL_SLOW_NS : VV_POLL_QUICK_NS;
    uint64_t ns = cost_ns > POLL_MOST_NS ? POLL_MOST_NS : cost_ns * (complete ? SHARE_SLOW : SHARE_QUICK);
    return ns < least ? least : ns > POLL_MOST_NS ? POLL_MOST_NS : ns;
}

/* Streams that are seen dead, or whose lock somebody holds for good, need no further probe. */
static void settle_closing(vv_watch *w, const vv_store *store, uint64_t began_ns, uint64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->closing_count; i++) {
        closing c = w->closing[i];
        if (c.due_ns <= began_ns) {
            const vv_stream *s = vv_store_stream(store, &c.euid);
            if (!s || !s->alive || c.delay_ns > MILLISECOND_NS << CLOSING_DELAYS)
                continue;
            c.due_ns = now_ns + c.delay_ns;
            c.delay_ns *= 2;
        }
        w->closing[kept++] = c;
    }
    w->closing_count = kept;
}

void vv_watch_looked(vv_watch *w, const vv_store *store, uint64_t began_ns, uint64_t now_ns)
{
    if (!store) {
        note_everything(w);
        w->noted.place = true;
        w->due_ns = now_ns + VV_POLL_PLACE_NS;
        return;
    }
    settle_closing(w, store, began_ns, now_ns);
    if (w->taken.all && w->due_ns != UINT64_MAX)
        w->due_ns = now_ns + poll_interval(w, now_ns - began_ns);
}
