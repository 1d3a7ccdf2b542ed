#include "config.h"

#include "runtime/capture.h"

#include <string.h>

#include "format/evidence.h"

_Static_assert(VV_CAPTURE_BLOCK + VV_ALLOC_MARGIN == 512, "the least charge of Values");
_Static_assert(VV_CAPTURE_BLOCK % VV_ALLOC_ALIGN == 0, "no byte of the block is charged and unused");
_Static_assert(sizeof(varve_capture) <= VV_CAPTURE_BLOCK - 256, "room for a small value beside the handle");

/* Before each allocation. The old bytes stay charged until the new ones hold them. */
static uint8_t *grow(void *ctx, uint8_t *buf, size_t cap, size_t want)
{
    varve_capture *c = ctx;
    bool own = buf != c->first;
    uint8_t *bytes = vv_gov_grow_any(c->governor, &c->body_pool, c->manual, VV_OWN_VALUES, own ? buf : NULL,
                                     own ? cap : 0, want);
    if (bytes && !own)
        memcpy(bytes, buf, cap);
    return bytes;
}

varve_capture *vv_capture_new(vv_governor *g, bool manual, size_t limit)
{
    vv_pool pool = VV_POOL_GENERAL;
    varve_capture *c = vv_gov_alloc(g, pool, VV_OWN_VALUES, VV_CAPTURE_BLOCK);
    if (!c && manual) {
        pool = VV_POOL_MANUAL;
        c = vv_gov_alloc(g, pool, VV_OWN_VALUES, VV_CAPTURE_BLOCK);
    }
    if (!c)
        return NULL;
    c->governor = g;
    c->pool = c->body_pool = pool;
    c->manual = manual;
    vv_vw_init(&c->w, c->first, VV_CAPTURE_BLOCK - offsetof(varve_capture, first), limit, grow, c);
    return c;
}

/* After a failure nothing reads the bytes any more. */
static void drop_lost(varve_capture *c)
{
    if (!c->w.fault || c->w.buf == c->first)
        return;
    vv_gov_free(c->governor, c->body_pool, VV_OWN_VALUES, c->w.buf, c->w.cap);
    c->w.buf = c->first;
}

static void free_handle(varve_capture *c)
{
    vv_gov_free(c->governor, c->pool, VV_OWN_VALUES, c, VV_CAPTURE_BLOCK);
}

int vv_capture_take(varve_capture *c, vv_body *ret)
{
    static const vv_value_loss losses[VV_VW_FAULTS] = {
        [VV_VW_DENIED] = VV_VALUE_LOST_MEMORY,
        [VV_VW_TOO_LARGE] = VV_VALUE_LOST_TOO_LARGE,
        [VV_VW_MISUSED] = VV_VALUE_LOST_ENCODE,
        [VV_VW_GIVEN_UP] = VV_VALUE_LOST_COPY,
    };
    vv_vw_fault fault = vv_vw_finish(&c->w);
    drop_lost(c);
    if (fault) {
        free_handle(c);
        return (int)losses[fault];
    }
    vv_vw w = c->w;
    if (w.buf == c->first) {
        /* The block becomes the body: nothing more to ask for. */
        *ret = (vv_body){(uint8_t *)c, w.len, VV_CAPTURE_BLOCK, c->pool};
        memmove(ret->bytes, w.buf, w.len);
    } else {
        *ret = (vv_body){w.buf, w.len, w.cap, c->body_pool};
        free_handle(c);
    }
    return -1;
}

/* A part of the value, where there is one to write. */
#define PUT(c, part)           \
    do {                       \
        if (!(c))              \
            return;            \
        part;                  \
        drop_lost(c);          \
    } while (0)

void varve_put_null(varve_capture *c)
{
    PUT(c, vv_vw_null(&c->w));
}

void varve_put_bool(varve_capture *c, bool v)
{
    PUT(c, vv_vw_bool(&c->w, v));
}

void varve_put_int(varve_capture *c, int64_t v)
{
    PUT(c, vv_vw_int(&c->w, v));
}

void varve_put_float(varve_capture *c, double v)
{
    PUT(c, vv_vw_float(&c->w, v));
}

void varve_put_text(varve_capture *c, const char *utf8, size_t n)
{
    PUT(c, vv_vw_text(&c->w, utf8, n));
}

void varve_put_bytes(varve_capture *c, const void *p, size_t n)
{
    PUT(c, vv_vw_bytes(&c->w, p, n));
}

void varve_put_bigint(varve_capture *c, const char *hex, size_t n)
{
    PUT(c, vv_vw_bigint(&c->w, hex, n));
}

void varve_put_enum(varve_capture *c, const char *type, const char *variant)
{
    PUT(c, vv_vw_enum(&c->w, type, variant));
}

void varve_put_omitted(varve_capture *c, varve_omission why, const char *message)
{
    _Static_assert((int)VARVE_OMITTED_ARGUMENT == VV_OMIT_ARGUMENT && (int)VARVE_OMITTED_CYCLE == VV_OMIT_CYCLE &&
                       (int)VARVE_OMITTED_UNSUPPORTED == VV_OMIT_UNSUPPORTED &&
                       (int)VARVE_OMITTED_HOST_OWNED == VV_OMIT_HOST_OWNED &&
                       (int)VARVE_OMITTED_INVALID == VV_OMIT_INVALID, "the same in the same order");
    PUT(c, vv_vw_omitted(&c->w, (vv_omission)why, message));
}

void varve_list_begin(varve_capture *c)
{
    PUT(c, vv_vw_list(&c->w));
}

void varve_list_end(varve_capture *c)
{
    PUT(c, vv_vw_end_list(&c->w));
}

void varve_map_begin(varve_capture *c)
{
    PUT(c, vv_vw_map(&c->w));
}

void varve_map_key(varve_capture *c, const char *utf8, size_t n)
{
    PUT(c, vv_vw_key(&c->w, utf8, n));
}

void varve_map_end(varve_capture *c)
{
    PUT(c, vv_vw_end_map(&c->w));
}

void varve_object_begin(varve_capture *c, const char *class_name)
{
    PUT(c, vv_vw_object(&c->w, class_name));
}

void varve_object_end(varve_capture *c)
{
    PUT(c, vv_vw_end_object(&c->w));
}

bool varve_capture_is_lost(const varve_capture *c)
{
    return !c || c->w.fault;
}

void varve_capture_fail(varve_capture *c)
{
    PUT(c, vv_vw_give_up(&c->w));
}
