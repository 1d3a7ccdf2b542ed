/*
 * Each reason for which a part of exact evidence is lost, provoked by itself: that term of the equations moves and no
 * other, all equations hold, the 26 counters and what a reader finds agree with the terms, nothing dangles, and the
 * program's own calls are counted as before.
 */
#include "config.h"

#include "runtime/session.h"

#include "tests/runtime/evidence_rig.h"

uint64_t size_of_files;

static unsigned failing_reallocs;
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n)
{
    if (!failing_reallocs)
        return __real_realloc(p, n);
    failing_reallocs--;
    return NULL;
}

/* ---- each reason ---- */

static void start_calls_producer(run *r)
{
    for (unsigned i = 0; i < 3; i++) /* all the marks there are at first */
        call_for(r, 1, 0);
    deny(r, VV_OWN_CALLS, ALWAYS);
    call_for(r, 2, 0);
    allow(r);
    set_id(r, 9); /* means nothing: the call is one like others */
    for (unsigned i = 0; i < 4; i++)
        end(r);
}

static void start_calls_consumer(run *r)
{
    call_for(r, 1, 0);
    call_for(r, 1, 0);
    settle_denied(r, VV_OWN_CALLS);
    end(r);
    end(r);
}

static void start_calls_frame(run *r)
{
    for (unsigned i = 0; i < 31; i++)
        varve_call_begin(r->t, r->f[3], 0);
    r->calls += 31;
    call_for(r, 1, 0);
    settle_denied(r, VV_OWN_CALLS);
    for (unsigned i = 0; i < 32; i++)
        end(r);
}

static void whole_span(run *r)
{
    call_for(r, 1, 0);
    end(r);
}

static void start_disk(run *r)
{
    whole_span(r);
    lose(r, ENOSPC);
}

static void start_publish(run *r)
{
    whole_span(r);
    lose(r, EIO);
}

static void start_publish_later_end(run *r)
{
    call_for(r, 1, 0);
    lose(r, EIO);
    end(r);
}

static void start_queue(run *r)
{
    call_for(r, 1, 0);
    settle_without_facts(r);
    end(r);
}

/* A child that the consumer has no memory for. */
static varve_thread *unknown_child(run *r)
{
    varve_thread *t = varve_thread_spawn(r->t, 0, 0, NULL, 0);
    varve_thread_start(t, varve_ticks());
    return t;
}

static void on_child(run *r, varve_thread *t, unsigned roles)
{
    varve_policy p = by_hand(roles);
    r->calls++;
    varve_call_begin_as(t, r->f[1], 0, varve_ticks(), &p);
}

static void start_join(run *r)
{
    varve_thread *t = unknown_child(r);
    on_child(r, t, 0);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    settle_denied(r, VV_OWN_POPULATION);
}

static void start_transport(run *r)
{
    uint64_t *e = block_ring(r);
    call_for(r, 1, VARVE_ALL_ROLES);
    ck_assert_uint_eq(varve_call_roles(r->t), 0);
    ck_assert_ptr_null(varve_value_begin(r->t, VARVE_INPUT));
    end(r);
    unblock_ring(r, e);
}

static void open_span(run *r)
{
    call_for(r, 1, VARVE_ALL_ROLES & ~VARVE_OUTPUT & ~VARVE_INPUT);
    ck_assert(publish(r->g.session));
}

static void end_disk(run *r)
{
    open_span(r);
    end(r);
    lose(r, ENOSPC);
}

static void end_publish(run *r)
{
    open_span(r);
    end(r);
    lose(r, EIO);
}

static void end_queue(run *r)
{
    open_span(r);
    end(r);
    settle_without_facts(r);
}

static void end_queue_with_start(run *r)
{
    call_for(r, 1, 0);
    settle(r->g.session);
    end(r);
    /* The bytes that wait are kept, but there is no room for more. */
    vv_facts *q = &r->g.session->decoder.execs->facts;
    size_t cap = q->cap;
    q->cap = q->len;
    settle_denied(r, VV_OWN_EVIDENCE);
    q->cap = cap;
}

