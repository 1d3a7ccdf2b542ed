#include "config.h"
#include "hosts/lua/cnames.h"

#include <dlfcn.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/lua/ptrmap.h"

#define MAX_NAME 200
#define MAX_VISITS 20000 /* table entries looked at in one walk: a program's own tables may be huge */

static vl_ptrmap names; /* C function -> text; first found stays */

/* One walk's finds. Tables have no order of their own, so of several names of a function the shortest, then the
 * alphabetically first wins; a better rank beats both. */
typedef struct {
    vl_ptrmap found;
    unsigned visits;
} walk;

typedef struct {
    int rank;
    char name[];
} find;

static void note(walk *w, lua_CFunction f, int rank, const char *prefix, const char *mark, const char *key)
{
    const void *id = (const void *)(uintptr_t)f;
    char name[MAX_NAME];
    if (vl_ptrmap_get(&names, id) || snprintf(name, sizeof name, "%s%s%s", prefix, mark, key) >= (int)sizeof name)
        return;
    find *old = vl_ptrmap_get(&w->found, id);
    if (old) {
        int by_rank = old->rank - rank, by_length = (int)strlen(old->name) - (int)strlen(name);
        if (by_rank < 0 || (!by_rank && (by_length < 0 || (!by_length && strcmp(old->name, name) <= 0))))
            return;
    }
    find *better = malloc(sizeof *better + strlen(name) + 1);
    if (!better)
        return;
    better->rank = rank;
    strcpy(better->name, name);
    if (vl_ptrmap_put(&w->found, id, better))
        free(old);
    else
        free(better);
}

/* Notes the C functions of the table at the top of the stack. */
static void walk_table(lua_State *L, walk *w, int rank, const char *prefix, const char *mark)
{
    int t = lua_gettop(L);
    for (lua_pushnil(L); w->visits < MAX_VISITS && lua_next(L, t); lua_settop(L, t + 1)) {
        w->visits++;
        char index[32];
        const char *key = NULL;
        if (lua_type(L, -2) == LUA_TSTRING) {
            key = lua_tostring(L, -2);
        } else if (lua_isinteger(L, -2)) {
            snprintf(index, sizeof index, "[%lld]", (long long)lua_tointeger(L, -2));
            key = index;
        }
        if (key && lua_iscfunction(L, -1))
            note(w, lua_tocfunction(L, -1), rank, prefix, key == index ? "" : mark, key);
    }
    lua_settop(L, t);
}

/* package.loaded: each module's table, and the tables in it (package.searchers). Globals name what no module has. */
static void walk_modules(lua_State *L, walk *w)
{
    int top = lua_gettop(L);
    if (lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE) == LUA_TTABLE) {
        int loaded = top + 1;
        for (lua_pushnil(L); w->visits < MAX_VISITS && lua_next(L, loaded); lua_settop(L, loaded + 1)) {
            w->visits++;
            if (lua_type(L, -2) != LUA_TSTRING)
                continue;
            const char *module = lua_tostring(L, -2);
            int global = !strcmp(module, LUA_GNAME);
            if (lua_iscfunction(L, -1))
                note(w, lua_tocfunction(L, -1), 0, module, "", "");
            if (!lua_istable(L, -1))
                continue;
            walk_table(L, w, global ? 2 : 0, global ? "" : module, global ? "" : ".");
            if (!strcmp(module, LUA_LOADLIBNAME) && lua_getfield(L, -1, "searchers") == LUA_TTABLE)
                walk_table(L, w, 1, "package.searchers", ".");
        }
    }
    lua_settop(L, top);
}

/* Metatables made by luaL_newmetatable: methods as `FILE*:read`, metamethods as `FILE*.__gc`. */
static void walk_metatables(lua_State *L, walk *w)
{
    int top = lua_gettop(L);
    lua_pushvalue(L, LUA_REGISTRYINDEX);
    for (lua_pushnil(L); w->visits < MAX_VISITS && lua_next(L, top + 1); lua_settop(L, top + 2)) {
        w->visits++;
        if (lua_type(L, -2) != LUA_TSTRING || !lua_istable(L, -1))
            continue;
        lua_pushliteral(L, "__name");
        if (lua_rawget(L, -2) != LUA_TSTRING)
            continue;
        char type[MAX_NAME / 2];
        snprintf(type, sizeof type, "%s", lua_tostring(L, -1));
        lua_pop(L, 1);
        lua_pushliteral(L, "__index");
        if (lua_rawget(L, -2) == LUA_TTABLE)
            walk_table(L, w, 3, type, ":");
        lua_pop(L, 1);
        walk_table(L, w, 4, type, ".");
    }
    lua_settop(L, top);
    lua_pushliteral(L, "");
    if (lua_getmetatable(L, -1))
        walk_table(L, w, 5, "string", ".");
    lua_settop(L, top);
}

static void keep(const walk *w)
{
    for (size_t i = 0; w->found.slots && i <= w->found.mask; i++) {
        find *f = w->found.slots[i].value;
        if (!w->found.slots[i].key)
            continue;
        char *name = strdup(f->name);
        if (!name || !vl_ptrmap_put(&names, w->found.slots[i].key, name))
            free(name);
        free(f);
    }
}

static void read_tables(lua_State *L)
{
    walk w = {0};
    if (!lua_checkstack(L, 12))
        return;
    walk_modules(L, &w);
    walk_metatables(L, &w);
    keep(&w);
    vl_ptrmap_done(&w.found);
}

void vl_cnames_add(lua_CFunction f, const char *name)
{
    char *copy = strdup(name);
    if (!copy || !vl_ptrmap_put(&names, (const void *)(uintptr_t)f, copy))
        free(copy);
}

/* Functions that the standard library only hands out: each of these expressions gives one. */
static void name_handed_out(lua_State *L)
{
    static const struct {
        const char *expression, *name;
    } given[] = {
        {"return string.gmatch('', '')", "string.gmatch:iterator"},
        {"return (ipairs{})", "ipairs:iterator"},
        {"return coroutine.wrap(print)", "coroutine.wrap:resume"},
        {"return io.stdin:lines()", "FILE*:lines:iterator"},
        {"return (utf8.codes(''))", "utf8.codes:iterator"},
    };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        int top = lua_gettop(L);
        bool loaded = luaL_loadstring(L, given[i].expression) == LUA_OK;
        if (loaded && lua_pcall(L, 0, 1, 0) == LUA_OK && lua_iscfunction(L, -1))
            vl_cnames_add(lua_tocfunction(L, -1), given[i].name);
        lua_settop(L, top);
    }
}

void vl_cnames_open(lua_State *L)
{
    name_handed_out(L);
    read_tables(L);
}

/* The linker's name of exported functions: luaopen_MODULE. */
static const char *symbol_of(lua_CFunction f)
{
    Dl_info info;
    void *address = NULL;
    memcpy(&address, &f, sizeof f);
    return dladdr(address, &info) && info.dli_saddr == address ? info.dli_sname : NULL;
}

const char *vl_cnames_known(lua_CFunction f)
{
    const char *name = vl_ptrmap_get(&names, (const void *)(uintptr_t)f);
    return name ? name : symbol_of(f);
}

const char *vl_cnames_get(lua_State *L, lua_CFunction f)
{
    if (!vl_ptrmap_get(&names, (const void *)(uintptr_t)f))
        read_tables(L);
    return vl_cnames_known(f);
}
