/* What a watch says has changed, against what was changed; and looks by its word against looks at everything. */
#include "config.h"

#include "reader/watch.h"

#include <errno.h>
#include <pthread.h>

#include "reader/stream.h"
#include "tests/testing.h"

#include "tests/reader/build.h"

#include "tests/reader/files.h"

#include "tests/reader/commits.h"

typedef struct {
    char dir[TEST_DIR], root[TEST_DIR + 16];
    test_store t;
    vv_source *source;
    vv_watch *watch;
    vv_store *store;
    uint64_t now; /* the watch's clock */
} rig;

static void path_of(const rig *r, char *out, size_t size, const char *rel)
{
    snprintf(out, size, "%s/%s", r->root, rel);
}

static void commit_data(rig *r, const vv_euid *euid, uint64_t sequence)
{
    test_commit_data(r->root, euid, sequence);
}

static void commit_start(rig *r, const vv_euid *euid)
{
    test_commit_start(r->root, euid);
}

static int hold(rig *r, const vv_euid *euid)
{
    return test_hold(r->root, euid);
}

static bool same_plane(uint64_t high_a, const vv_range *a, size_t count_a, uint64_t high_b, const vv_range *b,
                       size_t count_b)
{
    return high_a == high_b && count_a == count_b && (count_a == 0 || memcmp(a, b, count_a * sizeof *a) == 0);
}

/* Nothing differs that the generation goes by; the contiguous high waters follow from the runs. */
static bool same_stream(const vv_stream *a, const vv_stream *b)
{
    return a->core == b->core
        || (a->alive == b->alive
            && same_plane(a->meta_high, a->meta_bad, a->meta_bad_count, b->meta_high, b->meta_bad, b->meta_bad_count)
            && same_plane(a->data_high, a->data_bad, a->data_bad_count, b->data_high, b->data_bad, b->data_bad_count));
}

/* A look at everything, which must be what the watch's looks have come to. */
static void check_whole(rig *r)
{
    vv_store *whole;
    ck_assert(vv_store_open(&whole, r->source, NULL, NULL) == VV_OK);
    ck_assert_uint_eq(whole->stream_count, r->store->stream_count);
    for (size_t i = 0; i < whole->stream_count; i++) {
        const vv_stream *a = &r->store->streams[i], *b = &whole->streams[i];
        ck_assert_int_eq(a->alive, b->alive);
        ck_assert_int_eq(a->unprobed, b->unprobed);
        ck_assert_uint_eq(a->meta_high, b->meta_high);
        ck_assert_uint_eq(a->data_high, b->data_high);
        ck_assert_uint_eq(a->data_contiguous, b->data_contiguous);
        ck_assert_uint_eq(a->execution_count, b->execution_count);
        ck_assert(same_stream(a, b));
    }
    ck_assert_mem_eq(whole->generation, r->store->generation, sizeof whole->generation);
    vv_store_free(whole);
}

static void look(rig *r, const vv_changes *c)
{
    vv_store *next;
    vv_changes changes = *c;
    vv_code rc = r->store ? vv_store_update(&next, r->store, &changes, NULL)
                          : vv_store_open(&next, r->source, NULL, NULL);
    ck_assert(rc == VV_OK);
    vv_store_free(r->store);
    r->store = next;
    vv_watch_looked(r->watch, next, r->now, r->now);
}

/* Takes what the watch has, looks, and gives the changes (their streams are the watch's). */
static vv_changes follow(rig *r)
{
    vv_changes c;
    vv_watch_take(r->watch, &c, r->now);
    look(r, &c);
    check_whole(r);
    return c;
}

