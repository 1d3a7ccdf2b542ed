#include "config.h"

#include "views/library.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "base/text.h"
#include "reader/watch.h"
#include "views/place.h"
#include "views/shelf.h"

enum {
    LOOKS = 1024,              /* former looks that as_of may name */
    LOOK_BYTES = 32 << 20,     /* memory of all former looks together */
    ORDERS = 2,                /* looks whose executions are kept in order */
    PLACE_TRIES = 8,           /* of a store that is made, or replaced, while it is opened */
};

typedef struct {
    vv_look pub; /* first, so that a vv_look is its entry */
    vv_store *store;
    vv_place *place;
    unsigned refs; /* the library's own included */
    vv_order *order; /* or NULL */
    size_t bytes;  /* of a former one: that it holds and the look after it does not */
} look_entry;

struct vv_library {
    char *arg; /* NULL: the resolver's */
    bool has_index;
    vv_index_options index;
    vv_shelf *shelf;
    uint64_t poll_ns;
    pthread_mutex_t refresh; /* held while looking at the source; taken before lock */
    vv_watch *watch;         /* or NULL; under refresh */
    vv_library_notice *notice;
    void *notice_state;
    uint64_t turns, noticed;   /* changes of the present look, and how many were told; under refresh */
    _Atomic uint64_t due_ns;
    pthread_mutex_t lock;    /* guards all below */
    vv_place *place;
    look_entry *present;
    uint64_t looked_ns;
    look_entry *former[LOOKS]; /* newest first, the present one included */
    unsigned former_count;
    look_entry *ordered[ORDERS]; /* who have an order, the newest first; or NULL */
    vv_sums *sums;
};

vv_code vv_library_open(vv_library **ret, const char *arg, size_t max_bytes, uint64_t poll_ns, vv_error *err)
{
    vv_library *l = calloc(1, sizeof *l);
    if (l) {
        l->shelf = vv_shelf_new(max_bytes);
        l->sums = vv_sums_new();
        l->arg = arg ? strdup(arg) : NULL;
    }
    if (!l || !l->shelf || !l->sums || (arg && !l->arg)) {
        if (l) {
            vv_shelf_free(l->shelf);
            vv_sums_free(l->sums);
            free(l->arg);
        }
        free(l);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a store");
    }
    l->poll_ns = poll_ns;
    atomic_store(&l->due_ns, UINT64_MAX);
    pthread_mutex_init(&l->refresh, NULL);
    pthread_mutex_init(&l->lock, NULL);
    *ret = l;
    return VV_OK;
}

vv_budget *vv_library_budget(vv_library *l)
{
    return vv_shelf_budget(l->shelf);
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

static void drop_order(vv_library *l, unsigned at)
{
    vv_order_unref(l->ordered[at]->order);
    l->ordered[at]->order = NULL;
    memmove(l->ordered + at, l->ordered + at + 1, (ORDERS - 1 - at) * sizeof(look_entry *));
    l->ordered[ORDERS - 1] = NULL;
}

static void keep_order(vv_library *l, look_entry *e, vv_order *order)
{
    if (l->ordered[ORDERS - 1])
        drop_order(l, ORDERS - 1);
    memmove(l->ordered + 1, l->ordered, (ORDERS - 1) * sizeof(look_entry *));
    l->ordered[0] = e;
    e->order = order;
}

/* Gives the place to close, where that was its last user. */
static vv_place *look_unref(vv_library *l, look_entry *e)
{
    if (!e || --e->refs)
        return NULL;
    for (unsigned i = 0; e->order && i < ORDERS; i++)
        if (l->ordered[i] == e)
            drop_order(l, i);
    vv_store_free(e->store);
    vv_place *last = vv_place_unref(e->place);
    free(e);
    return last;
}

static void forget_looks(vv_library *l, unsigned keep)
{
    while (l->former_count > keep)
        vv_place_close(look_unref(l, l->former[--l->former_count])); /* not closed: the library is a user */
    if (keep == 0 && l->present) {
        l->present = NULL;
        l->turns++;
    }
}

/* Keeps the newest looks while they are few, and small beside the one that comes. */
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

/* bytes: what the present look holds and the new one does not. */
static void push_look(vv_library *l, look_entry *e, size_t bytes)
{
    if (l->present)
        l->present->bytes = bytes;
    trim_looks(l);
    memmove(l->former + 1, l->former, l->former_count * sizeof *l->former);
    l->former[0] = e;
    l->former_count++;
    l->present = e;
    l->turns++;
}

/* The same state, as far as anybody can see: of what is new (terms of an end to come) later looks must not lose it. */
static void renew_look(vv_library *l, look_entry *e)
{
    vv_place_close(look_unref(l, l->present)); /* not closed: the library is a user */
    l->former[0] = e;
    l->present = e;
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
        *ret_again = rc == VV_ERR_NOTFOUND && l->watch && vv_watch_place(l->watch, path, vv_now_ns());
        return rc;
    }
    if (l->watch)
        vv_watch_store(l->watch, p->source, vv_now_ns());
    pthread_mutex_lock(&l->lock);
    l->place = p;
    pthread_mutex_unlock(&l->lock);
    *ret_again = true;
    return VV_OK;
}

