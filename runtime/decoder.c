#include "config.h"

#include "runtime/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/process.h"
#include "runtime/policy.h"
#include "runtime/record.h"
#include "runtime/spans.h"

/* Whose records follow in a ring. Without a thread: the execution that what is dropped is counted for, if known. */
static void decode_as(vv_ring *r, vv_lthread *t, vv_exec *ignored)
{
    if (r->decoding)
        r->decoding->rings--;
    if (t)
        t->rings++;
    r->decoding = t;
    r->ignored = ignored;
}

void vv_decoder_leave(vv_ring *r)
{
    decode_as(r, NULL, NULL);
}

/* Rings where its records may go on lose it: one that was forced can end a thread before its backlog was read. */
static void drop_thread(vv_decoder *d, vv_lthread *t)
{
    for (vv_ring *r = t->rings ? atomic_load_explicit(d->rings, memory_order_acquire) : NULL; r && t->rings;
         r = r->next)
        if (r->decoding == t)
            decode_as(r, NULL, t->exec);
    vv_lthread_drop(t, d->governor);
}

void vv_decoder_drop(vv_decoder *d, vv_exec *x)
{
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        vv_account_add(&d->over, (vv_account)i, x->account.v[i]);
    while (x->threads)
        drop_thread(d, x->threads);
    vv_cct_done(&x->cct);
    d->fact_count -= x->facts.count;
    vv_facts_done(&x->facts, d->governor);
    vv_gov_free(d->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, x->group, x->group_bytes);
    if (x->prev)
        x->prev->next = x->next;
    else
        d->execs = x->next;
    if (x->next)
        x->next->prev = x->prev;
    if (x->slot)
        x->slot->exec = NULL;
    vv_gov_free(d->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, x, sizeof *x);
}

static inline uint64_t to_ns(vv_decoder *d, uint64_t low)
{
    uint64_t ticks = vv_unwrap(low, d->later);
    if (VV_UNLIKELY(ticks < d->line.base_ticks || ticks >= d->line_end))
        return vv_clock_ns(d->clock, ticks);
    return vv_clock_on_line(&d->line, ticks);
}

/* Memory was denied: makes room, unless that was tried a moment ago. */
static bool make_room(vv_decoder *d, vv_exec *x)
{
    uint64_t now = vv_ticks();
    if (!d->relieve || (d->relieved_ticks && now - d->relieved_ticks < vv_clock_lead(d->clock)))
        return false;
    d->relieve(d->ctx, x);
    d->relieved_ticks = vv_ticks();
    return true;
}

bool vv_fact_room(vv_decoder *d, vv_exec *x, bool manual)
{
    if (d->fact_count >= d->facts_due && d->relieve) {
        d->relieve(d->ctx, NULL);
        d->facts_due = d->fact_count + d->fact_limit;
    }
    if (vv_facts_room(&x->facts, d->governor, manual, x->flight_batch) ||
        (make_room(d, x) && vv_facts_room(&x->facts, d->governor, manual, x->flight_batch)))
        return true;
    vv_health_bump(x, VV_H_evidence_queue_full, 1);
    atomic_fetch_add_explicit(&d->facts_lost, 1, memory_order_relaxed);
    return false;
}

void vv_fact_add(vv_decoder *d, vv_exec *x, const vv_fact *f, vv_part part)
{
    vv_facts_add(&x->facts, f, part);
    d->fact_count++;
}

static vv_thread_ref ref_of(const vv_decoder *d, const varve_engine *e, uint64_t number)
{
    return vv_thread_ref_make(&d->euid, e->id, number);
}

