#include "config.h"

#include "reader/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "reader/fold_build.h"

enum { FIRST_CAP = 8, MAP_BYTES_MAX = 24 /* of a map, for each key, above the key */ };

static vv_code no_memory(vv_error *err)
{
    return vv_fail(err, VV_ERR_NOMEM, "no memory for the fold of an execution");
}

static vv_code over_limit(const vv_fold_build *b, vv_error *err)
{
    return vv_fail(err, VV_ERR_LIMIT, "an execution needs more than is left of %zu bytes", vv_budget_max(b->f.budget));
}

static size_t bytes_held(const vv_fold_build *b)
{
    const vv_fold *f = &b->f;
    return sizeof *b + b->context_cap * sizeof *f->contexts + b->thread_cap * sizeof *f->threads +
           b->span_cap * sizeof *f->spans + b->error_cap * sizeof *f->errors +
           b->runtime_id_cap * sizeof *f->runtime_ids + b->log_cap * sizeof *f->logs +
           b->scope_cap * sizeof *f->scopes + b->issue_cap * sizeof *f->issues +
           b->thread_issue_cap * sizeof *f->thread_issues + vv_map_bytes(&f->context_map) +
           vv_map_bytes(&f->thread_map) + vv_map_bytes(&f->span_map) + vv_map_bytes(&f->error_map) + f->texts.used;
}

vv_code vv_build_charge(vv_fold_build *b, vv_error *err)
{
    size_t held = bytes_held(b);
    if (held > b->f.bytes && !vv_budget_take(b->f.budget, held - b->f.bytes))
        return over_limit(b, err);
    if (held < b->f.bytes)
        vv_budget_give(b->f.budget, b->f.bytes - held);
    b->f.bytes = held;
    return VV_OK;
}

static vv_code set_cap(vv_fold_build *b, void **array, size_t *cap, size_t want, size_t size, vv_error *err)
{
    size_t more;
    vv_code rc = vv_build_charge(b, err);
    if (rc != VV_OK)
        return rc;
    if (__builtin_mul_overflow(want - *cap, size, &more) || !vv_budget_take(b->f.budget, more))
        return over_limit(b, err);
    void *p = realloc(*array, want * size);
    if (!p) {
        vv_budget_give(b->f.budget, more);
        return no_memory(err);
    }
    vv_pages_hint(p, want * size);
    *array = p;
    *cap = want;
    b->f.bytes += more;
    return VV_OK;
}

vv_code vv_build_room(vv_fold_build *b, void **array, size_t *cap, size_t count, size_t size, vv_error *err)
{
    return VV_LIKELY(count < *cap) ? VV_OK : set_cap(b, array, cap, *cap ? *cap * 2 : FIRST_CAP, size, err);
}

void vv_build_fail(vv_fold_build *b, const char *name)
{
    b->f.failed = true;
    b->f.complete = false;
    vv_fail_decode(&b->f.error, name, 0, "the execution can't be folded: %s", name);
}

vv_code vv_build_issue(vv_fold_build *b, const vv_issue *issue, vv_error *err)
{
    vv_code rc = vv_build_room(b, (void **)&b->f.issues, &b->issue_cap, b->f.issue_count, sizeof *issue, err);
    if (rc == VV_OK)
        b->f.issues[b->f.issue_count++] = *issue;
    return rc;
}

/* The first fault of a group counts, but a section that does not decode comes before it (see vv_build_group). */
static void fault(vv_fold_build *b, const char *name)
{
    if (!b->fault)
        b->fault = name;
}

/* Takes the row's tuple, where the context has none. False: it isn't the key's, and the cursor has failed. */
static bool define(vv_fold_build *b, vv_cct_cursor *cursor, vv_fold_context *c, const vv_cct_row *row)
{
    /* Writers repeat definitions; one that was checked before is known by its fields, for less than its hash. */
    if (c->defined && vv_tuple_eq(&c->tuple, &row->tuple))
        return true;
    if (!vv_cct_check_key(cursor, row))
        return false;
    if (c->defined) {
        fault(b, "ConflictingContextDefinition");
        return true;
    }
    c->defined = true;
    c->tuple = row->tuple;
    return true;
}

/* Where a key is that was not expected here, or now is. */
static vv_code find_or_add(vv_fold_build *b, const uint8_t *key, uint32_t *ret, vv_error *err)
{
    vv_fold *f = &b->f;
    vv_code rc = vv_build_room(b, (void **)&f->contexts, &b->context_cap, f->context_count, sizeof *f->contexts, err);
    if (rc != VV_OK)
        return rc;
    const vv_fold_context *last = f->context_count ? &f->contexts[f->context_count - 1] : NULL;
    bool is_highest = !last || memcmp(key, last->key.b, sizeof last->key.b) > 0, is_new = true;
    uint32_t i = is_highest && !b->unsorted ? vv_map_append(&f->context_map, key)
                                            : vv_map_put(&f->context_map, key, &is_new);
    if (i == VV_MAP_NONE)
        return no_memory(err);
    if (is_new) {
        b->unsorted |= !is_highest;
        f->contexts[i] = (vv_fold_context){.parent = VV_MAP_NONE};
        memcpy(f->contexts[i].key.b, key, sizeof f->contexts[i].key.b);
        f->context_count++;
    }
    *ret = i;
    return VV_OK;
}

