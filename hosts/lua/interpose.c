#include "config.h"

#include <dlfcn.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hosts/lua/alloc.h"
#include "hosts/lua/chunk.h"
#include "hosts/lua/collect.h"
#include "hosts/lua/fault.h"
#include "hosts/lua/interpose.h"
#include "hosts/lua/live.h"
#include "hosts/lua/host.h"
#include "hosts/lua/unwind.h"

/*
 * liblua calls its own public functions through the dynamic linker, so a definition in the executable stands before the
 * library's, for calls from inside it too: what pcall, coroutine.resume, debug.sethook and load do passes here, without
 * any change to the script's globals.
 */
#define EXPORT __attribute__((visibility("default")))

/* The library's own function of that name. */
#define REAL(name)                                                  \
    static __typeof__(&name) real;                                  \
    if (__builtin_expect(!real, 0)) {                               \
        void *symbol = dlsym(RTLD_NEXT, #name);                     \
        memcpy(&real, &symbol, sizeof real);                        \
    }

bool vl_interpose_creating;
time_t vl_interpose_seed_time = -1;

static bool recorded(lua_State *L)
{
    return vl.L && lua_getallocf(L, NULL) == vl_alloc;
}

static vl_shadow *own_shadow(lua_State *L)
{
    vl_shadow *s = recorded(L) ? vl_shadow_of(L) : NULL;
    return s && s->L == L ? s : NULL;
}

/* What died is told soon, and outside of events too. */
static void settle(void)
{
    if (vl.deferred & VL_DEFERRED_DEATHS)
        vl_live_settle();
}

EXPORT lua_State *lua_newstate(lua_Alloc f, void *ud)
{
    REAL(lua_newstate);
    return vl_interpose_creating ? real(vl_alloc, NULL) : real(f, ud);
}

EXPORT time_t time(time_t *ret)
{
    REAL(time);
    if (vl_interpose_creating && vl_interpose_seed_time >= 0) {
        if (ret)
            *ret = vl_interpose_seed_time;
        return vl_interpose_seed_time;
    }
    return real(ret);
}

EXPORT lua_State *lua_newthread(lua_State *L)
{
    REAL(lua_newthread);
    lua_State *created = real(L);
    if (recorded(L)) {
        settle();
        vl_thread_created(L, created);
    }
    return created;
}

EXPORT int lua_resume(lua_State *L, lua_State *from, int nargs, int *nresults)
{
    REAL(lua_resume);
    if (!recorded(L))
        return real(L, from, nargs, nresults);
    vl_resume r;
    settle();
    vl_resume_begin(&r, L, nargs);
    int status = real(L, from, nargs, nresults);
    vl_resume_end(&r, status);
    return status;
}

EXPORT int lua_resetthread(lua_State *L)
{
    REAL(lua_resetthread);
    if (!recorded(L))
        return real(L);
    vl_resume r;
    vl_reset_begin(&r, L);
    int status = real(L);
    vl_reset_end(&r);
    return status;
}

#if LUA_VERSION_RELEASE_NUM >= 50406
EXPORT int lua_closethread(lua_State *L, lua_State *from)
{
    REAL(lua_closethread);
    if (!recorded(L))
        return real(L, from);
    vl_resume r;
    vl_reset_begin(&r, L);
    int status = real(L, from);
    vl_reset_end(&r);
    return status;
}
#endif

EXPORT int lua_pcallk(lua_State *L, int nargs, int nresults, int msgh, lua_KContext ctx, lua_KFunction k)
{
    REAL(lua_pcallk);
    if (!recorded(L))
        return real(L, nargs, nresults, msgh, ctx, k);
    vl_protected p = {0};
    if (!k || !lua_isyieldable(L)) /* else Lua's resume is what catches, and finds the way back to k */
        vl_unwind_protect(&p, L);
    int status = real(L, nargs, nresults, msgh, ctx, k);
    vl_unwind_protected(&p);
    if (status != LUA_OK && recorded(L))
        vl_fault_caught(L);
    return status;
}

EXPORT int lua_gc(lua_State *L, int what, ...)
{
    REAL(lua_gc);
    static const uint8_t arguments[] = {[LUA_GCSTEP] = 1, [LUA_GCSETPAUSE] = 1, [LUA_GCSETSTEPMUL] = 1,
                                        [LUA_GCGEN] = 2, [LUA_GCINC] = 3};
    int given[3] = {0};
    va_list list;
    va_start(list, what);
    for (int i = 0; what >= 0 && what < (int)sizeof arguments && i < arguments[what]; i++)
        given[i] = va_arg(list, int);
    va_end(list);
    bool tell = what == LUA_GCCOLLECT && recorded(L) && vl_collect_forced_begin(L);
    int result = real(L, what, given[0], given[1], given[2]);
    if (tell) {
        vl_collect_forced_end(L);
        settle();
    }
    return result;
}

EXPORT void lua_close(lua_State *L)
{
    REAL(lua_close);
    /* os.exit(code, true) comes here with the script's calls open; what they leave to be closed runs below the root. */
    bool by_driver = vl.current == &vl.main && vl.main.depth == vl.main.floor;
    if (recorded(L))
        vl_thread_exit_all(varve_ticks(), by_driver ? VARVE_ENDED_CANCELLED : VARVE_ENDED_EXITED);
    real(L);
}

EXPORT void lua_sethook(lua_State *L, lua_Hook hook, int mask, int count)
{
    REAL(lua_sethook);
    vl_shadow *s = own_shadow(L);
    if (!s) {
        real(L, hook, mask, count);
        return;
    }
    if (!hook || !mask) {
        hook = NULL;
        mask = 0;
    }
    s->user_mask = 0; /* first off: a signal handler may be here, and the hook in the middle of reading these */
    s->user_hook = hook;
    s->user_count = count;
    s->user_mask = mask;
    s->watching = false;
    real(L, vl.hook, mask | VL_OWN_MASK, count);
}

EXPORT lua_Hook lua_gethook(lua_State *L)
{
    REAL(lua_gethook);
    vl_shadow *s = own_shadow(L);
    return s ? s->user_hook : real(L);
}

EXPORT int lua_gethookmask(lua_State *L)
{
    REAL(lua_gethookmask);
    vl_shadow *s = own_shadow(L);
    return s ? s->user_mask : real(L);
}

EXPORT int lua_gethookcount(lua_State *L)
{
    REAL(lua_gethookcount);
    vl_shadow *s = own_shadow(L);
    return s ? s->user_count : real(L);
}

/* Keeps what a reader gave. The text is for names only: where memory is out, they are numbers. */
typedef struct {
    lua_Reader reader;
    void *data;
    char *text;
    size_t n, cap;
    bool failed;
} capture;

static void keep(capture *c, const char *piece, size_t n)
{
    if (c->failed || !piece || !n)
        return;
    if (n > c->cap - c->n) {
        size_t cap = c->n + n > c->cap * 2 ? c->n + n : c->cap * 2;
        char *text = realloc(c->text, cap);
        if (!text) {
            c->failed = true;
            return;
        }
        c->text = text;
        c->cap = cap;
    }
    memcpy(c->text + c->n, piece, n);
    c->n += n;
}

static const char *capturing_reader(lua_State *L, void *data, size_t *size)
{
    capture *c = data;
    const char *piece = c->reader(L, c->data, size);
    keep(c, piece, piece ? *size : 0);
    return piece;
}

static bool load_seen;

bool vl_interpose_works(lua_State *L)
{
    load_seen = false;
    luaL_loadstring(L, "");
    lua_pop(L, 1);
    return load_seen;
}

EXPORT int lua_load(lua_State *L, lua_Reader reader, void *data, const char *name, const char *mode)
{
    REAL(lua_load);
    load_seen = true;
    if (!recorded(L))
        return real(L, reader, data, name, mode);
    capture c = {.reader = reader, .data = data};
    vl_protected p;
    vl_unwind_protect(&p, L);
    int status = real(L, capturing_reader, &c, name, mode);
    vl_unwind_protected(&p);
    settle();
    if (status == LUA_OK)
        vl_chunk_loaded(L, c.failed ? "" : c.text ? c.text : "", c.failed ? 0 : c.n);
    else
        vl_fault_caught(L);
    free(c.text);
    return status;
}
