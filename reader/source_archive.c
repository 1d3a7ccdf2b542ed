#include "config.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "reader/source_ops.h"

/* The spool's size, on disk and in memory, and the largest file taken from an archive; a larger one is only named. */
#define SPOOL_MAX ((uint64_t)8 << 30)
#define SPOOL_MEMORY_MAX ((uint64_t)1 << 30)
#define FILE_MAX ((uint64_t)UINT32_MAX)

/* A store may lie anywhere in an archive; the paths below each place that looks like one are gathered apart. */
typedef struct {
    char *prefix; /* "", or ends in '/' */
    unsigned depth;
    bool has_streams;
    vv_tree tree;
} store_place;

enum { PLACES_MAX = 256, LINK_STEPS_MAX = 100000000 };

typedef struct {
    vv_source base;
    vv_tree tree;
    int spool_fd;
} archive_source;

typedef struct {
    const char *name; /* of the archive, for messages */
    struct archive *a;
    int spool_fd;
    uint64_t spooled, spool_max;
    store_place places[PLACES_MAX];
    size_t place_count;
    size_t link_steps;
} indexer;

static vv_code archive_each(vv_source *s, const char *dir, vv_source_name_fn *fn, void *state, vv_error *err)
{
    return vv_tree_each(&((archive_source *)s)->tree, dir, fn, state, err);
}

static vv_code archive_open(vv_source *s, const char *path, vv_open_file *ret, vv_error *err)
{
    const archive_source *a = (archive_source *)s;
    const vv_node *node = NULL;
    vv_code rc = vv_tree_file(&a->tree, path, &node, err);
    if (rc == VV_OK)
        *ret = (vv_open_file){.fd = a->spool_fd, .off = node->off, .ident = {.size = node->size}};
    return rc;
}

static vv_code archive_ident(vv_source *s, const char *path, vv_file_ident *ret, vv_error *err)
{
    const vv_node *node = NULL;
    vv_code rc = vv_tree_file(&((archive_source *)s)->tree, path, &node, err);
    if (rc == VV_OK)
        *ret = (vv_file_ident){.size = node->size};
    return rc;
}

static vv_code archive_walk(vv_source *s, vv_source_walk_fn *fn, void *state, vv_error *err)
{
    (void)err;
    vv_tree_walk(&((archive_source *)s)->tree, fn, state);
    return VV_OK;
}

static void archive_close(vv_source *s)
{
    archive_source *a = (archive_source *)s;
    vv_tree_done(&a->tree);
    vv_close(&a->spool_fd);
}

static const vv_source_ops archive_ops = {archive_each, archive_open, archive_ident, archive_walk, archive_close};

static int open_spool_in(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    char path[4096];
    if (fd < 0 && snprintf(path, sizeof path, "%s/varve-XXXXXX", dir) < (int)sizeof path) {
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0)
            unlink(path);
    }
    return fd;
}

/* In $TMPDIR or a usual place; where nothing is writable, in memory. */
static vv_code open_spool(indexer *x, vv_error *err)
{
    const char *const dirs[] = {getenv("TMPDIR"), "/tmp", "/var/tmp"};
    x->spool_max = SPOOL_MAX;
    for (size_t i = 0; i < VV_ARRAY_LEN(dirs) && x->spool_fd < 0; i++)
        if (dirs[i] && *dirs[i])
            x->spool_fd = open_spool_in(dirs[i]);
    if (x->spool_fd >= 0)
        return VV_OK;
    x->spool_max = SPOOL_MEMORY_MAX;
    x->spool_fd = memfd_create("varve", MFD_CLOEXEC);
    return x->spool_fd >= 0 ? VV_OK : vv_fail_os(err, errno, "make a temporary file for %s", x->name);
}

/* path without "." parts and empty ones, or NULL where it has ".." or nothing is left (or no memory). */
static char *clean_path(const char *path)
{
    size_t n = strlen(path), len = 0;
    char *out = malloc(n + 1);
    while (out && *path) {
        size_t k = strcspn(path, "/");
        if (k == 2 && path[0] == '.' && path[1] == '.') {
            free(out);
            return NULL;
        }
        if (k && !(k == 1 && path[0] == '.')) {
            if (len)
                out[len++] = '/';
            memcpy(out + len, path, k);
            len += k;
        }
        path += k + (path[k] == '/');
    }
    if (!out || len == 0) {
        free(out);
        return NULL;
    }
    out[len] = 0;
    return out;
}

static bool part_is(const char *p, size_t n, const char *name)
{
    return n == strlen(name) && memcmp(p, name, n) == 0;
}

/*
 * Where the store root ends in path: after the last part called profiles-v1, else before the first part called streams
 * or cas. False where the path belongs to no store.
 */
