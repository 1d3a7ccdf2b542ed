#include "config.h"
#include "hosts/lua/info.h"

#include <string.h>

#include "hosts/lua/chunk.h"
#include "hosts/lua/collect.h"
#include "hosts/lua/host.h"
#include "hosts/lua/layout.h"
#include "hosts/lua/live.h"
#include "hosts/lua/tell.h"

static const char *domain_name, *domain_revision;

void vl_info_set_domain(const char *name, const char *revision)
{
    domain_name = name;
    domain_revision = revision;
}

typedef struct {
    uintptr_t *into;
    size_t room, count;
} list;

static void add(list *l, const void *id)
{
    if (l->count < l->room)
        l->into[l->count] = vl_id(id);
    l->count++;
}

static void add_modules(list *l)
{
    for (const vl_chunk *c = vl_chunks; c; c = c->next_made)
        if (c->loaded)
            add(l, c);
}

static void add_functions(list *l)
{
    for (const vl_function *f = vl_live_c_functions; f; f = f->next)
        add(l, f);
    for (const vl_chunk *c = vl_chunks; c; c = c->next_made)
        for (size_t i = 0; c->loaded && i < c->names.n; i++)
            if (c->functions[i].loaded)
                add(l, &c->functions[i]);
}

static void add_threads(list *l)
{
    if (vl.main.alive)
        add(l, &vl.main);
    for (const vl_shadow *s = vl.all; s; s = s->next)
        if (s->alive)
            add(l, s);
}

static void add_domains(list *l)
{
    if (vl.L)
        add(l, &vl);
}

static varve_code enumerate(void *me, varve_live_kind kind, uintptr_t *into, size_t room, size_t *ret_count)
{
    static void (*const adders[])(list *l) = {[VARVE_LIVE_DOMAINS] = add_domains,
                                              [VARVE_LIVE_MODULES] = add_modules,
                                              [VARVE_LIVE_FUNCTIONS] = add_functions,
                                              [VARVE_LIVE_THREADS] = add_threads};
    (void)me;
    list l = {.into = into, .room = room};
    vl_live_lock();
    adders[kind](&l);
    vl_live_unlock();
    *ret_count = l.count;
    return VARVE_OK;
}

static varve_code describe_domain(void *me, varve_domain_id domain, varve_domain_desc *ret)
{
    (void)me;
    (void)domain;
    ret->name = domain_name;
    ret->revision = domain_revision;
    ret->roles = VARVE_ALL_ROLES;
    return VARVE_OK;
}

static varve_code describe_module(void *me, varve_module_id module, varve_module_desc *ret)
{
    (void)me;
    const vl_chunk *c = (const vl_chunk *)module;
    ret->domain = vl_id(&vl);
    ret->name = c->module;
    ret->path = c->file;
    return VARVE_OK;
}

/* The name of a C function is its key: "c:string.sub"; the root's has no such head. */
static void describe_native(const vl_function *f, varve_function_desc *ret)
{
    bool builtin = !strncmp(f->name, "c:", 2);
    ret->definition_key = f->name;
    ret->name = f->name + (builtin ? 2 : 0);
    ret->kind = VARVE_FN_NATIVE;
    ret->origin = builtin ? VARVE_FN_BUILTIN : VARVE_FN_INTERNAL;
}

static varve_code describe_function(void *me, varve_function_id function, uint32_t how, varve_function_desc *ret)
{
    (void)me;
    (void)how;
    vl_function *f = (vl_function *)function;
    vl_live_lock();
    const char *name = vl_live_name(f);
    vl_live_unlock();
    if (!name)
        return VARVE_E_UNAVAILABLE;
    if (f->chunk)
        vl_chunk_describe_function(f, ret);
    else
        describe_native(f, ret);
    return VARVE_OK;
}

