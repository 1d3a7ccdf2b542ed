/*
 * The host profiling contract, seen from the profiler: what a host tells (events), what it can be asked (info), and
 * which promises go with each. The other side is varve-host.h; rules with their reasons are in docs/host-contract.md, a
 * reference of every event and function in docs/host-contract-reference.md.
 *
 *     static void on_module(void *me, varve_module_id module, varve_domain_id domain) { ... }
 *     static void on_init(void *me, varve_profiler *self, const varve_info *info, varve_load_kind kind,
 *                         varve_code *ret)
 *     {
 *         *ret = info->set_event_mask(self, VARVE_MON_MODULE_LOADS | VARVE_MON_EXCEPTIONS);
 *     }
 *     static const varve_callbacks callbacks = {.size = sizeof callbacks, .version = VARVE_CONTRACT_VERSION,
 *                                               .initialize = on_init, .module_loaded = on_module};
 *     VARVE_API varve_code varve_plugin_open(uint32_t version, const char *arguments, varve_plugin *ret)
 *     {
 *         ret->callbacks = &callbacks;
 *         return VARVE_OK;
 *     }
 *
 * Lifetime. initialize is the first callback. What it sets with set_event_mask begins when it has returned VARVE_OK.
 * In a process that already ran, attach_complete follows: everything that lives is either enumerable from then on or
 * was told by an event, so nothing is missed; some things may be told twice. After request_detach no event begins; once
 * none is running any more, anywhere, `detached` is called, the last callback: stop your own threads in it. The code
 * may be unloaded right after it. Where the host ends first, `shutdown` is the last callback and the code stays loaded.
 *
 * Calling the host. An info function is SYNC (call it from a callback only; where a row says "triggers", only from a
 * callback that allows it), ASYNC (from anywhere, a signal handler or a sampling thread included; VARVE_E_ASYNC_UNSAFE
 * says that this thread was caught where the host can't answer: try again later) or INIT_ONLY (from initialize only).
 * A thread that the host does not know (a profiler's own) may call SYNC functions at any time. In a fast hook
 * (varve_hooks) there is no callback: ASYNC functions only.
 *
 * Threads. Events come on the thread on which they happen, on several at once. One that is told here "because the heap
 * is being walked" or the like is told with little allowed: each row names what a callback may do.
 *
 * Ids are the host's own addresses. They are valid until the event that tells their end has returned, are not checked,
 * and a wrong one crashes. Texts that info functions give live as long as the id that was asked about.
 */
#ifndef VARVE_PROFILER_H
#define VARVE_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef VARVE_API
#define VARVE_API __attribute__((visibility("default")))
#endif

/* The version of this contract: 1,000 times the incompatible part, plus a count of additions. A library accepts
 * profilers and hosts of its own thousand; structs begin with their size, so that either side may be older. */
#define VARVE_CONTRACT_VERSION 1000

typedef enum {
    VARVE_OK,
    VARVE_E_NOT_INITIALIZED,  /* no profiler here, or the host has not started yet */
    VARVE_E_DETACHING,        /* this profiler is on its way out */
    VARVE_E_CALL_SEQUENCE,    /* a SYNC function outside of a callback, or one that triggers from one that forbids it */
    VARVE_E_INIT_ONLY,        /* only in initialize */
    VARVE_E_ASYNC_UNSAFE,     /* this thread is in a region of the host that can't be asked; another moment may do */
    VARVE_E_NOT_AFTER_ATTACH, /* not for a profiler that was attached to a running host */
    VARVE_E_IMMUTABLE,        /* a bit that can't change after initialize */
    VARVE_E_NOT_DETACHABLE,   /* no `detached` callback, a fast hook, or an immutable bit is set */
    VARVE_E_MAIN_ONLY,        /* only for the main profiler, not for those that are notified only */
    VARVE_E_NO_THREAD,        /* the calling thread is not one of the host's */
    VARVE_E_UNSUPPORTED,      /* this host has no such event, or no answer to this function */
    VARVE_E_UNAVAILABLE,      /* the host has no answer now (with VARVE_DONT_LOAD: not without loading) */
    VARVE_E_ARG,              /* a NULL, arrays that contradict each other, an unknown bit, a version */
    VARVE_E_BUSY,             /* no free slot: the main one is taken, or all of the others */
    VARVE_E_REFUSED,          /* initialize said no */
    VARVE_E_NO_MEMORY,
} varve_code;

