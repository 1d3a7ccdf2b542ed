#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "reader/fold_build.h"

const char *vv_thread_issue_name(vv_thread_issue_kind k)
{
    static const char *const names[] = {
        [VV_THREAD_MISSING_START] = "MissingStart",
        [VV_THREAD_MISSING_PARENT] = "MissingParent",
        [VV_THREAD_ROOT_MISMATCH] = "RootMismatch",
    };
    return names[k];
}

enum { PARENTS_AT_ONCE = 32 };

typedef struct {
    const vv_map *map;
} order_by;

static int compare_keys(const void *a, const void *b, void *state)
{
    const vv_map *m = ((const order_by *)state)->map;
    return memcmp(vv_map_key(m, *(const uint32_t *)a), vv_map_key(m, *(const uint32_t *)b), m->key_bytes);
}

/* The maps' keys are the sort keys of all four lists. */
static uint32_t *order(const vv_map *m)
{
    uint32_t *at = malloc(((size_t)m->count + 1) * sizeof *at);
    if (!at)
        return NULL;
    for (uint32_t i = 0; i < m->count; i++)
        at[i] = i;
    order_by by = {m};
    if (m->count)
        qsort_r(at, m->count, sizeof *at, compare_keys, &by);
    return at;
}

uint32_t *vv_fold_order_contexts(const vv_fold *f)
{
    return order(&f->context_map);
}

uint32_t *vv_fold_order_threads(const vv_fold *f)
{
    return order(&f->thread_map);
}

uint32_t *vv_fold_order_spans(const vv_fold *f)
{
    return order(&f->span_map);
}

uint32_t *vv_fold_order_errors(const vv_fold *f)
{
    return order(&f->error_map);
}

static void find_some_parents(vv_fold *f, vv_fold_context *const *orphans, size_t n)
{
    const void *keys[PARENTS_AT_ONCE] = {NULL};
    uint32_t found[PARENTS_AT_ONCE];
    for (size_t i = 0; i < n; i++)
        keys[i] = &orphans[i]->tuple.parent;
    vv_map_find_many(&f->context_map, keys, n, found);
    for (size_t i = 0; i < n; i++)
        orphans[i]->parent = found[i];
}

/* Those known from a former look stay: a definition does not change. */
static void find_parents(vv_fold *f)
{
    vv_fold_context *orphans[PARENTS_AT_ONCE];
    size_t n = 0;
    for (size_t i = 0; i < f->context_count; i++) {
        vv_fold_context *c = &f->contexts[i];
        if (c->parent != VV_MAP_NONE || !c->defined || !c->tuple.has_parent)
            continue;
        orphans[n++] = c;
        if (n == PARENTS_AT_ONCE) {
            find_some_parents(f, orphans, n);
            n = 0;
        }
    }
    if (n)
        find_some_parents(f, orphans, n);
}

static vv_code thread_issue(vv_fold_build *b, const vv_fold_thread *t, vv_thread_issue_kind kind, vv_error *err)
{
    vv_fold *f = &b->f;
    vv_code rc = vv_build_room(b, (void **)&f->thread_issues, &b->thread_issue_cap, f->thread_issue_count,
                               sizeof *f->thread_issues, err);
    if (rc == VV_OK)
        f->thread_issues[f->thread_issue_count++] = (vv_thread_issue){t->thread, kind};
    return rc;
}

static vv_code check_thread(vv_fold_build *b, const vv_fold_thread *t, vv_error *err)
{
    const vv_fold *f = &b->f;
    if (!t->has_start)
        return thread_issue(b, t, VV_THREAD_MISSING_START, err);
    vv_code rc = VV_OK;
    if (t->start.has_parent) {
        uint32_t i = vv_map_find(&f->thread_map, &t->start.parent);
        if (i == VV_MAP_NONE || !f->threads[i].has_start)
            rc = thread_issue(b, t, VV_THREAD_MISSING_PARENT, err);
    }
    bool is_root = memcmp(&t->thread, &f->root, sizeof f->root) == 0;
    if (rc == VV_OK && t->start.kind == 0 && !is_root)
        rc = thread_issue(b, t, VV_THREAD_ROOT_MISMATCH, err);
    return rc;
}

static vv_code no_memory(vv_error *err)
{
    return vv_fail(err, VV_ERR_NOMEM, "no memory to check an execution");
}

