/* All executions of a look at a store, newest first. Immutable, and shared by threads; it lives as long as its look. */
#pragma once

#include "reader/store.h"

typedef struct vv_found {
    const vv_stream *stream;
    const vv_execution *execution;
    bool has_time;
    uint64_t unix_ns; /* wall clock of the start; 0 without one */
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
