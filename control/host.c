/* Opening and closing the host, its threads, and attaching. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "control/block.h"

/* The one of the process: what is raised too late finds its mask. */
static varve_host the_host;

static void fork_child(void)
{
    atomic_store(&the_host.mask, 0);
}

/* The gate has taken the thread's pins back. */
static void ended_inside(pid_t tid VV_UNUSED, unsigned slot VV_UNUSED, uint32_t pins VV_UNUSED)
{
    vv_violation(VARVE_ITEM_THROW, "the end of a thread", "a callback");
}

static void watch_forks_and_ends(void)
{
    vv_gate_init();
    vv_gate_on_violation(ended_inside);
    pthread_atfork(NULL, NULL, fork_child);
}

static void probe(vv_point point)
{
    if (vv_point_probe)
        vv_point_probe(point);
}

static bool is_ours(uint32_t version)
{
    return version / 1000 == VARVE_CONTRACT_VERSION / 1000;
}

static void copy_text(char *to, size_t room, const char *text)
{
    snprintf(to, room, "%s", text ? text : "");
}

static void set_up(varve_host *host, const varve_host_options *o)
{
    copy_text(host->name, sizeof host->name, o->name);
    copy_text(host->language_version, sizeof host->language_version, o->language_version);
    host->functions = (varve_host_functions){0};
    if (o->functions) {
        size_t n = o->functions->size < sizeof host->functions ? o->functions->size : sizeof host->functions;
        memcpy(&host->functions, o->functions, n);
    }
    host->me = o->me;
    host->supported = o->supported & vv_known_bits();
    host->check_ids = o->check_ids;
    host->manual_detach = o->manual_detach;
    host->wait = o->wait;
    host->wait_me = o->wait_me;
    atomic_store(&host->hooks, NULL);
    for (unsigned i = 0; i < VV_SLOTS; i++) {
        host->slots[i].number = i;
        host->slots[i].host = host;
    }
}

varve_code varve_host_open(const varve_host_options *options, varve_host **ret_host)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    varve_host_options o = {0};
    varve_host *host = &the_host;
    if (!options || !ret_host || options->size < offsetof(varve_host_options, name) || !is_ours(options->version))
        return VARVE_E_ARG;
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    pthread_once(&once, watch_forks_and_ends);
    uint32_t none = VV_HOST_NONE;
    if (vv_gate_is_forked() || !atomic_compare_exchange_strong(&host->state, &none, VV_HOST_OPEN))
        return VARVE_E_BUSY;
    if (sem_init(&host->wake, 0, 0) != 0 || sem_init(&host->looked, 0, 0) != 0) {
        atomic_store(&host->state, VV_HOST_NONE);
        return VARVE_E_NO_MEMORY;
    }
    set_up(host, &o);
    *ret_host = host;
    return VARVE_OK;
}

void varve_host_started(varve_host *host)
{
    uint32_t open = VV_HOST_OPEN;
    atomic_compare_exchange_strong(&host->state, &open, VV_HOST_STARTED);
}

varve_code varve_host_thread_add(varve_host *host, varve_thread_id thread)
{
    if (!host || vv_self.registered)
        return VARVE_E_ARG;
    vv_gate_register();
    vv_self.registered = true;
    vv_self.id = thread;
    return VARVE_OK;
}

void varve_host_thread_remove(varve_host *host VV_UNUSED)
{
    vv_self.registered = false;
    vv_self.id = 0;
}

const varve_hooks *varve_host_hooks(const varve_host *host)
{
    return atomic_load_explicit(&host->hooks, memory_order_acquire);
}

/* The slot, moved out of none; NULL: there is none. */
static varve_profiler *take_slot(varve_host *host, bool notify_only)
{
    unsigned from = notify_only ? VV_GATE_NOTIFY_FIRST : 0, to = notify_only ? VV_SLOTS : 1;
    for (unsigned i = from; i < to; i++)
        if (vv_status_of(&host->slots[i]) == VV_STATUS_NONE &&
            vv_status_move(&host->slots[i], VV_STATUS_NONE, VV_STATUS_PRE_INITIALIZE))
            return &host->slots[i];
    return NULL;
}

static void refused(varve_profiler *p, vv_status in)
{
    if (p->has_hooks)
        atomic_store(&p->host->hooks, NULL);
    vv_iface_clear(p);
    if (p->ended)
        p->ended(p->ended_me);
    atomic_store(&p->requested, 0);
    vv_status_move(p, in, VV_STATUS_NONE);
}

/* From the moment that the profiler is active everything is told by events; only then, when every thread sees it, may
 * the profiler enumerate what was there before. */
