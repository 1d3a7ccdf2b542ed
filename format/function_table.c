#include "config.h"

#include "format/function_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { TABLE_VERSION = 1 };
#define TABLE_MEMORY_MAX ((size_t)1 << 30)

static const char *const kinds[] = {
    [VV_FN_BYTECODE] = "bytecode",
    [VV_FN_SYSOP] = "sysop",
    [VV_FN_NATIVE] = "native",
    [VV_FN_NATIVE_UNRESOLVED] = "native_unresolved",
};

static const char *const origins[] = {
    [VV_FN_USER] = "user",
    [VV_FN_COMPANION] = "companion",
    [VV_FN_INTERNAL] = "internal",
    [VV_FN_BUILTIN] = "builtin",
    [VV_FN_AUTO_DERIVE] = "auto_derive",
};

const char *vv_fn_kind_name(uint8_t kind)
{
    return kind < VV_ARRAY_LEN(kinds) ? kinds[kind] : NULL;
}

const char *vv_fn_origin_name(uint8_t origin)
{
    return origin < VV_ARRAY_LEN(origins) ? origins[origin] : NULL;
}

static vv_str get_str(vv_rd *r)
{
    vv_str s = vv_rd_str(r, vv_rd_u32(r));
    if (!vv_utf8_valid(s))
        vv_rd_fail(r, "InvalidUtf8");
    return s;
}

static bool get_opt(vv_rd *r)
{
    uint8_t tag = vv_rd_u8(r);
    if (tag > 1)
        vv_rd_fail(r, "InvalidTag");
    return tag == 1;
}

static vv_opt_str get_opt_str(vv_rd *r)
{
    vv_opt_str s = {.present = get_opt(r)};
    if (s.present)
        s.s = get_str(r);
    return s;
}

/* Ids ascend strictly; the first has no one before it. */
static uint32_t get_id(vv_rd *r, bool first, uint32_t previous)
{
    uint32_t id = vv_rd_u32(r);
    if (vv_rd_ok(r) && !first && id <= previous)
        vv_rd_fail(r, "Unordered");
    return id;
}

/* Where a walk puts what it reads: first nothing (it checks and counts), then all (the memory has been measured). */
typedef struct {
    vv_function *functions;
    vv_source_file *files;
    vv_str *namespaces;
    uint32_t function_count, file_count;
    uint64_t namespace_count;
} table_walk;

static void walk_function(vv_rd *r, table_walk *t, vv_function *f)
{
    f->fqn = get_str(r);
    f->display_name = get_str(r);
    f->definition_key = get_opt_str(r);
    uint8_t kind = vv_rd_u8(r);
    f->kind = vv_fn_kind_name(kind) ? kind : VV_FN_KIND_UNKNOWN;
    f->kind_detail = get_opt_str(r);
    uint8_t origin = vv_rd_u8(r);
    f->origin = vv_fn_origin_name(origin) ? origin : VV_FN_ORIGIN_UNKNOWN;
    f->source_file = get_opt_str(r);
    f->has_span = get_opt(r);
    if (f->has_span) {
        f->file_id = vv_rd_u32(r);
        f->span_start = vv_rd_u32(r);
        f->span_end = vv_rd_u32(r);
    }
    f->package = get_opt_str(r);
    f->namespace_count = vv_rd_u16(r);
    f->namespaces = t->namespaces ? t->namespaces + t->namespace_count : NULL;
    for (uint16_t i = 0; i < f->namespace_count && vv_rd_ok(r); i++, t->namespace_count++) {
        vv_str s = get_str(r);
        if (t->namespaces)
            t->namespaces[t->namespace_count] = s;
    }
}

static void walk_table(vv_rd *r, table_walk *t)
{
    vv_function f = {0};
    t->namespace_count = 0;
    t->function_count = vv_rd_u32(r);
    for (uint32_t i = 0; i < t->function_count && vv_rd_ok(r); i++) {
        f = (vv_function){.id = get_id(r, i == 0, f.id)};
        walk_function(r, t, &f);
        if (t->functions)
            t->functions[i] = f;
    }
    vv_source_file file = {0};
    t->file_count = vv_rd_u32(r);
    for (uint32_t i = 0; i < t->file_count && vv_rd_ok(r); i++) {
        file.id = get_id(r, i == 0, file.id);
        file.path = get_str(r);
        if (t->files)
            t->files[i] = file;
    }
    if (vv_rd_left(r))
        vv_rd_fail(r, "TrailingBytes");
}

