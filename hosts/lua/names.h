/*
 * Lexical names of the functions in a chunk of Lua source.
 *
 * A function is named by what it is written into: `function a.b:c`, `local function x`, `local x = function`, `t = { k
 * = function }` (t.k), `["k"] = function`. What has no such place (an argument, a returned function) is fn#k, the k-th
 * of its encloser. A function within another has the encloser's path and a dot before its own; the k-th of an equal
 * path (k > 1) gets #k. Neither line nor file takes part, so that moved code keeps its names.
 *
 * The order is that of the `function` words in the text, which is the order (pre-order) of the compiled prototypes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *path;    /* "" for the chunk itself, which comes first */
    const char *last;    /* the part of path that is this function's own; a suffix of it */
    uint32_t parent;     /* index of the encloser; the chunk's is itself */
    uint32_t start, end; /* byte offsets in the text: from `function` to after its `end` */
    int line, last_line; /* as the compiler records them */
    uint32_t children;
} vl_name;

typedef struct {
    vl_name *items;
    size_t n;
    char *text; /* where the paths are */
} vl_names;

/* False where the text is not Lua or there is no memory; *ret_names is then untouched. Free with vl_names_done. */
_Bool vl_names_parse(const char *text, size_t n, vl_names *ret_names);
/* Names without a text: all functions are fn#k. children and lines of n functions in pre-order, the chunk first; the
 * children must add up to n - 1. */
_Bool vl_names_number(const uint32_t *children, const int *lines, size_t n, vl_names *ret_names);
void vl_names_done(vl_names *names);
