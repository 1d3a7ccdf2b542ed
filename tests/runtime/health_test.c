/*
 * The health plane as the writer leaves it: one record for each execution that ended, before its end, published once
 * whatever fails; and its terms make the equations true. The consumer is the test itself.
 */
#include "config.h"

#include "runtime/session.h"

#include <errno.h>

#include "format/usage.h"
#include "tests/runtime/inside.h"

uint64_t size_of_files;

/* Fails one step of one publication, counted from when the fault was set. */
typedef struct {
    unsigned publication;
    vv_step at;
    int os;
    unsigned seen;
    bool full;     /* the file system has no more than free bytes once the fault is set */
    uint64_t free;
} fault;

static uint64_t free_bytes(void *ctx)
{
    const fault *f = ctx;
    return f->full ? f->free : UINT64_MAX / 2;
}

/* What is written takes space, but for the ledger, which replaces itself. */
static ssize_t take_space(void *ctx, int fd, const void *p, size_t n)
{
    fault *f = ctx;
    if (n != VV_USAGE_BYTES)
        f->free -= f->free < n ? f->free : n;
    return write(fd, p, n);
}

static int fail_step(void *ctx, vv_step at)
{
    fault *f = ctx;
    f->seen += at == VV_STEP_LOCK;
    return f->os && f->seen == f->publication && at == f->at ? f->os : 0;
}

typedef struct {
    rig g;
    fault fault;
    uint32_t main, leaf;
} run;

static void start(run *r)
{
    r->fault = (fault){.os = 0};
    test_store store = store_make();
    r->g = rig_of(store, passive(&store, 0, &(vv_wstore_hooks){.step = fail_step, .write = take_space,
                                                               .free_bytes = free_bytes, .ctx = &r->fault}));
    r->main = function(r->g.engine, "main");
    r->leaf = function(r->g.engine, "leaf");
}

/* One execution of calls leaves, ended but not published. */
static void execute(run *r, unsigned calls)
{
    varve_thread *t;
    varve_root *root = varve_root_begin(r->g.engine, NULL, &t);
    varve_call_begin(t, r->main, 0);
    for (unsigned i = 0; i < calls; i++) {
        varve_call_begin(t, r->leaf, 0);
        varve_await_begin(t, varve_ticks());
        varve_await_end(t, varve_ticks());
        varve_call_end(t, VARVE_CALL_OK);
    }
    varve_call_end(t, VARVE_CALL_OK);
    execution_end(root, t);
}

static uint64_t term(const look *l, const char *name)
{
    uint64_t v;
    ck_assert_msg(vv_health_find(&l->execution->terms, name, &v), "no term %s", name);
    return v;
}

static void assert_equations(const look *l, uint64_t calls, uint64_t awaits)
{
    const vv_health_record *t = &l->execution->terms;
    ck_assert(l->execution->has_terms);
    ck_assert_uint_eq(term(l, "invocations_attempted"), calls);
    ck_assert_uint_eq(term(l, "invocations_attempted"),
                      term(l, "invocations_folded") + vv_health_sum(t, "invocations_lost."));
    ck_assert_uint_eq(term(l, "await_intervals_started"), awaits);
    ck_assert_uint_eq(term(l, "await_intervals_started"),
                      term(l, "await_intervals_folded") + vv_health_sum(t, "await_lost."));
    ck_assert_uint_eq(term(l, "invocations_folded"), totals(l).started);
    ck_assert_uint_eq(term(l, "await_intervals_folded"), totals(l).await_count);
}

static uint64_t health_files(const run *r)
{
    return vv_wstore_high(r->g.session->store, VV_PLANE_HEALTH);
}

START_TEST(gate_equations_hold_at_the_end)
{
    run r;
    start(&r);
    execute(&r, 3);
    execute(&r, 5);
    ck_assert(publish(r.g.session));
    ck_assert_uint_eq(health_files(&r), 1); /* one file a cycle that ended executions */
    ck_assert(publish(r.g.session));
    ck_assert_uint_eq(health_files(&r), 1);
    execute(&r, 7);
    ck_assert(publish(r.g.session));
    ck_assert_uint_eq(health_files(&r), 2);
    look *l = rig_close(&r.g);
    assert_ledger(r.g.store.root);
    static const uint64_t calls[] = {4, 6, 8};
    for (unsigned i = 0; i < 3; i++) {
        look_fold(l, 0, i);
        assert_whole(l);
        assert_equations(l, calls[i], calls[i] - 1);
    }
    rig_remove(&r.g);
}
END_TEST

/* Names leave the table in the order that the format wants, and say themselves what is a loss. */
START_TEST(names_ascend)
{
    for (unsigned i = 0; i < VV_ACCOUNTS; i++) {
        const char *name = vv_account_name((vv_account)i);
        ck_assert(i == 0 || strcmp(vv_account_name((vv_account)(i - 1)), name) < 0);
        ck_assert_msg(vv_account_is_loss((vv_account)i) == (strstr(name, "_lost.") != NULL), "%s", name);
    }
}
END_TEST

/* In the second cycle the first publication is the data, the second the terms, the third the ends. */
static look *faulty_cycle(run *r, fault f)
{
    start(r);
    varve_thread *t = rig_begin(&r->g);
    varve_call_begin(t, r->main, 0);
    ck_assert(publish(r->g.session));
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&r->g);
    r->fault = f;
    publish(r->g.session);
    r->fault = (fault){.full = f.full, .free = r->fault.free};
    publish(r->g.session);
    execute(r, 2);
    publish(r->g.session);
    look *l = rig_close(&r->g);
    assert_ledger(r->g.store.root);
    return l;
}

