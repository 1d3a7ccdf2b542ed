/*
 * Small stores in memory for the reader's tests: segments encoded by format/, damaged by hand. Include after
 * tests/testing.h.
 */
#pragma once

#include "reader/fold.h"
#include "reader/segments.h"
#include "reader/source_mem.h"
#include "reader/store.h"

enum { TEST_FILES = 64 };

typedef struct {
    vv_euid euid; /* of the files added next */
    vv_mem_file files[TEST_FILES];
    char paths[TEST_FILES][128];
    vv_wr bytes[TEST_FILES];
    size_t count;
    vv_source *source;
    vv_store *store;
} test_store;

static inline vv_euid test_euid(uint8_t b)
{
    vv_euid e;
    memset(e.b, b, sizeof e.b);
    return e;
}

static inline void test_store_begin(test_store *t)
{
    *t = (test_store){.euid = test_euid(0x11)};
}

/* A file by its path; takes the writer. */
static inline void test_store_file(test_store *t, const char *path, vv_wr w)
{
    ck_assert(vv_wr_ok(&w) && t->count < TEST_FILES);
    snprintf(t->paths[t->count], sizeof t->paths[0], "%s", path);
    t->bytes[t->count] = w;
    t->files[t->count] = (vv_mem_file){t->paths[t->count], w.buf ? (const void *)w.buf : "", w.len};
    t->count++;
}

static inline void test_store_segment(test_store *t, vv_plane plane, uint64_t sequence, vv_wr w)
{
    char path[VV_STREAM_PATH];
    vv_segment_path(path, &t->euid, plane, sequence);
    test_store_file(t, path, w);
}

static inline void test_store_meta(test_store *t, uint64_t sequence, uint64_t high_water, const vv_meta_record *r,
                                   size_t n)
{
    vv_wr w = vv_wr_growing(1 << 20);
    vv_meta_begin(&w, &t->euid, sequence, high_water);
    for (size_t i = 0; i < n; i++)
        vv_meta_add(&w, &r[i]);
    vv_meta_end(&w, n);
    test_store_segment(t, VV_PLANE_META, sequence, w);
}

/* Some bytes that are no segment. */
static inline void test_store_bad(test_store *t, vv_plane plane, uint64_t sequence)
{
    vv_wr w = vv_wr_growing(100);
    vv_wr_bytes(&w, "no segment of any kind, but longer than a seal", 46);
    test_store_segment(t, plane, sequence, w);
}

static inline vv_store *test_store_open(test_store *t)
{
    vv_error err = {0};
    ck_assert_msg(vv_source_open_mem(&t->source, t->files, t->count, &err) == VV_OK, "%s", err.msg);
    ck_assert_msg(vv_store_open(&t->store, t->source, NULL, &err) == VV_OK, "%s", err.msg);
    return t->store;
}

static inline void test_store_close(test_store *t)
{
    vv_store_free(t->store);
    vv_source_close(t->source);
    t->store = NULL;
    t->source = NULL;
}

static inline void test_store_done(test_store *t)
{
    test_store_close(t);
    for (size_t i = 0; i < t->count; i++)
        vv_wr_done(&t->bytes[i]);
}

/* References of the stream t->euid, engine 1. */
static inline vv_thread_ref test_thread(const test_store *t, uint64_t thread)
{
    return vv_thread_ref_make(&t->euid, 1, thread);
}

static inline vv_call_ref test_call(const test_store *t, uint64_t thread, uint64_t call)
{
    vv_thread_ref r = test_thread(t, thread);
    return vv_call_ref_make(&r, call);
}

static inline vv_capture_id test_capture(const test_store *t, uint64_t thread, uint64_t ordinal)
{
    vv_capture_id id;
    vv_call_ref c = test_call(t, thread, ordinal);
    memcpy(id.b, c.b, sizeof id.b);
    return id;
}

static inline vv_meta_record test_started(const test_store *t, uint64_t root)
{
    return (vv_meta_record){
        .tag = VV_META_ROOT_STARTED,
        .root_started = {.root = test_thread(t, root), .started_ns = 100 + root},
    };
}

