/* The tables as data. A row whose reasons are not complete does not compile. */
#include "config.h"

#include "control/contract.h"

/* The first expansion: of each item whether it is the preferred value, deviates for a reason, or is wrong. */
#define PREFERRED(v) (VV_IS_##v * 4 + 1)
#define BECAUSE(v, why) (VV_IS_##v * 4 + (sizeof("" why) > 8 ? 2 : 0))
#define HELD(item, preferred) \
    ((item) == (preferred) * 4 + 1 || ((item) % 4 == 2 && (item) / 4 != (preferred)))
#define ONE_OF(item, a, b, c) ((item) / 4 == VV_IS_##a || (item) / 4 == VV_IS_##b || (item) / 4 == VV_IS_##c)
#define EVENT_ITEMS(throws, safepoint, mode, locks, host_locks, alloc)                                     \
    (HELD(throws, VV_IS_NOTHROW) && HELD(safepoint, VV_IS_SAFEPOINT) && HELD(mode, VV_IS_PREEMPTIVE) &&    \
     HELD(locks, VV_IS_LOCK) && HELD(host_locks, VV_IS_NO_HOST_LOCKS) && HELD(alloc, VV_IS_ALLOC) &&       \
     ONE_OF(throws, NOTHROW, THROWS, THROWS) && ONE_OF(safepoint, SAFEPOINT, NO_SAFEPOINT, NO_SAFEPOINT) && \
     ONE_OF(mode, PREEMPTIVE, COOPERATIVE, ANY_MODE) && ONE_OF(locks, LOCK, NO_LOCK, NO_LOCK) &&           \
     ONE_OF(host_locks, NO_HOST_LOCKS, HOST_LOCKS, HOST_LOCKS) && ONE_OF(alloc, ALLOC, NO_ALLOC, NO_ALLOC))
#define INFO_ITEMS(throws, safepoint, mode, locks, thread, alloc)                                                  \
    (HELD(throws, VV_IS_NOTHROW) && HELD(safepoint, VV_IS_NO_SAFEPOINT) && HELD(mode, VV_IS_ANY_MODE) &&           \
     HELD(locks, VV_IS_NO_LOCK) && HELD(thread, VV_IS_ANY_THREAD) && HELD(alloc, VV_IS_NO_ALLOC) &&                \
     ONE_OF(throws, NOTHROW, THROWS, THROWS) && ONE_OF(safepoint, SAFEPOINT, NO_SAFEPOINT, SAFEPOINT_IF_TRIGGERS) && \
     ONE_OF(mode, PREEMPTIVE, PREEMPTIVE_IF_TRIGGERS, ANY_MODE) && ONE_OF(locks, LOCK, NO_LOCK, NO_LOCK) &&        \
     ONE_OF(thread, ANY_THREAD, THREAD, THREAD) && ONE_OF(alloc, ALLOC, NO_ALLOC, NO_ALLOC))
#define SECOND_AND_THIRD(throws, safepoint, mode, ...) ((safepoint) % 4 == 1 && (mode) % 4 == 1)

#define EVENT(name, bit, flags, contract, params, names, text) \
    _Static_assert(EVENT_ITEMS contract, "event " #name ": a reason for each item that is not preferred, and no other");
#define INFO(name, cls, flags, triggers, contract, params, names, text)                                                \
    _Static_assert(INFO_ITEMS contract, "info " #name ": a reason for each item that is not preferred, and no other"); \
    _Static_assert(VV_##cls == VV_SYNC || SECOND_AND_THIRD contract,                                                   \
                   "info " #name ": what is not SYNC reaches no safepoint, whatever the caller holds");
VARVE_EVENTS(EVENT)
VARVE_INFO(INFO)
#undef EVENT
#undef INFO
#undef PREFERRED
#undef BECAUSE

/* The second expansion: the rows. */
#define PREFERRED(v) {VV_IS_##v, #v, NULL}
#define BECAUSE(v, why) {VV_IS_##v, #v, why}
#define LIST(...) {__VA_ARGS__}

const vv_event_row vv_event_rows[VV_EVENTS] = {
#define EVENT(name, bit, flags, contract, params, names, text) \
    {#name, (bit), (flags), LIST contract, #params, text},
    VARVE_EVENTS(EVENT)
#undef EVENT
};

const vv_info_row vv_info_rows[VV_INFOS] = {
#define INFO(name, cls, flags, triggers, contract, params, names, text) \
    {#name, VV_##cls, (flags), #triggers, LIST contract, #params, text},
    VARVE_INFO(INFO)
#undef INFO
};

uint64_t vv_known_bits(void)
{
    uint64_t known = VV_IMMUTABLE_BITS;
    for (unsigned e = 0; e < VV_EVENTS; e++)
        known |= vv_event_rows[e].bit;
    return known;
}

const char *varve_code_name(varve_code code)
{
    static const char *const names[] = {
        [VARVE_OK] = "VARVE_OK",
        [VARVE_E_NOT_INITIALIZED] = "VARVE_E_NOT_INITIALIZED",
        [VARVE_E_DETACHING] = "VARVE_E_DETACHING",
        [VARVE_E_CALL_SEQUENCE] = "VARVE_E_CALL_SEQUENCE",
        [VARVE_E_INIT_ONLY] = "VARVE_E_INIT_ONLY",
        [VARVE_E_ASYNC_UNSAFE] = "VARVE_E_ASYNC_UNSAFE",
        [VARVE_E_NOT_AFTER_ATTACH] = "VARVE_E_NOT_AFTER_ATTACH",
        [VARVE_E_IMMUTABLE] = "VARVE_E_IMMUTABLE",
        [VARVE_E_NOT_DETACHABLE] = "VARVE_E_NOT_DETACHABLE",
        [VARVE_E_MAIN_ONLY] = "VARVE_E_MAIN_ONLY",
        [VARVE_E_NO_THREAD] = "VARVE_E_NO_THREAD",
        [VARVE_E_UNSUPPORTED] = "VARVE_E_UNSUPPORTED",
        [VARVE_E_UNAVAILABLE] = "VARVE_E_UNAVAILABLE",
        [VARVE_E_ARG] = "VARVE_E_ARG",
        [VARVE_E_BUSY] = "VARVE_E_BUSY",
        [VARVE_E_REFUSED] = "VARVE_E_REFUSED",
        [VARVE_E_NO_MEMORY] = "VARVE_E_NO_MEMORY",
    };
    return (unsigned)code < VV_ARRAY_LEN(names) ? names[code] : "unknown";
}
