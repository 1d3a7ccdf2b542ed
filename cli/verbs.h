/* The verbs, each defined in cli/<verb>.c. A new one is declared here and listed in cli/verbs.c. */
#pragma once

#include "cli/cli.h"

extern const vv_cli_verb vv_verb_attach, vv_verb_detach, vv_verb_dump, vv_verb_ls, vv_verb_serve, vv_verb_show,
    vv_verb_context, vv_verb_diff, vv_verb_search, vv_verb_errors, vv_verb_spans, vv_verb_threads, vv_verb_top,
    vv_verb_value;
extern const vv_cli_verb vv_verb_streams, vv_verb_logs, vv_verb_flame, vv_verb_callers, vv_verb_callees;

/* In the order `varve --help` lists them, NULL-terminated. */
extern const vv_cli_verb *const vv_cli_verbs[];
