#include "config.h"

#include "views/search_inside.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/sha256.h"

enum { NAME = 24, KEPT_MAX = 256 << 20 };

/* An engine, the table of it that is to be read next, and its executions. */
typedef struct {
    const vv_stream *stream;
    size_t at;
    const vv_found *newest; /* or NULL */
    uint64_t executions;
} owner;

/* A function of the page. */
typedef struct {
    uint8_t key[VV_SEARCH_FUNCTION];
    const char *matched;
    vv_program_id program;
    vv_function def; /* its texts lie in owned */
    char *owned;
    size_t owned_bytes;
    vv_cid table; /* that it is described by */
    const vv_found *newest;
    uint64_t executions;
} item;

typedef struct {
    vv_searching *s;
    owner *owners;
    uint32_t owner_count;
    item *items; /* in order */
    size_t count, kept;
    uint64_t limit;
} gathering;

const char *vv_search_function_word(const vv_searching *s, const vv_function *d)
{
    vv_text_field fields[VV_FUNCTION_TEXTS];
    size_t n = vv_function_texts(d, fields);
    for (size_t i = 0; i < n; i++)
        if (vv_text_contains(fields[i].text, s->text))
            return fields[i].word;
    return NULL;
}

static vv_code no_memory(vv_error *err)
{
    return vv_fail(err, VV_ERR_NOMEM, "no memory for a search of functions");
}

static void engine_key(uint8_t out[24], const vv_stream *s, uint64_t engine)
{
    memcpy(out, s->euid.b, 16);
    vv_put64(out + 16, engine);
}

/* The engine's table named before that one; false where there is none. */
static bool former_table(owner *o)
{
    uint64_t id = o->stream->engines[o->at].id;
    while (o->at-- > 0)
        if (o->stream->engines[o->at].id == id && o->stream->engines[o->at].has_table)
            return true;
    return false;
}

/* One for each engine that names a table, with the newest one. */
static bool list_engines(gathering *g, vv_map *map)
{
    const vv_store *store = g->s->q->look->store;
    uint8_t key[24];
    size_t total = 0;
    for (size_t i = 0; i < store->stream_count; i++)
        total += store->streams[i].engine_count;
    g->owners = calloc(total + 1, sizeof *g->owners);
    if (!g->owners)
        return false;
    for (size_t i = 0; i < store->stream_count; i++) {
        const vv_stream *s = &store->streams[i];
        for (size_t at = s->engine_count; at-- > 0;) {
            bool fresh;
            engine_key(key, s, s->engines[at].id);
            uint32_t n = s->engines[at].has_table ? vv_map_put(map, key, &fresh) : 0;
            if (n == VV_MAP_NONE)
                return false;
            if (s->engines[at].has_table && fresh)
                g->owners[n] = (owner){.stream = s, .at = at};
        }
    }
    g->owner_count = map->count;
    return true;
}

static bool list_owners(gathering *g)
{
    vv_map map;
    uint8_t key[24];
    vv_map_init(&map, sizeof key);
    bool good = list_engines(g, &map);
    for (size_t i = 0; i < g->s->count && good; i++) {
        const vv_found *f = &g->s->list[i];
        engine_key(key, f->stream, vv_thread_engine(&f->execution->root));
        uint32_t at = map.count ? vv_map_find(&map, key) : VV_MAP_NONE;
        if (at == VV_MAP_NONE)
            continue;
        g->owners[at].executions++;
        if (!g->owners[at].newest)
            g->owners[at].newest = f;
    }
    vv_map_done(&map);
    return good;
}

/* The beginning of the name orders, what the function is told apart by follows. */
static void make_key(uint8_t out[VV_SEARCH_FUNCTION], const vv_function *d, const vv_program_id *program)
{
    char scratch[12];
    vv_str name;
    uint8_t kind = (uint8_t)vv_function_name_key(d, d->id, scratch, &name), size[8];
    vv_sha256_ctx c;
    for (size_t i = 0; i < NAME; i++)
        out[i] = i < d->fqn.n ? (uint8_t)tolower((unsigned char)d->fqn.p[i]) : 0;
    vv_sha256_init(&c);
    vv_sha256_update(&c, &kind, 1);
    if (kind == VV_NAME_NUMBER)
        vv_sha256_update(&c, program->b, sizeof program->b);
    vv_put64(size, name.n);
    vv_sha256_update(&c, size, sizeof size);
    vv_sha256_update(&c, name.p, name.n);
    vv_sha256_update(&c, d->fqn.p, d->fqn.n);
    vv_sha256_final(&c, out + NAME);
}