/* The row's context, found or new. */
static inline vv_code context_of(vv_fold_build *b, const uint8_t *key, vv_fold_context **ret, vv_error *err)
{
    uint32_t i = b->next_context;
    if (VV_UNLIKELY(i >= b->f.context_count || !vv_context_key_eq(b->f.contexts[i].key.b, key))) {
        vv_code rc = find_or_add(b, key, &i, err);
        if (rc != VV_OK)
            return rc;
    }
    b->next_context = i + 1;
    *ret = &b->f.contexts[i];
    return VV_OK;
}

static vv_code add_row(vv_fold_build *b, vv_cct_cursor *cursor, const vv_cct_row *row, vv_error *err)
{
    vv_fold_context *c;
    vv_code rc = context_of(b, row->key.b, &c, err);
    if (rc == VV_OK && (!row->defined || define(b, cursor, c, row)))
        b->f.health |= vv_counters_add(&c->counters, &row->counters);
    return rc;
}

static VV_HOT vv_code add_deltas(vv_fold_build *b, vv_cct_cursor *cursor, vv_error *err)
{
    vv_code rc = VV_OK;
    for (const uint8_t *row; rc == VV_OK && (row = vv_cct_next_delta(cursor));) {
        vv_fold_context *c;
        rc = context_of(b, row, &c, err);
        if (rc == VV_OK)
            b->f.health |= vv_counters_add_encoded(&c->counters, row + VV_CCT_DELTA_COUNTERS);
    }
    return rc;
}

/* Most contexts of a first group are new: one allocation instead of a doubling at a time. */
static void expect_contexts(vv_fold_build *b, uint64_t n)
{
    vv_fold *f = &b->f;
    const size_t each = sizeof *f->contexts + sizeof(vv_context_key) + MAP_BYTES_MAX;
    if (f->context_count || n < FIRST_CAP * FIRST_CAP || n > VV_MAP_NONE / 4 || n <= b->context_cap ||
        n > vv_budget_max(b->f.budget) / each)
        return;
    /* Without, growth goes on by itself, and says what failed; what the map takes is charged with the next growth. */
    if (set_cap(b, (void **)&f->contexts, &b->context_cap, (size_t)n, sizeof *f->contexts, NULL) == VV_OK)
        (void)vv_map_reserve(&f->context_map, (uint32_t)n);
}

static vv_code fold_cct(vv_fold_build *b, const vv_group *g, vv_error *err)
{
    vv_cct_cursor c;
    vv_cct_open(&c, g->cct, g->cct_len, g->cct_health, g->cct_records);
    c.trust_keys = true; /* define checks those it has not seen */
    expect_contexts(b, c.contexts_left);
    vv_cct_row row;
    vv_code rc = add_deltas(b, &c, err);
    while (rc == VV_OK && vv_cct_next_context(&c, &row)) {
        rc = add_row(b, &c, &row, err);
        if (rc == VV_OK)
            rc = add_deltas(b, &c, err);
    }
    if (rc != VV_OK)
        return rc;
    vv_cct_overflow o;
    while (vv_cct_next_overflow(&c, &o)) {
        b->f.overflow_present[o.reason][o.edge] = true;
        b->f.health |= vv_counters_add(&b->f.overflow[o.reason][o.edge], &o.counters);
    }
    if (vv_cct_finish(&c, NULL) != VV_OK)
        b->fault = "Decode";
    return VV_OK;
}

static vv_code span_of(vv_fold_build *b, const vv_call_ref *call, vv_fold_span **ret, vv_error *err)
{
    vv_fold *f = &b->f;
    vv_code rc = vv_build_room(b, (void **)&f->spans, &b->span_cap, f->span_count, sizeof *f->spans, err);
    if (rc != VV_OK)
        return rc;
    bool is_new;
    uint32_t i = vv_map_put(&f->span_map, call, &is_new);
    if (i == VV_MAP_NONE)
        return no_memory(err);
    if (is_new)
        f->spans[f->span_count++] = (vv_fold_span){.call = *call};
    *ret = &f->spans[i];
    return VV_OK;
}

