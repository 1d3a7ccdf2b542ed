#include "config.h"

#include "views/shelf.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "base/sha256.h"
#include "reader/stream.h"
#include "views/digest_bytes.h"

enum {
    BUCKETS = 4096,
    ENTRIES_MAX = 65536, /* executions of which a digest is kept */
    DIGEST_SHARE = 4,    /* digests take at most that part of the budget */
};

/* Entries by last use. */
typedef enum {
    ALL,           /* that are listed */
    WITH_PROFILES, /* of these */
    LISTS,
} list;

typedef struct entry {
    uint8_t key[32];
    vv_thread_ref root;
    uint64_t first, data_high; /* what the profile was loaded of */
    uint64_t stamp;            /* of these segments */
    bool loading, listed;
    vv_profile *profile;
    vv_digest *digest;
    unsigned refs; /* of profile, digest and waiters */
    struct entry *next; /* in its bucket */
    struct {
        struct entry *newer, *older;
    } by_use[LISTS];
} entry;

struct vv_shelf {
    vv_budget budget; /* of profiles, digests and tables */
    vv_tables *tables;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t loaded;
    entry *buckets[BUCKETS];
    entry *growing[BUCKETS]; /* by root: the newest one a bucket that had not ended, whose fold can go on */
    struct {
        entry *newest, *oldest;
    } by_use[LISTS];
    size_t entries, digest_bytes;
};

static _Thread_local uint64_t load_ns;

static bool make_room(void *cls, size_t n);

vv_shelf *vv_shelf_new(size_t max_bytes)
{
    vv_shelf *sh = calloc(1, sizeof *sh);
    if (!sh)
        return NULL;
    vv_budget_init(&sh->budget, max_bytes);
    sh->budget.release = make_room;
    sh->budget.cls = sh;
    sh->tables = vv_tables_new(&sh->budget);
    if (!sh->tables) {
        free(sh);
        return NULL;
    }
    pthread_mutex_init(&sh->lock, NULL);
    pthread_cond_init(&sh->loaded, NULL);
    return sh;
}

vv_budget *vv_shelf_budget(vv_shelf *sh)
{
    return &sh->budget;
}

static void hash_u64(vv_sha256_ctx *c, uint64_t v)
{
    uint8_t b[8];
    vv_put64(b, v);
    vv_sha256_update(c, b, sizeof b);
}

static void hash_terms(vv_sha256_ctx *c, const vv_execution *x)
{
    uint8_t b[8];
    size_t n = x->has_terms ? vv_rd_left(&x->terms.terms) : 0;
    vv_put64(b, x->has_terms ? x->terms.count + UINT64_C(1) : 0);
    vv_sha256_update(c, b, sizeof b);
    if (n)
        vv_sha256_update(c, x->terms.terms.at, n);
}

/* The first sequence that may have a group of it. */
static uint64_t first_of(const vv_execution *x)
{
    return x->has_end ? x->first : x->start_high_water;
}

/*
 * All that a profile and its digest depend on: the execution's records and terms, its names, and the files of its
 * range.
 */
static void signature(uint8_t out[32], const vv_stream *s, const vv_execution *x)
{
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, x->root.b, sizeof x->root.b);
    uint64_t last = x->has_end ? x->last : s->data_high;
    const uint64_t fields[] = {x->has_start, x->has_end, x->started_ns, x->ended_ns, x->start_high_water, x->status,
                               x->flags, x->first, last, x->count, x->index_state,
                               s->data_high < last ? s->data_high : last};
    for (size_t i = 0; i < VV_ARRAY_LEN(fields); i++)
        hash_u64(&c, fields[i]);
    for (size_t i = 0; i < VV_HEALTH_COUNT; i++)
        hash_u64(&c, x->health.v[i]);
    uint64_t engine = vv_thread_engine(&x->root);
    for (size_t i = 0; i < s->engine_count; i++)
        if (s->engines[i].id == engine && s->engines[i].has_table)
            vv_sha256_update(&c, s->engines[i].table.b, sizeof s->engines[i].table.b);
    hash_u64(&c, vv_seg_list_stamp(&s->core->data, first_of(x), last));
    hash_terms(&c, x);
    vv_sha256_final(&c, out);
}

static entry **bucket_of(vv_shelf *sh, const uint8_t key[32])
{
    return &sh->buckets[vv_be32(key) % BUCKETS];
}

static void unlink_use(vv_shelf *sh, entry *e, list l)
{
    entry *newer = e->by_use[l].newer, *older = e->by_use[l].older;
    *(newer ? &newer->by_use[l].older : &sh->by_use[l].newest) = older;
    *(older ? &older->by_use[l].newer : &sh->by_use[l].oldest) = newer;
    e->by_use[l].newer = e->by_use[l].older = NULL;
}

