/*
 * What the store holds of selected calls, read fact by fact in the order of its files: how much it is, and that no fact
 * names what is not durable before it. Then what an execution says of itself against that.
 */
#pragma once

#include <stdarg.h>

#include "base/map.h"
#include "format/cas.h"
#include "reader/stream.h"
#include "runtime/accounting.h"
#include "tests/runtime/host.h"

typedef struct {
    uint64_t facts[VV_FACTS];
    uint64_t available, lost[VV_VALUE_LOSSES]; /* inputs and outputs */
    uint64_t error_available, error_lost[VV_VALUE_LOSSES];
    uint64_t link_lost[VV_CAPTURE_LOSSES]; /* targets */
} found_evidence;

typedef struct {
    const look *l;
    vv_map defined, starts, ends, values, captures, links, threads, objects;
    bool overflow[VV_OVERFLOW_REASONS][VV_EDGES];
    found_evidence found;
    char bad[160];
} evidence_walk;

VV_PRINTF(2, 3) static inline void walk_bad(evidence_walk *w, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    if (!*w->bad)
        vsnprintf(w->bad, sizeof w->bad, text, args);
    va_end(args);
}

static inline bool walk_has(const vv_map *m, const void *key)
{
    return vv_map_find(m, key) != VV_MAP_NONE;
}

/* False: it was there already. */
static inline bool walk_put(vv_map *m, const void *key)
{
    bool is_new = false;
    return vv_map_put(m, key, &is_new) != VV_MAP_NONE && is_new;
}

static inline void walk_context(evidence_walk *w, const vv_context_ref *c, const char *of)
{
    if (c->overflow ? !w->overflow[c->reason][c->edge] : !walk_has(&w->defined, &c->key))
        walk_bad(w, "%s: its context is not there", of);
}

static inline void walk_started(evidence_walk *w, const vv_call_ref *call, const char *of)
{
    if (!walk_has(&w->starts, call))
        walk_bad(w, "%s before its span's start", of);
}

static inline void walk_object(evidence_walk *w, const vv_value_state *v)
{
    if (!walk_put(&w->objects, &v->cid))
        return;
    char path[VV_CAS_PATH];
    vv_cas_path(path, &v->cid);
    vv_blob b = {0};
    vv_cas_object o;
    bool ok = vv_source_read(w->l->source, path, 1 << 28, &b, NULL) == VV_OK &&
              vv_cas_decode(&o, b.p, b.n, &v->cid, NULL) == VV_OK && o.codec == v->codec && o.body_len == v->bytes;
    if (!ok)
        walk_bad(w, "a value's object is not there, or another");
    vv_blob_done(&b);
}

static inline void walk_value(evidence_walk *w, const vv_value_state *v, uint64_t *available, uint64_t *lost)
{
    if (v->lost) {
        lost[v->loss]++;
        return;
    }
    ++*available;
    walk_object(w, v);
}

static inline void walk_thread(evidence_walk *w, const vv_fact *f)
{
    const vv_thread_start *s = &f->thread_start;
    if (f->tag == VV_FACT_THREAD_END) {
        if (!walk_has(&w->threads, &f->thread_end.thread))
            walk_bad(w, "a thread's end before its start");
        return;
    }
    if (!walk_put(&w->threads, &s->thread))
        walk_bad(w, "a thread started twice");
    if (s->has_parent && !walk_has(&w->threads, &s->parent))
        walk_bad(w, "a thread's parent is not there");
}

