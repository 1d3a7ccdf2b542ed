#include "config.h"
#include "hosts/lua/host.h"

#include <string.h>

#include "hosts/lua/fault.h"
#include "hosts/lua/layout.h"
#include "hosts/lua/live.h"

/* Where a new thread of `parent` comes from: the caller of the C function that makes it (coroutine.create, wrap). */
static void spawn_place(lua_State *L, const vl_shadow *parent, varve_spawn *spawn)
{
    lua_Debug ar;
    if (parent->depth < 2 || parent->L != L || !lua_getstack(L, 0, &ar))
        return;
    const vl_frame *top = &parent->frames[parent->depth - 1];
    if (top->ci == ar.i_ci && !top->function->chunk) {
        spawn->up = 1;
        spawn->site = vl_live_place(top->site);
    }
}

static vl_function *body_of(lua_State *L)
{
    if (!vl.private_layout || lua_type(L, 1) != LUA_TFUNCTION || lua_iscfunction(L, 1))
        return NULL;
    const vl_code *code = vl_ptrmap_get(&vl.codes, vl_closure_proto(lua_topointer(L, 1)));
    return code ? code->function : NULL;
}

/* Before it is told, for the reason in live.c. */
static void set_alive(vl_shadow *s, bool alive)
{
    vl_live_lock();
    s->alive = alive;
    vl_live_unlock();
}

static void create(vl_shadow *s, varve_spawn *spawn)
{
    spawn->domain = vl_id(&vl);
    spawn->name = s->body ? vl_live_name(s->body) : NULL;
    spawn->name_length = spawn->name ? strlen(spawn->name) : 0;
    set_alive(s, true);
    VARVE_RAISE(vl.host, thread_created, vl_id(s), spawn);
    if (vl.hooks)
        s->cookie = vl.hooks->map_thread ? vl.hooks->map_thread(vl.hooks->me, vl_id(s)) : s;
}

void vl_thread_created(lua_State *L, lua_State *created)
{
    const vl_shadow *creator = vl_shadow_of(L);
    vl_shadow *s = vl_shadow_new(created);
    *(vl_shadow **)lua_getextraspace(created) = s;
    if (!s)
        return;
    if (!vl_ptrmap_put(&vl.threads, lua_getextraspace(created), s)) {
        *(vl_shadow **)lua_getextraspace(created) = NULL;
        vl_shadow_free(s);
        return;
    }
    if (creator && creator->L == L) { /* as Lua does it for the real hook */
        s->user_hook = creator->user_hook;
        s->user_mask = creator->user_mask;
        s->user_count = creator->user_count;
    }
    varve_spawn spawn = {.parent = vl_id(vl.current)};
    spawn_place(L, vl.current, &spawn);
    s->body = body_of(L);
    create(s, &spawn);
}

static void start(vl_shadow *s, uint64_t ticks)
{
    if (!s->started)
        VARVE_RAISE(vl.host, thread_started, vl_id(s), ticks);
    s->started = true;
}

void vl_thread_ensure(vl_shadow *s)
{
    const vl_shadow *parent = s->resumer ? s->resumer : &vl.main;
    if (s->alive || parent == s)
        return;
    create(s, &(varve_spawn){.parent = vl_id(parent)});
    s->started = false;
    start(s, s->tick);
}

static void end_thread(vl_shadow *s, varve_ending how, uint64_t ticks)
{
    set_alive(s, false);
    VARVE_RAISE(vl.host, thread_destroyed, vl_id(s), how, ticks);
    s->cookie = NULL;
    s->started = false;
    s->state = VL_THREAD_OVER;
}

void vl_thread_main_begin(void)
{
    vl.main.state = VL_THREAD_RUNNING;
    create(&vl.main, &(varve_spawn){0});
    start(&vl.main, varve_ticks());
}

void vl_thread_main_end(varve_ending how, uint64_t ticks)
{
    end_thread(&vl.main, how, ticks);
}

/* A coroutine waited in its innermost call from its last switch on, until now. */
static void end_suspension(vl_shadow *s, uint64_t ticks)
{
    vl.suspend(s->cookie, s->tick);
    vl.resume(s->cookie, ticks);
    VARVE_RAISE(vl.host, thread_resumed, vl_id(s), ticks);
}

static void enter(vl_shadow *s, uint64_t ticks)
{
    s->tick = s->resumed = ticks;
    s->state = VL_THREAD_RUNNING;
    s->resumer = vl.current;
    vl.current = s;
}

/* Back to the resumer, who waited until now. */
static void leave(vl_shadow *s, uint64_t ticks)
{
    vl_shadow *resumer = vl.current = s->resumer;
    s->resumer = NULL;
    vl.suspend(resumer->cookie, s->resumed);
    vl.resume(resumer->cookie, ticks);
    VARVE_RAISE(vl.host, thread_resumed, vl_id(resumer), ticks);
}

