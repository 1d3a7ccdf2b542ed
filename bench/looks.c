/*
 * What one commit more costs who follows a process that has run 100,000 executions: a look that finds an execution, or
 * data alone, beside a look at everything.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/segments.h"
#include "reader/store.h"

enum { SEGMENTS = 1000, ROOTS = 100, COMMITS = 20 };

typedef struct {
    char root[96];
    vv_euid euid;
    vv_source *source;
    uint64_t meta, data, roots;
} recording;

/* Executions that start and end. */
static void commit_meta(recording *r, unsigned executions)
{
    vv_wr w = vv_wr_growing(1 << 24);
    bool first = r->meta == 0;
    vv_meta_begin(&w, &r->euid, ++r->meta, r->data);
    if (first)
        vv_meta_add(&w, &(vv_meta_record){.tag = VV_META_STREAM_STARTED,
                                          .stream_started = {.pid = 1, .zero_unix_ns = 1}});
    for (unsigned i = 0; i < executions; i++) {
        vv_thread_ref root = vv_thread_ref_make(&r->euid, 1, ++r->roots);
        vv_meta_record start = {.tag = VV_META_ROOT_STARTED}, end = {.tag = VV_META_ROOT_ENDED};
        start.root_started = (vv_root_started){.root = root, .started_ns = r->roots};
        end.root_ended = (vv_root_ended){.root = root, .ended_ns = r->roots + 1};
        vv_meta_add(&w, &start);
        vv_meta_add(&w, &end);
    }
    vv_meta_end(&w, 2 * (uint64_t)executions + first);
    bench_segment(r->root, &r->euid, VV_PLANE_META, r->meta, &w);
}

static void commit_data(recording *r)
{
    vv_wr w = vv_wr_growing(1 << 16);
    vv_data_begin(&w, &r->euid, ++r->data);
    vv_data_end(&w, 0);
    bench_segment(r->root, &r->euid, VV_PLANE_DATA, r->data, &w);
}

/* Milliseconds of the look that follows; it takes the former one's place. */
static double look(const recording *r, vv_store **s, vv_plane plane, uint64_t sequence)
{
    vv_error err = {0};
    vv_stream_change one = {.euid = r->euid};
    vv_plane_change_note(&one.planes[plane], sequence);
    const vv_changes changes = {.streams = &one, .count = 1};
    vv_store *next;
    uint64_t from = bench_now_ns();
    bench_must(vv_store_update(&next, *s, &changes, &err), &err);
    double ms = (double)(bench_now_ns() - from) / 1e6;
    vv_store_free(*s);
    *s = next;
    return ms;
}

enum { EXECUTION, DATA, KINDS };

/* The medians of a round's looks, and of one at everything. */
static double round_of(recording *r, double ret[KINDS])
{
    vv_error err = {0};
    vv_store *s;
    double ms[KINDS][COMMITS];
    uint64_t from = bench_now_ns();
    bench_must(vv_store_open(&s, r->source, NULL, &err), &err);
    double whole = (double)(bench_now_ns() - from) / 1e6;
    for (int i = 0; i < COMMITS; i++) {
        commit_meta(r, 1);
        ms[EXECUTION][i] = look(r, &s, VV_PLANE_META, r->meta);
        commit_data(r);
        ms[DATA][i] = look(r, &s, VV_PLANE_DATA, r->data);
    }
    bool seen = s->streams[0].execution_count == r->roots && s->streams[0].data_high == r->data;
    vv_store_free(s);
    if (!seen)
        bench_must(vv_fail(&err, VV_ERR_CORRUPT, "a look did not find what was committed"), &err);
    for (int k = 0; k < KINDS; k++)
        ret[k] = bench_summary(ms[k], COMMITS).median;
    return whole;
}

int main(void)
{
    static const char *const names[KINDS] = {"one execution more", "data alone"};
    char dir[64] = "/var/tmp/varve-bench-looks-XXXXXX", command[200];
    vv_error err = {0};
    if (!mkdtemp(dir))
        return 1;
    recording r = {.euid = {{1}}};
    snprintf(r.root, sizeof r.root, "%s/profiles-v1", dir);
    for (int i = 0; i < SEGMENTS; i++)
        commit_meta(&r, ROOTS);
    bench_must(vv_source_open(&r.source, r.root, &err), &err);
    int rounds = bench_rounds();
    double *ms[KINDS], *ratio[KINDS], *whole = calloc((size_t)rounds, sizeof *whole);
    for (int k = 0; k < KINDS; k++) {
        ms[k] = calloc((size_t)rounds, sizeof *ms[k]);
        ratio[k] = calloc((size_t)rounds, sizeof *ratio[k]);
    }
    for (int i = 0; i < rounds; i++) {
        double one[KINDS];
        whole[i] = round_of(&r, one);
        for (int k = 0; k < KINDS; k++) {
            ms[k][i] = one[k];
            ratio[k][i] = one[k] / whole[i];
        }
    }
    double all = bench_summary(whole, rounds).median;
    for (int k = 0; k < KINDS; k++) {
        bench_spread x = bench_summary(ratio[k], rounds), t = bench_summary(ms[k], rounds);
        printf("a look after %s, beside 100,000 executions: %.4f of a look at everything [%.4f to %.4f]; %.3f ms of "
               "%.0f\n", names[k], x.median, x.low, x.high, t.median, all);
        free(ms[k]);
        free(ratio[k]);
    }
    free(whole);
    vv_source_close(r.source);
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command) != 0;
}
