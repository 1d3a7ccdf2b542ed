/* Lists of what a client takes, with weights: Accept, Accept-Encoding (RFC 9110, section 12). Pure functions. */
#pragma once

#include "base/bytes.h"

/*
 * The next element of a header: its name without blanks, its weight in thousandths (1000 where none is given, 0 for one
 * that can't be read). *at is the header at first, and moves. False at the end.
 */
bool vv_accept_next(const char **at, vv_str *ret_name, unsigned *ret_weight);

/* Whether ASCII letters' case aside s is the name. */
bool vv_accept_is(vv_str s, const char *name);

/*
 * Whether a client that sends this Accept (may be NULL) asks for the media type by its name, and likes none of the
 * others (NULL-terminated) more, which wildcards mean too.
 */
bool vv_accept_wants(const char *accept, const char *type, const char *const *others);
