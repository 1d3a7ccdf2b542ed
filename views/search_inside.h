/* Inside of vv_search: one search while it goes on, and its part that looks for functions. */
#pragma once

#include "views/search.h"

enum {
    VV_SEARCH_ID = 1 + 40,                             /* of a hit in an execution: its type and id */
    VV_SEARCH_FUNCTION = 24 + 32,                      /* of a function: the beginning of its name, its identity */
    VV_SEARCH_POSITION = 1 + 1 + 8 + 32 + VV_SEARCH_ID /* of any hit: a function or not, then the execution's place */
};

typedef struct {
    vv_query *q;
    vv_str text;
    bool only;           /* hits of one type */
    vv_hit_type type;
    uint64_t left;       /* hits that the page still takes */
    bool more;           /* there are hits behind it */
    bool has_after;
    uint8_t after[VV_SEARCH_POSITION], last[VV_SEARCH_POSITION];
    const vv_found *list; /* all executions, newest first */
    size_t count;
    vv_hit_fn *tell;
    void *state;
    vv_search_result *result;
} vv_searching;

static inline bool vv_search_wants(const vv_searching *s, vv_hit_type t)
{
    return !s->only || s->type == t;
}

/* The word of the function's first text that holds the one looked for, or NULL. */
const char *vv_search_function_word(const vv_searching *s, const vv_function *d);

VV_MUST_CHECK vv_code vv_search_functions(vv_searching *s, vv_error *err);
