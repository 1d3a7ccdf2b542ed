#include "config.h"

#include "format/segment.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"

static const vv_sealed_kind meta_kind = {"BAMLMET1", VV_SEGMENT_VERSION, "meta segment"};
static const vv_sealed_kind data_kind = {"BAMLDAT1", VV_SEGMENT_VERSION, "data segment"};
enum { EXEC_STATUSES = 5 };

vv_code vv_data_open(vv_data_segment *s, const uint8_t *p, size_t n, const vv_euid *euid, uint64_t sequence,
                     bool trusted, vv_error *err)
{
    vv_segment_head h;
    vv_code rc = vv_head_open(&h, &data_kind, p, n, euid, sequence, trusted, err);
    if (rc != VV_OK)
        return rc;
    uint64_t group_count = vv_rd_u64(&h.r);
    rc = vv_head_payload(&h, &data_kind, err);
    if (rc != VV_OK)
        return rc;
    *s = (vv_data_segment){.sequence = h.sequence, .euid = h.euid, .group_count = group_count, .payload = h.r};
    return VV_OK;
}

static void check_root(vv_data_segment *s, const vv_thread_ref *root)
{
    int order = s->has_previous ? memcmp(root, &s->previous, sizeof *root) : 1;
    if (order == 0)
        vv_rd_fail(&s->payload, "DataDuplicateGroup");
    else if (order < 0)
        vv_rd_fail(&s->payload, "DataGroupOrder");
    s->previous = *root;
    s->has_previous = true;
}

vv_code vv_data_next(vv_data_segment *s, vv_group *ret, bool *ret_more, vv_error *err)
{
    vv_rd *r = &s->payload;
    *ret_more = false;
    if (s->groups_done == s->group_count) {
        if (vv_rd_left(r))
            vv_rd_fail(r, "TrailingBytes");
        return vv_rd_error(r, "data segment", err);
    }
    vv_group g = {.off = vv_rd_off(r)};
    vv_rd_copy(r, g.root.b, sizeof g.root.b);
    if (vv_rd_ok(r))
        check_root(s, &g.root);
    g.cct_health = vv_rd_u8(r);
    if (g.cct_health & ~VV_HEALTH_ALL) {
        vv_rd_fail(r, "InvalidCct");
        s->inner = "InvalidHealth";
    }
    g.cct_records = vv_rd_u64(r);
    g.cct_len = vv_rd_u64(r);
    g.cct = vv_rd_take(r, g.cct_len);
    g.evidence_records = vv_rd_u64(r);
    g.evidence_len = vv_rd_u64(r);
    g.evidence = vv_rd_take(r, g.evidence_len);
    if (vv_rd_ok(r) && g.cct_len == 0 && g.evidence_len == 0)
        vv_rd_fail(r, "DataEmptyGroup");
    if (!vv_rd_ok(r)) {
        vv_code rc = vv_rd_error(r, "data segment", err);
        if (s->inner)
            vv_context(err, "%s", s->inner);
        return rc;
    }
    g.len = vv_rd_off(r) - g.off;
    s->groups_done++;
    *ret = g;
    *ret_more = true;
    return VV_OK;
}

void vv_data_begin(vv_wr *w, const vv_euid *euid, uint64_t sequence)
{
    vv_head_begin(w, &data_kind, euid, sequence);
    vv_wr_u64(w, 0);
    vv_wr_u64(w, 0);
}

void vv_data_add(vv_wr *w, const vv_group *g)
{
    vv_wr_bytes(w, g->root.b, sizeof g->root.b);
    vv_wr_u8(w, g->cct_health);
    vv_wr_u64(w, g->cct_records);
    vv_wr_u64(w, g->cct_len);
    vv_wr_bytes(w, g->cct, g->cct_len);
    vv_wr_u64(w, g->evidence_records);
    vv_wr_u64(w, g->evidence_len);
    if (g->evidence)
        vv_wr_bytes(w, g->evidence, g->evidence_len);
}

void vv_data_end(vv_wr *w, uint64_t group_count)
{
    vv_head_end(w, VV_DATA_HEADER, group_count);
}