/* Whatever step of it fails: before the rename the record is lost, after it it is there once; the end comes anyway. */
START_TEST(gate_terms_fail_alone)
{
    vv_step at = (vv_step)_i;
    run r;
    look *l = faulty_cycle(&r, (fault){.publication = 2, .at = at, .os = EIO});
    bool kept = at >= VV_STEP_FSYNC_DIRECTORY;
    ck_assert_int_eq(l->execution->index_state, VV_INDEX_COMPLETE);
    ck_assert_msg(l->execution->has_terms == kept, "after %s", vv_step_name(at));
    if (kept)
        assert_equations(l, 1, 0);
    if (l->stream->execution_count > 1) { /* a step may have latched the store */
        look_fold(l, 0, 1);
        assert_equations(l, 3, 2);
    }
    rig_remove(&r.g);
}
END_TEST

/* A lost group of calls is in the terms that follow it. */
START_TEST(gate_lost_data_is_in_the_terms)
{
    run r;
    look *l = faulty_cycle(&r, (fault){.publication = 1, .at = VV_STEP_WRITE, .os = EIO});
    ck_assert(l->execution->has_terms);
    ck_assert_uint_eq(term(l, "invocations_attempted"), 1);
    ck_assert_uint_eq(term(l, "invocations_folded"), 1); /* its start was committed before */
    ck_assert_uint_eq(l->execution->health.v[VV_H_cct_segment_publish_failed], 1);
    ck_assert_uint_eq(l->execution->health.v[VV_H_evidence_segment_publish_failed], 1); /* the thread's end */
    rig_remove(&r.g);
}
END_TEST

/*
 * Ends have one try in a latched store. The less room the disk has, the less is there: terms and end, the end alone,
 * nothing; terms never take an end's place.
 */
START_TEST(gate_ends_before_terms_on_a_full_disk)
{
    enum { MOST = 2000, STEP = 50 };
    unsigned found[3] = {0}, last = 2;
    for (uint64_t free = MOST; free; free -= STEP) {
        run r;
        look *l = faulty_cycle(&r, (fault){.publication = 1, .at = VV_STEP_CREATE, .os = ENOSPC, .full = true,
                                           .free = free});
        ck_assert_uint_eq(l->stream->execution_count, 1); /* the store is latched */
        bool ended = l->execution->index_state == VV_INDEX_COMPLETE;
        unsigned now = ended + l->execution->has_terms;
        ck_assert_msg(now <= last && ended >= l->execution->has_terms, "%u of 2 in %u bytes", now, (unsigned)free);
        if (now == 2)
            assert_equations(l, 1, 0);
        found[last = now]++;
        rig_remove(&r.g);
    }
    ck_assert(found[0] && found[1] && found[2]);
}
END_TEST

/* Calls that are nowhere are told as such, and the equation holds by that. */
START_TEST(gate_unreconciled_calls)
{
    run r;
    start(&r);
    varve_thread *t = rig_begin(&r.g);
    varve_call_begin(t, r.main, 0);
    vv_consumer_pass(r.g.session);
    vv_exec *x = r.g.session->decoder.execs;
    atomic_fetch_add(&x->slot->accounts[VV_ACCOUNT_CALLS_ATTEMPTED], 3);
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&r.g);
    ck_assert(publish(r.g.session));
    look *l = rig_close(&r.g);
    assert_equations(l, 4, 0);
    ck_assert_uint_eq(term(l, "invocations_lost.invocation_unreconciled"), 3);
    ck_assert_uint_eq(l->execution->health.v[VV_H_unmatched_call_facts], 3);
    rig_remove(&r.g);
}
END_TEST

/* Many ends at once: as many files as their terms need, each within the segment target. */
START_TEST(many_ends)
{
    enum { ROOTS = 1500 };
    run r;
    start(&r);
    for (unsigned i = 0; i < ROOTS; i++) {
        execute(&r, 1);
        if (i % 1000 == 999)
            for (unsigned k = 0; k < 3; k++)
                vv_consumer_pass(r.g.session);
    }
    r.g.session->writer.segment_target = 100000;
    ck_assert(publish(r.g.session));
    ck_assert_uint_gt(health_files(&r), 5);
    look *l = rig_close(&r.g);
    assert_ledger(r.g.store.root);
    ck_assert_uint_eq(l->stream->execution_count, ROOTS);
    for (size_t i = 0; i < ROOTS; i++)
        ck_assert(vv_stream_execution_at(l->stream, i)->has_terms);
    rig_remove(&r.g);
}
END_TEST

int main(void)
{
    TCase *t = test_case("plane", 60);
    tcase_add_test(t, gate_equations_hold_at_the_end);
    tcase_add_test(t, names_ascend);
    tcase_add_loop_test(t, gate_terms_fail_alone, 0, VV_STEPS);
    tcase_add_test(t, gate_lost_data_is_in_the_terms);
    tcase_add_test(t, gate_ends_before_terms_on_a_full_disk);
    tcase_add_test(t, gate_unreconciled_calls);
    tcase_add_test(t, many_ends);
    return test_run();
}
