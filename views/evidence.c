#include "config.h"

#include "views/evidence.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const verdicts[] = {"complete", "running", "partial", "damaged"};
static const char *const statuses[] = {"succeeded", "failed", "cancelled", "panicked", "abandoned", "running"};
#define END_MISSING "the record of the end is missing"
#define START_MISSING "the record of the start is missing"
#define INDEX_DAMAGED "the index of the recording is damaged"
#define TABLE_UNREADABLE "the table of the functions' names can't be read"

static const char *const index_states[] = {"complete", "no_root_ended", "root_started_lost", "index_corrupt"};
static const char *const data_states[] = {"complete", "incomplete", "error"};

const char *vv_verdict_name(vv_verdict v)
{
    return verdicts[v];
}

const char *vv_status_word(unsigned status)
{
    return status < VV_ARRAY_LEN(statuses) ? statuses[status] : "unknown";
}

const char *vv_index_state_word(vv_index_state s)
{
    return index_states[s];
}

const char *vv_index_state_text(vv_index_state s)
{
    static const char *const texts[] = {"complete", END_MISSING, START_MISSING, INDEX_DAMAGED};
    return texts[s];
}

const char *vv_data_state_word(vv_data_state s)
{
    return data_states[s];
}

vv_data_state vv_data_state_of(const vv_fold *f)
{
    return f->failed ? VV_DATA_ERROR : f->complete ? VV_DATA_COMPLETE : VV_DATA_INCOMPLETE;
}

void vv_evidence_done(vv_evidence *e)
{
    free(e->issues);
    *e = (vv_evidence){0};
}

static void worsen(vv_evidence *e, vv_verdict v)
{
    if (v > e->verdict)
        e->verdict = v;
}

static vv_code add_issue(vv_evidence *e, const vv_evidence_issue *issue, vv_error *err)
{
    e->issues_total++;
    if (e->issue_count == VV_EVIDENCE_ISSUES)
        return VV_OK;
    if ((e->issue_count & (e->issue_count - 1)) == 0) { /* room doubles at each power of two */
        size_t cap = e->issue_count ? e->issue_count * 2 : 1;
        vv_evidence_issue *bigger = realloc(e->issues, cap * sizeof *bigger);
        if (!bigger)
            return vv_fail(err, VV_ERR_NOMEM, "no memory for issues");
        e->issues = bigger;
    }
    e->issues[e->issue_count++] = *issue;
    return VV_OK;
}

/* The equations (docs/http-api.md): names, and the terms that the right side sums up. */
enum { EQ_UNWINDS, EQ_CAPTURES, EQ_LINKS_OBSERVED, EQ_LINKS, EQ_CAPTURES_FOLDED, EQ_LINKS_FOLDED, EQ_GROUPS, EQ_CALLS,
       EQ_SPANS, EQ_CHILD_TIME, EQ_INVOCATIONS, EQ_INVOCATIONS_FOLDED, EQ_AWAITS, EQ_AWAITS_FOLDED, EQ_SELECTED,
       EQ_SPAN_ENDS, EQ_RUNTIME_IDS, EQ_VALUES, EQ_ERRORS, EQ_ERROR_VALUES, EQ_TERMINAL_LINKS,
       EQ_STARTS_FOLDED, EQ_ENDS_FOLDED, EQ_VALUES_FOLDED };
