/* What the verbs about single calls, errors, threads and logs print alike. */
#pragma once

#include "cli/view.h"
#include "views/facts.h"

/* Why there is no end: "open", "end missing"; empty of what has ended. */
const char *vv_cli_life_text(vv_life l);

/* file:line, as editors and terminals make links of; "?:line" where only that is known, empty where nothing is. */
enum { VV_CLI_PLACE = 160 };
const char *vv_cli_place(char out[VV_CLI_PLACE], const vv_profile *p, const vv_site *site);

/* Lines of one thing's facts: the name in a column of that width, then the value's state, length and name. */
void vv_cli_value_line(const char *name, int width, vv_value_view v);
