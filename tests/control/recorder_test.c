/*
 * The recorder as a profiler: what a host says by way of the contract is recorded as if it had called varve.h itself;
 * and what the VM does is counted exactly.
 */
#include "config.h"

#include "control/varve-host.h"

#include <stdarg.h>

#include "base/sha256.h"
#include "tests/control/app.h"
#include "tests/runtime/host.h"

uint64_t size_of_files;

/* Two ways to record one script. */

enum { DOMAINS = 2, FUNCTIONS = 4, SITES = 3, THREADS = 12 };

/* A thing of each domain; its address is its id. */
typedef struct {
    unsigned domain, number;
} thing;
static thing domains[DOMAINS], modules[DOMAINS][2], functions[DOMAINS][FUNCTIONS], threads[THREADS];
static const varve_ending no_ending = VARVE_ENDED_OK;

static const char *const domain_names[DOMAINS] = {"first", "second"};
static const char *const paths[DOMAINS] = {"dir/one.x", "two.x"};
/* The last one is of a module without a file. */
static const varve_function_desc described[FUNCTIONS] = {
    {.name = "main", .definition_key = "m:main", .line = 3, .span_start = 1, .span_end = 5},
    {.name = "pkg.f", .display_name = "f", .package = "pkg", .kind = VARVE_FN_SYSOP},
    {.name = "g", .origin = VARVE_FN_COMPANION, .line = 70},
    {.name = "native", .definition_key = "c:native", .kind = VARVE_FN_NATIVE, .origin = VARVE_FN_BUILTIN},
};
static const varve_site_id places[SITES] = {{.line = 4, .start = 10, .end = 12}, {.line = 9}, {.start = 70, .end = 71}};

typedef struct {
    void (*open)(varve_session *session);
    void (*close)(void);
    void (*domain)(unsigned d, bool load, varve_ending how);
    /* parent THREADS: none. site SITES: unknown. */
    void (*create)(unsigned t, unsigned domain, unsigned parent, unsigned up, unsigned site, const char *name);
    void (*start)(unsigned t, uint64_t ticks);
    void (*enter)(unsigned t, unsigned function, unsigned site, uint64_t ticks);
    void (*leave)(unsigned t, varve_ending how, uint64_t ticks);
    void (*suspend)(unsigned t, uint64_t ticks);
    void (*resume)(unsigned t, uint64_t ticks);
    void (*destroy)(unsigned t, varve_ending how, uint64_t ticks);
} driver;

static void execution_id(uint8_t id[16], unsigned t)
{
    memset(id, 0, 16);
    id[15] = (uint8_t)(t + 1);
}

/* By varve.h alone. */
static struct {
    varve_session *session;
    varve_engine *engines[DOMAINS];
    uint32_t functions[DOMAINS][FUNCTIONS], sites[DOMAINS][SITES];
    varve_thread *threads[THREADS];
    varve_root *roots[THREADS];
    bool exited[THREADS];
    unsigned domain_of[THREADS];
} by_calls;

static void calls_open(varve_session *session)
{
    memset(&by_calls, 0, sizeof by_calls);
    by_calls.session = session;
}

static void calls_close(void) {}

static const varve_root_status root_statuses[] = {[VARVE_ENDED_OK] = VARVE_SUCCEEDED,
                                                  [VARVE_ENDED_ERRORED] = VARVE_FAILED,
                                                  [VARVE_ENDED_CANCELLED] = VARVE_CANCELLED,
                                                  [VARVE_ENDED_EXITED] = VARVE_SUCCEEDED};

static void calls_domain(unsigned d, bool load, varve_ending how)
{
    if (!load) {
        for (unsigned t = 0; t < THREADS; t++)
            if (by_calls.exited[t] && by_calls.domain_of[t] == d)
                varve_root_end(by_calls.roots[t], root_statuses[how]);
        varve_engine_close(by_calls.engines[d]);
        return;
    }
    varve_engine *e = varve_engine_open(by_calls.session, &(varve_engine_info){.source_label = domain_names[d],
                                                                              .revision_label = "r"});
    by_calls.engines[d] = e;
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        const varve_function_desc *f = &described[i];
        by_calls.functions[d][i] = varve_function_add(
            e, &(varve_function_info){.fqn = f->name, .display_name = f->display_name,
                                      .definition_key = f->definition_key, .kind = (varve_function_kind)f->kind,
                                      .origin = (varve_function_origin)f->origin,
                                      .source_file = i < FUNCTIONS - 1 ? paths[d] : NULL, .span_start = f->span_start,
                                      .span_end = f->span_end, .line = f->line, .package = f->package});
    }
    for (unsigned i = 0; i < SITES; i++)
        by_calls.sites[d][i] =
            varve_site_add(e, varve_file_add(e, paths[d]), places[i].start, places[i].end, places[i].line);
}

