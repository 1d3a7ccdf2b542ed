/* Executions and logical threads: what the host calls at their begins and ends. */
#include "config.h"

#include "runtime/producer_inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/process.h"

enum { SLAB_HANDLES = 63 };

/* The handle of a root's thread is its slot's, part of what a slot is charged: an admission allocates nothing. Other
 * handles come in slabs that the session frees as a whole, since a host may leave threads open. */
struct vv_handle_slab {
    struct vv_handle_slab *next;
    varve_thread handles[SLAB_HANDLES];
};

static bool add_slab(varve_session *s)
{
    vv_handles *h = &s->handles;
    struct vv_handle_slab *slab = vv_gov_alloc(&s->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, sizeof *slab);
    if (!slab)
        return false;
    slab->next = h->slabs;
    h->slabs = slab;
    for (unsigned i = SLAB_HANDLES; i-- > 0;) {
        slab->handles[i].next_free = h->free;
        h->free = &slab->handles[i];
    }
    return true;
}

_Static_assert(sizeof(varve_thread) + sizeof(vv_slot) <= VV_SLOT_CHARGE / 4, "a slot's charge holds its handle");

bool vv_handles_init(varve_session *s, uint32_t slots)
{
    s->handles.roots = calloc(slots, sizeof *s->handles.roots);
    pthread_mutex_init(&s->handles.lock, NULL);
    return s->handles.roots;
}

static varve_thread *thread_init(varve_thread *t, varve_engine *e, vv_slot *slot, uint32_t generation, uint64_t number)
{
    *t = (varve_thread){.ring = &vv_no_ring, .mark_pool = VV_POOL_GENERAL, .engine = e, .slot = slot,
                        .generation = generation, .number = number};
    return t;
}

static varve_thread *thread_new(varve_engine *e, vv_slot *slot, uint32_t generation)
{
    varve_session *s = e->session;
    vv_handles *h = &s->handles;
    pthread_mutex_lock(&h->lock);
    varve_thread *t = h->free || add_slab(s) ? h->free : NULL;
    if (t)
        h->free = t->next_free;
    pthread_mutex_unlock(&h->lock);
    if (!t)
        return NULL;
    uint64_t number = atomic_fetch_add_explicit(&e->next_thread, 1, memory_order_relaxed);
    return thread_init(t, e, slot, generation, number);
}

void vv_marks_free(varve_session *s, varve_thread *t)
{
    varve_capture *c;
    vv_body body;
    for (uint32_t i = 0; i < t->mark_count; i++)
        if ((c = t->marks[i].output) && vv_capture_take(c, &body) < 0)
            vv_body_free(&s->governor, &body);
    vv_gov_free(&s->governor, t->mark_pool, VV_OWN_CALLS, t->marks, t->mark_cap * sizeof *t->marks);
    t->marks = NULL;
    t->mark_count = 0;
}

static void thread_free(varve_thread *t)
{
    varve_session *s = vv_session_of(t);
    vv_handles *h = &s->handles;
    vv_marks_free(s, t);
    bool root = t == &h->roots[t->slot->index];
    t->slot = NULL;
    if (root)
        return;
    pthread_mutex_lock(&h->lock);
    t->next_free = h->free;
    h->free = t;
    pthread_mutex_unlock(&h->lock);
}

void vv_handles_done(varve_session *s)
{
    for (struct vv_handle_slab *slab = s->handles.slabs, *next; slab; slab = next) {
        next = slab->next;
        for (unsigned i = 0; i < SLAB_HANDLES; i++)
            vv_marks_free(s, &slab->handles[i]);
        vv_gov_free(&s->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, slab, sizeof *slab);
    }
    for (uint32_t i = 0; i < s->registry.count; i++)
        vv_marks_free(s, &s->handles.roots[i]);
    free(s->handles.roots);
    pthread_mutex_destroy(&s->handles.lock);
}

/* A root is named by its slot's address and, in the bits that an aligned user address leaves, its generation: it is
 * never followed before the generation was found to be current, so a second end after the execution is over ends
 * nothing. */
enum { HANDLE_HIGH = 48, HANDLE_LOW_BITS = 8 };
_Static_assert(sizeof(uintptr_t) == 8 && VV_SLOT_ALIGN == 1 << HANDLE_LOW_BITS &&
                   VV_GENERATION_MAX < 1 << (HANDLE_LOW_BITS + 64 - HANDLE_HIGH),
               "root handles keep a generation in the address");

static varve_root *root_handle(const vv_slot *slot)
{
    uintptr_t generation = vv_slot_generation(slot);
    return (varve_root *)((uintptr_t)slot | generation >> HANDLE_LOW_BITS << HANDLE_HIGH |
                          (generation & (VV_SLOT_ALIGN - 1)));
}

