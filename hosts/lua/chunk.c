#include "config.h"
#include "hosts/lua/chunk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/lua/identity.h"
#include "hosts/lua/live.h"
#include "hosts/lua/module.h"
#include "hosts/lua/public.h"

#define MAX_CHUNKS 65536
#define MAX_NAMED_TEXT (64u << 20) /* longer texts get numbers for names */

vl_chunk *vl_chunks;

static struct {
    vl_chunk **buckets;
    size_t mask, n;
    vl_chunk *more;
} chunks;

/* Prototypes of a chunk in pre-order. */
typedef struct {
    const vl_proto **items;
    uint32_t *children;
    int *lines;
    size_t n;
} proto_list;

static void proto_list_done(proto_list *l)
{
    free(l->items);
    free(l->children);
    free(l->lines);
}

typedef struct {
    const vl_proto *p;
    int next;
} proto_at;

static bool list_add(proto_list *l, size_t *cap, const vl_proto *p)
{
    if (l->n == *cap) {
        size_t want = *cap ? *cap * 2 : 16;
        void *items = realloc(l->items, want * sizeof *l->items);
        if (items)
            l->items = items;
        void *children = realloc(l->children, want * sizeof *l->children);
        if (children)
            l->children = children;
        void *lines = realloc(l->lines, want * sizeof *l->lines);
        if (lines)
            l->lines = lines;
        if (!items || !children || !lines)
            return false;
        *cap = want;
    }
    l->items[l->n] = p;
    l->children[l->n] = (uint32_t)p->sizep;
    l->lines[l->n++] = p->linedefined;
    return true;
}

/* With a stack of its own: precompiled chunks nest as deep as their author likes. */
static bool list_protos(const vl_proto *root, proto_list *ret)
{
    size_t cap = 0, depth = 0, depth_cap = 0;
    proto_at *stack = NULL;
    bool ok = list_add(ret, &cap, root);
    proto_at at = {root, 0};
    while (ok) {
        if (at.next < at.p->sizep) {
            if (depth == depth_cap) {
                depth_cap = depth_cap ? depth_cap * 2 : 16;
                proto_at *grown = realloc(stack, depth_cap * sizeof *stack);
                if (!grown) {
                    ok = false;
                    break;
                }
                stack = grown;
            }
            const vl_proto *child = at.p->p[at.next++];
            stack[depth++] = at;
            at = (proto_at){child, 0};
            ok = list_add(ret, &cap, child);
        } else if (depth) {
            at = stack[--depth];
        } else {
            break;
        }
    }
    free(stack);
    return ok;
}

static bool names_agree(const vl_names *names, const proto_list *l)
{
    if (names->n != l->n)
        return false;
    for (size_t i = 0; i < l->n; i++)
        if (names->items[i].children != l->children[i] || names->items[i].line != l->lines[i])
            return false;
    return true;
}

/* l NULL: the prototypes can't be seen, and the text's own count of functions holds. */
static bool name_functions(vl_chunk *c, const char *text, size_t n, const proto_list *l)
{
    static const uint32_t no_children = 0;
    static const int no_line = 0;
    if (n && n <= MAX_NAMED_TEXT && *text != LUA_SIGNATURE[0] && vl_names_parse(text, n, &c->names)) {
        c->named = !l || names_agree(&c->names, l);
        if (c->named)
            return true;
        vl_names_done(&c->names);
    }
    return l ? vl_names_number(l->children, l->lines, l->n, &c->names)
             : vl_names_number(&no_children, &no_line, 1, &c->names);
}

static void chunk_free(vl_chunk *c)
{
    if (!c)
        return;
    vl_names_done(&c->names);
    free(c->functions);
    free(c->source);
    free(c->module);
    free(c->file);
    free(c);
}

