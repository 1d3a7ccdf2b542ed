#include "config.h"

#include "views/flame.h"

#include <stdlib.h>

/* What a build works on; arrays by node. */
typedef struct {
    const vv_tree *t;
    const vv_flame_options *o;
    vv_u128 *size, *need; /* a node's own size, and the largest one in its subtree */
    uint8_t *keep;
    uint32_t *depth;
    uint32_t *sorted;     /* as the tree's child list: each parent's children that stay, largest first */
    uint32_t *tops;       /* the top-level nodes of this answer, largest first */
    uint32_t top_count;
    uint32_t *stack, *preorder;
    uint32_t preorder_count;
    uint32_t *sliver_of;  /* sliver of a kept node, VV_NONE = it has none; the last entry is the top's */
} work;

static bool follows(unsigned edges, const vv_node *n)
{
    return n->edge < VV_EDGES && (edges & 1u << n->edge);
}

vv_u128 vv_node_value(const vv_node *n, vv_metric m)
{
    switch (m) {
    case VV_METRIC_INCLUSIVE:
        return n->counters->inclusive_ns;
    case VV_METRIC_SELF:
        return n->self_ns;
    case VV_METRIC_AWAIT:
    case VV_METRIC_AWAIT_SUBTREE:
        return n->counters->await_ns;
    case VV_METRIC_CALLS:
        return n->counters->started;
    case VV_METRIC_ERRORS:
        return n->counters->error;
    }
    return 0;
}

/*
 * Sizes, children before parents. Inclusive time is laid out as max(inclusive, self + await + Call children), since an
 * open call's own time lags behind; the await of a subtree follows Call edges; everything else is the sum over all
 * descendants.
 */
static void compute_sizes(const work *w, unsigned edges, vv_u128 *size)
{
    const vv_tree *t = w->t->sized_by ? w->t->sized_by : w->t;
    vv_metric m = w->o->metric;
    bool call_only = m == VV_METRIC_INCLUSIVE || m == VV_METRIC_AWAIT_SUBTREE;
    memset(size, 0, t->node_count * sizeof *size);
    for (uint32_t k = t->node_count; k-- > 0;) {
        uint32_t i = t->order[k];
        const vv_node *n = &t->nodes[i];
        vv_u128 own = vv_node_value(n, m), below = size[i]; /* its children have put theirs there */
        if (m == VV_METRIC_INCLUSIVE) {
            vv_u128 parts = vv_sat128(vv_sat128(n->self_ns, n->counters->await_ns), below);
            size[i] = parts > own ? parts : own;
        } else {
            size[i] = vv_sat128(own, below);
        }
        if (n->parent != VV_NONE && follows(edges, n) && (!call_only || n->edge == VV_EDGE_CALL))
            size[n->parent] = vv_sat128(size[n->parent], size[i]);
    }
}

static vv_u128 sum_sizes(const vv_u128 *size, const uint32_t *nodes, uint32_t n)
{
    vv_u128 sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum = vv_sat128(sum, size[nodes[i]]);
    return sum;
}

/* Counts what stays out because its edge, or one above it, is not followed. Uses keep as a mark. */
static void count_filtered(const work *w, vv_filtered *ret)
{
    const vv_tree *t = w->t;
    uint32_t count = w->o->edges == VV_FLAME_ALL_EDGES ? 0 : t->node_count;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t i = t->order[k];
        const vv_node *n = &t->nodes[i];
        w->keep[i] = n->parent == VV_NONE || (w->keep[n->parent] && follows(w->o->edges, n));
        if (w->keep[i])
            continue;
        ret->nodes++;
        ret->calls += n->counters->started;
        ret->self_ns = vv_sat128(ret->self_ns, n->self_ns);
    }
}