static void tell_start(vv_decoder *d, vv_lthread *t, uint64_t ns)
{
    if (!vv_fact_room(d, t->exec, false))
        return;
    vv_fact f = {.tag = VV_FACT_THREAD_START};
    vv_thread_start *s = &f.thread_start;
    s->thread = ref_of(d, t->engine, t->number);
    s->started_ns = ns;
    s->kind = !t->root;
    if (t->has_parent && t->parent_told) {
        s->has_parent = true;
        s->parent = ref_of(d, t->engine, t->parent_number);
    }
    if (t->has_spawn_call && t->parent_told) {
        s->has_spawn_call = true;
        s->spawn_call = vv_call_ref_make(&s->parent, t->spawn_call);
    }
    const vv_site *site = vv_engine_use_site(t->engine, t->spawn_site);
    if (site) {
        s->has_spawn_site = true;
        s->spawn_site = *site;
    }
    s->name = (vv_str){t->name, t->name_len};
    vv_fact_add(d, t->exec, &f, VV_PART_THREAD);
    bool flies = s->has_parent && vv_exec_in_flight(t->exec, t->parent_batch);
    vv_facts_need(&t->exec->facts, false, flies ? VV_NAMED_IN_FLIGHT : VV_NAMED_SAFE);
    t->told = true;
    t->batch = t->exec->batch;
}

/* NULL: no memory, counted. */
static vv_lthread *new_thread(vv_decoder *d, vv_exec *x, uint64_t number)
{
    vv_lthread *t = vv_lthread_new(x->engine, d->governor, x, number);
    if (!t && make_room(d, x))
        t = vv_lthread_new(x->engine, d->governor, x, number);
    if (!t)
        vv_health_bump(x, VV_H_active_thread_capacity_exceeded, 1);
    return t;
}

static void admit(vv_decoder *d, vv_slot *slot)
{
    vv_exec *x = vv_gov_alloc(d->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, sizeof *x);
    if (!x && d->relieve) {
        d->relieve(d->ctx, NULL);
        x = vv_gov_alloc(d->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, sizeof *x);
    }
    if (!x) {
        d->admissions_lost++;
        vv_count(VV_COUNT_EXECUTION_STATE_UNAVAILABLE, 1);
        return;
    }
    varve_engine *engine = atomic_load_explicit(&slot->engine, memory_order_relaxed);
    x->root = vv_thread_ref_make(&d->euid, engine->id, slot->thread);
    x->engine = engine;
    x->slot = slot;
    x->started_ns = vv_clock_ns(d->clock, slot->admitted_ticks);
    x->runtime_id = slot->runtime_id;
    x->status = VV_EXEC_ABANDONED;
    vv_cct_init(&x->cct, engine, d->governor);
    x->facts.pool = x->facts.need_pool = VV_POOL_GENERAL;
    x->batch = 1;
    x->next = d->execs;
    if (x->next)
        x->next->prev = x;
    d->execs = x;
    slot->exec = x;
    *d->admitted_end = x;
    d->admitted_end = &x->next_admitted;
    vv_lthread *t = new_thread(d, x, slot->thread);
    if (!t)
        return;
    t->root = t->started = true;
    tell_start(d, t, x->started_ns);
}

void vv_decoder_admit(vv_decoder *d)
{
    for (vv_slot *s = vv_registry_take(d->registry, VV_ADMITTED), *next; s; s = next) {
        next = s->next[VV_ADMITTED];
        admit(d, s);
    }
}

/* A node below parent, a frame's or the spawner's; after a relief the parent's index is read again through parent. */
static uint32_t intern(vv_decoder *d, vv_lthread *t, const uint32_t *parent, uint32_t function, uint32_t site,
                       unsigned edge)
{
    vv_exec *x = t->exec;
    if (x->cct.count >= d->epoch_nodes && x->cct.count >= x->rollover_at && d->relieve)
        d->relieve(d->ctx, x);
    uint32_t node = vv_cct_intern(&x->cct, *parent, function, site, edge);
    if (node == VV_NODE_NONE && make_room(d, x))
        node = vv_cct_intern(&x->cct, *parent, function, site, edge);
    return node == VV_NODE_NONE ? vv_overflow_node(VV_OVERFLOW_MEMORY, edge) : node;
}

