/*
 * Identity by the public interface alone, where the private layout (layout.h) doesn't hold: slower, and call sites of
 * tail calls and functions that share their lines are not told apart.
 *
 * A Lua function is named by its source string and its lines. A source is forgotten when the block of its string is
 * freed: where in its block a string's text begins is learned once.
 */
#pragma once

#include "hosts/lua/host.h"

struct vl_chunk;

/* Learns how strings lie in their blocks. False where that can't be told: then nothing can be recorded. */
bool vl_public_open(lua_State *L);
/* A chunk with this source (the string's own text) was loaded. */
void vl_source_learn(const char *source, struct vl_chunk *chunk);
/* The record of the Lua function whose "S" is in ar; NULL where there is no memory, or where it isn't known yet. */
vl_code *vl_public_code(lua_State *L, const lua_Debug *ar);
vl_code *vl_public_known(const lua_Debug *ar);
/* A block is about to be freed. */
void vl_public_freed(const void *block);

/* The hook of all recorded states, instead of vl_hook. */
void vl_public_hook(lua_State *L, lua_Debug *ar);

/* alloc.c: the last block that was allocated for a string. */
extern const void *vl_alloc_last_string;
