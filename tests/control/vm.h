/*
 * A small language runtime that is a host of the profiling contract: the example of how to embed it, and what the tests
 * record. It has several domains, modules that come and go, logical threads that any of its OS threads may run, a
 * collector that stops the world, and exceptions.
 *
 *     vm_open(NULL);                                   or with answers of its own for tests
 *     varve_recorder_attach(vm_host(), session);       profilers that are there from the start
 *     vm_started();
 *     vm_domain *d = vm_domain_open("app", NULL);
 *     vm_module *m = vm_load(d, &source);
 *     vm_start(d, vm_function_of(m, 0), 20, "main", &result);
 *     vm_run(3);                                       until every thread has ended, on 3 OS threads
 *     vm_domain_close(d, VARVE_ENDED_OK);
 *     vm_close();
 *
 * A function has one number n, and adds up a result. There is one VM in a process, as there is one host.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "control/varve-host.h"

typedef enum {
    VM_END,       /* return the result */
    VM_RETURN_IF, /* n <= x: return n */
    VM_CALL,      /* result += callee(n - x) */
    VM_TRY,       /* the same; where it throws, result += 1 */
    VM_SPAWN,     /* a new thread runs callee(n - x) */
    VM_YIELD,     /* another thread's turn */
    VM_ALLOCATE,  /* an object of x bytes */
    VM_THROW,
    VM_COLLECT,
} vm_opcode;

typedef struct {
    vm_opcode code;
    uint32_t line;
    int64_t x;
    uint32_t callee; /* a function of the same module */
} vm_op;

typedef struct {
    const char *name;
    const vm_op *ops; /* up to a VM_END */
    uint32_t line;
} vm_body;

typedef struct {
    const char *name, *path;
    const vm_body *functions;
    uint32_t count;
} vm_source;

typedef struct vm_domain vm_domain;
typedef struct vm_module vm_module;

typedef struct {
    const vm_body *body;
    vm_module *module;
    _Atomic(char *) full_name; /* made when somebody asks for it */
    /* Of the profiler with hooks: the function's, and its call sites' by op. */
    uintptr_t cookie;
    uintptr_t *sites;
} vm_function;

struct vm_module {
    const vm_source *source;
    vm_domain *domain;
    vm_function *functions;
    vm_module *next;
};

struct vm_domain {
    const char *name, *revision;
    vm_module *modules;
    vm_domain *next;
};

typedef struct {
    vm_function *function;
    uint32_t at; /* the op it is at */
    int64_t n, result;
} vm_frame;

enum { VM_DEPTH = 64 }; /* one call more is an exception */

typedef struct vm_thread {
    vm_domain *domain;
    char name[32];
    vm_function *function;
    int64_t n;
    int64_t *result;
    void *cookie;
    bool started;
    unsigned os_thread; /* that it ran on last */
    _Atomic uint32_t depth;
    vm_frame frames[VM_DEPTH];
    struct vm_thread *next, *next_runnable;
} vm_thread;

typedef struct vm_object {
    uint64_t bytes;
    uint32_t kind;
    struct vm_object *next;
} vm_object;
enum { VM_PLAIN = 1, VM_EXCEPTION = 2, VM_EXCEPTION_BYTES = 32 };

/* False: the process has a host already. The calling thread is the VM's until it calls vm_close. change may set other
 * options of the host; NULL: as they are. */
bool vm_open(void (*change)(varve_host_options *o));
varve_host *vm_host(void);
void vm_started(void);
/* As varve_host_close. */
bool vm_close(void);

vm_domain *vm_domain_open(const char *name, const char *revision);
/* Its threads have ended. Its modules are unloaded. */
void vm_domain_close(vm_domain *d, varve_ending how);
vm_module *vm_load(vm_domain *d, const vm_source *source);
/* No thread runs its functions any more. */
void vm_unload(vm_module *m);
vm_function *vm_function_of(vm_module *m, uint32_t i);
/* A thread that nobody spawned. It runs in vm_run; *ret_result (may be NULL) is set when it ends. */
void vm_start(vm_domain *d, vm_function *f, int64_t n, const char *name, int64_t *ret_result);
/* Returns how many threads have ended by an exception. */
unsigned vm_run(unsigned os_threads);
/* A whole collection. Any thread, also one of a profiler; not while the world is stopped. */
void vm_collect(bool forced);

/* What vm_host.c answers from. The lock guards the lists of what lives. */
extern struct vm_state {
    varve_host *host;
    const varve_hooks *hooks;
    pthread_mutex_t *lock;
    vm_domain *domains;
    vm_thread *threads;
} vm;
extern __thread vm_thread *vm_current;   /* runs on this OS thread; NULL: none */
extern __thread bool vm_is_collector;    /* this OS thread has stopped the world */
extern __thread varve_values_kind vm_values; /* what call_values may be asked for here */
extern __thread bool vm_has_values;
extern const varve_host_functions vm_answers;
