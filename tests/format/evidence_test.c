#include "config.h"

#include "format/evidence.h"

#include "tests/testing.h"

static vv_code decode(const uint8_t *p, size_t n, uint64_t count, vv_fact *facts, size_t *ret_facts, vv_error *err)
{
    vv_evidence_cursor c;
    vv_fact f;
    size_t k = 0;
    vv_evidence_open(&c, p, n, count);
    while (vv_evidence_next(&c, facts ? &facts[k] : &f))
        k++;
    if (ret_facts)
        *ret_facts = k;
    return vv_evidence_finish(&c, err);
}

/* The verdict on a section of one fact with this tag and body. */
static void check_body(uint8_t tag, const uint8_t *body, size_t n, const char *want, const char *inner)
{
    vv_wr w = vv_wr_growing(1 << 20);
    vv_wr_u64(&w, 1);
    vv_wr_u8(&w, tag);
    vv_wr_u32(&w, (uint32_t)n);
    vv_wr_bytes(&w, body, n);
    uint8_t *exact = test_exact(w.buf, w.len);
    vv_error err = {0};
    vv_code rc = decode(exact, w.len, 1, NULL, NULL, &err);
    if (inner)
        ck_assert_msg(strstr(err.msg, inner) != NULL, "wanted %s inside, got %s", inner, err.msg);
    TEST_NAME(rc, &err, want);
    free(exact);
    vv_wr_done(&w);
}

/* One fact of each tag 0 to 7 with every optional part absent or present. */
static vv_fact sample(vv_fact_tag tag, bool full)
{
    vv_fact f;
    memset(&f, 0, sizeof f);
    f.tag = tag;
    switch (tag) {
    case VV_FACT_SPAN_START:
        f.span_start = (vv_span_start){
            .has_parent = full,
            .has_site = full,
            .has_runtime_id = full,
            .edge = VV_EDGE_CALL,
            .reasons = 5,
            .roles = 7,
            .function_id = 9,
            .annotation_ordinal = full ? 3 : 0,
            .started_ns = 77,
            .context = {.overflow = full, .reason = full, .edge = full ? 2 : 0},
        };
        break;
    case VV_FACT_SPAN_END:
        f.span_end = (vv_span_end){.ended_ns = 1, .inclusive_ns = 2, .status = VV_CALL_EXITED};
        break;
    case VV_FACT_SPAN_RUNTIME_ID:
        f.span_runtime_id = (vv_span_runtime_id){.ordinal = 4};
        break;
    case VV_FACT_VALUE:
        f.value = (vv_value_occurrence){
            .role = 1,
            .value = {.lost = full, .loss = full ? 10 : 0, .codec = full ? 0 : 1},
        };
        break;
    case VV_FACT_ERROR_CAPTURE:
        f.error_capture = (vv_error_capture){
            .has_site = full,
            .kind = 1,
            .source = 3,
            .value = {.lost = true, .loss = 2},
        };
        break;
    case VV_FACT_TERMINAL_ERROR:
        f.terminal_error = (vv_terminal_error){.lost = full, .loss = full ? 6 : 0};
        break;
    case VV_FACT_THREAD_START:
        f.thread_start = (vv_thread_start){
            .has_parent = full,
            .has_spawn_call = full,
            .has_spawn_site = full,
            .kind = full,
            .started_ns = 5,
            .name = vv_cstr("main"),
        };
        break;
    case VV_FACT_THREAD_END:
        f.thread_end = (vv_thread_end){.ended_ns = 8, .status = VV_THREAD_ERRORED};
        break;
    case VV_FACT_LOG:
    case VV_FACT_CALL_SCOPE:
        break;
    }
    return f;
}

/* Encoded body lengths by the format: fixed parts, and what the optional parts add. */
static const struct {
    size_t bare, full;
} lengths[] = {
    [VV_FACT_SPAN_START] = {40 + 1 + 32 + 33 + 4 + 1 + 1 + 8 + 1 + 1 + 1, 40 + 41 + 32 + 3 + 4 + 17 + 1 + 8 + 2 + 21},
    [VV_FACT_SPAN_END] = {57, 57},
    [VV_FACT_SPAN_RUNTIME_ID] = {60, 60},
    [VV_FACT_VALUE] = {40 + 33 + 1 + 43, 40 + 33 + 1 + 2},
    [VV_FACT_ERROR_CAPTURE] = {10 + 40 + 40 + 33 + 4 + 1 + 2 + 2, 10 + 40 + 40 + 33 + 4 + 17 + 2 + 2},
    [VV_FACT_TERMINAL_ERROR] = {10 + 40 + 41, 10 + 40 + 2},
    [VV_FACT_THREAD_START] = {32 + 3 + 8 + 1 + 4 + 4, 32 + 33 + 41 + 17 + 8 + 1 + 4 + 4},
    [VV_FACT_THREAD_END] = {41, 41},
};

