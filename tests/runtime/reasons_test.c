/*
 * Each reason of a loss, provoked by itself: of the 26 counters that an execution's end carries, and of the process's,
 * exactly those move that docs/failures.md names, and by as much.
 */
#include "config.h"

#include "runtime/session.h"

#include <errno.h>

#include "tests/runtime/inside.h"

uint64_t size_of_files;

enum { SMALL = 8921088 };

typedef struct {
    bad_disk disk;
    rig g;
    uint32_t main, leaf;
    varve_thread *thread;
    bool denying;
    vv_owner denied;
} run;

static bool denies(void *ctx, vv_owner owner)
{
    const run *r = ctx;
    return r->denying && owner == r->denied;
}

static void deny(run *r, vv_owner owner)
{
    r->denying = true;
    r->denied = owner;
}

/* An execution whose main is open, its start committed. */
static void begin(run *r)
{
    r->disk = (bad_disk){.times = 0};
    r->g = rig_stepped(store_make_quick(), SMALL, &r->disk);
    r->denying = false;
    r->g.session->governor.test = (vv_governor_test){.denies = denies, .ctx = r};
    r->main = function(r->g.engine, "main");
    r->leaf = function(r->g.engine, "leaf");
    r->thread = rig_begin(&r->g);
    varve_call_begin(r->thread, r->main, 0);
    call_once(r->thread, r->leaf);
    ck_assert(publish(r->g.session));
}

static varve_thread *child_of(run *r)
{
    varve_thread *t = varve_thread_spawn(r->thread, 0, 0, NULL, 0);
    ck_assert_ptr_nonnull(t);
    return t;
}

static varve_thread *started_child(run *r)
{
    varve_thread *t = child_of(r);
    varve_thread_start(t, varve_ticks());
    return t;
}

static void finish_child(varve_thread *t)
{
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
}

/* The ring of this OS thread has no room, and gets none, from here to unblock. */
static uint64_t *block_ring(run *r)
{
    vv_ring *ring = vv_session_ring(r->g.session, r->g.engine);
    uint64_t *end = ring->end;
    ring->end = ring->at;
    deny(r, VV_OWN_TRANSPORT);
    return end;
}

static void unblock_ring(run *r, uint64_t *end)
{
    vv_session_ring(r->g.session, r->g.engine)->end = end;
    r->denying = false;
}

/* What was recorded is read while the owner is denied. */
static void settle_denied(run *r, vv_owner owner)
{
    deny(r, owner);
    settle(r->g.session);
    r->denying = false;
}

static void refused_begin(run *r)
{
    uint64_t *end = block_ring(r);
    varve_call_begin(r->thread, r->leaf, 0);
    call_once(r->thread, r->leaf);
    varve_call_end(r->thread, VARVE_CALL_OK);
    unblock_ring(r, end);
}

static void refused_end(run *r)
{
    varve_call_begin(r->thread, r->leaf, 0);
    uint64_t *end = block_ring(r);
    varve_call_end(r->thread, VARVE_CALL_OK);
    unblock_ring(r, end);
}

static void refused_spawn(run *r)
{
    uint64_t *end = block_ring(r);
    finish_child(child_of(r));
    unblock_ring(r, end);
}

static void refused_handle(run *r)
{
    deny(r, VV_OWN_POPULATION);
    ck_assert_ptr_null(varve_thread_spawn(r->thread, 0, 0, NULL, 0));
    r->denying = false;
}

static void refused_start(run *r)
{
    varve_thread *t = child_of(r);
    uint64_t *end = block_ring(r);
    varve_thread_start(t, varve_ticks());
    unblock_ring(r, end);
    call_once(t, r->leaf);
    finish_child(t);
}

static void refused_thread_end(run *r)
{
    varve_thread *t = started_child(r);
    uint64_t *end = block_ring(r);
    finish_child(t);
    unblock_ring(r, end);
}

static void no_thread_state(run *r)
{
    varve_thread *t = started_child(r);
    call_once(t, r->leaf);
    finish_child(t);
    settle_denied(r, VV_OWN_POPULATION);
}

static void no_call_state(run *r)
{
    varve_thread *t = started_child(r);
    call_once(t, r->leaf);
    settle_denied(r, VV_OWN_CALLS);
    finish_child(t);
}

static void no_context(run *r)
{
    for (unsigned i = 0; i < 40; i++) /* as many as make the tree grow */
        call_once(r->thread, function(r->g.engine, "more"));
    settle_denied(r, VV_OWN_POPULATION);
}

