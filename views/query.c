#include "config.h"

#include "views/query.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sha256.h"
#include "base/text.h"

const vv_str *vv_query_each(const vv_query *q, const char *name, size_t *at)
{
    while (*at < q->param_count) {
        const vv_param *p = &q->params[(*at)++];
        if (vv_str_eq(p->name, vv_cstr(name)))
            return &p->value;
    }
    return NULL;
}

const vv_str *vv_query_value(const vv_query *q, const char *name)
{
    size_t at = 0;
    return vv_query_each(q, name, &at);
}

size_t vv_query_repeats(vv_str name)
{
    static const struct {
        const char *name;
        size_t most;
    } known[] = {{"execution", VV_QUERY_EXECUTIONS}, {"base", VV_QUERY_EXECUTIONS}, {"transform", VV_QUERY_TRANSFORMS}};
    for (size_t i = 0; i < VV_ARRAY_LEN(known); i++)
        if (vv_str_eq(name, vv_cstr(known[i].name)))
            return known[i].most;
    return 1;
}

vv_code vv_query_fail(vv_query *q, const char *name, vv_error *err, const char *fmt, ...)
{
    char text[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    q->parameter = name;
    return vv_fail(err, VV_ERR_ARG, "%s", text);
}

/* Whether a view knows a parameter, and lets it be repeated. */
static bool knows(const char *const *names, vv_str name, bool *ret_repeated)
{
    *ret_repeated = false;
    if (vv_str_eq(name, vv_cstr(VV_QUERY_COMMON)))
        return true;
    for (; names && *names; names++) {
        size_t n = strlen(*names);
        *ret_repeated = (*names)[n - 1] == '+';
        if (vv_str_eq(name, (vv_str){*names, n - *ret_repeated}))
            return true;
    }
    return false;
}

/* The first parameter of that name. */
static size_t first_of(const vv_query *q, vv_str name)
{
    size_t i = 0;
    while (!vv_str_eq(q->params[i].name, name))
        i++;
    return i;
}

vv_code vv_query_check(vv_query *q, const char *const *names, vv_error *err)
{
    for (size_t i = 0; i < q->param_count; i++) {
        vv_str name = q->params[i].name;
        bool repeated, known = knows(names, name, &repeated);
        if (known && (repeated || first_of(q, name) == i))
            continue;
        q->parameter = name.p; /* decoded texts end in NUL */
        return vv_fail(err, VV_ERR_ARG, "%s",
                       known ? "is given more than once" : "there is no parameter of that name here");
    }
    return VV_OK;
}

vv_code vv_query_number(vv_query *q, const char *name, uint64_t min, uint64_t max, uint64_t *value, vv_error *err)
{
    const vv_str *s = vv_query_value(q, name);
    if (!s)
        return VV_OK;
    uint64_t v = 0;
    if (!vv_str_u64(*s, &v) || v < min || v > max)
        return vv_query_fail(q, name, err, "must be a whole number from %llu to %llu", (unsigned long long)min,
                             (unsigned long long)max);
    *value = v;
    return VV_OK;
}

vv_code vv_query_word(vv_query *q, const char *name, const char *const *words, size_t n, unsigned *value, vv_error *err)
{
    const vv_str *s = vv_query_value(q, name);
    if (!s)
        return VV_OK;
    for (size_t i = 0; i < n; i++)
        if (vv_str_eq(*s, vv_cstr(words[i]))) {
            *value = (unsigned)i;
            return VV_OK;
        }
    char list[160] = "";
    for (size_t i = 0; i < n; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", words[i]);
    return vv_query_fail(q, name, err, "must be one of %s", list);
}

/* A name with its values: their order may matter, that of the names does not. */
static void hash_values(const vv_query *q, vv_str name, uint8_t out[32])
{
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, name.p, name.n);
    for (size_t i = 0; i < q->param_count; i++)
        if (vv_str_eq(q->params[i].name, name)) {
            vv_sha256_update(&c, "", 1);
            vv_sha256_update(&c, q->params[i].value.p, q->params[i].value.n);
        }
    vv_sha256_final(&c, out);
}

/* The view, and what the path names, as it names it. */
static void hash_resource(const vv_query *q, const char *view, uint8_t out[32])
{
    const vv_str parts[] = {vv_cstr(view), q->id, q->sub, q->third};
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    for (size_t i = 0; i < VV_ARRAY_LEN(parts); i++) {
        uint8_t size[8];
        vv_put64(size, parts[i].n);
        vv_sha256_update(&c, size, sizeof size);
        if (parts[i].n)
            vv_sha256_update(&c, parts[i].p, parts[i].n);
    }
    vv_sha256_final(&c, out);
}

/* What a cursor belongs to: the resource and all parameters but those that only page or pin. */
static void query_hash(const vv_query *q, const char *view, uint8_t out[8])
{
    static const char *const paging[] = {"cursor", "limit", "as_of"};
    uint8_t all[32], one[32];
    hash_resource(q, view, all);
    for (size_t i = 0; i < q->param_count; i++) {
        vv_str name = q->params[i].name;
        bool skip = first_of(q, name) < i;
        for (size_t k = 0; k < VV_ARRAY_LEN(paging); k++)
            skip |= vv_str_eq(name, vv_cstr(paging[k]));
        if (skip)
            continue;
        hash_values(q, name, one);
        for (size_t k = 0; k < sizeof all; k++)
            all[k] ^= one[k];
    }
    vv_sha256(all, sizeof all, one);
    memcpy(out, one, 8);
}

void vv_query_cursor_text(const vv_query *q, const char *view, const uint8_t *position, size_t n,
                          char out[VV_CURSOR_TEXT])
{
    uint8_t raw[8 + VV_CURSOR_MAX];
    query_hash(q, view, raw);
    memcpy(raw + 8, position, n);
    vv_base64url(out, raw, 8 + n);
}

void vv_query_next_json(vv_json *j, const vv_query *q, const char *view, const uint8_t *position, size_t n)
{
    char text[VV_CURSOR_TEXT];
    if (position)
        vv_query_cursor_text(q, view, position, n, text);
    vv_json_kv_cstr(j, "next", position ? text : NULL);
}

vv_code vv_query_cursor(vv_query *q, const char *view, uint8_t *position, size_t n, bool *ret_given, vv_error *err)
{
    const vv_str *s = vv_query_value(q, "cursor");
    *ret_given = s != NULL;
    if (!s)
        return VV_OK;
    uint8_t raw[VV_CURSOR_TEXT], hash[8];
    query_hash(q, view, hash);
    if (s->n >= VV_CURSOR_TEXT || vv_unbase64url(raw, *s) != (ptrdiff_t)(8 + n))
        return vv_query_fail(q, "cursor", err, "is not a cursor of this list");
    if (memcmp(raw, hash, sizeof hash) != 0)
        return vv_query_fail(q, "cursor", err, "belongs to another query");
    memcpy(position, raw + 8, n);
    return VV_OK;
}

bool vv_text_contains(vv_str text, vv_str needle)
{
    for (size_t i = 0; i + needle.n <= text.n; i++) {
        size_t k = 0;
        while (k < needle.n
               && tolower((unsigned char)text.p[i + k]) == tolower((unsigned char)needle.p[k]))
            k++;
        if (k == needle.n)
            return true;
    }
    return false;
}

void vv_snapshot_json(vv_json *j, const char *key, const vv_look *look)
{
    vv_json_kv_obj(j, key);
    vv_json_kv_cstr(j, "generation", look->generation);
    vv_json_kv_cstr(j, "as_of", look->generation);
    vv_json_kv_arr(j, "streams");
    for (size_t i = 0; i < look->store->stream_count; i++) {
        const vv_stream *s = &look->store->streams[i];
        vv_json_obj(j);
        vv_json_kv_hex(j, "euid", s->euid.b, sizeof s->euid.b);
        vv_json_kv_opt_bool(j, "alive", !s->unprobed, s->alive);
        vv_json_kv_obj(j, "high_water");
        vv_json_kv_u64(j, "meta", s->meta_contiguous);
        vv_json_kv_u64(j, "data", s->data_contiguous);
        vv_json_end_obj(j);
        vv_json_end_obj(j);
    }
    vv_json_end_arr(j);
    vv_json_end_obj(j);
}

void vv_head_json(vv_json *j, const vv_look *look, const vv_evidence *e, bool truncated, const vv_filtered *filtered)
{
    vv_json_obj(j);
    vv_snapshot_json(j, "snapshot", look);
    vv_json_key(j, "evidence");
    vv_evidence_json(j, e, truncated, filtered);
}