static void link_newest(vv_shelf *sh, entry *e, list l)
{
    entry *older = sh->by_use[l].newest;
    e->by_use[l].older = older;
    e->by_use[l].newer = NULL;
    *(older ? &older->by_use[l].newer : &sh->by_use[l].oldest) = e;
    sh->by_use[l].newest = e;
}

static void drop_profile(vv_shelf *sh, entry *e)
{
    if (e->profile && e->listed)
        unlink_use(sh, e, WITH_PROFILES);
    vv_profile_free(e->profile);
    e->profile = NULL;
}

static void drop_digest(vv_shelf *sh, entry *e)
{
    if (e->digest) {
        sh->digest_bytes -= vv_digest_bytes(e->digest);
        vv_budget_give(&sh->budget, vv_digest_bytes(e->digest));
    }
    vv_digest_free(e->digest);
    e->digest = NULL;
}

static entry **growing_of(vv_shelf *sh, const vv_thread_ref *root)
{
    /* Stream ids end in random bits, engines and threads count up. */
    return &sh->growing[(vv_be32(root->b + 12) ^ vv_be32(root->b + 20) * 31 ^ vv_be32(root->b + 28) * 131) % BUCKETS];
}

static void free_entry(vv_shelf *sh, entry *e)
{
    entry **growing = growing_of(sh, &e->root);
    if (*growing == e)
        *growing = NULL;
    drop_profile(sh, e);
    drop_digest(sh, e);
    free(e);
}

static void unlist(vv_shelf *sh, entry *e)
{
    entry **at = bucket_of(sh, e->key);
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    unlink_use(sh, e, ALL);
    if (e->profile)
        unlink_use(sh, e, WITH_PROFILES);
    e->listed = false;
    sh->entries--;
}

/*
 * Gives memory back, oldest use first, until so many bytes are free: profiles, then what is known of executions
 * altogether. What somebody holds stays. True if there was something to give. Looks at no more than it gives and what
 * is held: each of a hundred thousand executions may call for it in turn. Under the lock.
 */
static bool give_back(vv_shelf *sh, size_t n)
{
    bool gave = false;
    for (entry *e = sh->by_use[WITH_PROFILES].oldest, *newer; e && vv_budget_left(&sh->budget) < n; e = newer) {
        newer = e->by_use[WITH_PROFILES].newer;
        if (e->refs)
            continue;
        drop_profile(sh, e);
        gave = true;
    }
    for (entry *e = sh->by_use[ALL].oldest, *newer; e && vv_budget_left(&sh->budget) < n; e = newer) {
        newer = e->by_use[ALL].newer;
        if (e->refs)
            continue;
        unlist(sh, e);
        free_entry(sh, e);
        gave = true;
    }
    return gave;
}

/* The budget's: called by who loads, without the lock. */
static bool make_room(void *cls, size_t n)
{
    vv_shelf *sh = cls;
    pthread_mutex_lock(&sh->lock);
    bool gave = give_back(sh, n);
    pthread_mutex_unlock(&sh->lock);
    /* Who asks may have been overtaken by others that took and gave back since. */
    return vv_tables_give_back(sh->tables, n) || gave || vv_budget_left(&sh->budget) >= n;
}

static bool has_too_many(const vv_shelf *sh)
{
    return sh->entries > ENTRIES_MAX || sh->digest_bytes > sh->budget.max / DIGEST_SHARE;
}

static void trim_entries(vv_shelf *sh)
{
    for (entry *e = sh->by_use[ALL].oldest, *newer; e && has_too_many(sh); e = newer) {
        newer = e->by_use[ALL].newer;
        if (e->refs)
            continue;
        unlist(sh, e);
        free_entry(sh, e);
    }
    give_back(sh, 1); /* what was forced upon the budget */
}

static entry *find_or_add(vv_shelf *sh, const uint8_t key[32])
{
    entry **bucket = bucket_of(sh, key);
    entry *e = *bucket;
    while (e && memcmp(e->key, key, sizeof e->key) != 0)
        e = e->next;
    if (e) {
        unlink_use(sh, e, ALL);
        if (e->profile)
            unlink_use(sh, e, WITH_PROFILES);
    } else {
        e = calloc(1, sizeof *e);
        if (!e)
            return NULL;
        memcpy(e->key, key, sizeof e->key);
        e->listed = true;
        e->next = *bucket;
        *bucket = e;
        sh->entries++;
    }
    link_newest(sh, e, ALL);
    if (e->profile)
        link_newest(sh, e, WITH_PROFILES);
    return e;
}

