#include "config.h"

#include "runtime/governor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void vv_governor_init(vv_governor *g, const uint64_t limits[VV_POOLS])
{
    memset(g, 0, sizeof *g);
    for (unsigned i = 0; i < VV_POOLS; i++)
        g->pools[i].limit = limits[i];
}

void vv_governor_on_denial(vv_governor *g, void (*relieve)(void *ctx), void *ctx)
{
    g->relieve = relieve;
    g->relief_ctx = ctx;
}

void vv_governor_done(vv_governor *g)
{
    if (g->test.done)
        g->test.done(g->test.ctx, g);
}

static bool try_reserve(vv_governor *g, vv_pool pool, uint64_t n)
{
    uint64_t used = atomic_load_explicit(&g->pools[pool].used, memory_order_relaxed);
    do {
        if (n > g->pools[pool].limit - used)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&g->pools[pool].used, &used, used + n, memory_order_acq_rel,
                                                    memory_order_relaxed));
    return true;
}

static bool is_limited(const vv_governor *g, vv_pool pool, vv_owner owner)
{
    return owner == VV_OWN_VALUES && pool == VV_POOL_GENERAL && g->values_limit;
}

/* Within the owner's share, and the pool's. */
static bool try_owner(vv_governor *g, vv_pool pool, vv_owner owner, uint64_t n)
{
    if (!is_limited(g, pool, owner))
        return try_reserve(g, pool, n);
    uint64_t used = atomic_fetch_add_explicit(&g->values_used, n, memory_order_relaxed);
    if (n <= g->values_limit && used <= g->values_limit - n && try_reserve(g, pool, n))
        return true;
    atomic_fetch_sub_explicit(&g->values_used, n, memory_order_relaxed);
    return false;
}

bool vv_reserve(vv_governor *g, vv_pool pool, vv_owner owner, uint64_t n)
{
    n = vv_charge(owner, n);
    bool denied = g->test.denies && g->test.denies(g->test.ctx, owner);
    if (!denied && try_owner(g, pool, owner, n))
        return true;
    if (g->relieve) {
        g->relieve(g->relief_ctx);
        if (!denied && try_owner(g, pool, owner, n))
            return true;
    }
    atomic_fetch_add_explicit(&g->denials[pool][owner], 1, memory_order_relaxed);
    return false;
}

void vv_release(vv_governor *g, vv_pool pool, vv_owner owner, uint64_t n)
{
    if (!n)
        return;
    n = vv_charge(owner, n);
    if (is_limited(g, pool, owner))
        atomic_fetch_sub_explicit(&g->values_used, n, memory_order_relaxed);
    atomic_fetch_sub_explicit(&g->pools[pool].used, n, memory_order_acq_rel);
}

void *vv_gov_alloc(vv_governor *g, vv_pool pool, vv_owner owner, size_t n)
{
    return vv_gov_grow(g, pool, owner, NULL, 0, n);
}

void vv_gov_free(vv_governor *g, vv_pool pool, vv_owner owner, void *p, size_t n)
{
    if (!p)
        return;
    if (n >= VV_ALLOC_LARGE)
        munmap(p, n);
    else
        free(p);
    vv_release(g, pool, owner, vv_alloc_charge(owner, n));
}

/* A mapping is zero; other memory is not. Values come and go by the hundred thousand, and need no cache line of their
 * own: an aligned block takes the allocator several times as long. */
static void *block_new(vv_owner owner, size_t n)
{
    if (n < VV_ALLOC_LARGE && owner == VV_OWN_VALUES)
        return malloc(n);
    if (n < VV_ALLOC_LARGE)
        return aligned_alloc(VV_ALLOC_ALIGN, (n + VV_ALLOC_ALIGN - 1) / VV_ALLOC_ALIGN * VV_ALLOC_ALIGN);
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* In another pool than p's. */
static void *grow_across(vv_governor *g, vv_pool from, vv_pool to, vv_owner owner, void *p, size_t old, size_t n)
{
    if (n > SIZE_MAX / 2 || !vv_reserve(g, to, owner, vv_alloc_charge(owner, n)))
        return NULL;
    uint8_t *q = block_new(owner, n);
    if (!q) {
        vv_release(g, to, owner, vv_alloc_charge(owner, n));
        return NULL;
    }
    if (old)
        memcpy(q, p, old);
    if (n < VV_ALLOC_LARGE)
        memset(q + old, 0, n - old);
    vv_gov_free(g, from, owner, p, old);
    return q;
}

void *vv_gov_grow(vv_governor *g, vv_pool pool, vv_owner owner, void *p, size_t old, size_t n)
{
    return grow_across(g, pool, pool, owner, p, old, n);
}

void *vv_gov_grow_any(vv_governor *g, vv_pool *pool, bool manual, vv_owner owner, void *p, size_t old, size_t n)
{
    vv_pool from = *pool;
    void *q = grow_across(g, from, from, owner, p, old, n);
    if (!q && manual && from == VV_POOL_GENERAL && (q = grow_across(g, from, VV_POOL_MANUAL, owner, p, old, n)))
        *pool = VV_POOL_MANUAL;
    return q;
}
