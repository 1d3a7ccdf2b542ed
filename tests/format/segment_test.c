#include "config.h"

#include "format/segment.h"

#include "tests/testing.h"

#include "tests/format/fixture.h"

static vv_euid nines(void)
{
    vv_euid e;
    memset(&e, 9, sizeof e);
    return e;
}

static vv_code walk_meta(const uint8_t *p, size_t n, const vv_euid *euid, uint64_t sequence, vv_wr *again,
                         vv_error *err)
{
    vv_meta_segment s;
    vv_code rc = vv_meta_open(&s, p, n, euid, sequence, false, err);
    if (rc != VV_OK)
        return rc;
    if (again)
        vv_meta_begin(again, &s.euid, s.sequence, s.data_high_water);
    bool more = true;
    vv_meta_record m;
    while ((rc = vv_meta_next(&s, &m, &more, err)) == VV_OK && more)
        if (again)
            vv_meta_add(again, &m);
    if (again)
        vv_meta_end(again, s.record_count);
    return rc;
}

static vv_code walk_data(const uint8_t *p, size_t n, const vv_euid *euid, uint64_t sequence, vv_wr *again,
                         vv_error *err)
{
    vv_data_segment s;
    vv_code rc = vv_data_open(&s, p, n, euid, sequence, false, err);
    if (rc != VV_OK)
        return rc;
    if (again)
        vv_data_begin(again, &s.euid, s.sequence);
    bool more = true;
    vv_group g;
    uint64_t at = VV_DATA_HEADER;
    while ((rc = vv_data_next(&s, &g, &more, err)) == VV_OK && more) {
        ck_assert_uint_eq(g.off, at);
        ck_assert_uint_eq(g.len, VV_GROUP_FIXED + g.cct_len + g.evidence_len);
        at += g.len;
        if (again)
            vv_data_add(again, &g);
    }
    if (again)
        vv_data_end(again, s.group_count);
    return rc;
}

typedef vv_code (*walk)(const uint8_t *p, size_t n, const vv_euid *euid, uint64_t sequence, vv_wr *again,
                        vv_error *err);

/* Seals a copy of the first n bytes (a body) and walks it. */
static void check_body(walk w, const uint8_t *body, size_t n, const char *want)
{
    vv_wr sealed = vv_wr_growing(1 << 20);
    vv_wr_bytes(&sealed, body, n);
    vv_seal_append(&sealed, 0);
    uint8_t *exact = test_exact(sealed.buf, sealed.len);
    vv_error err = {0};
    TEST_NAME(w(exact, sealed.len, NULL, 0, NULL, &err), &err, want);
    free(exact);
    vv_wr_done(&sealed);
}