static void end_join(run *r)
{
    varve_thread *t = varve_thread_spawn(r->t, 0, 0, NULL, 0);
    varve_thread_start(t, varve_ticks());
    on_child(r, t, 0);
    ck_assert(publish(r->g.session));
    uint64_t *e = block_ring(r);
    varve_thread_end(t, VARVE_THREAD_COMPLETED); /* nothing more is heard of the thread */
    unblock_ring(r, e);
}

static void end_transport(run *r)
{
    open_span(r);
    uint64_t *e = block_ring(r);
    end(r);
    unblock_ring(r, e);
}

static void end_transport_with_start(run *r)
{
    call_for(r, 1, 0);
    uint64_t *e = block_ring(r);
    end(r);
    unblock_ring(r, e);
}

static void id_disk(run *r)
{
    set_id(r, 1);
    lose(r, ENOSPC);
}

static void id_publish(run *r)
{
    set_id(r, 1);
    lose(r, EIO);
}

static void id_queue(run *r)
{
    set_id(r, 1);
    settle_without_facts(r);
}

static void id_transport(run *r)
{
    uint64_t *e = block_ring(r);
    set_id(r, 1);
    unblock_ring(r, e);
}

static void id_join(run *r)
{
    varve_thread *t = unknown_child(r);
    on_child(r, t, 0);
    uint8_t id[16] = {3};
    varve_call_set_runtime_id(t, 0, id);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    settle_denied(r, VV_OWN_POPULATION);
}

static void id_ordinals(run *r)
{
    r->g.session->decoder.execs->threads->spans[0].ordinal = UINT32_MAX;
    set_id(r, 1);
    settle(r->g.session);
}

static void id_start(run *r)
{
    call_for(r, 1, 0);
    settle_without_facts(r);
    set_id(r, 1);
    end(r);
}

/* A call of the root's that has an input to give. */
static void input_call(run *r)
{
    call_for(r, 1, VARVE_INPUT);
    ck_assert(publish(r->g.session));
}

/* A stranger's file has the name that this value's object will have. */
static void occupy(run *r, const void *body, size_t n)
{
    vv_cid cid;
    vv_cid_of(&cid, VV_CODEC_VALUE, body, n);
    char at[PATH_MAX], path[VV_CAS_PATH];
    vv_cas_path(path, &cid);
    snprintf(at, sizeof at, "%s/%s", r->g.store.root, path);
    *strrchr(at, '/') = 0;
    ck_assert(mkdir(at, 0777) == 0 || errno == EEXIST);
    snprintf(at, sizeof at, "%s/%s", r->g.store.root, path);
    FILE *f = fopen(at, "w");
    ck_assert_ptr_nonnull(f);
    fclose(f);
}

static void value_conflict(run *r)
{
    input_call(r);
    occupy(r, "\x20\x2a", 2);
    give_int(r->t, VARVE_INPUT, 42);
    end(r);
    publish(r->g.session);
}

static void value_write(run *r)
{
    input_call(r);
    give_int(r->t, VARVE_INPUT, 42);
    end(r);
    fail_next(r, "BAMLVAL1", VV_STEP_WRITE, EIO, 1);
    publish(r->g.session);
}

/* The session closes: one waits, one comes, and both are too late. */
static void value_late(run *r)
{
    _Atomic uint64_t *until = &r->g.session->decoder.objects.until_ns;
    input_call(r);
    give_int(r->t, VARVE_INPUT, 42);
    end(r);
    settle(r->g.session);
    atomic_store(until, 1);
    input_call(r);
    give_int(r->t, VARVE_INPUT, 43);
    end(r);
    ck_assert(publish(r->g.session));
    atomic_store(until, 0);
}

