#include "config.h"

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

VV_PRINTF(5, 0)
static vv_code fail_v(vv_error *err, vv_code code, const char *name, uint64_t off, const char *fmt, va_list ap)
{
    if (!err || err->code != VV_OK)
        return code;
    err->code = code;
    err->os = 0;
    err->off = off;
    err->name = name;
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    return code;
}

vv_code vv_fail(vv_error *err, vv_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    code = fail_v(err, code, NULL, 0, fmt, ap);
    va_end(ap);
    return code;
}

vv_code vv_fail_decode(vv_error *err, const char *name, uint64_t off, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vv_code code = fail_v(err, VV_ERR_CORRUPT, name, off, fmt, ap);
    va_end(ap);
    return code;
}

vv_code vv_fail_os(vv_error *err, int os, const char *fmt, ...)
{
    vv_code code = os == ENOENT || os == ENOTDIR ? VV_ERR_NOTFOUND : os == ENOMEM ? VV_ERR_NOMEM : VV_ERR_IO;
    if (!err || err->code != VV_OK)
        return code;
    va_list ap;
    va_start(ap, fmt);
    fail_v(err, code, NULL, 0, fmt, ap);
    va_end(ap);
    err->os = os;
    size_t used = strlen(err->msg);
    char text[96];
    snprintf(err->msg + used, sizeof err->msg - used, ": %s", strerror_r(os, text, sizeof text));
    return code;
}

void vv_context(vv_error *err, const char *fmt, ...)
{
    if (!err || err->code == VV_OK)
        return;
    char old[sizeof err->msg];
    memcpy(old, err->msg, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    size_t at = n < 0 ? sizeof err->msg : (size_t)n;
    /* Once is enough for a place that the message begins with itself. */
    if (at < sizeof old && memcmp(old, err->msg, at) == 0 && old[at] == ':') {
        memcpy(err->msg, old, sizeof old);
        return;
    }
    if (at + 3 > sizeof err->msg)
        return;
    memcpy(err->msg + at, ": ", 2);
    at += 2;
    size_t keep = strlen(old), room = sizeof err->msg - at - 1;
    keep = keep < room ? keep : room;
    memcpy(err->msg + at, old, keep);
    err->msg[at + keep] = 0;
}

void vv_error_clear(vv_error *err)
{
    if (err)
        memset(err, 0, sizeof *err);
}
