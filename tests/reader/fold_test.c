#include "config.h"

#include "reader/fold.h"

#include "tests/testing.h"

#include "tests/reader/build.h"

/*
 * Facts are about thread 1 of engine 1 unless said otherwise; context 1 is defined by every row's group, context 2 by
 * none.
 */
static test_store *now;

static vv_fact span_start(uint64_t call, uint32_t context)
{
    vv_cct_row row = test_context(context, true);
    return (vv_fact){
        .tag = VV_FACT_SPAN_START,
        .span_start = {.call = test_call(now, 1, call), .thread = test_thread(now, 1), .context = {.key = row.key},
                       .edge = VV_EDGE_CALL, .function_id = context},
    };
}

static vv_fact in_bucket(vv_fact f, uint8_t reason, uint8_t edge)
{
    vv_context_ref *ref = f.tag == VV_FACT_SPAN_START ? &f.span_start.context : &f.error_capture.context;
    *ref = (vv_context_ref){.overflow = true, .reason = reason, .edge = edge};
    return f;
}

static vv_fact with_id(vv_fact f, uint32_t ordinal, uint8_t id)
{
    f.span_start.has_runtime_id = true;
    f.span_start.annotation_ordinal = ordinal;
    memset(f.span_start.runtime_id.b, id, sizeof f.span_start.runtime_id.b);
    return f;
}

static vv_fact span_end(uint64_t call)
{
    return (vv_fact){.tag = VV_FACT_SPAN_END, .span_end = {.call = test_call(now, 1, call), .ended_ns = 9}};
}

static vv_fact runtime_id(uint64_t call, uint32_t ordinal, uint8_t id)
{
    vv_fact f = {.tag = VV_FACT_SPAN_RUNTIME_ID,
                 .span_runtime_id = {.call = test_call(now, 1, call), .ordinal = ordinal}};
    memset(f.span_runtime_id.id.b, id, sizeof f.span_runtime_id.id.b);
    return f;
}

static vv_fact value(uint64_t call, uint8_t role)
{
    return (vv_fact){
        .tag = VV_FACT_VALUE,
        .value = {.call = test_call(now, 1, call), .role = role, .context = {.key = test_context(2, true).key},
                  .value = {.lost = true, .loss = 3}},
    };
}

static vv_fact capture(uint64_t ordinal, uint32_t context)
{
    return (vv_fact){
        .tag = VV_FACT_ERROR_CAPTURE,
        .error_capture = {.id = test_capture(now, 1, ordinal), .throw_call = test_call(now, 1, 77),
                          .context = {.key = test_context(context, true).key}, .value = {.lost = true}},
    };
}

static vv_fact terminal(uint64_t call, uint64_t ordinal)
{
    return (vv_fact){
        .tag = VV_FACT_TERMINAL_ERROR,
        .terminal_error = {.call = test_call(now, 1, call), .capture = test_capture(now, 1, ordinal)},
    };
}

static vv_fact terminal_lost(uint64_t call)
{
    return (vv_fact){.tag = VV_FACT_TERMINAL_ERROR,
                     .terminal_error = {.call = test_call(now, 1, call), .lost = true, .loss = 2}};
}

static vv_fact thread_start(uint64_t thread, uint64_t parent, uint8_t kind)
{
    return (vv_fact){
        .tag = VV_FACT_THREAD_START,
        .thread_start = {.thread = test_thread(now, thread),
                         .has_parent = parent != 0,
                         .parent = test_thread(now, parent),
                         .kind = kind,
                         .name = vv_cstr("name")},
    };
}

static vv_fact thread_end(uint64_t thread)
{
    return (vv_fact){.tag = VV_FACT_THREAD_END, .thread_end = {.thread = test_thread(now, thread), .ended_ns = 8}};
}

enum { FACTS = 8 };

typedef struct {
    vv_fact facts[FACTS];
    size_t count;
    bool bucket; /* the group has the (0, 1) bucket, with zero counters */
    const char *error;
    vv_issue_kind issues[FACTS]; /* where the execution has lost evidence */
    size_t issue_count;
} fold_case;

static void add(fold_case *c, vv_fact f)
{
    c->facts[c->count++] = f;
}

