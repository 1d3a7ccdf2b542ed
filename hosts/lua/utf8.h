/* Whether bytes are UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool vl_utf8_is(const char *s, size_t n);