/* The host's addresses, as numbers. 0 is none. */
typedef uintptr_t varve_domain_id;   /* a universe of loaded code and objects: an interpreter state, an isolate */
typedef uintptr_t varve_module_id;   /* a file or chunk of code */
typedef uintptr_t varve_function_id; /* a function's code (not a closure of it) */
typedef uintptr_t varve_thread_id;   /* a logical thread: a coroutine, a fiber, or an OS thread */
typedef uintptr_t varve_object_id;   /* an object, borrowed: valid in the callback that gave it, up to a safepoint */

/* What to be told, the argument of set_event_mask. Bits 0x2 and 0x8 (classes, assemblies) are reserved. For single
 * events VARVE_ON_<event> is the same bit. */
__extension__ enum {
    VARVE_MON_FUNCTION_UNLOADS = 0x1,
    VARVE_MON_MODULE_LOADS = 0x4, /* and unloads */
    VARVE_MON_DOMAIN_LOADS = 0x10, /* and unloads */
    VARVE_MON_FUNCTION_LOADS = 0x20,
    VARVE_MON_EXCEPTIONS = 0x40,  /* thrown, caught, unwound */
    VARVE_MON_COLLECTIONS = 0x80,
    VARVE_MON_ALLOCATIONS = 0x100,
    VARVE_MON_THREADS = 0x200,
    VARVE_MON_ENTER_LEAVE = 0x1000, /* the slow path: SYNC functions may be called */
    VARVE_MON_SUSPENSIONS = 0x10000,
    /* Not events: call_values may be asked for arguments in call_entered, for results in call_left. The main
     * profiler's, and immutable: a host may prepare its calls for them when it starts. */
    VARVE_CALL_ARGUMENTS = 0x2000000,
    VARVE_CALL_RESULTS = 0x4000000,
};

typedef enum { VARVE_AT_STARTUP, VARVE_AT_ATTACH } varve_load_kind;

/* How a call, a thread, a domain ended; numbers as in varve_call_status. */
typedef enum { VARVE_ENDED_OK, VARVE_ENDED_ERRORED, VARVE_ENDED_CANCELLED, VARVE_ENDED_EXITED } varve_ending;

/* A place in a module. In fast hooks its number is what map_site made of it. */
typedef struct {
    varve_module_id module;
    uint32_t start, end, line; /* byte offsets, and a line from 1; 0 = unknown */
} varve_site_id;

/* A logical thread that begins. Valid during the callback. */
typedef struct {
    varve_domain_id domain;
    varve_thread_id parent;      /* 0: nobody's; it begins an execution of its own */
    uint32_t up;                 /* spawned by the parent's innermost open call (0), its caller (1), ... */
    const varve_site_id *site;   /* where; NULL = unknown */
    const char *name;            /* name_length bytes, or NULL */
    size_t name_length;
    const uint8_t *execution_id; /* 16 bytes by which the host knows an execution, or NULL */
} varve_spawn;

typedef struct {
    varve_function_id function; /* 0: a frame that the host does not name */
    uint32_t line;              /* that it is at; 0 = unknown */
} varve_frame;

typedef enum { VARVE_VALUE_NIL, VARVE_VALUE_BOOL, VARVE_VALUE_INT, VARVE_VALUE_FLOAT, VARVE_VALUE_TEXT,
               VARVE_VALUE_OBJECT } varve_value_kind;
/* Valid until the callback returns. */
typedef struct {
    varve_value_kind kind;
    union {
        bool boolean;
        int64_t integer;
        double real;
        struct {
            const char *bytes;
            size_t length;
        } text;
        struct {
            varve_object_id id;
            const char *type;
        } object;
    } as;
} varve_value;

