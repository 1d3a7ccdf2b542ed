/*
 * The captured values that wait for their publication as content-addressed objects, in the order of their coming. A
 * body that is equal to a waiting one is freed at once. Published once a cycle, before the data segments that refer to
 * them.
 *
 * Owned by the consumer thread, and not to be moved. A body carries its own charge; an entry is charged to Values in
 * its body's pool, the index, where it grows, in General.
 */
#pragma once

#include <stdatomic.h>

#include "runtime/body.h"
#include "runtime/store.h"

enum { VV_OBJECTS_FEW = 64, VV_OBJECTS_LEAST = 64, VV_OBJECTS_AT_FIRST = 4096 };
/* How long a cycle may be busy with values: the rings are not read meanwhile, and nothing else is published. */
enum { VV_OBJECTS_NS = 2000000000 };

typedef struct vv_object vv_object;

typedef struct {
    vv_governor *governor;
    vv_object *first, **last_next;  /* in order */
    vv_object **slots;              /* few, or a larger block */
    vv_object *few[VV_OBJECTS_FEW];
    size_t slot_count;              /* a power of two */
    uint64_t seed;
    _Atomic uint64_t count;         /* any thread reads it */
    uint64_t bytes;
    uint64_t each_ns;               /* what one took of late; 0: none yet */
    _Atomic uint64_t most;          /* so many may wait: what a cycle publishes in VV_OBJECTS_NS. Any thread */
    _Atomic uint64_t until_ns;      /* monotonic: what waits then is lost, as CasWriteFailed; 0: never. Any thread */
} vv_objects;

void vv_objects_init(vv_objects *o, vv_governor *g);
/* Frees what still waits. */
void vv_objects_done(vv_objects *o);

/*
 * Takes the body, hashes it (codec 1) and keeps it, if none equal waits. False: no memory for the entry
 * (ValueMemoryExceeded), and the body is freed. *ret_cid is set in any case.
 */
VV_MUST_CHECK bool vv_objects_put(vv_objects *o, vv_body *body, vv_cid *ret_cid);

/* -1; or the code of the loss of any value, which is then not even copied or hashed: the store takes nothing any more,
 * there is no time left, or as many wait as can be published in time. Any thread. */
int vv_objects_refused(const vv_objects *o, const vv_wstore *s);

/* Of the bodies that wait: for whether a cycle is due. */
uint64_t vv_objects_bytes(const vv_objects *o);

/*
 * Publishes all that wait. Those that are committed or were there are freed, and so are those that are lost, each after
 * lost(ctx, cid, code) with its vv_value_loss: CAS_WRITE (also of what is too late), CAS_CONFLICT, DISK, UNAVAILABLE
 * (the store takes nothing any more). lost must not put. False: the store is blocked or indeterminate; the rest waits
 * for the next time, and with it the one whose outcome is unknown: once that is resolved, it is found to be there.
 */
VV_MUST_CHECK bool vv_objects_publish(vv_objects *o, vv_wstore *s,
                                      void (*lost)(void *ctx, const vv_cid *cid, unsigned code), void *ctx);
