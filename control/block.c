#include "config.h"

#include "control/block.h"

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
        if (right & ~now & VARVE_MON_THREADS)
            vv_thread_listening();
        if (!atomic_compare_exchange_strong(&host->mask, &now, right))
            continue;
        now = right;
        if (host->functions.mask_changed)
            host->functions.mask_changed(host->me, right);
        now = atomic_load(&host->mask);
    }
}
