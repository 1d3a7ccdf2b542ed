#include "config.h"

#include "runtime/cct.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_NODES = 16 };

void vv_cct_init(vv_cct *c, varve_engine *engine, vv_governor *g)
{
    memset(c, 0, sizeof *c);
    c->engine = engine;
    c->governor = g;
}

static size_t dirty_words(uint32_t cap)
{
    return (cap + 63) / 64;
}

static void release_arrays(vv_governor *g, vv_node *nodes, vv_node_cold *cold, uint64_t *dirty, uint32_t *slots,
                           uint32_t cap)
{
    vv_gov_free(g, VV_POOL_GENERAL, VV_OWN_POPULATION, nodes, cap * sizeof *nodes);
    vv_gov_free(g, VV_POOL_GENERAL, VV_OWN_POPULATION, cold, cap * sizeof *cold);
    vv_gov_free(g, VV_POOL_GENERAL, VV_OWN_POPULATION, dirty, dirty_words(cap) * 8);
    vv_gov_free(g, VV_POOL_GENERAL, VV_OWN_POPULATION, slots, 2ULL * cap * sizeof *slots);
}

void vv_cct_done(vv_cct *c)
{
    release_arrays(c->governor, c->nodes, c->cold, c->dirty, c->slots, c->cap);
    c->nodes = NULL;
    c->cold = NULL;
    c->dirty = NULL;
    c->slots = NULL;
    c->count = c->cap = c->mask = c->dirty_count = 0;
    c->buckets_pending = c->buckets_owed = 0;
}

static void slots_fill(uint32_t *slots, uint32_t mask, const vv_node *nodes, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        const vv_node *n = &nodes[k];
        uint32_t i = vv_cct_hash(n->parent, n->function, n->site, n->edge) & mask;
        while (slots[i])
            i = (i + 1) & mask;
        slots[i] = k + 1;
    }
}

/* Another capacity, at least the count; false where memory is denied, and nothing changed. */
static bool resize(vv_cct *c, uint32_t cap)
{
    vv_governor *g = c->governor;
    vv_node *nodes = vv_gov_alloc(g, VV_POOL_GENERAL, VV_OWN_POPULATION, cap * sizeof *nodes);
    vv_node_cold *cold = vv_gov_alloc(g, VV_POOL_GENERAL, VV_OWN_POPULATION, cap * sizeof *cold);
    uint64_t *dirty = vv_gov_alloc(g, VV_POOL_GENERAL, VV_OWN_POPULATION, dirty_words(cap) * 8);
    uint32_t *slots = vv_gov_alloc(g, VV_POOL_GENERAL, VV_OWN_POPULATION, 2ULL * cap * sizeof *slots);
    if (!nodes || !cold || !dirty || !slots) {
        release_arrays(g, nodes, cold, dirty, slots, cap);
        return false;
    }
    if (c->count) {
        memcpy(nodes, c->nodes, c->count * sizeof *nodes);
        memcpy(cold, c->cold, c->count * sizeof *cold);
        memcpy(dirty, c->dirty, dirty_words(c->count) * 8);
    }
    slots_fill(slots, 2 * cap - 1, nodes, c->count);
    release_arrays(g, c->nodes, c->cold, c->dirty, c->slots, c->cap);
    c->nodes = nodes;
    c->cold = cold;
    c->dirty = dirty;
    c->slots = slots;
    c->cap = cap;
    c->mask = 2 * cap - 1;
    return true;
}

static bool grow(vv_cct *c)
{
    uint32_t cap = c->cap ? c->cap * 2 : FIRST_NODES;
    return cap <= VV_NODES_MAX && resize(c, cap);
}

