#include "config.h"

#include "base/text.h"

void vv_hex(char *out, const void *p, size_t n)
{
    static const char digit[16] = "0123456789abcdef";
    const uint8_t *b = p;
    for (size_t i = 0; i < n; i++) {
        *out++ = digit[b[i] >> 4];
        *out++ = digit[b[i] & 15];
    }
    *out = 0;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool vv_unhex(uint8_t *out, size_t n, vv_str s)
{
    if (s.n / 2 != n || s.n % 2)
        return false;
    for (size_t i = 0; i < n; i++) {
        int hi = hex_value(s.p[2 * i]), lo = hex_value(s.p[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        out[i] = (uint8_t)(hi << 4 | lo);
    }
    return true;
}

static const char url_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char std_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t encode64(char *out, const uint8_t *b, size_t n, const char *digits)
{
    char *o = out;
    for (; n >= 3; n -= 3, b += 3) {
        *o++ = digits[b[0] >> 2];
        *o++ = digits[(b[0] & 3) << 4 | b[1] >> 4];
        *o++ = digits[(b[1] & 15) << 2 | b[2] >> 6];
        *o++ = digits[b[2] & 63];
    }
    if (n) {
        unsigned second = n == 2 ? b[1] : 0;
        *o++ = digits[b[0] >> 2];
        *o++ = digits[(b[0] & 3) << 4 | second >> 4];
        if (n == 2)
            *o++ = digits[(second & 15) << 2];
    }
    *o = 0;
    return (size_t)(o - out);
}

size_t vv_base64url(char *out, const void *p, size_t n)
{
    return encode64(out, p, n, url_digits);
}

size_t vv_base64(char *out, const void *p, size_t n)
{
    size_t len = encode64(out, p, n, std_digits);
    while (len % 4)
        out[len++] = '=';
    out[len] = 0;
    return len;
}

static int url_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

ptrdiff_t vv_unbase64url(uint8_t *out, vv_str s)
{
    if (s.n % 4 == 1)
        return -1;
    uint32_t acc = 0;
    unsigned bits = 0;
    size_t len = 0;
    for (size_t i = 0; i < s.n; i++) {
        int v = url_value(s.p[i]);
        if (v < 0)
            return -1;
        acc = (acc << 6 | (uint32_t)v) & 0xffffff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out[len++] = (uint8_t)(acc >> bits);
        }
    }
    if (acc & ((1u << bits) - 1))
        return -1;
    return (ptrdiff_t)len;
}

/* Bytes of the character at p (n left), or 0 where it is malformed. The second byte's range rules out the rest. */
static size_t utf8_one(const uint8_t *p, size_t n)
{
    uint8_t c = p[0];
    if (c < 0x80)
        return 1;
    size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || len > n)
        return 0;
    uint8_t lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    uint8_t hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < lo || p[1] > hi)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

/* Of the first n bytes, so many are ASCII for sure: whole words. */
static size_t ascii_words(const uint8_t *p, size_t n)
{
    size_t i = 0;
    for (uint64_t w; n - i >= sizeof w; i += sizeof w) {
        memcpy(&w, p + i, sizeof w);
        if (w & 0x8080808080808080)
            break;
    }
    return i;
}

bool vv_utf8_valid(vv_str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    for (size_t i = s.n ? ascii_words(p, s.n) : 0; i < s.n;) {
        size_t len = utf8_one(p + i, s.n - i);
        if (!len)
            return false;
        i += len;
        if (len > 1)
            i += ascii_words(p + i, s.n - i);
    }
    return true;
}

void vv_utf8_mend(char *p, size_t n)
{
    for (size_t i = ascii_words((const uint8_t *)p, n); i < n;) {
        size_t len = utf8_one((const uint8_t *)p + i, n - i);
        if (!len)
            p[i] = '?';
        i += len ? len : 1;
        if (len > 1)
            i += ascii_words((const uint8_t *)p + i, n - i);
    }
}

static bool is_unruly(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

void vv_text_tame(char *p, size_t n)
{
    vv_utf8_mend(p, n);
    for (size_t i = 0; i < n;) {
        const uint8_t *b = (const uint8_t *)p + i;
        size_t len = utf8_one(b, n - i);
        /* Nothing unruly has four bytes. */
        uint32_t c = len == 1 ? b[0] : len == 2 ? (b[0] & 0x1fu) << 6 | (b[1] & 0x3fu) :
                     len == 3 ? (b[0] & 0xfu) << 12 | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu) : 'x';
        if (is_unruly(c))
            memset(p + i, '?', len);
        i += len;
    }
}

size_t vv_utf8_cut(vv_str s, size_t max)
{
    if (s.n <= max)
        return s.n;
    size_t n = max;
    while (n && ((uint8_t)s.p[n] & 0xc0) == 0x80)
        n--;
    return n;
}

size_t vv_str_digits(vv_str s)
{
    size_t n = 0;
    while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
        n++;
    return n;
}

bool vv_str_u64(vv_str s, uint64_t *ret)
{
    uint64_t v = 0;
    bool good = s.n > 0 && s.n <= 20 && vv_str_digits(s) == s.n;
    for (size_t i = 0; i < s.n && good; i++)
        good = !__builtin_mul_overflow(v, (uint64_t)10, &v)
            && !__builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v);
    if (good)
        *ret = v;
    return good;
}

size_t vv_u128_text(char *out, vv_u128 v)
{
    char tmp[40];
    size_t n = 0;
    do {
        tmp[n++] = (char)('0' + (int)(v % 10));
        v /= 10;
    } while (v);
    for (size_t i = 0; i < n; i++)
        out[i] = tmp[n - 1 - i];
    out[n] = 0;
    return n;
}
