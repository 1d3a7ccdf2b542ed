#include "config.h"
#include "hosts/lua/live.h"

#include <pthread.h>
#include <stdlib.h>

#include "hosts/lua/chunk.h"
#include "hosts/lua/identity.h"
#include "hosts/lua/layout.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Told at the next event. */
static struct {
    vl_function *functions;
    vl_shadow *threads;
    unsigned held;
} dead;

vl_function *vl_live_c_functions; /* newest first */

void vl_live_lock(void)
{
    pthread_mutex_lock(&lock);
}

void vl_live_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* Marks the function, and its module, as what enumeration finds, then tells. */
static void tell_loaded(vl_function *f)
{
    vl_chunk *c = f->chunk;
    vl_live_lock();
    bool tell = !f->loaded, tell_module = tell && c && !c->loaded;
    f->loaded = true;
    if (tell && c) {
        c->loaded = true;
        c->functions_loaded++;
    }
    vl_live_unlock();
    if (tell_module)
        VARVE_RAISE(vl.host, module_loaded, vl_id(c), vl_id(&vl));
    if (tell)
        VARVE_RAISE(vl.host, function_loaded, vl_id(f), vl_id(c));
}

void vl_live_code(vl_code *code)
{
    vl_function *f = code->function;
    vl_live_lock();
    code->next = f->codes;
    code->link = &f->codes;
    if (f->codes)
        f->codes->link = &code->next;
    f->codes = code;
    vl_live_unlock();
    tell_loaded(f);
}

void vl_live_c_function(vl_function *f)
{
    vl_live_lock();
    f->next = vl_live_c_functions;
    vl_live_c_functions = f;
    vl_live_unlock();
    tell_loaded(f);
}

void vl_live_code_gone(vl_code *code)
{
    vl_function *f = code->function;
    vl_live_lock();
    *code->link = code->next;
    if (code->next)
        code->next->link = code->link;
    if (!f->codes && !f->dying) {
        f->dying = true;
        f->next = dead.functions;
        dead.functions = f;
        vl.deferred |= VL_DEFERRED_DEATHS;
    }
    vl_live_unlock();
}

void vl_live_thread_gone(vl_shadow *s)
{
    vl_ptrmap_remove(&vl.threads, lua_getextraspace(s->L));
    s->died = varve_ticks();
    s->L = NULL;
    s->next_dead = dead.threads;
    dead.threads = s;
    vl.deferred |= VL_DEFERRED_DEATHS;
}

/*
 * An end is told after enumeration has ceased to find what ends. The other way round, a profiler that is attached in
 * between would find it, and never hear of its end.
 */
static void module_gone(vl_chunk *c)
{
    vl_live_lock();
    bool gone = c->loaded && !c->functions_loaded;
    if (gone)
        c->loaded = false;
    vl_live_unlock();
    if (gone)
        VARVE_RAISE(vl.host, module_unloaded, vl_id(c));
}

static void function_gone(vl_function *f)
{
    vl_live_lock();
    bool gone = !f->codes; /* else its chunk was loaded again meanwhile */
    f->dying = false;
    if (gone) {
        f->loaded = false;
        f->chunk->functions_loaded--;
    }
    vl_live_unlock();
    if (!gone)
        return;
    VARVE_RAISE(vl.host, function_unloaded, vl_id(f));
    module_gone(f->chunk);
}

void vl_live_hold(bool on)
{
    dead.held += on ? 1u : -1u;
}

void vl_live_settle(void)
{
    if (dead.held)
        return;
    vl_live_hold(true);
    vl.deferred &= ~(unsigned)VL_DEFERRED_DEATHS;
    for (vl_shadow *s; (s = dead.threads);) {
        dead.threads = s->next_dead;
        vl_thread_collected(s);
    }
    /* A coroutine that the sweep comes to later may have calls of the function open. */
    bool sweeping = vl.L && vl.private_layout && vl_global_is_sweeping(vl_global_of(vl.L));
    if (dead.functions && sweeping)
        vl.deferred |= VL_DEFERRED_DEATHS;
    for (vl_function *f; !sweeping && (f = dead.functions);) {
        dead.functions = f->next;
        function_gone(f);
    }
    vl_live_hold(false);
}

void vl_live_map(vl_function *f)
{
    f->mapped = true;
    if (vl.hooks)
        f->cookie = vl.hooks->map_function ? vl.hooks->map_function(vl.hooks->me, vl_id(f)) : vl_id(f);
}

const char *vl_live_name(vl_function *f)
{
    if (!f->name && f->chunk)
        f->name = vl_chunk_name_function(f);
    return f->name;
}

static vl_site *site_new(vl_chunk *c, uint32_t line)
{
    vl_site *site = calloc(1, sizeof *site);
    if (!site || !vl_ptrmap_put(&c->sites, vl_chunk_line_key(line), site)) {
        free(site);
        return NULL;
    }
    site->place = (varve_site_id){.module = vl_id(c), .line = line};
    if (vl.hooks)
        site->cookie = vl.hooks->map_site ? vl.hooks->map_site(vl.hooks->me, &site->place) : vl_id(&site->place);
    return site;
}

vl_site *vl_live_site(vl_chunk *c, uint32_t line)
{
    static vl_site nowhere;
    if (!c || !line)
        return &nowhere;
    vl_site *site = vl_ptrmap_get(&c->sites, vl_chunk_line_key(line));
    if (!site)
        site = site_new(c, line);
    return site ? site : &nowhere;
}
