#include "config.h"

#include "format/context.h"

#include "base/sha256.h"

const char *vv_edge_name(vv_edge e)
{
    static const char *const names[VV_EDGES] = {"Root", "Call", "Spawn"};
    return (unsigned)e < VV_EDGES ? names[e] : NULL;
}

static uint8_t *put_site(uint8_t *p, const vv_site *s)
{
    vv_put32(p, s->file);
    vv_put32(p + 4, s->start);
    vv_put32(p + 8, s->end);
    vv_put32(p + 12, s->line);
    return p + 16;
}

static void get_site(const uint8_t *p, vv_site *ret)
{
    *ret = (vv_site){.file = vv_be32(p), .start = vv_be32(p + 4), .end = vv_be32(p + 8), .line = vv_be32(p + 12)};
}

void vv_site_encode(vv_wr *w, const vv_site *s)
{
    uint8_t *p = vv_wr_take(w, 16);
    if (p)
        put_site(p, s);
}

void vv_site_decode(vv_rd *r, vv_site *ret)
{
    const uint8_t *p = vv_rd_take(r, 16);
    if (p)
        get_site(p, ret);
    else
        *ret = (vv_site){0};
}

size_t vv_tuple_encode(uint8_t *out, const vv_tuple *t)
{
    uint8_t *p = out;
    memcpy(p, t->program.b, 16);
    p += 16;
    *p++ = t->has_parent;
    if (t->has_parent) {
        memcpy(p, t->parent.b, 32);
        p += 32;
    }
    vv_put32(p, t->function_id);
    p += 4;
    *p++ = t->has_site;
    if (t->has_site)
        p = put_site(p, &t->site);
    *p++ = t->edge;
    return (size_t)(p - out);
}

static size_t bad_tag(const char **ret_why)
{
    *ret_why = "InvalidTag";
    return 0;
}

size_t vv_tuple_read(const uint8_t *p, size_t left, vv_tuple *ret, const char **ret_why)
{
    *ret_why = "Truncated";
    size_t n = 17;
    if (left < n)
        return 0;
    uint8_t parent = p[16];
    if (parent > 1)
        return bad_tag(ret_why);
    size_t at_function = n + (parent ? 32 : 0);
    n = at_function + 5;
    if (left < n)
        return 0;
    uint8_t site = p[n - 1];
    if (site > 1)
        return bad_tag(ret_why);
    size_t at_site = n;
    n += (site ? 16 : 0) + 1;
    if (left < n)
        return 0;
    if (p[n - 1] >= VV_EDGES)
        return bad_tag(ret_why);
    memcpy(ret->program.b, p, 16);
    ret->has_parent = parent;
    if (parent)
        memcpy(ret->parent.b, p + 17, 32);
    ret->function_id = vv_be32(p + at_function);
    ret->has_site = site;
    if (site)
        get_site(p + at_site, &ret->site);
    ret->edge = p[n - 1];
    return n;
}

void vv_tuple_decode(vv_rd *r, vv_tuple *ret)
{
    const char *why;
    memset(ret, 0, sizeof *ret);
    size_t n = vv_tuple_read(r->at, vv_rd_left(r), ret, &why);
    if (n)
        r->at += n;
    else
        vv_rd_fail(r, why);
}

void vv_context_key_of_bytes(vv_context_key *ret, const uint8_t *tuple, size_t n)
{
    enum { DOMAIN = 19 };
    uint8_t bytes[DOMAIN + VV_TUPLE_MAX] = "baml-cct-context-v1";
    memcpy(bytes + DOMAIN, tuple, n);
    vv_sha256(bytes, DOMAIN + n, ret->b);
}

void vv_context_key_of(vv_context_key *ret, const vv_tuple *t)
{
    uint8_t bytes[VV_TUPLE_MAX];
    vv_context_key_of_bytes(ret, bytes, vv_tuple_encode(bytes, t));
}

static bool site_eq(const vv_site *a, const vv_site *b)
{
    return a->file == b->file && a->start == b->start && a->end == b->end && a->line == b->line;
}

bool vv_tuple_eq(const vv_tuple *a, const vv_tuple *b)
{
    return memcmp(a->program.b, b->program.b, 16) == 0 && a->has_parent == b->has_parent &&
           a->has_site == b->has_site && a->edge == b->edge && a->function_id == b->function_id &&
           (!a->has_parent || memcmp(a->parent.b, b->parent.b, 32) == 0) &&
           (!a->has_site || site_eq(&a->site, &b->site));
}

void vv_path_id_of(vv_path_id *ret, const vv_path_id *parent, vv_edge edge, vv_name_kind kind, vv_str name)
{
    enum { DOMAIN = 13 };
    uint8_t head[DOMAIN + 22] = "varve-path-v1", sum[VV_SHA256_BYTES];
    if (parent)
        memcpy(head + DOMAIN, parent->b, 16);
    head[DOMAIN + 16] = (uint8_t)edge;
    head[DOMAIN + 17] = (uint8_t)kind;
    vv_put32(head + DOMAIN + 18, (uint32_t)name.n);
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, head, sizeof head);
    vv_sha256_update(&c, name.p, name.n);
    vv_sha256_final(&c, sum);
    memcpy(ret->b, sum, sizeof ret->b);
}
