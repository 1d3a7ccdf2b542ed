/* The document of `varve dump`: a whole store, folded, as canonical JSON. Its definition is docs/dump.md. */
#pragma once

#include "cli/cli.h"
#include "reader/store.h"

/*
 * Writes the document and a newline, in bounded memory. What can't be loaded for want of memory is in it as the
 * execution's error "LimitExceeded", and LIMIT is returned at the end; NOMEM cuts the document short.
 */
VV_MUST_CHECK vv_code vv_dump_document(vv_cli_out *o, const vv_store *store, vv_error *err);