vv_code vv_function_table_decode(vv_function_table *ret, const uint8_t *body, size_t n, vv_error *err)
{
    vv_rd r = vv_rd_init(body, n);
    uint16_t version = vv_rd_u16(&r);
    if (vv_rd_ok(&r) && version != TABLE_VERSION)
        return vv_fail_decode(err, "UnsupportedVersion", 0, "function table version %u", version);
    vv_rd again = r;
    table_walk t = {0};
    walk_table(&r, &t);
    if (!vv_rd_ok(&r))
        return vv_rd_error(&r, "function table", err);

    /* The walk proved that each count is at most the body's bytes, so no sum below can wrap. */
    size_t functions = t.function_count * sizeof *t.functions, files = t.file_count * sizeof *t.files;
    size_t namespaces = t.namespace_count * sizeof *t.namespaces;
    size_t total = functions + files + namespaces + n;
    if (total > TABLE_MEMORY_MAX)
        return vv_fail(err, VV_ERR_LIMIT, "the function table needs %zu bytes of memory", total);
    char *owned = malloc(total);
    if (!owned)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the %zu bytes of a function table", total);
    uint8_t *copy = memcpy(owned + functions + files + namespaces, body, n);
    t.functions = (vv_function *)(void *)owned;
    t.files = (vv_source_file *)(void *)(owned + functions);
    t.namespaces = (vv_str *)(void *)(owned + functions + files);
    vv_rd inside = vv_rd_init(copy, n);
    inside.at += vv_rd_off(&again);
    walk_table(&inside, &t);
    *ret = (vv_function_table){t.functions, t.function_count, t.files, t.file_count, owned, total};
    return VV_OK;
}

void vv_function_table_done(vv_function_table *t)
{
    free(t->owned);
    *t = (vv_function_table){0};
}

static int compare_function(const void *key, const void *row)
{
    uint32_t a = *(const uint32_t *)key, b = ((const vv_function *)row)->id;
    return (a > b) - (a < b);
}

static int compare_file(const void *key, const void *row)
{
    uint32_t a = *(const uint32_t *)key, b = ((const vv_source_file *)row)->id;
    return (a > b) - (a < b);
}

const vv_function *vv_function_table_find(const vv_function_table *t, uint32_t id)
{
    if (t->function_count == 0)
        return NULL;
    return bsearch(&id, t->functions, t->function_count, sizeof *t->functions, compare_function);
}

const vv_source_file *vv_function_table_file(const vv_function_table *t, uint32_t file_id)
{
    if (t->file_count == 0)
        return NULL;
    return bsearch(&file_id, t->files, t->file_count, sizeof *t->files, compare_file);
}

static void put_function(vv_wr *w, const vv_function *f)
{
    vv_wr_u32(w, f->id);
    vv_wr_str(w, f->fqn);
    vv_wr_str(w, f->display_name);
    vv_wr_opt_str(w, &f->definition_key);
    vv_wr_u8(w, f->kind);
    vv_wr_opt_str(w, &f->kind_detail);
    vv_wr_u8(w, f->origin);
    vv_wr_opt_str(w, &f->source_file);
    vv_wr_u8(w, f->has_span);
    if (f->has_span) {
        vv_wr_u32(w, f->file_id);
        vv_wr_u32(w, f->span_start);
        vv_wr_u32(w, f->span_end);
    }
    vv_wr_opt_str(w, &f->package);
    vv_wr_u16(w, f->namespace_count);
    for (uint16_t i = 0; i < f->namespace_count; i++)
        vv_wr_str(w, f->namespaces[i]);
}

void vv_function_table_encode(vv_wr *w, const vv_function *functions, uint32_t function_count,
                              const vv_source_file *files, uint32_t file_count)
{
    vv_wr_u16(w, TABLE_VERSION);
    vv_wr_u32(w, function_count);
    for (uint32_t i = 0; i < function_count && vv_wr_ok(w); i++) {
        if (i && functions[i].id <= functions[i - 1].id)
            vv_wr_fail(w, "Unordered");
        put_function(w, &functions[i]);
    }
    vv_wr_u32(w, file_count);
    for (uint32_t i = 0; i < file_count && vv_wr_ok(w); i++) {
        if (i && files[i].id <= files[i - 1].id)
            vv_wr_fail(w, "Unordered");
        vv_wr_u32(w, files[i].id);
        vv_wr_str(w, files[i].path);
    }
}

vv_name_kind vv_function_name_key(const vv_function *f, uint32_t id, char scratch[12], vv_str *ret)
{
    if (f && f->definition_key.present && f->definition_key.s.n) {
        *ret = f->definition_key.s;
        return VV_NAME_DEFINITION_KEY;
    }
    if (f && f->fqn.n) {
        *ret = f->fqn;
        return VV_NAME_FQN;
    }
    *ret = (vv_str){scratch, (size_t)snprintf(scratch, 12, "#%u", id)};
    return VV_NAME_NUMBER;
}

static const char line_prefix[] = "line ";

void vv_fn_line_text(char out[VV_FN_LINE_TEXT], uint32_t line)
{
    snprintf(out, VV_FN_LINE_TEXT, "%s%" PRIu32, line_prefix, line);
}

uint32_t vv_fn_line(const vv_function *f)
{
    const size_t skip = sizeof line_prefix - 1;
    vv_str s = f->kind_detail.s;
    if (!f->kind_detail.present || s.n <= skip || s.n > skip + 10 || memcmp(s.p, line_prefix, skip) != 0)
        return 0;
    uint64_t line = 0;
    for (size_t i = skip; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return 0;
        line = line * 10 + (uint64_t)(s.p[i] - '0');
    }
    return line <= UINT32_MAX ? (uint32_t)line : 0;
}
