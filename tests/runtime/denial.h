/*
 * Memory that is denied on purpose: a program of a few logical threads that can be played with any of its reservations,
 * or any of the allocations below them, denied; and what must hold afterwards, whatever was denied.
 *
 * The program's own account is kept beside: what it did, and how deep each thread is. The consumer is stepped by the
 * program. malloc and its like are wrapped at link time.
 */
#pragma once

#include <sys/mman.h>

#include "tests/runtime/evidence.h"
#include "tests/runtime/hands.h"
#include "tests/runtime/inside.h"

/* ---- what is denied ---- */

typedef enum { DENY_RESERVATIONS, DENY_ALLOCATIONS } deny_kind;

/* One thread at a time runs, so plain numbers do. */
static struct {
    bool armed;
    deny_kind kind;
    uint64_t seen;      /* of the kind, while armed */
    uint64_t from, to;  /* denied are [from, to) */
    unsigned one_in;    /* 0, or denied at random besides */
    test_rng random;
    const char *program; /* for a failure's text */
} faults;

#define CHECK(what) \
    ck_assert_msg(what, "%s, denied %" PRIu64 "-%" PRIu64 " of kind %d: %s", faults.program, faults.from, faults.to, \
                  faults.kind, #what)

/* AddressSanitizer calls it. */
void __asan_on_error(void);
void __asan_on_error(void)
{
    fprintf(stderr, "# %s, denied %" PRIu64 "-%" PRIu64 " of kind %d\n", faults.program, faults.from, faults.to,
            faults.kind);
}

static bool fault_due(deny_kind kind)
{
    if (!faults.armed || faults.kind != kind)
        return false;
    uint64_t i = faults.seen++;
    return (i >= faults.from && i < faults.to) || (faults.one_in && test_below(&faults.random, faults.one_in) == 0);
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t k);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t k);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off);

void *__wrap_malloc(size_t n)
{
    return fault_due(DENY_ALLOCATIONS) ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t k)
{
    return fault_due(DENY_ALLOCATIONS) ? NULL : __real_calloc(n, k);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fault_due(DENY_ALLOCATIONS) ? NULL : __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    return fault_due(DENY_ALLOCATIONS) ? NULL : __real_aligned_alloc(align, n);
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
    return fault_due(DENY_ALLOCATIONS) ? MAP_FAILED : __real_mmap(at, n, prot, flags, fd, off);
}

/* ---- the program ---- */

enum { THREADS = 48, ROOTS = 8, HANDS = 3, FUNCTIONS = 36, SITES = 8 };

typedef struct {
    varve_thread *handle;
    unsigned root;
    uint64_t depth;
    bool started, alive, begun; /* begun: had a call */
    unsigned hand;
} actor;

typedef struct {
    varve_root *handle;
    uint64_t begins, waits, selected;
    bool begun, ended;
} owner;

static struct {
    test_store store;
    varve_session *session;
    varve_engine *engines[2];
    uint32_t functions[FUNCTIONS], sites[SITES], file, other; /* of the second engine */
    actor threads[THREADS];
    owner roots[ROOTS];
    unsigned on; /* the hand */
    hand hands[HANDS];
    const char *bad;      /* the first thing that was not as it must be */
    uint64_t left[VV_POOLS]; /* in the governor after the session's close */
} world;

/* No assertion of the framework while allocations fail. */
static void hold(bool ok, const char *what)
{
    if (!ok && !world.bad)
        world.bad = what;
}

/* What is done next, on the hand: something with a thread, or something else. */
static struct {
    void (*thread_op)(actor *t);
    void (*other_op)(void);
    unsigned t;
    uint32_t a, b, n;
} act;

static void do_root_begin(void)
{
    owner *r = &world.roots[act.t];
    uint8_t id[16] = {1, (uint8_t)act.t};
    varve_thread *t;
    r->handle = varve_root_begin(world.engines[act.a], id, &t);
    hold(!r->handle == !t, "a root without its thread");
    r->begun = r->handle;
    world.threads[act.t] = (actor){.handle = t, .root = act.t, .started = true, .alive = true, .hand = world.on};
}

static void do_root_end(void)
{
    varve_root_end(world.roots[act.t].handle, VARVE_SUCCEEDED);
    world.roots[act.t].ended = true;
}

static void do_engine_close(void)
{
    varve_engine_close(world.engines[act.t]);
}

/* A call was begun; an execution's first one is selected without being asked for. */
static void begun(actor *t, bool selected)
{
    if (!t->handle || !t->started)
        return;
    bool first = t == &world.threads[t->root] && !t->begun;
    t->begun = true;
    world.roots[t->root].begins++;
    world.roots[t->root].selected += first || selected;
}

