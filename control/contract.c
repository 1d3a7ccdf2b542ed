#include "config.h"

#include "control/contract.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__thread vv_self_state vv_self __attribute__((tls_model("initial-exec")));

static _Atomic(varve_violation_fn *) handler;
static _Atomic(void *) handler_me;

static void say(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n;
}

/* The default of a build that exists to find these. */
static void stop(const varve_violation *v)
{
    say("varve: contract violation: ");
    say(v->what);
    say(" inside of ");
    say(v->inside_of);
    say("\n");
    abort();
}

bool varve_on_violation(varve_violation_fn *fn, void *me)
{
    atomic_store(&handler_me, me);
    atomic_store(&handler, fn);
    return VV_CONTRACTS;
}

void vv_violation(uint32_t item, const char *what, const char *inside_of)
{
    if (!VV_CONTRACTS || vv_self.accepted & item)
        return;
    varve_violation v = {item, what, inside_of};
    varve_violation_fn *fn = atomic_load(&handler);
    if (fn)
        fn(atomic_load(&handler_me), &v);
    else
        stop(&v);
}

uint32_t varve_violation_accepted(uint32_t items, const char *reason VV_UNUSED)
{
    uint32_t before = vv_self.accepted;
    vv_self.accepted |= items;
    return before;
}

void varve_violation_accepted_end(const uint32_t *before)
{
    vv_self.accepted = *before;
}

/* What forbids the item here: a region of the thread, else the frame on top. NULL: nothing. */
static const char *forbids(uint32_t item)
{
    const vv_self_state *s = &vv_self;
    if (item == VARVE_ITEM_MODE && s->borrow)
        return "a borrow";
    if (item == VARVE_ITEM_SAFEPOINT && s->no_safepoint)
        return "a no-safepoint region";
    if (item == VARVE_ITEM_LOCK && s->no_lock)
        return "a no-lock region";
    if (item == VARVE_ITEM_ALLOC && s->no_alloc)
        return "a no-alloc region";
    if ((item == VARVE_ITEM_LOCK || item == VARVE_ITEM_ALLOC) && s->nosuspend)
        return "a no-suspend region";
    return s->top && !(s->top->allows & item) ? s->top->name : NULL;
}

static void need(uint32_t item, const char *what)
{
    const char *what_forbids = VV_CONTRACTS ? forbids(item) : NULL;
    if (what_forbids)
        vv_violation(item, what, what_forbids);
}

void varve_nosuspend_enter(void)
{
    vv_self.nosuspend++;
}

void varve_nosuspend_leave(void)
{
    vv_self.nosuspend--;
}

void varve_borrow_enter(void)
{
    vv_self.borrow++;
}

void varve_borrow_leave(void)
{
    vv_self.borrow--;
}

void varve_no_safepoint_enter(void)
{
    vv_self.no_safepoint++;
}

void varve_no_safepoint_leave(void)
{
    vv_self.no_safepoint--;
}

void varve_no_lock_enter(void)
{
    vv_self.no_lock++;
}

void varve_no_lock_leave(void)
{
    vv_self.no_lock--;
}

void varve_no_alloc_enter(void)
{
    vv_self.no_alloc++;
}

void varve_no_alloc_leave(void)
{
    vv_self.no_alloc--;
}

void varve_lock_taken(uint32_t rank)
{
    vv_self_state *s = &vv_self;
    need(VARVE_ITEM_LOCK, "a lock");
    uint32_t known = s->locks < VV_RANKS ? s->locks : VV_RANKS;
    for (uint32_t i = 0; VV_CONTRACTS && i < known; i++)
        if (s->ranks[i] >= rank) {
            vv_violation(VARVE_ITEM_HOST_LOCKS, "a lock", "one of the same or a higher rank");
            break;
        }
    if (s->locks < VV_RANKS)
        s->ranks[s->locks] = rank;
    s->locks++;
}

/* Locks may be released in any order. */
void varve_lock_released(uint32_t rank)
{
    vv_self_state *s = &vv_self;
    if (!s->locks)
        return;
    uint32_t known = s->locks < VV_RANKS ? s->locks : VV_RANKS, i = known;
    while (i > 0 && s->ranks[i - 1] != rank)
        i--;
    for (; i > 0 && i < known; i++)
        s->ranks[i - 1] = s->ranks[i];
    s->locks--;
}

void varve_safepoint(void)
{
    need(VARVE_ITEM_SAFEPOINT, "a safepoint");
    need(VARVE_ITEM_MODE, "a safepoint");
}

void varve_allocating(void)
{
    need(VARVE_ITEM_ALLOC, "an allocation");
}

