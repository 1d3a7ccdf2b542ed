#include "config.h"

#include "runtime/joins.h"

#include "runtime/session.h"

enum { SHARE = 4 }; /* of the General pool */

uint64_t vv_joins_limit(const varve_session *s)
{
    return s->sizing.general / SHARE / VV_SEGMENT_BYTES;
}

void vv_joins_note(vv_joins *j, vv_ring *r, vv_decoded got)
{
    r->blocked = got == VV_DECODED_BLOCKED;
    if (j->open && r->doubt == j->doubt && (got == VV_DECODED_ALL || r->retired > r->doubt_snap))
        r->doubt = 0;
}

static uint64_t rolled(const vv_ring *r)
{
    return atomic_load_explicit(&r->rolled, memory_order_acquire);
}

static void open_doubt(varve_session *s)
{
    vv_joins *j = &s->consumer.joins;
    j->open = true;
    j->doubt++;
    for (vv_ring *r = atomic_load_explicit(&s->rings, memory_order_acquire); r; r = r->next) {
        r->doubt = j->doubt;
        r->doubt_snap = rolled(r);
        r->doubt_from = r->blocked ? r->from : NULL;
    }
}

/* More waits than may, or a ring was refused memory while something waits. */
static bool is_pressed(varve_session *s, uint64_t waiting)
{
    uint64_t denials = atomic_load_explicit(&s->governor.denials[VV_POOL_GENERAL][VV_OWN_TRANSPORT],
                                            memory_order_relaxed);
    bool denied = denials != s->consumer.joins.denials;
    s->consumer.joins.denials = denials;
    return waiting > vv_joins_limit(s) || (denied && waiting);
}

vv_ring *vv_joins_pick(varve_session *s, vv_force *ret_why)
{
    vv_joins *j = &s->consumer.joins;
    vv_ring *oldest = NULL;
    uint64_t waiting = 0;
    bool reading = false, moved = false;
    for (vv_ring *r = atomic_load_explicit(&s->rings, memory_order_acquire); r; r = r->next) {
        bool doubted = j->open && r->doubt == j->doubt;
        reading = reading || (doubted && !r->blocked);
        moved = moved || (doubted && r->blocked && r->from != r->doubt_from);
        if (!r->blocked)
            continue;
        waiting += rolled(r) - r->retired;
        if (!oldest || r->blocked_ticks < oldest->blocked_ticks)
            oldest = r;
    }
    if (!oldest) {
        j->open = false;
        return NULL;
    }
    if (is_pressed(s, waiting)) {
        j->open = false;
        *ret_why = VV_FORCE_PRESSURE;
        return oldest;
    }
    if (!j->open || moved)
        open_doubt(s);
    else if (!reading) {
        j->open = false;
        *ret_why = VV_FORCE_LOST;
        return oldest;
    }
    return NULL;
}
