/*
 * The calling-context tree of one execution, as it is while the program runs.
 *
 * A node is a context; its counters are what came since the last seal. A context is hashed to its key only when it is
 * first written. Its definition (the tuple) goes out with it, and again for as long as no group that held it was
 * committed; a node is never written before its parent's definition is, so no committed tuple names an unknown parent.
 *
 * Invariants. A node's index is greater than its parent's. A node without a committed definition is dirty. Rows leave
 * in index order, so parents leave first.
 *
 * Owned by the consumer thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "format/evidence.h"
#include "runtime/engine.h"
#include "runtime/governor.h"

/* What a frame counts into: a node, or an overflow bucket. */
enum {
    VV_NODE_NONE = UINT32_MAX,
    VV_NODE_ORPHAN = UINT32_MAX - 1, /* the parent of a committed node whose parent was dropped */
    VV_NODE_OVERFLOW = 0xffffff00, /* + reason * VV_EDGES + edge */
    VV_NODES_MAX = 0x10000000,
};

enum { VV_NODE_DIRTY = 1, VV_NODE_KEYED = 2, VV_NODE_DEFINED = 4, VV_NODE_PENDING = 8, VV_NODE_MARK = 16 };

typedef struct {
    uint32_t parent, function, site;
    uint32_t last_child; /* the child found last */
    uint64_t started, ok, inclusive_ns, direct_ns;
    uint64_t await_ns;
    uint8_t edge, flags;
    uint8_t inclusive_high, direct_high, await_high; /* what overflowed the sums, in units of 2^64 ns */
} vv_node;
_Static_assert(sizeof(vv_node) == 64, "a node's hot half is one cache line");

typedef struct {
    vv_context_key key;
    uint64_t error, cancelled, exited, await_count, selected;
} vv_node_cold;

typedef struct {
    varve_engine *engine;
    vv_governor *governor;
    vv_node *nodes;
    vv_node_cold *cold;
    uint64_t *dirty;     /* one bit a node */
    uint32_t *slots;     /* hash table of index + 1 by (parent, function, site, edge) */
    uint32_t count, cap; /* nodes */
    uint32_t mask;       /* of slots */
    uint32_t dirty_count;
    uint8_t health;
    bool overflowed;     /* some bucket is not zero, or owed */
    /* Buckets, one bit each, that a committed group has shown, that are in the group in flight, and that were lost with
     * one: those are written again, for a fact may name them. */
    uint8_t buckets_shown, buckets_pending, buckets_owed;
    uint64_t sealed_started, sealed_awaits; /* calls and intervals in the rows of the last seal */
    vv_counters overflow[VV_OVERFLOW_REASONS][VV_EDGES];
} vv_cct;
_Static_assert(VV_OVERFLOW_REASONS * VV_EDGES <= 8, "a bit each in a byte");

void vv_cct_init(vv_cct *c, varve_engine *engine, vv_governor *g);
void vv_cct_done(vv_cct *c);

static inline bool vv_is_overflow(uint32_t node)
{
    return node >= VV_NODE_OVERFLOW && node < VV_NODE_ORPHAN;
}

static inline uint32_t vv_overflow_node(unsigned reason, unsigned edge)
{
    return VV_NODE_OVERFLOW + reason * VV_EDGES + edge;
}

/* The child's node, made where it is new; VV_NODE_NONE where memory is denied. parent is a node, or VV_NODE_NONE at
 * the top. */
uint32_t vv_cct_intern(vv_cct *c, uint32_t parent, uint32_t function, uint32_t site, unsigned edge);

static inline uint32_t vv_cct_hash(uint32_t parent, uint32_t function, uint32_t site, unsigned edge)
{
    /* Independent products: the latency of one. */
    uint64_t h = parent * 0x9e3779b97f4a7c15ULL ^ function * 0xc2b2ae3d27d4eb4fULL ^
                 ((uint64_t)site << 2 | edge) * 0x165667b19e3779f9ULL;
    return (uint32_t)(h >> 32) ^ (uint32_t)(h >> 17);
}

/* The child of a Call edge below a node, if it is where one looks first: the one met last, or in its place of the
 * table. Else VV_NODE_NONE, which means nothing yet. */
