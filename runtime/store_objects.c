/*
 * Objects: looked at without publish.lock, then accepted or put in their places under it, many in one hold.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/file.h"
#include "runtime/clock.h"
#include "runtime/store_inside.h"

enum {
    PART = VV_OBJECTS_IN_A_HOLD,
    HOLD_BYTES = 4 << 20,  /* after so many it ends, as a segment would: the ledger is not behind by more */
    HOLD_MS = 100,         /* and after so long */
    TURN_MS = 6,           /* who waits for the lock naps for 5 */
    TRIES = 8,             /* at an object that others change */
    KNOWN = 4096,
    CHUNK = 32768,
    DIR_PATH = sizeof "cas/sha256/00",
};

/*
 * What this session has read whole or written: from its cid to which file that was. By place, so that a newer one takes
 * the place of an older.
 */
static vv_known_object *known_place(const vv_wstore *s, const vv_cid *cid)
{
    return s->known ? &s->known[vv_be64(cid->b) % KNOWN] : NULL;
}

static const vv_file_id *known_file(const vv_wstore *s, const vv_cid *cid)
{
    const vv_known_object *k = known_place(s, cid);
    return k && memcmp(&k->cid, cid, sizeof *cid) == 0 && k->file.inode ? &k->file : NULL;
}

static void forget(vv_wstore *s, const vv_cid *cid)
{
    if (known_file(s, cid))
        *known_place(s, cid) = (vv_known_object){.file = {.inode = 0}};
}

/* Whether a change of the file from now on changes its time too: the clock that times are taken from has moved on. */
static bool is_settled(const vv_file_id *f)
{
    struct timespec now;
    if (!f->inode || clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0)
        return false;
    return now.tv_sec > f->changed.tv_sec ||
           (now.tv_sec == f->changed.tv_sec && now.tv_nsec > f->changed.tv_nsec);
}

/* Values alone are captured again and again; a function table is not. */
static void remember(vv_wstore *s, const vv_wstore_object *o, const vv_file_id *file)
{
    if (!s->governor || o->codec != VV_CODEC_VALUE)
        return;
    if (!s->known && !s->known_denied) {
        s->known = vv_gov_alloc(s->governor, VV_POOL_GENERAL, VV_OWN_WRITER, KNOWN * sizeof *s->known);
        s->known_denied = !s->known;
    }
    if (s->known)
        *known_place(s, &o->cid) = (vv_known_object){o->cid, *file};
}

void vv_known_objects_done(vv_wstore *s)
{
    if (s->known)
        vv_gov_free(s->governor, VV_POOL_GENERAL, VV_OWN_WRITER, s->known, KNOWN * sizeof *s->known);
    s->known = NULL;
}

/* An object on its way through publish_part. */
typedef struct {
    const vv_wstore_object *object;
    vv_published *ret;
    enum { TO_LOOK_AT, PRESENT, ABSENT, SETTLED } state;
    unsigned looks;
    bool framed, lasting; /* lasting: its file can be remembered */
    vv_file_id file;      /* where present: the one that was compared */
    char path[VV_CAS_PATH], dir[DIR_PATH];
    uint8_t head[VV_CAS_HEAD], tail[VV_CAS_TAIL];
} candidate;

static void settle(candidate *c, vv_published as)
{
    *c->ret = as;
    c->state = SETTLED;
}

static void frame(candidate *c)
{
    const vv_wstore_object *o = c->object;
    if (!c->framed)
        vv_cas_frame(c->head, c->tail, o->codec, &o->cid, o->body, o->len);
    c->framed = true;
}

/* Whether the file goes on with these bytes. False: it does not (*ret_os 0), or it can't be read. */
static bool goes_on_with(int fd, const uint8_t *want, size_t n, int *ret_os)
{
    uint8_t chunk[CHUNK];
    for (size_t at = 0; at < n;) {
        ssize_t k = read(fd, chunk, n - at < sizeof chunk ? n - at : sizeof chunk);
        if (k < 0 && errno == EINTR)
            continue;
        *ret_os = k < 0 ? errno : 0;
        if (k <= 0 || memcmp(chunk, want + at, (size_t)k) != 0)
            return false;
        at += (size_t)k;
    }
    return true;
}