static bool will_run(lua_State *L, const vl_shadow *s, int nargs)
{
    if (s->state == VL_THREAD_RUNNING)
        return false;
    if (lua_status(L) == LUA_YIELD)
        return s->state == VL_THREAD_SUSPENDED;
    return lua_status(L) == LUA_OK && lua_gettop(L) > nargs;
}

void vl_resume_begin(vl_resume *r, lua_State *L, int nargs)
{
    vl_shadow *s = vl_shadow_of(L);
    *r = (vl_resume){0};
    if (!s || s->L != L || !will_run(L, s, nargs))
        return;
    *r = (vl_resume){s, s->state};
    uint64_t ticks = varve_ticks();
    VARVE_RAISE(vl.host, thread_suspended, vl_id(vl.current), ticks);
    if (s->state == VL_THREAD_SUSPENDED)
        end_suspension(s, ticks);
    enter(s, ticks);
    vl_thread_ensure(s);
    start(s, ticks);
}

/* It has yielded, or was refused without a step and goes on to wait. */
static void suspended(vl_shadow *s)
{
    s->state = VL_THREAD_SUSPENDED;
    VARVE_RAISE(vl.host, thread_suspended, vl_id(s), s->tick);
}

static void ended(vl_shadow *s, bool failed)
{
    uint64_t ticks = s->depth ? varve_ticks() : s->tick;
    if (failed)
        vl_fault_unwind(s, 0, ticks);
    else
        vl_shadow_cut(s, 0, VARVE_ENDED_OK, ticks);
    end_thread(s, failed ? VARVE_ENDED_ERRORED : VARVE_ENDED_OK, s->tick);
}

void vl_resume_end(vl_resume *r, int status)
{
    vl_shadow *s = r->s;
    if (!s)
        return;
    bool failed = false;
    if (status == LUA_YIELD) {
        s->tick = varve_ticks();
        suspended(s);
    } else if (status != LUA_OK && lua_status(s->L) != status) { /* refused: the C stack is too deep for one more */
        s->state = r->before;
        if (s->state == VL_THREAD_SUSPENDED)
            suspended(s);
    } else {
        failed = status != LUA_OK;
        ended(s, failed);
    }
    leave(s, s->tick);
    if (failed)
        vl_fault_handed_on(vl.current, s);
}

/*
 * Closing a coroutine ends its calls first; the __close functions then run as calls of their own on its thread (or on a
 * new one, where it had died before).
 */
void vl_reset_begin(vl_resume *r, lua_State *L)
{
    vl_shadow *s = vl_shadow_of(L);
    *r = (vl_resume){0};
    if (!s || s->L != L || s->state == VL_THREAD_RUNNING)
        return;
    *r = (vl_resume){s, s->state};
    uint64_t ticks = varve_ticks();
    VARVE_RAISE(vl.host, thread_suspended, vl_id(vl.current), ticks);
    if (s->state == VL_THREAD_SUSPENDED)
        end_suspension(s, ticks);
    vl_shadow_cut(s, 0, VARVE_ENDED_CANCELLED, ticks);
    enter(s, ticks);
}

void vl_reset_end(vl_resume *r)
{
    vl_shadow *s = r->s;
    if (!s)
        return;
    bool failed = s->depth || s->throwing; /* a __close function */
    if (failed)
        vl_fault_unwind(s, 0, s->depth ? varve_ticks() : s->tick);
    uint64_t ticks = s->tick;
    if (s->alive)
        end_thread(s, r->before == VL_THREAD_OVER ? VARVE_ENDED_OK : VARVE_ENDED_CANCELLED, ticks);
    s->state = VL_THREAD_OVER;
    if (ticks > s->resumed) {
        leave(s, ticks);
    } else {
        vl.current = s->resumer;
        s->resumer = NULL;
        VARVE_RAISE(vl.host, thread_resumed, vl_id(vl.current), ticks);
    }
    if (failed)
        vl_fault_handed_on(vl.current, s);
}

static void end_stopped(vl_shadow *s, varve_ending how, uint64_t ticks)
{
    if (!s->alive)
        return;
    if (s->state == VL_THREAD_SUSPENDED)
        end_suspension(s, ticks);
    vl_shadow_cut(s, 0, how, ticks);
    end_thread(s, VARVE_ENDED_CANCELLED, ticks);
}

void vl_thread_collected(vl_shadow *s)
{
    end_stopped(s, VARVE_ENDED_CANCELLED, s->died);
    vl_shadow_free(s);
}

void vl_thread_exit_all(uint64_t ticks, varve_ending how)
{
    vl_live_hold(true); /* a profiler may make a collection run, but the list stays */
    while (vl.current && vl.current != &vl.main) {
        vl_shadow *s = vl.current;
        vl_shadow_cut(s, 0, how, ticks);
        end_thread(s, VARVE_ENDED_CANCELLED, ticks);
        leave(s, ticks);
    }
    for (vl_shadow *s = vl.all; s; s = s->next)
        end_stopped(s, how, ticks);
    if (vl.main.depth > vl.main.floor)
        vl_shadow_cut(&vl.main, vl.main.floor, how, ticks);
    vl_live_hold(false);
}
