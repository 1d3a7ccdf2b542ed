#include "config.h"

#include "runtime/wake.h"

#include <errno.h>
#include <time.h>

void vv_wake_init(vv_wake *w)
{
    atomic_init(&w->parked, false);
    sem_init(&w->sem, 0, 0);
}

void vv_wake_done(vv_wake *w)
{
    sem_destroy(&w->sem);
}

void vv_wake_unpark(vv_wake *w)
{
    if (!atomic_exchange(&w->parked, false))
        while (sem_wait(&w->sem) < 0 && errno == EINTR)
            ;
}

void vv_wake_sleep(vv_wake *w, uint64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t nsec = (uint64_t)until.tv_nsec + ns % 1000000000;
    until.tv_sec += (time_t)(ns / 1000000000 + nsec / 1000000000);
    until.tv_nsec = (long)(nsec % 1000000000);
    int rc;
    do
        rc = sem_clockwait(&w->sem, CLOCK_MONOTONIC, &until);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        vv_wake_unpark(w);
}