static uint32_t calls_site(unsigned d, unsigned site)
{
    return site < SITES ? by_calls.sites[d][site] : 0;
}

static void calls_create(unsigned t, unsigned domain, unsigned parent, unsigned up, unsigned site, const char *name)
{
    uint8_t id[16];
    execution_id(id, t);
    by_calls.domain_of[t] = domain;
    if (parent == THREADS)
        by_calls.roots[t] = varve_root_begin(by_calls.engines[domain], id, &by_calls.threads[t]);
    else
        by_calls.threads[t] = varve_thread_spawn(by_calls.threads[parent], up, calls_site(domain, site), name,
                                                 name ? strlen(name) : 0);
}

static void calls_start(unsigned t, uint64_t ticks)
{
    varve_thread_start(by_calls.threads[t], ticks);
}

static void calls_enter(unsigned t, unsigned function, unsigned site, uint64_t ticks)
{
    unsigned d = by_calls.domain_of[t];
    varve_call_begin_at(by_calls.threads[t], by_calls.functions[d][function], calls_site(d, site), ticks);
}

static void calls_leave(unsigned t, varve_ending how, uint64_t ticks)
{
    varve_call_end_at(by_calls.threads[t], (varve_call_status)how, ticks);
}

static void calls_suspend(unsigned t, uint64_t ticks)
{
    varve_await_begin(by_calls.threads[t], ticks);
}

static void calls_resume(unsigned t, uint64_t ticks)
{
    varve_await_end(by_calls.threads[t], ticks);
}

static void calls_destroy(unsigned t, varve_ending how, uint64_t ticks)
{
    static const varve_thread_status statuses[] = {[VARVE_ENDED_OK] = VARVE_THREAD_COMPLETED,
                                                   [VARVE_ENDED_ERRORED] = VARVE_THREAD_ERRORED,
                                                   [VARVE_ENDED_CANCELLED] = VARVE_THREAD_CANCELLED,
                                                   [VARVE_ENDED_EXITED] = VARVE_THREAD_COMPLETED};
    varve_thread *thread = by_calls.threads[t];
    while (how == VARVE_ENDED_EXITED && varve_thread_depth(thread))
        varve_call_end_at(thread, VARVE_CALL_EXITED, ticks);
    varve_thread_end_at(thread, statuses[how], ticks);
    by_calls.exited[t] = by_calls.roots[t] && how == VARVE_ENDED_EXITED;
    if (!by_calls.exited[t])
        varve_root_end(by_calls.roots[t], root_statuses[how]);
}

static const driver calls = {calls_open,  calls_close, calls_domain,  calls_create, calls_start,
                             calls_enter, calls_leave, calls_suspend, calls_resume, calls_destroy};

/* By the contract. */
static struct {
    varve_host *host;
    const varve_hooks *hooks;
    uintptr_t functions[DOMAINS][FUNCTIONS], sites[DOMAINS][SITES];
    void *threads[THREADS];
} by_contract;

static varve_code describe_domain(void *me, varve_domain_id id, varve_domain_desc *ret)
{
    (void)me;
    ret->name = domain_names[((thing *)id)->domain];
    ret->revision = "r";
    return VARVE_OK;
}

static varve_code describe_module(void *me, varve_module_id id, varve_module_desc *ret)
{
    (void)me;
    const thing *m = (const thing *)id;
    ret->domain = (varve_domain_id)&domains[m->domain];
    ret->path = m->number ? NULL : paths[m->domain];
    return VARVE_OK;
}

static varve_code describe_function(void *me, varve_function_id id, uint32_t how, varve_function_desc *ret)
{
    (void)me;
    (void)how;
    const thing *f = (const thing *)id;
    size_t size = ret->size;
    *ret = described[f->number];
    ret->size = size;
    ret->module = (varve_module_id)&modules[f->domain][f->number == FUNCTIONS - 1];
    return VARVE_OK;
}

