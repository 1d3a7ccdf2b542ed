/*
 * The host profiling contract, seen from the host: a language runtime that profilers (varve-profiler.h) want to be told
 * about. docs/host-contract.md has the rules with their reasons.
 *
 *     varve_host *host;
 *     varve_host_open(&(varve_host_options){.size = sizeof(varve_host_options), .version = VARVE_CONTRACT_VERSION,
 *                                           .name = "mylang", .language_version = "1.0",
 *                                           .supported = VARVE_MON_MODULE_LOADS, .functions = &answers}, &host);
 *     varve_host_attach(host, &(varve_attach_options){.size = sizeof(varve_attach_options), .callbacks = &c}, &p);
 *     varve_host_started(host);
 *     ...
 *     add(module);                                     first to where enumerate finds it, then:
 *     VARVE_RAISE(host, module_loaded, module, domain);
 *     ...
 *     remove(module);                                  first from where enumerate finds it, then:
 *     VARVE_RAISE(host, module_unloaded, module);      then give its memory back
 *     ...
 *     varve_host_close(host);
 *
 * There is one host in a process; several interpreters are its domains. Its memory is never given back, so that an
 * event raised too late finds a mask of 0.
 *
 * An event costs a load and a branch where nobody wants it. Where somebody does, the profiler is pinned, looked at
 * again, called, and let go. Raise an event on the thread on which it happens, with none of the host's locks held,
 * outside of no-suspend regions, and holding no borrowed object, but where its row (docs/host-contract-reference.md)
 * says otherwise: a profiler may do anything then, calling back included, and the row is all it relies on. Never
 * leave a callback by longjmp or an exception.
 *
 * Threads. Any thread may raise events. A thread that runs the host's code is registered (varve_host_thread_add): on
 * such a thread a profiler may ask SYNC questions in callbacks only, on others at any time. Every function here may be
 * called on any thread unless it says otherwise, but not in signal handlers; those that say "async-signal-safe" there
 * too.
 */
#ifndef VARVE_HOST_H
#define VARVE_HOST_H

#include "varve-profiler.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct varve_host varve_host;

/*
 * The host's answers, one for each info function that is asked of it; NULL = VARVE_E_UNSUPPORTED. They have the
 * contract of the info function of the same name (varve-profiler.h) and its thread rules: what is ASYNC there may be
 * called here at any instruction outside of no-suspend regions, in a signal handler or on another thread too.
 * Arguments are not NULL (`into` may be, with room 0); ids are whatever the profiler gave. Descriptions come zeroed
 * with their size: write nothing beyond it. Results are taken on VARVE_OK only.
 */
typedef struct {
    size_t size;
    varve_code (*enumerate)(void *me, varve_live_kind kind, uintptr_t *into, size_t room, size_t *ret_count);
    varve_code (*describe_domain)(void *me, varve_domain_id domain, varve_domain_desc *ret);
    varve_code (*describe_module)(void *me, varve_module_id module, varve_module_desc *ret);
    varve_code (*describe_function)(void *me, varve_function_id function, uint32_t how, varve_function_desc *ret);
    varve_code (*function_lines)(void *me, varve_function_id function, uint32_t how, uint32_t *into, size_t room,
                                 size_t *ret_count);
    varve_code (*describe_thread)(void *me, varve_thread_id thread, varve_thread_desc *ret);
    varve_code (*current_thread)(void *me, varve_thread_id *ret_thread);
    varve_code (*current_call)(void *me, varve_frame *ret);
    varve_code (*stack_snapshot)(void *me, varve_thread_id thread, varve_frame *into, size_t room, size_t *ret_count);
    varve_code (*call_values)(void *me, varve_values_kind which, varve_value *into, size_t room, size_t *ret_count);
    varve_code (*force_collection)(void *me);
    /* Not an info function: what all profilers together want has changed (VARVE_CALL_ARGUMENTS and _RESULTS included).
     * Called wherever one of them called set_event_mask, also in a signal handler, several at once and out of order:
     * note that something changed, and read varve_host_mask where it matters. */
    void (*mask_changed)(void *me, uint64_t mask);
    /* Debug option: with check_ids, asked for every id that a profiler gives; false = VARVE_E_ARG. kind is
     * VARVE_LIVE_... */
    bool (*id_is_live)(void *me, varve_live_kind kind, uintptr_t id);
} varve_host_functions;

