#include "config.h"

#include "views/order.h"

#include <stdlib.h>
#include <string.h>

int vv_found_newest_first(const void *a, const void *b)
{
    const vv_found *x = a, *y = b;
    if (x->has_time != y->has_time)
        return x->has_time ? -1 : 1;
    if (x->unix_ns != y->unix_ns)
        return x->unix_ns > y->unix_ns ? -1 : 1;
    return -memcmp(x->execution->root.b, y->execution->root.b, sizeof x->execution->root.b);
}

vv_found vv_found_of(const vv_stream *s, const vv_execution *x)
{
    vv_found f = {.stream = s, .execution = x};
    f.has_time = x->has_start && vv_stream_unix_ns(s, x->started_ns, &f.unix_ns);
    if (!f.has_time)
        f.unix_ns = 0;
    return f;
}

/* Executions are known in about the order in which they started, so that one stream's are often in order already. */
static void sort(vv_order *o)
{
    for (size_t i = 1; i < o->count; i++)
        if (vv_found_newest_first(&o->items[i - 1], &o->items[i]) > 0) {
            qsort(o->items, o->count, sizeof *o->items, vv_found_newest_first);
            return;
        }
}

vv_code vv_order_make(vv_order **ret, const vv_store *store, vv_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < store->stream_count; i++)
        n += store->streams[i].execution_count;
    vv_order *o = malloc(sizeof *o + n * sizeof *o->items);
    if (!o)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a list of %zu executions", n);
    *o = (vv_order){.refs = 1};
    for (size_t i = 0; i < store->stream_count; i++) {
        const vv_stream *s = &store->streams[i];
        for (size_t k = s->execution_count; k-- > 0;)
            o->items[o->count++] = vv_found_of(s, vv_stream_execution_at(s, k));
    }
    sort(o);
    *ret = o;
    return VV_OK;
}

vv_order *vv_order_ref(vv_order *o)
{
    __atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED);
    return o;
}

void vv_order_unref(const vv_order *o)
{
    if (o && __atomic_sub_fetch(&((vv_order *)o)->refs, 1, __ATOMIC_ACQ_REL) == 0)
        free((vv_order *)o);
}
