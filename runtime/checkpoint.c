#include "config.h"

#include "runtime/checkpoint.h"

#include <string.h>

#include "runtime/process.h"
#include "runtime/session.h"

static const uint64_t look_ns = 10000000, longest_ns = 100000000;
enum { PART = 20 }; /* the consumer's time over what looks take of it: at thousands of executions each takes ms */

/* What a slot shows once its execution was handed off. */
static varve_execution_state gone;

static _Atomic uint64_t counts[VV_PROCESS_COUNTS];

void vv_count(vv_process_count what, uint64_t n)
{
    uint64_t v = atomic_load_explicit(&counts[what], memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&counts[what], &v, vv_sat64(v, n), memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

void varve_process_counters(varve_process_counts *ret)
{
    uint64_t v[VV_PROCESS_COUNTS];
    for (unsigned i = 0; i < VV_PROCESS_COUNTS; i++)
        v[i] = atomic_load_explicit(&counts[i], memory_order_relaxed);
    _Static_assert(sizeof v == sizeof *ret, "one member a count, in their order");
    memcpy(ret, v, sizeof v);
}

void vv_checkpoint_init(varve_session *s)
{
    pthread_mutex_init(&s->checkpoint.lock, NULL);
    vv_checkpoint_take(s, true);
}

void vv_checkpoint_done(varve_session *s)
{
    pthread_mutex_destroy(&s->checkpoint.lock);
}

/* With what the producers have counted by now. */
static void look_at_parts(vv_exec *x, varve_execution_state *v)
{
    uint64_t queued[VV_EVIDENCE_PARTS], sent[VV_EVIDENCE_PARTS];
    vv_accounting a = x->account;
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        vv_account_add(&a, (vv_account)i, atomic_load_explicit(&x->slot->accounts[i], memory_order_relaxed));
    vv_parts_count(&x->facts.parts, queued);
    vv_parts_count(&x->sent, sent);
    for (unsigned i = 0; i < VV_EVIDENCE_PARTS; i++) {
        const vv_evidence_equation *e = &vv_evidence_equations[i];
        v->parts[i].all = a.v[e->all];
        v->parts[i].queued = queued[i] + sent[i];
        v->parts[i].committed = a.v[e->committed];
        v->parts[i].lost = vv_account_losses(&a, e);
    }
    v->open_spans = x->open_spans;
}

/* The root's identity is the slot's: a view needs no more than what moves. */
static void look_at(vv_exec *x)
{
    varve_execution_state *v = &x->view;
    _Static_assert(sizeof v->health == sizeof x->health.v, "the 26 counters");
    memcpy(v->health, x->health.v, sizeof v->health);
    v->queued_facts = x->facts.count;
    v->queued_bytes = x->facts.len;
    v->publication_in_flight = x->in_flight;
    v->first_data = x->first;
    look_at_parts(x, v);
    v->last_data = x->last;
    atomic_store_explicit(&x->slot->view, v, memory_order_relaxed);
}

void vv_checkpoint_take(varve_session *s, bool published)
{
    vv_checkpoint *c = &s->checkpoint;
    uint64_t now = vv_clock_monotonic_ns();
    if (!published && now < c->next_ns)
        return;
    varve_stream_state st = {.meta_high_water = vv_wstore_high(s->store, VV_PLANE_META),
                             .data_high_water = vv_wstore_high(s->store, VV_PLANE_DATA),
                             .health_high_water = vv_wstore_high(s->store, VV_PLANE_HEALTH),
                             .publication_in_flight = vv_wstore_is_indeterminate(s->store)};
    vv_writer_pending(&s->writer, &st.pending_groups, &st.pending_meta);
    bool pending = st.pending_groups || st.pending_meta;
    pthread_mutex_lock(&c->lock);
    for (vv_exec *x = s->decoder.execs; x; x = x->next)
        if (x->slot)
            look_at(x);
    c->stream = st;
    c->oldest_ns = !pending ? 0 : published || !c->oldest_ns ? now : c->oldest_ns;
    pthread_mutex_unlock(&c->lock);
    uint64_t end = vv_clock_monotonic_ns(), pause = PART * (end - now);
    c->next_ns = end + (pause < look_ns ? look_ns : pause > longest_ns ? longest_ns : pause);
}

void vv_checkpoint_leave(varve_session *s, vv_slot *slot)
{
    pthread_mutex_lock(&s->checkpoint.lock);
    atomic_store_explicit(&slot->view, &gone, memory_order_relaxed);
    pthread_mutex_unlock(&s->checkpoint.lock);
}

bool varve_stream_checkpoint(varve_session *session, varve_stream_state *ret)
{
    varve_session *s = session;
    if (!s || !vv_session_active(s))
        return false;
    vv_checkpoint *c = &s->checkpoint;
    pthread_mutex_lock(&c->lock);
    *ret = c->stream;
    uint64_t since = c->oldest_ns;
    pthread_mutex_unlock(&c->lock);
    uint64_t now = since ? vv_clock_monotonic_ns() : 0;
    ret->oldest_pending_ns = now > since ? now - since : 0;
    return true;
}

bool varve_execution_checkpoint(const varve_root *root, varve_execution_state *ret)
{
    vv_slot *slot = vv_root_current(root);
    if (!slot || !vv_session_active(slot->session))
        return false;
    vv_checkpoint *c = &slot->session->checkpoint;
    pthread_mutex_lock(&c->lock);
    /* While the lock is held the slot is not handed off, so its handle stays as good as it is now. */
    const varve_execution_state *v = atomic_load_explicit(&slot->view, memory_order_relaxed);
    bool there = v != &gone && vv_root_current(root) == slot;
    if (there) {
        *ret = v ? *v : (varve_execution_state){.engine = 0};
        ret->engine = atomic_load_explicit(&slot->engine, memory_order_relaxed)->id;
        ret->thread = slot->thread;
    }
    pthread_mutex_unlock(&c->lock);
    return there;
}
