/*
 * Which function runs, and from where it was called.
 *
 * A prototype names a Lua function and a function pointer a C one. Prototypes are learned when their chunk is loaded
 * (chunk.h) and forgotten when their block is freed, so a new prototype at an old address is never taken for the old
 * function.
 */
#pragma once

#include "hosts/lua/host.h"
#include "hosts/lua/layout.h"

/* A stack slot's function as a key of vl.codes. */
static inline const void *vl_function_key(const vl_value *f)
{
    if (f->tag == VL_TAG_LUA)
        return vl_closure_proto(f->v.p);
    if (f->tag == VL_TAG_C_LIGHT)
        return f->v.p;
    return (const void *)(uintptr_t)((const vl_c_closure *)f->v.p)->f;
}

/* The function of the activation ar->i_ci where vl.codes doesn't have it or it isn't mapped yet. Never NULL: where
 * there is no memory, a function that stands for none. */
vl_code *vl_identify_slow(lua_State *L, lua_Debug *ar, const void *key);

/* The call site of the activation `caller`, which runs `code` and stands at instruction pc. */
const vl_site *vl_site_slow(lua_State *L, const void *caller, vl_code *code, uint32_t pc);

/* From now on calls of the function at this index of the stack are an LLM function's. */
void vl_identify_as_llm(lua_State *L, int index);

/* The name of the function at the top of the stack, where it is known without running Lua or making an object; else
 * NULL. Valid until the next call. */
const char *vl_identify_name(lua_State *L);

/* A prototype's block is about to be freed. */
void vl_code_freed(const void *proto);
