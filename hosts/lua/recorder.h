/*
 * varve-lua's recorder: what stands between Lua's hooks and libvarve.
 *
 *     vl_recorder_open      session, engine, root; the hook goes in
 *     vl_recorder_close     what is still open ends; the session closes
 *
 * One Lua universe (the interpreter's own global state) and one OS thread; states that C modules create for themselves
 * aren't recorded. Everything hangs off the one `vl`, as neither hooks nor allocators of the interposed calls carry a
 * context.
 */
#pragma once

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>
#include <varve.h>

#include "hosts/lua/ptrmap.h"

struct vl_chunk;

/* A function of the program, for good: one row of the engine's function table. */
typedef struct vl_function {
    struct vl_chunk *chunk; /* NULL: a C function */
    uint32_t index;         /* among the chunk's functions */
    uint32_t id;            /* libvarve's, given at the first call; 0 = not yet */
    int line;               /* linedefined */
    int tail_line;          /* of its tail calls: 0 = none or unknown, -1 = on several lines: its frames are watched */
    uint32_t tail_site;     /* tail_site_line's */
    uint32_t tail_site_line;
} vl_function;

/* What the hook finds for a function that runs now. For Lua functions it lives as long as the prototype. */
typedef struct {
    vl_function *function;
    const uint32_t *code; /* its instructions, NULL for a C function */
    uint32_t code_size, file;
    uint32_t *sites; /* by instruction: call site + 1 (0 = not looked up yet); made at the first call out of here */
} vl_code;

typedef struct {
    const void *ci; /* Lua's CallInfo: names the activation */
    vl_code *code;
    vl_function *function;
    uint32_t site;
    uint32_t line; /* the line it is on, where it is watched; else 0 */
} vl_frame;

typedef enum { VL_THREAD_FRESH, VL_THREAD_RUNNING, VL_THREAD_SUSPENDED, VL_THREAD_OVER } vl_thread_state;

/* The shadow of one lua_State. Its extra space points here. */
typedef struct vl_shadow {
    lua_State *L;
    varve_thread *thread; /* NULL where it has none (yet) */
    vl_frame *frames;
    uint32_t depth, cap, floor; /* floor: frames that no event ends (the root's one) */
    vl_thread_state state;
    bool started;               /* varve_thread_start was called */
    uint64_t tick;              /* of the last switch or of the last end that emptied the stack */
    uint64_t resumed;           /* tick of the last resume */
    struct vl_shadow *resumer;  /* who waits while this runs */
    lua_Hook user_hook;         /* the script's */
    volatile int user_mask;     /* a signal handler may set it */
    int user_count;
    bool watching;              /* the hook has line events for a frame of ours */
    struct vl_shadow *next, **link; /* all shadows */
} vl_shadow;

typedef struct {
    varve_session *session;
    varve_engine *engine;
    varve_root *root;
    lua_State *L;          /* the main state; NULL while nothing is recorded */
    vl_shadow main, *all, *current;
    bool private_layout;   /* layout.h holds */
    lua_Hook hook;         /* of all recorded states */
    bool root_failed;
    const char *script;    /* as named on the command line; NULL = none */
    vl_ptrmap codes;       /* prototype or C function -> vl_code */
    vl_ptrmap threads;     /* block of a coroutine's state -> vl_shadow */
} vl_state;

extern vl_state vl;

/* Starts recording in L, from its running C function on. Does nothing where profiling is off. */
void vl_recorder_open(lua_State *L, const char *script);
/* The root's result becomes `failed`; frames still open end as `status`. Safe to call again, or without an open. */
void vl_recorder_close(bool failed, varve_call_status status);

/* shadow.c */
static inline vl_shadow *vl_shadow_of(lua_State *L)
{
    return *(vl_shadow **)lua_getextraspace(L);
}
vl_shadow *vl_shadow_new(lua_State *L);
void vl_shadow_free(vl_shadow *s);
/* Ends frames until n are left, all at one tick. */
void vl_shadow_cut(vl_shadow *s, uint32_t n, varve_call_status status, uint64_t ticks);
/* Makes the frame of this activation the top, ending what vanished above it as errored. False, and nothing done,
 * where no frame has it. */
bool vl_shadow_unwind(vl_shadow *s, const void *ci);
/* The index of the frame of this activation + 1, or 0. */
uint32_t vl_shadow_find(const vl_shadow *s, const void *ci);
bool vl_shadow_grow(vl_shadow *s);
/* L's shadow, made now where the state became known without its creation. NULL where there is no memory. */
vl_shadow *vl_shadow_at_hook(lua_State *L);
/* A call comes from no frame of the thread: what is above the floor has vanished, and a thread that is over gets a
 * successor. */
void vl_shadow_no_caller(vl_shadow *s);

/* hook.c: the hook of every recorded state, where the private layout holds. */
void vl_hook(lua_State *L, lua_Debug *ar);
/* Hands the event to the script's own hook, where it asked for it. */
static inline void vl_user_hook(const vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    if (__builtin_expect(s->user_mask, 0)) {
        /* Lua's masks are bits by event number; a tail call is a call. */
        int bit = ar->event == LUA_HOOKTAILCALL ? LUA_MASKCALL : 1 << ar->event;
        lua_Hook user = s->user_hook;
        if (user && s->user_mask & bit)
            user(L, ar);
    }
}
#define VL_OWN_MASK (LUA_MASKCALL | LUA_MASKRET)

/* coroutine.c */
void vl_thread_created(lua_State *L, lua_State *created);
/* What a resume must know before it, to close it after. */
typedef struct {
    vl_shadow *s; /* NULL: nothing will run */
    vl_thread_state before;
} vl_resume;
void vl_resume_begin(vl_resume *r, lua_State *L, int nargs);
void vl_resume_end(vl_resume *r, int status);
void vl_reset_begin(vl_resume *r, lua_State *L);
void vl_reset_end(vl_resume *r);
/* The block of a coroutine's state is about to be freed. */
void vl_thread_freed(vl_shadow *s);
/* Gives the shadow a thread where it has none: a coroutine that runs again after its end. */
void vl_thread_ensure(vl_shadow *s);
/* Ends every coroutine and the frames above the root's, as exited. */
void vl_thread_exit_all(uint64_t ticks, varve_call_status status);