#if VV_CONTRACTS

/* Threads whose thread_destroyed was raised, by a hash of their id: a newer one replaces another, which is then no
 * longer noticed. */
enum { DESTROYED = 1024 };
static struct {
    _Atomic varve_thread_id id;
    _Atomic uint32_t listening; /* when that was */
} destroyed[DESTROYED];
/* Grows where somebody wants to hear of threads after a time in which nobody did: an id may have come back unheard. */
static _Atomic uint32_t listening;

void vv_thread_listening(void)
{
    atomic_fetch_add(&listening, 1);
}

void vv_thread_check(vv_event e, varve_thread_id id)
{
    const vv_event_row *row = &vv_event_rows[e];
    if (!(row->flags & VARVE_FOR_THREAD))
        id = vv_self.registered ? vv_self.id : 0;
    if (!id)
        return;
    __typeof__(&destroyed[0]) gone = &destroyed[(id * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
    if (e == VV_EVENT_thread_created) {
        varve_thread_id same = id;
        atomic_compare_exchange_strong(&gone->id, &same, 0);
        return;
    }
    if (atomic_load(&gone->id) == id && atomic_load(&gone->listening) == atomic_load(&listening))
        vv_violation(VARVE_ITEM_THREAD, row->name, "a thread that was destroyed");
    if (e == VV_EVENT_thread_destroyed) {
        atomic_store(&gone->listening, atomic_load(&listening));
        atomic_store(&gone->id, id);
    }
}

static const uint32_t all_items = VARVE_ITEM_SAFEPOINT | VARVE_ITEM_MODE | VARVE_ITEM_LOCK | VARVE_ITEM_ALLOC;

static void push(vv_frame *f, const char *name, uint32_t needs)
{
    static const uint32_t items[] = {VARVE_ITEM_SAFEPOINT, VARVE_ITEM_MODE, VARVE_ITEM_LOCK, VARVE_ITEM_ALLOC};
    for (unsigned i = 0; i < VV_ARRAY_LEN(items); i++)
        if (needs & items[i])
            need(items[i], name);
    f->up = vv_self.top;
    f->name = name;
    f->allows = needs & (f->up ? f->up->allows : all_items);
    vv_self.top = f;
}

void vv_frame_event(vv_frame *f, vv_event e)
{
    const vv_event_row *row = &vv_event_rows[e];
    const vv_item *items = row->items;
    uint32_t needs = 0;
    needs |= items[VV_ITEM_SAFEPOINT].value == VV_IS_SAFEPOINT ? VARVE_ITEM_SAFEPOINT : 0;
    needs |= items[VV_ITEM_MODE].value == VV_IS_PREEMPTIVE ? VARVE_ITEM_MODE : 0;
    needs |= items[VV_ITEM_LOCK].value == VV_IS_LOCK ? VARVE_ITEM_LOCK : 0;
    needs |= items[VV_ITEM_ALLOC].value == VV_IS_ALLOC ? VARVE_ITEM_ALLOC : 0;
    if (items[VV_ITEM_FIFTH].value == VV_IS_NO_HOST_LOCKS && vv_self.locks)
        vv_violation(VARVE_ITEM_HOST_LOCKS, row->name, "a lock of the host");
    push(f, row->name, needs);
}

void vv_frame_info(vv_frame *f, vv_info i, bool triggers)
{
    const vv_info_row *row = &vv_info_rows[i];
    const vv_item *items = row->items;
    uint32_t needs = 0;
    if (items[VV_ITEM_SAFEPOINT].value == VV_IS_SAFEPOINT ||
        (triggers && items[VV_ITEM_SAFEPOINT].value == VV_IS_SAFEPOINT_IF_TRIGGERS))
        needs |= VARVE_ITEM_SAFEPOINT;
    if (items[VV_ITEM_MODE].value == VV_IS_PREEMPTIVE ||
        (triggers && items[VV_ITEM_MODE].value == VV_IS_PREEMPTIVE_IF_TRIGGERS))
        needs |= VARVE_ITEM_MODE;
    needs |= items[VV_ITEM_LOCK].value == VV_IS_LOCK ? VARVE_ITEM_LOCK : 0;
    needs |= items[VV_ITEM_ALLOC].value == VV_IS_ALLOC ? VARVE_ITEM_ALLOC : 0;
    push(f, row->name, needs);
}

/* A frame that is not on top was come back to by a jump over those above it, which are no memory any more. */
void vv_frame_pop(const vv_frame *f)
{
    if (vv_self.top != f)
        vv_violation(VARVE_ITEM_THROW, "a jump out of a callback", f->name);
    vv_self.top = f->up;
}

#endif