static inline vv_meta_record test_ended(const test_store *t, uint64_t root, uint64_t first, uint64_t last,
                                        uint64_t count)
{
    return (vv_meta_record){
        .tag = VV_META_ROOT_ENDED,
        .root_ended = {.root = test_thread(t, root), .ended_ns = 900, .first = first, .last = last, .count = count},
    };
}

static inline vv_meta_record test_engine(uint8_t program, bool has_table)
{
    vv_meta_record m = {.tag = VV_META_ENGINE_STARTED, .engine_started = {.engine_id = 1, .has_table = has_table}};
    memset(m.engine_started.program.b, program, sizeof m.engine_started.program.b);
    memset(m.engine_started.table.b, program, sizeof m.engine_started.table.b);
    return m;
}

static inline vv_meta_record test_header(void)
{
    return (vv_meta_record){
        .tag = VV_META_STREAM_STARTED,
        .stream_started = {.pid = 7, .zero_unix_ns = 1000, .version = vv_cstr("v"), .os_arch = vv_cstr("linux-test")},
    };
}

/* One group under construction. */
typedef struct {
    vv_wr contexts, overflow, facts;
    uint64_t context_count, overflow_count, fact_count;
    uint8_t health;
} test_group;

static inline void test_group_begin(test_group *g)
{
    *g = (test_group){vv_wr_growing(1 << 20), vv_wr_growing(1 << 20), vv_wr_growing(1 << 20), 0, 0, 0, 0};
}

/* Context number n: its tuple says function n, below no parent. */
static inline vv_cct_row test_context(uint32_t n, bool defined)
{
    vv_cct_row row = {
        .defined = defined, .tuple = {.function_id = n, .edge = VV_EDGE_CALL}, .counters = {.started = 1}};
    vv_context_key_of(&row.key, &row.tuple);
    return row;
}

static inline void test_group_row(test_group *g, const vv_cct_row *row)
{
    vv_cct_encode_row(&g->contexts, row);
    g->context_count++;
}

static inline void test_group_overflow(test_group *g, vv_overflow_reason reason, vv_edge edge, uint64_t started)
{
    vv_cct_overflow row = {.reason = reason, .edge = edge, .counters = {.started = started}};
    vv_cct_encode_overflow(&g->overflow, &row);
    g->overflow_count++;
}

static inline void test_group_fact(test_group *g, const vv_fact *f)
{
    vv_fact_encode(&g->facts, f);
    g->fact_count++;
}

/* Adds the group to a data segment under construction. */
static inline void test_group_end(test_group *g, vv_wr *segment, const vv_thread_ref *root)
{
    vv_wr cct = vv_wr_growing(1 << 21), evidence = vv_wr_growing(1 << 21);
    if (g->context_count || g->overflow_count) {
        vv_wr_u64(&cct, g->context_count);
        vv_wr_bytes(&cct, g->contexts.buf, g->contexts.len);
        vv_wr_u64(&cct, g->overflow_count);
        vv_wr_bytes(&cct, g->overflow.buf, g->overflow.len);
    }
    if (g->fact_count) {
        vv_wr_u64(&evidence, g->fact_count);
        vv_wr_bytes(&evidence, g->facts.buf, g->facts.len);
    }
    ck_assert(vv_wr_ok(&g->contexts) && vv_wr_ok(&g->overflow) && vv_wr_ok(&g->facts));
    vv_group out = {
        .root = *root,
        .cct_health = g->health,
        .cct_records = g->context_count + g->overflow_count,
        .cct = cct.buf,
        .cct_len = cct.len,
        .evidence_records = g->fact_count,
        .evidence = evidence.buf,
        .evidence_len = evidence.len,
    };
    vv_data_add(segment, &out);
    vv_wr_done(&cct);
    vv_wr_done(&evidence);
    vv_wr_done(&g->contexts);
    vv_wr_done(&g->overflow);
    vv_wr_done(&g->facts);
}

