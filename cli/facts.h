/* What the verbs print alike of functions, calls, errors, threads and logs. */
#pragma once

#include "cli/view.h"
#include "views/facts.h"

/* Why there is no end: "open", "end missing"; empty of what has ended. */
const char *vv_cli_life_text(vv_life l);

/* file:line, as editors and terminals make links of; "?:line" where only that is known, empty where nothing is. */
enum { VV_CLI_PLACE = 160 };
const char *vv_cli_place(char out[VV_CLI_PLACE], const vv_profile *p, const vv_site *site);

/* A cell with the function's name, or its number where the definition is missing. */
void vv_cli_cell_function(vv_cli_table *t, const vv_function_ref *f);

/* Lines of facts: the name in a column of that width, then the text, or a value's state, length and name. */
void vv_cli_text_line(const char *name, int width, vv_str text);
void vv_cli_value_line(const char *name, int width, vv_value_view v);
