/*
 * The profiler's clock: a raw counter that costs one instruction, and one function of it to nanoseconds.
 *
 * The function is a growing table of lines. A new line starts at a tick in the future and where its predecessor
 * arrives, so the whole is continuous, monotone and never changes for a tick that was read: every thread converts a
 * tick to the same nanosecond whenever it does so. That is what makes self times of a tree sum up exactly.
 *
 * One thread (the consumer) adds lines; any thread converts.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { VV_CLOCK_LINES = 96, VV_CLOCK_SHIFT = 48 };

/* ns = base_ns + ((ticks - base_ticks) * scale >> VV_CLOCK_SHIFT), for ticks from base_ticks to the next line's. */
typedef struct {
    uint64_t base_ticks, base_ns, scale;
} vv_clock_line;

typedef struct {
    _Atomic uint32_t count;
    vv_clock_line lines[VV_CLOCK_LINES];
    uint64_t zero_ticks, zero_raw_ns; /* the pair the measured rate is taken from */
    uint64_t next_refine_ns;          /* of CLOCK_MONOTONIC_RAW since zero */
    uint64_t zero_unix_ns;            /* wall clock of ns 0 */
} vv_clock;

/* A counter and CLOCK_MONOTONIC_RAW read at one instant. */
typedef struct {
    uint64_t ticks, raw_ns;
} vv_clock_pair;

/* Whether ticks are a hardware counter (else they are nanoseconds). Decided once, by vv_clock_select. */
extern bool vv_clock_hardware;
void vv_clock_select(void);

uint64_t vv_clock_slow_ticks(void);

static inline uint64_t vv_ticks(void)
{
#if defined(__x86_64__)
    if (VV_LIKELY(vv_clock_hardware))
        return __rdtsc();
#elif defined(__aarch64__)
    if (VV_LIKELY(vv_clock_hardware)) {
        uint64_t v;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
        return v;
    }
#endif
    return vv_clock_slow_ticks();
}

/* The tightest of a few readings. */
vv_clock_pair vv_clock_read_pair(void);
uint64_t vv_clock_unix_ns(void);
uint64_t vv_clock_monotonic_ns(void);

/* A clock that has its zero (now, for both clocks), and no line yet: nothing may be converted. */
void vv_clock_start(vv_clock *c);
/* Makes the first line where there is none, of two readings at least 2 ms apart: waits until it may. Any thread; the
 * consumer does it first, so that a host waits only if it suspends a call within its first 2 ms. */
void vv_clock_calibrate(vv_clock *c);
static inline bool vv_clock_is_ready(const vv_clock *c)
{
    return atomic_load_explicit(&c->count, memory_order_acquire) != 0;
}

/* From two readings at least 2 ms apart (nearer ones are used as they are; equal ones give 1 ns a tick). ns 0 is the
 * first. */
void vv_clock_init(vv_clock *c, vv_clock_pair first, vv_clock_pair second, uint64_t zero_unix_ns);

/*
 * Adds a line that steers to the measured clock, where it is time: windows double from 1 s. now is a fresh reading;
 * lead_ticks is how far in the future the line starts, more than any thread may be between reading the table and a
 * tick.
 */
void vv_clock_refine(vv_clock *c, vv_clock_pair now, uint64_t lead_ticks);
/* The default lead: 5 ms in ticks. */
uint64_t vv_clock_lead(const vv_clock *c);

static inline uint64_t vv_clock_on_line(const vv_clock_line *l, uint64_t ticks)
{
    return l->base_ns + (uint64_t)((vv_u128)(ticks - l->base_ticks) * l->scale >> VV_CLOCK_SHIFT);
}

/* Ticks before the first line's start convert to 0. */
uint64_t vv_clock_ns(const vv_clock *c, uint64_t ticks);
/* The line that holds ticks, and where the next one starts (UINT64_MAX: not known yet). For converting in bulk. */
vv_clock_line vv_clock_line_at(const vv_clock *c, uint64_t ticks, uint64_t *ret_end);