static vv_code thread_of(vv_fold_build *b, const vv_thread_ref *thread, vv_fold_thread **ret, vv_error *err)
{
    vv_fold *f = &b->f;
    vv_code rc = vv_build_room(b, (void **)&f->threads, &b->thread_cap, f->thread_count, sizeof *f->threads, err);
    if (rc != VV_OK)
        return rc;
    bool is_new;
    uint32_t i = vv_map_put(&f->thread_map, thread, &is_new);
    if (i == VV_MAP_NONE)
        return no_memory(err);
    if (is_new)
        f->threads[f->thread_count++] = (vv_fold_thread){.thread = *thread};
    *ret = &f->threads[i];
    return VV_OK;
}

/* An arena text: it comes out of a segment's bytes, which are there, so it is charged once its chunk is known. */
static vv_code keep_text(vv_fold_build *b, vv_str *s, vv_error *err)
{
    size_t before = b->f.texts.used;
    vv_str copy = vv_arena_str(&b->f.texts, *s);
    if (!copy.p)
        return b->f.texts.max - b->f.texts.used < s->n ? over_limit(b, err) : no_memory(err);
    *s = copy;
    return b->f.texts.used == before ? VV_OK : vv_build_charge(b, err);
}

static vv_code keep_opt_text(vv_fold_build *b, vv_opt_str *s, vv_error *err)
{
    return s->present ? keep_text(b, &s->s, err) : VV_OK;
}

static vv_code fold_span_start(vv_fold_build *b, const vv_fact *fact, vv_error *err)
{
    vv_fold_span *s;
    vv_code rc = span_of(b, &fact->span_start.call, &s, err);
    if (rc != VV_OK)
        return rc;
    if (s->has_start) {
        fault(b, "DuplicateSpanStart");
        return VV_OK;
    }
    s->has_start = true;
    s->start = fact->span_start;
    /* On a tie of ordinals the start's id wins. */
    if (s->start.has_runtime_id && (!s->has_runtime_id || s->start.annotation_ordinal >= s->runtime_ordinal)) {
        s->has_runtime_id = true;
        s->runtime_ordinal = s->start.annotation_ordinal;
        s->runtime_id = s->start.runtime_id;
    }
    return VV_OK;
}

static vv_code fold_span_end(vv_fold_build *b, const vv_fact *fact, vv_error *err)
{
    vv_fold_span *s;
    vv_code rc = span_of(b, &fact->span_end.call, &s, err);
    if (rc != VV_OK)
        return rc;
    if (s->has_end) {
        fault(b, "DuplicateSpanEnd");
        return VV_OK;
    }
    s->has_end = true;
    s->end = fact->span_end;
    return VV_OK;
}

static vv_code fold_span_runtime_id(vv_fold_build *b, const vv_fact *fact, vv_error *err)
{
    const vv_span_runtime_id *r = &fact->span_runtime_id;
    vv_fold_span *s;
    vv_code rc = span_of(b, &r->call, &s, err);
    vv_fold *f = &b->f;
    if (rc == VV_OK)
        rc = vv_build_room(b, (void **)&f->runtime_ids, &b->runtime_id_cap, f->runtime_id_count, sizeof *f->runtime_ids,
                           err);
    if (rc != VV_OK)
        return rc;
    f->runtime_ids[f->runtime_id_count++] = *r;
    if (!s->has_runtime_id || r->ordinal > s->runtime_ordinal) {
        s->has_runtime_id = true;
        s->runtime_ordinal = r->ordinal;
        s->runtime_id = r->id;
    }
    return VV_OK;
}

static vv_code fold_value(vv_fold_build *b, const vv_fact *fact, vv_error *err)
{
    const vv_value_occurrence *v = &fact->value;
    vv_fold_span *s;
    vv_code rc = span_of(b, &v->call, &s, err);
    if (rc != VV_OK)
        return rc;
    bool *has = v->role ? &s->has_output : &s->has_input;
    if (*has) {
        fault(b, "DuplicateValueOccurrence");
        return VV_OK;
    }
    *has = true;
    *(v->role ? &s->output : &s->input) = v->value;
    return VV_OK;
}

static vv_code fold_error_capture(vv_fold_build *b, const vv_fact *fact, vv_error *err)
{
    vv_fold *f = &b->f;
    vv_code rc = vv_build_room(b, (void **)&f->errors, &b->error_cap, f->error_count, sizeof *f->errors, err);
    if (rc != VV_OK)
        return rc;
    bool is_new;
    if (vv_map_put(&f->error_map, &fact->error_capture.id, &is_new) == VV_MAP_NONE)
        return no_memory(err);
    if (is_new)
        f->errors[f->error_count++] = fact->error_capture;
    else
        fault(b, "DuplicateErrorCapture");
    return VV_OK;
}

