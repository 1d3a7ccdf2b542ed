/* Functions that a question names. */
#pragma once

#include "views/query.h"
#include "views/tree.h"

/*
 * The group that function= names: by a definition key, a full name, "#" and its number, or "#number/program". ARG,
 * NOTFOUND, AMBIGUOUS.
 */
VV_MUST_CHECK vv_code vv_query_function(vv_query *q, const vv_tree *t, const vv_function_grouping *g, uint32_t *ret,
                                        vv_error *err);