static vv_str keep(char **at, vv_str text)
{
    vv_str copy = {*at, text.n};
    if (text.n)
        memcpy(*at, text.p, text.n);
    *at += text.n;
    return copy;
}

/* Takes the function's description over from its table. */
static bool describe(gathering *g, item *it, const vv_function *d, const vv_program_id *program, const char *matched)
{
    const vv_opt_str *from[] = {&d->definition_key, &d->kind_detail, &d->source_file};
    size_t n = d->fqn.n + d->display_name.n;
    for (size_t i = 0; i < VV_ARRAY_LEN(from); i++)
        n += from[i]->present ? from[i]->s.n : 0;
    char *owned = n <= KEPT_MAX - g->kept ? malloc(n + 1) : NULL, *at = owned;
    if (!owned)
        return false;
    g->kept += n - it->owned_bytes;
    free(it->owned);
    it->owned = owned;
    it->owned_bytes = n;
    it->program = *program;
    it->matched = matched;
    it->def = *d;
    it->def.namespaces = NULL;
    it->def.namespace_count = 0;
    it->def.package = (vv_opt_str){.present = false};
    it->def.fqn = keep(&at, d->fqn);
    it->def.display_name = keep(&at, d->display_name);
    vv_opt_str *to[] = {&it->def.definition_key, &it->def.kind_detail, &it->def.source_file};
    for (size_t i = 0; i < VV_ARRAY_LEN(to); i++)
        if (to[i]->present)
            to[i]->s = keep(&at, to[i]->s);
    return true;
}

