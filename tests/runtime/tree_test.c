/*
 * Random programs against a model of their tree: with rollovers at every turn the store holds exactly the model's
 * numbers; with losses at random steps of the publish protocol it holds no more than them, both equations of the
 * accounts hold, and nothing names what was not committed. VV_SEED chooses other programs.
 */
#include "config.h"

#include "runtime/session.h"

#include <errno.h>

#include "tests/runtime/inside.h"

uint64_t size_of_files;

enum { NODES = 4000, THREADS = 8, DEPTH = 24, FUNCTIONS = 5, SITES = 3, OPS = 3000 };

typedef struct {
    uint32_t parent, function, site; /* parent: index, NODES = none */
    unsigned edge;
    vv_counters want;
    vv_context_key key;
} model_node;

typedef struct {
    uint32_t node;
    uint64_t start_ns, await_ns, awaits;
} model_frame;

typedef struct {
    varve_thread *handle;
    model_frame frames[DEPTH];
    unsigned depth;
    uint32_t spawn_node;
    bool root;
} model_thread;

typedef struct {
    uint64_t random, ticks, seed;
    rig g;
    uint32_t functions[FUNCTIONS], sites[SITES];
    model_node nodes[NODES];
    uint32_t count;
    model_thread threads[THREADS];
    uint64_t begun;
    bool lossy;
    bad_disk disk;
} world;

static world w;

static uint64_t rnd(uint64_t n)
{
    w.random ^= w.random << 13;
    w.random ^= w.random >> 7;
    w.random ^= w.random << 17;
    return w.random % n;
}

static uint64_t now_ns(void)
{
    return vv_clock_ns(&w.g.session->clock, w.ticks);
}

static uint32_t model_child(uint32_t parent, uint32_t function, uint32_t site, unsigned edge)
{
    for (uint32_t i = 0; i < w.count; i++) {
        const model_node *n = &w.nodes[i];
        if (n->parent == parent && n->function == function && n->site == site && n->edge == edge)
            return i;
    }
    ck_assert_uint_lt(w.count, NODES);
    w.nodes[w.count] = (model_node){parent, function, site, edge, {0}, {{0}}};
    return w.count++;
}

static void op_begin(model_thread *t)
{
    if (t->depth == DEPTH)
        return;
    uint32_t f = (uint32_t)rnd(FUNCTIONS), s = (uint32_t)rnd(SITES);
    w.ticks += rnd(150);
    varve_call_begin_at(t->handle, w.functions[f], w.sites[s], w.ticks);
    uint32_t node = t->depth ? model_child(t->frames[t->depth - 1].node, f, s, VV_EDGE_CALL)
                    : t->root ? model_child(NODES, f, s, VV_EDGE_ROOT)
                              : model_child(t->spawn_node, f, 0, VV_EDGE_SPAWN);
    w.nodes[node].want.started++;
    w.begun++;
    t->frames[t->depth++] = (model_frame){.node = node, .start_ns = now_ns()};
}

static void model_end(model_thread *t, unsigned status)
{
    const model_frame *f = &t->frames[--t->depth];
    vv_counters *c = &w.nodes[f->node].want;
    uint64_t *by_status[] = {&c->ok, &c->error, &c->cancelled, &c->exited};
    ++*by_status[status];
    c->inclusive_ns += now_ns() - f->start_ns;
    c->await_ns += f->await_ns;
    c->await_count += f->awaits;
    if (t->depth)
        w.nodes[t->frames[t->depth - 1].node].want.direct_child_ns += now_ns() - f->start_ns;
}

static void op_end(model_thread *t)
{
    if (!t->depth)
        return;
    unsigned status = rnd(3) ? 0 : (unsigned)rnd(4);
    w.ticks += rnd(150);
    varve_call_end_at(t->handle, (varve_call_status)status, w.ticks);
    model_end(t, status);
}

