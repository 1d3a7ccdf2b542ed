#include "config.h"

#include "format/health_plane.h"

#include "base/text.h"

static const vv_sealed_kind kind = {"VARVHLT1", VV_HEALTH_PLANE_VERSION, "health segment"};

vv_code vv_health_open(vv_health_segment *s, const uint8_t *p, size_t n, const vv_euid *euid, uint64_t sequence,
                       bool trusted, vv_error *err)
{
    vv_segment_head h;
    vv_code rc = vv_head_open(&h, &kind, p, n, euid, sequence, trusted, err);
    if (rc != VV_OK)
        return rc;
    uint64_t record_count = vv_rd_u64(&h.r);
    rc = vv_head_payload(&h, &kind, err);
    if (rc != VV_OK)
        return rc;
    *s = (vv_health_segment){.sequence = h.sequence, .euid = h.euid, .record_count = record_count, .payload = h.r};
    return VV_OK;
}

static vv_str read_name(vv_rd *r)
{
    uint32_t n = vv_rd_u32(r);
    vv_str name = vv_rd_str(r, n);
    if (vv_rd_ok(r) && (!n || n > VV_HEALTH_NAME_MAX || !vv_utf8_valid(name)))
        vv_rd_fail(r, "HealthNameInvalid");
    return name;
}

static bool ascends(vv_str a, vv_str b)
{
    int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
    return order < 0 || (order == 0 && a.n < b.n);
}

vv_code vv_health_next(vv_health_segment *s, vv_health_record *ret, bool *ret_more, vv_error *err)
{
    vv_rd *r = &s->payload;
    *ret_more = false;
    if (s->records_done == s->record_count) {
        if (vv_rd_left(r))
            vv_rd_fail(r, "TrailingBytes");
        return vv_rd_error(r, "health segment", err);
    }
    vv_health_record out = {.count = 0};
    vv_rd_copy(r, out.root.b, sizeof out.root.b);
    out.count = vv_rd_u16(r);
    out.terms = *r;
    vv_str last = {NULL, 0};
    for (unsigned i = 0; i < out.count && vv_rd_ok(r); i++) {
        vv_str name = read_name(r);
        vv_rd_u64(r);
        if (vv_rd_ok(r) && i && !ascends(last, name))
            vv_rd_fail(r, "HealthNameOrder");
        last = name;
    }
    if (!vv_rd_ok(r))
        return vv_rd_error(r, "health segment", err);
    s->records_done++;
    *ret = out;
    *ret_more = true;
    return VV_OK;
}

bool vv_health_term(vv_health_record *r, vv_str *ret_name, uint64_t *ret_value)
{
    if (!r->count)
        return false;
    r->count--;
    *ret_name = read_name(&r->terms);
    *ret_value = vv_rd_u64(&r->terms);
    return true;
}

bool vv_health_find(const vv_health_record *r, const char *name, uint64_t *ret_value)
{
    vv_health_record at = *r;
    vv_str found, wanted = vv_cstr(name);
    while (vv_health_term(&at, &found, ret_value))
        if (vv_str_eq(found, wanted))
            return true;
    *ret_value = 0;
    return false;
}

uint64_t vv_health_sum(const vv_health_record *r, const char *prefix)
{
    vv_health_record at = *r;
    vv_str found, wanted = vv_cstr(prefix);
    uint64_t value, sum = 0;
    while (vv_health_term(&at, &found, &value))
        if (found.n >= wanted.n && memcmp(found.p, wanted.p, wanted.n) == 0)
            sum = vv_sat64(sum, value);
    return sum;
}

void vv_health_begin(vv_wr *w, const vv_euid *euid, uint64_t sequence)
{
    vv_head_begin(w, &kind, euid, sequence);
    vv_wr_u64(w, 0);
    vv_wr_u64(w, 0);
}

void vv_health_add(vv_wr *w, const vv_thread_ref *root, uint16_t n)
{
    vv_wr_bytes(w, root->b, sizeof root->b);
    vv_wr_u16(w, n);
}

void vv_health_add_term(vv_wr *w, const char *name, uint64_t value)
{
    vv_str s = vv_cstr(name);
    if (!s.n || s.n > VV_HEALTH_NAME_MAX || !vv_utf8_valid(s))
        vv_wr_fail(w, "HealthNameInvalid");
    vv_wr_u32(w, (uint32_t)s.n);
    vv_wr_bytes(w, s.p, s.n);
    vv_wr_u64(w, value);
}

void vv_health_end(vv_wr *w, uint64_t record_count)
{
    vv_head_end(w, VV_HEALTH_PLANE_HEADER, record_count);
}
