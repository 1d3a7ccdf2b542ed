/*
 * What the head of a request must be, beyond what libmicrohttpd asks: one that another program on the way could read
 * differently is refused. Pure functions over what the library tells.
 *
 * Folded headers, lines that end in a bare LF or CR, and NULs leave no trace in the texts that the library gives, but
 * in where they lie: it parses in place, so in a plain head each text begins right behind the one before.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uintptr_t begin, at; /* of the head; behind the text before */
    size_t size;         /* of the head, 0: not known */
    bool moved;          /* a text does not lie where it should */
    bool bad_name, bad_value;
    unsigned lengths, codings;
    const char *coding;
    unsigned seen;       /* of headers that may be there once, a bit each */
    bool repeated;
} vv_framing;

/*
 * Begins with the request line. size is that of the whole head; 0 where texts do not lie in the buffer that was read
 * (another version of the library): then only what the texts themselves tell is checked.
 */
vv_framing vv_framing_begin(const char *method, const char *url, size_t target_len, const char *version, size_t size);
/* Each header, in order. */
void vv_framing_header(vv_framing *f, const char *name, size_t name_len, const char *value, size_t value_len);
/* Why the request is refused, or NULL. */
const char *vv_framing_end(const vv_framing *f);
