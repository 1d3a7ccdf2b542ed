/* Text forms of bytes: hexadecimal, base64 (two alphabets), UTF-8 checking, decimal of 128 bits. Pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Writes 2n lowercase digits and a NUL into out. */
void vv_hex(char *out, const void *p, size_t n);

/* Reads exactly 2n digits (either case) of s into out; false where s has another length or character. */
bool vv_unhex(uint8_t *out, size_t n, vv_str s);

/* base64url without padding: writes the characters and a NUL, returns their count, ceil(4n/3). */
size_t vv_base64url(char *out, const void *p, size_t n);

/*
 * Strict canonical base64url without padding: '=', a foreign character, a length of 1 mod 4 or non-zero slack bits
 * are refused. Returns the byte count, or -1. out needs s.n * 3 / 4 bytes.
 */
ptrdiff_t vv_unbase64url(uint8_t *out, vv_str s);

/* Standard base64 with padding, as JSON answers carry bytes. Returns the count, 4 * ceil(n/3), and writes a NUL. */
size_t vv_base64(char *out, const void *p, size_t n);

/* Valid UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
bool vv_utf8_valid(vv_str s);

/* The length of the longest prefix of at most max bytes that ends on a character boundary. */
size_t vv_utf8_cut(vv_str s, size_t max);

/* Makes n bytes valid UTF-8 of the same length: each byte that belongs to no character becomes '?'. */
void vv_utf8_mend(char *p, size_t n);

/*
 * Makes n bytes safe to show on a terminal, in place: mended as above, and each byte of a character that a terminal
 * obeys or that reorders text (C0 and C1 controls, DEL, line and paragraph separators, direction marks) becomes '?'.
 */
void vv_text_tame(char *p, size_t n);

/* The number of decimal digits that the text begins with. */
size_t vv_str_digits(vv_str s);
/* Reads text that is 1 to 20 decimal digits and nothing else; false where it is not, or the number is above 2^64-1. */
bool vv_str_u64(vv_str s, uint64_t *ret);

/* Decimal digits of v and a NUL into out (at least 40 bytes); returns their count. */
size_t vv_u128_text(char *out, vv_u128 v);
