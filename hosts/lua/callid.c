#include "config.h"
#include "hosts/lua/callid.h"

#include <stdlib.h>
#include <string.h>

#include "hosts/lua/layout.h"
#include "hosts/lua/ptrmap.h"

typedef struct {
    const void *function;
    bool tail; /* the activation was a tail call's when the id was set */
    char text[VL_CALL_ID_TEXT];
} kept;

const char vl_call_passed_mark;
bool vl_call_ids_kept;
static vl_ptrmap by_activation; /* Lua's CallInfo -> kept */

/* The function of the activation, and whether a tail call led to it. */
static const void *function_of(lua_State *L, lua_Debug *ar, bool *ret_tail)
{
    lua_Debug a = {.i_ci = ar->i_ci};
    lua_getinfo(L, "ft", &a);
    const void *function = lua_topointer(L, -1);
    lua_pop(L, 1);
    *ret_tail = a.istailcall;
    return function;
}

/* The activation that called this one by an ordinary call. */
static bool caller_of(lua_State *L, lua_Debug *ar, lua_Debug *ret)
{
    for (int level = 0; lua_getstack(L, level, ret); level++)
        if (ret->i_ci == ar->i_ci)
            return lua_getstack(L, level + 1, ret);
    return false;
}

/* What varve.call keeps in its frame; NULL: this is no such frame. */
static vl_call_passed *passed_by(lua_State *L, lua_Debug *caller)
{
    lua_Debug a = {.i_ci = caller->i_ci};
    lua_getinfo(L, "f", &a);
    bool passes = lua_tocfunction(L, -1) == vl_call_function;
    lua_pop(L, 1);
    if (!passes || !lua_getlocal(L, &a, 1))
        return NULL;
    vl_call_passed *p = lua_rawlen(L, -1) == sizeof *p ? lua_touserdata(L, -1) : NULL;
    lua_pop(L, 1);
    return p && p->mark == &vl_call_passed_mark ? p : NULL;
}

static vl_call_passed *passed_to(lua_State *L, lua_Debug *ar)
{
    lua_Debug caller;
    bool tail;
    const void *function = function_of(L, ar, &tail);
    vl_call_passed *p = !tail && caller_of(L, ar, &caller) ? passed_by(L, &caller) : NULL;
    return p && p->callee == function ? p : NULL;
}

const vl_call_passed *vl_call_passed_to(lua_State *L, lua_Debug *ar)
{
    return passed_to(L, ar);
}

/* By the public layout there is no mark to see, and an activation is taken for the one it was. */
static bool is_marked(const lua_Debug *ar)
{
    return !vl_layout_holds() || ((const vl_callinfo *)(const void *)ar->i_ci)->status & VL_CALL_HAS_ID;
}

static kept *kept_for(lua_State *L, lua_Debug *ar)
{
    kept *k = vl_call_ids_kept && is_marked(ar) ? vl_ptrmap_get(&by_activation, ar->i_ci) : NULL;
    if (!k)
        return NULL;
    bool tail;
    const void *function = function_of(L, ar, &tail);
    return k->function == function && k->tail == tail ? k : NULL;
}

const char *vl_call_id(lua_State *L, lua_Debug *ar)
{
    const vl_call_passed *p = passed_to(L, ar);
    if (p)
        return p->text;
    const kept *k = kept_for(L, ar);
    return k ? k->text : NULL;
}

static kept *keep_for(lua_State *L, lua_Debug *ar)
{
    kept *k = vl_ptrmap_get(&by_activation, ar->i_ci);
    if (!k && (k = malloc(sizeof *k)) && !vl_ptrmap_put(&by_activation, ar->i_ci, k)) {
        free(k);
        return NULL;
    }
    if (!k)
        return NULL;
    k->function = function_of(L, ar, &k->tail);
    if (vl_layout_holds())
        ((vl_callinfo *)(void *)ar->i_ci)->status |= VL_CALL_HAS_ID;
    vl_call_ids_kept = true;
    return k;
}

bool vl_call_id_set(lua_State *L, lua_Debug *ar, const char *text)
{
    vl_call_passed *p = passed_to(L, ar);
    kept *k = p ? NULL : keep_for(L, ar);
    if (!p && !k)
        return false;
    memcpy(p ? p->text : k->text, text, VL_CALL_ID_TEXT);
    return true;
}

void vl_call_id_freed(const void *block)
{
    free(vl_ptrmap_remove(&by_activation, block));
    vl_call_ids_kept = by_activation.used;
}
