#include "config.h"

#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MAX_DEPTH = 64 };
#define EXACT_MAX ((UINT64_C(1) << 53) - 1)

/* The comma or nothing that a value needs in front of it. */
static void before_value(vv_json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->depth == 0)
        return;
    uint64_t bit = UINT64_C(1) << (j->depth - 1);
    assert(j->is_arr & bit);
    if (j->has_item & bit)
        vv_wr_u8(j->out, ',');
    j->has_item |= bit;
}

static void open_level(vv_json *j, char c, bool arr)
{
    before_value(j);
    assert(j->depth < MAX_DEPTH);
    uint64_t bit = UINT64_C(1) << j->depth++;
    j->has_item &= ~bit;
    j->is_arr = arr ? j->is_arr | bit : j->is_arr & ~bit;
    vv_wr_u8(j->out, (uint8_t)c);
}

static void close_level(vv_json *j, char c)
{
    assert(j->depth > 0 && !j->after_key);
    j->depth--;
    vv_wr_u8(j->out, (uint8_t)c);
}

void vv_json_obj(vv_json *j)
{
    open_level(j, '{', false);
}

void vv_json_end_obj(vv_json *j)
{
    close_level(j, '}');
}

void vv_json_arr(vv_json *j)
{
    open_level(j, '[', true);
}

void vv_json_end_arr(vv_json *j)
{
    close_level(j, ']');
}

/* Bytes that can stand in a string as they are: printable ASCII but for the five that are escaped. */
static const uint8_t plain[256] = {
    [' '] = 1, ['!'] = 1, ['#' ... '%'] = 1, ['\'' ... ';'] = 1, ['='] = 1, ['?' ... '['] = 1, [']' ... '~'] = 1,
};

static void escape_unit(vv_wr *w, unsigned u)
{
    static const char digit[16] = "0123456789abcdef";
    char s[6] = {'\\', 'u', digit[u >> 12 & 15], digit[u >> 8 & 15], digit[u >> 4 & 15], digit[u & 15]};
    vv_wr_bytes(w, s, 6);
}

static void escape_ascii(vv_wr *w, uint8_t c)
{
    static const char short_form[128] = {
        ['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't',
    };
    if (short_form[c]) {
        char s[2] = {'\\', short_form[c]};
        vv_wr_bytes(w, s, 2);
    } else {
        escape_unit(w, c);
    }
}

static void write_string(vv_wr *w, vv_str s)
{
    const uint8_t *p = (const uint8_t *)s.p, *end = s.n ? p + s.n : p;
    vv_wr_u8(w, '"');
    while (p < end) {
        const uint8_t *run = p;
        while (p < end && plain[*p])
            p++;
        vv_wr_bytes(w, run, (size_t)(p - run));
        if (p == end)
            break;
        if (*p < 0x80) {
            escape_ascii(w, *p++);
            continue;
        }
        size_t len = 2;
        for (; len <= 4; len++)
            if (len <= (size_t)(end - p) && vv_utf8_valid((vv_str){(const char *)p, len}))
                break;
        if (len > 4) {
            vv_wr_bytes(w, "\xef\xbf\xbd", 3);
            p++;
        } else if (len == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9)) {
            escape_unit(w, 0x2000u + (p[2] & 0x3fu));
            p += 3;
        } else {
            vv_wr_bytes(w, p, len);
            p += len;
        }
    }
    vv_wr_u8(w, '"');
}

static void begin_key(vv_json *j)
{
    assert(j->depth > 0 && !j->after_key);
    uint64_t bit = UINT64_C(1) << (j->depth - 1);
    assert(!(j->is_arr & bit));
    if (j->has_item & bit)
        vv_wr_u8(j->out, ',');
    j->has_item |= bit;
}

void vv_json_key(vv_json *j, const char *k)
{
    begin_key(j);
    size_t n = strlen(k);
    uint8_t *p = vv_wr_take(j->out, n + 3);
    if (p) {
        p[0] = '"';
        memcpy(p + 1, k, n);
        p[n + 1] = '"';
        p[n + 2] = ':';
    }
    j->after_key = true;
}

