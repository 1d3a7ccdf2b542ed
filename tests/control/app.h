/* A program for the VM whose every count is known, and a run of it in the background. */
#pragma once

#include <pthread.h>

#include "base/attr.h"
#include "tests/control/vm.h"

static const vm_op app_main[] = {{VM_CALL, 1, 0, 1}, {VM_TRY, 2, 0, 2}, {VM_SPAWN, 3, 2, 1}, {VM_SPAWN, 4, 3, 3},
                                 {VM_COLLECT, 5, 0, 0}, {VM_END, 6, 0, 0}};
static const vm_op app_fib[] = {
    {VM_RETURN_IF, 10, 1, 0}, {VM_CALL, 11, 1, 1}, {VM_CALL, 12, 2, 1}, {VM_END, 13, 0, 0}};
static const vm_op app_dig[] = {{VM_ALLOCATE, 20, 16, 0}, {VM_CALL, 21, 0, 2}, {VM_END, 22, 0, 0}};
static const vm_op app_wait[] = {
    {VM_RETURN_IF, 30, 0, 0}, {VM_YIELD, 31, 0, 0}, {VM_CALL, 32, 1, 3}, {VM_YIELD, 33, 0, 0}, {VM_END, 34, 0, 0}};
static const vm_body app_bodies[] = {
    {"main", app_main, 1}, {"fib", app_fib, 10}, {"dig", app_dig, 20}, {"wait", app_wait, 30}};
static const vm_source app = {"app", "app.vm", app_bodies, VV_ARRAY_LEN(app_bodies)};

/* main(n) and all that it spawns: */
static inline uint64_t app_calls_of_fib(int64_t n)
{
    return n <= 1 ? 1 : 1 + app_calls_of_fib(n - 1) + app_calls_of_fib(n - 2);
}
static inline int64_t app_result(int64_t n)
{
    int64_t a = 0, b = 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t next = a + b;
        a = b;
        b = next;
    }
    return a + 1; /* the exception that is caught adds 1 */
}
enum { APP_DIGS = VM_DEPTH - 1, APP_EXCEPTIONS = 1, APP_OBJECTS = APP_DIGS + APP_EXCEPTIONS };
enum { APP_BYTES = APP_DIGS * 16 + VM_EXCEPTION_BYTES };
static inline uint64_t app_waits(int64_t n)
{
    return (uint64_t)n - 3 + 1;
}
static inline uint64_t app_calls(int64_t n)
{
    return 1 + app_calls_of_fib(n) + app_calls_of_fib(n - 2) + APP_DIGS + app_waits(n);
}

/* Runs it again and again on two OS threads, until told to stop. */
typedef struct {
    vm_domain *domain;
    pthread_t thread;
    atomic_bool stop;
    atomic_uint rounds;
} app_load;

static inline void *app_load_run(void *of)
{
    app_load *l = of;
    vm_module *m = vm_load(l->domain, &app);
    while (!atomic_load(&l->stop)) {
        vm_start(l->domain, vm_function_of(m, 0), 8, "load", NULL);
        vm_run(2);
        atomic_fetch_add(&l->rounds, 1);
    }
    return NULL;
}

static inline void app_load_begin(app_load *l)
{
    *l = (app_load){.domain = vm_domain_open("load", NULL)};
    pthread_create(&l->thread, NULL, app_load_run, l);
}

static inline void app_load_end(app_load *l)
{
    atomic_store(&l->stop, true);
    pthread_join(l->thread, NULL);
    vm_domain_close(l->domain, VARVE_ENDED_OK);
}
