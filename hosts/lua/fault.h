/*
 * Errors, as profilers know exceptions: thrown where Lua leaves the frames, caught where somebody has it.
 *
 * Lua tells no hook of an error. It does jump through the C library, though, while the stack still is that of the throw
 * (jump.c), and what has it now is known at the next event, or when a protected call returns. Where the jump can't
 * be read (another library than the one whose layout is known) an error is thrown, for profilers, when it is caught.
 */
#pragma once

#include "hosts/lua/host.h"

/* Tries whether jumps can be read: sets vl.throws_seen. Where the private layout holds only. */
void vl_fault_open(lua_State *L);
/* Lua, or something else, is about to jump there. */
void vl_fault_jump(const void *where);
/* The error of s, thrown now where that wasn't seen, ends frames until n are left. */
void vl_fault_unwind(vl_shadow *s, uint32_t n, uint64_t ticks);
/* The same, and the n-th frame has it. */
void vl_fault_land(vl_shadow *s, uint32_t n);
/* The C function that runs in L has an error that a protected call gave it. */
void vl_fault_caught(lua_State *L);
/* The error of the coroutine `from` has gone to `resumer`. */
void vl_fault_handed_on(vl_shadow *resumer, const vl_shadow *from);
/* An event of the activation ci: if the shadow was throwing, that one has the error. */
void vl_fault_settle(vl_shadow *s, const void *ci);
