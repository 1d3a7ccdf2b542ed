/*
 * Collections, allocations and what is freed, as events.
 *
 * Lua says nothing of its collections but to the allocator: while somebody wants to know of them, each call of it looks
 * at the collector's state, so a collection is seen to begin and to end at the first allocation, or the first freed
 * block, after it did. Those that lua_gc was asked for are told exactly. Without the private layout only those.
 */
#pragma once

#include "hosts/lua/host.h"

/* The allocator is about to do this, or has done it; see lua_Alloc. */
void vl_collect_look(size_t freed);
void vl_collect_tell_allocated(uintptr_t block, size_t bytes, size_t kind);
void vl_collect_tell_freed(uintptr_t block, size_t bytes);
static inline bool vl_collect_wanted(void)
{
    return vl.L && varve_host_wants(vl.host, VARVE_MON_COLLECTIONS | VARVE_MON_ALLOCATIONS);
}

/* Around a whole collection that lua_gc was asked for. False: it will refuse. */
bool vl_collect_forced_begin(lua_State *L);
void vl_collect_forced_end(lua_State *L);
/* Nobody listens to collections any more. Async-signal-safe. */
void vl_collect_unheard(void);
/* The answer to force_collection. */
varve_code vl_collect_force(void *me);
