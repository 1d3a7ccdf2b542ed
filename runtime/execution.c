#include "config.h"

#include "runtime/execution.h"

#include <stdlib.h>
#include <string.h>

bool vv_registry_init(vv_registry *r, uint32_t count)
{
    memset(r, 0, sizeof *r);
    r->slots = aligned_alloc(64, count * sizeof *r->slots);
    if (!r->slots)
        return false;
    memset(r->slots, 0, count * sizeof *r->slots);
    r->count = count;
    pthread_mutex_init(&r->lock, NULL);
    for (uint32_t i = count; i-- > 0;) {
        vv_slot *s = &r->slots[i];
        s->index = i;
        atomic_init(&s->generation, 1);
        s->next_free = r->free;
        r->free = s;
    }
    return true;
}

void vv_registry_done(vv_registry *r)
{
    if (!r->slots)
        return;
    pthread_mutex_destroy(&r->lock);
    free(r->slots);
    r->slots = NULL;
}

vv_slot *vv_slot_reserve(vv_registry *r)
{
    pthread_mutex_lock(&r->lock);
    vv_slot *s = r->free;
    if (s)
        r->free = s->next_free;
    pthread_mutex_unlock(&r->lock);
    if (!s)
        return NULL;
    atomic_store_explicit(&s->lost, 0, memory_order_relaxed);
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        atomic_store_explicit(&s->accounts[i], 0, memory_order_relaxed);
    atomic_store_explicit(&s->closing_ticks, 0, memory_order_relaxed);
    atomic_store_explicit(&s->status, VV_STATUS_NONE, memory_order_relaxed);
    atomic_store_explicit(&s->threads, 2, memory_order_relaxed);
    s->exec = NULL;
    return s;
}

static void push_admitted(vv_registry *r, vv_slot *s)
{
    vv_slot *head = atomic_load_explicit(&r->admitted, memory_order_relaxed);
    do
        s->next_admitted = head;
    while (!atomic_compare_exchange_weak_explicit(&r->admitted, &head, s, memory_order_release, memory_order_relaxed));
}

static void push_ready(vv_registry *r, vv_slot *s)
{
    vv_slot *head = atomic_load_explicit(&r->ready, memory_order_relaxed);
    do
        s->next_ready = head;
    while (!atomic_compare_exchange_weak_explicit(&r->ready, &head, s, memory_order_release, memory_order_relaxed));
}

void vv_slot_admit(vv_registry *r, vv_slot *s)
{
    atomic_store_explicit(&s->phase, VV_PHASE_OPEN, memory_order_release);
    push_admitted(r, s);
}

void vv_slot_free(vv_registry *r, vv_slot *s)
{
    atomic_store_explicit(&s->phase, VV_PHASE_FREE, memory_order_release);
    s->exec = NULL;
    uint32_t generation = atomic_load_explicit(&s->generation, memory_order_relaxed);
    if (generation == UINT32_MAX)
        return; /* retired: a handle of the first generation may still be about */
    atomic_store_explicit(&s->generation, generation + 1, memory_order_release);
    pthread_mutex_lock(&r->lock);
    s->next_free = r->free;
    r->free = s;
    pthread_mutex_unlock(&r->lock);
}

bool vv_slot_acquire(vv_slot *s)
{
    uint8_t phase = atomic_load_explicit(&s->phase, memory_order_acquire);
    if (phase != VV_PHASE_OPEN && phase != VV_PHASE_RETURNED)
        return false;
    uint64_t n = atomic_load_explicit(&s->threads, memory_order_relaxed);
    do {
        if (n == UINT64_MAX || n == 0)
            return false;
    } while (
        !atomic_compare_exchange_weak_explicit(&s->threads, &n, n + 1, memory_order_acq_rel, memory_order_acquire));
    return true;
}

bool vv_slot_release(vv_registry *r, vv_slot *s, uint64_t ticks)
{
    if (atomic_fetch_sub_explicit(&s->threads, 1, memory_order_acq_rel) != 1)
        return false;
    atomic_store_explicit(&s->closing_ticks, ticks, memory_order_relaxed);
    atomic_store_explicit(&s->phase, VV_PHASE_CLOSING, memory_order_release);
    push_ready(r, s);
    return true;
}

bool vv_slot_return(vv_registry *r, vv_slot *s, uint32_t generation, uint8_t status, uint64_t ticks)
{
    if (atomic_load_explicit(&s->generation, memory_order_acquire) != generation)
        return false;
    uint8_t none = VV_STATUS_NONE;
    if (!atomic_compare_exchange_strong_explicit(&s->status, &none, status, memory_order_acq_rel, memory_order_acquire))
        return false;
    uint8_t open = VV_PHASE_OPEN;
    atomic_compare_exchange_strong_explicit(&s->phase, &open, VV_PHASE_RETURNED, memory_order_acq_rel,
                                            memory_order_acquire);
    return vv_slot_release(r, s, ticks);
}

vv_slot *vv_registry_take_admitted(vv_registry *r)
{
    vv_slot *s = atomic_exchange_explicit(&r->admitted, NULL, memory_order_acquire), *first = NULL;
    while (s) {
        vv_slot *next = s->next_admitted;
        s->next_admitted = first;
        first = s;
        s = next;
    }
    return first;
}

vv_slot *vv_registry_take_ready(vv_registry *r)
{
    vv_slot *s = atomic_exchange_explicit(&r->ready, NULL, memory_order_acquire), *first = NULL;
    while (s) {
        vv_slot *next = s->next_ready;
        s->next_ready = first;
        first = s;
        s = next;
    }
    return first;
}
