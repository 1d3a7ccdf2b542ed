#include "config.h"

#include "runtime/spans.h"

#include <string.h>

#include "runtime/policy.h"
#include "runtime/record.h"

/* False: no memory, counted. */
static bool context_of(const vv_lthread *t, const vv_frame *f, vv_context_ref *ret)
{
    *ret = (vv_context_ref){.overflow = vv_is_overflow(f->node)};
    if (!ret->overflow) {
        bool ok = vv_cct_key(&t->exec->cct, f->node, &ret->key);
        vv_health_bump(t->exec, VV_H_evidence_queue_full, !ok);
        return ok;
    }
    uint32_t bucket = f->node - VV_NODE_OVERFLOW;
    ret->reason = (uint8_t)(bucket / VV_EDGES);
    ret->edge = (uint8_t)(bucket % VV_EDGES);
    return true;
}

static vv_thread_ref ref_of(const vv_decoder *d, const vv_lthread *t)
{
    return vv_thread_ref_make(&d->euid, t->engine->id, t->number);
}

static unsigned edge_of(const vv_lthread *t, uint64_t depth)
{
    return depth > 1 ? VV_EDGE_CALL : t->root ? VV_EDGE_ROOT : VV_EDGE_SPAWN;
}

static void set_site(varve_engine *e, uint32_t handle, bool *ret_has, vv_site *ret)
{
    const vv_site *site = vv_engine_use_site(e, handle);
    *ret_has = site;
    if (site)
        *ret = *site;
}

/* The annotation that rides on the start has ordinal 0: the host's token for a root, else the LocalId's. */
static void set_runtime_id(const vv_exec *x, vv_span *s, const uint64_t *w, vv_span_start *ret)
{
    uint8_t flags = (uint8_t)w[2];
    ret->has_runtime_id = flags & (VV_FLAG_ROOT | VV_FLAG_MANUAL);
    if (!ret->has_runtime_id)
        return;
    ret->annotation_ordinal = 0;
    if (flags & VV_FLAG_MANUAL)
        memcpy(ret->runtime_id.b, w + VV_WORDS_SPAN, sizeof ret->runtime_id.b);
    else
        ret->runtime_id = x->runtime_id;
    s->ordinal = 1;
}

/* Field by field, as all facts here, as far as the encoder reads them: zeroing a whole vv_fact takes longer. */
static void set_start(const vv_decoder *d, const vv_lthread *t, vv_span *s, const uint64_t *w, uint64_t ns,
                      vv_fact *ret)
{
    ret->tag = VV_FACT_SPAN_START;
    vv_span_start *p = &ret->span_start;
    unsigned edge = edge_of(t, s->depth);
    p->call = s->call;
    p->thread = ref_of(d, t);
    p->context = s->context;
    p->function_id = vv_engine_use_function(t->engine, (uint32_t)w[1]);
    p->edge = (uint8_t)edge;
    p->reasons = vv_flags_reasons((uint8_t)w[2]);
    p->roles = s->roles;
    p->started_ns = ns;
    p->has_parent = edge == VV_EDGE_CALL;
    if (p->has_parent)
        p->parent = vv_call_ref_make(&p->thread, t->frames[s->depth - 2].call);
    set_site(t->engine, edge == VV_EDGE_SPAWN ? t->spawn_site : (uint32_t)(w[1] >> 32), &p->has_site, &p->site);
    set_runtime_id(t->exec, s, w, p);
}

/* Only what is read while it is not told and has no link. */
static void set_span(const vv_decoder *d, const vv_lthread *t, const uint64_t *w, bool manual, vv_span *ret)
{
    vv_thread_ref thread = ref_of(d, t);
    ret->depth = t->depth;
    ret->call = vv_call_ref_make(&thread, t->frames[t->depth - 1].call);
    ret->roles = vv_flags_roles((uint8_t)w[2]);
    ret->manual = manual;
    ret->told = false;
    ret->ordinal = 0;
    ret->link = VV_LINK_NONE;
}

