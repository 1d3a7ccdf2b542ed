/* The VM's answers to the questions of profilers. */
#include "config.h"

#include "tests/control/vm.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/varve.h"

/* Ids to the caller's array, as far as it has room. */
typedef struct {
    uintptr_t *into;
    size_t room, count;
} ids;

static void add(ids *l, const void *id)
{
    if (l->count < l->room)
        l->into[l->count] = (uintptr_t)id;
    l->count++;
}

static void add_modules(ids *l, const vm_domain *d, bool functions)
{
    for (const vm_module *m = d->modules; m; m = m->next) {
        if (!functions)
            add(l, m);
        for (uint32_t i = 0; functions && i < m->source->count; i++)
            add(l, &m->functions[i]);
    }
}

static varve_code enumerate(void *me, varve_live_kind kind, uintptr_t *into, size_t room, size_t *ret_count)
{
    (void)me;
    ids l = {into, room, 0};
    pthread_mutex_lock(vm.lock);
    for (const vm_domain *d = vm.domains; d && kind != VARVE_LIVE_THREADS; d = d->next) {
        if (kind == VARVE_LIVE_DOMAINS)
            add(&l, d);
        else
            add_modules(&l, d, kind == VARVE_LIVE_FUNCTIONS);
    }
    for (const vm_thread *t = vm.threads; t && kind == VARVE_LIVE_THREADS; t = t->next)
        add(&l, t);
    pthread_mutex_unlock(vm.lock);
    *ret_count = l.count;
    return VARVE_OK;
}

static varve_code describe_domain(void *me, varve_domain_id id, varve_domain_desc *ret)
{
    (void)me;
    const vm_domain *d = (const vm_domain *)id;
    ret->name = d->name;
    ret->revision = d->revision;
    return VARVE_OK;
}

static varve_code describe_module(void *me, varve_module_id id, varve_module_desc *ret)
{
    (void)me;
    const vm_module *m = (const vm_module *)id;
    ret->domain = (varve_domain_id)m->domain;
    ret->name = m->source->name;
    ret->path = m->source->path;
    return VARVE_OK;
}

/* Names take memory: they are made for those who ask. */
static const char *full_name(vm_function *f)
{
    char *name = NULL, *made = NULL;
    if (asprintf(&made, "%s.%s", f->module->source->name, f->body->name) < 0)
        return NULL;
    if (atomic_compare_exchange_strong(&f->full_name, &name, made))
        return made;
    free(made); /* another thread was quicker */
    return name;
}

static varve_code describe_function(void *me, varve_function_id id, uint32_t how, varve_function_desc *ret)
{
    (void)me;
    vm_function *f = (vm_function *)id;
    const char *name = atomic_load(&f->full_name);
    if (!name && how & VARVE_DONT_LOAD)
        return VARVE_E_UNAVAILABLE;
    if (!name && !(name = full_name(f)))
        return VARVE_E_NO_MEMORY;
    ret->module = (varve_module_id)f->module;
    ret->name = name;
    ret->display_name = f->body->name;
    ret->definition_key = name;
    ret->package = f->module->domain->name;
    ret->kind = VARVE_FN_BYTECODE;
    ret->origin = VARVE_FN_USER;
    ret->line = f->body->line;
    return VARVE_OK;
}

static varve_code function_lines(void *me, varve_function_id id, uint32_t how, uint32_t *into, size_t room,
                                 size_t *ret_count)
{
    (void)me;
    (void)how; /* the table is there */
    const vm_function *f = (const vm_function *)id;
    size_t n = 0;
    uint32_t last = 0;
    for (const vm_op *op = f->body->ops;; op++) {
        if (op->line > last) {
            if (n < room)
                into[n] = op->line;
            n++;
            last = op->line;
        }
        if (op->code == VM_END)
            break;
    }
    *ret_count = n;
    return VARVE_OK;
}

static varve_code describe_thread(void *me, varve_thread_id id, varve_thread_desc *ret)
{
    (void)me;
    const vm_thread *t = (const vm_thread *)id;
    ret->name = t->name;
    ret->domain = (varve_domain_id)t->domain;
    return VARVE_OK;
}

static varve_code current_thread(void *me, varve_thread_id *ret_thread)
{
    (void)me;
    *ret_thread = (varve_thread_id)vm_current;
    return VARVE_OK;
}

static varve_frame frame_of(const vm_thread *t, uint32_t i)
{
    const vm_frame *f = &t->frames[i];
    return (varve_frame){(varve_function_id)f->function, f->function->body->ops[f->at].line};
}

static varve_code current_call(void *me, varve_frame *ret)
{
    (void)me;
    uint32_t depth = vm_current ? atomic_load(&vm_current->depth) : 0;
    if (!depth)
        return VARVE_E_UNAVAILABLE;
    *ret = frame_of(vm_current, depth - 1);
    return VARVE_OK;
}

/* A thread's frames hold still where it runs here, or where this OS thread has stopped the others. */
static varve_code stack_snapshot(void *me, varve_thread_id id, varve_frame *into, size_t room, size_t *ret_count)
{
    (void)me;
    const vm_thread *t = id ? (const vm_thread *)id : vm_current;
    if (!t || (t != vm_current && !vm_is_collector))
        return VARVE_E_UNAVAILABLE;
    uint32_t depth = atomic_load(&t->depth);
    for (uint32_t i = 0; i < depth && i < room; i++)
        into[i] = frame_of(t, depth - 1 - i);
    *ret_count = depth;
    return VARVE_OK;
}

static varve_code call_values(void *me, varve_values_kind which, varve_value *into, size_t room, size_t *ret_count)
{
    (void)me;
    uint32_t depth = vm_current ? atomic_load(&vm_current->depth) : 0;
    if (!depth || !vm_has_values || which != vm_values)
        return VARVE_E_UNAVAILABLE;
    const vm_frame *f = &vm_current->frames[depth - 1];
    if (room)
        into[0] = (varve_value){.kind = VARVE_VALUE_INT,
                                .as.integer = which == VARVE_VALUES_ARGUMENTS ? f->n : f->result};
    *ret_count = 1;
    return VARVE_OK;
}

static varve_code force_collection(void *me)
{
    (void)me;
    vm_collect(true);
    return VARVE_OK;
}

static bool id_is_live(void *me, varve_live_kind kind, uintptr_t id)
{
    enum { MANY = 4096 };
    uintptr_t live[MANY];
    size_t n;
    enumerate(me, kind, live, MANY, &n);
    for (size_t i = 0; i < n && i < MANY; i++)
        if (live[i] == id)
            return true;
    return n > MANY;
}

const varve_host_functions vm_answers = {
    .size = sizeof vm_answers,
    .enumerate = enumerate,
    .describe_domain = describe_domain,
    .describe_module = describe_module,
    .describe_function = describe_function,
    .function_lines = function_lines,
    .describe_thread = describe_thread,
    .current_thread = current_thread,
    .current_call = current_call,
    .stack_snapshot = stack_snapshot,
    .call_values = call_values,
    .force_collection = force_collection,
    .id_is_live = id_is_live,
};
