#include "config.h"

#include "views/tables.h"

#include <pthread.h>
#include <stdlib.h>

enum { BUCKETS = 256 };

struct vv_shared_table {
    vv_cid cid;
    vv_function_table table;
    size_t bytes;
    unsigned refs;
    uint64_t used; /* by the cache's count of uses */
    vv_shared_table *next;
};

struct vv_tables {
    vv_budget *budget;
    pthread_mutex_t lock;
    uint64_t uses;
    vv_shared_table *buckets[BUCKETS];
};

vv_tables *vv_tables_new(vv_budget *budget)
{
    vv_tables *t = calloc(1, sizeof *t);
    if (t) {
        t->budget = budget;
        pthread_mutex_init(&t->lock, NULL);
    }
    return t;
}

static void drop(vv_tables *t, vv_shared_table *s)
{
    vv_budget_give(t->budget, s->bytes);
    vv_function_table_done(&s->table);
    free(s);
}

void vv_tables_free(vv_tables *t)
{
    if (!t)
        return;
    for (unsigned b = 0; b < BUCKETS; b++)
        for (vv_shared_table *s = t->buckets[b], *next; s; s = next) {
            next = s->next;
            drop(t, s);
        }
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static vv_shared_table **bucket_of(vv_tables *t, const vv_cid *cid)
{
    return &t->buckets[cid->b[0]];
}

/* With one more reference; NULL where it is not here. Under the lock. */
static vv_shared_table *find(vv_tables *t, const vv_cid *cid)
{
    vv_shared_table *s = *bucket_of(t, cid);
    while (s && memcmp(&s->cid, cid, sizeof *cid) != 0)
        s = s->next;
    if (s) {
        s->refs++;
        s->used = ++t->uses;
    }
    return s;
}

static vv_code load(vv_tables *t, vv_source *source, const vv_engine *engine, vv_shared_table **ret, vv_error *err)
{
    vv_shared_table *s = calloc(1, sizeof *s);
    if (!s)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a table of functions");
    vv_code rc = vv_engine_table(source, engine, &s->table, err);
    if (rc == VV_OK && !vv_budget_take(t->budget, sizeof *s + s->table.bytes)) {
        vv_function_table_done(&s->table);
        rc = vv_fail(err, VV_ERR_LIMIT, "a table of functions needs more than is left of %zu bytes",
                     vv_budget_max(t->budget));
    }
    if (rc != VV_OK) {
        free(s);
        return rc;
    }
    s->bytes = sizeof *s + s->table.bytes;
    s->cid = engine->table;
    *ret = s;
    return VV_OK;
}

vv_code vv_tables_get(vv_tables *t, vv_source *source, const vv_engine *engine, vv_shared_table **ret, vv_error *err)
{
    vv_shared_table *fresh = NULL;
    pthread_mutex_lock(&t->lock);
    *ret = find(t, &engine->table);
    pthread_mutex_unlock(&t->lock);
    if (*ret)
        return VV_OK;
    vv_code rc = load(t, source, engine, &fresh, err);
    if (rc != VV_OK)
        return rc;
    pthread_mutex_lock(&t->lock);
    *ret = find(t, &engine->table); /* another thread may have been as fast */
    if (!*ret) {
        vv_shared_table **bucket = bucket_of(t, &engine->table);
        fresh->refs = 1;
        fresh->used = ++t->uses;
        fresh->next = *bucket;
        *bucket = *ret = fresh;
        fresh = NULL;
    }
    pthread_mutex_unlock(&t->lock);
    if (fresh)
        drop(t, fresh);
    return VV_OK;
}

const vv_function_table *vv_shared_table_see(const vv_shared_table *s)
{
    return &s->table;
}

void vv_tables_release(vv_tables *t, vv_shared_table *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&t->lock);
    s->refs--;
    pthread_mutex_unlock(&t->lock);
}

/* The one that nobody holds for the longest time, out of the cache; NULL where there is none. Under the lock. */
static vv_shared_table *take_oldest(vv_tables *t)
{
    vv_shared_table **oldest = NULL;
    for (unsigned b = 0; b < BUCKETS; b++)
        for (vv_shared_table **at = &t->buckets[b]; *at; at = &(*at)->next)
            if ((*at)->refs == 0 && (!oldest || (*at)->used < (*oldest)->used))
                oldest = at;
    vv_shared_table *s = oldest ? *oldest : NULL;
    if (s)
        *oldest = s->next;
    return s;
}

bool vv_tables_give_back(vv_tables *t, size_t n)
{
    bool gave = false;
    while (vv_budget_left(t->budget) < n) {
        pthread_mutex_lock(&t->lock);
        vv_shared_table *s = take_oldest(t);
        pthread_mutex_unlock(&t->lock);
        if (!s)
            break;
        drop(t, s);
        gave = true;
    }
    return gave;
}
