/* Answers that say what this server is: plain text at /, and the API's index and meta. */
#pragma once

#include "base/json.h"

typedef struct {
    const char *base;       /* "http://127.0.0.1:8278" as the client asked */
    const char *socket;     /* the Unix socket that it came through, or NULL */
    const char *build;
    const char *store_name; /* the last parts of its path */
    bool has_store;
    unsigned followers;     /* that may follow at a time */
} vv_page_facts;

void vv_page_index(vv_json *j, const vv_page_facts *facts);
void vv_page_meta(vv_json *j, const vv_page_facts *facts);
void vv_page_text(vv_wr *w, const vv_page_facts *facts);