static void begin(rig *r, unsigned watches)
{
    *r = (rig){.now = 1};
    test_make_dir(r->dir);
    snprintf(r->root, sizeof r->root, "%s/profiles-v1", r->dir);
    test_store_begin(&r->t);
    vv_meta_record m[] = {test_header(), test_started(&r->t, 1)};
    test_store_meta(&r->t, 1, 0, m, VV_ARRAY_LEN(m));
    test_store_data(&r->t, 1, 1);
    test_write_store(&r->t, r->root);
    ck_assert(vv_source_open(&r->source, r->root, NULL) == VV_OK);
    ck_assert(vv_watch_new(&r->watch, watches, NULL) == VV_OK);
    vv_watch_store(r->watch, r->source, r->now);
    ck_assert(vv_watch_pending(r->watch, r->now));
    ck_assert(follow(r).all);
}

static void done(rig *r)
{
    vv_watch_free(r->watch);
    vv_store_free(r->store);
    vv_source_close(r->source);
    test_store_done(&r->t);
    test_remove_dir(r->dir);
}

START_TEST(nothing_happens)
{
    rig r;
    begin(&r, VV_WATCHES);
    ck_assert(vv_watch_is_complete(r.watch));
    ck_assert(!vv_watch_pending(r.watch, r.now));
    ck_assert_uint_eq(vv_watch_due_ns(r.watch), r.now + VV_POLL_SLOW_NS);
    r.now += VV_POLL_SLOW_NS;
    ck_assert(vv_watch_pending(r.watch, r.now));
    ck_assert(follow(&r).all);
    ck_assert(!vv_watch_pending(r.watch, r.now));
    done(&r);
}
END_TEST

START_TEST(one_commit)
{
    rig r;
    begin(&r, VV_WATCHES);
    vv_store *before = r.store;
    commit_data(&r, &r.t.euid, 2);
    ck_assert(vv_watch_pending(r.watch, r.now));
    vv_changes c = follow(&r);
    ck_assert(!c.all && !c.place && !c.listing && c.count == 1);
    ck_assert_mem_eq(c.streams[0].euid.b, r.t.euid.b, sizeof r.t.euid.b);
    ck_assert(!c.streams[0].probe && !c.streams[0].planes[VV_PLANE_DATA].all);
    ck_assert_uint_eq(c.streams[0].planes[VV_PLANE_DATA].count, 1);
    ck_assert_uint_eq(c.streams[0].planes[VV_PLANE_DATA].sequences[0], 2);
    ck_assert_uint_eq(c.streams[0].planes[VV_PLANE_META].count, 0);
    ck_assert_uint_eq(r.store->streams[0].data_high, 2);
    ck_assert(r.store != before && !vv_watch_pending(r.watch, r.now));
    done(&r);
}
END_TEST

/* Others than the changed stream are shared, and not looked at. */
START_TEST(only_what_changed)
{
    rig r;
    begin(&r, VV_WATCHES);
    vv_euid other = test_euid(0x22);
    commit_start(&r, &other);
    vv_changes c = follow(&r);
    ck_assert(c.listing && c.count == 1 && c.streams[0].probe);
    ck_assert_uint_eq(r.store->stream_count, 2);
    const struct vv_stream_core *shared = r.store->streams[0].core;
    commit_data(&r, &other, 1); /* in a directory that comes with it */
    c = follow(&r);
    ck_assert(c.count == 1 && c.streams[0].planes[VV_PLANE_DATA].all);
    ck_assert_ptr_eq(r.store->streams[0].core, shared);
    ck_assert_uint_eq(r.store->streams[1].data_high, 1);
    uint64_t read = vv_source_bytes_read(r.source);
    vv_watch_take(r.watch, &c, r.now);
    look(&r, &c);
    ck_assert_uint_eq(vv_source_bytes_read(r.source), read);
    done(&r);
}
END_TEST

