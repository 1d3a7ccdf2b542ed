#include "config.h"

#include "reader/extent.h"

#include <stdlib.h>

#include "base/grow.h"

/* Never a step for each number: a hostile name costs one range. */
vv_code vv_extent_of(vv_extent *ret, const vv_seg_list *l, vv_error *err)
{
    vv_extent x = {.high = 0};
    size_t cap = 0;
    uint64_t next = 1;
    for (size_t i = 0; i < l->count;) {
        vv_seg_run r = vv_seg_run_at(l, i);
        uint64_t last = r.state == VV_SEG_OK ? r.first - 1 : r.first;
        if (next <= last) {
            bool goes_on = x.bad_count && x.bad[x.bad_count - 1].last + 1 == next;
            if (!goes_on && !vv_grow(&x.bad, &cap, x.bad_count, sizeof *x.bad)) {
                free(x.bad);
                return vv_fail(err, VV_ERR_NOMEM, "no memory for the index of a stream");
            }
            if (goes_on)
                x.bad[x.bad_count - 1].last = last;
            else
                x.bad[x.bad_count++] = (vv_range){next, last};
        }
        next = r.first + r.count;
        i += r.count;
        x.high = next - 1;
    }
    x.contiguous = x.bad_count ? x.bad[0].first - 1 : x.high;
    *ret = x;
    return VV_OK;
}