void vv_spans_begin(vv_decoder *d, vv_lthread *t, const uint64_t *w, uint64_t ns)
{
    vv_exec *x = t->exec;
    bool manual = w[2] & VV_FLAG_MANUAL;
    vv_cct_selected(&x->cct, t->frames[t->depth - 1].node);
    if (!vv_lthread_span_room(t, d->governor, manual)) {
        vv_account_add(&x->account, VV_ACCOUNT_START_LOST_CALLS, 1);
        return;
    }
    vv_span *s = &t->spans[t->span_count++];
    set_span(d, t, w, manual, s);
    t->frames[t->depth - 1].selected = true;
    x->open_spans++;
    if (!vv_fact_room(d, x, manual) || !context_of(t, &t->frames[t->depth - 1], &s->context)) {
        vv_account_add(&x->account, VV_ACCOUNT_START_LOST_QUEUE, 1);
        return;
    }
    vv_fact f;
    set_start(d, t, s, w, ns, &f);
    vv_fact_add(d, x, &f, VV_PART_START);
    s->told = true;
    s->batch = x->batch;
}

/* An end that there will be no fact of. It counts once its start is committed. */
static void lose_end(vv_exec *x, const vv_span *s, vv_part part)
{
    if (!s->told)
        return;
    vv_parts one = {.n = {0}};
    one.n[part] = 1;
    if (s->batch == x->batch)
        x->facts.parts.n[part]++;
    else if (vv_exec_in_flight(x, s->batch))
        x->sent.n[part]++;
    else
        vv_parts_settle(&one, true, false, &x->account, &x->health);
}

void vv_spans_cut(vv_lthread *t, uint64_t depth, vv_part part)
{
    while (t->span_count && t->spans[t->span_count - 1].depth > depth) {
        lose_end(t->exec, &t->spans[--t->span_count], part);
        t->exec->open_spans--;
    }
}

static void lose_link(vv_exec *x, unsigned field, vv_account account)
{
    vv_health_bump(x, field, 1);
    vv_account_add(&x->account, account, 1);
}

static void tell_link(vv_decoder *d, vv_exec *x, const vv_span *s)
{
    vv_health_bump(x, VV_H_terminal_error_links_observed, 1);
    vv_account_add(&x->account, VV_ACCOUNT_LINKS_OBSERVED, 1);
    bool room = s->told && vv_fact_room(d, x, s->manual);
    if (!s->told) {
        lose_link(x, VV_H_terminal_error_link_start_uncommitted, VV_ACCOUNT_LINK_LOST_START);
        return;
    }
    if (!room) {
        lose_link(x, VV_H_terminal_error_link_transport_exceeded, VV_ACCOUNT_LINK_LOST_QUEUE);
        return;
    }
    vv_fact f;
    f.tag = VV_FACT_TERMINAL_ERROR;
    f.terminal_error.call = s->call;
    f.terminal_error.lost = s->link == VV_LINK_LOST;
    if (f.terminal_error.lost) {
        f.terminal_error.loss = s->link_loss;
    } else {
        vv_thread_ref thread = vv_call_thread(&s->call);
        f.terminal_error.capture = vv_capture_id_make(&thread, s->link_ordinal);
    }
    vv_fact_add(d, x, &f, VV_PART_LINK);
    vv_health_bump(x, VV_H_terminal_error_links_queued, 1);
    vv_named named = s->link == VV_LINK_LOST              ? VV_NAMED_SAFE
                     : vv_exec_in_flight(x, s->link_batch)       ? VV_NAMED_IN_FLIGHT
                     : vv_exec_in_flight(x, s->link_start_batch) ? VV_NAMED_RESTS
                                                         : VV_NAMED_SAFE;
    vv_facts_need(&x->facts, vv_exec_in_flight(x, s->batch), named);
}

