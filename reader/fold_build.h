/* Inside of vv_fold: how it grows. */
#pragma once

#include "reader/fold.h"
#include "reader/segments.h"

/* The range of data sequences an execution is loaded from (docs/store.md). */
typedef struct {
    uint64_t first, last; /* empty where first > last */
    bool has_expected;
    uint64_t expected; /* number of groups */
} vv_load_range;

typedef struct {
    vv_fold f; /* first: a vv_fold is one of these */
    /* Rows come sorted by key, so the next one is likely the context after the last: a guess that saves the hash. */
    uint32_t next_context;
    bool unsorted; /* contexts don't ascend by key; while they do, a higher key than the last is a new one */
    size_t context_cap, thread_cap, span_cap, error_cap, runtime_id_cap, log_cap, scope_cap, issue_cap;
    size_t thread_issue_cap;
    vv_load_range range;
    uint64_t first_found, last_found; /* sequences of the first and last group folded, 0 = none */
    bool segment_issues;              /* a missing or bad segment was met */
    const char *fault;                /* hard error of the group being folded: the first one */
} vv_fold_build;

/* Folds one group in. VV_OK with f.failed set for a hard error; NOMEM and LIMIT otherwise. */
VV_MUST_CHECK vv_code vv_build_group(vv_fold_build *b, const vv_group *g, vv_error *err);
/* Marks the fold as failed with one of the names that docs/store.md lists. */
void vv_build_fail(vv_fold_build *b, const char *name);
VV_MUST_CHECK vv_code vv_build_issue(vv_fold_build *b, const vv_issue *issue, vv_error *err);
/*
 * What depends on the whole: parents, thread issues, dependencies, data state. f.issues hold the range's issues
 * already.
 */
VV_MUST_CHECK vv_code vv_build_settle(vv_fold_build *b, vv_error *err);

/* Takes out of the budget, or gives back, what f.bytes does not say yet: what maps and texts have grown by. */
VV_MUST_CHECK vv_code vv_build_charge(vv_fold_build *b, vv_error *err);
/* Makes room for one more item, out of the budget. */
VV_MUST_CHECK vv_code vv_build_room(vv_fold_build *b, void **array, size_t *cap, size_t count, size_t size,
                                    vv_error *err);
