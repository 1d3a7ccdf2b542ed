#include "config.h"

#include "cli/process.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMEOUT_DEFAULT = 15, TIMEOUT_MAX = 3600 };

bool vv_cli_process(const vv_cli *c, pid_t *ret)
{
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

static int print_answer(pid_t pid, const vv_remote_answer *a, const char *what, const char *done)
{
    switch (a->outcome) {
    case VV_REMOTE_DONE:
        printf("%s\n", done);
        return VV_EXIT_OK;
    case VV_REMOTE_REFUSED:
        return vv_cli_fail(VV_EXIT_STORE, "process %ld: %s", (long)pid, a->text);
    case VV_REMOTE_PENDING:
        return vv_cli_fail(VV_EXIT_LIMIT, "process %ld: %s", (long)pid, a->text);
    case VV_REMOTE_INVALID:
        return vv_cli_fail(VV_EXIT_STORE, "process %ld can't read the request for %s", (long)pid, what);
    case VV_REMOTE_VERSION:
        return vv_cli_fail(VV_EXIT_STORE, "process %ld speaks version %u of the protocol, this command version %u; "
                           "use the varve command of its libvarve", (long)pid, a->version, VV_REMOTE_PROTOCOL);
    }
    return VV_EXIT_STORE;
}

int vv_cli_ask(const vv_cli *c, pid_t pid, const vv_remote_request *q, const char *what, const char *done)
{
    uint64_t seconds = TIMEOUT_DEFAULT;
    if (!vv_cli_number(c, "timeout", 1, TIMEOUT_MAX, &seconds))
        return VV_EXIT_USAGE;
    vv_remote_answer a;
    vv_error err = {0};
    if (vv_remote_ask(pid, q, (unsigned)seconds * 1000, &a, &err) == VV_OK)
        return print_answer(pid, &a, what, done);
    /* The command line was well formed: what is wrong is the process. */
    int status = err.code == VV_ERR_LIMIT ? VV_EXIT_LIMIT : VV_EXIT_STORE;
    const char *next = err.code == VV_ERR_ARG || err.code == VV_ERR_NOTFOUND
                           ? "; a host listens while it records, see `varve attach --help`" : "";
    return vv_cli_fail(status, "%s%s", err.msg, next);
}
