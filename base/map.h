/*
 * A set of fixed-size keys that numbers them densely: the n-th new key gets index n, counted from 0. Callers
 * keep their values in arrays beside it. Keys may come from hostile files, so the hash is seeded per map.
 *
 * Owned by one thread while it changes; shareable between threads while nobody changes it. A pointer to a key is
 * valid until the next insertion.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#define VV_MAP_NONE UINT32_MAX

typedef struct {
    uint8_t *keys;   /* count x key_bytes, by index */
    uint64_t *slots; /* hash high bits and index + 1; 0 = free */
    size_t key_bytes;
    uint64_t seed;
    uint32_t count, keys_cap, mask;
    uint32_t placed; /* keys that have a slot: all but those last appended */
} vv_map;

/* No allocation until the first insertion. key_bytes > 0. */
void vv_map_init(vv_map *m, size_t key_bytes);
void vv_map_done(vv_map *m); /* accepts a zeroed map */

/* Room for n keys in all, so that the map need not grow step by step. False: out of memory; the map is as before. */
bool vv_map_reserve(vv_map *m, uint32_t n);

/* Index of key, or VV_MAP_NONE. */
uint32_t vv_map_find(const vv_map *m, const void *key);

/* Looks up n keys, each a pointer, at a time: their waits for memory overlap. */
void vv_map_find_many(const vv_map *m, const void *const *keys, size_t n, uint32_t *ret);

/* Index of key, inserted where it was absent (ret_new, may be NULL, says so). VV_MAP_NONE = out of memory. */
uint32_t vv_map_put(vv_map *m, const void *key, bool *ret_new);

/*
 * The next index for a key that the caller knows to be absent, without a look at the others. It is found only after
 * vv_map_catch_up (vv_map_put does that too), which is cheaper for many keys than putting each. VV_MAP_NONE, false: out
 * of memory.
 */
uint32_t vv_map_append(vv_map *m, const void *key);
bool vv_map_catch_up(vv_map *m);

static inline const void *vv_map_key(const vv_map *m, uint32_t i)
{
    return m->keys + (size_t)i * m->key_bytes;
}

/* Bytes of memory held. */
size_t vv_map_bytes(const vv_map *m);