/* All that may become of a segment's file. */
START_TEST(changes_of_files)
{
    rig r;
    begin(&r, VV_WATCHES);
    for (uint64_t i = 2; i <= 4; i++)
        commit_data(&r, &r.t.euid, i);
    follow(&r);
    char rel[VV_STREAM_PATH], path[512], other[600];
    static const struct {
        const char *what;
        uint64_t sequence, contiguous;
    } steps[] = {{"truncate", 3, 2}, {"repair", 3, 4}, {"remove", 2, 1},       {"repair", 2, 4},
                 {"hide", 4, 3},     {"repair", 4, 4}, {"link", 5, 4},         {"repair", 5, 5},
                 {"touch", 1, 5},    {"junk", 2, 5},   {"another name", 5, 5}, {"directory", 6, 5}};
    for (size_t i = 0; i < VV_ARRAY_LEN(steps); i++) {
        vv_segment_path(rel, &r.t.euid, VV_PLANE_DATA, steps[i].sequence);
        path_of(&r, path, sizeof path, rel);
        snprintf(other, sizeof other, "%s.x", path);
        if (strcmp(steps[i].what, "truncate") == 0)
            test_must(truncate(path, 70));
        else if (strcmp(steps[i].what, "remove") == 0)
            test_must(unlink(path));
        else if (strcmp(steps[i].what, "hide") == 0)
            test_must(rename(path, other));
        else if (strcmp(steps[i].what, "link") == 0)
            test_must(symlink("nowhere", path));
        else if (strcmp(steps[i].what, "touch") == 0)
            test_must(utimensat(AT_FDCWD, path, NULL, 0));
        else if (strcmp(steps[i].what, "junk") == 0)
            test_write_file(other, "x", 1);
        else if (strcmp(steps[i].what, "directory") == 0)
            test_must(mkdir(path, 0700));
        else
            commit_data(&r, &r.t.euid, steps[i].sequence);
        follow(&r);
        ck_assert_msg(r.store->streams[0].data_contiguous == steps[i].contiguous, "%s: %" PRIu64, steps[i].what,
                      r.store->streams[0].data_contiguous);
        ck_assert(!vv_watch_pending(r.watch, r.now));
    }
    done(&r);
}
END_TEST

/* Many segments of a plane are a plane; very many streams are everything. */
START_TEST(very_many_changes)
{
    enum { STREAMS = 1100 };
    rig r;
    begin(&r, VV_WATCHES);
    for (uint64_t i = 2; i < 40; i++)
        commit_data(&r, &r.t.euid, i);
    vv_changes c = follow(&r);
    ck_assert(!c.all && c.count == 1 && c.streams[0].planes[VV_PLANE_DATA].all);
    ck_assert_uint_eq(r.store->streams[0].data_contiguous, 39);
    for (unsigned i = 0; i < STREAMS; i++) {
        vv_euid e = test_euid(0x30);
        vv_put32(e.b, i);
        char rel[VV_STREAM_PATH], path[512];
        vv_stream_dir(rel, &e);
        path_of(&r, path, sizeof path, rel);
        test_must(mkdir(path, 0700));
    }
    c = follow(&r);
    ck_assert(c.all);
    ck_assert_uint_eq(r.store->stream_count, STREAMS + 1);
    /* And each of them is watched. */
    vv_euid last = test_euid(0x30);
    vv_put32(last.b, STREAMS - 1);
    commit_start(&r, &last);
    c = follow(&r);
    ck_assert(!c.all && c.count == 1);
    done(&r);
}
END_TEST

