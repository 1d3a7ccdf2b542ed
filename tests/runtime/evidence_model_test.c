/*
 * Random programs with selected calls against a model of what they should leave: which calls have spans, with which
 * contexts (keys made anew from the chain of calls), values, runtime ids, errors and links. With rollovers and
 * publications at every turn, and threads that go on elsewhere, the store holds exactly that. Where publications fail
 * or are held up, and memory is denied, it holds nothing else, and all equations hold. VV_SEED chooses others.
 */
#include "config.h"

#include "runtime/producer_inside.h"

#include <errno.h>
#include <sys/file.h>

#include "tests/runtime/evidence.h"
#include "tests/runtime/hands.h"
#include "tests/runtime/inside.h"

uint64_t size_of_files;

enum { CALLS = 6000, THREADS = 6, DEPTH = 20, FUNCTIONS = 5, SITES = 4, ERRORS = 1500, HANDS = 3 };
enum { PROGRAMS = 5, LOSSY = 6 };

/* A call that the program made. */
typedef struct {
    vv_call_ref ref, parent;
    vv_context_key context;
    unsigned edge, reasons, roles, status;
    uint32_t function, site; /* numbers of ours */
    uint64_t start_ns, end_ns;
    bool selected, ended, has_id, has_input, has_output;
    uint8_t id0[16], id[16], input, output;
    uint32_t ordinal;
    int error; /* that ended it, of errors; -1: none */
} model_call;

typedef struct {
    vv_capture_id id;
    vv_call_ref thrower;
    vv_context_key context;
    uint32_t function, site;
    unsigned kind, source;
    uint8_t value;
} model_error;

typedef struct {
    varve_thread *handle;
    vv_thread_ref ref, parent;
    bool root, has_spawn_call;
    vv_call_ref spawn_call;
    vv_context_key spawn_context;
    uint32_t spawn_site;
    unsigned depth, hand, number; /* number: of those that ever were */
    uint32_t stack[DEPTH];
    uint64_t begun, unwinds;
} model_thread;

/* A thread that ended, as the store should have it. */
typedef struct {
    vv_thread_ref ref, parent;
    bool root, has_spawn_call;
    vv_call_ref spawn_call;
    unsigned status;
} model_past;

static struct {
    test_rng random;
    uint64_t ticks;
    rig g;
    uint8_t root_id[16];
    uint32_t functions[FUNCTIONS], sites[SITES];
    vv_site places[SITES];
    model_call calls[CALLS];
    unsigned call_count;
    model_error errors[ERRORS];
    unsigned error_count;
    model_thread threads[THREADS];
    model_past past[400];
    unsigned past_count;
    hand hands[HANDS];
    bool lossy, reading;
    int lock; /* of the store, held as if by another process; -1: not */
    test_rng faults;
} w;

static unsigned rnd(unsigned n)
{
    return (unsigned)test_below(&w.random, n);
}

static uint64_t now_ns(void)
{
    return vv_clock_ns(&w.g.session->clock, w.ticks);
}

/* ---- what fails ---- */

/* Of the steps of a publication that lose it, or leave its outcome open, and close no store. */
static int fail_step(void *ctx, vv_step at)
{
    static const vv_step steps[] = {VV_STEP_WRITE, VV_STEP_FSYNC_FILE, VV_STEP_RENAME, VV_STEP_FSYNC_DIRECTORY};
    (void)ctx;
    for (size_t i = 0; w.lossy && i < VV_ARRAY_LEN(steps); i++)
        if (at == steps[i])
            return test_below(&w.faults, 40) ? 0 : EIO;
    return 0;
}

/* The consumer's reservations: those of a small program are few. */
static bool denies(void *ctx, vv_owner owner)
{
    (void)ctx;
    (void)owner;
    return w.reading && test_below(&w.faults, 30) == 0;
}

static void hold_store(bool hold)
{
    if (w.lock >= 0)
        close(w.lock);
    w.lock = -1;
    if (!hold)
        return;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/publish.lock", w.g.store.root);
    w.lock = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(w.lock, 0);
    if (flock(w.lock, LOCK_EX | LOCK_NB) < 0) /* the store has it: something is indeterminate */
        hold_store(false);
}

/* ---- on which OS thread ---- */

static struct {
    void (*op)(model_thread *t);
    model_thread *t;
    unsigned hand;
} act;

