/* Randomness of the kernel. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

/* n random bytes, at most 256; never waits. False: there is no entropy yet, and p holds nothing of use. */
VV_MUST_CHECK bool vv_random(void *p, size_t n);