static void value_unlisted(run *r)
{
    input_call(r);
    give_int(r->t, VARVE_INPUT, 42);
    end(r);
    settle(r->g.session);
    fail_next(r, "BAMLVAL1", VV_STEP_WRITE, EIO, 1);
    failing_reallocs = 1; /* what is lost can't be listed */
    vv_writer_cycle(&r->g.session->writer);
    ck_assert_uint_eq(failing_reallocs, 0);
}

static void value_copy(run *r)
{
    input_call(r);
    varve_capture *c = varve_value_begin(r->t, VARVE_INPUT);
    varve_put_int(c, 1);
    varve_capture_fail(c);
    varve_capture_end(c);
    end(r);
}

static void value_not_given(run *r)
{
    input_call(r);
    end(r);
}

static void value_encode(run *r)
{
    input_call(r);
    varve_capture *c = varve_value_begin(r->t, VARVE_INPUT);
    varve_list_begin(c);
    varve_capture_end(c);
    end(r);
}

static void value_large(run *r)
{
    input_call(r);
    varve_capture *c = varve_value_begin(r->t, VARVE_INPUT);
    size_t n = r->g.session->sizing.single_value + 1;
    char *text = calloc(1, n);
    varve_put_text(c, text, n);
    free(text);
    varve_capture_end(c);
    end(r);
}

static void value_memory(run *r)
{
    input_call(r);
    deny(r, VV_OWN_VALUES, ALWAYS);
    ck_assert_ptr_null(varve_value_begin(r->t, VARVE_INPUT));
    allow(r);
    end(r);
}

/* Denied as it grows. */
static void value_growth(run *r)
{
    input_call(r);
    varve_capture *c = varve_value_begin(r->t, VARVE_INPUT);
    deny(r, VV_OWN_VALUES, ALWAYS);
    static const char text[4000];
    varve_put_text(c, text, sizeof text);
    allow(r);
    varve_capture_end(c);
    end(r);
}

/* Denied when it is to wait for its publication. */
static void value_entry(run *r)
{
    input_call(r);
    give_int(r->t, VARVE_INPUT, 42);
    end(r);
    settle_denied(r, VV_OWN_VALUES);
}

static void value_disk(run *r)
{
    input_call(r);
    give_int(r->t, VARVE_INPUT, 42);
    settle(r->g.session);
    fail_next(r, "BAMLVAL1", VV_STEP_WRITE, ENOSPC, 1);
    publish(r->g.session);
}

static void value_publish(run *r)
{
    input_call(r);
    give_int(r->t, VARVE_INPUT, 42);
    lose(r, EIO);
    end(r);
}

static void value_queue(run *r)
{
    input_call(r);
    give_int(r->t, VARVE_INPUT, 42);
    settle_without_facts(r);
    end(r);
}

static void value_transport(run *r)
{
    input_call(r);
    uint64_t *e = block_ring(r);
    give_int(r->t, VARVE_INPUT, 42);
    unblock_ring(r, e);
    end(r);
}

static void value_start(run *r)
{
    call_for(r, 1, VARVE_INPUT);
    settle_without_facts(r);
    give_int(r->t, VARVE_INPUT, 42);
    end(r);
}

static void value_join(run *r)
{
    varve_thread *t = unknown_child(r);
    on_child(r, t, VARVE_INPUT);
    give_int(t, VARVE_INPUT, 42);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    settle_denied(r, VV_OWN_POPULATION);
}

static void error_call(run *r)
{
    call_for(r, 1, VARVE_ERROR);
    ck_assert(publish(r->g.session));
}

/* An error that the call itself catches: no link. */
static void error_disk(run *r)
{
    error_call(r);
    throw_up(r, 0);
    lose(r, ENOSPC);
}

static void error_publish(run *r)
{
    error_call(r);
    throw_up(r, 0);
    lose(r, EIO);
    end(r);
}