static void do_act(void)
{
    if (act.hand != act.t->hand)
        varve_thread_bind(act.t->handle);
    act.t->hand = act.hand;
    act.op(act.t);
}

static void run_op(void (*op)(model_thread *t), model_thread *t)
{
    act.op = op;
    act.t = t;
    act.hand = rnd(30) ? t->hand : rnd(HANDS);
    if (!act.hand) {
        do_act();
        return;
    }
    hand_do(&w.hands[act.hand], do_act);
}

/* ---- what the program does, and what that should leave ---- */

static model_call *top(model_thread *t)
{
    return &w.calls[t->stack[t->depth - 1]];
}

static vv_context_key key_of(const vv_context_key *parent, unsigned edge, uint32_t function, uint32_t site)
{
    vv_tuple tuple = {.program = w.g.engine->program, .edge = (uint8_t)edge, .function_id = w.functions[function]};
    if (parent) {
        tuple.has_parent = true;
        tuple.parent = *parent;
    }
    tuple.has_site = site;
    if (site)
        tuple.site = w.places[site];
    vv_context_key key;
    vv_context_key_of(&key, &tuple);
    return key;
}

static varve_policy any_policy(void)
{
    varve_policy p = {.llm = rnd(6) == 0, .manual = rnd(4) == 0};
    if (p.manual) {
        test_fill(&w.random, p.runtime_id, sizeof p.runtime_id);
        p.input = (varve_switch)rnd(3);
        p.output = (varve_switch)rnd(3);
        p.error = (varve_switch)rnd(3);
    }
    return p;
}

static void switch_role(unsigned *roles, unsigned role, varve_switch to)
{
    if (to == VARVE_SWITCH_ON)
        *roles |= role;
    else if (to == VARVE_SWITCH_OFF)
        *roles &= ~role;
}

static void select_call(model_call *c, bool root, const varve_policy *p)
{
    c->reasons = (root ? VV_REASON_ROOT : 0U) | (p->llm ? VV_REASON_LLM : 0U) | (p->manual ? VV_REASON_MANUAL : 0U);
    c->selected = c->reasons;
    c->roles = root || p->llm ? VV_ROLES_ALL : 0;
    if (p->manual) {
        switch_role(&c->roles, VV_ROLE_INPUT, p->input);
        switch_role(&c->roles, VV_ROLE_OUTPUT, p->output);
        switch_role(&c->roles, VV_ROLE_ERROR, p->error);
    }
    c->has_id = root || p->manual;
    memcpy(c->id0, p->manual ? p->runtime_id : w.root_id, sizeof c->id0);
    memcpy(c->id, c->id0, sizeof c->id);
}

static void give(model_thread *t, varve_role role, uint8_t v)
{
    varve_capture *c = varve_value_begin(t->handle, role);
    ck_assert_ptr_nonnull(c);
    varve_put_int(c, v);
    varve_capture_end(c);
}

static void op_begin(model_thread *t)
{
    if (t->depth == DEPTH || w.call_count == CALLS)
        return;
    model_call *up = t->depth ? top(t) : NULL;
    model_call *c = &w.calls[w.call_count];
    varve_policy p = any_policy();
    w.ticks += rnd(150);
    *c = (model_call){.error = -1, .function = rnd(FUNCTIONS), .site = rnd(SITES)};
    c->ref = vv_call_ref_make(&t->ref, ++t->begun);
    c->edge = up ? VV_EDGE_CALL : t->root ? VV_EDGE_ROOT : VV_EDGE_SPAWN;
    uint32_t site = c->edge == VV_EDGE_SPAWN ? t->spawn_site : c->site;
    c->context = key_of(up ? &up->context : t->root ? NULL : &t->spawn_context, c->edge, c->function, site);
    if (up)
        c->parent = up->ref;
    select_call(c, t->root && t->begun == 1, &p);
    c->start_ns = now_ns();
    varve_call_begin_as(t->handle, w.functions[c->function], w.sites[c->site], w.ticks, &p);
    c->site = site;
    t->stack[t->depth++] = w.call_count++;
    ck_assert_uint_eq(varve_call_roles(t->handle), c->roles);
    if (c->roles & VV_ROLE_INPUT) {
        c->has_input = true;
        c->input = (uint8_t)rnd(40);
        give(t, VARVE_INPUT, c->input);
    }
}