static void op_await(model_thread *t)
{
    varve_await_begin(t->handle, w.ticks);
    uint64_t from = now_ns();
    w.ticks += rnd(150);
    varve_await_end(t->handle, w.ticks);
    if (t->depth) {
        t->frames[t->depth - 1].await_ns += now_ns() - from;
        t->frames[t->depth - 1].awaits++;
    }
}

static void op_spawn(model_thread *t)
{
    model_thread *child = w.threads;
    while (child < w.threads + THREADS && child->handle)
        child++;
    if (child == w.threads + THREADS || !t->depth)
        return;
    unsigned up = (unsigned)rnd(t->depth);
    *child = (model_thread){.spawn_node = t->frames[t->depth - 1 - up].node};
    child->handle = varve_thread_spawn(t->handle, up, 0, "worker", 6);
    ck_assert_ptr_nonnull(child->handle);
    varve_thread_start(child->handle, w.ticks);
}

static void op_thread_end(model_thread *t)
{
    static const unsigned status[] = {VV_CALL_OK, VV_CALL_CANCELLED, VV_CALL_ERRORED};
    unsigned how = (unsigned)rnd(3);
    w.ticks += rnd(150);
    varve_thread_end_at(t->handle, (varve_thread_status)how, w.ticks);
    while (t->depth)
        model_end(t, status[how]);
    t->handle = NULL;
}

static void op_publish(void)
{
    static const vv_step steps[] = {VV_STEP_LOCK, VV_STEP_DIRECTORY, VV_STEP_WRITE, VV_STEP_FSYNC_FILE, VV_STEP_RENAME,
                                    VV_STEP_FSYNC_DIRECTORY, VV_STEP_LEDGER_WRITE, VV_STEP_FSYNC_ROOT};
    if (w.lossy && rnd(2)) {
        w.disk.at = steps[rnd(VV_ARRAY_LEN(steps))];
        w.disk.after = (unsigned)rnd(3);
        w.disk.os = rnd(4) ? EIO : EACCES;
        w.disk.times = 1;
    }
    for (unsigned i = 0; i < 3; i++)
        vv_consumer_pass(w.g.session);
    vv_writer_cycle(&w.g.session->writer);
}

static void op(void)
{
    model_thread *t = &w.threads[rnd(THREADS)];
    uint64_t what = rnd(100);
    if (!t->handle)
        return;
    if (what < 45)
        op_begin(t);
    else if (what < 82)
        op_end(t);
    else if (what < 90)
        op_await(t);
    else if (what < 95)
        op_spawn(t);
    else if (what < 97 && !t->root)
        op_thread_end(t);
    else if (what < 98)
        op_publish();
}

static void open_world(uint64_t seed, bool lossy)
{
    memset(&w, 0, sizeof w);
    w.random = w.seed = seed;
    w.lossy = lossy;
    w.g = rig_stepped(store_make_quick(), 32 << 20, &w.disk);
    for (unsigned i = 0; i < FUNCTIONS; i++)
        w.functions[i] = function(w.g.engine, (const char *[]){"a", "b", "c", "d", "e"}[i]);
    uint32_t file = varve_file_add(w.g.engine, "file");
    for (unsigned i = 1; i < SITES; i++)
        w.sites[i] = varve_site_add(w.g.engine, file, i, i + 1, i);
    /* A rollover every few new contexts. */
    w.g.session->decoder.epoch_nodes = (uint32_t)(1 + seed % 40);
    w.ticks = varve_ticks();
}

static vv_accounting run_world(void)
{
    w.threads[0].handle = rig_begin(&w.g);
    w.threads[0].root = true;
    for (unsigned i = 0; i < OPS; i++)
        op();
    for (unsigned i = THREADS; i-- > 0;)
        if (w.threads[i].handle)
            op_thread_end(&w.threads[i]);
    varve_root_end(w.g.root, VARVE_SUCCEEDED);
    w.disk.times = 0;
    w.lossy = false;
    op_publish();
    op_publish();
    ck_assert_ptr_null(w.g.session->decoder.execs);
    return w.g.session->decoder.over;
}

