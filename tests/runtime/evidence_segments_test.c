/*
 * Evidence over the life of an execution: spans whose parts lie in many segments, pressure that comes and goes, stores
 * that fail once or for good, and contexts that memory had no room for.
 */
#include "config.h"

#include "runtime/session.h"

#include "tests/runtime/evidence_rig.h"

uint64_t size_of_files;

/* Values that were begun, and bodies that were hashed. */
static unsigned captures, hashes;

varve_capture *__real_vv_capture_new(vv_governor *g, bool manual, size_t limit);
varve_capture *__wrap_vv_capture_new(vv_governor *g, bool manual, size_t limit);
varve_capture *__wrap_vv_capture_new(vv_governor *g, bool manual, size_t limit)
{
    captures++;
    return __real_vv_capture_new(g, manual, limit);
}

void __real_vv_cid_of(vv_cid *ret, uint16_t codec, const void *body, size_t n);
void __wrap_vv_cid_of(vv_cid *ret, uint16_t codec, const void *body, size_t n);
void __wrap_vv_cid_of(vv_cid *ret, uint16_t codec, const void *body, size_t n)
{
    hashes++;
    __real_vv_cid_of(ret, codec, body, n);
}

/* Ends, looks, and checks what is always so. */
static look *finish_checked(run *r, vv_accounting *ret)
{
    look *l = finish(r, ret);
    found_evidence found;
    ck_assert_str_eq(evidence_of(l, &found), "");
    ck_assert_str_eq(evidence_agrees(l, ret, &found), "");
    return l;
}

static void assert_no_loss(const vv_accounting *a)
{
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        ck_assert_msg(!vv_account_is_loss((vv_account)i) || !a->v[i], "%s", vv_account_name((vv_account)i));
}

/* The first thread's span of that call. */
static const vv_fold_span *span_of(const look *l, uint64_t call)
{
    vv_call_ref ref = vv_call_ref_make(&l->execution->root, call);
    uint32_t at = vv_map_find(&l->fold->span_map, &ref);
    ck_assert_uint_ne(at, VV_MAP_NONE);
    return &l->fold->spans[at];
}

/* Publishes, and that it made one segment more. */
static void segment(run *r)
{
    uint64_t before = vv_wstore_high(r->g.session->store, VV_PLANE_DATA);
    ck_assert(publish(r->g.session));
    ck_assert_uint_eq(vv_wstore_high(r->g.session->store, VV_PLANE_DATA), before + 1);
}

START_TEST(gate_span_over_four_segments)
{
    run r;
    begin(&r);
    uint64_t from = vv_wstore_high(r.g.session->store, VV_PLANE_DATA);
    call_for(&r, 1, VARVE_ERROR);
    segment(&r);
    throw_up(&r, 1);
    segment(&r);
    /* The link is its own segment: it goes before the end, whose record comes when the link's facts are published. */
    r.g.session->decoder.fact_limit = 1;
    r.g.session->decoder.facts_due = 1;
    end_badly(&r);
    settle(r.g.session);
    segment(&r);
    ck_assert_uint_eq(vv_wstore_high(r.g.session->store, VV_PLANE_DATA), from + 4);
    vv_accounting a;
    look *l = finish_checked(&r, &a);
    assert_no_loss(&a);
    ck_assert(l->fold->complete);
    const vv_fold_span *s = span_of(l, 2);
    ck_assert(s->has_start && s->has_end && s->has_terminal && !s->terminal.lost);
    ck_assert_uint_eq(l->fold->error_count, 1);
    ck_assert_mem_eq(&s->terminal.capture, &l->fold->errors[0].id, sizeof(vv_capture_id));
    rig_remove(&r.g);
}
END_TEST