static void publish(varve_profiler *p, vv_status from)
{
    atomic_fetch_or(&p->host->occupied, UINT64_C(1) << p->number);
    vv_status_move(p, from, VV_STATUS_ACTIVE);
    probe(VV_POINT_ACTIVE);
    vv_mask_update(p->host);
    probe(VV_POINT_PUBLISHED);
    vv_gate_flush();
    probe(VV_POINT_FLUSHED);
}

static bool are_usable(const varve_attach_options *o)
{
    const varve_callbacks *c = o->callbacks;
    return c && is_ours(c->version) && c->size >= offsetof(varve_callbacks, attach_complete) && c->initialize;
}

varve_code varve_host_attach(varve_host *host, const varve_attach_options *options, varve_profiler **ret_profiler)
{
    varve_attach_options o = {0};
    if (!host || !options || !ret_profiler || options->size < offsetof(varve_attach_options, ended))
        return VARVE_E_ARG;
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    if (!are_usable(&o))
        return VARVE_E_ARG;
    uint32_t state = atomic_load(&host->state);
    if ((state != VV_HOST_OPEN && state != VV_HOST_STARTED) || vv_gate_is_forked())
        return VARVE_E_NOT_INITIALIZED;
    if (!vv_detach_start(host))
        return VARVE_E_NO_MEMORY;
    varve_profiler *p = take_slot(host, o.notify_only);
    if (!p)
        return VARVE_E_BUSY;
    vv_status init = state == VV_HOST_OPEN ? VV_STATUS_INIT_STARTUP : VV_STATUS_INIT_ATTACH;
    p->kind = state == VV_HOST_OPEN ? VARVE_AT_STARTUP : VARVE_AT_ATTACH;
    p->has_hooks = false;
    p->ended = o.ended;
    p->ended_me = o.ended_me;
    vv_iface_set(p, o.callbacks, o.me);
    p->can_detach = p->iface_memory.callbacks.detached;
    vv_status_move(p, VV_STATUS_PRE_INITIALIZE, init);
    varve_code said = VARVE_OK;
    vv_call_initialize(p, p, &vv_info_table, p->kind, &said);
    probe(VV_POINT_INITIALIZED);
    if (said != VARVE_OK) {
        refused(p, init);
        return VARVE_E_REFUSED;
    }
    *ret_profiler = p;
    publish(p, init);
    if (p->kind == VARVE_AT_ATTACH)
        vv_call_attach_complete(p);
    return VARVE_OK;
}

varve_code varve_host_request_detach(varve_host *host, varve_profiler *profiler, uint32_t hint_ms)
{
    return host && profiler ? profiler->host == host ? vv_info_table.request_detach(profiler, hint_ms) : VARVE_E_ARG
                            : VARVE_E_ARG;
}

/* False: a thread is still inside, and all stays as it is for it. */
static bool shut_down(varve_profiler *p)
{
    vv_call_shutdown(p);
    if (!vv_status_move(p, VV_STATUS_ACTIVE, VV_STATUS_NONE))
        return true;
    if (!vv_gate_is_evacuated(p->number, NULL))
        return false;
    vv_iface_clear(p);
    atomic_store(&p->requested, 0);
    atomic_fetch_and(&p->host->occupied, ~(UINT64_C(1) << p->number));
    return true;
}

bool varve_host_close(varve_host *host)
{
    uint32_t state = atomic_load(&host->state);
    if (vv_self.flags & VV_IN_CALLBACK || vv_gate_is_forked()) {
        vv_violation(VARVE_ITEM_STATE, "closing the host", "a callback or a forked child");
        return false;
    }
    do
        if (state != VV_HOST_OPEN && state != VV_HOST_STARTED)
            return state == VV_HOST_NONE;
    while (!atomic_compare_exchange_weak(&host->state, &state, VV_HOST_CLOSING));
    for (unsigned i = 0; i < VV_SLOTS; i++)
        atomic_store(&host->slots[i].requested, 0);
    vv_mask_update(host);
    vv_gate_flush(); /* no event begins from here on */
    bool clean = true;
    for (unsigned i = 0; i < VV_SLOTS; i++)
        if (vv_status_of(&host->slots[i]) == VV_STATUS_ACTIVE)
            clean = shut_down(&host->slots[i]) && clean;
    clean = vv_detach_stop(host) && clean && !atomic_load(&host->occupied);
    if (clean) {
        sem_destroy(&host->wake);
        sem_destroy(&host->looked);
    }
    atomic_store(&host->state, clean ? VV_HOST_NONE : VV_HOST_LEAKED);
    return clean;
}
