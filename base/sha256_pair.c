#include "config.h"

#include "base/sha256_pair.h"

#ifdef __x86_64__

#include <cpuid.h>
#include <immintrin.h>

#include "base/attr.h"

#define SHA_TARGET __attribute__((target("sha,sse4.1")))
#define SHA_INLINE __attribute__((target("sha,sse4.1"), always_inline)) static inline

static const uint32_t round_words[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* One message's state, its words in the order that the instructions want, and the last 16 words of its schedule. */
typedef struct {
    __m128i abef, cdgh, w[4];
} lane;

SHA_INLINE void lane_load(lane *l, const uint32_t h[8])
{
    __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i_u *)h), 0xb1);
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i_u *)(h + 4)), 0x1b);
    l->abef = _mm_alignr_epi8(badc, hgfe, 8);
    l->cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
}

SHA_INLINE void lane_store(const lane *l, uint32_t h[8])
{
    __m128i feba = _mm_shuffle_epi32(l->abef, 0x1b), dchg = _mm_shuffle_epi32(l->cdgh, 0xb1);
    _mm_storeu_si128((__m128i_u *)h, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i_u *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/* Words i to i + 3 of the message, of which w[i / 4 % 4] is to hold them. */
SHA_INLINE void take_words(lane *l, const uint8_t *p, int i)
{
    const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    l->w[i / 4] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i_u *)(p + 4 * i)), swap);
}

SHA_INLINE void next_words(lane *l, int at)
{
    __m128i *w = l->w, last = w[(at + 3) % 4];
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[at], w[(at + 1) % 4]),
                                _mm_alignr_epi8(last, w[(at + 2) % 4], 4));
    w[at] = _mm_sha256msg2_epu32(sum, last);
}

/* Four rounds, from round i on. */
SHA_INLINE void rounds(lane *l, int at, int i)
{
    __m128i wk = _mm_add_epi32(l->w[at], _mm_load_si128((const __m128i *)(const void *)(round_words + i)));
    l->cdgh = _mm_sha256rnds2_epu32(l->cdgh, l->abef, wk);
    l->abef = _mm_sha256rnds2_epu32(l->abef, l->cdgh, _mm_shuffle_epi32(wk, 0x0e));
}

SHA_INLINE void first_rounds(lane *a, const uint8_t *p, lane *b, const uint8_t *q, int i)
{
    take_words(a, p, i);
    take_words(b, q, i);
    rounds(a, i / 4, i);
    rounds(b, i / 4, i);
}

SHA_INLINE void more_rounds(lane *a, lane *b, int at, int i)
{
    next_words(a, at);
    next_words(b, at);
    rounds(a, at, i + 4 * at);
    rounds(b, at, i + 4 * at);
}

/* A round waits for the one before it, longer than it takes: the other message's goes into the gap. */
SHA_TARGET static void take_blocks(uint32_t ha[8], const uint8_t *p, uint32_t hb[8], const uint8_t *q, size_t blocks)
{
    lane a, b;
    lane_load(&a, ha);
    lane_load(&b, hb);
    for (; blocks; blocks--, p += VV_SHA256_BLOCK, q += VV_SHA256_BLOCK) {
        const __m128i was[] = {a.abef, a.cdgh, b.abef, b.cdgh};
        first_rounds(&a, p, &b, q, 0);
        first_rounds(&a, p, &b, q, 4);
        first_rounds(&a, p, &b, q, 8);
        first_rounds(&a, p, &b, q, 12);
        for (int i = 16; i < 64; i += 16) {
            more_rounds(&a, &b, 0, i);
            more_rounds(&a, &b, 1, i);
            more_rounds(&a, &b, 2, i);
            more_rounds(&a, &b, 3, i);
        }
        a.abef = _mm_add_epi32(a.abef, was[0]);
        a.cdgh = _mm_add_epi32(a.cdgh, was[1]);
        b.abef = _mm_add_epi32(b.abef, was[2]);
        b.cdgh = _mm_add_epi32(b.cdgh, was[3]);
    }
    lane_store(&a, ha);
    lane_store(&b, hb);
}

static bool ask_processor(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA;
}

/* Asked once: in a virtual machine the answer is slow. */
static bool has_sha(void)
{
    enum { UNKNOWN, NO, YES };
    static int known;
    int k = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (VV_UNLIKELY(k == UNKNOWN)) {
        k = ask_processor() ? YES : NO;
        __atomic_store_n(&known, k, __ATOMIC_RELAXED);
    }
    return k == YES;
}

bool vv_sha256_pair(uint32_t a[8], const uint8_t *p, uint32_t b[8], const uint8_t *q, size_t blocks)
{
    if (!has_sha())
        return false;
    take_blocks(a, p, b, q, blocks);
    return true;
}

#else

bool vv_sha256_pair(uint32_t a[8], const uint8_t *p, uint32_t b[8], const uint8_t *q, size_t blocks)
{
    (void)a, (void)p, (void)b, (void)q, (void)blocks;
    return false;
}

#endif
