#include "config.h"

#include "format/health.h"

#include <stddef.h>

_Static_assert(VV_HEALTH_COUNT * 8 == VV_HEALTH_BYTES, "26 counters of 8 bytes");

const char *vv_health_name(unsigned field)
{
    static const char *const names[VV_HEALTH_COUNT] = {
#define HEALTH_NAME(name) #name,
        VV_HEALTH_FIELDS(HEALTH_NAME)
#undef HEALTH_NAME
    };
    return field < VV_HEALTH_COUNT ? names[field] : NULL;
}

bool vv_health_is_loss(unsigned field)
{
    return field <= VV_H_value_attempt_transport_exceeded ||
           (field >= VV_H_error_capture_attempt_transport_exceeded &&
            field <= VV_H_error_capture_evidence_publish_failed) ||
           (field >= VV_H_terminal_error_link_transport_exceeded && field < VV_HEALTH_COUNT);
}

void vv_health_encode(vv_wr *w, const vv_health *h)
{
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        vv_wr_u64(w, h->v[i]);
}

void vv_health_decode(vv_rd *r, vv_health *ret)
{
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        ret->v[i] = vv_rd_u64(r);
}