START_TEST(streams_come_and_go)
{
    rig r;
    begin(&r, VV_WATCHES);
    char from[512], to[512], command[700];
    vv_euid a = test_euid(0x22), b = test_euid(0x33);
    commit_start(&r, &a);
    follow(&r);
    path_of(&r, from, sizeof from, "streams/22222222222222222222222222222222");
    path_of(&r, to, sizeof to, "streams/33333333333333333333333333333333");
    test_must(rename(from, to)); /* all in it is another stream's */
    follow(&r);
    ck_assert(!vv_store_stream(r.store, &a) && vv_store_stream(r.store, &b));
    commit_data(&r, &b, 1);
    vv_changes c = follow(&r);
    ck_assert(!c.all && c.count == 1 && memcmp(c.streams[0].euid.b, b.b, sizeof b.b) == 0);
    commit_start(&r, &a);
    follow(&r);
    snprintf(command, sizeof command, "rm -r '%s'", to);
    test_must(system(command));
    follow(&r);
    ck_assert_uint_eq(r.store->stream_count, 2);
    path_of(&r, from, sizeof from, "streams");
    snprintf(to, sizeof to, "%s/aside", r.dir);
    test_must(rename(from, to));
    c = follow(&r);
    ck_assert(c.all);
    ck_assert_uint_eq(r.store->stream_count, 0);
    test_must(rename(to, from));
    c = follow(&r);
    ck_assert(c.all);
    ck_assert_uint_eq(r.store->stream_count, 2);
    commit_data(&r, &a, 1);
    c = follow(&r);
    ck_assert(!c.all && c.count == 1);
    done(&r);
}
END_TEST

START_TEST(a_writer_dies)
{
    rig r;
    begin(&r, VV_WATCHES);
    int fd = hold(&r, &r.t.euid);
    follow(&r);
    ck_assert(r.store->streams[0].alive);
    commit_data(&r, &r.t.euid, 2);
    vv_changes c = follow(&r);
    ck_assert(!c.streams[0].probe && r.store->streams[0].alive);
    close(fd);
    ck_assert(vv_watch_pending(r.watch, r.now));
    c = follow(&r);
    ck_assert(c.count == 1 && c.streams[0].probe && !r.store->streams[0].alive);
    ck_assert(!vv_watch_pending(r.watch, r.now));
    ck_assert_uint_eq(vv_watch_due_ns(r.watch), 1 + VV_POLL_SLOW_NS);
    done(&r);
}
END_TEST

/* Of a process that has committed nothing it is not known whether it lives: it is not asked. */
START_TEST(a_process_starts)
{
    rig r;
    begin(&r, VV_WATCHES);
    vv_euid euid = {{9}};
    char path[512], rel[VV_STREAM_PATH];
    vv_plane_path(rel, &euid, VV_PLANE_META);
    path_of(&r, path, sizeof path, rel);
    ck_assert(vv_mkdirs(AT_FDCWD, path, NULL) == VV_OK);
    int fd = hold(&r, &euid);
    follow(&r);
    const vv_stream *s = vv_store_stream(r.store, &euid);
    ck_assert(s->unprobed && !s->alive);
    commit_start(&r, &euid);
    follow(&r);
    s = vv_store_stream(r.store, &euid);
    ck_assert(!s->unprobed && s->alive);
    close(fd);
    follow(&r);
    s = vv_store_stream(r.store, &euid);
    ck_assert(!s->unprobed && !s->alive);
    done(&r);
}
END_TEST

enum { STARTING = 200 };

typedef struct {
    rig *r;
    int held[STARTING];
} starting;

static void *start_processes(void *state)
{
    starting *s = state;
    for (unsigned i = 0; i < STARTING; i++) {
        vv_euid euid = {{9, (uint8_t)i}};
        char path[512], rel[VV_STREAM_PATH];
        vv_stream_dir(rel, &euid);
        path_of(s->r, path, sizeof path, rel);
        ck_assert(vv_mkdirs(AT_FDCWD, path, NULL) == VV_OK);
        s->held[i] = hold(s->r, &euid);
        commit_start(s->r, &euid);
    }
    return NULL;
}

/* A look that meets a first segment meets its writer, wherever it was when that came. */
START_TEST(processes_start_during_looks)
{
    rig r;
    begin(&r, VV_WATCHES);
    starting s = {.r = &r};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, start_processes, &s), 0);
    for (unsigned i = 0; i < STARTING;) {
        const vv_euid euid = {{9, (uint8_t)i}};
        vv_stream one;
        ck_assert(vv_stream_open(&one, r.source, &euid, NULL, NULL, NULL) == VV_OK);
        ck_assert(one.alive == (one.meta_high > 0));
        ck_assert(one.alive || one.unprobed || one.failed);
        i += one.alive;
        vv_stream_done(&one);
    }
    pthread_join(thread, NULL);
    for (unsigned i = 0; i < STARTING; i++)
        close(s.held[i]);
    done(&r);
}
END_TEST

