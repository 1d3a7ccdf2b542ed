/*
 * Repeatable runs: the same addresses and the same hash seed, so that tables are walked in the same order and two runs
 * of a program make the same calls.
 */
#pragma once

#include <lua.h>
#include <stdbool.h>

/* Runs this program again without address randomisation, unless it runs so already. False where the system refuses. */
bool vl_repeat_exec(char **argv);

/* A new state whose seed depends on nothing of this run. NULL where there is no memory. */
lua_State *vl_repeat_newstate(void);