static void error_transport(run *r)
{
    error_call(r);
    uint64_t *e = block_ring(r);
    throw_up(r, 0);
    unblock_ring(r, e);
    end(r);
}

static void error_transport_linked(run *r)
{
    error_call(r);
    uint64_t *e = block_ring(r);
    throw_up(r, 1);
    unblock_ring(r, e);
    end_badly(r);
}

static void error_queue(run *r)
{
    error_call(r);
    throw_up(r, 0);
    settle_without_facts(r);
    end(r);
}

/* The second span is what is ended, and is told. */
static void error_queue_linked(run *r)
{
    error_call(r);
    throw_up(r, 1);
    settle_without_facts(r);
    end_badly(r);
}

static void error_start(run *r)
{
    call_for(r, 1, VARVE_ERROR);
    settle_without_facts(r);
    throw_up(r, 0);
    end(r);
}

static void error_join(run *r)
{
    error_call(r);
    varve_error e = {.up = 1000, .ends = 1}; /* nobody throws it */
    varve_capture *c = varve_error_begin(r->t, &e);
    varve_put_int(c, 1);
    varve_capture_end(c);
    end_badly(r);
}

static void error_join_thread(run *r)
{
    varve_thread *t = unknown_child(r);
    on_child(r, t, VARVE_ERROR);
    varve_capture_end(varve_error_begin(t, &(varve_error){.ends = 0}));
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    settle_denied(r, VV_OWN_POPULATION);
}

static void error_value_conflict(run *r)
{
    error_call(r);
    occupy(r, "\x1a\x02no", 4);
    throw_up(r, 1);
    end_badly(r);
    publish(r->g.session);
}

static void error_value_write(run *r)
{
    error_call(r);
    throw_up(r, 1);
    end_badly(r);
    fail_next(r, "BAMLVAL1", VV_STEP_RENAME, EIO, 1);
    publish(r->g.session);
}

static void error_value_unlisted(run *r)
{
    error_call(r);
    throw_up(r, 1);
    end_badly(r);
    settle(r->g.session);
    fail_next(r, "BAMLVAL1", VV_STEP_WRITE, EIO, 1);
    failing_reallocs = 1;
    vv_writer_cycle(&r->g.session->writer);
    ck_assert_uint_eq(failing_reallocs, 0);
}

static void error_value_copy(run *r)
{
    error_call(r);
    varve_capture *c = varve_error_begin(r->t, &(varve_error){.ends = 1});
    varve_capture_fail(c);
    varve_capture_end(c);
    end_badly(r);
}

static void error_value_encode(run *r)
{
    error_call(r);
    varve_capture_end(varve_error_begin(r->t, &(varve_error){.ends = 1})); /* no value at all */
    end_badly(r);
}

static void error_value_large(run *r)
{
    error_call(r);
    varve_capture *c = varve_error_begin(r->t, &(varve_error){.ends = 1});
    size_t n = r->g.session->sizing.single_value + 1;
    char *text = calloc(1, n);
    varve_put_text(c, text, n);
    free(text);
    varve_capture_end(c);
    end_badly(r);
}

static void error_value_memory(run *r)
{
    error_call(r);
    deny(r, VV_OWN_VALUES, ALWAYS);
    ck_assert_ptr_null(varve_error_begin(r->t, &(varve_error){.ends = 1}));
    allow(r);
    end_badly(r);
}

static void link_disk(run *r)
{
    error_call(r);
    throw_up(r, 1);
    ck_assert(publish(r->g.session));
    end_badly(r);
    lose(r, ENOSPC);
}

static void link_publish(run *r)
{
    error_call(r);
    throw_up(r, 1);
    ck_assert(publish(r->g.session));
    end_badly(r);
    lose(r, EIO);
}

/* No memory for the link, then some for the end. */
static void link_queue(run *r)
{
    error_call(r);
    throw_up(r, 1);
    ck_assert(publish(r->g.session));
    end_badly(r);
    settle_without_facts_times(r, 2); /* General, and Manual */
}

