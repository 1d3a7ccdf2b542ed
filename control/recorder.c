/*
 * The recorder as a profiler: what the host says becomes engines, executions and threads of varve.h.
 *
 * A domain is an engine; a thread without a parent begins an execution. Calls and waits look nothing up: the hooks hand
 * the host's cookies, which are the runtime's own handles and numbers, straight on. What memory is missing for is
 * counted as in the runtime, in the process's counters.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "control/idmap.h"
#include "control/varve-host.h"
#include "runtime/process.h"
#include "runtime/varve.h"

/* An execution whose first thread exited: its domain's end says how it ended. */
typedef struct pending {
    varve_root *root;
    struct pending *next;
} pending;

typedef struct {
    varve_engine *engine;
    pending *pending;
} known_domain;

typedef struct {
    varve_thread *thread;
    varve_root *root; /* NULL: not its execution's first */
    varve_domain_id domain;
} known_thread;

/* One in a process, as the host is. The lock guards the tables; what they hold has its own rules. */
static struct {
    pthread_mutex_t lock;
    varve_session *session;
    varve_profiler *self;
    const varve_info *info;
    vv_idmap domains, threads;
} rec = {.lock = PTHREAD_MUTEX_INITIALIZER};

static varve_root_status root_status(varve_ending how)
{
    switch (how) {
    case VARVE_ENDED_ERRORED:
        return VARVE_FAILED;
    case VARVE_ENDED_CANCELLED:
        return VARVE_CANCELLED;
    case VARVE_ENDED_OK:
    case VARVE_ENDED_EXITED:
        break;
    }
    return VARVE_SUCCEEDED;
}

static varve_thread_status thread_status(varve_ending how)
{
    switch (how) {
    case VARVE_ENDED_ERRORED:
        return VARVE_THREAD_ERRORED;
    case VARVE_ENDED_CANCELLED:
        return VARVE_THREAD_CANCELLED;
    case VARVE_ENDED_OK:
    case VARVE_ENDED_EXITED:
        break;
    }
    return VARVE_THREAD_COMPLETED;
}

static varve_engine *engine_of_domain(varve_domain_id id)
{
    pthread_mutex_lock(&rec.lock);
    const known_domain *d = vv_idmap_get(&rec.domains, id);
    varve_engine *e = d ? d->engine : NULL;
    pthread_mutex_unlock(&rec.lock);
    return e;
}

/* The engine that counts a module's functions. A function of no module is its thread's domain's. */
static varve_engine *engine_of(varve_module_id id, varve_module_desc *ret_module)
{
    *ret_module = (varve_module_desc){.size = sizeof *ret_module};
    if (id)
        return rec.info->describe_module(rec.self, id, ret_module) == VARVE_OK ? engine_of_domain(ret_module->domain)
                                                                               : NULL;
    varve_thread_id t;
    varve_thread_desc desc = {.size = sizeof desc};
    bool known = rec.info->current_thread(rec.self, &t) == VARVE_OK && t &&
                 rec.info->describe_thread(rec.self, t, &desc) == VARVE_OK;
    return known ? engine_of_domain(desc.domain) : NULL;
}

static void on_domain_loaded(void *me, varve_domain_id id)
{
    (void)me;
    varve_domain_desc desc = {.size = sizeof desc};
    known_domain *d = rec.info->describe_domain(rec.self, id, &desc) == VARVE_OK ? calloc(1, sizeof *d) : NULL;
    if (!d) {
        vv_count(VV_COUNT_EXECUTION_STATE_UNAVAILABLE, 1);
        return;
    }
    d->engine = varve_engine_open(rec.session, &(varve_engine_info){.source_label = desc.name,
                                                                    .revision_label = desc.revision,
                                                                    .roles = desc.roles});
    pthread_mutex_lock(&rec.lock);
    bool told_before = vv_idmap_get(&rec.domains, id);
    bool kept = !told_before && vv_idmap_put(&rec.domains, id, d);
    pthread_mutex_unlock(&rec.lock);
    if (!kept) {
        vv_count(VV_COUNT_EXECUTION_STATE_UNAVAILABLE, !told_before);
        varve_engine_close(d->engine);
        free(d);
    }
}

static void domain_free(known_domain *d, varve_root_status status)
{
    for (pending *p = d->pending, *next; p; p = next) {
        next = p->next;
        varve_root_end(p->root, status);
        free(p);
    }
    varve_engine_close(d->engine);
    free(d);
}

