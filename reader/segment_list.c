#include "config.h"

#include "reader/segment_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

/*
 * A recording that goes on for days has one segment a second, and what is known of each must be at hand. So good data
 * segments of successive sequences are packed. Where each has the one group of the same thread, which is what a program
 * of one thread writes, a mark and the file's size tell all of it: 12 bytes. Else each has its groups as its own array
 * has them.
 */
enum { PACK = 128, ASCEND_WORDS = PACK / 32, GROUPS_AT = PACK + 1 + ASCEND_WORDS };
typedef struct {
    unsigned refs; /* atomic */
    bool recalled, plain;
    uint64_t first, stamp;
    uint64_t mark[PACK];
    /*
     * Plain: the key, and each one's size. Else where each one's groups begin and the last one's end, a bit each for
     * keys that ascend, and the groups.
     */
    uint32_t words[];
} pack;

/* A segment, or a pack of them. */
typedef struct {
    size_t at; /* in the list: of the first */
    uint64_t before; /* stamps of all in front of it, together */
    vv_seg *seg; /* NULL: packed */
    pack *pack;
} entry;

/* Where the segments of lists that follow each other stand. A list looks at no more of them than it counts. */
struct vv_seg_array {
    unsigned refs; /* atomic */
    size_t used, cap, count; /* entries, and segments in them */
    size_t tried; /* the first entries, of which no more can be packed */
    uint64_t stamp; /* of all */
    entry e[];
};

uint64_t vv_seg_mark(const vv_file_ident *f)
{
    const uint64_t fields[] = {f->size, f->device, f->inode, (uint64_t)f->mtime_ns, (uint64_t)f->ctime_ns};
    uint8_t b[sizeof fields], sum[VV_SHA256_BYTES];
    vv_sha256_ctx c;
    for (size_t i = 0; i < VV_ARRAY_LEN(fields); i++)
        vv_put64(b + 8 * i, fields[i]);
    vv_sha256_init(&c);
    vv_sha256_update(&c, b, sizeof b);
    vv_sha256_final(&c, sum);
    return vv_be64(sum);
}

vv_seg *vv_seg_new(uint64_t sequence)
{
    vv_seg *s = calloc(1, sizeof *s);
    if (s)
        *s = (vv_seg){.refs = 1, .sequence = sequence};
    return s;
}

bool vv_seg_make_groups(vv_seg *s, size_t n)
{
    s->off = n <= 1 ? s->one : malloc((2 * n + 1) * sizeof *s->off);
    return s->off != NULL;
}

/* A segment has bytes or groups, and no more than those. */
void vv_seg_drop_content(vv_seg *s)
{
    if (!s->off)
        vv_blob_done(&s->bytes);
    else if (s->off != s->one)
        free(s->off);
    s->off = NULL;
    s->bytes = (vv_blob){NULL, 0};
    s->group_count = 0;
}

void vv_seg_unref(vv_seg *s)
{
    if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    vv_seg_drop_content(s);
    free(s);
}

static entry entry_ref(const entry *e)
{
    __atomic_fetch_add(e->seg ? &e->seg->refs : &e->pack->refs, 1, __ATOMIC_RELAXED);
    return *e;
}

static void entry_unref(const entry *e)
{
    if (e->seg)
        vv_seg_unref(e->seg);
    else if (__atomic_sub_fetch(&e->pack->refs, 1, __ATOMIC_ACQ_REL) == 0)
        free(e->pack);
}

