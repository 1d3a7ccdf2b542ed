/*
 * Where a store's bytes come from: a directory, or an archive file (tar, tar.gz, tar.zst, zip) opened read-only.
 *
 * Nothing is ever written through a source, but for the lease beside a directory store (see vv_source_open). Paths are
 * relative to the store root ("streams/..."). Safe for concurrent readers once open.
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
 * path is what vv_store_path_of gave. A directory store takes the lease "<root>.lock" shared: opened read-only, created
 * only where it is missing and the parent is writable; where neither works, reading goes on without it. An archive is
 * indexed once; a compressed one is spooled to an unlinked temporary file of at most 8 GiB (LIMIT beyond). Errors:
 * NOTFOUND (no store there), ARG (a file that is no archive, or an archive without a store), IO.
 */
VV_MUST_CHECK vv_code vv_source_open(vv_source **ret, const char *path, vv_error *err);
void vv_source_close(vv_source *s);

const char *vv_source_path(const vv_source *s);
/* A directory that a writer may still be filling; false for archives. */
bool vv_source_is_live(const vv_source *s);
/* Of a directory store; -1 for archives. */
int vv_source_dirfd(const vv_source *s);
/* Bytes of files read through it so far. Any thread. */
uint64_t vv_source_bytes_read(const vv_source *s);

/*
 * Who remembers verified segments (reader/ledger.h); borrowed, NULL for nobody. Before the first look, and only for
 * directories: an archive's files have no identity of their own.
 */
struct vv_seg_ledger;
void vv_source_set_ledger(vv_source *s, struct vv_seg_ledger *ledger);

/*
 * At most 4,000,000 names (LIMIT). A missing directory is NOTFOUND; a file or link of that name is CORRUPT named
 * "NotDirectory".
 */
VV_MUST_CHECK vv_code vv_source_list(vv_source *s, const char *dir, vv_names *ret, vv_error *err);
/*
 * Tells of the names in a directory, in no order, some perhaps more than once; what fn returns but VV_OK ends it. For
 * those that keep something smaller. Other errors as vv_source_list.
 */
enum { VV_SOURCE_NAMES_MAX = 4000000 };
typedef vv_code vv_source_name_fn(void *state, vv_str name, vv_error *err);
VV_MUST_CHECK vv_code vv_source_each(vv_source *s, const char *dir, vv_source_name_fn *fn, void *state, vv_error *err);
/* As vv_file_read, with links refused in every part of the path. */
VV_MUST_CHECK vv_code vv_source_read(vv_source *s, const char *path, uint64_t max, vv_blob *ret, vv_error *err);

/* Something below the root that is no directory. */
typedef struct {
    const char *path; /* relative to the root; until the call returns */
    bool is_file;     /* false: a link, FIFO, socket or device, or a directory that can't be read */
    uint64_t bytes;   /* of a file */
} vv_source_entry;
typedef void vv_source_walk_fn(void *state, const vv_source_entry *e);
/*
 * Tells of everything below the root, in no order, links not followed, in memory that does not go by how much there is.
 * What comes or goes meanwhile may be told or not. Directories below VV_WALK_DEPTH others count as ones that can't be
 * read. Errors: NOMEM, IO (the root itself).
 */
enum { VV_WALK_DEPTH = 32 };
VV_MUST_CHECK vv_code vv_source_walk(vv_source *s, vv_source_walk_fn *fn, void *state, vv_error *err);

/* What tells one immutable file from another of the same name. Archives: all but the size is 0. */
typedef struct {
    uint64_t size, device, inode;
    int64_t mtime_ns, ctime_ns;
} vv_file_ident;

static inline bool vv_file_ident_eq(const vv_file_ident *a, const vv_file_ident *b)
{
    return a->size == b->size && a->device == b->device && a->inode == b->inode && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

/*
 * Whether a change of the file from now on changes its identity too: the clock that times of files are taken from has
 * moved on since. Asked before the file is read, it tells whether what was read may be remembered under its identity.
 * False of what has no identity of its own.
 */
bool vv_file_ident_is_settled(const vv_file_ident *i);

/* An open file, for reading parts of it. A zeroed one with fd -1 is closed. */
typedef struct {
    int fd;
    bool owns_fd;
    const uint8_t *mem; /* the bytes themselves, where fd is -1 */
    uint64_t off;       /* where the file begins in fd */
    vv_file_ident ident;
    uint64_t *count; /* of the source: bytes read; may be NULL */
} vv_open_file;

/* Errors as vv_file_read. */
VV_MUST_CHECK vv_code vv_source_open_file(vv_source *s, const char *path, vv_open_file *ret, vv_error *err);
/* Reads exactly n bytes from off; CORRUPT named "Truncated" where the file is shorter. */
VV_MUST_CHECK vv_code vv_open_file_read(const vv_open_file *f, uint64_t off, void *dst, size_t n, vv_error *err);
void vv_open_file_close(vv_open_file *f); /* accepts a closed one; for VV_CLEANUP */
/* The identity alone, cheaply. Errors as vv_source_open_file. */
VV_MUST_CHECK vv_code vv_source_ident(vv_source *s, const char *path, vv_file_ident *ret, vv_error *err);
