/* What memory can't show of a store: locks, kinds of files, changes between looks. */
#include "config.h"

#include "reader/store.h"

#include <errno.h>
#include <sys/file.h>

#include "tests/testing.h"

#include "tests/reader/build.h"

#include "tests/reader/files.h"

typedef struct {
    char dir[TEST_DIR], root[TEST_DIR + 2];
    int lock;
    vv_source *source; /* once it was opened */
} test_dir;

static void dir_path(const test_dir *d, char *out, size_t size, const char *rel)
{
    snprintf(out, size, "%s/%s", d->root, rel);
}

static void dir_write(const test_dir *d, const char *rel, const void *p, size_t n)
{
    char path[512];
    dir_path(d, path, sizeof path, rel);
    unlink(path);
    test_write_file(path, p, n);
}

/* Writes the memory store's files out. */
static void dir_begin(test_dir *d, const test_store *t)
{
    *d = (test_dir){.lock = -1};
    test_make_dir(d->dir);
    snprintf(d->root, sizeof d->root, "%s/s", d->dir);
    test_write_store(t, d->root);
}

static void dir_hold(test_dir *d)
{
    char path[512];
    dir_path(d, path, sizeof path, "streams/11111111111111111111111111111111/stream.lock");
    d->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ck_assert_int_ge(d->lock, 0);
    ck_assert_int_eq(flock(d->lock, LOCK_EX), 0);
}

static void dir_done(test_dir *d)
{
    vv_source_close(d->source);
    vv_close(&d->lock);
    test_remove_dir(d->dir);
}

/* Looks at the directory, anew where there is a former look. */
static vv_store *dir_open(test_dir *d, const vv_store *former)
{
    vv_error err = {0};
    vv_store *s = NULL;
    if (!d->source)
        ck_assert_msg(vv_source_open(&d->source, d->root, &err) == VV_OK, "%s", err.msg);
    ck_assert_msg(vv_store_open(&s, d->source, former, &err) == VV_OK, "%s", err.msg);
    return s;
}

static const struct {
    const char *plane;
    const char *state, *status;
    uint64_t decoded, gaps;
} live_states[] = {
    {"S", "NoRootEnded", "Running", 1, 0},
    {"Sx", "NoRootEnded", "Running", 1, 0},   /* a torn tail */
    {"S-x", "NoRootEnded", "Running", 1, 0},  /* and what is missing in front of it */
    {"S.xx", "NoRootEnded", "Running", 2, 0}, /* gaps behind the highest decoded are not counted yet */
    {"Sx.", "IndexCorrupt", "Running", 3, 1},
    {"S-.x", "IndexCorrupt", "Running", 3, 1},
    {"SE-.", "Complete", "Succeeded", 4, 1},
    {"xS", "NoRootEnded", "Running", 2, 1},
    {"E", "IndexCorrupt", "Succeeded", 1, 0},
};

START_TEST(live_streams)
{
    test_store t;
    test_store_begin(&t);
    test_draw_meta(&t, live_states[_i].plane);
    test_dir d;
    dir_begin(&d, &t);
    dir_hold(&d);
    vv_store *s = dir_open(&d, NULL);
    const vv_stream *st = &s->streams[0];
    ck_assert(st->alive && !st->failed);
    ck_assert_str_eq(vv_index_state_name(vv_stream_execution_at(st, 0)->index_state), live_states[_i].state);
    ck_assert_str_eq(vv_exec_status_name(vv_stream_execution_at(st, 0)->status), live_states[_i].status);
    ck_assert_uint_eq(st->meta_decoded, live_states[_i].decoded);
    ck_assert_uint_eq(test_count_gaps(st), live_states[_i].gaps);
    /* Its death is a change, and turns the torn tail into a gap. */
    vv_close(&d.lock);
    vv_store *after = dir_open(&d, s);
    ck_assert(!after->streams[0].alive);
    ck_assert(memcmp(after->generation, s->generation, 32) != 0);
    vv_store_free(after);
    vv_store_free(s);
    dir_done(&d);
    test_store_done(&t);
}
END_TEST

