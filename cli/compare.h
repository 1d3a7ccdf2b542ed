/* Comparisons in a terminal: what verbs that take a base share. */
#pragma once

#include "cli/view.h"
#include "views/functions.h"

/* "+1,234", "-1.2 ms", "0"; sign in text. */
const char *vv_cli_count_change(char out[VV_CELL], vv_u128 base, vv_u128 head);
const char *vv_cli_duration_change(char out[VV_CELL], vv_u128 base, vv_u128 head);

/* The table of functions that changed, the first `limit` of them, and a line of totals and evidence. */
void vv_cli_print_function_changes(const vv_scope *s, const vv_function_groups *g, vv_function_sort by, uint64_t limit);
