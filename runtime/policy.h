/*
 * Which calls are selected, and for which values: the flag byte of a call's start. Its bits 0 to 2 are roles and its
 * bits 4 to 6 reasons as the store has them (format/evidence.h). Pure, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/varve.h"

enum {
    VV_FLAG_ROLES = 0x07,
    VV_FLAG_SELECTED = 0x08,
    VV_FLAG_ROOT = 0x10,
    VV_FLAG_LLM = 0x20,
    VV_FLAG_MANUAL = 0x40,
    VV_FLAG_REASON_SHIFT = 4,
};

static inline uint8_t vv_flags_roles(uint8_t flags)
{
    return flags & VV_FLAG_ROLES;
}

static inline uint8_t vv_flags_reasons(uint8_t flags)
{
    return flags >> VV_FLAG_REASON_SHIFT & 7;
}
