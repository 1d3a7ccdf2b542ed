/*
 * A bump allocator with a cap: many small allocations that die together. Owned by one thread.
 */
#pragma once

#include <stddef.h>

#include "base/attr.h"
#include "base/bytes.h"

typedef struct vv_arena_chunk vv_arena_chunk;

typedef struct {
    vv_arena_chunk *head;
    size_t used, max; /* bytes handed out by malloc so far, and their limit */
} vv_arena;

/* max bounds the memory of the whole arena, in bytes. */
static inline vv_arena vv_arena_init(size_t max)
{
    return (vv_arena){NULL, 0, max};
}

void vv_arena_done(vv_arena *a); /* frees all; accepts a zeroed arena */

/* n bytes aligned for any type, uninitialised, or NULL at the cap. n = 0 gives a valid pointer. */
void *vv_arena_alloc(vv_arena *a, size_t n);

/* A NUL-terminated copy. The view's length excludes the NUL. p is NULL at the cap. */
vv_str vv_arena_str(vv_arena *a, vv_str s);
