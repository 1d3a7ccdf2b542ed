/*
 * The call path: what the host calls for each call, thread and execution.
 *
 * A push that is refused loses its record, counted, and keeps both sides in step: a refused begin drops its whole
 * subtree (skip counts its open calls), a refused end is told later by a resync record. Whatever is not the plain case
 * makes the ring's current thread differ from this one, so the plain case has one test for all of them.
 */
#include "config.h"

#include "runtime/varve.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/process.h"
#include "runtime/record.h"
#include "runtime/session.h"

typedef struct {
    uint64_t depth, ns, count;
} await_entry;

struct varve_thread {
    vv_ring *ring;
    uint64_t number;
    uint64_t depth;       /* open calls that were recorded */
    uint64_t await_depth; /* of the innermost entry below, 0 = none */
    uint64_t begins;
    uint64_t skip;      /* open calls that were not recorded, the innermost ones */
    uint64_t lost_ends; /* ends that the consumer has not heard of */
    uint64_t lost_begins, suspensions;
    uint64_t spawns;
    varve_engine *engine;
    vv_slot *slot;
    uint32_t generation; /* of the slot */
    await_entry *awaits;
    size_t await_count, await_cap;
    uint64_t await_from;
    bool awaiting, started, muted, moved;
    varve_thread *next_free;
};

enum { SLAB_HANDLES = 63, FIRST_AWAITS = 16 };

/* The handle of a root's thread is its slot's, part of what a slot is charged: an admission allocates nothing. Other
 * handles come in slabs that the session frees as a whole, since a host may leave threads open. */
struct vv_handle_slab {
    struct vv_handle_slab *next;
    varve_thread handles[SLAB_HANDLES];
};

uint64_t varve_ticks(void)
{
    return vv_ticks();
}

static varve_session *session_of(const varve_thread *t)
{
    return t->engine->session;
}

static void count_loss(varve_thread *t, uint64_t n)
{
    atomic_fetch_add_explicit(&t->slot->lost, n, memory_order_relaxed);
    atomic_fetch_add_explicit(&session_of(t)->records_lost, n, memory_order_relaxed);
}

static void account(varve_thread *t, vv_account what, uint64_t n)
{
    if (n)
        atomic_fetch_add_explicit(&t->slot->accounts[what], n, memory_order_relaxed);
}

