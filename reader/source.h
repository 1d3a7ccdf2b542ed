/*
 * Where a store's bytes come from: a directory, or an archive file (tar, tar.gz, tar.zst, zip) opened read-only.
 *
 * Nothing is ever written through a source, but for the lease beside a directory store (see vv_source_open). Paths are relative to the
 * store root ("streams/..."). Safe for concurrent readers once open.
 */
#pragma once

#include "base/file.h"

typedef struct vv_source vv_source;

/* Names of one directory, sorted by bytes. */
typedef struct {
    char **names;
    size_t count;
} vv_names;
void vv_names_done(vv_names *n);

/*
 * path is what vv_store_path_of gave. A directory store takes the lease "<root>.lock" shared: opened read-only, created only where it is
 * missing and the parent is writable; where neither works, reading goes on without it. An archive is indexed once; a compressed one is
 * spooled to an unlinked temporary file of at most 8 GiB (LIMIT beyond). Errors: NOTFOUND (no store there), ARG (a file that is no
 * archive, or an archive without a store), IO.
 */
VV_MUST_CHECK vv_code vv_source_open(vv_source **ret, const char *path, vv_error *err);
void vv_source_close(vv_source *s);

const char *vv_source_path(const vv_source *s);
/* A directory that a writer may still be filling; false for archives. */
bool vv_source_is_live(const vv_source *s);
/* Of a directory store; -1 for archives. */
int vv_source_dirfd(const vv_source *s);

/* At most 4,000,000 names (LIMIT). A missing directory is NOTFOUND. */
VV_MUST_CHECK vv_code vv_source_list(vv_source *s, const char *dir, vv_names *ret, vv_error *err);
/* As vv_file_read. */
VV_MUST_CHECK vv_code vv_source_read(vv_source *s, const char *path, uint64_t max, vv_blob *ret, vv_error *err);
