/*
 * What a host tells of selected calls: their begin, runtime ids, values, and the errors that end them. All of it is
 * cold: a call that is not selected meets nothing of it.
 */
#include "config.h"

#include "runtime/producer_inside.h"

#include <string.h>

#include "runtime/policy.h"

enum { LOSS_NONE = -1 };

/* What a capture's vv_capture_of holds: a role as its kind, and a value's depth, or an error. */
enum { EXTRA_DEPTH = 0, EXTRA_KIND = 0, EXTRA_WHERE, EXTRA_SITE, EXTRA_ENDS };

static void remember(varve_thread *t, uint8_t flags)
{
    vv_mark *m = vv_mark_push(t);
    m->roles = m->owed = flags & VARVE_ALL_ROLES;
    m->selected = true;
    m->manual = flags & VV_FLAG_MANUAL;
}

static void put_span(varve_thread *t, vv_ring *r, uint32_t function, uint32_t site, uint64_t ticks, uint8_t flags,
                     const varve_policy *policy)
{
    bool manual = flags & VV_FLAG_MANUAL;
    r->at[1] = (uint64_t)site << 32 | function;
    r->at[2] = flags;
    if (manual)
        memcpy(r->at + VV_WORDS_SPAN, policy->runtime_id, sizeof policy->runtime_id);
    vv_ring_commit(r, vv_word0(VV_REC_SPAN, ticks), VV_WORDS_SPAN + 2 * manual);
    t->depth++;
    t->begins++;
}

void vv_begin_selected(varve_thread *t, uint32_t function, uint32_t site, uint64_t ticks, uint8_t flags,
                       const varve_policy *policy)
{
    bool manual = flags & VV_FLAG_MANUAL;
    flags &= (uint8_t)~(VARVE_ALL_ROLES & ~t->engine->roles);
    vv_account_for(t, VV_ACCOUNT_SPANS_SELECTED, 1);
    vv_ring *r = t->skip ? NULL : vv_make_room(t, VV_WORDS_SPAN + 2 * manual);
    if (!r) {
        vv_account_for(t, VV_ACCOUNT_START_LOST_TRANSPORT, 1);
        vv_lose_begin(t);
        return;
    }
    bool marked = vv_mark_room(t, manual);
    /* Where there is no memory to know of it until it ends, it is a call like others. */
    if (!marked) {
        vv_account_for(t, VV_ACCOUNT_START_LOST_CALLS, 1);
        flags = 0;
    }
    put_span(t, r, function, site, ticks, flags, policy);
    if (marked)
        remember(t, flags);
}

void varve_call_begin_as(varve_thread *thread, uint32_t function, uint32_t site, uint64_t ticks,
                         const varve_policy *policy)
{
    varve_thread *t = thread;
    if (!t || !t->started)
        return;
    uint8_t flags = varve_policy_flags(vv_is_root_call(t), policy);
    if (flags & VV_FLAG_SELECTED)
        vv_begin_selected(t, function, site, ticks, flags, policy);
    else
        varve_call_begin_at(t, function, site, ticks);
}

unsigned varve_call_roles(const varve_thread *thread)
{
    const varve_thread *t = thread;
    const vv_mark *m = t && !t->skip ? vv_mark_top(t) : NULL;
    return m ? m->owed : 0;
}

/* The mark of the selected call that many callers above the innermost one; NULL: it has none. */
static vv_mark *selected_at(const varve_thread *t, unsigned up)
{
    if (up < t->skip || up - t->skip >= t->depth)
        return NULL;
    uint64_t depth = t->depth - (up - t->skip);
    for (uint32_t i = t->mark_count; i && t->marks[i - 1].depth >= depth; i--)
        if (t->marks[i - 1].depth == depth)
            return t->marks[i - 1].selected ? &t->marks[i - 1] : NULL;
    return NULL;
}

void varve_call_set_runtime_id(varve_thread *thread, unsigned up, const uint8_t id[16])
{
    varve_thread *t = thread;
    if (!t || !vv_session_active(vv_session_of(t)) || !selected_at(t, up))
        return;
    vv_account_for(t, VV_ACCOUNT_IDS_OBSERVED, 1);
    vv_ring *r = vv_make_room(t, VV_WORDS_RUNTIME_ID);
    if (!r) {
        vv_account_for(t, VV_ACCOUNT_ID_LOST_TRANSPORT, 1);
        return;
    }
    memcpy(r->at + 1, id, 16);
    vv_ring_commit(r, vv_word0(VV_REC_RUNTIME_ID, up - t->skip), VV_WORDS_RUNTIME_ID);
    t->asides++;
}

