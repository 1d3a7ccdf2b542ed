/*
 * Runtime ids of calls: what varve.current gives and varve.set and varve.call set. They are the language's, the same
 * with profiling on, off or by another profiler, and need no hook.
 *
 * varve.call keeps its callee's in its own frame (the first stack slot), so that it comes and goes with the call over
 * errors and coroutines. One set elsewhere is kept by activation, which is marked: Lua's own record of it is used again
 * for later calls, and loses the mark then. A tail call is a new call in the old activation; it is known by Lua's flag
 * for it, and by the function.
 */
#pragma once

#include <lua.h>
#include <stdbool.h>
#include <varve.h>

enum { VL_CALL_ID_TEXT = 33 };

/* What varve.call has in the first slot of its frame while its callee runs. */
typedef struct {
    const void *mark;   /* vl_call_passed_mark */
    const void *callee; /* the Lua function that the id was passed to */
    varve_policy policy;
    char text[VL_CALL_ID_TEXT];
} vl_call_passed;
extern const char vl_call_passed_mark;

/* varve.call itself. */
int vl_call_function(lua_State *L);

/* The id of the call at this activation; NULL where it has none. Valid while it runs. */
const char *vl_call_id(lua_State *L, lua_Debug *ar);
/* Gives it one. False where there is no memory. */
bool vl_call_id_set(lua_State *L, lua_Debug *ar, const char *text);
/* What was passed to this call by varve.call, which called it; NULL: nothing. */
const vl_call_passed *vl_call_passed_to(lua_State *L, lua_Debug *ar);

/* A block is about to be freed: it may be an activation's. */
extern bool vl_call_ids_kept;
void vl_call_id_freed(const void *block);
