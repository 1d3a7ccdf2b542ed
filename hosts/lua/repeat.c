#include "config.h"
#include "hosts/lua/repeat.h"

#include <lauxlib.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <ucontext.h>
#include <unistd.h>

#include "hosts/lua/alloc.h"
#include "hosts/lua/interpose.h"

/* Lua's seed has the address of a local variable in it, and the stack lies below the environment, whose size varies:
 * the state is made on a stack of its own. */
#define STACK_AT UINT64_C(0x1f0000000000)
#define STACK_BYTES (256u << 10)

#define SEED_TIME 1000000000

bool vl_repeat_exec(char **argv)
{
    int now = personality(0xffffffff);
    if (now == -1)
        return false;
    if (now & ADDR_NO_RANDOMIZE)
        return true;
    if (personality((unsigned long)now | ADDR_NO_RANDOMIZE) == -1)
        return false;
    execv("/proc/self/exe", argv);
    return false;
}

static lua_State *made;
static ucontext_t caller;

static void make(void)
{
    made = luaL_newstate();
}

lua_State *vl_repeat_newstate(void)
{
    ucontext_t context;
    void *stack = mmap((void *)(uintptr_t)STACK_AT, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (stack != (void *)(uintptr_t)STACK_AT || !vl_alloc_fixed() || getcontext(&context))
        return NULL;
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = &caller;
    vl_interpose_seed_time = SEED_TIME;
    makecontext(&context, make, 0);
    swapcontext(&caller, &context);
    munmap(stack, STACK_BYTES);
    return made;
}
