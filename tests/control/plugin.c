/* A plug-in that asks to be detached, in a callback or on a thread of its own (its argument says which). */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "control/varve-profiler.h"

typedef struct {
    varve_profiler *self;
    const varve_info *info;
    pthread_t thread;
    bool own_thread;
    unsigned modules;
} plugin;

static void *leave(void *of)
{
    plugin *p = of;
    p->info->request_detach(p->self, 1);
    return NULL;
}

static void initialize(void *me, varve_profiler *self, const varve_info *info, varve_load_kind kind, varve_code *ret)
{
    plugin *p = me;
    p->self = self;
    p->info = info;
    *ret = kind == VARVE_AT_ATTACH ? info->set_event_mask(self, VARVE_MON_MODULE_LOADS) : VARVE_E_NOT_AFTER_ATTACH;
}

static void attach_complete(void *me)
{
    plugin *p = me;
    if (p->own_thread && pthread_create(&p->thread, NULL, leave, p) != 0)
        abort();
}

static void module_loaded(void *me, varve_module_id module, varve_domain_id domain)
{
    plugin *p = me;
    (void)module;
    (void)domain;
    if (++p->modules == 100 && !p->own_thread)
        p->info->request_detach(p->self, 1);
}

static void detached(void *me)
{
    plugin *p = me;
    if (p->own_thread)
        pthread_join(p->thread, NULL);
    free(p);
}

varve_code varve_plugin_open(uint32_t version, const char *arguments, varve_plugin *ret)
{
    static const varve_callbacks callbacks = {
        .size = sizeof callbacks,
        .version = VARVE_CONTRACT_VERSION,
        .initialize = initialize,
        .attach_complete = attach_complete,
        .module_loaded = module_loaded,
        .detached = detached,
    };
    plugin *p = calloc(1, sizeof *p);
    if (!p || version != VARVE_CONTRACT_VERSION)
        return VARVE_E_ARG;
    p->own_thread = strcmp(arguments, "thread") == 0;
    ret->callbacks = &callbacks;
    ret->me = p;
    return VARVE_OK;
}
