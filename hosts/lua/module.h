/*
 * Module names of source files: the path below the directory that holds the program's sources, without `.lua`, with
 * dots.
 */
#pragma once

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

/* The longest root wins: the script's directory, or a directory of package.path (read from L). Below none: the
 * file's path as it is where relative, its last part where absolute. Heap; NULL where there is no memory. script may
 * be NULL. */
char *vl_module_of_file(lua_State *L, const char *path, const char *script);
/* The bytes of the file that stand before the text Lua was given, which has one newline for a first line that begins
 * with #. */
int64_t vl_module_text_shift(const char *path, const char *text, size_t n);
