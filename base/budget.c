#include "config.h"

#include "base/budget.h"

#include "base/deadline.h"

enum { PATIENCE_MS = 5000, STEP_NS = 5000000 };

static bool take(vv_budget *b, size_t n)
{
    size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
    do {
        if (used > b->max || n > b->max - used)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&b->used, &used, used + n, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

bool vv_budget_take(vv_budget *b, size_t n)
{
    if (!b)
        return true;
    if (n > b->max)
        return false;
    while (!take(b, n))
        if (!b->release || !b->release(b->cls, n))
            return false;
    return true;
}

void vv_budget_force(vv_budget *b, size_t n)
{
    if (b)
        atomic_fetch_add_explicit(&b->used, n, memory_order_relaxed);
}

void vv_budget_give(vv_budget *b, size_t n)
{
    if (b)
        atomic_fetch_sub_explicit(&b->used, n, memory_order_relaxed);
}

bool vv_budget_borrow(vv_budget *b, size_t n, size_t own)
{
    static const struct timespec step = {.tv_nsec = STEP_NS};
    uint64_t until = vv_now_ms() + PATIENCE_MS;
    if (!b)
        return true;
    /* A loan is taken before it is counted, and may be repaid after this failed: so nobody has any if twice so. */
    for (unsigned alone = 0; !vv_budget_take(b, n); nanosleep(&step, NULL)) {
        if (n > b->max || alone == 2 || vv_now_ms() > until)
            return false;
        alone = atomic_load(&b->lent) > own ? 0 : alone + 1;
    }
    atomic_fetch_add(&b->lent, n);
    return true;
}

void vv_budget_repay(vv_budget *b, size_t n)
{
    vv_budget_give(b, n);
    if (b)
        atomic_fetch_sub(&b->lent, n);
}
