/* Entity tags. Pure functions. */
#pragma once

#include <stdbool.h>

/*
 * True where If-None-Match (may be NULL) names the tag, compared weakly, or is "*". A content coding's suffix
 * ("-gzip") is not compared: the same answer in another coding is unchanged too.
 */
bool vv_etag_matches(const char *if_none_match, const char *tag);
