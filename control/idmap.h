/*
 * Ids of the host's, each with a pointer. Ids come and go (they are addresses, and used again), so entries can be taken
 * out: open addressing with the followers moved up. Owned by one thread, or guarded by its owner's lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uintptr_t id; /* 0 = free */
    void *value;
} vv_idmap_slot;

/* Zeroed is empty. */
typedef struct {
    vv_idmap_slot *slots;
    size_t cap, count; /* cap: 0 or a power of two */
} vv_idmap;

/* NULL where id is not there (0 never is). */
void *vv_idmap_get(const vv_idmap *m, uintptr_t id);
/* Replaces what id had. False: no memory, or id is 0. */
bool vv_idmap_put(vv_idmap *m, uintptr_t id, void *value);
/* What id had, or NULL. */
void *vv_idmap_take(vv_idmap *m, uintptr_t id);
/* Some value, taken out; NULL where the map is empty. */
void *vv_idmap_take_any(vv_idmap *m);
void vv_idmap_done(vv_idmap *m);