static void entry_unref(vv_shelf *sh, entry *e)
{
    if (--e->refs == 0) {
        if (!e->listed)
            free_entry(sh, e);
        else
            trim_entries(sh);
    }
}

/*
 * The fold of an earlier look at the same execution that nobody uses, to go on with; NULL where there is none, or a
 * file of it has changed. What was known of that look goes, or an execution that runs for days would leave a digest a
 * second. Under the lock.
 */
static vv_fold *take_growing(vv_shelf *sh, const vv_shelf_item *x)
{
    const vv_thread_ref *root = &x->execution->root;
    entry *e = *growing_of(sh, root);
    if (!e || !e->profile || e->refs || e->loading || e->data_high > x->stream->data_high
        || memcmp(e->root.b, root->b, sizeof e->root.b) != 0
        || e->stamp != vv_seg_list_stamp(&x->stream->core->data, e->first, e->data_high))
        return NULL;
    vv_fold *fold = e->profile->fold;
    e->profile->fold = NULL;
    unlist(sh, e);
    free_entry(sh, e);
    return fold;
}

/* What is loaded for an entry, before the entry has it. */
typedef struct {
    vv_profile *profile;
    vv_digest *digest;
    bool refused; /* too large to be loaded now: the digest says that all is unknown */
} content;

static vv_code load(vv_shelf *sh, const vv_shelf_item *x, vv_fold *former, content *ret, vv_error *err)
{
    vv_fold *fold = former;
    vv_code rc = former ? vv_fold_advance(&fold, x->store, x->stream, x->execution, err)
                        : vv_fold_load(&fold, x->store, x->stream, x->execution, &sh->budget, err);
    if (rc != VV_OK) {
        vv_fold_free(fold);
        return rc;
    }
    vv_profile *p;
    rc = vv_profile_new(&p, fold, sh->tables, x->store, x->stream, x->execution, err);
    if (rc != VV_OK)
        return rc;
    rc = vv_digest_new(&ret->digest, x->execution, p, err);
    if (rc != VV_OK) {
        vv_profile_free(p);
        return rc;
    }
    p->fold->execution = NULL; /* the look may go before the profile does */
    ret->profile = p;
    return VV_OK;
}

/* The digest as the index has it under that key; NULL where it has none. */
static vv_digest *recall_digest(const vv_shelf_item *x, const uint8_t key[32])
{
    vv_blob b = {0};
    vv_digest *d = NULL;
    if (!vv_index_summary(x->index, &x->execution->root, key, &b))
        return NULL;
    if (vv_digest_get(&d, b.p, b.n, NULL) != VV_OK)
        d = NULL;
    vv_blob_done(&b);
    return d;
}

static void keep_digest(const vv_shelf_item *x, const uint8_t key[32], const content *c)
{
    if (!vv_digest_is_lasting(x->execution, c->profile))
        return;
    vv_wr w = vv_wr_growing(VV_SUMMARY_MAX);
    vv_digest_put(&w, c->digest);
    if (vv_wr_ok(&w))
        vv_index_keep_summary(x->index, &x->execution->root, key, w.buf, w.len);
    vv_wr_done(&w);
}

/*
 * The digest alone from the index, else profile and digest. Takes former, which may go on; it is freed where it is not
 * needed.
 */
static vv_code obtain(vv_shelf *sh, const vv_shelf_item *x, const uint8_t signature[32], bool want_profile,
                      vv_fold *former, content *ret, vv_error *err)
{
    if (!x->index || x->execution->status == VV_EXEC_RUNNING)
        return load(sh, x, former, ret, err);
    uint8_t key[32];
    vv_digest_key(key, signature, x->store, x->stream, x->execution);
    if (!want_profile && (ret->digest = recall_digest(x, key)) != NULL) {
        vv_fold_free(former);
        return VV_OK;
    }
    vv_code rc = load(sh, x, former, ret, err);
    if (rc == VV_OK)
        keep_digest(x, key, ret);
    return rc;
}

/* Of an execution that is too large to be loaded now: its records, and that its numbers are unknown. */
static vv_code digest_of_refused(vv_digest **ret, const vv_execution *execution, vv_error *err)
{
    vv_fold *fold;
    vv_code rc = vv_fold_refused(&fold, execution, err);
    if (rc != VV_OK)
        return rc;
    const vv_profile nothing = {.fold = fold};
    rc = vv_digest_new(ret, execution, &nothing, err);
    vv_fold_free(fold);
    return rc;
}

