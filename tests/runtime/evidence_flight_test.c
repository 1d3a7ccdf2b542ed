/*
 * Facts that come while an earlier group of their execution is in flight, and rest on what is in it: sealed, as another
 * process holds the store's lock, or renamed, and the directory's sync is awaited. Then that group is committed, or
 * lost. Each combination by itself.
 */
#include "config.h"

#include "runtime/session.h"

#include <sys/file.h>

#include "tests/runtime/evidence_rig.h"

uint64_t size_of_files;

#define LOST(part, reason) VV_ACCOUNT_##part##_LOST_##reason
enum { LINK_START_UNCOMMITTED = 2, LINK_PUBLISH_FAILED = 4 };

static void nothing(run *r)
{
    (void)r;
}

static void open_call(run *r)
{
    call_for(r, 1, VARVE_ALL_ROLES);
}

static void open_error_call(run *r)
{
    call_for(r, 1, VARVE_ERROR);
}

static void two_error_calls(run *r)
{
    call_for(r, 1, VARVE_ERROR);
    ck_assert(publish(r->g.session));
    call_for(r, 2, VARVE_ERROR);
}

static void committed_error_call(run *r)
{
    call_for(r, 1, VARVE_ERROR);
    ck_assert(publish(r->g.session));
    throw_up(r, 1);
}

static void all_parts(run *r)
{
    set_id(r, 1);
    give_int(r->t, VARVE_INPUT, 4);
    throw_up(r, 1);
    end_badly(r);
}

static void open_and_throw(run *r)
{
    open_error_call(r);
    throw_up(r, 1);
}

static void throw_two(run *r)
{
    throw_up(r, 2);
    end_badly(r);
    end_badly(r);
}

static void throw_two_end_one(run *r)
{
    throw_up(r, 2);
    end_badly(r);
}

/* The second unwind is what counts for the outer call. */
static void throw_again(run *r)
{
    throw_up(r, 1);
    end_badly(r);
    throw_up(r, 1);
}

static void lost_value(run *r)
{
    varve_capture *c = varve_value_begin(r->t, VARVE_INPUT);
    varve_capture_fail(c);
    varve_capture_end(c);
    give_int(r->t, VARVE_OUTPUT, 8);
    end(r);
}

static void refused_end(run *r)
{
    uint64_t *e = block_ring(r);
    end(r);
    unblock_ring(r, e);
}

static void denied_end(run *r)
{
    end(r);
    settle_without_facts(r);
}

static void denied_need(run *r)
{
    /* There is room for the fact, and none to note what it rests on: in General, but in Manual. */
    set_id(r, 5);
    settle_denied_times(r, VV_OWN_EVIDENCE, 1);
    end(r);
}

static void child_starts(run *r)
{
    r->child = varve_thread_spawn(r->t, 0, 0, "child", 5);
    varve_thread_start(r->child, varve_ticks());
}

static void child_ends(run *r)
{
    varve_thread_end(r->child, VARVE_THREAD_COMPLETED);
}

static void grandchild(run *r)
{
    varve_thread *t = varve_thread_spawn(r->child, 0, 0, "grandchild", 10);
    varve_thread_start(t, varve_ticks());
    varve_thread_end(t, VARVE_THREAD_CANCELLED);
    child_ends(r);
}

/* Its context is an overflow bucket, that no committed group has shown. */
static void open_in_overflow(run *r)
{
    call_for(r, 1, VARVE_ERROR);
    ck_assert(publish(r->g.session));
    const vv_cct *tree = &r->g.session->decoder.execs->cct;
    for (unsigned i = 0; tree->count < tree->cap; i++) {
        char name[16];
        snprintf(name, sizeof name, "more %u", i);
        call_once(r->t, function(r->g.engine, name));
        settle(r->g.session);
    }
    ck_assert(publish(r->g.session));
    call(r, 2, NULL);
    settle_denied(r, VV_OWN_POPULATION);
    ck_assert(r->g.session->decoder.execs->cct.overflowed);
}

static void throw_from_inside(run *r)
{
    throw_up(r, 2);
}

static void end_both(run *r)
{
    end_badly(r);
    end_badly(r);
}

/* The execution is over before its earlier group is settled. */
static void end_call_and_execution(run *r)
{
    set_id(r, 1);
    end(r);
    give_int(r->t, VARVE_OUTPUT, -2);
    end(r);
    rig_end(&r->g);
}

