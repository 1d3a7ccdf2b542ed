#include "config.h"
#include "hosts/lua/layout.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(vl_callinfo) == 64, "CallInfo of Lua 5.4.4 on a 64-bit machine");
_Static_assert(sizeof(vl_proto) == 128, "Proto of Lua 5.4.4 on a 64-bit machine");
_Static_assert(offsetof(vl_lua_closure, p) == 24 && offsetof(vl_c_closure, f) == 24, "closures of Lua 5.4.4");
_Static_assert(offsetof(vl_global, white) == 100, "global_State of Lua 5.4.4");

/* Walks the lines from the first instruction on. */
typedef struct {
    const vl_proto *p;
    int pc, line, next_abs;
} line_walk;

static int next_line(line_walk *w)
{
    const vl_proto *p = w->p;
    int i = w->pc++;
    if (p->lineinfo[i] != VL_LINE_ABSOLUTE) {
        w->line += p->lineinfo[i];
    } else {
        while (w->next_abs < p->sizeabslineinfo && p->abslineinfo[w->next_abs].pc < i)
            w->next_abs++;
        if (w->next_abs < p->sizeabslineinfo)
            w->line = p->abslineinfo[w->next_abs].line;
    }
    return w->line;
}

int vl_proto_line(const vl_proto *p, int pc)
{
    if (!p->lineinfo || pc < 0 || pc >= p->sizelineinfo)
        return 0;
    line_walk w = {.p = p, .line = p->linedefined};
    while (w.pc < pc)
        next_line(&w);
    return next_line(&w);
}

static int by_line(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

size_t vl_proto_lines(const vl_proto *p, uint32_t *into, size_t room)
{
    if (!p->lineinfo || p->sizelineinfo <= 0)
        return 0;
    int *lines = malloc((size_t)p->sizelineinfo * sizeof *lines);
    if (!lines)
        return SIZE_MAX;
    size_t n = 0, different = 0;
    line_walk w = {.p = p, .line = p->linedefined};
    while (w.pc < p->sizelineinfo) {
        int line = next_line(&w);
        if (w.pc > 1 || !p->is_vararg) /* a vararg function's first instruction makes ready, and is no line's */
            lines[n++] = line;
    }
    qsort(lines, n, sizeof *lines, by_line);
    for (size_t i = 0; i < n; i++) {
        if (i && lines[i] == lines[i - 1])
            continue;
        if (different < room)
            into[different] = (uint32_t)lines[i];
        different++;
    }
    free(lines);
    return different;
}

int vl_proto_tail_line(const vl_proto *p)
{
    int line = 0;
    for (int pc = 0; pc < p->sizecode; pc++) {
        if (vl_opcode(p->code[pc]) != VL_OP_TAILCALL)
            continue;
        int here = vl_proto_line(p, pc);
        if (line && here != line)
            return -1;
        line = here;
    }
    return line;
}

/* What the trial run has seen. The hook can't have an argument of its own; only vl_layout_holds uses it, at start. */
static struct {
    bool good;
    unsigned lua_calls, c_light, c_closures, tail_calls;
} trial;

static bool function_agrees(lua_State *L, const vl_callinfo *ci, lua_Debug *ar)
{
    bool ok;
    lua_getinfo(L, "Sf", ar);
    if (*ar->what == 'C') {
        lua_CFunction f = lua_tocfunction(L, -1);
        bool light = ci->func->tag == VL_TAG_C_LIGHT;
        ok = ci->status & VL_CALL_IS_C &&
             (light ? ci->func->v.f == f
                    : ci->func->tag == VL_TAG_C_CLOSURE && ci->func->v.p == lua_topointer(L, -1) &&
                          ((const vl_c_closure *)ci->func->v.p)->f == f);
        trial.c_light += light;
        trial.c_closures += !light;
    } else {
        const vl_proto *p;
        ok = !(ci->status & VL_CALL_IS_C) && ci->func->tag == VL_TAG_LUA && ci->func->v.p == lua_topointer(L, -1) &&
             (p = vl_closure_proto(ci->func->v.p)) && p->linedefined == ar->linedefined &&
             p->lastlinedefined == ar->lastlinedefined;
        trial.lua_calls++;
    }
    lua_pop(L, 1);
    return ok;
}

static bool caller_agrees(lua_State *L, const vl_callinfo *ci)
{
    lua_Debug caller;
    if (!lua_getstack(L, 1, &caller)) /* the base level is nobody's function */
        return !ci->previous->previous;
    if ((void *)caller.i_ci != (void *)ci->previous)
        return false;
    lua_getinfo(L, "lS", &caller);
    if (*caller.what == 'C')
        return ci->previous->status & VL_CALL_IS_C;
    const vl_proto *p = vl_closure_proto(ci->previous->func->v.p);
    ptrdiff_t pc = ci->previous->u.lua.savedpc - p->code - 1;
    return pc >= 0 && pc < p->sizecode && vl_proto_line(p, (int)pc) == caller.currentline;
}

static void trial_hook(lua_State *L, lua_Debug *ar)
{
    const vl_callinfo *ci = (const vl_callinfo *)(void *)ar->i_ci;
    if (!trial.good)
        return;
    trial.good = ((const vl_luastate *)(const void *)L)->ci == ci && function_agrees(L, ci, ar);
    if (trial.good && ar->event == LUA_HOOKCALL)
        trial.good = caller_agrees(L, ci);
    trial.tail_calls += ar->event == LUA_HOOKTAILCALL;
}

static const char trial_text[] =
    "local function leaf(a, b)\n"
    "  return a\n"
    "end\n"
    "local function tail(n)\n"
    "  local x = leaf(n)\n\n\n\n"
    "  x = leaf(x,\n"
    "    select('#', n))\n"
    "  return leaf(x)\n"
    "end\n"
    "local function vararg(...) local t = function() return leaf(1) end return tail(..., t) end\n"
    "vararg(1)\n"
    "for w in string.gmatch('a b', '%a') do vararg(w) end\n";

/* The proto tree of the trial text: main, and leaf, tail, vararg with one child. */
static bool tree_agrees(const vl_proto *main_proto, const char *source)
{
    static const struct {
        int first, last, children;
    } want[] = {{1, 3, 0}, {4, 12, 0}, {13, 13, 1}};
    if (main_proto->sizep != 3 || main_proto->linedefined != 0 || !strstr(source, "layout"))
        return false;
    for (int i = 0; i < 3; i++) {
        const vl_proto *p = main_proto->p[i];
        if (p->linedefined != want[i].first || p->lastlinedefined != want[i].last || p->sizep != want[i].children)
            return false;
    }
    const vl_proto *tail = main_proto->p[1];
    int tails = 0;
    for (int pc = 0; pc < tail->sizecode; pc++)
        tails += vl_opcode(tail->code[pc]) == VL_OP_TAILCALL && vl_proto_line(tail, pc) == 11;
    return tails == 1;
}

static bool trial_run(lua_State *L)
{
    luaL_openlibs(L);
    if (luaL_loadbuffer(L, trial_text, sizeof trial_text - 1, "=layout") != LUA_OK)
        return false;
    lua_Debug ar;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &ar);
    if (!tree_agrees(vl_closure_proto(lua_topointer(L, -1)), ar.source))
        return false;
    trial.good = true;
    trial.lua_calls = trial.c_light = trial.c_closures = trial.tail_calls = 0;
    const vl_luastate *state = (const vl_luastate *)(const void *)L;
    lua_sethook(L, trial_hook, LUA_MASKCALL | LUA_MASKRET, 12345);
    if (state->hook != trial_hook || state->hookmask != (LUA_MASKCALL | LUA_MASKRET) || state->basehookcount != 12345 ||
        state->ci != &state->base_ci)
        return false;
    bool ran = lua_pcall(L, 0, 0, 0) == LUA_OK;
    lua_sethook(L, NULL, 0, 0);
    return ran && trial.good && trial.lua_calls && trial.c_light && trial.c_closures && trial.tail_calls;
}

