#include "config.h"
#include "hosts/lua/utf8.h"

#include <stdint.h>

/* The bytes of the sequence that begins here; 0: it is none. */
static size_t sequence(const unsigned char *p, size_t left)
{
    size_t n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
    if (n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xf0 && p[1] < 0x90);
    bool none = (*p == 0xed && p[1] > 0x9f) || (*p == 0xf4 && p[1] > 0x8f);
    return n > 1 && (overlong || none) ? 0 : n;
}

bool vl_utf8_is(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    for (size_t i = 0, step; i < n; i += step)
        if (!(step = sequence(p + i, n - i)))
            return false;
    return true;
}