static bool split_root(const char *path, size_t *ret_prefix, unsigned *ret_depth)
{
    bool found = false, by_name = false;
    unsigned depth = 0;
    for (const char *p = path; *p; depth++) {
        size_t n = strcspn(p, "/");
        if (part_is(p, n, "profiles-v1")) {
            *ret_prefix = (size_t)(p - path) + n + (p[n] == '/');
            *ret_depth = depth + 1;
            found = by_name = true;
        } else if (!found && !by_name && (part_is(p, n, "streams") || part_is(p, n, "cas"))) {
            *ret_prefix = (size_t)(p - path);
            *ret_depth = depth;
            found = true;
        }
        p += n + (p[n] == '/');
    }
    return found;
}

static store_place *place_of(indexer *x, const char *path, size_t prefix, unsigned depth)
{
    for (size_t i = 0; i < x->place_count; i++)
        if (strlen(x->places[i].prefix) == prefix && memcmp(x->places[i].prefix, path, prefix) == 0)
            return &x->places[i];
    if (x->place_count == PLACES_MAX)
        return NULL;
    char *copy = strndup(path, prefix);
    if (!copy)
        return NULL;
    x->places[x->place_count] = (store_place){.prefix = copy, .depth = depth};
    return &x->places[x->place_count++];
}

static vv_code archive_fault(const indexer *x, vv_error *err)
{
    const char *text = archive_error_string(x->a);
    return vv_fail(err, VV_ERR_CORRUPT, "the archive %s is damaged: %s", x->name, text ? text : "it is cut short");
}

/* Copies the entry's content to the end of the spool. Holes of a sparse file stay holes. */
static vv_code spool_entry(indexer *x, uint64_t *ret_size, vv_error *err)
{
    uint64_t end = 0;
    for (;;) {
        const void *block;
        size_t n;
        la_int64_t off;
        int r = archive_read_data_block(x->a, &block, &n, &off);
        if (r == ARCHIVE_EOF)
            break;
        if (r == ARCHIVE_RETRY)
            continue;
        if (r < ARCHIVE_WARN)
            return archive_fault(x, err);
        if (off < 0 || (uint64_t)off > FILE_MAX || n > FILE_MAX - (uint64_t)off ||
            (uint64_t)off + n > x->spool_max - x->spooled)
            return vv_fail(err, VV_ERR_LIMIT, "the archive %s holds more than %llu bytes of a store", x->name,
                           (unsigned long long)x->spool_max);
        for (size_t at = 0; at < n;) {
            ssize_t k = pwrite(x->spool_fd, (const char *)block + at, n - at, (off_t)(x->spooled + (uint64_t)off + at));
            if (k < 0 && errno == EINTR)
                continue;
            if (k < 0)
                return vv_fail_os(err, errno, "write the temporary copy of %s", x->name);
            at += (size_t)k;
        }
        if ((uint64_t)off + n > end)
            end = (uint64_t)off + n;
    }
    *ret_size = end;
    return VV_OK;
}

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == 0);
}

static vv_code add_regular(indexer *x, store_place *place, const char *rel, struct archive_entry *e, vv_error *err)
{
    uint64_t size = archive_entry_size_is_set(e) ? (uint64_t)archive_entry_size(e) : 0;
    if (size > FILE_MAX)
        return vv_tree_add(&place->tree, strdup(rel), VV_NODE_OVERSIZE, 0, size, err);
    uint64_t got = 0, off = x->spooled;
    vv_code rc = spool_entry(x, &got, err);
    if (rc != VV_OK)
        return rc;
    if (got < size)
        got = size; /* a sparse file that ends in a hole */
    if (got > x->spool_max - x->spooled || ftruncate(x->spool_fd, (off_t)(x->spooled + got)) < 0)
        return vv_fail(err, VV_ERR_LIMIT, "the archive %s does not fit the temporary file", x->name);
    x->spooled += got;
    return vv_tree_add(&place->tree, strdup(rel), VV_NODE_FILE, off, got, err);
}

/* A hard link names the bytes of an earlier entry. The search back is bounded over all links of an archive. */
static vv_code add_link(indexer *x, store_place *place, const char *rel, const char *target, vv_error *err)
{
    size_t prefix = strlen(place->prefix);
    char *clean = clean_path(target);
    vv_node found = {.kind = VV_NODE_SPECIAL};
    if (clean && strncmp(clean, place->prefix, prefix) == 0)
        for (size_t i = place->tree.count; i-- > 0 && x->link_steps < LINK_STEPS_MAX; x->link_steps++)
            if (strcmp(place->tree.nodes[i].path, clean + prefix) == 0) {
                found = place->tree.nodes[i];
                break;
            }
    free(clean);
    return vv_tree_add(&place->tree, strdup(rel), found.kind, found.off, found.size, err);
}