/* The first call of a thread, or the next one after the first returned. */
static uint32_t entry_node(vv_decoder *d, vv_lthread *t, uint32_t function, uint32_t site)
{
    static const uint32_t none = VV_NODE_NONE;
    if (t->root)
        return intern(d, t, &none, function, site, VV_EDGE_ROOT);
    if (vv_is_overflow(t->spawn_node))
        return vv_overflow_node(VV_OVERFLOW_INVALID_PARENT, VV_EDGE_SPAWN);
    return intern(d, t, &t->spawn_node, function, t->spawn_site, VV_EDGE_SPAWN);
}

static VV_COLD void begin_excess(vv_lthread *t, unsigned edge)
{
    vv_cct_overflow_start(&t->exec->cct, vv_overflow_node(VV_OVERFLOW_INVALID_PARENT, edge));
    vv_health_bump(t->exec, VV_H_active_call_capacity_exceeded, 1);
    t->begins++;
    t->excess++;
}

static inline VV_INLINE void on_begin(vv_decoder *d, vv_lthread *t, uint64_t ns, uint64_t what)
{
    uint32_t function = (uint32_t)what, site = (uint32_t)(what >> 32), node;
    if (VV_UNLIKELY(t->depth == t->cap) || VV_UNLIKELY(t->excess)) {
        if (t->excess ||
            (!vv_lthread_grow(t, d->governor) && !(make_room(d, t->exec) && vv_lthread_grow(t, d->governor)))) {
            begin_excess(t, t->depth ? VV_EDGE_CALL : t->root ? VV_EDGE_ROOT : VV_EDGE_SPAWN);
            return;
        }
    }
    vv_cct *c = &t->exec->cct;
    if (VV_LIKELY(t->depth)) {
        const vv_frame *top = &t->frames[t->depth - 1];
        if (VV_UNLIKELY(vv_is_overflow(top->node)))
            node = vv_overflow_node(VV_OVERFLOW_INVALID_PARENT, VV_EDGE_CALL);
        else if ((node = vv_cct_known_child(c, top->node, function, site)) == VV_NODE_NONE)
            node = intern(d, t, &top->node, function, site, VV_EDGE_CALL);
    } else {
        node = entry_node(d, t, function, site);
    }
    if (VV_UNLIKELY(vv_is_overflow(node))) {
        vv_cct_overflow_start(c, node);
    } else {
        c->nodes[node].started++;
        vv_cct_touch(c, node);
    }
    t->frames[t->depth++] = (vv_frame){.start_ns = ns, .call = ++t->begins, .node = node};
}

/* A call whose children and awaits took longer than itself: its self time is taken as 0. */
static VV_COLD void self_underflow(vv_exec *x)
{
    vv_account_add(&x->account, VV_ACCOUNT_SELF_UNDERFLOW, 1);
    x->cct.health |= VV_HEALTH_SELF_UNDERFLOW;
}

static inline VV_INLINE void end_call(vv_decoder *d, vv_lthread *t, uint64_t ns, unsigned status, uint64_t await_ns,
                                      uint64_t await_count)
{
    if (VV_UNLIKELY(t->excess || !t->depth)) {
        t->excess -= t->excess != 0;
        vv_health_bump(t->exec, VV_H_unmatched_call_facts, 1);
        return;
    }
    vv_cct *c = &t->exec->cct;
    const vv_frame *f = &t->frames[--t->depth];
    uint64_t spent = ns - f->start_ns;
    bool selected = f->selected;
    if (VV_UNLIKELY(ns < f->start_ns)) {
        spent = 0;
        vv_health_bump(t->exec, VV_H_clock_invalid, 1);
    }
    if (VV_UNLIKELY(spent < f->inner_ns || spent - f->inner_ns < await_ns))
        self_underflow(t->exec);
    if (VV_LIKELY(!vv_is_overflow(f->node) && status == VV_CALL_OK && !await_count)) {
        vv_node *n = &c->nodes[f->node];
        n->ok++;
        vv_add_carry(c, &n->inclusive_ns, &n->inclusive_high, spent, VV_HEALTH_COUNTER_SATURATED);
        vv_cct_touch(c, f->node);
    } else {
        vv_cct_end_slow(c, f->node, status, spent, await_ns, await_count);
    }
    if (VV_LIKELY(t->depth)) {
        vv_frame *up = &t->frames[t->depth - 1];
        uint32_t parent = up->node;
        up->inner_ns += spent;
        if (VV_LIKELY(!vv_is_overflow(parent))) {
            vv_node *n = &c->nodes[parent];
            vv_add_carry(c, &n->direct_ns, &n->direct_high, spent, VV_HEALTH_COUNTER_SATURATED);
            vv_cct_touch(c, parent);
        } else {
            vv_cct_direct(c, parent, spent);
        }
    }
    if (VV_UNLIKELY(selected))
        vv_spans_end(d, t, ns, status, spent);
}

