/*
 * The consumer's side of selected calls: open spans, and the facts of them. A span is of a frame; what is lost of it is
 * counted in the execution's accounts, by the part and reason (accounting.h).
 *
 * Before a fact is made there is room for it: making room may publish, and with that change what the fact can say.
 */
#pragma once

#include "runtime/decoder.h"

/* The frame that was just opened is of a selected call; w is its record. */
void vv_spans_begin(vv_decoder *d, vv_lthread *t, const uint64_t *w, uint64_t ns);
/* The frame above the top was a selected call's, and has ended. */
void vv_spans_end(vv_decoder *d, vv_lthread *t, uint64_t ns, unsigned status, uint64_t inclusive_ns);
/* Frames were given up: the ends of spans deeper than depth are lost, for the reason that this part names. */
void vv_spans_cut(vv_lthread *t, uint64_t depth, vv_part part);

/* The other records of selected calls; t may be NULL: x (which may be too) is charged with what is lost. */
void vv_spans_runtime_id(vv_decoder *d, vv_lthread *t, const uint64_t *w);
void vv_spans_value(vv_decoder *d, vv_lthread *t, vv_exec *x, const uint64_t *w);
void vv_spans_error(vv_decoder *d, vv_lthread *t, vv_exec *x, const uint64_t *w);
void vv_spans_link_lost(vv_lthread *t);

/* Frees what a record owns that nobody will decode. */
void vv_record_drop(vv_governor *g, const uint64_t *w);
