/*
 * The executions of one stream, numbered as they appeared. A list that follows another one shares with it all that is
 * the same in both, so that a look at a stream of very many executions costs what is new in it.
 *
 * Lists that follow each other are made by one thread at a time. A list that is made may be read by any thread, also
 * while others go on from it.
 */
#pragma once

#include "reader/store.h"

struct vv_root_map;
struct vv_execution_chunk;

/* A zeroed one is empty, and may be freed; it has to be begun before anything is put into it. */
typedef struct vv_execution_list {
    struct vv_execution_chunk **chunks;
    size_t chunk_cap;
    struct vv_root_map *roots;
    size_t count;
} vv_execution_list;

/* Empty. NOMEM. */
VV_MUST_CHECK vv_code vv_executions_begin(vv_execution_list *ret, vv_error *err);
/* False where others went on from this list already, or tried: what follows it is to be made anew. */
bool vv_executions_can_follow(const vv_execution_list *former);
/* All that the former list has. NOMEM. */
VV_MUST_CHECK vv_code vv_executions_follow(vv_execution_list *ret, const vv_execution_list *former, vv_error *err);
void vv_executions_done(vv_execution_list *l);

/*
 * While the list is made. The execution of that root, new and otherwise zeroed where there was none; and *ret_at, its
 * index. It is shared with no other list, and stays in its place until the list is changed again. NULL without memory:
 * the list can only be freed then.
 */
vv_execution *vv_executions_put(vv_execution_list *l, const vv_thread_ref *root, size_t *ret_at);
/* Execution i, to be changed; likewise. */
vv_execution *vv_executions_change(vv_execution_list *l, size_t i);

/* Execution i < count. */
const vv_execution *vv_executions_at(const vv_execution_list *l, size_t i);
/* The index of the execution of that root; count where there is none. */
size_t vv_executions_find(const vv_execution_list *l, const vv_thread_ref *root);
/* Memory that it holds and another one of the same stream (may be zeroed) does not; about. By who makes the lists. */
size_t vv_executions_bytes(const vv_execution_list *l, const vv_execution_list *other);
