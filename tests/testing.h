/*
 * What the C unit tests share: the runner, a seeded generator, exact-size copies (so that a sanitizer sees a read one
 * byte too far), fixtures. Include after the headers under test.
 */
#pragma once

#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

/* Runs the suite with TAP on standard output; the exit status of main. */
static inline int test_main(Suite *suite)
{
    SRunner *sr = srunner_create(suite);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline Suite *test_suite(void)
{
    static Suite *suite;
    if (!suite)
        suite = suite_create("tests");
    return suite;
}

/* A new case of this program, for tests to be added to; each of them may take so many seconds, 0: check's default. */
static inline TCase *test_case(const char *name, double timeout_s)
{
    TCase *c = tcase_create(name);
    if (timeout_s > 0)
        tcase_set_timeout(c, timeout_s);
    suite_add_tcase(test_suite(), c);
    return c;
}

/* Runs all cases; the exit status of main. */
static inline int test_run(void)
{
    return test_main(test_suite());
}

/* splitmix64. */
typedef struct {
    uint64_t state;
} test_rng;

static inline uint64_t test_random(test_rng *g)
{
    uint64_t z = g->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint64_t test_below(test_rng *g, uint64_t limit)
{
    return test_random(g) % limit;
}

static inline void test_fill(test_rng *g, void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = (uint8_t)test_random(g);
}

/* A generator seeded by VV_SEED, else by a fixed number; the seed is printed for a failing run's log. */
static inline test_rng test_seeded(const char *what)
{
    const char *env = getenv("VV_SEED");
    uint64_t seed = env ? strtoull(env, NULL, 0) : 20240607;
    fprintf(stderr, "# %s: VV_SEED=%" PRIu64 "\n", what, seed);
    return (test_rng){seed};
}

/* A copy in memory of exactly n bytes; the caller frees it. */
static inline uint8_t *test_exact(const void *p, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    ck_assert_ptr_nonnull(copy);
    if (n)
        memcpy(copy, p, n);
    return copy;
}

/* The same and a zero byte more; the caller frees it. */
static inline uint8_t *test_longer(const void *p, size_t n)
{
    uint8_t *longer = calloc(1, n + 1);
    ck_assert_ptr_nonnull(longer);
    return n ? memcpy(longer, p, n) : longer;
}

/* Asserts that exactly these bytes were written. */
static inline void test_wrote(const vv_wr *w, const void *p, size_t n)
{
    ck_assert_uint_eq(w->len, n);
    ck_assert_mem_eq(w->buf, p, n);
}

/* Bytes of a text of hexadecimal digits; the caller frees them. */
static inline vv_blob test_unhex(const char *hex)
{
    vv_blob b = {malloc(strlen(hex) / 2 + 1), strlen(hex) / 2};
    ck_assert_ptr_nonnull(b.p);
    ck_assert_msg(vv_unhex(b.p, b.n, vv_cstr(hex)), "bad hexadecimal in a test");
    return b;
}

/* A file below the source tree; the caller frees it (its bytes end with a NUL). */
static inline vv_blob test_file(const char *path)
{
    const char *top = getenv("top_srcdir");
    char full[4096];
    snprintf(full, sizeof full, "%s/%s", top ? top : ".", path);
    vv_blob b = {0};
    vv_error err = {0};
    ck_assert_msg(vv_file_read(AT_FDCWD, full, 1 << 26, &b, &err) == VV_OK, "%s", err.msg);
    return b;
}

/* Asserts a decode error of this name; want NULL asserts success. Clears the error. */
#define TEST_NAME(rc, err, want)                                                                                  \
    do {                                                                                                          \
        vv_code rc_ = (rc);                                                                                       \
        const char *want_ = (want), *got_ = rc_ == VV_OK ? NULL : (err)->name ? (err)->name : "(unnamed)";        \
        ck_assert_msg(want_ ? got_ && strcmp(got_, want_) == 0 : !got_, "wanted %s, got %s (%s)",                 \
                      want_ ? want_ : "success", got_ ? got_ : "success", (err)->msg);                            \
        ck_assert_msg(rc_ == (err)->code, "the code returned is not the error's");                                \
        vv_error_clear(err);                                                                                      \
    } while (0)

/* Until the clock that stamps files has passed this moment: what is written before is older than what is read after.
 * Times of files may be finer than that clock's steps, so one step of it is not enough. */
static inline void disk_settle(void)
{
    struct timespec now, stamps;
    clock_gettime(CLOCK_REALTIME, &now);
    do
        clock_gettime(CLOCK_REALTIME_COARSE, &stamps);
    while (stamps.tv_sec < now.tv_sec || (stamps.tv_sec == now.tv_sec && stamps.tv_nsec <= now.tv_nsec));
}
