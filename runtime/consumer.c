#include "config.h"

#include "runtime/consumer.h"

#include <errno.h>
#include <time.h>

#include "base/deadline.h"
#include "base/os_thread.h"
#include "runtime/session.h"

/* Of one ring in a sweep, and sweeps before the ends, flushes and publications have their turn. */
enum { SEGMENTS_AT_ONCE = 16, SWEEPS_MAX = 8 };

static const uint64_t tick_ns = 50000000;

void vv_consumer_init(varve_session *s)
{
    vv_consumer *c = &s->consumer;
    pthread_mutex_init(&c->lock, NULL);
    vv_cond_init(&c->flushed);
    c->next_publish_ns = vv_clock_monotonic_ns() + s->publish_interval_ns;
}

void vv_consumer_done(varve_session *s)
{
    pthread_mutex_destroy(&s->consumer.lock);
    pthread_cond_destroy(&s->consumer.flushed);
}

static vv_ring *first_ring(varve_session *s)
{
    return atomic_load_explicit(&s->rings, memory_order_acquire);
}

/* One drained ring less whose OS thread is gone. */
static void pool(vv_ring *r)
{
    uint64_t claim = vv_ring_claim_of(r);
    if (!vv_ring_is(r, claim, VV_RING_ORPHANED))
        return;
    /* The thread may have written until it was orphaned, after our last look. */
    uint64_t retired;
    if (vv_ring_peek(r, &retired))
        return;
    vv_decoder_leave(r);
    vv_ring_move(r, claim, VV_RING_ORPHANED, VV_RING_POOLED);
}

/* One look at each ring; true: some hold more than it read. */
static bool sweep(varve_session *s, vv_ring *forced, vv_force why)
{
    bool bounded = false, moved = false;
    uint64_t barrier = s->consumer.barrier_open ? s->consumer.barrier : 0;
    for (vv_ring *r = first_ring(s); r; r = r->next) {
        vv_decoded got =
            vv_decoder_drain(&s->decoder, r, SEGMENTS_AT_ONCE, r == forced ? why : VV_FORCE_NONE, &moved);
        bounded = bounded || got == VV_DECODED_BOUND;
        vv_joins_note(&s->consumer.joins, r, got);
        if (barrier && r->barrier == barrier && (got == VV_DECODED_ALL || r->retired > r->snap))
            r->barrier = 0;
        if (got == VV_DECODED_ALL)
            pool(r);
    }
    return bounded;
}

/* Sweeps until all rings are empty; true: there is more than it read. */
static bool drain(varve_session *s)
{
    vv_ring *forced = NULL;
    vv_force why = VV_FORCE_NONE;
    for (unsigned i = 0; i < SWEEPS_MAX; i++) {
        bool bounded = sweep(s, forced, why);
        forced = vv_joins_pick(s, &why);
        if (!bounded && !forced && !s->consumer.joins.open)
            return false;
    }
    return true;
}

static void open_barrier(varve_session *s)
{
    vv_consumer *c = &s->consumer;
    /* The flush first: what ended before it was asked for is in the list by then, and is part of it. */
    if (atomic_exchange(&c->flush_pending, false)) {
        pthread_mutex_lock(&c->lock);
        c->barrier_flush = c->flush_asked;
        pthread_mutex_unlock(&c->lock);
    }
    c->closing = vv_registry_take(&s->registry, VV_READY);
    if (!c->closing && !c->barrier_flush)
        return;
    c->barrier_open = true;
    c->barrier++;
    for (vv_ring *r = first_ring(s); r; r = r->next) {
        r->barrier = c->barrier;
        r->snap = atomic_load_explicit(&r->rolled, memory_order_acquire);
    }
}

static bool barrier_passed(varve_session *s)
{
    for (vv_ring *r = first_ring(s); r; r = r->next)
        if (r->barrier == s->consumer.barrier)
            return false;
    return true;
}

static void finish_closing(varve_session *s)
{
    vv_slot *slot = s->consumer.closing;
    s->consumer.closing = NULL;
    while (slot) {
        vv_slot *next = slot->next[VV_READY];
        vv_exec *x = slot->exec;
        if (x) {
            vv_decoder_finish(&s->decoder, x);
            vv_writer_hand_off(&s->writer, x);
        }
        vv_checkpoint_leave(s, slot);
        vv_slot_free(&s->registry, slot);
        slot = next;
    }
}

static void finish_flush(varve_session *s, bool ok)
{
    vv_consumer *c = &s->consumer;
    pthread_mutex_lock(&c->lock);
    c->flush_done = c->barrier_flush;
    c->flush_ok = ok;
    pthread_cond_broadcast(&c->flushed);
    pthread_mutex_unlock(&c->lock);
    c->barrier_flush = 0;
}

static bool publish(varve_session *s)
{
    vv_clock_refine(&s->clock, vv_clock_read_pair(), vv_clock_lead(&s->clock));
    bool ok = vv_writer_cycle(&s->writer);
    vv_engines_retire(s);
    vv_checkpoint_take(s, true);
    s->consumer.next_publish_ns = vv_clock_monotonic_ns() + s->publish_interval_ns;
    return ok;
}

