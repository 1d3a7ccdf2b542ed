/* The VM: loading, threads, calls, exceptions, the collector; and what of it profilers are told. */
#include "config.h"

#include "tests/control/vm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/varve.h"

/* Ranks of the locks, for the checks of debug builds: a thread that holds one takes only higher ones. */
enum { RANK_VM = 1, RANK_HEAP = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, heap_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* of what follows */
static vm_thread *first_runnable, **last_runnable = &first_runnable;
static unsigned alive, busy, failed; /* threads; OS threads that run one; threads that ended by an exception */
static bool collecting;
static atomic_bool stop; /* the world */
static vm_object *heap;

struct vm_state vm = {.lock = &lock};
__thread vm_thread *vm_current;
__thread bool vm_is_collector;
__thread varve_values_kind vm_values;
__thread bool vm_has_values;
static __thread unsigned os_thread; /* its number; 0: none of vm_run's */

/* Who is out of memory here has a bug. */
static void *make(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p)
        abort();
    return p;
}

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
    varve_lock_taken(RANK_VM);
}

static void release_lock(void)
{
    varve_lock_released(RANK_VM);
    pthread_mutex_unlock(&lock);
}

bool vm_open(void (*change)(varve_host_options *o))
{
    varve_host_options o = {.size = sizeof o,
                            .version = VARVE_CONTRACT_VERSION,
                            .name = "vm",
                            .language_version = "1",
                            .functions = &vm_answers};
    o.supported = VARVE_MON_FUNCTION_UNLOADS | VARVE_MON_MODULE_LOADS | VARVE_MON_DOMAIN_LOADS |
                  VARVE_MON_FUNCTION_LOADS | VARVE_MON_EXCEPTIONS | VARVE_MON_COLLECTIONS | VARVE_MON_ALLOCATIONS |
                  VARVE_MON_THREADS | VARVE_MON_ENTER_LEAVE | VARVE_MON_SUSPENSIONS | VARVE_CALL_ARGUMENTS |
                  VARVE_CALL_RESULTS;
    if (change)
        change(&o);
    return varve_host_open(&o, &vm.host) == VARVE_OK && varve_host_thread_add(vm.host, 0) == VARVE_OK;
}

varve_host *vm_host(void)
{
    return vm.host;
}

void vm_started(void)
{
    varve_host_started(vm.host);
    vm.hooks = varve_host_hooks(vm.host);
}

bool vm_close(void)
{
    vm_collect(false);
    vm.hooks = NULL;
    varve_host_thread_remove(vm.host);
    return varve_host_close(vm.host);
}

vm_domain *vm_domain_open(const char *name, const char *revision)
{
    vm_domain *d = make(1, sizeof *d);
    *d = (vm_domain){.name = name, .revision = revision};
    take_lock();
    d->next = vm.domains;
    vm.domains = d;
    release_lock();
    VARVE_RAISE(vm.host, domain_loaded, (varve_domain_id)d);
    return d;
}

static varve_site_id place(const vm_function *f, uint32_t at)
{
    return (varve_site_id){.module = (varve_module_id)f->module, .start = at, .end = at + 1,
                           .line = f->body->ops[at].line};
}

static uint32_t op_count(const vm_body *b)
{
    uint32_t n = 1;
    while (b->ops[n - 1].code != VM_END)
        n++;
    return n;
}

/* Cookies for all that can be called and all places that call: the interpreter only passes them on. */
static void map(vm_function *f)
{
    uint32_t n = op_count(f->body);
    f->sites = make(n, sizeof *f->sites);
    f->cookie = vm.hooks->map_function ? vm.hooks->map_function(vm.hooks->me, (varve_function_id)f) : (uintptr_t)f;
    for (uint32_t i = 0; i < n && vm.hooks->map_site; i++) {
        vm_opcode code = f->body->ops[i].code;
        varve_site_id site = place(f, i);
        if (code == VM_CALL || code == VM_TRY)
            f->sites[i] = vm.hooks->map_site(vm.hooks->me, &site);
    }
}

