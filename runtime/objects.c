#include "config.h"

#include "runtime/objects.h"

#include <string.h>

#include "format/cas.h"
#include "format/evidence.h"
#include "runtime/clock.h"

struct vv_object {
    vv_object *next, *chain;
    vv_cid cid;
    vv_body body;
};

void vv_objects_init(vv_objects *o, vv_governor *g)
{
    uint8_t seed[16];
    vv_uuid4_new(seed);
    *o = (vv_objects){.governor = g, .slot_count = VV_OBJECTS_FEW, .seed = vv_be64(seed) | 1,
                      .most = VV_OBJECTS_AT_FIRST};
    o->last_next = &o->first;
    o->slots = o->few;
}

/* Who is captured chooses the value, and so the hash, but not where it goes. */
static vv_object **slot_of(const vv_objects *o, const vv_cid *cid)
{
    return &o->slots[(vv_be64(cid->b) * o->seed >> 32) & (o->slot_count - 1)];
}

static void free_object(vv_objects *o, vv_object *e)
{
    vv_pool pool = e->body.pool;
    vv_body_free(o->governor, &e->body);
    vv_gov_free(o->governor, pool, VV_OWN_VALUES, e, sizeof *e);
}

/* Back to the few slots, which are empty then. */
static void free_slots(vv_objects *o)
{
    if (o->slots != o->few)
        vv_gov_free(o->governor, VV_POOL_GENERAL, VV_OWN_VALUES, o->slots, o->slot_count * sizeof(vv_object *));
    memset(o->few, 0, sizeof o->few);
    o->slots = o->few;
    o->slot_count = VV_OBJECTS_FEW;
}

void vv_objects_done(vv_objects *o)
{
    for (vv_object *e = o->first, *next; e; e = next) {
        next = e->next;
        free_object(o, e);
    }
    free_slots(o);
    vv_objects_init(o, o->governor);
}

/* More slots, at a power of two of entries. Without memory the chains get longer. */
static void grow(vv_objects *o)
{
    if (o->count < o->slot_count || o->count & (o->count - 1))
        return;
    size_t n = (size_t)o->count * 2;
    vv_object **slots = vv_gov_alloc(o->governor, VV_POOL_GENERAL, VV_OWN_VALUES, n * sizeof(vv_object *));
    if (!slots)
        return;
    free_slots(o);
    o->slots = slots;
    o->slot_count = n;
    for (vv_object *e = o->first; e; e = e->next) {
        vv_object **slot = slot_of(o, &e->cid);
        e->chain = *slot;
        *slot = e;
    }
}

bool vv_objects_put(vv_objects *o, vv_body *body, vv_cid *ret_cid)
{
    vv_cid_of(ret_cid, VV_CODEC_VALUE, body->bytes, body->len);
    for (const vv_object *e = *slot_of(o, ret_cid); e; e = e->chain)
        if (memcmp(&e->cid, ret_cid, sizeof e->cid) == 0) {
            vv_body_free(o->governor, body);
            return true;
        }
    vv_object *e = vv_gov_alloc(o->governor, body->pool, VV_OWN_VALUES, sizeof *e);
    if (!e) {
        vv_body_free(o->governor, body);
        return false;
    }
    grow(o);
    vv_object **slot = slot_of(o, ret_cid);
    *e = (vv_object){.chain = *slot, .cid = *ret_cid, .body = *body};
    *slot = e;
    *o->last_next = e;
    o->last_next = &e->next;
    o->count++;
    o->bytes += e->body.len;
    *body = (vv_body){.pool = body->pool};
    return true;
}

uint64_t vv_objects_bytes(const vv_objects *o)
{
    return o->bytes;
}

/* Takes one out of the index, and frees it. */
static void drop(vv_objects *o, vv_object *e)
{
    vv_object **at = slot_of(o, &e->cid);
    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
    o->count--;
    o->bytes -= e->body.len;
    free_object(o, e);
}

static bool is_too_late(const vv_objects *o)
{
    uint64_t until = atomic_load_explicit(&o->until_ns, memory_order_relaxed);
    return until && vv_clock_monotonic_ns() >= until;
}

static bool is_full(const vv_objects *o)
{
    return atomic_load_explicit(&o->count, memory_order_relaxed) >=
           atomic_load_explicit(&o->most, memory_order_relaxed);
}

