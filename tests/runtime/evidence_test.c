/* What selected calls leave in the store: spans, runtime ids, values, errors and their links. */
#include "config.h"

#include "runtime/session.h"

#include "tests/runtime/inside.h"

uint64_t size_of_files;
static unsigned objects;

typedef struct {
    rig g;
    varve_thread *t;
    uint32_t f[8];
} run;

static run begin(unsigned roles)
{
    test_store s = store_make_quick();
    run r = {.g = {.store = s, .session = passive(&s, 0, NULL)}};
    r.g.engine = varve_engine_open(r.g.session, &(varve_engine_info){.roles = roles});
    add_functions(r.g.engine, r.f, VV_ARRAY_LEN(r.f));
    r.t = rig_begin(&r.g);
    return r;
}

static void begin_as(const run *r, unsigned f, const varve_policy *p)
{
    varve_call_begin_as(r->t, r->f[f], 0, varve_ticks(), p);
}

/* Ends the execution, whatever is open, and checks what is always true of one without loss. */
static look *finish(run *r)
{
    rig_end(&r->g);
    publish(r->g.session);
    publish(r->g.session);
    ck_assert_ptr_null(r->g.session->decoder.execs);
    vv_accounting a = r->g.session->decoder.over;
    look *l = rig_close(&r->g);
    vv_counters sum = totals_with_overflow(l);
    assert_accounts(&a, &sum);
    ck_assert(l->fold->complete);
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        ck_assert_msg(!vv_health_is_loss(i) || !l->execution->health.v[i], "%s", vv_health_name(i));
    return l;
}

/* The span of the n-th call of the first thread, from 1. */
static const vv_fold_span *span(const look *l, uint64_t call)
{
    for (size_t i = 0; i < l->fold->span_count; i++)
        if (vv_be64(l->fold->spans[i].call.b + 32) == call)
            return &l->fold->spans[i];
    return NULL;
}

static void assert_value(const look *l, const vv_value_state *v, const void *body, size_t n)
{
    vv_cid want;
    vv_cid_of(&want, VV_CODEC_VALUE, body, n);
    ck_assert(!v->lost);
    ck_assert_uint_eq(v->codec, VV_CODEC_VALUE);
    ck_assert_uint_eq(v->bytes, n);
    ck_assert_mem_eq(&v->cid, &want, sizeof want);
    char path[VV_CAS_PATH];
    vv_cas_path(path, &want);
    (void)l;
}

START_TEST(gate_root_selects_all_roles)
{
    run r = begin(VARVE_ALL_ROLES);
    varve_call_begin(r.t, r.f[0], 0);
    ck_assert_uint_eq(varve_call_roles(r.t), VARVE_ALL_ROLES);
    give_int(r.t, VARVE_INPUT, 7);
    ck_assert_uint_eq(varve_call_roles(r.t), VARVE_OUTPUT | VARVE_ERROR);
    ck_assert_ptr_null(varve_value_begin(r.t, VARVE_INPUT));
    call_once(r.t, r.f[1]);
    give_int(r.t, VARVE_OUTPUT, 8);
    varve_call_end(r.t, VARVE_CALL_OK);
    varve_call_begin(r.t, r.f[0], 0);
    ck_assert_uint_eq(varve_call_roles(r.t), 0);
    varve_call_end(r.t, VARVE_CALL_OK);
    look *l = finish(&r);
    ck_assert_uint_eq(l->fold->span_count, 1);
    const vv_fold_span *s = span(l, 1);
    ck_assert(s && s->has_start && s->has_end && s->has_input && s->has_output && !s->has_terminal);
    ck_assert_uint_eq(s->start.reasons, VV_REASON_ROOT);
    ck_assert_uint_eq(s->start.roles, VV_ROLES_ALL);
    ck_assert(s->start.has_runtime_id && s->start.annotation_ordinal == 0);
    ck_assert_uint_eq(s->end.status, VV_CALL_OK);
    assert_value(l, &s->input, "\x20\x07", 2);
    assert_value(l, &s->output, "\x20\x08", 2);
    rig_remove(&r.g);
}
END_TEST