static void expect(fold_case *c, const char *error, vv_issue_kind issue)
{
    c->error = error;
    c->issues[c->issue_count++] = issue;
}

static void case_clean(fold_case *c)
{
    add(c, span_start(1, 1));
    add(c, value(1, 0));
    add(c, value(1, 1));
    add(c, span_end(1));
    add(c, capture(1, 1));
    add(c, terminal(1, 1));
    add(c, thread_start(1, 0, 0));
    add(c, thread_end(1));
}

static void case_two_starts(fold_case *c)
{
    add(c, span_start(1, 1));
    add(c, span_start(1, 1));
    c->error = "DuplicateSpanStart";
}

static void case_two_ends(fold_case *c)
{
    add(c, span_start(1, 1));
    add(c, span_end(1));
    add(c, span_end(1));
    c->error = "DuplicateSpanEnd";
}

static void case_two_inputs(fold_case *c)
{
    add(c, span_start(1, 1));
    add(c, value(1, 0));
    add(c, value(1, 1));
    add(c, value(1, 0));
    c->error = "DuplicateValueOccurrence";
}

static void case_two_outputs(fold_case *c)
{
    add(c, span_start(1, 1));
    add(c, value(1, 1));
    add(c, value(1, 1));
    c->error = "DuplicateValueOccurrence";
}

static void case_two_captures(fold_case *c)
{
    add(c, capture(4, 1));
    add(c, capture(4, 1));
    c->error = "DuplicateErrorCapture";
}

static void case_two_terminals(fold_case *c)
{
    add(c, span_start(1, 1));
    add(c, terminal_lost(1));
    add(c, terminal_lost(1));
    c->error = "DuplicateTerminalError";
}

static void case_two_thread_starts(fold_case *c)
{
    add(c, thread_start(1, 0, 0));
    add(c, thread_start(1, 0, 0));
    c->error = "DuplicateThreadStart";
}

static void case_two_thread_ends(fold_case *c)
{
    add(c, thread_end(1));
    add(c, thread_end(1));
    c->error = "DuplicateThreadEnd";
}

static void case_first_clash_counts(fold_case *c)
{
    add(c, thread_end(1));
    add(c, thread_end(1));
    add(c, span_end(1));
    add(c, span_end(1));
    c->error = "DuplicateThreadEnd";
}

static void case_many_runtime_ids(fold_case *c)
{
    add(c, with_id(span_start(1, 1), 0, 1));
    add(c, runtime_id(1, 0, 2));
    add(c, runtime_id(1, 0, 2));
}

static void case_stray_end(fold_case *c)
{
    add(c, span_end(5));
    expect(c, "MissingSpanStart", VV_ISSUE_UNRESOLVED_SPAN_START);
}

static void case_stray_runtime_id(fold_case *c)
{
    add(c, runtime_id(5, 0, 1));
    expect(c, "MissingSpanStart", VV_ISSUE_UNRESOLVED_SPAN_START);
}

static void case_stray_value(fold_case *c)
{
    add(c, value(5, 1));
    expect(c, "MissingSpanStart", VV_ISSUE_UNRESOLVED_SPAN_START);
}

static void case_stray_terminal(fold_case *c) /* nothing further is checked for a span without start */
{
    add(c, terminal(5, 9));
    expect(c, "MissingSpanStart", VV_ISSUE_UNRESOLVED_SPAN_START);
}

static void case_undefined_context(fold_case *c)
{
    add(c, span_start(1, 2));
    expect(c, "MissingContextDefinition", VV_ISSUE_UNRESOLVED_CONTEXT);
}

static void case_unknown_context(fold_case *c)
{
    add(c, span_start(1, 3));
    expect(c, "MissingContextDefinition", VV_ISSUE_UNRESOLVED_CONTEXT);
}

static void case_no_bucket(fold_case *c)
{
    add(c, in_bucket(span_start(1, 1), 0, 1));
    expect(c, "MissingOverflowBucket", VV_ISSUE_UNRESOLVED_OVERFLOW);
}

static void case_zero_bucket(fold_case *c)
{
    add(c, in_bucket(span_start(1, 1), 0, 1));
    add(c, in_bucket(capture(1, 1), 0, 1));
    c->bucket = true;
}

