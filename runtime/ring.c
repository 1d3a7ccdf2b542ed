#include "config.h"

#include "runtime/ring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

vv_ring vv_no_ring;

/* Mapped with its pages, as the producer would otherwise fault each in on the call path. */
static vv_segment *segment_new(vv_governor *g)
{
    if (!vv_reserve(g, VV_POOL_GENERAL, VV_OWN_TRANSPORT, VV_SEGMENT_BYTES))
        return NULL;
    void *p = mmap(NULL, VV_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (p == MAP_FAILED) {
        vv_release(g, VV_POOL_GENERAL, VV_OWN_TRANSPORT, VV_SEGMENT_BYTES);
        return NULL;
    }
    return p;
}

static void segment_free(vv_governor *g, vv_segment *s)
{
    if (!s)
        return;
    munmap(s, VV_SEGMENT_BYTES);
    vv_release(g, VV_POOL_GENERAL, VV_OWN_TRANSPORT, VV_SEGMENT_BYTES);
}

vv_ring *vv_ring_new(vv_governor *g, vv_wake *wake, struct varve_engine *engine)
{
    vv_ring *r = vv_gov_alloc(g, VV_POOL_GENERAL, VV_OWN_POPULATION, sizeof *r);
    if (!r)
        return NULL;
    r->governor = g;
    r->wake = wake;
    r->engine = engine;
    atomic_init(&r->state, (uint64_t)VV_RING_ACTIVE);
    atomic_init(&r->refs, 2);
    return r;
}

void vv_ring_unref(vv_ring *r)
{
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1)
        free(r);
}

void vv_ring_detach(vv_ring *r)
{
    vv_segment *s = r->tail ? r->tail : atomic_load_explicit(&r->first, memory_order_acquire);
    while (s) {
        vv_segment *next = atomic_load_explicit(&s->next, memory_order_acquire);
        segment_free(r->governor, s);
        s = next;
    }
    for (unsigned i = 0; i < VV_RING_SPARES; i++)
        segment_free(r->governor, atomic_exchange(&r->spares[i], NULL));
    vv_release(r->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, vv_alloc_charge(VV_OWN_POPULATION, sizeof *r));
    r->at = r->end = NULL;
    r->governor = NULL;
    r->tail = NULL;
    vv_ring_cut_off(r);
    vv_ring_unref(r);
}

static vv_segment *spare_take(vv_ring *r)
{
    for (unsigned i = 0; i < VV_RING_SPARES; i++) {
        vv_segment *s = NULL;
        if (atomic_load_explicit(&r->spares[i], memory_order_relaxed))
            s = atomic_exchange_explicit(&r->spares[i], NULL, memory_order_acquire);
        if (s)
            return s;
    }
    return NULL;
}

void vv_ring_shed(vv_ring *r, vv_governor *g)
{
    for (vv_segment *s; (s = spare_take(r));)
        segment_free(g, s);
}

bool vv_ring_roll(vv_ring *r, uint64_t n)
{
    if (!r->governor || n > VV_SEGMENT_WORDS)
        return false;
    vv_segment *s = spare_take(r);
    if (!s)
        s = segment_new(r->governor);
    if (!s) {
        vv_wake_up(r->wake);
        return false;
    }
    vv_segment *old = r->head;
    r->head = s;
    r->at = s->words;
    r->end = s->words + VV_SEGMENT_WORDS;
    if (!old) {
        atomic_store_explicit(&r->first, s, memory_order_release);
        return true;
    }
    atomic_store_explicit(&old->next, s, memory_order_release);
    atomic_fetch_add_explicit(&r->rolled, 1, memory_order_release);
    vv_wake_up(r->wake);
    return true;
}

/* Back to the producer, all zero: the words' own commit rests on that. */
static void retire(vv_ring *r, vv_segment *s)
{
    memset(s, 0, VV_SEGMENT_BYTES);
    for (unsigned i = 0; i < VV_RING_SPARES; i++) {
        vv_segment *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&r->spares[i], &none, s, memory_order_release,
                                                    memory_order_relaxed))
            return;
    }
    segment_free(r->governor, s);
}

const uint64_t *vv_ring_peek(vv_ring *r, uint64_t *ret_retired)
{
    *ret_retired = 0;
    if (!r->tail) {
        r->tail = atomic_load_explicit(&r->first, memory_order_acquire);
        if (!r->tail)
            return NULL;
        r->from = r->tail->words;
    }
    for (;;) {
        bool more = r->from < r->tail->words + VV_SEGMENT_WORDS;
        if (more && __atomic_load_n(r->from, __ATOMIC_ACQUIRE))
            return r->from;
        vv_segment *next = atomic_load_explicit(&r->tail->next, memory_order_acquire);
        if (!next)
            return NULL;
        /* The link was made after the last record: what is zero now stays zero. */
        if (more && __atomic_load_n(r->from, __ATOMIC_ACQUIRE))
            return r->from;
        vv_segment *done = r->tail;
        r->tail = next;
        r->from = next->words;
        retire(r, done);
        r->retired++;
        ++*ret_retired;
    }
}