START_TEST(gate_one_unwind_two_links)
{
    run r = begin(VARVE_ALL_ROLES);
    varve_call_begin(r.t, r.f[0], 0);
    give_int(r.t, VARVE_INPUT, 1);
    begin_as(&r, 1, &(varve_policy){.llm = true});
    give_int(r.t, VARVE_INPUT, 1);
    varve_call_begin(r.t, r.f[2], 0);
    uint32_t site = varve_site_add(r.g.engine, varve_file_add(r.g.engine, "m.x"), 10, 20, 3);
    throw_text(r.t, &(varve_error){.ends = VARVE_ENDS_ALL, .site = site}, "no");
    for (unsigned i = 0; i < 3; i++)
        varve_call_end(r.t, VARVE_CALL_ERRORED);
    look *l = finish(&r);
    ck_assert_uint_eq(l->fold->span_count, 2);
    ck_assert_uint_eq(l->fold->error_count, 1);
    const vv_error_capture *e = &l->fold->errors[0];
    ck_assert_uint_eq(vv_be64(e->throw_call.b + 32), 3);
    ck_assert_uint_eq(e->function_id, r.f[2]);
    ck_assert(e->has_site && e->site.line == 3 && e->site.start == 10 && e->kind == 0 && e->source == 0);
    assert_value(l, &e->value, "\x1a\x02no", 4);
    for (uint64_t i = 1; i <= 2; i++) {
        const vv_fold_span *s = span(l, i);
        ck_assert(s && s->has_terminal && !s->terminal.lost && !s->has_output);
        ck_assert_mem_eq(&s->terminal.capture, &e->id, sizeof e->id);
    }
    rig_remove(&r.g);
}
END_TEST

START_TEST(a_root_needs_its_thread)
{
    run r = begin(0);
    ck_assert_ptr_null(varve_root_begin(r.g.engine, NULL, NULL));
    call_once(r.t, r.f[0]);
    finish(&r);
    rig_remove(&r.g);
}
END_TEST

START_TEST(gate_unselected_error_leaves_nothing)
{
    run r = begin(VARVE_ALL_ROLES);
    varve_call_begin(r.t, r.f[0], 0);
    give_int(r.t, VARVE_INPUT, 1);
    varve_call_begin(r.t, r.f[1], 0);
    varve_call_begin(r.t, r.f[2], 0);
    ck_assert_ptr_null(varve_error_begin(r.t, &(varve_error){.ends = 1}));
    varve_call_end(r.t, VARVE_CALL_ERRORED);
    varve_call_end(r.t, VARVE_CALL_OK);
    give_int(r.t, VARVE_OUTPUT, 1);
    varve_call_end(r.t, VARVE_CALL_OK);
    look *l = finish(&r);
    ck_assert_uint_eq(l->fold->error_count, 0);
    ck_assert_uint_eq(l->execution->health.v[VV_H_applicable_error_unwinds], 0);
    rig_remove(&r.g);
}
END_TEST

