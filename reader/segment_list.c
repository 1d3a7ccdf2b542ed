#include "config.h"

#include "reader/segment_list.h"

#include <stdlib.h>
#include <string.h>

/*
 * A recording that goes on for days has one segment a second, and what is known of each must be at hand. So good data
 * segments of successive sequences stand in packs. Where a segment has the one group of the same thread as the others,
 * which is what a program of one thread writes, a mark of its file tells all of it: 4 bytes. Else its groups are in
 * memory of their own.
 *
 * A pack is filled by the newest list, behind what older ones see of it: those hold no segment that it does not. Each
 * has room for twice as many as the one that it goes on from. So how a list is packed follows from its segments alone,
 * however it came about.
 */
enum { PACK = 128, PACK_LEAST = 8 };
typedef struct {
    unsigned refs; /* atomic */
    bool recalled, has_key;
    uint8_t used, cap; /* the maker's: a list knows itself how many of them are its own */
    uint32_t key;      /* of the segments that are plain */
    uint64_t first;
    /*
     * NULL where all are plain; else cap of them: NULL of a plain one, or the number of groups with flags, and the
     * numbers of vv_seg.off.
     */
    uint32_t **groups; /* atomic */
    uint32_t mark[];
} pack;
static const uint32_t KEYS_ASCEND = UINT32_C(1) << 31, OPEN_END = UINT32_C(1) << 30;

/* A segment; or a pack, or as many of its first ones as there are up to the next entry, or the list's end. */
typedef struct {
    size_t at;       /* in the list: of the first */
    uint64_t before; /* stamps of all in front of it, together */
    vv_seg *seg;     /* NULL: packed */
    pack *pack;
} entry;

/* Where the segments of lists that follow each other stand. A list looks at no more of them than it counts. */
struct vv_seg_array {
    unsigned refs; /* atomic */
    size_t used, cap; /* entries: the newest list's */
    entry e[];
};

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint32_t vv_seg_mark(const vv_file_ident *f)
{
    const uint64_t fields[] = {f->size, f->device, f->inode, (uint64_t)f->mtime_ns, (uint64_t)f->ctime_ns};
    uint64_t h = 0;
    for (size_t i = 0; i < VV_ARRAY_LEN(fields); i++)
        h = mix(h + UINT64_C(0x9e3779b97f4a7c15) + fields[i]);
    return (uint32_t)(h >> 32);
}

vv_seg *vv_seg_new(uint64_t sequence)
{
    vv_seg *s = calloc(1, sizeof *s);
    if (s)
        *s = (vv_seg){.refs = 1, .sequence = sequence};
    return s;
}

static size_t words_of(size_t groups)
{
    return 2 * groups + 1;
}