static const struct {
    const char *name;
    const char *terms[VV_EQUATION_TERMS];
} equations[VV_EQUATIONS] = {
    [EQ_UNWINDS] = {"error_unwinds",
                    {"error_captures_queued", "error_capture_attempt_transport_exceeded",
                     "error_capture_missing_structural_join", "error_capture_start_uncommitted",
                     "error_capture_evidence_queue_full"}},
    [EQ_CAPTURES] = {"error_captures", {"error_captures_committed", "error_capture_evidence_publish_failed"}},
    [EQ_LINKS_OBSERVED] = {"error_links_observed",
                           {"terminal_error_links_queued", "terminal_error_link_transport_exceeded",
                            "terminal_error_link_start_uncommitted"}},
    [EQ_LINKS] = {"error_links",
                  {"terminal_error_links_committed", "terminal_error_link_evidence_publish_failed"}},
    [EQ_CAPTURES_FOLDED] = {"error_captures_folded", {"error_captures_committed"}},
    [EQ_LINKS_FOLDED] = {"error_links_folded", {"terminal_error_links_committed"}},
    [EQ_GROUPS] = {"groups", {"segments"}},
    [EQ_CALLS] = {"calls", {"completed_ok", "completed_error", "completed_cancelled", "completed_exit"}},
    [EQ_SPANS] = {"span_starts", {"span_starts"}},
    [EQ_CHILD_TIME] = {"direct_child_time", {"call_inclusive_ns"}},
    [EQ_INVOCATIONS] = {"invocations", {"invocations_folded", "invocations_lost"}},
    [EQ_INVOCATIONS_FOLDED] = {"invocations_folded", {"invocations_folded"}},
    [EQ_AWAITS] = {"awaits", {"await_intervals_folded", "await_lost"}},
    [EQ_AWAITS_FOLDED] = {"awaits_folded", {"await_intervals_folded"}},
    [EQ_SELECTED] = {"spans_selected", {"span_starts_committed", "span_start_lost"}},
    [EQ_SPAN_ENDS] = {"span_ends", {"span_ends_committed", "span_end_lost"}},
    [EQ_RUNTIME_IDS] = {"runtime_ids", {"runtime_id_annotations_committed", "runtime_id_annotation_lost"}},
    [EQ_VALUES] = {"values", {"value_occurrences_available", "value_lost"}},
    [EQ_ERRORS] = {"errors", {"error_captures_committed", "error_capture_lost"}},
    [EQ_ERROR_VALUES] = {"error_values", {"error_values_available", "error_value_lost"}},
    [EQ_TERMINAL_LINKS] = {"terminal_links", {"terminal_error_links_committed", "terminal_error_link_lost"}},
    [EQ_STARTS_FOLDED] = {"span_starts_folded", {"span_starts_committed"}},
    [EQ_ENDS_FOLDED] = {"span_ends_folded", {"span_ends_committed"}},
    [EQ_VALUES_FOLDED] = {"values_folded", {"value_occurrences_available"}},
};

/* Those on the terms of the health plane: a count, what of it was committed, and its losses by reason. */
static const struct {
    unsigned which;
    const char *all, *committed, *lost;
} kept[] = {
    {EQ_INVOCATIONS, "invocations_attempted", "invocations_folded", "invocations_lost."},
    {EQ_AWAITS, "await_intervals_started", "await_intervals_folded", "await_lost."},
    {EQ_SELECTED, "spans_selected", "span_starts_committed", "span_start_lost."},
    {EQ_SPAN_ENDS, "span_starts_committed", "span_ends_committed", "span_end_lost."},
    {EQ_RUNTIME_IDS, "runtime_id_annotations_observed", "runtime_id_annotations_committed",
     "runtime_id_annotation_lost."},
    {EQ_VALUES, "applicable_value_attempts", "value_occurrences_available", "value_lost."},
    {EQ_ERRORS, "applicable_error_unwinds", "error_captures_committed", "error_capture_lost."},
    {EQ_ERROR_VALUES, "error_captures_committed", "error_values_available", "error_value_lost."},
    {EQ_TERMINAL_LINKS, "terminal_error_links_observed", "terminal_error_links_committed",
     "terminal_error_link_lost."},
};

#define SIDE(known, ...) ((known) ? (const vv_u128[]){__VA_ARGS__} : NULL)

/* Fills both sides, the right one from its terms; NULL is an unknown side. decide = false leaves `holds` null. */
static void equate(vv_evidence *e, unsigned which, bool decide, const vv_u128 *left, const vv_u128 *terms)
{
    vv_equation *q = &e->equations[which];
    *q = (vv_equation){.no_left = !left, .no_right = !terms, .left = left ? *left : 0};
    for (size_t i = 0; terms && i < VV_EQUATION_TERMS && equations[which].terms[i]; i++) {
        q->terms[i] = terms[i];
        q->right = vv_sat128(q->right, terms[i]);
    }
    if (decide && left && terms)
        q->holds = q->left == q->right ? VV_HOLDS_YES : VV_HOLDS_NO;
    if (q->holds == VV_HOLDS_NO)
        worsen(e, VV_VERDICT_DAMAGED);
}

