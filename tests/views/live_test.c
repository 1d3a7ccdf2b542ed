/* A library that watches its store: what is committed shows in the very next look, and states are told in order. */
#include "config.h"

#include "reader/stream.h"
#include "views/library.h"

#include <poll.h>

#include "tests/testing.h"

#include "tests/reader/build.h"

#include "tests/reader/files.h"

#include "tests/reader/commits.h"

typedef struct {
    char dir[TEST_DIR], root[TEST_DIR + 16];
    vv_library *l;
    unsigned told;
    const vv_look *last; /* told last, or NULL */
} rig;

static void notice(void *state, const vv_look *look)
{
    rig *r = state;
    r->told++;
    vv_look_release(r->l, r->last);
    r->last = look ? vv_look_hold(r->l, look) : NULL;
}

static void begin(rig *r)
{
    *r = (rig){0};
    test_make_dir(r->dir);
    snprintf(r->root, sizeof r->root, "%s/profiles-v1", r->dir);
    ck_assert(vv_library_open(&r->l, r->root, 1, 0, NULL) == VV_OK);
    ck_assert(vv_library_watch(r->l, notice, r, NULL) == VV_OK);
}

static void done(rig *r)
{
    vv_look_release(r->l, r->last);
    vv_library_close(r->l);
    test_remove_dir(r->dir);
}

/* The present look, which the library keeps. */
static const vv_look *look(rig *r)
{
    const vv_look *look = NULL;
    ck_assert(vv_library_look(r->l, &look, NULL) == VV_OK);
    vv_look_release(r->l, look);
    return look;
}

