#include "config.h"

#include "views/library.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/sha256.h"
#include "base/text.h"
#include "reader/watch.h"
#include "views/digest_bytes.h"
#include "views/place.h"

enum {
    LOOKS = 1024,              /* former looks that as_of may name */
    LOOK_BYTES = 64 << 20,     /* memory of all former looks together */
    PLACE_TRIES = 8,           /* of a store that is made, or replaced, while it is opened */
    BUCKETS = 4096,
    ENTRIES_MAX = 65536,       /* executions of which a digest is kept */
    DIGEST_SHARE = 4,          /* digests take at most that part of the budget */
};

typedef struct {
    vv_look pub; /* first, so that a vv_look is its entry */
    vv_store *store;
    vv_place *place;
    unsigned refs; /* the library's own included */
    size_t bytes;  /* that the look before it did not have */
} look_entry;

typedef struct entry {
    uint8_t key[32];
    vv_thread_ref root;
    uint64_t data_high; /* of the stream when the profile was loaded */
    bool loading, listed;
    vv_profile *profile;
    vv_digest *digest;
    unsigned refs; /* of profile, digest and waiters */
    struct entry *next;           /* in its bucket */
    struct entry *newer, *older;  /* by last use */
} entry;

struct vv_library {
    char *arg; /* NULL: the resolver's */
    bool has_index;
    vv_index_options index;
    vv_budget budget; /* of profiles, digests and tables */
    vv_tables *tables;
    uint64_t poll_ns;
    pthread_mutex_t refresh; /* held while looking at the source; taken before lock */
    vv_watch *watch;         /* or NULL; under refresh */
    vv_library_notice *notice;
    void *notice_state;
    uint64_t turns, noticed;   /* changes of the present look, and how many were told; under refresh */
    _Atomic uint64_t due_ns;
    pthread_mutex_t lock;    /* guards all below */
    pthread_cond_t loaded;
    vv_place *place;
    look_entry *present;
    uint64_t looked_ns;
    look_entry *former[LOOKS]; /* newest first, the present one included */
    unsigned former_count;
    entry *buckets[BUCKETS];
    entry *growing[BUCKETS]; /* by root: the newest one a bucket that had not ended, whose fold can go on */
    entry *newest, *oldest;
    size_t entries, digest_bytes;
    vv_sums *sums;
};

static _Thread_local uint64_t load_ns;

static bool make_room(void *cls, size_t n);

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

vv_code vv_library_open(vv_library **ret, const char *arg, size_t max_bytes, uint64_t poll_ns, vv_error *err)
{
    vv_library *l = calloc(1, sizeof *l);
    if (l) {
        vv_budget_init(&l->budget, max_bytes);
        l->budget.release = make_room;
        l->budget.cls = l;
        l->tables = vv_tables_new(&l->budget);
        l->sums = vv_sums_new();
        l->arg = arg ? strdup(arg) : NULL;
    }
    if (!l || !l->tables || !l->sums || (arg && !l->arg)) {
        if (l) {
            vv_tables_free(l->tables);
            vv_sums_free(l->sums);
        }
        free(l);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a store");
    }
    l->poll_ns = poll_ns;
    atomic_store(&l->due_ns, UINT64_MAX);
    pthread_mutex_init(&l->refresh, NULL);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->loaded, NULL);
    *ret = l;
    return VV_OK;
}

size_t vv_library_max_bytes(const vv_library *l)
{
    return l->budget.max;
}

vv_code vv_library_use_index(vv_library *l, const vv_index_options *o, vv_error *err)
{
    l->index = *o;
    l->has_index = true;
    if (o->path && !(l->index.path = strdup(o->path))) {
        l->has_index = false;
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the index");
    }
    return VV_OK;
}

vv_code vv_library_watch(vv_library *l, vv_library_notice *notice, void *state, vv_error *err)
{
    l->notice = notice;
    l->notice_state = state;
    return vv_watch_new(&l->watch, VV_WATCHES, err);
}

int vv_library_watch_fd(const vv_library *l)
{
    return l->watch ? vv_watch_fd(l->watch) : -1;
}