/* Cuts and flips of a sealed file that anyone would notice. */
static void check_seal(walk w, const uint8_t *p, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        uint8_t *exact = test_exact(p, k);
        vv_error err = {0};
        TEST_NAME(w(exact, k, NULL, 0, NULL, &err), &err, k < 32 ? "Truncated" : "InvalidChecksum");
        free(exact);
    }
    uint8_t *exact = test_exact(p, n);
    for (size_t bit = 0; bit < n * 8; bit++) {
        vv_error err = {0};
        exact[bit / 8] ^= (uint8_t)(1 << bit % 8);
        TEST_NAME(w(exact, n, NULL, 0, NULL, &err), &err, "InvalidChecksum");
        exact[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(exact);
}

START_TEST(meta_vector_both_ways)
{
    vv_blob v = test_vector("meta_segment");
    vv_meta_segment s;
    vv_euid euid = nines();
    vv_error err = {0};
    ck_assert_uint_eq(v.n, 545);
    ck_assert_int_eq(vv_meta_open(&s, v.p, v.n, &euid, 1, false, &err), VV_OK);
    ck_assert(s.sequence == 1 && s.data_high_water == 7 && s.record_count == 4);
    vv_meta_record m;
    bool more;
    ck_assert(vv_meta_next(&s, &m, &more, NULL) == VV_OK && more && m.tag == VV_META_STREAM_STARTED);
    ck_assert(m.stream_started.pid == 42 && m.stream_started.zero_unix_ns == 1000);
    ck_assert(vv_str_eq(m.stream_started.version, vv_cstr("golden")));
    ck_assert(vv_str_eq(m.stream_started.os_arch, vv_cstr("test-arch")));
    ck_assert(vv_meta_next(&s, &m, &more, NULL) == VV_OK && more && m.tag == VV_META_ENGINE_STARTED);
    ck_assert(m.engine_started.engine_id == 1 && m.engine_started.has_table && m.engine_started.table.b[31] == 3);
    ck_assert(m.engine_started.program.b[0] == 2 && vv_str_eq(m.engine_started.revision.s, vv_cstr("rev")));
    ck_assert(m.engine_started.revision.present && !m.engine_started.source.present);
    ck_assert(vv_meta_next(&s, &m, &more, NULL) == VV_OK && more && m.tag == VV_META_ROOT_STARTED);
    vv_thread_ref root = vv_thread_ref_make(&euid, 1, 3);
    ck_assert_mem_eq(&m.root_started.root, &root, 32);
    ck_assert(m.root_started.started_ns == 10 && m.root_started.runtime_id.b[15] == 9);
    ck_assert(vv_meta_next(&s, &m, &more, NULL) == VV_OK && more && m.tag == VV_META_ROOT_ENDED);
    ck_assert_mem_eq(&m.root_ended.root, &root, 32);
    ck_assert(m.root_ended.ended_ns == 20 && m.root_ended.status == VV_EXEC_SUCCEEDED && m.root_ended.flags == 0);
    ck_assert(m.root_ended.first == 1 && m.root_ended.last == 1 && m.root_ended.count == 1);
    ck_assert(vv_meta_next(&s, &m, &more, NULL) == VV_OK && !more);
    ck_assert(vv_meta_next(&s, &m, &more, NULL) == VV_OK && !more);

    vv_wr w = vv_wr_growing(4096);
    ck_assert_int_eq(walk_meta(v.p, v.n, &euid, 1, &w, NULL), VV_OK);
    test_wrote(&w, v.p, v.n);
    vv_wr_done(&w);
    vv_blob_done(&v);
}
END_TEST

START_TEST(meta_vector_faults)
{
    vv_blob v = test_vector("meta_segment");
    check_seal(walk_meta, v.p, v.n);
    vv_euid other = nines();
    other.b[15] = 8;
    vv_error err = {0};
    TEST_NAME(walk_meta(v.p, v.n, &other, 1, NULL, &err), &err, "EuidMismatch");
    TEST_NAME(walk_meta(v.p, v.n, NULL, 2, NULL, &err), &err, "SequenceMismatch");
    TEST_NAME(walk_meta(v.p, v.n, &other, 2, NULL, &err), &err, "EuidMismatch");
    size_t body = v.n - 32;
    for (size_t n = 0; n < body; n++)
        check_body(walk_meta, v.p, n, "Truncated");
    uint8_t *longer = test_longer(v.p, body);
    check_body(walk_meta, longer, body + 1, "TrailingBytes");
    free(longer);
    vv_blob_done(&v);
}
END_TEST

/*
 * Offsets in the meta vector's body: header 0 to 57; records at 58 (StreamStarted, body 63 to 97), 98 (EngineStarted,
 * body 103 to 168), 169 (RootStarted, body 174 to 229), 230 (RootEnded, body 235 to 512).
 */
START_TEST(meta_errors_by_name)
{
    static const struct {
        size_t at;
        uint8_t value;
        const char *name;
    } rows[] = {
        {0, 'X', "InvalidMagic"},
        {3, 'X', "InvalidMagic"},
        {9, 1, "UnsupportedVersion"},
        {9, 3, "UnsupportedVersion"},
        {49, 5, "Truncated"},         /* record count */
        {49, 3, "TrailingBytes"},
        {42, 0xff, "Truncated"},
        {57, 0xc6, "TrailingBytes"},  /* payload length, one less and more */
        {57, 0xc8, "Truncated"},
        {58, 4, "MetaUnknownTag"},
        {58, 0xff, "MetaUnknownTag"},
        {59, 0xff, "Truncated"},      /* a body longer than the payload */
        {62, 34, "Truncated"},        /* a body that ends inside os_arch */
        {78, 5, "Truncated"},         /* version one shorter: os_arch reads a length out of text */
        {79, 0xff, "InvalidUtf8"},
        {127, 2, "InvalidKind"},
        {160, 2, "InvalidKind"},
        {165, 0xc0, "InvalidUtf8"},
        {168, 2, "InvalidKind"},
        {168, 1, "Truncated"},
        {173, 55, "Truncated"},
        {275, 5, "MetaInvalidStatus"},
        {304, 207, "MetaInvalidHealth"},
        {304, 209, "Truncated"},
        {302, 1, "Truncated"},
        {10, 1, "MetaStreamStartedMisplaced"},
        {17, 2, "MetaStreamStartedMisplaced"},
        {276, 0xff, NULL},            /* flags above bit 0 are not checked */
    };
    vv_blob v = test_vector("meta_segment");
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        uint8_t *p = test_exact(v.p, v.n - 32);
        p[rows[i].at] = rows[i].value;
        check_body(walk_meta, p, v.n - 32, rows[i].name);
        free(p);
    }
    vv_blob_done(&v);
}
END_TEST