void vv_spans_end(vv_decoder *d, vv_lthread *t, uint64_t ns, unsigned status, uint64_t inclusive_ns)
{
    vv_exec *x = t->exec;
    vv_span *s = &t->spans[t->span_count - 1]; /* stays until its facts are made, so that a lost batch reaches it */
    if (status == VV_CALL_ERRORED && s->link != VV_LINK_NONE)
        tell_link(d, x, s);
    if (s->told && !vv_fact_room(d, x, s->manual)) {
        lose_end(x, s, VV_PART_END_LOST_QUEUE);
    } else if (s->told) {
        vv_fact f;
        f.tag = VV_FACT_SPAN_END;
        f.span_end = (vv_span_end){.call = s->call, .ended_ns = ns, .inclusive_ns = inclusive_ns,
                                        .status = (uint8_t)status};
        vv_fact_add(d, x, &f, s->batch == x->batch ? VV_PART_END_HERE : VV_PART_END);
        vv_facts_need(&x->facts, vv_exec_in_flight(x, s->batch), VV_NAMED_SAFE);
    }
    t->span_count--;
    x->open_spans--;
}

/* The span of the call that many callers above the innermost; NULL: it has none. */
static vv_span *span_at(const vv_lthread *t, uint64_t up)
{
    if (up < t->excess)
        return NULL;
    up -= t->excess;
    if (up >= t->depth || !t->frames[t->depth - 1 - up].selected)
        return NULL;
    for (uint32_t i = t->span_count; i; i--)
        if (t->spans[i - 1].depth == t->depth - up)
            return &t->spans[i - 1];
    return NULL;
}

void vv_spans_runtime_id(vv_decoder *d, vv_lthread *t, const uint64_t *w)
{
    vv_exec *x = t->exec;
    vv_span *s = span_at(t, vv_word_payload(w[0]));
    bool room = s && s->told && vv_fact_room(d, x, s->manual);
    if (!s) {
        vv_account_add(&x->account, VV_ACCOUNT_ID_LOST_JOIN, 1);
    } else if (!s->told) {
        vv_account_add(&x->account, VV_ACCOUNT_ID_LOST_START, 1);
    } else if (!room) {
        vv_account_add(&x->account, VV_ACCOUNT_ID_LOST_QUEUE, 1);
    } else if (s->ordinal == UINT32_MAX) {
        vv_health_bump(x, VV_H_corrupt_records, 1);
        vv_account_add(&x->account, VV_ACCOUNT_ID_LOST_JOIN, 1);
    } else {
        vv_fact f;
        f.tag = VV_FACT_SPAN_RUNTIME_ID;
        f.span_runtime_id.call = s->call;
        f.span_runtime_id.ordinal = s->ordinal++;
        memcpy(f.span_runtime_id.id.b, w + 1, sizeof f.span_runtime_id.id.b);
        vv_fact_add(d, x, &f, VV_PART_RUNTIME_ID);
        vv_facts_need(&x->facts, vv_exec_in_flight(x, s->batch), VV_NAMED_SAFE);
    }
}

/* What a record says of its value: the words of the body, and in the payload how it was lost. */
typedef struct {
    vv_body body;
    int loss; /* -1: none */
} carried;

static carried carried_by(uint64_t payload, const uint64_t *w)
{
    return (carried){.body = {.bytes = (uint8_t *)(uintptr_t)w[0], .len = w[1], .cap = w[2],
                              .pool = (vv_pool)(payload >> 16 & 0xff)},
                     .loss = (int)(payload >> 8 & 0xff) - 1};
}

void vv_record_drop(vv_governor *g, const uint64_t *w)
{
    unsigned tag = vv_word_tag(w[0]), at = tag == VV_REC_VALUE ? 1 : 5;
    if (tag != VV_REC_VALUE && tag != VV_REC_ERROR)
        return;
    carried c = carried_by(vv_word_payload(w[0]), w + at);
    vv_body_free(g, &c.body);
}

