/*
 * How far an answer can be trusted (docs/http-api.md): states, issues, losses and equations of the executions it
 * speaks of, and the verdict they come to. One accumulator: collected per execution, then merged per answer.
 * Owned by one thread while it grows.
 */
#pragma once

#include "base/json.h"
#include "views/profile.h"

typedef enum { VV_VERDICT_COMPLETE, VV_VERDICT_RUNNING, VV_VERDICT_PARTIAL, VV_VERDICT_DAMAGED } vv_verdict;
const char *vv_verdict_name(vv_verdict v);

/* The words of the API for vv_exec_status (and running) and for index states. */
const char *vv_status_word(unsigned status);
const char *vv_index_state_word(vv_index_state s);
/* The same for people: "the record of the end is missing". */
const char *vv_index_state_text(vv_index_state s);

typedef enum { VV_DATA_COMPLETE, VV_DATA_INCOMPLETE, VV_DATA_ERROR } vv_data_state;
const char *vv_data_state_word(vv_data_state s);
vv_data_state vv_data_state_of(const vv_fold *f);

/* An issue of the fold, or one of these beside them. */
enum { VV_ISSUE_FOLD_ERROR = 100, VV_ISSUE_INDEX_CORRUPT, VV_ISSUE_ROOT_STARTED_LOST, VV_ISSUE_STREAM_ERROR,
       VV_ISSUE_FUNCTION_TABLE };

typedef struct {
    vv_thread_ref execution; /* of a stream's error: the stream's id and zeroes */
    unsigned kind;           /* vv_issue_kind or one of the above */
    vv_issue issue;
    char error[40];          /* the fold's or stream's error name */
} vv_evidence_issue;

typedef enum { VV_HOLDS_UNKNOWN, VV_HOLDS_YES, VV_HOLDS_NO } vv_holds;
enum { VV_EQUATIONS = 24, VV_EQUATION_TERMS = 5, VV_EVIDENCE_ISSUES = 100 };

typedef struct {
    bool no_left, no_right; /* the side is unknown: what it counts is not stored (yet) */
    vv_u128 left, right;
    vv_u128 terms[VV_EQUATION_TERMS];
    vv_holds holds;
} vv_equation;

typedef struct {
    uint64_t executions, running, abandoned;
    uint64_t index_states[4], data_states[3];
    vv_evidence_issue *issues; /* the first VV_EVIDENCE_ISSUES */
    size_t issue_count;
    uint64_t issues_total;
    uint64_t losses[VV_HEALTH_COUNT];
    uint64_t overflow_calls, timing_incomplete;
    vv_equation equations[VV_EQUATIONS];
    vv_verdict verdict;
} vv_evidence;

void vv_evidence_done(vv_evidence *e); /* accepts a zeroed one */

/* Collects one execution into a zeroed accumulator. */
VV_MUST_CHECK vv_code vv_evidence_of(vv_evidence *ret, const vv_execution *execution, const vv_profile *p,
                                     vv_error *err);

/* Adds another execution's evidence: sums, the worst verdict; an equation holds where it holds for all. */
VV_MUST_CHECK vv_code vv_evidence_merge(vv_evidence *e, const vv_evidence *other, vv_error *err);

/* An execution that was left out for want of memory. */
VV_MUST_CHECK vv_code vv_evidence_refused(vv_evidence *e, const vv_execution *x, vv_error *err);

/* A stream whose index can't be opened: damage, as its executions can't be listed. */
VV_MUST_CHECK vv_code vv_evidence_stream_error(vv_evidence *e, const vv_stream *s, vv_error *err);

/* Calls and time that a query's own choice left out, for "filtered"; all zero writes {}. */
typedef struct {
    uint64_t nodes;
    vv_u128 calls, self_ns;
} vv_filtered;

/* Writes the object. filtered may be NULL. */
void vv_evidence_json(vv_json *j, const vv_evidence *e, bool truncated, const vv_filtered *filtered);

/* For people: the equation's name, and an issue in one line. */
const char *vv_equation_name(unsigned which);
enum { VV_ISSUE_TEXT = 160 };
void vv_evidence_issue_text(char out[VV_ISSUE_TEXT], const vv_evidence_issue *i);
