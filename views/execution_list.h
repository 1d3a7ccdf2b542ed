/* A page of the list of executions, newest first: filtered, with what lists show of each (docs/http-api.md). */
#pragma once

#include "views/executions.h"

typedef struct {
    vv_found found;
    const vv_digest *digest;
} vv_execution_row;

typedef struct {
    vv_execution_row *items;
    size_t count;
    bool more;
    char next[VV_CURSOR_TEXT]; /* empty on the last page */
    vv_evidence evidence;      /* of what is on the page */
} vv_execution_page;

/* By status, q, since, until, stream, program, limit and cursor. The caller is done with ret on every path. */
VV_MUST_CHECK vv_code vv_execution_page_read(vv_execution_page *ret, vv_query *q, vv_error *err);
void vv_execution_page_done(const vv_query *q, vv_execution_page *p);