/* The body becomes an object that waits for its publication; it is taken in any case. */
static vv_value_state keep_value(vv_decoder *d, carried *c)
{
    int loss = c->loss < 0 ? vv_objects_refused(&d->objects, d->store) : c->loss;
    if (loss >= 0) {
        vv_body_free(d->governor, &c->body);
        return (vv_value_state){.lost = true, .loss = (uint8_t)loss};
    }
    vv_value_state v = {.codec = VV_CODEC_VALUE, .bytes = c->body.len};
    if (!vv_objects_put(&d->objects, &c->body, &v.cid))
        v.lost = true; /* ValueMemoryExceeded */
    return v;
}

static void lose_value(vv_decoder *d, vv_exec *x, carried *c, vv_account why)
{
    vv_body_free(d->governor, &c->body);
    if (x)
        vv_account_add(&x->account, why, 1);
}

void vv_spans_value(vv_decoder *d, vv_lthread *t, vv_exec *x, const uint64_t *w)
{
    uint64_t payload = vv_word_payload(w[0]);
    carried c = carried_by(payload, w + 1);
    vv_span *s = t ? span_at(t, 0) : NULL;
    if (!s) {
        lose_value(d, x, &c, VV_ACCOUNT_VALUE_LOST_JOIN);
        return;
    }
    bool room = s->told && vv_fact_room(d, x, s->manual);
    if (!s->told) {
        lose_value(d, x, &c, VV_ACCOUNT_VALUE_LOST_START);
    } else if (!room) {
        lose_value(d, x, &c, VV_ACCOUNT_VALUE_LOST_QUEUE);
    } else {
        vv_fact f;
        f.tag = VV_FACT_VALUE;
        f.value = (vv_value_occurrence){.call = s->call, .context = s->context,
                                        .role = (payload & 0xff) == VV_ROLE_OUTPUT, .value = keep_value(d, &c)};
        vv_fact_add(d, x, &f, f.value.value.lost ? VV_PART_VALUE_LOST + f.value.value.loss : VV_PART_VALUE);
        vv_facts_need(&x->facts, vv_exec_in_flight(x, s->batch), VV_NAMED_SAFE);
    }
}

/* The frame of an error's thrower, if it is known. */
static const vv_frame *thrower(const vv_lthread *t, uint64_t up)
{
    return up >= t->excess && up - t->excess < t->depth ? &t->frames[t->depth - 1 - (up - t->excess)] : NULL;
}

/* Whether the error's evidence concerns a span: the unwind ends it, or it throws; and asks for errors. */
static bool concerns(const vv_lthread *t, const vv_span *s, const vv_frame *from, uint64_t ends)
{
    bool throws = from && &t->frames[s->depth - 1] == from;
    return s->roles & VV_ROLE_ERROR && (throws || t->depth - s->depth < ends);
}

typedef struct {
    const vv_frame *from;
    uint64_t ends;      /* frames */
    const vv_span *first; /* the innermost that it concerns whose start is told; NULL: none */
    bool any, manual;
} unwind;

static unwind look_at(const vv_lthread *t, const uint64_t *w)
{
    unwind u = {.from = thrower(t, (uint32_t)w[1]), .ends = w[4] > t->excess ? w[4] - t->excess : 0};
    for (uint32_t i = t->span_count; i; i--) {
        const vv_span *s = &t->spans[i - 1];
        if (!concerns(t, s, u.from, u.ends))
            continue;
        u.any = true;
        u.manual |= s->manual;
        u.first = u.first || !s->told ? u.first : s;
    }
    return u;
}