static void health_equations(vv_evidence *e, const vv_execution *x, const vv_fold *f)
{
    const uint64_t *h = x->health.v;
    bool ended = x->has_end;
    equate(e, EQ_UNWINDS, h[0] == 0, SIDE(ended, h[12]), SIDE(ended, h[13], h[15], h[16], h[17], h[18]));
    equate(e, EQ_CAPTURES, true, SIDE(ended, h[13]), SIDE(ended, h[14], h[19]));
    equate(e, EQ_LINKS_OBSERVED, true, SIDE(ended, h[20]), SIDE(ended, h[21], h[23], h[24]));
    equate(e, EQ_LINKS, true, SIDE(ended, h[21]), SIDE(ended, h[22], h[25]));
    uint64_t links = 0;
    for (size_t i = 0; i < f->span_count; i++)
        links += f->spans[i].has_terminal;
    equate(e, EQ_CAPTURES_FOLDED, true, SIDE(!f->failed, f->error_count), SIDE(ended, h[14]));
    equate(e, EQ_LINKS_FOLDED, true, SIDE(!f->failed, links), SIDE(ended, h[22]));
    equate(e, EQ_GROUPS, true, SIDE(!f->failed, f->groups), SIDE(ended, x->count));
}

/* A term that is not stored leaves `holds` null: another writer's store, or a count that its writer did not keep. */
static void plane_equations(vv_evidence *e, const vv_execution *x)
{
    const vv_health_record none = {.count = 0}, *r = x->has_terms ? &x->terms : &none;
    for (size_t i = 0; i < VV_ARRAY_LEN(kept); i++) {
        uint64_t all = 0, committed = 0, lost = vv_health_sum(r, kept[i].lost);
        bool has_all = vv_health_find(r, kept[i].all, &all);
        bool has_committed = vv_health_find(r, kept[i].committed, &committed);
        equate(e, kept[i].which, true, SIDE(has_all, all), SIDE(has_committed, committed, lost));
        if (lost)
            worsen(e, VV_VERDICT_PARTIAL);
    }
}

/* Of the spans that are there: starts, ends, and values that are available. */
static void span_equations(vv_evidence *e, const vv_health_record *r, const vv_fold *f, bool whole)
{
    vv_u128 found[3] = {0};
    for (size_t i = 0; i < f->span_count && !f->failed; i++) {
        const vv_fold_span *s = &f->spans[i];
        found[0] += s->has_start;
        found[1] += s->has_end;
        found[2] += (s->has_input && !s->input.lost) + (s->has_output && !s->output.lost);
    }
    static const struct {
        unsigned which;
        const char *term;
    } of[] = {{EQ_STARTS_FOLDED, "span_starts_committed"}, {EQ_ENDS_FOLDED, "span_ends_committed"},
              {EQ_VALUES_FOLDED, "value_occurrences_available"}};
    for (size_t i = 0; i < VV_ARRAY_LEN(of); i++) {
        uint64_t committed = 0;
        bool stored = vv_health_find(r, of[i].term, &committed);
        equate(e, of[i].which, whole, SIDE(!f->failed, found[i]), SIDE(stored, committed));
    }
}

/* What the writer says that it committed, against what was found. */
static void folded_equations(vv_evidence *e, const vv_execution *x, const vv_fold *f, vv_u128 started, vv_u128 awaits)
{
    const vv_health_record none = {.count = 0}, *r = x->has_terms ? &x->terms : &none;
    bool whole = !f->failed && f->complete && !(f->health & ~VV_HEALTH_SELF_UNDERFLOW);
    uint64_t calls = 0, intervals = 0;
    bool has_calls = vv_health_find(r, "invocations_folded", &calls);
    bool has_awaits = vv_health_find(r, "await_intervals_folded", &intervals);
    equate(e, EQ_INVOCATIONS_FOLDED, whole, SIDE(!f->failed, started), SIDE(has_calls, calls));
    equate(e, EQ_AWAITS_FOLDED, whole, SIDE(!f->failed, awaits), SIDE(has_awaits, intervals));
    span_equations(e, r, f, whole);
}

