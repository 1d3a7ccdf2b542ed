#include "config.h"

#include "control/mapping.h"

#include "control/contract.h"

/* The profiler's own: one main profiler has hooks, for the life of the process. */
static varve_hooks given;

static uint32_t begin(void)
{
    uint32_t before = vv_self.flags;
    vv_self.flags = VV_IN_CALLBACK | VV_IN_TRIGGERS;
    return before;
}

static uintptr_t map_function(void *me VV_UNUSED, varve_function_id function)
{
    uint32_t before = begin();
    uintptr_t cookie = given.map_function(given.me, function);
    vv_self.flags = before;
    return cookie;
}

static uintptr_t map_site(void *me VV_UNUSED, const varve_site_id *site)
{
    uint32_t before = begin();
    uintptr_t cookie = given.map_site(given.me, site);
    vv_self.flags = before;
    return cookie;
}

static void *map_thread(void *me VV_UNUSED, varve_thread_id thread)
{
    uint32_t before = begin();
    void *cookie = given.map_thread(given.me, thread);
    vv_self.flags = before;
    return cookie;
}

void vv_mapping_wrap(varve_hooks *hooks)
{
    given = *hooks;
    hooks->map_function = given.map_function ? map_function : NULL;
    hooks->map_site = given.map_site ? map_site : NULL;
    hooks->map_thread = given.map_thread ? map_thread : NULL;
}
