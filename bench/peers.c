/*
 * One program for several recorders: a recursion with leaf calls, whose compiler-made hooks go to whoever is there.
 * Prints the time of a call pair in nanoseconds: CPU time of its thread, the fastest of VV_BENCH_ROUNDS rounds, and
 * wall time over all of them, in which a recorder that makes the program wait is seen. Built without hooks
 * (peers_bare), with hooks that another recorder preloads (peers_hooked), and with hooks of its own that record with
 * Varve (peers).
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>

#include "bench/bench.h"
#include "bench/recorder.h"

enum { DEPTH = 24 };

#define UNHOOKED __attribute__((no_instrument_function))
#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static uint64_t pairs;

static NOINLINE uint64_t leaf(uint64_t v)
{
    __asm__ volatile("");
    return v * 5 + 1;
}

static NOINLINE uint64_t fib(unsigned n)
{
    __asm__ volatile("");
    return n < 2 ? leaf(n) : fib(n - 1) + fib(n - 2);
}

#ifdef WITH_VARVE
static varve_thread *thread;

void __cyg_profile_func_enter(void *function, void *site) UNHOOKED;
void __cyg_profile_func_exit(void *function, void *site) UNHOOKED;

void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    varve_call_begin(thread, 1 + (function == (void *)(uintptr_t)leaf), 0);
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function;
    (void)site;
    varve_call_end(thread, VARVE_CALL_OK);
}
#endif

static UNHOOKED uint64_t pairs_of(unsigned n)
{
    uint64_t calls[2] = {2, 2};
    for (unsigned i = 2; i <= n; i++) {
        uint64_t next = 1 + calls[0] + calls[1];
        calls[0] = calls[1];
        calls[1] = next;
    }
    return calls[1];
}

/* As bench_cpu_ns, which may be hooked. */
static UNHOOKED double clock_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

UNHOOKED int main(void)
{
#ifdef WITH_VARVE
    bench_recorder r;
    if (!bench_recorder_open(&r, 1ULL << 30, &thread))
        return 1;
    varve_function_add(r.engine, &(varve_function_info){.fqn = "fib"});
    varve_function_add(r.engine, &(varve_function_info){.fqn = "leaf"});
#endif
    const char *text = getenv("VV_BENCH_ROUNDS");
    int rounds = text ? atoi(text) + 1 : 16;
    pairs = pairs_of(DEPTH);
    double best = 1e18, start = clock_ns(CLOCK_MONOTONIC);
    uint64_t sum = 0;
    for (int i = 0; i < rounds; i++) {
        double from = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        sum += fib(DEPTH);
        double spent = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - from) / (double)pairs;
        best = spent < best ? spent : best;
    }
    double wall = (clock_ns(CLOCK_MONOTONIC) - start) / (double)pairs / rounds;
    fprintf(stderr, "%.2f ns a pair, %.2f by the wall, sum %llu\n", best, wall, (unsigned long long)sum);
#ifdef WITH_VARVE
    return bench_recorder_close(&r, thread) ? 0 : 1;
#else
    return 0;
#endif
}