bool vv_seg_make_groups(vv_seg *s, size_t n)
{
    s->off = n <= 1 ? s->one : malloc(words_of(n) * sizeof *s->off);
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

static void pack_unref(pack *p)
{
    if (__atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    for (size_t i = 0; p->groups && i < p->used; i++)
        free(p->groups[i]);
    free(p->groups);
    free(p);
}

static entry entry_ref(const entry *e)
{
    __atomic_fetch_add(e->seg ? &e->seg->refs : &e->pack->refs, 1, __ATOMIC_RELAXED);
    return *e;
}

static void array_unref(struct vv_seg_array *a)
{
    if (!a || __atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    for (size_t i = 0; i < a->used; i++) {
        if (a->e[i].seg)
            vv_seg_unref(a->e[i].seg);
        else
            pack_unref(a->e[i].pack);
    }
    free(a);
}

void vv_seg_list_done(vv_seg_list *l)
{
    array_unref(l->array);
    *l = (vv_seg_list){.array = NULL};
}

static bool same_entry(const entry *a, const entry *b)
{
    return a->at == b->at && a->seg == b->seg && a->pack == b->pack;
}

/* How many segments of the list its entry k has. */
static size_t length_of(const vv_seg_list *l, size_t k)
{
    const entry *e = l->array->e;
    return (k + 1 < l->entries ? e[k + 1].at : l->count) - e[k].at;
}

bool vv_seg_list_begins(const vv_seg_list *l, const vv_seg_list *former)
{
    size_t n = former->entries;
    if (l->count < former->count || l->entries < n)
        return false;
    if (n == 0 || l->array == former->array)
        return true;
    for (size_t k = 0; k < n; k++)
        if (!same_entry(&l->array->e[k], &former->array->e[k]))
            return false;
    return length_of(l, n - 1) >= length_of(former, n - 1);
}

bool vv_seg_list_same(const vv_seg_list *a, const vv_seg_list *b)
{
    return a->count == b->count && vv_seg_list_begins(a, b);
}

static uint64_t first_of(const entry *e)
{
    return e->seg ? e->seg->sequence : e->pack->first;
}

/* The entry that segment i is in. */
static size_t entry_of(const vv_seg_list *l, size_t i)
{
    size_t lo = 0, hi = l->entries;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->array->e[mid].at <= i)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
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
    size_t length = length_of(l, lo - 1);
    return e->at + (beyond < length ? (size_t)beyond : length);
}

static const vv_seg *unpack(const pack *p, size_t i, vv_seg *room)
{
    uint32_t **all = __atomic_load_n(&p->groups, __ATOMIC_ACQUIRE);
    uint32_t *groups = all ? all[i] : NULL;
    *room = (vv_seg){.state = VV_SEG_OK, .recalled = p->recalled, .sequence = p->first + i, .mark = p->mark[i]};
    if (!groups) {
        room->keys_ascend = true;
        room->open_end = true;
        room->group_count = 1;
        room->off = room->one;
        room->one[0] = VV_DATA_HEADER;
        room->one[2] = p->key;
        return room;
    }
    room->keys_ascend = groups[0] & KEYS_ASCEND;
    room->open_end = groups[0] & OPEN_END;
    room->group_count = groups[0] & ~(KEYS_ASCEND | OPEN_END);
    room->off = groups + 1;
    return room;
}

const vv_seg *vv_seg_at(const vv_seg_list *l, size_t i, vv_seg *room)
{
    const entry *e = &l->array->e[entry_of(l, i)];
    return e->seg ? e->seg : unpack(e->pack, i - e->at, room);
}

vv_seg_run vv_seg_run_at(const vv_seg_list *l, size_t i)
{
    size_t k = entry_of(l, i);
    const entry *e = &l->array->e[k];
    if (e->seg)
        return (vv_seg_run){e->seg->sequence, 1, (vv_seg_state)e->seg->state};
    return (vv_seg_run){e->pack->first + (i - e->at), e->at + length_of(l, k) - i, VV_SEG_OK};
}

/* Sums of these tell sets of segments apart: well mixed, so that no two of what files are like come to the same. */
static uint64_t stamp_of(uint64_t sequence, unsigned state, uint32_t mark)
{
    return mix(mix(sequence * UINT64_C(0x9e3779b97f4a7c15) + state) + mark);
}

/* Of the entry's first n. */
static uint64_t stamps_of(const entry *e, size_t n)
{
    uint64_t sum = 0;
    if (e->seg)
        return n ? stamp_of(e->seg->sequence, e->seg->state, e->seg->mark) : 0;
    for (size_t i = 0; i < n; i++)
        sum += stamp_of(e->pack->first + i, VV_SEG_OK, e->pack->mark[i]);
    return sum;
}

/* Of the first n segments. */
static uint64_t stamp_before(const vv_seg_list *l, size_t n)
{
    if (n == 0)
        return 0;
    const entry *e = &l->array->e[entry_of(l, n - 1)];
    return e->before + stamps_of(e, n - e->at);
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
    const entry *e = &l->array->e[entry_of(l, i)];
    if (e->seg)
        return entry_ref(e).seg;
    vv_seg room, *s = vv_seg_new(0);
    const vv_seg *packed = unpack(e->pack, i - e->at, &room);
    if (!s)
        return NULL;
    *s = *packed;
    s->refs = 1;
    s->mtime_ns = i + 1 == l->count ? l->mtime_ns : 0;
    if (!vv_seg_make_groups(s, packed->group_count)) {
        free(s);
        return NULL;
    }
    memcpy(s->off, packed->off, words_of(packed->group_count) * sizeof *s->off);
    return s;
}

static size_t bytes_of(const entry *e)
{
    if (e->seg)
        return sizeof *e->seg + (e->seg->off ? 0 : e->seg->bytes.n);
    return sizeof *e->pack + e->pack->cap * sizeof *e->pack->mark;
}

/* Of the groups in entry k, from its segment i on. */
static size_t group_bytes(const vv_seg_list *l, size_t k, size_t i)
{
    const entry *e = &l->array->e[k];
    size_t bytes = 0;
    for (; !e->seg && i < length_of(l, k); i++) {
        vv_seg room;
        const vv_seg *s = unpack(e->pack, i, &room);
        bytes += s->off == room.one ? 0 : sizeof s->off + (1 + words_of(s->group_count)) * sizeof *s->off;
    }
    return bytes;
}

size_t vv_seg_list_bytes(const vv_seg_list *l, const vv_seg_list *former)
{
    size_t bytes = l->array && l->array != former->array ? sizeof *l->array + l->array->cap * sizeof(entry) : 0;
    for (size_t k = l->entries; k-- > 0;) {
        if (k < former->entries && same_entry(&l->array->e[k], &former->array->e[k]))
            return bytes + group_bytes(l, k, length_of(former, k));
        bytes += bytes_of(&l->array->e[k]) + group_bytes(l, k, 0);
    }
    return bytes;
}

/* All else that is known of such a one follows from its groups. */
static bool can_be_packed(const vv_seg *s)
{
    return s->state == VV_SEG_OK && s->off && s->group_count < OPEN_END;
}

static pack *pack_new(uint64_t first, bool recalled, size_t cap)
{
    pack *p = malloc(sizeof *p + cap * sizeof *p->mark);
    if (p)
        *p = (pack){.refs = 1, .recalled = recalled, .cap = (uint8_t)cap, .first = first};
    return p;
}

/* Memory for segment i's groups in the pack. NULL without any. */
static uint32_t *add_groups(pack *p, size_t i, size_t words)
{
    uint32_t **groups = p->groups;
    if (!groups) {
        groups = calloc(p->cap, sizeof *groups);
        if (!groups)
            return NULL;
        __atomic_store_n(&p->groups, groups, __ATOMIC_RELEASE);
    }
    return groups[i] = malloc(words * sizeof **groups);
}

/* False without memory: nothing has changed then. */
static bool pack_put(pack *p, const vv_seg *s)
{
    size_t i = p->used, words = words_of(s->group_count);
    if (s->group_count == 1 && !p->has_key) {
        p->has_key = true;
        p->key = vv_seg_keys(s)[0];
    } else if (s->group_count != 1 || p->key != vv_seg_keys(s)[0]) {
        uint32_t *groups = add_groups(p, i, 1 + words);
        if (!groups)
            return false;
        groups[0] = s->group_count | (s->keys_ascend ? KEYS_ASCEND : 0) | (s->open_end ? OPEN_END : 0);
        memcpy(groups + 1, s->off, words * sizeof *groups);
    }
    p->mark[i] = s->mark;
    p->used++;
    return true;
}

/* A pack like p with its first n segments; NULL without memory. */
static pack *pack_with(const pack *p, size_t n)
{
    pack *copy = pack_new(p->first, p->recalled, p->cap);
    for (size_t i = 0; copy && i < n; i++) {
        vv_seg room;
        if (!pack_put(copy, unpack(p, i, &room))) {
            pack_unref(copy);
            copy = NULL;
        }
    }
    return copy;
}

/* The first n segments of l, and room for one entry more at least, in a new array; NULL without memory. */
static struct vv_seg_array *array_with(const vv_seg_list *l, size_t n)
{
    size_t entries = n ? entry_of(l, n - 1) + 1 : 0, cap = entries + entries / 2 + 4;
    struct vv_seg_array *a = malloc(sizeof *a + cap * sizeof *a->e);
    if (!a)
        return NULL;
    *a = (struct vv_seg_array){.refs = 1, .used = entries, .cap = cap};
    for (size_t i = 0; i < entries; i++)
        a->e[i] = entry_ref(&l->array->e[i]);
    return a;
}

/* The list that is being made: its array is its own, or it is the newest in it. */
static vv_code add_entry(vv_seg_list *l, entry e, vv_error *err)
{
    if (l->entries == l->array->cap) {
        struct vv_seg_array *larger = array_with(l, l->count);
        if (!larger)
            return vv_fail(err, VV_ERR_NOMEM, "no memory for the list of segments");
        array_unref(l->array);
        l->array = larger;
    }
    e.at = l->count;
    e.before = stamp_before(l, l->count);
    l->array->e[l->entries] = e;
    l->array->used = ++l->entries;
    return VV_OK;
}

static vv_code append_packed(vv_seg_list *l, const vv_seg *s, vv_error *err)
{
    const entry *last = l->entries ? &l->array->e[l->entries - 1] : NULL;
    pack *p = last ? last->pack : NULL;
    if (p && (s->sequence != p->first + p->used || s->recalled != p->recalled))
        p = NULL;
    if (p && p->used < p->cap)
        return pack_put(p, s) ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for the groups of a segment");
    p = pack_new(s->sequence, s->recalled, !p ? PACK_LEAST : p->cap < PACK ? 2 * p->cap : PACK);
    vv_code rc = VV_OK;
    if (!p || !pack_put(p, s))
        rc = vv_fail(err, VV_ERR_NOMEM, "no memory for a pack of segments");
    if (rc == VV_OK)
        rc = add_entry(l, (entry){.pack = p}, err);
    if (rc != VV_OK && p)
        pack_unref(p);
    return rc;
}

static vv_code append(vv_seg_list *l, vv_seg *s, vv_error *err)
{
    bool packs = can_be_packed(s);
    const entry alone = {.seg = s};
    vv_code rc = packs ? append_packed(l, s, err) : add_entry(l, alone, err);
    if (rc != VV_OK)
        return rc;
    if (!packs)
        entry_ref(&alone);
    l->count++;
    return VV_OK;
}

/* Does the pack that the first n segments end with hold more than those? Then nothing can be put behind them in it. */
static bool is_cut(const vv_seg_list *l, size_t n)
{
    const entry *e = n ? &l->array->e[entry_of(l, n - 1)] : NULL;
    return e && e->pack && e->pack->used > n - e->at;
}

/* Its last entry, with n segments of a pack that is cut, gets a pack of its own. Nobody else has the array yet. */
static bool mend_cut(struct vv_seg_array *a, size_t n)
{
    entry *e = &a->e[a->used - 1];
    pack *p = pack_with(e->pack, n - e->at);
    if (!p)
        return false;
    pack_unref(e->pack);
    e->pack = p;
    return true;
}

/* No newer list has anything behind the first n segments where they stand, but for what is in a pack that is cut. */
static bool is_newest(const vv_seg_list *l, size_t n)
{
    return l->array && l->count == n && l->array->used == l->entries;
}

vv_code vv_seg_list_extend(vv_seg_list *ret, const vv_seg_list *former, size_t n, vv_seg *const *tail, size_t count,
                           vv_error *err)
{
    vv_seg_list l = *former;
    bool cut = count && is_cut(former, n);
    if (!cut && is_newest(former, n))
        __atomic_fetch_add(&l.array->refs, 1, __ATOMIC_RELAXED);
    else
        l.array = array_with(former, n);
    if (!l.array || (cut && !mend_cut(l.array, n))) {
        array_unref(l.array);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the list of segments");
    }
    l.entries = l.array->used;
    l.count = n;
    l.mtime_ns = count ? tail[count - 1]->mtime_ns : n == former->count ? former->mtime_ns : 0;
    for (size_t i = 0; i < count; i++) {
        vv_code rc = append(&l, tail[i], err);
        if (rc != VV_OK) {
            vv_seg_list_done(&l);
            return rc;
        }
    }
    for (size_t i = 0; i < count; i++)
        vv_seg_unref(tail[i]);
    *ret = l;
    return VV_OK;
}