vv_code vv_meta_open(vv_meta_segment *s, const uint8_t *p, size_t n, const vv_euid *euid, uint64_t sequence,
                     bool trusted, vv_error *err)
{
    vv_segment_head h;
    vv_code rc = vv_head_open(&h, &meta_kind, p, n, euid, sequence, trusted, err);
    if (rc != VV_OK)
        return rc;
    uint64_t high_water = vv_rd_u64(&h.r);
    uint64_t record_count = vv_rd_u64(&h.r);
    rc = vv_head_payload(&h, &meta_kind, err);
    if (rc != VV_OK)
        return rc;
    *s = (vv_meta_segment){
        .sequence = h.sequence,
        .euid = h.euid,
        .data_high_water = high_water,
        .record_count = record_count,
        .payload = h.r,
    };
    return VV_OK;
}

static void get_str(vv_rd *r, vv_str *ret)
{
    *ret = vv_rd_str(r, vv_rd_u32(r));
    if (!vv_utf8_valid(*ret))
        vv_rd_fail(r, "InvalidUtf8");
}

static bool get_opt(vv_rd *r)
{
    uint8_t kind = vv_rd_u8(r);
    if (kind > 1)
        vv_rd_fail(r, "InvalidKind");
    return kind == 1;
}

static void get_opt_str(vv_rd *r, vv_opt_str *ret)
{
    ret->present = get_opt(r);
    if (ret->present)
        get_str(r, &ret->s);
}

static void get_stream_started(vv_rd *r, vv_meta_record *ret)
{
    vv_stream_started *m = &ret->stream_started;
    m->pid = vv_rd_u32(r);
    m->zero_unix_ns = vv_rd_u64(r);
    get_str(r, &m->version);
    get_str(r, &m->os_arch);
}

static void get_engine_started(vv_rd *r, vv_meta_record *ret)
{
    vv_engine_started *m = &ret->engine_started;
    m->engine_id = vv_rd_u64(r);
    vv_rd_copy(r, m->program.b, sizeof m->program.b);
    m->has_table = get_opt(r);
    if (m->has_table)
        vv_rd_copy(r, m->table.b, sizeof m->table.b);
    get_opt_str(r, &m->revision);
    get_opt_str(r, &m->source);
}

static void get_root_started(vv_rd *r, vv_meta_record *ret)
{
    vv_root_started *m = &ret->root_started;
    vv_rd_copy(r, m->root.b, sizeof m->root.b);
    m->started_ns = vv_rd_u64(r);
    vv_rd_copy(r, m->runtime_id.b, sizeof m->runtime_id.b);
}

static void get_root_ended(vv_rd *r, vv_meta_record *ret)
{
    vv_root_ended *m = &ret->root_ended;
    vv_rd_copy(r, m->root.b, sizeof m->root.b);
    m->ended_ns = vv_rd_u64(r);
    m->status = vv_rd_u8(r);
    if (m->status >= EXEC_STATUSES)
        vv_rd_fail(r, "MetaInvalidStatus");
    m->flags = vv_rd_u8(r);
    m->first = vv_rd_u64(r);
    m->last = vv_rd_u64(r);
    m->count = vv_rd_u64(r);
    uint32_t n = vv_rd_u32(r);
    vv_rd health = vv_rd_sub(r, n);
    if (vv_rd_ok(r) && n != VV_HEALTH_BYTES)
        vv_rd_fail(r, "MetaInvalidHealth");
    else if (vv_rd_ok(r))
        vv_health_decode(&health, &m->health);
}

static const struct {
    void (*get)(vv_rd *r, vv_meta_record *ret);
} records[] = {
    [VV_META_STREAM_STARTED] = {get_stream_started},
    [VV_META_ENGINE_STARTED] = {get_engine_started},
    [VV_META_ROOT_STARTED] = {get_root_started},
    [VV_META_ROOT_ENDED] = {get_root_ended},
};

vv_code vv_meta_next(vv_meta_segment *s, vv_meta_record *ret, bool *ret_more, vv_error *err)
{
    vv_rd *r = &s->payload;
    *ret_more = false;
    if (s->records_done == s->record_count) {
        if (vv_rd_left(r))
            vv_rd_fail(r, "TrailingBytes");
        return vv_rd_error(r, "meta segment", err);
    }
    uint8_t tag = vv_rd_u8(r);
    vv_rd body = vv_rd_sub(r, vv_rd_u32(r));
    if (vv_rd_ok(r) && tag >= VV_ARRAY_LEN(records)) {
        vv_rd_fail(r, "MetaUnknownTag");
        return vv_fail_decode(err, "MetaUnknownTag", r->bad_off, "meta segment: unknown tag %u", tag);
    }
    if (!vv_rd_ok(r))
        return vv_rd_error(r, "meta segment", err);
    memset(ret, 0, sizeof *ret);
    ret->tag = (vv_meta_tag)tag;
    records[tag].get(&body, ret);
    if (vv_rd_left(&body))
        vv_rd_fail(&body, "TrailingBytes");
    if (!vv_rd_ok(&body)) {
        r->at = body.base + body.bad_off;
        vv_rd_fail(r, body.why);
    } else if (tag == VV_META_STREAM_STARTED && (s->sequence != 1 || s->records_done != 0)) {
        vv_rd_fail(r, "MetaStreamStartedMisplaced");
    }
    if (!vv_rd_ok(r))
        return vv_rd_error(r, "meta segment", err);
    s->records_done++;
    *ret_more = true;
    return VV_OK;
}