void vv_json_key_str(vv_json *j, vv_str k)
{
    begin_key(j);
    write_string(j->out, k);
    vv_wr_u8(j->out, ':');
    j->after_key = true;
}

static void write_literal(vv_json *j, const char *s, size_t n)
{
    before_value(j);
    vv_wr_bytes(j->out, s, n);
}

void vv_json_null(vv_json *j)
{
    write_literal(j, "null", 4);
}

void vv_json_bool(vv_json *j, bool v)
{
    write_literal(j, v ? "true" : "false", v ? 4 : 5);
}

#define LAST(h, t) h "0" t h "1" t h "2" t h "3" t h "4" t h "5" t h "6" t h "7" t h "8" t h "9" t
#define LAST_TWO(h, t) \
    LAST(h "0", t) LAST(h "1", t) LAST(h "2", t) LAST(h "3", t) LAST(h "4", t) \
    LAST(h "5", t) LAST(h "6", t) LAST(h "7", t) LAST(h "8", t) LAST(h "9", t)
#define LAST_THREE(h, t) \
    LAST_TWO(h "0", t) LAST_TWO(h "1", t) LAST_TWO(h "2", t) LAST_TWO(h "3", t) LAST_TWO(h "4", t) \
    LAST_TWO(h "5", t) LAST_TWO(h "6", t) LAST_TWO(h "7", t) LAST_TWO(h "8", t) LAST_TWO(h "9", t)
/* f with each first digit but 0. */
#define FROM_ONE(f, t) f("1", t) f("2", t) f("3", t) f("4", t) f("5", t) f("6", t) f("7", t) f("8", t) f("9", t)

const char vv_json_pairs[] = LAST_TWO("", "");
const char vv_json_quads[] =
    LAST("", "\0\0\0") FROM_ONE(LAST, "\0\0") FROM_ONE(LAST_TWO, "\0") FROM_ONE(LAST_THREE, "");

uint8_t *vv_json_many_digits(uint8_t *p, uint64_t v)
{
    uint32_t parts[5];
    unsigned n = 0;
    for (; v; v /= 10000)
        parts[n++] = (uint32_t)(v % 10000);
    p = vv_json_first_digits(p, parts[--n]);
    while (n)
        p = vv_json_four_digits(p, parts[--n]);
    return p;
}

void vv_json_u64_full(vv_json *j, uint64_t v)
{
    uint8_t s[VV_JSON_DIGITS];
    write_literal(j, (char *)s, (size_t)(vv_json_digits(s, v) - s));
}

const vv_json_word vv_json_word_null = {"null,", sizeof "null"};

bool vv_json_rows_begin(vv_json *j, size_t rows, size_t fields, vv_json_row *ret)
{
    const size_t room = rows * (fields * VV_JSON_FIELD + 3);
    before_value(j);
    uint8_t *p = vv_wr_take(j->out, room);
    if (!p)
        return false;
    *ret = (vv_json_row){p, p + room};
    return true;
}

/* The last comma goes. */
void vv_json_rows_end(vv_json *j, vv_json_row r)
{
    assert(r.at <= r.end);
    j->out->len -= (size_t)(r.end - r.at) + 1;
}

uint8_t *vv_json_row_large(uint8_t *at, bool negative, vv_u128 v)
{
    char *p = (char *)at;
    bool quoted = v > EXACT_MAX;
    if (quoted)
        *p++ = '"';
    if (negative)
        *p++ = '-';
    p += vv_u128_text(p, v);
    if (quoted)
        *p++ = '"';
    *p++ = ',';
    return (uint8_t *)p;
}

void vv_json_u128_text(vv_json *j, vv_u128 v)
{
    char s[42];
    s[0] = '"';
    size_t n = vv_u128_text(s + 1, v);
    s[n + 1] = '"';
    write_literal(j, s, n + 2);
}

