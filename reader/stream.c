#include "config.h"

#include "reader/stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static void index_unref(struct vv_stream_index *x)
{
    if (!x || __atomic_sub_fetch(&x->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    vv_seg_list_done(&x->meta);
    vv_seg_list_done(&x->health);
    vv_map_done(&x->by_root);
    free(x->meta_gaps);
    free(x->meta_bad);
    free(x->engines);
    free(x->executions);
    free(x);
}

static void core_unref(struct vv_stream_core *c)
{
    if (!c || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    index_unref(c->index);
    vv_seg_list_done(&c->data);
    free(c->data_bad);
    free(c);
}

static struct vv_stream_core *core_new(void)
{
    struct vv_stream_core *c = calloc(1, sizeof *c);
    struct vv_stream_index *x = calloc(1, sizeof *x);
    if (!c || !x) {
        free(c);
        free(x);
        return NULL;
    }
    c->refs = x->refs = 1;
    c->index = x;
    vv_map_init(&x->by_root, sizeof(vv_thread_ref));
    return c;
}

void vv_stream_done(vv_stream *s)
{
    core_unref(s->core);
    *s = (vv_stream){0};
}

static vv_code no_memory(vv_error *err)
{
    return vv_fail(err, VV_ERR_NOMEM, "no memory for the index of a stream");
}

static uint64_t high_of(const vv_seg_list *l)
{
    return l->count ? vv_seg_run_at(l, l->count - 1).first : 0;
}

static uint64_t contiguous_of(const vv_range *bad, size_t count, uint64_t high)
{
    return count ? bad[0].first - 1 : high;
}

/*
 * The runs of sequences, up to the highest name, that have no file or a bad one. Never a step per number: a hostile
 * name costs one range.
 */
static vv_code runs_of_bad(const vv_seg_list *l, vv_range **ret, size_t *ret_count, vv_error *err)
{
    vv_range *runs = NULL;
    size_t n = 0, cap = 0;
    uint64_t next = 1;
    for (size_t i = 0; i < l->count;) {
        vv_seg_run r = vv_seg_run_at(l, i);
        uint64_t last = r.state == VV_SEG_OK ? r.first - 1 : r.first;
        if (next <= last) {
            bool goes_on = n && runs[n - 1].last + 1 == next;
            if (!goes_on && !vv_grow(&runs, &cap, n, sizeof *runs)) {
                free(runs);
                return no_memory(err);
            }
            if (goes_on)
                runs[n - 1].last = last;
            else
                runs[n++] = (vv_range){next, last};
        }
        next = r.first + r.count;
        i += r.count;
    }
    *ret = runs;
    *ret_count = n;
    return VV_OK;
}

static bool probe_alive(vv_source *source, const vv_euid *euid)
{
    if (!vv_source_is_live(source))
        return false;
    char path[VV_STREAM_PATH];
    vv_stream_dir(path, euid);
    strcat(path, "/stream.lock");
    VV_CLEANUP(vv_open_file_close) vv_open_file f = {.fd = -1};
    if (vv_source_open_file(source, path, &f, NULL) != VV_OK || f.fd < 0)
        return false;
    vv_code rc = vv_lock(f.fd, false, false, NULL);
    if (rc == VV_OK)
        vv_unlock(f.fd);
    return rc == VV_ERR_BUSY;
}

bool vv_stream_probe(const vv_store *s, const vv_euid *euid)
{
    return probe_alive(s->source, euid);
}

static bool has_segment(vv_source *source, const vv_euid *euid, vv_plane plane)
{
    char dir[VV_STREAM_PATH];
    vv_plane_path(dir, euid, plane);
    VV_CLEANUP(vv_names_done) vv_names names = {0};
    if (vv_source_list(source, dir, &names, NULL) != VV_OK)
        return false;
    uint64_t sequence;
    for (size_t i = 0; i < names.count; i++)
        if (vv_segment_parse(names.names[i], plane, &sequence))
            return true;
    return false;
}

/* State of folding the meta plane into the index. */
typedef struct {
    vv_stream *s;
    struct vv_stream_index *x;
    size_t engine_cap, execution_cap;
} indexer;

static vv_code add_engine(indexer *in, const vv_engine_started *m, vv_error *err)
{
    if (!vv_grow(&in->x->engines, &in->engine_cap, in->s->engine_count, sizeof *in->x->engines))
        return no_memory(err);
    in->x->engines[in->s->engine_count++] = (vv_engine){
        .id = m->engine_id,
        .program = m->program,
        .has_table = m->has_table,
        .table = m->table,
        .revision = m->revision,
        .source = m->source,
    };
    return VV_OK;
}

static vv_code execution_of(indexer *in, const vv_thread_ref *root, vv_execution **ret, vv_error *err)
{
    if (!vv_grow(&in->x->executions, &in->execution_cap, in->s->execution_count, sizeof *in->x->executions))
        return no_memory(err);
    bool is_new;
    uint32_t i = vv_map_put(&in->x->by_root, root, &is_new);
    if (i == VV_MAP_NONE)
        return no_memory(err);
    if (is_new) {
        in->x->executions[i] = (vv_execution){.root = *root};
        in->s->execution_count++;
    }
    *ret = &in->x->executions[i];
    return VV_OK;
}

static vv_code add_root_started(indexer *in, const vv_root_started *m, const vv_meta_segment *seg, vv_error *err)
{
    vv_execution *e;
    vv_code rc = execution_of(in, &m->root, &e, err);
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
    vv_code rc = execution_of(in, &m->root, &e, err);
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

static vv_code fold_meta(indexer *in, vv_error *err)
{
    for (size_t i = 0; i < in->x->meta.count; i++) {
        vv_seg room;
        const vv_seg *seg = vv_seg_at(&in->x->meta, i, &room);
        if (seg->state == VV_SEG_UNREADABLE)
            return vv_fail_decode(err, "Io", 0, "meta segment %llu can't be read", (unsigned long long)seg->sequence);
        if (seg->state != VV_SEG_OK)
            continue;
        in->s->meta_decoded = seg->sequence;
        vv_meta_segment m;
        vv_meta_record record;
        bool more;
        vv_code rc = vv_meta_open(&m, seg->bytes.p, seg->bytes.n, &in->s->euid, seg->sequence, true, err);
        while (rc == VV_OK && (rc = vv_meta_next(&m, &record, &more, err)) == VV_OK && more)
            rc = add_record(in, &record, &m, err);
        if (rc != VV_OK)
            return rc;
    }
    return VV_OK;
}

/*
 * The gaps that index states go by: those of a live stream end at its highest decoded segment (the tail may be torn).
 */
static vv_code find_gaps(vv_stream *s, struct vv_stream_index *x, vv_error *err)
{
    vv_code rc = runs_of_bad(&x->meta, &x->meta_gaps, &s->meta_gap_count, err);
    if (rc != VV_OK)
        return rc;
    while (s->alive && s->meta_gap_count && x->meta_gaps[s->meta_gap_count - 1].first >= s->meta_decoded)
        s->meta_gap_count--;
    return VV_OK;
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

/*
 * What of an execution depends on the whole plane. Engines are few, but a hostile stream may have many: they are looked
 * up by map.
 */
static vv_code settle_executions(vv_stream *s, struct vv_stream_index *x, vv_error *err)
{
    vv_map ids;
    vv_map_init(&ids, sizeof(uint64_t));
    struct {
        const vv_engine *first, *newest;
    } *by_id = calloc(s->engine_count + 1, sizeof *by_id);
    vv_code rc = by_id ? VV_OK : no_memory(err);
    for (size_t i = 0; i < s->engine_count && rc == VV_OK; i++) {
        bool is_new;
        uint32_t k = vv_map_put(&ids, &x->engines[i].id, &is_new);
        if (k == VV_MAP_NONE) {
            rc = no_memory(err);
            break;
        }
        if (is_new)
            by_id[k].first = &x->engines[i];
        by_id[k].newest = &x->engines[i];
    }
    for (size_t i = 0; i < s->execution_count && rc == VV_OK; i++) {
        vv_execution *e = &x->executions[i];
        uint64_t id = vv_thread_engine(&e->root);
        uint32_t k = vv_map_find(&ids, &id);
        e->first_engine = k == VV_MAP_NONE ? NULL : by_id[k].first;
        e->engine = k == VV_MAP_NONE ? NULL : by_id[k].newest;
        if (!e->has_end)
            e->status = s->alive ? VV_EXEC_RUNNING : VV_EXEC_ABANDONED;
        e->index_state = index_state_of(s, e);
    }
    free(by_id);
    vv_map_done(&ids);
    return rc;
}

/* Terms are an extra: what of them can't be read is as if it had never been written. The first record of a root is
 * it. */
static void attach_terms(struct vv_stream_index *x)
{
    for (size_t i = 0; i < x->health.count; i++) {
        vv_seg room;
        const vv_seg *seg = vv_seg_at(&x->health, i, &room);
        vv_health_segment h;
        vv_health_record record;
        if (seg->state != VV_SEG_OK ||
            vv_health_open(&h, seg->bytes.p, seg->bytes.n, NULL, seg->sequence, true, NULL) != VV_OK)
            continue;
        for (bool more = true; vv_health_next(&h, &record, &more, NULL) == VV_OK && more;) {
            uint32_t k = vv_map_find(&x->by_root, &record.root);
            vv_execution *e = k == VV_MAP_NONE ? NULL : &x->executions[k];
            if (!e || !e->has_end || e->has_terms)
                continue;
            e->has_terms = true;
            e->terms = record;
        }
    }
}

static vv_code measure_data(vv_stream *s, struct vv_stream_core *c, vv_error *err)
{
    vv_code rc = runs_of_bad(&c->data, &c->data_bad, &s->data_bad_count, err);
    s->data_bad = c->data_bad;
    s->data_high = high_of(&c->data);
    s->data_contiguous = contiguous_of(s->data_bad, s->data_bad_count, s->data_high);
    return rc;
}

static vv_code measure_meta(vv_stream *s, struct vv_stream_index *x, vv_error *err)
{
    vv_code rc = runs_of_bad(&x->meta, &x->meta_bad, &s->meta_bad_count, err);
    s->meta_bad = x->meta_bad;
    s->meta_high = high_of(&x->meta);
    s->meta_contiguous = contiguous_of(s->meta_bad, s->meta_bad_count, s->meta_high);
    if (rc == VV_OK && s->meta_high - x->meta.count > VV_MISSING_MAX)
        rc = vv_fail_decode(err, "RangeTooLarge", 0, "more than %d meta sequences without a file", VV_MISSING_MAX);
    return rc;
}

static vv_code index_stream(vv_stream *s, struct vv_stream_index *x, vv_error *err)
{
    indexer in = {.s = s, .x = x};
    vv_code rc = measure_meta(s, x, err);
    if (rc == VV_OK)
        rc = fold_meta(&in, err);
    if (rc == VV_OK)
        rc = find_gaps(s, x, err);
    s->meta_gaps = x->meta_gaps;
    s->engines = x->engines;
    s->executions = x->executions;
    if (rc == VV_OK)
        attach_terms(x);
    return rc == VV_OK ? settle_executions(s, x, err) : rc;
}

static void mark_failed(vv_stream *s, const vv_error *why)
{
    s->failed = true;
    s->error = *why;
    if (why->code == VV_ERR_LIMIT)
        s->error.name = "LimitExceeded";
    else if (!s->error.name || why->code == VV_ERR_IO || strcmp(s->error.name, "NotDirectory") == 0)
        s->error.name = "Io";
    s->has_header = false;
    s->header = (vv_stream_started){0};
    s->engine_count = s->execution_count = s->meta_gap_count = 0;
    s->engines = NULL;
    s->executions = NULL;
    s->meta_gaps = NULL;
}

static vv_seg_list *list_of(struct vv_stream_core *c, vv_plane plane)
{
    vv_seg_list *const lists[VV_PLANES] = {
        [VV_PLANE_META] = &c->index->meta, [VV_PLANE_DATA] = &c->data, [VV_PLANE_HEALTH] = &c->index->health};
    return lists[plane];
}

static vv_code list_plane(vv_stream *s, struct vv_stream_core *c, vv_source *source, vv_plane plane,
                          const vv_stream *former, const vv_stream_change *change, vv_error *err)
{
    const vv_seg_list *known = former ? list_of(former->core, plane) : NULL;
    if (change && known && !change->planes[plane].all)
        return vv_seg_list_update(list_of(c, plane), source, &s->euid, plane, known, &change->planes[plane], err);
    return vv_seg_list_load(list_of(c, plane), source, &s->euid, plane, known, err);
}

/* A stream's writer is looked for where it may have come or gone; it comes before the first meta segment. */
static void find_alive(vv_stream *s, vv_source *source, const vv_stream *former, const vv_stream_change *change)
{
    if (change && former && !change->probe && !change->planes[VV_PLANE_META].all
        && change->planes[VV_PLANE_META].count == 0) {
        s->alive = former->alive;
        s->unprobed = former->unprobed;
        return;
    }
    s->unprobed = vv_source_is_live(source) && !has_segment(source, &s->euid, VV_PLANE_META);
    s->alive = !s->unprobed && probe_alive(source, &s->euid);
}

static vv_code find_directory(vv_source *source, const char *dir, vv_error *err)
{
    VV_CLEANUP(vv_names_done) vv_names names = {0};
    vv_error why = {0};
    vv_code rc = vv_source_list(source, dir, &names, &why);
    if (rc == VV_ERR_NOTFOUND || (why.name && strcmp(why.name, "NotDirectory") == 0))
        return vv_fail_decode(err, "StreamNotFound", 0, "%s is no stream directory", dir);
    return rc == VV_OK ? rc : vv_fail(err, rc, "%s", why.msg);
}

/* Whoever is seen dead has written all that is listed then: the writer is looked for first. */
static vv_code list_meta(vv_stream *s, struct vv_stream_core *c, vv_source *source, const vv_stream *former,
                         const vv_stream_change *change, vv_error *err)
{
    find_alive(s, source, former, change);
    vv_code rc = list_plane(s, c, source, VV_PLANE_META, former, change, err);
    if (rc != VV_OK || !s->unprobed || c->index->meta.count == 0)
        return rc;
    /* The first segment came in between, so the process that wrote it can be asked for now. */
    vv_seg_list_done(&c->index->meta);
    find_alive(s, source, NULL, NULL);
    return list_plane(s, c, source, VV_PLANE_META, former, change, err);
}

/*
 * Meta is listed first: what an index entry says of data and terms was committed before it, so it is never missed. For
 * the same reason the health plane alone changes nothing that anyone could see.
 */
static vv_code list_planes(vv_stream *s, struct vv_stream_core *c, vv_source *source, const vv_stream *former,
                           const vv_stream_change *change, vv_error *err)
{
    char dir[VV_STREAM_PATH];
    vv_stream_dir(dir, &s->euid);
    vv_code rc = find_directory(source, dir, err);
    if (rc != VV_OK)
        return rc;
    rc = list_meta(s, c, source, former, change, err);
    if (rc == VV_OK)
        rc = list_plane(s, c, source, VV_PLANE_DATA, former, change, err);
    vv_error ignored = {0};
    if (rc == VV_OK && list_plane(s, c, source, VV_PLANE_HEALTH, former, change, &ignored) != VV_OK)
        c->index->health = (vv_seg_list){.array = NULL};
    return rc;
}

/* Nothing but data has come since the former look, in which nothing failed. */
static bool has_same_index(const vv_stream *s, const struct vv_stream_core *c, const vv_stream *former)
{
    const struct vv_stream_index *x = former && !former->failed ? former->core->index : NULL;
    return x && former->alive == s->alive && former->unprobed == s->unprobed
        && vv_seg_list_same(&c->index->meta, &x->meta) && vv_seg_list_same(&c->index->health, &x->health);
}

/* All but the data plane is the former look's. */
static void share_index(vv_stream *s, struct vv_stream_core *c, const vv_stream *former)
{
    index_unref(c->index);
    c->index = former->core->index;
    __atomic_fetch_add(&c->index->refs, 1, __ATOMIC_RELAXED);
    *s = *former;
    s->core = c;
}

vv_stream vv_stream_share(const vv_stream *s)
{
    __atomic_fetch_add(&s->core->refs, 1, __ATOMIC_RELAXED);
    return *s;
}

vv_code vv_stream_open(vv_stream *ret, vv_source *source, const vv_euid *euid, const vv_stream *former,
                       const vv_stream_change *change, vv_error *err)
{
    struct vv_stream_core *c = core_new();
    if (!c)
        return no_memory(err);
    vv_stream s = {.euid = *euid, .core = c};
    vv_error why = {0};
    /* Of a failed stream nothing is known that could be shared. */
    vv_code rc = list_planes(&s, c, source, former, former && former->failed ? NULL : change, &why);
    bool same_index = rc == VV_OK && has_same_index(&s, c, former);
    if (same_index && vv_seg_list_same(&c->data, &former->core->data)) {
        core_unref(c);
        *ret = vv_stream_share(former);
        return VV_OK;
    }
    if (same_index)
        share_index(&s, c, former);
    if (rc == VV_OK)
        rc = measure_data(&s, c, &why);
    if (rc == VV_OK && !same_index)
        rc = index_stream(&s, c->index, &why);
    if (rc == VV_ERR_NOMEM) {
        core_unref(c);
        return vv_fail(err, rc, "%s", why.msg);
    }
    if (rc != VV_OK)
        mark_failed(&s, &why);
    *ret = s;
    return VV_OK;
}

static size_t index_bytes(const vv_stream *s, const struct vv_stream_index *former)
{
    static const struct vv_stream_index nothing;
    const struct vv_stream_index *x = s->core->index, *f = former ? former : &nothing;
    if (x == former)
        return 0;
    return sizeof *x + vv_seg_list_bytes(&x->meta, &f->meta) + vv_seg_list_bytes(&x->health, &f->health)
         + (s->meta_gap_count + s->meta_bad_count) * sizeof(vv_range) + s->engine_count * sizeof *s->engines
         + s->execution_count * sizeof *s->executions + vv_map_bytes(&x->by_root);
}

size_t vv_stream_bytes(const vv_stream *s, const vv_stream *former)
{
    static const vv_seg_list nothing;
    const struct vv_stream_core *c = s->core, *f = former ? former->core : NULL;
    if (c == f)
        return 0;
    return sizeof *c + index_bytes(s, f ? f->index : NULL) + vv_seg_list_bytes(&c->data, f ? &f->data : &nothing)
         + s->data_bad_count * sizeof(vv_range);
}
