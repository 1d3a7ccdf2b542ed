#include "config.h"
#include "hosts/lua/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/lua/callid.h"
#include "hosts/lua/chunk.h"
#include "hosts/lua/cnames.h"
#include "hosts/lua/live.h"
#include "hosts/lua/public.h"

/* What stands for a function when memory is out: its calls are counted as unattributed. */
static vl_function no_function = {.mapped = true};
static vl_code no_code = {.function = &no_function};

static char *name_c_function(lua_State *L, lua_Debug *ar, lua_CFunction f)
{
    char key[260];
    const char *name = vl_cnames_get(L, f);
    lua_Debug n = {.i_ci = ar ? ar->i_ci : NULL};
    if (!name && ar)
        lua_getinfo(L, "n", &n);
    snprintf(key, sizeof key, "c:%s%s", name ? "" : "?", name ? name : n.name ? n.name : "");
    return strdup(key);
}

/* ar NULL: it isn't being called. */
static vl_code *learn_c_function(lua_State *L, lua_Debug *ar, const void *key, lua_CFunction f)
{
    vl_function *function = calloc(1, sizeof *function);
    vl_code *code = calloc(1, sizeof *code);
    if (function)
        function->name = name_c_function(L, ar, f);
    if (!function || !function->name || !code || !vl_ptrmap_put(&vl.codes, key, code)) {
        free(function ? function->name : NULL);
        free(function);
        free(code);
        return &no_code;
    }
    code->function = function;
    code->passes_id = f == vl_call_function;
    vl_live_c_function(function);
    return code;
}

vl_code *vl_identify_slow(lua_State *L, lua_Debug *ar, const void *key)
{
    vl_code *code = vl_ptrmap_get(&vl.codes, key);
    if (!code) {
        lua_Debug a = {.i_ci = ar->i_ci};
        lua_getinfo(L, "Sf", &a);
        lua_CFunction f = lua_tocfunction(L, -1);
        lua_pop(L, 1);
        code = f ? learn_c_function(L, ar, key, f) : vl_chunk_stranger(L, &a, key);
    }
    if (!code)
        return &no_code;
    if (!code->function->mapped)
        vl_live_map(code->function);
    code->plain = !code->llm;
    return code;
}

void vl_identify_as_llm(lua_State *L, int index)
{
    lua_Debug ar;
    lua_CFunction f = lua_tocfunction(L, index);
    lua_pushvalue(L, index);
    lua_getinfo(L, ">S", &ar);
    const void *key = (const void *)(uintptr_t)f;
    if (!f && vl.private_layout)
        key = vl_closure_proto(lua_topointer(L, index));
    vl_code *code = key ? vl_ptrmap_get(&vl.codes, key) : vl_public_code(L, &ar);
    if (!code)
        code = f ? learn_c_function(L, NULL, key, f) : key ? vl_chunk_stranger(L, &ar, key) : NULL;
    if (code && code != &no_code) {
        code->llm = true;
        code->plain = false;
    }
}

const char *vl_identify_name(lua_State *L)
{
    static char text[260];
    lua_CFunction f = lua_tocfunction(L, -1);
    const vl_code *code;
    if (f || vl.private_layout) {
        code = vl_ptrmap_get(&vl.codes, f ? (const void *)(uintptr_t)f : vl_closure_proto(lua_topointer(L, -1)));
    } else {
        lua_Debug ar;
        lua_pushvalue(L, -1);
        lua_getinfo(L, ">S", &ar);
        code = vl_public_known(&ar);
    }
    const char *name = code ? vl_live_name(code->function) : NULL;
    const char *library_name = f && !name ? vl_cnames_known(f) : NULL;
    if (library_name) {
        snprintf(text, sizeof text, "c:%s", library_name);
        name = text;
    }
    return name;
}

const vl_site *vl_site_slow(lua_State *L, const void *caller, vl_code *code, uint32_t pc)
{
    if (!code->sites && !(code->sites = calloc(code->code_size, sizeof *code->sites)))
        return vl_live_site(NULL, 0);
    lua_Debug ar;
    memset(&ar, 0, sizeof ar);
    ar.i_ci = (struct CallInfo *)(uintptr_t)caller;
    lua_getinfo(L, "l", &ar);
    return code->sites[pc] = vl_live_site(code->function->chunk, ar.currentline > 0 ? (uint32_t)ar.currentline : 0);
}

void vl_code_freed(const void *proto)
{
    vl_code *code = vl_ptrmap_remove(&vl.codes, proto);
    if (code) {
        vl_live_code_gone(code);
        free(code->sites);
        free(code);
    }
}
