/*
 * libvarve: the writer runtime. A host program (a language interpreter, any C program) records every call of its
 * logical threads; the library counts them in a calling-context tree and commits the tree to a store once a second.
 *
 *     varve_options o = {.struct_size = sizeof o, .host_version = "mylang 1.0"};
 *     varve_session *s = varve_session_open(&o);
 *     varve_engine *e = varve_engine_open(s, &(varve_engine_info){.source_label = "main.my"});
 *     uint32_t f = varve_function_add(e, &(varve_function_info){.fqn = "main", .definition_key = "main"});
 *     varve_thread *t;
 *     varve_root *r = varve_root_begin(e, NULL, &t);
 *     varve_call_begin(t, f, 0);
 *     varve_call_end(t, VARVE_CALL_OK);
 *     varve_thread_end(t, VARVE_THREAD_COMPLETED);
 *     varve_root_end(r, VARVE_SUCCEEDED);
 *     varve_engine_close(e);
 *     varve_session_close(s);
 *
 * Where profiling is off (by configuration or because it can't run) the session is a shared object that owns nothing,
 * engines, roots and threads are NULL, and every call accepts NULL and does nothing: a host needs no second code path.
 *
 * Rules. The library prints nothing unless VARVE_STATUS=1 asks for one line at close, installs no signal handler, and
 * never stops or slows the host: pressure loses data, counted by cause. Nothing on the call path allocates, locks or
 * enters the kernel, but for a new 256 KiB ring segment now and then. In a child of fork() everything is off. Times are
 * in ticks of varve_ticks().
 *
 * Memory. Each OS thread that records keeps up to three 256 KiB ring segments for each engine; all memory counts
 * against memory_bytes. Where there is none a call is dropped with all below it, counted in the execution's health and
 * in varve_status.
 *
 * Threads. A varve_thread is a logical thread: it runs on one OS thread at a time and its functions are called there;
 * after it moved to another OS thread, call varve_thread_bind there first. Sessions, engines and roots may be used from
 * any thread.
 */
#ifndef VARVE_H
#define VARVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VARVE_API __attribute__((visibility("default")))

typedef struct varve_session varve_session;
typedef struct varve_engine varve_engine;
typedef struct varve_root varve_root;
typedef struct varve_thread varve_thread;

/* How a call, a thread and an execution ended. The numbers are the store's. */
typedef enum { VARVE_CALL_OK, VARVE_CALL_ERRORED, VARVE_CALL_CANCELLED, VARVE_CALL_EXITED } varve_call_status;
typedef enum { VARVE_THREAD_COMPLETED, VARVE_THREAD_CANCELLED, VARVE_THREAD_ERRORED } varve_thread_status;
typedef enum { VARVE_SUCCEEDED, VARVE_FAILED, VARVE_CANCELLED, VARVE_PANICKED, VARVE_ABANDONED } varve_root_status;

/* Zero (or NULL) means the default. The environment is read at open: BAML_PROFILE (unset, "1" or "true" = on,
 * anything else off), BAML_PROFILE_DIR (wins over store_root), BAML_PROFILE_PUBLISH_INTERVAL_MS (wins over
 * publish_interval_ms). */
typedef struct {
    size_t struct_size;           /* sizeof(varve_options) */
    const char *host_version;     /* "mylang 1.0", stored in the stream's header */
    const char *store_root; /* a profiles-v1 directory; default: the nearest .baml at or above the working directory */
    uint64_t memory_bytes;        /* all memory of the profiler, at least 8,921,088; default 256 MiB, or an eighth of
                                   * RLIMIT_AS where that is less */
    uint64_t max_project_bytes;   /* of the store on disk; default 10 GiB */
    uint64_t minimum_free_bytes;  /* of the file system; default 1 GiB */
    const uint64_t *publish_interval_ms; /* pointer, as 0 is a value (publish on every pass); default 1000 */
} varve_options;

typedef enum {
    VARVE_ACTIVE,
    VARVE_OFF_CONFIGURED,    /* BAML_PROFILE says so */
    VARVE_OFF_MEMORY,        /* memory_bytes is below the minimum, or no memory to be had */
    VARVE_OFF_STORE,         /* the store could not be opened */
    VARVE_OFF_FORKED,        /* this process is a fork of the one that opened the session */
} varve_state;

