#include "config.h"

#include "views/merge.h"

#include <stdlib.h>

#include "base/sha256.h"
#include "views/functions.h"

enum { TEXTS_MAX = 512 * 1024 * 1024 };

/* A node while the tree grows; its numbers lie in arrays beside it, one a side. */
typedef struct {
    vv_node node; /* without numbers */
    bool on[VV_SIDES];
    bool lines_differ;
} entry;

typedef struct {
    vv_u128 self_ns;
    uint8_t flags;
} rest;

/* What makes nodes of several executions one. */
typedef struct {
    uint8_t kind; /* 0 a context of the engine, 1 a path, 2 an overflow bucket */
    uint8_t edge, reason;
    uint8_t parent[4], function[4]; /* of a path */
    uint8_t key[32];
} identity;

typedef struct {
    const vv_scope *scope;
    vv_merged *m;
    vv_map map;         /* identity -> place in found */
    uint32_t *found;    /* by the map's index: the node */
    vv_map functions;   /* what functions are matched by */
    vv_function_ref *refs;
    uint32_t ref_cap, found_cap;
    entry *entries;
    rest *rests[VV_SIDES];
    uint32_t count, cap;
    vv_merge_visit *visit;
    void *cls;
} work;

static vv_code no_memory(vv_error *err)
{
    return vv_fail(err, VV_ERR_NOMEM, "no memory for a tree of several executions");
}

/* Takes all that the tree holds for so many nodes, in the end too, and for the names so far. */
static vv_code take_room(const work *w, size_t cap, vv_error *err)
{
    vv_merged *m = w->m;
    size_t sides = w->scope->compares ? VV_SIDES : 1;
    size_t each = sizeof(entry) + 2 * sizeof(identity)
        + (sides + 1) * (sizeof(rest) + sizeof(vv_counters) + sizeof(vv_node) + 4 * sizeof(uint32_t));
    size_t held = cap * each + m->texts.used, more = held > m->bytes ? held - m->bytes : 0;
    if (!vv_budget_take(m->budget, more))
        return vv_fail(err, VV_ERR_LIMIT, "the executions together have more contexts than memory is set aside for");
    m->bytes += more;
    return VV_OK;
}

static bool enlarge(void *array, size_t n, size_t each)
{
    void *old, *bigger;
    memcpy(&old, array, sizeof old);
    bigger = realloc(old, n * each);
    if (bigger)
        memcpy(array, &bigger, sizeof bigger);
    return bigger != NULL;
}

static vv_code grow(work *w, vv_error *err)
{
    size_t cap = w->cap ? (size_t)w->cap * 2 : 256;
    vv_code rc = cap > UINT32_MAX / 2 ? no_memory(err) : take_room(w, cap, err);
    if (rc != VV_OK)
        return rc;
    bool good = enlarge(&w->entries, cap, sizeof *w->entries);
    for (size_t side = 0; side < (w->scope->compares ? VV_SIDES : 1) && good; side++)
        good = enlarge(&w->rests[side], cap, sizeof *w->rests[side])
            && enlarge(&w->m->numbers[side], cap, sizeof *w->m->numbers[side]);
    if (!good)
        return no_memory(err);
    w->cap = (uint32_t)cap;
    return VV_OK;
}

static vv_code add_entry(work *w, const entry *e, uint32_t *ret, vv_error *err)
{
    if (w->count == w->cap) {
        vv_code rc = grow(w, err);
        if (rc != VV_OK)
            return rc;
    }
    w->entries[w->count] = *e;
    for (size_t side = 0; side < (w->scope->compares ? VV_SIDES : 1); side++) {
        w->rests[side][w->count] = (rest){.flags = 0};
        w->m->numbers[side][w->count] = (vv_counters){.started = 0};
    }
    *ret = w->count++;
    return VV_OK;
}

/*
 * A function in the merged tree. Within one engine it is a program's number; across engines what a path names it by,
 * whichever build has it.
 */
static vv_code find_function(work *w, const vv_function_ref *f, uint32_t *ret, vv_error *err)
{
    char scratch[12];
    vv_str name;
    uint8_t key[32], number[4], kind = (uint8_t)vv_function_name_key(f->def, f->id, scratch, &name);
    bool fresh;
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    if (w->scope->one_engine) {
        vv_put32(number, f->id);
        vv_sha256_update(&c, f->program.b, sizeof f->program.b);
        vv_sha256_update(&c, number, sizeof number);
    } else {
        vv_sha256_update(&c, &kind, 1);
        vv_sha256_update(&c, name.p, name.n);
    }
    vv_sha256_final(&c, key);
    uint32_t at = vv_map_put(&w->functions, key, &fresh);
    if (at == VV_MAP_NONE)
        return no_memory(err);
    if (fresh && at >= w->ref_cap) {
        uint32_t cap = w->ref_cap ? w->ref_cap * 2 : 64;
        if (!enlarge(&w->refs, cap, sizeof *w->refs))
            return no_memory(err);
        w->ref_cap = cap;
    }
    if (fresh) {
        w->refs[at] = *f;
        w->refs[at].def = f->def ? vv_function_copy(&w->m->texts, f->def) : NULL;
        w->m->tree.function_count = at + 1;
        if (f->def && !w->refs[at].def)
            return no_memory(err);
    }
    *ret = at;
    return VV_OK;
}