typedef struct {
    const char *name;
    void (*before)(run *r), (*meanwhile)(run *r), (*after)(run *r);
    struct {
        vv_account term;
        uint64_t n;
    } always[3], lost[6]; /* whatever the outcome; besides, where it is lost */
    uint8_t link_code;    /* of the one link that is lost with the group; 0: none */
    bool over;            /* the execution is, meanwhile */
} flight_case;

static const flight_case cases[] = {
    {"start, then all parts", open_call, all_parts, nothing, {{0}},
     {{LOST(START, PUBLISH), 1}, {LOST(ID, START), 1}, {LOST(VALUE, START), 1}, {LOST(ERROR, START), 1},
      {LOST(LINK, START), 1}}, 0, false},
    {"start, then parts once it is known", open_call, nothing, all_parts, {{0}},
     {{LOST(START, PUBLISH), 1}, {LOST(ID, START), 1}, {LOST(VALUE, START), 1}, {LOST(ERROR, START), 1},
      {LOST(LINK, START), 1}}, 0, false},
    {"start, then a value that is lost and an output", open_call, lost_value, nothing, {{LOST(VALUE, COPY), 1}},
     {{LOST(START, PUBLISH), 1}, {LOST(VALUE, START), 2}, {LOST(VALUE, COPY), 0}}, 0, false},
    {"start and error, then the link", open_and_throw, end_badly, nothing, {{0}},
     {{LOST(START, PUBLISH), 1}, {LOST(ERROR, PUBLISH), 1}, {LOST(LINK, START), 1}}, 0, false},
    {"error, then the link", committed_error_call, end_badly, nothing, {{0}}, {{LOST(ERROR, PUBLISH), 1}},
     LINK_PUBLISH_FAILED, false},
    {"error, then the link once it is known", committed_error_call, nothing, end_badly, {{0}},
     {{LOST(ERROR, PUBLISH), 1}}, LINK_PUBLISH_FAILED, false},
    {"start, then an error that rests on it and its links", two_error_calls, throw_two, nothing, {{0}},
     {{LOST(START, PUBLISH), 1}, {LOST(ERROR, START), 1}, {LOST(LINK, START), 1}}, LINK_START_UNCOMMITTED, false},
    {"the same, the outer link once it is known", two_error_calls, throw_two_end_one, end_badly, {{0}},
     {{LOST(START, PUBLISH), 1}, {LOST(ERROR, START), 1}, {LOST(LINK, START), 1}}, LINK_START_UNCOMMITTED, false},
    {"start, then an error of its own and one of its caller's", two_error_calls, throw_again, end_badly, {{0}},
     {{LOST(START, PUBLISH), 1}, {LOST(ERROR, START), 1}, {LOST(LINK, START), 1}}, 0, false},
    {"start, then a refused end", open_error_call, refused_end, nothing, {{LOST(END, TRANSPORT), 1}},
     {{LOST(START, PUBLISH), 1}, {LOST(END, TRANSPORT), 0}}, 0, false},
    {"start, then an end without room", open_error_call, denied_end, nothing, {{LOST(END, QUEUE), 1}},
     {{LOST(START, PUBLISH), 1}, {LOST(END, QUEUE), 0}}, 0, false},
    {"start, then a need without room in General", open_error_call, denied_need, nothing, {{0}},
     {{LOST(START, PUBLISH), 1}, {LOST(ID, START), 1}}, 0, false},
    {"start of a thread, then its end", child_starts, child_ends, nothing, {{0}}, {{0}}, 0, false},
    {"start of a thread, then its child", child_starts, grandchild, nothing, {{0}}, {{0}}, 0, false},
    {"start of a thread, then its child once it is known", child_starts, nothing, grandchild, {{0}}, {{0}}, 0, false},
    {"an overflow bucket, then an error in it", open_in_overflow, throw_from_inside, end_both, {{0}}, {{0}}, 0, false},
    {"start, then the execution's end", open_error_call, end_call_and_execution, nothing, {{0}},
     {{LOST(START, PUBLISH), 1}, {LOST(ID, START), 1}}, 0, true},
};

typedef enum { SEALED_COMMITTED, SEALED_LOST, SEALED_DISK, RENAMED_COMMITTED, OUTCOMES } outcome;

/* Another process, as far as the store can tell. */
static int hold_lock(const run *r)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/publish.lock", r->g.store.root);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    return fd;
}