/* What info functions fill: set size first; what the library does not know stays zero. */
typedef struct {
    size_t size;
    const char *name, *revision;
    unsigned roles; /* values that the host gives the recorder: VARVE_INPUT | ... of varve.h; 0: none */
} varve_domain_desc;
typedef struct {
    size_t size;
    varve_domain_id domain;
    const char *name, *path; /* path NULL: no file */
} varve_module_desc;
typedef struct {
    size_t size;
    varve_module_id module;
    const char *name;                 /* qualified, as the user knows it */
    const char *display_name;         /* NULL: the name */
    const char *definition_key;       /* stays the same from run to run; NULL: unknown */
    const char *package;
    uint32_t kind, origin;            /* varve_function_kind, varve_function_origin of varve.h */
    uint32_t span_start, span_end;    /* byte offsets in the module */
    uint32_t line;                    /* of the definition, from 1; 0 = unknown */
} varve_function_desc;
typedef struct {
    size_t size;
    const char *name;
    varve_domain_id domain;
} varve_thread_desc;
typedef struct {
    size_t size;
    const char *name;                 /* "mylang" */
    const char *version;              /* "1.0" */
    uint32_t contract_version;        /* of the library */
    uint64_t supported;               /* the bits that this host raises */
} varve_host_desc;

typedef enum { VARVE_LIVE_DOMAINS, VARVE_LIVE_MODULES, VARVE_LIVE_FUNCTIONS, VARVE_LIVE_THREADS } varve_live_kind;
typedef enum { VARVE_VALUES_ARGUMENTS, VARVE_VALUES_RESULTS } varve_values_kind;
/* For functions that may load or make something in order to answer. */
enum { VARVE_MAY_LOAD = 0, VARVE_DONT_LOAD = 1 };

typedef struct varve_profiler varve_profiler; /* a profiler's place in the host: first argument of info functions */
typedef struct varve_info varve_info;

/*
 * The fast path: hooks that the host calls directly, with no test, pin or callback around them, in return for cookies
 * that the profiler gave for functions, threads and sites. They stay for the life of the process, so set_hooks is
 * INIT_ONLY, for the main profiler at start only, and makes it VARVE_E_NOT_DETACHABLE. Enter and leave nest on each
 * thread. The _at forms take a tick (varve_ticks) for events that share an instant. enter, enter_at, leave and leave_at
 * are required; a NULL suspend or resume is not called.
 */
typedef struct {
    size_t size;
    void *me; /* given to the map_ functions */
    void (*enter)(void *thread, uintptr_t function, uintptr_t site);
    void (*enter_at)(void *thread, uintptr_t function, uintptr_t site, uint64_t ticks);
    void (*leave)(void *thread, varve_ending how);
    void (*leave_at)(void *thread, varve_ending how, uint64_t ticks);
    /* The thread's innermost call waits from the one to the other. */
    void (*suspend)(void *thread, uint64_t ticks);
    void (*resume)(void *thread, uint64_t ticks);
    /* Cookies; asked once for each, before it is first used. NULL: the id itself is. These are callbacks that may do
     * anything; SYNC functions may be called. */
    uintptr_t (*map_function)(void *me, varve_function_id function);
    uintptr_t (*map_site)(void *me, const varve_site_id *site);
    void *(*map_thread)(void *me, varve_thread_id thread);
} varve_hooks;

/* Flags of the tables' rows. */
enum {
    VARVE_AFTER_ATTACH = 0x1,    /* also for a profiler attached to a running host */
    VARVE_WHILE_DETACHING = 0x2, /* delivered while detaching (by the detach thread only) */
    VARVE_WHILE_INIT = 0x4,      /* delivered before the profiler is active */
    VARVE_FOR_THREAD = 0x8,      /* told about the thread that is its first argument, not the calling one */
    VARVE_LIFECYCLE = 0x10,      /* the library's own: no mask bit, no host raises it */
    VARVE_SIMPLE = 0x20,         /* ASYNC, and so simple that no region of the host is too delicate for it */
};

/*
 * The events. Each row states the whole contract of the call to the profiler; what is not the preferred value has its
 * reason. Preferred: the callback throws nothing over the host (NOTHROW: no longjmp, no exception) and may do anything
 * else: reach a safepoint of the host (SAFEPOINT: collections may run, borrowed objects may move), as the caller holds
 * no borrowed object (PREEMPTIVE), take locks (LOCK), as the caller holds none of the host's (NO_HOST_LOCKS), and
 * allocate (ALLOC). COOPERATIVE: an object in the arguments is borrowed.
 *
 * X(name, bit, flags, (throws, safepoint, mode, locks, host's locks, allocation), (parameters), (their names), text)
 *
 * Rows are only ever added at the end of VARVE_HOST_EVENTS: their order is the layout of varve_callbacks. A new row
 * says a bit of its own or shares one. See docs/adding-an-event.md.
 */