typedef struct {
    varve_state state;
    const char *store_root; /* absolute where active; valid until close */
    const char *reason;     /* one line: why it is off, or what was lost so far; "" where there is nothing to say */
    uint8_t stream_id[16];
    uint64_t roots_begun, roots_refused, batches_lost, root_ends_lost;
    uint64_t records_lost; /* calls, ends and threads that found no memory */
    uint64_t awaits_lost;  /* intervals that found no memory, or ran backwards */
    uint64_t roots_abandoned; /* ended as VARVE_ABANDONED, by the host or by a close that found them open */
    uint64_t threads_refused; /* spawns that could not join their execution: nothing below them is recorded */
    uint64_t tables_lost;  /* function tables that could not be published (tried again with the next cycle) */
    uint64_t lock_timeouts; /* waits for another process's lock that were given up (nothing is lost by it) */
} varve_status;

/* Never NULL. Failure gives the off session with its reason in varve_session_status. */
VARVE_API varve_session *varve_session_open(const varve_options *options);
VARVE_API void varve_session_status(const varve_session *session, varve_status *ret_status);

/* Counts of this process over all its sessions; they only grow. Any thread. */
typedef struct {
    uint64_t meta_batch_lost;   /* meta segments that could not be published */
    uint64_t root_ended_lost;   /* ends of executions in such, or left at close: they read as Abandoned */
    uint64_t function_table_publish_failed;
    uint64_t profiler_execution_state_unavailable; /* roots that found no slot or no memory */
    uint64_t profiler_thread_lease_unavailable;    /* threads that could not join their execution */
    uint64_t root_abandoned;    /* roots that ended without a result */
    uint64_t health_record_lost; /* records of the health plane that could not be published */
} varve_process_counts;
VARVE_API void varve_process_counters(varve_process_counts *ret);

/*
 * Checkpoints: copies of the consumer's last look, which it takes after each publication (before a varve_flush returns)
 * and, while it has work, every 10 ms. Any thread, in constant time, without waiting for the consumer's work.
 */
typedef struct {
    /* Sequences committed in each plane. They move only once a file and the directory it is in are on the disk. */
    uint64_t meta_high_water, data_high_water, health_high_water;
    uint64_t pending_groups;    /* executions with counts or facts that are not committed */
    uint64_t pending_meta;      /* records of engines and of starts and ends of executions that are not committed */
    uint64_t oldest_pending_ns; /* how long something has been pending; counted anew after each publication */
    bool publication_in_flight; /* one was renamed, but is not known to be on the disk: it blocks the others */
} varve_stream_state;
/* False where the session is off. */
VARVE_API bool varve_stream_checkpoint(varve_session *session, varve_stream_state *ret);

typedef enum {
    VARVE_PART_SPAN_STARTS,
    VARVE_PART_SPAN_ENDS,
    VARVE_PART_RUNTIME_IDS,
    VARVE_PART_VALUES,
    VARVE_PART_ERRORS,
    VARVE_PART_ERROR_LINKS,
    VARVE_PARTS
} varve_part;

typedef struct {
    uint64_t engine, thread;    /* with the stream's id the name of the execution */
    uint64_t health[26];        /* the format's counters so far; what producers count comes at the end */
    uint64_t queued_facts, queued_bytes; /* facts that are not committed */
    uint64_t first_data, last_data; /* data sequences with groups of it; 0: none yet */
    bool publication_in_flight; /* a group of it is in the one that the stream waits for */
    /* Exact evidence: what there was to record (ends: of starts that are committed), what of it waits, is committed,
     * and is lost for whatever reason. The counts move one by one: they are equal only once nothing moves. */
    struct {
        uint64_t all, queued, committed, lost;
    } parts[VARVE_PARTS];
    uint64_t open_spans; /* selected calls that have begun and not ended */
} varve_execution_state;
/* False from the moment the execution is over for the library (before its end is committed), and for NULL. */
VARVE_API bool varve_execution_checkpoint(const varve_root *root, varve_execution_state *ret);

/* Commits all that was recorded before the call, open calls included. False where timeout_ms ran out first or the
 * store failed. */