static vv_code find_root(work *w, vv_error *err)
{
    const vv_tree *t = w->t;
    w->top_count = 0;
    if (!w->o->root_is_path) {
        for (uint32_t i = 0; i < t->node_count; i++)
            if (t->nodes[i].key && memcmp(t->nodes[i].key, w->o->root, 32) == 0)
                w->tops[w->top_count++] = i;
        return VV_OK;
    }
    vv_path_id *paths = malloc(((size_t)t->node_count + 1) * sizeof *paths);
    bool *has = calloc((size_t)t->node_count + 1, sizeof *has);
    if (paths && has) {
        vv_tree_paths(t, paths, has);
        for (uint32_t i = 0; i < t->node_count; i++)
            if (has[i] && memcmp(paths[i].b, w->o->root, sizeof paths[i].b) == 0)
                w->tops[w->top_count++] = i;
    }
    vv_code rc = paths && has ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for path ids");
    free(paths);
    free(has);
    return rc;
}

/* Largest first; equals by key and edge; what has no key last, in the order of the tree. */
static int compare_nodes(const void *a, const void *b, void *cls)
{
    const work *w = cls;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (w->size[x] != w->size[y])
        return w->size[x] > w->size[y] ? -1 : 1;
    const uint8_t *kx = w->t->nodes[x].key, *ky = w->t->nodes[y].key;
    int c = kx && ky ? memcmp(kx, ky, 32) : 0;
    if (!kx != !ky)
        return kx ? -1 : 1;
    if (c)
        return c;
    uint8_t ex = w->t->nodes[x].edge, ey = w->t->nodes[y].edge;
    return ex != ey ? ex - ey : (x > y) - (x < y);
}

/* 0 where all stay, whatever they need. */
static void compute_need(work *w)
{
    const vv_tree *t = w->t;
    memset(w->need, 0, t->node_count * sizeof *w->need);
    if (!w->o->width && t->node_count <= w->o->max_nodes)
        return;
    for (uint32_t k = t->node_count; k-- > 0;) {
        uint32_t i = t->order[k];
        const vv_node *n = &t->nodes[i];
        if (w->size[i] > w->need[i])
            w->need[i] = w->size[i];
        if (n->parent != VV_NONE && follows(w->o->edges, n) && w->need[i] > w->need[n->parent])
            w->need[n->parent] = w->need[i];
    }
}

/* Smallest size that is not below half a pixel. */
static vv_u128 half_pixel(vv_u128 whole, uint64_t width)
{
    if (width == 0 || whole == 0)
        return 0;
    vv_u128 pixels = (vv_u128)width * 2;
    return (whole - 1) / pixels + 1;
}

static unsigned bit_length(vv_u128 v)
{
    uint64_t high = (uint64_t)(v >> 64), low = (uint64_t)v;
    return high ? 128 - (unsigned)__builtin_clzll(high) : low ? 64 - (unsigned)__builtin_clzll(low) : 0;
}

/*
 * Where the whole tree is asked for, and far more of it than may stay: the largest power of two that leaves more nodes
 * than that, or 0. What is smaller would be walked and sorted only to be dropped.
 */
static vv_u128 surely_dropped_below(const work *w)
{
    const vv_flame_options *o = w->o;
    uint64_t of_length[129] = {0}, n = 0;
    if (o->has_root || o->depth < w->t->node_count || o->edges != VV_FLAME_ALL_EDGES)
        return 0;
    for (uint32_t i = 0; i < w->t->node_count; i++)
        of_length[bit_length(w->need[i])]++;
    for (unsigned length = 128; length > 0; length--) {
        n += of_length[length];
        if (n > o->max_nodes)
            return (vv_u128)1 << (length - 1);
    }
    return 0;
}

static void sort_nodes(work *w, uint32_t *list, uint32_t n)
{
    enum { FEW = 12 };
    if (n > FEW) {
        qsort_r(list, n, sizeof *list, compare_nodes, w);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        uint32_t x = list[i], k = i;
        for (; k && compare_nodes(&list[k - 1], &x, w) > 0; k--)
            list[k] = list[k - 1];
        list[k] = x;
    }
}

