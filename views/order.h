/*
 * All executions of a look at a store, newest first. Immutable, and shared by threads: counted by its holders. What it
 * leads to is the look's, so it is given back before that.
 */
#pragma once

#include "reader/store.h"

typedef struct vv_found {
    const vv_stream *stream;
    const vv_execution *execution;
    bool has_time;    /* when it started is known */
    uint64_t unix_ns; /* the wall clock of that; 0 without */
} vv_found;

vv_found vv_found_of(const vv_stream *stream, const vv_execution *execution);
/* As qsort takes it: those of unknown start last, and a total order of equal ones. */
int vv_found_newest_first(const void *a, const void *b);

typedef struct {
    unsigned refs; /* atomic */
    size_t count;
    vv_found items[];
} vv_order;

/* With one holder. NOMEM. */
VV_MUST_CHECK vv_code vv_order_make(vv_order **ret, const vv_store *store, vv_error *err);
vv_order *vv_order_ref(vv_order *o);
void vv_order_unref(const vv_order *o); /* accepts NULL */
