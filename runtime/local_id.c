#include "config.h"

#include "runtime/varve.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "format/ids.h"

/* The state: two bits a role, as varve_switch has them, and whether it is consumed. One word, so that a consumer gets
 * either all or nothing of what another thread says at that moment. */
enum { SWITCH_BITS = 2, SWITCH_MASK = 3, ROLES = 3, CONSUMED = 1 << (SWITCH_BITS * ROLES) };

struct varve_local_id {
    _Atomic uint32_t references, state;
    vv_runtime_id id;
    char text[VV_RUNTIME_TEXT];
};

varve_local_id *varve_local_id_new(void)
{
    varve_local_id *id = calloc(1, sizeof *id);
    if (!id)
        return NULL;
    if (!vv_random(id->id.b, sizeof id->id.b)) {
        free(id);
        return NULL;
    }
    vv_runtime_text(id->text, &id->id);
    atomic_store_explicit(&id->references, 1, memory_order_relaxed);
    return id;
}

varve_local_id *varve_local_id_ref(varve_local_id *id)
{
    if (id)
        atomic_fetch_add_explicit(&id->references, 1, memory_order_relaxed);
    return id;
}

void varve_local_id_unref(varve_local_id *id)
{
    if (id && atomic_fetch_sub_explicit(&id->references, 1, memory_order_acq_rel) == 1)
        free(id);
}

const uint8_t *varve_local_id_bytes(const varve_local_id *id)
{
    return id ? id->id.b : NULL;
}

const char *varve_local_id_text(const varve_local_id *id)
{
    return id ? id->text : NULL;
}

static uint32_t with_switch(uint32_t state, unsigned role, varve_switch how)
{
    unsigned shift = role * SWITCH_BITS;
    if (how != VARVE_SWITCH_ON && how != VARVE_SWITCH_OFF)
        return state;
    return (state & ~((uint32_t)SWITCH_MASK << shift)) | (uint32_t)how << shift;
}

static varve_switch switch_of(uint32_t state, unsigned role)
{
    return (varve_switch)(state >> (role * SWITCH_BITS) & SWITCH_MASK);
}

bool varve_local_id_capture(varve_local_id *id, varve_switch input, varve_switch output, varve_switch error)
{
    if (!id)
        return false;
    uint32_t old = atomic_load_explicit(&id->state, memory_order_relaxed), state;
    do {
        if (old & CONSUMED)
            return false;
        state = with_switch(with_switch(with_switch(old, 0, input), 1, output), 2, error);
    } while (!atomic_compare_exchange_weak_explicit(&id->state, &old, state, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

bool varve_local_id_consume(varve_local_id *id, varve_policy *ret)
{
    if (!id)
        return false;
    uint32_t old = atomic_fetch_or_explicit(&id->state, CONSUMED, memory_order_relaxed);
    if (old & CONSUMED)
        return false;
    ret->manual = true;
    memcpy(ret->runtime_id, id->id.b, sizeof ret->runtime_id);
    ret->input = switch_of(old, 0);
    ret->output = switch_of(old, 1);
    ret->error = switch_of(old, 2);
    return true;
}

_Static_assert(VV_RUNTIME_TEXT == 33, "varve.h tells hosts how much room a runtime id's text takes");

bool varve_runtime_id_parse(const char *text, size_t n, uint8_t ret[16])
{
    vv_runtime_id id;
    if (!text || vv_runtime_parse((vv_str){text, n}, &id, NULL) != VV_OK)
        return false;
    memcpy(ret, id.b, sizeof id.b);
    return true;
}

void varve_runtime_id_text(const uint8_t id[16], char ret[33])
{
    vv_runtime_id r;
    memcpy(r.b, id, sizeof r.b);
    vv_runtime_text(ret, &r);
}
