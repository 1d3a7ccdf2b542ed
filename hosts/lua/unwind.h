/*
 * Errors as the recorder keeps them (docs/lua-host.md, "Errors"): at the throw, while the stack is whole, what is
 * thrown, by whom, whether it was thrown before, and which calls it will end.
 *
 * Who catches is known at the throw: in C, the innermost lua_pcallk or lua_load that waits (vl_protected); in a
 * coroutine also a pcall that may yield, which Lua marks in its activation; else the resumer, and all of the
 * coroutine's calls end.
 */
#pragma once

#include "hosts/lua/host.h"

/* A protected call of C's, on the C stack while it runs. */
typedef struct vl_protected {
    vl_shadow *s; /* NULL: none */
    const struct vl_protected *up;
    const void *outer; /* Lua's record of the protected call around it */
    uint32_t depth;    /* frames that stay */
} vl_protected;

/* Once, where raising is allowed. */
void vl_unwind_open(lua_State *L);

void vl_unwind_protect(vl_protected *p, lua_State *L);
static inline void vl_unwind_protected(const vl_protected *p)
{
    if (p->s)
        p->s->protected = p->up;
}

/* L is about to jump, the frames of s being whole. */
void vl_unwind_thrown(vl_shadow *s, lua_State *L);
/* An error whose throw wasn't seen ends frames until n are left. */
void vl_unwind_late(vl_shadow *s, uint32_t n);
/* The n-th frame of s has the error that `from` threw last. */
void vl_unwind_caught(vl_shadow *s, uint32_t n, const vl_shadow *from);
/* An event of the activation ci. */
void vl_unwind_event(vl_shadow *s, const void *ci, int event);
/* The shadow's frames are fewer now, or it goes. */
void vl_unwind_left(vl_shadow *s);

/* The message handler of the interpreter itself leaves: what it was given is at this index. */
void vl_unwind_original(lua_State *L, int index);

/* A block is about to be freed: it may be the value of an error. */
extern bool vl_unwind_remembers;
void vl_unwind_freed(const void *block);
