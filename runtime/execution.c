#include "config.h"

#include "runtime/execution.h"

#include <stdlib.h>
#include <string.h>

static uint64_t control_of(uint32_t generation, uint8_t status, vv_phase phase)
{
    return (uint64_t)generation << 32 | (uint64_t)status << 8 | (uint64_t)phase;
}

static void push_free(vv_registry *r, vv_slot *s)
{
    uint64_t head = atomic_load_explicit(&r->free, memory_order_relaxed), next;
    do {
        atomic_store_explicit(&s->next_free, (uint32_t)head, memory_order_relaxed);
        next = ((head >> 32) + 1) << 32 | (s->index + 1);
    } while (!atomic_compare_exchange_weak_explicit(&r->free, &head, next, memory_order_release, memory_order_relaxed));
}

static vv_slot *pop_free(vv_registry *r)
{
    uint64_t head = atomic_load_explicit(&r->free, memory_order_acquire), next;
    do {
        if (!(uint32_t)head)
            return NULL;
        /* It may be taken by another meanwhile: then the count of changes has moved. */
        next = ((head >> 32) + 1) << 32 |
               atomic_load_explicit(&r->slots[(uint32_t)head - 1].next_free, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&r->free, &head, next, memory_order_acq_rel, memory_order_acquire));
    return &r->slots[(uint32_t)head - 1];
}

bool vv_registry_init(vv_registry *r, uint32_t count, struct varve_session *session)
{
    memset(r, 0, sizeof *r);
    r->slots = aligned_alloc(VV_SLOT_ALIGN, count * sizeof *r->slots);
    if (!r->slots)
        return false;
    memset(r->slots, 0, count * sizeof *r->slots);
    r->count = count;
    for (uint32_t i = count; i-- > 0;) {
        r->slots[i].index = i;
        r->slots[i].session = session;
        push_free(r, &r->slots[i]);
    }
    return true;
}

void vv_registry_done(vv_registry *r)
{
    free(r->slots);
    r->slots = NULL;
}

vv_slot *vv_slot_reserve(vv_registry *r)
{
    vv_slot *s = pop_free(r);
    if (!s)
        return NULL;
    atomic_store_explicit(&s->lost, 0, memory_order_relaxed);
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        atomic_store_explicit(&s->accounts[i], 0, memory_order_relaxed);
    atomic_store_explicit(&s->closing_ticks, 0, memory_order_relaxed);
    atomic_store_explicit(&s->threads, 2, memory_order_relaxed);
    s->exec = NULL;
    atomic_store_explicit(&s->view, NULL, memory_order_relaxed);
    return s;
}

static void push(vv_registry *r, vv_slot_list which, vv_slot *s)
{
    _Atomic(vv_slot *) *list = &r->lists[which];
    vv_slot *head = atomic_load_explicit(list, memory_order_relaxed);
    do
        s->next[which] = head;
    while (!atomic_compare_exchange_weak_explicit(list, &head, s, memory_order_release, memory_order_relaxed));
}

void vv_slot_admit(vv_registry *r, vv_slot *s)
{
    uint64_t open = control_of(vv_slot_generation(s), VV_STATUS_NONE, VV_PHASE_OPEN);
    atomic_store_explicit(&s->control, open, memory_order_release);
    push(r, VV_ADMITTED, s);
}

void vv_slot_free(vv_registry *r, vv_slot *s)
{
    uint32_t generation = vv_slot_generation(s);
    s->exec = NULL;
    if (generation == VV_GENERATION_MAX) {
        atomic_store_explicit(&s->control, control_of(generation, VV_STATUS_NONE, VV_PHASE_RELEASED),
                              memory_order_release);
        return; /* retired */
    }
    atomic_store_explicit(&s->control, control_of(generation + 1, VV_STATUS_NONE, VV_PHASE_FREE), memory_order_release);
    push_free(r, s);
}

bool vv_slot_acquire(vv_registry *r, vv_slot *s, uint32_t generation, uint64_t ticks)
{
    vv_phase phase = vv_slot_phase(s);
    if (vv_slot_generation(s) != generation || (phase != VV_PHASE_OPEN && phase != VV_PHASE_RETURNED))
        return false;
    uint64_t n = atomic_load_explicit(&s->threads, memory_order_relaxed);
    do {
        if (n == UINT64_MAX || n == 0)
            return false;
    } while (
        !atomic_compare_exchange_weak_explicit(&s->threads, &n, n + 1, memory_order_acq_rel, memory_order_acquire));
    if (vv_slot_generation(s) == generation)
        return true;
    vv_slot_release(r, s, ticks); /* of the next execution, which must not miss its end by it */
    return false;
}

/* After the last lease: the root has returned. */
static void close_slot(vv_registry *r, vv_slot *s, uint64_t ticks)
{
    atomic_store_explicit(&s->closing_ticks, ticks, memory_order_relaxed);
    uint64_t control = atomic_load_explicit(&s->control, memory_order_acquire);
    atomic_store_explicit(&s->control, (control & ~0xffULL) | VV_PHASE_CLOSING, memory_order_release);
    push(r, VV_READY, s);
}

bool vv_slot_release(vv_registry *r, vv_slot *s, uint64_t ticks)
{
    if (atomic_fetch_sub_explicit(&s->threads, 1, memory_order_acq_rel) != 1)
        return false;
    close_slot(r, s, ticks);
    return true;
}

/* The first status wins. */
static bool set_status(vv_slot *s, uint32_t generation, uint8_t status)
{
    uint64_t open = control_of(generation, VV_STATUS_NONE, VV_PHASE_OPEN);
    uint64_t returned = control_of(generation, status, VV_PHASE_RETURNED);
    return atomic_compare_exchange_strong_explicit(&s->control, &open, returned, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

bool vv_slot_return(vv_registry *r, vv_slot *s, uint32_t generation, uint8_t status, uint64_t ticks, bool *ret_last)
{
    *ret_last = false;
    if (!set_status(s, generation, status))
        return false;
    *ret_last = vv_slot_release(r, s, ticks);
    return true;
}

bool vv_slot_drop(vv_registry *r, vv_slot *s, uint8_t status, uint64_t ticks)
{
    if (!set_status(s, vv_slot_generation(s), status))
        return false;
    atomic_store_explicit(&s->threads, 0, memory_order_release);
    close_slot(r, s, ticks);
    return true;
}

vv_slot *vv_registry_take(vv_registry *r, vv_slot_list which)
{
    vv_slot *s = atomic_exchange_explicit(&r->lists[which], NULL, memory_order_acquire), *first = NULL;
    while (s) {
        vv_slot *next = s->next[which];
        s->next[which] = first;
        first = s;
        s = next;
    }
    return first;
}