static void contract_open(varve_session *session)
{
    static const varve_host_functions answers = {.size = sizeof answers, .describe_domain = describe_domain,
                                                 .describe_module = describe_module,
                                                 .describe_function = describe_function};
    memset(&by_contract, 0, sizeof by_contract);
    ck_assert_int_eq(varve_host_open(&(varve_host_options){.size = sizeof(varve_host_options),
                                                           .version = VARVE_CONTRACT_VERSION,
                                                           .name = "script",
                                                           .language_version = "1",
                                                           .supported = VARVE_MON_DOMAIN_LOADS | VARVE_MON_THREADS,
                                                           .functions = &answers}, &by_contract.host), VARVE_OK);
    ck_assert_int_eq(varve_host_thread_add(by_contract.host, 0), VARVE_OK);
    ck_assert_int_eq(varve_recorder_attach(by_contract.host, session), VARVE_OK);
    varve_host_started(by_contract.host);
    by_contract.hooks = varve_host_hooks(by_contract.host);
    ck_assert_ptr_nonnull(by_contract.hooks);
}

static void contract_close(void)
{
    ck_assert(varve_host_close(by_contract.host));
    varve_host_thread_remove(by_contract.host);
}

static void contract_domain(unsigned d, bool load, varve_ending how)
{
    const varve_hooks *h = by_contract.hooks;
    if (!load) {
        VARVE_RAISE(by_contract.host, domain_unloaded, (varve_domain_id)&domains[d], how);
        return;
    }
    VARVE_RAISE(by_contract.host, domain_loaded, (varve_domain_id)&domains[d]);
    for (unsigned i = 0; i < FUNCTIONS; i++)
        by_contract.functions[d][i] = h->map_function(h->me, (varve_function_id)&functions[d][i]);
    for (unsigned i = 0; i < SITES; i++) {
        varve_site_id site = places[i];
        site.module = (varve_module_id)&modules[d][0];
        by_contract.sites[d][i] = h->map_site(h->me, &site);
    }
}

static void contract_create(unsigned t, unsigned domain, unsigned parent, unsigned up, unsigned site, const char *name)
{
    uint8_t id[16];
    execution_id(id, t);
    varve_site_id place = site < SITES ? places[site] : (varve_site_id){0};
    place.module = (varve_module_id)&modules[domain][0];
    varve_spawn spawn = {.domain = (varve_domain_id)&domains[domain],
                         .parent = parent == THREADS ? 0 : (varve_thread_id)&threads[parent],
                         .up = up,
                         .site = site < SITES ? &place : NULL,
                         .name = name,
                         .name_length = name ? strlen(name) : 0,
                         .execution_id = id};
    threads[t].domain = domain;
    VARVE_RAISE(by_contract.host, thread_created, (varve_thread_id)&threads[t], &spawn);
    by_contract.threads[t] = by_contract.hooks->map_thread(by_contract.hooks->me, (varve_thread_id)&threads[t]);
}

static void contract_start(unsigned t, uint64_t ticks)
{
    VARVE_RAISE(by_contract.host, thread_started, (varve_thread_id)&threads[t], ticks);
}

static void contract_enter(unsigned t, unsigned function, unsigned site, uint64_t ticks)
{
    unsigned d = threads[t].domain;
    by_contract.hooks->enter_at(by_contract.threads[t], by_contract.functions[d][function],
                                site < SITES ? by_contract.sites[d][site] : 0, ticks);
}

static void contract_leave(unsigned t, varve_ending how, uint64_t ticks)
{
    by_contract.hooks->leave_at(by_contract.threads[t], how, ticks);
}

static void contract_suspend(unsigned t, uint64_t ticks)
{
    by_contract.hooks->suspend(by_contract.threads[t], ticks);
}

static void contract_resume(unsigned t, uint64_t ticks)
{
    by_contract.hooks->resume(by_contract.threads[t], ticks);
}

static void contract_destroy(unsigned t, varve_ending how, uint64_t ticks)
{
    VARVE_RAISE(by_contract.host, thread_destroyed, (varve_thread_id)&threads[t], how, ticks);
}

static const driver contract = {contract_open,  contract_close, contract_domain,  contract_create, contract_start,
                                contract_enter, contract_leave, contract_suspend, contract_resume, contract_destroy};

