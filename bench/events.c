/*
 * What other events than a plain pair cost their host: waits, spawns, a tree that rolls over, the admission of an
 * execution. Each beside what the machine itself takes for the clock reads in it, in the same rounds.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/recorder.h"

enum { OPS = 1 << 16, ROUNDS_MAX = 1000, ROOTS = 10000, WAITS = 10, FUNCTIONS = 4096 };

static varve_thread *thread;
static uint32_t functions[FUNCTIONS];
static uint64_t sink;

static void read_clocks(unsigned n)
{
    for (unsigned i = 0; i < OPS; i++)
        for (unsigned k = 0; k < n; k++)
            sink += varve_ticks();
}

/* A call that waits n times. */
static void waits(unsigned n)
{
    for (unsigned i = 0; i < OPS; i++) {
        varve_call_begin(thread, functions[1], 0);
        for (unsigned k = 0; k < n; k++) {
            varve_await_begin(thread, varve_ticks());
            varve_await_end(thread, varve_ticks());
        }
        varve_call_end(thread, VARVE_CALL_OK);
    }
}

/* A child of one call. */
static void spawns(unsigned n)
{
    (void)n;
    for (unsigned i = 0; i < OPS; i++) {
        varve_thread *child = varve_thread_spawn(thread, 0, 0, NULL, 0);
        varve_thread_start(child, varve_ticks());
        varve_call_begin(child, functions[2], 0);
        varve_call_end(child, VARVE_CALL_OK);
        varve_thread_end(child, VARVE_THREAD_COMPLETED);
    }
}

/* Paths that were never seen: the tree passes its target and rolls over again and again. */
static void new_paths(unsigned n)
{
    static unsigned at;
    (void)n;
    for (unsigned i = 0; i < OPS / 3; i++, at++) {
        varve_call_begin(thread, functions[at % FUNCTIONS], 0);
        varve_call_begin(thread, functions[at / FUNCTIONS % FUNCTIONS], 0);
        varve_call_begin(thread, functions[(at / 7) % FUNCTIONS], 0);
        for (unsigned k = 0; k < 3; k++)
            varve_call_end(thread, VARVE_CALL_OK);
    }
}

/* reads: clock reads in one operation, which the bare loop takes alone. limit: of the ratio; 0 = none. */
static const struct {
    const char *name;
    void (*run)(unsigned n);
    unsigned n, reads;
    double limit;
} shapes[] = {
    {"a call that waits once", waits, 1, 4, 3.0},
    {"a call that waits ten times", waits, WAITS, 2 * WAITS + 2, 2.0},
    {"a spawn with its one call", spawns, 0, 4, 6.0},
    {"a call on a new path", new_paths, 0, 2, 2.0},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static bool measure_shapes(const bench_recorder *r, int rounds)
{
    static double host[SHAPES][ROUNDS_MAX], consumer[SHAPES][ROUNDS_MAX], ratio[SHAPES][ROUNDS_MAX];
    for (int i = -1; i < rounds; i++)
        for (unsigned k = 0; k < SHAPES; k++) {
            int at = i < 0 ? 0 : i;
            double from = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
            read_clocks(shapes[k].reads);
            double clocks = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from, other = bench_cpu_ns(r->consumer);
            from = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
            shapes[k].run(shapes[k].n);
            double spent = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from;
            if (!varve_flush(r->session, 60000))
                return false;
            host[k][at] = spent / OPS;
            consumer[k][at] = (bench_cpu_ns(r->consumer) - other) / OPS;
            ratio[k][at] = spent / clocks;
        }
    printf("events, %d rounds of %d, medians (quartiles)\n", rounds, OPS);
    for (unsigned k = 0; k < SHAPES; k++) {
        bench_spread h = bench_summary(host[k], rounds), c = bench_summary(consumer[k], rounds);
        double over = bench_summary(ratio[k], rounds).median;
        printf("  %-28s %7.1f ns (%.1f to %.1f), consumer %7.1f ns, %.2f of its %u clock reads (limit %.1f)%s\n",
               shapes[k].name, h.median, h.low, h.high, c.median, over, shapes[k].reads, shapes[k].limit,
               over > shapes[k].limit ? " MISSED" : "");
    }
    return true;
}

static double percentile(double *v, int n, int of_100)
{
    qsort(v, (size_t)n, sizeof *v, bench_compare);
    return v[n * of_100 / 100];
}

/* Each admission alone between two reads of the system's clock; then the two reads alone. */
static bool measure_admission(const bench_recorder *r)
{
    static double begun[ROOTS], bare[ROOTS];
    for (unsigned i = 0; i < ROOTS; i++) {
        varve_thread *t;
        uint64_t from = bench_now_ns();
        varve_root *root = varve_root_begin(r->engine, NULL, &t);
        begun[i] = (double)(bench_now_ns() - from);
        from = bench_now_ns();
        bare[i] = (double)(bench_now_ns() - from);
        varve_call_begin(t, functions[1], 0);
        varve_call_end(t, VARVE_CALL_OK);
        varve_thread_end(t, VARVE_THREAD_COMPLETED);
        varve_root_end(root, VARVE_SUCCEEDED);
        /* The registry holds some hundreds at a time; they end when the consumer has read them. */
        if (i % 100 == 99 && !varve_flush(r->session, 60000))
            return false;
    }
    double p50 = percentile(begun, ROOTS, 50), p99 = percentile(begun, ROOTS, 99);
    printf("admission of %d roots: median %.0f ns, 99th of 100 %.0f ns (limit 20000)%s; two clock reads: %.0f, %.0f\n",
           ROOTS, p50, p99, p99 > 20000 ? " MISSED" : "", percentile(bare, ROOTS, 50), percentile(bare, ROOTS, 99));
    return true;
}

int main(void)
{
    bench_recorder r;
    if (!bench_recorder_open(&r, 1ULL << 30, &thread))
        return 1;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        functions[i] = varve_function_add(r.engine, &(varve_function_info){.fqn = "f"});
    varve_call_begin(thread, functions[0], 0);
    bool ok = measure_shapes(&r, bench_rounds()) && measure_admission(&r);
    varve_call_end(thread, VARVE_CALL_OK);
    return bench_recorder_close(&r, thread) && ok ? 0 : 1;
}
