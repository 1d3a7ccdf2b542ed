#include "config.h"

#include "views/invert.h"

#include <stdlib.h>

/* A context on its way up: where its chain of callers has come to, and what stands there just below. */
typedef struct {
    uint32_t context, at, below;
} item;

/* A row that may be made: the contexts items[lo..hi) came up to it. */
typedef struct {
    vv_u128 size;
    uint32_t lo, hi;
    uint32_t parent, kept; /* kept rows' numbers, or VV_NONE */
    uint32_t kind, depth;
} candidate;

/* A row that is made. */
typedef struct {
    vv_node node;
    vv_counters counters;
    vv_u128 call_child_ns;
} made;

typedef struct {
    const vv_tree *t;
    const vv_flame_part *part;
    const vv_function_grouping *g;
    const vv_flame_options *o;
    vv_u128 least;
    uint64_t steps;

    /* by context */
    uint32_t *group;
    uint8_t *once;
    vv_u128 *value, *call_child_ns;

    item *items, *moved;
    uint32_t *kinds; /* beside items */
    uint32_t item_count;

    /* by kind: what a row's callers are told apart by */
    uint32_t kind_count, *count, *distinct, distinct_count;
    vv_u128 *sum;

    candidate *candidates;
    uint32_t candidate_count, candidate_cap;
    uint32_t *heap, heap_count;
    made *rows;
    uint32_t row_count, row_cap;
} work;

/* Kinds: each group of functions, then undefined contexts, then each bucket of overflow; four edges of each. */
enum { EDGES = VV_EDGE_UNKNOWN + 1, OTHERS = 1 + VV_OVERFLOW_REASONS * EDGES };

static uint32_t kind_of(const work *w, uint32_t node, uint8_t edge)
{
    const vv_node *n = &w->t->nodes[node];
    uint32_t of = w->g->count;
    if (w->group[node] != VV_NONE)
        of = w->group[node];
    else if (n->flags & VV_NODE_OVERFLOW)
        of += 1u + n->reason * EDGES + n->edge;
    return of * EDGES + edge;
}

/* Grows an array of what `each` says to hold one more. */
static bool more_room(void **list, uint32_t *cap, uint32_t count, size_t each)
{
    if (count < *cap)
        return true;
    uint32_t wanted = *cap ? *cap * 2 : 256;
    void *bigger = realloc(*list, wanted * each);
    if (!bigger)
        return false;
    *list = bigger;
    *cap = wanted;
    return true;
}

/* Largest first; equals as they came, which is by parents and keys. */
static bool comes_before(const work *w, uint32_t a, uint32_t b)
{
    const candidate *x = &w->candidates[a], *y = &w->candidates[b];
    return x->size != y->size ? x->size > y->size : a < b;
}

