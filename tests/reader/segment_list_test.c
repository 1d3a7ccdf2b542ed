/* Long lists of segments: packed, they say what they said before, whatever comes, goes and changes among the files. */
#include "config.h"

#include "reader/segment_list.h"

#include <fcntl.h>
#include <stdlib.h>

#include "tests/testing.h"

#include "tests/reader/build.h"

#include "tests/reader/denial.h"

#include "tests/reader/files.h"

#include "reader/ledger.h"

enum { MODEL = 4000, LISTS = 6, GROUPS = 4 };

/* What the test knows of a segment. */
typedef struct {
    uint64_t sequence;
    uint32_t mark;
    uint8_t state;
    bool recalled;
    uint32_t groups, key[GROUPS], len[GROUPS];
    int64_t mtime_ns;
} fact;

/* A list, and what it must say. */
typedef struct {
    vv_seg_list list;
    fact facts[MODEL];
    size_t count;
    int64_t mtime_ns;
} kept;

/* Mostly the next good segment of one group. */
static fact random_fact(test_rng *g, uint64_t after)
{
    uint64_t gap = test_below(g, 60) == 0 ? test_below(g, 1000) : 0;
    fact f = {.sequence = after + 1 + gap, .mark = (uint32_t)test_random(g)};
    f.state = test_below(g, 90) == 0 ? VV_SEG_CORRUPT : VV_SEG_OK;
    f.recalled = test_below(g, 200) == 0;
    f.mtime_ns = 1 + (int64_t)test_below(g, 1000000);
    if (f.state == VV_SEG_OK && test_below(g, 50))
        f.groups = test_below(g, 4) ? 1 : 2 + (uint32_t)test_below(g, GROUPS - 1);
    if (after / 1000 % 2) /* stretches of one thread alone, as most programs write */
        f.groups = f.state == VV_SEG_OK;
    for (uint32_t i = 0; i < f.groups; i++) {
        f.key[i] = after / 1000 % 2 ? 7 : (uint32_t)test_below(g, 9);
        f.len[i] = VV_GROUP_FIXED + (uint32_t)test_below(g, 1000);
    }
    return f;
}

static bool ascends(const fact *f)
{
    for (uint32_t i = 1; i < f->groups; i++)
        if (f->key[i] < f->key[i - 1])
            return false;
    return true;
}

static vv_seg *seg_of(const fact *f)
{
    vv_seg *s = vv_seg_new(f->sequence);
    ck_assert_ptr_nonnull(s);
    s->state = f->state;
    s->recalled = f->recalled;
    s->mark = f->mark;
    s->mtime_ns = f->mtime_ns;
    if (f->state != VV_SEG_OK)
        return s;
    ck_assert(vv_seg_make_groups(s, f->groups));
    s->group_count = f->groups;
    s->keys_ascend = ascends(f);
    s->off[0] = VV_DATA_HEADER;
    for (uint32_t i = 0; i < f->groups; i++) {
        s->off[i + 1] = s->off[i] + f->len[i];
        s->off[f->groups + 1 + i] = f->key[i];
    }
    return s;
}

static void expect_segment(const vv_seg *s, const fact *f)
{
    ck_assert(s->sequence == f->sequence && s->state == f->state && s->mark == f->mark);
    ck_assert(s->recalled == f->recalled && s->group_count == f->groups);
    if (f->state != VV_SEG_OK)
        return;
    ck_assert(s->keys_ascend == ascends(f) && s->off[0] == VV_DATA_HEADER);
    for (uint32_t i = 0; i < f->groups; i++)
        ck_assert(vv_seg_keys(s)[i] == f->key[i]);
    for (uint32_t i = 0; i < f->groups && !(s->open_end && f->groups == 1); i++)
        ck_assert(s->off[i + 1] - s->off[i] == f->len[i]);
}

static void expect_segments(const kept *k)
{
    ck_assert_uint_eq(k->list.count, k->count);
    ck_assert_int_eq(k->list.mtime_ns, k->mtime_ns);
    for (size_t i = 0; i < k->count; i++) {
        vv_seg room;
        expect_segment(vv_seg_at(&k->list, i, &room), &k->facts[i]);
    }
}

