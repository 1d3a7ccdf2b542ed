#include "config.h"
#include "hosts/lua/unwind.h"

#include <string.h>

#include "hosts/lua/driver.h"
#include "hosts/lua/identity.h"
#include "hosts/lua/layout.h"
#include "hosts/lua/live.h"
#include "hosts/lua/value.h"

enum { COLLECTABLE = 0x40, THREAD_TAG = LUA_TTHREAD | COLLECTABLE, NO_TAG = 0xff };

bool vl_unwind_remembers;
static vl_ptrmap remembered;      /* objects that were caught and not freed since -> themselves */
static unsigned inside;           /* shadows that are inside of what caught */
static const void *raisers[2];    /* the functions `error` and `assert` */
static const char original_key;   /* where the registry keeps what the interpreter's message handler was given */
static const lua_State *original; /* whose throw it is of; NULL: none */
static bool original_is_nil;

static const void *c_function(lua_State *L, const char *name)
{
    lua_getglobal(L, name);
    lua_CFunction f = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    return (const void *)(uintptr_t)f;
}

void vl_unwind_open(lua_State *L)
{
    vl_value_open(L);
    raisers[0] = c_function(L, "error");
    raisers[1] = c_function(L, "assert");
    lua_pushboolean(L, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &original_key); /* setting it later makes no object */
}

static const vl_luastate *state_of(const lua_State *L)
{
    return (const vl_luastate *)(const void *)L;
}

void vl_unwind_protect(vl_protected *p, lua_State *L)
{
    vl_shadow *s = vl.throws_seen ? vl_shadow_of(L) : NULL;
    p->s = s && s->L == L ? s : NULL;
    if (!p->s)
        return;
    p->up = s->protected;
    p->outer = state_of(L)->error_jump;
    p->depth = s->depth;
    s->protected = p;
}

/* The innermost pcall of a coroutine that may yield. */
static uint32_t yieldable_catcher(const vl_shadow *s, const vl_luastate *state)
{
    for (const vl_callinfo *ci = state->ci; ci; ci = ci->previous)
        if (ci->status & VL_CALL_YIELDABLE_PCALL)
            return vl_shadow_find(s, ci);
    return 0;
}

/* How many frames the error leaves, and whether that is the end of the program (of the coroutine, where it is one). */
static uint32_t frames_left(const vl_shadow *s, const vl_luastate *state, bool *ret_last)
{
    const vl_protected *p = s->protected;
    const void *outer = state->error_jump->previous;
    uint32_t left = s->floor;
    *ret_last = false;
    if (p && p->outer == outer) {
        left = p->depth;
        *ret_last = s == &vl.main && left <= s->floor && !vl_driver_interactive;
    } else if (s != &vl.main && !outer) {
        left = yieldable_catcher(s, state);
        *ret_last = !left;
    } else if (s == &vl.main && !p) {
        *ret_last = true;
    }
    return left < s->depth ? left : s->depth;
}

static const vl_callinfo *activation(const vl_frame *f)
{
    return f->ci;
}

static bool raises(const vl_frame *f)
{
    const void *key = vl_function_key(activation(f)->func);
    return key == raisers[0] || key == raisers[1];
}

/* A nil says nothing, and is never the same. */
static bool equal(const vl_thrown *a, const vl_value *b)
{
    int type = b->tag & 0xf;
    return a->tag == b->tag && type != LUA_TNIL && (a->bits == b->v.p || type == LUA_TBOOLEAN);
}

/* Whether this is what a protected call gave back before. Objects are known for good; a text or number counts only
 * where it leaves the call that caught it. */
static bool was_caught(const vl_shadow *s, const vl_value *v, uint32_t left)
{
    const vl_thrown *t = &s->caught.value;
    if (t->tag == NO_TAG || !s->caught.depth || !equal(t, v))
        return false;
    if (t->tag & COLLECTABLE && !vl_ptrmap_get(&remembered, t->bits))
        return false;
    bool plain = !(t->tag & COLLECTABLE) || (t->tag & 0xf) == LUA_TSTRING;
    return !plain || left + 1 < s->caught.depth;
}

static uint32_t site_of(const vl_frame *f)
{
    ptrdiff_t pc = activation(f)->u.lua.savedpc - f->code->code - 1;
    if (pc < 0 || (size_t)pc >= f->code->code_size || !f->code->proto)
        return 0;
    int line = vl_proto_line(f->code->proto, (int)pc);
    return (uint32_t)vl_live_site(f->function->chunk, line > 0 ? (uint32_t)line : 0)->cookie;
}