static void case_other_bucket(fold_case *c)
{
    add(c, in_bucket(capture(1, 1), 1, 1));
    c->bucket = true;
    expect(c, "MissingOverflowBucket", VV_ISSUE_UNRESOLVED_OVERFLOW);
}

static void case_no_capture(fold_case *c)
{
    add(c, span_start(1, 1));
    add(c, terminal(1, 9));
    expect(c, "MissingErrorCapture", VV_ISSUE_UNRESOLVED_CAPTURE);
}

static void case_lost_capture(fold_case *c)
{
    add(c, span_start(1, 1));
    add(c, terminal_lost(1));
}

static void case_capture_context(fold_case *c)
{
    add(c, capture(1, 2));
    expect(c, "MissingContextDefinition", VV_ISSUE_UNRESOLVED_CONTEXT);
}

static void case_order(fold_case *c) /* spans by call, each its context before its capture; then captures */
{
    add(c, capture(1, 2));
    add(c, span_end(9));
    add(c, span_start(4, 3));
    add(c, terminal(4, 8));
    add(c, in_bucket(span_start(2, 1), 1, 2));
    expect(c, "MissingOverflowBucket", VV_ISSUE_UNRESOLVED_OVERFLOW);
    expect(c, c->error, VV_ISSUE_UNRESOLVED_CONTEXT);
    expect(c, c->error, VV_ISSUE_UNRESOLVED_CAPTURE);
    expect(c, c->error, VV_ISSUE_UNRESOLVED_SPAN_START);
    expect(c, c->error, VV_ISSUE_UNRESOLVED_CONTEXT);
}

static const struct {
    const char *name;
    void (*make)(fold_case *c);
} cases[] = {
    {"clean", case_clean},
    {"two span starts", case_two_starts},
    {"two span ends", case_two_ends},
    {"two inputs", case_two_inputs},
    {"two outputs", case_two_outputs},
    {"two captures", case_two_captures},
    {"two terminal links", case_two_terminals},
    {"two thread starts", case_two_thread_starts},
    {"two thread ends", case_two_thread_ends},
    {"the first clash counts", case_first_clash_counts},
    {"runtime ids never clash", case_many_runtime_ids},
    {"a stray end", case_stray_end},
    {"a stray runtime id", case_stray_runtime_id},
    {"a stray value", case_stray_value},
    {"a stray terminal link", case_stray_terminal},
    {"a context without tuple", case_undefined_context},
    {"a context without row", case_unknown_context},
    {"a bucket without row", case_no_bucket},
    {"a bucket with zeros", case_zero_bucket},
    {"another bucket", case_other_bucket},
    {"a link without capture", case_no_capture},
    {"a link to a lost capture", case_lost_capture},
    {"a capture's context", case_capture_context},
    {"order of dependencies", case_order},
};

typedef enum { WHOLE, RUNNING, CCT_LOST, EVIDENCE_LOST, SEGMENT_MISSING, SURROUNDINGS } surrounding;

/* The case's group in data segment 1, in an execution that ended as said. */
static vv_fold *fold_one(test_store *t, const fold_case *c, surrounding how)
{
    vv_meta_record first[] = {test_header(), test_engine(1, true), test_started(t, 1)};
    test_store_meta(t, 1, 0, first, VV_ARRAY_LEN(first));
    uint64_t last = how == SEGMENT_MISSING ? 2 : 1;
    vv_meta_record end = test_ended(t, 1, 1, last, last);
    end.root_ended.health.v[VV_H_cct_segment_publish_failed] = how == CCT_LOST;
    end.root_ended.health.v[VV_H_evidence_segment_publish_failed] = how == EVIDENCE_LOST;
    if (how != RUNNING)
        test_store_meta(t, 2, 1, &end, 1);
    test_group g;
    test_group_begin(&g);
    vv_cct_row defined = test_context(1, true), bare = test_context(2, false);
    test_group_row(&g, &defined);
    test_group_row(&g, &bare);
    if (c->bucket)
        test_group_overflow(&g, 0, 1, 0);
    for (size_t i = 0; i < c->count; i++)
        test_group_fact(&g, &c->facts[i]);
    vv_wr w = vv_wr_growing(1 << 20);
    vv_thread_ref root = test_thread(t, 1);
    vv_data_begin(&w, &t->euid, 1);
    test_group_end(&g, &w, &root);
    vv_data_end(&w, 1);
    test_store_segment(t, VV_PLANE_DATA, 1, w);
    test_store_open(t);
    return test_load(t, 1);
}

