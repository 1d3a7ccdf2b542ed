#include "config.h"

#include "views/digest.h"

#include <stdlib.h>

#include "views/facts.h"

vv_totals vv_totals_of(const vv_profile *p)
{
    vv_totals t = {0};
    for (uint32_t i = 0; i < p->tree.node_count; i++) {
        const vv_node *n = &p->tree.nodes[i];
        const vv_counters *c = n->counters;
        t.calls += c->started;
        t.errors += c->error;
        t.cancelled += c->cancelled;
        t.selected += c->selected;
        t.open += vv_counters_open(c);
        if (n->edge == VV_EDGE_ROOT)
            t.inclusive_ns = vv_sat128(t.inclusive_ns, c->inclusive_ns);
        else if (n->edge == VV_EDGE_SPAWN)
            t.spawned_inclusive_ns = vv_sat128(t.spawned_inclusive_ns, c->inclusive_ns);
        t.self_ns = vv_sat128(t.self_ns, n->self_ns);
        t.await_ns = vv_sat128(t.await_ns, c->await_ns);
    }
    return t;
}

void vv_totals_json(vv_json *j, bool known, const vv_totals *t)
{
    if (!known) {
        vv_json_null(j);
        return;
    }
    vv_json_obj(j);
    vv_json_kv_u128(j, "calls", t->calls);
    vv_json_kv_u128(j, "inclusive_ns", t->inclusive_ns);
    vv_json_kv_u128(j, "spawned_inclusive_ns", t->spawned_inclusive_ns);
    vv_json_kv_u128(j, "self_ns", t->self_ns);
    vv_json_kv_u128(j, "await_ns", t->await_ns);
    vv_json_kv_u128(j, "errors", t->errors);
    vv_json_kv_u128(j, "cancelled", t->cancelled);
    vv_json_kv_i128(j, "open", t->open);
    vv_json_end_obj(j);
}

/* A Root-edge context without a parent is an entry; with two of them neither is claimed to be it. */
static void find_entry(vv_digest *d, const vv_profile *p)
{
    const vv_function_ref *entry = NULL;
    for (uint32_t i = 0; i < p->tree.top_count; i++) {
        const vv_node *n = &p->tree.nodes[p->tree.tops[i]];
        if (n->edge != VV_EDGE_ROOT || n->function == VV_NONE)
            continue;
        if (entry && entry != &p->tree.functions[n->function])
            return;
        entry = &p->tree.functions[n->function];
    }
    d->has_entry = entry != NULL;
    if (!entry)
        return;
    d->entry_function = entry->id;
    if (entry->def) {
        d->entry_fqn = strndup(entry->def->fqn.p ? entry->def->fqn.p : "", entry->def->fqn.n);
        d->entry_display = strndup(entry->def->display_name.p ? entry->def->display_name.p : "",
                                   entry->def->display_name.n);
    }
}

static void find_duration(vv_digest *d, const vv_execution *x, const vv_fold *f)
{
    vv_call_ref root = vv_call_ref_make(&x->root, 1);
    uint32_t at = f->failed ? VV_MAP_NONE : vv_map_find(&f->span_map, root.b);
    if (at != VV_MAP_NONE && f->spans[at].has_end) {
        d->has_duration = true;
        d->duration_ns = f->spans[at].end.inclusive_ns;
    } else if (x->has_start && x->has_end && x->ended_ns >= x->started_ns) {
        d->has_duration = true;
        d->duration_ns = x->ended_ns - x->started_ns;
    }
}

static void sift_contexts(vv_digest *d, const vv_profile *p)
{
    const vv_fold *f = p->fold;
    vv_sieve_init(&d->context_sieve, p->context_count);
    for (uint32_t i = 0; i < p->context_count; i++)
        vv_sieve_add(&d->context_sieve, vv_sieve_context(&f->contexts[i].key));
    for (unsigned r = 0; r < VV_OVERFLOW_REASONS; r++)
        for (unsigned e = 0; e < VV_EDGES; e++)
            d->overflow |= (uint8_t)(f->overflow_present[r][e] << (r * VV_EDGES + e));
}

