/* Room in an array that grows by its end. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

/*
 * Room for one more than count items of that size in the array at *(T **)array, of which *cap have room. False without
 * memory: all is as it was then.
 */
VV_MUST_CHECK static inline bool vv_grow(void *array, size_t *cap, size_t count, size_t size)
{
    if (count < *cap)
        return true;
    void *p;
    size_t want = *cap ? *cap * 2 : 16, bytes;
    memcpy(&p, array, sizeof p);
    if (__builtin_mul_overflow(want, size, &bytes) || !(p = realloc(p, bytes)))
        return false;
    memcpy(array, &p, sizeof p);
    *cap = want;
    return true;
}