/* The issues that the surrounding itself makes. */
static size_t surrounding_issues(surrounding how, vv_issue_kind *ret)
{
    static const struct {
        size_t n;
        vv_issue_kind kinds[2];
    } by[SURROUNDINGS] = {
        [RUNNING] = {1, {VV_ISSUE_NO_ROOT_ENDED}},
        [SEGMENT_MISSING] = {2, {VV_ISSUE_MISSING_SEGMENT, VV_ISSUE_GROUP_COUNT}},
    };
    memcpy(ret, by[how].kinds, sizeof by[how].kinds);
    return by[how].n;
}

START_TEST(facts_in_every_surrounding)
{
    bool is_dependency;
    for (surrounding how = WHOLE; how < SURROUNDINGS; how++) {
        test_store t;
        test_store_begin(&t);
        now = &t;
        fold_case c = {0};
        cases[_i].make(&c);
        is_dependency = c.issue_count != 0;
        const char *error = how == WHOLE || !is_dependency ? c.error : NULL;
        vv_fold *f = fold_one(&t, &c, how);
        ck_assert_msg(f->failed == (error != NULL), "%s, %d: failed is %d (%s)", cases[_i].name, how, f->failed,
                      f->error.msg);
        if (error) {
            ck_assert_str_eq(f->error.name, error);
        } else {
            vv_issue_kind want[FACTS + 2];
            size_t n = surrounding_issues(how, want);
            for (size_t i = 0; i < c.issue_count; i++)
                want[n++] = c.issues[i];
            ck_assert_msg(f->issue_count == n, "%s, %d: %zu issues, not %zu", cases[_i].name, how, f->issue_count, n);
            for (size_t i = 0; i < n; i++)
                ck_assert_int_eq(f->issues[i].kind, want[i]);
            ck_assert_int_eq(f->complete, n == 0 && how != RUNNING);
        }
        vv_fold_free(f);
        test_store_done(&t);
    }
}
END_TEST

START_TEST(runtime_id_of_the_highest_ordinal)
{
    static const struct {
        const char *name;
        int start; /* ordinal of the span start's id, -1 = it has none */
        uint32_t ordinals[3];
        uint8_t want; /* 9 the start's, else the number of the annotation */
        bool start_last;
    } rows[] = {
        {"only the start's", 0, {0}, 9, false},
        {"a tie: the start's", 0, {0, 0, 0}, 9, false},
        {"a tie: the start's, folded last", 0, {0, 0, 0}, 9, true},
        {"higher than the start's", 0, {0, 2, 1}, 2, false},
        {"higher than the start's, folded last", 0, {0, 2, 1}, 2, true},
        {"a tie without the start's", -1, {3, 3, 3}, 1, false},
        {"the highest in the middle", -1, {3, 7, 5}, 2, false},
        {"the start's is highest", 9, {3, 7, 5}, 9, true},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        test_store t;
        test_store_begin(&t);
        now = &t;
        fold_case c = {0};
        vv_fact start = span_start(1, 1);
        if (rows[i].start >= 0)
            start = with_id(start, (uint32_t)rows[i].start, 9);
        if (!rows[i].start_last)
            add(&c, start);
        for (uint8_t k = 0; k < 3 && i > 0; k++)
            add(&c, runtime_id(1, rows[i].ordinals[k], k + 1));
        if (rows[i].start_last)
            add(&c, start);
        vv_fold *f = fold_one(&t, &c, WHOLE);
        ck_assert(!f->failed && f->span_count == 1 && f->spans[0].has_runtime_id);
        ck_assert_msg(f->spans[0].runtime_id.b[0] == rows[i].want, "%s: %d", rows[i].name, f->spans[0].runtime_id.b[0]);
        vv_fold_free(f);
        test_store_done(&t);
    }
}
END_TEST

