/* Segments of the health plane. */
#include "config.h"

#include "fuzz/fuzz.h"

#include "base/text.h"
#include "format/health_plane.h"

static void fuzz_segment(const uint8_t *p, size_t n)
{
    vv_health_segment s;
    vv_error err = {0};
    if (vv_health_open(&s, p, n, NULL, 0, false, &err) != VV_OK) {
        FUZZ_CHECK(err.name);
        return;
    }
    vv_wr again = vv_wr_growing(2 * n + 64);
    vv_health_begin(&again, &s.euid, s.sequence);
    vv_health_record r;
    bool more = true;
    vv_code rc;
    while ((rc = vv_health_next(&s, &r, &more, &err)) == VV_OK && more) {
        vv_health_add(&again, &r.root, r.count);
        vv_health_record all = r;
        vv_str name;
        uint64_t value;
        while (vv_health_term(&r, &name, &value)) {
            char text[VV_HEALTH_NAME_MAX + 1];
            uint64_t found;
            FUZZ_CHECK(vv_utf8_valid(name) && name.n && name.n <= VV_HEALTH_NAME_MAX);
            memcpy(text, name.p, name.n);
            text[name.n] = 0;
            if (strlen(text) != name.n) {
                vv_wr_fail(&again, "HealthNameInvalid"); /* a name with a zero byte is no C string */
                continue;
            }
            vv_health_add_term(&again, text, value);
            FUZZ_CHECK(vv_health_find(&all, text, &found) && found == value);
            FUZZ_CHECK(vv_health_sum(&all, text) >= value);
        }
    }
    vv_health_end(&again, s.record_count);
    FUZZ_CHECK(rc == VV_OK || err.name);
    FUZZ_CHECK(rc != VV_OK || !vv_wr_ok(&again) || (again.len == n && memcmp(again.buf, p, n) == 0));
    vv_wr_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_with_seal(data, size, fuzz_segment);
    return 0;
}