/* Any end but the plain one. */
static VV_COLD void on_end(vv_decoder *d, vv_lthread *t, uint64_t ns, unsigned status, uint64_t await_ns,
                           uint64_t await_count)
{
    if (t->excess || !t->depth)
        vv_account_add(&t->exec->account, VV_ACCOUNT_AWAIT_LOST_UNMATCHED, await_count);
    else
        t->exec->awaits_decoded += await_count;
    if (await_ns == UINT64_MAX)
        t->exec->cct.health |= VV_HEALTH_AWAIT_SATURATED;
    end_call(d, t, ns, status, await_ns, await_count);
}

static void on_thread_end(vv_decoder *d, vv_lthread *t, uint64_t ns, unsigned status)
{
    static const uint8_t call_status[] = {VV_CALL_OK, VV_CALL_CANCELLED, VV_CALL_ERRORED};
    while (t->depth || t->excess)
        on_end(d, t, ns, call_status[status], 0, 0);
    vv_exec *x = t->exec;
    if (t->told && vv_fact_room(d, x, false) && t->told) {
        vv_fact f = {.tag = VV_FACT_THREAD_END};
        f.thread_end =
            (vv_thread_end){.thread = ref_of(d, t->engine, t->number), .ended_ns = ns, .status = (uint8_t)status};
        vv_fact_add(d, x, &f, VV_PART_THREAD);
        vv_facts_need(&x->facts, vv_exec_in_flight(x, t->batch), VV_NAMED_SAFE);
    }
    drop_thread(d, t);
}

/* The frame of the spawning call: up callers above the innermost, at most the outermost. */
static void place_spawn(vv_lthread *child, const vv_lthread *parent, uint64_t up)
{
    child->has_parent = true;
    child->parent_number = parent->number;
    child->parent_told = parent->told;
    child->parent_batch = parent->batch;
    if (!parent->depth && !parent->excess)
        return;
    /* The call, or the outermost in its stead, has no frame. */
    if (up < parent->excess || !parent->depth) {
        child->spawn_node = vv_overflow_node(VV_OVERFLOW_INVALID_PARENT, VV_EDGE_CALL);
        return;
    }
    up -= parent->excess;
    const vv_frame *f = &parent->frames[up < parent->depth ? parent->depth - 1 - up : 0];
    child->has_spawn_call = true;
    child->spawn_call = f->call;
    child->spawn_node = f->node;
}

static void on_spawn(vv_decoder *d, vv_lthread *t, const uint64_t *w)
{
    t->asides++;
    vv_exec *x = t->exec;
    uint64_t number = vv_word_payload(w[0]);
    vv_lthread *child = new_thread(d, x, number);
    if (!child)
        return;
    child->spawn_site = (uint32_t)w[1];
    place_spawn(child, t, w[1] >> 32);
    uint16_t n = (uint16_t)w[2];
    child->name = n ? vv_gov_alloc(d->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, n) : NULL;
    if (child->name) {
        memcpy(child->name, w + VV_WORDS_SPAWN, n);
        vv_utf8_mend(child->name, n);
        child->name_len = n;
    }
}