static void do_begin(actor *t)
{
    bool second = act.n;
    varve_call_begin(t->handle, second ? world.other : world.functions[act.a], second ? 0 : world.sites[act.b]);
    begun(t, false);
    t->depth += t->handle && t->started;
}

/* n: how it is selected: 1 by its class, 2 by hand, and then bits 2 to 4 are its roles. */
static void do_begin_as(actor *t)
{
    varve_policy p = {.llm = act.n & 1, .manual = act.n & 2, .runtime_id = {3, (uint8_t)act.a},
                      .input = act.n & 4 ? VARVE_SWITCH_ON : VARVE_SWITCH_KEEP,
                      .output = act.n & 8 ? VARVE_SWITCH_ON : VARVE_SWITCH_KEEP,
                      .error = act.n & 16 ? VARVE_SWITCH_ON : VARVE_SWITCH_KEEP};
    varve_call_begin_as(t->handle, world.functions[act.a], world.sites[act.b], varve_ticks(), &p);
    begun(t, act.n & 3);
    t->depth += t->handle && t->started;
}

static const uint8_t stuff[60000];

/* A value of so many bytes, where one is owed. */
static void do_give(actor *t)
{
    varve_capture *c = varve_value_begin(t->handle, (varve_role)act.a);
    varve_list_begin(c);
    varve_put_int(c, act.b);
    varve_put_bytes(c, stuff, act.b);
    varve_list_end(c);
    varve_capture_end(c);
}

static void do_set_id(actor *t)
{
    uint8_t id[16] = {9, (uint8_t)act.b};
    varve_call_set_runtime_id(t->handle, act.a, id);
}

/* An error that so many calls end by. */
static void do_throw(actor *t)
{
    uint64_t ends = act.a < t->depth ? act.a : t->depth;
    varve_capture *c = varve_error_begin(t->handle, &(varve_error){.ends = ends, .kind = act.n & 1, .up = act.n % 3});
    varve_put_text(c, (const char *)stuff, act.b);
    varve_capture_end(c);
    for (; ends; ends--, t->depth--)
        varve_call_end(t->handle, VARVE_CALL_ERRORED);
}

/* Calls one after the other. */
static void do_calls(actor *t)
{
    for (uint32_t i = 0; i < act.n; i++) {
        varve_call_begin(t->handle, world.functions[i % 3], 0);
        varve_call_end(t->handle, VARVE_CALL_OK);
        begun(t, false);
    }
}

static void do_end(actor *t)
{
    varve_call_end(t->handle, (varve_call_status)act.a);
    t->depth -= t->depth != 0;
}

/* a: the time that the wait ends before it began. */
static void do_wait(actor *t)
{
    uint64_t now = varve_ticks();
    world.roots[t->root].waits += t->handle && t->depth;
    varve_await_begin(t->handle, now);
    varve_await_end(t->handle, now + 100 - act.a);
}

static void do_spawn(actor *t)
{
    static const char name[] = "a name of some length";
    actor *c = &world.threads[act.a];
    varve_thread *child = varve_thread_spawn(t->handle, act.b, world.sites[act.n % SITES], name, act.n % sizeof name);
    *c = (actor){.handle = child, .root = t->root, .alive = true, .hand = world.on};
}

static void do_start(actor *t)
{
    varve_thread_start(t->handle, varve_ticks());
    t->started = true;
}

static void do_finish(actor *t)
{
    varve_thread_end(t->handle, (varve_thread_status)act.a);
    *t = (actor){.alive = false};
}

static void do_act(void)
{
    if (act.other_op) {
        act.other_op();
        return;
    }
    actor *t = &world.threads[act.t];
    if (t->hand != world.on && act.thread_op != do_start)
        varve_thread_bind(t->handle);
    t->hand = world.on;
    act.thread_op(t);
    hold(varve_thread_depth(t->handle) == t->depth, "a thread's depth is not what the program did");
}

static void run_act(void)
{
    if (world.on == 0) {
        do_act();
        return;
    }
    hand_do(&world.hands[world.on], do_act);
}

static void thread_op(void (*op)(actor *), unsigned t, uint32_t a, uint32_t b, uint32_t n)
{
    act.thread_op = op;
    act.other_op = NULL;
    act.t = t;
    act.a = a;
    act.b = b;
    act.n = n;
    run_act();
}

static void other_op(void (*op)(void), unsigned t, uint32_t a)
{
    act.other_op = op;
    act.t = t;
    act.a = a;
    run_act();
}

static void on(unsigned which)
{
    world.on = which;
}

/* The OS thread ends, and another takes its place. */
static void leave(unsigned i)
{
    bool armed = faults.armed;
    faults.armed = false;
    hand_stop(&world.hands[i]);
    hand_start(&world.hands[i]);
    faults.armed = armed;
}