VARVE_API bool varve_flush(varve_session *session, uint64_t timeout_ms);
/* Flushes (at most 5 s), stops the consumer and releases the stream. Roots still open end as VARVE_ABANDONED; an
 * execution whose root has ended but not all its threads stays without an end, which reads as Abandoned from then on.
 * Handles of engines, roots and threads are void. No other thread may be inside the library. The
 * library registers no atexit handler: the host calls this on its way out. */
VARVE_API void varve_session_close(varve_session *session);

/* Texts are copied. program_id NULL: a fresh random one, right for any host whose functions get their numbers while
 * it runs. */
typedef struct {
    const uint8_t *program_id;  /* 16 bytes */
    const char *source_label;   /* the program as the user named it */
    const char *revision_label; /* for instance the SHA-256 of its main file in hex */
    unsigned roles; /* VARVE_INPUT | ...: the values that this host gives. Others are in no call's plan; 0: none */
} varve_engine_info;
VARVE_API varve_engine *varve_engine_open(varve_session *session, const varve_engine_info *info);
/* Roots still open end as VARVE_ABANDONED; their threads may go on. The handle is void; memory is given back once the
 * last thread has ended and all is committed. */
VARVE_API void varve_engine_close(varve_engine *engine);

typedef enum { VARVE_FN_BYTECODE = 0, VARVE_FN_SYSOP = 1, VARVE_FN_NATIVE = 2 } varve_function_kind;
typedef enum {
    VARVE_FN_USER = 0,
    VARVE_FN_COMPANION = 1,
    VARVE_FN_INTERNAL = 2,
    VARVE_FN_BUILTIN = 3
} varve_function_origin;

/* fqn is required; display_name defaults to it. Texts are copied, cut at 65536 bytes, and made valid UTF-8 ('?' for
 * a bad byte). */
typedef struct {
    const char *fqn, *display_name, *definition_key;
    varve_function_kind kind;
    varve_function_origin origin;
    const char *source_file;    /* NULL: none, and the span is ignored */
    uint32_t span_start, span_end; /* byte offsets in it */
    uint32_t line;                 /* of the definition, from 1; 0 = unknown */
    const char *package;
} varve_function_info;
/* Adds a function to the engine's growing table, from 1. Any thread, at any time before its first call. 0 = no
 * memory: calls to function 0 are counted as unattributed. */
VARVE_API uint32_t varve_function_add(varve_engine *engine, const varve_function_info *info);

/* A file's id for call sites, stable for equal paths of one engine. */
VARVE_API uint32_t varve_file_add(varve_engine *engine, const char *path);
/* A call site's handle, stable for equal sites of one engine; 0 = no site. Cache it: this looks it up under a lock. */
VARVE_API uint32_t varve_site_add(varve_engine *engine, uint32_t file, uint32_t start, uint32_t end, uint32_t line);

/* Raw counter of the profiler's clock (rdtsc where the kernel trusts it, else monotonic ns). */
VARVE_API uint64_t varve_ticks(void);

/* Begins an execution and its root thread, in *ret_thread (required). runtime_id: 16 bytes the host knows the run by,
 * NULL = random. NULL where inactive (*ret_thread is NULL too). Neither blocks nor touches the file system. */
VARVE_API varve_root *varve_root_begin(varve_engine *engine, const uint8_t *runtime_id, varve_thread **ret_thread);
/* Records the result; the first one wins, and a later call, even after the execution is over, does nothing.
 * Descendants may go on; the execution ends when its result is known and its last thread has ended, in either order. */
VARVE_API void varve_root_end(varve_root *root, varve_root_status status);

/* A root of the host's own that is no run of the user's: collecting tests, finalizers, JSON of arguments. Nothing of it
 * is recorded, whatever its calls ask for, also where the session is active. Returns NULL, as *ret_thread then is. */
VARVE_API varve_root *varve_root_suppress(varve_engine *engine, varve_thread **ret_thread);

/*
 * Spawns a child of parent's innermost open call (up = 0), its caller (up = 1), and so on. site is where; name (n
 * bytes, may be NULL) is cut at 256 bytes. The child belongs to the execution at once, and starts with
 * varve_thread_start; every handle must be ended, as it holds the execution open. NULL: not recorded, nor is anything
 * below it. Called where parent runs; the child may start on another OS thread.
 */