static void heap_push(work *w, uint32_t c)
{
    uint32_t i = w->heap_count++;
    for (; i && comes_before(w, c, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = c;
}

static uint32_t heap_pop(work *w)
{
    uint32_t first = w->heap[0], last = w->heap[--w->heap_count], i = 0;
    for (;;) {
        uint32_t next = 2 * i + 1;
        if (next + 1 < w->heap_count && comes_before(w, w->heap[next + 1], w->heap[next]))
            next++;
        if (next >= w->heap_count || !comes_before(w, w->heap[next], last))
            break;
        w->heap[i] = w->heap[next];
        i = next;
    }
    w->heap[i] = last;
    return first;
}

static int compare_kinds(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Takes each item one caller up, and tells what row it comes to: VV_NONE where its chain has ended. */
static void climb(work *w, uint32_t lo, uint32_t hi, bool begin)
{
    for (uint32_t k = lo; k < hi; k++) {
        item *x = &w->items[k];
        uint32_t kind = VV_NONE;
        if (begin) {
            kind = kind_of(w, x->at, 0);
        } else if (x->at != VV_NONE) {
            uint32_t up = w->t->nodes[x->at].parent;
            up = up != VV_NONE && w->part->in[up] ? up : VV_NONE;
            if (up != VV_NONE)
                kind = kind_of(w, up, w->t->nodes[x->at].edge);
            x->below = x->at;
            x->at = up;
        }
        w->kinds[k] = kind;
        if (kind == VV_NONE)
            continue;
        if (w->count[kind]++ == 0)
            w->distinct[w->distinct_count++] = kind;
        w->sum[kind] = vv_sat128(w->sum[kind], w->value[x->context]);
    }
}

/*
 * Splits a range of items by the rows they come to, a candidate each; the ended come last. Candidates go into the heap
 * unless they are too small or too deep to stay.
 */
static bool expand(work *w, uint32_t lo, uint32_t hi, uint32_t parent, uint32_t depth)
{
    w->distinct_count = 0;
    w->steps += hi - lo;
    climb(w, lo, hi, parent == VV_NONE);
    qsort(w->distinct, w->distinct_count, sizeof *w->distinct, compare_kinds);
    uint32_t at = lo;
    for (uint32_t k = 0; k < w->distinct_count; k++) {
        uint32_t kind = w->distinct[k], n = w->count[kind];
        if (!more_room((void **)&w->candidates, &w->candidate_cap, w->candidate_count, sizeof *w->candidates))
            return false;
        w->candidates[w->candidate_count] = (candidate){w->sum[kind], at, at + n, parent, VV_NONE, kind, depth};
        if (depth < w->o->depth && w->sum[kind] >= w->least)
            heap_push(w, w->candidate_count);
        w->candidate_count++;
        w->count[kind] = at; /* where its next item goes */
        w->sum[kind] = 0;
        at += n;
    }
    for (uint32_t k = lo; k < hi; k++)
        w->moved[w->kinds[k] == VV_NONE ? at++ : w->count[w->kinds[k]]++] = w->items[k];
    memcpy(w->items + lo, w->moved + lo, (hi - lo) * sizeof *w->items);
    for (uint32_t k = 0; k < w->distinct_count; k++)
        w->count[w->distinct[k]] = 0;
    return true;
}

/* What a row of that kind is, before its numbers. */
static vv_node node_of_kind(const work *w, const candidate *c)
{
    uint32_t of = c->kind / EDGES;
    vv_node n = {.parent = c->parent, .function = VV_NONE, .edge = (uint8_t)(c->kind % EDGES)};
    if (of < w->g->count) {
        n.function = w->g->first[of];
    } else if (of == w->g->count) {
        n.flags = VV_NODE_UNDEFINED;
    } else {
        n.flags = VV_NODE_OVERFLOW;
        n.reason = (uint8_t)((of - w->g->count - 1) / EDGES);
        n.edge = (uint8_t)((of - w->g->count - 1) % EDGES);
    }
    return n;
}

/* Makes a row with the numbers of its items. Its line is that of the call, where all are of one. */
static bool keep(work *w, candidate *c)
{
    if (!more_room((void **)&w->rows, &w->row_cap, w->row_count, sizeof *w->rows))
        return false;
    made *row = &w->rows[w->row_count];
    *row = (made){.node = node_of_kind(w, c)};
    bool only_way = true;
    for (uint32_t k = c->lo; k < c->hi; k++) {
        const item *x = &w->items[k];
        const vv_node *own = &w->t->nodes[x->context], *at = &w->t->nodes[x->at];
        vv_counters counters = *own->counters;
        if (!w->once[x->context])
            counters.inclusive_ns = 0;
        vv_counters_add(&row->counters, &counters);
        row->node.self_ns = vv_sat128(row->node.self_ns, own->self_ns);
        row->call_child_ns = vv_sat128(row->call_child_ns, w->call_child_ns[x->context]);
        row->node.flags |= own->flags & (VV_NODE_OPEN | VV_NODE_TIMING_INCOMPLETE);
        row->node.flags |= at->flags & VV_NODE_ORPHAN;
        only_way &= (own->flags & VV_NODE_WAY) != 0;
        uint32_t line = x->below == VV_NONE ? 0 : w->t->nodes[x->below].line;
        row->node.line = k == c->lo || row->node.line == line ? line : 0;
    }
    if (only_way)
        row->node.flags |= VV_NODE_WAY;
    w->steps += c->hi - c->lo;
    c->kept = w->row_count++;
    return true;
}

/* Makes rows, the largest first, as many as may stay. */
static vv_code make_rows(work *w, vv_flame *f, vv_error *err)
{
    bool good = expand(w, 0, w->item_count, VV_NONE, 0);
    while (good && w->heap_count && w->row_count < w->o->max_nodes && w->steps < VV_INVERT_STEPS) {
        uint32_t at = heap_pop(w);
        good = keep(w, &w->candidates[at]);
        const candidate c = w->candidates[at];
        good = good && expand(w, c.lo, c.hi, c.kept, c.depth + 1);
    }
    f->truncated = w->heap_count > 0;
    return good ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for a flame graph");
}

static void add_to_sliver(const work *w, vv_sliver *s, uint32_t context)
{
    const vv_node *n = &w->t->nodes[context];
    s->calls += n->counters->started;
    s->errors += n->counters->error;
    s->cancelled += n->counters->cancelled;
    s->open += vv_counters_open(n->counters);
    if (w->once[context])
        s->inclusive_ns = vv_sat128(s->inclusive_ns, n->counters->inclusive_ns);
    s->self_ns = vv_sat128(s->self_ns, n->self_ns);
    s->await_ns = vv_sat128(s->await_ns, n->counters->await_ns);
    s->child_ns = vv_sat128(s->child_ns, n->counters->direct_child_ns);
    s->call_child_ns = vv_sat128(s->call_child_ns, w->call_child_ns[context]);
    s->flags |= n->flags & (VV_NODE_OPEN | VV_NODE_TIMING_INCOMPLETE);
}

/* A sliver a row, or the top, for the candidates below it that were not made. sliver_of has row_count + 1 items. */
static void fold_rest(const work *w, vv_flame *f, uint32_t *sliver_of)
{
    memset(sliver_of, 0xff, ((size_t)w->row_count + 1) * sizeof *sliver_of);
    for (uint32_t i = 0; i < w->candidate_count; i++) {
        const candidate *c = &w->candidates[i];
        if (c->kept != VV_NONE)
            continue;
        uint32_t *of = &sliver_of[c->parent == VV_NONE ? w->row_count : c->parent];
        if (*of == VV_NONE) {
            *of = (uint32_t)f->sliver_count;
            f->slivers[f->sliver_count++] = (vv_sliver){.flags = VV_NODE_SLIVER};
        }
        vv_sliver *s = &f->slivers[*of];
        s->nodes++;
        for (uint32_t k = c->lo; k < c->hi; k++)
            add_to_sliver(w, s, w->items[k].context);
    }
    for (size_t s = 0; s < f->sliver_count; s++) {
        f->folded.nodes += f->slivers[s].nodes;
        f->folded.calls += f->slivers[s].calls;
        f->folded.self_ns = vv_sat128(f->folded.self_ns, f->slivers[s].self_ns);
    }
}

/* The rows as a tree: made in their order of size, siblings are in the order of the answer. */
static vv_code fill_tree(const work *w, vv_derived *d, vv_error *err)
{
    uint32_t n = w->row_count, functions = w->t->function_count;
    vv_code rc = vv_tree_make(&d->tree, n, err);
    d->counters = malloc(((size_t)n + 1) * sizeof *d->counters);
    d->call_child_ns = malloc(((size_t)n + 1) * sizeof *d->call_child_ns);
    d->tree.functions = malloc(((size_t)functions + 1) * sizeof *d->tree.functions);
    if (rc == VV_OK && (!d->counters || !d->call_child_ns || !d->tree.functions))
        rc = vv_fail(err, VV_ERR_NOMEM, "no memory for a flame graph");
    if (rc != VV_OK)
        return rc;
    for (uint32_t i = 0; i < n; i++) {
        d->counters[i] = w->rows[i].counters;
        d->call_child_ns[i] = w->rows[i].call_child_ns;
        d->tree.nodes[i] = w->rows[i].node;
        d->tree.nodes[i].counters = &d->counters[i];
    }
    if (functions)
        memcpy(d->tree.functions, w->t->functions, functions * sizeof *d->tree.functions);
    d->tree.function_count = functions;
    d->tree.call_child_ns = d->call_child_ns;
    return vv_tree_link(&d->tree, err);
}

static void put_row(vv_flame *f, uint32_t parent, uint32_t node, uint32_t sliver)
{
    f->rows[f->row_count++] = (vv_flame_row){parent, node, sliver};
}

typedef struct {
    uint32_t node, row, next; /* next child */
} frame;

/* Parents first, each one's sliver after its children. */
static void write_rows(vv_flame *f, const vv_tree *t, const uint32_t *sliver_of, frame *stack)
{
    for (uint32_t k = 0; k < t->top_count; k++) {
        size_t depth = 0;
        stack[depth++] = (frame){t->tops[k], (uint32_t)f->row_count, t->child_first[t->tops[k]]};
        put_row(f, VV_NONE, t->tops[k], VV_NONE);
        while (depth) {
            frame *x = &stack[depth - 1];
            if (x->next < t->child_first[x->node + 1]) {
                uint32_t child = t->child[x->next++], parent = x->row;
                stack[depth++] = (frame){child, (uint32_t)f->row_count, t->child_first[child]};
                put_row(f, parent, child, VV_NONE);
                continue;
            }
            if (sliver_of[x->node] != VV_NONE)
                put_row(f, x->row, VV_NONE, sliver_of[x->node]);
            depth--;
        }
    }
    if (sliver_of[t->node_count] != VV_NONE)
        put_row(f, VV_NONE, VV_NONE, sliver_of[t->node_count]);
}

static vv_code finish(const work *w, vv_flame *f, vv_derived *d, vv_error *err)
{
    size_t n = (size_t)w->row_count + 1;
    uint32_t *sliver_of = malloc(n * sizeof *sliver_of);
    frame *stack = malloc(n * sizeof *stack);
    f->slivers = malloc(n * sizeof *f->slivers);
    f->rows = malloc(2 * n * sizeof *f->rows);
    vv_code rc = VV_OK;
    if (!sliver_of || !stack || !f->slivers || !f->rows)
        rc = vv_fail(err, VV_ERR_NOMEM, "no memory for a flame graph");
    if (rc == VV_OK)
        rc = fill_tree(w, d, err);
    if (rc == VV_OK) {
        fold_rest(w, f, sliver_of);
        write_rows(f, &d->tree, sliver_of, stack);
        vv_flame_shrink(f);
    }
    free(sliver_of);
    free(stack);
    return rc;
}

/* The contexts that stand at the top, and what each counts for. */
static void begin_items(work *w, uint32_t function)
{
    const vv_tree *sizes = w->t->sized_by ? w->t->sized_by : w->t;
    bool once = w->o->metric == VV_METRIC_INCLUSIVE || w->o->metric == VV_METRIC_AWAIT_SUBTREE;
    for (uint32_t i = 0; i < w->t->node_count; i++) {
        w->call_child_ns[i] = vv_node_call_children(w->t, i);
        w->value[i] = !once ? vv_node_value(&sizes->nodes[i], w->o->metric) : w->once[i] ? w->part->size[i] : 0;
        if (w->part->in[i] && (function == VV_NONE || w->group[i] == function))
            w->items[w->item_count++] = (item){i, i, VV_NONE};
    }
}

static vv_code begin(work *w, vv_error *err)
{
    size_t n = (size_t)w->t->node_count + 1, kinds = ((size_t)w->g->count + OTHERS) * EDGES;
    w->group = malloc(n * sizeof *w->group);
    w->once = malloc(n);
    w->value = malloc(n * sizeof *w->value);
    w->call_child_ns = malloc(n * sizeof *w->call_child_ns);
    w->items = malloc(n * sizeof *w->items);
    w->moved = malloc(n * sizeof *w->moved);
    w->kinds = malloc(n * sizeof *w->kinds);
    w->count = calloc(kinds, sizeof *w->count);
    w->distinct = malloc(kinds * sizeof *w->distinct);
    w->sum = calloc(kinds, sizeof *w->sum);
    w->heap = malloc(n * sizeof *w->heap); /* candidates share out the contexts */
    if (!w->group || !w->once || !w->value || !w->call_child_ns || !w->items || !w->moved || !w->kinds || !w->count
        || !w->distinct || !w->sum || !w->heap)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a flame graph");
    for (uint32_t i = 0; i < w->t->node_count; i++)
        w->group[i] = w->t->nodes[i].function == VV_NONE ? VV_NONE : w->g->of[w->t->nodes[i].function];
    return vv_tree_once(w->t, w->group, w->g->count, w->part->in, w->once, err);
}

/* Contexts without a function of their own are never one below the other: each counts. */
static void count_nameless(work *w)
{
    for (uint32_t i = 0; i < w->t->node_count; i++)
        if (w->group[i] == VV_NONE)
            w->once[i] = w->part->in[i];
}

static void work_done(work *w)
{
    void *const all[] = {w->group, w->once, w->value, w->call_child_ns, w->items, w->moved, w->kinds, w->count,
                         w->distinct, w->sum, w->candidates, w->heap, w->rows};
    for (size_t i = 0; i < VV_ARRAY_LEN(all); i++)
        free(all[i]);
}

/* Smallest size that is not below half a pixel. */
static vv_u128 half_pixel(vv_u128 whole, uint64_t width)
{
    return width && whole ? (whole - 1) / ((vv_u128)width * 2) + 1 : 0;
}

/* Rows that there can be: one for each context and each of its callers; no more than may stay. */
static size_t most_rows(const vv_tree *t, const vv_flame_options *o)
{
    uint32_t *depth = malloc(((size_t)t->node_count + 1) * sizeof *depth);
    uint64_t rows = depth ? 0 : o->max_nodes;
    for (uint32_t k = 0; k < t->node_count && rows < o->max_nodes; k++) {
        uint32_t i = t->order[k], up = t->nodes[i].parent;
        depth[i] = up == VV_NONE ? 1 : depth[up] + 1;
        rows += depth[i];
    }
    free(depth);
    return rows < o->max_nodes ? (size_t)rows : (size_t)o->max_nodes;
}

size_t vv_invert_most(const vv_tree *t, const vv_flame_options *o)
{
    const size_t node = 2 * sizeof(vv_u128) + 2 * sizeof(item) + 3 * sizeof(uint32_t) + sizeof(candidate) + 1;
    /*
     * Rows as they are made (an array that grows is moved, not copied, and has no pages where nothing stands yet), and
     * the tree and table that they become.
     */
    const size_t row = sizeof(made) + sizeof(vv_node) + sizeof(vv_counters) + sizeof(vv_u128)
        + sizeof(candidate) + 7 * sizeof(uint32_t) + sizeof(frame) + 2 * sizeof(vv_flame_row) + sizeof(vv_sliver);
    const size_t kinds = ((size_t)t->function_count + OTHERS) * EDGES * (sizeof(vv_u128) + 2 * sizeof(uint32_t));
    return t->node_count * node + (most_rows(t, o) + 1) * row + kinds;
}

vv_code vv_flame_invert(vv_flame *ret, vv_derived *ret_tree, const vv_tree *t, const vv_flame_part *part,
                        const vv_function_grouping *g, uint32_t function, const vv_flame_options *o, vv_error *err)
{
    work w = {.t = t, .part = part, .g = g, .o = o};
    vv_flame f = {.of_total = part->of_total, .of_filtered = part->of_filtered, .of_root = part->of_root,
                  .filtered = part->filtered, .root_found = part->root_found};
    *ret_tree = (vv_derived){0};
    vv_code rc = begin(&w, err);
    if (rc == VV_OK) {
        count_nameless(&w);
        begin_items(&w, function);
        if (function != VV_NONE) {
            f.of_root = 0;
            for (uint32_t k = 0; k < w.item_count; k++)
                f.of_root = vv_sat128(f.of_root, w.value[w.items[k].context]);
        }
        w.least = half_pixel(f.of_root, o->width);
        rc = make_rows(&w, &f, err);
    }
    if (rc == VV_OK)
        rc = finish(&w, &f, ret_tree, err);
    work_done(&w);
    if (rc != VV_OK) {
        vv_flame_done(&f);
        vv_derived_done(ret_tree);
        return rc;
    }
    *ret = f;
    return VV_OK;
}