/* The event comes before the lock is let go: it is probed again, at growing distances, and not for ever. */
START_TEST(a_lock_outlives_its_closing)
{
    rig r;
    begin(&r, VV_WATCHES);
    int fd = hold(&r, &r.t.euid);
    follow(&r);
    char path[512];
    path_of(&r, path, sizeof path, "streams/11111111111111111111111111111111/stream.lock");
    close(open(path, O_WRONLY | O_CLOEXEC)); /* as if it were the writer's */
    follow(&r);
    unsigned probes = 0;
    uint64_t last = 0, began = r.now, slow = 1 + VV_POLL_SLOW_NS;
    while (vv_watch_due_ns(r.watch) < slow) {
        ck_assert_uint_gt(vv_watch_due_ns(r.watch), r.now);
        ck_assert(!vv_watch_pending(r.watch, r.now));
        ck_assert_uint_ge(vv_watch_due_ns(r.watch) - r.now, last);
        last = vv_watch_due_ns(r.watch) - r.now;
        r.now += last;
        ck_assert(vv_watch_pending(r.watch, r.now));
        follow(&r);
        ck_assert(r.store->streams[0].alive);
        ck_assert_uint_lt(++probes, 20);
    }
    ck_assert_uint_ge(r.now - began, 500000000);
    close(open(path, O_WRONLY | O_CLOEXEC));
    follow(&r);
    close(fd);
    r.now = vv_watch_due_ns(r.watch);
    follow(&r);
    ck_assert(!r.store->streams[0].alive);
    done(&r);
}
END_TEST

static const unsigned few[] = {0, 1, 3, 5};

/* Without enough watches it is polled, quicker; nothing is missed but until the next poll. */
START_TEST(too_few_watches)
{
    rig r;
    begin(&r, few[_i]);
    ck_assert(!vv_watch_is_complete(r.watch));
    ck_assert_int_eq(vv_watch_fd(r.watch) < 0, few[_i] == 0);
    ck_assert_uint_eq(vv_watch_due_ns(r.watch), r.now + VV_POLL_QUICK_NS);
    commit_data(&r, &r.t.euid, 2);
    vv_euid other = test_euid(0x22);
    commit_start(&r, &other);
    r.now += VV_POLL_QUICK_NS;
    ck_assert(vv_watch_pending(r.watch, r.now));
    vv_changes c = follow(&r);
    ck_assert(c.all && c.place);
    ck_assert_uint_eq(r.store->stream_count, 2);
    ck_assert_uint_eq(r.store->streams[0].data_high, 2);
    done(&r);
}
END_TEST

START_TEST(a_look_that_costs_much_is_polled_for_less_often)
{
    rig r;
    begin(&r, VV_WATCHES);
    vv_changes c;
    r.now += VV_POLL_SLOW_NS;
    vv_watch_take(r.watch, &c, r.now);
    vv_watch_looked(r.watch, r.store, r.now, r.now + 100000000);
    ck_assert_uint_eq(vv_watch_due_ns(r.watch), r.now + 100000000 + UINT64_C(10000000000));
    done(&r);
}
END_TEST

START_TEST(a_look_that_failed_is_taken_again)
{
    rig r;
    begin(&r, VV_WATCHES);
    commit_data(&r, &r.t.euid, 2);
    vv_changes c;
    vv_watch_take(r.watch, &c, r.now);
    vv_watch_looked(r.watch, NULL, r.now, r.now);
    ck_assert(vv_watch_pending(r.watch, r.now));
    ck_assert(follow(&r).all);
    ck_assert_uint_eq(r.store->streams[0].data_high, 2);
    done(&r);
}
END_TEST

