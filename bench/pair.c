/*
 * What a recorded call costs its host, and what it costs the consumer.
 *
 * One program of tiny functions (a recursion with leaf calls, bodies of one or two instructions: the worst case) runs without
 * instrumentation, with two clock reads a call, and recorded; rounds are interleaved, and times are CPU times of the threads, so
 * that neighbours on the machine disturb little. Everything recorded is committed and nothing may be lost, else the program fails.
 */
#include "config.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/varve.h"

enum { ROUNDS = 21, DEPTH = 26 };

#define NOINLINE __attribute__((noinline, noclone))

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
#define PROGRAM(name, BEGIN, END)                                                                                             \
    static NOINLINE uint64_t name##_leaf(uint64_t v)                                                                          \
    {                                                                                                                         \
        BEGIN(2);                                                                                                             \
        v = v * 5 + 1;                                                                                                        \
        END();                                                                                                                \
        return v;                                                                                                             \
    }                                                                                                                         \
    static NOINLINE uint64_t name(unsigned n)                                                                                 \
    {                                                                                                                         \
        BEGIN(1);                                                                                                             \
        uint64_t v = n < 2 ? name##_leaf(n) : name(n - 1) + name(n - 2);                                                      \
        END();                                                                                                                \
        return v;                                                                                                             \
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

static double cpu_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* The CPU clock of the consumer thread, found by its name. */
static clockid_t consumer_clock(void)
{
    clockid_t found = CLOCK_THREAD_CPUTIME_ID;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[64], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (f && fgets(name, sizeof name, f) && strcmp(name, "varve-consumer\n") == 0)
            found = (clockid_t)(~(unsigned)atoi(e->d_name) << 3 | 6);
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
    return found;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v)
{
    qsort(v, ROUNDS, sizeof *v, by_value);
    return v[ROUNDS / 2];
}

static double time_of(uint64_t (*program)(unsigned), uint64_t pairs)
{
    double from = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    sink += program(DEPTH);
    return (cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from) / (double)pairs;
}

static void print(const char *what, double *v)
{
    double m = median(v);
    printf("  %-28s %6.2f ns a pair   (%.2f to %.2f)\n", what, m, v[ROUNDS / 10], v[ROUNDS - 1 - ROUNDS / 10]);
}

int main(void)
{
    char dir[] = "/var/tmp/varve-bench-XXXXXX", root[64];
    if (!mkdtemp(dir))
        return 1;
    snprintf(root, sizeof root, "%s/profiles-v1", dir);
    unsetenv("BAML_PROFILE_DIR");
    varve_session *s = varve_session_open(&(varve_options){.struct_size = sizeof(varve_options), .store_root = root});
    varve_engine *e = varve_engine_open(s, NULL);
    varve_function_add(e, &(varve_function_info){.fqn = "fib"});
    varve_function_add(e, &(varve_function_info){.fqn = "leaf"});
    varve_root *r = varve_root_begin(e, NULL, &thread);
    if (!r)
        return 1;
    static double t_bare[ROUNDS], t_reads[ROUNDS], t_recorded[ROUNDS], t_consumer[ROUNDS], ratio[ROUNDS];
    uint64_t pairs = pairs_of(DEPTH);
    clockid_t consumer = consumer_clock();
    sink += bare(DEPTH) + reads(DEPTH) + recorded(DEPTH);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (!varve_flush(s, 60000))
            return 1;
        t_bare[i] = time_of(bare, pairs);
        t_reads[i] = time_of(reads, pairs);
        double from = cpu_ns(consumer);
        t_recorded[i] = time_of(recorded, pairs);
        if (!varve_flush(s, 60000))
            return 1;
        t_consumer[i] = (cpu_ns(consumer) - from) / (double)pairs;
        ratio[i] = (t_recorded[i] - t_bare[i]) / (t_reads[i] - t_bare[i]);
    }
    varve_thread_end(thread, VARVE_THREAD_COMPLETED);
    varve_root_end(r, VARVE_SUCCEEDED);
    varve_status st;
    varve_flush(s, 60000);
    varve_session_status(s, &st);
    printf("call pair, %u interleaved rounds of %llu pairs, medians (10 %% to 90 %%)\n", ROUNDS, (unsigned long long)pairs);
    print("uninstrumented", t_bare);
    print("two clock reads", t_reads);
    print("recorded", t_recorded);
    printf("host-visible pair: %.2fx two clock reads (limit 1.50)\n", median(ratio));
    print("consumer (limit 20)", t_consumer);
    printf("  bytes a pair in the ring          24 (limit 32)\n");
    printf("  records lost                      %llu\n", (unsigned long long)st.records_lost);
    varve_engine_close(e);
    varve_session_close(s);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) != 0 || st.records_lost != 0;
}