START_TEST(gate_capture_by_hand_after_many_rollovers)
{
    enum { SPANS = 120 };
    run r;
    begin(&r);
    r.g.session->decoder.epoch_nodes = 4;
    for (unsigned i = 0; i < SPANS; i++) {
        call_for(&r, 1 + i % 3, VARVE_ALL_ROLES);
        give_int(r.t, VARVE_INPUT, i % 100);
        for (unsigned k = 3; k < 8; k++) {
            call(&r, k, NULL);
            end(&r);
        }
        set_id(&r, 3);
        give_int(r.t, VARVE_OUTPUT, 1);
        end(&r);
        settle(r.g.session);
    }
    uint64_t segments = vv_wstore_high(r.g.session->store, VV_PLANE_DATA);
    ck_assert_uint_gt(segments, SPANS / 4);
    vv_accounting a;
    look *l = finish_checked(&r, &a);
    assert_no_loss(&a);
    ck_assert(l->fold->complete);
    ck_assert_uint_eq(l->fold->span_count, SPANS + 1);
    for (unsigned i = 0; i < SPANS; i++) {
        const vv_fold_span *s = span_of(l, 2 + 6 * (uint64_t)i);
        ck_assert(s->has_input && !s->input.lost && s->has_output && !s->output.lost && s->runtime_ordinal == 1);
        ck_assert_uint_eq(s->start.reasons, VV_REASON_MANUAL);
    }
    rig_remove(&r.g);
}
END_TEST

/* What is denied while memory is short is lost, and nothing after it. */
START_TEST(gate_pressure_that_passes)
{
    run r;
    begin(&r);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(publish(r.g.session));
        call_for(&r, 1, 0);
        settle_without_facts(&r);
        end(&r);
        call_for(&r, 1, VARVE_INPUT);
        deny(&r, VV_OWN_VALUES, ALWAYS);
        ck_assert_ptr_null(varve_value_begin(r.t, VARVE_INPUT));
        allow(&r);
        end(&r);
        call_for(&r, 2, VARVE_ALL_ROLES);
        give_int(r.t, VARVE_INPUT, 4);
        give_int(r.t, VARVE_OUTPUT, 5);
        end(&r);
        settle(r.g.session);
    }
    vv_accounting a;
    look *l = finish_checked(&r, &a);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_START_LOST_QUEUE], 3);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_VALUE_LOST_MEMORY], 3);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_STARTS_COMMITTED], 7);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_VALUES_AVAILABLE], 8);
    ck_assert(l->fold->complete);
    rig_remove(&r.g);
}
END_TEST

/* On a full disk nothing of a value is copied or hashed any more, also of those that are on their way, and what is
 * recorded takes no more memory however much it is. */
START_TEST(gate_blocked_store_copies_nothing)
{
    run r;
    begin(&r);
    call_for(&r, 1, VARVE_INPUT);
    give_int(r.t, VARVE_INPUT, 1);
    end(&r);
    settle(r.g.session);
    call_for(&r, 1, VARVE_INPUT);
    give_int(r.t, VARVE_INPUT, 2); /* is in the ring when the store closes */
    fail_data(&r, ENOSPC);
    ck_assert(!vv_writer_cycle(&r.g.session->writer));
    ck_assert_int_eq(vv_wstore_latch(r.g.session->store), VV_LATCH_DISK);
    captures = hashes = 0;
    settle(r.g.session);
    end(&r);
    uint64_t used = 0;
    for (unsigned i = 0; i < 400; i++) {
        call_for(&r, 1, VARVE_ALL_ROLES);
        ck_assert_ptr_null(varve_value_begin(r.t, VARVE_INPUT));
        ck_assert_ptr_null(varve_error_begin(r.t, &(varve_error){.ends = 1}));
        end_badly(&r);
        publish(r.g.session);
        uint64_t now = atomic_load(&r.g.session->governor.pools[VV_POOL_GENERAL].used);
        used = used ? used : now;
        ck_assert_uint_le(now, used);
        ck_assert_uint_eq(vv_objects_bytes(&r.g.session->decoder.objects), 0);
    }
    ck_assert_uint_eq(captures, 0);
    ck_assert_uint_eq(hashes, 0);
    vv_accounting a;
    finish_checked(&r, &a);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_VALUE_LOST_DISK], 403 - 1 + 1);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_ERROR_LOST_DISK], 400);
    rig_remove(&r.g);
}
END_TEST

