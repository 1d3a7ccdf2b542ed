#include "config.h"

#include "server/range.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <strings.h>

static const char *skip_spaces(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

/* Digits at *p; a number that is too large is the largest. False where there are none. */
static bool take_number(const char **p, uint64_t *ret)
{
    const char *from = *p;
    uint64_t v = 0;
    for (; isdigit((unsigned char)**p); ++*p)
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) || __builtin_add_overflow(v, (uint64_t)(**p - '0'), &v))
            v = UINT64_MAX;
    *ret = v;
    return *p > from;
}

vv_range_kind vv_range_of(const char *header, uint64_t size, uint64_t *first, uint64_t *last)
{
    uint64_t a = 0, b = UINT64_MAX;
    if (!header || strncasecmp(header, "bytes=", 6) != 0)
        return VV_RANGE_WHOLE;
    const char *p = skip_spaces(header + 6);
    bool has_first = take_number(&p, &a);
    if (*p++ != '-')
        return VV_RANGE_WHOLE;
    bool has_last = take_number(&p, &b);
    if (*skip_spaces(p) || (!has_first && !has_last) || (has_first && has_last && a > b))
        return VV_RANGE_WHOLE;
    if (!has_first) {
        if (b == 0 || size == 0)
            return VV_RANGE_OUTSIDE;
        a = b < size ? size - b : 0;
        b = size - 1;
    } else if (a >= size) {
        return VV_RANGE_OUTSIDE;
    } else if (!has_last || b >= size) {
        b = size - 1;
    }
    *first = a;
    *last = b;
    return VV_RANGE_PART;
}
