#include "config.h"
#include "hosts/lua/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/lua/chunk.h"
#include "hosts/lua/cnames.h"

/* What stands for a function when memory is out: its calls are counted as unattributed. */
static vl_function no_function;
static vl_code no_code = {.function = &no_function};

static uint32_t add_c_function(lua_State *L, lua_Debug *ar, lua_CFunction f)
{
    char fqn[256], key[260];
    const char *name = vl_cnames_get(L, f);
    if (name) {
        snprintf(fqn, sizeof fqn, "%s", name);
    } else {
        lua_Debug n = {.i_ci = ar->i_ci};
        lua_getinfo(L, "n", &n);
        snprintf(fqn, sizeof fqn, "?%s", n.name ? n.name : "");
    }
    snprintf(key, sizeof key, "c:%s", fqn);
    varve_function_info info = {
        .fqn = fqn, .definition_key = key, .kind = VARVE_FN_NATIVE, .origin = VARVE_FN_BUILTIN};
    return varve_function_add(vl.engine, &info);
}

static vl_code *learn_c_function(lua_State *L, lua_Debug *ar, const void *key, lua_CFunction f)
{
    vl_function *function = calloc(1, sizeof *function);
    vl_code *code = calloc(1, sizeof *code);
    if (!function || !code || !vl_ptrmap_put(&vl.codes, key, code)) {
        free(function);
        free(code);
        return &no_code;
    }
    code->function = function;
    function->id = add_c_function(L, ar, f);
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
    if (!code->function->id && code->function->chunk)
        vl_function_publish(code->function);
    return code;
}

uint32_t vl_site_slow(lua_State *L, const void *caller, vl_code *code, uint32_t pc)
{
    if (!code->sites && !(code->sites = calloc(code->code_size, sizeof *code->sites)))
        return 0;
    lua_Debug ar;
    memset(&ar, 0, sizeof ar);
    ar.i_ci = (struct CallInfo *)(uintptr_t)caller;
    lua_getinfo(L, "l", &ar);
    uint32_t line = ar.currentline > 0 ? (uint32_t)ar.currentline : 0;
    uint32_t site = line ? varve_site_add(vl.engine, code->file, 0, 0, line) : 0;
    code->sites[pc] = site + 1;
    return site;
}

void vl_code_freed(const void *proto)
{
    vl_code *code = vl_ptrmap_remove(&vl.codes, proto);
    if (code) {
        free(code->sites);
        free(code);
    }
}
