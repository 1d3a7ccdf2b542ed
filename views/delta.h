/* Two numbers side by side (docs/http-api.md): their difference in full, and what part of something it is. */
#pragma once

#include "base/json.h"

/* head - base, of any size: a number, or a decimal string. */
void vv_delta_json(vv_json *j, vv_u128 base, vv_u128 head);
void vv_delta_signed_json(vv_json *j, __int128 base, __int128 head);
/* (head - base) / whole, with at most six digits; null where whole is unknown or zero. */
void vv_delta_ratio_json(vv_json *j, bool known, vv_u128 base, vv_u128 head, vv_u128 whole);

/* "both" "new" "gone", or null where one may be missing only because its recording is not whole. */
typedef enum { VV_STATE_UNKNOWN, VV_STATE_BOTH, VV_STATE_NEW, VV_STATE_GONE } vv_delta_state;
const char *vv_delta_state_word(vv_delta_state s); /* NULL: unknown */