uint64_t vv_library_due_ns(const vv_library *l)
{
    return atomic_load(&l->due_ns);
}

/* Gives the place to close, where that was its last user. */
static vv_place *look_unref(look_entry *e)
{
    if (!e || --e->refs)
        return NULL;
    vv_store_free(e->store);
    vv_place *last = vv_place_unref(e->place);
    free(e);
    return last;
}

static void forget_looks(vv_library *l, unsigned keep)
{
    while (l->former_count > keep)
        vv_place_close(look_unref(l->former[--l->former_count])); /* not closed: the library is a user */
    if (keep == 0 && l->present) {
        l->present = NULL;
        l->turns++;
    }
}

/* Keeps the newest looks while they are few and small. */
static void trim_looks(vv_library *l)
{
    size_t bytes = 0;
    unsigned keep = 0;
    while (keep < l->former_count && keep < LOOKS - 1) {
        bytes += l->former[keep]->bytes;
        if (keep > 0 && bytes > LOOK_BYTES)
            break;
        keep++;
    }
    forget_looks(l, keep);
}

static void push_look(vv_library *l, look_entry *e)
{
    trim_looks(l);
    memmove(l->former + 1, l->former, l->former_count * sizeof *l->former);
    l->former[0] = e;
    l->former_count++;
    l->present = e;
    l->turns++;
}

static void leave_place(vv_library *l)
{
    if (l->watch)
        vv_watch_nothing(l->watch);
    pthread_mutex_lock(&l->lock);
    forget_looks(l, 0);
    vv_place *last = vv_place_unref(l->place);
    l->place = NULL;
    pthread_mutex_unlock(&l->lock);
    vv_place_close(last);
}

static vv_code enter_place(vv_library *l, bool *ret_again, vv_error *err)
{
    char path[PATH_MAX];
    vv_place *p;
    vv_code rc = vv_place_open(&p, l->arg, l->has_index ? &l->index : NULL, path, err);
    if (rc != VV_OK) {
        /* It may have come before it was watched. */
        *ret_again = rc == VV_ERR_NOTFOUND && l->watch && vv_watch_place(l->watch, path, now_ns());
        return rc;
    }
    if (l->watch)
        vv_watch_store(l->watch, p->source, now_ns());
    pthread_mutex_lock(&l->lock);
    l->place = p;
    pthread_mutex_unlock(&l->lock);
    *ret_again = true;
    return VV_OK;
}

/* Under refresh only: the source may be slow, and holders of looks need the lock. */
static vv_code open_place(vv_library *l, bool check, vv_error *err)
{
    for (unsigned i = 0; i < PLACE_TRIES; i++) {
        if (l->place && check && vv_place_is_gone(l->place))
            leave_place(l);
        if (l->place)
            return VV_OK;
        vv_error why = {0};
        bool again = false;
        vv_code rc = enter_place(l, &again, &why);
        if (!again) {
            if (err && err->code == VV_OK)
                *err = why;
            return rc;
        }
        check = true;
    }
    return vv_fail(err, VV_ERR_NOTFOUND, "the store comes and goes");
}

static vv_code keep_look(vv_library *l, vv_store *store, vv_error *err)
{
    look_entry *e = calloc(1, sizeof *e);
    if (!e) {
        vv_store_free(store);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a look at the store");
    }
    e->store = store;
    e->pub.store = store;
    vv_hex(e->pub.generation, store->generation, sizeof store->generation);
    e->bytes = sizeof *e + vv_store_bytes(store, l->present ? l->present->store : NULL);
    e->refs = 1;
    pthread_mutex_lock(&l->lock);
    e->place = l->place;
    e->place->refs++;
    push_look(l, e);
    pthread_mutex_unlock(&l->lock);
    return VV_OK;
}

/* The place and all streams in it, as they are now. */
static vv_code look_at_store(vv_library *l, vv_store **ret, vv_error *err)
{
    vv_changes changes = {.all = true, .place = true};
    if (l->watch)
        vv_watch_take(l->watch, &changes, now_ns());
    const vv_place *before = l->place;
    vv_code rc = open_place(l, changes.place, err);
    if (rc == VV_OK && l->watch && l->place != before)
        vv_watch_take(l->watch, &changes, now_ns());
    if (rc != VV_OK)
        return rc;
    if (!l->present)
        return vv_store_open(ret, l->place->source, NULL, err);
    return vv_store_update(ret, l->present->store, &changes, err);
}