static vv_slot *root_slot(const varve_root *root, uint32_t *ret_generation)
{
    uintptr_t low = (uintptr_t)root & (VV_SLOT_ALIGN - 1), high = (uintptr_t)root >> HANDLE_HIGH;
    *ret_generation = (uint32_t)(high << HANDLE_LOW_BITS | low);
    return (vv_slot *)((uintptr_t)root & (((uintptr_t)1 << HANDLE_HIGH) - VV_SLOT_ALIGN));
}

vv_slot *vv_root_current(const varve_root *root)
{
    uint32_t generation;
    vv_slot *slot = root ? root_slot(root, &generation) : NULL;
    return slot && vv_slot_generation(slot) == generation ? slot : NULL;
}

/* 16 bytes nobody else has, without a system call: a counter under the session's random seed. */
static void new_runtime_id(varve_session *s, uint8_t out[16])
{
    uint64_t n = atomic_fetch_add_explicit(&s->runtime_ids, 1, memory_order_relaxed);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t v = s->runtime_seed[i] + n * 0x9e3779b97f4a7c15ULL;
        v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ULL;
        v = (v ^ v >> 27) * 0x94d049bb133111ebULL;
        vv_put64(out + 8 * i, v ^ v >> 31);
    }
    out[6] = (uint8_t)((out[6] & 0x0f) | 0x40);
    out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
}

varve_root *varve_root_begin(varve_engine *engine, const uint8_t *runtime_id, varve_thread **ret_thread)
{
    if (!ret_thread)
        return NULL;
    *ret_thread = NULL;
    if (!engine || !vv_session_active(engine->session))
        return NULL;
    varve_session *s = engine->session;
    uint64_t ticks = vv_ticks();
    vv_slot *slot = vv_wstore_takes_roots(s->store) ? vv_slot_reserve(&s->registry) : NULL;
    if (!slot) {
        atomic_fetch_add_explicit(&s->roots_refused, 1, memory_order_relaxed);
        if (vv_wstore_takes_roots(s->store))
            vv_count(VV_COUNT_EXECUTION_STATE_UNAVAILABLE, 1);
        return NULL;
    }
    atomic_store_explicit(&slot->engine, engine, memory_order_relaxed);
    slot->thread = atomic_fetch_add_explicit(&engine->next_thread, 1, memory_order_relaxed);
    slot->admitted_ticks = ticks;
    if (runtime_id)
        memcpy(slot->runtime_id.b, runtime_id, sizeof slot->runtime_id.b);
    else
        new_runtime_id(s, slot->runtime_id.b);
    varve_thread *t = thread_init(&s->handles.roots[slot->index], engine, slot, vv_slot_generation(slot), slot->thread);
    t->started = true; /* the slot tells the consumer */
    t->moved = true;
    vv_slot_admit(&s->registry, slot);
    atomic_fetch_add_explicit(&s->roots_begun, 1, memory_order_relaxed);
    *ret_thread = t;
    return root_handle(slot);
}

void varve_root_end(varve_root *root, varve_root_status status)
{
    if (!root)
        return;
    uint32_t generation;
    vv_slot *slot = root_slot(root, &generation);
    varve_session *s = slot->session;
    bool last;
    if (vv_session_active(s) &&
        vv_slot_return(&s->registry, slot, generation, (uint8_t)status, vv_ticks(), &last)) {
        if (status == VARVE_ABANDONED)
            vv_root_abandoned(s);
        if (last)
            vv_wake_up(&s->wake);
    }
}

/* A child without a record: it holds the execution open, and all that is below it is dropped. */
static void mute(varve_thread *t)
{
    t->muted = true;
    t->skip = 1;
    vv_count_loss(t, 1);
}