/* The same evidence fails at each step before its rename, and never comes back. */
START_TEST(gate_failed_batch_is_lost_once)
{
    static const vv_step steps[] = {VV_STEP_WRITE, VV_STEP_FSYNC_FILE, VV_STEP_RENAME};
    run r;
    begin(&r);
    for (size_t i = 0; i < VV_ARRAY_LEN(steps); i++) {
        call_for(&r, 1, VARVE_ALL_ROLES);
        give_int(r.t, VARVE_INPUT, 3);
        set_id(&r, 2);
        throw_up(&r, 1);
        end_badly(&r);
        settle(r.g.session);
        fail_next(&r, "BAMLDAT1", steps[i], EIO, 1);
        publish(r.g.session);
        ck_assert_uint_eq(r.disk.times, 0);
        publish(r.g.session);
    }
    vv_accounting a;
    look *l = finish_checked(&r, &a);
    uint64_t n = VV_ARRAY_LEN(steps);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_START_LOST_PUBLISH], n);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_VALUE_LOST_PUBLISH], n);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_ID_LOST_PUBLISH], n);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_ERROR_LOST_PUBLISH], n);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_LINK_LOST_PUBLISH], n);
    ck_assert_uint_eq(l->fold->span_count, 1);
    ck_assert_uint_eq(l->fold->error_count, 0);
    rig_remove(&r.g);
}
END_TEST

/* A span without a context of its own names a bucket; its function has a name, though no context has it. */
START_TEST(gate_spans_in_overflow)
{
    run r;
    begin(&r);
    const vv_cct *tree = &r.g.session->decoder.execs->cct;
    for (unsigned i = 0; tree->count < tree->cap; i++) {
        char name[16];
        snprintf(name, sizeof name, "more %u", i);
        call_once(r.t, function(r.g.engine, name));
        settle(r.g.session);
    }
    ck_assert(publish(r.g.session)); /* with the table as it is by now */
    r.f[6] = function(r.g.engine, "only in overflow");
    r.f[7] = function(r.g.engine, "thrower");
    call_for(&r, 6, VARVE_ERROR);
    call_for(&r, 1, 0);
    varve_capture *c = varve_error_begin(r.t, &(varve_error){.ends = 2, .function = r.f[7]});
    varve_put_null(c);
    varve_capture_end(c);
    end_badly(&r);
    end_badly(&r);
    settle_denied(&r, VV_OWN_POPULATION);
    vv_accounting a;
    look *l = finish_checked(&r, &a);
    assert_no_loss(&a);
    ck_assert(l->fold->complete);
    unsigned at[2][VV_EDGES] = {{0}};
    for (size_t i = 0; i < l->fold->span_count; i++)
        if (l->fold->spans[i].start.context.overflow)
            at[l->fold->spans[i].start.context.reason][l->fold->spans[i].start.context.edge]++;
    ck_assert_uint_eq(at[VV_OVERFLOW_MEMORY][VV_EDGE_CALL], 1);
    ck_assert_uint_eq(at[VV_OVERFLOW_INVALID_PARENT][VV_EDGE_CALL], 1);
    ck_assert_uint_eq(l->fold->error_count, 1);
    const vv_error_capture *e = &l->fold->errors[0];
    ck_assert(e->context.overflow && e->context.reason == VV_OVERFLOW_INVALID_PARENT);
    ck_assert_uint_eq(e->function_id, r.f[7]);
    ck_assert_ptr_nonnull(vv_function_table_find(&l->table, r.f[6]));
    ck_assert_ptr_nonnull(vv_function_table_find(&l->table, r.f[7]));
    rig_remove(&r.g);
}
END_TEST

/* A runtime id of a caller is that caller's, also where the innermost calls have no frame. */
START_TEST(gate_runtime_id_above_calls_without_frames)
{
    run r;
    begin(&r);
    for (unsigned i = 0; i < 31; i++)
        call(&r, 3, NULL);
    settle(r.g.session);
    call(&r, 3, NULL);
    call(&r, 3, NULL);
    uint8_t id[16] = {42};
    varve_call_set_runtime_id(r.t, 33, id);
    settle_denied(&r, VV_OWN_CALLS);
    for (unsigned i = 0; i < 33; i++)
        end(&r);
    vv_accounting a;
    look *l = finish_checked(&r, &a);
    const vv_fold_span *s = span_of(l, 1);
    ck_assert_uint_eq(s->runtime_ordinal, 1);
    ck_assert_uint_eq(s->runtime_id.b[0], 42);
    ck_assert_uint_eq(evidence_lost(&a, "runtime_id_annotation_lost."), 0);
    rig_remove(&r.g);
}
END_TEST