static inline void walk_fact(evidence_walk *w, const vv_fact *f)
{
    found_evidence *n = &w->found;
    n->facts[f->tag]++;
    struct {
        uint8_t call[40], role;
    } value_key;
    _Static_assert(sizeof value_key == 41 && sizeof(vv_call_ref) == 40, "no gap in a key");
    switch (f->tag) {
    case VV_FACT_SPAN_START:
        if (!walk_put(&w->starts, &f->span_start.call))
            walk_bad(w, "a span started twice");
        walk_context(w, &f->span_start.context, "span start");
        break;
    case VV_FACT_SPAN_END:
        walk_started(w, &f->span_end.call, "span end");
        if (!walk_put(&w->ends, &f->span_end.call))
            walk_bad(w, "a span ended twice");
        break;
    case VV_FACT_SPAN_RUNTIME_ID:
        walk_started(w, &f->span_runtime_id.call, "runtime id");
        break;
    case VV_FACT_VALUE:
        walk_started(w, &f->value.call, "value");
        walk_context(w, &f->value.context, "value");
        memcpy(value_key.call, f->value.call.b, sizeof value_key.call);
        value_key.role = f->value.role;
        if (!walk_put(&w->values, &value_key))
            walk_bad(w, "a value twice");
        walk_value(w, &f->value.value, &n->available, n->lost);
        break;
    case VV_FACT_ERROR_CAPTURE:
        walk_context(w, &f->error_capture.context, "error");
        if (!walk_put(&w->captures, &f->error_capture.id))
            walk_bad(w, "an error twice");
        walk_value(w, &f->error_capture.value, &n->error_available, n->error_lost);
        break;
    case VV_FACT_TERMINAL_ERROR:
        walk_started(w, &f->terminal_error.call, "link");
        if (!walk_put(&w->links, &f->terminal_error.call))
            walk_bad(w, "a link twice");
        if (f->terminal_error.lost)
            n->link_lost[f->terminal_error.loss]++;
        else if (!walk_has(&w->captures, &f->terminal_error.capture))
            walk_bad(w, "a link's error is not there");
        break;
    case VV_FACT_THREAD_START:
    case VV_FACT_THREAD_END:
        walk_thread(w, f);
        break;
    case VV_FACT_LOG:
    case VV_FACT_CALL_SCOPE:
        walk_bad(w, "a fact that nobody writes");
        break;
    }
}

static inline void walk_contexts(evidence_walk *w, const vv_group *g)
{
    vv_cct_cursor c;
    vv_cct_open(&c, g->cct, g->cct_len, g->cct_health, g->cct_records);
    for (vv_cct_row row; vv_cct_next_context(&c, &row);)
        if (row.defined)
            walk_put(&w->defined, &row.key);
    for (vv_cct_overflow row; vv_cct_next_overflow(&c, &row);)
        w->overflow[row.reason][row.edge] = true;
    if (vv_cct_finish(&c, NULL) != VV_OK)
        walk_bad(w, "bad rows");
}

static inline void walk_group(evidence_walk *w, const vv_group *g)
{
    if (vv_group_has_cct(g))
        walk_contexts(w, g);
    if (!vv_group_has_evidence(g))
        return;
    vv_evidence_cursor c;
    vv_evidence_open(&c, g->evidence, g->evidence_len, g->evidence_records);
    for (vv_fact f; vv_evidence_next(&c, &f);)
        walk_fact(w, &f);
    if (vv_evidence_finish(&c, NULL) != VV_OK)
        walk_bad(w, "bad facts");
}

/* What is there of the execution that is looked at. "": nothing dangles, nothing is there twice; else what does. */
static inline const char *evidence_of(const look *l, found_evidence *ret)
{
    static evidence_walk w;
    memset(&w, 0, sizeof w);
    w.l = l;
    vv_map *maps[] = {&w.defined, &w.starts, &w.ends, &w.values, &w.captures, &w.links, &w.threads, &w.objects};
    static const size_t bytes[] = {sizeof(vv_context_key), 40, 40, 41, 40, 40, 32, 32};
    for (size_t i = 0; i < VV_ARRAY_LEN(maps); i++)
        vv_map_init(maps[i], bytes[i]);
    const vv_seg_list *data = &l->stream->core->data;
    vv_group_buffer buffer = {0};
    for (size_t i = 0; i < data->count; i++) {
        vv_group g;
        bool found;
        vv_seg room;
        vv_error err = {0};
        if (vv_seg_group(l->source, &l->stream->euid, vv_seg_at(data, i, &room), &l->execution->root, 1 << 30, &buffer,
                         &g, &found, &err) != VV_OK)
            walk_bad(&w, "%s", err.msg);
        else if (found)
            walk_group(&w, &g);
    }
    vv_group_buffer_done(&buffer);
    for (size_t i = 0; i < VV_ARRAY_LEN(maps); i++)
        vv_map_done(maps[i]);
    *ret = w.found;
    return w.bad;
}

/* The terms of an execution's record, those that are not stored being 0. False: one that must be is missing. */
static inline bool evidence_terms(const vv_execution *x, vv_accounting *ret)
{
    bool whole = x->has_terms;
    for (unsigned i = 0; i < VV_ACCOUNTS; i++) {
        ret->v[i] = 0;
        bool there = x->has_terms && vv_health_find(&x->terms, vv_account_name((vv_account)i), &ret->v[i]);
        whole = whole && there == (ret->v[i] || !vv_account_is_loss((vv_account)i));
    }
    return whole;
}

