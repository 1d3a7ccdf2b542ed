#include "config.h"

#include "runtime/exec.h"

#include <string.h>

enum { FIRST_THREADS = 16, FIRST_FRAMES = 32, FIRST_SPANS = 2 };

_Static_assert(FIRST_FRAMES * sizeof(vv_frame) >= 320, "least charge of calls");

static uint64_t hash_of(uint64_t number)
{
    return number * 0x9e3779b97f4a7c15ULL >> 20;
}

vv_lthread *vv_lthread_find(const varve_engine *e, uint64_t number)
{
    const vv_lthread_map *m = &e->threads;
    if (!m->cap)
        return NULL;
    for (uint64_t i = hash_of(number) & (m->cap - 1); m->slots[i]; i = (i + 1) & (m->cap - 1))
        if (m->slots[i]->number == number)
            return m->slots[i];
    return NULL;
}

static void map_place(vv_lthread **slots, uint64_t cap, vv_lthread *t)
{
    uint64_t i = hash_of(t->number) & (cap - 1);
    while (slots[i])
        i = (i + 1) & (cap - 1);
    slots[i] = t;
}

static bool map_room(vv_lthread_map *m, vv_governor *g)
{
    if (m->cap && m->count < m->cap / 2)
        return true;
    uint64_t cap = m->cap ? m->cap * 2 : FIRST_THREADS;
    vv_lthread **slots = vv_gov_alloc(g, VV_POOL_GENERAL, VV_OWN_POPULATION, cap * sizeof *slots);
    if (!slots)
        return m->count + 1 < m->cap;
    for (uint64_t i = 0; i < m->cap; i++)
        if (m->slots[i])
            map_place(slots, cap, m->slots[i]);
    vv_gov_free(g, VV_POOL_GENERAL, VV_OWN_POPULATION, m->slots, m->cap * sizeof *slots);
    m->slots = slots;
    m->cap = cap;
    return true;
}

/* Closes the gap, so that no search passes over it. */
static void map_remove(vv_lthread_map *m, const vv_lthread *t)
{
    uint64_t mask = m->cap - 1, i = hash_of(t->number) & mask;
    while (m->slots[i] != t)
        i = (i + 1) & mask;
    for (uint64_t k = (i + 1) & mask; m->slots[k]; k = (k + 1) & mask) {
        uint64_t home = hash_of(m->slots[k]->number) & mask;
        if (((k - home) & mask) >= ((k - i) & mask)) {
            m->slots[i] = m->slots[k];
            i = k;
        }
    }
    m->slots[i] = NULL;
    m->count--;
}

void vv_lthread_map_done(varve_engine *e, vv_governor *g)
{
    for (uint64_t i = 0; i < e->threads.cap; i++)
        while (e->threads.slots[i])
            vv_lthread_drop(e->threads.slots[i], g);
    vv_gov_free(g, VV_POOL_GENERAL, VV_OWN_POPULATION, e->threads.slots, e->threads.cap * sizeof(vv_lthread *));
    e->threads = (vv_lthread_map){NULL, 0, 0};
}

vv_lthread *vv_lthread_new(varve_engine *e, vv_governor *g, vv_exec *x, uint64_t number)
{
    if (!map_room(&e->threads, g))
        return NULL;
    vv_lthread *t = vv_gov_alloc(g, VV_POOL_GENERAL, VV_OWN_POPULATION, sizeof *t);
    if (!t)
        return NULL;
    t->exec = x;
    t->engine = e;
    t->number = number;
    t->spawn_node = VV_NODE_NONE;
    t->span_pool = VV_POOL_GENERAL;
    map_place(e->threads.slots, e->threads.cap, t);
    e->threads.count++;
    t->next = x->threads;
    if (t->next)
        t->next->prev = t;
    x->threads = t;
    return t;
}

void vv_lthread_drop(vv_lthread *t, vv_governor *g)
{
    map_remove(&t->engine->threads, t);
    t->exec->open_spans -= t->span_count;
    if (t->prev)
        t->prev->next = t->next;
    else
        t->exec->threads = t->next;
    if (t->next)
        t->next->prev = t->prev;
    vv_gov_free(g, VV_POOL_GENERAL, VV_OWN_CALLS, t->frames, t->cap * sizeof *t->frames);
    vv_gov_free(g, t->span_pool, VV_OWN_CALLS, t->spans, t->span_cap * sizeof *t->spans);
    vv_gov_free(g, VV_POOL_GENERAL, VV_OWN_POPULATION, t->name, t->name_len);
    vv_gov_free(g, VV_POOL_GENERAL, VV_OWN_POPULATION, t, sizeof *t);
}

bool vv_lthread_grow(vv_lthread *t, vv_governor *g)
{
    uint64_t cap = t->cap ? t->cap * 2 : FIRST_FRAMES;
    vv_frame *f = vv_gov_grow(g, VV_POOL_GENERAL, VV_OWN_CALLS, t->frames, t->cap * sizeof *f, cap * sizeof *f);
    if (!f)
        return false;
    t->frames = f;
    t->cap = cap;
    return true;
}

bool vv_lthread_span_room(vv_lthread *t, vv_governor *g, bool manual)
{
    if (t->span_count < t->span_cap)
        return true;
    uint32_t cap = t->span_cap ? t->span_cap * 2 : FIRST_SPANS;
    vv_span *p = vv_gov_grow_any(g, &t->span_pool, manual, VV_OWN_CALLS, t->spans, t->span_cap * sizeof *p,
                                 cap * sizeof *p);
    if (!p)
        return false;
    t->spans = p;
    t->span_cap = cap;
    return true;
}

static void span_lost(vv_span *s, uint64_t batch, uint8_t link_loss)
{
    s->told = s->told && s->batch != batch;
    if (s->link == VV_LINK_CAPTURE && (s->link_batch == batch || s->link_start_batch == batch)) {
        s->link = VV_LINK_LOST;
        s->link_loss = s->link_batch == batch ? link_loss : VV_CAPTURE_LOST_START;
    }
}

void vv_exec_batch_lost(vv_exec *x, uint64_t batch, uint8_t link_loss)
{
    for (vv_lthread *t = x->threads; t; t = t->next) {
        t->told = t->told && t->batch != batch;
        t->parent_told = t->parent_told && t->parent_batch != batch;
        for (uint32_t i = 0; i < t->span_count; i++)
            span_lost(&t->spans[i], batch, link_loss);
    }
}
