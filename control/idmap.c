#include "config.h"

#include "control/idmap.h"

#include <stdlib.h>

/* Addresses are multiples of 8 or 16 and lie close together: the multiplication spreads them, the high half counts. */
static size_t home(const vv_idmap *m, uintptr_t id)
{
    return (size_t)((uint64_t)id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (m->cap - 1);
}

/* The slot of id, or the free one where it would go. */
static vv_idmap_slot *find(const vv_idmap *m, uintptr_t id)
{
    size_t i = home(m, id);
    while (m->slots[i].id && m->slots[i].id != id)
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

void *vv_idmap_get(const vv_idmap *m, uintptr_t id)
{
    return m->count && id ? find(m, id)->value : NULL;
}

static bool grow(vv_idmap *m)
{
    vv_idmap bigger = {.cap = m->cap ? m->cap * 2 : 16, .count = m->count};
    bigger.slots = calloc(bigger.cap, sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].id)
            *find(&bigger, m->slots[i].id) = m->slots[i];
    free(m->slots);
    *m = bigger;
    return true;
}

bool vv_idmap_put(vv_idmap *m, uintptr_t id, void *value)
{
    if (!id || (m->count + 1 > m->cap / 4 * 3 && !grow(m)))
        return false;
    vv_idmap_slot *s = find(m, id);
    m->count += !s->id;
    *s = (vv_idmap_slot){id, value};
    return true;
}

/* Frees slot i; those after it that it kept from their home move up. */
static void vacate(vv_idmap *m, size_t i)
{
    size_t mask = m->cap - 1;
    m->slots[i] = (vv_idmap_slot){0, NULL};
    m->count--;
    for (size_t k = (i + 1) & mask; m->slots[k].id; k = (k + 1) & mask) {
        if (((k - home(m, m->slots[k].id)) & mask) >= ((k - i) & mask)) {
            m->slots[i] = m->slots[k];
            m->slots[k] = (vv_idmap_slot){0, NULL};
            i = k;
        }
    }
}

void *vv_idmap_take(vv_idmap *m, uintptr_t id)
{
    void *value = vv_idmap_get(m, id);
    if (m->count && id && find(m, id)->id)
        vacate(m, (size_t)(find(m, id) - m->slots));
    return value;
}

void *vv_idmap_take_any(vv_idmap *m)
{
    for (size_t i = 0; m->count && i < m->cap; i++)
        if (m->slots[i].id)
            return vv_idmap_take(m, m->slots[i].id);
    return NULL;
}

void vv_idmap_done(vv_idmap *m)
{
    free(m->slots);
    *m = (vv_idmap){0};
}