typedef struct {
    size_t size;                          /* sizeof(varve_host_options) */
    uint32_t version;                     /* VARVE_CONTRACT_VERSION */
    const char *name, *language_version;  /* copied, cut at 63 bytes */
    uint64_t supported;                   /* the bits that this host raises, and VARVE_CALL_... that it can answer */
    const varve_host_functions *functions; /* copied; NULL: no answers */
    void *me;                             /* given to them */
    bool check_ids;
    /* Detaching. By default a thread of the library does it, started by the first attach. manual_detach: there is none,
     * and the host calls varve_host_detach_step. wait: stands in for that thread's wait between two looks. */
    bool manual_detach;
    void (*wait)(void *wait_me, uint64_t ms);
    void *wait_me;
} varve_host_options;

/* VARVE_E_ARG for a version or size that is none; VARVE_E_BUSY where the process has a host (one that could not be
 * closed wholly included); VARVE_E_NO_MEMORY. */
VARVE_API varve_code varve_host_open(const varve_host_options *options, varve_host **ret_host);

/* The program runs from here on: profilers attached before were there from the start, those attached later are
 * VARVE_AT_ATTACH. Detaching works from here on. */
VARVE_API void varve_host_started(varve_host *host);

/* The host ends: calls `shutdown` of each active profiler, stops all events, and ends the detach thread. False: some
 * thread is still inside a callback, or a detaching has not come to its end (its thread goes on with it); nothing is
 * freed then, and code of profilers must stay loaded. Events that began before may still run in `shutdown`. Not from a
 * callback, and not while something is being attached. */
VARVE_API bool varve_host_close(varve_host *host);

/* The calling thread runs the host's code from now on, as this logical thread (its first one) / no longer. The latter
 * is called on the thread itself, before it ends. VARVE_E_ARG: it is registered already. */
VARVE_API varve_code varve_host_thread_add(varve_host *host, varve_thread_id thread);
VARVE_API void varve_host_thread_remove(varve_host *host);

/* What the profilers together want, and whether one of these bits is among it. A load; async-signal-safe. The answer is
 * that of a moment ago: a change becomes visible soon. */
static inline uint64_t varve_host_mask(const varve_host *host)
{
    return __atomic_load_n((const uint64_t *)(const void *)host, __ATOMIC_RELAXED);
}
static inline bool varve_host_wants(const varve_host *host, uint64_t bits)
{
    return (varve_host_mask(host) & bits) != 0;
}

/* Raises an event: VARVE_RAISE(host, module_loaded, module, domain). The arguments are those of the row in
 * VARVE_HOST_EVENTS after `me`, and are evaluated only where somebody wants the event. */
