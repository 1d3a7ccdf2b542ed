/* Few files at a long interval, thousands of segments in flat memory. */
#include "config.h"

#include "runtime/session.h"
#include "tests/runtime/host.h"

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
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    varve_root_end(r, VARVE_SUCCEEDED);
}

/* At an interval of 60 s nothing is written before somebody asks: then two meta segments (starts, ends), and data as
 * dense as the target allows. */
START_TEST(gate_roots_at_a_long_interval)
{
    test_store s = store_make_quick();
    varve_session *v = session_at(&s, 60000);
    varve_engine *e = varve_engine_open(v, NULL);
    uint32_t f = function(e, "case");
    for (unsigned i = 0; i < 1000; i++)
        record(e, f, 1 + i % 10); /* all together less than a segment, which would be reason to publish */
    count_files(&s);
    ck_assert_uint_eq(meta_files + data_files, 0);
    ck_assert(varve_flush(v, 20000));
    count_files(&s);
    uint64_t target = v->sizing.segment_target;
    ck_assert_uint_eq(meta_files, 2);
    ck_assert_uint_ge(data_bytes, 1000 * 5 * VV_CCT_ROW_MIN);
    ck_assert_uint_le(data_files, (data_bytes + target - 1) / target + 1);
    varve_session_close(v);
    count_files(&s);
    ck_assert_uint_eq(meta_files, 2);
    assert_ledger(s.root);
    store_remove(&s);
}
END_TEST

/* Without a flush what is recorded is on disk within the interval and a little. */
START_TEST(gate_age_trigger)
{
    test_store s = store_make_quick();
    varve_session *v = session_at(&s, 300);
    varve_engine *e = varve_engine_open(v, NULL);
    uint64_t from = vv_clock_monotonic_ns(), took = 0;
    record(e, function(e, "f"), 3);
    do {
        usleep(1000);
        count_files(&s);
        took = (vv_clock_monotonic_ns() - from) / 1000000;
    } while (meta_files < 2 && took < 20000);
    ck_assert_uint_eq(data_files, 1);
    ck_assert_uint_ge(took, 100);
    ck_assert_uint_lt(took, 5000);
    varve_session_close(v);
    store_remove(&s);
}
END_TEST

/* Of the process; 0 under sanitizers, which keep freed memory for a while. */
static uint64_t resident_kib(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0;
#else
    unsigned long total, resident;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%lu %lu", &total, &resident), 2);
    fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
#endif
}

/* One execution, thousands of segments: neither the governor's figure nor the process grows with them. */
START_TEST(gate_thousands_of_segments)
{
    enum { SEGMENTS = 4000, FIRST = 500, NAMES = 64 };
    test_store s = store_make_quick();
    uint64_t interval = 3600000;
    vv_session_test test = {.no_consumer = true};
    varve_session *v = vv_session_open(&(varve_options){.struct_size = sizeof(varve_options), .store_root = s.root,
                                                        .minimum_free_bytes = 1, .publish_interval_ms = &interval},
                                       &test);
    ck_assert(vv_session_active(v));
    v->decoder.epoch_nodes = 40; /* rollovers on the way */
    varve_engine *e = varve_engine_open(v, NULL);
    uint32_t f[NAMES];
    for (unsigned i = 0; i < NAMES; i++)
        f[i] = function(e, "f");
    varve_thread *t;
    varve_root *r = varve_root_begin(e, NULL, &t);
    varve_call_begin(t, f[0], 0);
    uint64_t used = 0, resident = 0, calls = 1;
    for (unsigned i = 0; i < SEGMENTS; i++) {
        for (unsigned k = 0; k < 120; k++, calls++) {
            varve_call_begin(t, f[(i + k) % NAMES], 0);
            varve_call_end(t, VARVE_CALL_OK);
        }
        vv_consumer_pass(v);
        ck_assert(vv_writer_cycle(&v->writer));
        if (i == FIRST) {
            used = atomic_load(&v->governor.pools[VV_POOL_GENERAL].used);
            resident = resident_kib();
        }
    }
    ck_assert_uint_le(atomic_load(&v->governor.pools[VV_POOL_GENERAL].used), used);
    ck_assert_uint_le(resident_kib(), resident + 512);
    ck_assert_uint_ge(vv_wstore_high(v->store, VV_PLANE_DATA), SEGMENTS);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    varve_root_end(r, VARVE_SUCCEEDED);
    for (unsigned i = 0; i < 3; i++)
        vv_consumer_pass(v);
    ck_assert(vv_writer_cycle(&v->writer));
    varve_session_close(v);
    look l = look_at(&s);
    assert_whole(&l);
    ck_assert_uint_eq(totals(&l).started, calls);
    ck_assert_uint_ge(l.execution->count, SEGMENTS);
    look_done(&l);
    store_remove(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("long");
    TCase *c = tcase_create("long");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, gate_roots_at_a_long_interval);
    tcase_add_test(c, gate_age_trigger);
    tcase_add_test(c, gate_thousands_of_segments);
    suite_add_tcase(suite, c);
    return test_main(suite);
}
