#include "config.h"

#include "views/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sha256.h"

static const char *const edge_names[] = {"root", "call", "spawn", "unknown"};

const char *vv_node_edge_name(uint8_t edge)
{
    return edge_names[edge <= VV_EDGE_UNKNOWN ? edge : VV_EDGE_UNKNOWN];
}

__int128 vv_counters_open(const vv_counters *c)
{
    return (__int128)c->started - c->ok - c->error - c->cancelled - c->exited;
}

vv_str vv_function_ref_name(const vv_function_ref *f)
{
    return f->def ? f->def->fqn : (vv_str){NULL, 0};
}

static void *array(size_t n, size_t each)
{
    return calloc(n ? n : 1, each);
}

vv_code vv_tree_make(vv_tree *ret, uint32_t node_count, vv_error *err)
{
    size_t n = node_count;
    *ret = (vv_tree){.node_count = node_count};
    ret->nodes = array(n, sizeof *ret->nodes);
    ret->order = array(n, sizeof *ret->order);
    ret->child_first = array(n + 1, sizeof *ret->child_first);
    ret->child = array(n, sizeof *ret->child);
    ret->tops = array(n, sizeof *ret->tops);
    if (!ret->nodes || !ret->order || !ret->child_first || !ret->child || !ret->tops)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for %zu contexts", n);
    return VV_OK;
}

void vv_tree_clear(vv_tree *t)
{
    free(t->nodes);
    free(t->order);
    free(t->child_first);
    free(t->child);
    free(t->tops);
    free(t->functions);
    *t = (vv_tree){0};
}

size_t vv_tree_bytes(const vv_tree *t)
{
    return t->node_count * (sizeof(vv_node) + 4 * sizeof(uint32_t)) + t->function_count * sizeof(vv_function_ref);
}

static void list_children(vv_tree *t)
{
    uint32_t n = t->node_count, *first = t->child_first;
    memset(first, 0, ((size_t)n + 1) * sizeof *first);
    for (uint32_t i = 0; i < n; i++)
        if (t->nodes[i].parent != VV_NONE)
            first[t->nodes[i].parent + 1]++;
    for (uint32_t i = 0; i < n; i++)
        first[i + 1] += first[i];
    /* Filling moves each start to its end, that is to the next one's start; the shift back follows. */
    for (uint32_t i = 0; i < n; i++)
        if (t->nodes[i].parent != VV_NONE)
            t->child[first[t->nodes[i].parent]++] = i;
    memmove(first + 1, first, n * sizeof *first);
    first[0] = 0;
}

/* Appends what hangs below order[from..]; returns the new length. */
static uint32_t visit(vv_tree *t, uint8_t *seen, uint32_t from, uint32_t len)
{
    for (; from < len; from++) {
        uint32_t i = t->order[from];
        for (uint32_t k = t->child_first[i]; k < t->child_first[i + 1]; k++)
            if (!seen[t->child[k]]) {
                seen[t->child[k]] = 1;
                t->order[len++] = t->child[k];
            }
    }
    return len;
}

/* Orders parents before children; a node that no top reaches is in a cycle, which is cut above it. */
static bool order_nodes(vv_tree *t, uint8_t *seen)
{
    uint32_t len = 0;
    bool cut = false;
    for (uint32_t i = 0; i < t->node_count; i++)
        if (t->nodes[i].parent == VV_NONE) {
            seen[i] = 1;
            t->order[len++] = i;
        }
    len = visit(t, seen, 0, len);
    for (uint32_t i = 0; i < t->node_count && len < t->node_count; i++) {
        if (seen[i])
            continue;
        cut = true;
        t->nodes[i].parent = VV_NONE;
        t->nodes[i].flags |= VV_NODE_ORPHAN;
        seen[i] = 1;
        t->order[len] = i;
        len = visit(t, seen, len, len + 1);
    }
    return cut;
}

static void list_tops(vv_tree *t)
{
    t->top_count = 0;
    for (uint32_t i = 0; i < t->node_count; i++)
        if (t->nodes[i].parent == VV_NONE)
            t->tops[t->top_count++] = i;
}

vv_code vv_tree_link(vv_tree *t, vv_error *err)
{
    uint8_t *seen = array(t->node_count, 1);
    if (!seen)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for %" PRIu32 " contexts", t->node_count);
    list_children(t);
    if (order_nodes(t, seen))
        list_children(t);
    list_tops(t);
    free(seen);
    return VV_OK;
}

