/* Meta segments and the usage ledger. */
#include "config.h"

#include "fuzz/fuzz.h"

#include "base/text.h"
#include "format/segment.h"
#include "format/usage.h"

static void check_text(vv_str s)
{
    FUZZ_CHECK(vv_utf8_valid(s));
}

static void check_record(const vv_meta_record *m)
{
    switch (m->tag) {
    case VV_META_STREAM_STARTED:
        check_text(m->stream_started.version);
        check_text(m->stream_started.os_arch);
        break;
    case VV_META_ENGINE_STARTED:
        check_text(m->engine_started.revision.s);
        check_text(m->engine_started.source.s);
        break;
    case VV_META_ROOT_STARTED:
        break;
    case VV_META_ROOT_ENDED:
        FUZZ_CHECK(m->root_ended.status <= VV_EXEC_ABANDONED);
        break;
    }
}

static void fuzz_segment(const uint8_t *p, size_t n)
{
    vv_meta_segment s;
    vv_error err = {0};
    if (vv_meta_open(&s, p, n, NULL, 0, false, &err) != VV_OK)
        return;
    vv_wr again = vv_wr_growing(2 * n + 64);
    vv_meta_begin(&again, &s.euid, s.sequence, s.data_high_water);
    bool more = true;
    vv_meta_record m;
    vv_code rc;
    while ((rc = vv_meta_next(&s, &m, &more, &err)) == VV_OK && more) {
        check_record(&m);
        vv_meta_add(&again, &m);
    }
    vv_meta_end(&again, s.record_count);
    FUZZ_CHECK(rc == VV_OK || err.name);
    FUZZ_CHECK(rc != VV_OK || !vv_wr_ok(&again) || (again.len == n && memcmp(again.buf, p, n) == 0));
    vv_wr_done(&again);
}

static void fuzz_usage(const uint8_t *p, size_t n)
{
    uint64_t total;
    vv_error err = {0};
    if (vv_usage_decode(p, n, &total, &err) != VV_OK)
        return;
    uint8_t again[VV_USAGE_BYTES];
    vv_usage_encode(again, total);
    FUZZ_CHECK(n == sizeof again && memcmp(again, p, n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_with_seal(data, size, fuzz_segment);
    fuzz_with_seal(data, size, fuzz_usage);
    return 0;
}