START_TEST(probing)
{
    test_store t;
    test_store_begin(&t);
    test_store_data(&t, 1, 1); /* no meta segment */
    test_dir d;
    dir_begin(&d, &t);
    dir_hold(&d);
    vv_store *s = dir_open(&d, NULL);
    ck_assert(!s->streams[0].alive);
    ck_assert(vv_stream_probe(s, &t.euid));
    vv_close(&d.lock);
    ck_assert(!vv_stream_probe(s, &t.euid));
    vv_store_free(s);
    dir_done(&d);
    test_store_done(&t);
}
END_TEST

/* What may stand where a segment should: never waited for, never followed, and the rest is shown. */
START_TEST(other_kinds_of_files)
{
    enum { LINK, DANGLING, FIFO, DIRECTORY, KINDS };
    for (int kind = 0; kind < KINDS; kind++) {
        for (vv_plane plane = VV_PLANE_META; plane <= VV_PLANE_DATA; plane++) {
            test_store t;
            test_store_begin(&t);
            vv_meta_record m[] = {test_started(&t, 1), test_ended(&t, 1, 1, 2, 2), test_started(&t, 2),
                                  test_ended(&t, 2, 1, 1, 1)};
            test_store_meta(&t, 1, 0, m, VV_ARRAY_LEN(m));
            static const uint64_t both[] = {1, 2};
            test_store_segment(&t, VV_PLANE_DATA, 1, test_data(&t, 1, both, 2));
            vv_euid good = test_euid(0x22);
            t.euid = good;
            test_store_meta(&t, 1, 0, m, VV_ARRAY_LEN(m));
            t.euid = test_euid(0x11);
            test_dir d;
            dir_begin(&d, &t);
            char rel[VV_STREAM_PATH], path[512], target[512];
            vv_segment_path(rel, &t.euid, plane, 2);
            dir_path(&d, path, sizeof path, rel);
            dir_path(&d, target, sizeof target, t.paths[plane]);
            int rc = kind == LINK       ? symlink(target, path)
                     : kind == DANGLING ? symlink("nowhere", path)
                     : kind == FIFO     ? mkfifo(path, 0600)
                                        : mkdir(path, 0700);
            ck_assert_int_eq(rc, 0);
            t.store = dir_open(&d, NULL);
            ck_assert_uint_eq(t.store->stream_count, 2);
            ck_assert(!t.store->streams[1].failed);
            if (plane == VV_PLANE_META) {
                ck_assert(t.store->streams[0].failed);
                ck_assert_str_eq(t.store->streams[0].error.name, "Io");
            } else {
                vv_fold *f = test_load(&t, 1), *whole = test_load(&t, 2);
                ck_assert(f->failed && whole->complete);
                ck_assert_str_eq(f->error.name, "Io");
                vv_fold_free(f);
                vv_fold_free(whole);
            }
            vv_store_free(t.store);
            t.store = NULL;
            dir_done(&d);
            test_store_done(&t);
        }
    }
}
END_TEST