/* A sample's encoded body; the caller frees it. */
static vv_blob sample_body(vv_fact_tag tag, bool full)
{
    vv_wr w = vv_wr_growing(4096);
    vv_fact f = sample(tag, full);
    vv_fact_encode(&w, &f);
    ck_assert(vv_wr_ok(&w));
    ck_assert_uint_eq(w.buf[0], tag);
    ck_assert_uint_eq(vv_be32(w.buf + 1), w.len - 5);
    vv_blob b = {test_exact(w.buf + 5, w.len - 5), w.len - 5};
    vv_wr_done(&w);
    return b;
}

START_TEST(bodies_have_the_format_s_length)
{
    for (int full = 0; full < 2; full++) {
        vv_blob b = sample_body((vv_fact_tag)_i, full);
        ck_assert_uint_eq(b.n, full ? lengths[_i].full : lengths[_i].bare);
        check_body((uint8_t)_i, b.p, b.n, NULL, NULL);
        bool nested = _i == VV_FACT_ERROR_CAPTURE || _i == VV_FACT_TERMINAL_ERROR;
        for (size_t n = 0; n < b.n; n++)
            check_body((uint8_t)_i, b.p, n, nested ? "InvalidNestedError" : "Truncated", "Truncated");
        uint8_t *longer = test_longer(b.p, b.n);
        check_body((uint8_t)_i, longer, b.n + 1, nested ? "InvalidNestedError" : "TrailingBytes", "TrailingBytes");
        free(longer);
        vv_blob_done(&b);
    }
}
END_TEST

START_TEST(each_fault_by_name)
{
    /* at: an offset in the bare sample's body, as the format's layout gives it. */
    static const struct {
        vv_fact_tag tag;
        size_t at;
        uint8_t value;
        const char *name, *inner;
    } rows[] = {
        {VV_FACT_SPAN_START, 40, 2, "InvalidTag", NULL},
        {VV_FACT_SPAN_START, 73, 2, "InvalidTag", NULL},
        {VV_FACT_SPAN_START, 110, 2, "InvalidTag", NULL},
        {VV_FACT_SPAN_START, 111, 3, "InvalidTag", NULL},
        {VV_FACT_SPAN_START, 120, 8, "InvalidBits", NULL},
        {VV_FACT_SPAN_START, 121, 0x80, "InvalidBits", NULL},
        {VV_FACT_SPAN_START, 122, 2, "InvalidTag", NULL},
        {VV_FACT_SPAN_START, 122, 1, "Truncated", NULL},
        {VV_FACT_SPAN_END, 48, 4, "InvalidTag", NULL},
        {VV_FACT_VALUE, 40, 2, "InvalidTag", NULL},
        {VV_FACT_VALUE, 40, 1, "TrailingBytes", NULL},
        {VV_FACT_VALUE, 73, 2, "InvalidTag", NULL},
        {VV_FACT_VALUE, 74, 2, "InvalidTag", NULL},
        {VV_FACT_ERROR_CAPTURE, 0, 'X', "InvalidNestedError", "InvalidMagic"},
        {VV_FACT_ERROR_CAPTURE, 9, 2, "InvalidNestedError", "UnsupportedVersion"},
        {VV_FACT_ERROR_CAPTURE, 90, 2, "InvalidNestedError", "InvalidTag"},
        {VV_FACT_ERROR_CAPTURE, 127, 2, "InvalidNestedError", "InvalidTag"},
        {VV_FACT_ERROR_CAPTURE, 128, 2, "InvalidNestedError", "InvalidTag"},
        {VV_FACT_ERROR_CAPTURE, 129, 4, "InvalidNestedError", "InvalidTag"},
        {VV_FACT_ERROR_CAPTURE, 130, 2, "InvalidNestedError", "InvalidTag"},
        {VV_FACT_ERROR_CAPTURE, 131, 11, "InvalidNestedError", "InvalidTag"},
        {VV_FACT_TERMINAL_ERROR, 7, '2', "InvalidNestedError", "InvalidMagic"},
        {VV_FACT_TERMINAL_ERROR, 8, 1, "InvalidNestedError", "UnsupportedVersion"},
        {VV_FACT_TERMINAL_ERROR, 50, 2, "InvalidNestedError", "InvalidTag"},
        {VV_FACT_THREAD_START, 32, 2, "InvalidTag", NULL},
        {VV_FACT_THREAD_START, 33, 2, "InvalidTag", NULL},
        {VV_FACT_THREAD_START, 34, 2, "InvalidTag", NULL},
        {VV_FACT_THREAD_START, 43, 2, "InvalidTag", NULL},
        {VV_FACT_THREAD_START, 46, 2, "NameTooLong", NULL},
        {VV_FACT_THREAD_START, 47, 3, "TrailingBytes", NULL},
        {VV_FACT_THREAD_START, 47, 5, "Truncated", NULL},
        {VV_FACT_THREAD_START, 49, 0xff, "InvalidBits", NULL},
        {VV_FACT_THREAD_END, 40, 3, "InvalidTag", NULL},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        vv_blob b = sample_body(rows[i].tag, false);
        b.p[rows[i].at] = rows[i].value;
        check_body((uint8_t)rows[i].tag, b.p, b.n, rows[i].name, rows[i].inner);
        vv_blob_done(&b);
    }
}
END_TEST