static void link_start(run *r)
{
    call_for(r, 1, VARVE_ERROR);
    call_for(r, 2, VARVE_ERROR);
    throw_up(r, 2);
    /* The start of the outer one is lost, not that of the inner. */
    settle_without_facts_times(r, 2); /* General, and Manual */
    end_badly(r);
    end_badly(r);
}

static void link_transport(run *r)
{
    error_call(r);
    throw_up(r, 1);
    ck_assert(publish(r->g.session));
    uint64_t *e = block_ring(r);
    end_badly(r);
    unblock_ring(r, e);
}

/* The error is refused, then that the call will end by it, then there is room for its end. */
static void link_transport_alone(run *r)
{
    error_call(r);
    uint64_t *e = block_ring(r);
    throw_up(r, 1);
    r->denials = 1;
    end_badly(r);
    ck_assert_uint_eq(r->denials, 0);
    unblock_ring(r, e);
}

static void nothing(run *r)
{
    call(r, 1, &llm);
    give_int(r->t, VARVE_INPUT, 1);
    set_id(r, 1);
    call(r, 2, NULL);
    throw_up(r, 2);
    end_badly(r);
    end_badly(r);
}

#define LOST(part, reason) VV_ACCOUNT_##part##_LOST_##reason

typedef struct {
    const char *name;
    void (*provoke)(run *r);
    struct {
        vv_account term;
        uint64_t n;
    } lost[6];
} loss_case;

