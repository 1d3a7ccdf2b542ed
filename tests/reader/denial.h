/* Denies one allocation. The test is linked with malloc, calloc and realloc wrapped. */
#pragma once

#include <stdlib.h>

/* The allocation to be denied of those that come, or -1. */
static int64_t denied = -1;
static unsigned denials;

static bool is_denied(void)
{
    if (denied < 0 || denied-- > 0)
        return false;
    denials++;
    return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t k);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t k);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
    return is_denied() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t k)
{
    return is_denied() ? NULL : __real_calloc(n, k);
}

void *__wrap_realloc(void *p, size_t n)
{
    return is_denied() ? NULL : __real_realloc(p, n);
}
