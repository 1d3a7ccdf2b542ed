/*
 * Memory that several threads take out of one sum, so that all of them together stay below it. Taking is a promise to
 * allocate so much; nothing is allocated here. All calls may come from any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t max;
    _Atomic size_t used;
    _Atomic size_t lent; /* of used: for as long as an answer is made and sent */
    /*
     * Asked where too little is left, without a lock of the budget held: gives back what it can do without, until n
     * bytes are free; false where they are not, and it can give nothing. May be NULL.
     */
    bool (*release)(void *cls, size_t n);
    void *cls;
} vv_budget;

/* All calls take NULL for a budget without a bound. In place: who takes from it keeps its address. */
static inline void vv_budget_init(vv_budget *b, size_t max)
{
    *b = (vv_budget){.max = max};
}

/* Takes n bytes; false, and nothing taken, where they are not to be had. */
bool vv_budget_take(vv_budget *b, size_t n);
/* Takes what is there already: it may exceed the sum, and the next one to take makes up for it. */
void vv_budget_force(vv_budget *b, size_t n);
void vv_budget_give(vv_budget *b, size_t n);
/*
 * Takes n bytes as a loan, to be repaid before long. Where they are not to be had while others have loans too, it waits
 * for these to be repaid, for some seconds; own is what the caller has as loans already.
 */
bool vv_budget_borrow(vv_budget *b, size_t n, size_t own);
void vv_budget_repay(vv_budget *b, size_t n);

static inline size_t vv_budget_max(const vv_budget *b)
{
    return b ? b->max : SIZE_MAX;
}

/* Bytes that are free; 0 where the sum is exceeded. */
static inline size_t vv_budget_left(const vv_budget *b)
{
    if (!b)
        return SIZE_MAX;
    size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
    return used < b->max ? b->max - used : 0;
}