static inline uint64_t evidence_lost(const vv_accounting *a, const char *prefix)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        if (strncmp(vv_account_name((vv_account)i), prefix, strlen(prefix)) == 0)
            sum += a->v[i];
    return sum;
}

/* "": all equations hold, what was committed is what was found, and the 26 counters say the same. */
static inline const char *evidence_agrees(const look *l, const vv_accounting *a, const found_evidence *n)
{
    static char bad[160];
    const uint64_t *v = a->v, *h = l->execution->health.v;
    const struct {
        const char *what;
        uint64_t one, other;
    } same[] = {
        {"calls", v[VV_ACCOUNT_CALLS_ATTEMPTED], v[VV_ACCOUNT_CALLS_FOLDED] + evidence_lost(a, "invocations_lost.")},
        {"awaits", v[VV_ACCOUNT_AWAIT_STARTED], v[VV_ACCOUNT_AWAIT_FOLDED] + evidence_lost(a, "await_lost.")},
        {"starts", v[VV_ACCOUNT_SPANS_SELECTED], v[VV_ACCOUNT_STARTS_COMMITTED] + evidence_lost(a, "span_start_lost.")},
        {"ends", v[VV_ACCOUNT_STARTS_COMMITTED], v[VV_ACCOUNT_ENDS_COMMITTED] + evidence_lost(a, "span_end_lost.")},
        {"runtime ids", v[VV_ACCOUNT_IDS_OBSERVED],
         v[VV_ACCOUNT_IDS_COMMITTED] + evidence_lost(a, "runtime_id_annotation_lost.")},
        {"values", v[VV_ACCOUNT_VALUES_APPLICABLE],
         v[VV_ACCOUNT_VALUES_AVAILABLE] + evidence_lost(a, "value_lost.")},
        {"errors", v[VV_ACCOUNT_ERRORS_APPLICABLE],
         v[VV_ACCOUNT_ERRORS_COMMITTED] + evidence_lost(a, "error_capture_lost.")},
        {"error values", v[VV_ACCOUNT_ERRORS_COMMITTED],
         v[VV_ACCOUNT_ERROR_VALUES_AVAILABLE] + evidence_lost(a, "error_value_lost.")},
        {"links", v[VV_ACCOUNT_LINKS_OBSERVED],
         v[VV_ACCOUNT_LINKS_COMMITTED] + evidence_lost(a, "terminal_error_link_lost.")},
        {"starts found", v[VV_ACCOUNT_STARTS_COMMITTED], n->facts[VV_FACT_SPAN_START]},
        {"ends found", v[VV_ACCOUNT_ENDS_COMMITTED], n->facts[VV_FACT_SPAN_END]},
        {"runtime ids found", v[VV_ACCOUNT_IDS_COMMITTED], n->facts[VV_FACT_SPAN_RUNTIME_ID]},
        {"values found", v[VV_ACCOUNT_VALUES_AVAILABLE], n->available},
        {"errors found", v[VV_ACCOUNT_ERRORS_COMMITTED], n->facts[VV_FACT_ERROR_CAPTURE]},
        {"error values found", v[VV_ACCOUNT_ERROR_VALUES_AVAILABLE], n->error_available},
        {"links found", v[VV_ACCOUNT_LINKS_COMMITTED], n->facts[VV_FACT_TERMINAL_ERROR]},
        {"11", h[11], v[VV_ACCOUNT_VALUE_LOST_TRANSPORT]},
        {"12", h[12], h[13] + h[15] + h[16] + h[17] + h[18]},
        {"13", h[13], h[14] + h[19]},
        {"14", h[14], n->facts[VV_FACT_ERROR_CAPTURE]},
        {"20", h[20], h[21] + h[23] + h[24]},
        {"21", h[21], h[22] + h[25]},
        {"22", h[22], n->facts[VV_FACT_TERMINAL_ERROR]},
    };
    *bad = 0;
    for (size_t i = 0; i < VV_ARRAY_LEN(same) && !*bad; i++)
        if (same[i].one != same[i].other)
            snprintf(bad, sizeof bad, "%s: %" PRIu64 " and %" PRIu64, same[i].what, same[i].one, same[i].other);
    return bad;
}
