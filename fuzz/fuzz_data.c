/* Data segments and both kinds of section. */
#include "config.h"

#include "fuzz/fuzz.h"

#include "format/segment.h"

static void fuzz_cct(const uint8_t *p, size_t n, uint8_t health, uint64_t records, bool trust)
{
    vv_cct_cursor c;
    vv_cct_row row;
    vv_cct_overflow over;
    vv_counters sum = {0};
    vv_wr again = vv_wr_growing(2 * n + 64);
    uint64_t contexts = 0, overflow = 0;
    vv_cct_open(&c, p, n, health, records);
    c.trust_keys = trust;
    vv_wr_u64(&again, 0);
    while (vv_cct_next_context(&c, &row)) {
        vv_counters_add(&sum, &row.counters);
        vv_counters_self(&row.counters, NULL);
        vv_cct_encode_row(&again, &row);
        contexts++;
    }
    vv_wr_patch64(&again, 0, contexts);
    size_t at = again.len;
    vv_wr_u64(&again, 0);
    while (vv_cct_next_overflow(&c, &over)) {
        FUZZ_CHECK(vv_overflow_reason_name(over.reason) && vv_edge_name(over.edge));
        vv_cct_encode_overflow(&again, &over);
        overflow++;
    }
    vv_wr_patch64(&again, at, overflow);
    vv_error err = {0};
    if (vv_cct_finish(&c, &err) == VV_OK) {
        FUZZ_CHECK(contexts + overflow == records);
        FUZZ_CHECK(again.len == n && memcmp(again.buf, p, n) == 0);
    } else {
        FUZZ_CHECK(err.name && err.off <= n);
    }
    vv_wr_done(&again);
}

static void fuzz_evidence(const uint8_t *p, size_t n, uint64_t records)
{
    vv_evidence_cursor c;
    vv_fact f;
    vv_wr again = vv_wr_growing(2 * n + 64);
    uint64_t facts = 0;
    bool read_only = false;
    vv_evidence_open(&c, p, n, records);
    vv_wr_u64(&again, 0);
    while (vv_evidence_next(&c, &f)) {
        facts++;
        if (f.tag <= VV_FACT_THREAD_END)
            vv_fact_encode(&again, &f);
        else
            read_only = true;
    }
    vv_wr_patch64(&again, 0, facts);
    vv_error err = {0};
    if (vv_evidence_finish(&c, &err) == VV_OK) {
        FUZZ_CHECK(facts == records);
        FUZZ_CHECK(read_only || (again.len == n && memcmp(again.buf, p, n) == 0));
    } else {
        FUZZ_CHECK(err.name && err.off <= n);
    }
    vv_wr_done(&again);
}

static void fuzz_segment(const uint8_t *p, size_t n)
{
    vv_data_segment s;
    vv_error err = {0};
    if (vv_data_open(&s, p, n, NULL, 0, false, &err) != VV_OK)
        return;
    vv_wr again = vv_wr_growing(2 * n + 64);
    vv_data_begin(&again, &s.euid, s.sequence);
    bool more = true;
    vv_group g;
    vv_code rc;
    while ((rc = vv_data_next(&s, &g, &more, &err)) == VV_OK && more) {
        FUZZ_CHECK(g.off + g.len <= n && g.len == VV_GROUP_FIXED + g.cct_len + g.evidence_len);
        if (vv_group_has_cct(&g)) {
            fuzz_cct(g.cct, g.cct_len, g.cct_health, g.cct_records, false);
            fuzz_cct(g.cct, g.cct_len, g.cct_health, g.cct_records, true);
        }
        if (vv_group_has_evidence(&g))
            fuzz_evidence(g.evidence, g.evidence_len, g.evidence_records);
        vv_data_add(&again, &g);
    }
    vv_data_end(&again, s.group_count);
    FUZZ_CHECK(rc != VV_OK || (again.len == n && memcmp(again.buf, p, n) == 0));
    vv_wr_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_with_seal(data, size, fuzz_segment);
    uint64_t count = size >= 8 ? vv_be64(data) : 0;
    fuzz_cct(data, size, 0, count, true);
    fuzz_evidence(data, size, count);
    return 0;
}