/* Equations over the population: exact only where everything arrived. */
static void population_equations(vv_evidence *e, const vv_execution *x, const vv_profile *p, bool lost)
{
    const vv_fold *f = p->fold;
    bool exact = x->has_end && !lost && !f->failed && f->complete && !f->health && !e->overflow_calls
        && p->tree.node_count == p->context_count;
    vv_u128 started = 0, awaits = 0, selected = 0, child_time = 0, call_time = 0, ends[4] = {0}, span_starts = 0;
    for (uint32_t i = 0; i < p->tree.node_count; i++) {
        const vv_counters *c = p->tree.nodes[i].counters;
        started += c->started;
        awaits += c->await_count;
        selected += c->selected;
        ends[0] += c->ok;
        ends[1] += c->error;
        ends[2] += c->cancelled;
        ends[3] += c->exited;
        child_time = vv_sat128(child_time, c->direct_child_ns);
        if (p->tree.nodes[i].edge == VV_EDGE_CALL)
            call_time = vv_sat128(call_time, c->inclusive_ns);
    }
    for (size_t i = 0; i < f->span_count && !f->failed; i++)
        span_starts += f->spans[i].has_start;
    equate(e, EQ_CALLS, exact, SIDE(!f->failed, started), f->failed ? NULL : ends);
    equate(e, EQ_SPANS, exact, SIDE(!f->failed, selected), SIDE(!f->failed, span_starts));
    equate(e, EQ_CHILD_TIME, exact, SIDE(!f->failed, child_time), SIDE(!f->failed, call_time));
    folded_equations(e, x, f, started, awaits);
}

static vv_verdict issue_verdict(const vv_execution *x, unsigned kind)
{
    switch (kind) {
    case VV_ISSUE_NO_ROOT_ENDED:
        return x->status == VV_EXEC_RUNNING ? VV_VERDICT_RUNNING : VV_VERDICT_PARTIAL;
    case VV_ISSUE_UNRESOLVED_SPAN_START:
    case VV_ISSUE_UNRESOLVED_CONTEXT:
    case VV_ISSUE_UNRESOLVED_OVERFLOW:
    case VV_ISSUE_UNRESOLVED_CAPTURE: {
        const uint64_t *h = x->health.v;
        bool explained = !x->has_end || h[VV_H_cct_segment_publish_failed] || h[VV_H_evidence_segment_publish_failed];
        return explained ? VV_VERDICT_PARTIAL : VV_VERDICT_DAMAGED;
    }
    case VV_ISSUE_ROOT_STARTED_LOST:
        return VV_VERDICT_PARTIAL;
    default:
        return VV_VERDICT_DAMAGED;
    }
}

/* Of too little memory nothing is damaged. */
static bool is_refusal(const vv_fold *f)
{
    return f->failed && f->error.name && strcmp(f->error.name, "LimitExceeded") == 0;
}

static vv_code collect_issues(vv_evidence *e, const vv_execution *x, const vv_profile *p, vv_error *err)
{
    const vv_fold *f = p->fold;
    vv_evidence_issue one = {.execution = x->root};
    vv_code rc = VV_OK;
    unsigned own[] = {x->index_state == VV_INDEX_CORRUPT ? VV_ISSUE_INDEX_CORRUPT : 0,
                      x->index_state == VV_INDEX_ROOT_STARTED_LOST ? VV_ISSUE_ROOT_STARTED_LOST : 0,
                      f->failed ? VV_ISSUE_FOLD_ERROR : 0,
                      p->table_fault ? VV_ISSUE_FUNCTION_TABLE : 0};
    for (size_t i = 0; i < VV_ARRAY_LEN(own) && rc == VV_OK; i++) {
        if (!own[i])
            continue;
        one.kind = own[i];
        if (one.kind == VV_ISSUE_FOLD_ERROR)
            snprintf(one.error, sizeof one.error, "%s", f->error.name ? f->error.name : "Io");
        if (one.kind == VV_ISSUE_FUNCTION_TABLE)
            snprintf(one.error, sizeof one.error, "%s", p->table_fault);
        worsen(e, one.kind == VV_ISSUE_FOLD_ERROR && is_refusal(f) ? VV_VERDICT_PARTIAL : issue_verdict(x, one.kind));
        rc = add_issue(e, &one, err);
    }
    one.error[0] = 0;
    for (size_t i = 0; i < f->issue_count && rc == VV_OK; i++) {
        one.kind = f->issues[i].kind;
        one.issue = f->issues[i];
        worsen(e, issue_verdict(x, one.kind));
        rc = add_issue(e, &one, err);
    }
    return rc;
}