#define VARVE_ANY_CALLBACK \
    (PREFERRED(NOTHROW), PREFERRED(SAFEPOINT), PREFERRED(PREEMPTIVE), PREFERRED(LOCK), PREFERRED(NO_HOST_LOCKS), \
     PREFERRED(ALLOC))
#define VARVE_LIFECYCLE_EVENTS(X) \
    X(initialize, 0, VARVE_LIFECYCLE | VARVE_WHILE_INIT | VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, \
      (void *me, varve_profiler *self, const varve_info *info, varve_load_kind kind, varve_code *ret), \
      (me, self, info, kind, ret), \
      "The first callback. Keep self and info; anything but VARVE_OK in *ret refuses, and nothing more is called.") \
    X(attach_complete, 0, VARVE_LIFECYCLE | VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, (void *me), (me), \
      "Events are on; what lives may be enumerated now. Only for a profiler attached to a running host.") \
    X(shutdown, 0, VARVE_LIFECYCLE | VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, (void *me), (me), \
      "The host ends: the last callback.") \
    X(detached, 0, VARVE_LIFECYCLE | VARVE_WHILE_DETACHING | VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, \
      (void *me), (me), \
      "No callback runs any more, on any thread. The last callback, on the detach thread: end what is yours.")
#define VARVE_HOST_EVENTS(X) \
    X(domain_loaded, VARVE_MON_DOMAIN_LOADS, VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, \
      (void *me, varve_domain_id domain), (me, domain), "The domain can be asked about.") \
    X(domain_unloaded, VARVE_MON_DOMAIN_LOADS, VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, \
      (void *me, varve_domain_id domain, varve_ending how), (me, domain, how), \
      "The domain's last moment; its id ends with this.") \
    X(module_loaded, VARVE_MON_MODULE_LOADS, VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, \
      (void *me, varve_module_id module, varve_domain_id domain), (me, module, domain), \
      "The module can be asked about.") \
    X(module_unloaded, VARVE_MON_MODULE_LOADS, VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, \
      (void *me, varve_module_id module), (me, module), "The module's last moment; its id ends with this.") \
    X(function_loaded, VARVE_MON_FUNCTION_LOADS, VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, \
      (void *me, varve_function_id function, varve_module_id module), (me, function, module), \
      "The function can be called from now on.") \
    X(function_unloaded, VARVE_MON_FUNCTION_UNLOADS, VARVE_AFTER_ATTACH, (PREFERRED(NOTHROW), \
      BECAUSE(NO_SAFEPOINT, "functions die in the sweep of a collection"), PREFERRED(PREEMPTIVE), PREFERRED(LOCK), \
      PREFERRED(NO_HOST_LOCKS), PREFERRED(ALLOC)), \
      (void *me, varve_function_id function), (me, function), "The function's last moment; its id ends with this.") \
    X(thread_created, VARVE_MON_THREADS, VARVE_AFTER_ATTACH | VARVE_FOR_THREAD, VARVE_ANY_CALLBACK, \
      (void *me, varve_thread_id thread, const varve_spawn *spawn), (me, thread, spawn), \
      "A logical thread, on the thread of its parent; it may never start.") \
    X(thread_started, VARVE_MON_THREADS, VARVE_AFTER_ATTACH | VARVE_FOR_THREAD, VARVE_ANY_CALLBACK, \
      (void *me, varve_thread_id thread, uint64_t ticks), (me, thread, ticks), "It runs for the first time, here.") \
    X(thread_moved, VARVE_MON_THREADS, VARVE_AFTER_ATTACH | VARVE_FOR_THREAD, VARVE_ANY_CALLBACK, \
      (void *me, varve_thread_id thread), (me, thread), "It runs on this OS thread from now on.") \
    X(thread_destroyed, VARVE_MON_THREADS, VARVE_AFTER_ATTACH | VARVE_FOR_THREAD, (PREFERRED(NOTHROW), \
      BECAUSE(NO_SAFEPOINT, "threads that nobody can resume die in the sweep of a collection"), \
      PREFERRED(PREEMPTIVE), PREFERRED(LOCK), PREFERRED(NO_HOST_LOCKS), PREFERRED(ALLOC)), \
      (void *me, varve_thread_id thread, varve_ending how, uint64_t ticks), (me, thread, how, ticks), \
      "The thread's last moment, wherever the host finds out; its id ends with this.") \
    X(call_entered, VARVE_MON_ENTER_LEAVE, VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, \
      (void *me, varve_thread_id thread, varve_function_id function, const varve_site_id *site, uint64_t ticks), \
      (me, thread, function, site, ticks), "A call begins; site (may be NULL) is where it was made.") \
    X(call_left, VARVE_MON_ENTER_LEAVE, VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, \
      (void *me, varve_thread_id thread, varve_function_id function, varve_ending how, uint64_t ticks), \
      (me, thread, function, how, ticks), "The innermost call of the thread has ended.") \
    X(exception_thrown, VARVE_MON_EXCEPTIONS, VARVE_AFTER_ATTACH, (PREFERRED(NOTHROW), \
      BECAUSE(NO_SAFEPOINT, "the exception object would move"), \
      BECAUSE(COOPERATIVE, "the exception object is borrowed"), PREFERRED(LOCK), PREFERRED(NO_HOST_LOCKS), \
      PREFERRED(ALLOC)), (void *me, varve_thread_id thread, varve_object_id exception), (me, thread, exception), \
      "Before anything is unwound; the stack is still that of the throw. exception is 0 where it is no object.") \
    X(exception_caught, VARVE_MON_EXCEPTIONS, VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, \
      (void *me, varve_thread_id thread, varve_function_id function), (me, thread, function), \
      "The handler of function has it; what was above is unwound. function is 0 where the host's own code caught it.") \
    X(exception_unwound, VARVE_MON_EXCEPTIONS, VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, \
      (void *me, varve_thread_id thread, varve_function_id function), (me, thread, function), \
      "A call that the exception ends, innermost first, each before its call_left.") \
    X(world_stopping, VARVE_MON_SUSPENSIONS, VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, \
      (void *me, uint32_t why), (me, why), \
      "The host is about to stop its threads; why: 0 other, 1 collection, 2 debugger, 3 shutdown.") \
    X(world_stopped, VARVE_MON_SUSPENSIONS, VARVE_AFTER_ATTACH, (PREFERRED(NOTHROW), \
      BECAUSE(NO_SAFEPOINT, "the world is stopped already"), PREFERRED(PREEMPTIVE), \
      BECAUSE(NO_LOCK, "a stopped thread may hold the lock"), PREFERRED(NO_HOST_LOCKS), \
      BECAUSE(NO_ALLOC, "a stopped thread may hold the allocator's lock")), (void *me), (me), \
      "All threads but this one stand still.") \
    X(world_resumed, VARVE_MON_SUSPENSIONS, VARVE_AFTER_ATTACH, VARVE_ANY_CALLBACK, (void *me), (me), \
      "They run again.") \
    X(thread_suspended, VARVE_MON_SUSPENSIONS, VARVE_AFTER_ATTACH | VARVE_FOR_THREAD, VARVE_ANY_CALLBACK, \
      (void *me, varve_thread_id thread, uint64_t ticks), (me, thread, ticks), \
      "The thread's innermost call waits (for another thread, a yield, an await).") \
    X(thread_resumed, VARVE_MON_SUSPENSIONS, VARVE_AFTER_ATTACH | VARVE_FOR_THREAD, VARVE_ANY_CALLBACK, \
      (void *me, varve_thread_id thread, uint64_t ticks), (me, thread, ticks), "It goes on.") \
    X(collection_started, VARVE_MON_COLLECTIONS, VARVE_AFTER_ATTACH, (PREFERRED(NOTHROW), \
      BECAUSE(NO_SAFEPOINT, "a collection does not begin inside another"), PREFERRED(PREEMPTIVE), PREFERRED(LOCK), \
      PREFERRED(NO_HOST_LOCKS), PREFERRED(ALLOC)), \
      (void *me, uint32_t generation, bool forced), (me, generation, forced), "A collection begins.") \
    X(collection_ended, VARVE_MON_COLLECTIONS, VARVE_AFTER_ATTACH, (PREFERRED(NOTHROW), \
      BECAUSE(NO_SAFEPOINT, "a collection does not begin inside another"), PREFERRED(PREEMPTIVE), PREFERRED(LOCK), \
      PREFERRED(NO_HOST_LOCKS), PREFERRED(ALLOC)), \
      (void *me, uint64_t live_bytes, uint64_t freed_bytes), (me, live_bytes, freed_bytes), "It is over.") \
    X(object_allocated, VARVE_MON_ALLOCATIONS, VARVE_AFTER_ATTACH, (PREFERRED(NOTHROW), \
      BECAUSE(NO_SAFEPOINT, "the new object is not reachable yet"), BECAUSE(COOPERATIVE, "the object is borrowed"), \
      PREFERRED(LOCK), PREFERRED(NO_HOST_LOCKS), PREFERRED(ALLOC)), \
      (void *me, varve_object_id object, uint64_t bytes, uint32_t kind), (me, object, bytes, kind), \
      "Raw memory of an object; its content is not set yet. kind is the host's number of the type, 0 = unknown.") \
    X(object_freed, VARVE_MON_ALLOCATIONS, VARVE_AFTER_ATTACH, (PREFERRED(NOTHROW), \
      BECAUSE(NO_SAFEPOINT, "objects die in the sweep of a collection"), \
      BECAUSE(COOPERATIVE, "the object is borrowed"), PREFERRED(LOCK), PREFERRED(NO_HOST_LOCKS), PREFERRED(ALLOC)), \
      (void *me, varve_object_id object, uint64_t bytes), (me, object, bytes), "Memory that is given back.")