/* A script: the same seed gives the same one. */
typedef struct {
    test_rng rng;
    const driver *d;
    uint64_t ticks;
    unsigned domain[THREADS], depth[THREADS];
    bool alive[THREADS], started[THREADS], waits[THREADS];
} script;

static uint64_t tick(script *s)
{
    return s->ticks += 1 + test_below(&s->rng, 100000);
}

static varve_ending some_ending(script *s)
{
    return (varve_ending)test_below(&s->rng, 4);
}

static void create(script *s, unsigned t, unsigned parent)
{
    static const char *const names[] = {NULL, "", "worker", "a longer name than most threads have"};
    s->domain[t] = parent == THREADS ? t % DOMAINS : s->domain[parent];
    unsigned up = parent == THREADS ? 0 : (unsigned)test_below(&s->rng, s->depth[parent]);
    s->d->create(t, s->domain[t], parent, up, (unsigned)test_below(&s->rng, SITES + 1),
                 names[test_below(&s->rng, VV_ARRAY_LEN(names))]);
    s->alive[t] = true;
    s->started[t] = parent == THREADS;
    s->waits[t] = false;
    s->depth[t] = 0;
}

static void destroy(script *s, unsigned t)
{
    s->d->destroy(t, some_ending(s), tick(s));
    s->alive[t] = false;
}

static void act(script *s, unsigned t)
{
    unsigned what = (unsigned)test_below(&s->rng, 20), spare = DOMAINS;
    if (!s->started[t]) {
        s->d->start(t, tick(s));
        s->started[t] = true;
    } else if (s->waits[t]) {
        s->d->resume(t, tick(s));
        s->waits[t] = false;
    } else if (what < 9 && s->depth[t] < 40) {
        s->d->enter(t, (unsigned)test_below(&s->rng, FUNCTIONS), (unsigned)test_below(&s->rng, SITES + 1), tick(s));
        s->depth[t]++;
    } else if (what < 15 && s->depth[t]) {
        s->d->leave(t, some_ending(s), tick(s));
        s->depth[t]--;
    } else if (what < 17 && s->depth[t]) {
        s->d->suspend(t, tick(s));
        s->waits[t] = true;
    } else if (what == 17 && t >= DOMAINS) {
        destroy(s, t);
    } else if (s->depth[t]) {
        while (spare < THREADS && s->alive[spare])
            spare++;
        if (spare < THREADS)
            create(s, spare, t);
    }
}

/* Records a script; the store then has one execution for each domain. */
static void record(const test_store *store, const driver *d, test_rng rng)
{
    static script s;
    s = (script){.rng = rng, .d = d};
    varve_session *session = session_at(store, 1000);
    s.ticks = varve_ticks();
    d->open(session);
    for (unsigned i = 0; i < DOMAINS; i++)
        d->domain(i, true, no_ending);
    for (unsigned i = 0; i < DOMAINS; i++)
        create(&s, i, THREADS);
    s.ticks = varve_ticks();
    for (unsigned i = 0; i < 3000; i++) {
        unsigned t = (unsigned)test_below(&s.rng, THREADS);
        if (s.alive[t])
            act(&s, t);
    }
    for (unsigned t = THREADS; t--;)
        if (s.alive[t])
            destroy(&s, t);
    for (unsigned i = 0; i < DOMAINS; i++)
        d->domain(i, false, some_ending(&s));
    d->close();
    varve_session_close(session);
}

/* What was recorded, as lines to compare. */
typedef struct {
    char lines[8192][240];
    size_t count;
} text;