VARVE_API varve_thread *varve_thread_spawn(varve_thread *parent, unsigned up, uint32_t site, const char *name,
                                           size_t n);
VARVE_API void varve_thread_start(varve_thread *thread, uint64_t ticks);
/* An open await closes and calls still open end, at this tick: as Ok, Cancelled or Errored after the thread's own
 * status. (For Exited, end them before.) Frees the handle. A thread that never started leaves no trace. */
VARVE_API void varve_thread_end(varve_thread *thread, varve_thread_status status);
VARVE_API void varve_thread_end_at(varve_thread *thread, varve_thread_status status, uint64_t ticks);
/* The thread now runs on the calling OS thread. */
VARVE_API void varve_thread_bind(varve_thread *thread);
/* Open calls of the thread. */
VARVE_API uint64_t varve_thread_depth(const varve_thread *thread);

/* One call. The pair must nest. Cost: one clock read and 8 to 16 bytes each. The _at forms take a tick already read,
 * for events that share an instant (a tail call, a switch of coroutines): ticks must not run backwards within a
 * thread. */
VARVE_API void varve_call_begin(varve_thread *thread, uint32_t function, uint32_t site);
VARVE_API void varve_call_begin_at(varve_thread *thread, uint32_t function, uint32_t site, uint64_t ticks);
VARVE_API void varve_call_end(varve_thread *thread, varve_call_status status);
VARVE_API void varve_call_end_at(varve_thread *thread, varve_call_status status, uint64_t ticks);

/* The innermost open call is suspended between the two. Sums to its await time, one interval a pair. */
VARVE_API void varve_await_begin(varve_thread *thread, uint64_t ticks);
VARVE_API void varve_await_end(varve_thread *thread, uint64_t ticks);

/*
 * Policy: every call is counted; some are selected too, and recorded one by one with the values that policy asks for. A
 * call is selected because it is its execution's first one, because its function is an LLM function, or because its
 * caller passed a LocalId.
 */

/* Values of a selected call. Bits. */
typedef enum { VARVE_INPUT = 1, VARVE_OUTPUT = 2, VARVE_ERROR = 4 } varve_role;
enum { VARVE_ALL_ROLES = VARVE_INPUT | VARVE_OUTPUT | VARVE_ERROR };
/* What a LocalId says of one role. */
typedef enum { VARVE_SWITCH_KEEP, VARVE_SWITCH_ON, VARVE_SWITCH_OFF } varve_switch;

/* What selects a call, beside being the first one, which the library sees itself. Zero: nothing. */
typedef struct {
    bool llm;    /* of the function called */
    bool manual; /* a LocalId was passed; what follows is its (varve_local_id_consume fills it in) */
    uint8_t runtime_id[16];
    varve_switch input, output, error;
} varve_policy;

/* The rule itself, which varve_call_begin_as applies. Bits 0 to 2: the roles; 3: selected; 4 to 6: because root, LLM,
 * manual. Root and LLM turn all roles on, manual leaves them, and then a LocalId's switches count. policy may be NULL.
 * Pure, any thread. */
VARVE_API uint8_t varve_policy_flags(bool root, const varve_policy *policy);

/*
 * LocalIds: a random runtime id for one call to come, and what to capture of that call. They are values of the host's
 * language, the same with profiling on, off or suppressed, and need no session. Their memory is the host's (malloc),
 * not the profiler's. Any thread; aliases share one object, each with a reference of its own.
 */
typedef struct varve_local_id varve_local_id;

/* With one reference. NULL: no memory, or the system has no randomness. */
VARVE_API varve_local_id *varve_local_id_new(void);
/* One reference more, or less; the last one frees it. NULL is accepted. */
VARVE_API varve_local_id *varve_local_id_ref(varve_local_id *id);
VARVE_API void varve_local_id_unref(varve_local_id *id);
/* 16 bytes, and their text "baml_id_1_..." of 32 characters; both live as long as the object. */
VARVE_API const uint8_t *varve_local_id_bytes(const varve_local_id *id);
VARVE_API const char *varve_local_id_text(const varve_local_id *id);
/* Adds up: a role that is kept is as it was, else the last word counts. False: consumed already, and nothing changes;
 * the host raises its error of an invalid argument. */
