/*
 * Functions of liblua that the executable defines again, and what steers them.
 */
#pragma once

#include <stdbool.h>
#include <time.h>

/* While set (the interpreter's own state is being made), lua_newstate uses the recorder's allocator, and time() answers the seed time where one is set (>= 0). */
extern bool vl_interpose_creating;
extern time_t vl_interpose_seed_time;
