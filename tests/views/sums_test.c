/* What is remembered of files' digests: of which files, and that a change, or a chance of one, is never missed. */
#include "config.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "views/sums.h"

#include "tests/testing.h"
#include "tests/reader/build.h"
#include "tests/reader/files.h"

enum { THREADS = 8, LARGE = 3 << 20 };

typedef struct {
    char dir[TEST_DIR], path[128];
    vv_source *source;
    vv_sums *sums;
} fixture;

typedef struct {
    uint8_t answer;
    bool lasting;
    unsigned asked; /* atomic */
} finder;

static vv_code find(void *state, uint8_t sum[VV_SHA256_BYTES], bool *ret_keep, vv_error *err)
{
    finder *f = state;
    (void)err;
    __atomic_fetch_add(&f->asked, 1, __ATOMIC_RELAXED);
    memset(sum, f->answer, VV_SHA256_BYTES);
    *ret_keep = f->lasting;
    return VV_OK;
}

static void begin(fixture *f, size_t bytes)
{
    vv_error err = {0};
    uint8_t *zeros = calloc(1, bytes);
    test_make_dir(f->dir);
    snprintf(f->path, sizeof f->path, "%s/file", f->dir);
    test_write_file(f->path, zeros, bytes);
    free(zeros);
    ck_assert_msg(vv_source_open(&f->source, f->dir, &err) == VV_OK, "%s", err.msg);
    f->sums = vv_sums_new();
    ck_assert_ptr_nonnull(f->sums);
}

static void end(fixture *f)
{
    vv_sums_free(f->sums);
    vv_source_close(f->source);
    test_remove_dir(f->dir);
}

/* What is said of the file now; find would answer `answer`. */
static uint8_t ask(const fixture *f, const uint8_t *of, uint8_t answer, bool lasting, unsigned *ret_asked)
{
    VV_CLEANUP(vv_open_file_close) vv_open_file file = {.fd = -1};
    finder finding = {answer, lasting, 0};
    uint8_t sum[VV_SHA256_BYTES] = {0};
    ck_assert(vv_source_open_file(f->source, "file", &file, NULL) == VV_OK);
    ck_assert(vv_sums_get(f->sums, &file, of, find, &finding, sum, NULL) == VV_OK);
    *ret_asked = finding.asked;
    ck_assert_uint_eq(sum[0], sum[31]);
    return sum[0];
}

START_TEST(an_old_file_is_asked_of_once)
{
    static const uint8_t a[VV_SHA256_BYTES] = {1}, b[VV_SHA256_BYTES] = {2};
    fixture f;
    unsigned asked;
    begin(&f, 10);
    disk_settle();
    ck_assert_uint_eq(ask(&f, NULL, 1, true, &asked), 1);
    ck_assert_uint_eq(asked, 1);
    ck_assert_uint_eq(ask(&f, NULL, 2, true, &asked), 1);
    ck_assert_uint_eq(asked, 0);
    /* Another digest of the same file is another one. */
    ck_assert_uint_eq(ask(&f, a, 3, true, &asked), 3);
    ck_assert_uint_eq(ask(&f, b, 4, true, &asked), 4);
    ck_assert_uint_eq(ask(&f, a, 5, true, &asked), 3);
    ck_assert_uint_eq(ask(&f, NULL, 6, true, &asked), 1);
    end(&f);
}
END_TEST

START_TEST(what_is_not_to_be_kept)
{
    fixture f;
    unsigned asked;
    begin(&f, 10);
    disk_settle();
    ck_assert_uint_eq(ask(&f, NULL, 1, false, &asked), 1);
    ck_assert_uint_eq(ask(&f, NULL, 2, true, &asked), 2);
    ck_assert_uint_eq(ask(&f, NULL, 3, true, &asked), 2);
    end(&f);
}
END_TEST

/* The same name, length and time of change by its writer's word: the system's own time of change tells it. */
START_TEST(a_file_that_was_rewritten)
{
    fixture f;
    unsigned asked;
    struct stat st;
    begin(&f, 10);
    ck_assert(stat(f.path, &st) == 0);
    disk_settle();
    ck_assert_uint_eq(ask(&f, NULL, 1, true, &asked), 1);
    test_write_file(f.path, "0123456789", 10);
    ck_assert(utimensat(AT_FDCWD, f.path, (struct timespec[]){st.st_atim, st.st_mtim}, 0) == 0);
    disk_settle();
    ck_assert_uint_eq(ask(&f, NULL, 2, true, &asked), 2);
    end(&f);
}
END_TEST

/* As long as a second change could bear the same time as the first, nothing is remembered. */
START_TEST(a_file_younger_than_the_clock)
{
    fixture f;
    unsigned asked;
    begin(&f, 10);
    struct timespec ahead;
    clock_gettime(CLOCK_REALTIME, &ahead);
    ahead.tv_sec += 3600;
    ck_assert(utimensat(AT_FDCWD, f.path, (struct timespec[]){ahead, ahead}, 0) == 0);
    disk_settle();
    for (uint8_t i = 1; i < 5; i++) {
        ck_assert_uint_eq(ask(&f, NULL, i, true, &asked), i);
        ck_assert_uint_eq(asked, 1);
    }
    end(&f);
}
END_TEST

/* More files than there is room for: each answer is right, remembered or not. */
START_TEST(more_than_there_is_room_for)
{
    fixture f;
    unsigned asked, known = 0;
    begin(&f, 10);
    disk_settle();
    for (unsigned round = 0; round < 2; round++)
        for (unsigned k = 0; k < 20000; k++) {
            unsigned i = round ? 19999 - k : k;
            uint8_t of[VV_SHA256_BYTES] = {(uint8_t)i, (uint8_t)(i >> 8), 1};
            ck_assert_uint_eq(ask(&f, of, (uint8_t)(i % 251), true, &asked), i % 251);
            known += !asked;
        }
    ck_assert_uint_gt(known, 100);
    end(&f);
}
END_TEST

static finder shared = {7, true, 0};

static void *ask_shared(void *fixture_of)
{
    const fixture *f = fixture_of;
    VV_CLEANUP(vv_open_file_close) vv_open_file file = {.fd = -1};
    uint8_t sum[VV_SHA256_BYTES] = {0};
    bool good = vv_source_open_file(f->source, "file", &file, NULL) == VV_OK
        && vv_sums_get(f->sums, &file, NULL, find, &shared, sum, NULL) == VV_OK && sum[0] == 7;
    return good ? NULL : (void *)f;
}

START_TEST(a_large_file_is_hashed_for_all_at_once)
{
    fixture f;
    pthread_t threads[THREADS];
    void *bad;
    begin(&f, LARGE);
    disk_settle();
    for (size_t i = 0; i < THREADS; i++)
        ck_assert(pthread_create(&threads[i], NULL, ask_shared, &f) == 0);
    for (size_t i = 0; i < THREADS; i++) {
        ck_assert(pthread_join(threads[i], &bad) == 0);
        ck_assert_ptr_null(bad);
    }
    ck_assert_uint_eq(shared.asked, 1);
    end(&f);
}
END_TEST

int main(void)
{
    TCase *t = test_case("sums", 60);
    tcase_add_test(t, an_old_file_is_asked_of_once);
    tcase_add_test(t, what_is_not_to_be_kept);
    tcase_add_test(t, a_file_that_was_rewritten);
    tcase_add_test(t, a_file_younger_than_the_clock);
    tcase_add_test(t, more_than_there_is_room_for);
    tcase_add_test(t, a_large_file_is_hashed_for_all_at_once);
    return test_run();
}