static void on_domain_unloaded(void *me, varve_domain_id id, varve_ending how)
{
    (void)me;
    pthread_mutex_lock(&rec.lock);
    known_domain *d = vv_idmap_take(&rec.domains, id);
    pthread_mutex_unlock(&rec.lock);
    if (d)
        domain_free(d, root_status(how));
}

static uintptr_t map_site(void *me, const varve_site_id *site)
{
    (void)me;
    varve_module_desc module;
    varve_engine *e = engine_of(site->module, &module);
    return varve_site_add(e, varve_file_add(e, module.path), site->start, site->end, site->line);
}

static uintptr_t map_function(void *me, varve_function_id id)
{
    (void)me;
    varve_function_desc f = {.size = sizeof f};
    if (rec.info->describe_function(rec.self, id, VARVE_MAY_LOAD, &f) != VARVE_OK)
        return 0;
    varve_module_desc module;
    varve_engine *e = engine_of(f.module, &module);
    return varve_function_add(e, &(varve_function_info){.fqn = f.name,
                                                        .display_name = f.display_name,
                                                        .definition_key = f.definition_key,
                                                        .kind = (varve_function_kind)f.kind,
                                                        .origin = (varve_function_origin)f.origin,
                                                        .source_file = module.path,
                                                        .span_start = f.span_start,
                                                        .span_end = f.span_end,
                                                        .line = f.line,
                                                        .package = f.package});
}

static varve_thread *thread_of(varve_thread_id id)
{
    pthread_mutex_lock(&rec.lock);
    const known_thread *t = vv_idmap_get(&rec.threads, id);
    varve_thread *handle = t ? t->thread : NULL;
    pthread_mutex_unlock(&rec.lock);
    return handle;
}

static void *map_thread(void *me, varve_thread_id id)
{
    (void)me;
    return thread_of(id);
}

static known_thread begin_thread(const varve_spawn *spawn)
{
    known_thread t = {.domain = spawn->domain};
    if (spawn->parent) {
        uint32_t site = spawn->site ? (uint32_t)map_site(NULL, spawn->site) : 0;
        t.thread = varve_thread_spawn(thread_of(spawn->parent), spawn->up, site, spawn->name, spawn->name_length);
    } else {
        t.root = varve_root_begin(engine_of_domain(spawn->domain), spawn->execution_id, &t.thread);
    }
    return t;
}

static void end_thread(const known_thread *t, varve_ending how, uint64_t ticks)
{
    /* The runtime ends what is open after the thread's own status, and has none for this one. */
    if (how == VARVE_ENDED_EXITED)
        for (uint64_t n = varve_thread_depth(t->thread); n; n--)
            varve_call_end_at(t->thread, VARVE_CALL_EXITED, ticks);
    varve_thread_end_at(t->thread, thread_status(how), ticks);
}

static void on_thread_created(void *me, varve_thread_id id, const varve_spawn *spawn)
{
    (void)me;
    known_thread *t = malloc(sizeof *t);
    if (!t) {
        vv_count(spawn->parent ? VV_COUNT_THREAD_LEASE_UNAVAILABLE : VV_COUNT_EXECUTION_STATE_UNAVAILABLE, 1);
        return;
    }
    *t = begin_thread(spawn);
    pthread_mutex_lock(&rec.lock);
    bool kept = t->thread && vv_idmap_put(&rec.threads, id, t);
    pthread_mutex_unlock(&rec.lock);
    if (!kept) {
        end_thread(t, VARVE_ENDED_CANCELLED, varve_ticks());
        varve_root_end(t->root, VARVE_ABANDONED);
        free(t);
    }
}

static void on_thread_started(void *me, varve_thread_id id, uint64_t ticks)
{
    (void)me;
    varve_thread *t = thread_of(id);
    varve_thread_start(t, ticks);
    varve_thread_bind(t); /* one that nobody spawned has started where it was made */
}

static void on_thread_moved(void *me, varve_thread_id id)
{
    (void)me;
    varve_thread_bind(thread_of(id));
}

/* False: the domain is gone, or there is no memory to wait for its end with. */
static bool await_domain(varve_domain_id id, varve_root *root)
{
    pending *p = malloc(sizeof *p);
    pthread_mutex_lock(&rec.lock);
    known_domain *d = p ? vv_idmap_get(&rec.domains, id) : NULL;
    if (d) {
        *p = (pending){root, d->pending};
        d->pending = p;
    }
    pthread_mutex_unlock(&rec.lock);
    if (!d)
        free(p);
    return d;
}

