/*
 * The end of engines that their hosts have closed. By the consumer, after a publication: an engine goes once it is told
 * (or nothing can be told any more), and neither an execution nor a ring's record refers to it. A slot names its engine
 * from before it is admitted until it is free, so that none can appear meanwhile.
 */
#include "config.h"

#include "runtime/session.h"

static bool is_used(varve_session *s, const varve_engine *e)
{
    for (const vv_exec *x = s->decoder.execs; x; x = x->next)
        if (x->engine == e)
            return true;
    for (uint32_t i = 0; i < s->registry.count; i++) {
        const vv_slot *slot = &s->registry.slots[i];
        vv_phase phase = vv_slot_phase(slot);
        bool over = phase == VV_PHASE_FREE || phase == VV_PHASE_RELEASED;
        if (!over && atomic_load_explicit(&slot->engine, memory_order_relaxed) == e)
            return true;
    }
    return false;
}

/* No logical thread of it is left, so no OS thread writes to its rings any more: they are free for other engines.
 * False: one still holds records, and the rest waits for it. */
static bool pool_rings(varve_session *s, const varve_engine *e)
{
    for (vv_ring *r = atomic_load_explicit(&s->rings, memory_order_acquire); r; r = r->next) {
        uint64_t claim = vv_ring_claim_of(r), retired;
        if (!vv_ring_is(r, claim, VV_RING_ACTIVE) || r->engine != e)
            continue;
        if (vv_ring_peek(r, &retired))
            return false;
        vv_decoder_leave(r);
        vv_ring_move(r, claim, VV_RING_ACTIVE, VV_RING_POOLED);
    }
    return true;
}

static void unlist(varve_session *s, varve_engine *before, varve_engine *e)
{
    varve_engine *next = atomic_load_explicit(&e->next, memory_order_relaxed);
    atomic_store_explicit(before ? &before->next : &s->engines, next, memory_order_release);
    if (s->last_engine == e)
        s->last_engine = before;
}

bool vv_engines_retire(varve_session *s)
{
    if (!atomic_load(&s->engines_closed) || vv_wstore_is_indeterminate(s->store))
        return false;
    bool latched = vv_wstore_latch(s->store) != VV_LATCH_OPEN, any = false;
    pthread_mutex_lock(&s->lock);
    for (varve_engine *e = atomic_load(&s->engines), *before = NULL, *next; e; e = next) {
        next = atomic_load(&e->next);
        bool over = atomic_load(&e->closed) && (latched || e->announced) && !is_used(s, e);
        if (!over || !pool_rings(s, e)) {
            before = e;
            continue;
        }
        unlist(s, before, e);
        vv_lthread_map_done(e, &s->governor);
        vv_engine_free(e, &s->governor);
        atomic_fetch_sub(&s->engines_closed, 1);
        any = true;
    }
    pthread_mutex_unlock(&s->lock);
    return any;
}