VARVE_API bool varve_local_id_capture(varve_local_id *id, varve_switch input, varve_switch output, varve_switch error);
/* For the call that the id is passed to, before its begin. Once: the first one gets it, on whatever thread. Fills in
 * all of *ret but llm. False: consumed already, *ret is as it was; the host raises that error. */
VARVE_API bool varve_local_id_consume(varve_local_id *id, varve_policy *ret);

/* Runtime ids as text, for a host's own setters and getters. Parsing is strict; false: it is none. */
VARVE_API bool varve_runtime_id_parse(const char *text, size_t n, uint8_t ret[16]);
VARVE_API void varve_runtime_id_text(const uint8_t id[16], char ret[33]);

/*
 * Logging: where a language's own log statements go. It has nothing to do with sessions and is the same with profiling
 * on, off or suppressed: no profiler state, clock, lock, allocation or store; what a sink does is its own affair.
 */
typedef enum { VARVE_LOG_DEBUG, VARVE_LOG_INFO, VARVE_LOG_WARN, VARVE_LOG_ERROR } varve_log_level;

/* One statement: `log.info("paid", {order: 7})`. All of it is the caller's, for the time of the call only. */
typedef struct {
    varve_log_level level;
    const char *name;          /* of the logger or event; may be NULL */
    const char *message;       /* n bytes */
    size_t n;
    const uint8_t *runtime_id; /* 16 bytes, of the call that logs; NULL: none */
    const char *file;          /* where; may be NULL */
    uint32_t line;             /* from 1; 0: unknown */
    const void *fields;        /* a value of the host's, whose kind its sink knows */
} varve_log_event;

/* Belongs to the host; it may not change while a thread logs. */
typedef struct {
    varve_log_level least; /* what is below is dropped */
    void (*sink)(void *ctx, const varve_log_event *event); /* on the thread that logs; NULL: nothing is wanted */
    void *ctx;
} varve_logger;

/* Whether an event of this level reaches the sink: asked before costly fields are made. A NULL logger wants none. */
VARVE_API bool varve_log_wants(const varve_logger *logger, varve_log_level level);
VARVE_API void varve_log(const varve_logger *logger, const varve_log_event *event);

/*
 * A captured value: one value is put, and containers nest. The thread that its capture was begun on puts its parts;
 * every function accepts NULL, a value that is not wanted, and does nothing. A part is copied as it is put, and charged
 * to memory_bytes before it is. A value is lost, counted, that finds no memory, is larger than a single value may be (a
 * sixteenth of general memory, 512 bytes to 16 MiB), or is not put together as said here; the rest of it is then
 * ignored. Texts are made valid UTF-8 ('?' for a bad byte); a NULL text is empty.
 */
typedef struct varve_capture varve_capture;
VARVE_API void varve_put_null(varve_capture *capture);
VARVE_API void varve_put_bool(varve_capture *capture, bool v);
VARVE_API void varve_put_int(varve_capture *capture, int64_t v);
VARVE_API void varve_put_float(varve_capture *capture, double v);
/* For what is not meant as UTF-8 use varve_put_bytes. */
VARVE_API void varve_put_text(varve_capture *capture, const char *utf8, size_t n);
VARVE_API void varve_put_bytes(varve_capture *capture, const void *p, size_t n);
/* Lowercase hexadecimal digits, '-' before them where negative: "-1f". */
VARVE_API void varve_put_bigint(varve_capture *capture, const char *hex, size_t n);
VARVE_API void varve_put_enum(varve_capture *capture, const char *type, const char *variant);
/* In the place of a value that is left out, with a line for people. */
typedef enum {
    VARVE_OMITTED_ARGUMENT,    /* an argument that was not passed */
    VARVE_OMITTED_UNSUPPORTED, /* of a kind that has no form here: a function, or nested too deeply */
    VARVE_OMITTED_HOST_OWNED,  /* the host's own */
    VARVE_OMITTED_INVALID,     /* not valid at run time */
    VARVE_OMITTED_CYCLE        /* a container that it is in itself */
} varve_omission;
VARVE_API void varve_put_omitted(varve_capture *capture, varve_omission why, const char *message);
/* Containers nest up to 32; the library puts an omitted value in the place of one that is deeper, and passes over what
 * is put in it. */