uint32_t vv_cct_intern(vv_cct *c, uint32_t parent, uint32_t function, uint32_t site, unsigned edge)
{
    if (!c->cap && !grow(c))
        return VV_NODE_NONE;
    uint32_t i = vv_cct_hash(parent, function, site, edge) & c->mask;
    for (; c->slots[i]; i = (i + 1) & c->mask) {
        uint32_t k = c->slots[i] - 1;
        const vv_node *n = &c->nodes[k];
        if (n->parent == parent && n->function == function && n->site == site && n->edge == edge) {
            if (edge == VV_EDGE_CALL)
                c->nodes[parent].last_child = k;
            return k;
        }
    }
    if (c->count == c->cap) {
        if (!grow(c))
            return VV_NODE_NONE;
        i = vv_cct_hash(parent, function, site, edge) & c->mask;
        while (c->slots[i])
            i = (i + 1) & c->mask;
    }
    uint32_t k = c->count++;
    c->slots[i] = k + 1;
    c->nodes[k] = (vv_node){.parent = parent, .function = function, .site = site, .edge = (uint8_t)edge};
    c->cold[k] = (vv_node_cold){.error = 0};
    vv_cct_touch(c, k);
    if (edge == VV_EDGE_CALL)
        c->nodes[parent].last_child = k;
    vv_engine_use_function(c->engine, function);
    vv_engine_use_site(c->engine, site);
    return k;
}

void vv_cct_carry(vv_cct *c, uint64_t *sum, uint8_t *high, uint8_t health)
{
    if (*high < UINT8_MAX) {
        ++*high;
        return;
    }
    *sum = UINT64_MAX;
    c->health |= health;
}

static vv_counters *bucket_of(vv_cct *c, uint32_t node)
{
    uint32_t b = node - VV_NODE_OVERFLOW;
    c->overflowed = true;
    return &c->overflow[b / VV_EDGES][b % VV_EDGES];
}

static void bucket_add(vv_cct *c, uint32_t node, const vv_counters *delta)
{
    c->health |= vv_counters_add(bucket_of(c, node), delta);
}

void vv_cct_overflow_start(vv_cct *c, uint32_t node)
{
    bucket_add(c, node, &(vv_counters){.started = 1});
}

void vv_cct_selected(vv_cct *c, uint32_t node)
{
    if (vv_is_overflow(node)) {
        bucket_add(c, node, &(vv_counters){.selected = 1});
        return;
    }
    vv_cct_touch(c, node);
    c->cold[node].selected++;
}

void vv_cct_end_slow(vv_cct *c, uint32_t node, unsigned status, uint64_t inclusive_ns, uint64_t await_ns,
                     uint64_t await_count)
{
    if (vv_is_overflow(node)) {
        bucket_add(c, node,
                   &(vv_counters){.ok = status == VV_CALL_OK,
                                  .error = status == VV_CALL_ERRORED,
                                  .cancelled = status == VV_CALL_CANCELLED,
                                  .exited = status == VV_CALL_EXITED,
                                  .inclusive_ns = inclusive_ns,
                                  .await_ns = await_ns,
                                  .await_count = await_count});
        return;
    }
    vv_cct_touch(c, node);
    vv_node *n = &c->nodes[node];
    vv_node_cold *k = &c->cold[node];
    vv_add_carry(c, &n->inclusive_ns, &n->inclusive_high, inclusive_ns, VV_HEALTH_COUNTER_SATURATED);
    vv_add_carry(c, &n->await_ns, &n->await_high, await_ns, VV_HEALTH_AWAIT_SATURATED);
    if (__builtin_add_overflow(k->await_count, await_count, &k->await_count)) {
        k->await_count = UINT64_MAX;
        c->health |= VV_HEALTH_AWAIT_SATURATED;
    }
    uint64_t *by_status[] = {&n->ok, &k->error, &k->cancelled, &k->exited};
    ++*by_status[status & 3];
}

