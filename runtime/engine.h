/*
 * An engine: one program of the host, with the functions, files and call sites it has named so far.
 *
 * The tables only grow and their entries never move, so the consumer reads an entry without a lock once it has its
 * number: the number came through a ring, or through the count. Additions take the engine's lock.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/function_table.h"
#include "runtime/governor.h"
#include "runtime/varve.h"

/* An append-only array in chunks that double; entries keep their address. Index from 0. */
enum { VV_TABLE_CHUNKS = 27, VV_TABLE_FIRST = 32 };
typedef struct {
    _Atomic(void *) chunks[VV_TABLE_CHUNKS];
    _Atomic uint32_t count;
    uint32_t item;
} vv_table;

void *vv_table_at(const vv_table *t, uint32_t i);

typedef struct vv_lthread_map {
    struct vv_lthread **slots;
    uint64_t cap, count;
} vv_lthread_map;

struct varve_engine {
    struct varve_session *session;
    uint64_t id, serial; /* within the session, within the process */
    vv_program_id program;
    vv_opt_str source, revision;
    uint8_t roles; /* whose values the host gives */
    _Atomic uint64_t next_thread;
    pthread_mutex_t lock;
    vv_table functions; /* vv_function, id = index + 1 */
    vv_table files;     /* vv_source_file, id = index + 1 */
    vv_table sites;     /* vv_site, handle = index + 1 */
    uint32_t *site_index, *file_index; /* hash tables of handles */
    uint32_t site_mask, file_mask;
    _Atomic(varve_engine *) next; /* of the session's list, oldest first */
    _Atomic bool closed;          /* by the host: its handle is void */
    /* the consumer's */
    vv_lthread_map threads;
    uint32_t used_function, used_file;           /* highest that data refers to */
    uint32_t published_functions, published_files;
    bool announced, in_batch;                    /* its newest EngineStarted was committed; is in this batch */
    bool has_table;
    vv_cid table;
};

/* NULL: no memory. */
varve_engine *vv_engine_new(struct varve_session *session, vv_governor *g, uint64_t id, const varve_engine_info *info);
void vv_engine_free(varve_engine *e, vv_governor *g);

uint32_t vv_engine_add_function(varve_engine *e, const varve_function_info *info);
uint32_t vv_engine_add_file(varve_engine *e, const char *path);
uint32_t vv_engine_add_site(varve_engine *e, const vv_site *site);

/* NULL for a handle that names none. */
static inline const vv_site *vv_engine_site(const varve_engine *e, uint32_t handle)
{
    return handle && handle <= atomic_load_explicit(&e->sites.count, memory_order_acquire)
               ? vv_table_at(&e->sites, handle - 1) : NULL;
}

/* Consumer: data refers to a function. The table that is published before the data has it then. */
static inline uint32_t vv_engine_use_function(varve_engine *e, uint32_t function)
{
    if (function > e->used_function)
        e->used_function = function;
    return function;
}

/* The same for a site, and its file. NULL for a handle that names none. */
static inline const vv_site *vv_engine_use_site(varve_engine *e, uint32_t handle)
{
    const vv_site *site = vv_engine_site(e, handle);
    if (site && site->file > e->used_file)
        e->used_file = site->file;
    return site;
}

/* The codec-2 body of all so far; what it holds is told in *ret_functions and *ret_files. Consumer. */
void vv_engine_encode_table(const varve_engine *e, vv_wr *w, uint32_t *ret_functions, uint32_t *ret_files);