/* Gives the entry what was loaded. Under the lock. */
static void settle(vv_shelf *sh, entry *e, const content *c, bool goes_on)
{
    if (c->profile) {
        c->profile->holder = e;
        e->profile = c->profile;
        if (e->listed)
            link_newest(sh, e, WITH_PROFILES);
        if (goes_on)
            *growing_of(sh, &e->root) = e;
    }
    if (e->digest) {
        vv_digest_free(c->digest);
        return;
    }
    c->digest->holder = e;
    e->digest = c->digest;
    sh->digest_bytes += vv_digest_bytes(e->digest);
    vv_budget_force(&sh->budget, vv_digest_bytes(e->digest));
}

/* Loads what the entry lacks. Under the lock, which is let go meanwhile. */
static vv_code fill(vv_shelf *sh, entry *e, const vv_shelf_item *x, bool want_profile, vv_error *err)
{
    content c = {.refused = false};
    e->loading = true;
    e->root = x->execution->root;
    e->data_high = x->stream->data_high;
    e->first = first_of(x->execution);
    e->stamp = vv_seg_list_stamp(&x->stream->core->data, e->first, e->data_high);
    vv_fold *former = take_growing(sh, x);
    pthread_mutex_unlock(&sh->lock);
    uint64_t from = vv_now_ns();
    vv_code rc = obtain(sh, x, e->key, want_profile, former, &c, err);
    if (rc == VV_ERR_LIMIT && !want_profile) {
        c.refused = true;
        vv_error_clear(err);
        rc = digest_of_refused(&c.digest, x->execution, err);
    }
    load_ns += vv_now_ns() - from;
    pthread_mutex_lock(&sh->lock);
    e->loading = false;
    pthread_cond_broadcast(&sh->loaded);
    bool disturbed = c.profile && c.profile->fold->disturbed; /* the next look will have it as it is */
    if (rc == VV_OK)
        settle(sh, e, &c, !x->execution->has_end && !disturbed);
    if (e->listed && (!e->digest || c.refused || disturbed)) /* there may be room the next time */
        unlist(sh, e);
    return rc;
}

/* An entry with a digest, and a profile where one is asked for; one reference is the caller's. Under the lock. */
static vv_code acquire(vv_shelf *sh, const vv_shelf_item *x, bool want_profile, entry **ret, vv_error *err)
{
    uint8_t key[32];
    signature(key, x->stream, x->execution);
    entry *e = find_or_add(sh, key);
    if (!e)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for an execution");
    e->refs++;
    uint64_t from = vv_now_ns();
    while (e->loading)
        pthread_cond_wait(&sh->loaded, &sh->lock);
    load_ns += vv_now_ns() - from;
    *ret = e;
    if (e->digest && (e->profile || !want_profile))
        return VV_OK;
    vv_code rc = fill(sh, e, x, want_profile, err);
    if (rc == VV_OK)
        trim_entries(sh);
    else
        entry_unref(sh, e);
    return rc;
}

vv_code vv_shelf_profile(vv_shelf *sh, const vv_shelf_item *x, const vv_profile **ret, vv_error *err)
{
    entry *e;
    pthread_mutex_lock(&sh->lock);
    vv_code rc = acquire(sh, x, true, &e, err);
    if (rc == VV_OK)
        *ret = e->profile;
    pthread_mutex_unlock(&sh->lock);
    return rc;
}

vv_code vv_shelf_digest(vv_shelf *sh, const vv_shelf_item *x, const vv_digest **ret, vv_error *err)
{
    entry *e;
    pthread_mutex_lock(&sh->lock);
    vv_code rc = acquire(sh, x, false, &e, err);
    if (rc == VV_OK)
        *ret = e->digest;
    pthread_mutex_unlock(&sh->lock);
    return rc;
}

void vv_shelf_release(vv_shelf *sh, void *holder)
{
    pthread_mutex_lock(&sh->lock);
    entry_unref(sh, holder);
    pthread_mutex_unlock(&sh->lock);
}

void vv_shelf_free(vv_shelf *sh)
{
    if (!sh)
        return;
    while (sh->by_use[ALL].oldest) {
        entry *e = sh->by_use[ALL].oldest;
        unlist(sh, e);
        free_entry(sh, e);
    }
    vv_tables_free(sh->tables);
    pthread_cond_destroy(&sh->loaded);
    pthread_mutex_destroy(&sh->lock);
    free(sh);
}

uint64_t vv_shelf_load_ns(bool reset)
{
    uint64_t ns = load_ns;
    if (reset)
        load_ns = 0;
    return ns;
}
