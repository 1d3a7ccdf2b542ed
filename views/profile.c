#include "config.h"

#include "views/profile.h"

#include <stdio.h>
#include <stdlib.h>

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

/* The newest table of the execution's engine that can be read; an engine that grew has named several. */
static void load_table(vv_profile *p, const vv_store *store, const vv_stream *stream, const vv_execution *execution)
{
    uint64_t id = vv_thread_engine(&execution->root);
    for (size_t i = stream->engine_count; i-- > 0 && !p->has_table;) {
        const vv_engine *e = &stream->engines[i];
        if (e->id != id || !e->has_table)
            continue;
        vv_error ignored = {0};
        p->has_table = vv_engine_table(store->source, e, &p->table, &ignored) == VV_OK;
        if (!p->has_table) {
            p->table = (vv_function_table){0};
            p->lacks_newest_table = true;
        }
    }
}

static uint32_t count_overflow(const vv_fold *f)
{
    uint32_t n = 0;
    for (unsigned r = 0; r < VV_OVERFLOW_REASONS; r++)
        for (unsigned e = 0; e < VV_EDGES; e++)
            n += f->overflow_present[r][e];
    return n;
}

/*
 * A call that is still open explains itself why its children's time exceeds its own; only others count as incomplete.
 */
static uint8_t timing_flags(const vv_fold *f, const vv_counters *c, bool complete)
{
    __int128 open = vv_counters_open(c);
    uint8_t flags = open != 0 ? VV_NODE_OPEN : 0;
    if (f->health || (!complete && open <= 0))
        flags |= VV_NODE_TIMING_INCOMPLETE;
    return flags;
}

static void fill_context(vv_node *n, const vv_fold *f, const vv_fold_context *c)
{
    bool complete;
    *n = (vv_node){.parent = VV_NONE, .function = VV_NONE, .edge = VV_EDGE_UNKNOWN, .counters = &c->counters};
    n->self_ns = vv_counters_self(&c->counters, &complete);
    n->flags = timing_flags(f, &c->counters, complete);
    if (!c->defined) {
        n->flags |= VV_NODE_UNDEFINED;
        return;
    }
    n->edge = c->tuple.edge;
    n->line = c->tuple.has_site ? c->tuple.site.line : 0;
    if (c->tuple.has_parent) {
        uint32_t up = vv_fold_find_context(f, &c->tuple.parent);
        n->parent = up == VV_MAP_NONE ? VV_NONE : up;
        if (up == VV_MAP_NONE)
            n->flags |= VV_NODE_ORPHAN;
    }
}

static void fill_overflow(vv_profile *p)
{
    const vv_fold *f = p->fold;
    vv_node *n = p->nodes + p->context_count;
    for (unsigned r = 0; r < VV_OVERFLOW_REASONS; r++)
        for (unsigned e = 0; e < VV_EDGES; e++) {
            if (!f->overflow_present[r][e])
                continue;
            bool complete;
            const vv_counters *c = &f->overflow[r][e];
            *n = (vv_node){.parent = VV_NONE, .function = VV_NONE, .edge = (uint8_t)e, .counters = c};
            n->self_ns = vv_counters_self(c, &complete);
            n->flags = VV_NODE_OVERFLOW | timing_flags(f, c, complete);
            n++;
        }
}

static vv_code name_functions(vv_profile *p, vv_error *err)
{
    struct {
        uint8_t program[16];
        uint8_t id[4];
    } key;
    vv_map map;
    vv_map_init(&map, sizeof key);
    vv_code rc = VV_OK;
    uint32_t cap = 0;
    for (uint32_t i = 0; i < p->context_count && rc == VV_OK; i++) {
        const vv_fold_context *c = &p->fold->contexts[i];
        if (!c->defined)
            continue;
        memcpy(key.program, c->tuple.program.b, 16);
        vv_put32(key.id, c->tuple.function_id);
        bool fresh;
        uint32_t at = vv_map_put(&map, &key, &fresh);
        if (at != VV_MAP_NONE && fresh && at >= cap) {
            cap = cap ? cap * 2 : 64;
            vv_function_ref *bigger = realloc(p->functions, cap * sizeof *bigger);
            if (bigger)
                p->functions = bigger;
            else
                at = VV_MAP_NONE;
        }
        if (at == VV_MAP_NONE) {
            rc = vv_fail(err, VV_ERR_NOMEM, "no memory for function names");
            break;
        }
        if (fresh) {
            const vv_function *def = p->has_table ? vv_function_table_find(&p->table, c->tuple.function_id) : NULL;
            p->functions[at] = (vv_function_ref){c->tuple.program, c->tuple.function_id, def};
            p->function_count = at + 1;
        }
        p->nodes[i].function = at;
    }
    vv_map_done(&map);
    return rc;
}

static void list_children(vv_profile *p)
{
    uint32_t n = p->node_count, *first = p->child_first;
    memset(first, 0, (n + 1) * sizeof *first);
    for (uint32_t i = 0; i < n; i++)
        if (p->nodes[i].parent != VV_NONE)
            first[p->nodes[i].parent + 1]++;
    for (uint32_t i = 0; i < n; i++)
        first[i + 1] += first[i];
    /* Filling moves each start to its end, that is to the next one's start; the shift back follows. */
    for (uint32_t i = 0; i < n; i++)
        if (p->nodes[i].parent != VV_NONE)
            p->child[first[p->nodes[i].parent]++] = i;
    memmove(first + 1, first, n * sizeof *first);
    first[0] = 0;
}