static void end_model(model_thread *t, unsigned status)
{
    model_call *c = top(t);
    c->ended = true;
    c->status = status;
    c->end_ns = now_ns();
    if (status != VV_CALL_ERRORED)
        c->error = -1;
    t->depth--;
}

static void end_as(model_thread *t, unsigned status)
{
    model_call *c = top(t);
    w.ticks += rnd(150);
    if (c->roles & VV_ROLE_OUTPUT && (status == VV_CALL_OK || !rnd(2))) {
        c->has_output = status == VV_CALL_OK; /* what is given and not returned is none */
        c->output = (uint8_t)rnd(40);
        give(t, VARVE_OUTPUT, c->output);
    }
    varve_call_end_at(t->handle, (varve_call_status)status, w.ticks);
    end_model(t, status);
}

static void op_end(model_thread *t)
{
    static const unsigned other[] = {VV_CALL_CANCELLED, VV_CALL_EXITED};
    if (t->depth)
        end_as(t, rnd(6) ? VV_CALL_OK : other[rnd(2)]);
}

static void op_id(model_thread *t)
{
    if (!t->depth)
        return;
    unsigned up = rnd(t->depth < 4 ? t->depth : 4);
    uint8_t id[16];
    test_fill(&w.random, id, sizeof id);
    varve_call_set_runtime_id(t->handle, up, id);
    model_call *c = &w.calls[t->stack[t->depth - 1 - up]];
    if (!c->selected)
        return;
    c->ordinal += c->has_id || c->ordinal; /* the first one is 0 where the start brought none */
    c->has_id = true;
    memcpy(c->id, id, sizeof id);
}

/* Which of the calls the unwind concerns. */
static bool is_applicable(const model_thread *t, unsigned up, unsigned ends)
{
    for (unsigned i = 0; i < t->depth; i++) {
        const model_call *c = &w.calls[t->stack[t->depth - 1 - i]];
        if (c->selected && c->roles & VV_ROLE_ERROR && (i < ends || i == up))
            return true;
    }
    return false;
}

/* An error, and the ends of the calls that it unwinds, each as it is or by the end of the thread. */
static unsigned throw_up(model_thread *t)
{
    unsigned ends = rnd(3) ? rnd(t->depth + 1) : rnd(2), up = rnd(4) ? 0 : rnd(t->depth), site = rnd(SITES);
    bool all = ends == t->depth && rnd(2);
    uint32_t named = rnd(3) ? FUNCTIONS : rnd(FUNCTIONS);
    const model_call *from = &w.calls[t->stack[t->depth - 1 - up]];
    varve_error e = {.kind = (varve_error_kind)rnd(2),
                     .source = (varve_error_source)rnd(4),
                     .up = up,
                     .ends = all ? VARVE_ENDS_ALL : ends,
                     .function = named < FUNCTIONS ? w.functions[named] : 0,
                     .site = w.sites[site]};
    varve_capture *c = varve_error_begin(t->handle, &e);
    if (!is_applicable(t, up, ends)) {
        ck_assert_ptr_null(c);
        return ends;
    }
    ck_assert_ptr_nonnull(c);
    ck_assert_uint_lt(w.error_count, ERRORS);
    model_error *m = &w.errors[w.error_count];
    *m = (model_error){.id = vv_capture_id_make(&t->ref, ++t->unwinds),
                       .thrower = from->ref,
                       .context = from->context,
                       .function = named < FUNCTIONS ? named : from->function,
                       .site = site,
                       .kind = e.kind,
                       .source = e.source,
                       .value = (uint8_t)rnd(40)};
    varve_put_int(c, m->value);
    varve_capture_end(c);
    for (unsigned i = 0; i < ends; i++) {
        model_call *k = &w.calls[t->stack[t->depth - 1 - i]];
        if (k->selected && k->roles & VV_ROLE_ERROR)
            k->error = (int)w.error_count;
    }
    w.error_count++;
    return ends;
}

static void op_throw(model_thread *t)
{
    if (!t->depth || w.error_count == ERRORS)
        return;
    for (unsigned ends = throw_up(t); ends; ends--)
        end_as(t, VV_CALL_ERRORED);
}

