#include "config.h"

#include "views/delta.h"

#include "base/text.h"

void vv_delta_json(vv_json *j, vv_u128 base, vv_u128 head)
{
    const vv_u128 limit = (vv_u128)1 << 127;
    if (head >= base) {
        vv_json_u128(j, head - base);
    } else if (base - head < limit) {
        vv_json_i128(j, -(__int128)(base - head));
    } else {
        char text[44] = "-";
        vv_u128_text(text + 1, base - head);
        vv_json_cstr(j, text);
    }
}

/* Offsets of both make them unsigned without changing how far apart they are. */
void vv_delta_signed_json(vv_json *j, __int128 base, __int128 head)
{
    const vv_u128 middle = (vv_u128)1 << 127;
    vv_delta_json(j, (vv_u128)base + middle, (vv_u128)head + middle);
}

void vv_delta_ratio_json(vv_json *j, bool known, vv_u128 base, vv_u128 head, vv_u128 whole)
{
    if (!known || !whole) {
        vv_json_null(j);
        return;
    }
    double part = head >= base ? (double)(head - base) : -(double)(base - head);
    vv_json_ratio(j, part / (double)whole);
}

const char *vv_delta_state_word(vv_delta_state s)
{
    static const char *const words[] = {NULL, "both", "new", "gone"};
    return words[s];
}
