/* Compiler attributes and small macros. No code, no state. */
#pragma once

#include <stddef.h>

#define VV_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define VV_MUST_CHECK __attribute__((warn_unused_result))
#define VV_UNUSED __attribute__((unused))
#define VV_HOT __attribute__((hot))
#define VV_INLINE __attribute__((always_inline))
#define VV_COLD __attribute__((cold, noinline))

/* Runs FN on the variable's address when it leaves scope. FN accepts a zeroed object. */
#define VV_CLEANUP(fn) __attribute__((cleanup(fn), unused))

#define VV_LIKELY(x) __builtin_expect(!!(x), 1)
#define VV_UNLIKELY(x) __builtin_expect(!!(x), 0)

#define VV_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
