/*
 * varve-lua as a host of profilers: what stands between Lua's hooks and the host profiling contract (varve-host.h).
 *
 *     vl_host_open      host, profilers, main thread; the hook goes in
 *     vl_host_close     what is still open ends; profilers are told, the recorder closes its session
 *
 * One Lua universe (the interpreter's own global state) and one OS thread; states that C modules create for themselves
 * aren't told about. Everything hangs off the one `vl`, as neither hooks nor allocators of the interposed calls carry a
 * context.
 *
 * Ids: the domain is `vl`, a module a vl_chunk, a function a vl_function, a thread a vl_shadow. Chunks and functions
 * stay for good, so the id of one that comes back is the one it had.
 */
#pragma once

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>
#include <varve-host.h>
#include <varve.h>

#include "hosts/lua/ptrmap.h"

struct vl_chunk;
struct vl_proto;
struct vl_code;

/* A line that calls are made from. */
typedef struct {
    varve_site_id place;
    uintptr_t cookie; /* the main profiler's, 0 where it has none */
} vl_site;

/* A function of the program, for good. */
typedef struct vl_function {
    struct vl_chunk *chunk; /* NULL: a C function */
    uint32_t index;         /* among the chunk's functions */
    int line;               /* linedefined */
    int tail_line;          /* of its tail calls: 0 = none or unknown, -1 = on several lines: its frames are watched */
    bool mapped;            /* cookie is known */
    uintptr_t cookie;       /* the main profiler's, asked for at the first call */
    char *name;             /* qualified; made when it is first needed, except for C functions */
    /* live.h */
    bool loaded;            /* enumeration finds it */
    bool dying;             /* is in the list of those whose last prototype was freed */
    struct vl_code *codes;  /* its live prototypes; C functions: none */
    struct vl_function *next;
} vl_function;

/* What the hook finds for a function that runs now. For Lua functions it lives as long as the prototype. */
typedef struct vl_code {
    vl_function *function;
    const uint32_t *code; /* its instructions, NULL for a C function */
    uint32_t code_size;
    bool plain;           /* its function is mapped, and policy does not select its calls by what they are */
    bool llm;             /* policy.llm of its calls */
    bool passes_id;       /* it is varve.call */
    vl_site **sites;      /* by instruction, NULL = not looked up yet; made at the first call out of here */
    const struct vl_proto *proto;
    struct vl_code *next, **link; /* of the function's */
} vl_code;

typedef struct {
    const void *ci; /* Lua's CallInfo: names the activation */
    vl_code *code;
    vl_function *function;
    const vl_site *site;
    uint32_t line; /* the line it is on, where it is watched; else 0 */
    bool output;   /* its results are to be captured (select.h) */
} vl_frame;

/* A value that was thrown, by its bits. tag 0xff: unknown. */
typedef struct {
    const void *bits;
    uint8_t tag;
} vl_thrown;

/* What a protected call gave back last. */
typedef struct {
    vl_thrown value;
    uint32_t depth; /* of the frame that made the protected call; 0: none yet */
    bool future;    /* it came out of another coroutine */
    bool inside;    /* that frame runs */
} vl_caught;

typedef enum { VL_THREAD_FRESH, VL_THREAD_RUNNING, VL_THREAD_SUSPENDED, VL_THREAD_OVER } vl_thread_state;

/* The shadow of one lua_State. Its extra space points here. */
typedef struct vl_shadow {
    lua_State *L;
    void *cookie; /* the main profiler's thread */
    vl_frame *frames;
    uint32_t depth, cap, floor; /* floor: frames that no event ends (the root's one) */
    vl_thread_state state;
    bool alive;                 /* enumeration finds it: thread_created was or is being raised, its end not yet */
    bool started;               /* thread_started was raised */
    bool throwing;              /* an error has left its frames, and no event has told yet who has it */
    /* unwind.h */
    vl_thrown thrown;
    vl_caught caught;
    const struct vl_protected *protected; /* the innermost */
    uint64_t tick;              /* of the last switch or of the last end that emptied the stack */
    uint64_t resumed;           /* tick of the last resume */
    struct vl_shadow *resumer;  /* who waits while this runs */
    vl_function *body;          /* what the coroutine was made of; NULL = unknown */
    lua_Hook user_hook;         /* the script's */
    volatile int user_mask;     /* a signal handler may set it */
    int user_count;
    void *hook_jump;            /* what an error in the script's hook, which runs now, would unwind to */
    bool watching;              /* the hook has line events for a frame of ours */
    struct vl_shadow *next, **link; /* all shadows */
    uint64_t died;              /* tick at which it was collected */
    struct vl_shadow *next_dead;
} vl_shadow;

