/* Lists of segments that one thread makes, each from some former one, while others read what was given to them. */
#include "config.h"

#include "reader/segment_list.h"

#include <pthread.h>
#include <stdlib.h>

#include "tests/testing.h"

enum { READERS = 3, SLOTS = 8, KEPT = 6, HELD = 12, LENGTH = 900, GROUPS = 4 };
static const double SECONDS = 2;

/* A list on its way to a reader, and what it must say. */
typedef struct {
    vv_seg_list list;
    uint64_t stamp, last; /* the sequence of its last segment */
    size_t good;
} given;

/* Whoever takes one out of its slot has it alone: nothing else orders what readers and the maker do. */
static given *slots[SLOTS];
static bool over;

/* What a segment holds follows from its sequence and its mark: a reader needs nothing else to tell whether it is so. */
static uint32_t groups_of(uint64_t sequence, uint32_t mark)
{
    return sequence / 150 % 2 || mark % 3 ? 1 : 2 + mark % (GROUPS - 1);
}

static uint32_t key_of(uint64_t sequence, uint32_t mark, uint32_t i)
{
    return (sequence / 150 % 2 ? 7 : mark % 2) + i;
}

static bool is_good(uint64_t sequence)
{
    return sequence % 61 != 0;
}

static vv_seg *seg_of(uint64_t sequence, uint32_t mark)
{
    vv_seg *s = vv_seg_new(sequence);
    ck_assert_ptr_nonnull(s);
    s->mark = mark;
    s->state = is_good(sequence) ? VV_SEG_OK : VV_SEG_CORRUPT;
    if (!is_good(sequence))
        return s;
    s->group_count = groups_of(sequence, mark);
    s->keys_ascend = true;
    s->recalled = sequence / 400 % 2;
    ck_assert(vv_seg_make_groups(s, s->group_count));
    for (uint32_t i = 0; i <= s->group_count; i++)
        s->off[i] = VV_DATA_HEADER + i * 100;
    for (uint32_t i = 0; i < s->group_count; i++)
        s->off[s->group_count + 1 + i] = key_of(sequence, mark, i);
    return s;
}

static bool is_right(const vv_seg *s)
{
    if (s->state != (is_good(s->sequence) ? VV_SEG_OK : VV_SEG_CORRUPT))
        return false;
    if (!is_good(s->sequence))
        return !s->off;
    if (s->group_count != groups_of(s->sequence, s->mark) || s->recalled != s->sequence / 400 % 2)
        return false;
    for (uint32_t i = 0; i < s->group_count; i++)
        if (vv_seg_keys(s)[i] != key_of(s->sequence, s->mark, i) || s->off[i] != VV_DATA_HEADER + i * 100)
            return false;
    return true;
}

static bool walk_says_so(const given *g)
{
    size_t good = 0;
    for (size_t i = 0; i < g->list.count; i++) {
        vv_seg room;
        const vv_seg *s = vv_seg_at(&g->list, i, &room);
        good += s->state == VV_SEG_OK;
        if (!is_right(s))
            return false;
    }
    return good == g->good;
}

static bool runs_say_so(const given *g)
{
    size_t good = 0;
    uint64_t last = 0;
    for (size_t i = 0; i < g->list.count;) {
        vv_seg_run r = vv_seg_run_at(&g->list, i);
        good += r.state == VV_SEG_OK ? r.count : 0;
        last = r.first + r.count - 1;
        i += r.count;
    }
    return good == g->good && last == g->last;
}

static bool one_says_so(const given *g, test_rng *random)
{
    if (g->list.count == 0)
        return true;
    size_t i = test_below(random, g->list.count);
    vv_seg room, *alone = vv_seg_take(&g->list, i);
    const vv_seg *s = vv_seg_at(&g->list, i, &room);
    bool so = alone && is_right(alone) && alone->sequence == s->sequence
        && vv_seg_list_from(&g->list, s->sequence) == i;
    vv_seg_unref(alone);
    return so;
}

static bool says_so(const given *g, test_rng *random)
{
    static const vv_seg_list nothing;
    switch (test_below(random, 8)) {
    case 0:
        return walk_says_so(g);
    case 1:
        return runs_say_so(g);
    case 2:
        return vv_seg_list_bytes(&g->list, &nothing) > 0 || g->list.count == 0;
    case 3:
        return vv_seg_list_stamp(&g->list, 0, UINT64_MAX) == g->stamp;
    default:
        return one_says_so(g, random);
    }
}