/* A record of a thread went on without its cause. */
static void count_forced(vv_exec *x, vv_force force)
{
    vv_health_bump(x, force == VV_FORCE_PRESSURE ? VV_H_join_capacity_exceeded : VV_H_unmatched_thread_facts, 1);
}

/* False: the spawn was not seen yet. */
static bool on_thread_start(vv_decoder *d, vv_ring *r, const uint64_t *w, vv_force force)
{
    vv_slot *slot = &d->registry->slots[(uint32_t)w[2]];
    vv_lthread *t = vv_lthread_find(r->engine, w[1]);
    if (!t && !force && slot->exec)
        return false;
    decode_as(r, t, slot->exec);
    if (!t) {
        if (slot->exec)
            count_forced(slot->exec, force);
        return true;
    }
    t->started = true;
    tell_start(d, t, to_ns(d, vv_word_payload(w[0])));
    return true;
}

/* Frames deeper than depth never ended as far as we know. */
static void cut_to(vv_lthread *t, uint64_t depth)
{
    uint64_t open = t->depth + t->excess;
    if (open <= depth)
        return;
    vv_health_bump(t->exec, VV_H_unmatched_call_facts, open - depth);
    vv_spans_cut(t, depth, VV_PART_END_LOST_TRANSPORT);
    if (depth >= t->depth) {
        t->excess = depth - t->depth;
    } else {
        t->excess = 0;
        t->depth = depth;
    }
}

/* False: the thread's earlier records were not all seen yet. */
static bool on_bind(vv_decoder *d, vv_ring *r, const uint64_t *w, vv_force force)
{
    vv_slot *slot = &d->registry->slots[w[3] >> 32];
    uint64_t number = vv_word_payload(w[0]);
    if (!slot->exec)
        vv_decoder_admit(d);
    vv_lthread *t = vv_lthread_find(r->engine, number);
    uint64_t depth = w[2] & ~VV_REC_STARTED;
    bool there = t && t->started == (w[2] >= VV_REC_STARTED) && t->begins == w[1] && t->depth + t->excess == depth &&
                 (uint32_t)t->asides == (uint32_t)w[3];
    /* Where a root has no state, memory has denied it: nothing to wait for. */
    bool awaited = !there && slot->exec && (t || number != slot->thread);
    if (awaited && !force)
        return false;
    decode_as(r, t, slot->exec);
    if (awaited)
        count_forced(slot->exec, force);
    if (t && !there) {
        cut_to(t, depth);
        t->excess = depth - t->depth;
        t->begins = w[1];
        t->asides = (uint32_t)w[3];
    }
    return true;
}

/* A record of a thread that has no state here. */
static void on_stray(vv_decoder *d, vv_ring *r, unsigned tag, const uint64_t *w)
{
    vv_exec *x = r->ignored;
    if (x && tag == VV_REC_BEGIN)
        vv_account_add(&x->account, VV_ACCOUNT_CALLS_LOST_UNMATCHED, 1);
    else if (x && tag >= VV_REC_AWAITED_END && tag < VV_REC_SWITCH)
        vv_account_add(&x->account, VV_ACCOUNT_AWAIT_LOST_UNMATCHED, w[2]);
    bool call = tag < VV_REC_SWITCH;
    if (x)
        vv_health_bump(x, call ? VV_H_unmatched_call_facts : VV_H_unmatched_thread_facts, 1);
    else
        d->stray_records++;
}