/* Sums of these tell sets of segments apart: well mixed, so that no two of what files are like come to the same. */
static uint64_t stamp_of(const vv_seg *s)
{
    uint64_t z = s->mark ^ (s->sequence * UINT64_C(0x9e3779b97f4a7c15) + s->state);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t segments_of(const entry *e)
{
    return e->seg ? 1 : PACK;
}

static uint64_t first_of(const entry *e)
{
    return e->seg ? e->seg->sequence : e->pack->first;
}

static struct vv_seg_array *array_new(size_t entries)
{
    size_t cap = entries + entries / 2 + 8;
    struct vv_seg_array *a = malloc(sizeof *a + cap * sizeof *a->e);
    if (a)
        *a = (struct vv_seg_array){.refs = 1, .cap = cap};
    return a;
}

static void array_unref(struct vv_seg_array *a)
{
    if (!a || __atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    for (size_t i = 0; i < a->used; i++)
        entry_unref(&a->e[i]);
    free(a);
}

/* Takes the reference. */
static void append(struct vv_seg_array *a, entry e)
{
    e.at = a->count;
    e.before = a->stamp;
    a->count += segments_of(&e);
    a->stamp += e.seg ? stamp_of(e.seg) : e.pack->stamp;
    a->e[a->used++] = e;
}

void vv_seg_list_done(vv_seg_list *l)
{
    array_unref(l->array);
    *l = (vv_seg_list){.array = NULL};
}

size_t vv_seg_list_bytes(const vv_seg_list *l)
{
    return l->array ? l->array->cap * sizeof *l->array->e / __atomic_load_n(&l->array->refs, __ATOMIC_RELAXED) : 0;
}

bool vv_seg_list_same(const vv_seg_list *a, const vv_seg_list *b)
{
    if (a->count != b->count || a->entries != b->entries)
        return false;
    for (size_t i = 0; i < a->entries && a->array != b->array; i++)
        if (a->array->e[i].seg != b->array->e[i].seg || a->array->e[i].pack != b->array->e[i].pack)
            return false;
    return true;
}

/* The entry that segment i is in. */
static const entry *entry_of(const vv_seg_list *l, size_t i)
{
    const entry *e = l->array->e;
    size_t lo = 0, hi = l->entries;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (e[mid].at <= i)
            lo = mid;
        else
            hi = mid;
    }
    return &e[lo];
}

size_t vv_seg_list_from(const vv_seg_list *l, uint64_t sequence)
{
    size_t lo = 0, hi = l->entries;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (first_of(&l->array->e[mid]) <= sequence)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == 0)
        return 0;
    const entry *e = &l->array->e[lo - 1];
    uint64_t beyond = sequence - first_of(e);
    return e->at + (beyond < segments_of(e) ? (size_t)beyond : segments_of(e));
}

static const vv_seg *unpack(const pack *p, size_t i, vv_seg *room)
{
    uint32_t *words = (uint32_t *)p->words;
    *room = (vv_seg){.state = VV_SEG_OK, .recalled = p->recalled, .sequence = p->first + i, .mark = p->mark[i]};
    if (p->plain) {
        room->keys_ascend = true;
        room->group_count = 1;
        room->size = words[1 + i];
        room->off = room->one;
        room->one[0] = VV_DATA_HEADER;
        room->one[1] = words[1 + i] - VV_SEAL_BYTES;
        room->one[2] = words[0];
        return room;
    }
    room->keys_ascend = words[PACK + 1 + i / 32] >> i % 32 & 1;
    room->group_count = (words[i + 1] - words[i] - 1) / 2;
    room->off = words + words[i];
    room->size = room->off[room->group_count] + (uint64_t)VV_SEAL_BYTES;
    return room;
}

const vv_seg *vv_seg_at(const vv_seg_list *l, size_t i, vv_seg *room)
{
    const entry *e = entry_of(l, i);
    return e->seg ? e->seg : unpack(e->pack, i - e->at, room);
}

vv_seg_run vv_seg_run_at(const vv_seg_list *l, size_t i)
{
    const entry *e = entry_of(l, i);
    if (e->seg)
        return (vv_seg_run){e->seg->sequence, 1, (vv_seg_state)e->seg->state};
    return (vv_seg_run){e->pack->first + (i - e->at), PACK - (i - e->at), VV_SEG_OK};
}

/* Of the first n segments. */
static uint64_t stamp_before(const vv_seg_list *l, size_t n)
{
    if (n == 0)
        return 0;
    const entry *e = entry_of(l, n - 1);
    uint64_t stamp = e->before;
    for (size_t i = e->at; i < n; i++) {
        vv_seg room;
        stamp += stamp_of(e->seg ? e->seg : unpack(e->pack, i - e->at, &room));
    }
    return stamp;
}

uint64_t vv_seg_list_stamp(const vv_seg_list *l, uint64_t first, uint64_t last)
{
    if (first > last)
        return 0;
    size_t end = last == UINT64_MAX ? l->count : vv_seg_list_from(l, last + 1);
    return stamp_before(l, end) - stamp_before(l, vv_seg_list_from(l, first));
}

vv_seg *vv_seg_take(const vv_seg_list *l, size_t i)
{
    const entry *e = entry_of(l, i);
    if (e->seg)
        return entry_ref(e).seg;
    vv_seg room, *s = vv_seg_new(0);
    const vv_seg *packed = unpack(e->pack, i - e->at, &room);
    if (!s || !vv_seg_make_groups(s, packed->group_count)) {
        free(s);
        return NULL;
    }
    uint32_t *off = s->off;
    memcpy(off, packed->off, (2 * (size_t)packed->group_count + 1) * sizeof *off);
    if (off != s->one) {
        *s = *packed;
    } else {
        memcpy(room.one, s->one, sizeof room.one);
        *s = room;
    }
    s->refs = 1;
    s->off = off;
    return s;
}

/* Does all that is known of it follow from what a pack keeps? */
static bool can_be_packed(const vv_seg *s)
{
    return s->state == VV_SEG_OK && s->off && s->off[0] == VV_DATA_HEADER
        && s->off[s->group_count] + (uint64_t)VV_SEAL_BYTES == s->size && s->size <= UINT32_MAX;
}

