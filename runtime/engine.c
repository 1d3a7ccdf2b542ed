#include "config.h"

#include "runtime/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/session.h"

enum { TEXT_MAX = VV_STR_MAX };

static unsigned chunk_of(uint32_t i, uint32_t *ret_in)
{
    uint32_t n = i / VV_TABLE_FIRST + 1;
    unsigned k = 31 - (unsigned)__builtin_clz(n);
    *ret_in = i - ((1U << k) - 1) * VV_TABLE_FIRST;
    return k;
}

void *vv_table_at(const vv_table *t, uint32_t i)
{
    uint32_t in;
    unsigned k = chunk_of(i, &in);
    uint8_t *chunk = atomic_load_explicit(&t->chunks[k], memory_order_acquire);
    return chunk + (size_t)in * t->item;
}

static void give_back(vv_governor *g, void *p, size_t n)
{
    vv_gov_free(g, VV_POOL_GENERAL, VV_OWN_POPULATION, p, n);
}

/* Room for the next entry, which becomes visible with table_push. */
static void *table_next(vv_table *t, vv_governor *g)
{
    uint32_t n = atomic_load_explicit(&t->count, memory_order_relaxed), in;
    unsigned k = chunk_of(n, &in);
    if (k >= VV_TABLE_CHUNKS)
        return NULL;
    uint8_t *chunk = atomic_load_explicit(&t->chunks[k], memory_order_relaxed);
    if (!chunk) {
        chunk = vv_gov_alloc(g, VV_POOL_GENERAL, VV_OWN_POPULATION, (size_t)t->item * VV_TABLE_FIRST << k);
        if (!chunk)
            return NULL;
        atomic_store_explicit(&t->chunks[k], chunk, memory_order_release);
    }
    return chunk + (size_t)in * t->item;
}

static uint32_t table_push(vv_table *t)
{
    return atomic_fetch_add_explicit(&t->count, 1, memory_order_release) + 1;
}

static void table_done(vv_table *t, vv_governor *g)
{
    for (unsigned k = 0; k < VV_TABLE_CHUNKS; k++)
        give_back(g, atomic_load(&t->chunks[k]), (size_t)t->item * VV_TABLE_FIRST << k);
}

/* A charged copy, cut and made valid; p is NULL where there is no memory. */
static vv_str copy_text(vv_governor *g, const char *s)
{
    vv_str in = vv_cstr(s ? s : "");
    if (in.n > TEXT_MAX)
        in.n = vv_utf8_cut(in, TEXT_MAX);
    char *p = vv_gov_alloc(g, VV_POOL_GENERAL, VV_OWN_POPULATION, in.n + 1);
    if (!p)
        return (vv_str){NULL, 0};
    memcpy(p, in.p, in.n);
    vv_utf8_mend(p, in.n);
    return (vv_str){p, in.n};
}

static void free_text(vv_governor *g, vv_str s)
{
    give_back(g, (char *)(uintptr_t)s.p, s.n + 1);
}

static bool copy_opt(vv_governor *g, const char *s, vv_opt_str *ret)
{
    *ret = (vv_opt_str){false, {NULL, 0}};
    if (!s)
        return true;
    *ret = (vv_opt_str){true, copy_text(g, s)};
    return ret->s.p != NULL;
}

static void free_opt(vv_governor *g, vv_opt_str *s)
{
    if (s->present)
        free_text(g, s->s);
}

varve_engine *vv_engine_new(struct varve_session *session, vv_governor *g, uint64_t id, const varve_engine_info *info)
{
    static _Atomic uint64_t serial;
    varve_engine *e = vv_gov_alloc(g, VV_POOL_GENERAL, VV_OWN_POPULATION, sizeof *e);
    if (!e)
        return NULL;
    e->session = session;
    e->id = id;
    e->serial = atomic_fetch_add(&serial, 1) + 1;
    pthread_mutex_init(&e->lock, NULL);
    e->functions.item = sizeof(vv_function);
    e->files.item = sizeof(vv_source_file);
    e->sites.item = sizeof(vv_site);
    atomic_init(&e->next_thread, 1);
    e->roles = info ? info->roles & VARVE_ALL_ROLES : 0;
    if (info && info->program_id)
        memcpy(e->program.b, info->program_id, sizeof e->program.b);
    else
        vv_uuid7_new(e->program.b);
    if (!copy_opt(g, info ? info->source_label : NULL, &e->source) ||
        !copy_opt(g, info ? info->revision_label : NULL, &e->revision)) {
        vv_engine_free(e, g);
        return NULL;
    }
    return e;
}