static void let_go(given *g)
{
    if (g)
        vv_seg_list_done(&g->list);
    free(g);
}

/* Holds some of them at a time, and lets go of them in any order. Returns one that did not say what it must. */
static void *read_them(void *seed)
{
    test_rng random = {(uint64_t)(uintptr_t)seed};
    given *held[HELD] = {NULL}, *bad = NULL;
    while (!bad && !__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        given **place = &held[test_below(&random, HELD)];
        if (*place && !says_so(*place, &random))
            bad = *place;
        else if (!*place || test_below(&random, 6) == 0) {
            let_go(*place);
            *place = __atomic_exchange_n(&slots[test_below(&random, SLOTS)], NULL, __ATOMIC_ACQ_REL);
        }
    }
    for (size_t i = 0; i < HELD && !bad; i++)
        let_go(held[i]);
    return bad;
}

static void give(const vv_seg_list *l, test_rng *random)
{
    given *g = calloc(1, sizeof *g);
    ck_assert_ptr_nonnull(g);
    ck_assert(vv_seg_list_extend(&g->list, l, l->count, NULL, 0, NULL) == VV_OK);
    g->stamp = vv_seg_list_stamp(l, 0, UINT64_MAX);
    for (size_t i = 0; i < l->count; i++) {
        vv_seg room;
        const vv_seg *s = vv_seg_at(l, i, &room);
        g->good += s->state == VV_SEG_OK;
        g->last = s->sequence;
    }
    let_go(__atomic_exchange_n(&slots[test_below(random, SLOTS)], g, __ATOMIC_ACQ_REL));
}

/* The first n segments of former; those behind, as they are or as other files; and new ones. */
static void follow(vv_seg_list *ret, const vv_seg_list *former, size_t n, size_t again, size_t more, test_rng *random)
{
    vv_seg *tail[LENGTH];
    size_t count = 0;
    for (size_t i = n; i < n + again; i++) {
        vv_seg *s = vv_seg_take(former, i);
        ck_assert_ptr_nonnull(s);
        if (i == n && test_below(random, 2)) {
            uint64_t sequence = s->sequence;
            vv_seg_unref(s);
            s = seg_of(sequence, (uint32_t)test_random(random));
        }
        tail[count++] = s;
    }
    uint64_t last = count ? tail[count - 1]->sequence : n ? vv_seg_run_at(former, n - 1).first : 0;
    for (; more > 0; more--) {
        last += test_below(random, 80) ? 1 : 2;
        tail[count++] = seg_of(last, (uint32_t)test_random(random));
    }
    ck_assert(vv_seg_list_extend(ret, former, n, tail, count, NULL) == VV_OK);
}

static void make_them(test_rng *random)
{
    vv_seg_list kept[KEPT] = {{.array = NULL}}, next;
    unsigned newest = 0;
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    do {
        /* Mostly the newest goes on as it is; else its end is made anew, an older one goes on, or it begins again. */
        unsigned from = test_below(random, 12) ? newest : (unsigned)test_below(random, KEPT);
        size_t n = kept[from].count, again = 0;
        if (n > LENGTH - 20 || test_below(random, 12) == 0)
            n = test_below(random, 4) ? n - test_below(random, n < 40 ? n + 1 : 40) : test_below(random, n + 1);
        if (n > LENGTH - 20)
            n = test_below(random, 100);
        if (test_below(random, 2))
            again = test_below(random, kept[from].count - n + 1);
        follow(&next, &kept[from], n, again, test_below(random, 4), random);
        newest = (newest + 1) % KEPT;
        vv_seg_list_done(&kept[newest]);
        kept[newest] = next;
        give(&next, random);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) * 1e-9 < SECONDS);
    for (size_t i = 0; i < KEPT; i++)
        vv_seg_list_done(&kept[i]);
}

START_TEST(readers_see_what_was_given_to_them)
{
    test_rng random = test_seeded("lists that threads share");
    pthread_t readers[READERS];
    for (size_t i = 0; i < READERS; i++)
        ck_assert_int_eq(pthread_create(&readers[i], NULL, read_them, (void *)(uintptr_t)test_random(&random)), 0);
    make_them(&random);
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < READERS; i++) {
        void *bad;
        pthread_join(readers[i], &bad);
        ck_assert_ptr_null(bad);
    }
    for (size_t i = 0; i < SLOTS; i++)
        let_go(slots[i]);
}
END_TEST

int main(void)
{
    TCase *t = test_case("segment_threads", 60);
    tcase_add_test(t, readers_see_what_was_given_to_them);
    return test_run();
}