static const uint8_t words_of[VV_REC_TAGS] = {
    [VV_REC_BEGIN] = VV_WORDS_BEGIN,
    [VV_REC_END] = VV_WORDS_END,
    [VV_REC_END + 1] = VV_WORDS_END,
    [VV_REC_END + 2] = VV_WORDS_END,
    [VV_REC_END + 3] = VV_WORDS_END,
    [VV_REC_AWAITED_END] = VV_WORDS_AWAITED_END,
    [VV_REC_AWAITED_END + 1] = VV_WORDS_AWAITED_END,
    [VV_REC_AWAITED_END + 2] = VV_WORDS_AWAITED_END,
    [VV_REC_AWAITED_END + 3] = VV_WORDS_AWAITED_END,
    [VV_REC_SWITCH] = VV_WORDS_SWITCH,
    [VV_REC_BIND] = VV_WORDS_BIND,
    [VV_REC_RESYNC] = VV_WORDS_RESYNC,
    [VV_REC_SPAWN] = VV_WORDS_SPAWN,
    [VV_REC_SPAN] = VV_WORDS_SPAN,
    [VV_REC_RUNTIME_ID] = VV_WORDS_RUNTIME_ID,
    [VV_REC_VALUE] = VV_WORDS_VALUE,
    [VV_REC_ERROR] = VV_WORDS_ERROR,
    [VV_REC_LINK_LOST] = VV_WORDS_LINK_LOST,
    [VV_REC_THREAD_START] = VV_WORDS_THREAD_START,
    [VV_REC_THREAD_END] = VV_WORDS_THREAD_END,
    [VV_REC_THREAD_END + 1] = VV_WORDS_THREAD_END,
    [VV_REC_THREAD_END + 2] = VV_WORDS_THREAD_END,
};

static uint64_t record_words(const uint64_t *w)
{
    unsigned tag = vv_word_tag(w[0]);
    return words_of[tag] + (tag == VV_REC_SPAWN ? (w[2] + 7) / 8 : 0) +
           (tag == VV_REC_SPAN && w[2] & VV_FLAG_MANUAL ? 2 : 0);
}

/* A begin with more to it. Without memory for its frame it has no span. */
static void on_span(vv_decoder *d, vv_lthread *t, uint64_t ns, const uint64_t *w)
{
    uint64_t excess = t->excess;
    on_begin(d, t, ns, w[1]);
    if (!(w[2] & VV_FLAG_SELECTED))
        return;
    if (t->excess == excess)
        vv_spans_begin(d, t, w, ns);
    else
        vv_account_add(&t->exec->account, VV_ACCOUNT_START_LOST_CALLS, 1);
}

/* The records of selected calls. */
static VV_COLD void on_selected(vv_decoder *d, vv_ring *r, vv_lthread *t, unsigned tag, const uint64_t *w)
{
    vv_exec *x = t ? t->exec : r->ignored;
    if (t && tag != VV_REC_SPAN)
        t->asides++;
    if (tag == VV_REC_VALUE)
        vv_spans_value(d, t, x, w);
    else if (tag == VV_REC_ERROR)
        vv_spans_error(d, t, x, w);
    else if (!t)
        on_stray(d, r, tag == VV_REC_SPAN ? VV_REC_BEGIN : tag, w);
    else if (tag == VV_REC_SPAN)
        on_span(d, t, to_ns(d, vv_word_payload(w[0])), w);
    else if (tag == VV_REC_RUNTIME_ID)
        vv_spans_runtime_id(d, t, w);
    else
        vv_spans_link_lost(t);
}

/* All but the two hot records. False: blocked. */
static bool on_record(vv_decoder *d, vv_ring *r, const uint64_t *w, vv_force force)
{
    unsigned tag = vv_word_tag(w[0]);
    if (tag == VV_REC_THREAD_START)
        return on_thread_start(d, r, w, force);
    if (tag == VV_REC_BIND)
        return on_bind(d, r, w, force);
    if (tag == VV_REC_SWITCH || tag == VV_REC_RESYNC) {
        vv_lthread *t = vv_lthread_find(r->engine, vv_word_payload(w[0]));
        decode_as(r, t, t ? t->exec : NULL);
        if (tag == VV_REC_RESYNC && t)
            cut_to(t, w[1]);
        return true;
    }
    vv_lthread *t = r->decoding;
    if (tag >= VV_REC_SPAN && tag <= VV_REC_LINK_LOST)
        on_selected(d, r, t, tag, w);
    else if (!t)
        on_stray(d, r, tag, w);
    else if (tag == VV_REC_SPAWN)
        on_spawn(d, t, w);
    else if (tag >= VV_REC_THREAD_END)
        on_thread_end(d, t, to_ns(d, vv_word_payload(w[0])), tag - VV_REC_THREAD_END);
    else if (tag >= VV_REC_AWAITED_END)
        on_end(d, t, to_ns(d, vv_word_payload(w[0])), tag - VV_REC_AWAITED_END, w[1], w[2]);
    else if (tag >= VV_REC_END)
        on_end(d, t, to_ns(d, vv_word_payload(w[0])), tag - VV_REC_END, 0, 0);
    return true;
}

