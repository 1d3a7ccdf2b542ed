#include "config.h"
#include "hosts/lua/recorder.h"

#include "hosts/lua/chunk.h"
#include "hosts/lua/identity.h"

/* The site of a call out of the frame `top`, whose activation is `caller`. */
static inline uint32_t call_site(lua_State *L, const vl_frame *top, const vl_callinfo *caller)
{
    vl_code *code = top->code;
    if (!code->code)
        return 0;
    size_t pc = (size_t)(caller->u.lua.savedpc - code->code) - 1;
    if (pc >= code->code_size)
        return 0;
    if (code->sites && code->sites[pc])
        return code->sites[pc] - 1;
    return vl_site_slow(L, caller, code, (uint32_t)pc);
}

static inline vl_code *identify(lua_State *L, lua_Debug *ar, const vl_callinfo *ci)
{
    const void *key = vl_function_key(ci->func);
    vl_code *code = vl_ptrmap_get(&vl.codes, key);
    if (__builtin_expect(!code || !code->function->id, 0))
        return vl_identify_slow(L, ar, key);
    return code;
}

static inline bool push(vl_shadow *s, const void *ci, vl_code *code, uint32_t site)
{
    if (__builtin_expect(s->depth == s->cap, 0) && !vl_shadow_grow(s))
        return false;
    s->frames[s->depth++] = (vl_frame){ci, code, code->function, site, code->function->tail_line < 0};
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
static __attribute__((noinline)) void call_without_caller(vl_shadow *s, const vl_callinfo *ci, vl_code *code)
{
    vl_shadow_no_caller(s);
    /* With no call open, time since the last event would be nobody's. */
    uint64_t ticks = s->depth ? varve_ticks() : s->tick;
    if (push(s, ci, code, 0))
        varve_call_begin_at(s->thread, code->function->id, 0, ticks);
}

static inline void on_call(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    const vl_callinfo *ci = (const vl_callinfo *)(void *)ar->i_ci;
    vl_code *code = identify(L, ar, ci);
    const vl_callinfo *caller = ci->previous;
    if (__builtin_expect(!s->depth || s->frames[s->depth - 1].ci != caller, 0) && !vl_shadow_unwind(s, caller)) {
        call_without_caller(s, ci, code);
        return;
    }
    uint32_t site = call_site(L, &s->frames[s->depth - 1], caller);
    if (push(s, ci, code, site))
        varve_call_begin(s->thread, code->function->id, site);
}

static inline void on_return(vl_shadow *s, const void *ci)
{
    if (__builtin_expect(!s->depth || s->frames[s->depth - 1].ci != ci, 0) && !vl_shadow_unwind(s, ci))
        return;
    if (__builtin_expect(s->depth <= s->floor, 0))
        return;
    if (--s->depth) {
        varve_call_end(s->thread, VARVE_CALL_OK);
    } else {
        s->tick = varve_ticks();
        varve_call_end_at(s->thread, VARVE_CALL_OK, s->tick);
    }
}

/* The activation stays, its function is another now: the replaced one has ended, its caller is the new one's. */
static void on_tail_call(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    const vl_callinfo *ci = (const vl_callinfo *)(void *)ar->i_ci;
    vl_code *code = identify(L, ar, ci);
    if (!vl_shadow_unwind(s, ci) || s->depth <= s->floor) {
        on_call(s, L, ar);
        return;
    }
    vl_frame *f = &s->frames[s->depth - 1];
    uint32_t site = vl_tail_site(f->function, f->line);
    uint64_t ticks = varve_ticks();
    varve_call_end_at(s->thread, VARVE_CALL_OK, ticks);
    *f = (vl_frame){ci, code, code->function, site, code->function->tail_line < 0};
    varve_call_begin_at(s->thread, code->function->id, site, ticks);
}

static void on_line(vl_shadow *s, const lua_Debug *ar)
{
    vl_frame *top = &s->frames[s->depth - 1];
    if (s->depth && top->line && top->ci == ar->i_ci && ar->currentline > 0)
        top->line = (uint32_t)ar->currentline;
}

void vl_hook(lua_State *L, lua_Debug *ar)
{
    vl_shadow *s = vl_shadow_of(L);
    if (__builtin_expect(!s || s->L != L, 0) && !(s = vl_shadow_at_hook(L)))
        return;
    if (ar->event == LUA_HOOKCALL) {
        on_call(s, L, ar);
        follow_top(s, L, NULL);
    } else if (ar->event == LUA_HOOKRET) {
        on_return(s, ar->i_ci);
        follow_top(s, L, (vl_callinfo *)(void *)ar->i_ci);
    } else if (ar->event == LUA_HOOKTAILCALL) {
        on_tail_call(s, L, ar);
        follow_top(s, L, NULL);
    } else if (ar->event == LUA_HOOKLINE) {
        on_line(s, ar);
    }
    vl_user_hook(s, L, ar);
}