static bool is_readable(const rig *r)
{
    struct pollfd p = {.fd = vv_library_watch_fd(r->l), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

START_TEST(the_next_look_shows_what_was_committed)
{
    enum { COMMITS = 500 };
    rig r;
    begin(&r);
    vv_euid e = test_euid(0x11);
    test_commit_start(r.root, &e);
    const vv_look *first = look(&r);
    ck_assert_uint_eq(r.told, 1);
    ck_assert_ptr_eq(look(&r), first);
    ck_assert_ptr_eq(r.last, first);
    for (uint64_t i = 1; i <= COMMITS; i++) {
        test_commit_data(r.root, &e, i);
        ck_assert(is_readable(&r));
        const vv_look *now = look(&r);
        ck_assert_uint_eq(now->store->streams[0].data_contiguous, i);
        ck_assert_uint_eq(r.told, 1 + i);
        ck_assert_ptr_eq(r.last, now);
        ck_assert(!is_readable(&r));
    }
    /* Each of them is at hand still. */
    const vv_look *then;
    ck_assert(vv_library_look_at(r.l, vv_cstr(first->generation), &then, NULL) == VV_OK);
    ck_assert_ptr_eq(then, first);
    vv_look_release(r.l, then);
    done(&r);
}
END_TEST

static void commit_starts(const rig *r, const vv_euid *e, uint64_t first, uint64_t count)
{
    char rel[VV_STREAM_PATH];
    test_store t = {.euid = *e};
    vv_wr w = vv_wr_growing(1 << 24);
    vv_meta_begin(&w, e, 2, 0);
    for (uint64_t i = 0; i < count; i++) {
        vv_meta_record start = test_started(&t, first + i);
        vv_meta_add(&w, &start);
    }
    vv_meta_end(&w, count);
    vv_segment_path(rel, e, VV_PLANE_META, 2);
    test_commit(r->root, rel, &w);
    vv_wr_done(&w);
}

/* What is known of executions is not kept once for each state in which only data came. */
START_TEST(former_looks_are_at_hand_beside_many_executions)
{
    enum { EXECUTIONS = 30000, COMMITS = 600 };
    rig r;
    begin(&r);
    vv_euid e = test_euid(0x11);
    test_commit_start(r.root, &e);
    commit_starts(&r, &e, 1000, EXECUTIONS);
    const vv_look *first = look(&r), *then;
    ck_assert_uint_ge(first->store->streams[0].execution_count, EXECUTIONS);
    for (uint64_t i = 1; i <= COMMITS; i++) {
        test_commit_data(r.root, &e, i);
        ck_assert_uint_eq(look(&r)->store->streams[0].data_contiguous, i);
    }
    ck_assert(vv_library_look_at(r.l, vv_cstr(first->generation), &then, NULL) == VV_OK);
    vv_look_release(r.l, then);
    done(&r);
}
END_TEST

/* The order of a look's executions is made once, and stays for who holds it. */
START_TEST(looks_have_an_order)
{
    enum { COMMITS = 5 };
    rig r;
    begin(&r);
    vv_euid e = test_euid(0x11);
    test_commit_start(r.root, &e);
    commit_starts(&r, &e, 10, 20);
    const vv_look *looks[COMMITS];
    const vv_order *first[COMMITS], *again;
    for (uint64_t i = 0; i < COMMITS; i++) {
        ck_assert(vv_library_look(r.l, &looks[i], NULL) == VV_OK);
        ck_assert(vv_library_order(r.l, looks[i], &first[i], NULL) == VV_OK);
        ck_assert(vv_library_order(r.l, looks[i], &again, NULL) == VV_OK);
        ck_assert_ptr_eq(again, first[i]);
        vv_order_unref(again);
        test_commit_data(r.root, &e, i + 1);
    }
    for (size_t i = 0; i < COMMITS; i++) {
        ck_assert(vv_library_order(r.l, looks[i], &again, NULL) == VV_OK);
        const vv_order *both[] = {first[i], again};
        for (size_t k = 0; k < 2; k++) {
            ck_assert_uint_eq(both[k]->count, 21);
            for (size_t n = 0; n < 21; n++) /* the last that started is the first */
                ck_assert_uint_eq(vv_thread_number(&both[k]->items[n].execution->root), n < 20 ? 29 - n : 1);
            ck_assert_ptr_eq(both[k]->items[0].stream, &looks[i]->store->streams[0]);
            vv_order_unref(both[k]);
        }
        vv_look_release(r.l, looks[i]);
    }
    done(&r);
}
END_TEST

static void commit_terms(const rig *r, const vv_euid *e)
{
    char rel[VV_STREAM_PATH];
    vv_wr w = vv_wr_growing(1 << 16);
    vv_thread_ref root = vv_thread_ref_make(e, 1, 1);
    vv_health_begin(&w, e, 1);
    vv_health_add(&w, &root, 1);
    vv_health_add_term(&w, "invocations_attempted", 7);
    vv_health_end(&w, 1);
    vv_segment_path(rel, e, VV_PLANE_HEALTH, 1);
    test_commit(r->root, rel, &w);
    vv_wr_done(&w);
}

static void commit_end(const rig *r, const vv_euid *e)
{
    char rel[VV_STREAM_PATH];
    test_store t = {.euid = *e};
    vv_wr w = vv_wr_growing(1 << 16);
    vv_meta_record end = test_ended(&t, 1, 0, 0, 0);
    vv_meta_begin(&w, e, 2, 0);
    vv_meta_add(&w, &end);
    vv_meta_end(&w, 1);
    vv_segment_path(rel, e, VV_PLANE_META, 2);
    test_commit(r->root, rel, &w);
    vv_wr_done(&w);
}

/* A writer commits the terms of an end before the end: a look in between, for another reason, must not lose them. */
START_TEST(terms_come_before_their_end)
{
    rig r;
    begin(&r);
    vv_euid e = test_euid(0x11), other = test_euid(0x22);
    test_commit_start(r.root, &e);
    test_commit_start(r.root, &other);
    look(&r);
    commit_terms(&r, &e);
    if (_i == 0) /* else nobody is told in between */
        test_commit_data(r.root, &other, 1);
    const vv_look *between = look(&r);
    ck_assert_uint_eq(r.told, _i == 0 ? 2 : 1);
    ck_assert(!vv_stream_execution_at(&between->store->streams[0], 0)->has_terms);
    ck_assert_uint_eq(between->store->streams[0].core->index->health.count, 1);
    commit_end(&r, &e);
    const vv_execution *x = vv_stream_execution_at(&look(&r)->store->streams[0], 0);
    uint64_t v = 0;
    ck_assert(x->has_end && x->has_terms && vv_health_find(&x->terms, "invocations_attempted", &v));
    ck_assert_uint_eq(v, 7);
    done(&r);
}
END_TEST

START_TEST(a_store_comes_goes_and_is_replaced)
{
    rig r;
    begin(&r);
    vv_euid e = test_euid(0x11), other = test_euid(0x22);
    const vv_look *none;
    ck_assert(vv_library_look(r.l, &none, NULL) == VV_ERR_NOTFOUND);
    ck_assert(!is_readable(&r) && r.told == 0);
    test_commit_start(r.root, &e);
    ck_assert(is_readable(&r));
    ck_assert_uint_eq(look(&r)->store->stream_count, 1);
    ck_assert_uint_eq(r.told, 1);
    test_commit_data(r.root, &e, 1);
    ck_assert_uint_eq(look(&r)->store->streams[0].data_high, 1);
    char aside[64], command[256];
    snprintf(aside, sizeof aside, "%s/aside", r.dir);
    test_must(rename(r.root, aside));
    ck_assert(is_readable(&r));
    ck_assert(vv_library_look(r.l, &none, NULL) == VV_ERR_NOTFOUND);
    ck_assert_uint_eq(r.told, 3);
    ck_assert_ptr_null(r.last);
    test_commit_start(r.root, &other);
    ck_assert_mem_eq(look(&r)->store->streams[0].euid.b, other.b, sizeof other.b);
    /* At once another in its place. */
    snprintf(command, sizeof command, "mv '%s' '%s/old' && mv '%s' '%s'", r.root, r.dir, aside, r.root);
    test_must(system(command));
    ck_assert_mem_eq(look(&r)->store->streams[0].euid.b, e.b, sizeof e.b);
    test_commit_data(r.root, &e, 2);
    ck_assert_uint_eq(look(&r)->store->streams[0].data_high, 2);
    snprintf(command, sizeof command, "rm -r '%s'", r.root);
    test_must(system(command));
    ck_assert(vv_library_look(r.l, &none, NULL) == VV_ERR_NOTFOUND);
    ck_assert_ptr_null(r.last);
    done(&r);
}
END_TEST

/* A directory above the store is renamed: it is noticed at once, not at the next poll. */
START_TEST(a_store_is_carried_off)
{
    rig r;
    begin(&r);
    char aside[64];
    const vv_look *none;
    vv_euid e = test_euid(0x11);
    snprintf(aside, sizeof aside, "%s-aside", r.dir);
    test_commit_start(r.root, &e);
    look(&r);
    test_must(rename(r.dir, aside));
    ck_assert(is_readable(&r));
    ck_assert(vv_library_look(r.l, &none, NULL) == VV_ERR_NOTFOUND);
    ck_assert_ptr_null(r.last);
    test_must(rename(aside, r.dir));
    ck_assert(is_readable(&r));
    ck_assert_mem_eq(look(&r)->store->streams[0].euid.b, e.b, sizeof e.b);
    done(&r);
}
END_TEST

/* What changes nothing that anyone could see is told to nobody. */
START_TEST(nothing_to_tell)
{
    rig r;
    begin(&r);
    vv_euid e = test_euid(0x11);
    test_commit_start(r.root, &e);
    test_commit_data(r.root, &e, 1);
    char first[65];
    strcpy(first, look(&r)->generation);
    test_commit_data(r.root, &e, 1); /* the same bytes in another file */
    char path[128];
    snprintf(path, sizeof path, "%s/streams/notes", r.root);
    test_write_file(path, "", 0);
    ck_assert_str_eq(look(&r)->generation, first);
    ck_assert_uint_eq(r.told, 1);
    done(&r);
}
END_TEST

int main(void)
{
    TCase *c = test_case("live", 60);
    tcase_add_test(c, the_next_look_shows_what_was_committed);
    tcase_add_test(c, former_looks_are_at_hand_beside_many_executions);
    tcase_add_test(c, looks_have_an_order);
    tcase_add_loop_test(c, terms_come_before_their_end, 0, 2);
    tcase_add_test(c, a_store_comes_goes_and_is_replaced);
    tcase_add_test(c, a_store_is_carried_off);
    tcase_add_test(c, nothing_to_tell);
    return test_run();
}
