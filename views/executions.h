/* Executions: finding one by its names, the list newest first, and the summary of one (docs/http-api.md). */
#pragma once

#include "views/query.h"

/* "<last 8 hex of the stream id>.<engine>.<thread>" */
enum { VV_SHORT_ID = 52 };
void vv_short_id(char out[VV_SHORT_ID], const vv_thread_ref *root);

/* "2026-11-29T23:45:29.123456789Z" */
enum { VV_TIME_TEXT = 40 };
void vv_time_text(char out[VV_TIME_TEXT], uint64_t unix_ns);

/*
 * The execution that id names: full id, short id, latest, latest~N. ARG where it is none of these, NOTFOUND,
 * AMBIGUOUS (with q->matches). name is the parameter to blame.
 */
VV_MUST_CHECK vv_code vv_query_execution(vv_query *q, vv_str id, const char *name, vv_found *ret, vv_error *err);

/* The execution that the parameter "execution" names; it is needed. */
VV_MUST_CHECK vv_code vv_query_scope(vv_query *q, vv_found *ret, vv_error *err);

/* The numbers of one execution; both are held until released. */
typedef struct {
    const vv_digest *digest;
    const vv_profile *profile;
} vv_loaded;

VV_MUST_CHECK vv_code vv_query_load(const vv_query *q, const vv_found *f, vv_loaded *ret, vv_error *err);
/* The execution that the question's path names. */
VV_MUST_CHECK vv_code vv_query_load_own(vv_query *q, vv_found *ret_found, vv_loaded *ret, vv_error *err);
void vv_loaded_release(vv_library *l, vv_loaded *x); /* accepts a zeroed one */
/* NOTFOUND of what a parameter names; OK where the data is damaged, which can't be said to lack anything. */
VV_MUST_CHECK vv_code vv_query_absent(vv_query *q, const vv_profile *p, const char *name, vv_error *err);

/* A place in the order of executions: in one that is made again, what comes after is smaller. */
enum { VV_FOUND_PLACE = 1 + 8 + 32 };
void vv_found_place(uint8_t out[VV_FOUND_PLACE], const vv_found *f);
/* Notes the streams of the look that can't be read: of their executions nothing is in the list. */
VV_MUST_CHECK vv_code vv_evidence_unreadable(vv_evidence *e, const vv_look *look, vv_error *err);

/* The word for the text of an execution that holds another one, such as "entry_fqn"; NULL where none does. */
const char *vv_execution_word(const vv_execution *x, const vv_digest *d, vv_str text);

/* Writes the fields of one execution into an open object. */
void vv_execution_fields_json(vv_json *j, const vv_found *f, const vv_digest *d);

/* The answers: /executions (status, q, since, until, stream, program, limit, cursor) and /executions/{id}. */
VV_MUST_CHECK vv_code vv_view_executions(vv_json *j, vv_query *q, vv_error *err);
VV_MUST_CHECK vv_code vv_view_execution(vv_json *j, vv_query *q, vv_error *err);
