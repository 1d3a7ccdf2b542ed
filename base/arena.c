#include "config.h"

#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>

struct vv_arena_chunk {
    vv_arena_chunk *next;
    size_t size, at;
    alignas(max_align_t) char bytes[];
};

enum { CHUNK_BYTES = 16384 };

void vv_arena_done(vv_arena *a)
{
    for (vv_arena_chunk *c = a->head, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    a->head = NULL;
    a->used = 0;
}

void *vv_arena_alloc(vv_arena *a, size_t n)
{
    const size_t align = alignof(max_align_t);
    if (n > a->max)
        return NULL;
    n = n ? (n + align - 1) & ~(align - 1) : align;
    vv_arena_chunk *c = a->head;
    if (!c || n > c->size - c->at) {
        size_t size = n > CHUNK_BYTES ? n : CHUNK_BYTES;
        if (size + sizeof *c > a->max - a->used)
            size = n;
        if (size + sizeof *c > a->max - a->used)
            return NULL;
        c = malloc(sizeof *c + size);
        if (!c)
            return NULL;
        *c = (vv_arena_chunk){.next = a->head, .size = size};
        a->head = c;
        a->used += sizeof *c + size;
    }
    void *p = c->bytes + c->at;
    c->at += n;
    return p;
}

vv_str vv_arena_str(vv_arena *a, vv_str s)
{
    char *p = s.n < SIZE_MAX ? vv_arena_alloc(a, s.n + 1) : NULL;
    if (!p)
        return (vv_str){NULL, 0};
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = 0;
    return (vv_str){p, s.n};
}