#define VARVE_EVENTS(X) VARVE_LIFECYCLE_EVENTS(X) VARVE_HOST_EVENTS(X)

/* VARVE_ON_<event>: the bit of an event; 0 for the library's own. */
__extension__ enum {
#define VARVE_ON_(name, bit, ...) VARVE_ON_##name = (bit),
    VARVE_EVENTS(VARVE_ON_)
#undef VARVE_ON_
};

/*
 * The callbacks of a profiler, copied when it is attached. NULL = not implemented: nothing is raised for it. `me` is
 * what varve_plugin or varve_attach_options said. A profiler without `detached` can't be detached.
 */
#define VARVE_CALLBACK_(name, bit, flags, contract, params, names, text) void(*name) params;
typedef struct {
    size_t size;      /* sizeof(varve_callbacks) */
    uint32_t version; /* VARVE_CONTRACT_VERSION */
    VARVE_EVENTS(VARVE_CALLBACK_)
} varve_callbacks;
#undef VARVE_CALLBACK_

/*
 * The info functions. Preferred is the opposite of what callbacks prefer, so that they can be called from the most
 * restricted callback: they throw nothing (NOTHROW), reach no safepoint (NO_SAFEPOINT), whatever the caller holds
 * (ANY_MODE), take no lock (NO_LOCK), on any thread (ANY_THREAD), and allocate nothing (NO_ALLOC). ASYNC ones must have
 * NO_SAFEPOINT and ANY_MODE. `triggers` is an expression over the parameters: the call needs a callback that allows a
 * safepoint.
 *
 * X(name, class, flags, triggers, (throws, safepoint, mode, locks, thread, allocation), (parameters), (their names),
 *   text)
 *
 * Each returns one of the codes that its class has (VARVE_E_DETACHING always can be), VARVE_E_ARG for a NULL where a
 * result goes or for arrays that contradict each other, VARVE_E_UNSUPPORTED where the host has no answer to it, and
 * what the text says. Out-parameters are written on VARVE_OK only. Enumerations write at most `room` ids or frames and
 * give in *ret_count how many there are (which may be more); `into` may be NULL where room is 0.
 */