START_TEST(odd_stream_directories)
{
    test_store t;
    test_store_begin(&t);
    test_draw_meta(&t, "SE");
    test_dir d;
    dir_begin(&d, &t);
    char path[512];
    static const char *const names[] = {"ABCDEFABCDEFABCDEFABCDEFABCDEFAB", "00000000000000000000000000000001",
                                        "0000000000000000000000000000000g", "000000000000000000000000000000001"};
    for (size_t i = 0; i < VV_ARRAY_LEN(names); i++) {
        char rel[64];
        snprintf(rel, sizeof rel, "streams/%s", names[i]);
        dir_path(&d, path, sizeof path, rel);
        if (i == 1)
            dir_write(&d, rel, "x", 1); /* a file */
        else
            ck_assert_int_eq(mkdir(path, 0700), 0);
    }
    dir_path(&d, path, sizeof path, "streams/22222222222222222222222222222222");
    ck_assert_int_eq(symlink("11111111111111111111111111111111", path), 0);
    dir_path(&d, path, sizeof path, "streams/33333333333333333333333333333333");
    ck_assert_int_eq(mkdir(path, 0700), 0);
    dir_write(&d, "streams/33333333333333333333333333333333/meta", "x", 1);
    dir_path(&d, path, sizeof path, "streams/44444444444444444444444444444444");
    ck_assert_int_eq(mkdir(path, 0700), 0);
    static const struct {
        uint8_t first_byte;
        const char *error;
    } want[] = {{0x00, "StreamNotFound"}, {0x11, NULL}, {0x22, "StreamNotFound"},
                {0x33, "Io"},             {0x44, NULL}, {0xab, "StreamNotFound"}};
    vv_store *s = dir_open(&d, NULL);
    ck_assert_uint_eq(s->stream_count, VV_ARRAY_LEN(want));
    for (size_t i = 0; i < s->stream_count; i++) {
        ck_assert_uint_eq(s->streams[i].euid.b[0], want[i].first_byte);
        ck_assert_int_eq(s->streams[i].failed, want[i].error != NULL);
        if (want[i].error)
            ck_assert_str_eq(s->streams[i].error.name, want[i].error);
    }
    vv_store_free(s);
    dir_done(&d);
    test_store_done(&t);
}
END_TEST

/* Sparse giants are refused by their first bytes. */
START_TEST(giants)
{
    test_store t;
    test_store_begin(&t);
    vv_meta_record m[] = {test_started(&t, 1), test_ended(&t, 1, 1, 4, 1)};
    test_store_meta(&t, 1, 0, m, VV_ARRAY_LEN(m));
    test_store_data(&t, 1, 1);
    test_dir d;
    dir_begin(&d, &t);
    static const off_t sizes[] = {(off_t)1 << 40, (off_t)3 << 30, 100 << 20};
    for (size_t i = 0; i < VV_ARRAY_LEN(sizes); i++) {
        char rel[VV_STREAM_PATH], path[512];
        vv_segment_path(rel, &t.euid, VV_PLANE_DATA, i + 2);
        dir_write(&d, rel, t.bytes[1].buf, t.bytes[1].len);
        dir_path(&d, path, sizeof path, rel);
        if (i == 2) { /* a length that agrees with the file's: only the checksum can tell */
            uint8_t head[50];
            memcpy(head, t.bytes[1].buf, 50);
            vv_put64(head + 42, (uint64_t)sizes[i] - 50 - 32);
            dir_write(&d, rel, head, 50);
        }
        if (truncate(path, sizes[i]) != 0)
            ck_assert_int_eq(errno, EFBIG);
    }
    t.store = dir_open(&d, NULL);
    vv_fold *f = test_load(&t, 1);
    char got[64];
    test_issue_text(f, got, sizeof got);
    ck_assert_str_eq(got, "C2 C3 C4");
    vv_fold_free(f);
    vv_store_free(t.store);
    t.store = NULL;
    dir_done(&d);
    test_store_done(&t);
}
END_TEST