void vv_cct_direct(vv_cct *c, uint32_t node, uint64_t inclusive_ns)
{
    if (vv_is_overflow(node)) {
        bucket_add(c, node, &(vv_counters){.direct_child_ns = inclusive_ns});
        return;
    }
    vv_cct_touch(c, node);
    vv_node *n = &c->nodes[node];
    vv_add_carry(c, &n->direct_ns, &n->direct_high, inclusive_ns, VV_HEALTH_COUNTER_SATURATED);
}

static void tuple_of(const vv_cct *c, const vv_node *n, vv_tuple *ret)
{
    *ret = (vv_tuple){.program = c->engine->program, .edge = n->edge, .function_id = n->function};
    if (n->parent != VV_NODE_NONE) {
        ret->has_parent = true;
        ret->parent = c->cold[n->parent].key;
    }
    const vv_site *s = vv_engine_site(c->engine, n->site);
    if (s) {
        ret->has_site = true;
        ret->site = *s;
    }
}

static vv_u128 wide(uint64_t low, uint8_t high)
{
    return (vv_u128)high << 64 | low;
}

static void tell_sealed(vv_cct *c, const vv_counters *k)
{
    c->sealed_started = vv_sat64(c->sealed_started, k->started);
    c->sealed_awaits = vv_sat64(c->sealed_awaits, k->await_count);
}

/* The row of a node; its counters start over. */
static void take_row(vv_cct *c, uint32_t i, vv_cct_row *ret)
{
    vv_node *n = &c->nodes[i];
    vv_node_cold *k = &c->cold[i];
    ret->key = k->key;
    ret->defined = n->flags & VV_NODE_PENDING;
    if (ret->defined)
        tuple_of(c, n, &ret->tuple);
    ret->counters = (vv_counters){
        .started = n->started, .ok = n->ok, .error = k->error, .cancelled = k->cancelled, .exited = k->exited,
        .selected = k->selected,
        .inclusive_ns = wide(n->inclusive_ns, n->inclusive_high), .direct_child_ns = wide(n->direct_ns, n->direct_high),
        .await_ns = wide(n->await_ns, n->await_high), .await_count = k->await_count,
    };
    tell_sealed(c, &ret->counters);
    n->started = n->ok = n->inclusive_ns = n->direct_ns = n->await_ns = 0;
    n->inclusive_high = n->direct_high = n->await_high = 0;
    k->error = k->cancelled = k->exited = k->await_count = k->selected = 0;
}

/* Its parent has one. */
static void make_key(vv_cct *c, uint32_t i)
{
    vv_node *n = &c->nodes[i];
    if (n->flags & VV_NODE_KEYED)
        return;
    vv_tuple t;
    tuple_of(c, n, &t);
    vv_context_key_of(&c->cold[i].key, &t);
    n->flags |= VV_NODE_KEYED;
}

static uint32_t unkeyed_above(const vv_cct *c, uint32_t node)
{
    uint32_t n = 0;
    for (uint32_t i = node; i < c->count && !(c->nodes[i].flags & VV_NODE_KEYED); i = c->nodes[i].parent)
        n++;
    return n;
}

bool vv_cct_key(vv_cct *c, uint32_t node, vv_context_key *ret)
{
    enum { FEW = 64 };
    uint32_t few[FEW], n = unkeyed_above(c, node);
    size_t bytes = n * sizeof *few;
    uint32_t *way = n <= FEW ? few : vv_gov_alloc(c->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, bytes);
    if (!way)
        return false;
    for (uint32_t i = node, at = n; at; i = c->nodes[i].parent)
        way[--at] = i;
    for (uint32_t i = 0; i < n; i++)
        make_key(c, way[i]);
    if (way != few)
        vv_gov_free(c->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, way, bytes);
    *ret = c->cold[node].key;
    return true;
}