/* For somebody who waits: another process's hold on the lock is sat out, and what is indeterminate gets another try. */
static bool publish_patiently(varve_session *s)
{
    enum { TRIES = 3 };
    uint64_t lost = atomic_load(&s->writer.batches_lost);
    vv_wstore_be_patient(s->store, true);
    bool ok = publish(s);
    for (unsigned i = 1; !ok && i < TRIES && vv_wstore_is_indeterminate(s->store); i++)
        ok = publish(s);
    vv_wstore_be_patient(s->store, false);
    return ok && lost == atomic_load(&s->writer.batches_lost);
}

bool vv_consumer_pass(varve_session *s)
{
    vv_consumer *c = &s->consumer;
    if (!c->barrier_open)
        open_barrier(s);
    vv_decoder_admit(&s->decoder);
    bool backlog = drain(s);
    bool flushing = false;
    if (c->barrier_open && barrier_passed(s)) {
        c->barrier_open = false;
        vv_decoder_admit(&s->decoder);
        finish_closing(s);
        flushing = c->barrier_flush != 0;
    }
    if (flushing)
        finish_flush(s, publish_patiently(s));
    else if (vv_writer_is_full(&s->writer) || vv_clock_monotonic_ns() >= c->next_publish_ns) {
        if (vv_writer_has_work(&s->writer))
            publish(s);
        else if (!vv_engines_retire(s))
            c->next_publish_ns = vv_clock_monotonic_ns() + s->publish_interval_ns;
    }
    vv_checkpoint_take(s, false);
    return backlog || c->barrier_open;
}

/* Whether something came that a sleep must not miss. */
static bool is_called(varve_session *s)
{
    for (vv_ring *r = first_ring(s); r; r = r->next)
        if (atomic_load_explicit(&r->rolled, memory_order_relaxed) != r->retired)
            return true;
    return atomic_load(&s->consumer.flush_pending) || atomic_load(&s->consumer.stop) ||
           atomic_load(&s->registry.lists[VV_READY]);
}

static uint64_t sleep_ns(const varve_session *s)
{
    return s->publish_interval_ns && s->publish_interval_ns < tick_ns ? s->publish_interval_ns : tick_ns;
}

static void *run(void *arg)
{
    varve_session *s = arg;
    /* By itself: naming another thread opens a file, where the program may print. */
    pthread_setname_np(pthread_self(), "varve-consumer");
    vv_clock_calibrate(&s->clock);
    while (!atomic_load(&s->consumer.stop)) {
        if (vv_consumer_pass(s))
            continue;
        vv_wake_park(&s->wake);
        if (is_called(s))
            vv_wake_unpark(&s->wake);
        else
            vv_wake_sleep(&s->wake, sleep_ns(s));
    }
    pthread_mutex_lock(&s->consumer.lock);
    s->consumer.finished = true;
    pthread_cond_broadcast(&s->consumer.flushed);
    pthread_mutex_unlock(&s->consumer.lock);
    return NULL;
}

bool vv_consumer_start(varve_session *s)
{
    s->consumer.started = vv_os_thread_start(&s->consumer.thread, VV_STACK_OURS, run, s) == 0;
    return s->consumer.started;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

bool vv_consumer_flush(varve_session *s, uint64_t timeout_ms)
{
    vv_consumer *c = &s->consumer;
    if (!c->started)
        return false;
    uint64_t now = vv_clock_monotonic_ns();
    uint64_t until = timeout_ms > (UINT64_MAX / 4 - now) / 1000000 ? UINT64_MAX / 4 : now + timeout_ms * 1000000;
    struct timespec deadline = timespec_of(until);
    pthread_mutex_lock(&c->lock);
    uint64_t ticket = ++c->flush_asked;
    atomic_store(&c->flush_pending, true);
    vv_wake_up(&s->wake);
    int rc = 0;
    while (c->flush_done < ticket && rc == 0)
        rc = pthread_cond_timedwait(&c->flushed, &c->lock, &deadline);
    bool ok = c->flush_done >= ticket && c->flush_ok;
    pthread_mutex_unlock(&c->lock);
    return ok;
}

bool vv_consumer_stop(varve_session *s, uint64_t deadline_ns)
{
    vv_consumer *c = &s->consumer;
    if (!c->started)
        return true;
    atomic_store(&c->stop, true);
    vv_wake_up(&s->wake);
    struct timespec deadline = timespec_of(deadline_ns);
    pthread_mutex_lock(&c->lock);
    int rc = 0;
    while (!c->finished && rc == 0)
        rc = pthread_cond_timedwait(&c->flushed, &c->lock, &deadline);
    bool finished = c->finished;
    pthread_mutex_unlock(&c->lock);
    return finished && pthread_join(c->thread, NULL) == 0;
}
