/* A plug-in that does what its argument says: one of the words below, to be wrong in that way; "" to be right. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "control/varve-profiler.h"

static char word[32];
static varve_profiler *self;
static const varve_info *info;

static bool is(const char *what)
{
    return strcmp(word, what) == 0;
}

static void on_initialize(void *me, varve_profiler *p, const varve_info *i, varve_load_kind kind, varve_code *ret)
{
    (void)me;
    (void)kind;
    self = p;
    info = i;
    while (is("hang"))
        pause();
    *ret = is("refuse-start") ? VARVE_E_NO_MEMORY : info->set_event_mask(self, VARVE_MON_ENTER_LEAVE);
}

static void on_call_entered(void *me, varve_thread_id thread, varve_function_id function, const varve_site_id *site,
                            uint64_t ticks)
{
    (void)me;
    (void)thread;
    (void)function;
    (void)site;
    (void)ticks;
    if (is("leave"))
        info->request_detach(self, 0);
    while (is("stay") && access("/proc/self/fdinfo/99", F_OK) != 0)
        usleep(1000); /* until the test opens descriptor 99 */
}

static void on_detached(void *me)
{
    (void)me;
}

VARVE_API varve_code varve_plugin_open(uint32_t version, const char *arguments, varve_plugin *ret)
{
    static varve_callbacks callbacks = {.size = sizeof callbacks,
                                        .version = VARVE_CONTRACT_VERSION,
                                        .initialize = on_initialize,
                                        .detached = on_detached,
                                        .call_entered = on_call_entered};
    strncpy(word, arguments, sizeof word - 1);
    if (is("refuse-open") || version != VARVE_CONTRACT_VERSION)
        return VARVE_E_REFUSED;
    callbacks.version = is("version") ? VARVE_CONTRACT_VERSION + 1000 : VARVE_CONTRACT_VERSION;
    callbacks.initialize = is("no-initialize") ? NULL : on_initialize;
    callbacks.detached = is("no-detach") ? NULL : on_detached;
    ret->callbacks = is("no-callbacks") ? NULL : &callbacks;
    ret->notify_only = !is("main");
    return VARVE_OK;
}
