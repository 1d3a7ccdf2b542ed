/*
 * What an event costs its host: not wanted, wanted, wanted and pinned by the gate in both variants, and what a counter
 * that all threads share would cost instead. Each is one call of a function of the host's with the event in it; the
 * measure is such a function with a load and a branch. CPU time of one thread, all in interleaved rounds; in the last
 * rows a second thread does the same meanwhile.
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "control/gate.h"
#include "control/gate_inside.h"

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

enum { CALLS = 100000, SLICES = 20, ROUNDS_MAX = 1000, FLUSHES = 200, ACTIVE = 1, EVENT = 1 << 4 };

static _Atomic uint64_t mask;
static _Atomic int state = ACTIVE;
static _Alignas(64) _Atomic uint32_t shared_count;
static __thread uint64_t events;

static NOINLINE void on_event(void *user)
{
    ++*(uint64_t *)user;
}

/* As a profiler's: reached by a pointer that is read for each event. */
static void (*volatile callback)(void *user) = on_event;

static inline bool wanted(void)
{
    return VV_UNLIKELY(atomic_load_explicit(&mask, memory_order_relaxed) & EVENT);
}

static inline bool active(void)
{
    return atomic_load_explicit(&state, memory_order_acquire) == ACTIVE;
}

static NOINLINE void bare(void)
{
    if (VV_UNLIKELY(atomic_load_explicit(&mask, memory_order_relaxed) == UINT64_MAX))
        events++;
}

static NOINLINE void unpinned(void)
{
    if (wanted() && active())
        callback(&events);
}

static NOINLINE void pinned(void)
{
    if (!wanted())
        return;
    vv_gate_pin pin = vv_gate_enter(VV_GATE_PROFILER);
    if (active())
        callback(&events);
    vv_gate_leave(pin, VV_GATE_PROFILER);
}

static NOINLINE void without_record(void)
{
    if (!wanted())
        return;
    vv_gate_pin pin = vv_gate_enter_shared(VV_GATE_PROFILER);
    if (active())
        callback(&events);
    vv_gate_leave(pin, VV_GATE_PROFILER);
}

static NOINLINE void counted(void)
{
    if (!wanted())
        return;
    atomic_fetch_add(&shared_count, 1);
    if (active())
        callback(&events);
    atomic_fetch_sub(&shared_count, 1);
}

typedef struct {
    const char *name;
    void (*call)(void);
    bool on, fenced, peer;
    double ns[ROUNDS_MAX], over_bare[ROUNDS_MAX], over_enabled[ROUNDS_MAX];
} row;

enum { BARE, DISABLED, ENABLED, PINNED, ROWS = 9 };
static row rows[ROWS] = {
    [BARE] = {.name = "a load and a branch", .call = bare},
    [DISABLED] = {.name = "disabled", .call = pinned},
    [ENABLED] = {.name = "enabled, not pinned", .call = unpinned, .on = true},
    [PINNED] = {.name = "pinned", .call = pinned, .on = true},
    {.name = "pinned, fenced", .call = pinned, .on = true, .fenced = true},
    {.name = "pinned, thread has no record", .call = without_record, .on = true},
    {.name = "one counter for all threads", .call = counted, .on = true},
    {.name = "pinned, two threads", .call = pinned, .on = true, .peer = true},
    {.name = "one counter, two threads", .call = counted, .on = true, .peer = true},
};

static _Atomic bool running, stop;

/* What a second thread does. */
static void *run(void *arg)
{
    void (*call)(void) = ((const row *)arg)->call;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); atomic_store(&running, true))
        for (unsigned i = 0; i < 1000; i++)
            call();
    return NULL;
}

static pthread_t peer_start(row *r)
{
    pthread_t t;
    atomic_store(&running, false);
    atomic_store(&stop, false);
    if (pthread_create(&t, NULL, run, r) != 0)
        exit(1);
    while (!atomic_load(&running))
        sched_yield();
    return t;
}

static void peer_stop(pthread_t t)
{
    atomic_store(&stop, true);
    pthread_join(t, NULL);
}

static double time_of(row *r)
{
    vv_gate_inside_choose(r->fenced);
    atomic_store(&mask, r->on ? EVENT : 0);
    void (*volatile call)(void) = r->call;
    pthread_t peer = 0;
    if (r->peer)
        peer = peer_start(r);
    uint64_t from = bench_cpu_now_ns();
    for (unsigned i = 0; i < CALLS; i++)
        call();
    double ns = (double)(bench_cpu_now_ns() - from) / CALLS;
    if (r->peer)
        peer_stop(peer);
    return ns;
}

static double flush_us(void)
{
    uint64_t from = bench_now_ns();
    for (unsigned i = 0; i < FLUSHES; i++)
        vv_gate_flush();
    return (double)(bench_now_ns() - from) / FLUSHES / 1000;
}

/* By the wall, since other processors are interrupted. */
static void flushes(int rounds)
{
    static double alone[ROUNDS_MAX], peer[ROUNDS_MAX];
    vv_gate_inside_choose(false);
    for (int i = 0; i < rounds; i++)
        alone[i] = flush_us();
    pthread_t t = peer_start(&rows[PINNED]);
    for (int i = 0; i < rounds; i++)
        peer[i] = flush_us();
    peer_stop(t);
    bench_spread a = bench_summary(alone, rounds), b = bench_summary(peer, rounds);
    printf("flush, no other thread        %7.2f us  (%.2f to %.2f)\n", a.median, a.low, a.high);
    printf("flush, one that pins all time %7.2f us  (%.2f to %.2f)\n", b.median, b.low, b.high);
}

int main(void)
{
    if (!vv_gate_register())
        return 1;
    if (!vv_gate_inside_choose(false))
        printf("no membarrier here: \"pinned\" is fenced\n");
    int rounds = bench_rounds();
    for (unsigned k = 0; k < ROWS; k++)
        time_of(&rows[k]);
    for (int i = 0; i < rounds; i++) {
        /* In slices, since the processor's speed changes from one millisecond to the next. */
        for (unsigned k = 0; k < SLICES * ROWS; k++)
            rows[k % ROWS].ns[i] += time_of(&rows[k % ROWS]) / SLICES;
        for (unsigned k = 0; k < ROWS; k++) {
            rows[k].over_bare[i] = rows[k].ns[i] / rows[BARE].ns[i];
            rows[k].over_enabled[i] = (rows[k].ns[i] - rows[ENABLED].ns[i]) / rows[BARE].ns[i];
        }
    }
    printf("an event, %d interleaved rounds of %d, medians (quartiles)\n", rounds, CALLS * SLICES);
    for (unsigned k = 0; k < ROWS; k++) {
        bench_spread ns = bench_summary(rows[k].ns, rounds), x = bench_summary(rows[k].over_bare, rounds);
        printf("  %-28s %6.2f ns  %5.2fx a load and a branch  (%.2f to %.2f)", rows[k].name, ns.median, x.median, x.low,
               x.high);
        if (k >= PINNED)
            printf(", the pin alone %.2fx", bench_summary(rows[k].over_enabled, rounds).median);
        printf("\n");
    }
    flushes(rounds);
    return events ? 0 : 1;
}
