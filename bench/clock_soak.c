/*
 * The profiler's clock against CLOCK_MONOTONIC_RAW over VV_SOAK_SECONDS (60): over the whole and over each second from
 * the second one on it is right within 0.01 %, as a running session refines it.
 */
#include "config.h"

#include "runtime/session.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SECONDS_MAX = 3600 };

static uint64_t span(const vv_clock *c, vv_clock_pair from, vv_clock_pair to)
{
    return vv_clock_ns(c, to.ticks) - vv_clock_ns(c, from.ticks);
}

static double off_by(const vv_clock *c, vv_clock_pair from, vv_clock_pair to)
{
    double raw = (double)(to.raw_ns - from.raw_ns);
    return fabs((double)span(c, from, to) - raw) / raw;
}

int main(void)
{
    const char *v = getenv("VV_SOAK_SECONDS");
    unsigned long seconds = v ? strtoul(v, NULL, 10) : 60;
    if (seconds < 10 || seconds > SECONDS_MAX)
        seconds = 60;
    char dir[] = "/tmp/varve-clock-XXXXXX", root[64];
    if (!mkdtemp(dir))
        return 99;
    snprintf(root, sizeof root, "%s/profiles-v1", dir);
    varve_session *s = varve_session_open(&(varve_options){.struct_size = sizeof(varve_options), .store_root = root,
                                                           .minimum_free_bytes = 1});
    varve_engine *e = varve_engine_open(s, NULL);
    if (!e)
        return 99;
    static vv_clock_pair at[SECONDS_MAX + 1];
    at[0] = vv_clock_read_pair();
    for (unsigned long i = 1; i <= seconds; i++) {
        /* Something to publish, as the clock is refined with publications. */
        varve_thread *t;
        varve_root *r = varve_root_begin(e, NULL, &t);
        varve_thread_end(t, VARVE_THREAD_COMPLETED);
        varve_root_end(r, VARVE_SUCCEEDED);
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        at[i] = vv_clock_read_pair();
    }
    double whole = off_by(&s->clock, at[0], at[seconds]), worst = 0;
    for (unsigned long i = 2; i < seconds; i++)
        worst = fmax(worst, off_by(&s->clock, at[i], at[i + 1]));
    printf("# off by %.2e over %lu s, by %.2e in the worst second, %u lines\n", whole, seconds, worst,
           (unsigned)s->clock.count);
    printf("%s 1 - gate_clock_over_a_minute\n%s 2 - gate_clock_each_second\n1..2\n", whole <= 1e-4 ? "ok" : "not ok",
           worst <= 1e-4 ? "ok" : "not ok");
    varve_session_close(s);
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) != 0 || whole > 1e-4 || worst > 1e-4;
}
