/*
 * A host that has no language, and a profiler that counts: what the tests of the contract share. One host a test; its
 * detaching is done by hand (fake_open) unless a test wants the thread.
 */
#pragma once

#include "control/block.h"
#include "tests/testing.h"

typedef struct {
    varve_profiler *self;
    const varve_info *info;
    varve_load_kind kind;
    uint64_t mask;          /* what it asks for in initialize */
    varve_code answer;      /* and what it says there */
    _Atomic unsigned counts[VV_EVENTS];
    _Atomic unsigned ended;
    /* Called in every callback, before it counts. */
    void (*inside)(void *me, vv_event e);
    void *mine;
} fake_profiler;

static inline unsigned fake_count(fake_profiler *p, vv_event e)
{
    return atomic_load(&p->counts[e]);
}

static inline void fake_called(void *me, vv_event e)
{
    fake_profiler *p = me;
    if (p->inside)
        p->inside(me, e);
    atomic_fetch_add(&p->counts[e], 1);
}

static inline void fake_initialize(void *me, varve_profiler *self, const varve_info *info, varve_load_kind kind,
                                   varve_code *ret)
{
    fake_profiler *p = me;
    p->self = self;
    p->info = info;
    p->kind = kind;
    *ret = info->set_event_mask(self, p->mask);
    fake_called(me, VV_EVENT_initialize);
    if (p->answer != VARVE_OK)
        *ret = p->answer;
}

static inline void fake_attach_complete(void *me)
{
    fake_called(me, VV_EVENT_attach_complete);
}

static inline void fake_shutdown(void *me)
{
    fake_called(me, VV_EVENT_shutdown);
}

static inline void fake_detached(void *me)
{
    fake_called(me, VV_EVENT_detached);
}

static inline void fake_ignore(int zero, ...)
{
    (void)zero;
}

/* A callback of every other event, from the table. */
#define FAKE(name, bit, flags, contract, params, names, text)                \
    static inline void fake_##name params                                    \
    {                                                                        \
        fake_ignore(0 VARVE_TAIL_ names);                                    \
        fake_called(me, VV_EVENT_##name);                                    \
    }
VARVE_HOST_EVENTS(FAKE)
#undef FAKE

static const varve_callbacks fake_callbacks = {
    .size = sizeof(varve_callbacks),
    .version = VARVE_CONTRACT_VERSION,
#define FAKE(name, ...) .name = fake_##name,
    VARVE_EVENTS(FAKE)
#undef FAKE
};

static inline void fake_ended(void *me)
{
    atomic_fetch_add(&((fake_profiler *)me)->ended, 1);
}

static inline varve_host *fake_open_with(varve_host_options o)
{
    varve_host *host = NULL;
    o.size = sizeof o;
    o.version = VARVE_CONTRACT_VERSION;
    o.name = "fake";
    o.language_version = "1";
    if (!o.supported)
        o.supported = vv_known_bits();
    ck_assert_int_eq(varve_host_open(&o, &host), VARVE_OK);
    return host;
}

static inline varve_host *fake_open(void)
{
    return fake_open_with((varve_host_options){.manual_detach = true});
}

static inline varve_code fake_attach_as(varve_host *host, fake_profiler *p, const varve_callbacks *callbacks,
                                        bool notify_only)
{
    varve_profiler *profiler;
    varve_attach_options o = {sizeof o, callbacks, p, notify_only, fake_ended, p};
    return varve_host_attach(host, &o, &profiler);
}

static inline varve_code fake_attach(varve_host *host, fake_profiler *p, bool notify_only)
{
    return fake_attach_as(host, p, &fake_callbacks, notify_only);
}
