#include "config.h"

#include "cli/verbs.h"

const vv_cli_verb *const vv_cli_verbs[] = {
    &vv_verb_dump,
    NULL,
};
