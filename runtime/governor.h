/*
 * The memory governor: every byte that grows with the host's load is reserved here before it is allocated.
 *
 * Three pools that never borrow from each other: Control (executions and their ends), Manual (calls selected by hand),
 * General (all else). A reservation is all or nothing and never waits. Owners are for diagnosis only.
 *
 * A reservation that finds no room asks the relief once: it signals the consumer and gives back what is only cached.
 * Then it is tried again, once, and a second denial is counted.
 *
 * Any thread. The governor lives as long as the session.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

typedef enum { VV_POOL_CONTROL, VV_POOL_MANUAL, VV_POOL_GENERAL, VV_POOLS } vv_pool;
typedef enum {
    VV_OWN_TRANSPORT,
    VV_OWN_POPULATION,
    VV_OWN_CALLS,
    VV_OWN_JOINS,
    VV_OWN_EVIDENCE,
    VV_OWN_VALUES,
    VV_OWN_WRITER,
    VV_OWNERS,
} vv_owner;

typedef struct vv_governor vv_governor;

/* What a test puts in. The members may be NULL. */
typedef struct {
    bool (*denies)(void *ctx, vv_owner owner);     /* each reservation asks: true denies it, whatever room there is */
    void (*done)(void *ctx, const vv_governor *g); /* all that was charged should have been given back */
    void *ctx;
} vv_governor_test;

struct vv_governor {
    struct {
        _Atomic uint64_t used;
        uint64_t limit;
    } pools[VV_POOLS];
    _Atomic uint64_t denials[VV_POOLS][VV_OWNERS];
    /* What Values may take of General, so that values that wait for a slow disk leave the rings their room; 0: all. */
    uint64_t values_limit;
    _Atomic uint64_t values_used;
    void (*relieve)(void *ctx);
    void *relief_ctx;
    vv_governor_test test;
};

/* What a reservation of n bytes is charged: at least its owner's figure, so that tiny items can't be many for
 * nothing. */
static inline uint64_t vv_charge(vv_owner owner, uint64_t n)
{
    static const uint64_t least[VV_OWNERS] = {
        [VV_OWN_TRANSPORT] = 262144, /* a ring's segment */
        [VV_OWN_POPULATION] = 256,
        [VV_OWN_CALLS] = 320,
        [VV_OWN_JOINS] = 256,
        [VV_OWN_EVIDENCE] = 256,
        [VV_OWN_VALUES] = 512,
        [VV_OWN_WRITER] = 65536, /* a batch */
    };
    return n < least[owner] ? least[owner] : n;
}

enum { VV_ALLOC_ALIGN = 64, VV_ALLOC_MARGIN = 64 };
/* From this size on a block is a mapping of its own, which goes back to the system at once when it is freed. */
enum { VV_ALLOC_LARGE = 131072, VV_ALLOC_PAGE = 4096 };

/* What an allocation of n bytes is charged: its rounding, the allocator's share, and the least charge. */
static inline uint64_t vv_alloc_charge(vv_owner owner, uint64_t n)
{
    uint64_t unit = n >= VV_ALLOC_LARGE ? VV_ALLOC_PAGE : VV_ALLOC_ALIGN;
    return vv_charge(owner, (n + unit - 1) / unit * unit + (n >= VV_ALLOC_LARGE ? 0 : VV_ALLOC_MARGIN));
}

void vv_governor_init(vv_governor *g, const uint64_t limits[VV_POOLS]);
/* The session has let go of all it had. */
void vv_governor_done(vv_governor *g);
/* What a denied reservation calls before its second try, on its own thread: must not block, nor reserve. Before the
 * governor is shared. */
void vv_governor_on_denial(vv_governor *g, void (*relieve)(void *ctx), void *ctx);

/* Charges n bytes (vv_charge); false (and one denial of the pool's owner) where the pool can't hold them, also after
 * relief. */
VV_MUST_CHECK bool vv_reserve(vv_governor *g, vv_pool pool, vv_owner owner, uint64_t n);
/* What was reserved by this owner in one piece of n bytes; 0 is nothing. */
void vv_release(vv_governor *g, vv_pool pool, vv_owner owner, uint64_t n);

/* Reserve (vv_alloc_charge) and allocate in one step; NULL where either fails. Memory is zeroed and, but for that of
 * Values, aligned for a cache line. */
VV_MUST_CHECK void *vv_gov_alloc(vv_governor *g, vv_pool pool, vv_owner owner, size_t n);
/* p may be NULL. n is the size it was allocated with, by this owner. */
void vv_gov_free(vv_governor *g, vv_pool pool, vv_owner owner, void *p, size_t n);
/* A larger block with the first old bytes of p (which is freed) and zeroes after; NULL leaves p as it was. */
VV_MUST_CHECK void *vv_gov_grow(vv_governor *g, vv_pool pool, vv_owner owner, void *p, size_t old, size_t n);
/* The same for work that may use Manual where General has no room: *pool is where p is, and becomes where the new block
 * is. Without manual, General alone, unless p is in Manual already. */
VV_MUST_CHECK void *vv_gov_grow_any(vv_governor *g, vv_pool *pool, bool manual, vv_owner owner, void *p, size_t old,
                                    size_t n);