START_TEST(thread_issues)
{
    test_store t;
    test_store_begin(&t);
    now = &t;
    fold_case c = {0};
    add(&c, thread_end(9));          /* no start, and nothing else is checked for it */
    add(&c, thread_start(1, 0, 0));  /* the root */
    add(&c, thread_start(2, 1, 1));  /* fine */
    add(&c, thread_start(3, 9, 1));  /* a parent without start */
    add(&c, thread_start(4, 77, 0)); /* an unknown parent, and a second root */
    add(&c, thread_start(5, 5, 1));  /* its own parent */
    add(&c, thread_start(6, 0, 1));  /* spawned by nobody known */
    static const struct {
        uint64_t thread;
        vv_thread_issue_kind kind;
    } want[] = {
        {3, VV_THREAD_MISSING_PARENT},
        {4, VV_THREAD_MISSING_PARENT},
        {4, VV_THREAD_ROOT_MISMATCH},
        {9, VV_THREAD_MISSING_START},
    };
    vv_fold *f = fold_one(&t, &c, WHOLE);
    ck_assert(!f->failed && f->complete);
    ck_assert_uint_eq(f->thread_issue_count, VV_ARRAY_LEN(want));
    for (size_t i = 0; i < VV_ARRAY_LEN(want); i++) {
        ck_assert_uint_eq(vv_thread_number(&f->thread_issues[i].thread), want[i].thread);
        ck_assert_int_eq(f->thread_issues[i].kind, want[i].kind);
    }
    ck_assert_str_eq(vv_thread_issue_name(VV_THREAD_ROOT_MISMATCH), "RootMismatch");
    vv_fold_free(f);
    test_store_done(&t);
}
END_TEST

/* A section that does not decode is the error, whatever clashes in front of it; of a foreign group it is nobody's. */
START_TEST(section_faults)
{
    static const struct {
        const char *name;
        uint64_t broken_root; /* whose evidence is cut short */
        bool clash;
        const char *want;
    } rows[] = {
        {"its own section", 1, false, "Decode"},
        {"a clash before the fault", 1, true, "Decode"},
        {"a foreign section", 2, false, NULL},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        test_store t;
        test_store_begin(&t);
        now = &t;
        vv_meta_record meta[] = {test_header(), test_started(&t, 1), test_started(&t, 2), test_ended(&t, 1, 1, 1, 1)};
        test_store_meta(&t, 1, 0, meta, VV_ARRAY_LEN(meta));
        vv_wr w = vv_wr_growing(1 << 20);
        vv_data_begin(&w, &t.euid, 1);
        for (uint64_t root = 1; root <= 2; root++) {
            test_group g;
            test_group_begin(&g);
            vv_cct_row row = test_context(1, true);
            test_group_row(&g, &row);
            vv_fact end = thread_end(1);
            test_group_fact(&g, &end);
            if (rows[i].clash)
                test_group_fact(&g, &end);
            g.fact_count += root == rows[i].broken_root; /* one more than there are */
            vv_thread_ref r = test_thread(&t, root);
            test_group_end(&g, &w, &r);
        }
        vv_data_end(&w, 2);
        test_store_segment(&t, VV_PLANE_DATA, 1, w);
        test_store_open(&t);
        vv_fold *f = test_load(&t, 1);
        ck_assert_msg(f->failed == (rows[i].want != NULL), "%s", rows[i].name);
        if (rows[i].want)
            ck_assert_str_eq(f->error.name, rows[i].want);
        vv_fold_free(f);
        test_store_done(&t);
    }
}
END_TEST

