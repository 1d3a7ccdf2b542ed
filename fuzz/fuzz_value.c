/*
 * The writer of captured values, driven by a script: a byte that says where memory ends, then one byte a call with its
 * arguments behind it. Whatever is called in whatever order, it is refused, or it is a body that the reader takes.
 */
#include "config.h"

#include "fuzz/fuzz.h"

#include "format/value.h"
#include "format/value_write.h"

enum { SCRIPT_LIMIT = 1 << 20, NEVER = 255 };

typedef struct {
    size_t most;
    unsigned grown, deny; /* of number deny, from 0 */
} heap;

static uint8_t *grow(void *ctx, uint8_t *buf, size_t cap, size_t want)
{
    heap *h = ctx;
    FUZZ_CHECK(want > cap && want <= h->most);
    if (h->deny != NEVER && h->grown++ == h->deny)
        return NULL;
    uint8_t *bytes = malloc(want);
    FUZZ_CHECK(bytes);
    if (cap)
        memcpy(bytes, buf, cap);
    free(buf);
    return bytes;
}

/* What is left of the script. */
typedef struct {
    const uint8_t *p;
    size_t n;
} script;

static uint8_t next(script *s)
{
    if (!s->n)
        return 0;
    s->n--;
    return *s->p++;
}

static int64_t next_int(script *s)
{
    uint64_t v = 0;
    for (unsigned n = next(s) % 9; n > 0; n--)
        v = v << 8 | next(s);
    return (int64_t)(next(s) & 1 ? ~v : v);
}

/* Up to 127 bytes of the script, or zeros, about a power of two of them. */
static vv_str next_bytes(script *s)
{
    static const char zeros[(1 << 17) + 64];
    uint8_t n = next(s);
    if (n >= 128)
        return (vv_str){zeros, ((size_t)1 << n % 18) + n % 16};
    vv_str ret = {(const char *)s->p, n < s->n ? n : s->n};
    s->p += ret.n;
    s->n -= ret.n;
    return ret;
}

/* The same as a text that ends with a NUL, which the caller frees. */
static char *next_text(script *s)
{
    vv_str bytes = next_bytes(s);
    char *text = strndup(bytes.n ? bytes.p : "", bytes.n);
    FUZZ_CHECK(text);
    return text;
}

static void put_named(vv_vw *w, script *s, uint8_t op)
{
    char *a = next_text(s), *b = op == 0 ? next_text(s) : NULL;
    if (op == 0)
        vv_vw_enum(w, a, b);
    else if (op == 1)
        vv_vw_omitted(w, (vv_omission)(next(s) % (VV_OMISSIONS + 1)), a);
    else
        vv_vw_object(w, a);
    free(a);
    free(b);
}

static void put_one(vv_vw *w, script *s)
{
    uint8_t op = next(s) % 20;
    vv_str bytes;
    uint64_t bits;
    double d;
    switch (op) {
    case 0:
        vv_vw_null(w);
        break;
    case 1:
        vv_vw_bool(w, next(s) & 1);
        break;
    case 2:
        vv_vw_int(w, next_int(s));
        break;
    case 3:
        bits = (uint64_t)next_int(s);
        memcpy(&d, &bits, sizeof d);
        vv_vw_float(w, d);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        bytes = next_bytes(s);
        (op == 4 ? vv_vw_text : op == 5 ? vv_vw_bigint : vv_vw_key)(w, bytes.p, bytes.n);
        break;
    case 8:
        bytes = next_bytes(s);
        vv_vw_bytes(w, bytes.p, bytes.n);
        break;
    case 9:
    case 10:
    case 11:
    case 12:
        put_named(w, s, op - 9);
        break;
    case 13:
        vv_vw_list(w);
        break;
    case 14:
        vv_vw_end_list(w);
        break;
    case 15:
        vv_vw_map(w);
        break;
    case 16:
        vv_vw_end_map(w);
        break;
    case 17:
        vv_vw_end_object(w);
        break;
    case 18:
        for (unsigned n = next(s); n > 0; n--)
            vv_vw_list(w);
        break;
    default:
        for (unsigned n = next(s); n > 0; n--)
            vv_vw_end_list(w);
    }
}

static vv_vw_fault play(vv_vw *w, script s, size_t limit, unsigned deny)
{
    heap h = {.most = limit + VV_VW_OPEN_BYTES, .deny = deny};
    vv_vw_init(w, NULL, 0, limit, grow, &h);
    while (s.n)
        put_one(w, &s);
    vv_vw_fault fault = vv_vw_finish(w);
    FUZZ_CHECK(w->len <= limit);
    return fault;
}

static void check_readable(const vv_vw *w)
{
    vv_wr out = vv_wr_growing((size_t)SCRIPT_LIMIT * 8);
    vv_json j = vv_json_init(&out);
    vv_value_limits limits = {VV_VALUE_DEPTH, SCRIPT_LIMIT};
    bool cut;
    FUZZ_CHECK(vv_value_show(&j, w->buf, w->len, &limits, &cut, NULL) == VV_OK);
    FUZZ_CHECK(vv_json_done(&j));
    vv_wr_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    script s = {data + 1, size - 1};
    vv_vw w, again;
    vv_vw_fault denied = play(&w, s, SCRIPT_LIMIT, data[0]);
    free(w.buf);
    vv_vw_fault fault = play(&w, s, SCRIPT_LIMIT, NEVER);
    FUZZ_CHECK(denied == fault || denied == VV_VW_DENIED);
    if (fault == VV_VW_OK) {
        check_readable(&w);
        /* Its own length is limit enough, and a byte less is not. */
        FUZZ_CHECK(play(&again, s, w.len, NEVER) == VV_VW_OK && again.len == w.len);
        FUZZ_CHECK(memcmp(again.buf, w.buf, w.len) == 0);
        free(again.buf);
        FUZZ_CHECK(play(&again, s, w.len - 1, NEVER) == VV_VW_TOO_LARGE);
        free(again.buf);
    }
    free(w.buf);
    return 0;
}
