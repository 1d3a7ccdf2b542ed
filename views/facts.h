/*
 * What answers about single calls, errors and threads have in common (docs/http-api.md): names, states and places.
 *
 * A state says why something is not there; nothing that is unknown is ever a number, or a default. Pure functions on
 * what is loaded.
 */
#pragma once

#include "views/executions.h"

/* Of something that begins and ends: a call or a thread. */
typedef enum {
    VV_LIFE_ENDED,
    VV_LIFE_OPEN,          /* of a running execution, and no end is recorded (yet) */
    VV_LIFE_UNFINISHED,    /* the recording stops before: the process died, or the end is in what is missing */
    VV_LIFE_END_MISSING,   /* the execution's end is recorded, this one's is not */
    VV_LIFE_START_MISSING, /* something refers to it, but no start is recorded */
} vv_life;
enum { VV_LIVES = 5 };
vv_life vv_life_of(const vv_execution *x, bool has_start, bool has_end);
const char *vv_life_word(vv_life l);

/* Of a captured value. */
typedef enum {
    VV_VALUE_AVAILABLE,
    VV_VALUE_NOT_CAPTURED,   /* the policy did not select it */
    VV_VALUE_NOT_APPLICABLE, /* what it would be of did not happen: the output of a call that failed */
    VV_VALUE_PENDING,        /* selected, and not committed yet: the execution runs */
    VV_VALUE_UNKNOWN,        /* selected or not, the recording does not say what became of it */
    VV_VALUE_UNRESOLVED,     /* the error that it is of is named, and not there */
    VV_VALUE_LOST,           /* captured, and lost for a reason */
} vv_value_fate;

typedef struct {
    vv_value_fate fate;
    const char *word;            /* "available", "not_captured", "lost:value_too_large" */
    const vv_value_state *value; /* of an available one, else NULL */
} vv_value_view;

vv_value_view vv_value_of(const vv_value_state *v);
vv_value_view vv_span_input(const vv_execution *x, const vv_fold_span *s);
vv_value_view vv_span_output(const vv_execution *x, const vv_fold_span *s);
vv_value_view vv_span_error(const vv_execution *x, const vv_fold *f, const vv_fold_span *s);

/* "ok" "errored" "cancelled" "exited"; "completed" "cancelled" "errored"; "fresh" "rethrow"; "bytecode" and so on. */
extern const char *const vv_call_words[4], *const vv_thread_words[3], *const vv_capture_kinds[2],
    *const vv_capture_sources[4];
extern const char *const vv_reason_words[3]; /* of the bits of a span's reasons: "root" "llm" "manual" */
/* The reason's word, "evidence_queue_full"; NULL out of range. */
const char *vv_capture_loss_word(unsigned code);

/* The function that a fact names by its number, or NULL where no readable table has it. */
const vv_function *vv_function_of(const vv_profile *p, uint32_t id);
/* What a function is found by: a text, and the word for what it is. */
typedef struct {
    const char *word; /* "name" "display_name" "definition_key" "file" */
    vv_str text;
} vv_text_field;
enum { VV_FUNCTION_TEXTS = 4 };
/* Those that it has; how many. */
size_t vv_function_texts(const vv_function *d, vv_text_field out[VV_FUNCTION_TEXTS]);
/* Its name for people, "function#7" where none is known; scratch is for that. */
enum { VV_FUNCTION_SCRATCH = 24 };
vv_str vv_function_label(const vv_profile *p, uint32_t id, char scratch[VV_FUNCTION_SCRATCH]);
/* The same of a call, "?" where its start is missing. */
vv_str vv_span_label(const vv_profile *p, const vv_fold_span *s, char scratch[VV_FUNCTION_SCRATCH]);

/* The node of a fact's context, or VV_NONE where it is not there. */
uint32_t vv_node_of(const vv_profile *p, const vv_context_ref *ref);
bool vv_same_context(const vv_context_ref *a, const vv_context_ref *b);

/*
 * Within an execution a thread is named by its number, a call by "<thread>.<call>", an error by "<thread>~<ordinal>"
 * (docs/http-api.md): short for the full ids. Empty where it belongs to another engine than the execution's.
 */
enum { VV_PART_ID = 44, VV_CAPTURE_TEXT = VV_THREAD_TEXT + 21 };
void vv_thread_short(char out[VV_PART_ID], const vv_thread_ref *root, const vv_thread_ref *t);
void vv_call_short(char out[VV_PART_ID], const vv_thread_ref *root, const vv_call_ref *c);
void vv_capture_short(char out[VV_PART_ID], const vv_thread_ref *root, const vv_capture_id *c);
void vv_capture_text(char out[VV_CAPTURE_TEXT], const vv_capture_id *c); /* <thread text>~<ordinal> */
/* Either form; false where it is none. */
bool vv_thread_named(vv_str s, const vv_thread_ref *root, vv_thread_ref *ret);
bool vv_call_named(vv_str s, const vv_thread_ref *root, vv_call_ref *ret);
bool vv_capture_named(vv_str s, const vv_thread_ref *root, vv_capture_id *ret);

/*
 * Are counts of the execution what was counted so far? Not where segments are missing, or a counter is full: no ratio
 * can be made of such. Takes as long as there are issues.
 */
bool vv_counts_whole(const vv_fold *f);

/* Fields of an open object. A NULL stands for what is not known. */
void vv_call_id_json(vv_json *j, const char *key, const vv_call_ref *c);
void vv_thread_id_json(vv_json *j, const char *key, const vv_thread_ref *t);
void vv_short_json(vv_json *j, const char *key, const char *text); /* null where it is empty */
void vv_number_json(vv_json *j, const char *key, bool known, vv_u128 v); /* null where it is not known */
/* The wall clock of a tick time. */
void vv_clock_json(vv_json *j, const char *key, const vv_stream *s, bool known, uint64_t ns);
/* <prefix>_file, _line, _start, _end. */
void vv_site_json(vv_json *j, const vv_profile *p, const char *prefix, const vv_site *site);
/* "<prefix>call_path_id" and "<prefix>call_path_overflow_reason". */
void vv_context_ref_json(vv_json *j, const char *path_key, const char *reason_key, const vv_context_ref *ref);
/* <prefix>_state and <prefix>_cid. */
void vv_value_view_json(vv_json *j, const char *prefix, const vv_value_view *v);
/* Codec and length of an available value's object, or null. */
void vv_value_object_json(vv_json *j, const char *key, const vv_value_view *v);
/* function_id, fqn and definition_key of a function named by number; prefix may be "". */
void vv_function_id_json(vv_json *j, const vv_profile *p, const char *prefix, bool known, uint32_t id);
/* "execution_id". */
void vv_execution_id_json(vv_json *j, const vv_found *f);
/* A part of something, with at most six digits; null where the whole is unknown or zero. */
void vv_ratio_json(vv_json *j, const char *key, bool known, vv_u128 part, vv_u128 whole);
