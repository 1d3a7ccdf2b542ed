/* Opening the store a verb was asked about. */
#pragma once

#include "cli/cli.h"
#include "reader/store.h"

/*
 * The store of --store, else of the positional argument arg (may be NULL), else the resolver's. Returns -1 where it is
 * open, else the exit status, its message printed. Both outputs are the caller's: vv_store_free, then vv_source_close.
 */
int vv_cli_open_store(const vv_cli *c, const char *arg, vv_source **ret_source, vv_store **ret_store);