static bool name_chunk(vl_chunk *c, lua_State *L, const char *source, const char *text, size_t n)
{
    char hash[sizeof "load:12345678"];
    snprintf(hash, sizeof hash, "load:%02x%02x%02x%02x", c->digest[0], c->digest[1], c->digest[2], c->digest[3]);
    if (*source == '@') {
        c->module = vl_module_of_file(L, source + 1, vl.script);
        c->file = strdup(source + 1);
        c->shift = vl_module_text_shift(source + 1, text, n);
    } else {
        /* "=(load)" is Lua's name for text without one, "=?" what it has of stripped code. */
        bool given = *source == '=' && strcmp(source, "=(load)") != 0 && strcmp(source, "=?") != 0 && source[1];
        c->module = strdup(given ? source + 1 : hash);
        c->file = strdup(c->module ? c->module : hash);
    }
    c->source = *source == '@' || *source == '=' ? strdup(source) : NULL;
    return c->module && c->file && (c->source || (*source != '@' && *source != '='));
}

static void note_functions(vl_chunk *c, const proto_list *l)
{
    for (size_t i = 0; i < c->names.n; i++)
        c->functions[i] = (vl_function){.chunk = c, .index = (uint32_t)i, .line = c->names.items[i].line,
                                        .tail_line = l ? vl_proto_tail_line(l->items[i]) : 0};
}

static vl_chunk *chunk_new(lua_State *L, const uint8_t *digest, const char *source, const char *text, size_t n,
                           const proto_list *l)
{
    vl_chunk *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    memcpy(c->digest, digest, sizeof c->digest);
    if (!name_chunk(c, L, source, text, n) || !name_functions(c, text, n, l) ||
        !(c->functions = calloc(c->names.n, sizeof *c->functions))) {
        chunk_free(c);
        return NULL;
    }
    note_functions(c, l);
    return c;
}

static void enlist(vl_chunk *c)
{
    vl_live_lock();
    c->next_made = vl_chunks;
    vl_chunks = c;
    vl_live_unlock();
}

/* Where the limit is reached: one function for every later chunk. */
static vl_chunk *chunk_more(void)
{
    static const uint32_t no_children = 0;
    static const int no_line = 0;
    vl_chunk *c = chunks.more ? chunks.more : calloc(1, sizeof *c);
    if (!c || chunks.more)
        return c;
    c->module = strdup("load:more");
    c->file = strdup("load:more");
    c->functions = calloc(1, sizeof *c->functions);
    if (!c->module || !c->file || !c->functions || !vl_names_number(&no_children, &no_line, 1, &c->names)) {
        chunk_free(c);
        return NULL;
    }
    c->functions[0].chunk = c;
    c->merged = true;
    enlist(c);
    return chunks.more = c;
}

static size_t bucket_of(const uint8_t *digest)
{
    uint64_t h;
    memcpy(&h, digest + 8, sizeof h);
    return (size_t)h & chunks.mask;
}

static bool grow_buckets(void)
{
    size_t n = chunks.buckets ? (chunks.mask + 1) * 2 : 64;
    vl_chunk **old = chunks.buckets, **buckets = calloc(n, sizeof *buckets);
    size_t old_n = old ? chunks.mask + 1 : 0;
    if (!buckets)
        return old;
    chunks.buckets = buckets;
    chunks.mask = n - 1;
    for (size_t i = 0; i < old_n; i++)
        for (vl_chunk *c = old[i], *next; c; c = next) {
            next = c->next;
            size_t at = bucket_of(c->digest);
            c->next = buckets[at];
            buckets[at] = c;
        }
    free(old);
    return true;
}

static bool chunk_is(const vl_chunk *c, const uint8_t *digest, const char *source, const proto_list *l)
{
    bool plain = *source != '@' && *source != '=';
    if (memcmp(c->digest, digest, sizeof c->digest) || (l && c->names.n != l->n))
        return false;
    return plain ? !c->source : c->source && !strcmp(c->source, source);
}

