/*
 * Files and locks: reading whole immutable files, and the flock rules of the store (docs/store.md).
 * All calls work relative to a directory descriptor (AT_FDCWD is allowed). Descriptors are close-on-exec.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/error.h"

typedef struct {
    uint8_t *p;
    size_t n;
} vv_blob;

void vv_blob_done(vv_blob *b); /* accepts a zeroed blob */

void vv_close(int *fd); /* closes unless negative, sets -1; for VV_CLEANUP */

/*
 * Stands in for the standard descriptors that are closed, with what answers reads and writes as a closed one does, so
 * that what is opened meanwhile gets none of the three numbers: a program that runs with its standard output closed
 * would otherwise write what it prints into our file, or to who talks to us. Begun before anything is opened, ended
 * right after it; vv_standing_done keeps errno. Any thread.
 */
typedef struct {
    bool in;
} vv_standing;
vv_standing vv_standing_in(void);
void vv_standing_done(vv_standing *s); /* for VV_CLEANUP too */

/*
 * As openat, socket and accept4, close-on-exec, but never one of the three standard numbers, not for a moment.
 * Negative, with errno, where it failed. Any thread.
 */
int vv_open_above(int dirfd, const char *path, int flags, mode_t mode);
int vv_socket_above(int domain, int type, int protocol);
int vv_accept_above(int fd, int flags);

/*
 * Reads a whole file into memory that the caller frees (vv_blob_done). Only a regular file is read: a link, FIFO,
 * socket, device or directory of that name is VV_ERR_CORRUPT named "NotRegularFile", and nothing is waited for. A file
 * longer than max is VV_ERR_LIMIT named "FileTooLarge", before any allocation. Missing: VV_ERR_NOTFOUND.
 */
VV_MUST_CHECK vv_code vv_file_read(int dirfd, const char *name, uint64_t max, vv_blob *ret, vv_error *err);

/* Writes all n bytes, over short writes and EINTR. */
VV_MUST_CHECK vv_code vv_write_all(int fd, const void *p, size_t n, vv_error *err);

/* mkdir -p below dirfd, mode 0777 as umask cuts it. Exists already = VV_OK. */
VV_MUST_CHECK vv_code vv_mkdirs(int dirfd, const char *path, vv_error *err);

/* flock on an open descriptor. Non-blocking: VV_ERR_BUSY where somebody else holds it. EINTR is retried. */
VV_MUST_CHECK vv_code vv_lock(int fd, bool exclusive, bool wait, vv_error *err);
void vv_unlock(int fd);
