#include "config.h"

#include "base/bytes.h"

#include <stdlib.h>

vv_code vv_rd_error(const vv_rd *r, const char *what, vv_error *err)
{
    if (vv_rd_ok(r))
        return VV_OK;
    return vv_fail_decode(err, r->why, r->bad_off, "%s: %s at byte %zu", what, r->why, r->bad_off);
}

vv_code vv_wr_error(const vv_wr *w, const char *what, vv_error *err)
{
    if (vv_wr_ok(w))
        return VV_OK;
    if (strcmp(w->why, "OutOfMemory") == 0)
        return vv_fail(err, VV_ERR_NOMEM, "%s: out of memory", what);
    vv_fail(err, VV_ERR_LIMIT, "%s: %s", what, w->why);
    if (err && !err->name)
        err->name = w->why;
    return VV_ERR_LIMIT;
}

void vv_wr_done(vv_wr *w)
{
    if (!w->fixed)
        free(w->buf);
    *w = (vv_wr){0};
}

bool vv_wr_grow(vv_wr *w, size_t n)
{
    if (w->why)
        return false;
    if (n <= w->cap - w->len)
        return true;
    if (w->fixed || n > w->max - w->len) {
        vv_wr_fail(w, "LimitExceeded");
        return false;
    }
    size_t want = w->len + n;
    size_t cap = w->cap ? w->cap : 256;
    while (cap < want)
        cap = cap > w->max / 2 ? w->max : cap * 2;
    uint8_t *buf = realloc(w->buf, cap);
    if (!buf) {
        vv_wr_fail(w, "OutOfMemory");
        return false;
    }
    w->buf = buf;
    w->cap = cap;
    return true;
}

void vv_wr_str(vv_wr *w, vv_str s)
{
    if (s.n > VV_STR_MAX) {
        vv_wr_fail(w, "StringTooLong");
        return;
    }
    vv_wr_u32(w, (uint32_t)s.n);
    vv_wr_bytes(w, s.p, s.n);
}

void vv_wr_opt_str(vv_wr *w, const vv_opt_str *s)
{
    vv_wr_u8(w, s->present);
    if (s->present)
        vv_wr_str(w, s->s);
}