static void lose_awaits(varve_thread *t, vv_account why, uint64_t n)
{
    account(t, why, n);
    atomic_fetch_add_explicit(&session_of(t)->awaits_lost, n, memory_order_relaxed);
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
        r->at[3] = (uint64_t)t->slot->index << 32 | (uint32_t)t->spawns;
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

/* The ring, with room for n words of t behind whatever must go first (which is written), or NULL: refused. */
static vv_ring *make_room(varve_thread *t, uint64_t n)
{
    if (t->ring == &vv_no_ring) {
        vv_ring *r = vv_session_ring(session_of(t), t->engine);
        if (!r)
            return NULL;
        t->ring = r;
    }
    vv_ring *r = t->ring;
    if (!vv_session_active(session_of(t)) || !vv_ring_room(r, prefix_words(t, r) + n))
        return NULL;
    push_prefix(t, r);
    return r;
}

/* The next call on t's ring takes the slow path. */
static void leave_plain(varve_thread *t)
{
    if (t->ring->current == t->number)
        t->ring->current = 0;
}

static void put_begin(varve_thread *t, vv_ring *r, uint32_t function, uint32_t site, uint64_t ticks)
{
    r->at[1] = (uint64_t)site << 32 | function;
    vv_ring_commit(r, vv_word0(VV_REC_BEGIN, ticks), VV_WORDS_BEGIN);
    t->depth++;
    t->begins++;
}

static VV_COLD void begin_slow(varve_thread *t, uint32_t function, uint32_t site, uint64_t ticks)
{
    if (!t->started)
        return;
    vv_ring *r = t->skip ? NULL : make_room(t, VV_WORDS_BEGIN);
    if (r) {
        put_begin(t, r, function, site, ticks);
        return;
    }
    t->skip++;
    t->lost_begins++;
    count_loss(t, 1);
    leave_plain(t);
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

static VV_COLD void end_slow(varve_thread *t, unsigned status, uint64_t ticks)
{
    if (t->skip) {
        t->skip -= !(t->muted && t->skip == 1);
        return;
    }
    if (!t->depth)
        return;
    await_entry *a = t->await_depth == t->depth ? &t->awaits[t->await_count - 1] : NULL;
    uint64_t words = a ? VV_WORDS_AWAITED_END : VV_WORDS_END;
    vv_ring *r = make_room(t, words);
    t->depth--;
    if (r && a) {
        r->at[1] = a->ns;
        r->at[2] = a->count;
        vv_ring_commit(r, vv_word0(VV_REC_AWAITED_END + status, ticks), words);
    } else if (r) {
        vv_ring_commit(r, vv_word0(VV_REC_END + status, ticks), words);
    } else {
        t->lost_ends++;
        count_loss(t, 1);
        if (a)
            lose_awaits(t, VV_ACCOUNT_AWAIT_LOST_TRANSPORT, a->count);
        leave_plain(t);
    }
    if (a) {
        t->await_count--;
        t->await_depth = t->await_count ? t->awaits[t->await_count - 1].depth : 0;
    }
}

static inline void end(varve_thread *t, unsigned status, uint64_t ticks)
{
    vv_ring *r = t->ring;
    /* At depth 0 the last test holds too. */
    if (VV_UNLIKELY(r->current != t->number) || VV_UNLIKELY(r->end == r->at) ||
        VV_UNLIKELY(t->depth == t->await_depth)) {
        end_slow(t, status & 3, ticks);
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

/* The entry of the innermost open call; NULL: no memory. */
static await_entry *await_entry_of(varve_thread *t)
{
    if (t->await_depth == t->depth)
        return &t->awaits[t->await_count - 1];
    if (t->await_count == t->await_cap) {
        size_t cap = t->await_cap ? t->await_cap * 2 : FIRST_AWAITS;
        await_entry *p = vv_gov_grow(&session_of(t)->governor, VV_POOL_GENERAL, VV_OWN_CALLS, t->awaits,
                                     t->await_cap * sizeof *p, cap * sizeof *p);
        if (!p)
            return NULL;
        t->awaits = p;
        t->await_cap = cap;
    }
    await_entry *a = &t->awaits[t->await_count++];
    *a = (await_entry){.depth = t->depth};
    t->await_depth = t->depth;
    return a;
}

void varve_await_end(varve_thread *thread, uint64_t ticks)
{
    varve_thread *t = thread;
    if (!t || !t->awaiting)
        return;
    t->awaiting = false;
    varve_session *s = session_of(t);
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
    await_entry *a = await_entry_of(t);
    if (!a) {
        lose_awaits(t, VV_ACCOUNT_AWAIT_LOST_MEMORY, 1);
    } else if (to - from > UINT64_MAX - a->ns) {
        a->ns = UINT64_MAX;
        lose_awaits(t, VV_ACCOUNT_AWAIT_LOST_SATURATED, 1);
    } else {
        a->ns += to - from;
        a->count++;
    }
}

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
    *t = (varve_thread){.ring = &vv_no_ring, .engine = e, .slot = slot, .generation = generation, .number = number};
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

static void free_awaits(varve_session *s, varve_thread *t)
{
    vv_gov_free(&s->governor, VV_POOL_GENERAL, VV_OWN_CALLS, t->awaits, t->await_cap * sizeof *t->awaits);
    t->awaits = NULL;
}

static void thread_free(varve_thread *t)
{
    varve_session *s = session_of(t);
    vv_handles *h = &s->handles;
    free_awaits(s, t);
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
            free_awaits(s, &slab->handles[i]);
        vv_gov_free(&s->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, slab, sizeof *slab);
    }
    for (uint32_t i = 0; i < s->registry.count; i++)
        free_awaits(s, &s->handles.roots[i]);
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
    count_loss(t, 1);
}

varve_thread *varve_thread_spawn(varve_thread *parent, unsigned up, uint32_t site, const char *name, size_t n)
{
    varve_thread *p = parent;
    if (!p || !p->started || !vv_session_active(session_of(p)))
        return NULL;
    varve_session *s = session_of(p);
    if (!vv_slot_acquire(&s->registry, p->slot, p->generation, vv_ticks())) {
        atomic_fetch_add_explicit(&s->leases_refused, 1, memory_order_relaxed);
        vv_count(VV_COUNT_THREAD_LEASE_UNAVAILABLE, 1);
        return NULL;
    }
    varve_thread *t = thread_new(p->engine, p->slot, p->generation);
    if (!t) {
        count_loss(p, 1);
        vv_slot_release(&s->registry, p->slot, vv_ticks()); /* never the last: p holds its own */
        return NULL;
    }
    n = name ? vv_utf8_cut((vv_str){name, n}, VV_NAME_MAX) : 0;
    vv_ring *r = p->skip ? NULL : make_room(p, VV_WORDS_SPAWN + (n + 7) / 8);
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
    p->spawns++;
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
    bool ok = vv_session_active(session_of(t)) && vv_ring_room(r, VV_WORDS_THREAD_START);
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
    account(t, VV_ACCOUNT_CALLS_ATTEMPTED, t->begins + t->lost_begins);
    account(t, VV_ACCOUNT_CALLS_LOST_TRANSPORT, t->lost_begins);
    account(t, VV_ACCOUNT_AWAIT_STARTED, t->suspensions);
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
    varve_thread_end_at(thread, status, vv_ticks());
}

void varve_thread_end_at(varve_thread *thread, varve_thread_status status, uint64_t ticks)
{
    static const uint8_t call_status[] = {VARVE_CALL_OK, VARVE_CALL_CANCELLED, VARVE_CALL_ERRORED};
    varve_thread *t = thread;
    if (!t)
        return;
    varve_session *s = session_of(t);
    if (!vv_session_active(s))
        return;
    unsigned code = (unsigned)status < VV_ARRAY_LEN(call_status) ? (unsigned)status : VARVE_THREAD_ERRORED;
    varve_await_end(t, ticks);
    if (!t->muted) {
        t->skip = 0;
        t->moved = t->moved || !t->started; /* the spawn is on the parent's ring */
        /* The consumer ends what is open, but only the ends from here know what their calls awaited. */
        while (t->await_count)
            end_slow(t, call_status[code], ticks);
        vv_ring *r = make_room(t, VV_WORDS_THREAD_END);
        if (r)
            vv_ring_commit(r, vv_word0(VV_REC_THREAD_END + code, ticks), VV_WORDS_THREAD_END);
        else
            count_loss(t, 1);
    }
    vv_slot *slot = t->slot;
    settle_accounts(t);
    leave_plain(t);
    thread_free(t);
    if (vv_slot_release(&s->registry, slot, ticks))
        vv_wake_up(&s->wake);
}

void varve_thread_bind(varve_thread *thread)
{
    varve_thread *t = thread;
    if (!t || !vv_session_active(session_of(t)))
        return;
    vv_ring *r = vv_session_ring(session_of(t), t->engine);
    r = r ? r : &vv_no_ring;
    if (r == t->ring)
        return;
    t->moved = true;
    t->ring = r;
    leave_plain(t); /* it may have been here before */
}

uint64_t varve_thread_depth(const varve_thread *thread)
{
    return thread ? thread->depth + thread->skip - thread->muted : 0;
}