static varve_code function_lines(void *me, varve_function_id function, uint32_t how, uint32_t *into, size_t room,
                                 size_t *ret_count)
{
    (void)me;
    (void)how;
    const vl_function *f = (const vl_function *)function;
    size_t n = f->chunk ? SIZE_MAX : 0;
    vl_live_lock(); /* a prototype is freed only after it was taken out of the list */
    if (f->codes && f->codes->proto)
        n = vl_proto_lines(f->codes->proto, into, room);
    vl_live_unlock();
    if (n == SIZE_MAX)
        return VARVE_E_UNAVAILABLE;
    *ret_count = n;
    return VARVE_OK;
}

static varve_code describe_thread(void *me, varve_thread_id thread, varve_thread_desc *ret)
{
    (void)me;
    const vl_shadow *s = (const vl_shadow *)thread;
    ret->domain = vl_id(&vl);
    vl_live_lock();
    ret->name = s == &vl.main ? "main" : s->body ? vl_live_name(s->body) : NULL;
    vl_live_unlock();
    return VARVE_OK;
}

static varve_code current_thread(void *me, varve_thread_id *ret_thread)
{
    (void)me;
    *ret_thread = vl_interpreter ? vl_id(vl.current) : 0;
    return VARVE_OK;
}

/* The line of the last instruction that could call, fail or allocate: Lua notes no other. None while an error is on its
 * way, as the frames may be gone in Lua; nor, during a sweep, where a coroutine may be dead, and its code freed. */
static uint32_t line_of(const vl_shadow *s, const vl_frame *f)
{
    const vl_code *code = f->code;
    if (!vl.private_layout || !s->L || s->throwing || !code->proto)
        return 0;
    if (s->state != VL_THREAD_RUNNING && vl_global_is_sweeping(vl_global_of(s->L)))
        return 0;
    ptrdiff_t pc = ((const vl_callinfo *)f->ci)->u.lua.savedpc - code->code - 1;
    pc += !pc && code->proto->is_vararg; /* its first instruction makes ready, and is no line's */
    return pc >= 0 && (size_t)pc < code->code_size ? (uint32_t)vl_proto_line(code->proto, (int)pc) : 0;
}

static varve_frame frame_of(const vl_shadow *s, const vl_frame *f)
{
    return (varve_frame){.function = vl_id(f->function), .line = line_of(s, f)};
}

static varve_code current_call(void *me, varve_frame *ret)
{
    (void)me;
    const vl_shadow *s = vl.current;
    if (!vl_interpreter || !s->depth)
        return VARVE_E_UNAVAILABLE;
    *ret = frame_of(s, &s->frames[s->depth - 1]);
    return VARVE_OK;
}

static varve_code stack_snapshot(void *me, varve_thread_id thread, varve_frame *into, size_t room, size_t *ret_count)
{
    (void)me;
    const vl_shadow *s = thread ? (const vl_shadow *)thread : vl.current;
    if (!vl_interpreter)
        return VARVE_E_UNAVAILABLE;
    uint32_t depth = s->depth;
    for (uint32_t i = 0; i < depth && i < room; i++)
        into[i] = frame_of(s, &s->frames[depth - 1 - i]);
    *ret_count = depth;
    return VARVE_OK;
}

static void mask_changed(void *me, uint64_t mask)
{
    (void)me;
    if (!(mask & VARVE_MON_COLLECTIONS))
        vl_collect_unheard();
}

const varve_host_functions vl_info = {.size = sizeof vl_info,
                                      .enumerate = enumerate,
                                      .describe_domain = describe_domain,
                                      .describe_module = describe_module,
                                      .describe_function = describe_function,
                                      .function_lines = function_lines,
                                      .describe_thread = describe_thread,
                                      .current_thread = current_thread,
                                      .current_call = current_call,
                                      .stack_snapshot = stack_snapshot,
                                      .call_values = vl_tell_values,
                                      .force_collection = vl_collect_force,
                                      .mask_changed = mask_changed};