VV_PRINTF(2, 3) static void add_line(text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ck_assert_uint_lt(t->count, VV_ARRAY_LEN(t->lines));
    vsnprintf(t->lines[t->count++], sizeof t->lines[0], fmt, ap);
    va_end(ap);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void add_table(text *out, const look *l, unsigned execution)
{
    for (uint32_t i = 0; i < l->table.function_count; i++) {
        const vv_function *f = &l->table.functions[i];
        add_line(out, "%u function %.*s %.*s %.*s %.*s %.*s %u %u %d %u-%u line %u", execution, (int)f->fqn.n, f->fqn.p,
                 (int)f->display_name.n, f->display_name.p, (int)f->definition_key.s.n, f->definition_key.s.p,
                 (int)f->source_file.s.n, f->source_file.s.p, (int)f->package.s.n, f->package.s.p, f->kind, f->origin,
                 f->has_span, f->span_start, f->span_end, vv_fn_line(f));
    }
    for (uint32_t i = 0; i < l->table.file_count; i++)
        add_line(out, "%u file %.*s", execution, (int)l->table.files[i].path.n, l->table.files[i].path.p);
}

static void add_threads(text *out, const look *l, unsigned execution)
{
    for (size_t i = 0; i < l->fold->thread_count; i++) {
        const vv_fold_thread *t = &l->fold->threads[i];
        const vv_site none = {0}, *s = t->start.has_spawn_site ? &t->start.spawn_site : &none;
        add_line(out, "%u thread %.*s kind %u parent %d spawned %d at %d %u:%u-%u status %u", execution,
                 (int)t->start.name.n, t->start.name.p, t->start.kind, t->start.has_parent, t->start.has_spawn_call,
                 t->start.has_spawn_site, s->line, s->start, s->end, t->end.status);
    }
}

static void add_contexts(text *out, const look *l, unsigned execution)
{
    for (uint32_t i = 0; i < l->fold->context_count; i++) {
        const vv_fold_context *c = &l->fold->contexts[i];
        const vv_counters *n = &c->counters;
        const vv_site none = {0}, *s = c->tuple.has_site ? &c->tuple.site : &none;
        char path[4096], sha[65];
        uint8_t digest[32];
        path_of(l, i, path, sizeof path);
        for (uint32_t up = c->parent; up != VV_MAP_NONE; up = l->fold->contexts[up].parent) {
            const vv_tuple *above = &l->fold->contexts[up].tuple;
            snprintf(path + strlen(path), sizeof path - strlen(path), " %u", above->has_site ? above->site.line : 0);
        }
        vv_sha256(path, strlen(path), digest);
        vv_hex(sha, digest, 32);
        add_line(out, "%u context %s at %d %u:%u-%u: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                 " awaits %" PRIu64, execution, sha, c->tuple.has_site, s->line, s->start, s->end, n->started, n->ok,
                 n->error, n->cancelled, n->exited, n->await_count);
    }
}

static text *describe(const test_store *store)
{
    text *out = calloc(1, sizeof *out);
    ck_assert_ptr_nonnull(out);
    look l = look_store(store->root);
    for (unsigned i = 0; i < DOMAINS; i++) {
        look_fold(&l, 0, i);
        assert_whole(&l);
        unsigned id = l.execution->runtime_id.b[15];
        add_line(out, "%u execution %.*s %.*s status %u", id, (int)l.execution->engine->source.s.n,
                 l.execution->engine->source.s.p, (int)l.execution->engine->revision.s.n,
                 l.execution->engine->revision.s.p, l.execution->status);
        add_table(out, &l, id);
        add_threads(out, &l, id);
        add_contexts(out, &l, id);
    }
    look_done(&l);
    qsort(out->lines, out->count, sizeof out->lines[0], by_text);
    return out;
}

START_TEST(equals_direct_calls)
{
    for (unsigned d = 0; d < DOMAINS; d++) {
        domains[d].domain = modules[d][0].domain = modules[d][1].domain = d;
        modules[d][1].number = 1;
        for (unsigned i = 0; i < FUNCTIONS; i++)
            functions[d][i] = (thing){d, i};
    }
    test_rng rng = test_seeded("recorder_test");
    for (unsigned round = 0; round < 10; round++) {
        test_store a = store_make(), b = store_make();
        record(&a, &calls, rng);
        record(&b, &contract, rng);
        test_random(&rng);
        text *want = describe(&a), *got = describe(&b);
        ck_assert_uint_gt(want->count, 100);
        ck_assert_uint_eq(want->count, got->count);
        for (size_t i = 0; i < want->count; i++)
            ck_assert_str_eq(want->lines[i], got->lines[i]);
        free(want);
        free(got);
        store_remove(&a);
        store_remove(&b);
    }
}
END_TEST

/* The VM. */

static uint64_t calls_by_name(const look *l, const char *name)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < l->fold->context_count; i++) {
        const vv_function *f = vv_function_table_find(&l->table, l->fold->contexts[i].tuple.function_id);
        if (f && vv_str_eq(f->fqn, vv_cstr(name)))
            sum += l->fold->contexts[i].counters.started;
    }
    return sum;
}

enum { N = 12, EXECUTIONS = 6 };

