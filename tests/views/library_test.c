/* What a library holds: never more than its sum, given up oldest use first, refused where all of it is in use. */
#include "config.h"

#include "views/library.h"

#include <pthread.h>

#include "tests/testing.h"

#include "tests/reader/build.h"

#include "tests/index/disk.h"

enum { ROOTS = 4, CONTEXTS = 400, SUMMARIES = ROOTS * 16384 /* far less than an execution */ };

typedef struct {
    test_store t;
    disk d;
    vv_library *l;
    const vv_look *look;
} rig;

/* Executions of the same size, each in a segment of its own, with one table of functions. */
static void open_rig(rig *r, size_t max)
{
    vv_error err = {0};
    test_store_begin(&r->t);
    vv_meta_record meta[2 + 2 * ROOTS] = {test_header(), test_engine(1, false)};
    for (uint64_t i = 1; i <= ROOTS; i++) {
        meta[2 * i] = test_started(&r->t, i);
        meta[2 * i + 1] = test_ended(&r->t, i, i, i, 1);
        vv_wr w = vv_wr_growing(1 << 20);
        test_group g;
        vv_thread_ref root = test_thread(&r->t, i);
        vv_data_begin(&w, &r->t.euid, i);
        test_group_begin(&g);
        for (uint32_t k = 1; k <= CONTEXTS; k++) {
            vv_cct_row row = test_context(k, true);
            test_group_row(&g, &row);
        }
        test_group_end(&g, &w, &root);
        vv_data_end(&w, 1);
        test_store_segment(&r->t, VV_PLANE_DATA, i, w);
    }
    test_store_meta(&r->t, 1, 0, meta, VV_ARRAY_LEN(meta));
    disk_begin(&r->d, &r->t);
    ck_assert(vv_library_open(&r->l, r->d.root, max, 0, &err) == VV_OK);
    ck_assert_msg(vv_library_look(r->l, &r->look, &err) == VV_OK, "%s", err.msg);
}

static void close_rig(rig *r)
{
    vv_look_release(r->l, r->look);
    vv_library_close(r->l);
    test_remove_dir(r->d.dir);
    for (size_t i = 0; i < r->t.count; i++)
        vv_wr_done(&r->t.bytes[i]);
}

static vv_code load(rig *r, unsigned i, const vv_profile **ret)
{
    const vv_stream *s = &r->look->store->streams[0];
    vv_error err = {0};
    vv_code rc = vv_library_profile(r->l, r->look, s, vv_stream_execution_at(s, i), ret, &err);
    ck_assert(rc == VV_OK || rc == VV_ERR_LIMIT);
    return rc;
}

static uint64_t read_so_far(const rig *r)
{
    return vv_source_bytes_read(r->look->store->source);
}

/* Is it loaded? Asking for it would read where it is not. */
static bool is_resident(rig *r, unsigned i)
{
    const vv_profile *p;
    uint64_t before = read_so_far(r);
    ck_assert(load(r, i, &p) == VV_OK);
    vv_profile_release(r->l, p);
    return read_so_far(r) == before;
}

/* The least sum that one of them can be loaded in, and two. */
static size_t least_for(unsigned held)
{
    size_t low = 1 << 10, high = 1 << 24;
    while (low + 512 < high) {
        size_t mid = low + (high - low) / 2;
        rig r;
        const vv_profile *p[2] = {NULL, NULL};
        open_rig(&r, mid);
        bool fits = load(&r, 0, &p[0]) == VV_OK && (held == 1 || load(&r, 1, &p[1]) == VV_OK);
        vv_profile_release(r.l, p[0]);
        vv_profile_release(r.l, p[1]);
        close_rig(&r);
        *(fits ? &high : &low) = mid;
    }
    return high;
}

START_TEST(the_oldest_use_goes_first)
{
    rig r;
    size_t two = least_for(2);
    ck_assert_uint_gt(two, least_for(1) * 3 / 2);
    open_rig(&r, two + SUMMARIES);
    ck_assert(!is_resident(&r, 0));
    ck_assert(!is_resident(&r, 1));
    ck_assert(is_resident(&r, 1));
    ck_assert(is_resident(&r, 0));
    ck_assert(!is_resident(&r, 2)); /* takes the place of 1 */
    ck_assert(is_resident(&r, 0));
    ck_assert(!is_resident(&r, 1)); /* takes that of 2 */
    ck_assert(is_resident(&r, 0));
    close_rig(&r);
}
END_TEST

START_TEST(what_is_held_stays_and_others_are_refused)
{
    rig r;
    const vv_profile *held, *other;
    open_rig(&r, least_for(1) + 2048);
    ck_assert(load(&r, 0, &held) == VV_OK);
    ck_assert(load(&r, 1, &other) == VV_ERR_LIMIT);
    ck_assert(load(&r, 1, &other) == VV_ERR_LIMIT);
    ck_assert_uint_eq(held->tree.node_count, CONTEXTS);
    vv_profile_release(r.l, held);
    ck_assert(load(&r, 1, &other) == VV_OK); /* in its place */
    vv_profile_release(r.l, other);
    ck_assert(!is_resident(&r, 0));
    close_rig(&r);
}
END_TEST

/* What is too large takes nothing from a list: its numbers are unknown, and said to be for want of memory. */
START_TEST(a_digest_of_what_is_too_large)
{
    rig r;
    const vv_profile *held;
    const vv_digest *d;
    vv_error err = {0};
    open_rig(&r, least_for(1) + 2048);
    const vv_stream *s = &r.look->store->streams[0];
    ck_assert(load(&r, 0, &held) == VV_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert(vv_library_digest(r.l, r.look, s, vv_stream_execution_at(s, 1), &d, &err) == VV_OK);
        ck_assert(!d->known && d->data_state == VV_DATA_ERROR && d->evidence.verdict == VV_VERDICT_PARTIAL);
        ck_assert_uint_eq(d->evidence.issues_total, 1);
        ck_assert_str_eq(d->evidence.issues[0].error, "LimitExceeded");
        vv_digest_release(r.l, d);
    }
    vv_profile_release(r.l, held);
    /* There is room now. */
    ck_assert(vv_library_digest(r.l, r.look, s, vv_stream_execution_at(s, 1), &d, &err) == VV_OK);
    ck_assert(d->known);
    vv_digest_release(r.l, d);
    close_rig(&r);
}
END_TEST

static void *ask(void *cls)
{
    rig *r = cls;
    uintptr_t refused = 0;
    for (unsigned i = 0; i < 40; i++) {
        const vv_profile *p = NULL;
        if (load(r, i % ROOTS, &p) != VV_OK) {
            refused++;
            continue;
        }
        ck_assert_uint_eq(p->tree.node_count, CONTEXTS);
        vv_profile_release(r->l, p);
    }
    return (void *)refused;
}

/* However many ask at once, each gets its answer or a refusal, and in the end there is room again. */
START_TEST(many_share_a_small_sum)
{
    enum { THREADS = 8 };
    rig r;
    pthread_t threads[THREADS];
    open_rig(&r, least_for(2) + SUMMARIES);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, &r), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < ROOTS; i++)
        is_resident(&r, i);
    ck_assert(is_resident(&r, ROOTS - 1));
    close_rig(&r);
}
END_TEST

int main(void)
{
    TCase *t = test_case("library", 120);
    tcase_add_test(t, the_oldest_use_goes_first);
    tcase_add_test(t, what_is_held_stays_and_others_are_refused);
    tcase_add_test(t, a_digest_of_what_is_too_large);
    tcase_add_test(t, many_share_a_small_sum);
    return test_run();
}