void vv_meta_begin(vv_wr *w, const vv_euid *euid, uint64_t sequence, uint64_t data_high_water)
{
    vv_head_begin(w, &meta_kind, euid, sequence);
    vv_wr_u64(w, data_high_water);
    vv_wr_u64(w, 0);
    vv_wr_u64(w, 0);
}

static void put_stream_started(vv_wr *w, const vv_stream_started *m)
{
    vv_wr_u32(w, m->pid);
    vv_wr_u64(w, m->zero_unix_ns);
    vv_wr_str(w, m->version);
    vv_wr_str(w, m->os_arch);
}

static void put_engine_started(vv_wr *w, const vv_engine_started *m)
{
    vv_wr_u64(w, m->engine_id);
    vv_wr_bytes(w, m->program.b, sizeof m->program.b);
    vv_wr_u8(w, m->has_table);
    if (m->has_table)
        vv_wr_bytes(w, m->table.b, sizeof m->table.b);
    vv_wr_opt_str(w, &m->revision);
    vv_wr_opt_str(w, &m->source);
}

static void put_root_started(vv_wr *w, const vv_root_started *m)
{
    vv_wr_bytes(w, m->root.b, sizeof m->root.b);
    vv_wr_u64(w, m->started_ns);
    vv_wr_bytes(w, m->runtime_id.b, sizeof m->runtime_id.b);
}

static void put_root_ended(vv_wr *w, const vv_root_ended *m)
{
    vv_wr_bytes(w, m->root.b, sizeof m->root.b);
    vv_wr_u64(w, m->ended_ns);
    vv_wr_u8(w, m->status);
    vv_wr_u8(w, m->flags);
    vv_wr_u64(w, m->first);
    vv_wr_u64(w, m->last);
    vv_wr_u64(w, m->count);
    vv_wr_u32(w, VV_HEALTH_BYTES);
    vv_health_encode(w, &m->health);
}

void vv_meta_add(vv_wr *w, const vv_meta_record *m)
{
    vv_wr_u8(w, (uint8_t)m->tag);
    size_t at = w->len;
    vv_wr_u32(w, 0);
    switch (m->tag) {
    case VV_META_STREAM_STARTED:
        put_stream_started(w, &m->stream_started);
        break;
    case VV_META_ENGINE_STARTED:
        put_engine_started(w, &m->engine_started);
        break;
    case VV_META_ROOT_STARTED:
        put_root_started(w, &m->root_started);
        break;
    case VV_META_ROOT_ENDED:
        put_root_ended(w, &m->root_ended);
        break;
    }
    vv_wr_patch32(w, at, (uint32_t)(w->len - at - 4));
}

void vv_meta_end(vv_wr *w, uint64_t record_count)
{
    vv_head_end(w, VV_META_HEADER, record_count);
}

static const struct {
    const char *dir, *ext;
} planes[] = {
    [VV_PLANE_META] = {"meta", ".bamlmeta"},
    [VV_PLANE_DATA] = {"data", ".bamldata"},
    [VV_PLANE_HEALTH] = {"health", ".varvehealth"},
};

const char *vv_plane_dir(vv_plane p)
{
    return planes[p].dir;
}

void vv_segment_name(char out[VV_SEGMENT_NAME], vv_plane p, uint64_t sequence)
{
    snprintf(out, VV_SEGMENT_NAME, "%020" PRIu64 "%s", sequence, planes[p].ext);
}

bool vv_segment_parse(const char *name, vv_plane p, uint64_t *ret_sequence)
{
    enum { DIGITS = 20 };
    uint64_t v = 0;
    for (size_t i = 0; i < DIGITS; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(name[i] - '0'), &v))
            return false;
    }
    if (v == 0 || strcmp(name + DIGITS, planes[p].ext) != 0)
        return false;
    *ret_sequence = v;
    return true;
}