static uint64_t how_lost(int loss, const vv_body *body)
{
    return (uint64_t)(loss + 1) << 8 | (uint64_t)body->pool << 16;
}

/* A value, or that it is lost, as a record; where that is refused the body goes. */
static void tell_value(varve_thread *t, unsigned role, int loss, vv_body *body)
{
    vv_account_for(t, VV_ACCOUNT_VALUES_APPLICABLE, 1);
    vv_ring *r = vv_make_room(t, VV_WORDS_VALUE);
    if (!r) {
        vv_account_for(t, VV_ACCOUNT_VALUE_LOST_TRANSPORT, 1);
        vv_body_free(&vv_session_of(t)->governor, body);
        return;
    }
    r->at[1] = (uintptr_t)body->bytes;
    r->at[2] = body->len;
    r->at[3] = body->cap;
    vv_ring_commit(r, vv_word0(VV_REC_VALUE, role | how_lost(loss, body)), VV_WORDS_VALUE);
    t->asides++;
}

static void tell_capture(varve_thread *t, unsigned role, varve_capture *c)
{
    vv_body body = {.bytes = NULL};
    int loss = vv_capture_take(c, &body);
    tell_value(t, role, loss, &body);
}

static void tell_loss(varve_thread *t, unsigned role, int loss)
{
    tell_value(t, role, loss, &(vv_body){.bytes = NULL});
}

static void drop_capture(varve_thread *t, varve_capture *c)
{
    vv_body body;
    if (vv_capture_take(c, &body) == LOSS_NONE)
        vv_body_free(&vv_session_of(t)->governor, &body);
}

/* A handle to put a value into; NULL: *ret_loss says why. */
static varve_capture *capture_new(varve_thread *t, unsigned kind, bool manual, int *ret_loss)
{
    varve_session *s = vv_session_of(t);
    *ret_loss = vv_objects_refused(&s->decoder.objects, s->store);
    varve_capture *c = *ret_loss == LOSS_NONE ? vv_capture_new(&s->governor, manual, s->sizing.single_value) : NULL;
    if (!c)
        *ret_loss = *ret_loss == LOSS_NONE ? VV_VALUE_LOST_MEMORY : *ret_loss;
    else
        c->of = (vv_capture_of){.thread = t, .kind = kind};
    return c;
}

varve_capture *varve_value_begin(varve_thread *thread, varve_role role)
{
    varve_thread *t = thread;
    vv_mark *m = t && !t->skip ? vv_mark_top(t) : NULL;
    if (!m || !(m->owed & role & (VARVE_INPUT | VARVE_OUTPUT)) || !vv_session_active(vv_session_of(t)))
        return NULL;
    int loss;
    varve_capture *c = capture_new(t, role, m->manual, &loss);
    if (c) {
        c->of.extra[EXTRA_DEPTH] = m->depth;
        return c;
    }
    m->owed &= (uint8_t)~role;
    if (role == VARVE_INPUT)
        tell_loss(t, role, loss);
    else
        m->output_loss = (uint8_t)(loss + 1);
    return NULL;
}

/* The record of an unwind, and what it means for the calls that it will end. */
static void tell_error(varve_thread *t, const uint64_t extra[4], int loss, vv_body *body)
{
    vv_account_for(t, VV_ACCOUNT_ERRORS_APPLICABLE, 1);
    uint64_t ends = extra[EXTRA_ENDS];
    vv_ring *r = vv_make_room(t, VV_WORDS_ERROR);
    for (uint32_t i = t->mark_count; i && t->depth - t->marks[i - 1].depth < ends; i--) {
        vv_mark *m = &t->marks[i - 1];
        bool qualifies = m->selected && m->roles & VARVE_ERROR;
        m->linked = qualifies && r;
        m->link_lost = qualifies && !r;
    }
    if (!r) {
        vv_account_for(t, VV_ACCOUNT_ERROR_LOST_TRANSPORT, 1);
        vv_body_free(&vv_session_of(t)->governor, body);
        return;
    }
    r->at[1] = extra[EXTRA_WHERE];
    r->at[2] = extra[EXTRA_SITE];
    r->at[3] = ++t->unwinds;
    r->at[4] = ends;
    r->at[5] = (uintptr_t)body->bytes;
    r->at[6] = body->len;
    r->at[7] = body->cap;
    vv_ring_commit(r, vv_word0(VV_REC_ERROR, extra[EXTRA_KIND] | how_lost(loss, body)), VV_WORDS_ERROR);
    t->asides++;
}

