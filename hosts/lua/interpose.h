/*
 * Functions of liblua that the executable defines again, and what steers them.
 */
#pragma once

#include <lua.h>
#include <stdbool.h>
#include <time.h>

/* While set (the interpreter's own state is being made), lua_newstate uses the recorder's allocator, and time()
 * answers the seed time where one is set (>= 0). */
extern bool vl_interpose_creating;
extern time_t vl_interpose_seed_time;

/* Whether liblua's calls of its own functions come here: not where it is linked statically or bound to itself.
 * Without that, coroutines can't be followed, and nothing is recorded. */
bool vl_interpose_works(lua_State *L);