static void add_capture(vv_decoder *d, vv_lthread *t, const uint64_t *w, const unwind *u, const vv_context_ref *context,
                        carried *c)
{
    vv_exec *x = t->exec;
    vv_thread_ref thread = ref_of(d, t);
    uint64_t payload = vv_word_payload(w[0]);
    vv_fact f;
    f.tag = VV_FACT_ERROR_CAPTURE;
    vv_error_capture *p = &f.error_capture;
    p->id = vv_capture_id_make(&thread, w[3]);
    p->throw_call = vv_call_ref_make(&thread, u->from->call);
    p->context = *context;
    p->kind = payload & 1;
    p->source = payload >> 1 & 3;
    p->function_id = vv_engine_use_function(t->engine, (uint32_t)(w[1] >> 32));
    if (!p->function_id && !context->overflow)
        p->function_id = x->cct.nodes[u->from->node].function;
    set_site(t->engine, (uint32_t)w[2], &p->has_site, &p->site);
    p->value = keep_value(d, c);
    vv_fact_add(d, x, &f, VV_PART_ERROR);
    x->facts.parts.n[p->value.lost ? VV_PART_ERROR_VALUE_LOST + p->value.loss : VV_PART_ERROR_VALUE]++;
    vv_facts_need(&x->facts, vv_exec_in_flight(x, u->first->batch), VV_NAMED_SAFE);
    vv_health_bump(x, VV_H_error_captures_queued, 1);
}

/* The spans that the unwind will end learn where it is recorded, or why it is not (loss >= 0). */
static void set_links(vv_lthread *t, const unwind *u, uint64_t ordinal, int loss)
{
    for (uint32_t i = t->span_count; i && t->depth - t->spans[i - 1].depth < u->ends; i--) {
        vv_span *s = &t->spans[i - 1];
        if (!(s->roles & VV_ROLE_ERROR))
            continue;
        s->link = loss < 0 ? VV_LINK_CAPTURE : VV_LINK_LOST;
        s->link_loss = (uint8_t)(loss < 0 ? 0 : loss);
        s->link_ordinal = ordinal;
        s->link_batch = t->exec->batch;
        s->link_start_batch = loss < 0 ? u->first->batch : 0;
    }
}

static void lose_error(vv_exec *x, int loss)
{
    static const struct {
        uint8_t field, account;
    } counts[] = {
        [VV_CAPTURE_LOST_TRANSPORT] = {VV_H_error_capture_attempt_transport_exceeded,
                                       VV_ACCOUNT_ERROR_LOST_TRANSPORT},
        [VV_CAPTURE_LOST_JOIN] = {VV_H_error_capture_missing_structural_join, VV_ACCOUNT_ERROR_LOST_JOIN},
        [VV_CAPTURE_LOST_START] = {VV_H_error_capture_start_uncommitted, VV_ACCOUNT_ERROR_LOST_START},
        [VV_CAPTURE_LOST_QUEUE] = {VV_H_error_capture_evidence_queue_full, VV_ACCOUNT_ERROR_LOST_QUEUE},
    };
    vv_health_bump(x, counts[loss].field, 1);
    vv_account_add(&x->account, (vv_account)counts[loss].account, 1);
}

void vv_spans_error(vv_decoder *d, vv_lthread *t, vv_exec *x, const uint64_t *w)
{
    carried c = carried_by(vv_word_payload(w[0]), w + 5);
    if (x)
        vv_health_bump(x, VV_H_applicable_error_unwinds, 1);
    unwind u = {.any = false};
    int loss = VV_CAPTURE_LOST_JOIN;
    vv_context_ref context;
    if (t) {
        u = look_at(t, w);
        bool room = u.first && vv_fact_room(d, x, u.manual);
        u = look_at(t, w); /* making room may have moved what it found */
        if (u.any && u.from)
            loss = !u.first                                    ? (int)VV_CAPTURE_LOST_START
                   : !room || !context_of(t, u.from, &context) ? (int)VV_CAPTURE_LOST_QUEUE
                                                               : -1;
    }
    if (loss < 0)
        add_capture(d, t, w, &u, &context, &c);
    else if (x)
        lose_error(x, loss);
    if (loss >= 0)
        vv_body_free(d->governor, &c.body);
    if (t)
        set_links(t, &u, w[3], loss);
}

void vv_spans_link_lost(vv_lthread *t)
{
    vv_span *s = span_at(t, 0);
    if (s) {
        s->link = VV_LINK_LOST;
        s->link_loss = VV_CAPTURE_LOST_TRANSPORT;
    }
}
