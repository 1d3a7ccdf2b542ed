#include "config.h"
#include "hosts/lua/host.h"

#include <stdatomic.h>

#include "hosts/lua/chunk.h"
#include "hosts/lua/fault.h"
#include "hosts/lua/identity.h"
#include "hosts/lua/live.h"
#include "hosts/lua/select.h"
#include "hosts/lua/tell.h"
#include "hosts/lua/unwind.h"

/* The site of a call out of the frame `top`, whose activation is `caller`. */
static inline const vl_site *call_site(lua_State *L, const vl_frame *top, const vl_callinfo *caller)
{
    vl_code *code = top->code;
    if (!code->code)
        return vl_live_site(NULL, 0);
    size_t pc = (size_t)(caller->u.lua.savedpc - code->code) - 1;
    if (pc >= code->code_size)
        return vl_live_site(NULL, 0);
    if (code->sites && code->sites[pc])
        return code->sites[pc];
    return vl_site_slow(L, caller, code, (uint32_t)pc);
}

/* NULL: it must be looked at before it is called. */
static inline vl_code *plain_code(const vl_callinfo *ci)
{
    vl_code *code = vl_ptrmap_get(&vl.codes, vl_function_key(ci->func));
    return __builtin_expect(code && code->plain, 1) ? code : NULL;
}

static vl_code *identify(lua_State *L, lua_Debug *ar, const vl_callinfo *ci)
{
    vl_code *code = plain_code(ci);
    return code ? code : vl_identify_slow(L, ar, vl_function_key(ci->func));
}

static inline bool at_caller(vl_shadow *s, const void *caller)
{
    return __builtin_expect(s->depth && s->frames[s->depth - 1].ci == caller, 1) || vl_shadow_unwind(s, caller);
}

static inline bool push(vl_shadow *s, const void *ci, vl_code *code, const vl_site *site)
{
    if (__builtin_expect(s->depth == s->cap, 0) && !vl_shadow_grow(s))
        return false;
    s->frames[s->depth] = (vl_frame){ci, code, code->function, site, code->function->tail_line < 0, false};
    atomic_signal_fence(memory_order_release); /* whoever interrupts sees whole frames */
    s->depth++;
    return true;
}

/*
 * Lua forgets where a tail call came from before it tells the hook. Functions that make tail calls from several lines
 * are watched: while one of them is the top, the hook has line events too. lua_sethook would walk all activations, so
 * the mask is written directly (the private layout holds, or no function is known to be such a one).
 */
static __attribute__((noinline)) void watch(vl_shadow *s, lua_State *L, bool want)
{
    vl_luastate *state = (vl_luastate *)(void *)L;
    int user;
    do { /* an interrupt may set a hook meanwhile */
        user = s->user_mask;
        state->hookmask = VL_OWN_MASK | user | (want ? LUA_MASKLINE : 0);
    } while (user != s->user_mask);
    s->watching = want;
}

/* After each event: line events go with the top frame. `left` is the activation that returns, if any. */
static inline void follow_top(vl_shadow *s, lua_State *L, vl_callinfo *left)
{
    const vl_frame *top = &s->frames[s->depth - 1];
    bool want = s->depth && top->line;
    if (__builtin_expect(want == s->watching && !want, 1))
        return;
    if (want != s->watching)
        watch(s, L, want);
    if (want && left) { /* the interpreter loop takes over the flag of the activation it leaves */
        ((vl_callinfo *)(uintptr_t)top->ci)->u.lua.trap = 1;
        if (!(left->status & VL_CALL_IS_C))
            left->u.lua.trap = 1;
    }
}

/* The first call of a thread, or one whose caller is no frame of it: a __close run by the end of its thread. */
static __attribute__((noinline)) void call_without_caller(vl_shadow *s, lua_State *L, lua_Debug *ar, vl_code *code)
{
    vl_shadow_no_caller(s);
    /* With no call open, time since the last event would be nobody's. */
    uint64_t ticks = s->depth ? varve_ticks() : s->tick;
    if (push(s, ar->i_ci, code, vl_live_site(NULL, 0))) {
        vl_enter_top(s, L, ar, ticks);
        vl_tell_entered(s, L, ar, ticks);
    }
}

/* Any call: a function's first one, or one that policy may select. */
static __attribute__((noinline)) void call_in_full(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    const vl_callinfo *ci = (const vl_callinfo *)(void *)ar->i_ci;
    vl_code *code = identify(L, ar, ci);
    if (!at_caller(s, ci->previous)) {
        call_without_caller(s, L, ar, code);
        return;
    }
    const vl_site *site = call_site(L, &s->frames[s->depth - 1], ci->previous);
    if (!push(s, ci, code, site))
        return;
    uint64_t ticks = varve_ticks();
    vl_enter_top(s, L, ar, ticks);
    vl_tell_entered(s, L, ar, ticks);
}