/* The children of a node that stay, largest first, into its part of sorted; returns their number. */
static uint32_t sort_children(work *w, uint32_t i, vv_u128 least)
{
    const vv_tree *t = w->t;
    uint32_t *list = w->sorted + t->child_first[i], n = 0;
    if (w->depth[i] + 1 >= w->o->depth)
        return 0;
    bool all = w->o->edges == VV_FLAME_ALL_EDGES; /* no child has another */
    for (uint32_t c = t->child_first[i]; c < t->child_first[i + 1]; c++)
        if (w->need[t->child[c]] >= least && (all || follows(w->o->edges, &t->nodes[t->child[c]])))
            list[n++] = t->child[c];
    sort_nodes(w, list, n);
    return n;
}

/* Walks what stays, parents first and largest first; fills preorder and marks keep. */
static void select_nodes(work *w, vv_u128 least)
{
    const vv_tree *t = w->t;
    uint32_t top = 0;
    memset(w->keep, 0, t->node_count);
    w->preorder_count = 0;
    qsort_r(w->tops, w->top_count, sizeof *w->tops, compare_nodes, w);
    for (uint32_t k = w->top_count; k-- > 0;) {
        w->depth[w->tops[k]] = 0;
        if (w->need[w->tops[k]] >= least)
            w->stack[top++] = w->tops[k];
    }
    while (top) {
        uint32_t i = w->stack[--top];
        w->keep[i] = 1;
        w->preorder[w->preorder_count++] = i;
        for (uint32_t k = sort_children(w, i, least); k-- > 0;) {
            uint32_t child = w->sorted[t->child_first[i] + k];
            w->depth[child] = w->depth[i] + 1;
            w->stack[top++] = child;
        }
    }
}

/* Places of the walk: largest subtree first, and in its order: so a parent never comes after its child. */
static int compare_ranked(const void *a, const void *b, void *cls)
{
    const work *w = cls;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    vv_u128 need_x = w->need[w->preorder[x]], need_y = w->need[w->preorder[y]];
    if (need_x != need_y)
        return need_x > need_y ? -1 : 1;
    return (x > y) - (x < y);
}

/* stack, which the walk is done with, serves as the list. */
static void limit_nodes(work *w, vv_flame *f)
{
    uint32_t n = w->preorder_count, left = 0;
    if (n <= w->o->max_nodes)
        return;
    for (uint32_t k = 0; k < n; k++)
        w->stack[k] = k;
    qsort_r(w->stack, n, sizeof *w->stack, compare_ranked, w);
    for (uint32_t k = (uint32_t)w->o->max_nodes; k < n; k++)
        w->keep[w->preorder[w->stack[k]]] = 0;
    for (uint32_t k = 0; k < n; k++)
        if (w->keep[w->preorder[k]])
            w->preorder[left++] = w->preorder[k];
    w->preorder_count = left;
    f->truncated = true;
}

/* All of n but the time of its Call children, which comes with them. */
static void add_to_sliver(vv_sliver *s, const vv_node *n, bool inclusive)
{
    s->calls += n->counters->started;
    s->errors += n->counters->error;
    s->cancelled += n->counters->cancelled;
    s->open += vv_counters_open(n->counters);
    if (inclusive)
        s->inclusive_ns = vv_sat128(s->inclusive_ns, n->counters->inclusive_ns);
    s->self_ns = vv_sat128(s->self_ns, n->self_ns);
    s->await_ns = vv_sat128(s->await_ns, n->counters->await_ns);
    s->child_ns = vv_sat128(s->child_ns, n->counters->direct_child_ns);
    s->flags |= n->flags & (VV_NODE_OPEN | VV_NODE_TIMING_INCOMPLETE);
    s->nodes++;
}

