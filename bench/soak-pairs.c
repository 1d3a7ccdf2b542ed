/*
 * Ten million call pairs a second for VV_SOAK_SECONDS: nothing may be lost, and the process may not grow. Every tenth
 * of the time it tells where it stands.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>

#include "bench/bench.h"
#include "bench/recorder.h"

enum { RATE = 10000000, BATCH = 10000, FUNCTIONS = 64, GROWTH_MAX = 16 << 20 };

static uint64_t resident_bytes(void)
{
    unsigned long long all, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%llu %llu", &all, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void pairs(varve_thread *t, const uint32_t *functions)
{
    for (unsigned i = 0; i < BATCH / 2; i++) {
        varve_call_begin(t, functions[i % FUNCTIONS], 0);
        varve_call_begin(t, functions[i / FUNCTIONS % FUNCTIONS], 0);
        varve_call_end(t, VARVE_CALL_OK);
        varve_call_end(t, VARVE_CALL_OK);
    }
}

int main(void)
{
    const char *env = getenv("VV_SOAK_SECONDS");
    uint64_t seconds = env ? strtoull(env, NULL, 10) : 60;
    seconds = seconds ? seconds : 1;
    bench_recorder r;
    varve_thread *t;
    if (!bench_recorder_open(&r, 1ULL << 30, &t))
        return 1;
    uint32_t functions[FUNCTIONS];
    for (unsigned i = 0; i < FUNCTIONS; i++)
        functions[i] = varve_function_add(r.engine, &(varve_function_info){.fqn = "f"});
    varve_call_begin(t, functions[0], 0);
    uint64_t from = bench_now_ns(), end = seconds * 1000000000, done = 0, first = 0, most = 0;
    for (unsigned tenth = 1; tenth <= 10; tenth++) {
        for (uint64_t at; (at = bench_now_ns() - from) < end * tenth / 10;) {
            if (done >= at / 1000 * (RATE / 1000000)) {
                nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
                continue;
            }
            pairs(t, functions);
            done += BATCH;
        }
        /* What is queued is not growth: measured with empty rings. */
        if (!varve_flush(r.session, 60000))
            return 1;
        uint64_t resident = resident_bytes();
        first = first ? first : resident;
        most = resident > most ? resident : most;
        varve_status st;
        varve_session_status(r.session, &st);
        printf("  %4.1f s: %6.2f million pairs a second, %llu lost, %.1f MiB resident\n",
               (double)(bench_now_ns() - from) / 1e9, (double)done * 1e3 / (double)(bench_now_ns() - from),
               (unsigned long long)st.records_lost, (double)resident / (1 << 20));
        fflush(stdout);
    }
    varve_call_end(t, VARVE_CALL_OK);
    bool flat = most - first <= GROWTH_MAX;
    if (!flat)
        printf("  it grew by %.1f MiB\n", (double)(most - first) / (1 << 20));
    return bench_recorder_close(&r, t) && flat ? 0 : 1;
}