static vv_code take_look(vv_library *l, vv_error *err)
{
    vv_store *store = NULL;
    uint64_t began = now_ns();
    vv_code rc = look_at_store(l, &store, err);
    if (rc == VV_OK) {
        vv_place_retain(l->place, store);
        if (l->watch)
            vv_watch_looked(l->watch, store, began, now_ns());
        const look_entry *p = l->present;
        if (p && memcmp(p->store->generation, store->generation, sizeof store->generation) == 0)
            vv_store_free(store);
        else
            rc = keep_look(l, store, err);
    }
    if (l->watch && rc != VV_OK && rc != VV_ERR_NOTFOUND)
        vv_watch_looked(l->watch, NULL, began, now_ns());
    l->looked_ns = now_ns();
    return rc;
}

/* Under refresh, so that states are told in their order. */
static void tell(vv_library *l)
{
    if (l->watch)
        atomic_store(&l->due_ns, vv_watch_due_ns(l->watch));
    if (!l->notice || l->noticed == l->turns)
        return;
    l->noticed = l->turns;
    l->notice(l->notice_state, l->present ? &l->present->pub : NULL);
}

static bool is_present(vv_library *l)
{
    if (!l->present)
        return false;
    if (!vv_source_is_live(l->place->source))
        return true;
    uint64_t now = now_ns();
    if (l->watch && vv_watch_is_complete(l->watch))
        return !vv_watch_pending(l->watch, now);
    return l->poll_ns && now - l->looked_ns < l->poll_ns;
}

vv_code vv_library_look(vv_library *l, const vv_look **ret, vv_error *err)
{
    vv_code rc = VV_OK;
    pthread_mutex_lock(&l->refresh);
    if (!is_present(l)) {
        rc = take_look(l, err);
        tell(l);
    }
    if (rc == VV_OK) {
        pthread_mutex_lock(&l->lock);
        l->present->refs++;
        *ret = &l->present->pub;
        pthread_mutex_unlock(&l->lock);
    }
    pthread_mutex_unlock(&l->refresh);
    return rc;
}

vv_code vv_library_look_at(vv_library *l, vv_str as_of, const vv_look **ret, vv_error *err)
{
    vv_code rc = VV_ERR_NOTFOUND;
    pthread_mutex_lock(&l->lock);
    for (unsigned i = 0; i < l->former_count; i++) {
        look_entry *e = l->former[i];
        if (!vv_str_eq(as_of, vv_cstr(e->pub.generation)))
            continue;
        e->refs++;
        *ret = &e->pub;
        rc = VV_OK;
        break;
    }
    pthread_mutex_unlock(&l->lock);
    if (rc != VV_OK) {
        vv_fail(err, rc, "that state of the store is not at hand any more");
        if (err)
            err->name = "LookGone";
    }
    return rc;
}

const vv_look *vv_look_hold(vv_library *l, const vv_look *look)
{
    pthread_mutex_lock(&l->lock);
    ((look_entry *)look)->refs++;
    pthread_mutex_unlock(&l->lock);
    return look;
}

void vv_look_release(vv_library *l, const vv_look *look)
{
    if (!look)
        return;
    pthread_mutex_lock(&l->lock);
    vv_place *last = look_unref((look_entry *)look);
    pthread_mutex_unlock(&l->lock);
    vv_place_close(last);
}

static void hash_u64(vv_sha256_ctx *c, uint64_t v)
{
    uint8_t b[8];
    vv_put64(b, v);
    vv_sha256_update(c, b, sizeof b);
}

/* All that a profile and its digest depend on: the execution's records, its names, and the files of its range. */
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
    uint64_t first = x->has_end ? x->first : x->start_high_water;
    for (size_t i = 0; i < s->data_bad_count; i++)
        if (s->data_bad[i].last >= first && s->data_bad[i].first <= last) {
            hash_u64(&c, s->data_bad[i].first);
            hash_u64(&c, s->data_bad[i].last);
        }
    vv_sha256_final(&c, out);
}