static void on_thread_destroyed(void *me, varve_thread_id id, varve_ending how, uint64_t ticks)
{
    (void)me;
    pthread_mutex_lock(&rec.lock);
    known_thread *t = vv_idmap_take(&rec.threads, id);
    pthread_mutex_unlock(&rec.lock);
    if (!t)
        return;
    end_thread(t, how, ticks);
    if (t->root && !(how == VARVE_ENDED_EXITED && await_domain(t->domain, t->root)))
        varve_root_end(t->root, root_status(how));
    free(t);
}

/* The host ends, and will not call the hooks again. What is open stays open: closing the session abandons it. */
static void on_shutdown(void *me)
{
    (void)me;
    known_domain *d;
    while ((d = vv_idmap_take_any(&rec.domains)))
        domain_free(d, VARVE_ABANDONED);
    known_thread *t;
    while ((t = vv_idmap_take_any(&rec.threads)))
        free(t);
    vv_idmap_done(&rec.domains);
    vv_idmap_done(&rec.threads);
    rec.session = NULL;
}

/* The runtime's handles and numbers are narrower than cookies; endings are its call statuses (asserted below). */
static void enter(void *t, uintptr_t function, uintptr_t site)
{
    varve_call_begin(t, (uint32_t)function, (uint32_t)site);
}

static void enter_at(void *t, uintptr_t function, uintptr_t site, uint64_t ticks)
{
    varve_call_begin_at(t, (uint32_t)function, (uint32_t)site, ticks);
}

static void leave(void *t, varve_ending how)
{
    varve_call_end(t, (varve_call_status)how);
}

static void leave_at(void *t, varve_ending how, uint64_t ticks)
{
    varve_call_end_at(t, (varve_call_status)how, ticks);
}

static void suspend(void *t, uint64_t ticks)
{
    varve_await_begin(t, ticks);
}

static void resume(void *t, uint64_t ticks)
{
    varve_await_end(t, ticks);
}

static const varve_hooks hooks = {.size = sizeof hooks,
                                  .enter = enter,
                                  .enter_at = enter_at,
                                  .leave = leave,
                                  .leave_at = leave_at,
                                  .suspend = suspend,
                                  .resume = resume,
                                  .map_function = map_function,
                                  .map_site = map_site,
                                  .map_thread = map_thread};

_Static_assert((int)VARVE_ENDED_OK == (int)VARVE_CALL_OK && (int)VARVE_ENDED_ERRORED == (int)VARVE_CALL_ERRORED &&
                   (int)VARVE_ENDED_CANCELLED == (int)VARVE_CALL_CANCELLED &&
                   (int)VARVE_ENDED_EXITED == (int)VARVE_CALL_EXITED,
               "an ending is a call's status");

static void on_initialize(void *me, varve_profiler *self, const varve_info *info, varve_load_kind kind, varve_code *ret)
{
    (void)me;
    (void)kind;
    rec.self = self;
    rec.info = info;
    *ret = info->set_hooks(self, &hooks);
    if (*ret == VARVE_OK)
        *ret = info->set_event_mask(self, VARVE_MON_DOMAIN_LOADS | VARVE_MON_THREADS);
}

varve_code varve_recorder_attach(varve_host *host, varve_session *session)
{
    static const varve_callbacks callbacks = {.size = sizeof callbacks,
                                              .version = VARVE_CONTRACT_VERSION,
                                              .initialize = on_initialize,
                                              .shutdown = on_shutdown,
                                              .domain_loaded = on_domain_loaded,
                                              .domain_unloaded = on_domain_unloaded,
                                              .thread_created = on_thread_created,
                                              .thread_started = on_thread_started,
                                              .thread_moved = on_thread_moved,
                                              .thread_destroyed = on_thread_destroyed};
    varve_status status;
    varve_session_status(session, &status);
    if (status.state != VARVE_ACTIVE)
        return VARVE_E_REFUSED;
    if (rec.session)
        return VARVE_E_BUSY;
    rec.session = session;
    varve_profiler *profiler;
    varve_code rc = varve_host_attach(host, &(varve_attach_options){.size = sizeof(varve_attach_options),
                                                                    .callbacks = &callbacks}, &profiler);
    if (rc != VARVE_OK)
        rec.session = NULL;
    return rc;
}