static vv_code keep_key(work *w, const uint8_t *key, const uint8_t **ret, vv_error *err)
{
    uint8_t *copy = key ? vv_arena_alloc(&w->m->texts, 32) : NULL;
    if (key && !copy)
        return no_memory(err);
    if (key)
        memcpy(copy, key, 32);
    *ret = copy;
    return VV_OK;
}

/* Whether a node can be matched with others, and by what. parent and function are those in the merged tree. */
static bool identify(const work *w, const vv_node *n, bool has_path, uint32_t parent, uint32_t function, identity *ret)
{
    *ret = (identity){.edge = n->edge};
    if (n->flags & VV_NODE_OVERFLOW) {
        ret->kind = 2;
        ret->reason = n->reason;
        return true;
    }
    if (!has_path)
        return false;
    if (w->scope->one_engine) {
        memcpy(ret->key, n->key, sizeof ret->key);
        return true;
    }
    ret->kind = 1;
    vv_put32(ret->parent, parent);
    vv_put32(ret->function, function);
    return true;
}

/* The merged node of a node of one execution; new where there is none yet. */
static vv_code place(work *w, const vv_node *n, bool has_path, uint32_t parent, uint32_t function, uint32_t *ret,
                     vv_error *err)
{
    const uint8_t structure = VV_NODE_OVERFLOW | VV_NODE_ORPHAN | VV_NODE_UNDEFINED;
    identity id;
    bool fresh = true, matched = identify(w, n, has_path, parent, function, &id);
    uint32_t slot = 0;
    if (matched) {
        slot = vv_map_put(&w->map, &id, &fresh);
        if (slot == VV_MAP_NONE)
            return no_memory(err);
    }
    if (!fresh) {
        *ret = w->found[slot];
        entry *e = &w->entries[*ret];
        e->lines_differ |= e->node.line != n->line;
        return VV_OK;
    }
    entry e = {.node = {.parent = parent, .function = function, .line = n->line, .edge = n->edge,
                        .flags = n->flags & structure, .reason = n->reason}};
    vv_code rc = matched && id.kind == 1 ? VV_OK : keep_key(w, n->key, &e.node.key, err);
    if (rc == VV_OK)
        rc = add_entry(w, &e, ret, err);
    if (rc != VV_OK || !matched)
        return rc;
    if (slot >= w->found_cap) {
        uint32_t cap = w->found_cap ? w->found_cap * 2 : 256;
        if (!enlarge(&w->found, cap, sizeof *w->found))
            return no_memory(err);
        w->found_cap = cap;
    }
    w->found[slot] = *ret;
    return VV_OK;
}

static void add_numbers(work *w, uint32_t at, size_t side, const vv_node *n)
{
    const uint8_t timing = VV_NODE_OPEN | VV_NODE_TIMING_INCOMPLETE;
    rest *r = &w->rests[side][at];
    w->entries[at].on[side] = true;
    r->self_ns = vv_sat128(r->self_ns, n->self_ns);
    r->flags |= n->flags & timing;
    if (vv_counters_add(&w->m->numbers[side][at], n->counters))
        r->flags |= VV_NODE_TIMING_INCOMPLETE;
}

static vv_code add_nodes(work *w, const vv_scope_item *item, const vv_tree *t, uint32_t *to, bool *has_path,
                         vv_error *err)
{
    const uint8_t bad = VV_NODE_UNDEFINED | VV_NODE_OVERFLOW | VV_NODE_ORPHAN;
    vv_code rc = VV_OK;
    for (uint32_t k = 0; k < t->node_count && rc == VV_OK; k++) {
        uint32_t i = t->order[k], function = VV_NONE;
        const vv_node *n = &t->nodes[i];
        bool top = n->parent == VV_NONE;
        has_path[i] = !(n->flags & bad) && (top || has_path[n->parent]);
        if (n->function != VV_NONE)
            rc = find_function(w, &t->functions[n->function], &function, err);
        if (rc == VV_OK)
            rc = place(w, n, has_path[i], top ? VV_NONE : to[n->parent], function, &to[i], err);
        for (size_t side = 0; side < VV_SIDES && rc == VV_OK; side++)
            if (item->on[side])
                add_numbers(w, to[i], side, n);
    }
    return rc;
}

