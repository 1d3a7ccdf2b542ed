/* The call path: what the host calls for each call and each wait. */
#include "config.h"

#include "runtime/producer_inside.h"

enum { FIRST_MARKS = 4 };

uint64_t varve_ticks(void)
{
    return vv_ticks();
}

static void lose_awaits(varve_thread *t, vv_account why, uint64_t n)
{
    vv_account_for(t, why, n);
    atomic_fetch_add_explicit(&vv_session_of(t)->awaits_lost, n, memory_order_relaxed);
}

/* The words that must go before a record of t: who it is, and what was lost. */
static uint64_t prefix_words(const varve_thread *t, const vv_ring *r)
{
    uint64_t n = t->moved ? VV_WORDS_BIND : 0;
    if (t->lost_ends)
        return n + VV_WORDS_RESYNC;
    return n ? n : r->current == t->number ? 0 : VV_WORDS_SWITCH;
}

static void push_prefix(varve_thread *t, vv_ring *r)
{
    if (t->moved) {
        r->at[1] = t->begins;
        r->at[2] = (t->depth + t->lost_ends) | (t->started ? VV_REC_STARTED : 0);
        r->at[3] = (uint64_t)t->slot->index << 32 | (uint32_t)t->asides;
        r->at[4] = vv_ticks();
        vv_ring_commit(r, vv_word0(VV_REC_BIND, t->number), VV_WORDS_BIND);
        t->moved = false;
        r->current = t->number;
    }
    if (t->lost_ends) {
        r->at[1] = t->depth;
        vv_ring_commit(r, vv_word0(VV_REC_RESYNC, t->number), VV_WORDS_RESYNC);
        t->lost_ends = 0;
        r->current = t->number;
    }
    if (r->current != t->number) {
        vv_ring_commit(r, vv_word0(VV_REC_SWITCH, t->number), VV_WORDS_SWITCH);
        r->current = t->number;
    }
}

vv_ring *vv_make_room(varve_thread *t, uint64_t n)
{
    if (t->ring == &vv_no_ring) {
        vv_ring *r = vv_session_ring(vv_session_of(t), t->engine);
        if (!r)
            return NULL;
        t->ring = r;
    }
    vv_ring *r = t->ring;
    if (!vv_session_active(vv_session_of(t)) || !vv_ring_room(r, prefix_words(t, r) + n))
        return NULL;
    push_prefix(t, r);
    return r;
}

static void put_begin(varve_thread *t, vv_ring *r, uint32_t function, uint32_t site, uint64_t ticks)
{
    r->at[1] = (uint64_t)site << 32 | function;
    vv_ring_commit(r, vv_word0(VV_REC_BEGIN, ticks), VV_WORDS_BEGIN);
    t->depth++;
    t->begins++;
}

bool vv_is_root_call(const varve_thread *t)
{
    return t == &vv_session_of(t)->handles.roots[t->slot->index] && !t->begins && !t->lost_begins;
}

static VV_COLD void begin_slow(varve_thread *t, uint32_t function, uint32_t site, uint64_t ticks)
{
    if (!t->started)
        return;
    if (VV_UNLIKELY(vv_is_root_call(t))) {
        vv_begin_selected(t, function, site, ticks, varve_policy_flags(true, NULL), NULL);
        return;
    }
    vv_ring *r = t->skip ? NULL : vv_make_room(t, VV_WORDS_BEGIN);
    if (r) {
        put_begin(t, r, function, site, ticks);
        return;
    }
    vv_lose_begin(t);
}

static inline void begin(varve_thread *t, uint32_t function, uint32_t site, uint64_t ticks)
{
    vv_ring *r = t->ring;
    if (VV_UNLIKELY(r->current != t->number) || VV_UNLIKELY(r->end - r->at < VV_WORDS_BEGIN))
        begin_slow(t, function, site, ticks);
    else
        put_begin(t, r, function, site, ticks);
}

void varve_call_begin(varve_thread *thread, uint32_t function, uint32_t site)
{
    if (VV_LIKELY(thread))
        begin(thread, function, site, vv_ticks());
}

void varve_call_begin_at(varve_thread *thread, uint32_t function, uint32_t site, uint64_t ticks)
{
    if (VV_LIKELY(thread))
        begin(thread, function, site, ticks);
}

/* What the end of a marked call would have told. That of the span is missed by the consumer, when the resync comes. */
static void lose_end(varve_thread *t, const vv_mark *m, unsigned status)
{
    if (m->await_count)
        lose_awaits(t, VV_ACCOUNT_AWAIT_LOST_TRANSPORT, m->await_count);
    if (status == VARVE_CALL_ERRORED && m->linked)
        vv_lose_link(t);
}