static inline uint32_t vv_cct_known_child(const vv_cct *c, uint32_t parent, uint32_t function, uint32_t site)
{
    uint32_t i = c->nodes[parent].last_child;
    const vv_node *n = &c->nodes[i];
    if (VV_LIKELY(i && n->function == function && n->site == site))
        return i;
    i = c->slots[vv_cct_hash(parent, function, site, VV_EDGE_CALL) & c->mask];
    n = &c->nodes[i - 1];
    if (VV_LIKELY(i && n->parent == parent && n->function == function && n->site == site && n->edge == VV_EDGE_CALL)) {
        c->nodes[parent].last_child = i - 1;
        return i - 1;
    }
    return VV_NODE_NONE;
}

static inline void vv_cct_touch(vv_cct *c, uint32_t i)
{
    vv_node *n = &c->nodes[i];
    if (VV_UNLIKELY(!(n->flags & VV_NODE_DIRTY))) {
        n->flags |= VV_NODE_DIRTY;
        c->dirty[i / 64] |= 1ULL << i % 64;
        c->dirty_count++;
    }
}

/* The sum passed 2^64 once more. At the last carry it stays at its end, which is told as health. */
void vv_cct_carry(vv_cct *c, uint64_t *sum, uint8_t *high, uint8_t health);

static inline void vv_add_carry(vv_cct *c, uint64_t *sum, uint8_t *high, uint64_t v, uint8_t health)
{
    if (VV_UNLIKELY(__builtin_add_overflow(*sum, v, sum)))
        vv_cct_carry(c, sum, high, health);
}

/* A call ended with status (0 to 3) on node (which may be an overflow bucket). */
void vv_cct_end_slow(vv_cct *c, uint32_t node, unsigned status, uint64_t inclusive_ns, uint64_t await_ns,
                     uint64_t await_count);
/* A Call child of node (or of an overflow bucket) took this long. */
void vv_cct_direct(vv_cct *c, uint32_t node, uint64_t inclusive_ns);
/* A call of node (or of an overflow bucket) is selected. */
void vv_cct_selected(vv_cct *c, uint32_t node);
/* The key of a node that stays; false: no memory for the way to it. */
VV_MUST_CHECK bool vv_cct_key(vv_cct *c, uint32_t node, vv_context_key *ret);
/* A call started in an overflow bucket. */
void vv_cct_overflow_start(vv_cct *c, uint32_t node);

/* Whether a seal would write a row. */
static inline bool vv_cct_is_dirty(const vv_cct *c)
{
    return c->dirty_count || c->overflowed;
}

/* A row of the group that is being written: its counters are taken out of the node. */
typedef struct {
    uint64_t order; /* the key's first 8 bytes */
    uint32_t node;
} vv_cct_ref;

/*
 * Writes rows until about max_bytes are in w, parents first by index, then sorted by key as the format wants; overflow
 * buckets go with the last. Returns the record count; *ret_more: rows are left for another group. refs has room for
 * max_bytes / VV_CCT_ROW_MIN + 1. The nodes are pending until vv_cct_settle. 0 rows: nothing was written.
 */
uint64_t vv_cct_seal(vv_cct *c, vv_wr *w, size_t max_bytes, vv_cct_ref *refs, uint32_t *ret_refs, uint8_t *ret_health,
                     bool *ret_more);
/* The group was committed (or renamed): its definitions hold. Or it was lost: they must be written again. */
void vv_cct_settle(vv_cct *c, const vv_cct_ref *refs, uint32_t n, bool committed);

/* The store takes nothing any more: counters start over, unwritten, their sums in sealed_started and sealed_awaits. */
void vv_cct_discard(vv_cct *c);

/*
 * Rollover: drops all nodes but those in keep (n indexes, in any order), those with counters that were not sealed, and
 * what the definitions of both still need. map, of c->count entries, receives each node's new index or VV_NODE_NONE.
 * Memory that is no longer needed is given back. No group may be in flight.
 */
void vv_cct_rollover(vv_cct *c, const uint32_t *keep, size_t n, uint32_t *map);