static void op_spawn(model_thread *t)
{
    model_thread *c = w.threads;
    while (c < w.threads + THREADS && c->handle)
        c++;
    if (c == w.threads + THREADS || !t->depth || w.past_count + THREADS >= VV_ARRAY_LEN(w.past))
        return;
    unsigned up = rnd(t->depth);
    const model_call *from = &w.calls[t->stack[t->depth - 1 - up]];
    *c = (model_thread){.parent = t->ref, .has_spawn_call = true, .spawn_call = from->ref,
                        .spawn_context = from->context, .spawn_site = rnd(SITES), .hand = act.hand};
    c->handle = varve_thread_spawn(t->handle, up, w.sites[c->spawn_site], "worker", 6);
    ck_assert_ptr_nonnull(c->handle);
    c->ref = vv_thread_ref_make(&w.g.session->decoder.euid, w.g.engine->id, c->handle->number);
    varve_thread_start(c->handle, w.ticks);
}

static void end_thread(model_thread *t)
{
    static const unsigned calls[] = {VV_CALL_OK, VV_CALL_CANCELLED, VV_CALL_ERRORED};
    unsigned status = rnd(3);
    if (status == VV_THREAD_ERRORED && t->depth && w.error_count < ERRORS)
        throw_up(t);
    while (status == VV_THREAD_COMPLETED && t->depth)
        end_as(t, VV_CALL_OK);
    w.ticks += rnd(150);
    while (t->depth)
        end_model(t, calls[status]);
    varve_thread_end_at(t->handle, (varve_thread_status)status, w.ticks);
    w.past[w.past_count++] =
        (model_past){t->ref, t->parent, t->root, t->has_spawn_call, t->spawn_call, status};
    t->handle = NULL;
}

static void program(unsigned ops)
{
    static void (*const kinds[])(model_thread *) = {op_begin, op_begin, op_begin, op_begin, op_end,   op_end,
                                                    op_end,   op_throw, op_id,    op_spawn, end_thread};
    for (unsigned i = 0; i < ops; i++) {
        model_thread *t = &w.threads[rnd(THREADS)];
        void (*op)(model_thread *) = kinds[rnd(VV_ARRAY_LEN(kinds))];
        if (t->handle && (op != end_thread || (!t->root && !rnd(4))))
            run_op(op, t);
        w.reading = w.lossy;
        if (!rnd(20))
            vv_consumer_pass(w.g.session);
        if (!rnd(50))
            ck_assert(publish(w.g.session) || w.lossy);
        w.reading = false;
        if (w.lossy && !rnd(w.lock < 0 ? 250 : 80))
            hold_store(w.lock < 0);
    }
    hold_store(false);
    for (unsigned i = THREADS; i-- > 0;)
        if (w.threads[i].handle)
            run_op(end_thread, &w.threads[i]);
}

/* ---- what the store holds ---- */

static void assert_int(const vv_value_state *v, uint8_t want)
{
    uint8_t body[] = {0x20, want};
    vv_cid cid;
    vv_cid_of(&cid, VV_CODEC_VALUE, body, sizeof body);
    ck_assert(!v->lost);
    ck_assert_uint_eq(v->bytes, sizeof body);
    ck_assert_mem_eq(&v->cid, &cid, sizeof cid);
}

static void assert_site(bool has, const vv_site *s, uint32_t site)
{
    ck_assert_int_eq(has, site != 0);
    if (has)
        ck_assert_mem_eq(s, &w.places[site], sizeof *s);
}

static void assert_context(const vv_context_ref *c, const vv_context_key *want)
{
    ck_assert(!c->overflow || w.lossy);
    if (!c->overflow)
        ck_assert_mem_eq(&c->key, want, sizeof *want);
}

static void check_start(const model_call *c, const vv_span_start *s)
{
    vv_thread_ref thread = vv_call_thread(&c->ref);
    ck_assert_mem_eq(&s->thread, &thread, sizeof thread);
    ck_assert_int_eq(s->has_parent, c->edge == VV_EDGE_CALL);
    if (s->has_parent)
        ck_assert_mem_eq(&s->parent, &c->parent, sizeof c->parent);
    assert_context(&s->context, &c->context);
    ck_assert_uint_eq(s->function_id, w.functions[c->function]);
    ck_assert_uint_eq(s->edge, c->edge);
    ck_assert_uint_eq(s->reasons, c->reasons);
    ck_assert_uint_eq(s->roles, c->roles);
    ck_assert_uint_eq(s->started_ns, c->start_ns);
    assert_site(s->has_site, &s->site, c->site);
    ck_assert_int_eq(s->has_runtime_id, (c->reasons & (VV_REASON_ROOT | VV_REASON_MANUAL)) != 0);
    if (s->has_runtime_id)
        ck_assert_mem_eq(s->runtime_id.b, c->id0, sizeof c->id0);
}

