#include "config.h"
#include "hosts/lua/public.h"

#include <stdlib.h>
#include <string.h>

#include "hosts/lua/chunk.h"
#include "hosts/lua/identity.h"

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
    size_t n = vl_chunk_functions(chunk);
    source *s = calloc(1, sizeof *s + n * sizeof *s->codes);
    if (!s)
        return;
    s->chunk = chunk;
    if (!vl_ptrmap_put(&sources, text, s))
        free(s);
}

void vl_public_freed(const void *block)
{
    free(vl_ptrmap_remove(&sources, (const char *)block + text_offset));
}

static vl_code *identify_lua(lua_State *L, const lua_Debug *ar)
{
    source *s = vl_ptrmap_get(&sources, ar->source);
    if (!s) {
        vl_source_learn(ar->source, vl_chunk_without_text(L, ar->source));
        s = vl_ptrmap_get(&sources, ar->source);
    }
    if (!s)
        return NULL;
    vl_function *f = vl_chunk_function(s->chunk, ar->linedefined, ar->lastlinedefined);
    vl_code *code = &s->codes[f->index];
    code->function = f;
    code->file = vl_chunk_file(s->chunk);
    if (!f->id)
        vl_function_publish(f);
    return code;
}

static vl_code *identify(lua_State *L, const lua_Debug *event)
{
    static vl_function no_function;
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
        code = identify_lua(L, &ar);
    }
    return code ? code : &no_code;
}

static uint32_t call_site(lua_State *L, const vl_frame *top, lua_Debug *caller)
{
    if (!top->function->chunk)
        return 0;
    lua_getinfo(L, "l", caller);
    if (caller->currentline <= 0)
        return 0;
    return varve_site_add(vl.engine, top->code->file, 0, 0, (uint32_t)caller->currentline);
}

static void push(vl_shadow *s, const void *ci, vl_code *code, uint32_t site, uint64_t ticks)
{
    if (s->depth == s->cap && !vl_shadow_grow(s))
        return;
    s->frames[s->depth++] = (vl_frame){.ci = ci, .code = code, .function = code->function, .site = site};
    varve_call_begin_at(s->thread, code->function->id, site, ticks);
}

static void on_call(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    vl_code *code = identify(L, ar);
    lua_Debug caller;
    bool found = lua_getstack(L, 1, &caller) && vl_shadow_unwind(s, caller.i_ci);
    if (!found)
        vl_shadow_no_caller(s);
    uint32_t site = found ? call_site(L, &s->frames[s->depth - 1], &caller) : 0;
    push(s, ar->i_ci, code, site, s->depth ? varve_ticks() : s->tick);
}

static void on_return(vl_shadow *s, const lua_Debug *ar)
{
    if (!vl_shadow_unwind(s, ar->i_ci) || s->depth <= s->floor)
        return;
    vl_shadow_cut(s, s->depth - 1, VARVE_CALL_OK, varve_ticks());
}

static void on_tail_call(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    if (!vl_shadow_unwind(s, ar->i_ci) || s->depth <= s->floor) {
        on_call(s, L, ar);
        return;
    }
    vl_code *code = identify(L, ar);
    uint64_t ticks = varve_ticks();
    vl_shadow_cut(s, s->depth - 1, VARVE_CALL_OK, ticks);
    push(s, ar->i_ci, code, 0, ticks);
}

void vl_public_hook(lua_State *L, lua_Debug *ar)
{
    vl_shadow *s = vl_shadow_at_hook(L);
    if (!s)
        return;
    if (ar->event == LUA_HOOKCALL)
        on_call(s, L, ar);
    else if (ar->event == LUA_HOOKRET)
        on_return(s, ar);
    else if (ar->event == LUA_HOOKTAILCALL)
        on_tail_call(s, L, ar);
    vl_user_hook(s, L, ar);
}
