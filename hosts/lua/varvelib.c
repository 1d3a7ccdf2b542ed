#include "config.h"
#include "hosts/lua/varvelib.h"

#include <lauxlib.h>
#include <string.h>
#include <varve.h>

#include "hosts/lua/callid.h"
#include "hosts/lua/host.h"
#include "hosts/lua/identity.h"
#include "hosts/lua/select.h"

#define LOCAL_ID "varve.LocalId"

/* An error of the caller's, as luaL_argerror says it. */
static int invalid(lua_State *L, int argument, const char *what)
{
    return luaL_argerror(L, argument, lua_pushfstring(L, "InvalidArgument: %s", what));
}

static varve_local_id *local_id_at(lua_State *L, int argument)
{
    varve_local_id **box = luaL_testudata(L, argument, LOCAL_ID);
    return box ? *box : NULL;
}

static varve_local_id *check_local_id(lua_State *L, int argument)
{
    varve_local_id *id = local_id_at(L, argument);
    if (!id)
        invalid(L, argument, lua_pushfstring(L, "LocalId expected, got %s", luaL_typename(L, argument)));
    return id;
}

static int consumed(lua_State *L)
{
    return invalid(L, 1, "the LocalId was passed to a call already");
}

static int new_id(lua_State *L)
{
    varve_local_id **box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = NULL;
    luaL_setmetatable(L, LOCAL_ID);
    *box = varve_local_id_new();
    return *box ? 1 : luaL_error(L, "Unavailable: no memory or no randomness for a LocalId");
}

static int id_collected(lua_State *L)
{
    varve_local_id **box = luaL_testudata(L, 1, LOCAL_ID);
    if (box) {
        varve_local_id_unref(*box);
        *box = NULL;
    }
    return 0;
}

static int id_text(lua_State *L)
{
    lua_pushstring(L, varve_local_id_text(check_local_id(L, 1)));
    return 1;
}

typedef enum { INPUTS, OUTPUT, ERRORS, ROLES } role;
static const char *const role_names[ROLES] = {[INPUTS] = "inputs", [OUTPUT] = "output", [ERRORS] = "error"};

static role role_named(lua_State *L, int index)
{
    const char *key = lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : NULL;
    role r = INPUTS;
    while (r < ROLES && !(key && !strcmp(key, role_names[r])))
        r++;
    if (r == ROLES)
        invalid(L, 2, lua_pushfstring(L, "no role is named %s", key ? lua_pushfstring(L, "'%s'", key)
                                                                    : luaL_typename(L, index)));
    return r;
}

/* The table's entries are taken as they are: no metamethod is asked. */
static void read_roles(lua_State *L, varve_switch *roles)
{
    if (lua_isnoneornil(L, 2))
        return;
    if (!lua_istable(L, 2))
        invalid(L, 2, lua_pushfstring(L, "table expected, got %s", luaL_typename(L, 2)));
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        role r = role_named(L, -2);
        if (!lua_isboolean(L, -1))
            invalid(L, 2, lua_pushfstring(L, "%s must be true, false or nil, got %s", role_names[r],
                                          luaL_typename(L, -1)));
        roles[r] = lua_toboolean(L, -1) ? VARVE_SWITCH_ON : VARVE_SWITCH_OFF;
    }
}

static int id_capture(lua_State *L)
{
    varve_switch roles[ROLES] = {VARVE_SWITCH_KEEP, VARVE_SWITCH_KEEP, VARVE_SWITCH_KEEP};
    varve_local_id *id = check_local_id(L, 1);
    read_roles(L, roles);
    if (!varve_local_id_capture(id, roles[INPUTS], roles[OUTPUT], roles[ERRORS]))
        return consumed(L);
    lua_settop(L, 1);
    return 1;
}

/* The Lua function that a call of this value runs. */
static const void *check_callee(lua_State *L, int argument)
{
    bool object = !lua_isfunction(L, argument) && luaL_getmetafield(L, argument, "__call") != LUA_TNIL;
    int at = object ? lua_gettop(L) : argument;
    if (!lua_isfunction(L, at))
        invalid(L, argument, lua_pushfstring(L, "function expected, got %s", luaL_typename(L, argument)));
    if (lua_iscfunction(L, at))
        invalid(L, argument, "a LocalId can't be passed to a C function");
    const void *callee = lua_topointer(L, at);
    if (object)
        lua_pop(L, 1);
    return callee;
}

static int call_done(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    return lua_gettop(L) - 1;
}

int vl_call_function(lua_State *L)
{
    varve_local_id *id = check_local_id(L, 1);
    vl_call_passed *p;
    const void *callee = check_callee(L, 2);
    p = lua_newuserdatauv(L, sizeof *p, 0); /* what can fail does before the id is consumed */
    *p = (vl_call_passed){.mark = &vl_call_passed_mark, .callee = callee};
    strcpy(p->text, varve_local_id_text(id));
    if (!varve_local_id_consume(id, &p->policy))
        return consumed(L);
    lua_replace(L, 1);
    lua_callk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, call_done);
    return call_done(L, LUA_OK, 0);
}

static int current(lua_State *L)
{
    lua_Debug caller;
    const char *text = lua_getstack(L, 1, &caller) ? vl_call_id(L, &caller) : NULL;
    if (text)
        lua_pushstring(L, text);
    else
        lua_pushnil(L);
    return 1;
}

/* The id that the argument is, as bytes and as text. */
static void check_runtime_id(lua_State *L, int argument, uint8_t ret[16], char ret_text[VL_CALL_ID_TEXT])
{
    const varve_local_id *id = local_id_at(L, argument);
    size_t n;
    const char *text = lua_type(L, argument) == LUA_TSTRING ? lua_tolstring(L, argument, &n) : NULL;
    if (id)
        memcpy(ret, varve_local_id_bytes(id), 16);
    else if (!text)
        invalid(L, argument, lua_pushfstring(L, "LocalId or text of one expected, got %s", luaL_typename(L, argument)));
    else if (!varve_runtime_id_parse(text, n, ret))
        invalid(L, argument, "the text is no runtime id");
    varve_runtime_id_text(ret, ret_text);
}

static int set(lua_State *L)
{
    uint8_t id[16];
    char text[VL_CALL_ID_TEXT];
    lua_Debug caller;
    check_runtime_id(L, 1, id, text);
    if (!lua_getstack(L, 1, &caller))
        return invalid(L, 1, "there is no call to have it");
    if (!vl_call_id_set(L, &caller, text))
        return luaL_error(L, "not enough memory");
    vl_select_set_id(L, &caller, id);
    return 0;
}

static int llm(lua_State *L)
{
    if (!lua_isfunction(L, 1))
        return invalid(L, 1, lua_pushfstring(L, "function expected, got %s", luaL_typename(L, 1)));
    if (vl.L)
        vl_identify_as_llm(L, 1);
    lua_settop(L, 1);
    return 1;
}

int vl_open_library(lua_State *L)
{
    static const luaL_Reg methods[] = {{"capture", id_capture}, {NULL, NULL}};
    static const luaL_Reg metamethods[] = {{"__tostring", id_text}, {"__gc", id_collected}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"id", new_id}, {"call", vl_call_function}, {"current", current},
                                         {"set", set},   {"llm", llm},               {NULL, NULL}};
    luaL_newmetatable(L, LOCAL_ID);
    luaL_setfuncs(L, metamethods, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
