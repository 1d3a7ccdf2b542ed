/*
 * The fold of one execution (docs/store.md): contexts, overflow, threads, spans, errors, logs, merged
 * from its data groups, with the issues and dependency rules. Every reader, live or durable, server or command, reads
 * this type.
 *
 * A fold is filled group by group in sequence order and can go on when more is committed (vv_fold_advance). One owner
 * while it grows; immutable and shareable in between. Texts are owned by the fold.
 */
#pragma once

#include "base/arena.h"
#include "base/budget.h"
#include "base/map.h"
#include "reader/store.h"

typedef struct {
    vv_context_key key;
    vv_counters counters; /* beside the key: a delta touches these two alone */
    bool defined;
    vv_tuple tuple;
    uint32_t parent; /* index of the parent context in the fold, or VV_MAP_NONE */
} vv_fold_context;

typedef struct {
    vv_thread_ref thread;
    bool has_start, has_end;
    vv_thread_start start;
    vv_thread_end end;
} vv_fold_thread;

typedef struct {
    vv_call_ref call;
    bool has_start, has_end, has_runtime_id, has_input, has_output, has_terminal;
    vv_span_start start;
    vv_span_end end;
    vv_runtime_id runtime_id; /* of the highest ordinal */
    uint32_t runtime_ordinal;
    vv_value_state input, output;
    vv_terminal_error terminal;
} vv_fold_span;

typedef enum {
    VV_ISSUE_NO_ROOT_ENDED,
    VV_ISSUE_MISSING_SEGMENT,
    VV_ISSUE_CORRUPT_SEGMENT,
    VV_ISSUE_GROUP_COUNT,
    VV_ISSUE_UNRESOLVED_SPAN_START,
    VV_ISSUE_UNRESOLVED_CONTEXT,
    VV_ISSUE_UNRESOLVED_OVERFLOW,
    VV_ISSUE_UNRESOLVED_CAPTURE,
} vv_issue_kind;

typedef struct {
    vv_issue_kind kind;
    union { /* by kind */
        struct {
            uint64_t a, b; /* sequence; expected and found; reason and edge */
        };
        vv_call_ref call;
        vv_context_key key;
        vv_capture_id capture;
    };
} vv_issue;

typedef enum { VV_THREAD_MISSING_START, VV_THREAD_MISSING_PARENT, VV_THREAD_ROOT_MISMATCH } vv_thread_issue_kind;
const char *vv_thread_issue_name(vv_thread_issue_kind k);

typedef struct {
    vv_thread_ref thread;
    vv_thread_issue_kind kind;
} vv_thread_issue;

typedef struct vv_fold {
    const vv_execution *execution; /* borrowed from the store it was loaded from */
    vv_thread_ref root;
    bool disturbed; /* a file was not what the look says of it: so it is the fold of no look */
    bool failed; /* a hard error: error.name is one of docs/store.md's, the parts are not to be shown */
    vv_error error;

    vv_map context_map;            /* key -> index */
    vv_fold_context *contexts;
    size_t context_count;
    uint8_t health;                /* ORed bits of all groups */
    bool overflow_present[VV_OVERFLOW_REASONS][VV_EDGES];
    vv_counters overflow[VV_OVERFLOW_REASONS][VV_EDGES];
    vv_map thread_map, span_map, error_map;
    vv_fold_thread *threads;
    size_t thread_count;
    vv_fold_span *spans;
    size_t span_count;
    vv_error_capture *errors;
    size_t error_count;
    vv_span_runtime_id *runtime_ids; /* those of facts of their own, in the order folded; others stand in span starts */
    size_t runtime_id_count;
    vv_log_event *logs;
    size_t log_count;
    vv_call_scope *scopes;
    size_t scope_count;

    uint64_t groups;               /* found so far */
    bool complete;                 /* DataState: no issues and RootEnded */
    vv_issue *issues;
    size_t issue_count;
    vv_thread_issue *thread_issues; /* by thread reference */
    size_t thread_issue_count;
    vv_arena texts;
    vv_budget *budget;             /* where its memory comes from; may be NULL */
    size_t bytes;                  /* memory held, taken from there */
} vv_fold;

/*
 * Loads an execution: the data sequences it may be in, bounded (RangeTooLarge beyond 1,000,000 sequences without a
 * file). The result is always a fold; hard errors are in it (failed). Its memory comes out of budget, which outlives it
 * (NULL: no bound); VV_ERR_NOMEM and VV_ERR_LIMIT (too little is left there) are returned.
 */
VV_MUST_CHECK vv_code vv_fold_load(vv_fold **ret, const vv_store *store, const vv_stream *stream,
                                   const vv_execution *execution, vv_budget *budget, vv_error *err);
/*
 * Stands for an execution that is larger than there is memory for: a failed fold whose error is LimitExceeded. NOMEM.
 */
VV_MUST_CHECK vv_code vv_fold_refused(vv_fold **ret, const vv_execution *execution, vv_error *err);
void vv_fold_free(vv_fold *f); /* accepts NULL */

/*
 * Brings a fold up to a newer look at the same execution by reading only the new groups; where the past changed too (a
 * repaired segment, a hard error) it is loaded afresh. execution belongs to the new store, which must outlive the fold.
 * After an error *f is NULL, or good for vv_fold_free only.
 */
VV_MUST_CHECK vv_code vv_fold_advance(vv_fold **f, const vv_store *store, const vv_stream *stream,
                                      const vv_execution *execution, vv_error *err);

/*
 * Whether the facts of an execution hold these bytes: true too where that can't be told, so that a fold must. Reads,
 * but builds nothing; memory goes by the largest group, of at most max_bytes. NOMEM.
 */
VV_MUST_CHECK vv_code vv_execution_mentions(bool *ret, const vv_store *store, const vv_stream *stream,
                                            const vv_execution *execution, const void *p, size_t n, size_t max_bytes,
                                            vv_error *err);

/* Index of a context, or VV_MAP_NONE. */
uint32_t vv_fold_find_context(const vv_fold *f, const vv_context_key *key);

/*
 * Indexes 0..n-1 sorted as `varve dump` lists them (contexts by key, threads by reference, spans by call, errors by
 * id). The caller frees.
 */
uint32_t *vv_fold_order_contexts(const vv_fold *f);
uint32_t *vv_fold_order_threads(const vv_fold *f);
uint32_t *vv_fold_order_spans(const vv_fold *f);
uint32_t *vv_fold_order_errors(const vv_fold *f);
