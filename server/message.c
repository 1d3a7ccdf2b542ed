#include "config.h"

#include "server/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

void vv_response_done(vv_response *r)
{
    if (r->owned)
        free((void *)r->bytes);
    vv_body_free(r->body);
    if (r->has_file)
        close(r->file);
    *r = (vv_response){0};
}

void vv_response_header(vv_response *r, const char *name, const char *fmt, ...)
{
    if (r->header_count == VV_HEADERS_MAX)
        return;
    vv_header *h = &r->headers[r->header_count];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(h->value, sizeof h->value, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof h->value)
        return;
    h->name = name;
    r->header_count++;
}

const char *vv_response_get(const vv_response *r, const char *name)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (strcasecmp(r->headers[i].name, name) == 0)
            return r->headers[i].value;
    return NULL;
}

void vv_response_constant(vv_response *r, const void *bytes, size_t n)
{
    if (r->owned)
        free((void *)r->bytes);
    r->bytes = bytes;
    r->len = n;
    r->owned = false;
}

void vv_response_take(vv_response *r, vv_wr *w)
{
    vv_response_constant(r, w->buf, w->len);
    r->owned = true;
    *w = (vv_wr){0};
}