vv_decoded vv_decoder_drain(vv_decoder *d, vv_ring *r, unsigned max_segments, vv_force force, bool *ret_moved)
{
    unsigned left = 0;
    /* Ticks read from now on are less than 2^40 later: hours. */
    d->later = vv_ticks() + (1ULL << 40);
    d->line = vv_clock_line_at(d->clock, d->later, &d->line_end);
    for (;;) {
        uint64_t retired;
        const uint64_t *w = vv_ring_peek(r, &retired);
        left += (unsigned)retired;
        if (!w)
            return VV_DECODED_ALL;
        if (left >= max_segments)
            return VV_DECODED_BOUND;
        const uint64_t *end = r->tail->words + VV_SEGMENT_WORDS;
        for (uint64_t word; w < end && (word = __atomic_load_n(w, __ATOMIC_ACQUIRE));) {
            vv_lthread *t = r->decoding;
            unsigned tag = vv_word_tag(word);
            if (VV_LIKELY(tag == VV_REC_BEGIN && t)) {
                on_begin(d, t, to_ns(d, vv_word_payload(word)), w[1]);
                w += VV_WORDS_BEGIN;
            } else if (VV_LIKELY(tag == VV_REC_END && t)) {
                end_call(d, t, to_ns(d, vv_word_payload(word)), VV_CALL_OK, 0, 0);
                w += VV_WORDS_END;
            } else {
                if (!on_record(d, r, w, force)) {
                    r->from = (uint64_t *)(uintptr_t)w;
                    r->blocked_ticks = tag == VV_REC_BIND ? w[4] : vv_unwrap(vv_word_payload(word), d->later);
                    return VV_DECODED_BLOCKED;
                }
                w += record_words(w);
                force = VV_FORCE_NONE;
            }
            *ret_moved = true;
        }
        r->from = (uint64_t *)(uintptr_t)w;
    }
}

void vv_decoder_discard(vv_ring *r, vv_governor *g)
{
    uint64_t retired;
    for (const uint64_t *w; (w = vv_ring_peek(r, &retired)); r->from = (uint64_t *)(uintptr_t)w + record_words(w))
        vv_record_drop(g, w);
}

/* The terms that the producers kept, and what is left of the awaits that nothing explains. */
static void take_accounts(vv_exec *x, vv_slot *s)
{
    vv_accounting *a = &x->account;
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        vv_account_add(a, (vv_account)i, atomic_load_explicit(&s->accounts[i], memory_order_relaxed));
    static const vv_account losses[] = {VV_ACCOUNT_AWAIT_LOST_MEMORY, VV_ACCOUNT_AWAIT_LOST_CLOCK,
                                        VV_ACCOUNT_AWAIT_LOST_SATURATED, VV_ACCOUNT_AWAIT_LOST_TRANSPORT,
                                        VV_ACCOUNT_AWAIT_LOST_UNMATCHED};
    uint64_t known = x->awaits_decoded;
    for (unsigned i = 0; i < VV_ARRAY_LEN(losses); i++)
        known = vv_sat64(known, a->v[losses[i]]);
    if (a->v[VV_ACCOUNT_AWAIT_STARTED] > known)
        vv_account_add(a, VV_ACCOUNT_AWAIT_LOST_UNRECONCILED, a->v[VV_ACCOUNT_AWAIT_STARTED] - known);
}

