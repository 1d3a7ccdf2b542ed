#include "config.h"

#include "reader/meta_index.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/map.h"

/* As they were met. Looks share one, until another engine starts. */
struct vv_engine_list {
    unsigned refs; /* atomic */
    vv_engine *items;
    size_t count, cap;
    vv_map ids; /* a hostile stream may have many */
    struct {
        size_t first, newest;
    } *by_id;
    size_t by_id_cap;
};

vv_meta_index *vv_meta_index_new(void)
{
    vv_meta_index *x = calloc(1, sizeof *x);
    if (x)
        x->refs = 1;
    return x;
}

vv_meta_index *vv_meta_index_ref(vv_meta_index *x)
{
    __atomic_fetch_add(&x->refs, 1, __ATOMIC_RELAXED);
    return x;
}

static void engines_unref(struct vv_engine_list *l)
{
    if (!l || __atomic_sub_fetch(&l->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    free(l->items);
    vv_map_done(&l->ids);
    free(l->by_id);
    free(l);
}

void vv_meta_index_unref(vv_meta_index *x)
{
    if (!x || __atomic_sub_fetch(&x->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    vv_seg_list_done(&x->meta);
    vv_seg_list_done(&x->health);
    free(x->bad);
    engines_unref(x->engines);
    vv_executions_done(&x->executions);
    free(x->waiting);
    free(x);
}

static vv_code no_memory(vv_error *err)
{
    return vv_fail(err, VV_ERR_NOMEM, "no memory for the index of a stream");
}

/* An index that is being made. */
typedef struct {
    vv_stream *s;
    vv_meta_index *x;
    size_t *changed; /* executions, of an index that goes on from another one; some more than once */
    size_t changed_count, changed_cap, waiting_cap;
} indexer;

static vv_code add_engine(indexer *in, const vv_engine_started *m, vv_error *err)
{
    struct vv_engine_list *l = in->x->engines;
    bool is_new;
    if (!vv_grow(&l->items, &l->cap, l->count, sizeof *l->items)
        || !vv_grow(&l->by_id, &l->by_id_cap, l->ids.count, sizeof *l->by_id))
        return no_memory(err);
    uint32_t k = vv_map_put(&l->ids, &m->engine_id, &is_new);
    if (k == VV_MAP_NONE)
        return no_memory(err);
    if (is_new)
        l->by_id[k].first = l->count;
    l->by_id[k].newest = l->count;
    l->items[l->count++] = (vv_engine){
        .id = m->engine_id,
        .program = m->program,
        .has_table = m->has_table,
        .table = m->table,
        .revision = m->revision,
        .source = m->source,
    };
    return VV_OK;
}

static vv_code execution_to_change(indexer *in, const vv_thread_ref *root, vv_execution **ret, vv_error *err)
{
    size_t at;
    if (!vv_grow(&in->changed, &in->changed_cap, in->changed_count, sizeof *in->changed)
        || !(*ret = vv_executions_put(&in->x->executions, root, &at)))
        return no_memory(err);
    in->changed[in->changed_count++] = at;
    return VV_OK;
}

static vv_code add_root_started(indexer *in, const vv_root_started *m, const vv_meta_segment *seg, vv_error *err)
{
    vv_execution *e;
    vv_code rc = execution_to_change(in, &m->root, &e, err);
    if (rc != VV_OK)
        return rc;
    if (e->has_start)
        return vv_fail_decode(err, "MetaDuplicateRootStarted", 0, "a root starts twice");
    e->has_start = true;
    e->runtime_id = m->runtime_id;
    e->started_ns = m->started_ns;
    e->start_sequence = seg->sequence;
    e->start_high_water = seg->data_high_water;
    return VV_OK;
}

static vv_code add_root_ended(indexer *in, const vv_root_ended *m, const vv_meta_segment *seg, vv_error *err)
{
    vv_execution *e;
    vv_code rc = execution_to_change(in, &m->root, &e, err);
    if (rc != VV_OK)
        return rc;
    if (e->has_end)
        return vv_fail_decode(err, "MetaDuplicateRootEnded", 0, "a root ends twice");
    e->has_end = true;
    e->ended_ns = m->ended_ns;
    e->end_sequence = seg->sequence;
    e->status = m->status;
    e->flags = m->flags;
    e->first = m->first;
    e->last = m->last;
    e->count = m->count;
    e->health = m->health;
    return VV_OK;
}

static vv_code add_record(indexer *in, const vv_meta_record *m, const vv_meta_segment *seg, vv_error *err)
{
    switch (m->tag) {
    case VV_META_STREAM_STARTED:
        in->s->has_header = true;
        in->s->header = m->stream_started;
        return VV_OK;
    case VV_META_ENGINE_STARTED:
        return add_engine(in, &m->engine_started, err);
    case VV_META_ROOT_STARTED:
        return add_root_started(in, &m->root_started, seg, err);
    case VV_META_ROOT_ENDED:
        return add_root_ended(in, &m->root_ended, seg, err);
    }
    return VV_OK;
}

static vv_code fold_segment(indexer *in, const vv_seg *seg, vv_error *err)
{
    vv_meta_segment m;
    vv_meta_record record;
    bool more;
    vv_code rc = vv_meta_open(&m, seg->bytes.p, seg->bytes.n, &in->s->euid, seg->sequence, true, err);
    while (rc == VV_OK && (rc = vv_meta_next(&m, &record, &more, err)) == VV_OK && more)
        rc = add_record(in, &record, &m, err);
    return rc;
}

/* The segments from index `from` on. */
static vv_code fold_meta(indexer *in, size_t from, vv_error *err)
{
    vv_code rc = VV_OK;
    for (size_t i = from; i < in->x->meta.count && rc == VV_OK; i++) {
        vv_seg room;
        const vv_seg *seg = vv_seg_at(&in->x->meta, i, &room);
        if (seg->state == VV_SEG_UNREADABLE)
            return vv_fail_decode(err, "Io", 0, "meta segment %llu can't be read", (unsigned long long)seg->sequence);
        if (seg->state != VV_SEG_OK)
            continue;
        in->s->meta_decoded = seg->sequence;
        rc = fold_segment(in, seg, err);
    }
    return rc;
}

/* How far the plane reaches. */
static vv_code measure(vv_meta_index *x, vv_stream *s, vv_error *err)
{
    vv_extent e;
    vv_code rc = vv_extent_of(&e, &x->meta, err);
    if (rc != VV_OK)
        return rc;
    x->bad = s->meta_bad = s->meta_gaps = e.bad;
    x->bad_count = s->meta_bad_count = e.bad_count;
    s->meta_high = e.high;
    s->meta_contiguous = e.contiguous;
    if (e.high - x->meta.count > VV_MISSING_MAX)
        return vv_fail_decode(err, "RangeTooLarge", 0, "more than %d meta sequences without a file", VV_MISSING_MAX);
    return VV_OK;
}

/*
 * The gaps that index states go by, once the plane is folded: those of a live stream end at its highest decoded segment
 * (the tail may be torn).
 */
static void find_gaps(vv_stream *s)
{
    s->meta_gap_count = s->meta_bad_count;
    while (s->alive && s->meta_gap_count && s->meta_gaps[s->meta_gap_count - 1].first >= s->meta_decoded)
        s->meta_gap_count--;
}

/* Is some gap after sequence s, and before e where there is an end? */
static bool gap_between(const vv_stream *st, uint64_t s, bool has_end, uint64_t e)
{
    size_t lo = 0, hi = st->meta_gap_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (st->meta_gaps[mid].last <= s)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == st->meta_gap_count)
        return false;
    uint64_t first = st->meta_gaps[lo].first > s ? st->meta_gaps[lo].first : s + 1;
    return !has_end || first < e;
}

static vv_index_state index_state_of(const vv_stream *s, const vv_execution *e)
{
    bool start_lost = e->has_end && (e->flags & VV_ROOT_START_LOST);
    uint64_t from = e->has_start ? e->start_sequence : e->end_sequence;
    if (gap_between(s, from, e->has_end, e->end_sequence) || (e->has_end && !e->has_start && !start_lost))
        return VV_INDEX_CORRUPT;
    if (start_lost)
        return VV_INDEX_ROOT_STARTED_LOST;
    return e->has_end ? VV_INDEX_COMPLETE : VV_INDEX_NO_ROOT_ENDED;
}

/* What of the changed executions depends on the whole plane. */
static vv_code settle(indexer *in, vv_error *err)
{
    const struct vv_engine_list *l = in->x->engines;
    for (size_t i = 0; i < in->changed_count; i++) {
        vv_execution *e = vv_executions_change(&in->x->executions, in->changed[i]);
        if (!e)
            return no_memory(err);
        uint64_t id = vv_thread_engine(&e->root);
        uint32_t k = vv_map_find(&l->ids, &id);
        e->first_engine = k == VV_MAP_NONE ? NULL : &l->items[l->by_id[k].first];
        e->engine = k == VV_MAP_NONE ? NULL : &l->items[l->by_id[k].newest];
        if (!e->has_end)
            e->status = in->s->alive ? VV_EXEC_RUNNING : VV_EXEC_ABANDONED;
        e->index_state = index_state_of(in->s, e);
    }
    return VV_OK;
}

/* The first record of a root is its terms. They are written before its end, and may be seen before it. */
static vv_code add_terms(indexer *in, const vv_health_record *record, vv_error *err)
{
    vv_meta_index *x = in->x;
    size_t at = vv_executions_find(&x->executions, &record->root);
    const vv_execution *known = at < x->executions.count ? vv_executions_at(&x->executions, at) : NULL;
    if (!known || !known->has_end) {
        if (!vv_grow(&x->waiting, &in->waiting_cap, x->waiting_count, sizeof *x->waiting))
            return no_memory(err);
        x->waiting[x->waiting_count++] = *record;
        return VV_OK;
    }
    if (known->has_terms)
        return VV_OK;
    vv_execution *e = vv_executions_change(&x->executions, at);
    if (!e)
        return no_memory(err);
    e->has_terms = true;
    e->terms = *record;
    return VV_OK;
}

/* Of the segments from index `from` on. An extra: what can't be read of it is as if it had never been written. */
static vv_code fold_health(indexer *in, size_t from, vv_error *err)
{
    vv_code rc = VV_OK;
    for (size_t i = from; i < in->x->health.count && rc == VV_OK; i++) {
        vv_seg room;
        const vv_seg *seg = vv_seg_at(&in->x->health, i, &room);
        vv_health_segment h;
        vv_health_record record;
        if (seg->state != VV_SEG_OK ||
            vv_health_open(&h, seg->bytes.p, seg->bytes.n, NULL, seg->sequence, true, NULL) != VV_OK)
            continue;
        for (bool more = true; rc == VV_OK && vv_health_next(&h, &record, &more, NULL) == VV_OK && more;)
            rc = add_terms(in, &record, err);
    }
    return rc;
}

static vv_code make_anew(indexer *in, vv_error *err)
{
    vv_meta_index *x = in->x;
    x->engines = calloc(1, sizeof *x->engines);
    if (!x->engines)
        return no_memory(err);
    x->engines->refs = 1;
    vv_map_init(&x->engines->ids, sizeof(uint64_t));
    vv_code rc = vv_executions_begin(&x->executions, err);
    if (rc == VV_OK)
        rc = measure(x, in->s, err);
    if (rc == VV_OK)
        rc = fold_meta(in, 0, err);
    if (rc != VV_OK)
        return rc;
    find_gaps(in->s);
    rc = settle(in, err);
    return rc == VV_OK ? fold_health(in, 0, err) : rc;
}

/* Has a good segment starts and ends of executions only? */
static bool has_roots_only(const vv_seg *seg, const vv_euid *euid)
{
    vv_meta_segment m;
    vv_meta_record record;
    bool more;
    if (vv_meta_open(&m, seg->bytes.p, seg->bytes.n, euid, seg->sequence, true, NULL) != VV_OK)
        return false;
    while (vv_meta_next(&m, &record, &more, NULL) == VV_OK) {
        if (!more)
            return true;
        if (record.tag != VV_META_ROOT_STARTED && record.tag != VV_META_ROOT_ENDED)
            return false;
    }
    return false;
}

/*
 * Has nothing come since the former look but starts, ends and terms, in segments that follow on a plane without a gap?
 * All else, the writer's death too, changes what was known of other executions, and is rare.
 */
static bool can_follow(const vv_meta_index *x, const vv_stream *s, const vv_stream *former, const vv_meta_index *known)
{
    if (!former || former->failed || former->alive != s->alive || former->unprobed != s->unprobed
        || former->meta_bad_count || !vv_seg_list_begins(&x->meta, &known->meta)
        || !vv_seg_list_begins(&x->health, &known->health) || !vv_executions_can_follow(&known->executions))
        return false;
    for (size_t i = known->meta.count; i < x->meta.count; i++) {
        vv_seg room;
        const vv_seg *seg = vv_seg_at(&x->meta, i, &room);
        if (seg->state != VV_SEG_OK || seg->sequence != i + 1 || !has_roots_only(seg, &s->euid))
            return false;
    }
    return true;
}

static vv_code follow(indexer *in, const vv_stream *former, const vv_meta_index *known, vv_error *err)
{
    vv_meta_index *x = in->x;
    x->engines = known->engines;
    __atomic_fetch_add(&x->engines->refs, 1, __ATOMIC_RELAXED);
    in->s->has_header = former->has_header;
    in->s->header = former->header;
    in->s->meta_decoded = former->meta_decoded;
    in->s->meta_high = in->s->meta_contiguous = x->meta.count;
    vv_code rc = vv_executions_follow(&x->executions, &known->executions, err);
    if (rc == VV_OK)
        rc = fold_meta(in, known->meta.count, err);
    if (rc == VV_OK)
        rc = settle(in, err);
    for (size_t i = 0; i < known->waiting_count && rc == VV_OK; i++)
        rc = add_terms(in, &known->waiting[i], err);
    return rc == VV_OK ? fold_health(in, known->health.count, err) : rc;
}

vv_code vv_meta_index_make(vv_meta_index *x, vv_stream *s, const vv_stream *former, const vv_meta_index *known,
                           vv_error *err)
{
    indexer in = {.s = s, .x = x};
    vv_code rc = can_follow(x, s, former, known) ? follow(&in, former, known, err) : make_anew(&in, err);
    free(in.changed);
    s->engines = x->engines ? x->engines->items : NULL;
    s->engine_count = x->engines ? x->engines->count : 0;
    s->execution_count = x->executions.count;
    return rc;
}

static size_t engine_bytes(const struct vv_engine_list *l)
{
    return l ? sizeof *l + l->cap * sizeof *l->items + l->by_id_cap * sizeof *l->by_id + vv_map_bytes(&l->ids) : 0;
}

size_t vv_meta_index_bytes(const vv_meta_index *x, const vv_meta_index *other)
{
    static const vv_meta_index nothing;
    const vv_meta_index *o = other ? other : &nothing;
    if (x == other)
        return 0;
    return sizeof *x + vv_seg_list_bytes(&x->meta, &o->meta) + vv_seg_list_bytes(&x->health, &o->health)
         + (x->engines == o->engines ? 0 : engine_bytes(x->engines))
         + vv_executions_bytes(&x->executions, &o->executions) + x->waiting_count * sizeof *x->waiting
         + x->bad_count * sizeof *x->bad;
}
