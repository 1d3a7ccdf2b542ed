#include "config.h"

#include "reader/execution_list.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/map.h"

/* Of a list all chunks are full but the last. One that several lists have is copied by who changes it. */
enum { CHUNK = 64 };
typedef struct vv_execution_chunk {
    unsigned refs; /* atomic */
    size_t cap;
    vv_execution e[];
} chunk;

/* Root -> index. Lists share it: an older one takes an index that is not below its count for none. */
struct vv_root_map {
    unsigned refs; /* atomic */
    pthread_rwlock_t lock;
    vv_map map;
};

static vv_code no_memory(vv_error *err)
{
    return vv_fail(err, VV_ERR_NOMEM, "no memory for a list of executions");
}

static size_t chunks_of(size_t executions)
{
    return (executions + CHUNK - 1) / CHUNK;
}

static void chunk_unref(chunk *c)
{
    if (__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) == 0)
        free(c);
}

static void roots_unref(struct vv_root_map *r)
{
    if (!r || __atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    pthread_rwlock_destroy(&r->lock);
    vv_map_done(&r->map);
    free(r);
}

vv_code vv_executions_begin(vv_execution_list *ret, vv_error *err)
{
    struct vv_root_map *r = calloc(1, sizeof *r);
    if (!r)
        return no_memory(err);
    r->refs = 1;
    pthread_rwlock_init(&r->lock, NULL);
    vv_map_init(&r->map, sizeof(vv_thread_ref));
    *ret = (vv_execution_list){.roots = r};
    return VV_OK;
}

bool vv_executions_can_follow(const vv_execution_list *former)
{
    return former->roots && former->roots->map.count == former->count;
}

vv_code vv_executions_follow(vv_execution_list *ret, const vv_execution_list *former, vv_error *err)
{
    size_t n = chunks_of(former->count);
    chunk **chunks = malloc((n + 1) * sizeof(chunk *));
    if (!chunks)
        return no_memory(err);
    for (size_t i = 0; i < n; i++) {
        chunks[i] = former->chunks[i];
        __atomic_fetch_add(&chunks[i]->refs, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&former->roots->refs, 1, __ATOMIC_RELAXED);
    *ret = (vv_execution_list){.chunks = chunks, .chunk_cap = n + 1, .roots = former->roots, .count = former->count};
    return VV_OK;
}

void vv_executions_done(vv_execution_list *l)
{
    for (size_t i = 0; i < chunks_of(l->count); i++)
        chunk_unref(l->chunks[i]);
    free(l->chunks);
    roots_unref(l->roots);
    *l = (vv_execution_list){.count = 0};
}

/* Makes chunk i the list's own, with room for so many; it holds the first of them. */
static bool own(vv_execution_list *l, size_t i, size_t held, size_t room)
{
    chunk *c = l->chunks[i];
    if (__atomic_load_n(&c->refs, __ATOMIC_ACQUIRE) == 1 && c->cap >= room)
        return true;
    size_t cap = c->cap;
    while (cap < room)
        cap *= 2;
    chunk *mine = malloc(sizeof *mine + cap * sizeof *mine->e);
    if (!mine)
        return false;
    mine->refs = 1;
    mine->cap = cap;
    memcpy(mine->e, c->e, held * sizeof *mine->e);
    l->chunks[i] = mine;
    chunk_unref(c);
    return true;
}

/* Room for one execution more. */
static bool make_room(vv_execution_list *l)
{
    size_t in = l->count / CHUNK, held = l->count % CHUNK;
    if (held)
        return own(l, in, held, held + 1);
    if (!vv_grow(&l->chunks, &l->chunk_cap, in, sizeof(chunk *)))
        return false;
    chunk *c = malloc(sizeof *c + sizeof *c->e);
    if (!c)
        return false;
    c->refs = 1;
    c->cap = 1;
    l->chunks[in] = c;
    return true;
}

vv_execution *vv_executions_change(vv_execution_list *l, size_t i)
{
    size_t in = i / CHUNK, held = in == l->count / CHUNK ? l->count % CHUNK : CHUNK;
    return own(l, in, held, held) ? &l->chunks[in]->e[i % CHUNK] : NULL;
}

vv_execution *vv_executions_put(vv_execution_list *l, const vv_thread_ref *root, size_t *ret_at)
{
    bool is_new = false;
    pthread_rwlock_wrlock(&l->roots->lock);
    uint32_t i = vv_map_put(&l->roots->map, root, &is_new);
    pthread_rwlock_unlock(&l->roots->lock);
    if (i == VV_MAP_NONE || (is_new && !make_room(l)))
        return NULL;
    *ret_at = i;
    if (!is_new)
        return vv_executions_change(l, i);
    vv_execution *e = &l->chunks[i / CHUNK]->e[i % CHUNK];
    *e = (vv_execution){.root = *root};
    l->count++;
    return e;
}

const vv_execution *vv_executions_at(const vv_execution_list *l, size_t i)
{
    return &l->chunks[i / CHUNK]->e[i % CHUNK];
}

size_t vv_executions_find(const vv_execution_list *l, const vv_thread_ref *root)
{
    if (l->count == 0)
        return 0;
    pthread_rwlock_rdlock(&l->roots->lock);
    size_t i = vv_map_find(&l->roots->map, root);
    pthread_rwlock_unlock(&l->roots->lock);
    return i < l->count ? i : l->count;
}

size_t vv_executions_bytes(const vv_execution_list *l, const vv_execution_list *other)
{
    size_t bytes = l->chunk_cap * sizeof(chunk *), n = chunks_of(other->count);
    if (l->roots && l->roots != other->roots)
        bytes += sizeof *l->roots + vv_map_bytes(&l->roots->map);
    for (size_t i = 0; i < chunks_of(l->count); i++)
        if (i >= n || l->chunks[i] != other->chunks[i])
            bytes += sizeof(chunk) + l->chunks[i]->cap * sizeof(vv_execution);
    return bytes;
}
