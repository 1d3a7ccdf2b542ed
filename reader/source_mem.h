/* A source whose files are in memory, for tests and fuzzers. */
#pragma once

#include "reader/source.h"

typedef struct {
    const char *path; /* relative to the store root */
    const void *p;
    size_t n;
} vv_mem_file;

/* The files' bytes are borrowed and must outlive the source; the paths are copied. */
VV_MUST_CHECK vv_code vv_source_open_mem(vv_source **ret, const vv_mem_file *files, size_t count, vv_error *err);