static void hash_model(void)
{
    for (uint32_t i = 0; i < w.count; i++) {
        model_node *n = &w.nodes[i];
        vv_tuple t = {.program = w.g.engine->program,
                      .edge = (uint8_t)n->edge,
                      .function_id = w.functions[n->function]};
        if (n->parent != NODES) {
            t.has_parent = true;
            t.parent = w.nodes[n->parent].key;
        }
        const vv_site *site = vv_engine_site(w.g.engine, w.sites[n->site]);
        if (site) {
            t.has_site = true;
            t.site = *site;
        }
        vv_context_key_of(&n->key, &t);
    }
}

static void assert_no_dangling(const look *l)
{
    ck_assert_uint_eq(l->fold->thread_issue_count, 0);
    for (uint32_t i = 0; i < l->fold->context_count; i++) {
        const vv_fold_context *c = &l->fold->contexts[i];
        ck_assert(c->defined);
        ck_assert(!c->tuple.has_parent || c->parent != VV_MAP_NONE);
        ck_assert(c->parent == VV_MAP_NONE || l->fold->contexts[c->parent].defined);
    }
}

static uint64_t seed_of(int i)
{
    const char *v = getenv("VV_SEED");
    uint64_t base = v ? strtoull(v, NULL, 10) : 20240917;
    return base + 7919 * (uint64_t)(i + 1);
}

#define ASSERT_SAME(what) \
    ck_assert_msg(have->what == n->want.what, "seed %" PRIu64 ": %s of node %u", w.seed, #what, i)

START_TEST(gate_rollover_is_exact)
{
    open_world(seed_of(_i), false);
    vv_accounting a = run_world();
    hash_model();
    look *l = rig_close(&w.g);
    assert_no_dangling(l);
    ck_assert(l->fold->complete);
    ck_assert_uint_eq(l->fold->context_count, w.count);
    for (uint32_t i = 0; i < w.count; i++) {
        const model_node *n = &w.nodes[i];
        uint32_t at = vv_fold_find_context(l->fold, &n->key);
        ck_assert_msg(at != VV_MAP_NONE, "seed %" PRIu64 ": node %u is missing", w.seed, i);
        const vv_counters *have = &l->fold->contexts[at].counters;
        ASSERT_SAME(started);
        ASSERT_SAME(ok);
        ASSERT_SAME(error);
        ASSERT_SAME(cancelled);
        ASSERT_SAME(exited);
        ASSERT_SAME(inclusive_ns);
        ASSERT_SAME(direct_child_ns);
        ASSERT_SAME(await_ns);
        ASSERT_SAME(await_count);
        /* Merge before subtract: the parts, summed over all groups, never exceed the whole. */
        bool complete;
        vv_counters_self(have, &complete);
        ck_assert(complete);
    }
    ck_assert_uint_eq(a.v[VV_ACCOUNT_CALLS_FOLDED], w.begun);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_SELF_UNDERFLOW], 0);
    ck_assert_uint_eq(l->fold->health, 0);
    rig_remove(&w.g);
}
END_TEST

START_TEST(gate_losses_leave_nothing_dangling)
{
    open_world(seed_of(1000 + _i), true);
    vv_accounting a = run_world();
    hash_model();
    look *l = rig_close(&w.g);
    assert_no_dangling(l);
    for (uint32_t i = 0; i < w.count; i++) {
        uint32_t at = vv_fold_find_context(l->fold, &w.nodes[i].key);
        if (at != VV_MAP_NONE)
            ck_assert_uint_le(l->fold->contexts[at].counters.started, w.nodes[i].want.started);
    }
    vv_counters sum = totals(l);
    ck_assert_uint_eq(a.v[VV_ACCOUNT_CALLS_ATTEMPTED], w.begun);
    assert_accounts(&a, &sum);
    rig_remove(&w.g);
}
END_TEST

int main(void)
{
    TCase *c = test_case("tree", 60);
    tcase_add_loop_test(c, gate_rollover_is_exact, 0, 20);
    tcase_add_loop_test(c, gate_losses_leave_nothing_dangling, 0, 40);
    return test_run();
}