/*
 * Sets *ret_entered where the place is another one. Under refresh only: the source may be slow, and holders of looks
 * need the lock.
 */
static vv_code open_place(vv_library *l, bool check, bool *ret_entered, vv_error *err)
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
        *ret_entered |= rc == VV_OK;
        check = true;
    }
    return vv_fail(err, VV_ERR_NOTFOUND, "the store comes and goes");
}

static vv_code keep_look(vv_library *l, vv_store *store, bool renews, vv_error *err)
{
    look_entry *e = calloc(1, sizeof *e);
    if (!e) {
        vv_store_free(store);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a look at the store");
    }
    e->store = store;
    e->pub.store = store;
    vv_hex(e->pub.generation, store->generation, sizeof store->generation);
    e->refs = 1;
    size_t bytes = l->present ? sizeof *e + vv_store_bytes(l->present->store, store) : 0;
    pthread_mutex_lock(&l->lock);
    e->place = l->place;
    e->place->refs++;
    if (renews)
        renew_look(l, e);
    else
        push_look(l, e, bytes);
    pthread_mutex_unlock(&l->lock);
    return VV_OK;
}

/* The place and all streams in it, as they are now. */
static vv_code look_at_store(vv_library *l, vv_store **ret, vv_error *err)
{
    vv_changes changes = {.all = true, .place = true};
    if (l->watch)
        vv_watch_take(l->watch, &changes, vv_now_ns());
    bool entered = false;
    vv_code rc = open_place(l, changes.place, &entered, err);
    if (rc == VV_OK && l->watch && entered)
        vv_watch_take(l->watch, &changes, vv_now_ns());
    if (rc != VV_OK)
        return rc;
    if (!l->present)
        return vv_store_open(ret, l->place->source, NULL, err);
    return vv_store_update(ret, l->present->store, &changes, err);
}

static vv_code take_look(vv_library *l, vv_error *err)
{
    vv_store *store = NULL;
    uint64_t began = vv_now_ns();
    vv_code rc = look_at_store(l, &store, err);
    if (rc == VV_OK) {
        vv_place_retain(l->place, store);
        if (l->watch)
            vv_watch_looked(l->watch, store, began, vv_now_ns());
        const vv_store *p = l->present ? l->present->store : NULL;
        bool renews = p && memcmp(p->generation, store->generation, sizeof store->generation) == 0;
        if (renews && vv_store_shares_all(p, store))
            vv_store_free(store);
        else
            rc = keep_look(l, store, renews, err);
    }
    if (l->watch && rc != VV_OK && rc != VV_ERR_NOTFOUND)
        vv_watch_looked(l->watch, NULL, began, vv_now_ns());
    l->looked_ns = vv_now_ns();
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
    uint64_t now = vv_now_ns();
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
    vv_place *last = look_unref(l, (look_entry *)look);
    pthread_mutex_unlock(&l->lock);
    vv_place_close(last);
}

vv_code vv_library_order(vv_library *l, const vv_look *look, const vv_order **ret, vv_error *err)
{
    look_entry *e = (look_entry *)look;
    pthread_mutex_lock(&l->lock);
    vv_order *o = e->order ? vv_order_ref(e->order) : NULL;
    pthread_mutex_unlock(&l->lock);
    vv_code rc = o ? VV_OK : vv_order_make(&o, look->store, err);
    if (rc != VV_OK)
        return rc;
    pthread_mutex_lock(&l->lock);
    if (!e->order)
        keep_order(l, e, vv_order_ref(o));
    pthread_mutex_unlock(&l->lock);
    *ret = o;
    return VV_OK;
}

static vv_shelf_item item_of(const vv_look *look, const vv_stream *stream, const vv_execution *execution)
{
    return (vv_shelf_item){look->store, ((const look_entry *)look)->place->index, stream, execution};
}

vv_code vv_library_profile(vv_library *l, const vv_look *look, const vv_stream *stream, const vv_execution *execution,
                           const vv_profile **ret, vv_error *err)
{
    const vv_shelf_item x = item_of(look, stream, execution);
    return vv_shelf_profile(l->shelf, &x, ret, err);
}

vv_code vv_library_digest(vv_library *l, const vv_look *look, const vv_stream *stream, const vv_execution *execution,
                          const vv_digest **ret, vv_error *err)
{
    const vv_shelf_item x = item_of(look, stream, execution);
    return vv_shelf_digest(l->shelf, &x, ret, err);
}

void vv_profile_release(vv_library *l, const vv_profile *p)
{
    if (p)
        vv_shelf_release(l->shelf, p->holder);
}

void vv_digest_release(vv_library *l, const vv_digest *d)
{
    if (d)
        vv_shelf_release(l->shelf, d->holder);
}

void vv_library_close(vv_library *l)
{
    if (!l)
        return;
    vv_shelf_free(l->shelf);
    vv_watch_free(l->watch);
    forget_looks(l, 0);
    vv_place_close(vv_place_unref(l->place));
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
    return vv_shelf_load_ns(reset);
}
