/*
 * What a selected call costs its host and the consumer, without values, with values of several sizes, with an error
 * that ends it; what policy and LocalIds cost; and what a span takes on the disk.
 *
 * Each round has a session of its own and runs every shape once, in turn. Times are CPU times of the two threads.
 * What loses a record, a fact or a value is not a figure: then the program says what was lost, and fails.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>

#include "bench/bench.h"
#include "bench/recorder.h"
#include "bench/stored.h"

enum { ROUNDS_MAX = 1000, ON_DISK = 100000 };
/* How often a round has each shape: so that the one publication at its end, with its syncs, weighs little. */
enum { OPS = 1 << 17, SPANS = 1 << 16, VALUES = 1 << 13, LARGE_VALUES = 1 << 9, FILES = 64 };
enum { SMALL = 32, MEDIUM = 1024, LARGE = 16384, PLENTY = 1 << 30 };

static struct {
    bench_recorder r;
    varve_engine *engine; /* that gives all values */
    varve_thread *thread;
    varve_root *root;
    uint32_t function;
    uint64_t made; /* texts that there were never before */
    char text[LARGE];
} b;
static uint64_t sink;

static const varve_policy no_values = {.manual = true}, nothing,
    values = {.manual = true, .input = VARVE_SWITCH_ON, .output = VARVE_SWITCH_ON},
    errors = {.manual = true, .error = VARVE_SWITCH_ON};

static void put(varve_capture *c, unsigned n)
{
    varve_put_text(c, b.text, n);
    varve_capture_end(c);
}

static void begin(const varve_policy *policy)
{
    varve_call_begin_as(b.thread, b.function, 0, varve_ticks(), policy);
}

static void plain(unsigned n)
{
    while (n--) {
        varve_call_begin_at(b.thread, b.function, 0, varve_ticks());
        varve_call_end(b.thread, VARVE_CALL_OK);
    }
}

static void selects_nothing(unsigned n)
{
    while (n--) {
        begin(&nothing);
        varve_call_end(b.thread, VARVE_CALL_OK);
    }
}

static void without_values(unsigned n)
{
    while (n--) {
        begin(&no_values);
        varve_call_end(b.thread, VARVE_CALL_OK);
    }
}

static void with_values(unsigned n, unsigned bytes, bool distinct)
{
    while (n--) {
        begin(&values);
        for (varve_role role = VARVE_INPUT; role <= VARVE_OUTPUT; role++) {
            if (distinct)
                snprintf(b.text, 17, "%016llx", (unsigned long long)++b.made);
            b.text[16] = 'x';
            put(varve_value_begin(b.thread, role), bytes);
        }
        varve_call_end(b.thread, VARVE_CALL_OK);
    }
}

static void repeated_small(unsigned n)
{
    with_values(n, SMALL, false);
}

static void repeated_medium(unsigned n)
{
    with_values(n, MEDIUM, false);
}

static void repeated_large(unsigned n)
{
    with_values(n, LARGE, false);
}

static void distinct_small(unsigned n)
{
    with_values(n, SMALL, true);
}

static void distinct_medium(unsigned n)
{
    with_values(n, MEDIUM, true);
}

static void distinct_large(unsigned n)
{
    with_values(n, LARGE, true);
}

/* `calls` nested ones that ask for errors; one error ends all of them, or they return. */
static void unwind(unsigned n, unsigned calls, bool error)
{
    const varve_error e = {.ends = calls};
    while (n--) {
        for (unsigned i = 0; i < calls; i++)
            begin(&errors);
        if (error)
            put(varve_error_begin(b.thread, &e), SMALL);
        for (unsigned i = 0; i < calls; i++)
            varve_call_end(b.thread, error ? VARVE_CALL_ERRORED : VARVE_CALL_OK);
    }
}

static void one_returns(unsigned n)
{
    unwind(n, 1, false);
}

static void one_unwound(unsigned n)
{
    unwind(n, 1, true);
}

static void two_return(unsigned n)
{
    unwind(n, 2, false);
}

static void two_unwound(unsigned n)
{
    unwind(n, 2, true);
}

/* Plain calls that an error ends, which the host tells of or not. */
static void plain_errored(unsigned n)
{
    while (n--) {
        varve_call_begin_at(b.thread, b.function, 0, varve_ticks());
        varve_call_end(b.thread, VARVE_CALL_ERRORED);
    }
}

static void unwind_of_nobody(unsigned n)
{
    static const varve_error e = {.ends = 1};
    while (n--) {
        varve_call_begin_at(b.thread, b.function, 0, varve_ticks());
        sink += varve_error_begin(b.thread, &e) != NULL;
        varve_call_end(b.thread, VARVE_CALL_ERRORED);
    }
}

static void local_ids(unsigned n)
{
    varve_policy p = {.manual = false};
    while (n--) {
        varve_local_id *id = varve_local_id_new();
        sink += varve_local_id_consume(id, &p);
        varve_local_id_unref(id);
    }
}