static void expect_list(const kept *k, test_rng *g)
{
    expect_segments(k);
    for (size_t i = 0, steps = 0; i < k->count; steps++) {
        vv_seg_run r = vv_seg_run_at(&k->list, i);
        ck_assert(r.count > 0 && r.count <= k->count - i);
        for (size_t n = 0; n < r.count; n++)
            ck_assert(k->facts[i + n].sequence == r.first + n && k->facts[i + n].state == r.state);
        i += r.count;
    }
    for (int n = 0; n < 50 && k->count; n++) {
        uint64_t sequence = test_below(g, k->facts[k->count - 1].sequence + 3);
        size_t from = 0;
        while (from < k->count && k->facts[from].sequence < sequence)
            from++;
        ck_assert_uint_eq(vv_seg_list_from(&k->list, sequence), from);
    }
    if (k->count) {
        size_t i = test_below(g, k->count);
        vv_seg *alone = vv_seg_take(&k->list, i);
        expect_segment(alone, &k->facts[i]);
        ck_assert(i + 1 < k->count || alone->mtime_ns == k->mtime_ns || alone->mtime_ns == k->facts[i].mtime_ns);
        vv_seg_unref(alone);
    }
}

/* Two lists have the same stamp of a range where they hold the same there, however they came about. */
static void expect_stamps(const kept *a, const kept *b, test_rng *g)
{
    uint64_t high = a->count ? a->facts[a->count - 1].sequence : 1, first = test_below(g, high + 1);
    uint64_t last = test_below(g, 3) ? first + test_below(g, 300) : UINT64_MAX;
    size_t i = vv_seg_list_from(&a->list, first), j = vv_seg_list_from(&b->list, first);
    bool same = true;
    for (; same && ((i < a->count && a->facts[i].sequence <= last) || (j < b->count && b->facts[j].sequence <= last));
         i++, j++)
        same = i < a->count && j < b->count && a->facts[i].sequence == b->facts[j].sequence
            && a->facts[i].mark == b->facts[j].mark && a->facts[i].state == b->facts[j].state;
    ck_assert((vv_seg_list_stamp(&a->list, first, last) == vv_seg_list_stamp(&b->list, first, last)) == same);
}

/* Where denying, each of its allocations is denied once, and nothing has changed then. */
static vv_code extend(kept *to, const kept *from, size_t n, vv_seg **tail, size_t count, bool denying)
{
    vv_code rc = VV_ERR_NOMEM;
    for (int64_t at = denying ? 0 : -1; rc == VV_ERR_NOMEM; at++) {
        denied = at;
        rc = vv_seg_list_extend(&to->list, &from->list, n, tail, count, NULL);
        bool all_given = denied >= 0 || at < 0;
        denied = -1;
        ck_assert((rc == VV_OK) == all_given);
        expect_segments(from);
    }
    return rc;
}

/* A list that begins as `from` does, whose last segments are taken out and put in again; and goes on. */
static void follow(kept *to, const kept *from, size_t n, size_t more, bool denying, test_rng *g)
{
    size_t again = test_below(g, 3) ? 0 : test_below(g, n < 200 ? n + 1 : 200), count = 0;
    vv_seg **tail = calloc(again + more + 1, sizeof(vv_seg *));
    memcpy(to->facts, from->facts, n * sizeof(fact));
    to->count = n;
    for (size_t i = n - again; i < n; i++)
        tail[count++] = vv_seg_take(&from->list, i);
    for (size_t i = 0; i < more; i++) {
        fact f = random_fact(g, to->count ? to->facts[to->count - 1].sequence : 0);
        tail[count++] = seg_of(&f);
        to->facts[to->count++] = f;
    }
    to->mtime_ns = count ? tail[count - 1]->mtime_ns : n == from->count ? from->mtime_ns : 0;
    ck_assert(extend(to, from, n - again, tail, count, denying) == VV_OK);
    if (n == from->count && count == 0)
        ck_assert(vv_seg_list_same(&to->list, &from->list));
    if (vv_seg_list_begins(&to->list, &from->list))
        ck_assert(n == from->count && vv_seg_list_same(&to->list, &from->list) == (more == 0));
    free(tail);
}

