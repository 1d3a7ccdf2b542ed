#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "reader/source_mem.h"
#include "reader/source_ops.h"

vv_code vv_tree_add(vv_tree *t, char *path, vv_node_kind kind, uint64_t off, uint64_t size, vv_error *err)
{
    if (path && t->count == VV_SOURCE_NAMES_MAX) {
        free(path);
        return vv_fail(err, VV_ERR_LIMIT, "more than %d files", VV_SOURCE_NAMES_MAX);
    }
    if (!path || !vv_grow(&t->nodes, &t->cap, t->count, sizeof *t->nodes)) {
        free(path);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the list of files");
    }
    t->nodes[t->count] = (vv_node){path, kind, (uint32_t)t->count, off, size};
    t->count++;
    return VV_OK;
}

static int by_path(const void *a, const void *b)
{
    const vv_node *x = a, *y = b;
    int c = strcmp(x->path, y->path);
    return c ? c : (x->order > y->order) - (x->order < y->order);
}

void vv_tree_sort(vv_tree *t)
{
    if (t->count == 0)
        return;
    qsort(t->nodes, t->count, sizeof *t->nodes, by_path);
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (i + 1 < t->count && strcmp(t->nodes[i].path, t->nodes[i + 1].path) == 0)
            free(t->nodes[i].path);
        else
            t->nodes[kept++] = t->nodes[i];
    }
    t->count = kept;
}

const vv_node *vv_tree_find(const vv_tree *t, const char *path)
{
    size_t lo = 0, hi = t->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(t->nodes[mid].path, path);
        if (c == 0)
            return &t->nodes[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* The first node below dir, count where dir has none; *ret_prefix is the length of "dir/". */
static size_t first_below(const vv_tree *t, const char *dir, size_t *ret_prefix)
{
    size_t n = strlen(dir);
    *ret_prefix = n + 1;
    size_t lo = 0, hi = t->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strncmp(t->nodes[mid].path, dir, n);
        if (c < 0 || (c == 0 && (unsigned char)t->nodes[mid].path[n] < '/'))
            lo = mid + 1;
        else
            hi = mid;
    }
    bool is_below = lo < t->count && strncmp(t->nodes[lo].path, dir, n) == 0 && t->nodes[lo].path[n] == '/';
    return is_below ? lo : t->count;
}

/*
 * Names of one child may stand apart ("b", "b-c", "b/d" sort in this order): adjacent repeats are left out here, others
 * by the caller.
 */
static vv_code tell_children(const vv_tree *t, const char *dir, vv_source_name_fn *fn, void *state, bool *any,
                             vv_error *err)
{
    size_t prefix, last_n = 0;
    const char *last = NULL;
    vv_code rc = VV_OK;
    for (size_t i = first_below(t, dir, &prefix); i < t->count && rc == VV_OK; i++) {
        if (strncmp(t->nodes[i].path, dir, prefix - 1) != 0 || t->nodes[i].path[prefix - 1] != '/')
            break;
        const char *name = t->nodes[i].path + prefix;
        size_t n = strcspn(name, "/");
        if (!last || n != last_n || memcmp(name, last, n) != 0)
            rc = fn(state, (vv_str){name, n}, err);
        *any = true;
        last = name;
        last_n = n;
    }
    return rc;
}

vv_code vv_tree_each(const vv_tree *t, const char *dir, vv_source_name_fn *fn, void *state, vv_error *err)
{
    const vv_node *self = vv_tree_find(t, dir);
    bool any = self != NULL;
    if (self && self->kind != VV_NODE_DIR)
        return vv_fail_decode(err, "NotDirectory", 0, "%s is not a directory", dir);
    vv_code rc = tell_children(t, dir, fn, state, &any, err);
    return rc == VV_OK && !any ? vv_fail(err, VV_ERR_NOTFOUND, "no directory %s", dir) : rc;
}

vv_code vv_tree_file(const vv_tree *t, const char *path, const vv_node **ret, vv_error *err)
{
    const vv_node *node = vv_tree_find(t, path);
    size_t prefix;
    if (!node && first_below(t, path, &prefix) == t->count)
        return vv_fail(err, VV_ERR_NOTFOUND, "no file %s", path);
    if (node && node->kind == VV_NODE_OVERSIZE) {
        vv_fail(err, VV_ERR_LIMIT, "%s has %llu bytes", path, (unsigned long long)node->size);
        if (err)
            err->name = "FileTooLarge";
        return VV_ERR_LIMIT;
    }
    if (!node || node->kind != VV_NODE_FILE)
        return vv_fail_decode(err, "NotRegularFile", 0, "%s is not a regular file", path);
    *ret = node;
    return VV_OK;
}

void vv_tree_walk(const vv_tree *t, vv_source_walk_fn *fn, void *state)
{
    for (size_t i = 0; i < t->count; i++) {
        const vv_node *n = &t->nodes[i];
        const vv_source_entry e = {n->path, n->kind == VV_NODE_FILE || n->kind == VV_NODE_OVERSIZE, n->size};
        if (n->kind != VV_NODE_DIR)
            fn(state, &e);
    }
}

void vv_tree_done(vv_tree *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->nodes[i].path);
    free(t->nodes);
    *t = (vv_tree){0};
}