VARVE_API void varve_list_begin(varve_capture *capture);
VARVE_API void varve_list_end(varve_capture *capture);
VARVE_API void varve_map_begin(varve_capture *capture);
/* The key (or the field's name, in an object) of the value that is put next. */
VARVE_API void varve_map_key(varve_capture *capture, const char *utf8, size_t n);
VARVE_API void varve_map_end(varve_capture *capture);
VARVE_API void varve_object_begin(varve_capture *capture, const char *class_name);
VARVE_API void varve_object_end(varve_capture *capture);
/* Whether nothing of the value is kept any more (or NULL): a host can stop walking a large one. */
VARVE_API bool varve_capture_is_lost(const varve_capture *capture);
/* The host can't copy the value: it is lost, counted as such. */
VARVE_API void varve_capture_fail(varve_capture *capture);

/*
 * Selected calls. What follows is called on the thread's own OS thread, between its calls' begins and ends, and costs
 * calls that are not selected nothing. What is lost is lost by itself, counted by part and reason: the call goes on.
 */

/* Begins a call that policy may select; policy NULL: as varve_call_begin_at. An execution's first call is selected by
 * whichever begin. A LocalId is consumed before, so that its errors come first. */
VARVE_API void varve_call_begin_as(varve_thread *thread, uint32_t function, uint32_t site, uint64_t ticks,
                                   const varve_policy *policy);
/* What the innermost open call still owes: VARVE_INPUT, VARVE_OUTPUT until given; VARVE_ERROR as long as it is open. 0:
 * it is not selected, or its begin was lost. */
VARVE_API unsigned varve_call_roles(const varve_thread *thread);
/* A new runtime id of the innermost open call (up = 0), its caller (1), and so on. Kept where that call is selected,
 * the last one counts; it selects nothing. */
VARVE_API void varve_call_set_runtime_id(varve_thread *thread, unsigned up, const uint8_t id[16]);

/*
 * A value of the innermost open call: VARVE_INPUT, best right after its begin, or VARVE_OUTPUT, right before an end as
 * VARVE_CALL_OK (a call that ends otherwise has no output, and what was given is dropped). NULL: not wanted, given
 * already, or lost, counted; the host goes on without. Else the host puts one value and calls varve_capture_end, all
 * before another call begins. A role that is on and for which no value comes is lost as CopyFailed at the call's end.
 */
VARVE_API varve_capture *varve_value_begin(varve_thread *thread, varve_role role);

typedef enum { VARVE_FRESH, VARVE_RETHROW } varve_error_kind;
typedef enum { VARVE_FROM_BYTECODE, VARVE_FROM_NATIVE, VARVE_FROM_ENGINE, VARVE_FROM_FUTURE } varve_error_source;
#define VARVE_ENDS_ALL UINT64_MAX
typedef struct {
    varve_error_kind kind;     /* made by this fault, or an error that exists already and goes on */
    varve_error_source source;
    unsigned up;       /* who throws: the innermost open call (0), its caller (1), ... */
    uint64_t ends;     /* so many of the innermost open calls will it end; VARVE_ENDS_ALL: nobody catches it */
    uint32_t function; /* of the thrower; 0: as its begin said */
    uint32_t site;     /* where, of varve_site_add; 0: native code without a place */
} varve_error;
/*
 * An error is on its way. Once for each unwind, fresh or not, before the first of the calls that it ends is ended.
 * NULL: it concerns no selected call with the error role (none throws it or is ended by it), or its value is lost,
 * counted. Else the host puts one value, the error, and calls varve_capture_end. Then it ends the calls as
 * VARVE_CALL_ERRORED, innermost first; the selected ones among them are linked to this error.
 */
VARVE_API varve_capture *varve_error_begin(varve_thread *thread, const varve_error *error);

/* The value is whole: submits it. The handle is void. NULL is accepted. */
VARVE_API void varve_capture_end(varve_capture *capture);

#ifdef __cplusplus
}
#endif
#endif
