#include "config.h"
#include "hosts/lua/fault.h"

#include <lauxlib.h>

#include "hosts/lua/layout.h"
#include "hosts/lua/unwind.h"

#define COLLECTABLE 0x40 /* a bit of a value's tag */

static unsigned throwing; /* shadows that are */

static struct {
    const vl_luastate *state;
    bool seen;
} trial;

static void set_throwing(vl_shadow *s, bool on)
{
    if (s->throwing == on)
        return;
    s->throwing = on;
    throwing += on ? 1u : -1u;
    vl.deferred = (vl.deferred & ~(unsigned)VL_DEFERRED_THROW) | (throwing ? VL_DEFERRED_THROW : 0);
}

static void tell_thrown(const vl_shadow *s, varve_object_id exception)
{
    VARVE_RAISE(vl.host, exception_thrown, vl_id(s), exception);
}

/* What is thrown, where it is an object. */
static varve_object_id object_of(const vl_luastate *state, int status)
{
    if (status != LUA_ERRRUN && status != LUA_ERRSYNTAX) /* out of memory, or of stack: the value isn't there yet */
        return 0;
    const vl_value *value = state->top - 1;
    return value->tag & COLLECTABLE ? vl_id(value->v.p) : 0;
}

static bool jumps_of(const vl_luastate *state, const void *where)
{
    return state->error_jump && where == state->error_jump->where;
}

void vl_fault_jump(const void *where)
{
    if (trial.state) {
        trial.seen |= jumps_of(trial.state, where) && trial.state->error_jump->status == LUA_ERRRUN &&
                      trial.state->allowhook == 1 && (trial.state->top - 1)->tag == LUA_TNUMBER;
        return;
    }
    if (!vl.L || !vl_interpreter || !vl.throws_seen)
        return;
    lua_State *L = vl.current->L;
    if (!jumps_of((const vl_luastate *)(const void *)L, where))
        L = vl.L;
    const vl_luastate *state = (const vl_luastate *)(const void *)L;
    vl_shadow *s = vl_shadow_of(L);
    if (!jumps_of(state, where) || state->error_jump->status <= LUA_YIELD || !s || s->L != L)
        return;
    /* In a finalizer or a hook of the program, errors are its own, but for the one that leaves the hook. */
    if (!state->allowhook && s->hook_jump != state->error_jump)
        return;
    s->hook_jump = NULL;
    vl_fault_settle(s, state->ci); /* an error before this one, which no event has told of yet */
    vl_unwind_thrown(s, L);
    tell_thrown(s, object_of(state, state->error_jump->status)); /* the frames are whole yet */
    set_throwing(s, true);
}

static int throw_number(lua_State *L)
{
    lua_pushinteger(L, 1);
    return lua_error(L);
}

void vl_fault_open(lua_State *L)
{
    trial.state = (const vl_luastate *)(const void *)L;
    trial.seen = false;
    lua_pushcfunction(L, throw_number);
    vl.throws_seen = lua_pcall(L, 0, 0, 0) == LUA_ERRRUN && trial.seen;
    lua_pop(L, 1);
    trial.state = NULL;
}

void vl_fault_unwind(vl_shadow *s, uint32_t n, uint64_t ticks)
{
    if (!s->throwing) {
        vl_unwind_late(s, n);
        set_throwing(s, true);
        tell_thrown(s, 0);
    }
    vl_shadow_cut(s, n, VARVE_ENDED_ERRORED, ticks);
    set_throwing(s, false);
}

static void tell_caught(vl_shadow *s, uint32_t n)
{
    varve_function_id function = n > s->floor ? vl_id(s->frames[n - 1].function) : 0;
    VARVE_RAISE(vl.host, exception_caught, vl_id(s), function);
}

void vl_fault_land(vl_shadow *s, uint32_t n)
{
    vl_fault_unwind(s, n, n < s->depth ? varve_ticks() : 0);
    vl_unwind_caught(s, n, s);
    tell_caught(s, n);
}

void vl_fault_caught(lua_State *L)
{
    lua_Debug ar;
    vl_shadow *s = vl_shadow_of(L);
    uint32_t n = s && s->L == L && lua_getstack(L, 0, &ar) ? vl_shadow_find(s, ar.i_ci) : 0;
    if (n)
        vl_fault_land(s, n);
}

void vl_fault_handed_on(vl_shadow *resumer, const vl_shadow *from)
{
    vl_unwind_caught(resumer, resumer->depth, from);
    tell_caught(resumer, resumer->depth);
}

void vl_fault_settle(vl_shadow *s, const void *ci)
{
    uint32_t n = s->throwing ? vl_shadow_find(s, ci) : 0;
    if (n)
        vl_fault_land(s, n);
}
