/*
 * Chunks of Lua source: their functions' names and rows in the function table.
 *
 * A chunk is known by its name and the SHA-256 of its text; loading it again gives the same functions. Chunks stay for
 * good, so their number is limited: texts loaded beyond it share one function for each whole chunk (`load:more`).
 */
#pragma once

#include <openssl/sha.h>

#include "hosts/lua/host.h"
#include "hosts/lua/layout.h"
#include "hosts/lua/names.h"

typedef struct vl_chunk {
    uint8_t digest[SHA256_DIGEST_LENGTH];
    char *source; /* chunk name as Lua has it; NULL for loaded text, where it is the text */
    char *module, *file;
    int64_t shift;    /* bytes of the file before the text's first, for the spans */
    bool named;       /* the text's own names, with offsets */
    bool merged;      /* one function for the whole */
    vl_names names;
    vl_function *functions;
    vl_ptrmap sites;  /* line -> vl_site */
    struct vl_chunk *next, *next_made;
    /* live.h */
    bool loaded;
    size_t functions_loaded;
} vl_chunk;

/* All chunks, newest first; under live.h's lock on other threads than the interpreter's. */
extern vl_chunk *vl_chunks;

static inline const void *vl_chunk_line_key(uint32_t line)
{
    return (const void *)(uintptr_t)line;
}

/* A chunk was loaded: text[n] is what the reader gave, the closure is at the top of L's stack. Learns all its
 * prototypes. */
void vl_chunk_loaded(lua_State *L, const char *text, size_t n);
/* Learns a prototype whose loading wasn't seen. NULL where there is no memory. */
vl_code *vl_chunk_stranger(lua_State *L, const lua_Debug *ar, const vl_proto *p);
/* The call site of a tail call out of f, which stands at `line` (used where f has several). */
vl_site *vl_tail_site(vl_function *f, uint32_t line);
/* The function's qualified name, the caller's to free; NULL where there is no memory. */
char *vl_chunk_name_function(const vl_function *f);
/* What profilers are told of the function, whose name is known. */
void vl_chunk_describe_function(const vl_function *f, varve_function_desc *ret);

/* For identity by source and lines (public.h). A chunk whose text wasn't seen has one function. */
vl_chunk *vl_chunk_without_text(lua_State *L, const char *source);
/* The first function with these lines, or the chunk's own. Functions that share both lines are one here. */
vl_function *vl_chunk_function(vl_chunk *c, int line, int last_line);
