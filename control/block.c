#include "config.h"

#include "control/block.h"

#include <string.h>

void (*vv_point_probe)(vv_point point);

static const uint8_t legal[VV_STATUSES] = {
    [VV_STATUS_NONE] = 1 << VV_STATUS_PRE_INITIALIZE | 1 << VV_STATUS_INIT_STARTUP | 1 << VV_STATUS_INIT_ATTACH,
    [VV_STATUS_PRE_INITIALIZE] = 1 << VV_STATUS_NONE | 1 << VV_STATUS_INIT_STARTUP | 1 << VV_STATUS_INIT_ATTACH,
    [VV_STATUS_INIT_STARTUP] = 1 << VV_STATUS_ACTIVE | 1 << VV_STATUS_NONE,
    [VV_STATUS_INIT_ATTACH] = 1 << VV_STATUS_ACTIVE | 1 << VV_STATUS_NONE,
    [VV_STATUS_ACTIVE] = 1 << VV_STATUS_NONE | 1 << VV_STATUS_DETACHING,
    [VV_STATUS_DETACHING] = 1 << VV_STATUS_NONE,
};

bool vv_status_is_legal(vv_status from, vv_status to)
{
    return (unsigned)from < VV_STATUSES && (unsigned)to < VV_STATUSES && legal[from] >> to & 1;
}

bool vv_status_move(varve_profiler *p, vv_status from, vv_status to)
{
    if (!vv_status_is_legal(from, to)) {
        vv_violation(VARVE_ITEM_STATE, "a transition", "the order of states");
        return false;
    }
    uint32_t expected = from;
    if (!atomic_compare_exchange_strong(&p->status, &expected, (uint32_t)to))
        return false;
    if (to == VV_STATUS_NONE || to == VV_STATUS_DETACHING || to == VV_STATUS_ACTIVE)
        vv_gate_flush();
    return true;
}

static uint64_t wanted(varve_host *host)
{
    if (atomic_load(&host->state) >= VV_HOST_CLOSING || vv_gate_is_forked())
        return 0;
    uint64_t mask = 0;
    for (uint64_t left = atomic_load(&host->occupied); left; left &= left - 1) {
        varve_profiler *p = &host->slots[__builtin_ctzll(left)];
        if (atomic_load(&p->status) == VV_STATUS_ACTIVE)
            mask |= atomic_load(&p->requested) & atomic_load(&p->implemented_bits);
    }
    return mask;
}

/* Whoever changed something that goes into the mask comes here afterwards, and leaves only after a look that found the
 * mask right: a compare-and-swap alone could put an older sum over an equal newer one. */
void vv_mask_update(varve_host *host)
{
    uint64_t now = atomic_load(&host->mask), right;
    while (right = wanted(host), right != now) {
        if (!atomic_compare_exchange_strong(&host->mask, &now, right))
            continue;
        now = right;
        if (host->functions.mask_changed)
            host->functions.mask_changed(host->me, right);
        now = atomic_load(&host->mask);
    }
}

void vv_iface_set(varve_profiler *p, const varve_callbacks *callbacks, void *me)
{
    vv_iface *i = &p->iface_memory;
    *i = (vv_iface){.me = me};
    size_t n = callbacks->size < sizeof i->callbacks ? callbacks->size : sizeof i->callbacks;
    memcpy(&i->callbacks, callbacks, n);
    uint64_t bits = VV_IMMUTABLE_BITS;
#define EVENT(name, ...)                                     \
    if (i->callbacks.name) {                                 \
        i->implemented |= UINT64_C(1) << VV_EVENT_##name;    \
        bits |= vv_event_rows[VV_EVENT_##name].bit;          \
    }
    VARVE_EVENTS(EVENT)
#undef EVENT
    atomic_store(&p->implemented_bits, bits);
    atomic_store_explicit(&p->iface_, i, memory_order_release);
}

void vv_iface_clear(varve_profiler *p)
{
    atomic_store_explicit(&p->iface_, NULL, memory_order_release);
}

/* Whether an event goes to a profiler in this state. */
static bool is_delivered(varve_profiler *p, vv_event e)
{
    const vv_event_row *row = &vv_event_rows[e];
    switch (vv_status_of(p)) {
    case VV_STATUS_ACTIVE:
        return !(row->bit && atomic_load_explicit(&p->host->state, memory_order_relaxed) >= VV_HOST_CLOSING);
    case VV_STATUS_DETACHING:
        return row->flags & VARVE_WHILE_DETACHING;
    case VV_STATUS_INIT_STARTUP:
    case VV_STATUS_INIT_ATTACH:
        return row->flags & VARVE_WHILE_INIT;
    case VV_STATUS_NONE:
    case VV_STATUS_PRE_INITIALIZE:
        break;
    }
    return false;
}

bool vv_pinned_enter(vv_pinned *p, varve_profiler *profiler, vv_event e)
{
    const vv_event_row *row = &vv_event_rows[e];
    unsigned slot = profiler->number;
    vv_gate_pin pin = VV_UNLIKELY(vv_self.nosuspend) ? vv_gate_enter_async(slot) : vv_gate_enter(slot);
    const vv_iface *iface = NULL;
    if (VV_LIKELY(is_delivered(profiler, e)) &&
        (!row->bit || atomic_load_explicit(&profiler->requested, memory_order_relaxed) & row->bit))
        iface = atomic_load_explicit(&profiler->iface_, memory_order_acquire);
    if (!iface || !(iface->implemented >> e & 1)) {
        vv_gate_leave(pin, slot);
        return false;
    }
    p->iface = iface;
    p->pin = pin;
    p->slot = slot;
    p->flags = vv_self.flags;
    vv_frame_event(&p->frame, e);
    vv_self.flags = row->items[VV_ITEM_SAFEPOINT].value == VV_IS_SAFEPOINT ? VV_IN_CALLBACK | VV_IN_TRIGGERS
                                                                           : VV_IN_CALLBACK;
    return true;
}

void vv_pinned_leave(vv_pinned *p)
{
    vv_self.flags = p->flags;
    vv_frame_pop(&p->frame);
    vv_gate_leave(p->pin, p->slot);
}
