/*
 * Detaching: the request, which may come from anywhere, and the looks, which end what nobody is inside of any more.
 *
 * The queue is a word of slots; a request adds its own, and the one that looks takes each off when it is done with it.
 * A look goes once over what it found, so a request that comes out of a callback of another's end is for the next one.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/deadline.h"
#include "base/os_thread.h"
#include "control/block.h"

enum { HINT_MS = 2500, WAIT_LEAST_MS = 300, WAIT_MOST_MS = 5000 };

/* The detach thread. Left: it was told to stop while something was detaching, and ends with that. */
typedef enum { THREAD_NONE, THREAD_RUNS, THREAD_STOPPING, THREAD_LEFT, THREAD_OVER } thread_state;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;

static void probe(vv_point point)
{
    if (vv_point_probe)
        vv_point_probe(point);
}

varve_code vv_detach_request(varve_profiler *p, uint32_t hint_ms)
{
    varve_host *host = p->host;
    if (atomic_load(&host->state) != VV_HOST_STARTED || vv_status_of(p) > VV_STATUS_ACTIVE ||
        vv_status_of(p) == VV_STATUS_INIT_STARTUP || vv_status_of(p) == VV_STATUS_INIT_ATTACH)
        return VARVE_E_NOT_INITIALIZED;
    if (!p->can_detach || p->has_hooks || atomic_load(&p->requested) & VV_IMMUTABLE_BITS)
        return VARVE_E_NOT_DETACHABLE;
    if (!vv_status_move(p, VV_STATUS_ACTIVE, VV_STATUS_DETACHING))
        return VARVE_E_DETACHING;
    probe(VV_POINT_DETACHING);
    atomic_store(&p->hint_ms, hint_ms ? hint_ms : HINT_MS);
    atomic_store(&p->requested_at_ms, vv_now_ms());
    atomic_store(&p->detach_state, VV_DETACH_QUEUED);
    vv_mask_update(host);
    atomic_fetch_or(&host->detaching, UINT64_C(1) << p->number);
    probe(VV_POINT_QUEUED);
    sem_post(&host->wake);
    return VARVE_OK;
}

/* Nobody is inside, and nobody will be. */
static void finish(varve_profiler *p)
{
    varve_host *host = p->host;
    uint64_t bit = UINT64_C(1) << p->number;
    atomic_store(&p->detach_state, VV_DETACH_EVACUATED);
    vv_call_detached(p);
    vv_iface_clear(p);
    atomic_store(&p->detach_state, VV_DETACH_ENDED);
    if (p->ended)
        p->ended(p->ended_me);
    atomic_store(&p->requested, 0);
    atomic_store(&p->detach_state, VV_DETACH_NONE);
    atomic_fetch_and(&host->occupied, ~bit);
    atomic_fetch_and(&host->detaching, ~bit);
    vv_status_move(p, VV_STATUS_DETACHING, VV_STATUS_NONE);
    vv_mask_update(host);
}

/* What is left of the hint, then the hint again, within limits. */
static uint64_t pause_of(varve_profiler *p, uint64_t now)
{
    uint64_t hint = atomic_load(&p->hint_ms), since = now - atomic_load(&p->requested_at_ms);
    uint64_t ms = since < hint ? hint - since : hint;
    return ms < WAIT_LEAST_MS ? WAIT_LEAST_MS : ms > WAIT_MOST_MS ? WAIT_MOST_MS : ms;
}

/* Returns the wait before the next look, 0 where nothing is queued. */
static uint64_t look(varve_host *host, pid_t *ret_tid)
{
    uint64_t wait = 0, seen, now = vv_now_ms();
    do {
        seen = atomic_load(&host->detaching);
        wait = 0;
        for (uint64_t left = seen; left; left &= left - 1) {
            varve_profiler *p = &host->slots[__builtin_ctzll(left)];
            pid_t tid = 0;
            if (vv_gate_is_evacuated(p->number, &tid)) {
                finish(p);
                continue;
            }
            uint64_t ms = pause_of(p, now);
            wait = !wait || ms < wait ? ms : wait;
            *ret_tid = tid;
        }
    } while (atomic_load(&host->detaching) & ~seen);
    return wait;
}

uint64_t varve_host_detach_step(varve_host *host, int *ret_tid)
{
    pid_t tid = 0;
    if (!host->manual_detach || atomic_exchange(&host->looking, 1))
        return WAIT_LEAST_MS;
    uint64_t wait = look(host, &tid);
    atomic_store(&host->looking, 0);
    if (ret_tid)
        *ret_tid = tid;
    return wait;
}

static void wait_awhile(varve_host *host, uint64_t ms)
{
    if (ms && host->wait) {
        host->wait(host->wait_me, ms);
        return;
    }
    struct timespec until = vv_deadline(CLOCK_REALTIME, ms);
    while ((ms ? sem_timedwait(&host->wake, &until) : sem_wait(&host->wake)) != 0 && errno == EINTR)
        continue;
}

static void *detach_thread(void *of)
{
    varve_host *host = of;
    pid_t tid;
    for (;;) {
        bool stopping = atomic_load(&host->thread_state) == THREAD_STOPPING;
        uint64_t ms = look(host, &tid);
        if (stopping) {
            atomic_store(&host->thread_state, ms ? THREAD_LEFT : THREAD_OVER);
            sem_post(&host->looked);
        }
        if (!ms && atomic_load(&host->thread_state) >= THREAD_LEFT)
            return NULL;
        wait_awhile(host, ms);
    }
}

bool vv_detach_start(varve_host *host)
{
    if (host->manual_detach)
        return true;
    varve_nosuspend_enter();
    pthread_mutex_lock(&start_lock);
    if (atomic_load(&host->thread_state) == THREAD_NONE &&
        vv_os_thread_start(&host->thread, VV_STACK_PLUGINS, detach_thread, host) == 0)
        atomic_store(&host->thread_state, THREAD_RUNS);
    bool runs = atomic_load(&host->thread_state) != THREAD_NONE;
    pthread_mutex_unlock(&start_lock);
    varve_nosuspend_leave();
    return runs;
}

bool vv_detach_stop(varve_host *host)
{
    pid_t tid;
    if (host->manual_detach)
        return look(host, &tid) == 0;
    if (atomic_load(&host->thread_state) == THREAD_NONE)
        return true;
    atomic_store(&host->thread_state, THREAD_STOPPING);
    sem_post(&host->wake);
    while (sem_wait(&host->looked) != 0 && errno == EINTR)
        continue;
    if (atomic_load(&host->thread_state) == THREAD_LEFT) {
        pthread_detach(host->thread);
        return false;
    }
    pthread_join(host->thread, NULL);
    atomic_store(&host->thread_state, THREAD_NONE);
    return true;
}
