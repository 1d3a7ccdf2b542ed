/* The wrappers of the events, from the table. */
#include "config.h"

#include "control/block.h"

/* A row whose event is about a thread says so by its first argument. */
#define FIRST_OF(zero, first, ...) first
#define ABOUT(me, ...) ((varve_thread_id)(FIRST_OF(0, ##__VA_ARGS__, 0)))

#define CALL(name, bit, flags, contract, params, names, text)                \
    void vv_call_##name(varve_profiler *profiler VARVE_TAIL_ params)         \
    {                                                                        \
        vv_pinned p;                                                         \
        if (!vv_pinned_enter(&p, profiler, VV_EVENT_##name))                 \
            return;                                                          \
        p.iface->callbacks.name(p.iface->me VARVE_TAIL_ names);              \
        vv_pinned_leave(&p);                                                 \
    }
VARVE_EVENTS(CALL)
#undef CALL

/* The slots to call, one after the other: each is pinned only while it is called, so that none holds up another's
 * detaching. The mask is read again, as what it was made of is read next. */
static uint64_t slots_of(varve_host *host, uint64_t bit)
{
    if (!(atomic_load_explicit(&host->mask, memory_order_acquire) & bit))
        return 0;
    return atomic_load_explicit(&host->occupied, memory_order_relaxed);
}

#define RAISE(name, bit, flags, contract, params, names, text)                                \
    void varve_raise_##name(varve_host *host VARVE_TAIL_ params)                              \
    {                                                                                         \
        vv_thread_check(VV_EVENT_##name, ABOUT names);                                        \
        for (uint64_t left = slots_of(host, VARVE_ON_##name); left; left &= left - 1)         \
            vv_call_##name(&host->slots[__builtin_ctzll(left)] VARVE_TAIL_ names);            \
    }
VARVE_HOST_EVENTS(RAISE)
#undef RAISE
