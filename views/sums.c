#include "config.h"

#include "views/sums.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ENTRIES = 4096, STRIPES = 16, LARGE = 1 << 20 };

/* A file, or a part of one that is an archive. */
typedef struct {
    vv_file_ident ident; /* of the archive, there */
    uint64_t off, size;
    uint8_t of[VV_SHA256_BYTES];
} key;

typedef struct {
    bool used;
    key key;
    uint8_t sum[VV_SHA256_BYTES];
} entry;

struct vv_sums {
    pthread_mutex_t lock;
    pthread_mutex_t large[STRIPES]; /* held while a large file is hashed; taken before lock */
    entry entries[ENTRIES];         /* by a hash of the key; the newer of two stays */
};

vv_sums *vv_sums_new(void)
{
    vv_sums *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_init(&s->large[i], NULL);
    return s;
}

void vv_sums_free(vv_sums *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&s->large[i]);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static int64_t in_ns(const struct timespec *t)
{
    return (int64_t)((uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec);
}

/* False where nothing would tell this file from another, or from itself after a change. */
static bool make_key(key *k, const vv_open_file *f, const uint8_t *of)
{
    struct stat st;
    memset(k, 0, sizeof *k);
    k->ident = f->ident;
    k->off = f->off;
    k->size = f->ident.size;
    if (of)
        memcpy(k->of, of, sizeof k->of);
    if (f->ident.inode == 0 && f->fd >= 0 && fstat(f->fd, &st) == 0)
        k->ident = (vv_file_ident){.size = (uint64_t)st.st_size, .device = st.st_dev, .inode = st.st_ino,
                                   .mtime_ns = in_ns(&st.st_mtim), .ctime_ns = in_ns(&st.st_ctim)};
    return vv_file_ident_is_settled(&k->ident);
}

static bool key_eq(const key *a, const key *b)
{
    return vv_file_ident_eq(&a->ident, &b->ident) && a->off == b->off && a->size == b->size
        && memcmp(a->of, b->of, sizeof a->of) == 0;
}

static size_t hash_of(const key *k)
{
    uint64_t parts[3] = {k->ident.inode, k->off, 0}, h = 0;
    memcpy(&parts[2], k->of, sizeof parts[2]);
    for (size_t i = 0; i < VV_ARRAY_LEN(parts); i++)
        h = (h ^ parts[i]) * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 32);
}

static bool recall(vv_sums *s, const key *k, uint8_t *sum)
{
    pthread_mutex_lock(&s->lock);
    const entry *e = &s->entries[hash_of(k) % ENTRIES];
    bool known = e->used && key_eq(&e->key, k);
    if (known)
        memcpy(sum, e->sum, sizeof e->sum);
    pthread_mutex_unlock(&s->lock);
    return known;
}

static void keep(vv_sums *s, const key *k, const uint8_t *sum)
{
    pthread_mutex_lock(&s->lock);
    entry *e = &s->entries[hash_of(k) % ENTRIES];
    e->used = true;
    e->key = *k;
    memcpy(e->sum, sum, sizeof e->sum);
    pthread_mutex_unlock(&s->lock);
}

vv_code vv_sums_get(vv_sums *s, const vv_open_file *file, const uint8_t of[VV_SHA256_BYTES], vv_sum_fn *find,
                    void *state, uint8_t sum[VV_SHA256_BYTES], vv_error *err)
{
    key k;
    bool lasting = true;
    if (!make_key(&k, file, of))
        return find(state, sum, &lasting, err);
    if (recall(s, &k, sum))
        return VV_OK;
    pthread_mutex_t *alone = k.size >= LARGE ? &s->large[hash_of(&k) % STRIPES] : NULL;
    if (alone)
        pthread_mutex_lock(alone);
    vv_code rc = VV_OK;
    if (!alone || !recall(s, &k, sum)) {
        rc = find(state, sum, &lasting, err);
        if (rc == VV_OK && lasting)
            keep(s, &k, sum);
    }
    if (alone)
        pthread_mutex_unlock(alone);
    return rc;
}
