/*
 * Calls that policy may select: the root, LLM functions, and those that varve.call passes an id to. All other calls go
 * past this file. Where the recorder is the main profiler (vl.recorded) it is told of the policy and given the values
 * that it asks for.
 */
#pragma once

#include "hosts/lua/host.h"

/* Tells the main profiler that the top frame's call begins, by its policy, and gives its arguments. */
void vl_select_begin(vl_shadow *s, lua_State *L, lua_Debug *ar, uint64_t ticks);
/* The same for any call but those of the shortest way. */
static inline void vl_enter_top(vl_shadow *s, lua_State *L, lua_Debug *ar, uint64_t ticks)
{
    const vl_frame *top = &s->frames[s->depth - 1];
    if (top->code->llm || (s->depth > 1 && s->frames[s->depth - 2].code->passes_id))
        vl_select_begin(s, L, ar, ticks);
    else
        vl.enter_at(s->cookie, top->function->cookie, top->site->cookie, ticks);
}

/* The top frame, whose results are wanted, has returned. ar NULL: nobody sees them. */
void vl_select_output(vl_shadow *s, lua_State *L, lua_Debug *ar);

/* The root's input, once it has begun: the script's name (NULL: none) and n arguments. */
void vl_select_root_begin(const char *script, const char *const *arguments, int n);
/* Its output: what stands at n slots of L. */
void vl_select_root_output(lua_State *L, int first, int n);

/* The call of this activation has another runtime id now. */
void vl_select_set_id(lua_State *L, const lua_Debug *ar, const uint8_t id[16]);