START_TEST(version_numbers_are_in_the_message)
{
    vv_blob v = test_vector("meta_segment");
    vv_put16(v.p + 8, 777);
    vv_wr w = vv_wr_growing(4096);
    vv_wr_bytes(&w, v.p, v.n - 32);
    vv_seal_append(&w, 0);
    vv_error err = {0};
    ck_assert_int_eq(walk_meta(w.buf, w.len, NULL, 0, NULL, &err), VV_ERR_CORRUPT);
    ck_assert_str_eq(err.name, "UnsupportedVersion");
    ck_assert_ptr_nonnull(strstr(err.msg, "777"));
    vv_wr_done(&w);
    vv_blob_done(&v);
}
END_TEST

/* The same records at sequence 2, and StreamStarted as the second record. */
START_TEST(stream_started_comes_first_of_all)
{
    vv_euid euid = nines();
    vv_meta_record start = {.tag = VV_META_STREAM_STARTED}, engine = {.tag = VV_META_ENGINE_STARTED};
    static const struct {
        uint64_t sequence;
        bool first;
        const char *name;
    } rows[] = {{1, true, NULL}, {2, true, "MetaStreamStartedMisplaced"}, {1, false, "MetaStreamStartedMisplaced"}};
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        vv_wr w = vv_wr_growing(4096);
        vv_meta_begin(&w, &euid, rows[i].sequence, 0);
        vv_meta_add(&w, rows[i].first ? &start : &engine);
        vv_meta_add(&w, rows[i].first ? &engine : &start);
        vv_meta_end(&w, 2);
        vv_error err = {0};
        TEST_NAME(walk_meta(w.buf, w.len, &euid, rows[i].sequence, NULL, &err), &err, rows[i].name);
        vv_wr_done(&w);
    }
}
END_TEST

START_TEST(long_texts)
{
    vv_euid euid = nines();
    char *text = malloc(65537);
    memset(text, 'x', 65537);
    vv_meta_record m = {.tag = VV_META_STREAM_STARTED, .stream_started = {.version = {text, 65536}}};
    vv_wr w = vv_wr_growing(1 << 20);
    vv_meta_begin(&w, &euid, 1, 0);
    vv_meta_add(&w, &m);
    vv_meta_end(&w, 1);
    ck_assert(vv_wr_ok(&w));
    ck_assert_int_eq(walk_meta(w.buf, w.len, &euid, 1, NULL, NULL), VV_OK);
    vv_wr_reset(&w);
    m.stream_started.version.n = 65537;
    vv_meta_begin(&w, &euid, 1, 0);
    vv_meta_add(&w, &m);
    vv_meta_end(&w, 1);
    ck_assert_str_eq(w.why, "StringTooLong");
    /* A decoder has no such cap: the body is made by hand. */
    vv_wr_reset(&w);
    vv_meta_begin(&w, &euid, 1, 0);
    vv_wr_u8(&w, VV_META_STREAM_STARTED);
    vv_wr_u32(&w, 4 + 8 + 4 + 65537 + 4);
    vv_wr_u32(&w, 0);
    vv_wr_u64(&w, 0);
    vv_wr_u32(&w, 65537);
    vv_wr_bytes(&w, text, 65537);
    vv_wr_u32(&w, 0);
    vv_meta_end(&w, 1);
    ck_assert_int_eq(walk_meta(w.buf, w.len, &euid, 1, NULL, NULL), VV_OK);
    vv_wr_done(&w);
    free(text);
}
END_TEST

/* Group fixed parts: root 32, health 1, cct records 8, length 8, bytes, evidence records 8, length 8, bytes. */
static void add_group(vv_wr *w, uint64_t thread, uint8_t health, uint64_t records, const char *cct, uint64_t facts,
                      const char *evidence)
{
    vv_euid euid = nines();
    vv_group g = {
        .root = vv_thread_ref_make(&euid, 1, thread), .cct_health = health, .cct_records = records,
        .evidence_records = facts, .cct = (const uint8_t *)cct, .cct_len = strlen(cct),
        .evidence = (const uint8_t *)evidence, .evidence_len = strlen(evidence),
    };
    vv_data_add(w, &g);
}

