/*
 * What a call pair costs the consumer, by the shape of the program: CPU time of its thread, from the ring to the
 * committed segment. Ring memory is given plentifully, so that nothing is lost; a loss fails the program.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "bench/recorder.h"

enum { PAIRS = 1 << 20, ROUNDS_MAX = 1000, FUNCTIONS = 4096 };

static varve_thread *thread;
static uint32_t functions[FUNCTIONS];

/* n functions below one, in turn. */
static void flat(unsigned n)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        varve_call_begin(thread, functions[i % n], 0);
        varve_call_end(thread, VARVE_CALL_OK);
    }
}

/* Chains of n calls. */
static void chains(unsigned n)
{
    for (unsigned i = 0; i < PAIRS / n; i++) {
        for (unsigned k = 0; k < n; k++)
            varve_call_begin(thread, functions[k], 0);
        for (unsigned k = 0; k < n; k++)
            varve_call_end(thread, VARVE_CALL_OK);
    }
}

/* A tree with n children of each of n nodes, in an order that no cache likes. */
static void scattered(unsigned n)
{
    uint32_t state = 1;
    for (unsigned i = 0; i < PAIRS / 2; i++) {
        state = state * 1664525 + 1013904223;
        varve_call_begin(thread, functions[(state >> 16) % n], 0);
        state = state * 1664525 + 1013904223;
        varve_call_begin(thread, functions[(state >> 16) % n], 0);
        varve_call_end(thread, VARVE_CALL_OK);
        varve_call_end(thread, VARVE_CALL_OK);
    }
}

static const struct {
    const char *name;
    void (*run)(unsigned n);
    unsigned n;
} shapes[] = {
    {"one function", flat, 1},       {"16 functions", flat, 16},        {"1024 functions", flat, 1024},
    {"4096 functions", flat, 4096},  {"chains of 14", chains, 14},      {"60 x 60 scattered", scattered, 60},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

int main(void)
{
    bench_recorder r;
    if (!bench_recorder_open(&r, 1ULL << 30, &thread))
        return 1;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        functions[i] = varve_function_add(r.engine, &(varve_function_info){.fqn = "f"});
    static double ns[SHAPES][ROUNDS_MAX];
    int rounds = bench_rounds();
    varve_call_begin(thread, functions[0], 0);
    for (int i = -1; i < rounds; i++)
        for (unsigned k = 0; k < SHAPES; k++) {
            double from = bench_cpu_ns(r.consumer);
            shapes[k].run(shapes[k].n);
            if (!varve_flush(r.session, 60000))
                return 1;
            ns[k][i < 0 ? 0 : i] = (bench_cpu_ns(r.consumer) - from) / PAIRS;
        }
    varve_call_end(thread, VARVE_CALL_OK);
    printf("consumer, %d rounds of %d pairs, medians (quartiles), limit 20 ns a pair\n", rounds, PAIRS);
    for (unsigned k = 0; k < SHAPES; k++) {
        bench_spread m = bench_summary(ns[k], rounds);
        printf("  %-20s %6.2f ns a pair   (%.2f to %.2f)\n", shapes[k].name, m.median, m.low, m.high);
    }
    return bench_recorder_close(&r, thread) ? 0 : 1;
}
