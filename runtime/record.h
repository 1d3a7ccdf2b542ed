/*
 * Records of a ring: 8-byte words that commit themselves.
 *
 *   word 0 = payload << 8 | tag; never 0, written last with release order, so that the consumer needs no index:
 *   a zero word is the end of what there is. For events the payload is the tick's low 56 bits.
 *
 *   begin            2 words   ticks           | function u32, site u32
 *   end              1         ticks             (the status is in the tag)
 *   awaited end      3         ticks           | await ns | intervals
 *   switch           1         thread number     (the following records are that thread's)
 *   bind             5         thread number   | begins | depth, 1 in bit 63 once it has started |
 *                              asides u32, slot u32 | ticks of now
 *                              (it comes from another ring: wait until it is there)
 *   resync           2         thread number   | depth   (ends were refused: deeper frames are gone)
 *   span             3 or 5    ticks           | function u32, site u32 | flags of its policy | the LocalId's 16 bytes,
 *                              where manual      (a begin that is selected)
 *   runtime id       3         up              | 16 bytes  (of a selected call, up callers above the innermost)
 *   value            4         role | loss + 1 << 8 | pool << 16  | bytes | length | capacity  (of the innermost call;
 *                              the body is the consumer's from here on; where lost there is none)
 *   error            8         kind | source << 1 | loss + 1 << 8 | pool << 16  | up u32, function u32 | site |
 *                              ordinal | calls that it ends | bytes | length | capacity
 *   link lost        1         0                 (an error will end the innermost call that could not be recorded)
 *   spawn            4 + n     child number    | site u32, up u32 | name bytes | 0 | name, padded
 *   thread start     3         ticks           | thread number | slot of the execution
 *                              (of a child: a root's is told by its slot)
 *   thread end       1         ticks             (the status is in the tag)
 *
 * Calls are numbered from 1 in each thread; both sides count. What is no begin, end, start or end of a thread is an
 * aside: these are counted too, so that a bind tells whether all of the other ring was read.
 */
#pragma once

#include <stdint.h>

enum {
    VV_REC_BEGIN = 1,
    VV_REC_END = 2,         /* + call status, 0 to 3 */
    VV_REC_AWAITED_END = 6, /* + call status */
    VV_REC_SWITCH = 10,
    VV_REC_BIND,
    VV_REC_RESYNC,
    VV_REC_SPAWN,
    VV_REC_SPAN,
    VV_REC_RUNTIME_ID,
    VV_REC_VALUE,
    VV_REC_ERROR,
    VV_REC_LINK_LOST,
    VV_REC_THREAD_START,
    VV_REC_THREAD_END, /* + thread status, 0 to 2 */
    VV_REC_TAGS = VV_REC_THREAD_END + 3,
};

enum {
    VV_WORDS_BEGIN = 2,
    VV_WORDS_END = 1,
    VV_WORDS_AWAITED_END = 3,
    VV_WORDS_SWITCH = 1,
    VV_WORDS_BIND = 5,
    VV_WORDS_RESYNC = 2,
    VV_WORDS_SPAWN = 4,
    VV_WORDS_SPAN = 3, /* and 2 where manual */
    VV_WORDS_RUNTIME_ID = 3,
    VV_WORDS_VALUE = 4,
    VV_WORDS_ERROR = 8,
    VV_WORDS_LINK_LOST = 1,
    VV_WORDS_THREAD_START = 3,
    VV_WORDS_THREAD_END = 1,
    VV_NAME_MAX = 256,
};

#define VV_REC_STARTED (1ULL << 63)

static inline uint64_t vv_word0(unsigned tag, uint64_t payload)
{
    return payload << 8 | tag;
}

static inline unsigned vv_word_tag(uint64_t w)
{
    return w & 0xff;
}

static inline uint64_t vv_word_payload(uint64_t w)
{
    return w >> 8;
}

/* The full tick of 56 bits, given any tick that is later than it by less than 2^56. */
static inline uint64_t vv_unwrap(uint64_t low, uint64_t later)
{
    uint64_t t = (later & 0xff00000000000000ULL) | low;
    return t > later ? t - (1ULL << 56) : t;
}