/* Each function once; without memory for that as often as it is named. */
static void add_function(vv_sieve_texts *t, const vv_profile *p, uint32_t id, uint8_t *seen)
{
    const vv_function *d = vv_function_of(p, id);
    vv_text_field fields[VV_FUNCTION_TEXTS];
    if (!d || (seen && seen[d - p->table.functions]))
        return;
    if (seen)
        seen[d - p->table.functions] = 1;
    size_t n = vv_function_texts(d, fields);
    for (size_t i = 0; i < n; i++)
        vv_sieve_texts_add(t, fields[i].text);
}

static void add_runtime_id(vv_sieve_texts *t, const vv_runtime_id *id)
{
    char text[VV_RUNTIME_TEXT];
    vv_runtime_text(text, id);
    vv_sieve_texts_add(t, vv_cstr(text));
}

static void sift_texts(vv_digest *d, const vv_profile *p)
{
    const vv_fold *f = p->fold;
    uint8_t *seen = calloc((size_t)p->table.function_count + 1, 1);
    vv_sieve_texts t;
    vv_sieve_texts_init(&t);
    for (size_t i = 0; i < f->thread_count; i++)
        if (f->threads[i].has_start)
            vv_sieve_texts_add(&t, f->threads[i].start.name);
    for (size_t i = 0; i < f->error_count; i++) {
        add_function(&t, p, f->errors[i].function_id, seen);
        vv_sieve_texts_add(&t, vv_cstr(vv_capture_kinds[f->errors[i].kind]));
        vv_sieve_texts_add(&t, vv_cstr(vv_capture_sources[f->errors[i].source]));
    }
    for (size_t i = 0; i < f->span_count; i++) {
        const vv_fold_span *s = &f->spans[i];
        if (s->has_start)
            add_function(&t, p, s->start.function_id, seen);
        if (s->has_start && s->start.has_runtime_id)
            add_runtime_id(&t, &s->start.runtime_id);
    }
    for (size_t i = 0; i < f->runtime_id_count; i++)
        add_runtime_id(&t, &f->runtime_ids[i].id);
    free(seen);
    vv_sieve_texts_finish(&t, &d->text_sieve);
}

/* Where there were groups, and none of them can be read, what was counted in them is unknown, not zero. */
bool vv_counts_known(const vv_fold *f)
{
    bool missed = false;
    for (size_t i = 0; i < f->issue_count; i++)
        missed |= f->issues[i].kind == VV_ISSUE_MISSING_SEGMENT || f->issues[i].kind == VV_ISSUE_CORRUPT_SEGMENT
               || f->issues[i].kind == VV_ISSUE_GROUP_COUNT;
    return !f->failed && !(missed && f->groups == 0);
}

vv_code vv_digest_new(vv_digest **ret, const vv_execution *x, const vv_profile *p, vv_error *err)
{
    vv_digest *d = calloc(1, sizeof *d);
    if (!d)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a summary");
    const vv_fold *f = p->fold;
    d->known = vv_counts_known(f);
    d->totals = vv_totals_of(p);
    d->data_state = vv_data_state_of(f);
    if (d->known) {
        d->contexts = p->context_count;
        d->errors_captured = f->error_count;
        d->cct_health = f->health;
        d->spans = f->span_count;
        for (size_t i = 0; i < f->thread_count; i++)
            d->threads += f->threads[i].has_start;
        sift_contexts(d, p);
        sift_texts(d, p);
    }
    find_entry(d, p);
    find_duration(d, x, f);
    vv_code rc = vv_evidence_of(&d->evidence, x, p, err);
    if (rc != VV_OK) {
        vv_digest_free(d);
        return rc;
    }
    *ret = d;
    return VV_OK;
}

void vv_digest_free(vv_digest *d)
{
    if (!d)
        return;
    vv_evidence_done(&d->evidence);
    vv_sieve_done(&d->context_sieve);
    vv_sieve_done(&d->text_sieve);
    free(d->entry_fqn);
    free(d->entry_display);
    free(d);
}

size_t vv_digest_bytes(const vv_digest *d)
{
    size_t texts = (d->entry_fqn ? strlen(d->entry_fqn) : 0) + (d->entry_display ? strlen(d->entry_display) : 0);
    size_t issues = d->evidence.issues ? VV_EVIDENCE_ISSUES * sizeof *d->evidence.issues : 0;
    return sizeof *d + texts + issues + d->context_sieve.n + d->text_sieve.n;
}