/* So many were settled in so long, waits for the lock aside: how many may wait from now on. */
static void note_speed(vv_objects *o, uint64_t ns, size_t n)
{
    if (!n)
        return;
    uint64_t each = ns / n + 1;
    o->each_ns = o->each_ns ? (3 * o->each_ns + each) / 4 : each;
    uint64_t most = VV_OBJECTS_NS / o->each_ns;
    atomic_store_explicit(&o->most, most > VV_OBJECTS_LEAST ? most : VV_OBJECTS_LEAST, memory_order_relaxed);
}

/* A clock that stands while objects wait for the lock: others' doings are no reason to take fewer values. */
static uint64_t busy_ns(const vv_wstore *s)
{
    return vv_clock_monotonic_ns() - vv_wstore_waited_ns(s);
}

int vv_objects_refused(const vv_objects *o, const vv_wstore *s)
{
    vv_latch latch = vv_wstore_latch(s);
    if (latch == VV_LATCH_OPEN)
        return is_too_late(o) || is_full(o) ? VV_VALUE_LOST_CAS_WRITE : -1;
    return latch == VV_LATCH_DISK ? VV_VALUE_LOST_DISK : VV_VALUE_LOST_UNAVAILABLE;
}

/* The code of a value's loss, of why the store did not take it. */
static vv_value_loss loss_of(const vv_wstore *s, vv_latch why)
{
    if (why == VV_LATCH_DISK)
        return VV_VALUE_LOST_DISK;
    if (why == VV_LATCH_CONFLICT)
        return VV_VALUE_LOST_CAS_CONFLICT;
    return vv_wstore_latch(s) == VV_LATCH_UNAVAILABLE ? VV_VALUE_LOST_UNAVAILABLE : VV_VALUE_LOST_CAS_WRITE;
}

/* Of the first n: those that are settled leave. Returns how many. */
static size_t settle_first(vv_objects *o, const vv_wstore *s, const vv_published *out, size_t n,
                           void (*lost)(void *ctx, const vv_cid *cid, unsigned code), void *ctx)
{
    size_t settled = 0;
    vv_object **at = &o->first;
    for (size_t i = 0; i < n; i++) {
        vv_object *e = *at;
        if (out[i].outcome == VV_BLOCKED || out[i].outcome == VV_INDETERMINATE) {
            at = &e->next;
            continue;
        }
        if (out[i].outcome == VV_LOST)
            lost(ctx, &e->cid, loss_of(s, out[i].reason));
        *at = e->next;
        drop(o, e);
        settled++;
    }
    if (!*at)
        o->last_next = at;
    return settled;
}

static void lose_all(vv_objects *o, void (*lost)(void *ctx, const vv_cid *cid, unsigned code), void *ctx)
{
    for (vv_object *e = o->first, *next; e; e = next) {
        next = e->next;
        lost(ctx, &e->cid, VV_VALUE_LOST_CAS_WRITE);
        free_object(o, e);
    }
    o->first = NULL;
    o->last_next = &o->first;
    o->count = 0;
    o->bytes = 0;
}

bool vv_objects_publish(vv_objects *o, vv_wstore *s, void (*lost)(void *ctx, const vv_cid *cid, unsigned code),
                        void *ctx)
{
    enum { AT_A_TIME = VV_OBJECTS_IN_A_HOLD, AT_A_TIME_TO_THE_END = 8 };
    while (o->first) {
        if (is_too_late(o)) {
            lose_all(o, lost, ctx);
            break;
        }
        size_t most = atomic_load_explicit(&o->until_ns, memory_order_relaxed) ? AT_A_TIME_TO_THE_END : AT_A_TIME;
        vv_wstore_object objects[AT_A_TIME];
        vv_published out[AT_A_TIME];
        size_t n = 0;
        for (const vv_object *e = o->first; e && n < most; e = e->next)
            objects[n++] = (vv_wstore_object){e->cid, VV_CODEC_VALUE, e->body.bytes, e->body.len};
        uint64_t before = busy_ns(s);
        bool going = vv_wstore_publish_objects(s, objects, n, out);
        uint64_t spent = busy_ns(s) - before;
        note_speed(o, spent, settle_first(o, s, out, n, lost, ctx));
        if (!going)
            return false;
    }
    free_slots(o);
    return true;
}