static const loss_case cases[] = {
    {"nothing", nothing, {{0}}},
    {"start: marks", start_calls_producer, {{LOST(START, CALLS), 1}}},
    {"start: spans", start_calls_consumer, {{LOST(START, CALLS), 1}}},
    {"start: frames", start_calls_frame, {{LOST(START, CALLS), 1}}},
    {"start: disk", start_disk, {{LOST(START, DISK), 1}, {LOST(VALUE, DISK), 1}, {LOST(END, DISK), 1}}},
    {"start: queue", start_queue, {{LOST(START, QUEUE), 1}}},
    {"start: publish", start_publish, {{LOST(START, PUBLISH), 1}}},
    {"start: publish, then its end", start_publish_later_end, {{LOST(START, PUBLISH), 1}}},
    {"start: join", start_join, {{LOST(START, JOIN), 1}}},
    {"start: transport", start_transport, {{LOST(START, TRANSPORT), 1}}},
    {"end: disk", end_disk, {{LOST(END, DISK), 2}, {LOST(VALUE, DISK), 1}}},
    {"end: publish", end_publish, {{LOST(END, PUBLISH), 1}}},
    {"end: queue", end_queue, {{LOST(END, QUEUE), 1}}},
    {"end: queue, of a start that waits", end_queue_with_start, {{LOST(END, QUEUE), 1}}},
    {"end: join", end_join, {{LOST(END, JOIN), 1}}},
    {"end: transport", end_transport, {{LOST(END, TRANSPORT), 1}}},
    {"end: transport, of a start that waits", end_transport_with_start, {{LOST(END, TRANSPORT), 1}}},
    {"id: disk", id_disk, {{LOST(ID, DISK), 1}, {LOST(VALUE, DISK), 1}, {LOST(END, DISK), 1}}},
    {"id: publish", id_publish, {{LOST(ID, PUBLISH), 1}}},
    {"id: queue", id_queue, {{LOST(ID, QUEUE), 1}}},
    {"id: transport", id_transport, {{LOST(ID, TRANSPORT), 1}}},
    {"id: join", id_join, {{LOST(ID, JOIN), 1}, {LOST(START, JOIN), 1}}},
    {"id: ordinals", id_ordinals, {{LOST(ID, JOIN), 1}}},
    {"id: start", id_start, {{LOST(ID, START), 1}, {LOST(START, QUEUE), 1}}},
    {"value: conflict", value_conflict, {{LOST(VALUE, CAS_CONFLICT), 1}}},
    {"value: write", value_write, {{LOST(VALUE, CAS_WRITE), 1}}},
    {"value: late", value_late, {{LOST(VALUE, CAS_WRITE), 2}}},
    {"value: unlisted", value_unlisted, {{LOST(VALUE, UNAVAILABLE), 1}}},
    {"value: copy", value_copy, {{LOST(VALUE, COPY), 1}}},
    {"value: not given", value_not_given, {{LOST(VALUE, COPY), 1}}},
    {"value: encode", value_encode, {{LOST(VALUE, ENCODE), 1}}},
    {"value: too large", value_large, {{LOST(VALUE, TOO_LARGE), 1}}},
    {"value: memory", value_memory, {{LOST(VALUE, MEMORY), 1}}},
    {"value: growth", value_growth, {{LOST(VALUE, MEMORY), 1}}},
    {"value: entry", value_entry, {{LOST(VALUE, MEMORY), 1}}},
    {"value: disk", value_disk, {{LOST(VALUE, DISK), 2}, {LOST(END, DISK), 2}}},
    {"value: publish", value_publish, {{LOST(VALUE, PUBLISH), 1}}},
    {"value: queue", value_queue, {{LOST(VALUE, QUEUE), 1}}},
    {"value: transport", value_transport, {{LOST(VALUE, TRANSPORT), 1}}},
    {"value: start", value_start, {{LOST(VALUE, START), 1}, {LOST(START, QUEUE), 1}}},
    {"value: join", value_join, {{LOST(VALUE, JOIN), 1}, {LOST(START, JOIN), 1}}},
    {"error: disk", error_disk, {{LOST(ERROR, DISK), 1}, {LOST(VALUE, DISK), 1}, {LOST(END, DISK), 2}}},
    {"error: publish", error_publish, {{LOST(ERROR, PUBLISH), 1}}},
    {"error: transport", error_transport, {{LOST(ERROR, TRANSPORT), 1}}},
    {"error: transport, with a link", error_transport_linked, {{LOST(ERROR, TRANSPORT), 1}}},
    {"error: queue", error_queue, {{LOST(ERROR, QUEUE), 1}}},
    {"error: queue, with a link", error_queue_linked, {{LOST(ERROR, QUEUE), 1}}},
    {"error: start", error_start, {{LOST(ERROR, START), 1}, {LOST(START, QUEUE), 1}}},
    {"error: join", error_join, {{LOST(ERROR, JOIN), 1}}},
    {"error: join, of a thread", error_join_thread, {{LOST(ERROR, JOIN), 1}, {LOST(START, JOIN), 1}}},
    {"error value: conflict", error_value_conflict, {{LOST(ERROR_VALUE, CAS_CONFLICT), 1}}},
    {"error value: write", error_value_write, {{LOST(ERROR_VALUE, CAS_WRITE), 1}}},
    {"error value: unlisted", error_value_unlisted, {{LOST(ERROR_VALUE, UNAVAILABLE), 1}}},
    {"error value: copy", error_value_copy, {{LOST(ERROR_VALUE, COPY), 1}}},
    {"error value: encode", error_value_encode, {{LOST(ERROR_VALUE, ENCODE), 1}}},
    {"error value: too large", error_value_large, {{LOST(ERROR_VALUE, TOO_LARGE), 1}}},
    {"error value: memory", error_value_memory, {{LOST(ERROR_VALUE, MEMORY), 1}}},
    {"link: disk", link_disk, {{LOST(LINK, DISK), 1}, {LOST(VALUE, DISK), 1}, {LOST(END, DISK), 2}}},
    {"link: publish", link_publish, {{LOST(LINK, PUBLISH), 1}, {LOST(END, PUBLISH), 1}}},
    {"link: queue", link_queue, {{LOST(LINK, QUEUE), 1}}},
    {"link: start", link_start, {{LOST(LINK, START), 1}, {LOST(START, QUEUE), 1}}},
    {"link: transport", link_transport, {{LOST(LINK, TRANSPORT), 1}, {LOST(END, TRANSPORT), 1}}},
    {"link: transport, then room", link_transport_alone, {{LOST(LINK, TRANSPORT), 1}, {LOST(ERROR, TRANSPORT), 1}}},
};