static vl_chunk *chunk_get(lua_State *L, const char *source, const char *text, size_t n, const proto_list *l)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)text, n, digest);
    if (chunks.n + 1 > chunks.mask && !grow_buckets())
        return NULL;
    size_t at = bucket_of(digest);
    for (vl_chunk *c = chunks.buckets[at]; c; c = c->next)
        if (chunk_is(c, digest, source, l))
            return c;
    if (chunks.n >= MAX_CHUNKS)
        return chunk_more();
    vl_chunk *c = chunk_new(L, digest, source, text, n, l);
    if (c) {
        c->next = chunks.buckets[at];
        chunks.buckets[at] = c;
        chunks.n++;
        enlist(c);
    }
    return c;
}

static vl_code *learn(vl_chunk *c, const vl_proto *p, uint32_t index)
{
    vl_code *code = calloc(1, sizeof *code);
    if (!code)
        return NULL;
    *code = (vl_code){.function = &c->functions[index], .code = p->code, .code_size = (uint32_t)p->sizecode,
                      .proto = p};
    vl_code_freed(p);
    if (!vl_ptrmap_put(&vl.codes, p, code)) {
        free(code);
        return NULL;
    }
    vl_live_code(code);
    return code;
}

static vl_code *learn_all(lua_State *L, const char *source, const char *text, size_t n, const vl_proto *p)
{
    proto_list l = {0};
    vl_code *first = NULL;
    vl_chunk *c = list_protos(p, &l) ? chunk_get(L, source, text, n, &l) : NULL;
    for (size_t i = 0; c && i < l.n; i++) {
        vl_code *code = learn(c, l.items[i], c->merged ? 0 : (uint32_t)i);
        if (!i)
            first = code;
    }
    proto_list_done(&l);
    return first;
}

void vl_chunk_loaded(lua_State *L, const char *text, size_t n)
{
    lua_Debug ar;
    if (!lua_checkstack(L, 8))
        return;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &ar);
    if (vl.private_layout)
        learn_all(L, ar.source, text, n, vl_closure_proto(lua_topointer(L, -1)));
    else
        vl_source_learn(ar.source, chunk_get(L, ar.source, text, n, NULL));
}

vl_chunk *vl_chunk_without_text(lua_State *L, const char *source)
{
    return chunk_get(L, source, "", 0, NULL);
}

vl_function *vl_chunk_function(vl_chunk *c, int line, int last_line)
{
    for (size_t i = 1; line && !c->merged && i < c->names.n; i++)
        if (c->names.items[i].line == line && c->names.items[i].last_line == last_line)
            return &c->functions[i];
    return &c->functions[0];
}

vl_code *vl_chunk_stranger(lua_State *L, const lua_Debug *ar, const vl_proto *p)
{
    return learn_all(L, ar->source, "", 0, p);
}

vl_site *vl_tail_site(vl_function *f, uint32_t line)
{
    if (f->tail_line > 0)
        line = (uint32_t)f->tail_line;
    return vl_live_site(f->chunk, f->tail_line ? line : 0);
}

char *vl_chunk_name_function(const vl_function *f)
{
    const char *module = f->chunk->module, *path = f->chunk->names.items[f->index].path;
    size_t n = strlen(module) + strlen(path) + 2;
    char *name = malloc(n);
    if (name)
        snprintf(name, n, "%s%s%s", module, *path ? ":" : "", path);
    return name;
}

void vl_chunk_describe_function(const vl_function *f, varve_function_desc *ret)
{
    const vl_chunk *c = f->chunk;
    const vl_name *name = &c->names.items[f->index];
    ret->module = vl_id(c);
    ret->name = ret->definition_key = f->name;
    ret->display_name = *name->last ? name->last : c->module;
    ret->kind = VARVE_FN_BYTECODE;
    ret->origin = VARVE_FN_USER;
    ret->span_start = c->named && f->index ? (uint32_t)(name->start + c->shift) : 0;
    ret->span_end = c->named ? (uint32_t)(name->end + c->shift) : 0;
    ret->line = f->line > 0 ? (uint32_t)f->line : 1;
}