START_TEST(gate_manual_inputs_only)
{
    run r = begin(VARVE_ALL_ROLES);
    varve_call_begin(r.t, r.f[0], 0);
    give_int(r.t, VARVE_INPUT, 1);
    varve_local_id *id = varve_local_id_new();
    ck_assert(varve_local_id_capture(id, VARVE_SWITCH_ON, VARVE_SWITCH_KEEP, VARVE_SWITCH_KEEP));
    varve_policy p = {.llm = false};
    ck_assert(varve_local_id_consume(id, &p));
    begin_as(&r, 1, &p);
    ck_assert_uint_eq(varve_call_roles(r.t), VARVE_INPUT);
    give_int(r.t, VARVE_INPUT, 5);
    uint8_t other[16] = {9, 9};
    varve_call_set_runtime_id(r.t, 0, other);
    varve_call_begin(r.t, r.f[2], 0);
    varve_call_set_runtime_id(r.t, 0, other); /* not selected: nothing */
    other[0] = 8;
    varve_call_set_runtime_id(r.t, 1, other);
    varve_call_end(r.t, VARVE_CALL_OK);
    ck_assert_ptr_null(varve_value_begin(r.t, VARVE_OUTPUT));
    varve_call_end(r.t, VARVE_CALL_OK);
    give_int(r.t, VARVE_OUTPUT, 1);
    varve_call_end(r.t, VARVE_CALL_OK);
    look *l = finish(&r);
    ck_assert_uint_eq(l->fold->span_count, 2);
    const vv_fold_span *s = span(l, 2);
    ck_assert(s && s->has_input && !s->has_output);
    ck_assert_uint_eq(s->start.reasons, VV_REASON_MANUAL);
    ck_assert_uint_eq(s->start.roles, VV_ROLE_INPUT);
    ck_assert_mem_eq(s->start.runtime_id.b, varve_local_id_bytes(id), 16);
    ck_assert_uint_eq(s->runtime_ordinal, 2);
    ck_assert_mem_eq(s->runtime_id.b, other, 16);
    varve_local_id_unref(id);
    rig_remove(&r.g);
}
END_TEST

/* A call that catches its own error keeps it, and has no link. */
START_TEST(gate_caught_error_has_no_link)
{
    run r = begin(VARVE_ALL_ROLES);
    varve_call_begin(r.t, r.f[0], 0);
    give_int(r.t, VARVE_INPUT, 1);
    varve_call_begin(r.t, r.f[1], 0);
    throw_text(r.t, &(varve_error){.up = 1, .ends = 1}, "no"); /* thrown by the root, of which f[1] is part */
    varve_call_end(r.t, VARVE_CALL_ERRORED);
    throw_text(r.t, &(varve_error){.ends = 0}, "no");
    give_int(r.t, VARVE_OUTPUT, 1);
    varve_call_end(r.t, VARVE_CALL_OK);
    look *l = finish(&r);
    ck_assert_uint_eq(l->fold->error_count, 2);
    for (size_t i = 0; i < 2; i++)
        ck_assert_uint_eq(vv_be64(l->fold->errors[i].throw_call.b + 32), 1);
    ck_assert(!span(l, 1)->has_terminal && span(l, 1)->has_output);
    ck_assert_uint_eq(span(l, 1)->end.status, VV_CALL_OK);
    rig_remove(&r.g);
}
END_TEST

/* The same error going on is another unwind: its own id, later than the first one's, and its kind; the value is one. */
START_TEST(gate_rethrow_is_an_unwind_of_its_own)
{
    run r = begin(VARVE_ALL_ROLES);
    varve_call_begin(r.t, r.f[0], 0);
    give_int(r.t, VARVE_INPUT, 1);
    throw_text(r.t, &(varve_error){.ends = 0}, "no");
    throw_text(r.t, &(varve_error){.ends = 0}, "no");
    throw_text(r.t, &(varve_error){.ends = 1, .kind = VARVE_RETHROW, .source = VARVE_FROM_FUTURE}, "no");
    varve_call_end(r.t, VARVE_CALL_ERRORED);
    look *l = finish(&r);
    ck_assert_uint_eq(l->fold->error_count, 3);
    uint32_t *in_order = vv_fold_order_errors(l->fold);
    for (uint64_t i = 0; i < 3; i++) {
        const vv_error_capture *e = &l->fold->errors[in_order[i]];
        ck_assert_uint_eq(vv_be64(e->id.b + 32), i + 1);
        ck_assert_uint_eq(e->kind, i == 2);
        ck_assert_uint_eq(e->source, i == 2 ? 3 : 0);
        assert_value(l, &e->value, "\x1a\x02no", 4);
    }
    ck_assert_uint_eq(vv_be64(span(l, 1)->terminal.capture.b + 32), 3);
    free(in_order);
    rig_remove(&r.g);
}
END_TEST