/* How many a list has that is made of the same segments at a time. */
static size_t entries_anew(const kept *k)
{
    static const vv_seg_list nothing;
    vv_seg **all = calloc(k->count + 1, sizeof(vv_seg *));
    vv_seg_list anew;
    for (size_t i = 0; i < k->count; i++)
        all[i] = seg_of(&k->facts[i]);
    ck_assert(vv_seg_list_extend(&anew, &nothing, 0, all, k->count, NULL) == VV_OK);
    size_t entries = anew.entries;
    vv_seg_list_done(&anew);
    free(all);
    return entries;
}

/* Lists that go on where any earlier one was, while others are still looked at. */
static void go_on(int rounds, size_t most, bool denying)
{
    test_rng g = test_seeded("lists of segments");
    kept *lists = calloc(LISTS, sizeof *lists);
    for (int round = 0; round < rounds; round++) {
        kept *from = &lists[test_below(&g, LISTS)], *to = &lists[test_below(&g, LISTS)];
        if (from == to)
            continue;
        size_t n = test_below(&g, 4) ? from->count : test_below(&g, from->count + 1);
        size_t more = test_below(&g, 3) ? test_below(&g, 3) : test_below(&g, most / 6);
        if (n + more > most)
            n = more = 0;
        vv_seg_list_done(&to->list);
        follow(to, from, n, more, denying, &g);
        ck_assert_uint_eq(to->list.entries, entries_anew(to));
        for (size_t i = 0; i < LISTS; i++) {
            expect_list(&lists[i], &g);
            expect_stamps(&lists[i], to, &g);
        }
    }
    for (size_t i = 0; i < LISTS; i++)
        vv_seg_list_done(&lists[i].list);
    free(lists);
}

START_TEST(lists_say_what_was_put_into_them)
{
    go_on(150, MODEL, false);
}
END_TEST

START_TEST(without_memory_lists_say_what_they_said)
{
    go_on(60, 500, true);
    ck_assert_uint_gt(denials, 500);
}
END_TEST

/* A day of one segment a second: little memory, and less for each of the looks in between. */
START_TEST(a_day_is_packed)
{
    enum { DAY = 86400, FORMER = 1024 };
    static const vv_seg_list nothing;
    vv_seg_list list = nothing, former[FORMER] = {nothing};
    size_t bytes_of_former = 0;
    for (uint64_t i = 1; i <= DAY; i++) {
        fact f = {.sequence = i, .mark = (uint32_t)i, .groups = 1, .key = {7}, .len = {200}};
        vv_seg *s = seg_of(&f);
        vv_seg_list next;
        ck_assert(vv_seg_list_extend(&next, &list, list.count, &s, 1, NULL) == VV_OK);
        if (i > DAY - FORMER)
            bytes_of_former += vv_seg_list_bytes(&next, &list);
        vv_seg_list_done(&former[i % FORMER]);
        former[i % FORMER] = list;
        list = next;
    }
    ck_assert_uint_eq(list.count, DAY);
    ck_assert_uint_lt(list.entries, DAY / 128 + 10);
    ck_assert_uint_lt(vv_seg_list_bytes(&list, &nothing), 6 * DAY);
    ck_assert_uint_lt(bytes_of_former, 64 * FORMER);
    vv_seg_list_done(&list);
    for (size_t i = 0; i < FORMER; i++)
        vv_seg_list_done(&former[i]);
}
END_TEST

/* Not even where there is no second one to pack them with. */
START_TEST(those_that_stand_alone_take_little)
{
    static const vv_seg_list nothing;
    vv_seg *tail[1000];
    vv_seg_list list;
    for (uint64_t i = 0; i < VV_ARRAY_LEN(tail); i++)
        tail[i] = seg_of(&(fact){.sequence = 1 + 2 * i, .groups = 1, .key = {7}, .len = {200}});
    ck_assert(vv_seg_list_extend(&list, &nothing, 0, tail, VV_ARRAY_LEN(tail), NULL) == VV_OK);
    ck_assert_uint_eq(list.entries, list.count);
    ck_assert_uint_lt(vv_seg_list_bytes(&list, &nothing), 128 * VV_ARRAY_LEN(tail));
    vv_seg_list_done(&list);
}
END_TEST

