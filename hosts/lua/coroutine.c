#include "config.h"
#include "hosts/lua/recorder.h"

#include <string.h>

#include "hosts/lua/chunk.h"
#include "hosts/lua/layout.h"

/* Where a new thread of `parent` comes from: the caller of the C function that makes it (coroutine.create, wrap). */
static void spawn_place(lua_State *L, const vl_shadow *parent, unsigned *ret_up, uint32_t *ret_site)
{
    lua_Debug ar;
    *ret_up = 0;
    *ret_site = 0;
    if (parent->depth < 2 || parent->L != L || !lua_getstack(L, 0, &ar))
        return;
    const vl_frame *top = &parent->frames[parent->depth - 1];
    if (top->ci == ar.i_ci && !top->function->chunk) {
        *ret_up = 1;
        *ret_site = top->site;
    }
}

static void name_of_body(lua_State *L, char *ret, size_t n)
{
    *ret = '\0';
    if (vl.private_layout && lua_type(L, 1) == LUA_TFUNCTION && !lua_iscfunction(L, 1)) {
        const vl_code *code = vl_ptrmap_get(&vl.codes, vl_closure_proto(lua_topointer(L, 1)));
        if (code && code->function->chunk)
            vl_function_name(code->function, ret, n);
    }
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
    char name[256];
    unsigned up;
    uint32_t site;
    spawn_place(L, vl.current, &up, &site);
    name_of_body(L, name, sizeof name);
    s->thread = varve_thread_spawn(vl.current->thread, up, site, name, strlen(name));
}

static void start(vl_shadow *s, uint64_t ticks)
{
    if (!s->started)
        varve_thread_start(s->thread, ticks);
    s->started = true;
}

void vl_thread_ensure(vl_shadow *s)
{
    const vl_shadow *parent = s->resumer ? s->resumer : &vl.main;
    if (s->thread || parent == s)
        return;
    s->thread = varve_thread_spawn(parent->thread, 0, 0, NULL, 0);
    s->started = false;
    start(s, s->tick);
}

static void end_thread(vl_shadow *s, varve_thread_status status, uint64_t ticks)
{
    varve_thread_end_at(s->thread, status, ticks);
    s->thread = NULL;
    s->started = false;
    s->state = VL_THREAD_OVER;
}

/* The suspension that lasted since the thread's last tick. */
static void end_suspension(vl_shadow *s, uint64_t ticks)
{
    varve_await_begin(s->thread, s->tick);
    varve_await_end(s->thread, ticks);
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
    vl.current = s->resumer;
    s->resumer = NULL;
    varve_await_begin(vl.current->thread, s->resumed);
    varve_await_end(vl.current->thread, ticks);
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
    if (s->state == VL_THREAD_SUSPENDED)
        end_suspension(s, ticks);
    enter(s, ticks);
    vl_thread_ensure(s);
    start(s, ticks);
}

void vl_resume_end(vl_resume *r, int status)
{
    vl_shadow *s = r->s;
    if (!s)
        return;
    if (status == LUA_YIELD) {
        s->tick = varve_ticks();
        s->state = VL_THREAD_SUSPENDED;
    } else if (status != LUA_OK && lua_status(s->L) != status) {
        s->state = r->before; /* refused without a step: the C stack is too deep for one more */
    } else {
        if (s->depth)
            vl_shadow_cut(s, 0, status == LUA_OK ? VARVE_CALL_OK : VARVE_CALL_ERRORED, varve_ticks());
        end_thread(s, status == LUA_OK ? VARVE_THREAD_COMPLETED : VARVE_THREAD_ERRORED, s->tick);
    }
    leave(s, s->tick);
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
    if (s->state == VL_THREAD_SUSPENDED)
        end_suspension(s, ticks);
    vl_shadow_cut(s, 0, VARVE_CALL_CANCELLED, ticks);
    enter(s, ticks);
}

void vl_reset_end(vl_resume *r)
{
    vl_shadow *s = r->s;
    if (!s)
        return;
    if (s->depth)
        vl_shadow_cut(s, 0, VARVE_CALL_ERRORED, varve_ticks());
    uint64_t ticks = s->tick;
    if (s->thread)
        end_thread(s, r->before == VL_THREAD_OVER ? VARVE_THREAD_COMPLETED : VARVE_THREAD_CANCELLED, ticks);
    s->state = VL_THREAD_OVER;
    if (ticks > s->resumed) {
        leave(s, ticks);
    } else {
        vl.current = s->resumer;
        s->resumer = NULL;
    }
}

static void end_stopped(vl_shadow *s, varve_call_status status, uint64_t ticks)
{
    if (!s->thread)
        return;
    if (s->state == VL_THREAD_SUSPENDED)
        end_suspension(s, ticks);
    vl_shadow_cut(s, 0, status, ticks);
    end_thread(s, VARVE_THREAD_CANCELLED, ticks);
}

void vl_thread_freed(vl_shadow *s)
{
    vl_ptrmap_remove(&vl.threads, lua_getextraspace(s->L));
    end_stopped(s, VARVE_CALL_CANCELLED, varve_ticks());
    vl_shadow_free(s);
}

void vl_thread_exit_all(uint64_t ticks, varve_call_status status)
{
    while (vl.current && vl.current != &vl.main) {
        vl_shadow *s = vl.current;
        vl_shadow_cut(s, 0, status, ticks);
        end_thread(s, VARVE_THREAD_CANCELLED, ticks);
        leave(s, ticks);
    }
    for (vl_shadow *s = vl.all; s; s = s->next)
        end_stopped(s, status, ticks);
    if (vl.main.depth > vl.main.floor)
        vl_shadow_cut(&vl.main, vl.main.floor, status, ticks);
}