START_TEST(data_segment_both_ways)
{
    vv_euid euid = nines();
    vv_wr w = vv_wr_growing(4096), again = vv_wr_growing(4096);
    vv_data_begin(&w, &euid, 5);
    ck_assert_uint_eq(w.len, VV_DATA_HEADER);
    add_group(&w, 1, 3, 7, "cct", 0, "");
    add_group(&w, 2, 0, 0, "", 9, "evidence");
    add_group(&w, 3, 0, 1, "c", 1, "e");
    vv_data_end(&w, 3);
    ck_assert_mem_eq(w.buf, "BAMLDAT1\0\2\0\0\0\0\0\0\0\5", 18);
    ck_assert_mem_eq(w.buf + 18, &euid, 16);
    ck_assert_uint_eq(vv_be64(w.buf + 34), 3);
    ck_assert_uint_eq(vv_be64(w.buf + 42), 3 * VV_GROUP_FIXED + 3 + 8 + 2);
    ck_assert_uint_eq(w.len, 50 + 3 * 65 + 13 + 32);
    ck_assert_int_eq(walk_data(w.buf, w.len, &euid, 5, &again, NULL), VV_OK);
    test_wrote(&again, w.buf, w.len);
    vv_data_segment s;
    vv_group g;
    bool more;
    ck_assert_int_eq(vv_data_open(&s, w.buf, w.len, &euid, 5, false, NULL), VV_OK);
    ck_assert(vv_data_next(&s, &g, &more, NULL) == VV_OK && more);
    ck_assert(g.cct_health == 3 && g.cct_records == 7 && g.cct_len == 3 && memcmp(g.cct, "cct", 3) == 0);
    ck_assert(vv_group_has_cct(&g) && !vv_group_has_evidence(&g));
    check_seal(walk_data, w.buf, w.len);
    for (size_t n = 0; n < w.len - 32; n++)
        check_body(walk_data, w.buf, n, "Truncated");
    w.buf[w.len - 32] = 0;
    check_body(walk_data, w.buf, w.len - 31, "TrailingBytes");
    vv_error err = {0};
    TEST_NAME(walk_data(w.buf, w.len, NULL, 0, NULL, &err), &err, "InvalidChecksum");
    /* A file verified before is not hashed again, but still checked for its shape. */
    ck_assert_int_eq(vv_data_open(&s, w.buf, w.len, &euid, 5, true, NULL), VV_OK);
    TEST_NAME(vv_data_open(&s, w.buf, 31, &euid, 5, true, &err), &err, "Truncated");
    TEST_NAME(vv_data_open(&s, w.buf, 40, &euid, 5, true, &err), &err, "Truncated");
    vv_wr_done(&w);
    vv_wr_done(&again);
}
END_TEST

/*
 * Offsets of a segment with one group of 3 + 1 section bytes: header to 49, root 50, health 82, cct records 83,
 * cct length 91, cct 99, evidence records 102, evidence length 110, evidence 118.
 */
START_TEST(data_errors_by_name)
{
    static const struct {
        size_t at;
        uint8_t value;
        const char *name;
    } rows[] = {
        {7, '2', "InvalidMagic"},
        {8, 2, "UnsupportedVersion"},
        {41, 0, "TrailingBytes"},
        {41, 2, "Truncated"},
        {34, 0xff, "Truncated"},
        {42, 1, "Truncated"},
        {49, 68, "TrailingBytes"},
        {49, 70, "Truncated"},
        {82, 8, "InvalidCct"},
        {82, 0xff, "InvalidCct"},
        {82, 7, NULL},
        {91, 0xff, "Truncated"},
        {98, 20, "Truncated"},
        {117, 2, "Truncated"},
        {117, 0, "TrailingBytes"},
        {110, 0x80, "Truncated"},
    };
    vv_euid euid = nines();
    vv_wr w = vv_wr_growing(4096);
    vv_data_begin(&w, &euid, 5);
    add_group(&w, 1, 0, 1, "cct", 1, "e");
    vv_data_end(&w, 1);
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        uint8_t *p = test_exact(w.buf, w.len - 32);
        p[rows[i].at] = rows[i].value;
        check_body(walk_data, p, w.len - 32, rows[i].name);
        free(p);
    }
    vv_error err = {0};
    euid.b[0] = 1;
    TEST_NAME(walk_data(w.buf, w.len, &euid, 5, NULL, &err), &err, "EuidMismatch");
    TEST_NAME(walk_data(w.buf, w.len, NULL, 6, NULL, &err), &err, "SequenceMismatch");
    vv_wr_done(&w);
}
END_TEST

