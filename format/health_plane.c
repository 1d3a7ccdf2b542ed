#include "config.h"

#include "format/health_plane.h"

#include <inttypes.h>

#include "base/text.h"

static const char magic[8] = {'V', 'A', 'R', 'V', 'H', 'L', 'T', '1'};
enum { LENGTH_AT = VV_HEALTH_PLANE_HEADER - 8, COUNT_AT = VV_HEALTH_PLANE_HEADER - 16 };

vv_code vv_health_open(vv_health_segment *s, const uint8_t *p, size_t n, const vv_euid *euid, uint64_t sequence,
                       bool trusted, vv_error *err)
{
    if (!trusted || n < VV_SEAL_BYTES) {
        vv_code rc = vv_seal_check(p, n, err);
        if (rc != VV_OK)
            return rc;
    }
    vv_rd r = vv_rd_init(p, n - VV_SEAL_BYTES);
    const uint8_t *m = vv_rd_take(&r, sizeof magic);
    if (m && memcmp(m, magic, sizeof magic) != 0)
        return vv_fail_decode(err, "InvalidMagic", 0, "not a segment of the health plane");
    uint16_t version = vv_rd_u16(&r);
    if (vv_rd_ok(&r) && version != VV_HEALTH_PLANE_VERSION)
        return vv_fail_decode(err, "UnsupportedVersion", 8, "health segment version %u", version);
    vv_health_segment out = {.sequence = vv_rd_u64(&r)};
    vv_rd_copy(&r, out.euid.b, sizeof out.euid.b);
    if (!vv_rd_ok(&r))
        return vv_rd_error(&r, "health segment", err);
    if (euid && memcmp(euid, &out.euid, sizeof *euid) != 0)
        return vv_fail_decode(err, "EuidMismatch", 18, "the segment belongs to another stream");
    if (sequence && sequence != out.sequence)
        return vv_fail_decode(err, "SequenceMismatch", 10, "the segment says sequence %" PRIu64 " instead of %" PRIu64,
                              out.sequence, sequence);
    out.record_count = vv_rd_u64(&r);
    uint64_t len = vv_rd_u64(&r);
    if (len > vv_rd_left(&r))
        vv_rd_fail(&r, "Truncated");
    else if (len < vv_rd_left(&r))
        vv_rd_fail(&r, "TrailingBytes");
    if (!vv_rd_ok(&r))
        return vv_rd_error(&r, "health segment", err);
    out.payload = r;
    *s = out;
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
    vv_wr_bytes(w, magic, sizeof magic);
    vv_wr_u16(w, VV_HEALTH_PLANE_VERSION);
    vv_wr_u64(w, sequence);
    vv_wr_bytes(w, euid->b, sizeof euid->b);
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
    vv_wr_patch64(w, COUNT_AT, record_count);
    vv_wr_patch64(w, LENGTH_AT, w->len - VV_HEALTH_PLANE_HEADER);
    vv_seal_append(w, 0);
}