static vv_code add_entry(indexer *x, struct archive_entry *e, const char *path, vv_error *err)
{
    size_t prefix = 0;
    unsigned depth = 0;
    if (!split_root(path, &prefix, &depth))
        return VV_OK;
    store_place *place = place_of(x, path, prefix, depth);
    const char *rel = path + prefix;
    bool in_streams = is_below(rel, "streams");
    if (!place || (!in_streams && !is_below(rel, "cas")))
        return VV_OK;
    place->has_streams |= in_streams;
    if (archive_entry_hardlink(e))
        return add_link(x, place, rel, archive_entry_hardlink(e), err);
    if (archive_entry_filetype(e) == AE_IFREG)
        return add_regular(x, place, rel, e, err);
    vv_node_kind kind = archive_entry_filetype(e) == AE_IFDIR ? VV_NODE_DIR : VV_NODE_SPECIAL;
    return vv_tree_add(&place->tree, strdup(rel), kind, 0, 0, err);
}

/*
 * A tar ends in blocks of zeros. One that stops before them, behind a whole member, would pass for a store that lacks
 * whatever came later.
 */
static bool lacks_its_end(struct archive *a)
{
    bool is_tar = (archive_format(a) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    return is_tar && archive_filter_bytes(a, 0) <= archive_read_header_position(a);
}

static vv_code index_entries(indexer *x, vv_error *err)
{
    for (uint64_t n = 0;; n++) {
        struct archive_entry *e;
        int r = archive_read_next_header(x->a, &e);
        if (r == ARCHIVE_EOF && lacks_its_end(x->a))
            return vv_fail(err, VV_ERR_CORRUPT, "the archive %s is damaged: it is cut short", x->name);
        if (r == ARCHIVE_EOF)
            return VV_OK;
        if (r == ARCHIVE_RETRY)
            continue;
        if (r < ARCHIVE_WARN && n == 0)
            return vv_fail(err, VV_ERR_ARG, "%s is neither a directory nor an archive of a store", x->name);
        if (r < ARCHIVE_WARN)
            return archive_fault(x, err);
        const char *name = archive_entry_pathname(e);
        if (!name)
            name = archive_entry_pathname_utf8(e);
        char *path = name ? clean_path(name) : NULL;
        vv_code rc = path ? add_entry(x, e, path, err) : VV_OK;
        free(path);
        if (rc != VV_OK)
            return rc;
    }
}

/* The place with streams that lies highest; the first by name of equals. */
static store_place *best_place(indexer *x)
{
    store_place *best = NULL;
    for (size_t i = 0; i < x->place_count; i++) {
        store_place *p = &x->places[i];
        if (!best || p->has_streams > best->has_streams ||
            (p->has_streams == best->has_streams &&
             (p->depth < best->depth || (p->depth == best->depth && strcmp(p->prefix, best->prefix) < 0))))
            best = p;
    }
    return best;
}

static vv_code index_archive(indexer *x, int fd, vv_tree *ret, vv_error *err)
{
    archive_read_support_filter_gzip(x->a);
    archive_read_support_filter_zstd(x->a);
    archive_read_support_format_tar(x->a);
    archive_read_support_format_zip(x->a);
    if (archive_read_open_fd(x->a, fd, 256 << 10) != ARCHIVE_OK)
        return vv_fail(err, VV_ERR_ARG, "%s is neither a directory nor an archive of a store", x->name);
    vv_code rc = index_entries(x, err);
    if (rc != VV_OK)
        return rc;
    store_place *best = best_place(x);
    if (!best)
        return vv_fail(err, VV_ERR_ARG, "the archive %s holds no store", x->name);
    *ret = best->tree;
    best->tree = (vv_tree){0};
    vv_tree_sort(ret);
    return VV_OK;
}

static void indexer_done(indexer *x)
{
    for (size_t i = 0; i < x->place_count; i++) {
        free(x->places[i].prefix);
        vv_tree_done(&x->places[i].tree);
    }
    if (x->a)
        archive_read_free(x->a);
    vv_close(&x->spool_fd);
    free(x);
}

vv_code vv_source_open_archive(vv_source **ret, const char *path, int file_fd, vv_error *err)
{
    VV_CLEANUP(vv_close) int fd = file_fd;
    archive_source *s = calloc(1, sizeof *s);
    indexer *x = calloc(1, sizeof *x);
    char *name = strdup(path);
    if (!s || !x || !name) {
        free(s);
        free(x);
        free(name);
        return vv_fail(err, VV_ERR_NOMEM, "no memory to open %s", path);
    }
    *x = (indexer){.name = path, .a = archive_read_new(), .spool_fd = -1};
    vv_code rc = x->a ? open_spool(x, err) : vv_fail(err, VV_ERR_NOMEM, "no memory to open %s", path);
    vv_tree tree = {0};
    if (rc == VV_OK)
        rc = index_archive(x, fd, &tree, err);
    if (rc != VV_OK) {
        indexer_done(x);
        free(s);
        free(name);
        return rc;
    }
    *s = (archive_source){
        .base = {.ops = &archive_ops, .path = name, .dirfd = -1}, .tree = tree, .spool_fd = x->spool_fd};
    x->spool_fd = -1;
    indexer_done(x);
    *ret = &s->base;
    return VV_OK;
}