START_TEST(health_fault_names_its_inside)
{
    vv_euid euid = nines();
    vv_wr w = vv_wr_growing(4096);
    vv_data_begin(&w, &euid, 1);
    add_group(&w, 1, 0x10, 1, "c", 0, "");
    vv_data_end(&w, 1);
    vv_data_segment s;
    vv_group g;
    bool more;
    vv_error err = {0};
    ck_assert_int_eq(vv_data_open(&s, w.buf, w.len, NULL, 0, false, NULL), VV_OK);
    ck_assert_int_eq(vv_data_next(&s, &g, &more, &err), VV_ERR_CORRUPT);
    ck_assert(!more);
    ck_assert_str_eq(s.inner, "InvalidHealth");
    ck_assert_ptr_nonnull(strstr(err.msg, "InvalidHealth"));
    ck_assert_str_eq(err.name, "InvalidCct");
    vv_wr_done(&w);
}
END_TEST

START_TEST(group_order)
{
    static const struct {
        uint64_t a, b, c;
        const char *name;
    } rows[] = {
        {1, 2, 3, NULL},
        {1, 1, 2, "DataDuplicateGroup"},
        {2, 1, 3, "DataGroupOrder"},
        {1, 3, 2, "DataGroupOrder"},
        {1, 2, 1, "DataGroupOrder"}, /* a duplicate of an older one is only out of order */
        {255, 256, 65536, NULL},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        vv_euid euid = nines();
        vv_wr w = vv_wr_growing(4096);
        vv_data_begin(&w, &euid, 1);
        add_group(&w, rows[i].a, 0, 1, "c", 0, "");
        add_group(&w, rows[i].b, 0, 1, "c", 0, "");
        add_group(&w, rows[i].c, 0, 1, "c", 0, "");
        vv_data_end(&w, 3);
        vv_error err = {0};
        TEST_NAME(walk_data(w.buf, w.len, NULL, 0, NULL, &err), &err, rows[i].name);
        vv_wr_done(&w);
    }
}
END_TEST

START_TEST(empty_groups_and_segments)
{
    static const struct {
        uint64_t records, facts;
        const char *name;
    } rows[] = {{0, 0, "DataEmptyGroup"}, {1, 0, "DataEmptyGroup"}, {0, 1, "DataEmptyGroup"}};
    vv_euid euid = nines();
    vv_error err = {0};
    vv_wr w = vv_wr_growing(4096);
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        vv_data_begin(&w, &euid, 1);
        add_group(&w, 1, 0, rows[i].records, "", rows[i].facts, "");
        vv_data_end(&w, 1);
        TEST_NAME(walk_data(w.buf, w.len, NULL, 0, NULL, &err), &err, rows[i].name);
        vv_wr_reset(&w);
    }
    vv_data_begin(&w, &euid, 1);
    vv_data_end(&w, 0);
    TEST_NAME(walk_data(w.buf, w.len, NULL, 0, NULL, &err), &err, NULL);
    vv_wr_done(&w);
}
END_TEST

START_TEST(prop_resealed_mutations_end)
{
    test_rng g = test_seeded("segment mutations");
    vv_blob meta = test_vector("meta_segment");
    vv_euid euid = nines();
    vv_wr data = vv_wr_growing(4096);
    vv_data_begin(&data, &euid, 1);
    add_group(&data, 1, 0, 1, "some bytes", 1, "others");
    add_group(&data, 2, 0, 1, "more", 0, "");
    vv_data_end(&data, 2);
    for (int round = 0; round < 20000; round++) {
        bool is_meta = test_below(&g, 2);
        const uint8_t *p = is_meta ? meta.p : data.buf;
        size_t n = (is_meta ? meta.n : data.len) - 32;
        if (test_below(&g, 4) == 0)
            n = test_below(&g, n);
        vv_wr w = vv_wr_growing(4096), again = vv_wr_growing(1 << 20);
        vv_wr_bytes(&w, p, n);
        for (uint64_t m = test_below(&g, 4); m && n; m--)
            w.buf[test_below(&g, n)] = test_below(&g, 2) ? (uint8_t)test_random(&g) : (uint8_t)test_below(&g, 4);
        vv_seal_append(&w, 0);
        uint8_t *exact = test_exact(w.buf, w.len);
        vv_error err = {0};
        if ((is_meta ? walk_meta : walk_data)(exact, w.len, NULL, 0, &again, &err) == VV_OK) {
            test_wrote(&again, w.buf, w.len);
        } else {
            ck_assert_ptr_nonnull(err.name);
            ck_assert_uint_le(err.off, w.len);
        }
        free(exact);
        vv_wr_done(&w);
        vv_wr_done(&again);
    }
    vv_wr_done(&data);
    vv_blob_done(&meta);
}
END_TEST

