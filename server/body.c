#include "config.h"

#include "server/body.h"

#include <stdlib.h>

struct vv_body {
    const vv_body_source *source; /* NULL: the answer is */
    void *state;
    vv_answer answer;
    vv_compressor *z;
    vv_wr out;        /* what the compressor gave */
    vv_str pending;   /* not yet handed out; in out or in the answer's buffer */
    bool ended;
};

vv_body *vv_body_new(vv_answer *answer, vv_coding coding)
{
    vv_body *b = calloc(1, sizeof *b);
    vv_compressor *z = b && coding != VV_CODING_IDENTITY ? vv_compressor_new(coding) : NULL;
    if (!b || (coding != VV_CODING_IDENTITY && !z)) {
        free(b);
        return NULL;
    }
    b->z = z;
    b->out = vv_wr_growing(64 * 1024 * 1024);
    b->answer = *answer;
    *answer = (vv_answer){0};
    return b;
}

vv_body *vv_body_of(const vv_body_source *source, void *state)
{
    vv_body *b = calloc(1, sizeof *b);
    if (b) {
        b->source = source;
        b->state = state;
    }
    return b;
}

void vv_body_free(vv_body *b)
{
    if (!b)
        return;
    if (b->source)
        b->source->free(b->state);
    vv_answer_done(&b->answer);
    vv_compressor_free(b->z);
    vv_wr_done(&b->out);
    free(b);
}

/* Gets something to hand out; false at the end or on failure. */
static bool refill(vv_body *b, bool *ret_failed)
{
    while (b->pending.n == 0 && !b->ended) {
        vv_str piece = {NULL, 0};
        b->ended = !vv_answer_next(&b->answer, &piece);
        if (b->answer.failed) {
            *ret_failed = true;
            return false;
        }
        if (!b->z) {
            b->pending = piece;
            continue;
        }
        vv_wr_reset(&b->out);
        if (!vv_compress(b->z, piece.p, piece.n, b->ended, &b->out)) {
            *ret_failed = true;
            return false;
        }
        b->pending = (vv_str){(const char *)b->out.buf, b->out.len};
    }
    return b->pending.n > 0;
}

ssize_t vv_body_read(vv_body *b, char *buf, size_t cap)
{
    if (b->source)
        return b->source->read(b->state, buf, cap);
    bool failed = false;
    if (!refill(b, &failed))
        return failed ? -1 : 0;
    size_t n = b->pending.n < cap ? b->pending.n : cap;
    memcpy(buf, b->pending.p, n);
    b->pending.p += n;
    b->pending.n -= n;
    return (ssize_t)n;
}
