/*
 * A streaming JSON writer: it appends to a vv_wr and keeps no tree, so an answer may be produced piece by piece.
 *
 * Exactness: a count up to 2^53-1 is a JSON number, a larger one a decimal string (vv_json_u64, _i64, _u128), except
 * where the caller asks for the full integer (vv_json_u64_full). No exponent forms. Text is checked: vv_json_str
 * replaces malformed UTF-8 by U+FFFD, vv_json_text writes {"base64", "preview"} instead. Besides what JSON asks, '<',
 * '>', '&', U+2028 and U+2029 are escaped, so an answer is safe inside HTML.
 *
 * Misuse (a value without a key, more than 64 levels) is our own bug and asserts. Owned by one thread. Failures of
 * memory are sticky in the vv_wr. Source: docs/http-api.md.
 */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

typedef struct {
    vv_wr *out;
    uint64_t is_arr, has_item; /* one bit a level */
    unsigned depth;
    bool after_key;
} vv_json;

static inline vv_json vv_json_init(vv_wr *out)
{
    return (vv_json){.out = out};
}

void vv_json_obj(vv_json *j);     /* { */
void vv_json_end_obj(vv_json *j); /* } */
void vv_json_arr(vv_json *j);     /* [ */
void vv_json_end_arr(vv_json *j); /* ] */

/* k is a literal in ASCII that needs no escape. */
void vv_json_key(vv_json *j, const char *k);
/* A key that is data: escaped. */
void vv_json_key_str(vv_json *j, vv_str k);

void vv_json_null(vv_json *j);
void vv_json_bool(vv_json *j, bool v);
void vv_json_u64(vv_json *j, uint64_t v);
void vv_json_i64(vv_json *j, int64_t v);
void vv_json_u128(vv_json *j, vv_u128 v);
void vv_json_i128(vv_json *j, __int128 v);
void vv_json_u64_full(vv_json *j, uint64_t v);  /* always a number */
void vv_json_u128_text(vv_json *j, vv_u128 v);  /* always a decimal string */
void vv_json_double(vv_json *j, double v);      /* shortest form that reads back equal; null where not finite */
void vv_json_ratio(vv_json *j, double v);       /* at most 6 significant digits, no exponent; null where not finite */
void vv_json_str(vv_json *j, vv_str s);
void vv_json_cstr(vv_json *j, const char *s);   /* NULL writes null */
void vv_json_text(vv_json *j, vv_str s);        /* captured text that may not be UTF-8 */
void vv_json_raw(vv_json *j, vv_str value);     /* one value that another vv_json has written */
void vv_json_hex(vv_json *j, const void *p, size_t n);
void vv_json_base64(vv_json *j, const void *p, size_t n); /* standard alphabet, padded */

static inline void vv_json_kv_u64(vv_json *j, const char *k, uint64_t v)
{
    vv_json_key(j, k);
    vv_json_u64(j, v);
}

static inline void vv_json_kv_u128(vv_json *j, const char *k, vv_u128 v)
{
    vv_json_key(j, k);
    vv_json_u128(j, v);
}

static inline void vv_json_kv_i128(vv_json *j, const char *k, __int128 v)
{
    vv_json_key(j, k);
    vv_json_i128(j, v);
}

static inline void vv_json_kv_bool(vv_json *j, const char *k, bool v)
{
    vv_json_key(j, k);
    vv_json_bool(j, v);
}

static inline void vv_json_kv_cstr(vv_json *j, const char *k, const char *v)
{
    vv_json_key(j, k);
    vv_json_cstr(j, v);
}

static inline void vv_json_kv_str(vv_json *j, const char *k, vv_str v)
{
    vv_json_key(j, k);
    vv_json_str(j, v);
}

/* null where s is NULL or absent. */
static inline void vv_json_kv_opt_str(vv_json *j, const char *k, const vv_opt_str *s)
{
    vv_json_key(j, k);
    if (s && s->present)
        vv_json_str(j, s->s);
    else
        vv_json_null(j);
}

/* null where s is NULL. */
static inline void vv_json_kv_str_or_null(vv_json *j, const char *k, const vv_str *s)
{
    vv_json_key(j, k);
    if (s)
        vv_json_str(j, *s);
    else
        vv_json_null(j);
}

static inline void vv_json_kv_hex(vv_json *j, const char *k, const void *p, size_t n)
{
    vv_json_key(j, k);
    vv_json_hex(j, p, n);
}

static inline void vv_json_kv_null(vv_json *j, const char *k)
{
    vv_json_key(j, k);
    vv_json_null(j);
}

/* null where it is not known. */
static inline void vv_json_kv_opt_bool(vv_json *j, const char *k, bool known, bool v)
{
    if (known)
        vv_json_kv_bool(j, k, v);
    else
        vv_json_kv_null(j, k);
}

/* null where p is NULL. */
static inline void vv_json_kv_opt_hex(vv_json *j, const char *k, const void *p, size_t n)
{
    if (p)
        vv_json_kv_hex(j, k, p, n);
    else
        vv_json_kv_null(j, k);
}

