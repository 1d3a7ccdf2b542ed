#include "config.h"

#include "views/digest.h"

#include <stdlib.h>

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

vv_code vv_digest_new(vv_digest **ret, const vv_execution *x, const vv_profile *p, vv_error *err)
{
    vv_digest *d = calloc(1, sizeof *d);
    if (!d)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a summary");
    const vv_fold *f = p->fold;
    d->known = !f->failed;
    d->totals = vv_totals_of(p);
    d->data_state = vv_data_state_of(f);
    if (d->known) {
        d->contexts = p->context_count;
        d->errors_captured = f->error_count;
        d->cct_health = f->health;
        for (size_t i = 0; i < f->span_count; i++)
            d->spans += f->spans[i].has_start;
        for (size_t i = 0; i < f->thread_count; i++)
            d->threads += f->threads[i].has_start;
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
    free(d->entry_fqn);
    free(d->entry_display);
    free(d);
}