/* The store's counters of what producers lost of selected calls. */
static void take_losses(vv_exec *x)
{
    const vv_accounting *a = &x->account;
    x->health.v[VV_H_value_attempt_transport_exceeded] = a->v[VV_ACCOUNT_VALUE_LOST_TRANSPORT];
    vv_health_bump(x, VV_H_error_capture_attempt_transport_exceeded, a->v[VV_ACCOUNT_ERROR_LOST_TRANSPORT]);
    vv_health_bump(x, VV_H_applicable_error_unwinds, a->v[VV_ACCOUNT_ERROR_LOST_TRANSPORT]);
    vv_health_bump(x, VV_H_terminal_error_links_observed, a->v[VV_ACCOUNT_LINK_LOST_TRANSPORT]);
    vv_health_bump(x, VV_H_terminal_error_link_transport_exceeded, a->v[VV_ACCOUNT_LINK_LOST_TRANSPORT]);
}

void vv_decoder_finish(vv_decoder *d, vv_exec *x)
{
    while (x->threads) {
        vv_lthread *t = x->threads;
        vv_health_bump(x, VV_H_unmatched_call_facts, t->depth + t->excess);
        vv_spans_cut(t, 0, VV_PART_END_LOST_JOIN);
        vv_health_bump(x, VV_H_unmatched_thread_facts, 1);
        drop_thread(d, t);
    }
    vv_slot *s = x->slot;
    take_accounts(x, s);
    x->health.v[VV_H_structural_transport_exceeded] = atomic_load_explicit(&s->lost, memory_order_relaxed);
    take_losses(x);
    x->ended_ns = vv_clock_ns(d->clock, atomic_load_explicit(&s->closing_ticks, memory_order_relaxed));
    x->status = vv_slot_status(s);
}

static uint32_t *put_kept(uint32_t *at, uint32_t node)
{
    if (node < VV_NODE_OVERFLOW)
        *at++ = node;
    return at;
}

/* A context that a queued fact may name, and that no committed group has defined. */
static bool is_named(const vv_exec *x, uint32_t node)
{
    enum { KEPT = VV_NODE_KEYED | VV_NODE_DEFINED };
    return (x->cct.nodes[node].flags & KEPT) == VV_NODE_KEYED;
}

static uint32_t moved_to(const uint32_t *map, uint32_t node)
{
    return node < VV_NODE_OVERFLOW ? map[node] : node;
}

bool vv_decoder_rollover(vv_decoder *d, vv_exec *x)
{
    uint64_t open = 0;
    for (vv_lthread *t = x->threads; t; t = t->next)
        open += t->depth + 1;
    uint32_t named = x->facts.count ? x->cct.count : 0;
    open += named;
    size_t keep_bytes = (open + 1) * sizeof(uint32_t), map_bytes = (x->cct.count + 1ULL) * sizeof(uint32_t);
    uint32_t *keep = vv_gov_alloc(d->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, keep_bytes);
    uint32_t *map = vv_gov_alloc(d->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, map_bytes);
    bool ok = keep && map;
    if (ok) {
        uint32_t *at = keep;
        for (vv_lthread *t = x->threads; t; t = t->next) {
            for (uint64_t i = 0; i < t->depth; i++)
                at = put_kept(at, t->frames[i].node);
            at = put_kept(at, t->spawn_node);
        }
        for (uint32_t i = 0; i < named; i++)
            if (is_named(x, i))
                *at++ = i;
        vv_cct_rollover(&x->cct, keep, (size_t)(at - keep), map);
        for (vv_lthread *t = x->threads; t; t = t->next) {
            for (uint64_t i = 0; i < t->depth; i++)
                t->frames[i].node = moved_to(map, t->frames[i].node);
            t->spawn_node = moved_to(map, t->spawn_node);
        }
        x->rollover_at = x->cct.count + d->epoch_nodes / 2;
    }
    vv_gov_free(d->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, keep, keep_bytes);
    vv_gov_free(d->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, map, map_bytes);
    return ok;
}