/* Sequences may go on to the last number there is, and nothing begins again at zero. */
START_TEST(the_last_sequence_is_one_of_them)
{
    static const vv_seg_list nothing;
    enum { COUNT = 20 };
    const uint64_t first = UINT64_MAX - COUNT + 1;
    vv_seg *tail[COUNT], room;
    vv_seg_list list;
    for (uint64_t i = 0; i < COUNT; i++)
        tail[i] = seg_of(&(fact){.sequence = first + i, .mark = (uint32_t)i, .groups = 1, .key = {7}, .len = {200}});
    ck_assert(vv_seg_list_extend(&list, &nothing, 0, tail, COUNT, NULL) == VV_OK);
    uint64_t sum = 0;
    for (size_t i = 0; i < COUNT; i++) {
        ck_assert(vv_seg_at(&list, i, &room)->sequence == first + i && vv_seg_run_at(&list, i).first == first + i);
        ck_assert_uint_eq(vv_seg_list_from(&list, first + i), i);
        ck_assert_uint_ne(vv_seg_list_stamp(&list, first + i, first + i), 0);
        sum += vv_seg_list_stamp(&list, first + i, first + i);
    }
    ck_assert_uint_eq(vv_seg_list_from(&list, 0), 0);
    ck_assert_uint_eq(vv_seg_list_stamp(&list, 0, UINT64_MAX), sum);
    ck_assert_uint_eq(vv_seg_list_stamp(&list, UINT64_MAX, 0), 0);
    vv_seg_list_done(&list);
}
END_TEST

typedef struct {
    char dir[TEST_DIR], root[TEST_DIR + 2];
    test_store t;
    vv_source *source;
    uint64_t high;
} files;

enum { FULL_PATH = 512 };
static void full_path(const files *d, uint64_t sequence, char out[FULL_PATH])
{
    char path[VV_STREAM_PATH];
    vv_segment_path(path, &d->t.euid, VV_PLANE_DATA, sequence);
    snprintf(out, FULL_PATH, "%s/%s", d->root, path);
}

static void put(const files *d, uint64_t sequence, bool bad, test_rng *g)
{
    static const uint64_t all[] = {1, 2, 3, 4};
    char full[FULL_PATH];
    full_path(d, sequence, full);
    vv_wr w = test_data(&d->t, sequence, all + test_below(g, 2), 1 + (size_t)test_below(g, 3));
    unlink(full);
    test_write_file(full, w.buf, bad ? w.len - 1 : w.len);
    vv_wr_done(&w);
}

/* One that came last, is written anew, is cut short, or goes. */
static uint64_t change_one(files *d, test_rng *g)
{
    uint64_t sequence = 1 + test_below(g, d->high);
    char full[FULL_PATH];
    switch (test_below(g, 6)) {
    case 0:
        full_path(d, sequence, full);
        unlink(full);
        return sequence;
    case 1:
        put(d, sequence, true, g);
        return sequence;
    case 2:
        put(d, sequence, false, g);
        return sequence;
    default:
        put(d, ++d->high, false, g);
        return d->high;
    }
}

static void expect_same(const vv_seg_list *a, const vv_seg_list *b)
{
    ck_assert_uint_eq(a->count, b->count);
    ck_assert_uint_eq(vv_seg_list_stamp(a, 0, UINT64_MAX), vv_seg_list_stamp(b, 0, UINT64_MAX));
    for (size_t i = 0; i < a->count; i++) {
        vv_seg rooms[2];
        const vv_seg *x = vv_seg_at(a, i, &rooms[0]), *y = vv_seg_at(b, i, &rooms[1]);
        ck_assert(x->sequence == y->sequence && x->state == y->state && x->group_count == y->group_count);
        ck_assert(x->mark == y->mark);
        if (x->off)
            ck_assert_mem_eq(vv_seg_keys(x), vv_seg_keys(y), x->group_count * sizeof *x->off);
        if (x->off && !x->open_end && !y->open_end)
            ck_assert_mem_eq(x->off, y->off, ((size_t)x->group_count + 1) * sizeof *x->off);
    }
}