/* The kept node (or node_count, the top) whose sliver takes what hangs below `owner`. */
static vv_sliver *sliver_for(work *w, vv_flame *f, uint32_t owner)
{
    if (w->sliver_of[owner] == VV_NONE) {
        w->sliver_of[owner] = (uint32_t)f->sliver_count;
        f->slivers[f->sliver_count++] = (vv_sliver){.flags = VV_NODE_SLIVER};
    }
    return &f->slivers[w->sliver_of[owner]];
}

/*
 * Folds all that is below the tops and was not kept. stack serves as the owner of each node: the nearest kept one
 * above, known when the node is met as the order has parents first. VV_NONE = not part of this answer.
 */
static void fold_rest(work *w, vv_flame *f)
{
    const vv_tree *t = w->t;
    uint32_t *owner = w->stack;
    memset(owner, 0xff, t->node_count * sizeof *owner);
    for (uint32_t k = 0; k < w->top_count; k++)
        owner[w->tops[k]] = t->node_count;
    for (uint32_t k = 0; k < t->node_count; k++) {
        uint32_t i = t->order[k];
        const vv_node *n = &t->nodes[i];
        bool top = owner[i] != VV_NONE;
        if (!top && n->parent != VV_NONE && owner[n->parent] != VV_NONE && follows(w->o->edges, n))
            owner[i] = w->keep[n->parent] ? n->parent : owner[n->parent];
        if (!t->call_child_ns && n->parent != VV_NONE && n->edge == VV_EDGE_CALL && owner[n->parent] != VV_NONE
            && !w->keep[n->parent]) {
            vv_sliver *s = sliver_for(w, f, owner[n->parent]);
            s->call_child_ns = vv_sat128(s->call_child_ns, n->counters->inclusive_ns);
        }
        if (owner[i] == VV_NONE || w->keep[i])
            continue;
        bool direct = top || w->keep[n->parent];
        vv_sliver *s = sliver_for(w, f, owner[i]);
        add_to_sliver(s, n, top || (direct && n->edge == VV_EDGE_CALL));
        if (t->call_child_ns)
            s->call_child_ns = vv_sat128(s->call_child_ns, t->call_child_ns[i]);
    }
    for (size_t s = 0; s < f->sliver_count; s++) {
        f->folded.nodes += f->slivers[s].nodes;
        f->folded.calls += f->slivers[s].calls;
        f->folded.self_ns = vv_sat128(f->folded.self_ns, f->slivers[s].self_ns);
    }
}

static void put_row(vv_flame *f, uint32_t parent, uint32_t node, uint32_t sliver)
{
    f->rows[f->row_count++] = (vv_flame_row){parent, node, sliver};
}

/*
 * Rows in preorder, each parent's sliver after its children. Walks the preorder list; the open chain of parents is
 * kept in stack, and the row of each node in sorted, which is not needed any more.
 */
static void write_rows(work *w, vv_flame *f)
{
    const vv_tree *t = w->t;
    uint32_t *chain = w->stack, *row_of = w->sorted, open = 0;
    for (uint32_t k = 0; k <= w->preorder_count; k++) {
        uint32_t i = k < w->preorder_count ? w->preorder[k] : VV_NONE;
        uint32_t level = i == VV_NONE ? 0 : w->depth[i];
        for (; open > level; open--) {
            uint32_t closing = chain[open - 1];
            if (w->sliver_of[closing] != VV_NONE)
                put_row(f, row_of[closing], VV_NONE, w->sliver_of[closing]);
        }
        if (i == VV_NONE)
            break;
        uint32_t parent = level ? row_of[chain[level - 1]] : VV_NONE;
        row_of[i] = (uint32_t)f->row_count;
        put_row(f, parent, i, VV_NONE);
        chain[open++] = i;
    }
    if (w->sliver_of[t->node_count] != VV_NONE)
        put_row(f, VV_NONE, VV_NONE, w->sliver_of[t->node_count]);
}

