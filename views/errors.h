/*
 * Errors that were recorded (docs/http-api.md): where each was thrown, through which calls, which recorded calls it
 * ended, and how often its context fails. In the order of their ids: by thread, then as they were thrown.
 */
#pragma once

#include "views/facts.h"
#include "views/listing.h"

/* What stands beside the rows: how many there were that are not here. */
typedef struct {
    bool known;                      /* false where the fold failed */
    uint64_t captures, fresh, rethrown;
    vv_u128 errored_calls;           /* counted in every call that an error ends */
    bool lost_known;                 /* the writer's count stands in the record of the end */
    uint64_t lost;                   /* errors that it could not record */
    uint64_t links_lost, links_unresolved; /* spans that an error ended which was lost, or is not there */
} vv_error_population;

/* A recorded call that an error ended. */
typedef struct {
    uint32_t item; /* of the page */
    uint32_t span;
} vv_terminal;

typedef struct {
    vv_error_population population;
    vv_page page;           /* rows are indexes of errors */
    uint32_t *depth;        /* of each node: frames of a stack that ends there; NULL where only one is wanted */
    bool *whole;            /* of each node: its stack begins at a call without a caller */
    vv_terminal *terminals; /* by item, then by call */
    size_t terminal_count;
} vv_error_list;

/* Reads the parameters that page, before an execution is loaded. */
VV_MUST_CHECK vv_code vv_error_list_read(vv_error_list *ret, vv_query *q, vv_error *err);
/* Fills what was read. */
VV_MUST_CHECK vv_code vv_error_list_make(vv_error_list *l, const vv_query *q, const vv_found *f, const vv_loaded *x,
                                         vv_error *err);
/* The one error that q->sub names, as the only item of a list without a population: ARG, NOTFOUND. */
VV_MUST_CHECK vv_code vv_error_list_find(vv_error_list *ret, vv_query *q, const vv_profile *p, vv_error *err);
void vv_error_list_done(vv_error_list *l); /* accepts a zeroed one */
/* The terminals of an item. */
const vv_terminal *vv_error_terminals(const vv_error_list *l, size_t item, size_t *ret_count);

/* The calls from the beginning (0) to the throw, as far as they are known; never none. */
typedef struct {
    size_t frames;
    bool complete;
    uint32_t node; /* of the throw, or VV_NONE */
} vv_stack;

/* A frame: what was called, and where it called the next one, or threw. */
typedef struct {
    bool has_function;
    uint32_t function_id;
    uint32_t node;        /* VV_NONE: the context is not known */
    const vv_site *site;  /* or NULL */
} vv_stack_frame;

vv_stack vv_error_stack(const vv_error_list *l, const vv_profile *p, const vv_error_capture *c);
/*
 * The last n frames of it into out, the throw at out[n - 1]. n is at most the number of frames.
 */
void vv_stack_frames(const vv_profile *p, const vv_error_capture *c, const vv_stack *s, size_t n, vv_stack_frame *out);