static void begin(unsigned t, unsigned f)
{
    thread_op(do_begin, t, f % FUNCTIONS, f % SITES, 0);
}

static void end(unsigned t)
{
    thread_op(do_end, t, VARVE_CALL_OK, 0, 0);
}

static void calls_of(unsigned t, uint32_t n)
{
    thread_op(do_calls, t, 0, 0, n);
}

enum { BY_CLASS = 1, BY_HAND = 2, HAND_INPUT = 4, HAND_OUTPUT = 8, HAND_ERROR = 16, HAND_ALL = 28 };

static void begin_as(unsigned t, unsigned f, unsigned how)
{
    thread_op(do_begin_as, t, f % FUNCTIONS, f % SITES, how);
}

static void give(unsigned t, varve_role role, unsigned bytes)
{
    thread_op(do_give, t, role, bytes, 0);
}

static void set_id(unsigned t, unsigned up)
{
    thread_op(do_set_id, t, up, up, 0);
}

static void throw_up(unsigned t, unsigned ends, unsigned bytes)
{
    thread_op(do_throw, t, ends, bytes, ends);
}

static void wait_once(unsigned t)
{
    thread_op(do_wait, t, 0, 0, 0);
}

static void spawn(unsigned t, unsigned child, unsigned up)
{
    thread_op(do_spawn, t, child, up, child);
}

static void start(unsigned t)
{
    thread_op(do_start, t, 0, 0, 0);
}

static void finish(unsigned t)
{
    thread_op(do_finish, t, t % 3, 0, 0);
}

static void root(unsigned r)
{
    other_op(do_root_begin, r, 0);
}

static void root_end(unsigned r)
{
    other_op(do_root_end, r, 0);
}

static void pass(void)
{
    vv_consumer_pass(world.session);
}

static void cycle(void)
{
    vv_writer_cycle(&world.session->writer);
    vv_engines_retire(world.session);
}

/* ---- a play, and what must hold after it ---- */

static void note_left(void *ctx, const vv_governor *g)
{
    (void)ctx;
    for (unsigned i = 0; i < VV_POOLS; i++)
        world.left[i] = atomic_load(&g->pools[i].used);
}

static bool denied(void *ctx, vv_owner of)
{
    (void)ctx;
    (void)of;
    return fault_due(DENY_RESERVATIONS);
}

static varve_session *open_world(uint64_t memory)
{
    uint64_t interval = 3600000;
    vv_session_test test = {.no_consumer = true, .governor = {.denies = denied, .done = note_left}};
    return vv_session_open(&(varve_options){.struct_size = sizeof(varve_options), .store_root = world.store.root,
                                            .minimum_free_bytes = 1, .memory_bytes = memory,
                                            .publish_interval_ms = &interval}, &test);
}

static void name_things(void)
{
    for (unsigned i = 0; i < VV_ARRAY_LEN(world.engines); i++)
        world.engines[i] = varve_engine_open(world.session, &(varve_engine_info){.source_label = "a program",
                                                                                 .roles = VARVE_ALL_ROLES});
    varve_engine *e = world.engines[0];
    char text[32];
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        snprintf(text, sizeof text, "f%u", i);
        world.functions[i] = varve_function_add(e, &(varve_function_info){.fqn = text, .package = "p", .line = i,
                                                                          .source_file = i % 8 ? NULL : text});
    }
    world.file = varve_file_add(e, "a file");
    for (unsigned i = 1; i < SITES; i++)
        world.sites[i] = varve_site_add(e, world.file, i, i + 1, i);
    world.other = varve_function_add(world.engines[1], &(varve_function_info){.fqn = "other"});
}

/* Ends all that the program left open. */
static void end_all(void)
{
    on(0);
    for (unsigned i = 0; i < THREADS; i++)
        if (world.threads[i].alive)
            finish(i);
    for (unsigned i = 0; i < ROOTS; i++)
        if (world.roots[i].begun && !world.roots[i].ended)
            root_end(i);
}

static uint64_t term(const vv_execution *x, vv_account a)
{
    uint64_t v = 0;
    CHECK(vv_health_find(&x->terms, vv_account_name(a), &v));
    return v;
}

