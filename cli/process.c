#include "config.h"

#include "cli/process.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMEOUT_DEFAULT = 15, TIMEOUT_MAX = 3600 };

bool vv_cli_process(const vv_cli *c, pid_t *ret)
{
    if (c->store) {
        vv_cli_usage(c, "--store: %s asks a process, and reads no store", c->verb->name);
        return false;
    }
    const char *text = c->args[0];
    char *end;
    errno = 0;
    long pid = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : 0;
    if (pid <= 0 || pid > INT_MAX || errno || *end) {
        vv_cli_usage(c, "\"%.60s\" is not a process's number", text);
        return false;
    }
    *ret = (pid_t)pid;
    return true;
}

static int print_done(const vv_cli *c, pid_t pid, const vv_remote_request *q, const char *plugin)
{
    bool attached = q->verb == VV_REMOTE_ATTACH;
    if (!c->json) {
        printf(attached ? "attached %s to process %ld\n" : "detached %s from process %ld\n", plugin, (long)pid);
        return VV_EXIT_OK;
    }
    vv_cli_out o;
    vv_cli_out_init(&o);
    vv_json_obj(&o.j);
    vv_json_kv_cstr(&o.j, "action", attached ? "attached" : "detached");
    vv_json_kv_cstr(&o.j, "plugin", plugin);
    vv_json_kv_u64(&o.j, "process", (uint64_t)pid);
    vv_json_end_obj(&o.j);
    vv_wr_u8(&o.w, '\n');
    return vv_cli_out_done(&o, VV_EXIT_OK);
}

static int print_answer(const vv_cli *c, pid_t pid, const vv_remote_request *q, const vv_remote_answer *a,
                        const char *plugin)
{
    switch (a->outcome) {
    case VV_REMOTE_DONE:
        /* The host names what it has detached. */
        return print_done(c, pid, q, *a->text ? a->text : plugin);
    case VV_REMOTE_REFUSED:
        return vv_cli_fail(VV_EXIT_STORE, "process %ld: %s", (long)pid, a->text);
    case VV_REMOTE_PENDING:
        return vv_cli_fail(VV_EXIT_LIMIT, "process %ld: %s", (long)pid, a->text);
    case VV_REMOTE_INVALID:
        return vv_cli_fail(VV_EXIT_STORE, "process %ld can't read the request for %s", (long)pid, plugin);
    case VV_REMOTE_VERSION:
        return vv_cli_fail(VV_EXIT_STORE, "process %ld speaks version %u of the protocol, this command version %u; "
                           "use the varve command of its libvarve", (long)pid, a->version, VV_REMOTE_PROTOCOL);
    }
    return VV_EXIT_STORE;
}

int vv_cli_ask(const vv_cli *c, pid_t pid, const vv_remote_request *q, const char *plugin)
{
    uint64_t seconds = TIMEOUT_DEFAULT;
    if (!vv_cli_number(c, "timeout", 1, TIMEOUT_MAX, &seconds))
        return VV_EXIT_USAGE;
    vv_remote_answer a;
    vv_error err = {0};
    if (vv_remote_ask(pid, q, (unsigned)seconds * 1000, &a, &err) == VV_OK)
        return print_answer(c, pid, q, &a, plugin);
    /* The command line was well formed: what is wrong is the process. */
    int status = err.code == VV_ERR_LIMIT ? VV_EXIT_LIMIT : VV_EXIT_STORE;
    const char *next = err.code == VV_ERR_ARG || err.code == VV_ERR_NOTFOUND
                           ? "; a host listens while it records, see `varve attach --help`" : "";
    return vv_cli_fail(status, "%s%s", err.msg, next);
}
