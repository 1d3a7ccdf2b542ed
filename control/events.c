/* The wrappers of the events, from the table, and the one way to a profiler's callbacks. */
#include "config.h"

#include <string.h>

#include "control/block.h"

void vv_iface_set(varve_profiler *p, const varve_callbacks *callbacks, void *me)
{
    vv_iface *i = &p->iface_memory;
    *i = (vv_iface){.me = me};
    size_t n = callbacks->size < sizeof i->callbacks ? callbacks->size : sizeof i->callbacks;
    memcpy(&i->callbacks, callbacks, n);
    uint64_t bits = VV_IMMUTABLE_BITS;
#define EVENT(name, ...)                            \
    if (i->callbacks.name)                          \
        bits |= vv_event_rows[VV_EVENT_##name].bit;
    VARVE_EVENTS(EVENT)
#undef EVENT
    atomic_store(&p->implemented_bits, bits);
    atomic_store_explicit(&p->iface_, i, memory_order_release);
}

void vv_iface_clear(varve_profiler *p)
{
    atomic_store_explicit(&p->iface_, NULL, memory_order_release);
}

/* What of its row a wrapper needs, all of it known where it is compiled. */
typedef struct {
    vv_event event;
    uint64_t bit;
    uint32_t flags, inside; /* of the row, of the thread while it is inside */
} event_call;

/* A profiler that is pinned, on the stack of whoever calls it back. */
typedef struct {
    vv_gate_pin pin;
    uint32_t before; /* flags of the thread */
    vv_frame frame;
} pinned;

/* Whether an event goes to a profiler in this state. */
static VV_INLINE inline bool is_delivered(vv_status status, uint32_t flags)
{
    return status == VV_STATUS_ACTIVE || (flags & VARVE_WHILE_DETACHING && status == VV_STATUS_DETACHING) ||
        (flags & VARVE_WHILE_INIT && (status == VV_STATUS_INIT_STARTUP || status == VV_STATUS_INIT_ATTACH));
}

/* The callbacks, read behind the pin and a look at the state; NULL: they are not to be had. */
static VV_INLINE inline const vv_iface *look_behind_pin(varve_profiler *profiler, event_call c)
{
    if (!is_delivered(vv_status_of(profiler), c.flags) ||
        (c.bit && !(atomic_load_explicit(&profiler->requested, memory_order_relaxed) & c.bit)))
        return NULL;
    return atomic_load_explicit(&profiler->iface_, memory_order_acquire);
}

static VV_INLINE inline vv_gate_pin pin(unsigned slot)
{
    return VV_UNLIKELY(vv_self.nosuspend) ? vv_gate_enter_async(slot) : vv_gate_enter(slot);
}

static VV_INLINE inline void go_in(pinned *p, event_call c)
{
    p->before = vv_self.flags;
    vv_frame_event(&p->frame, c.event);
    vv_self.flags = c.inside;
}

static VV_INLINE inline void come_out(pinned *p)
{
    vv_self.flags = p->before;
    vv_frame_pop(&p->frame);
}

#define PREFERRED(v) (VV_IS_##v)
#define BECAUSE(v, why) (VV_IS_##v)
#define INSIDE(throws, safepoint, ...) \
    ((safepoint) == VV_IS_SAFEPOINT ? VV_IN_CALLBACK | VV_IN_TRIGGERS : VV_IN_CALLBACK)

#define CALL(name, bit, flags, contract, params, names, text)                                            \
    void vv_call_##name(varve_profiler *profiler VARVE_TAIL_ params)                                     \
    {                                                                                                    \
        unsigned slot = profiler->number;                                                                \
        pinned p = {.pin = pin(slot)};                                                                   \
        event_call c = {VV_EVENT_##name, (bit), (flags), INSIDE contract};                               \
        const vv_iface *iface = look_behind_pin(profiler, c);                                            \
        if (VV_LIKELY(iface && iface->callbacks.name)) {                                                 \
            go_in(&p, c);                                                                                \
            iface->callbacks.name(iface->me VARVE_TAIL_ names);                                          \
            come_out(&p);                                                                                \
        }                                                                                                \
        vv_gate_leave(p.pin, slot);                                                                      \
    }
VARVE_EVENTS(CALL)
#undef CALL

/* A row whose event is about a thread says so by its first argument. */
#define FIRST_OF(zero, first, ...) first
#define ABOUT(me, ...) ((varve_thread_id)(FIRST_OF(0, ##__VA_ARGS__, 0)))

/* The slots to call, one after the other: each is pinned only while it is called, so that none holds up another's
 * detaching. The mask is read again, as what it was made of is read next. */
static VV_INLINE inline uint64_t slots_of(varve_host *host, uint64_t bit)
{
    if (!(atomic_load_explicit(&host->mask, memory_order_acquire) & bit))
        return 0;
    return atomic_load_explicit(&host->occupied, memory_order_relaxed);
}

#define RAISE(name, bit, flags, contract, params, names, text)                        \
    void varve_raise_##name(varve_host *host VARVE_TAIL_ params)                      \
    {                                                                                 \
        vv_thread_check(VV_EVENT_##name, ABOUT names);                                \
        for (uint64_t left = slots_of(host, (bit)); left; left &= left - 1)           \
            vv_call_##name(&host->slots[__builtin_ctzll(left)] VARVE_TAIL_ names);    \
    }
VARVE_HOST_EVENTS(RAISE)
#undef RAISE