/* Compares the whole file of the object's name with what it should hold: framing, length, body, checksum. */
static void compare(vv_wstore *s, candidate *c)
{
    const vv_wstore_object *o = c->object;
    VV_CLEANUP(vv_close) int fd = vv_open_above(s->root_fd, c->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0 && errno == ENOENT) {
        c->state = ABSENT;
        return;
    }
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        settle(c, vv_lost(fd < 0 && errno == ELOOP ? VV_LATCH_CONFLICT : VV_LATCH_UNAVAILABLE));
        return;
    }
    bool same = S_ISREG(st.st_mode) && st.st_size >= 0 && (uint64_t)st.st_size == VV_CAS_FIXED + (uint64_t)o->len;
    int os = 0;
    c->file = vv_file_id_of(&st);
    c->lasting = is_settled(&c->file);
    if (same)
        frame(c);
    same = same && goes_on_with(fd, c->head, sizeof c->head, &os) && goes_on_with(fd, o->body, o->len, &os) &&
           goes_on_with(fd, c->tail, sizeof c->tail, &os);
    if (same)
        c->state = PRESENT;
    else
        settle(c, vv_lost(os ? VV_LATCH_UNAVAILABLE : VV_LATCH_CONFLICT));
}

/* Without publish.lock: present, absent, or settled. */
static void look_at(vv_wstore *s, candidate *c)
{
    if (c->looks++ == TRIES) {
        settle(c, vv_lost(VV_LATCH_UNAVAILABLE));
        return;
    }
    const vv_file_id *known = known_file(s, &c->object->cid);
    if (known) {
        c->file = *known;
        c->lasting = true;
        c->state = PRESENT;
    } else {
        compare(s, c);
    }
    if (c->state == ABSENT && vv_wstore_latch(s) != VV_LATCH_OPEN)
        settle(c, vv_lost(vv_wstore_latch(s)));
    if (c->state == ABSENT)
        frame(c);
}

/* Under publish.lock: the file that was compared must still be the one of that name. */
static void accept(vv_wstore *s, candidate *c)
{
    struct stat st;
    vv_file_id now = {0};
    if (fstatat(s->root_fd, c->path, &st, AT_SYMLINK_NOFOLLOW) == 0)
        now = vv_file_id_of(&st);
    if (!vv_same_file(&c->file, &now)) {
        forget(s, &c->object->cid);
        c->state = TO_LOOK_AT;
        return;
    }
    if (c->lasting)
        remember(s, c->object, &c->file);
    settle(c, (vv_published){VV_REUSED, VV_LATCH_OPEN, 0});
}

static vv_publication publication_of(const candidate *c)
{
    const vv_wstore_object *o = c->object;
    return (vv_publication){c->dir, c->path, -1, 0,
                            {{c->head, sizeof c->head}, {o->body, o->len}, {c->tail, sizeof c->tail}},
                            VV_CAS_FIXED + o->len};
}

/* Under publish.lock. A file that came to that name meanwhile is looked at in its turn. */
static void place(vv_wstore *s, vv_hold *h, candidate *c)
{
    if (vv_wstore_latch(s) != VV_LATCH_OPEN) {
        settle(c, vv_lost(vv_wstore_latch(s)));
        return;
    }
    const vv_publication p = publication_of(c);
    vv_file_id file;
    vv_published out = vv_hold_place(s, h, &p, &file);
    if (out.outcome == VV_LOST && out.reason == VV_LATCH_CONFLICT) {
        c->state = TO_LOOK_AT;
        return;
    }
    if (out.outcome == VV_COMMITTED && is_settled(&file))
        remember(s, c->object, &file);
    settle(c, out);
}