static void fly(run *r, outcome o, void (*meanwhile)(run *r))
{
    settle(r->g.session);
    int fd = -1;
    if (o == RENAMED_COMMITTED)
        fail_next(r, "BAMLDAT1", VV_STEP_FSYNC_DIRECTORY, EIO, 1);
    vv_exec *x = r->g.session->decoder.execs;
    /* Values go first, and would be blocked: they are there before the lock is taken. */
    ck_assert(vv_objects_publish(&r->g.session->decoder.objects, r->g.session->store, NULL, NULL));
    if (o != RENAMED_COMMITTED)
        fd = hold_lock(r);
    ck_assert(!vv_writer_cycle(&r->g.session->writer));
    ck_assert(x->in_flight);
    ck_assert_int_eq(r->g.session->writer.batch, fd < 0 ? VV_BATCH_RENAMED : VV_BATCH_SEALED);
    meanwhile(r);
    settle(r->g.session);
    /* The end of an execution calls for a publication, which resolves what is renamed. */
    ck_assert(fd < 0 || x->in_flight);
    if (fd >= 0)
        close(fd);
    if (o == SEALED_LOST || o == SEALED_DISK)
        fail_data(r, o == SEALED_DISK ? ENOSPC : EIO);
    publish(r->g.session);
    ck_assert_uint_eq(r->disk.times, 0);
}

static uint64_t expected(const flight_case *c, unsigned a, bool lost)
{
    uint64_t n = 0;
    for (size_t i = 0; i < VV_ARRAY_LEN(c->always); i++)
        if (c->always[i].n && c->always[i].term == (vv_account)a)
            n = c->always[i].n;
    for (size_t i = 0; lost && i < VV_ARRAY_LEN(c->lost); i++)
        if (c->lost[i].term && c->lost[i].term == (vv_account)a)
            n = c->lost[i].n;
    return n;
}

static void check_terms(const flight_case *c, const vv_accounting *a, bool lost)
{
    for (unsigned i = 0; i < VV_ACCOUNTS; i++) {
        const char *name = vv_account_name((vv_account)i);
        bool of_calls = strncmp(name, "invocations", 11) == 0 || strncmp(name, "await", 5) == 0;
        if (vv_account_is_loss((vv_account)i) && !of_calls)
            ck_assert_msg(a->v[i] == expected(c, i, lost), "%s: %s is %" PRIu64 ", not %" PRIu64, c->name, name,
                          a->v[i], expected(c, i, lost));
    }
}

START_TEST(gate_what_rests_on_a_group_in_flight)
{
    const flight_case *c = &cases[_i / OUTCOMES];
    outcome o = _i % OUTCOMES;
    bool lost = o == SEALED_LOST;
    run r;
    begin(&r);
    c->before(&r);
    fly(&r, o, c->meanwhile);
    c->after(&r);
    if (!c->over) {
        give_int(r.t, VARVE_OUTPUT, -2);
        end(&r);
        rig_end(&r.g);
    }
    for (unsigned i = 0; i < 3; i++)
        publish(r.g.session);
    ck_assert_ptr_null(r.g.session->decoder.execs);
    vv_accounting a = r.g.session->decoder.over;
    look *l = rig_close(&r.g);
    found_evidence found;
    const char *bad = evidence_of(l, &found);
    ck_assert_msg(!*bad, "%s, outcome %d: %s", c->name, o, bad);
    bad = evidence_agrees(l, &a, &found);
    ck_assert_msg(!*bad, "%s, outcome %d: %s", c->name, o, bad);
    ck_assert_msg(!l->fold->issue_count && !l->fold->thread_issue_count, "%s, outcome %d: issues", c->name, o);
    if (o != SEALED_DISK)
        check_terms(c, &a, lost);
    for (unsigned i = 0; i < VV_CAPTURE_LOSSES && o != SEALED_DISK; i++)
        ck_assert_msg(found.link_lost[i] == (lost && c->link_code == i && i), "%s, outcome %d: link code %u", c->name,
                      o, i);
    rig_remove(&r.g);
}
END_TEST

int main(void)
{
    TCase *c = test_case("flight", 60);
    tcase_add_loop_test(c, gate_what_rests_on_a_group_in_flight, 0, OUTCOMES * (int)VV_ARRAY_LEN(cases));
    return test_run();
}
