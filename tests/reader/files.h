/* Stores of build.h as files in a directory of their own. Include after tests/reader/build.h. */
#pragma once

#include <sys/stat.h>
#include <unistd.h>

/* A new directory, as a path; test_remove_dir takes it away with all in it. */
enum { TEST_DIR = 24 };
static inline void test_make_dir(char out[TEST_DIR])
{
    strcpy(out, "/tmp/varve-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(out));
}

static inline void test_remove_dir(const char *dir)
{
    char command[TEST_DIR + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    ck_assert_int_eq(system(command), 0);
}

/* Into the file that is there, or a new one. */
static inline void test_write_file(const char *path, const void *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    ck_assert(vv_write_all(fd, p, n, NULL) == VV_OK);
    close(fd);
}

/* All files of the store below root, which is made. */
static inline void test_write_store(const test_store *t, const char *root)
{
    for (size_t i = 0; i < t->count; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", root, t->paths[i]);
        *strrchr(path, '/') = 0;
        ck_assert(vv_mkdirs(AT_FDCWD, path, NULL) == VV_OK);
        snprintf(path, sizeof path, "%s/%s", root, t->paths[i]);
        test_write_file(path, t->bytes[i].buf, t->bytes[i].len);
    }
}
