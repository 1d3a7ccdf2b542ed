#include "config.h"

#include "views/sieve.h"

#include <ctype.h>
#include <stdlib.h>

enum { BYTES_LEAST = 8, BITS_EACH = 12, BITS_LEAST = 4, PROBES = 6 };

void vv_sieve_init(vv_sieve *s, size_t things)
{
    *s = (vv_sieve){.p = NULL};
    if (things == 0)
        return;
    size_t n = things < VV_SIEVE_BYTES_MAX ? (things * BITS_EACH + 7) / 8 : VV_SIEVE_BYTES_MAX;
    n = n < BYTES_LEAST ? BYTES_LEAST : n > VV_SIEVE_BYTES_MAX ? VV_SIEVE_BYTES_MAX : n;
    if (things > n * 8 / BITS_LEAST || !(s->p = calloc(n, 1)))
        s->all = true;
    else
        s->n = (uint32_t)n;
}

void vv_sieve_done(vv_sieve *s)
{
    free(s->p);
    *s = (vv_sieve){.p = NULL};
}

/* Where the i-th bit of a thing is. */
static uint64_t bit_of(const vv_sieve *s, uint64_t thing, unsigned i)
{
    uint64_t step = (thing >> 32 | thing << 32) | 1;
    return (uint64_t)((vv_u128)(thing + i * step) * ((uint64_t)s->n * 8) >> 64);
}

void vv_sieve_add(vv_sieve *s, uint64_t thing)
{
    for (unsigned i = 0; i < PROBES && s->n; i++) {
        uint64_t bit = bit_of(s, thing, i);
        s->p[bit / 8] |= (uint8_t)(1u << bit % 8);
    }
}

bool vv_sieve_may_hold(const vv_sieve *s, uint64_t thing)
{
    bool held = s->n > 0;
    for (unsigned i = 0; i < PROBES && held; i++) {
        uint64_t bit = bit_of(s, thing, i);
        held = s->p[bit / 8] >> bit % 8 & 1;
    }
    return held || s->all;
}

/* Spreads 24 bits over 64. */
static uint64_t spread(const uint8_t three[3])
{
    uint64_t v = ((uint64_t)three[0] << 16 | (uint64_t)three[1] << 8 | three[2]) + 1;
    v *= UINT64_C(0x9e3779b97f4a7c15);
    v = (v ^ v >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    return v ^ v >> 29;
}

static void three_at(uint8_t out[3], vv_str text, size_t at)
{
    for (unsigned k = 0; k < 3; k++)
        out[k] = (uint8_t)tolower((unsigned char)text.p[at + k]);
}

void vv_sieve_texts_init(vv_sieve_texts *t)
{
    t->all = false;
    vv_map_init(&t->threes, 3);
}

void vv_sieve_texts_add(vv_sieve_texts *t, vv_str text)
{
    uint8_t three[3];
    for (size_t i = 0; i + 3 <= text.n && !t->all; i++) {
        three_at(three, text, i);
        t->all = vv_map_put(&t->threes, three, NULL) == VV_MAP_NONE || t->threes.count > VV_SIEVE_THREES_MAX;
    }
}

void vv_sieve_texts_finish(vv_sieve_texts *t, vv_sieve *ret)
{
    vv_sieve_init(ret, t->all ? 0 : t->threes.count);
    ret->all |= t->all;
    for (uint32_t i = 0; i < t->threes.count && !ret->all; i++)
        vv_sieve_add(ret, spread(vv_map_key(&t->threes, i)));
    vv_map_done(&t->threes);
}

bool vv_sieve_may_contain(const vv_sieve *s, vv_str part)
{
    uint8_t three[3];
    bool may = true;
    for (size_t i = 0; i + 3 <= part.n && may; i++) {
        three_at(three, part, i);
        may = vv_sieve_may_hold(s, spread(three));
    }
    return may;
}
