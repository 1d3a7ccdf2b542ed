/*
 * The function table of an engine: the body of a codec-2 object (docs/store.md). Immutable once decoded;
 * texts are views into the body, which the table owns a copy of.
 */
#pragma once

#include "format/context.h"

typedef enum {
    VV_FN_BYTECODE = 0,
    VV_FN_SYSOP = 1,
    VV_FN_NATIVE = 2,
    VV_FN_NATIVE_UNRESOLVED = 3,
    VV_FN_KIND_UNKNOWN = 255,
} vv_fn_kind;
typedef enum {
    VV_FN_USER = 0,
    VV_FN_COMPANION = 1,
    VV_FN_INTERNAL = 2,
    VV_FN_BUILTIN = 3,
    VV_FN_AUTO_DERIVE = 4,
    VV_FN_ORIGIN_UNKNOWN = 255,
} vv_fn_origin;

/* "bytecode" "sysop" "native" "native_unresolved", "user" "companion" "internal" "builtin" "auto_derive"; NULL =
 * unknown. */
const char *vv_fn_kind_name(uint8_t kind);
const char *vv_fn_origin_name(uint8_t origin);

typedef struct {
    uint32_t id;
    vv_str fqn, display_name;
    vv_opt_str definition_key, kind_detail, source_file, package;
    uint8_t kind, origin; /* an unlisted code reads as unknown */
    bool has_span;
    uint32_t file_id, span_start, span_end;
    uint16_t namespace_count;
    const vv_str *namespaces;
} vv_function;

/*
 * A row has no field for the line of a definition. Varve's writer puts it into kind_detail of functions that have no
 * other detail, as the text "line 42"; vv_fn_line reads it back (0 where there is none).
 */
enum { VV_FN_LINE_TEXT = 16 };
void vv_fn_line_text(char out[VV_FN_LINE_TEXT], uint32_t line);
uint32_t vv_fn_line(const vv_function *f);

typedef struct {
    uint32_t id;
    vv_str path;
} vv_source_file;

typedef struct {
    vv_function *functions; /* ascending by id */
    uint32_t function_count;
    vv_source_file *files;  /* ascending by id */
    uint32_t file_count;
    void *owned; /* the decoder's memory */
    size_t bytes;
} vv_function_table;

/* Errors: Truncated, UnsupportedVersion, InvalidTag, InvalidUtf8, Unordered, TrailingBytes; LIMIT or NOMEM where it
 * is too large. */
VV_MUST_CHECK vv_code vv_function_table_decode(vv_function_table *ret, const uint8_t *body, size_t n, vv_error *err);
void vv_function_table_done(vv_function_table *t); /* accepts a zeroed table */

/* By id in O(log n); NULL where absent. */
const vv_function *vv_function_table_find(const vv_function_table *t, uint32_t id);
const vv_source_file *vv_function_table_file(const vv_function_table *t, uint32_t file_id);

/* Encodes; rows must be ascending (else the writer fails as Unordered), texts at most 65536 bytes (StringTooLong). */
void vv_function_table_encode(vv_wr *w, const vv_function *functions, uint32_t function_count,
                              const vv_source_file *files, uint32_t file_count);

/* What a path id and a function row name this function by (docs/http-api.md): definition key unless empty, else
 * fqn, else the number, whose text is written to scratch. f may be NULL (no definition): the number of id. */
vv_name_kind vv_function_name_key(const vv_function *f, uint32_t id, char scratch[12], vv_str *ret);
