/*
 * An encoded value on its way from the thread that captured it to its publication. Its bytes are charged to Values in
 * the pool it says. Owned by whoever holds it; moving it is copying the struct and forgetting the old one.
 */
#pragma once

#include "runtime/governor.h"

typedef struct vv_body {
    uint8_t *bytes; /* of vv_gov_alloc or vv_gov_grow, owner VV_OWN_VALUES */
    size_t len, cap;
    vv_pool pool;
} vv_body;

/* Gives back its bytes and their charge, and leaves an empty one (which is fine here too). */
void vv_body_free(vv_governor *g, vv_body *b);
