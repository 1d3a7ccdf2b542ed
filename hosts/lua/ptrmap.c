#include "config.h"
#include "hosts/lua/ptrmap.h"

#include <stdlib.h>

#define FIRST_SLOTS 256

static void place(vl_ptrmap_slot *slots, size_t mask, const void *key, void *value)
{
    size_t i = vl_ptrmap_home(key, mask);
    while (slots[i].key)
        i = (i + 1) & mask;
    slots[i] = (vl_ptrmap_slot){key, value};
}

static bool grow(vl_ptrmap *m)
{
    size_t n = m->slots ? (m->mask + 1) * 2 : FIRST_SLOTS;
    vl_ptrmap_slot *slots = calloc(n, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; m->slots && i <= m->mask; i++)
        if (m->slots[i].key)
            place(slots, n - 1, m->slots[i].key, m->slots[i].value);
    free(m->slots);
    m->slots = slots;
    m->mask = n - 1;
    return true;
}

bool vl_ptrmap_put(vl_ptrmap *m, const void *key, void *value)
{
    for (size_t i = m->slots ? vl_ptrmap_home(key, m->mask) : 0; m->slots && m->slots[i].key; i = (i + 1) & m->mask)
        if (m->slots[i].key == key) {
            m->slots[i].value = value;
            return true;
        }
    if ((!m->slots || (m->used + 1) * 2 > m->mask + 1) && !grow(m))
        return false;
    place(m->slots, m->mask, key, value);
    m->used++;
    return true;
}

void *vl_ptrmap_remove(vl_ptrmap *m, const void *key)
{
    if (!m->slots)
        return NULL;
    size_t i = vl_ptrmap_home(key, m->mask);
    while (m->slots[i].key != key) {
        if (!m->slots[i].key)
            return NULL;
        i = (i + 1) & m->mask;
    }
    void *value = m->slots[i].value;
    m->used--;
    /* Close the hole: an entry moves back unless its home lies cyclically between the hole and itself. */
    for (size_t j = (i + 1) & m->mask; m->slots[j].key; j = (j + 1) & m->mask) {
        size_t home = vl_ptrmap_home(m->slots[j].key, m->mask);
        if (((j - home) & m->mask) >= ((j - i) & m->mask)) {
            m->slots[i] = m->slots[j];
            i = j;
        }
    }
    m->slots[i] = (vl_ptrmap_slot){0};
    return value;
}

void vl_ptrmap_done(vl_ptrmap *m)
{
    free(m->slots);
    *m = (vl_ptrmap){0};
}
