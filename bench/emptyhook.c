/*
 * A Lua interpreter whose call and return hook does nothing: what any recorder by hooks pays before its own first
 * instruction.
 *
 *     emptyhook SCRIPT [ARG…]
 */
#include "config.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

static void hook(lua_State *L, lua_Debug *ar)
{
    (void)L;
    (void)ar;
}

int main(int argc, char **argv)
{
    lua_State *L = luaL_newstate();
    if (!L || argc < 2)
        return EXIT_FAILURE;
    luaL_openlibs(L);
    lua_gc(L, LUA_GCGEN, 0, 0);
    lua_createtable(L, argc, 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - 1);
    }
    lua_setglobal(L, "arg");
    lua_sethook(L, hook, LUA_MASKCALL | LUA_MASKRET, 0);
    int status = luaL_loadfile(L, argv[1]);
    for (int i = 2; status == LUA_OK && i < argc; i++)
        lua_pushstring(L, argv[i]);
    if (status == LUA_OK)
        status = lua_pcall(L, argc - 2, 0, 0);
    if (status != LUA_OK)
        fprintf(stderr, "emptyhook: %s\n", lua_tostring(L, -1));
    lua_close(L);
    return status == LUA_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