/* A second look reads only what is new or changed, and shares the rest. */
START_TEST(looking_again)
{
    test_store t;
    test_store_begin(&t);
    vv_meta_record start[] = {test_header(), test_started(&t, 1)};
    test_store_meta(&t, 1, 0, start, 2);
    test_store_data(&t, 1, 1);
    test_store_bad(&t, VV_PLANE_DATA, 2);
    test_dir d;
    dir_begin(&d, &t);
    vv_store *a = dir_open(&d, NULL);
    vv_store *b = dir_open(&d, a);
    ck_assert_mem_eq(a->generation, b->generation, 32);
    ck_assert_ptr_eq(a->streams[0].core, b->streams[0].core);
    vv_store_free(a);
    vv_wr good = test_data(&t, 2, (const uint64_t[]){1}, 1);
    dir_write(&d, t.paths[2], good.buf, good.len); /* repaired */
    vv_store *c = dir_open(&d, b);
    ck_assert(memcmp(b->generation, c->generation, 32) != 0);
    ck_assert_uint_eq(b->streams[0].data_contiguous, 1);
    ck_assert_uint_eq(c->streams[0].data_contiguous, 2);
    /* Only data has come. */
    ck_assert_ptr_eq(vv_stream_execution_at(&b->streams[0], 0), vv_stream_execution_at(&c->streams[0], 0));
    vv_meta_record end = test_ended(&t, 1, 1, 2, 2);
    test_store_meta(&t, 2, 2, &end, 1);
    dir_write(&d, t.paths[3], t.bytes[3].buf, t.bytes[3].len);
    vv_store *e = dir_open(&d, c);
    vv_store_free(b);
    ck_assert(!vv_stream_execution_at(&c->streams[0], 0)->has_end);
    ck_assert(vv_stream_execution_at(&e->streams[0], 0)->has_end);
    vv_store_free(c);
    t.store = e;
    ck_assert_uint_eq(e->streams[0].meta_contiguous, 2);
    vv_fold *f = test_load(&t, 1);
    ck_assert(f->complete && f->groups == 2);
    vv_fold_free(f);
    /* A file that goes away after it was verified is missing, one that shrinks is corrupt. */
    char path[512];
    dir_path(&d, path, sizeof path, t.paths[1]);
    ck_assert_int_eq(unlink(path), 0);
    dir_path(&d, path, sizeof path, t.paths[2]);
    ck_assert_int_eq(truncate(path, 60), 0);
    f = test_load(&t, 1);
    char got[64];
    test_issue_text(f, got, sizeof got);
    ck_assert_str_eq(got, "M1 C2 G2/0");
    vv_fold_free(f);
    vv_wr_done(&good);
    vv_store_free(e);
    dir_done(&d);
    t.store = NULL;
    test_store_done(&t);
}
END_TEST

/* A file that may not be read now may be later, with nothing else about it changed. */
START_TEST(unreadable_for_a_while)
{
    enum { NOBODY = 65534 };
    test_store t;
    test_store_begin(&t);
    vv_meta_record start[] = {test_header(), test_started(&t, 1)};
    test_store_meta(&t, 1, 0, start, 2);
    test_store_data(&t, 1, 1);
    test_dir d;
    dir_begin(&d, &t);
    char path[512];
    dir_path(&d, path, sizeof path, "..");
    ck_assert_int_eq(chmod(path, 0755), 0);
    dir_path(&d, path, sizeof path, t.paths[1]);
    ck_assert_int_eq(chmod(path, 0), 0);
    uid_t me = geteuid(); /* to whom, as root, all is readable */
    ck_assert(me != 0 || seteuid(NOBODY) == 0);
    vv_store *a = dir_open(&d, NULL);
    ck_assert(seteuid(me) == 0 && chmod(path, 0644) == 0);
    vv_store *b = dir_open(&d, a);
    ck_assert_uint_eq(a->streams[0].data_contiguous, 0);
    ck_assert_uint_eq(b->streams[0].data_contiguous, 1);
    vv_store_free(a);
    vv_store_free(b);
    dir_done(&d);
    test_store_done(&t);
}
END_TEST

int main(void)
{
    TCase *c = test_case("disk", 0);
    tcase_add_loop_test(c, live_streams, 0, VV_ARRAY_LEN(live_states));
    tcase_add_test(c, probing);
    tcase_add_test(c, odd_stream_directories);
    tcase_add_test(c, looking_again);
    tcase_add_test(c, unreadable_for_a_while);
    tcase_add_test(c, other_kinds_of_files);
    tcase_add_test(c, giants);
    return test_run();
}