/* Appends what hangs below order[from..]; returns the new length. */
static uint32_t visit(vv_profile *p, uint8_t *seen, uint32_t from, uint32_t len)
{
    for (; from < len; from++) {
        uint32_t i = p->order[from];
        for (uint32_t k = p->child_first[i]; k < p->child_first[i + 1]; k++)
            if (!seen[p->child[k]]) {
                seen[p->child[k]] = 1;
                p->order[len++] = p->child[k];
            }
    }
    return len;
}

/* Orders parents before children; a node that no top reaches is in a cycle, which is cut above it. */
static bool order_nodes(vv_profile *p, uint8_t *seen)
{
    uint32_t len = 0;
    bool cut = false;
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].parent == VV_NONE) {
            seen[i] = 1;
            p->order[len++] = i;
        }
    len = visit(p, seen, 0, len);
    for (uint32_t i = 0; i < p->node_count && len < p->node_count; i++) {
        if (seen[i])
            continue;
        cut = true;
        p->nodes[i].parent = VV_NONE;
        p->nodes[i].flags |= VV_NODE_ORPHAN;
        seen[i] = 1;
        p->order[len] = i;
        len = visit(p, seen, len, len + 1);
    }
    return cut;
}

static void list_tops(vv_profile *p)
{
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].parent == VV_NONE)
            p->tops[p->top_count++] = i;
}

static void *array(size_t n, size_t each)
{
    return calloc(n ? n : 1, each);
}

static vv_code build(vv_profile *p, vv_error *err)
{
    const vv_fold *f = p->fold;
    if (!f->failed) {
        p->context_count = (uint32_t)f->context_count;
        p->node_count = p->context_count + count_overflow(f);
    }
    size_t n = p->node_count;
    p->nodes = array(n, sizeof *p->nodes);
    p->order = array(n, sizeof *p->order);
    p->child_first = array(n + 1, sizeof *p->child_first);
    p->child = array(n, sizeof *p->child);
    p->tops = array(n, sizeof *p->tops);
    uint8_t *seen = array(n, 1);
    vv_code rc = VV_OK;
    if (!p->nodes || !p->order || !p->child_first || !p->child || !p->tops || !seen)
        rc = vv_fail(err, VV_ERR_NOMEM, "no memory for %zu contexts", n);
    if (rc == VV_OK && n) {
        for (uint32_t i = 0; i < p->context_count; i++)
            fill_context(&p->nodes[i], f, &f->contexts[i]);
        fill_overflow(p);
        list_children(p);
        if (order_nodes(p, seen))
            list_children(p);
        list_tops(p);
        rc = name_functions(p, err);
    }
    free(seen);
    p->bytes = sizeof *p + f->bytes + n * (sizeof(vv_node) + 4 * sizeof(uint32_t))
        + p->function_count * sizeof(vv_function_ref);
    return rc;
}

vv_code vv_profile_new(vv_profile **ret, vv_fold *fold, const vv_store *store, const vv_stream *stream,
                       const vv_execution *execution, vv_error *err)
{
    vv_profile *p = calloc(1, sizeof *p);
    if (!p) {
        vv_fold_free(fold);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for an execution");
    }
    p->fold = fold;
    load_table(p, store, stream, execution);
    vv_code rc = build(p, err);
    if (rc != VV_OK) {
        vv_profile_free(p);
        return rc;
    }
    *ret = p;
    return VV_OK;
}

void vv_profile_free(vv_profile *p)
{
    if (!p)
        return;
    vv_fold_free(p->fold);
    vv_function_table_done(&p->table);
    free(p->nodes);
    free(p->order);
    free(p->child_first);
    free(p->child);
    free(p->tops);
    free(p->functions);
    free(p);
}

void vv_profile_paths(const vv_profile *p, vv_path_id *paths, bool *has)
{
    for (uint32_t k = 0; k < p->node_count; k++) {
        uint32_t i = p->order[k];
        const vv_node *n = &p->nodes[i];
        has[i] = !(n->flags & (VV_NODE_UNDEFINED | VV_NODE_OVERFLOW | VV_NODE_ORPHAN))
            && (n->parent == VV_NONE || has[n->parent]);
        if (!has[i])
            continue;
        char scratch[12];
        vv_str name;
        const vv_function_ref *f = &p->functions[n->function];
        vv_name_kind kind = vv_function_name_key(f->def, f->id, scratch, &name);
        vv_path_id_of(&paths[i], n->parent == VV_NONE ? NULL : &paths[n->parent], n->edge, kind, name);
    }
}

void vv_profile_overflow_id(const vv_profile *p, uint32_t node, char out[VV_OVERFLOW_ID])
{
    static const char *const reasons[VV_OVERFLOW_REASONS] = {"context_memory_unavailable_after_drain",
                                                             "invalid_parent_context"};
    uint32_t at = p->context_count;
    for (unsigned r = 0; r < VV_OVERFLOW_REASONS; r++)
        for (unsigned e = 0; e < VV_EDGES; e++)
            if (p->fold->overflow_present[r][e] && at++ == node)
                snprintf(out, VV_OVERFLOW_ID, "overflow:%s:%s", reasons[r], edge_names[e]);
}
