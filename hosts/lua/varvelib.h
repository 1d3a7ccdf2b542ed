/*
 * The library `varve` of Lua programs: LocalIds, calls with one, runtime ids, LLM functions (docs/lua-host.md,
 * "Library").
 */
#pragma once

#include <lua.h>

/* A lua_CFunction that leaves the library's table. */
int vl_open_library(lua_State *L);