static void pop_mark(varve_thread *t)
{
    t->mark_count--;
    t->mark_depth = t->mark_count ? t->marks[t->mark_count - 1].depth : 0;
}

VV_COLD void vv_end_slow(varve_thread *t, unsigned status, uint64_t ticks)
{
    if (t->skip) {
        t->skip -= !(t->muted && t->skip == 1);
        return;
    }
    if (!t->depth)
        return;
    vv_mark *m = vv_mark_top(t);
    if (m && m->selected)
        vv_end_selected(t, m, status);
    bool awaited = m && (m->await_count || m->await_ns);
    uint64_t words = awaited ? VV_WORDS_AWAITED_END : VV_WORDS_END;
    vv_ring *r = vv_make_room(t, words);
    t->depth--;
    if (r && awaited) {
        r->at[1] = m->await_ns;
        r->at[2] = m->await_count;
        vv_ring_commit(r, vv_word0(VV_REC_AWAITED_END + status, ticks), words);
    } else if (r) {
        vv_ring_commit(r, vv_word0(VV_REC_END + status, ticks), words);
    } else {
        t->lost_ends++;
        vv_count_loss(t, 1);
        if (m)
            lose_end(t, m, status);
        vv_leave_plain(t);
    }
    if (m)
        pop_mark(t);
}

static inline void end(varve_thread *t, unsigned status, uint64_t ticks)
{
    vv_ring *r = t->ring;
    /* At depth 0 the last test holds too. */
    if (VV_UNLIKELY(r->current != t->number) || VV_UNLIKELY(r->end == r->at) ||
        VV_UNLIKELY(t->depth == t->mark_depth)) {
        vv_end_slow(t, status & 3, ticks);
        return;
    }
    vv_ring_commit(r, vv_word0(VV_REC_END + (status & 3), ticks), VV_WORDS_END);
    t->depth--;
}

void varve_call_end(varve_thread *thread, varve_call_status status)
{
    if (VV_LIKELY(thread))
        end(thread, status, vv_ticks());
}

void varve_call_end_at(varve_thread *thread, varve_call_status status, uint64_t ticks)
{
    if (VV_LIKELY(thread))
        end(thread, status, ticks);
}

void varve_await_begin(varve_thread *thread, uint64_t ticks)
{
    if (!thread || thread->awaiting)
        return;
    thread->awaiting = true;
    thread->await_from = ticks;
}

bool vv_mark_room(varve_thread *t, bool manual)
{
    if (t->mark_count < t->mark_cap)
        return true;
    uint32_t cap = t->mark_cap ? t->mark_cap * 2 : FIRST_MARKS;
    vv_mark *p = vv_gov_grow_any(&vv_session_of(t)->governor, &t->mark_pool, manual, VV_OWN_CALLS, t->marks,
                                 t->mark_cap * sizeof *p, cap * sizeof *p);
    if (!p)
        return false;
    t->marks = p;
    t->mark_cap = cap;
    return true;
}

/* The mark of the innermost open call, made where there is none; NULL: no memory. */
static vv_mark *mark(varve_thread *t)
{
    vv_mark *m = vv_mark_top(t);
    return m || !vv_mark_room(t, false) ? m : vv_mark_push(t);
}

void varve_await_end(varve_thread *thread, uint64_t ticks)
{
    varve_thread *t = thread;
    if (!t || !t->awaiting)
        return;
    t->awaiting = false;
    varve_session *s = vv_session_of(t);
    if (!varve_thread_depth(t) || !vv_session_active(s))
        return;
    t->suspensions++;
    if (t->skip) {
        lose_awaits(t, VV_ACCOUNT_AWAIT_LOST_TRANSPORT, 1);
        return;
    }
    if (VV_UNLIKELY(!vv_clock_is_ready(&s->clock)))
        vv_clock_calibrate(&s->clock);
    uint64_t from = vv_clock_ns(&s->clock, t->await_from), to = vv_clock_ns(&s->clock, ticks);
    if (to < from) {
        lose_awaits(t, VV_ACCOUNT_AWAIT_LOST_CLOCK, 1);
        return;
    }
    vv_mark *m = mark(t);
    if (!m) {
        lose_awaits(t, VV_ACCOUNT_AWAIT_LOST_MEMORY, 1);
    } else if (to - from > UINT64_MAX - m->await_ns) {
        m->await_ns = UINT64_MAX;
        lose_awaits(t, VV_ACCOUNT_AWAIT_LOST_SATURATED, 1);
    } else {
        m->await_ns += to - from;
        m->await_count++;
    }
}

