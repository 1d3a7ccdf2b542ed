/*
 * The private layout of Lua 5.4.4, as far as the hook reads it.
 *
 * The public interface names the running function by lua_getinfo, which costs more than all the rest of an event. These
 * mirrors of Lua's own structures are used only where the library says it is exactly 5.4.4 and vl_layout_holds has seen
 * them agree with lua_getinfo on live functions; elsewhere the hook uses the public interface (identity.h).
 */
#pragma once

#include <lua.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint32_t vl_instruction;

#define VL_OBJECT_HEAD \
    void *next;        \
    uint8_t tt, marked

typedef struct {
    union {
        void *p;
        lua_CFunction f;
    } v;
    uint8_t tag;
} vl_value;

typedef struct vl_callinfo {
    vl_value *func, *top;
    struct vl_callinfo *previous, *next;
    union {
        struct {
            const vl_instruction *savedpc;
            volatile int trap;
            int nextraargs;
        } lua;
        struct {
            lua_KFunction k;
            ptrdiff_t old_errfunc;
            lua_KContext ctx;
        } c;
    } u;
    int u2;
    short nresults;
    unsigned short status;
} vl_callinfo;

/* What an error unwinds to: the innermost protected call. */
typedef struct vl_jump {
    struct vl_jump *previous;
    jmp_buf where;
    volatile int status; /* a lua_pcall status, set just before the jump */
} vl_jump;

/* Where a collection is. */
enum { VL_GC_PROPAGATE = 0, VL_GC_ATOMIC = 2, VL_GC_SWEEP = 3, VL_GC_SWEPT = 6, VL_GC_PAUSE = 8 };

/* The first part of global_State. */
typedef struct vl_global {
    void *allocate, *allocate_ud;
    ptrdiff_t total_bytes, debt;
    size_t estimate, last_atomic;
    void *strings;
    int strings_used, strings_size;
    vl_value registry, nil;
    unsigned seed;
    uint8_t white, gc_state, gc_generational, gc_stop_emergency, minor, major, gc_stopped, gc_emergency;
} vl_global;
#define VL_GC_STOPPED_ITSELF 2u /* a bit of gc_stopped: a finalizer runs, and lua_gc refuses */

/* lua_State. */
typedef struct {
    VL_OBJECT_HEAD;
    uint8_t status, allowhook;
    unsigned short nci;
    vl_value *top;
    struct vl_global *global;
    vl_callinfo *ci;
    void *stack_last, *stack, *open_upvalues, *tbclist, *gclist, *twups;
    struct vl_jump *error_jump;
    vl_callinfo base_ci;
    volatile lua_Hook hook;
    ptrdiff_t errfunc;
    uint32_t n_c_calls;
    int oldpc, basehookcount, hookcount;
    volatile int hookmask;
} vl_luastate;

/* Bits of vl_callinfo.status. HAS_ID is none of Lua's; it writes the whole anew for each call but tail calls. */
#define VL_CALL_IS_C 2u
#define VL_CALL_HAS_ID 0x8000u
#define VL_CALL_YIELDABLE_PCALL 16u

static inline const vl_global *vl_global_of(const lua_State *L)
{
    return ((const vl_luastate *)(const void *)L)->global;
}

/* Bytes in use, as Lua counts them. */
static inline size_t vl_global_bytes(const vl_global *g)
{
    return (size_t)(g->total_bytes + g->debt);
}

/* Whether what is dead is being freed: some of it is, some not yet. */
static inline bool vl_global_is_sweeping(const vl_global *g)
{
    return g->gc_state >= VL_GC_SWEEP && g->gc_state <= VL_GC_SWEPT;
}

typedef struct {
    int pc, line;
} vl_absline;

typedef struct vl_proto {
    VL_OBJECT_HEAD;
    uint8_t numparams, is_vararg, maxstacksize;
    int sizeupvalues, sizek, sizecode, sizelineinfo, sizep, sizelocvars, sizeabslineinfo;
    int linedefined, lastlinedefined;
    void *k;
    const vl_instruction *code;
    struct vl_proto **p;
    void *upvalues;
    const int8_t *lineinfo;
    const vl_absline *abslineinfo;
    void *locvars, *source, *gclist;
} vl_proto;

typedef struct {
    VL_OBJECT_HEAD;
    uint8_t nupvalues;
    void *gclist;
    const vl_proto *p;
} vl_lua_closure;

typedef struct {
    VL_OBJECT_HEAD;
    uint8_t nupvalues;
    void *gclist;
    lua_CFunction f;
} vl_c_closure;

/* Type tags of the three kinds of functions, as a stack slot has them. */
enum { VL_TAG_LUA = 70, VL_TAG_C_LIGHT = 22, VL_TAG_C_CLOSURE = 102 };

#define VL_OP_TAILCALL 69u
#define VL_LINE_ABSOLUTE (-128)

static inline unsigned vl_opcode(vl_instruction i)
{
    return i & 0x7f;
}

/* The proto of a Lua function's closure, as lua_topointer gives it. */
static inline const vl_proto *vl_closure_proto(const void *closure)
{
    return ((const vl_lua_closure *)closure)->p;
}

/* The line of instruction pc, 0 where the debug information was stripped. Walks the code: for set-up, not for
 * events. */
int vl_proto_line(const vl_proto *p, int pc);

/* The lines that have instructions of the function, as debug.getinfo's activelines: sorted, each once, at most `room`
 * of them in into. Returns how many there are; SIZE_MAX where there is no memory. */
size_t vl_proto_lines(const vl_proto *p, uint32_t *into, size_t room);

/* The line of the function's tail calls: 0 = none or unknown, -1 = on several lines. */
int vl_proto_tail_line(const vl_proto *p);

/* Whether the mirrors above hold for the running library. Tried once, on a state of its own. VARVE_LUA_LAYOUT=public
 * says they don't. */
bool vl_layout_holds(void);