static entry **bucket_of(vv_library *l, const uint8_t key[32])
{
    return &l->buckets[vv_be32(key) % BUCKETS];
}

static void unlink_use(vv_library *l, entry *e)
{
    *(e->newer ? &e->newer->older : &l->newest) = e->older;
    *(e->older ? &e->older->newer : &l->oldest) = e->newer;
    e->newer = e->older = NULL;
}

static void link_newest(vv_library *l, entry *e)
{
    e->older = l->newest;
    e->newer = NULL;
    *(l->newest ? &l->newest->newer : &l->oldest) = e;
    l->newest = e;
}

static void drop_profile(entry *e)
{
    vv_profile_free(e->profile);
    e->profile = NULL;
}

static void drop_digest(vv_library *l, entry *e)
{
    if (e->digest) {
        l->digest_bytes -= vv_digest_bytes(e->digest);
        vv_budget_give(&l->budget, vv_digest_bytes(e->digest));
    }
    vv_digest_free(e->digest);
    e->digest = NULL;
}

static entry **growing_of(vv_library *l, const vv_thread_ref *root)
{
    /* Stream ids end in random bits, engines and threads count up. */
    return &l->growing[(vv_be32(root->b + 12) ^ vv_be32(root->b + 20) * 31 ^ vv_be32(root->b + 28) * 131) % BUCKETS];
}

static void free_entry(vv_library *l, entry *e)
{
    entry **growing = growing_of(l, &e->root);
    if (*growing == e)
        *growing = NULL;
    drop_profile(e);
    drop_digest(l, e);
    free(e);
}

static void unlist(vv_library *l, entry *e)
{
    entry **at = bucket_of(l, e->key);
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    unlink_use(l, e);
    e->listed = false;
    l->entries--;
}

/*
 * Gives memory back, oldest use first, until so many bytes are free: profiles, then what is known of executions
 * altogether. What somebody holds stays. True if there was something to give. Under the lock.
 */
static bool give_back(vv_library *l, size_t n)
{
    bool gave = false;
    for (entry *e = l->oldest; e && vv_budget_left(&l->budget) < n; e = e->newer)
        if (!e->refs && e->profile) {
            drop_profile(e);
            gave = true;
        }
    for (entry *e = l->oldest, *newer; e && vv_budget_left(&l->budget) < n; e = newer) {
        newer = e->newer;
        if (e->refs)
            continue;
        unlist(l, e);
        free_entry(l, e);
        gave = true;
    }
    return gave;
}

/* The budget's: called by who loads, without the lock. */
static bool make_room(void *cls, size_t n)
{
    vv_library *l = cls;
    pthread_mutex_lock(&l->lock);
    bool gave = give_back(l, n);
    pthread_mutex_unlock(&l->lock);
    return vv_tables_give_back(l->tables, n) || gave;
}

static bool has_too_many(const vv_library *l)
{
    return l->entries > ENTRIES_MAX || l->digest_bytes > l->budget.max / DIGEST_SHARE;
}

static void trim_entries(vv_library *l)
{
    for (entry *e = l->oldest, *newer; e && has_too_many(l); e = newer) {
        newer = e->newer;
        if (e->refs)
            continue;
        unlist(l, e);
        free_entry(l, e);
    }
    give_back(l, 1); /* what was forced upon the budget */
}

static entry *find_or_add(vv_library *l, const uint8_t key[32])
{
    entry **bucket = bucket_of(l, key);
    entry *e = *bucket;
    while (e && memcmp(e->key, key, sizeof e->key) != 0)
        e = e->next;
    if (e) {
        unlink_use(l, e);
    } else {
        e = calloc(1, sizeof *e);
        if (!e)
            return NULL;
        memcpy(e->key, key, sizeof e->key);
        e->listed = true;
        e->next = *bucket;
        *bucket = e;
        l->entries++;
    }
    link_newest(l, e);
    return e;
}