static vv_code add_execution(void *cls, const vv_scope_item *item, const vv_loaded *x, vv_error *err)
{
    work *w = cls;
    const vv_tree *t = &x->profile->tree;
    uint32_t *to = malloc(((size_t)t->node_count + 1) * sizeof *to);
    bool *has_path = malloc((size_t)t->node_count + 1);
    vv_code rc = to && has_path ? add_nodes(w, item, t, to, has_path, err) : no_memory(err);
    if (rc == VV_OK && w->visit)
        rc = w->visit(w->cls, item, x, to, err);
    free(to);
    free(has_path);
    return rc;
}

/* The nodes with the numbers of one side. */
static vv_code make_side(work *w, size_t side, vv_tree *ret, vv_error *err)
{
    vv_code rc = vv_tree_make(ret, w->count, err);
    for (uint32_t i = 0; i < w->count && rc == VV_OK; i++) {
        const entry *e = &w->entries[i];
        const rest *r = &w->rests[side][i];
        vv_node *n = &ret->nodes[i];
        *n = e->node;
        n->line = e->lines_differ ? 0 : n->line;
        n->flags |= r->flags;
        n->counters = &w->m->numbers[side][i];
        n->self_ns = r->self_ns;
    }
    return rc == VV_OK ? vv_tree_link(ret, err) : rc;
}

/* Both sides together, in the first side's place. */
static vv_code add_up(work *w, vv_error *err)
{
    vv_merged *m = w->m;
    vv_counters *sums = calloc((size_t)w->count + 1, sizeof *sums);
    if (!sums)
        return no_memory(err);
    m->numbers[VV_SIDES] = sums;
    for (uint32_t i = 0; i < w->count; i++) {
        vv_node *n = &m->tree.nodes[i];
        for (size_t side = 0; side < VV_SIDES; side++)
            (void)vv_counters_add(&sums[i], &m->numbers[side][i]);
        n->counters = &sums[i];
        n->self_ns = vv_sat128(n->self_ns, w->rests[VV_SIDE_BASE][i].self_ns);
        n->flags |= w->rests[VV_SIDE_BASE][i].flags;
    }
    return VV_OK;
}

static vv_code copy_functions(const work *w, vv_tree *t, vv_error *err)
{
    uint32_t n = w->m->tree.function_count;
    t->functions = malloc((n + 1) * sizeof *t->functions);
    if (!t->functions)
        return no_memory(err);
    if (n)
        memcpy(t->functions, w->refs, n * sizeof *t->functions);
    t->function_count = n;
    return VV_OK;
}

static vv_code finish(work *w, vv_error *err)
{
    vv_merged *m = w->m;
    uint32_t functions = m->tree.function_count;
    m->on = calloc((size_t)w->count + 1, sizeof *m->on);
    if (!m->on)
        return no_memory(err);
    for (uint32_t i = 0; i < w->count; i++)
        memcpy(m->on[i], w->entries[i].on, sizeof m->on[i]);
    vv_code rc = make_side(w, VV_SIDE_HEAD, &m->tree, err);
    m->tree.function_count = functions;
    if (rc == VV_OK)
        rc = copy_functions(w, &m->tree, err);
    if (!w->scope->compares)
        return rc;
    for (size_t side = 0; side < VV_SIDES && rc == VV_OK; side++) {
        rc = make_side(w, side, &m->side[side], err);
        if (rc == VV_OK)
            rc = copy_functions(w, &m->side[side], err);
    }
    return rc == VV_OK ? add_up(w, err) : rc;
}

vv_code vv_merged_make(vv_merged *ret, vv_scope *s, vv_merge_visit *visit, void *cls, vv_error *err)
{
    *ret = (vv_merged){.budget = s->count ? vv_library_budget(s->items[0].library) : NULL};
    ret->texts = vv_arena_init(vv_budget_max(ret->budget) < TEXTS_MAX ? vv_budget_max(ret->budget) : TEXTS_MAX);
    work w = {.scope = s, .m = ret, .visit = visit, .cls = cls};
    vv_map_init(&w.map, sizeof(identity));
    vv_map_init(&w.functions, 32);
    vv_code rc = vv_scope_fold(s, add_execution, &w, err);
    if (rc == VV_OK)
        rc = finish(&w, err);
    vv_map_done(&w.map);
    vv_map_done(&w.functions);
    free(w.found);
    free(w.refs);
    free(w.entries);
    for (size_t side = 0; side < VV_SIDES; side++)
        free(w.rests[side]);
    return rc;
}

void vv_merged_done(vv_merged *m)
{
    vv_tree_clear(&m->tree);
    for (size_t side = 0; side < VV_SIDES; side++)
        vv_tree_clear(&m->side[side]);
    for (size_t side = 0; side <= VV_SIDES; side++)
        free(m->numbers[side]);
    free(m->on);
    vv_arena_done(&m->texts);
    vv_budget_give(m->budget, m->bytes);
    *m = (vv_merged){.on = NULL};
}
