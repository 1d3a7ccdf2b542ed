/*
 * The contexts of a tree from the bottom up (docs/http-api.md): functions at the top, below each who called it, below
 * those who called them. And the tree of what one function calls.
 *
 * Each context counts once along its chain of callers, so what stands below a row are parts of it: the calls, errors,
 * self and await time of callers, and of what has none, come to the row's. Inclusive time is of calls that are not
 * below another call of the same function (over Call edges), here too once along the chain.
 */
#pragma once

#include "views/flame.h"
#include "views/transform.h"

/*
 * Rows of `ret` are of ret_tree's nodes. Rows are made largest first, and those that would not stay are never made: a
 * sliver counts the callers right below its parent. function = VV_NONE: all; else a group of g, which alone stands at
 * the top. of_root is the part's, or that function's.
 *
 * Time is bounded: a chain that recurs endlessly is followed as far as VV_INVERT_STEPS steps of all contexts lead, then
 * all that is deeper folds, and ret->truncated says so.
 */
#define VV_INVERT_STEPS UINT64_C(40000000)
VV_MUST_CHECK vv_code vv_flame_invert(vv_flame *ret, vv_derived *ret_tree, const vv_tree *t, const vv_flame_part *part,
                                      const vv_function_grouping *g, uint32_t function, const vv_flame_options *o,
                                      vv_error *err);

/* The most memory that it takes of a tree, what it holds in the end included. Bytes. */
size_t vv_invert_most(const vv_tree *t, const vv_flame_options *o);

/*
 * What the function calls, by paths that begin at its innermost call: a call of it below itself is one more call of the
 * one node at the top. To be built as a flame. Counters and keys are the derived tree's own.
 */
VV_MUST_CHECK vv_code vv_callees_tree(vv_derived *ret, const vv_tree *t, const vv_flame_part *part,
                                      const vv_function_grouping *g, uint32_t function, vv_error *err);
