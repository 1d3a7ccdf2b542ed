/*
 * A plug-in in small: counts calls, exceptions and allocations of the host, and prints one line when it is detached or
 * the host ends. docs/plugins.md explains it.
 *
 *     cc -shared -fPIC -O2 -o count.so count.c $(pkg-config --cflags varve)
 *     varve-lua --profiler ./count.so script.lua
 *     varve attach PID ./count.so=/tmp/counts     (into that file instead of standard error)
 *     varve detach PID count
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <varve-profiler.h>

/* Events come on several threads at once. */
static struct {
    atomic_uint_fast64_t calls, exceptions, objects, bytes;
    char *file; /* NULL: standard error */
} count;

static void on_initialize(void *me, varve_profiler *self, const varve_info *info, varve_load_kind kind, varve_code *ret)
{
    (void)me;
    (void)kind;
    /* A bit that the host never raises is an error: ask for what there is. */
    const uint64_t wanted = VARVE_MON_ENTER_LEAVE | VARVE_MON_EXCEPTIONS | VARVE_MON_ALLOCATIONS;
    varve_host_desc host = {.size = sizeof host};
    *ret = info->describe_host(self, &host);
    if (*ret == VARVE_OK)
        *ret = info->set_event_mask(self, wanted & host.supported);
}

static void on_call_entered(void *me, varve_thread_id thread, varve_function_id function, const varve_site_id *site,
                            uint64_t ticks)
{
    (void)me;
    (void)thread;
    (void)function;
    (void)site;
    (void)ticks;
    atomic_fetch_add_explicit(&count.calls, 1, memory_order_relaxed);
}

static void on_exception_thrown(void *me, varve_thread_id thread, varve_object_id exception)
{
    (void)me;
    (void)thread;
    (void)exception;
    atomic_fetch_add_explicit(&count.exceptions, 1, memory_order_relaxed);
}

static void on_object_allocated(void *me, varve_object_id object, uint64_t bytes, uint32_t kind)
{
    (void)me;
    (void)object;
    (void)kind;
    atomic_fetch_add_explicit(&count.objects, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&count.bytes, bytes, memory_order_relaxed);
}

/* The last callback, whichever of the two it is: nothing counts any more. */
static void print(void *me)
{
    (void)me;
    FILE *named = count.file ? fopen(count.file, "ae") : NULL, *out = named ? named : stderr;
    if (count.file && !named)
        fprintf(stderr, "count: %s can't be opened, so here:\n", count.file);
    fprintf(out, "count: %" PRIuFAST64 " calls, %" PRIuFAST64 " exceptions, ", atomic_load(&count.calls),
            atomic_load(&count.exceptions));
    fprintf(out, "%" PRIuFAST64 " objects, %" PRIuFAST64 " bytes\n", atomic_load(&count.objects),
            atomic_load(&count.bytes));
    if (named)
        fclose(named);
    free(count.file);
    count.file = NULL;
}

static const varve_callbacks callbacks = {
    .size = sizeof callbacks,
    .version = VARVE_CONTRACT_VERSION,
    .initialize = on_initialize,
    .shutdown = print,
    .detached = print,
    .call_entered = on_call_entered,
    .exception_thrown = on_exception_thrown,
    .object_allocated = on_object_allocated,
};

VARVE_API varve_code varve_plugin_open(uint32_t version, const char *arguments, varve_plugin *ret)
{
    /* The library's version: additions are no obstacle. */
    if (version / 1000 != VARVE_CONTRACT_VERSION / 1000)
        return VARVE_E_ARG;
    if (*arguments && !(count.file = strdup(arguments)))
        return VARVE_E_NO_MEMORY;
    ret->callbacks = &callbacks;
    ret->notify_only = true; /* the recorder is the main profiler */
    return VARVE_OK;
}