varve_thread *varve_thread_spawn(varve_thread *parent, unsigned up, uint32_t site, const char *name, size_t n)
{
    varve_thread *p = parent;
    if (!p || !p->started || !vv_session_active(vv_session_of(p)))
        return NULL;
    varve_session *s = vv_session_of(p);
    if (!vv_slot_acquire(&s->registry, p->slot, p->generation, vv_ticks())) {
        atomic_fetch_add_explicit(&s->leases_refused, 1, memory_order_relaxed);
        vv_count(VV_COUNT_THREAD_LEASE_UNAVAILABLE, 1);
        return NULL;
    }
    varve_thread *t = thread_new(p->engine, p->slot, p->generation);
    if (!t) {
        vv_count_loss(p, 1);
        vv_slot_release(&s->registry, p->slot, vv_ticks()); /* never the last: p holds its own */
        return NULL;
    }
    n = name ? vv_utf8_cut((vv_str){name, n}, VV_NAME_MAX) : 0;
    vv_ring *r = p->skip ? NULL : vv_make_room(p, VV_WORDS_SPAWN + (n + 7) / 8);
    if (!r) {
        mute(t);
        return t;
    }
    r->at[1] = (uint64_t)up << 32 | site;
    r->at[2] = n;
    r->at[3] = 0;
    if (n)
        memcpy(r->at + VV_WORDS_SPAWN, name, n);
    vv_ring_commit(r, vv_word0(VV_REC_SPAWN, t->number), VV_WORDS_SPAWN + (n + 7) / 8);
    p->asides++;
    if (vv_is_root_call(p))
        vv_leave_plain(p); /* its first call is selected, on the slow path */
    return t;
}

void varve_thread_start(varve_thread *thread, uint64_t ticks)
{
    varve_thread *t = thread;
    if (!t || t->started)
        return;
    t->started = true;
    if (t->muted)
        return;
    varve_thread_bind(t);
    t->moved = false; /* the start says all that a bind would */
    vv_ring *r = t->ring;
    bool ok = vv_session_active(vv_session_of(t)) && vv_ring_room(r, VV_WORDS_THREAD_START);
    if (!ok) {
        mute(t); /* without its start none of its calls has a place */
        return;
    }
    r->at[1] = t->number;
    r->at[2] = t->slot->index;
    vv_ring_commit(r, vv_word0(VV_REC_THREAD_START, ticks), VV_WORDS_THREAD_START);
    r->current = t->number;
}

static void settle_accounts(varve_thread *t)
{
    vv_account_for(t, VV_ACCOUNT_CALLS_ATTEMPTED, t->begins + t->lost_begins);
    vv_account_for(t, VV_ACCOUNT_CALLS_LOST_TRANSPORT, t->lost_begins);
    vv_account_for(t, VV_ACCOUNT_AWAIT_STARTED, t->suspensions);
}

void vv_handles_settle(varve_session *s)
{
    for (uint32_t i = 0; i < s->registry.count; i++)
        if (s->handles.roots[i].slot)
            settle_accounts(&s->handles.roots[i]);
    for (struct vv_handle_slab *slab = s->handles.slabs; slab; slab = slab->next)
        for (unsigned i = 0; i < SLAB_HANDLES; i++)
            if (slab->handles[i].slot)
                settle_accounts(&slab->handles[i]);
}

void varve_thread_end(varve_thread *thread, varve_thread_status status)
{
    if (thread)
        varve_thread_end_at(thread, status, vv_ticks());
}

void varve_thread_end_at(varve_thread *thread, varve_thread_status status, uint64_t ticks)
{
    static const uint8_t call_status[] = {VARVE_CALL_OK, VARVE_CALL_CANCELLED, VARVE_CALL_ERRORED};
    varve_thread *t = thread;
    if (!t)
        return;
    varve_session *s = vv_session_of(t);
    if (!vv_session_active(s))
        return;
    unsigned code = (unsigned)status < VV_ARRAY_LEN(call_status) ? (unsigned)status : VARVE_THREAD_ERRORED;
    varve_await_end(t, ticks);
    if (!t->muted) {
        t->skip = 0;
        t->moved = t->moved || !t->started; /* the spawn is on the parent's ring */
        /* The consumer ends what is open, but only the ends from here know of what is marked. */
        while (t->mark_count)
            vv_end_slow(t, call_status[code], ticks);
        vv_ring *r = vv_make_room(t, VV_WORDS_THREAD_END);
        if (r)
            vv_ring_commit(r, vv_word0(VV_REC_THREAD_END + code, ticks), VV_WORDS_THREAD_END);
        else
            vv_count_loss(t, 1);
    }
    vv_slot *slot = t->slot;
    settle_accounts(t);
    vv_leave_plain(t);
    thread_free(t);
    if (vv_slot_release(&s->registry, slot, ticks))
        vv_wake_up(&s->wake);
}

void varve_thread_bind(varve_thread *thread)
{
    varve_thread *t = thread;
    if (!t || !vv_session_active(vv_session_of(t)))
        return;
    vv_ring *r = vv_session_ring(vv_session_of(t), t->engine);
    r = r ? r : &vv_no_ring;
    if (r == t->ring)
        return;
    t->moved = true;
    t->ring = r;
    vv_leave_plain(t); /* it may have been here before */
}

uint64_t varve_thread_depth(const varve_thread *thread)
{
    return thread ? thread->depth + thread->skip - thread->muted : 0;
}
