/*
 * What an execution may hold, in a few bits: "no" is certain, "yes" is to be looked at. A view that looks for a context
 * or a text in a whole store leaves out the executions that say no.
 *
 * Bits of a Bloom filter; twelve a thing held as long as there is room, so that one "yes" of a few hundred is wrong.
 * Owned by one thread while it is filled; shareable afterwards.
 */
#pragma once

#include "base/attr.h"
#include "base/bytes.h"
#include "base/map.h"

enum { VV_SIEVE_BYTES_MAX = 128 * 1024 };

typedef struct {
    uint8_t *p;   /* NULL: nothing is held, or all is set */
    uint32_t n;   /* bytes */
    bool all;     /* says yes to everything: too much is held, or there was no memory */
} vv_sieve;

/* Room for so many things; a zeroed one holds nothing. */
void vv_sieve_init(vv_sieve *s, size_t things);
void vv_sieve_done(vv_sieve *s); /* accepts a zeroed one */

/* A thing is named by 64 bits that are as good as random. */
void vv_sieve_add(vv_sieve *s, uint64_t thing);
bool vv_sieve_may_hold(const vv_sieve *s, uint64_t thing);

/* The same for texts, of which parts are looked for (vv_text_contains): all threes of bytes that follow each other. */
typedef struct {
    vv_map threes;
    bool all;
} vv_sieve_texts;
enum { VV_SIEVE_THREES_MAX = 16384 }; /* more of them, and it says yes to everything */

void vv_sieve_texts_init(vv_sieve_texts *t);
void vv_sieve_texts_add(vv_sieve_texts *t, vv_str text);
/* The sieve of what was added; t is done with. */
void vv_sieve_texts_finish(vv_sieve_texts *t, vv_sieve *ret);
/* May a text that was added contain this one? */
bool vv_sieve_may_contain(const vv_sieve *s, vv_str part);
