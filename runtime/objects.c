#include "config.h"

#include "runtime/objects.h"

#include <string.h>

#include "format/cas.h"

struct vv_object {
    vv_object *next, *chain;
    vv_cid cid;
    vv_body body;
};

void vv_objects_init(vv_objects *o, vv_governor *g)
{
    uint8_t seed[16];
    vv_uuid4_new(seed);
    *o = (vv_objects){.governor = g, .slot_count = VV_OBJECTS_FEW, .seed = vv_be64(seed) | 1};
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

static void free_slots(vv_objects *o)
{
    if (o->slots != o->few)
        vv_gov_free(o->governor, VV_POOL_GENERAL, VV_OWN_VALUES, o->slots, o->slot_count * sizeof(vv_object *));
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
            o->equal++;
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

/* Takes the first one out. */
static void drop_first(vv_objects *o)
{
    vv_object *e = o->first, **at = slot_of(o, &e->cid);
    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
    o->first = e->next;
    if (!o->first)
        o->last_next = &o->first;
    o->count--;
    o->bytes -= e->body.len;
    free_object(o, e);
}

/* The code of a value's loss, of why the store did not take it. */
static unsigned loss_of(const vv_wstore *s, vv_latch why)
{
    enum { CAS_WRITE_FAILED = 6, CAS_CONFLICT = 7, DISK_GUARD_EXCEEDED = 8, STORE_UNAVAILABLE = 10 };
    if (why == VV_LATCH_DISK)
        return DISK_GUARD_EXCEEDED;
    if (why == VV_LATCH_CONFLICT)
        return CAS_CONFLICT;
    return vv_wstore_latch(s) == VV_LATCH_UNAVAILABLE ? STORE_UNAVAILABLE : CAS_WRITE_FAILED;
}

static vv_published publish_one(vv_wstore *s, const vv_object *e)
{
    vv_wr w = vv_wr_growing(e->body.len + VV_CAS_FIXED);
    vv_cas_encode(&w, VV_CODEC_VALUE, e->body.bytes, e->body.len);
    vv_published out = {VV_LOST, VV_LATCH_UNAVAILABLE, 0};
    if (vv_wr_ok(&w))
        out = vv_wstore_publish_object(s, &e->cid, w.buf, w.len);
    vv_wr_done(&w);
    return out;
}

bool vv_objects_publish(vv_objects *o, vv_wstore *s, void (*lost)(void *ctx, const vv_cid *cid, unsigned code),
                        void *ctx)
{
    while (o->first) {
        vv_published out = publish_one(s, o->first);
        if (out.outcome == VV_BLOCKED || out.outcome == VV_INDETERMINATE)
            return false;
        if (out.outcome == VV_LOST)
            lost(ctx, &o->first->cid, loss_of(s, out.reason));
        drop_first(o);
    }
    free_slots(o);
    return true;
}