#define VARVE_RAISE(host, ...) VARVE_PASTE_(VARVE_RAISE_, VARVE_FORM_(__VA_ARGS__))(host, __VA_ARGS__)
#define VARVE_RAISE_ONE_(host, event) VARVE_RAISE_IF_(host, event, (host))
#define VARVE_RAISE_MORE_(host, event, ...) VARVE_RAISE_IF_(host, event, (host, __VA_ARGS__))
#define VARVE_RAISE_IF_(host, event, arguments)                              \
    do {                                                                     \
        if (__builtin_expect(varve_host_wants(host, VARVE_ON_##event), 0))   \
            varve_raise_##event arguments;                                   \
    } while (0)

/* ONE_ for one argument, MORE_ for up to ten: an empty list of the rest is none in ISO C. */
#define VARVE_FORM_(...) \
    VARVE_PICK_(__VA_ARGS__, MORE_, MORE_, MORE_, MORE_, MORE_, MORE_, MORE_, MORE_, MORE_, ONE_, 0)
#define VARVE_PICK_(a, b, c, d, e, f, g, h, i, j, form, ...) form
#define VARVE_PASTE2_(a, b) a##b
#define VARVE_PASTE_(a, b) VARVE_PASTE2_(a, b)

/* The functions behind it, one for each event: void varve_raise_<event>(varve_host *host, ...). */
#define VARVE_TAIL_(...) VARVE_PASTE_(VARVE_TAIL_, VARVE_FORM_(__VA_ARGS__))(__VA_ARGS__)
#define VARVE_TAIL_ONE_(first)
#define VARVE_TAIL_MORE_(first, ...) , __VA_ARGS__
#define VARVE_RAISE_(name, bit, flags, contract, params, names, text) \
    VARVE_API void varve_raise_##name(varve_host *host VARVE_TAIL_ params);
VARVE_HOST_EVENTS(VARVE_RAISE_)
#undef VARVE_RAISE_

/*
 * The fast path: hooks that a profiler set at start, NULL where none did. Ask once after varve_host_started; the answer
 * holds for the rest of the process. Call them directly around each call, with what map_function, map_thread and
 * map_site gave (where these are NULL: the id itself, the address of the site). Beside them call_entered and call_left
 * are raised for those who want the slow path:
 *
 *     if (hooks)
 *         hooks->enter(thread->cookie, function->cookie, site->cookie);
 *     if (varve_host_wants(host, VARVE_MON_ENTER_LEAVE))
 *         varve_raise_call_entered(host, thread->id, function->id, &site->place, 0);
 *
 * While call_entered and call_left run, answer call_values for the current call if the mask has VARVE_CALL_ARGUMENTS,
 * VARVE_CALL_RESULTS.
 */
VARVE_API const varve_hooks *varve_host_hooks(const varve_host *host);

typedef struct {
    size_t size;                      /* sizeof(varve_attach_options) */
    const varve_callbacks *callbacks; /* copied */
    void *me;                         /* given to them */
    bool notify_only;                 /* one of up to 32 beside the main profiler */
    /* Called once when nothing of the profiler will run again: after `detached`, from the detach thread (or the step),
     * or in varve_host_attach where initialize refused. It unloads the code, so it must not be in it. NULL: nothing. */
    void (*ended)(void *ended_me);
    void *ended_me;
} varve_attach_options;

/* Attaches a profiler: calls initialize here and, where the host has started, attach_complete. It is active when this
 * returns VARVE_OK. VARVE_E_ARG (no initialize, versions, sizes), VARVE_E_BUSY (no slot), VARVE_E_REFUSED,
 * VARVE_E_NO_MEMORY (no detach thread). `ended` is called only where initialize was. Not from a callback. */
VARVE_API varve_code varve_host_attach(varve_host *host, const varve_attach_options *options,
                                       varve_profiler **ret_profiler);

/* As if the profiler had asked for it (info->request_detach); the profiler is void once `ended` has been called. */
VARVE_API varve_code varve_host_request_detach(varve_host *host, varve_profiler *profiler, uint32_t hint_ms);

/* One look at all profilers that are detaching, where manual_detach is set: ends those that nobody is inside of.
 * Returns how long to wait before the next look in ms; 0: none is left. *ret_tid (may be NULL) is a thread that keeps
 * one, 0: none or unknown. One thread at a time; not from a callback. */
VARVE_API uint64_t varve_host_detach_step(varve_host *host, int *ret_tid);

/*
 * The recorder: what varve.h records, by way of this contract. It is the main profiler, there from the start, with fast
 * hooks; attach it before varve_host_started. A domain is an engine of it, a thread without a parent an execution: how
 * that thread ends is the execution's result, but where it exits (VARVE_ENDED_EXITED), how its domain ends. A function
 * and a call site belong to their module's domain, and are called by threads of it.
 *
 * The session is the host's: open, active, closed by it after varve_host_close; the hooks are not called in between any
 * more. VARVE_E_REFUSED where it is off, and nothing is attached: the host runs on without hooks.
 *
 * Evidence, which the contract has no events for, the host gives it by varve.h itself, beside the hooks: where this
 * returned VARVE_OK and map_thread, map_function and map_site are the recorder's (it is the main profiler), a thread's
 * cookie is its varve_thread, NULL where it isn't recorded, and a function's and a site's are their numbers. A call may
 * then begin by varve_call_begin_as instead of `enter_at`; varve_value_begin, varve_error_begin and
 * varve_call_set_runtime_id are called as varve.h says, with the hooks around them. Which values the host gives it says
 * in varve_domain_desc.roles.
 */
typedef struct varve_session varve_session;
VARVE_API varve_code varve_recorder_attach(varve_host *host, varve_session *session);

/*
 * Plug-ins: profilers out of shared objects. A spec is FILE.so or FILE.so=ARGUMENTS (the first = ends the name); a list
 * separates specs by colons. What fails is told in one line each, and the others go on; returns how many failed. Each
 * has the name of its file without .so, which nobody else attached may have, and stays loaded until it has been
 * detached, or for ever. Any thread, not in a callback.
 */
typedef void varve_tell_fn(void *me, const char *line);
VARVE_API uint32_t varve_plugins_load(varve_host *host, const char *const *specs, size_t count, varve_tell_fn *tell,
                                      void *me);
VARVE_API uint32_t varve_plugins_load_list(varve_host *host, const char *list, varve_tell_fn *tell, void *me);

/* From here on `varve attach` and `varve detach` work on this process: one thread waits for them, for this user and
 * root alone, not in children of fork. VARVE_E_BUSY: something listens under its name already; VARVE_E_NO_MEMORY: the
 * system gives no socket or thread. varve_plugins_close ends it, before varve_host_close. */
VARVE_API varve_code varve_plugins_listen(varve_host *host);
VARVE_API void varve_plugins_close(void);

/*
 * Regions of the calling thread; they nest, and each enter has its leave. Async-signal-safe.
 *
 * No-suspend: the thread must not be asked about the host (it holds the allocator's lock, changes a table that a stack
 * walk needs): ASYNC functions say VARVE_E_ASYNC_UNSAFE meanwhile, in release builds too. Events that may lock must not
 * be raised inside.
 *
 * The rest tells the checks of debug builds (--enable-debug) what holds, and costs a call and a count otherwise.
 * Borrow: the thread holds addresses of objects that a safepoint may move. No-safepoint, no-lock, no-alloc: none may
 * happen. varve_lock_taken and _released: the thread takes one of the host's locks, of this rank; ranks rise.
 * varve_safepoint, varve_allocating: one does happen here.
 */
VARVE_API void varve_nosuspend_enter(void);
VARVE_API void varve_nosuspend_leave(void);
VARVE_API void varve_borrow_enter(void);
VARVE_API void varve_borrow_leave(void);
VARVE_API void varve_no_safepoint_enter(void);
VARVE_API void varve_no_safepoint_leave(void);
VARVE_API void varve_no_lock_enter(void);
VARVE_API void varve_no_lock_leave(void);
VARVE_API void varve_no_alloc_enter(void);
VARVE_API void varve_no_alloc_leave(void);
VARVE_API void varve_lock_taken(uint32_t rank);
VARVE_API void varve_lock_released(uint32_t rank);
VARVE_API void varve_safepoint(void);
VARVE_API void varve_allocating(void);

/* The items of a contract, as bits. */
enum {
    VARVE_ITEM_THROW = 0x1,      /* a callback was left by a jump */
    VARVE_ITEM_SAFEPOINT = 0x2,
    VARVE_ITEM_MODE = 0x4,       /* borrowed objects are held */
    VARVE_ITEM_LOCK = 0x8,
    VARVE_ITEM_HOST_LOCKS = 0x10, /* one of the host's is held, or one of a higher rank is */
    VARVE_ITEM_THREAD = 0x20,    /* an event after the thread's thread_destroyed, or a thread the host does not know */
    VARVE_ITEM_ALLOC = 0x40,
    VARVE_ITEM_STATE = 0x80,     /* a transition that is none; info asked of nobody; an event too late */
};

/* Debug builds only: what was found, and where. Texts are static. */
typedef struct {
    uint32_t item;         /* one of VARVE_ITEM_... */
    const char *what;      /* the event, info function or region that needs it */
    const char *inside_of; /* what forbids it: an event, an info function, or a region */
} varve_violation;
typedef void varve_violation_fn(void *me, const varve_violation *violation);
/* Called on the thread that is in the wrong, which goes on afterwards. NULL: the default, which says it on stderr and
 * aborts. Returns whether this build checks at all. */
VARVE_API bool varve_on_violation(varve_violation_fn *fn, void *me);

/* Until the end of the block, violations of these items are accepted on this thread, for a reason:
 *     VARVE_CONTRACT_VIOLATION(VARVE_ITEM_LOCK, "the lock is taken by nobody else before main"); */
#define VARVE_CONTRACT_VIOLATION(items, reason)                                    \
    __attribute__((unused, cleanup(varve_violation_accepted_end))) uint32_t        \
        VARVE_PASTE_(varve_violation_, __LINE__) = varve_violation_accepted((items), "" reason "")
VARVE_API uint32_t varve_violation_accepted(uint32_t items, const char *reason);
VARVE_API void varve_violation_accepted_end(const uint32_t *before);

#ifdef __cplusplus
}
#endif
#endif
