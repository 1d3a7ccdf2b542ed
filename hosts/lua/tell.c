#include "config.h"
#include "hosts/lua/tell.h"

#include "hosts/lua/live.h"

/* The call whose event is being raised. */
static struct {
    lua_State *L; /* NULL: none, or its values can't be seen */
    lua_Debug *ar;
    varve_values_kind which;
} call;

void vl_tell_entered(vl_shadow *s, lua_State *L, lua_Debug *ar, uint64_t ticks)
{
    if (!varve_host_wants(vl.host, VARVE_ON_call_entered))
        return;
    const vl_frame *top = &s->frames[s->depth - 1];
    __typeof__(call) before = call; /* a profiler may make a coroutine run, in a finalizer */
    call = (__typeof__(call)){L, ar, VARVE_VALUES_ARGUMENTS};
    varve_raise_call_entered(vl.host, vl_id(s), vl_id(top->function), vl_live_place(top->site), ticks);
    call = before;
}

void vl_tell_left(vl_shadow *s, lua_State *L, lua_Debug *ar, varve_ending how, uint64_t ticks)
{
    if (!varve_host_wants(vl.host, VARVE_ON_call_left))
        return;
    __typeof__(call) before = call;
    call = (__typeof__(call)){ar ? L : NULL, ar, VARVE_VALUES_RESULTS};
    varve_raise_call_left(vl.host, vl_id(s), vl_id(s->frames[s->depth - 1].function), how, ticks);
    call = before;
}

/* The value at the top of the stack, which also stands in a slot of the call. */
static varve_value value_at_top(lua_State *L)
{
    varve_value v = {.kind = VARVE_VALUE_NIL};
    switch (lua_type(L, -1)) {
    case LUA_TNIL:
        break;
    case LUA_TBOOLEAN:
        v.kind = VARVE_VALUE_BOOL;
        v.as.boolean = lua_toboolean(L, -1);
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(L, -1)) {
            v.kind = VARVE_VALUE_INT;
            v.as.integer = lua_tointeger(L, -1);
        } else {
            v.kind = VARVE_VALUE_FLOAT;
            v.as.real = lua_tonumber(L, -1);
        }
        break;
    case LUA_TSTRING:
        v.kind = VARVE_VALUE_TEXT;
        v.as.text.bytes = lua_tolstring(L, -1, &v.as.text.length);
        break;
    default:
        v.kind = VARVE_VALUE_OBJECT;
        v.as.object.id = vl_id(lua_topointer(L, -1));
        v.as.object.type = lua_typename(L, lua_type(L, -1));
    }
    return v;
}

/* Slot n of the call, where it has one. */
static bool take(int n, varve_value *into, size_t room, size_t *count)
{
    if (!lua_getlocal(call.L, call.ar, n))
        return false;
    if (*count < room)
        into[*count] = value_at_top(call.L);
    ++*count;
    lua_pop(call.L, 1);
    return true;
}

static size_t arguments(varve_value *into, size_t room)
{
    size_t count = 0;
    lua_Debug a = {.i_ci = call.ar->i_ci};
    lua_getinfo(call.L, "Su", &a);
    bool native = *a.what == 'C';
    for (int n = 1; (native || n <= a.nparams) && take(n, into, room, &count); n++)
        ;
    for (int n = -1; a.isvararg && !native && take(n, into, room, &count); n--)
        ;
    return count;
}

static size_t results(varve_value *into, size_t room)
{
    size_t count = 0;
    lua_Debug a = {.i_ci = call.ar->i_ci};
    lua_getinfo(call.L, "r", &a);
    for (int n = 0; n < a.ntransfer && take(a.ftransfer + n, into, room, &count); n++)
        ;
    return count;
}

varve_code vl_tell_values(void *me, varve_values_kind which, varve_value *into, size_t room, size_t *ret_count)
{
    (void)me;
    uint64_t bit = which == VARVE_VALUES_ARGUMENTS ? VARVE_CALL_ARGUMENTS : VARVE_CALL_RESULTS;
    if (!vl_interpreter || !call.L || call.which != which || !varve_host_wants(vl.host, bit))
        return VARVE_E_UNAVAILABLE;
    *ret_count = which == VARVE_VALUES_ARGUMENTS ? arguments(into, room) : results(into, room);
    return VARVE_OK;
}