vm_module *vm_load(vm_domain *d, const vm_source *source)
{
    vm_module *m = make(1, sizeof *m);
    *m = (vm_module){.source = source, .domain = d, .functions = make(source->count, sizeof *m->functions)};
    for (uint32_t i = 0; i < source->count; i++)
        m->functions[i] = (vm_function){.body = &source->functions[i], .module = m};
    /* First it can be found, then it is told: nothing is missed in between. */
    take_lock();
    m->next = d->modules;
    d->modules = m;
    release_lock();
    VARVE_RAISE(vm.host, module_loaded, (varve_module_id)m, (varve_domain_id)d);
    for (uint32_t i = 0; i < source->count; i++) {
        VARVE_RAISE(vm.host, function_loaded, (varve_function_id)&m->functions[i], (varve_module_id)m);
        if (vm.hooks)
            map(&m->functions[i]);
    }
    return m;
}

static void unlink_module(vm_module *m)
{
    take_lock();
    vm_module **link = &m->domain->modules;
    while (*link != m)
        link = &(*link)->next;
    *link = m->next;
    release_lock();
}

void vm_unload(vm_module *m)
{
    for (uint32_t i = 0; i < m->source->count; i++)
        VARVE_RAISE(vm.host, function_unloaded, (varve_function_id)&m->functions[i]);
    VARVE_RAISE(vm.host, module_unloaded, (varve_module_id)m);
    unlink_module(m);
    for (uint32_t i = 0; i < m->source->count; i++) {
        free(m->functions[i].full_name);
        free(m->functions[i].sites);
    }
    free(m->functions);
    free(m);
}

void vm_domain_close(vm_domain *d, varve_ending how)
{
    while (d->modules)
        vm_unload(d->modules);
    VARVE_RAISE(vm.host, domain_unloaded, (varve_domain_id)d, how);
    take_lock();
    vm_domain **link = &vm.domains;
    while (*link != d)
        link = &(*link)->next;
    *link = d->next;
    release_lock();
    free(d);
}

vm_function *vm_function_of(vm_module *m, uint32_t i)
{
    return &m->functions[i];
}

/* Threads. */

/* Under the lock. */
static void make_runnable(vm_thread *t)
{
    t->next_runnable = NULL;
    *last_runnable = t;
    last_runnable = &t->next_runnable;
    pthread_cond_broadcast(&changed);
}

static void thread_new(vm_domain *d, vm_function *f, int64_t n, const char *name, vm_thread *parent,
                       int64_t *ret_result)
{
    vm_thread *t = make(1, sizeof *t);
    t->domain = d;
    t->function = f;
    t->n = n;
    t->result = ret_result;
    t->os_thread = os_thread;
    snprintf(t->name, sizeof t->name, "%s", name);
    take_lock();
    t->next = vm.threads;
    vm.threads = t;
    alive++;
    release_lock();
    varve_spawn spawn = {.domain = (varve_domain_id)d, .parent = (varve_thread_id)parent, .name = t->name,
                         .name_length = strlen(t->name)};
    varve_site_id site;
    if (parent) {
        const vm_frame *top = &parent->frames[parent->depth - 1];
        site = place(top->function, top->at);
        spawn.site = &site;
    }
    VARVE_RAISE(vm.host, thread_created, (varve_thread_id)t, &spawn);
    if (vm.hooks)
        t->cookie = vm.hooks->map_thread ? vm.hooks->map_thread(vm.hooks->me, (varve_thread_id)t) : t;
    take_lock();
    make_runnable(t);
    release_lock();
}

void vm_start(vm_domain *d, vm_function *f, int64_t n, const char *name, int64_t *ret_result)
{
    thread_new(d, f, n, name, NULL, ret_result);
}

static void thread_free(vm_thread *t, varve_ending how)
{
    VARVE_RAISE(vm.host, thread_destroyed, (varve_thread_id)t, how, varve_ticks());
    take_lock();
    vm_thread **link = &vm.threads;
    while (*link != t)
        link = &(*link)->next;
    *link = t->next;
    alive--;
    failed += how == VARVE_ENDED_ERRORED;
    pthread_cond_broadcast(&changed);
    release_lock();
    free(t);
}

/* Objects. They live until the next collection. */

static vm_object *allocate(uint64_t bytes, uint32_t kind)
{
    vm_object *o = make(1, sizeof *o);
    *o = (vm_object){.bytes = bytes, .kind = kind};
    pthread_mutex_lock(&heap_lock);
    varve_lock_taken(RANK_HEAP);
    varve_nosuspend_enter(); /* who asks this thread now must not wait for the heap */
    o->next = heap;
    heap = o;
    varve_nosuspend_leave();
    varve_lock_released(RANK_HEAP);
    pthread_mutex_unlock(&heap_lock);
    varve_borrow_enter();
    VARVE_RAISE(vm.host, object_allocated, (varve_object_id)o, bytes, kind);
    varve_borrow_leave();
    return o;
}

