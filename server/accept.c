#include "config.h"

#include "server/accept.h"

#include <strings.h>

static vv_str trim(vv_str s)
{
    while (s.n && (*s.p == ' ' || *s.p == '\t')) {
        s.p++;
        s.n--;
    }
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* "0.5" in thousandths; 0 for what is none. */
static unsigned parse_weight(vv_str s)
{
    unsigned fraction = 0, unit = 100;
    if (s.n == 0 || (s.p[0] != '0' && s.p[0] != '1') || (s.n > 1 && s.p[1] != '.'))
        return 0;
    for (size_t i = 2; i < s.n; i++, unit /= 10) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return 0;
        fraction += (unsigned)(s.p[i] - '0') * unit;
    }
    return s.p[0] == '1' ? 1000 : fraction;
}

/* The weight among one element's parameters (";q=0.5"). */
static unsigned weight(vv_str s)
{
    while (s.n) {
        const char *end = memchr(s.p, ';', s.n);
        size_t n = end ? (size_t)(end - s.p) : s.n;
        vv_str one = trim((vv_str){s.p, n});
        if (one.n >= 2 && (one.p[0] == 'q' || one.p[0] == 'Q') && one.p[1] == '=')
            return parse_weight((vv_str){one.p + 2, one.n - 2});
        s.p += n + (end != NULL);
        s.n -= n + (end != NULL);
    }
    return 1000;
}

bool vv_accept_next(const char **at, vv_str *ret_name, unsigned *ret_weight)
{
    if (!**at)
        return false;
    size_t n = strcspn(*at, ",");
    const char *semicolon = memchr(*at, ';', n);
    size_t name = semicolon ? (size_t)(semicolon - *at) : n;
    *ret_name = trim((vv_str){*at, name});
    *ret_weight = semicolon ? weight((vv_str){semicolon + 1, n - name - 1}) : 1000;
    *at += n + ((*at)[n] == ',');
    return true;
}

bool vv_accept_is(vv_str s, const char *name)
{
    return s.n == strlen(name) && strncasecmp(s.p, name, s.n) == 0;
}

/* The weight of a media type; its name goes before "text/ *", that before "* / *". */
static unsigned weight_of(const char *accept, const char *type, bool *ret_named)
{
    unsigned best = 0, w;
    int rank = 0;
    size_t major = strcspn(type, "/") + 1;
    vv_str name;
    for (const char *at = accept; vv_accept_next(&at, &name, &w);) {
        bool half = name.n == major + 1 && strncasecmp(name.p, type, major) == 0 && name.p[major] == '*';
        int r = vv_accept_is(name, type) ? 3 : half ? 2 : vv_accept_is(name, "*/*") ? 1 : 0;
        if (r > rank) {
            rank = r;
            best = w;
        }
    }
    *ret_named = rank == 3;
    return best;
}

bool vv_accept_wants(const char *accept, const char *type, const char *const *others)
{
    bool named, any;
    if (!accept)
        return false;
    unsigned own = weight_of(accept, type, &named);
    for (; *others; others++)
        if (weight_of(accept, *others, &any) > own)
            return false;
    return named && own > 0;
}
