/*
 * What a recorded call costs its host, and what it costs the consumer.
 *
 * One program of tiny functions (a recursion with leaf calls, bodies of one or two instructions: the worst case) runs
 * without instrumentation, with two clock reads a call, and recorded; rounds are interleaved, and times are CPU times
 * of the threads, so that neighbours on the machine disturb little. Everything recorded is committed and nothing may be
 * lost, else the program fails.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>

#include "bench/bench.h"
#include "bench/recorder.h"
#include "runtime/record.h"

enum { ROUNDS_MAX = 1000, DEPTH = 26 };

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static varve_thread *thread;
static uint64_t sink;

#if defined(__x86_64__)
#include <x86intrin.h>
static inline uint64_t read_clock(void)
{
    return __rdtsc();
}
#else
static inline uint64_t read_clock(void)
{
    return varve_ticks();
}
#endif

/* Calls of the same shape as the recorder's, that read the clock and do nothing else. */
static NOINLINE void read_begin(varve_thread *t, uint32_t function, uint32_t site)
{
    __asm__ volatile("" ::"r"(t), "r"(function), "r"(site), "r"(read_clock()));
}

static NOINLINE void read_end(varve_thread *t, varve_call_status status)
{
    __asm__ volatile("" ::"r"(t), "r"(status), "r"(read_clock()));
}

/* One program, three times: a recursion over pairs of calls, each with a leaf. */
#define PROGRAM(name, BEGIN, END)                                        \
    static NOINLINE uint64_t name##_leaf(uint64_t v)                     \
    {                                                                    \
        BEGIN(2);                                                        \
        v = v * 5 + 1;                                                   \
        END();                                                           \
        return v;                                                        \
    }                                                                    \
    static NOINLINE uint64_t name(unsigned n)                            \
    {                                                                    \
        BEGIN(1);                                                        \
        uint64_t v = n < 2 ? name##_leaf(n) : name(n - 1) + name(n - 2); \
        END();                                                           \
        return v;                                                        \
    }

#define NOTHING(...) __asm__ volatile("")
#define READ_BEGIN(f) read_begin(thread, f, 0)
#define READ_END() read_end(thread, VARVE_CALL_OK)
#define RECORD_BEGIN(f) varve_call_begin(thread, f, 0)
#define RECORD_END() varve_call_end(thread, VARVE_CALL_OK)
PROGRAM(bare, NOTHING, NOTHING)
PROGRAM(reads, READ_BEGIN, READ_END)
PROGRAM(recorded, RECORD_BEGIN, RECORD_END)

/* Pairs of one run: fib's calls and a leaf for each that ends the recursion. */
static uint64_t pairs_of(unsigned n)
{
    uint64_t calls[2] = {2, 2};
    for (unsigned i = 2; i <= n; i++) {
        uint64_t next = 1 + calls[0] + calls[1];
        calls[0] = calls[1];
        calls[1] = next;
    }
    return calls[1];
}

static double time_of(uint64_t (*program)(unsigned), uint64_t pairs)
{
    double from = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    sink += program(DEPTH);
    return (bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from) / (double)pairs;
}

static void print(const char *what, double *v, int n)
{
    bench_spread m = bench_summary(v, n);
    printf("  %-28s %6.2f ns a pair   (%.2f to %.2f)\n", what, m.median, m.low, m.high);
}

int main(void)
{
    bench_recorder r;
    if (!bench_recorder_open(&r, 0, &thread))
        return 1;
    varve_function_add(r.engine, &(varve_function_info){.fqn = "fib"});
    varve_function_add(r.engine, &(varve_function_info){.fqn = "leaf"});
    static double t_bare[ROUNDS_MAX], t_reads[ROUNDS_MAX], t_recorded[ROUNDS_MAX], t_consumer[ROUNDS_MAX],
        ratio[ROUNDS_MAX];
    int rounds = bench_rounds();
    uint64_t pairs = pairs_of(DEPTH);
    sink += bare(DEPTH) + reads(DEPTH) + recorded(DEPTH);
    for (int i = 0; i < rounds; i++) {
        if (!varve_flush(r.session, 60000))
            return 1;
        t_bare[i] = time_of(bare, pairs);
        t_reads[i] = time_of(reads, pairs);
        double from = bench_cpu_ns(r.consumer);
        t_recorded[i] = time_of(recorded, pairs);
        if (!varve_flush(r.session, 60000))
            return 1;
        t_consumer[i] = (bench_cpu_ns(r.consumer) - from) / (double)pairs;
        ratio[i] = (t_recorded[i] - t_bare[i]) / (t_reads[i] - t_bare[i]);
    }
    printf("call pair, %d interleaved rounds of %llu pairs, medians (quartiles)\n", rounds, (unsigned long long)pairs);
    print("uninstrumented", t_bare, rounds);
    print("two clock reads", t_reads, rounds);
    print("recorded", t_recorded, rounds);
    printf("host-visible pair: %.2fx two clock reads (limit 1.15)\n", bench_summary(ratio, rounds).median);
    print("consumer (limit 20)", t_consumer, rounds);
    printf("  bytes a pair in the ring          %d (limit 32)\n", 8 * (VV_WORDS_BEGIN + VV_WORDS_END));
    return bench_recorder_close(&r, thread) ? 0 : 1;
}