/* Terms that this writer never counts: the last column of docs/failures.md says why. */
static const vv_account never[] = {
    LOST(VALUE, ATTEMPT_TRANSPORT), LOST(ERROR_VALUE, ATTEMPT_TRANSPORT), LOST(ERROR_VALUE, TRANSPORT),
    LOST(ERROR_VALUE, PUBLISH),     LOST(ERROR_VALUE, DISK),              LOST(LINK, JOIN),
};

static bool is_evidence_loss(unsigned a)
{
    static const char *const of_others[] = {"await_lost.", "invocations_lost."};
    const char *name = vv_account_name((vv_account)a);
    for (size_t i = 0; i < VV_ARRAY_LEN(of_others); i++)
        if (strncmp(name, of_others[i], strlen(of_others[i])) == 0)
            return false;
    return vv_account_is_loss((vv_account)a);
}

static uint64_t expected(const loss_case *c, unsigned a)
{
    for (size_t i = 0; i < VV_ARRAY_LEN(c->lost) && c->lost[i].n; i++)
        if (c->lost[i].term == (vv_account)a)
            return c->lost[i].n;
    return 0;
}

static void check(const look *l, const vv_accounting *a, const char *name)
{
    found_evidence found;
    const char *bad = evidence_of(l, &found);
    ck_assert_msg(!*bad, "%s: %s", name, bad);
    bad = evidence_agrees(l, a, &found);
    ck_assert_msg(!*bad, "%s: %s", name, bad);
    ck_assert_msg(l->fold->issue_count == 0 && l->fold->complete, "%s: %zu issues", name, l->fold->issue_count);
    vv_accounting told;
    if (l->execution->has_terms) {
        ck_assert_msg(evidence_terms(l->execution, &told), "%s: a term is missing, or a loss of 0 is not", name);
        ck_assert_mem_eq(&told, a, sizeof told);
    }
}

START_TEST(gate_each_evidence_loss)
{
    const loss_case *c = &cases[_i];
    run r;
    begin(&r);
    c->provoke(&r);
    vv_accounting a;
    look *l = finish(&r, &a);
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        if (is_evidence_loss(i))
            ck_assert_msg(a.v[i] == expected(c, i), "%s: %s is %" PRIu64 ", not %" PRIu64, c->name,
                          vv_account_name((vv_account)i), a.v[i], expected(c, i));
    check(l, &a, c->name);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_CALLS_ATTEMPTED], r.calls);
    rig_remove(&r.g);
}
END_TEST

/* Each term of evidence has a case, or is one of those that never are. */
START_TEST(gate_every_evidence_loss_has_a_case)
{
    for (unsigned i = 0; i < VV_ACCOUNTS; i++) {
        bool known = !is_evidence_loss(i);
        for (size_t k = 0; k < VV_ARRAY_LEN(never); k++)
            known = known || never[k] == (vv_account)i;
        for (size_t k = 0; k < VV_ARRAY_LEN(cases); k++)
            known = known || expected(&cases[k], i);
        ck_assert_msg(known, "%s has no case", vv_account_name((vv_account)i));
    }
}
END_TEST

int main(void)
{
    TCase *c = test_case("evidence losses", 60);
    tcase_add_loop_test(c, gate_each_evidence_loss, 0, (int)VV_ARRAY_LEN(cases));
    tcase_add_test(c, gate_every_evidence_loss_has_a_case);
    return test_run();
}
