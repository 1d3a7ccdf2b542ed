/* Summaries that an index tells again are those that folding gives, and nothing is folded for them. */
#include "config.h"

#include "views/answer.h"

#include <pthread.h>

#include "tests/testing.h"

#include "tests/reader/build.h"

#include "tests/index/disk.h"

#include "views/digest_bytes.h"

/* The digests of all executions as bytes, one after the other; path NULL: no index. */
static vv_wr digests_at(disk *d, const char *path)
{
    vv_library *l = NULL;
    const vv_look *look;
    vv_error err = {0};
    vv_wr w = vv_wr_growing(1 << 24);
    const vv_index_options o = {.path = path, .say = disk_say, .say_state = d};
    d->said[0] = 0;
    ck_assert(vv_library_open(&l, d->root, 1 << 28, 0, &err) == VV_OK);
    if (path)
        ck_assert(vv_library_use_index(l, &o, &err) == VV_OK);
    ck_assert_msg(vv_library_look(l, &look, &err) == VV_OK, "%s", err.msg);
    d->bytes_opened = vv_source_bytes_read(look->store->source);
    for (size_t i = 0; i < look->store->stream_count; i++) {
        const vv_stream *s = &look->store->streams[i];
        for (size_t k = 0; k < s->execution_count; k++) {
            const vv_digest *digest;
            ck_assert(vv_library_digest(l, look, s, vv_stream_execution_at(s, k), &digest, &err) == VV_OK);
            vv_digest_put(&w, digest);
            vv_digest_release(l, digest);
        }
    }
    d->bytes_read = vv_source_bytes_read(look->store->source);
    vv_look_release(l, look);
    vv_library_close(l);
    ck_assert(vv_wr_ok(&w));
    return w;
}

static void same(disk *d, const char *path)
{
    vv_wr want = digests_at(d, NULL), got = digests_at(d, path);
    test_wrote(&got, want.buf, want.len);
    vv_wr_done(&want);
    vv_wr_done(&got);
}

START_TEST(nothing_is_folded_twice)
{
    fixture f;
    begin(&f);
    same(&f.d, f.d.index);
    ck_assert_uint_gt(f.d.bytes_read, f.d.bytes_opened);
    same(&f.d, f.d.index);
    ck_assert_uint_eq(f.d.bytes_read, f.d.bytes_opened);
    ck_assert_str_eq(f.d.said, "");
    same(&f.d, ":memory:");
    end(&f);
}
END_TEST

/* Data read for an answer about the whole store, once the index is there. */
static uint64_t data_read_for(disk *d, vv_view *view, const char *name, const char *value, vv_code want)
{
    vv_library *l = NULL;
    const vv_look *look;
    vv_error err = {0};
    const vv_index_options o = {.path = d->index};
    const vv_param p = {vv_cstr(name), vv_cstr(value)};
    ck_assert(vv_library_open(&l, d->root, 1 << 28, 0, &err) == VV_OK);
    ck_assert(vv_library_use_index(l, &o, &err) == VV_OK);
    ck_assert(vv_library_look(l, &look, &err) == VV_OK);
    uint64_t before = vv_source_bytes_read(look->store->source);
    vv_query q = {.library = l, .look = look, .params = &p, .param_count = name != NULL, .id = vv_cstr(value)};
    vv_answer a;
    vv_answer_init(&a);
    ck_assert_int_eq(view(&a, &q, &err), want);
    vv_answer_done(&a);
    uint64_t after = vv_source_bytes_read(look->store->source);
    vv_look_release(l, look);
    vv_library_close(l);
    return after - before;
}

/* The summaries' filters say of each execution that it has neither the context nor the text. */
START_TEST(what_is_nowhere_is_looked_for_in_no_data)
{
    static const char nowhere[] = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
    fixture f;
    begin(&f);
    same(&f.d, f.d.index);
    ck_assert_uint_eq(data_read_for(&f.d, vv_answer_context, NULL, nowhere, VV_ERR_NOTFOUND), 0);
    ck_assert_uint_eq(data_read_for(&f.d, vv_answer_search, "q", "no such name", VV_OK), 0);
    end(&f);
}
END_TEST