static void check_fold(const vv_fold *f, const vv_execution *x, const vv_function_table *names)
{
    vv_counters sum = {0};
    CHECK(f->thread_issue_count == 0);
    for (uint32_t i = 0; i < f->context_count; i++) {
        const vv_fold_context *c = &f->contexts[i];
        CHECK(c->defined);
        CHECK(!c->tuple.has_parent || (c->parent != VV_MAP_NONE && f->contexts[c->parent].defined));
        CHECK(!c->tuple.function_id || vv_function_table_find(names, c->tuple.function_id));
        vv_counters_add(&sum, &c->counters);
    }
    for (unsigned i = 0; i < VV_OVERFLOW_REASONS; i++)
        for (unsigned k = 0; k < VV_EDGES; k++)
            vv_counters_add(&sum, &f->overflow[i][k]);
    if (!x->has_terms)
        return;
    CHECK(term(x, VV_ACCOUNT_CALLS_FOLDED) == sum.started);
    CHECK(term(x, VV_ACCOUNT_AWAIT_FOLDED) == sum.await_count);
    CHECK(term(x, VV_ACCOUNT_CALLS_ATTEMPTED) == sum.started + vv_health_sum(&x->terms, "invocations_lost."));
    CHECK(term(x, VV_ACCOUNT_AWAIT_STARTED) == sum.await_count + vv_health_sum(&x->terms, "await_lost."));
}

/* Nothing of the evidence dangles, and what it comes to is what the execution says. */
static void check_evidence(const look *l)
{
    found_evidence found;
    vv_accounting a;
    const char *bad = evidence_of(l, &found);
    if (!*bad && l->execution->has_terms)
        bad = evidence_terms(l->execution, &a) ? "" : "terms";
    if (!*bad && l->execution->has_terms && l->execution->has_end)
        bad = evidence_agrees(l, &a, &found);
    ck_assert_msg(!*bad, "%s, denied %" PRIu64 "-%" PRIu64 " of kind %d: %s", faults.program, faults.from, faults.to,
                  faults.kind, bad);
}

static void check_execution(const look *l, const varve_status *st, uint64_t terms_lost)
{
    const vv_execution *x = l->execution;
    const owner *o = &world.roots[x->runtime_id.b[1] % ROOTS];
    check_fold(l->fold, x, &l->table);
    check_evidence(l);
    bool told = x->has_terms && x->has_start;
    CHECK(!told || term(x, VV_ACCOUNT_CALLS_ATTEMPTED) == o->begins);
    CHECK(!told || term(x, VV_ACCOUNT_AWAIT_STARTED) == o->waits);
    CHECK(!told || term(x, VV_ACCOUNT_SPANS_SELECTED) == o->selected);
    CHECK(st->batches_lost || l->fold->complete);
    CHECK(st->batches_lost || terms_lost || told);
}

/* What a reader finds is what the program did, but for what is told to be lost. */
static void check_store(const varve_status *st, uint64_t terms_lost)
{
    look l = look_store(world.store.root);
    uint64_t begun = 0, seen = 0;
    for (unsigned i = 0; i < ROOTS; i++)
        begun += world.roots[i].begun;
    for (size_t s = 0; s < l.store->stream_count; s++)
        for (size_t i = 0; i < l.store->streams[s].execution_count; i++, seen++) {
            look_fold(&l, s, i);
            check_execution(&l, st, terms_lost);
        }
    /* Those that the consumer refused: the program holds handles of them. */
    CHECK(st->batches_lost || seen + st->roots_refused == begun);
    look_done(&l);
}

static uint64_t all_terms_lost(void)
{
    varve_process_counts now;
    varve_process_counters(&now);
    return now.health_record_lost;
}

/* Plays once, with the faults that are set, and checks. from_open: also what the session and the names take. Returns
 * what it counted of the kind. */
static uint64_t play(void (*program)(void), uint64_t memory, bool from_open)
{
    uint64_t terms_lost = all_terms_lost();
    memset(&world.threads, 0, sizeof world.threads);
    memset(&world.roots, 0, sizeof world.roots);
    world.on = 0;
    world.bad = NULL;
    world.store = store_make_quick();
    faults.seen = 0;
    faults.armed = from_open;
    world.session = open_world(memory);
    name_things();
    faults.armed = true;
    bool active = vv_session_active(world.session);
    if (active)
        program();
    end_all();
    for (unsigned i = 0; active && i < 4; i++) {
        /* The last two with all the memory there is. */
        faults.armed = i < 2;
        settle(world.session);
        cycle();
    }
    faults.armed = false;
    varve_status st;
    varve_session_status(world.session, &st);
    bool over = !active || !world.session->decoder.execs;
    varve_session_close(world.session);
    ck_assert_msg(!world.bad, "%s, denied %" PRIu64 "-%" PRIu64 ": %s", faults.program, faults.from, faults.to,
                  world.bad);
    CHECK(over);
    for (unsigned i = 0; i < VV_POOLS; i++)
        CHECK(world.left[i] == 0);
    if (active)
        check_store(&st, all_terms_lost() - terms_lost);
    store_remove(&world.store);
    return faults.seen;
}
