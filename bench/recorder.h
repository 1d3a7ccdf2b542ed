/* What the recording benchmarks share: a session in a directory of its own, and the CPU clock of its consumer
 * thread. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/varve.h"

typedef struct {
    char dir[64];
    varve_session *session;
    varve_engine *engine;
    varve_root *root;
    clockid_t consumer;
} bench_recorder;

static inline double bench_cpu_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* The CPU clock of a thread of this process, found by its name. */
static inline clockid_t bench_thread_clock(const char *wanted)
{
    clockid_t found = CLOCK_THREAD_CPUTIME_ID;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[64], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (f && fgets(name, sizeof name, f) && strncmp(name, wanted, strlen(wanted)) == 0)
            found = (clockid_t)(~(unsigned)atoi(e->d_name) << 3 | 6);
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
    return found;
}

static inline bool bench_recorder_open(bench_recorder *r, uint64_t memory, varve_thread **ret_thread)
{
    snprintf(r->dir, sizeof r->dir, "/var/tmp/varve-bench-XXXXXX");
    if (!mkdtemp(r->dir))
        return false;
    char root[96];
    snprintf(root, sizeof root, "%s/profiles-v1", r->dir);
    unsetenv("BAML_PROFILE");
    unsetenv("BAML_PROFILE_DIR");
    unsetenv("BAML_PROFILE_PUBLISH_INTERVAL_MS");
    r->session = varve_session_open(&(varve_options){
        .struct_size = sizeof(varve_options), .store_root = root, .memory_bytes = memory, .minimum_free_bytes = 1});
    r->engine = varve_engine_open(r->session, NULL);
    r->root = varve_root_begin(r->engine, NULL, ret_thread);
    varve_flush(r->session, 60000); /* whoever answers has a name by now */
    r->consumer = bench_thread_clock("varve-consumer");
    return r->root != NULL;
}

/* Ends and removes all; false where something of the recording was lost. */
static inline bool bench_recorder_close(bench_recorder *r, varve_thread *thread)
{
    varve_thread_end(thread, VARVE_THREAD_COMPLETED);
    varve_root_end(r->root, VARVE_SUCCEEDED);
    bool ok = varve_flush(r->session, 60000);
    varve_status st;
    varve_session_status(r->session, &st);
    ok = ok && !st.records_lost && !st.batches_lost;
    printf("  records lost                 %6llu\n", (unsigned long long)st.records_lost);
    varve_engine_close(r->engine);
    varve_session_close(r->session);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", r->dir);
    return system(command) == 0 && ok;
}
