/* How producers wake the consumer: a flag that says it sleeps, and a semaphore. A lost race costs one timeout. */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    _Atomic bool parked;
    sem_t sem;
} vv_wake;

void vv_wake_init(vv_wake *w);
void vv_wake_done(vv_wake *w);

/* Any thread: wakes the consumer if it sleeps. */
static inline void vv_wake_up(vv_wake *w)
{
    if (atomic_load_explicit(&w->parked, memory_order_relaxed) && atomic_exchange(&w->parked, false))
        sem_post(&w->sem);
}

/* Consumer: announces sleep; what is looked at after this and before vv_wake_sleep can't be missed. */
static inline void vv_wake_park(vv_wake *w)
{
    atomic_store(&w->parked, true);
}

/* Consumer: sleeps until woken, or for at most ns. */
void vv_wake_sleep(vv_wake *w, uint64_t ns);
/* Consumer: takes the announcement back. */
void vv_wake_unpark(vv_wake *w);
