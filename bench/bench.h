/*
 * Shared by the benchmarks: a clock, medians, and how many rounds to run. A figure is only ever a ratio to a limit that
 * was measured in the same run, interleaved with it, since the machine is shared and noisy.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t bench_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU time of this thread: for work that never waits, the same as the clock, but for what others take of the
 * machine. */
static inline uint64_t bench_cpu_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Interleaved rounds: VV_BENCH_ROUNDS, 15 where it is unset. */
static inline int bench_rounds(void)
{
    const char *s = getenv("VV_BENCH_ROUNDS");
    int n = s ? atoi(s) : 15;
    return n < 1 ? 1 : n > 1000 ? 1000 : n;
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct {
    double low, median, high; /* quartiles around the median */
} bench_spread;

/* Sorts v in place. */
static inline bench_spread bench_summary(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, bench_compare);
    return (bench_spread){v[n / 4], v[n / 2], v[(n * 3) / 4]};
}