/* What is there is what should be; without losses, all of it. */
static bool is_there(bool there, bool should)
{
    ck_assert(!there || should);
    ck_assert(there == should || w.lossy);
    return there;
}

static void check_value(bool there, bool should, const vv_value_state *v, uint8_t want)
{
    if (is_there(there, should) && !(w.lossy && v->lost))
        assert_int(v, want);
}

static void check_call(const model_call *c, const vv_fold_span *s)
{
    ck_assert(s->has_start);
    check_start(c, &s->start);
    if (is_there(s->has_end, true)) {
        ck_assert_uint_eq(s->end.status, c->status);
        ck_assert_uint_eq(s->end.ended_ns, c->end_ns);
        ck_assert_uint_eq(s->end.inclusive_ns, c->end_ns - c->start_ns);
    }
    bool has_id = is_there(s->has_runtime_id, c->has_id);
    if (has_id && !w.lossy) {
        ck_assert_uint_eq(s->runtime_ordinal, c->ordinal);
        ck_assert_mem_eq(s->runtime_id.b, c->id, sizeof c->id);
    }
    check_value(s->has_input, c->has_input, &s->input, c->input);
    check_value(s->has_output, c->has_output, &s->output, c->output);
    if (is_there(s->has_terminal, c->error >= 0) && !(w.lossy && s->terminal.lost)) {
        ck_assert(!s->terminal.lost);
        ck_assert_mem_eq(&s->terminal.capture, &w.errors[c->error].id, sizeof(vv_capture_id));
    }
}

static void check_calls(const vv_fold *f)
{
    size_t found = 0;
    for (unsigned i = 0; i < w.call_count; i++) {
        uint32_t at = vv_map_find(&f->span_map, &w.calls[i].ref);
        if (!is_there(at != VV_MAP_NONE, w.calls[i].selected))
            continue;
        check_call(&w.calls[i], &f->spans[at]);
        found++;
    }
    ck_assert_uint_eq(f->span_count, found);
    ck_assert(found || w.lossy);
}

static void check_errors(const vv_fold *f)
{
    size_t found = 0;
    for (unsigned i = 0; i < w.error_count; i++) {
        const model_error *m = &w.errors[i];
        uint32_t at = vv_map_find(&f->error_map, &m->id);
        if (!is_there(at != VV_MAP_NONE, true))
            continue;
        found++;
        const vv_error_capture *e = &f->errors[at];
        ck_assert_mem_eq(&e->throw_call, &m->thrower, sizeof m->thrower);
        assert_context(&e->context, &m->context);
        if (!e->context.overflow || e->function_id)
            ck_assert_uint_eq(e->function_id, w.functions[m->function]);
        ck_assert_uint_eq(e->kind, m->kind);
        ck_assert_uint_eq(e->source, m->source);
        assert_site(e->has_site, &e->site, m->site);
        check_value(true, true, &e->value, m->value);
    }
    ck_assert_uint_eq(f->error_count, found);
}

static void check_threads(const vv_fold *f)
{
    ck_assert_uint_eq(f->thread_count, w.past_count);
    for (unsigned i = 0; i < w.past_count; i++) {
        const model_past *p = &w.past[i];
        uint32_t at = vv_map_find(&f->thread_map, &p->ref);
        ck_assert_uint_ne(at, VV_MAP_NONE);
        const vv_fold_thread *t = &f->threads[at];
        ck_assert(t->has_start && t->has_end);
        ck_assert_int_eq(t->start.has_parent, !p->root);
        ck_assert_int_eq(t->start.has_spawn_call, p->has_spawn_call);
        if (t->start.has_parent)
            ck_assert_mem_eq(&t->start.parent, &p->parent, sizeof p->parent);
        if (t->start.has_spawn_call)
            ck_assert_mem_eq(&t->start.spawn_call, &p->spawn_call, sizeof p->spawn_call);
        ck_assert_uint_eq(t->end.status, p->status);
    }
}