void vv_engine_free(varve_engine *e, vv_governor *g)
{
    for (uint32_t i = 0; i < atomic_load(&e->functions.count); i++) {
        vv_function *f = vv_table_at(&e->functions, i);
        free_text(g, f->fqn);
        free_text(g, f->display_name);
        free_opt(g, &f->definition_key);
        free_opt(g, &f->package);
        free_opt(g, &f->kind_detail);
    }
    for (uint32_t i = 0; i < atomic_load(&e->files.count); i++)
        free_text(g, ((vv_source_file *)vv_table_at(&e->files, i))->path);
    free_opt(g, &e->source);
    free_opt(g, &e->revision);
    table_done(&e->functions, g);
    table_done(&e->files, g);
    table_done(&e->sites, g);
    give_back(g, e->site_index, e->site_index ? (e->site_mask + 1ULL) * sizeof(uint32_t) : 0);
    give_back(g, e->file_index, e->file_index ? (e->file_mask + 1ULL) * sizeof(uint32_t) : 0);
    pthread_mutex_destroy(&e->lock);
    give_back(g, e, sizeof *e);
}

static uint64_t mix(uint64_t h)
{
    h *= 0x9e3779b97f4a7c15ULL;
    return h ^ h >> 29;
}

static uint64_t hash_site(const vv_site *s)
{
    return mix(mix((uint64_t)s->file << 32 | s->line) ^ ((uint64_t)s->start << 32 | s->end));
}

static uint64_t hash_text(vv_str s)
{
    uint64_t h = s.n;
    for (size_t i = 0; i < s.n; i++)
        h = mix(h ^ (uint8_t)s.p[i]);
    return h;
}

static bool site_is(const varve_engine *e, uint32_t handle, const void *key)
{
    return memcmp(vv_table_at(&e->sites, handle - 1), key, sizeof(vv_site)) == 0;
}

static bool file_is(const varve_engine *e, uint32_t handle, const void *key)
{
    return vv_str_eq(((vv_source_file *)vv_table_at(&e->files, handle - 1))->path, *(const vv_str *)key);
}

static uint64_t site_hash_of(const varve_engine *e, uint32_t handle)
{
    return hash_site(vv_table_at(&e->sites, handle - 1));
}

static uint64_t file_hash_of(const varve_engine *e, uint32_t handle)
{
    return hash_text(((vv_source_file *)vv_table_at(&e->files, handle - 1))->path);
}

/* The place of key, or of the gap where it would go. The table has a gap. */
static uint32_t *index_find(const varve_engine *e, uint32_t *index, uint32_t mask, uint64_t hash, const void *key,
                            bool (*is)(const varve_engine *, uint32_t, const void *))
{
    uint32_t i = (uint32_t)hash & mask;
    while (index[i] && !is(e, index[i], key))
        i = (i + 1) & mask;
    return &index[i];
}

/* Keeps the hash table at most half full. False: no memory, and the table is as it was. */
static bool index_room(const varve_engine *e, vv_governor *g, uint32_t **index, uint32_t *mask, uint32_t count,
                       uint64_t (*hash_of)(const varve_engine *, uint32_t))
{
    if (*index && count < *mask / 2)
        return true;
    uint32_t cap = *index ? (*mask + 1) * 2 : 64;
    uint32_t *bigger = vv_gov_alloc(g, VV_POOL_GENERAL, VV_OWN_POPULATION, cap * sizeof *bigger);
    if (!bigger)
        return false;
    for (uint32_t h = 1; h <= count; h++) {
        uint32_t i = (uint32_t)hash_of(e, h) & (cap - 1);
        while (bigger[i])
            i = (i + 1) & (cap - 1);
        bigger[i] = h;
    }
    give_back(g, *index, *index ? (*mask + 1ULL) * sizeof **index : 0);
    *index = bigger;
    *mask = cap - 1;
    return true;
}

static uint32_t add_file(varve_engine *e, vv_governor *g, const char *path)
{
    vv_str text = copy_text(g, path);
    if (!text.p)
        return 0;
    uint32_t *place = NULL;
    if (index_room(e, g, &e->file_index, &e->file_mask, atomic_load(&e->files.count), file_hash_of))
        place = index_find(e, e->file_index, e->file_mask, hash_text(text), &text, file_is);
    if (place && *place == 0) {
        vv_source_file *f = table_next(&e->files, g);
        if (f) {
            *f = (vv_source_file){atomic_load(&e->files.count) + 1, text};
            return *place = table_push(&e->files);
        }
    }
    free_text(g, text);
    return place ? *place : 0;
}