START_TEST(names)
{
    char name[VV_SEGMENT_NAME];
    uint64_t seq;
    vv_segment_name(name, VV_PLANE_META, 1);
    ck_assert_str_eq(name, "00000000000000000001.bamlmeta");
    vv_segment_name(name, VV_PLANE_DATA, UINT64_MAX);
    ck_assert_str_eq(name, "18446744073709551615.bamldata");
    ck_assert(vv_segment_parse(name, VV_PLANE_DATA, &seq) && seq == UINT64_MAX);
    ck_assert(vv_segment_parse("00000000000000000042.bamlmeta", VV_PLANE_META, &seq) && seq == 42);
    static const char *const bad[] = {
        "",
        "1.bamldata",
        "0000000000000000001.bamldata",
        "000000000000000000001.bamldata",
        "00000000000000000000.bamldata",
        "18446744073709551616.bamldata",
        "99999999999999999999.bamldata",
        "00000000000000000001.bamlmeta",
        "00000000000000000001.bamldat",
        "00000000000000000001.bamldatax",
        "00000000000000000001",
        "0000000000000000000x.bamldata",
        "+0000000000000000001.bamldata",
        " 0000000000000000001.bamldata",
        "00000000000000000001.BAMLDATA",
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(bad); i++) {
        char *exact = (char *)test_exact(bad[i], strlen(bad[i]) + 1);
        ck_assert_msg(!vv_segment_parse(exact, VV_PLANE_DATA, &seq), "%s", bad[i]);
        free(exact);
    }
    ck_assert_str_eq(vv_plane_dir(VV_PLANE_META), "meta");
    ck_assert_str_eq(vv_plane_dir(VV_PLANE_DATA), "data");
}
END_TEST

START_TEST(health_fields)
{
    ck_assert_str_eq(vv_health_name(0), "corrupt_records");
    ck_assert_str_eq(vv_health_name(7), "cct_segment_publish_failed");
    ck_assert_str_eq(vv_health_name(12), "applicable_error_unwinds");
    ck_assert_str_eq(vv_health_name(25), "terminal_error_link_evidence_publish_failed");
    ck_assert_ptr_null(vv_health_name(26));
    static const char loss[] = "11111111111100011111000111";
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        ck_assert_msg(vv_health_is_loss(i) == (loss[i] == '1'), "field %u", i);
    ck_assert(!vv_health_is_loss(26));
    vv_health h, back;
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        h.v[i] = i * UINT64_C(0x0101010101010101);
    uint8_t bytes[VV_HEALTH_BYTES];
    vv_wr w = vv_wr_fixed(bytes, sizeof bytes);
    vv_health_encode(&w, &h);
    ck_assert(vv_wr_ok(&w) && w.len == sizeof bytes && bytes[8 * 25] == 25);
    vv_rd r = vv_rd_init(bytes, sizeof bytes);
    vv_health_decode(&r, &back);
    ck_assert(vv_rd_ok(&r) && vv_rd_left(&r) == 0);
    ck_assert_mem_eq(&back, &h, sizeof h);
}
END_TEST

int main(void)
{
    TCase *t = test_case("segment", 0);
    tcase_add_test(t, meta_vector_both_ways);
    tcase_add_test(t, meta_vector_faults);
    tcase_add_test(t, meta_errors_by_name);
    tcase_add_test(t, version_numbers_are_in_the_message);
    tcase_add_test(t, stream_started_comes_first_of_all);
    tcase_add_test(t, long_texts);
    tcase_add_test(t, data_segment_both_ways);
    tcase_add_test(t, data_errors_by_name);
    tcase_add_test(t, health_fault_names_its_inside);
    tcase_add_test(t, group_order);
    tcase_add_test(t, empty_groups_and_segments);
    tcase_add_test(t, prop_resealed_mutations_end);
    tcase_add_test(t, names);
    tcase_add_test(t, health_fields);
    return test_run();
}
