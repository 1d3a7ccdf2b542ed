/* A small store in a directory of its own, looked at with and without an index. Include after tests/reader/build.h. */
#pragma once

#include "tests/reader/files.h"

#include "index/index.h"
#include "reader/stream.h"

typedef struct {
    char dir[TEST_DIR]; /* holds the store s and the index x */
    char root[80], index[80];
    char said[1024];
    uint64_t bytes_read; /* of the last look, folds included */
    uint64_t bytes_opened; /* before the folds */
} disk;

static inline void disk_path(const disk *d, char out[512], const char *rel)
{
    snprintf(out, 512, "%s/%s", d->root, rel);
}

static inline void disk_begin(disk *d, const test_store *t)
{
    *d = (disk){.said = ""};
    test_make_dir(d->dir);
    snprintf(d->root, sizeof d->root, "%s/s", d->dir);
    snprintf(d->index, sizeof d->index, "%s/x", d->dir);
    test_write_store(t, d->root);
    disk_settle();
}

/* Two streams; three roots in three data segments, and what ended, runs on, and was never written. */
static inline void disk_store(test_store *t)
{
    static const uint64_t both[] = {1, 2}, three[] = {1, 2, 3};
    test_store_begin(t);
    for (uint8_t stream = 0x11; stream <= 0x22; stream += 0x11) {
        t->euid = test_euid(stream);
        vv_meta_record first[] = {test_header(), test_engine(stream, false), test_started(t, 1), test_started(t, 2)};
        vv_meta_record last[] = {test_started(t, 3), test_ended(t, 1, 1, 3, 3), test_ended(t, 2, 1, 3, 2),
                                 test_ended(t, 3, 3, 3, 2)};
        test_store_meta(t, 1, 0, first, 4);
        test_store_meta(t, 2, 2, last, 4);
        test_store_segment(t, VV_PLANE_DATA, 1, test_data(t, 1, both, 2));
        test_store_segment(t, VV_PLANE_DATA, 2, test_data(t, 2, both, 1));
        test_store_segment(t, VV_PLANE_DATA, 3, test_data(t, 3, three, 3));
    }
    test_store_bad(t, VV_PLANE_DATA, 5);
    t->euid = test_euid(0x11);
}

/* The store of disk_store, in memory and on disk. */
typedef struct {
    test_store t;
    disk d;
} fixture;

static inline void begin(fixture *f)
{
    disk_store(&f->t);
    disk_begin(&f->d, &f->t);
}

static inline void end(fixture *f)
{
    test_remove_dir(f->d.dir);
    for (size_t i = 0; i < f->t.count; i++)
        vv_wr_done(&f->t.bytes[i]);
}

static inline void disk_say(void *state, const char *line)
{
    disk *d = state;
    size_t n = strlen(d->said);
    snprintf(d->said + n, sizeof d->said - n, "%s\n", line);
}

static inline void disk_fold_text(FILE *f, const vv_store *s, const vv_stream *st, const vv_execution *e)
{
    vv_fold *fold = NULL;
    char issues[256];
    vv_error err = {0};
    ck_assert_msg(vv_fold_load(&fold, s, st, e, NULL, &err) == VV_OK, "%s", err.msg);
    test_issue_text(fold, issues, sizeof issues);
    fprintf(f, "  %" PRIu64 " %s groups=%" PRIu64 " contexts=%zu issues=%s\n", vv_thread_number(&e->root),
            vv_index_state_name(e->index_state), fold->groups, fold->context_count, issues);
    for (size_t i = 0; i < fold->context_count; i++)
        fprintf(f, "    %08x %" PRIu64 "\n", vv_be32(fold->contexts[i].key.b),
                (uint64_t)fold->contexts[i].counters.started);
    vv_fold_free(fold);
}

/* All that a source shows of its store, as text; the caller frees it. */
static inline char *disk_text(disk *d, vv_source *source)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    vv_store *s = NULL;
    vv_error err = {0};
    ck_assert_msg(vv_store_open(&s, source, NULL, &err) == VV_OK, "%s", err.msg);
    d->bytes_opened = vv_source_bytes_read(source);
    fprintf(f, "%08x\n", vv_be32(s->generation));
    for (size_t i = 0; i < s->stream_count; i++) {
        const vv_stream *st = &s->streams[i];
        fprintf(f, "stream %02x data %" PRIu64 " %" PRIu64 "\n", st->euid.b[0], st->data_high, st->data_contiguous);
        for (size_t k = 0; k < st->execution_count; k++)
            disk_fold_text(f, s, st, vv_stream_execution_at(st, k));
    }
    d->bytes_read = vv_source_bytes_read(source);
    vv_store_free(s);
    fclose(f);
    return text;
}

static inline vv_source *disk_source(const disk *d)
{
    vv_source *source = NULL;
    vv_error err = {0};
    ck_assert_msg(vv_source_open(&source, d->root, &err) == VV_OK, "%s", err.msg);
    return source;
}

static inline vv_index *disk_index(disk *d, vv_source *source, const char *path, uint64_t max_bytes)
{
    vv_index *x = NULL;
    vv_index_options o = {.path = path, .max_bytes = max_bytes, .say = disk_say, .say_state = d};
    d->said[0] = 0;
    ck_assert(vv_index_open(&x, source, &o, NULL) == VV_OK);
    vv_source_set_ledger(source, vv_index_ledger(x));
    return x;
}

/* With no index; the caller frees. */
static inline char *disk_plain(disk *d)
{
    vv_source *source = disk_source(d);
    char *text = disk_text(d, source);
    vv_source_close(source);
    return text;
}

/* What a process with an index at that path sees that is started and ends. */
static inline char *disk_run_at(disk *d, const char *path, uint64_t max_bytes)
{
    vv_source *source = disk_source(d);
    vv_index *x = disk_index(d, source, path, max_bytes);
    char *text = disk_text(d, source);
    vv_source_close(source);
    vv_index_close(x);
    return text;
}

static inline char *disk_run(disk *d)
{
    return disk_run_at(d, d->index, 0);
}

/* Asserts that such a process sees what one without an index does. */
static inline void disk_check_at(disk *d, const char *path)
{
    char *want = disk_plain(d), *got = disk_run_at(d, path, 0);
    ck_assert_str_eq(got, want);
    free(want);
    free(got);
}

static inline void disk_check(disk *d)
{
    disk_check_at(d, d->index);
}

/* Bytes of the files of a plane. */
static inline uint64_t disk_plane_bytes(const test_store *t, const char *plane)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->count; i++)
        if (strstr(t->paths[i], plane))
            n += t->bytes[i].len;
    return n;
}
