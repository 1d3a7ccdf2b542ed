#include "config.h"

#include <time.h>

#include "base/text.h"
#include "views/query.h"

/* Reads n digits, at most nine; -1 where there are none. */
static int digits(const char *p, size_t n)
{
    uint64_t v;
    return vv_str_u64((vv_str){p, n}, &v) ? (int)v : -1;
}

/* RFC 3339 in UTC with up to nine digits of fraction: "2026-11-29T23:45:29.5Z". */
static bool parse_rfc3339(vv_str s, uint64_t *ret)
{
    static const struct {
        uint8_t at, n;
        char after;
        int min, max;
    } parts[] = {{0, 4, '-', 1970, 2500}, {5, 2, '-', 1, 12}, {8, 2, 'T', 1, 31},
                 {11, 2, ':', 0, 23}, {14, 2, ':', 0, 59}, {17, 2, 0, 0, 60}};
    int v[6];
    if (s.n < 20 || s.p[s.n - 1] != 'Z')
        return false;
    for (size_t i = 0; i < VV_ARRAY_LEN(parts); i++) {
        v[i] = digits(s.p + parts[i].at, parts[i].n);
        if (v[i] < parts[i].min || v[i] > parts[i].max
            || (parts[i].after && s.p[parts[i].at + parts[i].n] != parts[i].after))
            return false;
    }
    uint64_t fraction = 0;
    size_t n = s.n - 1 - 19;
    if (n) {
        int f = n >= 2 && n <= 10 && s.p[19] == '.' ? digits(s.p + 20, n - 1) : -1;
        if (f < 0)
            return false;
        fraction = (uint64_t)f;
        for (size_t i = n - 1; i < 9; i++)
            fraction *= 10;
    }
    struct tm tm = {.tm_year = v[0] - 1900, .tm_mon = v[1] - 1, .tm_mday = v[2], .tm_hour = v[3], .tm_min = v[4],
                    .tm_sec = v[5]};
    time_t seconds = timegm(&tm);
    if (tm.tm_mday != v[2] || seconds < 0)
        return false;
    *ret = (uint64_t)seconds * 1000000000u + fraction;
    return true;
}

static vv_code read_time(vv_query *q, const char *name, bool *ret_has, uint64_t *value, vv_error *err)
{
    const vv_str *s = vv_query_value(q, name);
    *ret_has = s != NULL;
    if (!s || parse_rfc3339(*s, value) || vv_str_u64(*s, value))
        return VV_OK;
    return vv_query_fail(q, name, err, "must be nanoseconds since 1970, or a time such as 2026-01-31T12:00:00Z");
}

vv_code vv_query_times(vv_query *q, vv_times *ret, vv_error *err)
{
    vv_code rc = read_time(q, "since", &ret->has_since, &ret->since, err);
    if (rc == VV_OK)
        rc = read_time(q, "until", &ret->has_until, &ret->until, err);
    if (rc == VV_OK && ret->has_since && ret->has_until && ret->since > ret->until)
        rc = vv_query_fail(q, "until", err, "must not be before since");
    return rc;
}
