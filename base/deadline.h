/* Points in time: now, and for the system's timed waits. */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* So many ms from now, by the clock the wait uses. */
static inline struct timespec vv_deadline(clockid_t clock, uint64_t ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    uint64_t ns = (uint64_t)t.tv_nsec + ms % 1000 * 1000000;
    t.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    return t;
}

/* Of the monotonic clock. */
static inline uint64_t vv_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t vv_now_ms(void)
{
    return vv_now_ns() / 1000000;
}

/* For waits with deadlines of the monotonic clock. */
static inline void vv_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(c, &steady);
    pthread_condattr_destroy(&steady);
}