static void entry_unref(vv_library *l, entry *e)
{
    if (--e->refs == 0) {
        if (!e->listed)
            free_entry(l, e);
        else
            trim_entries(l);
    }
}

/*
 * The fold of an earlier look at the same execution that nobody uses, to go on with; NULL where there is none. What
 * was known of that look goes, or an execution that runs for days would leave a digest a second. Under the lock.
 */
static vv_fold *take_growing(vv_library *l, const vv_stream *stream, const vv_execution *execution)
{
    entry *e = *growing_of(l, &execution->root);
    if (!e || !e->profile || e->refs || e->loading || e->data_high > stream->data_high
        || memcmp(e->root.b, execution->root.b, sizeof e->root.b) != 0)
        return NULL;
    vv_fold *fold = e->profile->fold;
    e->profile->fold = NULL;
    unlist(l, e);
    free_entry(l, e);
    return fold;
}

static vv_code load_fold(vv_library *l, const vv_look *look, const vv_stream *stream, const vv_execution *execution,
                         vv_fold *former, vv_fold **ret, vv_error *err)
{
    if (!former)
        return vv_fold_load(ret, look->store, stream, execution, &l->budget, err);
    vv_code rc = vv_fold_advance(&former, look->store, stream, execution, err);
    if (rc == VV_OK)
        *ret = former;
    else
        vv_fold_free(former);
    return rc;
}

static vv_code load(vv_library *l, const vv_look *look, const vv_stream *stream, const vv_execution *execution,
                    vv_fold *former, vv_profile **ret_profile, vv_digest **ret_digest, vv_error *err)
{
    vv_fold *fold;
    vv_code rc = load_fold(l, look, stream, execution, former, &fold, err);
    if (rc != VV_OK)
        return rc;
    vv_profile *p;
    rc = vv_profile_new(&p, fold, l->tables, look->store, stream, execution, err);
    if (rc != VV_OK)
        return rc;
    rc = vv_digest_new(ret_digest, execution, p, err);
    if (rc != VV_OK) {
        vv_profile_free(p);
        return rc;
    }
    p->fold->execution = NULL; /* the look may go before the profile does */
    *ret_profile = p;
    return VV_OK;
}

static vv_index *index_of(const vv_look *look)
{
    return ((const look_entry *)look)->place->index;
}

/* The digest as the index has it under that key; NULL where it has none. */
static vv_digest *recall_digest(vv_index *index, const vv_execution *execution, const uint8_t key[32])
{
    vv_blob b = {0};
    vv_digest *d = NULL;
    if (!vv_index_summary(index, &execution->root, key, &b))
        return NULL;
    if (vv_digest_get(&d, b.p, b.n, NULL) != VV_OK)
        d = NULL;
    vv_blob_done(&b);
    return d;
}

static void keep_digest(vv_index *index, const vv_execution *execution, const uint8_t key[32], const vv_profile *p,
                        const vv_digest *d)
{
    if (!vv_digest_is_lasting(execution, p))
        return;
    vv_wr w = vv_wr_growing(VV_SUMMARY_MAX);
    vv_digest_put(&w, d);
    if (vv_wr_ok(&w))
        vv_index_keep_summary(index, &execution->root, key, w.buf, w.len);
    vv_wr_done(&w);
}

/*
 * The digest alone from the index, else profile and digest. Takes former, which may go on; it is freed where it is not
 * needed.
 */
static vv_code obtain(vv_library *l, const vv_look *look, const vv_stream *stream, const vv_execution *execution,
                      const uint8_t signature[32], bool want_profile, vv_fold *former, vv_profile **ret_profile,
                      vv_digest **ret_digest, vv_error *err)
{
    vv_index *index = execution->status == VV_EXEC_RUNNING ? NULL : index_of(look);
    uint8_t key[32];
    if (index)
        vv_digest_key(key, signature, look->store, stream, execution);
    if (index && !want_profile && (*ret_digest = recall_digest(index, execution, key)) != NULL) {
        vv_fold_free(former);
        return VV_OK;
    }
    vv_code rc = load(l, look, stream, execution, former, ret_profile, ret_digest, err);
    if (rc == VV_OK && index)
        keep_digest(index, execution, key, *ret_profile, *ret_digest);
    return rc;
}

