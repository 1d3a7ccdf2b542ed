#include "config.h"

#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { AT_ONCE = 16 };

/* Slots hold the hash's high 32 bits beside index + 1, so that a miss rarely touches a key. */
static uint64_t slot_make(uint64_t hash, uint32_t index)
{
    return (hash & 0xffffffff00000000u) | (index + 1);
}

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    return h;
}

static uint64_t hash_key(const vv_map *m, const uint8_t *key)
{
    uint64_t h = m->seed;
    size_t n = m->key_bytes;
    for (; n >= 8; n -= 8, key += 8) {
        uint64_t w;
        memcpy(&w, key, 8);
        h = (h ^ w) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    for (; n; n--, key++)
        h = (h ^ *key) * 0x100000001b3u;
    return mix(h);
}

static uint64_t random_seed(void)
{
    uint64_t s;
    if (!vv_random(&s, sizeof s))
        s = (uint64_t)(uintptr_t)&s * 0x9e3779b97f4a7c15u;
    return s | 1;
}

void vv_map_init(vv_map *m, size_t key_bytes)
{
    *m = (vv_map){.key_bytes = key_bytes, .seed = random_seed()};
}

void vv_map_done(vv_map *m)
{
    free(m->keys);
    free(m->slots);
    *m = (vv_map){0};
}

/* The slot that holds key, or the free slot where it belongs. */
static uint32_t probe(const vv_map *m, const void *key, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & m->mask;
    for (;; at = (at + 1) & m->mask) {
        uint64_t s = m->slots[at];
        if (s == 0)
            return at;
        if ((s ^ hash) >> 32 == 0 && memcmp(vv_map_key(m, (uint32_t)s - 1), key, m->key_bytes) == 0)
            return at;
    }
}

uint32_t vv_map_find(const vv_map *m, const void *key)
{
    if (m->placed == 0)
        return VV_MAP_NONE;
    uint64_t s = m->slots[probe(m, key, hash_key(m, key))];
    return s ? (uint32_t)s - 1 : VV_MAP_NONE;
}

static void find_some(const vv_map *m, const void *const *keys, size_t n, uint32_t *ret)
{
    uint64_t hash[AT_ONCE];
    for (size_t i = 0; i < n; i++) {
        hash[i] = hash_key(m, keys[i]);
        __builtin_prefetch(&m->slots[(uint32_t)hash[i] & m->mask]);
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t s = m->slots[(uint32_t)hash[i] & m->mask];
        if (s)
            __builtin_prefetch(vv_map_key(m, (uint32_t)s - 1));
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t s = m->slots[probe(m, keys[i], hash[i])];
        ret[i] = s ? (uint32_t)s - 1 : VV_MAP_NONE;
    }
}

void vv_map_find_many(const vv_map *m, const void *const *keys, size_t n, uint32_t *ret)
{
    for (size_t i = 0; m->placed == 0 && i < n; i++)
        ret[i] = VV_MAP_NONE;
    for (size_t i = 0; m->placed != 0 && i < n; i += AT_ONCE)
        find_some(m, keys + i, n - i < AT_ONCE ? n - i : AT_ONCE, ret + i);
}

/* Gives keys from .. count their slots. They are in no slot yet, so that none is compared. */
static void place(vv_map *m, uint32_t from)
{
    uint64_t hash[AT_ONCE];
    for (uint32_t i = from; i < m->count; i += AT_ONCE) {
        uint32_t n = m->count - i < AT_ONCE ? m->count - i : AT_ONCE;
        for (uint32_t k = 0; k < n; k++) {
            hash[k] = hash_key(m, vv_map_key(m, i + k));
            __builtin_prefetch(&m->slots[(uint32_t)hash[k] & m->mask], 1);
        }
        for (uint32_t k = 0; k < n; k++) {
            uint32_t at = (uint32_t)hash[k] & m->mask;
            while (m->slots[at])
                at = (at + 1) & m->mask;
            m->slots[at] = slot_make(hash[k], i + k);
        }
    }
    m->placed = m->count;
}

/* cap slots, a power of two. */
static bool set_slots(vv_map *m, uint32_t cap)
{
    uint64_t *slots = calloc(cap, sizeof *slots);
    if (!slots)
        return false;
    free(m->slots);
    m->slots = slots;
    m->mask = cap - 1;
    place(m, 0);
    return true;
}

static bool grow_slots(vv_map *m)
{
    uint32_t cap = m->slots ? (m->mask + 1) * 2 : 64;
    return cap != 0 && set_slots(m, cap);
}

static bool set_keys(vv_map *m, uint32_t cap)
{
    uint8_t *keys = realloc(m->keys, (size_t)cap * m->key_bytes);
    if (!keys)
        return false;
    m->keys = keys;
    m->keys_cap = cap;
    return true;
}

static bool grow_keys(vv_map *m)
{
    uint32_t cap = m->keys_cap ? m->keys_cap * 2 : 32;
    return cap > m->keys_cap && cap <= UINT32_MAX / 2 && set_keys(m, cap);
}

/* Slots for n keys in all. */
static bool slots_for(vv_map *m, uint32_t n)
{
    if (n > UINT32_MAX / 4)
        return false;
    uint32_t cap = m->slots ? m->mask + 1 : 64;
    while (n > cap / 4 * 3)
        cap *= 2;
    return (m->slots && cap == m->mask + 1) || set_slots(m, cap);
}

bool vv_map_reserve(vv_map *m, uint32_t n)
{
    return n <= UINT32_MAX / 4 && (n <= m->keys_cap || set_keys(m, n)) && slots_for(m, n);
}

uint32_t vv_map_append(vv_map *m, const void *key)
{
    if (m->count == m->keys_cap && !grow_keys(m))
        return VV_MAP_NONE;
    memcpy(m->keys + (size_t)m->count * m->key_bytes, key, m->key_bytes);
    return m->count++;
}

bool vv_map_catch_up(vv_map *m)
{
    if (m->placed == m->count)
        return true;
    if (!slots_for(m, m->count))
        return false;
    place(m, m->placed); /* new slots hold them already */
    return true;
}

uint32_t vv_map_put(vv_map *m, const void *key, bool *ret_new)
{
    if (!vv_map_catch_up(m) || ((!m->slots || m->count >= (m->mask + 1) / 4 * 3) && !grow_slots(m)))
        return VV_MAP_NONE;
    uint64_t h = hash_key(m, key);
    uint32_t at = probe(m, key, h);
    if (ret_new)
        *ret_new = m->slots[at] == 0;
    if (m->slots[at])
        return (uint32_t)m->slots[at] - 1;
    uint32_t i = vv_map_append(m, key);
    if (i == VV_MAP_NONE)
        return VV_MAP_NONE;
    m->slots[at] = slot_make(h, i);
    m->placed = m->count;
    return i;
}

size_t vv_map_bytes(const vv_map *m)
{
    return (size_t)m->keys_cap * m->key_bytes + (m->slots ? ((size_t)m->mask + 1) * sizeof *m->slots : 0);
}