/* The collector's state, seen over a whole collection, a first step of the next, and a change of mode. */
static bool collector_agrees(lua_State *L)
{
    const vl_global *g = vl_global_of(L);
    lua_gc(L, LUA_GCINC, 0, 100, 2); /* small steps: the first of a collection doesn't end it */
    lua_gc(L, LUA_GCCOLLECT);
    uint8_t white = g->white;
    lua_gc(L, LUA_GCCOLLECT);
    bool ok = g->gc_state == VL_GC_PAUSE && !g->gc_generational && (white ^ g->white) == 0x18 && !g->gc_stopped &&
              vl_global_bytes(g) == (size_t)lua_gc(L, LUA_GCCOUNT) * 1024 + (size_t)lua_gc(L, LUA_GCCOUNTB);
    lua_gc(L, LUA_GCSTOP);
    ok = ok && g->gc_stopped;
    lua_gc(L, LUA_GCSTEP, 0);
    ok = ok && g->gc_state == VL_GC_PROPAGATE;
    lua_gc(L, LUA_GCRESTART);
    lua_gc(L, LUA_GCGEN, 0, 0);
    return ok && g->gc_generational == 1 && !g->gc_stopped;
}

static bool check(void)
{
    extern const char lua_ident[];
    if (sizeof(void *) != 8 || !strstr(lua_ident, "Lua 5.4.4 "))
        return false;
    lua_State *L = luaL_newstate();
    if (!L)
        return false;
    bool ok = trial_run(L) && collector_agrees(L);
    lua_close(L);
    return ok;
}

bool vl_layout_holds(void)
{
    static enum { UNKNOWN, HOLDS, DOES_NOT } known;
    if (known == UNKNOWN) {
        const char *layout = getenv("VARVE_LUA_LAYOUT");
        known = (!layout || strcmp(layout, "public") != 0) && check() ? HOLDS : DOES_NOT;
    }
    return known == HOLDS;
}
