/*
 * Names of C functions: `string.sub`, `FILE*:read`, found by walking package.loaded and the metatables of the registry.
 */
#pragma once

#include <lua.h>

/* Reads the names once the standard libraries are open. */
void vl_cnames_open(lua_State *L);
/* Names a function that stands in no table. The text must live for good. */
void vl_cnames_add(lua_CFunction f, const char *name);
/* The name as far as it is known, without looking. */
const char *vl_cnames_known(lua_CFunction f);
/* The name, reading the tables again where f is not known; NULL where it stands in none. */
const char *vl_cnames_get(lua_State *L, lua_CFunction f);
