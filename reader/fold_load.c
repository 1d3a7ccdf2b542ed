#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "reader/fold_build.h"
#include "reader/stream.h"

static vv_load_range range_of(const vv_stream *s, const vv_execution *e)
{
    const vv_load_range nothing = {.first = 1, .last = 0};
    vv_load_range r = nothing;
    if (!e->has_end) {
        if (e->start_high_water < s->data_high) {
            r.first = e->start_high_water + 1;
            r.last = s->data_high;
        }
        return r;
    }
    if (e->count != 0 && e->first != 0 && e->first <= e->last) {
        r.first = e->first;
        r.last = e->last;
    }
    /* first 0 with a count promises groups that no sequence can hold: the count stands unmet. */
    r.has_expected = true;
    r.expected = e->count;
    return r;
}

/* More than VV_MISSING_MAX sequences without a file? */
static bool is_too_large(const vv_seg_list *data, const vv_load_range *r)
{
    if (r->first > r->last)
        return false;
    size_t from = vv_seg_list_from(data, r->first);
    size_t to = r->last == UINT64_MAX ? data->count : vv_seg_list_from(data, r->last + 1);
    return r->last - r->first >= VV_MISSING_MAX && r->last - r->first - VV_MISSING_MAX >= to - from;
}

static vv_code segment_issue(vv_fold_build *b, vv_issue_kind kind, uint64_t sequence, vv_error *err)
{
    b->segment_issues = true;
    return vv_build_issue(b, &(vv_issue){.kind = kind, .a = sequence}, err);
}

typedef struct {
    const vv_store *store;
    const vv_stream *stream;
    vv_group_buffer buffer;
} loader;

/* Folds the execution's group of one verified segment, if it has one. */
static vv_code load_segment(vv_fold_build *b, loader *l, const vv_seg *seg, vv_error *err)
{
    if (seg->state == VV_SEG_CORRUPT)
        return segment_issue(b, VV_ISSUE_CORRUPT_SEGMENT, seg->sequence, err);
    if (seg->state == VV_SEG_UNREADABLE) {
        vv_build_fail(b, "Io");
        return VV_OK;
    }
    vv_group g;
    bool found;
    vv_error why = {0};
    vv_code rc = vv_seg_group(l->store->source, &l->stream->euid, seg, &b->f.root, vv_budget_max(b->f.budget),
                              &l->buffer, &g, &found, &why);
    b->f.disturbed |= rc != VV_OK;
    if (rc == VV_ERR_NOTFOUND)
        return segment_issue(b, VV_ISSUE_MISSING_SEGMENT, seg->sequence, err);
    if (rc == VV_ERR_CORRUPT)
        return segment_issue(b, VV_ISSUE_CORRUPT_SEGMENT, seg->sequence, err);
    if (rc == VV_ERR_NOMEM || rc == VV_ERR_LIMIT)
        return vv_fail(err, rc, "%s", why.msg);
    if (rc != VV_OK)
        vv_build_fail(b, "Io");
    if (rc != VV_OK || !found)
        return VV_OK;
    if (!b->first_found)
        b->first_found = seg->sequence;
    b->last_found = seg->sequence;
    rc = vv_build_group(b, &g, err);
    return rc == VV_OK ? vv_build_charge(b, err) : rc;
}

static vv_code missing_run(vv_fold_build *b, uint64_t first, uint64_t last, vv_error *err)
{
    vv_code rc = VV_OK;
    for (uint64_t seq = first; rc == VV_OK && first <= last; seq++) {
        rc = segment_issue(b, VV_ISSUE_MISSING_SEGMENT, seq, err);
        if (seq == last)
            break;
    }
    return rc;
}

/* Sequences first..last in order; a run without files is bounded by is_too_large. */
static vv_code load_range(vv_fold_build *b, loader *l, uint64_t first, uint64_t last, vv_error *err)
{
    if (first > last)
        return VV_OK;
    const vv_seg_list *data = &l->stream->core->data;
    uint64_t next = first;
    vv_code rc = VV_OK;
    for (size_t i = vv_seg_list_from(data, first); i < data->count && rc == VV_OK && !b->f.failed; i++) {
        vv_seg room;
        const vv_seg *seg = vv_seg_at(data, i, &room);
        if (seg->sequence > last)
            break;
        if (seg->sequence > next)
            rc = missing_run(b, next, seg->sequence - 1, err);
        if (rc == VV_OK)
            rc = load_segment(b, l, seg, err);
        if (seg->sequence == last)
            return rc;
        next = seg->sequence + 1;
    }
    return rc == VV_OK && !b->f.failed ? missing_run(b, next, last, err) : rc;
}

/* The part of the range from sequence from on, and what then follows from the whole. */
static vv_code load(vv_fold_build *b, const vv_store *store, const vv_stream *stream, uint64_t from, vv_error *err)
{
    const vv_load_range *r = &b->range;
    if (is_too_large(&stream->core->data, r)) {
        vv_build_fail(b, "RangeTooLarge");
        return VV_OK;
    }
    loader l = {.store = store, .stream = stream};
    vv_code rc = load_range(b, &l, from > r->first ? from : r->first, r->last, err);
    vv_group_buffer_done(&l.buffer);
    if (rc == VV_OK && !b->f.failed && r->has_expected && r->expected != b->f.groups)
        rc = vv_build_issue(b, &(vv_issue){.kind = VV_ISSUE_GROUP_COUNT, .a = r->expected, .b = b->f.groups}, err);
    if (rc == VV_OK && !b->f.failed)
        rc = vv_build_settle(b, err);
    return rc == VV_OK ? vv_build_charge(b, err) : rc;
}

