/*
 * Lua values as captured values (docs/lua-host.md, "Captured values").
 *
 * Written inside of hooks and of errors on their way: nothing here raises, runs Lua code, asks a metamethod or makes an
 * object. The C stack needed does not depend on the value. Where Lua's own stack has no room for a table's keys, the
 * table is left out.
 */
#pragma once

#include <lua.h>
#include <stdbool.h>
#include <varve.h>

/* Once, where raising is allowed. */
void vl_value_open(lua_State *L);

/* The value at the top of the stack. */
void vl_value_put(varve_capture *c, lua_State *L);
/* Text, or bytes where it is no UTF-8. */
void vl_value_put_string(varve_capture *c, const char *s, size_t n);

/* The arguments of the call that the hook's ar is of, at its begin; its results, at its end. */
void vl_value_put_arguments(varve_capture *c, lua_State *L, lua_Debug *ar);
void vl_value_put_results(varve_capture *c, lua_State *L, lua_Debug *ar);
/* What stands at the n slots from `first` on, as results. */
void vl_value_put_slots(varve_capture *c, lua_State *L, int first, int n);