/* A node among those that have the same parent. */
typedef struct {
    vv_u128 size;
    const uint8_t *key;
    uint32_t node;
} sibling;
_Static_assert(sizeof(vv_node) + sizeof(sibling) <= VV_TREE_LAY_OUT_NODE, "what a sort takes");

static int compare_siblings(const void *a, const void *b)
{
    const sibling *x = a, *y = b;
    if (!x->key != !y->key)
        return x->key ? -1 : 1;
    if (x->key && x->size != y->size)
        return x->size > y->size ? -1 : 1;
    int c = x->key ? memcmp(x->key, y->key, 32) : 0;
    return c ? c : (x->node > y->node) - (x->node < y->node);
}

/* Most are few, and a call for each comparison is most of what sorting them costs. */
static void sort_siblings(const vv_tree *t, sibling *room, uint32_t *list, uint32_t n)
{
    enum { FEW = 12 };
    for (uint32_t i = 0; i < n; i++) {
        const vv_node *node = &t->nodes[list[i]];
        sibling x = {node->counters->inclusive_ns, node->key, list[i]};
        uint32_t at = i;
        for (; n <= FEW && at && compare_siblings(&room[at - 1], &x) > 0; at--)
            room[at] = room[at - 1];
        room[at] = x;
    }
    if (n > FEW)
        qsort(room, n, sizeof *room, compare_siblings);
    for (uint32_t i = 0; i < n; i++)
        list[i] = room[i].node;
}

/* Fills order with the walk; stack has room for all nodes. */
static void walk(vv_tree *t, uint32_t *stack)
{
    uint32_t top = 0, len = 0;
    for (uint32_t k = t->top_count; k-- > 0;)
        stack[top++] = t->tops[k];
    while (top) {
        uint32_t i = stack[--top];
        t->order[len++] = i;
        for (uint32_t k = t->child_first[i + 1]; k-- > t->child_first[i];)
            stack[top++] = t->child[k];
    }
}

/* Puts each node where the order has it. at: by node, where that is. */
static void move_nodes(vv_tree *t, vv_node *nodes, uint32_t *at)
{
    for (uint32_t k = 0; k < t->node_count; k++)
        at[t->order[k]] = k;
    for (uint32_t k = 0; k < t->node_count; k++) {
        nodes[k] = t->nodes[t->order[k]];
        if (nodes[k].parent != VV_NONE)
            nodes[k].parent = at[nodes[k].parent];
        t->order[k] = k;
    }
    free(t->nodes);
    t->nodes = nodes;
}

vv_code vv_tree_lay_out(vv_tree *t, uint32_t *at, vv_error *err)
{
    size_t n = t->node_count;
    vv_node *nodes = array(n, sizeof *nodes);
    sibling *room = array(n, sizeof *room);
    uint32_t *moved = at ? at : array(n, sizeof *moved);
    vv_code rc = nodes && room && moved ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for %zu contexts", n);
    if (rc == VV_OK) {
        sort_siblings(t, room, t->tops, t->top_count);
        for (uint32_t i = 0; i < t->node_count; i++)
            sort_siblings(t, room, t->child + t->child_first[i], t->child_first[i + 1] - t->child_first[i]);
        walk(t, moved);
        move_nodes(t, nodes, moved);
        nodes = NULL;
        list_children(t);
        list_tops(t);
        t->laid_out = true;
    }
    free(nodes);
    free(room);
    if (moved != at)
        free(moved);
    return rc;
}

vv_u128 vv_node_call_children(const vv_tree *t, uint32_t node)
{
    vv_u128 calls = 0;
    if (t->call_child_ns)
        return t->call_child_ns[node];
    for (uint32_t c = t->child_first[node]; c < t->child_first[node + 1]; c++) {
        const vv_node *child = &t->nodes[t->child[c]];
        if (child->edge == VV_EDGE_CALL)
            calls = vv_sat128(calls, child->counters->inclusive_ns);
    }
    return calls;
}

void vv_tree_paths(const vv_tree *t, vv_path_id *paths, bool *has)
{
    for (uint32_t k = 0; k < t->node_count; k++) {
        uint32_t i = t->order[k];
        const vv_node *n = &t->nodes[i];
        has[i] = !(n->flags & (VV_NODE_UNDEFINED | VV_NODE_OVERFLOW | VV_NODE_ORPHAN))
            && n->function != VV_NONE && (n->parent == VV_NONE || has[n->parent]);
        if (!has[i])
            continue;
        char scratch[12];
        vv_str name;
        const vv_function_ref *f = &t->functions[n->function];
        vv_name_kind kind = vv_function_name_key(f->def, f->id, scratch, &name);
        vv_path_id_of(&paths[i], n->parent == VV_NONE ? NULL : &paths[n->parent], n->edge, kind, name);
    }
}