vv_code vv_evidence_of(vv_evidence *ret, const vv_execution *x, const vv_profile *p, vv_error *err)
{
    vv_evidence *e = ret;
    const vv_fold *f = p->fold;
    bool lost = false;
    e->executions = 1;
    e->running = x->status == VV_EXEC_RUNNING;
    e->abandoned = x->status == VV_EXEC_ABANDONED;
    e->index_states[x->index_state] = 1;
    e->data_states[vv_data_state_of(f)] = 1;
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        if (vv_health_is_loss(i) && x->health.v[i]) {
            e->losses[i] = x->health.v[i];
            lost = true;
        }
    bool overflow = p->tree.node_count > p->context_count;
    for (uint32_t i = 0; i < p->tree.node_count; i++) {
        const vv_node *n = &p->tree.nodes[i];
        if (n->flags & VV_NODE_OVERFLOW)
            e->overflow_calls = vv_sat64(e->overflow_calls, n->counters->started);
        e->timing_incomplete += (n->flags & VV_NODE_TIMING_INCOMPLETE) != 0;
    }
    if (e->running)
        worsen(e, VV_VERDICT_RUNNING);
    if (e->abandoned || lost || overflow || f->health || e->timing_incomplete)
        worsen(e, VV_VERDICT_PARTIAL);
    health_equations(e, x, f);
    plane_equations(e, x);
    population_equations(e, x, p, lost);
    return collect_issues(e, x, p, err);
}

static void merge_equation(vv_equation *q, const vv_equation *o, bool first)
{
    q->no_left |= o->no_left;
    q->no_right |= o->no_right;
    q->left = vv_sat128(q->left, o->left);
    q->right = vv_sat128(q->right, o->right);
    for (size_t t = 0; t < VV_EQUATION_TERMS; t++)
        q->terms[t] = vv_sat128(q->terms[t], o->terms[t]);
    if (first || o->holds == VV_HOLDS_NO)
        q->holds = o->holds;
    else if (q->holds == VV_HOLDS_YES && o->holds == VV_HOLDS_UNKNOWN)
        q->holds = VV_HOLDS_UNKNOWN;
}

vv_code vv_evidence_merge(vv_evidence *e, const vv_evidence *o, vv_error *err)
{
    bool first = e->executions == 0;
    e->executions += o->executions;
    e->running += o->running;
    e->abandoned += o->abandoned;
    for (size_t i = 0; i < VV_ARRAY_LEN(e->index_states); i++)
        e->index_states[i] += o->index_states[i];
    for (size_t i = 0; i < VV_ARRAY_LEN(e->data_states); i++)
        e->data_states[i] += o->data_states[i];
    for (size_t i = 0; i < VV_HEALTH_COUNT; i++)
        e->losses[i] = vv_sat64(e->losses[i], o->losses[i]);
    e->overflow_calls = vv_sat64(e->overflow_calls, o->overflow_calls);
    e->timing_incomplete += o->timing_incomplete;
    for (size_t i = 0; i < VV_EQUATIONS; i++)
        merge_equation(&e->equations[i], &o->equations[i], first);
    worsen(e, o->verdict);
    for (size_t i = 0; i < o->issue_count; i++) {
        vv_code rc = add_issue(e, &o->issues[i], err);
        if (rc != VV_OK)
            return rc;
    }
    e->issues_total += o->issues_total - o->issue_count;
    return VV_OK;
}

vv_code vv_evidence_refused(vv_evidence *e, const vv_execution *x, vv_error *err)
{
    const vv_evidence_issue one = {.execution = x->root, .kind = VV_ISSUE_FOLD_ERROR, .error = "LimitExceeded"};
    worsen(e, VV_VERDICT_PARTIAL);
    return add_issue(e, &one, err);
}

vv_code vv_evidence_stream_error(vv_evidence *e, const vv_stream *s, vv_error *err)
{
    vv_evidence_issue one = {.kind = VV_ISSUE_STREAM_ERROR};
    memcpy(one.execution.b, s->euid.b, sizeof s->euid.b);
    snprintf(one.error, sizeof one.error, "%s", s->error.name ? s->error.name : "Io");
    worsen(e, VV_VERDICT_DAMAGED);
    return add_issue(e, &one, err);
}