/* A profile is loaded whatever the index knows, and goes with the digest. */
START_TEST(a_profile_after_its_digest)
{
    fixture f;
    begin(&f);
    same(&f.d, f.d.index);
    vv_library *l = NULL;
    const vv_look *look;
    const vv_index_options o = {.path = f.d.index};
    ck_assert(vv_library_open(&l, f.d.root, 1 << 28, 0, NULL) == VV_OK);
    ck_assert(vv_library_use_index(l, &o, NULL) == VV_OK);
    ck_assert(vv_library_look(l, &look, NULL) == VV_OK);
    const vv_stream *s = vv_store_stream(look->store, &f.t.euid);
    const vv_digest *digest;
    const vv_profile *p;
    ck_assert(vv_library_digest(l, look, s, vv_stream_execution_at(s, 0), &digest, NULL) == VV_OK);
    ck_assert(vv_library_profile(l, look, s, vv_stream_execution_at(s, 0), &p, NULL) == VV_OK);
    ck_assert_uint_eq(p->context_count, digest->contexts);
    ck_assert_uint_eq((uint64_t)digest->totals.calls, (uint64_t)vv_totals_of(p).calls);
    vv_profile_release(l, p);
    vv_digest_release(l, digest);
    vv_look_release(l, look);
    vv_library_close(l);
    end(&f);
}
END_TEST

/* Each of them makes a summary void, or a store where it must not be believed. */
static void change_data(const fixture *f)
{
    char path[512];
    disk_path(&f->d, path, f->t.paths[2]);
    static const uint64_t others[] = {1, 2, 7};
    vv_wr w = test_data(&f->t, 1, others, 3);
    unlink(path);
    test_write_file(path, w.buf, w.len);
    vv_wr_done(&w);
}

static void drop_data(const fixture *f)
{
    char path[512];
    disk_path(&f->d, path, f->t.paths[3]);
    ck_assert_int_eq(unlink(path), 0);
}

static void change_meta(const fixture *f)
{
    char path[512];
    disk_path(&f->d, path, f->t.paths[1]);
    vv_wr w = vv_wr_growing(1 << 16);
    vv_meta_record r = test_ended(&f->t, 1, 1, 2, 2);
    vv_meta_begin(&w, &f->t.euid, 2, 2);
    vv_meta_add(&w, &r);
    vv_meta_end(&w, 1);
    unlink(path);
    test_write_file(path, w.buf, w.len);
    vv_wr_done(&w);
}

static void add_terms(const fixture *f)
{
    char path[512], rel[VV_STREAM_PATH];
    vv_segment_path(rel, &f->t.euid, VV_PLANE_HEALTH, 1);
    disk_path(&f->d, path, rel);
    *strrchr(path, '/') = 0;
    ck_assert(vv_mkdirs(AT_FDCWD, path, NULL) == VV_OK);
    disk_path(&f->d, path, rel);
    vv_wr w = vv_wr_growing(1 << 16);
    vv_thread_ref root = test_thread(&f->t, 1);
    vv_health_begin(&w, &f->t.euid, 1);
    vv_health_add(&w, &root, 2);
    vv_health_add_term(&w, "calls_started", 5);
    vv_health_add_term(&w, "facts_offered", 7);
    vv_health_end(&w, 1);
    test_write_file(path, w.buf, w.len);
    vv_wr_done(&w);
}

static void (*const changes[])(const fixture *) = {change_data, drop_data, change_meta, add_terms};

START_TEST(what_changes_is_folded_anew)
{
    fixture f;
    begin(&f);
    same(&f.d, f.d.index);
    changes[_i](&f);
    disk_settle();
    same(&f.d, f.d.index);
    same(&f.d, f.d.index);
    end(&f);
}
END_TEST

START_TEST(flipped_bits)
{
    fixture f;
    begin(&f);
    same(&f.d, f.d.index);
    test_rng g = test_seeded("flipped_bits");
    vv_blob db = {0};
    char wal[96], shm[96];
    snprintf(wal, sizeof wal, "%s-wal", f.d.index);
    snprintf(shm, sizeof shm, "%s-shm", f.d.index);
    ck_assert(vv_file_read(AT_FDCWD, f.d.index, 1 << 24, &db, NULL) == VV_OK);
    vv_wr want = digests_at(&f.d, NULL);
    for (size_t i = test_below(&g, 29); i < db.n; i += 29) {
        uint8_t bit = (uint8_t)(1u << test_below(&g, 8));
        db.p[i] ^= bit;
        unlink(wal);
        unlink(shm);
        test_write_file(f.d.index, db.p, db.n);
        db.p[i] ^= bit;
        vv_wr got = digests_at(&f.d, f.d.index);
        test_wrote(&got, want.buf, want.len);
        vv_wr_done(&got);
    }
    vv_wr_done(&want);
    vv_blob_done(&db);
    end(&f);
}
END_TEST