/* What such an id can't do without. */
static void random_blocks(unsigned n)
{
    while (n--) {
        char *p = malloc(64);
        sink += p && getrandom(p, 16, GRND_NONBLOCK) == 16;
        free(p);
    }
}

/* beside: the shape that it is a multiple of. Limits: of that multiple for the host, of the consumer's ns; 0: none. */
typedef struct {
    const char *name;
    void (*run)(unsigned n);
    unsigned n;
    int beside;
    double host_limit, consumer_limit;
} shape;

enum {
    PLAIN, NOTHING, SPAN, SMALL_AGAIN, SMALL_NEW, MEDIUM_AGAIN, MEDIUM_NEW, LARGE_AGAIN, LARGE_NEW, ONE, ONE_ERROR, TWO,
    TWO_ERROR, ERRORED, NOBODY, RANDOM, LOCAL_ID, SHAPES
};
static const shape shapes[SHAPES] = {
    [PLAIN] = {"a plain pair", plain, OPS, PLAIN, 0, 0},
    [NOTHING] = {"a policy that selects nothing", selects_nothing, OPS, PLAIN, 1.6, 0},
    [SPAN] = {"a span without values", without_values, SPANS, PLAIN, 3.0, 1000},
    [SMALL_AGAIN] = {"two values of 32 bytes, again", repeated_small, VALUES, SPAN, 0, 10000},
    [SMALL_NEW] = {"two values of 32 bytes, new", distinct_small, FILES, SPAN, 0, 0},
    [MEDIUM_AGAIN] = {"two of 1 KiB, again", repeated_medium, VALUES, SPAN, 0, 0},
    [MEDIUM_NEW] = {"two of 1 KiB, new", distinct_medium, FILES, SPAN, 0, 0},
    [LARGE_AGAIN] = {"two of 16 KiB, again", repeated_large, LARGE_VALUES, SPAN, 0, 0},
    [LARGE_NEW] = {"two of 16 KiB, new", distinct_large, FILES, SPAN, 0, 0},
    [ONE] = {"a span that asks for errors", one_returns, VALUES, SPAN, 0, 0},
    [ONE_ERROR] = {"an error that ends it", one_unwound, VALUES, ONE, 0, 0},
    [TWO] = {"two such spans, nested", two_return, VALUES, SPAN, 0, 0},
    [TWO_ERROR] = {"an error that ends both", two_unwound, VALUES, TWO, 0, 0},
    [ERRORED] = {"a plain call that fails", plain_errored, OPS, PLAIN, 0, 0},
    [NOBODY] = {"an error that concerns nobody", unwind_of_nobody, OPS, ERRORED, 1.5, 0},
    [RANDOM] = {"a block with random bytes", random_blocks, VALUES, RANDOM, 0, 0},
    [LOCAL_ID] = {"a LocalId, made and consumed", local_ids, VALUES, RANDOM, 1.5, 0},
};

/* memory: of the profiler; 0: its default. */
static bool open_session(uint64_t memory)
{
    varve_thread *unused;
    if (!bench_recorder_open(&b.r, memory, &unused))
        return false;
    varve_thread_end(unused, VARVE_THREAD_COMPLETED);
    varve_root_end(b.r.root, VARVE_SUCCEEDED);
    b.engine = varve_engine_open(b.r.session, &(varve_engine_info){.roles = VARVE_ALL_ROLES});
    b.function = varve_function_add(b.engine, &(varve_function_info){.fqn = "f"});
    b.root = varve_root_begin(b.engine, NULL, &b.thread);
    varve_call_begin(b.thread, b.function, 0);
    put(varve_value_begin(b.thread, VARVE_INPUT), SMALL);
    return varve_flush(b.r.session, 60000) && b.root;
}

/* Whether all came to the disk; what did is in *ret. */
static bool close_session(bench_stored *ret)
{
    put(varve_value_begin(b.thread, VARVE_OUTPUT), SMALL);
    varve_call_end(b.thread, VARVE_CALL_OK);
    varve_thread_end(b.thread, VARVE_THREAD_COMPLETED);
    varve_root_end(b.root, VARVE_SUCCEEDED);
    bool ok = varve_flush(b.r.session, 60000);
    varve_status st;
    varve_session_status(b.r.session, &st);
    varve_session_close(b.r.session);
    *ret = bench_read_store(b.r.dir);
    if (!ok || st.records_lost || st.batches_lost || ret->lost || ret->bad)
        printf("no figures: %s, %llu records and %llu batches lost, %llu of selected calls (%s)%s\n",
               ok ? "flushed" : "not flushed", (unsigned long long)st.records_lost,
               (unsigned long long)st.batches_lost, (unsigned long long)ret->lost, ret->first,
               ret->bad ? "; a file can't be read" : "");
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", b.r.dir);
    return system(command) == 0 && ok && !st.records_lost && !st.batches_lost && !ret->lost && !ret->bad;
}

static double host[SHAPES][ROUNDS_MAX], consumer[SHAPES][ROUNDS_MAX], ratio[SHAPES][ROUNDS_MAX],
    consumer_ratio[SHAPES][ROUNDS_MAX];