static const struct {
    const char *kind, *dependency, *text; /* text: for people, where it is not the kind */
} issue_words[] = {
    [VV_ISSUE_NO_ROOT_ENDED] = {"no_root_ended", NULL, END_MISSING},
    [VV_ISSUE_MISSING_SEGMENT] = {"missing_data_segment", NULL, NULL},
    [VV_ISSUE_CORRUPT_SEGMENT] = {"corrupt_data_segment", NULL, NULL},
    [VV_ISSUE_GROUP_COUNT] = {"group_count_mismatch", NULL, NULL},
    [VV_ISSUE_UNRESOLVED_SPAN_START] = {"unresolved_dependency", "span_start", NULL},
    [VV_ISSUE_UNRESOLVED_CONTEXT] = {"unresolved_dependency", "context_definition", NULL},
    [VV_ISSUE_UNRESOLVED_OVERFLOW] = {"unresolved_dependency", "overflow_bucket", NULL},
    [VV_ISSUE_UNRESOLVED_CAPTURE] = {"unresolved_dependency", "error_capture", NULL},
    [VV_ISSUE_FOLD_ERROR] = {"fold_error", NULL, NULL},
    [VV_ISSUE_INDEX_CORRUPT] = {"index_corrupt", NULL, INDEX_DAMAGED},
    [VV_ISSUE_ROOT_STARTED_LOST] = {"root_started_lost", NULL, START_MISSING},
    [VV_ISSUE_STREAM_ERROR] = {"stream_error", NULL, NULL},
    [VV_ISSUE_FUNCTION_TABLE] = {"function_table", NULL, TABLE_UNREADABLE},
};

static void issue_kind_json(vv_json *j, const vv_evidence_issue *i)
{
    vv_json_kv_cstr(j, "kind", issue_words[i->kind].kind);
    if (issue_words[i->kind].dependency)
        vv_json_kv_cstr(j, "dependency", issue_words[i->kind].dependency);
}

const char *vv_equation_name(unsigned which)
{
    return equations[which].name;
}

void vv_evidence_issue_text(char out[VV_ISSUE_TEXT], const vv_evidence_issue *i)
{
    char detail[96] = "";
    const char *what = issue_words[i->kind].dependency;
    if (i->kind == VV_ISSUE_MISSING_SEGMENT || i->kind == VV_ISSUE_CORRUPT_SEGMENT)
        snprintf(detail, sizeof detail, " %llu", (unsigned long long)i->issue.a);
    else if (i->kind == VV_ISSUE_GROUP_COUNT)
        snprintf(detail, sizeof detail, ": %llu expected, %llu found", (unsigned long long)i->issue.a,
                 (unsigned long long)i->issue.b);
    else if (what || i->error[0])
        snprintf(detail, sizeof detail, " %s", what ? what : i->error);
    const char *text = issue_words[i->kind].text;
    snprintf(out, VV_ISSUE_TEXT, "%s%s%s", text ? text : issue_words[i->kind].kind, text && *detail ? ":" : "", detail);
}

static void issue_detail_json(vv_json *j, const vv_evidence_issue *i)
{
    char text[VV_CALL_TEXT + 24];
    switch (i->kind) {
    case VV_ISSUE_MISSING_SEGMENT:
    case VV_ISSUE_CORRUPT_SEGMENT:
        vv_json_kv_u64(j, "sequence", i->issue.a);
        break;
    case VV_ISSUE_GROUP_COUNT:
        vv_json_kv_u64(j, "expected", i->issue.a);
        vv_json_kv_u64(j, "found", i->issue.b);
        break;
    case VV_ISSUE_UNRESOLVED_SPAN_START:
        vv_call_text(text, &i->issue.call);
        vv_json_kv_cstr(j, "call", text);
        break;
    case VV_ISSUE_UNRESOLVED_CONTEXT:
        vv_json_kv_hex(j, "context", i->issue.key.b, sizeof i->issue.key.b);
        break;
    case VV_ISSUE_UNRESOLVED_OVERFLOW:
        vv_json_kv_u64(j, "reason", i->issue.a);
        vv_json_kv_cstr(j, "edge", vv_node_edge_name((uint8_t)i->issue.b));
        break;
    case VV_ISSUE_UNRESOLVED_CAPTURE: {
        vv_thread_ref thread = vv_capture_thread(&i->issue.capture);
        vv_thread_text(text, &thread);
        snprintf(text + strlen(text), 24, "~%llu", (unsigned long long)vv_capture_ordinal(&i->issue.capture));
        vv_json_kv_cstr(j, "error", text);
        break;
    }
    default:
        if (i->error[0])
            vv_json_kv_cstr(j, "error", i->error);
    }
}

