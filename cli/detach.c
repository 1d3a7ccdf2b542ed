#include "config.h"

#include "cli/process.h"

static int run(const vv_cli *c)
{
    pid_t pid;
    if (!vv_cli_process(c, &pid))
        return VV_EXIT_USAGE;
    const char *name = c->arg_count > 1 ? c->args[1] : "";
    vv_remote_request q = {VV_REMOTE_DETACH, vv_cstr(name), {NULL, 0}};
    return vv_cli_ask(c, pid, &q, *name ? name : "the plug-in");
}

static const vv_cli_option options[] = {VV_CLI_TIMEOUT};
static const char *const examples[] = {"varve detach 4711", "varve detach 4711 count", NULL};

const vv_cli_verb vv_verb_detach = {
    .name = "detach",
    .args = "PID [NAME]",
    .purpose = "takes a plug-in out of a running process",
    .details = "NAME is the plug-in's file, with or without its folder and .so; it may be left out where there is\n"
               "only one.\n"
               "Returns when no call of the plug-in runs any more and its code is unloaded.\n",
    .json = "print what was detached as JSON",
    .storeless = true,
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