/* Are they in the order in which they are to be shown? */
static bool are_sorted(work *w, const uint32_t *list, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (compare_nodes(&list[i - 1], &list[i], w) > 0)
            return false;
    return true;
}

/*
 * Where all of a laid-out tree stays, and siblings lie as they are to be shown, which they do but for calls that are
 * open: writes the rows, which are the nodes. False: they are to be sorted.
 */
static bool write_as_laid_out(work *w, vv_flame *f)
{
    const vv_tree *t = w->t;
    const vv_flame_options *o = w->o;
    if (!t->laid_out || o->has_root || o->edges != VV_FLAME_ALL_EDGES || o->depth < t->node_count || o->width
        || o->max_nodes < t->node_count || !are_sorted(w, t->tops, t->top_count))
        return false;
    for (uint32_t i = 0; i < t->node_count; i++) {
        if (!are_sorted(w, t->child + t->child_first[i], t->child_first[i + 1] - t->child_first[i])) {
            f->row_count = 0;
            return false;
        }
        put_row(f, t->nodes[i].parent, i, VV_NONE);
    }
    return true;
}

static void work_done(work *w)
{
    void *const all[] = {w->size, w->need, w->keep, w->depth, w->sorted, w->tops, w->stack, w->preorder, w->sliver_of};
    for (size_t i = 0; i < VV_ARRAY_LEN(all); i++)
        free(all[i]);
}

static bool work_init(work *w)
{
    size_t n = (size_t)w->t->node_count + 1;
    w->size = malloc(n * sizeof *w->size);
    w->need = malloc(n * sizeof *w->need);
    w->keep = malloc(n * sizeof *w->keep);
    w->depth = malloc(n * sizeof *w->depth);
    w->sorted = malloc(n * sizeof *w->sorted);
    w->tops = malloc(n * sizeof *w->tops);
    w->stack = malloc(n * sizeof *w->stack);
    w->preorder = malloc(n * sizeof *w->preorder);
    w->sliver_of = malloc(n * sizeof *w->sliver_of);
    return w->size && w->need && w->keep && w->depth && w->sorted && w->tops && w->stack && w->preorder && w->sliver_of;
}

static vv_code choose_tops(work *w, vv_flame *f, vv_error *err)
{
    const vv_tree *t = w->t;
    vv_code rc = VV_OK;
    compute_sizes(w, VV_FLAME_ALL_EDGES, w->size);
    f->of_total = sum_sizes(w->size, t->tops, t->top_count);
    if (w->o->edges != VV_FLAME_ALL_EDGES)
        compute_sizes(w, w->o->edges, w->size);
    f->of_filtered = sum_sizes(w->size, t->tops, t->top_count);
    count_filtered(w, &f->filtered);
    if (w->o->has_root) {
        rc = find_root(w, err);
    } else {
        memcpy(w->tops, t->tops, t->top_count * sizeof *w->tops);
        w->top_count = t->top_count;
    }
    f->root_found = w->top_count > 0;
    f->of_root = sum_sizes(w->size, w->tops, w->top_count);
    return rc;
}

vv_code vv_flame_total(vv_u128 *ret, const vv_tree *t, vv_metric m, vv_error *err)
{
    vv_flame_options o = {.metric = m};
    work w = {.t = t, .o = &o};
    w.size = malloc(((size_t)t->node_count + 1) * sizeof *w.size);
    if (!w.size)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a flame graph");
    compute_sizes(&w, VV_FLAME_ALL_EDGES, w.size);
    *ret = sum_sizes(w.size, t->tops, t->top_count);
    free(w.size);
    return VV_OK;
}

