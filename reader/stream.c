#include "config.h"

#include "reader/stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static void core_unref(struct vv_stream_core *c)
{
    if (!c || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    vv_meta_index_unref(c->index);
    vv_seg_list_done(&c->data);
    free(c->data_bad);
    free(c);
}

static struct vv_stream_core *core_new(void)
{
    struct vv_stream_core *c = calloc(1, sizeof *c);
    vv_meta_index *x = vv_meta_index_new();
    if (!c || !x) {
        free(c);
        vv_meta_index_unref(x);
        return NULL;
    }
    c->refs = 1;
    c->index = x;
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

/* The name of a segment ends the walk through a directory: there may be very many. */
static vv_code find_segment(void *state, vv_str name, vv_error *err)
{
    char text[VV_SEGMENT_NAME];
    uint64_t sequence;
    if (name.n >= sizeof text)
        return VV_OK;
    memcpy(text, name.p, name.n);
    text[name.n] = 0;
    *(bool *)state = vv_segment_parse(text, VV_PLANE_META, &sequence);
    return *(bool *)state ? vv_fail(err, VV_ERR_LIMIT, "one is enough") : VV_OK;
}

static bool has_meta(vv_source *source, const vv_euid *euid)
{
    char dir[VV_STREAM_PATH];
    bool found = false;
    vv_plane_path(dir, euid, VV_PLANE_META);
    return vv_source_each(source, dir, find_segment, &found, NULL) != VV_OK && found;
}

static vv_code measure_data(vv_stream *s, struct vv_stream_core *c, vv_error *err)
{
    vv_extent e;
    vv_code rc = vv_extent_of(&e, &c->data, err);
    if (rc != VV_OK)
        return rc;
    c->data_bad = s->data_bad = e.bad;
    s->data_bad_count = e.bad_count;
    s->data_high = e.high;
    s->data_contiguous = e.contiguous;
    return VV_OK;
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
    s->unprobed = vv_source_is_live(source) && !has_meta(source, &s->euid);
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
    if (rc != VV_OK)
        return rc;
    vv_error why = {0};
    rc = list_plane(s, c, source, VV_PLANE_HEALTH, former, change, &why);
    if (rc == VV_ERR_NOMEM)
        return vv_fail(err, rc, "%s", why.msg);
    if (rc != VV_OK) /* an extra: as if there were none */
        c->index->health = (vv_seg_list){.array = NULL};
    return VV_OK;
}

/* Nothing but data has come since the former look, in which nothing failed. */
static bool has_same_index(const vv_stream *s, const struct vv_stream_core *c, const vv_stream *former)
{
    const vv_meta_index *x = former && !former->failed ? former->core->index : NULL;
    return x && former->alive == s->alive && former->unprobed == s->unprobed
        && vv_seg_list_same(&c->index->meta, &x->meta) && vv_seg_list_same(&c->index->health, &x->health);
}

/* All but the data plane is the former look's. */
static void share_index(vv_stream *s, struct vv_stream_core *c, const vv_stream *former)
{
    vv_meta_index_unref(c->index);
    c->index = vv_meta_index_ref(former->core->index);
    *s = *former;
    s->core = c;
}

/* On scales of their own, so that no file of one plane makes up for one of another. */
static uint64_t stamp_of(const struct vv_stream_core *c)
{
    return vv_seg_list_stamp(&c->index->meta, 0, UINT64_MAX) + 3 * vv_seg_list_stamp(&c->data, 0, UINT64_MAX)
         + 5 * vv_seg_list_stamp(&c->index->health, 0, UINT64_MAX);
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
        rc = vv_meta_index_make(c->index, &s, former, former ? former->core->index : NULL, &why);
    if (rc == VV_ERR_NOMEM) {
        core_unref(c);
        return vv_fail(err, rc, "%s", why.msg);
    }
    if (rc != VV_OK)
        mark_failed(&s, &why);
    s.stamp = stamp_of(c);
    *ret = s;
    return VV_OK;
}

size_t vv_stream_bytes(const vv_stream *s, const vv_stream *other)
{
    static const struct vv_stream_core nothing;
    const struct vv_stream_core *c = s->core, *o = other ? other->core : &nothing;
    if (c == o)
        return 0;
    return sizeof *c + vv_meta_index_bytes(c->index, o->index) + vv_seg_list_bytes(&c->data, &o->data)
         + s->data_bad_count * sizeof(vv_range);
}