static void no_room_for_a_fact(run *r)
{
    vv_facts_done(&r->g.session->decoder.execs->facts, &r->g.session->governor); /* what it kept for the next ones */
    varve_thread *a = started_child(r), *b = started_child(r);
    void (*relieve)(void *, vv_exec *) = r->g.session->decoder.relieve;
    r->g.session->decoder.relieve = NULL; /* a publication in between would make room */
    settle_denied(r, VV_OWN_EVIDENCE);
    r->g.session->decoder.relieve = relieve;
    varve_status st;
    varve_session_status(r->g.session, &st);
    ck_assert_str_eq(st.reason, "calls are counted, but some spans, values or threads found no memory and are missing");
    finish_child(a);
    finish_child(b);
}

static void open_thread(run *r)
{
    varve_thread *t = started_child(r);
    varve_call_begin(t, r->leaf, 0);
    settle(r->g.session);
    atomic_fetch_sub(&r->g.session->registry.slots[0].threads, 1); /* as if it were over without a word */
}

static void clock_backwards(run *r)
{
    uint64_t now = varve_ticks();
    varve_call_begin_at(r->thread, r->leaf, 0, now);
    varve_call_end_at(r->thread, VARVE_CALL_OK, now - 100000);
}

static void lost_data(run *r)
{
    call_once(r->thread, r->leaf);
    finish_child(started_child(r));
    settle(r->g.session);
    r->disk = (bad_disk){VV_STEP_WRITE, EIO, .times = 1};
    publish(r->g.session);
}

static void full_disk(run *r)
{
    call_once(r->thread, r->leaf);
    settle(r->g.session);
    r->disk = (bad_disk){VV_STEP_WRITE, ENOSPC, .times = 1};
    publish(r->g.session);
}

static void lost_table(run *r)
{
    call_once(r->thread, function(r->g.engine, "another"));
    settle(r->g.session);
    r->disk = (bad_disk){VV_STEP_WRITE, EIO, .times = 1};
    publish(r->g.session);
}

static void second_root(run *r, bool lost)
{
    varve_thread *t;
    varve_root *root = varve_root_begin(r->g.engine, NULL, &t);
    ck_assert_ptr_nonnull(root);
    if (lost)
        r->disk = (bad_disk){VV_STEP_WRITE, EIO, .times = 1};
    publish(r->g.session);
    execution_end(root, t);
}

static void lost_start(run *r)
{
    second_root(r, true);
}

static void no_execution_state(run *r)
{
    deny(r, VV_OWN_POPULATION);
    second_root(r, false);
    settle(r->g.session);
    r->denying = false;
}

static void no_slot(run *r)
{
    vv_registry *g = &r->g.session->registry;
    uint64_t free = atomic_exchange(&g->free, 0);
    varve_thread *t;
    ck_assert_ptr_null(varve_root_begin(r->g.engine, NULL, &t));
    atomic_store(&g->free, free);
}

static void store_unavailable(run *r)
{
    call_once(r->thread, r->leaf);
    settle(r->g.session);
    r->disk = (bad_disk){VV_STEP_FSYNC_DIRECTORY, EIO, .times = 1};
    publish(r->g.session);
    varve_thread *t;
    ck_assert_ptr_null(varve_root_begin(r->g.engine, NULL, &t));
    ck_assert_uint_eq(status_of(r->g.session).roots_refused, 1);
}

static void no_lease(run *r)
{
    vv_slot *slot = &r->g.session->registry.slots[0];
    uint64_t threads = atomic_exchange(&slot->threads, UINT64_MAX);
    ck_assert_ptr_null(varve_thread_spawn(r->thread, 0, 0, NULL, 0));
    atomic_store(&slot->threads, threads);
}

static void abandoned(run *r)
{
    varve_root_end(r->g.root, VARVE_ABANDONED);
}

/* The data of the end is written; of what follows, the first or second fails. */
static void lost_terms(run *r)
{
    call_once(r->thread, r->leaf);
    r->disk = (bad_disk){VV_STEP_WRITE, EIO, .after = 1, .times = 1};
}

static void lost_end(run *r)
{
    call_once(r->thread, r->leaf);
    r->disk = (bad_disk){VV_STEP_WRITE, EIO, .after = 2, .times = 1};
}

static void nothing(run *r)
{
    (void)r;
}