static void issues_json(vv_json *j, const vv_evidence *e)
{
    vv_json_arr(j);
    for (size_t k = 0; k < e->issue_count; k++) {
        const vv_evidence_issue *i = &e->issues[k];
        vv_json_obj(j);
        issue_kind_json(j, i);
        if (i->kind == VV_ISSUE_STREAM_ERROR) {
            vv_json_kv_hex(j, "stream", i->execution.b, 16);
        } else {
            char text[VV_THREAD_TEXT];
            vv_thread_text(text, &i->execution);
            vv_json_kv_cstr(j, "execution", text);
        }
        issue_detail_json(j, i);
        vv_json_end_obj(j);
    }
    vv_json_end_arr(j);
}

static void side_json(vv_json *j, const char *key, bool unknown, vv_u128 v)
{
    vv_json_key(j, key);
    if (unknown)
        vv_json_null(j);
    else
        vv_json_u128(j, v);
}

static void equations_json(vv_json *j, const vv_evidence *e)
{
    vv_json_arr(j);
    for (size_t i = 0; i < VV_EQUATIONS && e->executions; i++) {
        const vv_equation *q = &e->equations[i];
        vv_json_obj(j);
        vv_json_kv_cstr(j, "name", equations[i].name);
        side_json(j, "left", q->no_left, q->left);
        side_json(j, "right", q->no_right, q->right);
        vv_json_key(j, "holds");
        if (q->holds == VV_HOLDS_UNKNOWN)
            vv_json_null(j);
        else
            vv_json_bool(j, q->holds == VV_HOLDS_YES);
        vv_json_kv_obj(j, "terms");
        for (size_t t = 0; t < VV_EQUATION_TERMS && equations[i].terms[t]; t++)
            side_json(j, equations[i].terms[t], q->no_right, q->terms[t]);
        vv_json_end_obj(j);
        vv_json_end_obj(j);
    }
    vv_json_end_arr(j);
}

static void counts_json(vv_json *j, const char *key, const uint64_t *counts, const char *const *words, size_t n)
{
    vv_json_kv_obj(j, key);
    for (size_t i = 0; i < n; i++)
        if (counts[i])
            vv_json_kv_u64(j, words[i], counts[i]);
    vv_json_end_obj(j);
}

static void losses_json(vv_json *j, const vv_evidence *e)
{
    vv_json_kv_obj(j, "losses");
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        if (e->losses[i])
            vv_json_kv_u64(j, vv_health_name(i), e->losses[i]);
    for (size_t i = 0; i < VV_ARRAY_LEN(kept); i++)
        if (e->equations[kept[i].which].terms[1])
            vv_json_kv_u128(j, equations[kept[i].which].terms[1], e->equations[kept[i].which].terms[1]);
    vv_json_end_obj(j);
}

void vv_evidence_json(vv_json *j, const vv_evidence *e, bool truncated, const vv_filtered *filtered)
{
    vv_json_obj(j);
    vv_json_kv_cstr(j, "verdict", verdicts[e->verdict]);
    vv_json_kv_u64(j, "executions", e->executions);
    vv_json_kv_u64(j, "running", e->running);
    vv_json_kv_u64(j, "abandoned", e->abandoned);
    counts_json(j, "index_states", e->index_states, index_states, VV_ARRAY_LEN(index_states));
    counts_json(j, "data_states", e->data_states, data_states, VV_ARRAY_LEN(data_states));
    vv_json_key(j, "issues");
    issues_json(j, e);
    vv_json_kv_u64(j, "issues_total", e->issues_total);
    losses_json(j, e);
    vv_json_kv_u64(j, "overflow_calls", e->overflow_calls);
    vv_json_kv_u64(j, "timing_incomplete", e->timing_incomplete);
    vv_json_key(j, "equations");
    equations_json(j, e);
    vv_json_kv_bool(j, "truncated", truncated);
    vv_json_kv_obj(j, "filtered");
    if (filtered && (filtered->nodes || filtered->calls || filtered->self_ns)) {
        vv_json_kv_u64(j, "nodes", filtered->nodes);
        vv_json_kv_u128(j, "calls", filtered->calls);
        vv_json_kv_u128(j, "self_ns", filtered->self_ns);
    }
    vv_json_end_obj(j);
    vv_json_end_obj(j);
}
