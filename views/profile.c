#include "config.h"

#include "views/profile.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/grow.h"

/* The names last as long as the program: errors borrow them. */
static const char *fault_of_table(const vv_error *why)
{
    if (why->name)
        return why->name;
    return why->code == VV_ERR_NOTFOUND ? "Missing" : "Io";
}

/* The newest table of the execution's engine that can be read; an engine that grew has named several. */
static vv_code load_table(vv_profile *p, const vv_store *store, const vv_stream *stream, const vv_execution *execution,
                          vv_error *err)
{
    uint64_t id = vv_thread_engine(&execution->root);
    for (size_t i = stream->engine_count; i-- > 0 && !p->has_table;) {
        const vv_engine *e = &stream->engines[i];
        if (e->id != id || !e->has_table)
            continue;
        vv_error why = {0};
        vv_code rc = vv_tables_get(p->tables, store->source, e, &p->shared, &why);
        if (rc == VV_ERR_NOMEM || rc == VV_ERR_LIMIT)
            return vv_fail(err, rc, "%s", why.msg);
        p->has_table = rc == VV_OK;
        if (p->has_table)
            p->table = *vv_shared_table_see(p->shared);
        else
            p->table_fault = p->table_fault ? p->table_fault : fault_of_table(&why);
    }
    return VV_OK;
}

/* Has what stands here by now out of the budget, and what is needed beside it for a while. */
static vv_code charge(vv_profile *p, size_t beside, vv_error *err)
{
    const size_t node = sizeof *p->call_child_ns + sizeof *p->counters + sizeof *p->context_at + sizeof *p->node_at;
    size_t want = sizeof *p + vv_tree_bytes(&p->tree) + p->tree.node_count * node + beside;
    if (want < p->bytes)
        vv_budget_give(p->budget, p->bytes - want);
    else if (!vv_budget_take(p->budget, want - p->bytes))
        return vv_fail(err, VV_ERR_LIMIT, "an execution needs more than is left of %zu bytes",
                       vv_budget_max(p->budget));
    p->bytes = want;
    return VV_OK;
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
    *n = (vv_node){.parent = VV_NONE, .function = VV_NONE, .edge = VV_EDGE_UNKNOWN, .counters = &c->counters,
                   .key = c->key.b};
    n->self_ns = vv_counters_self(&c->counters, &complete);
    n->flags = timing_flags(f, &c->counters, complete);
    if (!c->defined) {
        n->flags |= VV_NODE_UNDEFINED;
        return;
    }
    n->edge = c->tuple.edge;
    n->line = c->tuple.has_site ? c->tuple.site.line : 0;
    if (c->tuple.has_parent) {
        n->parent = c->parent == VV_MAP_NONE ? VV_NONE : c->parent;
        if (n->parent == VV_NONE)
            n->flags |= VV_NODE_ORPHAN;
    }
}

