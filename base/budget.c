#include "config.h"

#include "base/budget.h"

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