static size_t words_of(const vv_seg *s)
{
    return 2 * (size_t)s->group_count + 1;
}

static void fill_plain(pack *p, const entry *e)
{
    p->words[0] = vv_seg_keys(e[0].seg)[0];
    for (size_t i = 0; i < PACK; i++)
        p->words[1 + i] = (uint32_t)e[i].seg->size;
}

static void fill_groups(pack *p, const entry *e)
{
    uint32_t *ascend = p->words + PACK + 1;
    memset(ascend, 0, ASCEND_WORDS * sizeof *ascend);
    p->words[0] = GROUPS_AT;
    for (size_t i = 0; i < PACK; i++) {
        const vv_seg *s = e[i].seg;
        ascend[i / 32] |= (uint32_t)s->keys_ascend << i % 32;
        memcpy(p->words + p->words[i], s->off, words_of(s) * sizeof *s->off);
        p->words[i + 1] = p->words[i] + (uint32_t)words_of(s);
    }
}

/* One of PACK entries; NULL where they are none, or without memory. */
static pack *pack_new(const entry *e)
{
    size_t words = GROUPS_AT;
    bool plain = true;
    for (size_t i = 0; i < PACK; i++) {
        const vv_seg *s = e[i].seg;
        if (!s || !can_be_packed(s) || s->sequence != e[0].seg->sequence + i || s->recalled != e[0].seg->recalled)
            return NULL;
        plain &= s->group_count == 1 && vv_seg_keys(s)[0] == vv_seg_keys(e[0].seg)[0];
        words += words_of(s);
    }
    if (plain)
        words = 1 + PACK;
    pack *p = words > UINT32_MAX ? NULL : malloc(sizeof *p + words * sizeof *p->words);
    if (!p)
        return NULL;
    *p = (pack){.refs = 1, .recalled = e[0].seg->recalled, .plain = plain, .first = e[0].seg->sequence};
    for (size_t i = 0; i < PACK; i++) {
        p->mark[i] = e[i].seg->mark;
        p->stamp += stamp_of(e[i].seg);
    }
    if (plain)
        fill_plain(p, e);
    else
        fill_groups(p, e);
    return p;
}

/*
 * Packs what can be packed of the newer entries, but for the newest, in an array of its own: others may read this one.
 * The array to go on with, of which the caller has the reference that it had of a.
 */
static struct vv_seg_array *pack_newer(struct vv_seg_array *a)
{
    struct vv_seg_array *packed = array_new(a->used);
    size_t i = 0, packs = 0;
    if (!packed)
        return a; /* another time */
    for (; i < a->tried; i++)
        append(packed, entry_ref(&a->e[i]));
    while (a->used - i > PACK) {
        pack *p = pack_new(&a->e[i]);
        packs += p != NULL;
        append(packed, p ? (entry){.pack = p} : entry_ref(&a->e[i]));
        i += p ? PACK : 1;
    }
    packed->tried = packed->used;
    for (; i < a->used; i++)
        append(packed, entry_ref(&a->e[i]));
    if (packs == 0) {
        a->tried = packed->tried;
        array_unref(packed);
        return a;
    }
    array_unref(a);
    return packed;
}

/* An array with the first n segments of former, and room for more. */
static struct vv_seg_array *array_with(const vv_seg_list *former, size_t n, size_t more)
{
    size_t whole = 0;
    while (whole < former->entries && former->array->e[whole].at + segments_of(&former->array->e[whole]) <= n)
        whole++;
    size_t part = n - (whole < former->entries ? former->array->e[whole].at : n);
    struct vv_seg_array *a = array_new(whole + part + more);
    for (size_t i = 0; a && i < whole; i++)
        append(a, entry_ref(&former->array->e[i]));
    if (a && whole)
        a->tried = former->array->tried < whole ? former->array->tried : whole;
    for (size_t i = 0; a && i < part; i++) {
        vv_seg *s = vv_seg_take(former, n - part + i);
        if (!s) {
            array_unref(a);
            return NULL;
        }
        append(a, (entry){.seg = s});
    }
    return a;
}

vv_code vv_seg_list_extend(vv_seg_list *ret, const vv_seg_list *former, size_t n, vv_seg *const *tail, size_t count,
                           vv_error *err)
{
    struct vv_seg_array *a = former->array;
    if (a && a->used == former->entries && a->count == n && count <= a->cap - a->used)
        __atomic_fetch_add(&a->refs, 1, __ATOMIC_RELAXED);
    else
        a = array_with(former, n, count);
    if (!a)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the list of segments");
    for (size_t i = 0; i < count; i++)
        append(a, (entry){.seg = tail[i]});
    if (a->used - a->tried > 2 * PACK)
        a = pack_newer(a);
    *ret = (vv_seg_list){a, a->count, a->used};
    return VV_OK;
}