typedef struct {
    vv_source base;
    vv_tree tree;
    const uint8_t **bytes; /* of each file, by the order it was given in */
} mem_source;

static vv_code mem_each(vv_source *s, const char *dir, vv_source_name_fn *fn, void *state, vv_error *err)
{
    return vv_tree_each(&((mem_source *)s)->tree, dir, fn, state, err);
}

static vv_code mem_open(vv_source *s, const char *path, vv_open_file *ret, vv_error *err)
{
    const mem_source *m = (mem_source *)s;
    const vv_node *node = NULL;
    vv_code rc = vv_tree_file(&m->tree, path, &node, err);
    if (rc == VV_OK)
        *ret = (vv_open_file){.fd = -1, .mem = m->bytes[node->off], .ident = {.size = node->size}};
    return rc;
}

static vv_code mem_ident(vv_source *s, const char *path, vv_file_ident *ret, vv_error *err)
{
    const vv_node *node = NULL;
    vv_code rc = vv_tree_file(&((mem_source *)s)->tree, path, &node, err);
    if (rc == VV_OK)
        *ret = (vv_file_ident){.size = node->size};
    return rc;
}

static vv_code mem_walk(vv_source *s, vv_source_walk_fn *fn, void *state, vv_error *err)
{
    (void)err;
    vv_tree_walk(&((mem_source *)s)->tree, fn, state);
    return VV_OK;
}

static void mem_close(vv_source *s)
{
    mem_source *m = (mem_source *)s;
    vv_tree_done(&m->tree);
    free(m->bytes);
}

static const vv_source_ops mem_ops = {mem_each, mem_open, mem_ident, mem_walk, mem_close};

vv_code vv_source_open_mem(vv_source **ret, const vv_mem_file *files, size_t count, vv_error *err)
{
    mem_source *m = calloc(1, sizeof *m);
    if (!m)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a source");
    m->base = (vv_source){.ops = &mem_ops, .path = strdup("memory"), .dirfd = -1};
    m->bytes = calloc(count + 1, sizeof *m->bytes);
    vv_code rc = m->bytes && m->base.path ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for a source");
    for (size_t i = 0; i < count && rc == VV_OK; i++) {
        m->bytes[i] = files[i].p;
        rc = vv_tree_add(&m->tree, strdup(files[i].path), VV_NODE_FILE, i, files[i].n, err);
    }
    if (rc != VV_OK) {
        vv_source_close(&m->base);
        return rc;
    }
    vv_tree_sort(&m->tree);
    *ret = &m->base;
    return VV_OK;
}