/* Codes of the full samples: an overflow context's reason and edge, the losses. */
START_TEST(codes_out_of_range)
{
    static const struct {
        vv_fact_tag tag;
        size_t at;
        uint8_t value;
        const char *name;
    } rows[] = {
        {VV_FACT_SPAN_START, 114, 2, "InvalidTag"},
        {VV_FACT_SPAN_START, 115, 3, "InvalidTag"},
        {VV_FACT_VALUE, 75, 11, "InvalidTag"},
        {VV_FACT_TERMINAL_ERROR, 51, 7, "InvalidNestedError"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        vv_blob b = sample_body(rows[i].tag, true);
        b.p[rows[i].at] = rows[i].value;
        check_body((uint8_t)rows[i].tag, b.p, b.n, rows[i].name, NULL);
        vv_blob_done(&b);
    }
}
END_TEST

/* Facts 8 and 9 are only read, so their bodies are written out here. */
START_TEST(logs_and_scopes)
{
    static const uint8_t log[] = {
        0,                                              /* no call */
        0, 0, 0, 0, 0, 0, 1, 2,                         /* time */
        1, 0, 0, 0, 0, 0, 0, 0, 4, 'i', 'n', 'f', 'o',  /* level */
        1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, /* site */
        1, 0, 0, 0, 9,                                  /* column */
        0, 0, 0,                                        /* message, event, distinct id */
        1, 0, 1, 10,                                    /* context and data, both lost */
    };
    uint8_t section[13 + sizeof log] = {0, 0, 0, 0, 0, 0, 0, 1, VV_FACT_LOG, 0, 0, 0, sizeof log};
    memcpy(section + 13, log, sizeof log);
    vv_fact f;
    ck_assert_int_eq(decode(section, sizeof section, 1, &f, NULL, NULL), VV_OK);
    ck_assert(f.tag == VV_FACT_LOG && !f.log.has_call && f.log.timestamp_ms == 258 && f.log.level.present);
    ck_assert(vv_str_eq(f.log.level.s, vv_cstr("info")) && !f.log.message.present && !f.log.event.present);
    ck_assert(f.log.has_site && f.log.site.line == 4 && f.log.has_column && f.log.column == 9);
    ck_assert(f.log.context.lost && f.log.data.loss == 10);
    for (size_t n = 0; n < sizeof log; n++)
        check_body(VV_FACT_LOG, log, n, "Truncated", NULL);
    static const struct {
        size_t at;
        uint8_t value;
        const char *name;
    } rows[] = {
        {0, 2, "InvalidTag"},  {9, 2, "InvalidTag"},   {10, 0xff, "Truncated"}, {18, 0xff, "InvalidUtf8"},
        {22, 2, "InvalidTag"}, {39, 2, "InvalidTag"},  {44, 2, "InvalidTag"},   {47, 2, "InvalidTag"},
        {48, 11, "InvalidTag"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        uint8_t *b = test_exact(log, sizeof log);
        b[rows[i].at] = rows[i].value;
        check_body(VV_FACT_LOG, b, sizeof log, rows[i].name, NULL);
        free(b);
    }
    uint8_t called[sizeof log + 40] = {[0] = 1, [40] = 7};
    memcpy(called + 41, log + 1, sizeof log - 1);
    check_body(VV_FACT_LOG, called, sizeof called, NULL, NULL);
    check_body(VV_FACT_LOG, called, 40, "Truncated", NULL);
    uint8_t scope[40 + 10 + 2] = {[40] = 1, [48] = 1, [49] = 'u', [50] = 1, [51] = 3};
    check_body(VV_FACT_CALL_SCOPE, scope, sizeof scope, NULL, NULL);
    for (size_t n = 0; n < sizeof scope; n++)
        check_body(VV_FACT_CALL_SCOPE, scope, n, "Truncated", NULL);
    scope[49] = 0xc0;
    check_body(VV_FACT_CALL_SCOPE, scope, sizeof scope, "InvalidUtf8", NULL);
    check_body(10, scope, sizeof scope, "InvalidTag", NULL);
    check_body(255, scope, 0, "InvalidTag", NULL);
    vv_wr w = vv_wr_growing(100);
    vv_fact_encode(&w, &f);
    ck_assert_str_eq(w.why, "InvalidTag");
    vv_wr_done(&w);
}
END_TEST

START_TEST(section_faults)
{
    vv_wr w = vv_wr_growing(4096);
    vv_error err = {0};
    vv_wr_u64(&w, 2);
    for (int i = 0; i < 2; i++) {
        vv_fact f = sample(VV_FACT_THREAD_END, false);
        vv_fact_encode(&w, &f);
    }
    for (size_t n = 0; n < w.len; n++)
        TEST_NAME(decode(w.buf, n, 2, NULL, NULL, &err), &err, "Truncated");
    TEST_NAME(decode(w.buf, w.len, 2, NULL, NULL, &err), &err, NULL);
    TEST_NAME(decode(w.buf, w.len, 1, NULL, NULL, &err), &err, "RecordCountMismatch");
    TEST_NAME(decode(w.buf, w.len, 3, NULL, NULL, &err), &err, "RecordCountMismatch");
    w.buf[7] = 1;
    TEST_NAME(decode(w.buf, w.len, 1, NULL, NULL, &err), &err, "TrailingBytes");
    w.buf[7] = (uint8_t)(w.len / 5);
    TEST_NAME(decode(w.buf, w.len, 2, NULL, NULL, &err), &err, "Truncated");
    w.buf[0] = 0xff;
    TEST_NAME(decode(w.buf, w.len, 2, NULL, NULL, &err), &err, "Truncated");
    TEST_NAME(decode(NULL, 0, 0, NULL, NULL, &err), &err, "Truncated");
    TEST_NAME(decode((const uint8_t *)"\0\0\0\0\0\0\0\0", 8, 0, NULL, NULL, &err), &err, NULL);
    vv_wr_done(&w);
}
END_TEST

START_TEST(thread_names_are_cut_on_a_character_boundary)
{
    char name[400];
    static const struct {
        size_t pad, want; /* pad ASCII characters, then many of three bytes */
    } rows[] = {{0, 255}, {1, 256}, {2, 254}, {256, 256}, {257, 256}};
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        size_t n = rows[i].pad;
        memset(name, 'a', n);
        for (; n + 3 <= sizeof name; n += 3)
            memcpy(name + n, "\xe2\x82\xac", 3);
        vv_fact f = sample(VV_FACT_THREAD_START, false), back;
        f.thread_start.name = (vv_str){name, n};
        vv_wr w = vv_wr_growing(4096);
        vv_wr_u64(&w, 1);
        vv_fact_encode(&w, &f);
        ck_assert_int_eq(decode(w.buf, w.len, 1, &back, NULL, NULL), VV_OK);
        ck_assert_uint_eq(back.thread_start.name.n, rows[i].want);
        ck_assert_mem_eq(back.thread_start.name.p, name, rows[i].want);
        vv_wr_done(&w);
    }
}
END_TEST

START_TEST(site_order_of_an_error_capture)
{
    vv_fact f = sample(VV_FACT_ERROR_CAPTURE, true);
    f.error_capture.site = (vv_site){.file = 1, .start = 3, .end = 4, .line = 2};
    vv_wr w = vv_wr_growing(4096);
    vv_fact_encode(&w, &f);
    for (uint32_t i = 0; i < 4; i++) /* file, line, start, end stand behind the option byte */
        ck_assert_uint_eq(vv_be32(w.buf + 5 + 128 + 4 * i), i + 1);
    vv_wr_done(&w);
}
END_TEST

START_TEST(names_of_codes)
{
    ck_assert_str_eq(vv_call_status_name(VV_CALL_EXITED), "Exited");
    ck_assert_str_eq(vv_thread_status_name(VV_THREAD_ERRORED), "Errored");
    ck_assert_ptr_null(vv_call_status_name((vv_call_status)4));
    ck_assert_ptr_null(vv_thread_status_name((vv_thread_status)3));
}
END_TEST

/* Random facts: the encoding of what was decoded is the first encoding. */
START_TEST(prop_round_trip)
{
    test_rng g = test_seeded("evidence round trip");
    for (int round = 0; round < 3000; round++) {
        size_t n = test_below(&g, 8), k;
        vv_fact facts[8];
        vv_wr w = vv_wr_growing(1 << 16), again = vv_wr_growing(1 << 16);
        vv_wr_u64(&w, n);
        vv_wr_u64(&again, n);
        for (size_t i = 0; i < n; i++) {
            vv_fact f = sample((vv_fact_tag)test_below(&g, 8), test_below(&g, 2));
            vv_wr one = vv_wr_growing(4096);
            vv_fact_encode(&one, &f);
            /* Identities are free bytes: of those a fact begins with, 32 are always one. */
            bool nested = f.tag == VV_FACT_ERROR_CAPTURE || f.tag == VV_FACT_TERMINAL_ERROR;
            test_fill(&g, one.buf + 5 + (nested ? 10 : 0), 32);
            vv_wr_bytes(&w, one.buf, one.len);
            vv_wr_done(&one);
        }
        uint8_t *exact = test_exact(w.buf, w.len);
        ck_assert_int_eq(decode(exact, w.len, n, facts, &k, NULL), VV_OK);
        ck_assert_uint_eq(k, n);
        for (size_t i = 0; i < k; i++)
            vv_fact_encode(&again, &facts[i]);
        test_wrote(&again, w.buf, w.len);
        free(exact);
        /* Whatever a mutation does, it ends, and what it accepts encodes to the same bytes (tags 0 to 7). */
        size_t len = test_below(&g, 3) ? w.len : test_below(&g, w.len + 1);
        exact = test_exact(w.buf, len);
        for (uint64_t m = test_below(&g, 4); m && len; m--)
            exact[test_below(&g, len)] = (uint8_t)test_random(&g);
        vv_error err = {0};
        if (decode(exact, len, n, facts, &k, &err) == VV_OK) {
            vv_wr_reset(&again);
            vv_wr_u64(&again, k);
            for (size_t i = 0; i < k; i++)
                vv_fact_encode(&again, &facts[i]);
            if (vv_wr_ok(&again))
                test_wrote(&again, exact, len);
        } else {
            ck_assert_ptr_nonnull(err.name);
            ck_assert_uint_le(err.off, len);
        }
        free(exact);
        vv_wr_done(&w);
        vv_wr_done(&again);
    }
}
END_TEST

int main(void)
{
    TCase *t = test_case("evidence", 0);
    tcase_add_loop_test(t, bodies_have_the_format_s_length, 0, (int)VV_ARRAY_LEN(lengths));
    tcase_add_test(t, each_fault_by_name);
    tcase_add_test(t, codes_out_of_range);
    tcase_add_test(t, logs_and_scopes);
    tcase_add_test(t, section_faults);
    tcase_add_test(t, thread_names_are_cut_on_a_character_boundary);
    tcase_add_test(t, site_order_of_an_error_capture);
    tcase_add_test(t, names_of_codes);
    tcase_add_test(t, prop_round_trip);
    return test_run();
}
