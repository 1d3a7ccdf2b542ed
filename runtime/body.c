#include "config.h"

#include "runtime/body.h"

void vv_body_free(vv_governor *g, vv_body *b)
{
    vv_gov_free(g, b->pool, VV_OWN_VALUES, b->bytes, b->cap);
    *b = (vv_body){.pool = b->pool};
}
