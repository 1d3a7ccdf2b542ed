/*
 * A question to a view: a look at the store, and parameters as HTTP's query and the command's options give them.
 * Views check every parameter; what they don't know, or can't accept, is VV_ERR_ARG with the parameter named.
 * Owned by one thread.
 */
#pragma once

#include "views/library.h"

typedef struct {
    vv_str name, value; /* decoded; a name once, but for those that may be repeated */
} vv_param;

enum { VV_QUERY_MATCHES = 10 };

/* How far a path into a value led. */
typedef struct {
    size_t steps, of; /* of the path's; of 0: nothing to tell */
    size_t bytes;     /* of its text */
    const char *kind; /* of the value there */
} vv_reach;

typedef struct {
    vv_library *library;
    const vv_look *look;
    const vv_param *params;
    size_t param_count;
    vv_str id, sub, third; /* of the path, where a resource has one or more: "/executions/{id}/spans/{sub}" */
    vv_library *base_library; /* where executions of base= are, if in another store; NULL: in this one */
    const vv_look *base_look;

    const char *parameter;                   /* the one at fault, after VV_ERR_ARG, NOTFOUND or AMBIGUOUS */
    vv_str named;                            /* the execution's id that was looked up last, so the one at fault */
    vv_thread_ref matches[VV_QUERY_MATCHES]; /* after VV_ERR_AMBIGUOUS */
    size_t match_count;
    const char *state;                       /* why a value is not there: a word, or NULL */
    vv_reach reach;                          /* after NOTFOUND of a path into a value */
} vv_query;

/* Parameters that every view knows; as_of is resolved by who took the look. */
#define VV_QUERY_COMMON "as_of"

/* How often a parameter of that name may be given at most, by who may repeat it: most once. */
enum { VV_QUERY_EXECUTIONS = 1000, VV_QUERY_TRANSFORMS = 64 };
size_t vv_query_repeats(vv_str name);

/*
 * Refuses names that are not in the NULL-terminated list (may be NULL), and repeated ones but for those that stand
 * there with a "+" behind: "execution+".
 */
VV_MUST_CHECK vv_code vv_query_check(vv_query *q, const char *const *names, vv_error *err);
/* The (first) value, or NULL where it was not given. */
const vv_str *vv_query_value(const vv_query *q, const char *name);
/* The value at or after *at of a repeated one, in the order given, or NULL; *at (0 at first) moves behind it. */
const vv_str *vv_query_each(const vv_query *q, const char *name, size_t *at);
/* Sets *value where given: decimal, min to max. */
VV_MUST_CHECK vv_code vv_query_number(vv_query *q, const char *name, uint64_t min, uint64_t max, uint64_t *value,
                                      vv_error *err);
/* From since on, and before until; nanoseconds since 1970. */
typedef struct {
    bool has_since, has_until;
    uint64_t since, until;
} vv_times;
/*
 * The parameters since and until. Each says its nanoseconds itself, or as RFC 3339 in UTC ("2026-01-31T12:00:00.5Z");
 * until is not before since.
 */
VV_MUST_CHECK vv_code vv_query_times(vv_query *q, vv_times *ret, vv_error *err);
/* Sets *value to the index of the word given, of n words. */
VV_MUST_CHECK vv_code vv_query_word(vv_query *q, const char *name, const char *const *words, size_t n, unsigned *value,
                                    vv_error *err);
/* Fails with VV_ERR_ARG and the parameter at fault. */
VV_PRINTF(4, 5) vv_code vv_query_fail(vv_query *q, const char *name, vv_error *err, const char *fmt, ...);

/*
 * Cursors: opaque text that holds n bytes of position and is tied to the resource, by the words of its path, and to the
 * query but for its cursor, limit and as_of.
 */
enum { VV_CURSOR_TEXT = 200, VV_CURSOR_MAX = 136 };
void vv_query_cursor_text(const vv_query *q, const char *view, const uint8_t *position, size_t n,
                          char out[VV_CURSOR_TEXT]);
/* *ret_given = false without a cursor; one of another query or of another length is VV_ERR_ARG. */
VV_MUST_CHECK vv_code vv_query_cursor(vv_query *q, const char *view, uint8_t *position, size_t n, bool *ret_given,
                                      vv_error *err);

/* The field "next" of an answer's page: a cursor with the last item's position, null where that is NULL. */
void vv_query_next_json(vv_json *j, const vv_query *q, const char *view, const uint8_t *position, size_t n);

/* Case-insensitive (ASCII) search; an empty needle is found everywhere. */
bool vv_text_contains(vv_str text, vv_str needle);

/* The object "snapshot" of an answer (docs/http-api.md), by that key. */
void vv_snapshot_json(vv_json *j, const char *key, const vv_look *look);

/* Opens an answer's object with what all of them say first: the snapshot, and how far it can be trusted. */
void vv_head_json(vv_json *j, const vv_look *look, const vv_evidence *e, bool truncated, const vv_filtered *filtered);