static const struct {
    const char *name;
    void (*provoke)(run *r);
    bool no_end;
    uint64_t health[VV_HEALTH_COUNT];
    varve_process_counts counts;
} reasons[] = {
    {"nothing", nothing, false, {0}, {0}},
    {"refused begin", refused_begin, false, {[VV_H_structural_transport_exceeded] = 2}, {0}},
    {"refused end", refused_end, false,
     {[VV_H_structural_transport_exceeded] = 1, [VV_H_unmatched_call_facts] = 1}, {0}},
    {"refused spawn", refused_spawn, false, {[VV_H_structural_transport_exceeded] = 1}, {0}},
    {"refused handle", refused_handle, false, {[VV_H_structural_transport_exceeded] = 1}, {0}},
    {"refused start", refused_start, false,
     {[VV_H_structural_transport_exceeded] = 2, [VV_H_unmatched_thread_facts] = 1}, {0}},
    {"refused thread end", refused_thread_end, false,
     {[VV_H_structural_transport_exceeded] = 1, [VV_H_unmatched_thread_facts] = 1}, {0}},
    {"no thread state", no_thread_state, false,
     {[VV_H_active_thread_capacity_exceeded] = 1, [VV_H_unmatched_thread_facts] = 2, [VV_H_unmatched_call_facts] = 2},
     {0}},
    {"no call state", no_call_state, false,
     {[VV_H_active_call_capacity_exceeded] = 1, [VV_H_unmatched_call_facts] = 1}, {0}},
    {"no context", no_context, false, {0}, {0}},
    {"no room for a fact", no_room_for_a_fact, false, {[VV_H_evidence_queue_full] = 2}, {0}},
    {"open thread", open_thread, false,
     {[VV_H_unmatched_thread_facts] = 1, [VV_H_unmatched_call_facts] = 1}, {0}},
    {"clock backwards", clock_backwards, false, {[VV_H_clock_invalid] = 1}, {0}},
    {"lost data", lost_data, false,
     {[VV_H_cct_segment_publish_failed] = 1, [VV_H_evidence_segment_publish_failed] = 1}, {0}},
    {"full disk", full_disk, false, {[VV_H_cct_segment_publish_failed] = 2, [VV_H_evidence_segment_publish_failed] = 1},
     {0}},
    {"lost table", lost_table, false, {0}, {.function_table_publish_failed = 1}},
    {"lost start", lost_start, false, {0}, {.meta_batch_lost = 1}},
    {"no execution state", no_execution_state, false, {0}, {.profiler_execution_state_unavailable = 1}},
    {"no slot", no_slot, false, {0}, {.profiler_execution_state_unavailable = 1}},
    {"store unavailable", store_unavailable, false, {0}, {0}},
    {"no lease", no_lease, false, {0}, {.profiler_thread_lease_unavailable = 1}},
    {"abandoned", abandoned, false, {0}, {.root_abandoned = 1}},
    {"lost terms", lost_terms, false, {0}, {.health_record_lost = 1}},
    {"lost end", lost_end, true, {0}, {.meta_batch_lost = 1, .root_ended_lost = 1}},
};

START_TEST(gate_each_reason)
{
    run r;
    begin(&r);
    varve_process_counts was, is;
    varve_process_counters(&was);
    reasons[_i].provoke(&r);
    varve_call_end(r.thread, VARVE_CALL_OK);
    rig_end(&r.g);
    publish(r.g.session);
    publish(r.g.session);
    varve_process_counters(&is);
    ck_assert_ptr_null(r.g.session->decoder.execs);
    look *l = rig_close(&r.g);
    ck_assert_int_eq(l->execution->has_end, !reasons[_i].no_end);
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        ck_assert_msg(l->execution->health.v[i] == reasons[_i].health[i], "%s: %s is %" PRIu64 ", not %" PRIu64,
                      reasons[_i].name, vv_health_name(i), l->execution->health.v[i], reasons[_i].health[i]);
    uint64_t before[VV_PROCESS_COUNTS], after[VV_PROCESS_COUNTS], want[VV_PROCESS_COUNTS];
    _Static_assert(sizeof before == sizeof was, "one member a count");
    memcpy(before, &was, sizeof before);
    memcpy(after, &is, sizeof after);
    memcpy(want, &reasons[_i].counts, sizeof want);
    for (unsigned i = 0; i < VV_PROCESS_COUNTS; i++)
        ck_assert_msg(after[i] - before[i] == want[i], "%s: count %u of the process moved by %" PRIu64 ", not %" PRIu64,
                      reasons[_i].name, i, after[i] - before[i], want[i]);
    rig_remove(&r.g);
}
END_TEST

int main(void)
{
    TCase *c = test_case("reasons", 60);
    tcase_add_loop_test(c, gate_each_reason, 0, (int)VV_ARRAY_LEN(reasons));
    return test_run();
}