/* `tell`: beside the fast hooks there is somebody who wants the events. */
static inline __attribute__((always_inline)) void on_call(vl_shadow *s, lua_State *L, lua_Debug *ar, bool tell)
{
    const vl_callinfo *ci = (const vl_callinfo *)(void *)ar->i_ci;
    vl_code *code = plain_code(ci);
    if (!code) {
        call_in_full(s, L, ar);
        return;
    }
    if (!at_caller(s, ci->previous)) {
        call_without_caller(s, L, ar, code);
        return;
    }
    const vl_frame *top = &s->frames[s->depth - 1];
    if (!top->code->code && __builtin_expect(top->code->passes_id, 0)) {
        call_in_full(s, L, ar);
        return;
    }
    const vl_site *site = call_site(L, top, ci->previous);
    if (!push(s, ci, code, site))
        return;
    if (!tell) {
        vl.enter(s->cookie, code->function->cookie, site->cookie);
    } else {
        uint64_t ticks = varve_ticks();
        vl.enter_at(s->cookie, code->function->cookie, site->cookie, ticks);
        vl_tell_entered(s, L, ar, ticks);
    }
}

static inline __attribute__((always_inline)) void on_return(vl_shadow *s, lua_State *L, lua_Debug *ar, bool tell)
{
    const void *ci = ar->i_ci;
    if (__builtin_expect(!s->depth || s->frames[s->depth - 1].ci != ci, 0) && !vl_shadow_unwind(s, ci))
        return;
    if (__builtin_expect(s->depth <= s->floor, 0))
        return;
    bool output = s->frames[s->depth - 1].output;
    if (!tell && !output && s->depth > 1) {
        s->depth--;
        vl.leave(s->cookie, VARVE_ENDED_OK);
        return;
    }
    uint64_t ticks = varve_ticks();
    if (output)
        vl_select_output(s, L, ar);
    vl_tell_left(s, L, ar, VARVE_ENDED_OK, ticks);
    if (!--s->depth)
        s->tick = ticks;
    vl.leave_at(s->cookie, VARVE_ENDED_OK, ticks);
}

/* The activation stays, its function is another now: the replaced one has ended, its caller is the new one's. */
static void on_tail_call(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    const vl_callinfo *ci = (const vl_callinfo *)(void *)ar->i_ci;
    vl_code *code = identify(L, ar, ci);
    if (!vl_shadow_unwind(s, ci) || s->depth <= s->floor) {
        on_call(s, L, ar, true);
        return;
    }
    vl_frame *f = &s->frames[s->depth - 1];
    const vl_site *site = vl_tail_site(f->function, f->line);
    uint64_t ticks = varve_ticks();
    if (f->output)
        vl_select_output(s, L, NULL);
    vl_tell_left(s, L, NULL, VARVE_ENDED_OK, ticks);
    vl.leave_at(s->cookie, VARVE_ENDED_OK, ticks);
    f = &s->frames[s->depth - 1];
    *f = (vl_frame){ci, code, code->function, site, code->function->tail_line < 0, false};
    vl_enter_top(s, L, ar, ticks);
    vl_tell_entered(s, L, ar, ticks);
}

static void on_line(vl_shadow *s, const lua_Debug *ar)
{
    vl_frame *top = &s->frames[s->depth - 1];
    if (s->depth && top->line && top->ci == ar->i_ci && ar->currentline > 0)
        top->line = (uint32_t)ar->currentline;
}

static inline __attribute__((always_inline)) void on_event(vl_shadow *s, lua_State *L, lua_Debug *ar, bool tell)
{
    if (ar->event == LUA_HOOKCALL) {
        on_call(s, L, ar, tell);
        follow_top(s, L, NULL);
    } else if (ar->event == LUA_HOOKRET) {
        on_return(s, L, ar, tell);
        follow_top(s, L, (vl_callinfo *)(void *)ar->i_ci);
    } else if (ar->event == LUA_HOOKTAILCALL) {
        on_tail_call(s, L, ar);
        follow_top(s, L, NULL);
    } else if (ar->event == LUA_HOOKLINE) {
        on_line(s, ar);
    }
}

static __attribute__((noinline)) void on_event_slow(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    const vl_callinfo *ci = (const vl_callinfo *)(void *)ar->i_ci;
    if (vl.deferred & VL_DEFERRED_THROW)
        vl_fault_settle(s, ar->event == LUA_HOOKCALL ? ci->previous : ci);
    if (vl.deferred & VL_DEFERRED_CAUGHT)
        vl_unwind_event(s, ci, ar->event);
    if (vl.deferred & VL_DEFERRED_DEATHS)
        vl_live_settle();
    on_event(s, L, ar, true);
}

void vl_hook(lua_State *L, lua_Debug *ar)
{
    vl_shadow *s = vl_shadow_of(L);
    if (__builtin_expect(!s || s->L != L, 0) && !(s = vl_shadow_at_hook(L)))
        return;
    if (__builtin_expect(vl_slow(), 0))
        on_event_slow(s, L, ar);
    else
        on_event(s, L, ar, false);
    vl_user_hook(s, L, ar);
}