static vv_code fold_terminal_error(vv_fold_build *b, const vv_fact *fact, vv_error *err)
{
    vv_fold_span *s;
    vv_code rc = span_of(b, &fact->terminal_error.call, &s, err);
    if (rc != VV_OK)
        return rc;
    if (s->has_terminal) {
        fault(b, "DuplicateTerminalError");
        return VV_OK;
    }
    s->has_terminal = true;
    s->terminal = fact->terminal_error;
    return VV_OK;
}

static vv_code fold_thread_start(vv_fold_build *b, const vv_fact *fact, vv_error *err)
{
    vv_fold_thread *t;
    vv_code rc = thread_of(b, &fact->thread_start.thread, &t, err);
    if (rc != VV_OK)
        return rc;
    if (t->has_start) {
        fault(b, "DuplicateThreadStart");
        return VV_OK;
    }
    t->has_start = true;
    t->start = fact->thread_start;
    return keep_text(b, &t->start.name, err);
}

static vv_code fold_thread_end(vv_fold_build *b, const vv_fact *fact, vv_error *err)
{
    vv_fold_thread *t;
    vv_code rc = thread_of(b, &fact->thread_end.thread, &t, err);
    if (rc != VV_OK)
        return rc;
    if (t->has_end) {
        fault(b, "DuplicateThreadEnd");
        return VV_OK;
    }
    t->has_end = true;
    t->end = fact->thread_end;
    return VV_OK;
}

static vv_code fold_log(vv_fold_build *b, const vv_fact *fact, vv_error *err)
{
    vv_fold *f = &b->f;
    vv_code rc = vv_build_room(b, (void **)&f->logs, &b->log_cap, f->log_count, sizeof *f->logs, err);
    vv_log_event log = fact->log;
    vv_opt_str *const texts[] = {&log.level, &log.message, &log.event, &log.distinct_id};
    for (size_t i = 0; i < VV_ARRAY_LEN(texts) && rc == VV_OK; i++)
        rc = keep_opt_text(b, texts[i], err);
    if (rc == VV_OK)
        f->logs[f->log_count++] = log;
    return rc;
}

static vv_code fold_call_scope(vv_fold_build *b, const vv_fact *fact, vv_error *err)
{
    vv_fold *f = &b->f;
    vv_code rc = vv_build_room(b, (void **)&f->scopes, &b->scope_cap, f->scope_count, sizeof *f->scopes, err);
    vv_call_scope scope = fact->call_scope;
    if (rc == VV_OK)
        rc = keep_opt_text(b, &scope.distinct_id, err);
    if (rc == VV_OK)
        f->scopes[f->scope_count++] = scope;
    return rc;
}

static vv_code (*const fold_fact[VV_FACTS])(vv_fold_build *b, const vv_fact *fact, vv_error *err) = {
    [VV_FACT_SPAN_START] = fold_span_start,
    [VV_FACT_SPAN_END] = fold_span_end,
    [VV_FACT_SPAN_RUNTIME_ID] = fold_span_runtime_id,
    [VV_FACT_VALUE] = fold_value,
    [VV_FACT_ERROR_CAPTURE] = fold_error_capture,
    [VV_FACT_TERMINAL_ERROR] = fold_terminal_error,
    [VV_FACT_THREAD_START] = fold_thread_start,
    [VV_FACT_THREAD_END] = fold_thread_end,
    [VV_FACT_LOG] = fold_log,
    [VV_FACT_CALL_SCOPE] = fold_call_scope,
};

static vv_code fold_evidence(vv_fold_build *b, const vv_group *g, vv_error *err)
{
    vv_evidence_cursor c;
    vv_evidence_open(&c, g->evidence, g->evidence_len, g->evidence_records);
    vv_fact fact;
    while (vv_evidence_next(&c, &fact)) {
        vv_code rc = fold_fact[fact.tag](b, &fact, err);
        if (rc != VV_OK)
            return rc;
    }
    if (vv_evidence_finish(&c, NULL) != VV_OK)
        b->fault = "Decode";
    return VV_OK;
}

/*
 * A group is decoded as a whole before it is folded: where one of its sections does not decode, that is the error,
 * whatever the facts in front of the fault would have clashed with. One pass does both, since a failed fold's parts are
 * not shown.
 */
vv_code vv_build_group(vv_fold_build *b, const vv_group *g, vv_error *err)
{
    b->fault = NULL;
    b->f.health |= g->cct_health;
    b->f.groups++;
    vv_code rc = VV_OK;
    if (vv_group_has_cct(g))
        rc = fold_cct(b, g, err);
    if (rc == VV_OK && vv_group_has_evidence(g))
        rc = fold_evidence(b, g, err);
    if (rc == VV_OK && b->fault)
        vv_build_fail(b, b->fault);
    return rc;
}

uint32_t vv_fold_find_context(const vv_fold *f, const vv_context_key *key)
{
    return vv_map_find(&f->context_map, key);
}