/* What must be done at the next event before anything else. */
enum {
    VL_DEFERRED_DEATHS = 1, /* live.h: something was freed in a collection */
    VL_DEFERRED_THROW = 2,  /* fault.h: a shadow is throwing */
    VL_DEFERRED_CAUGHT = 4, /* unwind.h: the call that made a protected call, which failed, still runs */
};

typedef struct {
    varve_host *host;      /* never NULL: without one, nobody wants anything */
    unsigned deferred;
    /* The main profiler's fast hooks, or functions that do nothing. */
    void (*enter)(void *thread, uintptr_t function, uintptr_t site);
    void (*enter_at)(void *thread, uintptr_t function, uintptr_t site, uint64_t ticks);
    void (*leave)(void *thread, varve_ending how);
    void (*leave_at)(void *thread, varve_ending how, uint64_t ticks);
    void (*suspend)(void *thread, uint64_t ticks);
    void (*resume)(void *thread, uint64_t ticks);
    const varve_hooks *hooks; /* NULL: none */
    bool recorded;         /* the recorder is the main profiler: cookies are varve.h's handles and numbers */
    lua_State *L;          /* the main state; NULL while nobody is told anything */
    vl_shadow main, *all, *current;
    bool private_layout;   /* layout.h holds */
    bool throws_seen;      /* fault.h sees errors where they are thrown */
    lua_Hook hook;         /* of all states */
    const char *script;    /* as named on the command line; NULL = none */
    vl_ptrmap codes;       /* prototype or C function -> vl_code */
    vl_ptrmap threads;     /* block of a coroutine's state -> vl_shadow */
} vl_state;

extern vl_state vl;
/* True on the interpreter's OS thread once the host is open. */
extern __thread bool vl_interpreter;

/* Profilers that the command line asked for: FILE.so or FILE.so=ARGUMENTS each. They stay the caller's. */
void vl_host_profilers(const char *const *specs, size_t n);
/* Starts in L, from its running C function on, for a script (NULL: none) with n arguments. Does nothing where profiling
 * is off and no profiler is asked for. */
void vl_host_open(lua_State *L, const char *script, const char *const *arguments, int n);
/* The execution's result becomes `failed`; frames still open end as `status`. Safe to call again, or without an
 * open. */
void vl_host_close(bool failed, varve_ending status);

static inline uintptr_t vl_id(const void *p)
{
    return (uintptr_t)p;
}
/* Whether an event has more to do than to call the fast hooks. */
static inline bool vl_slow(void)
{
    return ((unsigned)varve_host_mask(vl.host) & VARVE_MON_ENTER_LEAVE) | vl.deferred;
}

/* shadow.c */
static inline vl_shadow *vl_shadow_of(lua_State *L)
{
    return *(vl_shadow **)lua_getextraspace(L);
}
vl_shadow *vl_shadow_new(lua_State *L);
void vl_shadow_free(vl_shadow *s);
/* Ends frames until n are left, all at one tick. */
void vl_shadow_cut(vl_shadow *s, uint32_t n, varve_ending how, uint64_t ticks);
/* Makes the frame of this activation the top, ending what vanished above it as errored: an error, which that frame has
 * now. False, and nothing done, where no frame has it. */
bool vl_shadow_unwind(vl_shadow *s, const void *ci);
/* The index of the frame of this activation + 1, or 0. */
uint32_t vl_shadow_find(const vl_shadow *s, const void *ci);
bool vl_shadow_grow(vl_shadow *s);
/* L's shadow, made now where the state became known without its creation. NULL where there is no memory. */
vl_shadow *vl_shadow_at_hook(lua_State *L);
/* A call comes from no frame of the thread: what is above the floor has vanished, and a thread that is over gets a
 * successor. */
void vl_shadow_no_caller(vl_shadow *s);

/* hook.c: the hook of every state, where the private layout holds. */
void vl_hook(lua_State *L, lua_Debug *ar);
/* Hands the event to the script's own hook, where it asked for it. */
void vl_user_hook_run(vl_shadow *s, lua_State *L, lua_Debug *ar);
static inline void vl_user_hook(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    if (__builtin_expect(s->user_mask, 0))
        vl_user_hook_run(s, L, ar);
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
/* Gives the shadow a thread where it has none: a coroutine that runs again after its end. */
void vl_thread_ensure(vl_shadow *s);
/* Raises the main thread's beginning and end. */
void vl_thread_main_begin(void);
void vl_thread_main_end(varve_ending how, uint64_t ticks);
/* A coroutine was collected at s->died: its end. Frees the shadow. */
void vl_thread_collected(vl_shadow *s);
/* Ends every coroutine and the frames above the root's, as exited. */
void vl_thread_exit_all(uint64_t ticks, varve_ending how);