/* Takes a dirty node into the group, unless its parent's definition is neither committed nor in it. */
static bool take_ref(vv_cct *c, uint32_t i, vv_cct_ref *ret)
{
    vv_node *n = &c->nodes[i];
    bool defined = n->flags & VV_NODE_DEFINED;
    if (!defined && n->parent != VV_NODE_NONE &&
        !(c->nodes[n->parent].flags & (VV_NODE_DEFINED | VV_NODE_PENDING)))
        return false;
    make_key(c, i);
    if (!defined)
        n->flags |= VV_NODE_PENDING;
    n->flags &= (uint8_t)~VV_NODE_DIRTY;
    c->dirty[i / 64] &= ~(1ULL << i % 64);
    c->dirty_count--;
    *ret = (vv_cct_ref){vv_be64(c->cold[i].key.b), i};
    return true;
}

static int by_key(const void *a, const void *b, void *cct)
{
    const vv_cct *c = cct;
    const vv_cct_ref *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return memcmp(&c->cold[x->node].key, &c->cold[y->node].key, sizeof(vv_context_key));
}

static uint32_t collect(vv_cct *c, size_t max_rows, vv_cct_ref *refs)
{
    uint32_t n = 0;
    for (size_t w = 0; w < dirty_words(c->count) && n < max_rows; w++)
        for (uint64_t bits = c->dirty[w]; bits && n < max_rows; bits &= bits - 1) {
            uint32_t i = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
            n += take_ref(c, i, &refs[n]);
        }
    return n;
}

static uint64_t write_overflow(vv_cct *c, vv_wr *w)
{
    size_t at = w->len;
    uint64_t rows = 0;
    vv_wr_u64(w, 0);
    for (unsigned r = 0; r < VV_OVERFLOW_REASONS; r++)
        for (unsigned e = 0; e < VV_EDGES; e++) {
            vv_counters *k = &c->overflow[r][e];
            unsigned bit = 1U << (r * VV_EDGES + e);
            if (vv_counters_zero(k) && !(c->buckets_owed & bit))
                continue;
            c->buckets_pending |= (uint8_t)bit;
            vv_cct_overflow row = {.reason = (vv_overflow_reason)r, .edge = (vv_edge)e, .counters = *k};
            vv_cct_encode_overflow(w, &row);
            tell_sealed(c, k);
            *k = (vv_counters){.started = 0};
            rows++;
        }
    vv_wr_patch64(w, at, rows);
    c->overflowed = false;
    c->buckets_owed = 0;
    return rows;
}

uint64_t vv_cct_seal(vv_cct *c, vv_wr *w, size_t max_bytes, vv_cct_ref *refs, uint32_t *ret_refs, uint8_t *ret_health,
                     bool *ret_more)
{
    enum { ROW_MAX = VV_CCT_ROW_MIN + VV_TUPLE_MAX };
    size_t max_rows = max_bytes / ROW_MAX + 1;
    uint32_t n = collect(c, max_rows, refs);
    c->sealed_started = c->sealed_awaits = 0;
    *ret_refs = n;
    *ret_more = n == max_rows && c->dirty_count;
    *ret_health = 0;
    bool overflow = !*ret_more && c->overflowed;
    if (!n && !overflow)
        return 0;
    qsort_r(refs, n, sizeof *refs, by_key, c);
    vv_wr_u64(w, n);
    for (uint32_t i = 0; i < n; i++) {
        vv_cct_row row;
        take_row(c, refs[i].node, &row);
        vv_cct_encode_row(w, &row);
    }
    uint64_t rows = n;
    if (overflow)
        rows += write_overflow(c, w);
    else
        vv_wr_u64(w, 0);
    *ret_health = c->health;
    c->health = 0;
    return rows;
}