/* A data segment with one group of one defined context for each of the n roots, which ascend. */
static inline vv_wr test_data(const test_store *t, uint64_t sequence, const uint64_t *roots, size_t n)
{
    vv_wr w = vv_wr_growing(1 << 20);
    vv_data_begin(&w, &t->euid, sequence);
    for (size_t i = 0; i < n; i++) {
        test_group g;
        test_group_begin(&g);
        vv_cct_row row = test_context(1, true);
        test_group_row(&g, &row);
        vv_thread_ref root = test_thread(t, roots[i]);
        test_group_end(&g, &w, &root);
    }
    vv_data_end(&w, n);
    return w;
}

static inline void test_store_data(test_store *t, uint64_t sequence, uint64_t root)
{
    test_store_segment(t, VV_PLANE_DATA, sequence, test_data(t, sequence, &root, 1));
}

/* Loads the execution with that root thread of the store's first stream. */
static inline vv_fold *test_load(const test_store *t, uint64_t root)
{
    vv_thread_ref r = test_thread(t, root);
    const vv_stream *s = vv_store_stream(t->store, &t->euid);
    ck_assert_ptr_nonnull(s);
    const vv_execution *e = vv_stream_execution(s, &r);
    ck_assert_ptr_nonnull(e);
    vv_fold *f = NULL;
    vv_error err = {0};
    ck_assert_msg(vv_fold_load(&f, t->store, s, e, NULL, &err) == VV_OK, "%s", err.msg);
    return f;
}

/*
 * A meta plane drawn with one character a sequence: S RootStarted, E RootEnded, B both, L RootEnded with the start-lost
 * bit, D a second RootStarted, d a second RootEnded, . other records only, x does not decode, - no file.
 */
static inline void test_draw_meta(test_store *t, const char *plane)
{
    for (uint64_t seq = 1; plane[seq - 1]; seq++) {
        vv_meta_record start = test_started(t, 1), end = test_ended(t, 1, 0, 0, 0), engine = test_engine(1, false);
        vv_meta_record lost = end, both[] = {start, end};
        lost.root_ended.flags = VV_ROOT_START_LOST;
        switch (plane[seq - 1]) {
        case 'S':
        case 'D':
            test_store_meta(t, seq, 0, &start, 1);
            break;
        case 'E':
        case 'd':
            test_store_meta(t, seq, 0, &end, 1);
            break;
        case 'B':
            test_store_meta(t, seq, 0, both, 2);
            break;
        case 'L':
            test_store_meta(t, seq, 0, &lost, 1);
            break;
        case '.':
            test_store_meta(t, seq, 0, &engine, 1);
            break;
        case 'x':
            test_store_bad(t, VV_PLANE_META, seq);
            break;
        default:
            break;
        }
    }
}

static inline uint64_t test_count_gaps(const vv_stream *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->meta_gap_count; i++)
        n += s->meta_gaps[i].last - s->meta_gaps[i].first + 1;
    return n;
}

/* Issues in short: N, M2, C3, G3/1; a hard error as its name after '!'. */
static inline void test_issue_text(const vv_fold *f, char *out, size_t size)
{
    out[0] = 0;
    if (f->failed) {
        snprintf(out, size, "!%s", f->error.name);
        return;
    }
    for (size_t i = 0, n = 0; i < f->issue_count && n < size; i++) {
        const vv_issue *is = &f->issues[i];
        const char *space = i ? " " : "";
        if (is->kind == VV_ISSUE_NO_ROOT_ENDED)
            n += (size_t)snprintf(out + n, size - n, "%sN", space);
        else if (is->kind == VV_ISSUE_GROUP_COUNT)
            n += (size_t)snprintf(out + n, size - n, "%sG%" PRIu64 "/%" PRIu64, space, is->a, is->b);
        else
            n += (size_t)snprintf(out + n, size - n, "%s%c%" PRIu64, space,
                                  is->kind == VV_ISSUE_MISSING_SEGMENT ? 'M' : 'C', is->a);
    }
}
