/*
 * Calling contexts: the canonical tuple, its key, and the path id (docs/store.md, docs/http-api.md).
 *
 *   tuple := program_id[16] opt parent[32] function_id u32 opt site edge_kind u8        23 to 71 bytes
 *   site  := file_id u32 start u32 end u32 line u32
 *   key   := SHA-256("baml-cct-context-v1" tuple)
 */
#pragma once

#include "format/ids.h"

typedef enum { VV_EDGE_ROOT = 0, VV_EDGE_CALL = 1, VV_EDGE_SPAWN = 2 } vv_edge;
enum { VV_EDGES = 3, VV_TUPLE_MIN = 23, VV_TUPLE_MAX = 71 };

/* "Root", "Call", "Spawn" as `varve dump` prints them. */
const char *vv_edge_name(vv_edge e);

/* Byte offsets into the file; line counts from 1. */
typedef struct {
    uint32_t file, start, end, line;
} vv_site;

typedef struct {
    vv_program_id program;
    bool has_parent, has_site;
    uint8_t edge; /* vv_edge */
    vv_context_key parent;
    uint32_t function_id; /* 0 = unattributed */
    vv_site site;
} vv_tuple;

/* Encodes into out (VV_TUPLE_MAX bytes), returns the length. */
size_t vv_tuple_encode(uint8_t *out, const vv_tuple *t);
/*
 * Reads the tuple at p, of which left bytes may be touched. Returns its length, or 0 and the failure's name (Truncated,
 * InvalidTag) in *ret_why. Absent parts of *ret are left as they are.
 */
size_t vv_tuple_read(const uint8_t *p, size_t left, vv_tuple *ret, const char **ret_why);
/* Decodes from r; failures (Truncated, InvalidTag) stick in r. */
void vv_tuple_decode(vv_rd *r, vv_tuple *ret);
/* Key of an encoded tuple, of at most VV_TUPLE_MAX bytes, and of a tuple. */
void vv_context_key_of_bytes(vv_context_key *ret, const uint8_t *tuple, size_t n);
void vv_context_key_of(vv_context_key *ret, const vv_tuple *t);
/* Are two keys, 32 bytes each, the same? */
static inline bool vv_context_key_eq(const uint8_t *a, const uint8_t *b)
{
    uint64_t x[4], y[4];
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) == 0;
}
/* Field-by-field equality (absent parts are not compared). */
bool vv_tuple_eq(const vv_tuple *a, const vv_tuple *b);

void vv_site_encode(vv_wr *w, const vv_site *s); /* 16 bytes */
void vv_site_decode(vv_rd *r, vv_site *ret);

/* What a path id names a function by, best first. */
typedef enum { VV_NAME_DEFINITION_KEY = 0, VV_NAME_FQN = 1, VV_NAME_NUMBER = 2 } vv_name_kind;

/* path_id of a context below parent (NULL at the top). name of kind VV_NAME_NUMBER is '#' and the function id in
 * decimal. */
void vv_path_id_of(vv_path_id *ret, const vv_path_id *parent, vv_edge edge, vv_name_kind kind, vv_str name);
