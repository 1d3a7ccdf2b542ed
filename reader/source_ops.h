/* Inside of vv_source: the operations of one kind of source, and the table of paths that archives and memory share. */
#pragma once

#include "reader/source.h"

typedef struct {
    vv_code (*each)(vv_source *s, const char *dir, vv_source_name_fn *fn, void *state, vv_error *err);
    vv_code (*open)(vv_source *s, const char *path, vv_open_file *ret, vv_error *err);
    vv_code (*ident)(vv_source *s, const char *path, vv_file_ident *ret, vv_error *err);
    vv_code (*walk)(vv_source *s, vv_source_walk_fn *fn, void *state, vv_error *err);
    void (*close)(vv_source *s); /* frees all but s itself and its path */
} vv_source_ops;

/* Every kind begins with this. */
struct vv_source {
    const vv_source_ops *ops;
    char *path;
    int dirfd;
    bool live;
    struct vv_seg_ledger *ledger; /* or NULL */
    uint64_t bytes_read;          /* atomic */
};

/* path is what the user named; root_fd (taken on every path) is open on it. */
VV_MUST_CHECK vv_code vv_source_open_dir(vv_source **ret, const char *path, int root_fd, vv_error *err);
VV_MUST_CHECK vv_code vv_source_open_archive(vv_source **ret, const char *path, int file_fd, vv_error *err);

typedef enum { VV_NODE_DIR, VV_NODE_FILE, VV_NODE_SPECIAL, VV_NODE_OVERSIZE } vv_node_kind;

typedef struct {
    char *path; /* relative to the store root */
    vv_node_kind kind;
    uint32_t order; /* of entry: the last of equal paths counts */
    uint64_t off, size;
} vv_node;

/* A tree of paths, sorted once built. Directories need not be entered themselves. */
typedef struct {
    vv_node *nodes;
    size_t count, cap;
} vv_tree;

/* Takes path (malloc) on every path. */
VV_MUST_CHECK vv_code vv_tree_add(vv_tree *t, char *path, vv_node_kind kind, uint64_t off, uint64_t size,
                                  vv_error *err);
void vv_tree_sort(vv_tree *t);
const vv_node *vv_tree_find(const vv_tree *t, const char *path);
VV_MUST_CHECK vv_code vv_tree_each(const vv_tree *t, const char *dir, vv_source_name_fn *fn, void *state,
                                   vv_error *err);
/* The regular file of that path; NOTFOUND, NotRegularFile or FileTooLarge. */
VV_MUST_CHECK vv_code vv_tree_file(const vv_tree *t, const char *path, const vv_node **ret, vv_error *err);
/* All of its files. */
void vv_tree_walk(const vv_tree *t, vv_source_walk_fn *fn, void *state);
void vv_tree_done(vv_tree *t);
