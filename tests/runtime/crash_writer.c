/*
 * The program that crash.sh kills, and the judge of what it leaves.
 *
 *   crash_writer write ROOT            records executions and publishes without pause, until it is killed (or for 10 s)
 *       CRASH_STEP=name CRASH_AT=n     kills itself before the n-th time the named step of the publish protocol
 *   crash_writer verify ROOT           every stream folds whole, and its states are what a killed writer leaves
 *   crash_writer steps                 the names of the steps
 */
#include "config.h"

#include "runtime/session.h"

#include <signal.h>

#include "tests/runtime/host.h"

uint64_t size_of_files;

typedef struct {
    const char *step;
    unsigned long at;
} crash;

static int maybe_die(void *ctx, vv_step step)
{
    crash *c = ctx;
    if (c->step && strcmp(vv_step_name(step), c->step) == 0 && --c->at == 0)
        kill(getpid(), SIGKILL);
    return 0;
}

enum { LEAVES = 5, CALLS = 1 + LEAVES };

/* One execution: a call with LEAVES calls below, of a function that was added just before. */
static void record_one(varve_engine *e, unsigned i)
{
    char name[32];
    snprintf(name, sizeof name, "f%u", i % 64);
    static uint32_t known[64];
    if (!known[i % 64])
        known[i % 64] = function(e, name);
    varve_thread *t;
    varve_root *r = varve_root_begin(e, NULL, &t);
    if (!r)
        return;
    varve_call_begin(t, known[0], 0);
    for (unsigned k = 0; k < LEAVES; k++) {
        varve_call_begin(t, known[i % 64], 0);
        varve_call_end(t, VARVE_CALL_OK);
    }
    varve_call_end(t, VARVE_CALL_OK);
    execution_end(r, t);
}

static int write_until_killed(const char *root)
{
    const char *at = getenv("CRASH_AT");
    crash c = {getenv("CRASH_STEP"), at ? strtoul(at, NULL, 10) : 1};
    uint64_t interval = 0;
    vv_session_test test = {.hooks = {.step = maybe_die, .ctx = &c}};
    varve_session *v = vv_session_open(&(varve_options){.struct_size = sizeof(varve_options),
                                                        .store_root = root,
                                                        .minimum_free_bytes = 1,
                                                        .publish_interval_ms = &interval},
                                       &test);
    varve_status st = status_of(v);
    if (st.state != VARVE_ACTIVE) {
        fprintf(stderr, "%s\n", st.reason);
        return 1;
    }
    varve_engine *e = varve_engine_open(v, NULL);
    varve_thread *t;
    varve_root_begin(e, NULL, &t); /* one that never ends */
    varve_call_begin(t, function(e, "open"), 0);
    for (unsigned i = 0; i < 5000; i++) {
        record_one(e, i);
        usleep(2000);
    }
    return 2;
}

static int complain(const char *what, const vv_execution *x)
{
    char text[VV_THREAD_TEXT] = "";
    if (x)
        vv_thread_text(text, &x->root);
    fprintf(stderr, "%s %s\n", what, text);
    return 1;
}

static int judge_execution(const look *l, const vv_stream *stream, const vv_execution *x)
{
    vv_fold *f = NULL;
    vv_error err = {0};
    if (vv_fold_load(&f, l->store, stream, x, NULL, &err) != VV_OK || f->failed)
        return complain(f ? f->error.msg : err.msg, x);
    vv_counters sum = {0};
    bool defined = true;
    for (uint32_t i = 0; i < f->context_count; i++) {
        vv_counters_add(&sum, &f->contexts[i].counters);
        defined = defined && f->contexts[i].defined;
    }
    int bad = !defined ? complain("a context without definition", x) : 0;
    if (x->has_end && (x->status != VV_EXEC_SUCCEEDED || x->index_state != VV_INDEX_COMPLETE || !f->complete ||
                       sum.started != CALLS || sum.ok != CALLS))
        bad = complain("an ended execution is not whole", x);
    if (!x->has_end &&
        (x->status != VV_EXEC_ABANDONED || x->index_state != VV_INDEX_NO_ROOT_ENDED || sum.started > CALLS))
        bad = complain("an unended execution is not abandoned", x);
    if (f->issue_count > !x->has_end)
        bad = complain("a committed segment does not fold", x);
    vv_fold_free(f);
    return bad;
}

static int verify(const char *root)
{
    look l = {0};
    vv_error err = {0};
    if (vv_source_open(&l.source, root, &err) != VV_OK || vv_store_open(&l.store, l.source, NULL, &err) != VV_OK)
        return complain(err.msg, NULL);
    int bad = 0;
    size_t ended = 0, open = 0;
    for (size_t i = 0; i < l.store->stream_count; i++) {
        const vv_stream *s = &l.store->streams[i];
        if (s->failed || s->alive || s->meta_bad_count || s->data_bad_count || (s->meta_high && !s->has_header))
            bad = complain(s->failed ? s->error.msg : "a stream is not whole", NULL);
        vv_thread_ref *orphans = NULL;
        size_t n = 0;
        if (vv_stream_orphans(l.store, s, &orphans, &n, NULL) != VV_OK || n)
            bad = complain("a group without a start", NULL);
        free(orphans);
        for (size_t k = 0; k < s->execution_count; k++) {
            bad |= judge_execution(&l, s, vv_stream_execution_at(s, k));
            ended += vv_stream_execution_at(s, k)->has_end;
            open += !vv_stream_execution_at(s, k)->has_end;
        }
    }
    printf("%zu streams, %zu ended, %zu abandoned\n", l.store->stream_count, ended, open);
    look_done(&l);
    /* A new writer brings the ledger up to what is there. */
    varve_session *v = varve_session_open(&(varve_options){.struct_size = sizeof(varve_options), .store_root = root,
                                                           .minimum_free_bytes = 1});
    varve_status st = status_of(v);
    if (st.state != VARVE_ACTIVE || !varve_flush(v, 10000))
        bad = complain("the store does not open again:", NULL);
    varve_session_close(v);
    return bad;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0)
        return write_until_killed(argv[2]);
    if (argc == 3 && strcmp(argv[1], "verify") == 0)
        return verify(argv[2]);
    if (argc == 2 && strcmp(argv[1], "steps") == 0) {
        for (unsigned i = 0; i < VV_STEPS; i++)
            puts(vv_step_name((vv_step)i));
        return 0;
    }
    return 64;
}
