/*
 * Chunks of Lua source: their functions' names and rows in the function table.
 *
 * A chunk is known by its name and the SHA-256 of its text; loading it again gives the same functions. Chunks stay for
 * good, so their number is limited: texts loaded beyond it share one function for each whole chunk (`load:more`).
 */
#pragma once

#include "hosts/lua/layout.h"
#include "hosts/lua/recorder.h"

/* A chunk was loaded: text[n] is what the reader gave, the closure is at the top of L's stack. Learns all its
 * prototypes. */
void vl_chunk_loaded(lua_State *L, const char *text, size_t n);
/* Learns a prototype whose loading wasn't seen. NULL where there is no memory. */
vl_code *vl_chunk_stranger(lua_State *L, const lua_Debug *ar, const vl_proto *p);
/* Gives the function its number in the table. */
void vl_function_publish(vl_function *f);
/* The call site of a tail call out of f, which stands at `line` (used where f has several); 0 where the line is
 * unknown. */
uint32_t vl_tail_site(vl_function *f, uint32_t line);
/* The function's readable name, cut to n bytes with its NUL. */
void vl_function_name(const vl_function *f, char *ret, size_t n);

/* For identity by source and lines (public.h). A chunk whose text wasn't seen has one function. */
struct vl_chunk *vl_chunk_without_text(lua_State *L, const char *source);
/* The first function with these lines, or the chunk's own. Functions that share both lines are one here. */
vl_function *vl_chunk_function(struct vl_chunk *c, int line, int last_line);
size_t vl_chunk_functions(const struct vl_chunk *c);
uint32_t vl_chunk_file(const struct vl_chunk *c);