static void check_execution(const look *l)
{
    assert_whole(l);
    ck_assert_int_eq(l->execution->status, VV_EXEC_SUCCEEDED);
    ck_assert_uint_eq(calls_by_name(l, "app.main"), 1);
    ck_assert_uint_eq(calls_by_name(l, "app.fib"), app_calls_of_fib(N) + app_calls_of_fib(N - 2));
    ck_assert_uint_eq(calls_by_name(l, "app.dig"), APP_DIGS);
    ck_assert_uint_eq(calls_by_name(l, "app.wait"), app_waits(N));
    vv_counters all = totals(l);
    ck_assert_uint_eq(all.error, APP_DIGS);
    ck_assert_uint_eq(all.ok, all.started - all.error);
    ck_assert_uint_eq(all.await_count, 2 * (N - 3));
    ck_assert_uint_eq(l->fold->thread_count, 3);
    ck_assert_uint_eq(started(l, "app.main~app.fib"), 1);
    ck_assert_uint_eq(started(l, "app.main~app.wait"), 1);
    for (uint32_t i = 0; i < l->fold->context_count; i++) {
        const vv_fold_context *c = &l->fold->contexts[i];
        ck_assert(c->parent == VV_MAP_NONE || c->tuple.edge != VV_EDGE_CALL || c->tuple.site.line);
    }
}

START_TEST(counts_the_vm)
{
    test_store s = store_make();
    varve_session *session = session_at(&s, 1000);
    ck_assert(vm_open(NULL));
    ck_assert_int_eq(varve_recorder_attach(vm_host(), session), VARVE_OK);
    vm_started();
    vm_domain *d[2] = {vm_domain_open("one", NULL), vm_domain_open("two", "r2")};
    vm_module *m[2] = {vm_load(d[0], &app), vm_load(d[1], &app)};
    int64_t results[EXECUTIONS];
    for (unsigned i = 0; i < EXECUTIONS; i++)
        vm_start(d[i % 2], vm_function_of(m[i % 2], 0), N, "main", &results[i]);
    ck_assert_uint_eq(vm_run(4), 0);
    for (unsigned i = 0; i < EXECUTIONS; i++)
        ck_assert_int_eq(results[i], app_result(N));
    vm_domain_close(d[0], VARVE_ENDED_OK);
    vm_domain_close(d[1], VARVE_ENDED_OK);
    ck_assert(vm_close());
    varve_session_close(session);

    look l = look_store(s.root);
    for (unsigned i = 0; i < EXECUTIONS; i++) {
        look_fold(&l, 0, i);
        check_execution(&l);
    }
    ck_assert_uint_eq(l.stream->execution_count, EXECUTIONS);
    look_done(&l);
    store_remove(&s);
}
END_TEST

/* Where profiling is off, the host runs on without hooks. */
START_TEST(off)
{
    setenv("BAML_PROFILE", "0", 1);
    varve_session *session = varve_session_open(&(varve_options){.struct_size = sizeof(varve_options)});
    ck_assert(vm_open(NULL));
    ck_assert_int_eq(varve_recorder_attach(vm_host(), session), VARVE_E_REFUSED);
    vm_started();
    ck_assert_ptr_null(varve_host_hooks(vm_host()));
    vm_domain *d = vm_domain_open("one", NULL);
    int64_t result;
    vm_start(d, vm_function_of(vm_load(d, &app), 0), N, "main", &result);
    ck_assert_uint_eq(vm_run(2), 0);
    ck_assert_int_eq(result, app_result(N));
    vm_domain_close(d, VARVE_ENDED_OK);
    ck_assert(vm_close());
    varve_session_close(session);
}
END_TEST

/* A second host of the process has a recorder of its own, once the first has closed. */
START_TEST(again)
{
    test_store s = store_make();
    for (unsigned i = 0; i < 3; i++) {
        varve_session *session = session_at(&s, 1000);
        ck_assert(vm_open(NULL));
        ck_assert_int_eq(varve_recorder_attach(vm_host(), session), VARVE_OK);
        ck_assert_int_eq(varve_recorder_attach(vm_host(), session), VARVE_E_BUSY);
        vm_started();
        ck_assert(vm_close());
        varve_session_close(session);
    }
    store_remove(&s);
}
END_TEST

int main(void)
{
    TCase *t = test_case("recorder", 0);
    tcase_add_test(t, equals_direct_calls);
    tcase_add_test(t, counts_the_vm);
    tcase_add_test(t, off);
    tcase_add_test(t, again);
    return test_run();
}
