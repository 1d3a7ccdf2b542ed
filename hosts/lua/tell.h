/*
 * The slow path of a call's events, for profilers that want them beside the main one's fast hooks, or without; and the
 * values of the call that they may ask for meanwhile.
 */
#pragma once

#include "hosts/lua/host.h"

/* The top frame was entered; ar is the hook's. */
void vl_tell_entered(vl_shadow *s, lua_State *L, lua_Debug *ar, uint64_t ticks);
/* The top frame is left; ar NULL: without results that one could see. */
void vl_tell_left(vl_shadow *s, lua_State *L, lua_Debug *ar, varve_ending how, uint64_t ticks);

/* The answer to call_values. */
varve_code vl_tell_values(void *me, varve_values_kind which, varve_value *into, size_t room, size_t *ret_count);
