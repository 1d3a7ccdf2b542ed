/*
 * What a writer does to a store on disk, one step at a time. Include after tests/reader/files.h. root is the store's,
 * in a directory that is the test's own.
 */
#pragma once

#include <errno.h>
#include <sys/file.h>

static inline void test_must(int rc)
{
    ck_assert_msg(rc == 0, "%s", strerror(errno));
}

/* Under a name of its own, then renamed. */
static inline void test_commit(const char *root, const char *rel, const vv_wr *w)
{
    char tmp[512], path[512], dir[512];
    snprintf(tmp, sizeof tmp, "%s.pending", root);
    snprintf(path, sizeof path, "%s/%s", root, rel);
    strcpy(dir, path);
    *strrchr(dir, '/') = 0;
    ck_assert(vv_mkdirs(AT_FDCWD, dir, NULL) == VV_OK);
    test_write_file(tmp, w->buf, w->len);
    test_must(rename(tmp, path));
}

/* A data segment with a group of root 1. */
static inline void test_commit_data(const char *root, const vv_euid *euid, uint64_t sequence)
{
    char rel[VV_STREAM_PATH];
    vv_segment_path(rel, euid, VV_PLANE_DATA, sequence);
    test_store t = {.euid = *euid};
    vv_wr w = test_data(&t, sequence, (const uint64_t[]){1}, 1);
    test_commit(root, rel, &w);
    vv_wr_done(&w);
}

/* The first meta segment: root 1 starts. */
static inline void test_commit_start(const char *root, const vv_euid *euid)
{
    char rel[VV_STREAM_PATH];
    vv_segment_path(rel, euid, VV_PLANE_META, 1);
    test_store t = {.euid = *euid};
    vv_meta_record m[] = {test_header(), test_started(&t, 1)};
    vv_wr w = vv_wr_growing(1 << 20);
    vv_meta_begin(&w, euid, 1, 0);
    for (size_t i = 0; i < VV_ARRAY_LEN(m); i++)
        vv_meta_add(&w, &m[i]);
    vv_meta_end(&w, VV_ARRAY_LEN(m));
    test_commit(root, rel, &w);
    vv_wr_done(&w);
}

/* Takes the stream's lock, as a living writer has it; the stream's directory is there. */
static inline int test_hold(const char *root, const vv_euid *euid)
{
    char rel[VV_STREAM_PATH], path[512];
    vv_stream_dir(rel, euid);
    snprintf(path, sizeof path, "%s/%s/stream.lock", root, rel);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    test_must(flock(fd, LOCK_EX));
    return fd;
}
