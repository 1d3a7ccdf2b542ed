/* The verbs, each defined in cli/<verb>.c. A new one is declared here and listed in cli/verbs.c. */
#pragma once

#include "cli/cli.h"

extern const vv_cli_verb vv_verb_dump;

/* In the order `varve --help` lists them, NULL-terminated. */
extern const vv_cli_verb *const vv_cli_verbs[];