uint32_t vv_engine_add_file(varve_engine *e, const char *path)
{
    pthread_mutex_lock(&e->lock);
    uint32_t id = add_file(e, &e->session->governor, path);
    pthread_mutex_unlock(&e->lock);
    return id;
}

uint32_t vv_engine_add_site(varve_engine *e, const vv_site *site)
{
    vv_governor *g = &e->session->governor;
    uint32_t handle = 0;
    pthread_mutex_lock(&e->lock);
    if (index_room(e, g, &e->site_index, &e->site_mask, atomic_load(&e->sites.count), site_hash_of)) {
        uint32_t *place = index_find(e, e->site_index, e->site_mask, hash_site(site), site, site_is);
        vv_site *s = *place ? NULL : table_next(&e->sites, g);
        if (s) {
            *s = *site;
            *place = table_push(&e->sites);
        }
        handle = *place;
    }
    pthread_mutex_unlock(&e->lock);
    return handle;
}

static bool fill_function(varve_engine *e, vv_governor *g, vv_function *f, const varve_function_info *info)
{
    *f = (vv_function){.kind = (uint8_t)info->kind, .origin = (uint8_t)info->origin};
    f->fqn = copy_text(g, info->fqn);
    f->display_name = copy_text(g, info->display_name ? info->display_name : info->fqn);
    /* The table's rows have no place for a line; the detail of a kind is free text, and other readers show it. */
    char line[VV_FN_LINE_TEXT];
    vv_fn_line_text(line, info->line);
    bool ok = copy_opt(g, info->definition_key, &f->definition_key) && copy_opt(g, info->package, &f->package) &&
              copy_opt(g, info->line ? line : NULL, &f->kind_detail);
    uint32_t file = info->source_file ? add_file(e, g, info->source_file) : 0;
    if (file) {
        f->source_file = (vv_opt_str){true, ((vv_source_file *)vv_table_at(&e->files, file - 1))->path};
        f->has_span = true;
        f->file_id = file;
        f->span_start = info->span_start;
        f->span_end = info->span_end;
    }
    return ok && f->fqn.p && f->display_name.p && (file || !info->source_file);
}

static void drop_function(vv_governor *g, vv_function *f)
{
    if (f->fqn.p)
        free_text(g, f->fqn);
    if (f->display_name.p)
        free_text(g, f->display_name);
    if (f->definition_key.s.p)
        free_opt(g, &f->definition_key);
    if (f->package.s.p)
        free_opt(g, &f->package);
    if (f->kind_detail.s.p)
        free_opt(g, &f->kind_detail);
}

uint32_t vv_engine_add_function(varve_engine *e, const varve_function_info *info)
{
    vv_governor *g = &e->session->governor;
    uint32_t id = 0;
    pthread_mutex_lock(&e->lock);
    vv_function *f = table_next(&e->functions, g);
    if (f && fill_function(e, g, f, info)) {
        f->id = atomic_load_explicit(&e->functions.count, memory_order_relaxed) + 1;
        id = table_push(&e->functions);
    } else if (f) {
        drop_function(g, f);
    }
    pthread_mutex_unlock(&e->lock);
    return id;
}

void vv_engine_encode_table(const varve_engine *e, vv_wr *w, uint32_t *ret_functions, uint32_t *ret_files)
{
    /* Functions first: the files they name were added before them. */
    uint32_t functions = atomic_load_explicit(&e->functions.count, memory_order_acquire);
    uint32_t files = atomic_load_explicit(&e->files.count, memory_order_acquire);
    vv_function *fn = calloc(functions + 1, sizeof *fn);
    vv_source_file *fi = calloc(files + 1, sizeof *fi);
    if (!fn || !fi)
        vv_wr_fail(w, "OutOfMemory");
    else {
        for (uint32_t i = 0; i < functions; i++)
            fn[i] = *(vv_function *)vv_table_at(&e->functions, i);
        for (uint32_t i = 0; i < files; i++)
            fi[i] = *(vv_source_file *)vv_table_at(&e->files, i);
        vv_function_table_encode(w, fn, functions, fi, files);
    }
    free(fn);
    free(fi);
    *ret_functions = functions;
    *ret_files = files;
}