/* Facts 8 and 9 are read, though never written: they make no span. */
START_TEST(logs_and_scopes)
{
    test_store t;
    test_store_begin(&t);
    vv_meta_record meta[] = {test_started(&t, 1), test_ended(&t, 1, 1, 1, 1)};
    test_store_meta(&t, 1, 0, meta, VV_ARRAY_LEN(meta));
    test_group g;
    test_group_begin(&g);
    vv_call_ref call = test_call(&t, 1, 5);
    vv_wr log = vv_wr_growing(256), scope = vv_wr_growing(256);
    vv_wr_u8(&log, 1);
    vv_wr_bytes(&log, call.b, sizeof call.b);
    vv_wr_u64(&log, 1234);
    vv_wr_bytes(&log, "\1\0\0\0\0\0\0\0\4info", 13); /* level */
    vv_wr_bytes(&log, "\0\0\0\0\0\1\0\1\0", 9);        /* no site, column or texts; two lost values */
    vv_wr_bytes(&scope, call.b, sizeof call.b);
    vv_wr_bytes(&scope, "\0\1\0", 3);
    vv_wr_u8(&g.facts, VV_FACT_LOG);
    vv_wr_u32(&g.facts, (uint32_t)log.len);
    vv_wr_bytes(&g.facts, log.buf, log.len);
    vv_wr_u8(&g.facts, VV_FACT_CALL_SCOPE);
    vv_wr_u32(&g.facts, (uint32_t)scope.len);
    vv_wr_bytes(&g.facts, scope.buf, scope.len);
    g.fact_count = 2;
    vv_wr w = vv_wr_growing(1 << 20);
    vv_thread_ref root = test_thread(&t, 1);
    vv_data_begin(&w, &t.euid, 1);
    test_group_end(&g, &w, &root);
    vv_data_end(&w, 1);
    test_store_segment(&t, VV_PLANE_DATA, 1, w);
    vv_wr_done(&log);
    vv_wr_done(&scope);
    test_store_open(&t);
    vv_fold *f = test_load(&t, 1);
    ck_assert_msg(!f->failed && f->complete, "%s", f->error.msg);
    ck_assert_uint_eq(f->span_count, 0);
    ck_assert_uint_eq(f->log_count, 1);
    ck_assert_uint_eq(f->logs[0].timestamp_ms, 1234);
    ck_assert(f->logs[0].level.present && vv_str_eq(f->logs[0].level.s, vv_cstr("info")) &&
              !f->logs[0].message.present);
    ck_assert_uint_eq(f->scope_count, 1);
    vv_fold_free(f);
    test_store_done(&t);
}
END_TEST

/* Rows add up by key over groups and segments, with saturation marked. */
START_TEST(counters_add_up)
{
    test_store t;
    test_store_begin(&t);
    now = &t;
    vv_meta_record meta[] = {test_header(), test_started(&t, 1), test_ended(&t, 1, 1, 3, 3)};
    test_store_meta(&t, 1, 0, meta, VV_ARRAY_LEN(meta));
    for (uint64_t seq = 1; seq <= 3; seq++) {
        vv_wr w = vv_wr_growing(1 << 20);
        vv_data_begin(&w, &t.euid, seq);
        test_group g;
        test_group_begin(&g);
        g.health = seq == 3 ? VV_HEALTH_SELF_UNDERFLOW : 0;
        vv_cct_row row = test_context(1, seq == 2);
        row.counters.started = seq;
        row.counters.inclusive_ns = seq == 3 ? ~(vv_u128)0 : 5;
        test_group_row(&g, &row);
        test_group_row(&g, &row);
        test_group_overflow(&g, 1, 2, 10);
        vv_thread_ref root = test_thread(&t, 1);
        test_group_end(&g, &w, &root);
        vv_data_end(&w, 1);
        test_store_segment(&t, VV_PLANE_DATA, seq, w);
    }
    test_store_open(&t);
    vv_fold *f = test_load(&t, 1);
    ck_assert(!f->failed && f->complete);
    ck_assert_uint_eq(f->groups, 3);
    ck_assert_uint_eq(f->context_count, 1);
    ck_assert(f->contexts[0].defined && f->contexts[0].tuple.function_id == 1);
    ck_assert_uint_eq(f->contexts[0].counters.started, 12);
    ck_assert(f->contexts[0].counters.inclusive_ns == ~(vv_u128)0);
    ck_assert_uint_eq(f->overflow[1][2].started, 30);
    ck_assert(f->overflow_present[1][2] && !f->overflow_present[1][1]);
    ck_assert_uint_eq(f->health, VV_HEALTH_SELF_UNDERFLOW | VV_HEALTH_COUNTER_SATURATED);
    vv_fold_free(f);
    test_store_done(&t);
}
END_TEST

