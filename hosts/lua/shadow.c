#include "config.h"
#include "hosts/lua/host.h"

#include <stdlib.h>

#include "hosts/lua/fault.h"
#include "hosts/lua/layout.h"
#include "hosts/lua/live.h"
#include "hosts/lua/select.h"
#include "hosts/lua/tell.h"
#include "hosts/lua/unwind.h"

#define FIRST_FRAMES 8

static void link_shadow(vl_shadow *s)
{
    vl_live_lock();
    s->next = vl.all;
    s->link = &vl.all;
    if (vl.all)
        vl.all->link = &s->next;
    vl.all = s;
    vl_live_unlock();
}

vl_shadow *vl_shadow_new(lua_State *L)
{
    vl_shadow *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->L = L;
    link_shadow(s);
    return s;
}

void vl_shadow_free(vl_shadow *s)
{
    vl_live_lock();
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    vl_live_unlock();
    free(s->frames);
    free(s);
}

bool vl_shadow_grow(vl_shadow *s)
{
    uint32_t cap = s->cap ? s->cap * 2 : FIRST_FRAMES;
    varve_nosuspend_enter(); /* a signal handler may look at the frames */
    vl_frame *frames = cap > s->cap ? realloc(s->frames, cap * sizeof *frames) : NULL;
    if (frames) {
        s->frames = frames;
        s->cap = cap;
    }
    varve_nosuspend_leave();
    return frames;
}

void vl_shadow_cut(vl_shadow *s, uint32_t n, varve_ending how, uint64_t ticks)
{
    while (s->depth > n) {
        if (how == VARVE_ENDED_OK && s->frames[s->depth - 1].output)
            vl_select_output(s, s->L, NULL);
        if (s->throwing)
            VARVE_RAISE(vl.host, exception_unwound, vl_id(s), vl_id(s->frames[s->depth - 1].function));
        vl_tell_left(s, s->L, NULL, how, ticks);
        s->depth--;
        vl.leave_at(s->cookie, how, ticks);
    }
    if (!s->depth)
        s->tick = ticks;
    vl_unwind_left(s);
}

uint32_t vl_shadow_find(const vl_shadow *s, const void *ci)
{
    for (uint32_t i = s->depth; i; i--)
        if (s->frames[i - 1].ci == ci)
            return i;
    return 0;
}

bool vl_shadow_unwind(vl_shadow *s, const void *ci)
{
    uint32_t n = vl_shadow_find(s, ci);
    if (n && n < s->depth)
        vl_fault_land(s, n);
    return n;
}

vl_shadow *vl_shadow_at_hook(lua_State *L)
{
    vl_shadow *s = vl_shadow_of(L);
    if (s && s->L == L)
        return s;
    vl_thread_created(vl.current->L, L);
    s = vl_shadow_of(L);
    return s && s->L == L ? s : NULL;
}

void vl_shadow_no_caller(vl_shadow *s)
{
    if (s->depth > s->floor)
        vl_fault_unwind(s, s->floor, varve_ticks());
    if (!s->alive)
        vl_thread_ensure(s);
}

void vl_user_hook_run(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    /* Lua's masks are bits by event number; a tail call is a call. */
    int bit = ar->event == LUA_HOOKTAILCALL ? LUA_MASKCALL : 1 << ar->event;
    lua_Hook user = s->user_hook;
    if (!user || !(s->user_mask & bit))
        return;
    if (vl.private_layout)
        s->hook_jump = ((const vl_luastate *)(const void *)L)->error_jump;
    user(L, ar);
    s->hook_jump = NULL;
}