static void fill_overflow(vv_profile *p)
{
    const vv_fold *f = p->fold;
    vv_node *n = p->tree.nodes + p->context_count;
    for (unsigned r = 0; r < VV_OVERFLOW_REASONS; r++)
        for (unsigned e = 0; e < VV_EDGES; e++) {
            if (!f->overflow_present[r][e])
                continue;
            bool complete;
            const vv_counters *c = &f->overflow[r][e];
            *n = (vv_node){.parent = VV_NONE, .function = VV_NONE, .edge = (uint8_t)e,
                           .reason = (uint8_t)r, .counters = c};
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
    size_t cap = 0;
    for (uint32_t i = 0; i < p->context_count && rc == VV_OK; i++) {
        const vv_fold_context *c = &p->fold->contexts[i];
        if (!c->defined)
            continue;
        memcpy(key.program, c->tuple.program.b, 16);
        vv_put32(key.id, c->tuple.function_id);
        bool fresh;
        uint32_t at = vv_map_put(&map, &key, &fresh);
        if (at == VV_MAP_NONE || !vv_grow(&p->tree.functions, &cap, at, sizeof *p->tree.functions)) {
            rc = vv_fail(err, VV_ERR_NOMEM, "no memory for function names");
            break;
        }
        if (fresh) {
            const vv_function *def = p->has_table ? vv_function_table_find(&p->table, c->tuple.function_id) : NULL;
            p->tree.functions[at] = (vv_function_ref){c->tuple.program, c->tuple.function_id, def};
            p->tree.function_count = at + 1;
        }
        p->tree.nodes[p->node_at[i]].function = at;
    }
    vv_map_done(&map);
    return rc;
}

/* Once for all: every row of a flame graph tells it, and children lie far from each other. */
static vv_code sum_call_times(vv_profile *p, vv_error *err)
{
    const vv_tree *t = &p->tree;
    p->call_child_ns = calloc((size_t)t->node_count + 1, sizeof *p->call_child_ns);
    if (!p->call_child_ns)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for %" PRIu32 " contexts", t->node_count);
    for (uint32_t i = 0; i < t->node_count; i++) {
        const vv_node *n = &t->nodes[i];
        if (n->parent != VV_NONE && n->edge == VV_EDGE_CALL)
            p->call_child_ns[n->parent] = vv_sat128(p->call_child_ns[n->parent], n->counters->inclusive_ns);
    }
    p->tree.call_child_ns = p->call_child_ns;
    return VV_OK;
}

/* Numbers go where the nodes are, in their order. */
static vv_code arrange(vv_profile *p, vv_error *err)
{
    vv_tree *t = &p->tree;
    size_t n = (size_t)t->node_count + 1;
    p->counters = malloc(n * sizeof *p->counters);
    p->context_at = malloc(n * sizeof *p->context_at);
    p->node_at = malloc(n * sizeof *p->node_at);
    if (!p->counters || !p->context_at || !p->node_at)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for %" PRIu32 " contexts", t->node_count);
    vv_code rc = vv_tree_lay_out(t, p->node_at, err);
    for (uint32_t i = 0; i < t->node_count && rc == VV_OK; i++) {
        p->context_at[p->node_at[i]] = i;
        p->counters[i] = *t->nodes[i].counters;
        t->nodes[i].counters = &p->counters[i];
    }
    return rc;
}

static vv_code build(vv_profile *p, vv_error *err)
{
    const vv_fold *f = p->fold;
    p->context_count = f->failed ? 0 : (uint32_t)f->context_count;
    vv_code rc = vv_tree_make(&p->tree, f->failed ? 0 : p->context_count + count_overflow(f), err);
    if (rc == VV_OK)
        rc = charge(p, (size_t)p->tree.node_count * VV_TREE_LAY_OUT_NODE, err);
    if (rc == VV_OK) {
        for (uint32_t i = 0; i < p->context_count; i++)
            fill_context(&p->tree.nodes[i], f, &f->contexts[i]);
        if (!f->failed)
            fill_overflow(p);
        rc = vv_tree_link(&p->tree, err);
    }
    if (rc == VV_OK)
        rc = arrange(p, err);
    if (rc == VV_OK)
        rc = name_functions(p, err);
    if (rc == VV_OK)
        rc = sum_call_times(p, err);
    return rc == VV_OK ? charge(p, 0, err) : rc;
}

vv_code vv_profile_new(vv_profile **ret, vv_fold *fold, vv_tables *tables, const vv_store *store,
                       const vv_stream *stream, const vv_execution *execution, vv_error *err)
{
    vv_profile *p = calloc(1, sizeof *p);
    if (!p) {
        vv_fold_free(fold);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for an execution");
    }
    p->fold = fold;
    p->tables = tables;
    p->budget = fold->budget;
    vv_code rc = load_table(p, store, stream, execution, err);
    if (rc == VV_OK)
        rc = build(p, err);
    if (rc != VV_OK) {
        vv_profile_free(p);
        return rc;
    }
    *ret = p;
    return VV_OK;
}

const vv_fold_context *vv_profile_context(const vv_profile *p, uint32_t node)
{
    return node < p->context_count ? &p->fold->contexts[p->context_at[node]] : NULL;
}

void vv_profile_free(vv_profile *p)
{
    if (!p)
        return;
    vv_fold_free(p->fold);
    vv_tables_release(p->tables, p->shared);
    vv_tree_clear(&p->tree);
    free(p->call_child_ns);
    free(p->counters);
    free(p->context_at);
    free(p->node_at);
    vv_budget_give(p->budget, p->bytes);
    free(p);
}
