/* Few files at a long interval, thousands of segments in flat memory. */
#include "config.h"

#include "runtime/session.h"
#include "tests/runtime/inside.h"

uint64_t size_of_files;

static uint64_t data_bytes;
static unsigned meta_files, data_files, other_files;

static int count_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)at;
    if (kind != FTW_F)
        return 0;
    bool data = strstr(path, "/data/");
    meta_files += strstr(path, "/meta/") != NULL;
    data_files += data;
    data_bytes += data ? (uint64_t)st->st_size : 0;
    other_files += strstr(path, "/cas/") != NULL;
    return 0;
}

static void count_files(const test_store *s)
{
    data_bytes = meta_files = data_files = other_files = 0;
    nftw(s->root, count_file, 16, FTW_PHYS);
}

static void record(varve_engine *e, uint32_t f, unsigned distinct)
{
    varve_thread *t;
    varve_root *r = varve_root_begin(e, NULL, &t);
    ck_assert_ptr_nonnull(r);
    for (unsigned i = 0; i < distinct; i++)
        varve_call_begin(t, f, 0);
    execution_end(r, t);
}

/* At an interval of 60 s nothing is written before somebody asks: then two meta segments (starts, ends), and data as
 * dense as the target allows. */
START_TEST(gate_roots_at_a_long_interval)
{
    rig g = rig_live(store_make_quick(), 60000);
    uint32_t f = function(g.engine, "case");
    for (unsigned i = 0; i < 1000; i++)
        record(g.engine, f, 1 + i % 10); /* all together less than a segment, which would be reason to publish */
    count_files(&g.store);
    ck_assert_uint_eq(meta_files + data_files, 0);
    ck_assert(varve_flush(g.session, 20000));
    count_files(&g.store);
    uint64_t target = g.session->sizing.segment_target;
    ck_assert_uint_eq(meta_files, 2);
    ck_assert_uint_ge(data_bytes, 1000 * 5 * VV_CCT_ROW_MIN);
    ck_assert_uint_le(data_files, (data_bytes + target - 1) / target + 1);
    varve_session_close(g.session);
    count_files(&g.store);
    ck_assert_uint_eq(meta_files, 2);
    assert_ledger(g.store.root);
    rig_remove(&g);
}
END_TEST

/* Without a flush what is recorded is on disk within the interval and a little. */
START_TEST(gate_age_trigger)
{
    rig g = rig_live(store_make_quick(), 300);
    uint64_t from = vv_clock_monotonic_ns(), took = 0;
    record(g.engine, function(g.engine, "f"), 3);
    do {
        usleep(1000);
        count_files(&g.store);
        took = (vv_clock_monotonic_ns() - from) / 1000000;
    } while (meta_files < 2 && took < 20000);
    ck_assert_uint_eq(data_files, 1);
    ck_assert_uint_ge(took, 100);
    ck_assert_uint_lt(took, 5000);
    varve_session_close(g.session);
    rig_remove(&g);
}
END_TEST

/* One execution, thousands of segments: neither the governor's figure nor the process grows with them. */
START_TEST(gate_thousands_of_segments)
{
    enum { SEGMENTS = 4000, FIRST = 500, NAMES = 64 };
    rig g = rig_stepped(store_make_quick(), 0, NULL);
    g.session->decoder.epoch_nodes = 40; /* rollovers on the way */
    _Atomic uint64_t *used = &g.session->governor.pools[VV_POOL_GENERAL].used;
    uint32_t f[NAMES];
    for (unsigned i = 0; i < NAMES; i++)
        f[i] = function(g.engine, "f");
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f[0], 0);
    uint64_t used_first = 0, resident_first = 0, calls = 1;
    for (unsigned i = 0; i < SEGMENTS; i++) {
        for (unsigned k = 0; k < 120; k++, calls++)
            call_once(t, f[(i + k) % NAMES]);
        vv_consumer_pass(g.session);
        ck_assert(vv_writer_cycle(&g.session->writer));
        if (i == FIRST) {
            used_first = atomic_load(used);
            resident_first = resident();
        }
    }
    ck_assert_uint_le(atomic_load(used), used_first);
    if (!TEST_SANITIZED) /* sanitizers keep freed memory for a while */
        ck_assert_uint_le(resident(), resident_first + (512 << 10));
    ck_assert_uint_ge(vv_wstore_high(g.session->store, VV_PLANE_DATA), SEGMENTS);
    rig_end(&g);
    ck_assert(publish(g.session));
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(totals(l).started, calls);
    ck_assert_uint_ge(l->execution->count, SEGMENTS);
    rig_remove(&g);
}
END_TEST

int main(void)
{
    TCase *c = test_case("long", 120);
    tcase_add_test(c, gate_roots_at_a_long_interval);
    tcase_add_test(c, gate_age_trigger);
    tcase_add_test(c, gate_thousands_of_segments);
    return test_run();
}