/* Opens the object, or the list, of a key. */
static inline void vv_json_kv_obj(vv_json *j, const char *k)
{
    vv_json_key(j, k);
    vv_json_obj(j);
}

static inline void vv_json_kv_arr(vv_json *j, const char *k)
{
    vv_json_key(j, k);
    vv_json_arr(j);
}

/* Opens the object where it is present; else writes null and returns false. */
static inline bool vv_json_kv_opt_obj(vv_json *j, const char *k, bool present)
{
    vv_json_key(j, k);
    if (present)
        vv_json_obj(j);
    else
        vv_json_null(j);
    return present;
}

/*
 * Lists as rows of a table with very many: numbers as vv_json_u128 and vv_json_i128 write them, and short words, at a
 * fraction of the cost, since room is taken once for several rows.
 */
typedef struct {
    uint8_t *at, *end;
} vv_json_row;

enum { VV_JSON_FIELD = 48 }; /* bytes that a field takes at most */

/* A short word as a field, with its quotes and the comma: copied in one go. */
typedef struct {
    char text[15];
    uint8_t n;
} vv_json_word;
#define VV_JSON_WORD(s) {"\"" s "\",", sizeof(s) + 2}
extern const vv_json_word vv_json_word_null;

/* Begins as many rows, one at least, of so many fields at most. False: no memory (sticky in the writer). */
bool vv_json_rows_begin(vv_json *j, size_t rows, size_t fields, vv_json_row *ret);
void vv_json_rows_end(vv_json *j, vv_json_row r);

/* Around the fields of one of them. */
static inline void vv_json_row_open(vv_json_row *r)
{
    *r->at++ = '[';
}

static inline void vv_json_row_close(vv_json_row *r)
{
    r->at -= r->at[-1] == ',';
    *r->at++ = ']';
    *r->at++ = ',';
}

/* One of more than EXACT_MAX, or a negative one, and the comma, at p; returns their end. */
uint8_t *vv_json_row_large(uint8_t *p, bool negative, vv_u128 v);

/* Of numbers below 10,000: their digits, and zero bytes behind them; of those below 100: both digits. */
extern const char vv_json_quads[4 * 10000 + 1], vv_json_pairs[2 * 100 + 1];

static inline uint8_t *vv_json_first_digits(uint8_t *p, uint32_t v)
{
    uint32_t digits;
    memcpy(&digits, vv_json_quads + 4 * v, sizeof digits);
    memcpy(p, &digits, sizeof digits);
    return p + (39 - __builtin_clz(le32toh(digits))) / 8;
}

static inline uint8_t *vv_json_four_digits(uint8_t *p, uint32_t v)
{
    memcpy(p, vv_json_pairs + v / 100 * 2, 2);
    memcpy(p + 2, vv_json_pairs + v % 100 * 2, 2);
    return p + 4;
}

/* One of 10^12 or more. */
uint8_t *vv_json_many_digits(uint8_t *p, uint64_t v);

/* Decimal digits of v at p, where VV_JSON_DIGITS bytes may be written; returns their end. */
enum { VV_JSON_DIGITS = 20 };
static inline VV_INLINE uint8_t *vv_json_digits(uint8_t *p, uint64_t v)
{
    if (v < 10000)
        return vv_json_first_digits(p, (uint32_t)v);
    uint64_t above = v / 10000;
    if (above < 10000)
        return vv_json_four_digits(vv_json_first_digits(p, (uint32_t)above), (uint32_t)(v % 10000));
    uint64_t first = above / 10000;
    if (first >= 10000)
        return vv_json_many_digits(p, v);
    p = vv_json_four_digits(vv_json_first_digits(p, (uint32_t)first), (uint32_t)(above % 10000));
    return vv_json_four_digits(p, (uint32_t)(v % 10000));
}

static inline VV_INLINE void vv_json_row_u128(vv_json_row *r, vv_u128 v)
{
    if (v < 10) {
        *r->at++ = (uint8_t)('0' + (int)v);
    } else if (v < UINT64_C(1) << 53) {
        r->at = vv_json_digits(r->at, (uint64_t)v);
    } else {
        r->at = vv_json_row_large(r->at, false, v);
        return;
    }
    *r->at++ = ',';
}

/* a - b in full. */
static inline VV_INLINE void vv_json_row_difference(vv_json_row *r, vv_u128 a, vv_u128 b)
{
    if (a >= b)
        vv_json_row_u128(r, a - b);
    else
        r->at = vv_json_row_large(r->at, true, b - a);
}

static inline VV_INLINE void vv_json_row_i128(vv_json_row *r, __int128 v)
{
    if (v >= 0)
        vv_json_row_u128(r, (vv_u128)v);
    else
        r->at = vv_json_row_large(r->at, true, -(vv_u128)v);
}

static inline void vv_json_row_word(vv_json_row *r, const vv_json_word *w)
{
    memcpy(r->at, w->text, sizeof w->text);
    r->at += w->n;
}

/* True once exactly one complete value stands written and the writer did not fail. */
static inline bool vv_json_done(const vv_json *j)
{
    return j->depth == 0 && !j->after_key && vv_wr_ok(j->out);
}
