#include "config.h"
#include "hosts/lua/collect.h"

#include "hosts/lua/layout.h"

enum { WHOLE_HEAP = 1, YOUNG = 0 }; /* generations */

static struct {
    volatile bool deaf;    /* nobody listened: what was seen before is old */
    bool missed;           /* one runs whose start nobody heard */
    bool open;             /* started was told, ended not yet */
    unsigned forced;       /* inside of a collection that was asked for */
    unsigned inside;       /* the allocator raises */
    uint8_t white;         /* changes with each collection */
    uint64_t freed;        /* bytes since it started */
} at = {.deaf = true};

static uint64_t live_bytes(lua_State *L)
{
    if (vl.private_layout)
        return vl_global_bytes(vl_global_of(L));
    return (uint64_t)lua_gc(L, LUA_GCCOUNT) * 1024 + (uint64_t)lua_gc(L, LUA_GCCOUNTB);
}

static void started(uint32_t generation, bool forced)
{
    at.open = true;
    at.freed = 0;
    VARVE_RAISE(vl.host, collection_started, generation, forced);
}

static void ended(lua_State *L)
{
    at.open = false;
    VARVE_RAISE(vl.host, collection_ended, live_bytes(L), at.freed);
}

/* Between its atomic phase and the end of the sweep; a whole one also before, while it marks. A generational collector
 * that rests looks as if it marked. */
static bool is_running(const vl_global *g)
{
    return g->gc_state <= VL_GC_SWEPT && (!g->gc_generational || g->gc_state >= VL_GC_ATOMIC);
}

static void look(const vl_global *g)
{
    bool running = is_running(g);
    uint32_t generation = g->gc_generational ? YOUNG : WHOLE_HEAP;
    if (at.deaf) {
        at.deaf = at.open = false;
        at.missed = running;
        at.white = g->white;
    }
    if (at.missed) {
        at.missed = running;
        at.white = g->white;
        return;
    }
    bool another = g->white != at.white; /* one has marked all since the last look */
    at.white = g->white;
    if (!at.open && (running || another))
        started(generation, false);
    if (at.open && !running)
        ended(vl.L);
}

void vl_collect_look(size_t freed)
{
    if (!varve_host_wants(vl.host, VARVE_MON_COLLECTIONS) || at.inside)
        return;
    at.inside++;
    if (vl.private_layout && !at.forced)
        look(vl_global_of(vl.L));
    at.inside--;
    at.freed += freed;
}

void vl_collect_tell_allocated(uintptr_t block, size_t bytes, size_t kind)
{
    at.inside++;
    VARVE_RAISE(vl.host, object_allocated, block, bytes, (uint32_t)kind);
    at.inside--;
}

void vl_collect_tell_freed(uintptr_t block, size_t bytes)
{
    at.inside++;
    VARVE_RAISE(vl.host, object_freed, block, bytes);
    at.inside--;
}

bool vl_collect_forced_begin(lua_State *L)
{
    if (vl.private_layout && vl_global_of(L)->gc_stopped & VL_GC_STOPPED_ITSELF)
        return false;
    if (!at.forced++) {
        if (at.open && !at.deaf)
            ended(L); /* the new one puts an end to it */
        started(WHOLE_HEAP, true);
    }
    return true;
}

void vl_collect_forced_end(lua_State *L)
{
    if (--at.forced)
        return;
    ended(L);
    at.deaf = at.missed = false;
    if (vl.private_layout)
        at.white = vl_global_of(L)->white;
}

void vl_collect_unheard(void)
{
    at.deaf = true;
}

/* The innermost state that finalizers can run in: not one that is about to be resumed, or has yielded or failed. */
static lua_State *finalizing_state(void)
{
    const vl_shadow *s = vl.current;
    while (s->resumer && (!s->depth || lua_status(s->L) != LUA_OK))
        s = s->resumer;
    return s->L;
}

varve_code vl_collect_force(void *me)
{
    (void)me;
    if (!vl.L || !vl_interpreter || at.inside || at.forced)
        return VARVE_E_UNAVAILABLE;
    return lua_gc(finalizing_state(), LUA_GCCOLLECT) < 0 ? VARVE_E_UNAVAILABLE : VARVE_OK;
}