static void files_begin(files *d)
{
    *d = (files){.high = 0};
    test_make_dir(d->dir);
    snprintf(d->root, sizeof d->root, "%s/s", d->dir);
    test_store_begin(&d->t);
    test_store_meta(&d->t, 1, 0, (vv_meta_record[]){test_header()}, 1);
    test_write_store(&d->t, d->root);
    char path[FULL_PATH];
    full_path(d, 1, path);
    *strrchr(path, '/') = 0;
    ck_assert(vv_mkdirs(AT_FDCWD, path, NULL) == VV_OK);
    ck_assert(vv_source_open(&d->source, d->root, NULL) == VV_OK);
}

static void files_done(files *d)
{
    vv_source_close(d->source);
    test_remove_dir(d->dir);
    test_store_done(&d->t);
}

/* Looks at all of the files; former may be NULL. */
static vv_seg_list load(const files *d, const vv_seg_list *former)
{
    vv_seg_list l;
    ck_assert(vv_seg_list_load(&l, d->source, &d->t.euid, VV_PLANE_DATA, former, NULL) == VV_OK);
    return l;
}

/* Looks at those that may have changed. */
static vv_seg_list update(const files *d, const vv_seg_list *former, const vv_plane_change *change)
{
    vv_seg_list l;
    ck_assert(vv_seg_list_update(&l, d->source, &d->t.euid, VV_PLANE_DATA, former, change, NULL) == VV_OK);
    return l;
}

/* A list that follows the files says what one that is made anew does, whether it is told of changes or looks. */
START_TEST(lists_follow_their_files)
{
    test_rng g = test_seeded("files of segments");
    files d;
    files_begin(&d);
    while (d.high < 700)
        put(&d, ++d.high, false, &g);
    vv_seg_list list = load(&d, NULL);
    ck_assert_uint_lt(list.entries, 400);
    for (int round = 0; round < 25; round++) {
        vv_plane_change change = {.all = false};
        for (uint64_t n = 1 + test_below(&g, VV_CHANGED_SEGMENTS - 1); n > 0; n--)
            vv_plane_change_note(&change, change_one(&d, &g));
        vv_seg_list next = test_below(&g, 2) ? load(&d, &list) : update(&d, &list, &change), anew = load(&d, NULL);
        expect_same(&next, &anew);
        ck_assert(next.mtime_ns == anew.mtime_ns || next.mtime_ns == 0);
        vv_seg_list_done(&anew);
        vv_seg_list_done(&list);
        list = load(&d, &next);
        ck_assert(vv_seg_list_same(&list, &next)); /* nothing has changed since */
        vv_seg_list_done(&next);
    }
    vv_seg_list_done(&list);
    files_done(&d);
}
END_TEST

START_TEST(what_is_told_of_again_changes_nothing)
{
    test_rng g = test_seeded("files of segments");
    files d;
    files_begin(&d);
    for (; d.high < 20; d.high++)
        put(&d, d.high + 1, d.high == 7, &g);
    vv_seg_list list = load(&d, NULL);
    for (uint64_t sequence = 1; sequence <= d.high; sequence++) {
        vv_plane_change change = {.all = false};
        vv_plane_change_note(&change, sequence);
        vv_plane_change_note(&change, 1 + sequence * 3 % d.high);
        vv_seg_list next = update(&d, &list, &change);
        ck_assert(vv_seg_list_same(&next, &list));
        vv_seg_list_done(&list);
        list = next;
    }
    vv_seg_list_done(&list);
    files_done(&d);
}
END_TEST

/* What can't be read is looked at each time, and as long as it can't be, it is the same. */
START_TEST(what_stays_unreadable_changes_nothing)
{
    test_rng g = test_seeded("files of segments");
    files d;
    char full[FULL_PATH];
    files_begin(&d);
    while (d.high < 20)
        put(&d, ++d.high, false, &g);
    full_path(&d, 3, full);
    ck_assert_int_eq(unlink(full), 0);
    ck_assert_int_eq(mkdir(full, 0700), 0);
    vv_seg_list list = load(&d, NULL), next = load(&d, &list);
    vv_seg room;
    ck_assert_int_eq(vv_seg_at(&list, 2, &room)->state, VV_SEG_UNREADABLE);
    ck_assert(vv_seg_list_same(&next, &list));
    vv_seg_list_done(&list);
    ck_assert_int_eq(rmdir(full), 0);
    put(&d, 3, false, &g);
    list = load(&d, &next);
    ck_assert_int_eq(vv_seg_at(&list, 2, &room)->state, VV_SEG_OK);
    ck_assert(!vv_seg_list_same(&next, &list));
    vv_seg_list_done(&list);
    vv_seg_list_done(&next);
    files_done(&d);
}
END_TEST

