/*
 * What lives: modules, functions and coroutines, as profilers know them. A module lives while one of its functions
 * does, a function while a prototype of it does; C functions stay.
 *
 * What dies in a collection is put down here, in the allocator, and told at the next event (vl_live_settle): profilers
 * may do then what they may not do in the sweep. Its id stays valid until that was told.
 *
 * The lock guards the lists and the texts that are made on demand, as a profiler's own threads may ask. Changes come
 * from the interpreter's thread alone, so that reads there need no lock. Nothing is raised, and no Lua called, under
 * it.
 */
#pragma once

#include "hosts/lua/host.h"

void vl_live_lock(void);
void vl_live_unlock(void);

/* A prototype of code->function was learned, or is about to be freed. */
void vl_live_code(vl_code *code);
void vl_live_code_gone(vl_code *code);
/* A C function was seen for the first time. Its name is set. */
void vl_live_c_function(vl_function *f);
/* A coroutine's block is about to be freed. */
void vl_live_thread_gone(vl_shadow *s);
/* All C functions that were seen. */
extern vl_function *vl_live_c_functions;
/* Tells what has died. Outside of the allocator. */
void vl_live_settle(void);
/* Meanwhile nothing is; these nest. */
void vl_live_hold(bool on);

/* The main profiler's number of the function, asked for where it isn't known. Before the first call. */
void vl_live_map(vl_function *f);
/* The function's qualified name, for good; NULL where there is no memory. Under the lock, or on the interpreter's
 * thread. */
const char *vl_live_name(vl_function *f);
/* The place of calls at this line of the module; never NULL: where there is no line or no memory, no place. On the
 * interpreter's thread. */
vl_site *vl_live_site(struct vl_chunk *c, uint32_t line);
/* For events: NULL where the line is unknown. */
static inline const varve_site_id *vl_live_place(const vl_site *site)
{
    return site->place.line ? &site->place : NULL;
}