/* An entry with a digest, and a profile where one is asked for; one reference is the caller's. Under the lock. */
static vv_code acquire(vv_library *l, const vv_look *look, const vv_stream *stream, const vv_execution *execution,
                       bool want_profile, entry **ret, vv_error *err)
{
    uint8_t key[32];
    signature(key, stream, execution);
    entry *e = find_or_add(l, key);
    if (!e)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for an execution");
    e->refs++;
    uint64_t from = now_ns();
    while (e->loading)
        pthread_cond_wait(&l->loaded, &l->lock);
    load_ns += now_ns() - from;
    if (e->digest && (e->profile || !want_profile)) {
        *ret = e;
        return VV_OK;
    }
    e->loading = true;
    e->root = execution->root;
    e->data_high = stream->data_high;
    vv_fold *former = take_growing(l, stream, execution);
    pthread_mutex_unlock(&l->lock);
    vv_profile *profile = NULL;
    vv_digest *digest = NULL;
    from = now_ns();
    vv_code rc = obtain(l, look, stream, execution, key, want_profile, former, &profile, &digest, err);
    load_ns += now_ns() - from;
    pthread_mutex_lock(&l->lock);
    e->loading = false;
    pthread_cond_broadcast(&l->loaded);
    if (rc != VV_OK) {
        if (e->listed && !e->digest)
            unlist(l, e);
        entry_unref(l, e);
        return rc;
    }
    if (profile) {
        profile->holder = e;
        e->profile = profile;
        if (!execution->has_end)
            *growing_of(l, &e->root) = e;
    }
    if (e->digest) {
        vv_digest_free(digest);
    } else {
        digest->holder = e;
        e->digest = digest;
        l->digest_bytes += vv_digest_bytes(digest);
        vv_budget_force(&l->budget, vv_digest_bytes(digest));
    }
    trim_entries(l);
    *ret = e;
    return VV_OK;
}

vv_code vv_library_profile(vv_library *l, const vv_look *look, const vv_stream *stream, const vv_execution *execution,
                           const vv_profile **ret, vv_error *err)
{
    entry *e;
    pthread_mutex_lock(&l->lock);
    vv_code rc = acquire(l, look, stream, execution, true, &e, err);
    if (rc == VV_OK)
        *ret = e->profile;
    pthread_mutex_unlock(&l->lock);
    return rc;
}

vv_code vv_library_digest(vv_library *l, const vv_look *look, const vv_stream *stream, const vv_execution *execution,
                          const vv_digest **ret, vv_error *err)
{
    entry *e;
    pthread_mutex_lock(&l->lock);
    vv_code rc = acquire(l, look, stream, execution, false, &e, err);
    if (rc == VV_OK)
        *ret = e->digest;
    pthread_mutex_unlock(&l->lock);
    return rc;
}

static void release(vv_library *l, void *holder)
{
    pthread_mutex_lock(&l->lock);
    entry_unref(l, holder);
    pthread_mutex_unlock(&l->lock);
}

void vv_profile_release(vv_library *l, const vv_profile *p)
{
    if (p)
        release(l, p->holder);
}

void vv_digest_release(vv_library *l, const vv_digest *d)
{
    if (d)
        release(l, d->holder);
}

void vv_library_close(vv_library *l)
{
    if (!l)
        return;
    while (l->oldest) {
        entry *e = l->oldest;
        unlist(l, e);
        free_entry(l, e);
    }
    vv_watch_free(l->watch);
    forget_looks(l, 0);
    vv_place_close(vv_place_unref(l->place));
    vv_tables_free(l->tables);
    pthread_cond_destroy(&l->loaded);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->refresh);
    if (l->has_index)
        free((char *)l->index.path);
    vv_sums_free(l->sums);
    free(l->arg);
    free(l);
}

vv_sums *vv_library_sums(vv_library *l)
{
    return l->sums;
}

uint64_t vv_library_load_ns(bool reset)
{
    uint64_t ns = load_ns;
    if (reset)
        load_ns = 0;
    return ns;
}
