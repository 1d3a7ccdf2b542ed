#include "config.h"

#include "cli/verbs.h"

const vv_cli_verb *const vv_cli_verbs[] = {
    &vv_verb_serve,
    &vv_verb_ls,
    &vv_verb_show,
    &vv_verb_top,
    &vv_verb_flame,
    &vv_verb_callers,
    &vv_verb_callees,
    &vv_verb_diff,
    &vv_verb_spans,
    &vv_verb_errors,
    &vv_verb_context,
    &vv_verb_search,
    &vv_verb_threads,
    &vv_verb_logs,
    &vv_verb_value,
    &vv_verb_streams,
    &vv_verb_dump,
    &vv_verb_attach,
    &vv_verb_detach,
    NULL,
};