/* A definition that repeats a known one needs no check of its own; one that differs by any field does, in any order. */
START_TEST(repeated_definitions_keep_their_key)
{
    static const struct {
        const char *name;
        int bad; /* which of the rows has the wrong tuple, -1 = none */
        bool delta_first;
    } rows[] = {{"all alike", -1, false}, {"the first", 0, false}, {"the second", 1, false}, {"the third", 2, true},
                {"alike behind a delta", -1, true}, {"the first one behind a delta", 1, true}};
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        test_store t;
        test_store_begin(&t);
        vv_meta_record meta[] = {test_started(&t, 1), test_ended(&t, 1, 1, 3, 3)};
        test_store_meta(&t, 1, 0, meta, VV_ARRAY_LEN(meta));
        for (int k = 0; k < 3; k++) {
            vv_wr w = vv_wr_growing(1 << 20);
            vv_data_begin(&w, &t.euid, (uint64_t)k + 1);
            test_group g;
            test_group_begin(&g);
            vv_cct_row row = test_context(1, !(rows[i].delta_first && k == 0));
            if (k == rows[i].bad)
                row.tuple.function_id++;
            test_group_row(&g, &row);
            vv_thread_ref r = test_thread(&t, 1);
            test_group_end(&g, &w, &r);
            vv_data_end(&w, 1);
            test_store_segment(&t, VV_PLANE_DATA, (uint64_t)k + 1, w);
        }
        test_store_open(&t);
        vv_fold *f = test_load(&t, 1);
        ck_assert_msg(f->failed == (rows[i].bad >= 0), "%s", rows[i].name);
        if (f->failed)
            ck_assert_str_eq(f->error.name, "Decode");
        else
            ck_assert_uint_eq(f->contexts[0].counters.started, 3 * test_context(1, true).counters.started);
        vv_fold_free(f);
        test_store_done(&t);
    }
}
END_TEST

START_TEST(parents_are_found)
{
    test_store t;
    test_store_begin(&t);
    vv_meta_record meta[] = {test_started(&t, 1), test_ended(&t, 1, 1, 1, 1)};
    test_store_meta(&t, 1, 0, meta, VV_ARRAY_LEN(meta));
    vv_cct_row root = test_context(1, true), child = test_context(2, true), lost = test_context(3, true);
    child.tuple.has_parent = lost.tuple.has_parent = true;
    child.tuple.parent = root.key;
    memset(lost.tuple.parent.b, 0xee, sizeof lost.tuple.parent.b);
    vv_context_key_of(&child.key, &child.tuple);
    vv_context_key_of(&lost.key, &lost.tuple);
    vv_wr w = vv_wr_growing(1 << 20);
    vv_data_begin(&w, &t.euid, 1);
    test_group g;
    test_group_begin(&g);
    test_group_row(&g, &child);
    test_group_row(&g, &lost);
    test_group_row(&g, &root);
    vv_thread_ref r = test_thread(&t, 1);
    test_group_end(&g, &w, &r);
    vv_data_end(&w, 1);
    test_store_segment(&t, VV_PLANE_DATA, 1, w);
    test_store_open(&t);
    vv_fold *f = test_load(&t, 1);
    ck_assert_uint_eq(f->context_count, 3);
    ck_assert_uint_eq(f->contexts[vv_fold_find_context(f, &child.key)].parent, vv_fold_find_context(f, &root.key));
    ck_assert_uint_eq(f->contexts[vv_fold_find_context(f, &lost.key)].parent, VV_MAP_NONE);
    ck_assert_uint_eq(f->contexts[vv_fold_find_context(f, &root.key)].parent, VV_MAP_NONE);
    uint32_t *order = vv_fold_order_contexts(f);
    for (int i = 0; i < 2; i++)
        ck_assert_int_lt(memcmp(&f->contexts[order[i]].key, &f->contexts[order[i + 1]].key, 32), 0);
    free(order);
    vv_fold_free(f);
    test_store_done(&t);
}
END_TEST