/* A call that does not return has no output, and loses none, given or not. */
START_TEST(gate_output_only_where_it_returns)
{
    static const varve_call_status others[] = {VARVE_CALL_ERRORED, VARVE_CALL_CANCELLED, VARVE_CALL_EXITED};
    run r = begin(VARVE_ALL_ROLES);
    varve_call_begin(r.t, r.f[0], 0);
    give_int(r.t, VARVE_INPUT, 1);
    for (unsigned i = 0; i < 6; i++) {
        begin_as(&r, 1, &(varve_policy){.llm = true});
        give_int(r.t, VARVE_INPUT, 1);
        if (i % 2)
            give_int(r.t, VARVE_OUTPUT, 2);
        varve_call_end(r.t, others[i / 2]);
    }
    give_int(r.t, VARVE_OUTPUT, 1);
    varve_call_end(r.t, VARVE_CALL_OK);
    look *l = finish(&r);
    ck_assert_uint_eq(l->fold->span_count, 7);
    for (uint64_t i = 2; i <= 7; i++)
        ck_assert(span(l, i)->has_input && !span(l, i)->has_output && !span(l, i)->has_terminal);
    rig_remove(&r.g);
}
END_TEST

static int count_object(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)at;
    objects += kind == FTW_F && strstr(path, ".bamlvalue");
    return 0;
}

/* Of roles, calls and executions that have the same value, one object; the function table is another. */
START_TEST(gate_equal_values_are_one_object)
{
    run r = begin(VARVE_ALL_ROLES);
    for (unsigned i = 0; i < 3; i++) {
        varve_call_begin(r.t, r.f[0], 0);
        give_int(r.t, VARVE_INPUT, 7);
        begin_as(&r, 1, &(varve_policy){.llm = true});
        give_int(r.t, VARVE_INPUT, 7);
        varve_capture *c = varve_error_begin(r.t, &(varve_error){.ends = 0});
        varve_put_int(c, 7);
        varve_capture_end(c);
        give_int(r.t, VARVE_OUTPUT, 7);
        varve_call_end(r.t, VARVE_CALL_OK);
        give_int(r.t, VARVE_OUTPUT, 7);
        varve_call_end(r.t, VARVE_CALL_OK);
        if (i == 2)
            break;
        rig_end(&r.g);
        publish(r.g.session);
        r.t = rig_begin(&r.g);
    }
    rig_end(&r.g);
    publish(r.g.session);
    look *l = rig_close(&r.g);
    nftw(r.g.store.root, count_object, 16, FTW_PHYS);
    ck_assert_uint_eq(objects, 2);
    for (size_t i = 0; i < 3; i++) {
        look_fold(l, 0, i);
        assert_value(l, &span(l, 1)->output, "\x20\x07", 2);
        assert_value(l, &span(l, 2)->input, "\x20\x07", 2);
        assert_value(l, &l->fold->errors[0].value, "\x20\x07", 2);
    }
    rig_remove(&r.g);
}
END_TEST

int main(void)
{
    TCase *c = test_case("evidence", 60);
    tcase_add_test(c, gate_root_selects_all_roles);
    tcase_add_test(c, gate_one_unwind_two_links);
    tcase_add_test(c, a_root_needs_its_thread);
    tcase_add_test(c, gate_unselected_error_leaves_nothing);
    tcase_add_test(c, gate_manual_inputs_only);
    tcase_add_test(c, gate_caught_error_has_no_link);
    tcase_add_test(c, gate_rethrow_is_an_unwind_of_its_own);
    tcase_add_test(c, gate_output_only_where_it_returns);
    tcase_add_test(c, gate_equal_values_are_one_object);
    return test_run();
}