/* Whatever a file's size is when a group of it is read, whose end nobody remembers: it is whole, or it has changed. */
START_TEST(files_that_grow_and_shrink_are_told_of)
{
    files d;
    files_begin(&d);
    static const uint64_t one = 1;
    vv_wr w = test_data(&d.t, 1, &one, 1);
    char full[FULL_PATH];
    full_path(&d, 1, full);
    test_write_file(full, w.buf, w.len);
    vv_seg_list list = load(&d, NULL);
    vv_seg room;
    const vv_seg *s = vv_seg_at(&list, 0, &room);
    ck_assert(s->open_end && s->group_count == 1);
    vv_thread_ref root = test_thread(&d.t, 1);
    VV_CLEANUP(vv_group_buffer_done) vv_group_buffer buffer = {NULL, 0};
    const uint64_t large[] = {w.len, 2000000, UINT64_C(3) << 30, UINT32_MAX, UINT64_C(5) << 30};
    for (uint64_t i = 0; i < w.len + 40 + VV_ARRAY_LEN(large); i++) {
        uint64_t size = i < w.len + 40 ? i : large[i - w.len - 40];
        vv_group group;
        bool found;
        ck_assert_int_eq(truncate(full, (off_t)size), 0);
        if (size == w.len)
            test_write_file(full, w.buf, w.len);
        vv_code rc = vv_seg_group(d.source, &d.t.euid, s, &root, 1 << 24, &buffer, &group, &found, NULL);
        ck_assert_msg(rc == (size == w.len ? VV_OK : VV_ERR_CORRUPT), "%" PRIu64 " bytes: %d", size, rc);
        ck_assert(rc != VV_OK || found);
    }
    vv_wr_done(&w);
    vv_seg_list_done(&list);
    files_done(&d);
}
END_TEST

/* A ledger that has what one test puts there, and notes what it is told. */
typedef struct {
    vv_seg_ledger l; /* first */
    vv_seg_row kept; /* of segment 1; its groups are in words */
    uint32_t words[3];
    unsigned recalls;
    uint64_t forgotten[4];
    size_t forgotten_count;
} noting;

static void recall_row(vv_seg_ledger *l, const vv_euid *euid, vv_plane plane, vv_seg_rows *ret)
{
    (void)euid;
    (void)plane;
    noting *n = (noting *)l;
    n->recalls++;
    *ret = (vv_seg_rows){calloc(3, sizeof *ret->rows), 3};
    ret->rows[0] = n->kept;
    ret->rows[0].off = malloc(sizeof n->words);
    memcpy(ret->rows[0].off, n->words, sizeof n->words);
    ret->rows[0].key = ret->rows[0].off + 2;
    ret->rows[1].sequence = 5;
    ret->rows[2].sequence = UINT64_MAX;
}

static void keep_row(vv_seg_ledger *l, const vv_euid *euid, vv_plane plane, const vv_seg_row *row)
{
    (void)euid;
    (void)plane;
    noting *n = (noting *)l;
    ck_assert(row->sequence == 1 && row->group_count == 1);
    n->kept = *row;
    memcpy(n->words, row->off, sizeof n->words);
}

static void forget_row(vv_seg_ledger *l, const vv_euid *euid, vv_plane plane, uint64_t sequence)
{
    (void)euid;
    (void)plane;
    noting *n = (noting *)l;
    ck_assert_uint_lt(n->forgotten_count, VV_ARRAY_LEN(n->forgotten));
    n->forgotten[n->forgotten_count++] = sequence;
}