/* More facts than a segment is to hold, and many contexts: the segments before the last one are full of these. */
START_TEST(gate_large_facts_leave_room_for_rows)
{
    enum { DEEP = 3000 };
    run r;
    begin(&r);
    vv_decoder *d = &r.g.session->decoder;
    d->facts_due = UINT64_MAX;
    uint64_t before = vv_wstore_high(r.g.session->store, VV_PLANE_DATA);
    for (unsigned i = 0; i < DEEP; i++)
        call_for(&r, 1, VARVE_ERROR);
    ck_assert(publish(r.g.session));
    uint64_t rows = DEEP * (uint64_t)(VV_CCT_ROW_MIN + VV_TUPLE_MAX);
    ck_assert_uint_le(vv_wstore_high(r.g.session->store, VV_PLANE_DATA) - before,
                      rows / r.g.session->sizing.segment_target + 4);
    d->facts_due = d->fact_limit;
    for (unsigned i = 0; i < DEEP; i++)
        end(&r);
    vv_accounting a;
    look *l = finish_checked(&r, &a);
    assert_no_loss(&a);
    ck_assert(l->fold->complete);
    rig_remove(&r.g);
}
END_TEST

/* As many values wait as can be published in time; the others are lost by themselves, before they are copied, and once
 * there is room again the next ones are taken. */
START_TEST(gate_values_come_faster_than_the_disk)
{
    run r;
    begin(&r);
    atomic_store(&r.g.session->decoder.objects.most, 3);
    for (int64_t i = 0; i < 10; i++) {
        call_for(&r, 1, VARVE_INPUT);
        give_int(r.t, VARVE_INPUT, 100 + i);
        end(&r);
        settle(r.g.session);
    }
    captures = 0;
    call_for(&r, 1, VARVE_INPUT);
    ck_assert_ptr_null(varve_value_begin(r.t, VARVE_INPUT));
    ck_assert_uint_eq(captures, 0);
    end(&r);
    ck_assert(publish(r.g.session));
    ck_assert_uint_ge(atomic_load(&r.g.session->decoder.objects.most), VV_OBJECTS_LEAST);
    call_for(&r, 1, VARVE_INPUT);
    give_int(r.t, VARVE_INPUT, 200);
    end(&r);
    vv_accounting a;
    look *l = finish_checked(&r, &a);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_VALUE_LOST_CAS_WRITE], 8);
    ck_assert(!span_of(l, 13)->input.lost);
    rig_remove(&r.g);
}
END_TEST

/* However many values are on their way, three quarters of General are left to the calls. */
START_TEST(gate_values_leave_room_for_calls)
{
    run r;
    begin(&r);
    vv_governor *g = &r.g.session->governor;
    uint64_t taken = 0, each = 1 << 16;
    while (vv_reserve(g, VV_POOL_GENERAL, VV_OWN_VALUES, each))
        taken += each;
    ck_assert_uint_le(taken, g->pools[VV_POOL_GENERAL].limit / 4);
    ck_assert_uint_gt(taken + each, g->pools[VV_POOL_GENERAL].limit / 4 - each);
    uint64_t rest = g->pools[VV_POOL_GENERAL].limit - atomic_load(&g->pools[VV_POOL_GENERAL].used);
    ck_assert(vv_reserve(g, VV_POOL_GENERAL, VV_OWN_POPULATION, rest));
    vv_release(g, VV_POOL_GENERAL, VV_OWN_POPULATION, rest);
    for (; taken; taken -= each)
        vv_release(g, VV_POOL_GENERAL, VV_OWN_VALUES, each);
    ck_assert(vv_reserve(g, VV_POOL_GENERAL, VV_OWN_VALUES, each));
    vv_release(g, VV_POOL_GENERAL, VV_OWN_VALUES, each);
    vv_accounting a;
    finish_checked(&r, &a);
    rig_remove(&r.g);
}
END_TEST

int main(void)
{
    TCase *c = test_case("segments", 60);
    tcase_add_test(c, gate_span_over_four_segments);
    tcase_add_test(c, gate_capture_by_hand_after_many_rollovers);
    tcase_add_test(c, gate_pressure_that_passes);
    tcase_add_test(c, gate_blocked_store_copies_nothing);
    tcase_add_test(c, gate_failed_batch_is_lost_once);
    tcase_add_test(c, gate_values_come_faster_than_the_disk);
    tcase_add_test(c, gate_values_leave_room_for_calls);
    tcase_add_test(c, gate_spans_in_overflow);
    tcase_add_test(c, gate_large_facts_leave_room_for_rows);
    tcase_add_test(c, gate_runtime_id_above_calls_without_frames);
    return test_run();
}
