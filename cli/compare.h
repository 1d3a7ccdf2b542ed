/* Comparisons in a terminal: what verbs that take a base share. */
#pragma once

#include "cli/view.h"
#include "views/compare.h"
#include "views/functions.h"

/* "+1,234", "-1.2 ms", "0"; sign in text. */
const char *vv_cli_count_change(char out[VV_CELL], vv_u128 base, vv_u128 head);

/* Cells: "?" where it is not known; more is painted as worse. time: nanoseconds, and not a count. */
void vv_cli_cell_number(vv_cli_table *t, vv_paint paint, bool known, bool time, vv_u128 v);
void vv_cli_cell_change(vv_cli_table *t, bool known, bool time, vv_u128 base, vv_u128 head);

/* The names from the top to the node, the last ones: "... > a > b"; empty for VV_NONE. */
enum { VV_CLI_PATH = 4096 };
const char *vv_cli_path(char out[VV_CLI_PATH], const vv_tree *t, uint32_t node, unsigned names);

/*
 * Tables of compared spans and errors, a row for each calling path. ret_verdict is for a verb without a cursor; NULL:
 * it takes one, which is told where more follows.
 */
VV_MUST_CHECK vv_code vv_cli_compare_spans(vv_query *q, vv_verdict *ret_verdict, vv_error *err);
VV_MUST_CHECK vv_code vv_cli_compare_errors(vv_query *q, vv_verdict *ret_verdict, vv_error *err);

/* The table of functions that changed, the first `limit` of them, and a line of totals and evidence. */
void vv_cli_print_function_changes(const vv_scope *s, const vv_function_groups *g, vv_function_sort by, uint64_t limit);