/* v NULL: the value can't be seen. */
static varve_error classify(const vl_shadow *s, const vl_luastate *state, const vl_value *v, uint32_t left)
{
    const vl_frame *top = &s->frames[s->depth - 1];
    bool native = !top->code->code;
    bool statement = native && s->depth > 1 && top[-1].code->code && raises(top);
    varve_error e = {.kind = VARVE_FRESH,
                     .source = native && !statement ? VARVE_FROM_NATIVE : VARVE_FROM_BYTECODE,
                     .function = (uint32_t)(statement ? top - 1 : top)->function->cookie};
    if (statement) {
        e.up = 1;
        e.site = (uint32_t)top->site->cookie;
    } else if (!native) {
        e.site = site_of(top);
    }
    /* `error` keeps what it was given, and may throw that with a position before it. */
    const vl_value *given = statement && state->ci == activation(top) ? activation(top)->func + 1 : NULL;
    bool again = (v && was_caught(s, v, left)) || (given && given < state->top && was_caught(s, given, left));
    if (again || (native && s->caught.inside && s->caught.depth == s->depth)) {
        e.kind = VARVE_RETHROW;
        if (s->caught.future)
            e.source = VARVE_FROM_FUTURE;
    }
    return e;
}

/* Pushes what is thrown where it isn't at the top already. */
static bool push_original(lua_State *L, bool last)
{
    bool is = original == L && last;
    original = NULL;
    if (!is || !lua_checkstack(L, 1))
        return false;
    if (original_is_nil)
        lua_pushnil(L);
    else
        lua_rawgetp(L, LUA_REGISTRYINDEX, &original_key);
    return true;
}

static void put_value(varve_capture *c, lua_State *L, int status, bool seen)
{
    static const char memory[] = "not enough memory", handling[] = "error in error handling";
    if (seen)
        vl_value_put(c, L);
    else if (status == LUA_ERRMEM)
        varve_put_text(c, memory, sizeof memory - 1);
    else
        varve_put_text(c, handling, sizeof handling - 1);
}

void vl_unwind_thrown(vl_shadow *s, lua_State *L)
{
    const vl_luastate *state = state_of(L);
    int status = state->error_jump->status;
    bool last, seen = status == LUA_ERRRUN || status == LUA_ERRSYNTAX;
    s->thrown.tag = NO_TAG;
    if (!s->depth)
        return;
    uint32_t left = frames_left(s, state, &last);
    if (seen)
        s->thrown = (vl_thrown){(state->top - 1)->v.p, (state->top - 1)->tag};
    if (!vl.recorded)
        return;
    bool pushed = seen && push_original(L, last);
    varve_error e = classify(s, state, seen ? state->top - 1 : NULL, left);
    e.ends = last ? VARVE_ENDS_ALL : s->depth - left;
    varve_capture *c = varve_error_begin(s->cookie, &e);
    if (c) {
        put_value(c, L, status, seen);
        varve_capture_end(c);
    }
    if (pushed)
        lua_pop(L, 1);
}

void vl_unwind_late(vl_shadow *s, uint32_t n)
{
    s->thrown.tag = NO_TAG;
    if (!vl.recorded || n >= s->depth)
        return;
    const vl_frame *top = &s->frames[s->depth - 1];
    bool last = !n || (s == &vl.main && n <= s->floor && !vl_driver_interactive);
    varve_error e = {.kind = VARVE_FRESH,
                     .source = top->function->chunk ? VARVE_FROM_BYTECODE : VARVE_FROM_NATIVE,
                     .function = (uint32_t)top->function->cookie,
                     .ends = last ? VARVE_ENDS_ALL : s->depth - n};
    varve_capture *c = varve_error_begin(s->cookie, &e);
    if (c) {
        varve_put_omitted(c, VARVE_OMITTED_UNSUPPORTED, "an error that was seen when it was caught");
        varve_capture_end(c);
    }
}

static void set_inside(vl_shadow *s, bool on)
{
    if (s->caught.inside == on)
        return;
    s->caught.inside = on;
    inside += on ? 1u : -1u;
    vl.deferred = (vl.deferred & ~(unsigned)VL_DEFERRED_CAUGHT) | (inside ? VL_DEFERRED_CAUGHT : 0);
}

void vl_unwind_caught(vl_shadow *s, uint32_t n, const vl_shadow *from)
{
    if (!vl.throws_seen)
        return;
    vl_thrown t = from->thrown;
    bool object = t.tag != NO_TAG && t.tag & COLLECTABLE;
    if (object && (t.tag == THREAD_TAG || !vl_ptrmap_put(&remembered, t.bits, &remembered)))
        t.tag = NO_TAG;
    vl_unwind_remembers |= object;
    s->caught.value = t;
    s->caught.depth = n;
    s->caught.future = s != from;
    set_inside(s, n > s->floor);
}

void vl_unwind_event(vl_shadow *s, const void *ci, int event)
{
    if (s->caught.inside && event == LUA_HOOKRET && s->depth >= s->caught.depth &&
        s->frames[s->caught.depth - 1].ci == ci)
        set_inside(s, false);
}

void vl_unwind_left(vl_shadow *s)
{
    if (s->caught.inside && s->depth < s->caught.depth)
        set_inside(s, false);
}

void vl_unwind_original(lua_State *L, int index)
{
    if (!vl.recorded || !vl.L)
        return;
    original = L;
    original_is_nil = lua_isnil(L, index);
    if (original_is_nil) /* storing nil would give the place back */
        return;
    lua_pushvalue(L, index);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &original_key);
}

void vl_unwind_freed(const void *block)
{
    vl_ptrmap_remove(&remembered, block);
    vl_unwind_remembers = remembered.used;
}
