/*
 * The private layout of Lua 5.4.4, as far as the hook reads it.
 *
 * The public interface names the running function by lua_getinfo, which costs more than all the rest of an event. These
 * mirrors of Lua's own structures are used only where the library says it is exactly 5.4.4 and vl_layout_check has seen
 * them agree with lua_getinfo on live functions; elsewhere the hook uses the public interface (identity.h).
 */
#pragma once

#include <lua.h>
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

/* lua_State. */
typedef struct {
    VL_OBJECT_HEAD;
    uint8_t status, allowhook;
    unsigned short nci;
    void *top, *global;
    vl_callinfo *ci;
    void *stack_last, *stack, *open_upvalues, *tbclist, *gclist, *twups, *error_jump;
    vl_callinfo base_ci;
    volatile lua_Hook hook;
    ptrdiff_t errfunc;
    uint32_t n_c_calls;
    int oldpc, basehookcount, hookcount;
    volatile int hookmask;
} vl_luastate;

#define VL_CALL_IS_C 2u /* a bit of vl_callinfo.status */

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

/* The line of the function's tail calls: 0 = none or unknown, -1 = on several lines. */
int vl_proto_tail_line(const vl_proto *p);

/* Whether the mirrors above hold for the running library. Tried on a state of its own. */
bool vl_layout_check(void);