/* Bytes that came through every sum and are no digest all the same. */
START_TEST(bytes_that_lie)
{
    fixture f;
    begin(&f);
    test_rng g = test_seeded("bytes_that_lie");
    vv_library *l = NULL;
    const vv_look *look;
    ck_assert(vv_library_open(&l, f.d.root, 1 << 28, 0, NULL) == VV_OK);
    ck_assert(vv_library_look(l, &look, NULL) == VV_OK);
    const vv_stream *s = &look->store->streams[1];
    size_t read = 0;
    for (size_t k = 0; k < s->execution_count; k++) {
        const vv_digest *digest;
        vv_wr w = vv_wr_growing(1 << 20);
        ck_assert(vv_library_digest(l, look, s, vv_stream_execution_at(s, k), &digest, NULL) == VV_OK);
        vv_digest_put(&w, digest);
        for (int round = 0; round < 20000; round++) {
            size_t n = test_below(&g, 3) ? w.len : test_below(&g, w.len + 1);
            uint8_t *bytes = test_exact(w.buf, n);
            for (uint64_t i = test_below(&g, 4); i && n; i--)
                bytes[test_below(&g, n)] = (uint8_t)test_random(&g);
            vv_digest *d;
            if (vv_digest_get(&d, bytes, n, NULL) == VV_OK) {
                vv_wr out = vv_wr_growing(1 << 24);
                vv_json j = vv_json_init(&out);
                vv_evidence_json(&j, &d->evidence, false, NULL);
                for (size_t i = 0; i < d->evidence.issue_count; i++) {
                    char text[VV_ISSUE_TEXT];
                    vv_evidence_issue_text(text, &d->evidence.issues[i]);
                }
                vv_evidence sum = {0};
                ck_assert(vv_evidence_merge(&sum, &d->evidence, NULL) == VV_OK);
                ck_assert(vv_evidence_merge(&sum, &d->evidence, NULL) == VV_OK);
                vv_evidence_done(&sum);
                vv_wr_done(&out);
                vv_digest_free(d);
                read++;
            }
            free(bytes);
        }
        vv_wr_done(&w);
        vv_digest_release(l, digest);
    }
    ck_assert_uint_gt(read, 0);
    vv_look_release(l, look);
    vv_library_close(l);
    end(&f);
}
END_TEST

typedef struct {
    vv_library *l;
    uint64_t calls;
} asker;

static void *ask_all(void *state)
{
    asker *a = state;
    const vv_look *look;
    ck_assert(vv_library_look(a->l, &look, NULL) == VV_OK);
    for (size_t i = 0; i < look->store->stream_count; i++)
        for (size_t k = 0; k < look->store->streams[i].execution_count; k++) {
            const vv_stream *s = &look->store->streams[i];
            const vv_digest *d;
            ck_assert(vv_library_digest(a->l, look, s, vv_stream_execution_at(s, k), &d, NULL) == VV_OK);
            a->calls += (uint64_t)d->totals.calls;
            vv_digest_release(a->l, d);
        }
    vv_look_release(a->l, look);
    return NULL;
}

START_TEST(many_threads)
{
    fixture f;
    begin(&f);
    for (int round = 0; round < 4; round++) {
        asker askers[6] = {{0}};
        pthread_t threads[6];
        vv_library *l = NULL;
        const vv_index_options o = {.path = f.d.index, .say = disk_say, .say_state = &f.d};
        ck_assert(vv_library_open(&l, f.d.root, 1 << 28, 0, NULL) == VV_OK);
        ck_assert(vv_library_use_index(l, &o, NULL) == VV_OK);
        for (size_t i = 0; i < VV_ARRAY_LEN(threads); i++) {
            askers[i].l = l;
            ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_all, &askers[i]), 0);
        }
        for (size_t i = 0; i < VV_ARRAY_LEN(threads); i++) {
            ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
            ck_assert_uint_eq(askers[i].calls, 2 * (3 + 2 + 1)); /* a call a group */
        }
        vv_library_close(l);
    }
    ck_assert_str_eq(f.d.said, "");
    end(&f);
}
END_TEST

int main(void)
{
    TCase *c = test_case("summaries", 60);
    tcase_add_test(c, nothing_is_folded_twice);
    tcase_add_test(c, what_is_nowhere_is_looked_for_in_no_data);
    tcase_add_test(c, a_profile_after_its_digest);
    tcase_add_loop_test(c, what_changes_is_folded_anew, 0, VV_ARRAY_LEN(changes));
    tcase_add_test(c, many_threads);
    tcase_add_test(c, flipped_bits);
    tcase_add_test(c, bytes_that_lie);
    return test_run();
}