void vv_json_u64(vv_json *j, uint64_t v)
{
    if (v <= EXACT_MAX)
        vv_json_u64_full(j, v);
    else
        vv_json_u128_text(j, v);
}

void vv_json_u128(vv_json *j, vv_u128 v)
{
    if (v <= EXACT_MAX)
        vv_json_u64_full(j, (uint64_t)v);
    else
        vv_json_u128_text(j, v);
}

void vv_json_i128(vv_json *j, __int128 v)
{
    if (v >= 0) {
        vv_json_u128(j, (vv_u128)v);
        return;
    }
    char s[44];
    vv_u128 m = -(vv_u128)v;
    s[0] = '"';
    s[1] = '-';
    size_t n = vv_u128_text(s + 2, m);
    s[n + 2] = '"';
    if (m <= EXACT_MAX)
        write_literal(j, s + 1, n + 1);
    else
        write_literal(j, s, n + 3);
}

void vv_json_i64(vv_json *j, int64_t v)
{
    vv_json_i128(j, v);
}

void vv_json_double(vv_json *j, double v)
{
    if (!isfinite(v)) {
        vv_json_null(j);
        return;
    }
    char s[32];
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(s, sizeof s, "%.*g", digits, v);
        if (strtod(s, NULL) == v)
            break;
    }
    write_literal(j, s, (size_t)n);
}

void vv_json_ratio(vv_json *j, double v)
{
    enum { DIGITS = 6, PLACES_MAX = 330 };
    char s[PLACES_MAX + 320];
    if (!isfinite(v)) {
        vv_json_null(j);
        return;
    }
    /* Rounded first: 0.9999999 has one digit before the point. */
    snprintf(s, sizeof s, "%.*e", DIGITS - 1, v);
    v = strtod(s, NULL);
    int exponent = atoi(strchr(s, 'e') + 1), places = DIGITS - 1 - exponent;
    int n = snprintf(s, sizeof s, "%.*f", places < 0 ? 0 : places > PLACES_MAX ? PLACES_MAX : places, v);
    if (strchr(s, '.')) {
        while (s[n - 1] == '0')
            n--;
        n -= s[n - 1] == '.';
    }
    if (n == 2 && memcmp(s, "-0", 2) == 0)
        write_literal(j, "0", 1);
    else
        write_literal(j, s, (size_t)n);
}

void vv_json_raw(vv_json *j, vv_str value)
{
    write_literal(j, value.p, value.n);
}

void vv_json_str(vv_json *j, vv_str s)
{
    before_value(j);
    write_string(j->out, s);
}

void vv_json_cstr(vv_json *j, const char *s)
{
    if (s)
        vv_json_str(j, vv_cstr(s));
    else
        vv_json_null(j);
}

void vv_json_text(vv_json *j, vv_str s)
{
    if (vv_utf8_valid(s)) {
        vv_json_str(j, s);
        return;
    }
    vv_json_obj(j);
    vv_json_key(j, "base64");
    vv_json_base64(j, s.p, s.n);
    vv_json_kv_str(j, "preview", (vv_str){s.p, vv_utf8_cut(s, 64)});
    vv_json_end_obj(j);
}

/* A string of what encode makes of n bytes, step of them at a time. */
static void put_encoded(vv_json *j, const uint8_t *p, size_t n, size_t step,
                        size_t (*encode)(char *, const void *, size_t))
{
    char piece[65];
    before_value(j);
    vv_wr_u8(j->out, '"');
    for (size_t at = 0; at < n; at += step) {
        size_t k = n - at < step ? n - at : step;
        vv_wr_bytes(j->out, piece, encode(piece, p + at, k));
    }
    vv_wr_u8(j->out, '"');
}

static size_t hex_piece(char *out, const void *p, size_t n)
{
    vv_hex(out, p, n);
    return 2 * n;
}

void vv_json_hex(vv_json *j, const void *p, size_t n)
{
    put_encoded(j, p, n, 32, hex_piece);
}

void vv_json_base64(vv_json *j, const void *p, size_t n)
{
    put_encoded(j, p, n, 48, vv_base64);
}