START_TEST(memory_is_bounded)
{
    test_store t;
    test_store_begin(&t);
    now = &t;
    vv_meta_record meta[] = {test_started(&t, 1), test_ended(&t, 1, 1, 1, 1)};
    test_store_meta(&t, 1, 0, meta, VV_ARRAY_LEN(meta));
    vv_wr w = vv_wr_growing(1 << 22);
    vv_data_begin(&w, &t.euid, 1);
    test_group g;
    test_group_begin(&g);
    for (uint32_t i = 1; i <= 2000; i++) {
        vv_cct_row row = test_context(i, true);
        test_group_row(&g, &row);
    }
    vv_thread_ref root = test_thread(&t, 1);
    test_group_end(&g, &w, &root);
    vv_data_end(&w, 1);
    test_store_segment(&t, VV_PLANE_DATA, 1, w);
    test_store_open(&t);
    const vv_stream *s = &t.store->streams[0];
    vv_fold *f = NULL;
    vv_error err = {0};
    vv_code last = VV_ERR_LIMIT;
    for (size_t max = 1 << 12; max <= 1 << 22; max *= 2) {
        vv_budget budget;
        vv_budget_init(&budget, max);
        vv_code rc = vv_fold_load(&f, t.store, s, vv_stream_execution_at(s, 0), &budget, &err);
        ck_assert(rc == VV_OK || rc == VV_ERR_LIMIT);
        if (rc == VV_OK) {
            ck_assert_uint_le(f->bytes, max);
            ck_assert_uint_eq(budget.used, f->bytes);
            /* One that has ended is loaded afresh, in the same room. */
            ck_assert(vv_fold_advance(&f, t.store, s, vv_stream_execution_at(s, 0), &err) == VV_OK);
            ck_assert_uint_eq(budget.used, f->bytes);
            vv_fold_free(f);
        }
        ck_assert_uint_eq(budget.used, 0);
        vv_error_clear(&err);
        last = rc;
    }
    ck_assert_int_eq(last, VV_OK);
    test_store_done(&t);
}
END_TEST

/* A fold brought up to date step by step equals one loaded at the end. */
START_TEST(advancing_equals_loading)
{
    vv_fold *f = NULL;
    test_store looks[8];
    enum { STEPS = 6 };
    for (uint64_t step = 1; step <= STEPS; step++) {
        test_store *t = &looks[step - 1];
        test_store_begin(t);
        now = t;
        vv_meta_record start[] = {test_header(), test_started(t, 1), test_started(t, 2)};
        test_store_meta(t, 1, 0, start, VV_ARRAY_LEN(start));
        for (uint64_t seq = 1; seq <= step; seq++) {
            if (seq == 3 && _i)
                continue; /* a missing one: from then on folds are loaded afresh */
            test_store_data(t, seq, seq == 2 ? 2 : 1);
        }
        vv_meta_record end = test_ended(t, 1, 1, step, step - 1 - (unsigned)_i);
        if (step == STEPS)
            test_store_meta(t, 2, step, &end, 1);
        test_store_open(t);
        const vv_stream *s = &t->store->streams[0];
        vv_thread_ref root = test_thread(t, 1);
        const vv_execution *e = vv_stream_execution(s, &root);
        vv_error err = {0};
        if (!f)
            ck_assert(vv_fold_load(&f, t->store, s, e, NULL, &err) == VV_OK);
        else
            ck_assert(vv_fold_advance(&f, t->store, s, e, &err) == VV_OK);
        vv_fold *whole = test_load(t, 1);
        ck_assert_uint_eq(f->groups, whole->groups);
        ck_assert_uint_eq(f->context_count, whole->context_count);
        ck_assert_uint_eq(f->contexts[0].counters.started, whole->contexts[0].counters.started);
        ck_assert_uint_eq(f->issue_count, whole->issue_count);
        for (size_t i = 0; i < f->issue_count; i++)
            ck_assert_int_eq(f->issues[i].kind, whole->issues[i].kind);
        ck_assert_ptr_eq(f->execution, e);
        vv_fold_free(whole);
    }
    vv_fold_free(f);
    for (int i = 0; i < STEPS; i++)
        test_store_done(&looks[i]);
}
END_TEST

int main(void)
{
    TCase *c = test_case("rules", 0);
    tcase_add_loop_test(c, facts_in_every_surrounding, 0, VV_ARRAY_LEN(cases));
    tcase_add_test(c, runtime_id_of_the_highest_ordinal);
    tcase_add_test(c, thread_issues);
    tcase_add_test(c, section_faults);
    tcase_add_test(c, logs_and_scopes);
    tcase_add_test(c, counters_add_up);
    tcase_add_test(c, parents_are_found);
    tcase_add_test(c, repeated_definitions_keep_their_key);
    tcase_add_test(c, memory_is_bounded);
    tcase_add_loop_test(c, advancing_equals_loading, 0, 2);
    return test_run();
}