/* Whether an unwind concerns a selected call with the error role, and whether one was selected by hand. */
static bool is_applicable(const varve_thread *t, const varve_error *e, uint64_t ends, bool *ret_manual)
{
    bool found = false;
    *ret_manual = false;
    for (uint32_t i = t->mark_count; i; i--) {
        const vv_mark *m = &t->marks[i - 1];
        uint64_t up = t->depth - m->depth;
        if (up >= ends && up > e->up)
            break;
        if (m->selected && m->roles & VARVE_ERROR && (up < ends || up == e->up)) {
            found = true;
            *ret_manual |= m->manual;
        }
    }
    return found;
}

varve_capture *varve_error_begin(varve_thread *thread, const varve_error *error)
{
    varve_thread *t = thread;
    if (!t || !t->mark_count || !vv_session_active(vv_session_of(t)))
        return NULL;
    /* Calls that were not recorded are none. */
    varve_error e = *error;
    uint64_t skip = t->skip - t->muted;
    if (e.up < skip && e.ends <= skip)
        return NULL;
    uint64_t ends = e.ends <= skip ? 0 : e.ends - skip < t->depth ? e.ends - skip : t->depth;
    e.up = e.up < skip ? UINT32_MAX : (unsigned)(e.up - skip); /* a thrower that was not recorded is nobody */
    bool manual;
    if (!is_applicable(t, &e, ends, &manual))
        return NULL;
    uint64_t extra[] = {[EXTRA_KIND] = (uint64_t)(e.kind & 1) | (uint64_t)(e.source & 3) << 1,
                        [EXTRA_WHERE] = (uint64_t)e.function << 32 | e.up,
                        [EXTRA_SITE] = e.site,
                        [EXTRA_ENDS] = ends};
    int loss;
    varve_capture *c = capture_new(t, VARVE_ERROR, manual, &loss);
    if (c)
        memcpy(c->of.extra, extra, sizeof extra);
    else
        tell_error(t, extra, loss, &(vv_body){.bytes = NULL});
    return c;
}

/* Once, and for the call that it was begun for. Until then the value is owed. */
static void give(varve_thread *t, unsigned role, varve_capture *c)
{
    vv_mark *m = t->skip ? NULL : vv_mark_top(t);
    if (!m || !(m->owed & role) || m->depth != c->of.extra[EXTRA_DEPTH]) {
        drop_capture(t, c);
        return;
    }
    m->owed &= (uint8_t)~role;
    if (role == VARVE_OUTPUT)
        m->output = c;
    else
        tell_capture(t, role, c);
}

void varve_capture_end(varve_capture *capture)
{
    varve_capture *c = capture;
    if (!c)
        return;
    varve_thread *t = c->of.thread;
    if (!vv_session_active(vv_session_of(t))) {
        drop_capture(t, c);
        return;
    }
    if (c->of.kind != VARVE_ERROR) {
        give(t, c->of.kind, c);
    } else {
        uint64_t extra[4];
        memcpy(extra, c->of.extra, sizeof extra);
        vv_body body = {.bytes = NULL};
        int loss = vv_capture_take(c, &body);
        tell_error(t, extra, loss, &body);
    }
}

/* A call that returns has an output; one that doesn't has none, whatever was given. */
static void end_output(varve_thread *t, vv_mark *m, unsigned status)
{
    if (status == VARVE_CALL_OK && m->output)
        tell_capture(t, VARVE_OUTPUT, m->output);
    else if (status == VARVE_CALL_OK && m->roles & VARVE_OUTPUT)
        tell_loss(t, VARVE_OUTPUT, m->output_loss ? m->output_loss - 1 : VV_VALUE_LOST_COPY);
    else if (m->output)
        drop_capture(t, m->output);
}

void vv_end_selected(varve_thread *t, vv_mark *m, unsigned status)
{
    if (m->owed & VARVE_INPUT)
        tell_loss(t, VARVE_INPUT, VV_VALUE_LOST_COPY);
    end_output(t, m, status);
    if (!m->link_lost || status != VARVE_CALL_ERRORED)
        return;
    vv_ring *r = vv_make_room(t, VV_WORDS_LINK_LOST);
    if (r) {
        vv_ring_commit(r, vv_word0(VV_REC_LINK_LOST, 0), VV_WORDS_LINK_LOST);
        t->asides++;
        m->linked = true;
    } else {
        vv_lose_link(t);
    }
}