static void sweep(bool forced)
{
    uint64_t freed = 0;
    VARVE_RAISE(vm.host, collection_started, 0, forced);
    for (vm_object *o = heap, *next; o; o = next) {
        next = o->next;
        freed += o->bytes;
        varve_borrow_enter();
        VARVE_RAISE(vm.host, object_freed, (varve_object_id)o, o->bytes);
        varve_borrow_leave();
        free(o);
    }
    heap = NULL;
    VARVE_RAISE(vm.host, collection_ended, 0, freed);
}

/* Under the lock: this OS thread stands still during another's collection, and lets that one know. */
static void stand_still(void)
{
    busy -= os_thread != 0;
    pthread_cond_broadcast(&changed);
    while (collecting)
        pthread_cond_wait(&changed, &lock);
    busy += os_thread != 0;
}

void vm_collect(bool forced)
{
    varve_safepoint();
    take_lock();
    stand_still();
    collecting = true;
    release_lock();
    VARVE_RAISE(vm.host, world_stopping, 1);
    take_lock();
    atomic_store(&stop, true);
    while (busy > (os_thread != 0))
        pthread_cond_wait(&changed, &lock);
    release_lock();
    vm_is_collector = true;
    VARVE_RAISE(vm.host, world_stopped);
    sweep(forced);
    vm_is_collector = false;
    take_lock();
    atomic_store(&stop, false);
    collecting = false;
    pthread_cond_broadcast(&changed);
    release_lock();
    VARVE_RAISE(vm.host, world_resumed);
}

/* Where the interpreter can be stopped. */
static void safepoint(void)
{
    varve_safepoint();
    if (!atomic_load_explicit(&stop, memory_order_relaxed))
        return;
    take_lock();
    stand_still();
    release_lock();
}

/* Calls. */

static void leave(vm_thread *t, varve_ending how)
{
    vm_frame *f = &t->frames[t->depth - 1];
    if (vm.hooks)
        vm.hooks->leave(t->cookie, how);
    vm_values = VARVE_VALUES_RESULTS;
    vm_has_values = how == VARVE_ENDED_OK;
    VARVE_RAISE(vm.host, call_left, (varve_thread_id)t, (varve_function_id)f->function, how, 0);
    vm_has_values = false;
    t->depth--;
}

/* Unwinds to the innermost VM_TRY. False: there is none. */
static bool throw(vm_thread *t)
{
    vm_object *o = allocate(VM_EXCEPTION_BYTES, VM_EXCEPTION);
    varve_borrow_enter();
    VARVE_RAISE(vm.host, exception_thrown, (varve_thread_id)t, (varve_object_id)o);
    varve_borrow_leave();
    while (t->depth) {
        vm_frame *top = &t->frames[t->depth - 1];
        varve_function_id f = (varve_function_id)top->function;
        if (top->function->body->ops[top->at].code == VM_TRY) {
            VARVE_RAISE(vm.host, exception_caught, (varve_thread_id)t, f);
            top->result++;
            top->at++;
            return true;
        }
        VARVE_RAISE(vm.host, exception_unwound, (varve_thread_id)t, f);
        leave(t, VARVE_ENDED_ERRORED);
    }
    return false;
}

/* False: the exception that no frame was left for has ended the thread. */
static bool enter(vm_thread *t, vm_function *f, int64_t n)
{
    if (t->depth == VM_DEPTH)
        return throw(t);
    const vm_frame *caller = t->depth ? &t->frames[t->depth - 1] : NULL;
    varve_nosuspend_enter(); /* a stack walk must not find half a frame */
    t->frames[t->depth] = (vm_frame){.function = f, .n = n};
    t->depth++;
    varve_nosuspend_leave();
    if (vm.hooks)
        vm.hooks->enter(t->cookie, f->cookie, caller ? caller->function->sites[caller->at] : 0);
    if (varve_host_wants(vm.host, VARVE_MON_ENTER_LEAVE)) {
        varve_site_id site = caller ? place(caller->function, caller->at) : (varve_site_id){0};
        vm_values = VARVE_VALUES_ARGUMENTS;
        vm_has_values = true;
        varve_raise_call_entered(vm.host, (varve_thread_id)t, (varve_function_id)f, caller ? &site : NULL, 0);
        vm_has_values = false;
    }
    return true;
}