vv_code vv_execution_mentions(bool *ret, const vv_store *store, const vv_stream *stream, const vv_execution *execution,
                              const void *p, size_t n, size_t max_bytes, vv_error *err)
{
    const vv_load_range r = range_of(stream, execution);
    const vv_seg_list *data = &stream->core->data;
    vv_group_buffer buffer = {0};
    vv_code rc = VV_OK;
    *ret = is_too_large(data, &r);
    for (size_t i = vv_seg_list_from(data, r.first); i < data->count && !*ret && rc == VV_OK; i++) {
        vv_seg room;
        const vv_seg *seg = vv_seg_at(data, i, &room);
        vv_group g;
        bool found;
        if (r.first > r.last || seg->sequence > r.last)
            break;
        if (seg->state != VV_SEG_OK)
            continue;
        rc = vv_seg_group(store->source, &stream->euid, seg, &execution->root, max_bytes, &buffer, &g, &found, NULL);
        if (rc == VV_OK && found)
            *ret = memmem(g.evidence, (size_t)g.evidence_len, p, n) != NULL;
    }
    vv_group_buffer_done(&buffer);
    if (rc == VV_ERR_NOMEM)
        return vv_fail(err, rc, "no memory to search an execution");
    *ret |= rc != VV_OK;
    return VV_OK;
}

static vv_code begin_issues(vv_fold_build *b, vv_error *err)
{
    b->f.issue_count = 0;
    return b->f.execution->has_end ? VV_OK : vv_build_issue(b, &(vv_issue){.kind = VV_ISSUE_NO_ROOT_ENDED}, err);
}

static vv_code begin(vv_fold_build **ret, const vv_execution *execution, vv_budget *budget, vv_error *err)
{
    vv_fold_build *b = calloc(1, sizeof *b);
    if (!b)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the fold of an execution");
    b->f.budget = budget;
    b->f.execution = execution;
    b->f.root = execution->root;
    b->f.texts = vv_arena_init(vv_budget_max(budget));
    vv_map_init(&b->f.context_map, sizeof(vv_context_key));
    vv_map_init(&b->f.thread_map, sizeof(vv_thread_ref));
    vv_map_init(&b->f.span_map, sizeof(vv_call_ref));
    vv_map_init(&b->f.error_map, sizeof(vv_capture_id));
    *ret = b;
    return VV_OK;
}

vv_code vv_fold_refused(vv_fold **ret, const vv_execution *execution, vv_error *err)
{
    vv_fold_build *b;
    vv_code rc = begin(&b, execution, NULL, err);
    if (rc != VV_OK)
        return rc;
    vv_build_fail(b, "LimitExceeded");
    *ret = &b->f;
    return VV_OK;
}

vv_code vv_fold_load(vv_fold **ret, const vv_store *store, const vv_stream *stream, const vv_execution *execution,
                     vv_budget *budget, vv_error *err)
{
    vv_fold_build *b;
    vv_code rc = begin(&b, execution, budget, err);
    if (rc != VV_OK)
        return rc;
    b->range = range_of(stream, execution);
    rc = begin_issues(b, err);
    if (rc == VV_OK)
        rc = load(b, store, stream, b->range.first, err);
    if (rc != VV_OK) {
        vv_fold_free(&b->f);
        return rc;
    }
    *ret = &b->f;
    return VV_OK;
}

void vv_fold_free(vv_fold *f)
{
    if (!f)
        return;
    vv_budget_give(f->budget, f->bytes);
    vv_map_done(&f->context_map);
    vv_map_done(&f->thread_map);
    vv_map_done(&f->span_map);
    vv_map_done(&f->error_map);
    free(f->contexts);
    free(f->threads);
    free(f->spans);
    free(f->errors);
    free(f->runtime_ids);
    free(f->logs);
    free(f->scopes);
    free(f->issues);
    free(f->thread_issues);
    vv_arena_done(&f->texts);
    free(f);
}

/* Do the groups folded so far make up the beginning of the new range? */
static bool can_go_on(const vv_fold_build *b, const vv_load_range *r)
{
    if (b->f.failed || b->segment_issues || b->range.has_expected)
        return false;
    if (!r->has_expected)
        return r->first > r->last ? b->f.groups == 0 : r->first == b->range.first || b->range.first > b->range.last;
    if (b->f.groups == 0)
        return b->range.first > b->range.last || r->first >= b->range.first;
    return r->first >= b->range.first && r->first <= b->first_found && r->last >= b->last_found;
}

vv_code vv_fold_advance(vv_fold **f, const vv_store *store, const vv_stream *stream, const vv_execution *execution,
                        vv_error *err)
{
    vv_fold_build *b = (vv_fold_build *)*f;
    vv_load_range r = range_of(stream, execution);
    if (!can_go_on(b, &r)) {
        vv_budget *budget = b->f.budget;
        vv_fold_free(*f); /* first: the budget need not hold both */
        *f = NULL;
        return vv_fold_load(f, store, stream, execution, budget, err);
    }
    uint64_t done = b->range.first > b->range.last ? 0 : b->range.last;
    b->range = r;
    b->f.execution = execution;
    vv_code rc = begin_issues(b, err);
    return rc == VV_OK ? load(b, store, stream, done + 1, err) : rc;
}
