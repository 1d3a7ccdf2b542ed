#include "config.h"
#include "hosts/lua/recorder.h"

#include <stdlib.h>

#define FIRST_FRAMES 8

static void link_shadow(vl_shadow *s)
{
    s->next = vl.all;
    s->link = &vl.all;
    if (vl.all)
        vl.all->link = &s->next;
    vl.all = s;
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
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    free(s->frames);
    free(s);
}

bool vl_shadow_grow(vl_shadow *s)
{
    uint32_t cap = s->cap ? s->cap * 2 : FIRST_FRAMES;
    vl_frame *frames = cap > s->cap ? realloc(s->frames, cap * sizeof *frames) : NULL;
    if (!frames)
        return false;
    s->frames = frames;
    s->cap = cap;
    return true;
}

void vl_shadow_cut(vl_shadow *s, uint32_t n, varve_call_status status, uint64_t ticks)
{
    for (; s->depth > n; s->depth--)
        varve_call_end_at(s->thread, status, ticks);
    if (!s->depth)
        s->tick = ticks;
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
        vl_shadow_cut(s, n, VARVE_CALL_ERRORED, varve_ticks());
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
        vl_shadow_cut(s, s->floor, VARVE_CALL_ERRORED, varve_ticks());
    if (!s->thread)
        vl_thread_ensure(s);
}