#define VARVE_ANY_INFO \
    (PREFERRED(NOTHROW), PREFERRED(NO_SAFEPOINT), PREFERRED(ANY_MODE), PREFERRED(NO_LOCK), PREFERRED(ANY_THREAD), \
     PREFERRED(NO_ALLOC))
#define VARVE_INFO(X) \
    X(get_event_mask, ASYNC, VARVE_AFTER_ATTACH | VARVE_SIMPLE, false, VARVE_ANY_INFO, \
      (varve_profiler *self, uint64_t *ret_mask), (self, ret_mask), "What this profiler is told.") \
    X(set_event_mask, ASYNC, VARVE_AFTER_ATTACH, false, VARVE_ANY_INFO, \
      (varve_profiler *self, uint64_t mask), (self, mask), \
      "Effective soon: around the change an event may be missed, or one more come. VARVE_E_ARG for unknown bits, " \
      "VARVE_E_UNSUPPORTED for bits that this host never raises, VARVE_E_IMMUTABLE, VARVE_E_NOT_AFTER_ATTACH and " \
      "VARVE_E_MAIN_ONLY for VARVE_CALL_ARGUMENTS and VARVE_CALL_RESULTS. Nothing changes then.") \
    X(request_detach, ASYNC, VARVE_AFTER_ATTACH, false, VARVE_ANY_INFO, \
      (varve_profiler *self, uint32_t hint_ms), (self, hint_ms), \
      "Ends this profiler, see Lifetime above. hint_ms: how long its callbacks may still run, 0 = 2500; the host " \
      "looks at intervals of it, cut to 300 to 5000. VARVE_E_NOT_INITIALIZED before the host has started and in " \
      "initialize, VARVE_E_NOT_DETACHABLE.") \
    X(set_hooks, INIT_ONLY, 0, false, VARVE_ANY_INFO, \
      (varve_profiler *self, const varve_hooks *hooks), (self, hooks), \
      "The fast path of enter and leave; hooks are copied. VARVE_E_MAIN_ONLY, VARVE_E_ARG.") \
    X(describe_host, ASYNC, VARVE_AFTER_ATTACH | VARVE_SIMPLE, false, VARVE_ANY_INFO, \
      (varve_profiler *self, varve_host_desc *ret), (self, ret), "The host's name and version, and what it can.") \
    X(enumerate, SYNC, VARVE_AFTER_ATTACH, false, (PREFERRED(NOTHROW), PREFERRED(NO_SAFEPOINT), PREFERRED(ANY_MODE), \
      BECAUSE(LOCK, "the host's tables of living things grow meanwhile"), PREFERRED(ANY_THREAD), \
      PREFERRED(NO_ALLOC)), \
      (varve_profiler *self, varve_live_kind kind, uintptr_t *into, size_t room, size_t *ret_count), \
      (self, kind, into, room, ret_count), "The ids of what lives: domains, modules, functions or threads.") \
    X(describe_domain, SYNC, VARVE_AFTER_ATTACH, false, VARVE_ANY_INFO, \
      (varve_profiler *self, varve_domain_id domain, varve_domain_desc *ret), (self, domain, ret), "Its name.") \
    X(describe_module, SYNC, VARVE_AFTER_ATTACH, false, VARVE_ANY_INFO, \
      (varve_profiler *self, varve_module_id module, varve_module_desc *ret), (self, module, ret), \
      "Its name, file and domain.") \
    X(describe_function, SYNC, VARVE_AFTER_ATTACH, !(how & VARVE_DONT_LOAD), (PREFERRED(NOTHROW), \
      BECAUSE(SAFEPOINT_IF_TRIGGERS, "a host may make names only when they are asked for"), \
      BECAUSE(PREEMPTIVE_IF_TRIGGERS, "making names may move borrowed objects"), \
      BECAUSE(LOCK, "names may be in a table that grows"), PREFERRED(ANY_THREAD), \
      BECAUSE(ALLOC, "names may have to be made")), \
      (varve_profiler *self, varve_function_id function, uint32_t how, varve_function_desc *ret), \
      (self, function, how, ret), \
      "Its names and place. how is VARVE_MAY_LOAD or VARVE_DONT_LOAD, to which VARVE_E_UNAVAILABLE is an answer.") \
    X(function_lines, SYNC, VARVE_AFTER_ATTACH, !(how & VARVE_DONT_LOAD), (PREFERRED(NOTHROW), \
      BECAUSE(SAFEPOINT_IF_TRIGGERS, "a host may make the table only when it is asked for"), \
      BECAUSE(PREEMPTIVE_IF_TRIGGERS, "making the table may move borrowed objects"), \
      BECAUSE(LOCK, "as for describe_function"), PREFERRED(ANY_THREAD), \
      BECAUSE(ALLOC, "the table may have to be made")), \
      (varve_profiler *self, varve_function_id function, uint32_t how, uint32_t *into, size_t room, \
       size_t *ret_count), \
      (self, function, how, into, room, ret_count), "The lines that have code of it, in rising order.") \
    X(describe_thread, SYNC, VARVE_AFTER_ATTACH, false, VARVE_ANY_INFO, \
      (varve_profiler *self, varve_thread_id thread, varve_thread_desc *ret), (self, thread, ret), "Its name.") \
    X(current_thread, ASYNC, VARVE_AFTER_ATTACH, false, VARVE_ANY_INFO, \
      (varve_profiler *self, varve_thread_id *ret_thread), (self, ret_thread), \
      "The logical thread that runs on the calling OS thread; 0 = none.") \
    X(current_call, ASYNC, VARVE_AFTER_ATTACH, false, VARVE_ANY_INFO, \
      (varve_profiler *self, varve_frame *ret), (self, ret), \
      "The innermost call on the calling OS thread. VARVE_E_UNAVAILABLE where none is open.") \
    X(stack_snapshot, ASYNC, VARVE_AFTER_ATTACH, false, VARVE_ANY_INFO, \
      (varve_profiler *self, varve_thread_id thread, varve_frame *into, size_t room, size_t *ret_count), \
      (self, thread, into, room, ret_count), \
      "The calls of a thread, innermost first; 0 = the one that runs here. VARVE_E_UNAVAILABLE: not while it runs " \
      "elsewhere.") \
    X(call_values, SYNC, 0, false, (PREFERRED(NOTHROW), PREFERRED(NO_SAFEPOINT), PREFERRED(ANY_MODE), \
      PREFERRED(NO_LOCK), BECAUSE(THREAD, "they are those of the calling thread's current call"), \
      PREFERRED(NO_ALLOC)), \
      (varve_profiler *self, varve_values_kind which, varve_value *into, size_t room, size_t *ret_count), \
      (self, which, into, room, ret_count), \
      "The arguments of the current call in call_entered, its results in call_left. VARVE_E_UNAVAILABLE elsewhere, " \
      "or where the mask does not have the bit for it.") \
    X(force_collection, SYNC, VARVE_AFTER_ATTACH, true, (PREFERRED(NOTHROW), \
      BECAUSE(SAFEPOINT, "it is its purpose"), BECAUSE(PREEMPTIVE, "objects move"), \
      BECAUSE(LOCK, "a collection takes the heap's"), PREFERRED(ANY_THREAD), \
      BECAUSE(ALLOC, "a collection runs finalizers")), \
      (varve_profiler *self), (self), "Runs a whole collection, with its events, before it returns.")

#define VARVE_INFO_(name, cls, flags, triggers, contract, params, names, text) varve_code(*name) params;
struct varve_info {
    size_t size; /* of the library's; what lies beyond it is not there */
    uint32_t version;
    VARVE_INFO(VARVE_INFO_)
};
#undef VARVE_INFO_

/*
 * A plug-in exports `varve_plugin_open`. It is called when the plug-in has been loaded, and fills *ret (zeroed before):
 * no callback runs before it has returned. arguments is what followed the file's name on the command line, or "". The
 * plug-in stays loaded until `detached` has returned, or for ever.
 */
typedef struct {
    const varve_callbacks *callbacks;
    void *me;
    bool notify_only; /* beside a main profiler: no hooks, no values of calls */
} varve_plugin;
typedef varve_code varve_plugin_open_fn(uint32_t version, const char *arguments, varve_plugin *ret);
VARVE_API varve_plugin_open_fn varve_plugin_open;

/* "VARVE_E_ARG"; for messages. Any thread. */
VARVE_API const char *varve_code_name(varve_code code);

#ifdef __cplusplus
}
#endif
#endif