static void name_things(void)
{
    for (unsigned i = 0; i < FUNCTIONS; i++)
        w.functions[i] = function(w.g.engine, "f");
    uint32_t file = varve_file_add(w.g.engine, "a file");
    for (unsigned i = 1; i < SITES; i++) {
        w.sites[i] = varve_site_add(w.g.engine, file, i, i + 1, i);
        w.places[i] = *vv_engine_site(w.g.engine, w.sites[i]);
    }
}

/* Plays a program. */
static look *play(uint64_t number, unsigned ops, uint32_t epoch_nodes)
{
    test_rng seeded = test_seeded("evidence");
    bool lossy = w.lossy;
    memset(&w, 0, sizeof w);
    w.lossy = lossy;
    w.lock = -1;
    w.random = (test_rng){seeded.state + number * 1000};
    w.faults = (test_rng){seeded.state + number * 1000 + 500};
    test_store s = store_make_quick();
    vv_session_test test = {.no_consumer = true, .hooks.step = fail_step, .governor.denies = denies};
    w.g = (rig){.store = s, .session = session_tested(&s, 3600000, 0, &test)};
    w.g.engine = varve_engine_open(w.g.session, &(varve_engine_info){.roles = VARVE_ALL_ROLES});
    if (epoch_nodes)
        w.g.session->decoder.epoch_nodes = epoch_nodes;
    name_things();
    vv_clock_calibrate(&w.g.session->clock);
    test_fill(&w.random, w.root_id, sizeof w.root_id);
    model_thread *t = &w.threads[0];
    w.g.root = varve_root_begin(w.g.engine, w.root_id, &t->handle);
    t->root = true;
    t->ref = vv_thread_ref_make(&w.g.session->decoder.euid, w.g.engine->id, t->handle->number);
    w.ticks = varve_ticks();
    hands_start(w.hands, HANDS);
    program(ops);
    hands_stop(w.hands, HANDS);
    varve_root_end(w.g.root, VARVE_SUCCEEDED);
    lossy = w.lossy;
    w.lossy = false; /* what is left is published */
    for (unsigned i = 0; i < 3; i++)
        ck_assert(publish(w.g.session) || lossy);
    w.lossy = lossy;
    return rig_close(&w.g);
}

/* The execution says of itself what is there, and nothing dangles. */
static vv_accounting check_account(const look *l)
{
    found_evidence found;
    vv_accounting a;
    ck_assert(evidence_terms(l->execution, &a));
    ck_assert_str_eq(evidence_of(l, &found), "");
    ck_assert_str_eq(evidence_agrees(l, &a, &found), "");
    ck_assert_uint_eq(l->fold->issue_count, 0);
    fprintf(stderr, "# %u calls, %zu spans, %u errors, %zu groups\n", w.call_count, l->fold->span_count, w.error_count,
            (size_t)l->fold->groups);
    return a;
}

START_TEST(gate_evidence_is_what_the_program_did)
{
    w.lossy = false;
    look *l = play((uint64_t)_i, _i < 1 ? 300 : 6000, _i % 2 ? 12 : 0);
    check_account(l);
    ck_assert(l->fold->complete);
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        ck_assert_msg(!vv_health_is_loss(i) || !l->execution->health.v[i], "%s", vv_health_name(i));
    check_calls(l->fold);
    check_errors(l->fold);
    check_threads(l->fold);
    rig_remove(&w.g);
}
END_TEST

START_TEST(gate_what_is_left_is_what_the_program_did)
{
    w.lossy = true;
    look *l = play(PROGRAMS + (uint64_t)_i, 3000, _i % 2 ? 12 : 0);
    vv_accounting a = check_account(l);
    check_calls(l->fold);
    check_errors(l->fold);
    uint64_t lost = 0;
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        lost += vv_account_is_loss((vv_account)i) ? a.v[i] : 0;
    fprintf(stderr, "# %" PRIu64 " lost\n", lost);
    ck_assert_uint_gt(lost, 0);
    rig_remove(&w.g);
}
END_TEST

int main(void)
{
    TCase *c = test_case("model", 120);
    tcase_add_loop_test(c, gate_evidence_is_what_the_program_did, 0, PROGRAMS);
    tcase_add_loop_test(c, gate_what_is_left_is_what_the_program_did, 0, LOSSY);
    return test_run();
}