void vv_cct_settle(vv_cct *c, const vv_cct_ref *refs, uint32_t n, bool committed)
{
    for (uint32_t i = 0; i < n; i++) {
        vv_node *k = &c->nodes[refs[i].node];
        if (!(k->flags & VV_NODE_PENDING))
            continue;
        k->flags &= (uint8_t)~VV_NODE_PENDING;
        if (committed)
            k->flags |= VV_NODE_DEFINED;
        else
            vv_cct_touch(c, refs[i].node);
    }
    if (committed)
        c->buckets_shown |= c->buckets_pending;
    else
        c->buckets_owed |= (uint8_t)(c->buckets_pending & ~c->buckets_shown);
    c->buckets_pending = 0;
    c->overflowed = c->overflowed || c->buckets_owed;
}

void vv_cct_discard(vv_cct *c)
{
    c->sealed_started = c->sealed_awaits = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        vv_cct_row row;
        if (c->nodes[i].flags & VV_NODE_DIRTY)
            take_row(c, i, &row);
        c->nodes[i].flags &= (uint8_t)~VV_NODE_DIRTY;
    }
    for (unsigned r = 0; r < VV_OVERFLOW_REASONS; r++)
        for (unsigned e = 0; e < VV_EDGES; e++)
            tell_sealed(c, &c->overflow[r][e]);
    memset(c->overflow, 0, sizeof c->overflow);
    if (c->count)
        memset(c->dirty, 0, dirty_words(c->count) * 8);
    c->dirty_count = 0;
    c->overflowed = false;
    c->buckets_owed = 0;
    c->health = 0;
}

static bool has_counts(const vv_cct *c, uint32_t i)
{
    const vv_node *n = &c->nodes[i];
    const vv_node_cold *k = &c->cold[i];
    return n->started || n->ok || n->inclusive_ns || n->direct_ns || n->await_ns || n->inclusive_high ||
           n->direct_high || n->await_high || k->error || k->cancelled || k->exited || k->await_count ||
           k->selected;
}

/* Marks i and, up the tree, all that must stay with it: a definition that is not committed needs its parent's key. */
static void mark(vv_cct *c, uint32_t i)
{
    bool need = true;
    while (i < c->count && need) {
        vv_node *n = &c->nodes[i];
        need = !(n->flags & VV_NODE_DEFINED) && !(n->flags & VV_NODE_MARK);
        n->flags |= VV_NODE_MARK;
        i = n->parent;
    }
}

/* Moves the marked nodes together. */
static void compact(vv_cct *c, uint32_t *map)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        vv_node *from = &c->nodes[i];
        if (!(from->flags & VV_NODE_MARK)) {
            map[i] = VV_NODE_NONE;
            continue;
        }
        map[i] = kept;
        vv_node moved = *from;
        moved.flags &= (uint8_t)~(VV_NODE_MARK | VV_NODE_DIRTY);
        moved.last_child = 0;
        if (moved.parent < i)
            moved.parent = map[moved.parent] == VV_NODE_NONE ? VV_NODE_ORPHAN : map[moved.parent];
        c->nodes[kept] = moved;
        c->cold[kept] = c->cold[i];
        kept++;
    }
    c->count = kept;
}

void vv_cct_rollover(vv_cct *c, const uint32_t *keep, size_t n, uint32_t *map)
{
    for (size_t k = 0; k < n; k++)
        mark(c, keep[k]);
    for (uint32_t i = 0; i < c->count; i++)
        if (c->nodes[i].flags & VV_NODE_DIRTY && has_counts(c, i))
            mark(c, i);
    compact(c, map);
    c->dirty_count = 0;
    memset(c->dirty, 0, dirty_words(c->cap) * 8);
    uint32_t cap = FIRST_NODES;
    while (cap < 2 * (uint64_t)c->count)
        cap *= 2;
    if (cap > c->cap / 2 || !resize(c, cap)) {
        memset(c->slots, 0, (c->mask + 1ULL) * sizeof *c->slots);
        slots_fill(c->slots, c->mask, c->nodes, c->count);
    }
    for (uint32_t i = 0; i < c->count; i++)
        if (!(c->nodes[i].flags & VV_NODE_DEFINED) || has_counts(c, i))
            vv_cct_touch(c, i);
}
