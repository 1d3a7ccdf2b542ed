/*
 * How lists of segments are made: for reader/segments.c, which finds out what the files hold. Readers of a list need
 * reader/segments.h alone.
 */
#pragma once

#include "reader/segments.h"

/* What tells a file, as good as surely, from another one of the same name. */
uint32_t vv_seg_mark(const vv_file_ident *ident);

/* A segment of that sequence, with one reference; NULL without memory. */
vv_seg *vv_seg_new(uint64_t sequence);
void vv_seg_unref(vv_seg *s); /* accepts NULL */
/* Room for the groups: n + 1 offsets and n keys. False without memory. */
bool vv_seg_make_groups(vv_seg *s, size_t n);
/* Frees what it holds of the file: bytes, or groups. */
void vv_seg_drop_content(vv_seg *s);

/* Segment i by itself, whose reference is the caller's; NULL without memory. */
vv_seg *vv_seg_take(const vv_seg_list *l, size_t i);

/*
 * The first n of former (which may be zeroed), and then tail, whose references are taken where it is VV_OK; ascending
 * by sequence. In former's own memory where that is the newest list there: lists that follow each other are made by
 * one thread at a time. NOMEM, and former says what it said.
 */
VV_MUST_CHECK vv_code vv_seg_list_extend(vv_seg_list *ret, const vv_seg_list *former, size_t n, vv_seg *const *tail,
                                         size_t count, vv_error *err);