START_TEST(the_root_is_replaced)
{
    rig r;
    begin(&r, VV_WATCHES);
    char aside[64], beside[80];
    snprintf(beside, sizeof beside, "%s.lock", r.root);
    test_write_file(beside, "", 0);
    ck_assert(!vv_watch_pending(r.watch, r.now));
    snprintf(aside, sizeof aside, "%s/aside", r.dir);
    test_must(rename(r.root, aside));
    ck_assert(vv_watch_pending(r.watch, r.now));
    vv_changes c;
    vv_watch_take(r.watch, &c, r.now);
    ck_assert(c.place);
    test_must(mkdir(r.root, 0700));
    ck_assert(vv_watch_pending(r.watch, r.now));
    vv_watch_take(r.watch, &c, r.now);
    ck_assert(c.place);
    done(&r);
}
END_TEST

/* Not itself, but a directory above it. */
START_TEST(the_root_is_carried_off)
{
    static const char *const carried[] = {"/a/b/.baml/profiles-v1", "/a/b/.baml", "/a/b", "/a", ""};
    for (size_t i = 0; i < VV_ARRAY_LEN(carried); i++) {
        rig r;
        begin(&r, VV_WATCHES);
        char deep[96], from[96], to[96];
        snprintf(deep, sizeof deep, "%s/a/b/.baml", r.dir);
        ck_assert(vv_mkdirs(AT_FDCWD, deep, NULL) == VV_OK);
        strcat(deep, "/profiles-v1");
        test_must(rename(r.root, deep));
        vv_source *source;
        ck_assert(vv_source_open(&source, deep, NULL) == VV_OK);
        vv_watch_store(r.watch, source, r.now);
        vv_changes c;
        vv_watch_take(r.watch, &c, r.now);
        vv_watch_looked(r.watch, r.store, r.now, r.now);
        ck_assert(!vv_watch_pending(r.watch, r.now));
        snprintf(from, sizeof from, "%s%s", r.dir, carried[i]);
        snprintf(to, sizeof to, "%s-aside", r.dir);
        test_must(rename(from, to));
        ck_assert_msg(vv_watch_pending(r.watch, r.now), "%s", carried[i]);
        vv_watch_take(r.watch, &c, r.now);
        ck_assert(c.place);
        test_must(rename(to, from));
        vv_source_close(source);
        done(&r);
    }
}
END_TEST

/* A store that is not there yet, at any depth. */
START_TEST(a_store_is_waited_for)
{
    rig r;
    begin(&r, VV_WATCHES);
    char path[128], step[128];
    snprintf(path, sizeof path, "%s/a/.baml/profiles-v1", r.dir);
    ck_assert(vv_watch_place(r.watch, path, r.now));
    ck_assert(!vv_watch_place(r.watch, path, r.now));
    static const char *const steps[] = {"a", "a/.baml", "a/.baml/profiles-v1"};
    vv_changes c;
    vv_watch_take(r.watch, &c, r.now);
    for (size_t i = 0; i < VV_ARRAY_LEN(steps); i++) {
        ck_assert(!vv_watch_pending(r.watch, r.now));
        snprintf(step, sizeof step, "%s/%s", r.dir, steps[i]);
        test_must(mkdir(step, 0700));
        ck_assert(vv_watch_pending(r.watch, r.now));
        vv_watch_take(r.watch, &c, r.now);
        ck_assert(c.place);
        ck_assert(vv_watch_place(r.watch, path, r.now));
    }
    r.now += VV_POLL_PLACE_NS;
    ck_assert(vv_watch_pending(r.watch, r.now));
    done(&r);
}
END_TEST