const char *const vv_overflow_reasons[] = {"context_memory_unavailable_after_drain", "invalid_parent_context"};

void vv_node_overflow_id(const vv_node *n, char out[VV_OVERFLOW_ID])
{
    snprintf(out, VV_OVERFLOW_ID, "overflow:%s:%s", vv_overflow_reasons[n->reason % VV_OVERFLOW_REASONS],
             vv_node_edge_name(n->edge));
}

typedef struct {
    uint32_t node, next; /* next child to visit */
} frame;

/* Is a child part of its parent's calls? */
static bool called(const vv_tree *t, uint32_t child, const uint8_t *in)
{
    return t->nodes[child].edge == VV_EDGE_CALL && (!in || in[child]);
}

/* Walks one tree of Call edges. active[g] counts how often group g stands above. */
static void mark_once(const vv_tree *t, uint32_t top, const uint32_t *group, const uint8_t *in, uint32_t *active,
                      frame *stack, uint8_t *once)
{
    size_t depth = 0;
    stack[depth++] = (frame){top, VV_NONE};
    while (depth) {
        frame *f = &stack[depth - 1];
        uint32_t g = group[f->node];
        if (f->next == VV_NONE) {
            f->next = t->child_first[f->node];
            once[f->node] = g != VV_NONE && active[g]++ == 0;
        }
        while (f->next < t->child_first[f->node + 1] && !called(t, t->child[f->next], in))
            f->next++;
        if (f->next < t->child_first[f->node + 1]) {
            stack[depth++] = (frame){t->child[f->next++], VV_NONE};
        } else {
            if (g != VV_NONE)
                active[g]--;
            depth--;
        }
    }
}

vv_code vv_tree_once(const vv_tree *t, const uint32_t *group, uint32_t group_count, const uint8_t *in, uint8_t *once,
                     vv_error *err)
{
    uint32_t *active = calloc((size_t)group_count + 1, sizeof *active);
    frame *stack = malloc(((size_t)t->node_count + 1) * sizeof *stack);
    bool good = active && stack;
    memset(once, 0, t->node_count);
    for (uint32_t i = 0; good && i < t->node_count; i++) {
        const vv_node *n = &t->nodes[i];
        bool below = n->edge == VV_EDGE_CALL && n->parent != VV_NONE && (!in || in[n->parent]);
        if (!below && (!in || in[i]))
            mark_once(t, i, group, in, active, stack, once);
    }
    free(active);
    free(stack);
    return good ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for %" PRIu32 " contexts", t->node_count);
}

void vv_function_ref_key(const vv_function_ref *f, uint8_t out[32])
{
    char scratch[12];
    vv_str name;
    uint8_t kind = (uint8_t)vv_function_name_key(f->def, f->id, scratch, &name);
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, &kind, 1);
    if (kind == VV_NAME_NUMBER)
        vv_sha256_update(&c, f->program.b, sizeof f->program.b);
    vv_sha256_update(&c, name.p, name.n);
    vv_sha256_final(&c, out);
}

typedef struct {
    uint8_t key[32];
    uint32_t function;
} keyed;

static int compare_keyed(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    int c = memcmp(x->key, y->key, sizeof x->key);
    return c ? c : (x->function > y->function) - (x->function < y->function);
}

vv_code vv_function_grouping_make(vv_function_grouping *ret, const vv_tree *t, vv_error *err)
{
    size_t n = t->function_count;
    keyed *list = array(n, sizeof *list);
    *ret = (vv_function_grouping){.of = array(n, sizeof *ret->of), .keys = array(n, sizeof *ret->keys),
                                  .first = array(n, sizeof *ret->first)};
    if (!list || !ret->of || !ret->keys || !ret->first) {
        free(list);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for %zu functions", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        vv_function_ref_key(&t->functions[i], list[i].key);
        list[i].function = i;
    }
    qsort(list, n, sizeof *list, compare_keyed);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || memcmp(list[i].key, list[i - 1].key, sizeof list[i].key) != 0) {
            memcpy(ret->keys[ret->count], list[i].key, sizeof list[i].key);
            ret->first[ret->count++] = list[i].function;
        }
        ret->of[list[i].function] = ret->count - 1;
    }
    free(list);
    return VV_OK;
}

void vv_function_grouping_done(vv_function_grouping *g)
{
    free(g->of);
    free(g->keys);
    free(g->first);
    *g = (vv_function_grouping){0};
}