static bool measure_round(int at)
{
    if (!open_session(PLENTY))
        return false;
    for (unsigned k = 0; k < SHAPES; k++) {
        double other = bench_cpu_ns(b.r.consumer), from = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
        shapes[k].run(shapes[k].n);
        host[k][at] = (bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from) / shapes[k].n;
        if (!varve_flush(b.r.session, 60000))
            return false;
        consumer[k][at] = (bench_cpu_ns(b.r.consumer) - other) / shapes[k].n;
        ratio[k][at] = host[k][at] / host[shapes[k].beside][at];
        consumer_ratio[k][at] = consumer[k][at] / consumer[shapes[k].beside][at];
    }
    bench_stored unused;
    return close_session(&unused);
}

static void print_shapes(int rounds)
{
    printf("selected calls, %d rounds, medians (quartiles), ns of CPU time\n", rounds);
    for (unsigned k = 0; k < SHAPES; k++) {
        const shape *s = &shapes[k];
        bench_spread h = bench_summary(host[k], rounds), c = bench_summary(consumer[k], rounds);
        double over = bench_summary(ratio[k], rounds).median;
        bool missed = (s->host_limit && over > s->host_limit) || (s->consumer_limit && c.median > s->consumer_limit);
        printf("  %-30s %8.1f (%.1f to %.1f), consumer %8.1f (%.1f to %.1f)", s->name, h.median, h.low, h.high,
               c.median, c.low, c.high);
        if (s->beside != (int)k)
            printf("; %.2f and %.1f of %s", over, bench_summary(consumer_ratio[k], rounds).median,
                   shapes[s->beside].name);
        if (s->host_limit)
            printf(", limit %.1f", s->host_limit);
        if (s->consumer_limit)
            printf(", consumer's limit %.0f ns", s->consumer_limit);
        printf("%s\n", missed ? " MISSED" : "");
    }
}

/* In a session of its own: what a span takes in data segments, over the bytes of its facts alone. */
static bool measure_disk(const char *name, void (*run)(unsigned n), unsigned facts)
{
    bench_stored s;
    if (!open_session(PLENTY))
        return false;
    run(ON_DISK);
    if (!close_session(&s))
        return false;
    uint64_t n = 0;
    for (unsigned i = 0; i < VV_FACTS; i++)
        n += s.facts[i];
    if (n < (uint64_t)facts * ON_DISK || s.facts[VV_FACT_SPAN_START] != ON_DISK + 1) {
        printf("no figures: %llu facts on the disk\n", (unsigned long long)n);
        return false;
    }
    printf("  %-30s %6.1f bytes, %6.1f of them facts (%.4f); beside them %llu objects, %llu bytes\n", name,
           (double)s.data_bytes / ON_DISK, (double)s.fact_bytes / ON_DISK,
           (double)s.data_bytes / (double)s.fact_bytes, (unsigned long long)s.cas_files,
           (unsigned long long)s.cas_bytes);
    return true;
}

/* One host thread makes so many a second, for two seconds, with the memory that is the default: whether the consumer
 * follows, or how far it is behind at the end. What has no room any more is lost. */
static bool measure_pace(const char *name, void (*run)(unsigned n), unsigned a_second)
{
    enum { PIECES = 1000, SECONDS = 2 };
    bench_stored s;
    if (!open_session(0))
        return false;
    double cpu = bench_cpu_ns(b.r.consumer);
    uint64_t from = bench_now_ns();
    for (uint64_t i = 0; i < PIECES * SECONDS; i++) {
        while (bench_now_ns() - from < i * (1000000000 / PIECES))
            ;
        run(a_second / PIECES);
    }
    uint64_t made = bench_now_ns();
    bool ok = varve_flush(b.r.session, 60000);
    double behind = (double)(bench_now_ns() - made) / 1e9, busy = bench_cpu_ns(b.r.consumer) - cpu;
    if (!close_session(&s) || !ok)
        return false;
    printf("  %-30s %7u a second: made in %.2f s, on the disk %.2f s later; the consumer's CPU time %.2f s\n", name,
           a_second, (double)(made - from) / 1e9, behind, busy / 1e9);
    return true;
}

int main(void)
{
    memset(b.text, 'x', sizeof b.text);
    int rounds = bench_rounds();
    for (int i = -1; i < rounds; i++)
        if (!measure_round(i < 0 ? 0 : i))
            return 1;
    print_shapes(rounds);
    printf("a span on the disk, of %d\n", ON_DISK);
    bool ok = measure_disk("without values", without_values, 2) &&
              measure_disk("with two values", repeated_small, 4) &&
              measure_disk("with an error and its link", one_unwound, 4);
    printf("the consumer behind one host thread\n");
    ok = measure_pace("without values", without_values, 1000000) && ok;
    ok = measure_pace("with two values of 32 bytes", repeated_small, 100000) && ok;
    return ok ? 0 : 1;
}