/* Holds that follow each other at once count as one: after a while others, who nap, get their turn. */
static void give_a_turn(vv_wstore *s)
{
    uint64_t now = vv_now_ms();
    if (now - s->held_until_ms < TURN_MS) {
        if (now - s->holds_from_ms < HOLD_MS)
            return;
        nanosleep(&(struct timespec){.tv_nsec = TURN_MS * 1000000L}, NULL);
        now = vv_now_ms();
    }
    s->holds_from_ms = now;
}

/* publish.lock, and how long it was waited for. */
static bool take_lock(vv_wstore *s, vv_hold *ret_hold, vv_published *ret)
{
    uint64_t from = vv_clock_monotonic_ns();
    give_a_turn(s);
    bool taken = vv_hold_begin(s, ret_hold, ret);
    s->waited_ns += vv_clock_monotonic_ns() - from;
    return taken;
}

/* Takes the lock and settles what it can. False: blocked, or one is indeterminate. */
static bool hold(vv_wstore *s, candidate *c, size_t n, candidate *first)
{
    vv_hold h;
    vv_published out;
    if (!take_lock(s, &h, &out)) {
        if (out.outcome == VV_LOST)
            settle(first, out);
        return out.outcome == VV_LOST;
    }
    candidate *last = NULL;
    bool tried = false;
    uint64_t from = vv_now_ms();
    for (candidate *end = c + n; c < end; c++) {
        if (c->state == PRESENT)
            accept(s, c);
        if (c->state != ABSENT)
            continue;
        if (tried && (h.bytes >= HOLD_BYTES || vv_now_ms() - from >= HOLD_MS))
            break;
        tried = true;
        place(s, &h, c);
        if (c->state == SETTLED && c->ret->outcome == VV_INDETERMINATE)
            return false;
        if (c->state == SETTLED && c->ret->outcome == VV_COMMITTED)
            last = c;
    }
    const vv_publication p = last ? publication_of(last) : (vv_publication){.plane = -1};
    bool ended = vv_hold_end(s, &h, last ? &p : NULL);
    if (!ended)
        *last->ret = (vv_published){VV_INDETERMINATE, VV_LATCH_OPEN, 0};
    s->held_until_ms = vv_now_ms();
    return ended;
}

/* The first that is not settled, of those looked at by now; NULL: all are. */
static candidate *look_at_all(vv_wstore *s, candidate *c, size_t n)
{
    candidate *first = NULL;
    for (candidate *end = c + n; c < end; c++) {
        if (c->state == TO_LOOK_AT)
            look_at(s, c);
        if (c->state != SETTLED && !first)
            first = c;
    }
    return first;
}

static bool publish_part(vv_wstore *s, const vv_wstore_object *objects, size_t n, vv_published *ret)
{
    candidate all[PART];
    for (size_t i = 0; i < n; i++) {
        candidate *c = &all[i];
        c->object = &objects[i];
        c->ret = &ret[i];
        c->state = TO_LOOK_AT;
        c->looks = 0;
        c->framed = c->lasting = false;
        vv_cas_path(c->path, &objects[i].cid);
        memcpy(c->dir, c->path, DIR_PATH - 1);
        c->dir[DIR_PATH - 1] = 0;
    }
    for (candidate *first; (first = look_at_all(s, all, n));)
        if (!hold(s, all, n, first))
            return false;
    return true;
}

bool vv_wstore_publish_objects(vv_wstore *s, const vv_wstore_object *objects, size_t n, vv_published *ret)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = (vv_published){VV_BLOCKED, VV_LATCH_OPEN, 0};
    if (vv_wstore_is_indeterminate(s))
        return false;
    for (size_t i = 0; i < n; i += PART)
        if (!publish_part(s, objects + i, n - i < PART ? n - i : PART, ret + i))
            return false;
    return true;
}

uint64_t vv_wstore_waited_ns(const vv_wstore *s)
{
    return s->waited_ns;
}

vv_published vv_wstore_publish_object(vv_wstore *s, const vv_wstore_object *object)
{
    vv_published out;
    vv_wstore_publish_objects(s, object, 1, &out);
    return out;
}