/* Where the key stands among the items, or would. */
static size_t place_of(const gathering *g, const uint8_t *key, bool *ret_there)
{
    size_t low = 0, high = g->count;
    *ret_there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = memcmp(g->items[middle].key, key, VV_SEARCH_FUNCTION);
        if (c == 0)
            *ret_there = true;
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A function is described as the newest execution has it; of those without one, as the first table does. */
static bool is_better(const item *it, const vv_engine *e, const vv_found *newest)
{
    if (!it->matched || (newest && (!it->newest || newest < it->newest)))
        return true;
    return !newest && !it->newest && memcmp(e->table.b, it->table.b, sizeof it->table.b) < 0;
}

static void drop_last(gathering *g)
{
    item *last = &g->items[--g->count];
    g->kept -= last->owned_bytes;
    free(last->owned);
}

/*
 * A function of a table that all these engines have. One that is beyond the page once is so for good, as the page's end
 * only ever comes nearer: what an item counts is whole.
 */
static bool offer(gathering *g, const vv_function *d, const vv_engine *e, const char *matched, const vv_found *newest,
                  uint64_t executions)
{
    uint8_t key[VV_SEARCH_FUNCTION];
    bool there;
    make_key(key, d, &e->program);
    if (g->s->has_after && memcmp(key, g->s->after + 1, sizeof key) <= 0)
        return true;
    size_t at = place_of(g, key, &there);
    if (!there) {
        if (at == g->limit) {
            g->s->more = true;
            return true;
        }
        if (g->count == g->limit) {
            g->s->more = true;
            drop_last(g);
        }
        memmove(g->items + at + 1, g->items + at, (g->count++ - at) * sizeof *g->items);
        g->items[at] = (item){.matched = NULL};
        memcpy(g->items[at].key, key, sizeof key);
    }
    item *it = &g->items[at];
    if (is_better(it, e, newest)) {
        if (!describe(g, it, d, &e->program, matched))
            return false;
        it->newest = newest;
        it->table = e->table;
    }
    it->executions += executions;
    return true;
}

/* The newest of some engines' executions, and how many they are. */
static const vv_found *newest_of(const gathering *g, const uint32_t *some, size_t n, uint64_t *ret_executions)
{
    const vv_found *newest = NULL;
    *ret_executions = 0;
    for (size_t i = 0; i < n; i++) {
        const owner *o = &g->owners[some[i]];
        *ret_executions += o->executions;
        if (o->newest && (!newest || o->newest < newest)) /* the list is in that order */
            newest = o->newest;
    }
    return newest;
}

static const vv_engine *engine_of(const gathering *g, uint32_t at)
{
    return &g->owners[at].stream->engines[g->owners[at].at];
}

static int by_table(const void *a, const void *b, void *state)
{
    const vv_engine *x = engine_of(state, *(const uint32_t *)a), *y = engine_of(state, *(const uint32_t *)b);
    int c = memcmp(x->table.b, y->table.b, sizeof x->table.b);
    return c ? c : memcmp(x->program.b, y->program.b, sizeof x->program.b);
}

/* One table, for the n engines that have it. *ret_read: false where it can't be read. */
static vv_code search_table(gathering *g, const uint32_t *some, size_t n, bool *ret_read, vv_error *err)
{
    vv_function_table t;
    const vv_engine *e = engine_of(g, some[0]);
    vv_error why = {0};
    vv_code rc = vv_engine_table(g->s->q->look->store->source, e, &t, &why);
    if (rc == VV_ERR_NOMEM)
        return no_memory(err);
    *ret_read = rc == VV_OK;
    if (rc != VV_OK)
        return VV_OK;
    uint64_t executions;
    const vv_found *newest = newest_of(g, some, n, &executions);
    bool good = true;
    for (uint32_t i = 0; i < t.function_count && good; i++) {
        const char *matched = vv_search_function_word(g->s, &t.functions[i]);
        good = !matched || offer(g, &t.functions[i], e, matched, newest, executions);
    }
    vv_function_table_done(&t);
    return good ? VV_OK : vv_fail(err, VV_ERR_LIMIT, "the functions of the page are too large for memory");
}

/* Each table once. Engines whose table can't be read stay, with the table that they named before. */
static vv_code search_tables(gathering *g, uint32_t *some, size_t *n, vv_error *err)
{
    size_t stay = 0;
    vv_code rc = VV_OK;
    qsort_r(some, *n, sizeof *some, by_table, g);
    for (size_t from = 0, to; from < *n && rc == VV_OK; from = to) {
        bool read = false;
        for (to = from + 1; to < *n && by_table(&some[from], &some[to], g) == 0; to++)
            ;
        rc = search_table(g, some + from, to - from, &read, err);
        g->s->result->tables++;
        if (read)
            continue;
        g->s->result->tables_unreadable++;
        for (size_t i = from; i < to; i++)
            if (former_table(&g->owners[some[i]]))
                some[stay++] = some[i];
    }
    *n = stay;
    return rc;
}

static vv_code gather(gathering *g, vv_error *err)
{
    g->items = malloc((size_t)(g->limit + 1) * sizeof *g->items);
    if (!g->items || !list_owners(g))
        return no_memory(err);
    uint32_t *some = malloc(((size_t)g->owner_count + 1) * sizeof *some);
    if (!some)
        return no_memory(err);
    size_t n = g->owner_count;
    for (uint32_t i = 0; i < g->owner_count; i++)
        some[i] = i;
    vv_code rc = VV_OK;
    while (n && rc == VV_OK)
        rc = search_tables(g, some, &n, err);
    free(some);
    return rc;
}

vv_code vv_search_functions(vv_searching *s, vv_error *err)
{
    gathering g = {.s = s, .limit = s->left};
    vv_code rc = gather(&g, err);
    for (size_t i = 0; i < g.count; i++) {
        item *it = &g.items[i];
        const vv_hit hit = {.type = VV_HIT_FUNCTION, .matched = it->matched,
                            .function = {it->program, it->def.id, &it->def}, .executions = it->executions,
                            .found = it->newest};
        if (rc == VV_OK) {
            s->tell(s->state, &hit);
            memset(s->last, 0, sizeof s->last);
            memcpy(s->last + 1, it->key, sizeof it->key);
            s->left--;
        }
        free(it->owned);
    }
    free(g.items);
    free(g.owners);
    return rc;
}