/* Once there is something to ask for; what has gone is forgotten, to the last one. */
START_TEST(a_ledger_is_asked_by_the_first_look_that_finds_files)
{
    noting n = {.l = {recall_row, keep_row, forget_row}};
    files d;
    files_begin(&d);
    static const uint64_t one = 1;
    vv_wr w = test_data(&d.t, 1, &one, 1);
    char full[FULL_PATH];
    full_path(&d, 1, full);
    vv_seg_list empty = load(&d, NULL);
    test_write_file(full, w.buf, w.len);
    disk_settle();
    vv_source_set_ledger(d.source, &n.l);
    const vv_plane_change change = {.count = 1, .sequences = {1}};
    vv_seg_list verified = update(&d, &empty, &change), list = load(&d, &empty), again = load(&d, &list);
    ck_assert_uint_eq(n.kept.sequence, 1);
    vv_seg room;
    ck_assert(!vv_seg_at(&verified, 0, &room)->recalled);
    ck_assert(vv_seg_at(&list, 0, &room)->recalled);
    ck_assert_uint_eq(n.recalls, 1);
    ck_assert_uint_eq(n.forgotten_count, 2);
    ck_assert(n.forgotten[0] == 5 && n.forgotten[1] == UINT64_MAX);
    vv_seg_list *const all[] = {&empty, &verified, &list, &again};
    for (size_t i = 0; i < VV_ARRAY_LEN(all); i++)
        vv_seg_list_done(all[i]);
    vv_wr_done(&w);
    files_done(&d);
}
END_TEST

/* A look that is denied any of its allocations fails, or does without; the former one says what it said. */
START_TEST(without_memory_a_look_fails_as_a_whole)
{
    test_rng g = test_seeded("files of segments");
    files d;
    files_begin(&d);
    while (d.high < 30)
        put(&d, ++d.high, false, &g);
    vv_seg_list list = load(&d, NULL), before = load(&d, NULL);
    for (unsigned round = 0; round < 8; round++) {
        vv_plane_change change = {.all = false};
        vv_plane_change_note(&change, change_one(&d, &g));
        vv_plane_change_note(&change, change_one(&d, &g));
        vv_seg_list next, anew = load(&d, NULL);
        vv_code rc = VV_ERR_NOMEM;
        unsigned failed = 0;
        bool all_given = false;
        for (int64_t at = 0; !all_given; at++) {
            denied = at;
            if (round % 2)
                rc = vv_seg_list_update(&next, d.source, &d.t.euid, VV_PLANE_DATA, &list, &change, NULL);
            else
                rc = vv_seg_list_load(&next, d.source, &d.t.euid, VV_PLANE_DATA, &list, NULL);
            all_given = denied >= 0;
            denied = -1;
            ck_assert(rc == VV_OK || (rc == VV_ERR_NOMEM && !all_given));
            failed += rc != VV_OK;
            expect_same(&list, &before);
            if (rc != VV_OK)
                continue;
            expect_same(&next, &anew);
            if (!all_given)
                vv_seg_list_done(&next);
        }
        ck_assert_uint_gt(failed, 0);
        vv_seg_list_done(&before);
        vv_seg_list_done(&list);
        before = anew;
        list = next;
    }
    vv_seg_list_done(&before);
    vv_seg_list_done(&list);
    files_done(&d);
}
END_TEST

int main(void)
{
    TCase *t = test_case("segment_list", 300);
    tcase_add_test(t, lists_say_what_was_put_into_them);
    tcase_add_test(t, without_memory_lists_say_what_they_said);
    tcase_add_test(t, a_day_is_packed);
    tcase_add_test(t, those_that_stand_alone_take_little);
    tcase_add_test(t, the_last_sequence_is_one_of_them);
    tcase_add_test(t, lists_follow_their_files);
    tcase_add_test(t, what_is_told_of_again_changes_nothing);
    tcase_add_test(t, what_stays_unreadable_changes_nothing);
    tcase_add_test(t, files_that_grow_and_shrink_are_told_of);
    tcase_add_test(t, a_ledger_is_asked_by_the_first_look_that_finds_files);
    tcase_add_test(t, without_memory_a_look_fails_as_a_whole);
    return test_run();
}