/* The top call has its result. */
static void finish(vm_thread *t, int64_t result)
{
    t->frames[t->depth - 1].result = result;
    leave(t, VARVE_ENDED_OK);
    if (t->depth) {
        vm_frame *caller = &t->frames[t->depth - 1];
        caller->result += result;
        caller->at++;
    } else if (t->result) {
        *t->result = result;
    }
}

typedef enum { GO_ON, YIELDED, ENDED, THREW } outcome;

static outcome step(vm_thread *t)
{
    vm_frame *f = &t->frames[t->depth - 1];
    const vm_op *op = &f->function->body->ops[f->at];
    vm_function *callee = &f->function->module->functions[op->callee];
    switch (op->code) {
    case VM_CALL:
    case VM_TRY: return enter(t, callee, f->n - op->x) ? GO_ON : THREW;
    case VM_THROW: return throw(t) ? GO_ON : THREW;
    case VM_RETURN_IF:
        if (f->n > op->x)
            break;
        f->result = f->n; /* fall through */
    case VM_END: finish(t, f->result); return t->depth ? GO_ON : ENDED;
    case VM_SPAWN: thread_new(t->domain, callee, f->n - op->x, callee->body->name, t, NULL); break;
    case VM_ALLOCATE: allocate((uint64_t)op->x, VM_PLAIN); break;
    case VM_COLLECT: vm_collect(false); break;
    case VM_YIELD: f->at++; return YIELDED;
    }
    f->at++;
    return GO_ON;
}

static outcome interpret(vm_thread *t)
{
    outcome o;
    do {
        safepoint();
        o = step(t);
    } while (o == GO_ON);
    return o;
}

/* The thread goes on here, perhaps where it never was. */
static bool resume(vm_thread *t)
{
    uint64_t ticks = varve_ticks();
    bool moved = t->started && t->os_thread != os_thread, waited = t->started;
    t->os_thread = os_thread;
    if (moved)
        VARVE_RAISE(vm.host, thread_moved, (varve_thread_id)t);
    if (!waited) {
        t->started = true;
        VARVE_RAISE(vm.host, thread_started, (varve_thread_id)t, ticks);
        return enter(t, t->function, t->n);
    }
    if (vm.hooks && vm.hooks->resume)
        vm.hooks->resume(t->cookie, ticks);
    VARVE_RAISE(vm.host, thread_resumed, (varve_thread_id)t, ticks);
    return true;
}

static void suspend(vm_thread *t)
{
    uint64_t ticks = varve_ticks();
    if (vm.hooks && vm.hooks->suspend)
        vm.hooks->suspend(t->cookie, ticks);
    VARVE_RAISE(vm.host, thread_suspended, (varve_thread_id)t, ticks);
    take_lock();
    make_runnable(t);
    release_lock();
}

static void run(vm_thread *t)
{
    vm_current = t;
    outcome o = resume(t) ? interpret(t) : THREW;
    if (o == YIELDED)
        suspend(t);
    vm_current = NULL;
    if (o != YIELDED)
        thread_free(t, o == THREW ? VARVE_ENDED_ERRORED : VARVE_ENDED_OK);
}

/* A thread to run, counted as busy; NULL: none will ever come. */
static vm_thread *next_runnable(void)
{
    take_lock();
    while (alive && (!first_runnable || collecting))
        pthread_cond_wait(&changed, &lock);
    vm_thread *t = alive ? first_runnable : NULL;
    if (t) {
        first_runnable = t->next_runnable;
        if (!first_runnable)
            last_runnable = &first_runnable;
        busy++;
    }
    release_lock();
    return t;
}

static void *run_threads(void *number)
{
    os_thread = (unsigned)(uintptr_t)number;
    varve_host_thread_add(vm.host, 0);
    vm_thread *t;
    while ((t = next_runnable())) {
        run(t);
        take_lock();
        busy--;
        pthread_cond_broadcast(&changed);
        release_lock();
    }
    varve_host_thread_remove(vm.host);
    return NULL;
}

unsigned vm_run(unsigned os_threads)
{
    enum { MOST = 16 };
    pthread_t threads[MOST];
    failed = 0;
    for (unsigned i = 0; i < os_threads && i < MOST; i++)
        pthread_create(&threads[i], NULL, run_threads, (void *)(uintptr_t)(i + 1));
    for (unsigned i = 0; i < os_threads && i < MOST; i++)
        pthread_join(threads[i], NULL);
    return failed;
}
