/*
 * The writer's two halves for each other: data segments and the cycle (writer.c), and the planes beside them, meta with
 * its tables and health (writer_meta.c). The consumer thread only.
 */
#pragma once

#include "runtime/writer.h"

static inline bool vv_has_group(const vv_exec *x)
{
    return x->group || vv_cct_is_dirty(&x->cct) || x->facts.count;
}

static inline varve_engine *vv_first_engine(const vv_writer *w)
{
    return atomic_load_explicit(w->engines, memory_order_acquire);
}

static inline varve_engine *vv_next_engine(const varve_engine *e)
{
    return atomic_load_explicit(&e->next, memory_order_acquire);
}

/* Whether the engine has something to tell that is not published: itself, functions or files. */
bool vv_engine_is_due(const varve_engine *e);

/* Tables, then engines and executions that are new. False: blocked. */
bool vv_publish_starts(vv_writer *w);
/* Terms, then ends of executions whose groups are settled. False: blocked. */
bool vv_publish_ends(vv_writer *w);
/* The indeterminate publication of a plane other than data turned out committed. */
void vv_meta_resolved(vv_writer *w, int plane);
