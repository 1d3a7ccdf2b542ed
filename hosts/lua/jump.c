/*
 * An error in liblua is a jump, by one of these functions of the C library: the executable's stand before them
 * (interpose.c). Whatever else jumps passes too, and finds its way unchanged.
 */
#include "config.h"

/* Where the library's headers guard against misuse they rename longjmp, and these could not be defined. */
#undef _FORTIFY_SOURCE

#include <dlfcn.h>
#include <setjmp.h>
#include <string.h>

#include "hosts/lua/fault.h"

#define EXPORT __attribute__((visibility("default")))

__attribute__((noreturn)) void __longjmp_chk(jmp_buf from, int value);

#define JUMP(name)                                                       \
    EXPORT void name(jmp_buf from, int value)                            \
    {                                                                    \
        static __typeof__(&name) real;                                   \
        if (__builtin_expect(!real, 0)) {                                \
            void *symbol = dlsym(RTLD_NEXT, #name);                      \
            memcpy(&real, &symbol, sizeof real);                         \
        }                                                                \
        vl_fault_jump(from);                                             \
        real(from, value);                                               \
        __builtin_unreachable();                                         \
    }

JUMP(longjmp)
JUMP(_longjmp)
JUMP(__longjmp_chk)
