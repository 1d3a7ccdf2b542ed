/*
 * Which ring an OS thread writes to: one for each engine that it serves, its own, found again by the engine's serial.
 */
#include "config.h"

#include "runtime/ring.h"

#include <stdlib.h>

#include "runtime/session.h"

/* The rings of an OS thread, by engine. Few. */
typedef struct {
    uint64_t serial; /* of the engine */
    vv_ring *ring;
    uint64_t claim;
} held_ring;

typedef struct {
    held_ring *held;
    size_t count, cap;
} held_rings;

static __thread held_rings mine;
static pthread_key_t exit_key;
static bool exit_key_made;

/* At the end of an OS thread. */
static void let_go(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < mine.count; i++) {
        vv_ring_move(mine.held[i].ring, mine.held[i].claim, VV_RING_ACTIVE, VV_RING_ORPHANED);
        vv_ring_unref(mine.held[i].ring);
    }
    free(mine.held);
    mine = (held_rings){NULL, 0, 0};
}

static void make_exit_key(void)
{
    exit_key_made = pthread_key_create(&exit_key, let_go) == 0;
}

/* Rings whose session or engine is gone go; the latter's serve somebody else by now, or will. */
static void prune(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < mine.count; i++)
        if (!vv_ring_is(mine.held[i].ring, mine.held[i].claim, VV_RING_ACTIVE))
            vv_ring_unref(mine.held[i].ring);
        else
            mine.held[kept++] = mine.held[i];
    mine.count = kept;
}

static bool hold_room(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_exit_key);
    prune();
    if (mine.count < mine.cap)
        return true;
    size_t cap = mine.cap ? mine.cap * 2 : 4;
    if (!exit_key_made || pthread_setspecific(exit_key, &mine) != 0)
        return false;
    held_ring *p = realloc(mine.held, cap * sizeof *p);
    if (!p)
        return false;
    mine.held = p;
    mine.cap = cap;
    return true;
}

static vv_ring *claim_pooled(varve_session *s, varve_engine *e)
{
    for (vv_ring *r = atomic_load_explicit(&s->rings, memory_order_acquire); r; r = r->next) {
        if (!vv_ring_claim(r))
            continue;
        atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
        r->engine = e;
        r->current = 0;
        return r;
    }
    return NULL;
}

/* Rings are listed oldest first, which keeps a parent's before those of the workers it spawns. */
static void list_ring(varve_session *s, vv_ring *r)
{
    vv_ring *last = atomic_load_explicit(&s->rings, memory_order_relaxed);
    while (last && last->next)
        last = last->next;
    if (last)
        atomic_store_explicit(&last->next, r, memory_order_release);
    else
        atomic_store_explicit(&s->rings, r, memory_order_release);
}

vv_ring *vv_session_ring(varve_session *s, varve_engine *e)
{
    for (size_t i = 0; i < mine.count; i++)
        if (mine.held[i].serial == e->serial)
            return mine.held[i].ring;
    if (!vv_session_active(s) || !hold_room())
        return NULL;
    pthread_mutex_lock(&s->lock);
    vv_ring *r = claim_pooled(s, e);
    if (!r) {
        r = vv_ring_new(&s->governor, &s->wake, e);
        if (r)
            list_ring(s, r);
    }
    pthread_mutex_unlock(&s->lock);
    if (r)
        mine.held[mine.count++] = (held_ring){e->serial, r, vv_ring_claim_of(r)};
    return r;
}
