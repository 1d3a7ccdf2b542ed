/* A writer of values whose memory the test has a say in. */
#pragma once

#include "format/value_write.h"
#include "tests/testing.h"

/* Blocks of exactly what is asked for; the growth of number deny (from 0) is refused. */
typedef struct {
    unsigned grown, deny;
    size_t most; /* the largest block that may be asked for */
} heap;

static inline uint8_t *grow(void *ctx, uint8_t *buf, size_t cap, size_t want)
{
    heap *h = ctx;
    ck_assert_uint_gt(want, cap);
    ck_assert_uint_le(want, h->most);
    if (h->grown++ == h->deny)
        return NULL;
    return realloc(buf, want);
}

static inline vv_vw new_writer(heap *h, size_t limit)
{
    vv_vw w;
    *h = (heap){.deny = UINT32_MAX, .most = limit + VV_VW_OPEN_BYTES};
    vv_vw_init(&w, NULL, 0, limit, grow, h);
    return w;
}

static inline void done(vv_vw *w)
{
    free(w->buf);
    *w = (vv_vw){0};
}