/* More happens than the system keeps for us. */
START_TEST(too_many_events)
{
    rig r;
    begin(&r, VV_WATCHES);
    FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
    long most = 0;
    if (!f || fscanf(f, "%ld", &most) != 1 || most > 100000)
        most = 0;
    if (f)
        fclose(f);
    char path[2][512];
    path_of(&r, path[0], sizeof path[0], "streams/11111111111111111111111111111111/data/a");
    path_of(&r, path[1], sizeof path[1], "streams/11111111111111111111111111111111/data/b");
    test_write_file(path[0], "", 0);
    for (long i = 0; most && i <= most / 2; i++)
        test_must(rename(path[i % 2], path[(i + 1) % 2]));
    if (most) {
        vv_euid other = test_euid(0x22);
        commit_start(&r, &other); /* nobody is told of it */
        vv_changes c = follow(&r);
        ck_assert(c.all && c.place);
        ck_assert_uint_eq(r.store->stream_count, 2);
        commit_data(&r, &other, 1);
        c = follow(&r);
        ck_assert(!c.all && c.count == 1);
    }
    done(&r);
}
END_TEST

/* Anything may happen in any order: after each step the watched store is the store. */
START_TEST(random_steps)
{
    enum { STEPS = 400, STREAMS = 6, SEGMENTS = 12 };
    test_rng g = test_seeded("watch");
    rig r;
    begin(&r, _i ? VV_WATCHES : 12);
    int held[STREAMS];
    memset(held, -1, sizeof held);
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned s = (unsigned)test_below(&g, STREAMS);
        vv_euid e = test_euid((uint8_t)(0x50 + s));
        uint64_t sequence = 1 + test_below(&g, SEGMENTS);
        char rel[VV_STREAM_PATH], path[512], command[700];
        vv_segment_path(rel, &e, VV_PLANE_DATA, sequence);
        path_of(&r, path, sizeof path, rel);
        switch (test_below(&g, 12)) {
        case 0:
            commit_start(&r, &e);
            break;
        case 1:
            unlink(path);
            break;
        case 2:
            if (truncate(path, 80) != 0)
                ck_assert_int_eq(errno, ENOENT);
            break;
        case 3:
            vv_stream_dir(rel, &e);
            path_of(&r, path, sizeof path, rel);
            snprintf(command, sizeof command, "rm -rf '%s'", path);
            test_must(system(command));
            vv_close(&held[s]);
            break;
        case 4:
            vv_close(&held[s]);
            break;
        case 5:
            vv_stream_dir(rel, &e);
            path_of(&r, path, sizeof path, rel);
            if (held[s] < 0 && access(path, F_OK) == 0) {
                strcat(path, "/stream.lock"); /* one that is taken up again tells nobody */
                unlink(path);
                held[s] = hold(&r, &e);
            }
            break;
        default:
            commit_data(&r, &e, sequence);
        }
        if (test_below(&g, 3) == 0) {
            r.now += vv_watch_is_complete(r.watch) ? 1000 : VV_POLL_QUICK_NS;
            follow(&r);
        }
    }
    for (unsigned s = 0; s < STREAMS; s++)
        vv_close(&held[s]);
    done(&r);
}
END_TEST

int main(void)
{
    TCase *c = test_case("watch", 60);
    tcase_add_test(c, nothing_happens);
    tcase_add_test(c, one_commit);
    tcase_add_test(c, only_what_changed);
    tcase_add_test(c, changes_of_files);
    tcase_add_test(c, very_many_changes);
    tcase_add_test(c, streams_come_and_go);
    tcase_add_test(c, a_writer_dies);
    tcase_add_test(c, a_process_starts);
    tcase_add_test(c, processes_start_during_looks);
    tcase_add_test(c, a_lock_outlives_its_closing);
    tcase_add_loop_test(c, too_few_watches, 0, VV_ARRAY_LEN(few));
    tcase_add_test(c, a_look_that_costs_much_is_polled_for_less_often);
    tcase_add_test(c, a_look_that_failed_is_taken_again);
    tcase_add_test(c, the_root_is_replaced);
    tcase_add_test(c, the_root_is_carried_off);
    tcase_add_test(c, a_store_is_waited_for);
    tcase_add_test(c, too_many_events);
    tcase_add_loop_test(c, random_steps, 0, 2);
    return test_run();
}
