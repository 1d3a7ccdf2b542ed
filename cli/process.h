/* What `varve attach` and `varve detach` share: they ask a running process and print its answer. */
#pragma once

#include <sys/types.h>

#include "cli/cli.h"
#include "control/remote.h"

/* The first argument as a process's number. False, and a message, where it is none, or a store is named. */
bool vv_cli_process(const vv_cli *c, pid_t *ret);

/* Asks, and prints what was done: a line, or with --json an object. Returns the exit status; all else is a message.
 * `plugin` names the plug-in where the host doesn't. --timeout SECONDS, which both verbs have, bounds the wait. */
int vv_cli_ask(const vv_cli *c, pid_t pid, const vv_remote_request *q, const char *plugin);

#define VV_CLI_TIMEOUT {"timeout", "SECONDS", "how long to wait for an answer, 15", false}
