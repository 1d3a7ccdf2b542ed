#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/process.h"

static int run(const vv_cli *c)
{
    pid_t pid;
    if (!vv_cli_process(c, &pid))
        return VV_EXIT_USAGE;
    const char *spec = c->args[1], *equals = strchrnul(spec, '=');
    char file[PATH_MAX], path[PATH_MAX];
    if (equals - spec >= (ptrdiff_t)sizeof file)
        return vv_cli_usage(c, "the plug-in's name is too long");
    snprintf(file, sizeof file, "%.*s", (int)(equals - spec), spec);
    /* The process has a working directory of its own. */
    if (!realpath(file, path))
        return vv_cli_fail(VV_EXIT_STORE, "%s: %s", file, strerror(errno));
    vv_remote_request q = {VV_REMOTE_ATTACH, vv_cstr(path), vv_cstr(*equals ? equals + 1 : "")};
    return vv_cli_ask(c, pid, &q, path);
}

static const vv_cli_option options[] = {VV_CLI_TIMEOUT};
static const char *const examples[] = {"varve attach 4711 ./count.so", "varve attach 4711 ./count.so=/tmp/counts",
                                       NULL};

const vv_cli_verb vv_verb_attach = {
    .name = "attach",
    .args = "PID FILE.so[=ARGS]",
    .purpose = "loads a plug-in into a running process",
    .details = "The process is a host of libvarve that listens (varve-lua does while it records), of the same user.\n"
               "ARGS are the plug-in's own. It stays until `varve detach`, its own wish, or the end of the process.\n",
    .json = "print what was attached as JSON",
    .storeless = true,
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