vv_code vv_flame_part_make(vv_flame_part *ret, const vv_tree *t, const vv_flame_options *o, vv_error *err)
{
    work w = {.t = t, .o = o};
    vv_flame f = {0};
    vv_code rc = work_init(&w) ? choose_tops(&w, &f, err) : vv_fail(err, VV_ERR_NOMEM, "no memory for a flame graph");
    *ret = (vv_flame_part){0};
    if (rc == VV_OK) {
        memset(w.keep, 0, t->node_count);
        for (uint32_t k = 0; k < w.top_count; k++)
            w.keep[w.tops[k]] = 1;
        for (uint32_t k = 0; k < t->node_count; k++) {
            const vv_node *n = &t->nodes[t->order[k]];
            if (n->parent != VV_NONE && w.keep[n->parent] && follows(o->edges, n))
                w.keep[t->order[k]] = 1;
        }
        *ret = (vv_flame_part){w.keep, w.size, f.of_total, f.of_filtered, f.of_root, f.filtered, f.root_found};
        w.keep = NULL;
        w.size = NULL;
    }
    work_done(&w);
    return rc;
}

void vv_flame_part_done(vv_flame_part *p)
{
    free(p->in);
    free(p->size);
    *p = (vv_flame_part){0};
}

size_t vv_flame_most(uint32_t n, const vv_flame_options *o)
{
    const size_t sorting = sizeof(uint32_t), paths = sizeof(vv_path_id) + sizeof(bool);
    size_t node = 2 * sizeof(vv_u128) + sizeof(uint8_t) + 6 * sizeof(uint32_t) + sorting
        + (o->has_root && o->root_is_path ? paths : 0);
    size_t kept = n < o->max_nodes ? n : (size_t)o->max_nodes, slivers = kept < n ? kept + 1 : 0;
    return n * node + (2 * kept + 1) * sizeof(vv_flame_row) + slivers * sizeof(vv_sliver);
}

size_t vv_flame_bytes(const vv_flame *f)
{
    return f->row_count * sizeof *f->rows + f->sliver_count * sizeof *f->slivers;
}

void vv_flame_shrink(vv_flame *f)
{
    void *rows = realloc(f->rows, (f->row_count + 1) * sizeof *f->rows);
    void *slivers = realloc(f->slivers, (f->sliver_count + 1) * sizeof *f->slivers);
    f->rows = rows ? rows : f->rows;
    f->slivers = slivers ? slivers : f->slivers;
}

vv_code vv_flame_build(vv_flame *ret, const vv_tree *t, const vv_flame_options *o, vv_error *err)
{
    vv_flame f = {0};
    work w = {.t = t, .o = o};
    vv_code rc = VV_OK;
    /* At most a sliver beside each kept node, and one at the top. */
    size_t kept = t->node_count < o->max_nodes ? t->node_count : o->max_nodes;
    f.slivers = malloc((kept + 1) * sizeof *f.slivers);
    f.rows = malloc((2 * kept + 1) * sizeof *f.rows);
    if (!work_init(&w) || !f.slivers || !f.rows)
        rc = vv_fail(err, VV_ERR_NOMEM, "no memory for a flame graph");
    if (rc == VV_OK)
        rc = choose_tops(&w, &f, err);
    bool all = rc == VV_OK && write_as_laid_out(&w, &f);
    if (rc == VV_OK && !all) {
        compute_need(&w);
        vv_u128 least = half_pixel(f.of_root, o->width), dropped = surely_dropped_below(&w);
        select_nodes(&w, least > dropped ? least : dropped);
        limit_nodes(&w, &f);
    }
    if (rc == VV_OK && !all) {
        memset(w.sliver_of, 0xff, ((size_t)t->node_count + 1) * sizeof *w.sliver_of);
        if (w.preorder_count < t->node_count)
            fold_rest(&w, &f);
        write_rows(&w, &f);
    }
    if (rc == VV_OK) {
        vv_flame_shrink(&f);
        *ret = f;
    } else {
        vv_flame_done(&f);
    }
    work_done(&w);
    return rc;
}

void vv_flame_done(vv_flame *f)
{
    free(f->rows);
    free(f->slivers);
    *f = (vv_flame){0};
}
