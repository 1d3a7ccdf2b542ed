#include "config.h"
#include "hosts/lua/public.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/lua/chunk.h"
#include "hosts/lua/identity.h"
#include "hosts/lua/live.h"
#include "hosts/lua/select.h"
#include "hosts/lua/tell.h"

/* What is known of a live source string. */
typedef struct {
    struct vl_chunk *chunk;
    vl_code codes[]; /* by function of the chunk */
} source;

static vl_ptrmap sources; /* text of the source string -> source */
static size_t text_offset;

bool vl_public_open(lua_State *L)
{
    char probe[100];
    memset(probe, 'p', sizeof probe);
    const char *text = lua_pushlstring(L, probe, sizeof probe);
    const char *block = vl_alloc_last_string;
    bool inside = block && text > block && text - block < 64;
    if (inside)
        text_offset = (size_t)(text - block);
    lua_pop(L, 1);
    return inside;
}

void vl_source_learn(const char *text, struct vl_chunk *chunk)
{
    if (!chunk || vl_ptrmap_get(&sources, text))
        return;
    size_t n = chunk->names.n;
    source *s = calloc(1, sizeof *s + n * sizeof *s->codes);
    if (!s)
        return;
    s->chunk = chunk;
    if (!vl_ptrmap_put(&sources, text, s)) {
        free(s);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        s->codes[i].function = &chunk->functions[i];
        vl_live_code(&s->codes[i]);
    }
}

void vl_public_freed(const void *block)
{
    source *s = vl_ptrmap_remove(&sources, (const char *)block + text_offset);
    for (size_t i = 0; s && i < s->chunk->names.n; i++)
        vl_live_code_gone(&s->codes[i]);
    free(s);
}

vl_code *vl_public_known(const lua_Debug *ar)
{
    source *s = vl_ptrmap_get(&sources, ar->source);
    return s ? &s->codes[vl_chunk_function(s->chunk, ar->linedefined, ar->lastlinedefined)->index] : NULL;
}

vl_code *vl_public_code(lua_State *L, const lua_Debug *ar)
{
    source *s = vl_ptrmap_get(&sources, ar->source);
    if (!s) {
        vl_source_learn(ar->source, vl_chunk_without_text(L, ar->source));
        s = vl_ptrmap_get(&sources, ar->source);
    }
    if (!s)
        return NULL;
    vl_function *f = vl_chunk_function(s->chunk, ar->linedefined, ar->lastlinedefined);
    if (!f->mapped)
        vl_live_map(f);
    return &s->codes[f->index];
}

static vl_code *identify(lua_State *L, const lua_Debug *event)
{
    static vl_function no_function = {.mapped = true};
    static vl_code no_code = {.function = &no_function};
    lua_Debug ar;
    ar.i_ci = event->i_ci;
    lua_getinfo(L, "S", &ar);
    vl_code *code;
    if (*ar.what == 'C') {
        lua_getinfo(L, "f", &ar);
        lua_CFunction f = lua_tocfunction(L, -1);
        lua_pop(L, 1);
        code = vl_identify_slow(L, &ar, (const void *)(uintptr_t)f);
    } else {
        code = vl_public_code(L, &ar);
    }
    return code ? code : &no_code;
}

static const vl_site *call_site(lua_State *L, const vl_frame *top, lua_Debug *caller)
{
    if (!top->function->chunk)
        return vl_live_site(NULL, 0);
    lua_getinfo(L, "l", caller);
    return vl_live_site(top->function->chunk, caller->currentline > 0 ? (uint32_t)caller->currentline : 0);
}

static void push(vl_shadow *s, lua_State *L, lua_Debug *ar, vl_code *code, const vl_site *site, uint64_t ticks)
{
    if (s->depth == s->cap && !vl_shadow_grow(s))
        return;
    s->frames[s->depth] = (vl_frame){.ci = ar->i_ci, .code = code, .function = code->function, .site = site};
    atomic_signal_fence(memory_order_release);
    s->depth++;
    vl_enter_top(s, L, ar, ticks);
    vl_tell_entered(s, L, ar, ticks);
}

static void on_call(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    vl_code *code = identify(L, ar);
    lua_Debug caller;
    bool found = lua_getstack(L, 1, &caller) && vl_shadow_unwind(s, caller.i_ci);
    if (!found)
        vl_shadow_no_caller(s);
    const vl_site *site = found ? call_site(L, &s->frames[s->depth - 1], &caller) : vl_live_site(NULL, 0);
    push(s, L, ar, code, site, s->depth ? varve_ticks() : s->tick);
}

static void leave(vl_shadow *s, lua_State *L, lua_Debug *ar, uint64_t ticks)
{
    if (s->frames[s->depth - 1].output)
        vl_select_output(s, L, ar);
    vl_tell_left(s, L, ar, VARVE_ENDED_OK, ticks);
    if (!--s->depth)
        s->tick = ticks;
    vl.leave_at(s->cookie, VARVE_ENDED_OK, ticks);
}

static void on_return(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    if (vl_shadow_unwind(s, ar->i_ci) && s->depth > s->floor)
        leave(s, L, ar, varve_ticks());
}

static void on_tail_call(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    if (!vl_shadow_unwind(s, ar->i_ci) || s->depth <= s->floor) {
        on_call(s, L, ar);
        return;
    }
    vl_code *code = identify(L, ar);
    uint64_t ticks = varve_ticks();
    leave(s, L, NULL, ticks);
    push(s, L, ar, code, vl_live_site(NULL, 0), ticks);
}

void vl_public_hook(lua_State *L, lua_Debug *ar)
{
    vl_shadow *s = vl_shadow_at_hook(L);
    if (!s)
        return;
    if (vl.deferred & VL_DEFERRED_DEATHS)
        vl_live_settle();
    if (ar->event == LUA_HOOKCALL)
        on_call(s, L, ar);
    else if (ar->event == LUA_HOOKRET)
        on_return(s, L, ar);
    else if (ar->event == LUA_HOOKTAILCALL)
        on_tail_call(s, L, ar);
    vl_user_hook(s, L, ar);
}