static vv_code check_threads(vv_fold_build *b, vv_error *err)
{
    b->f.thread_issue_count = 0;
    uint32_t *at = vv_fold_order_threads(&b->f);
    vv_code rc = at ? VV_OK : no_memory(err);
    for (size_t i = 0; i < b->f.thread_count && rc == VV_OK; i++)
        rc = check_thread(b, &b->f.threads[at[i]], err);
    free(at);
    return rc;
}

/* An unresolved dependency: a hard error where nothing explains it, else an issue. */
static vv_code unresolved(vv_fold_build *b, bool is_hard, const vv_issue *issue, vv_error *err)
{
    static const char *const names[] = {
        [VV_ISSUE_UNRESOLVED_SPAN_START] = "MissingSpanStart",
        [VV_ISSUE_UNRESOLVED_CONTEXT] = "MissingContextDefinition",
        [VV_ISSUE_UNRESOLVED_OVERFLOW] = "MissingOverflowBucket",
        [VV_ISSUE_UNRESOLVED_CAPTURE] = "MissingErrorCapture",
    };
    if (!is_hard)
        return vv_build_issue(b, issue, err);
    vv_build_fail(b, names[issue->kind]);
    return VV_OK;
}

static vv_code check_context(vv_fold_build *b, bool is_hard, const vv_context_ref *ref, vv_error *err)
{
    const vv_fold *f = &b->f;
    if (ref->overflow) {
        if (f->overflow_present[ref->reason][ref->edge])
            return VV_OK;
        return unresolved(b, is_hard,
                          &(vv_issue){.kind = VV_ISSUE_UNRESOLVED_OVERFLOW, .a = ref->reason, .b = ref->edge}, err);
    }
    uint32_t i = vv_map_find(&f->context_map, &ref->key);
    if (i != VV_MAP_NONE && f->contexts[i].defined)
        return VV_OK;
    return unresolved(b, is_hard, &(vv_issue){.kind = VV_ISSUE_UNRESOLVED_CONTEXT, .key = ref->key}, err);
}

static vv_code check_span(vv_fold_build *b, bool is_hard, const vv_fold_span *s, vv_error *err)
{
    if (!s->has_start)
        return unresolved(b, is_hard, &(vv_issue){.kind = VV_ISSUE_UNRESOLVED_SPAN_START, .call = s->call}, err);
    vv_code rc = check_context(b, is_hard, &s->start.context, err);
    if (rc != VV_OK || b->f.failed || !s->has_terminal || s->terminal.lost)
        return rc;
    if (vv_map_find(&b->f.error_map, &s->terminal.capture) == VV_MAP_NONE)
        rc = unresolved(b, is_hard, &(vv_issue){.kind = VV_ISSUE_UNRESOLVED_CAPTURE, .capture = s->terminal.capture},
                        err);
    return rc;
}

/* Spans by call, then captures by id. */
static vv_code check_dependencies(vv_fold_build *b, bool is_hard, vv_error *err)
{
    const vv_fold *f = &b->f;
    uint32_t *spans = vv_fold_order_spans(f), *errors = vv_fold_order_errors(f);
    vv_code rc = spans && errors ? VV_OK : no_memory(err);
    for (size_t i = 0; i < f->span_count && rc == VV_OK && !f->failed; i++)
        rc = check_span(b, is_hard, &f->spans[spans[i]], err);
    for (size_t i = 0; i < f->error_count && rc == VV_OK && !f->failed; i++)
        rc = check_context(b, is_hard, &f->errors[errors[i]].context, err);
    free(spans);
    free(errors);
    return rc;
}

vv_code vv_build_settle(vv_fold_build *b, vv_error *err)
{
    vv_fold *f = &b->f;
    const vv_execution *e = f->execution;
    if (!vv_map_catch_up(&f->context_map))
        return no_memory(err);
    find_parents(f);
    vv_code rc = check_threads(b, err);
    bool nothing_lost = !e->has_end || (e->health.v[VV_H_cct_segment_publish_failed] == 0 &&
                                        e->health.v[VV_H_evidence_segment_publish_failed] == 0);
    if (rc == VV_OK)
        rc = check_dependencies(b, f->issue_count == 0 && nothing_lost, err);
    f->complete = !f->failed && f->issue_count == 0 && e->has_end;
    return rc;
}
