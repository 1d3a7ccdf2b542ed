/*
 * A map from pointers to pointers: open addressing, linear probing, power-of-two size, at most half full. Deletion
 * moves later entries back, so there are no tombstones and a map under churn keeps its speed.
 *
 * Keys are never NULL. One thread. Zero-initialised is empty.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const void *key;
    void *value;
} vl_ptrmap_slot;

typedef struct {
    vl_ptrmap_slot *slots;
    size_t mask, used;
} vl_ptrmap;

static inline size_t vl_ptrmap_home(const void *key, size_t mask)
{
    uint64_t h = (uint64_t)(uintptr_t)key * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(h >> 32) & mask;
}

/* NULL where absent. */
static inline void *vl_ptrmap_get(const vl_ptrmap *m, const void *key)
{
    if (!m->slots)
        return NULL;
    for (size_t i = vl_ptrmap_home(key, m->mask);; i = (i + 1) & m->mask) {
        if (m->slots[i].key == key)
            return m->slots[i].value;
        if (!m->slots[i].key)
            return NULL;
    }
}

/* Sets or replaces. False where there is no memory; the map is as before then. */
bool vl_ptrmap_put(vl_ptrmap *m, const void *key, void *value);
/* The value that was there, or NULL. */
void *vl_ptrmap_remove(vl_ptrmap *m, const void *key);
void vl_ptrmap_done(vl_ptrmap *m);
