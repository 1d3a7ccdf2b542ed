#include "config.h"

#include "reader/store.h"

#include "base/sha256.h"
#include "format/cas.h"
#include "tests/testing.h"

#include "tests/reader/build.h"

static const struct {
    const char *plane, *state, *status;
    uint64_t decoded, contiguous, gaps;
} states[] = {
    {"B", "Complete", "Succeeded", 1, 1, 0},
    {"SE", "Complete", "Succeeded", 2, 2, 0},
    {"S", "NoRootEnded", "Abandoned", 1, 1, 0},
    {"L", "RootStartedLost", "Succeeded", 1, 1, 0},
    {"SL", "RootStartedLost", "Succeeded", 2, 2, 0}, /* the bit counts even where the start is there */
    {"E", "IndexCorrupt", "Succeeded", 1, 1, 0},
    {"-SE", "Complete", "Succeeded", 3, 0, 1}, /* a gap before the start does not matter */
    {"xSE", "Complete", "Succeeded", 3, 0, 1},
    {"S-E", "IndexCorrupt", "Succeeded", 3, 1, 1},
    {"SxE", "IndexCorrupt", "Succeeded", 3, 1, 1},
    {"S-L", "IndexCorrupt", "Succeeded", 3, 1, 1},
    {"SE-.", "Complete", "Succeeded", 4, 2, 1}, /* nor one after the end */
    {"SEx", "Complete", "Succeeded", 2, 2, 1},
    {"S-.", "IndexCorrupt", "Abandoned", 3, 1, 1},
    {"S.x", "IndexCorrupt", "Abandoned", 2, 2, 1}, /* a torn tail of a dead stream is a gap */
    {"-L", "RootStartedLost", "Succeeded", 2, 0, 1},
    {"-E", "IndexCorrupt", "Succeeded", 2, 0, 1},
    {"E.S", "Complete", "Succeeded", 3, 3, 0}, /* order of the two is not asked for */
    {"E-S", "Complete", "Succeeded", 3, 1, 1},
    {"S----E", "IndexCorrupt", "Succeeded", 6, 1, 4},
};

/* Begins a store whose one execution has started, and not ended. */
static void begin_started(test_store *t, uint64_t root, uint64_t high_water)
{
    test_store_begin(t);
    vv_meta_record start = test_started(t, root);
    test_store_meta(t, 1, high_water, &start, 1);
}

/* Threads that have groups and no execution, in this order. */
static void expect_orphans(const vv_store *st, const uint64_t *want, size_t want_count)
{
    vv_thread_ref *roots;
    size_t n;
    ck_assert(vv_stream_orphans(st, &st->streams[0], &roots, &n, NULL) == VV_OK);
    ck_assert_uint_eq(n, want_count);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(vv_thread_number(&roots[i]), want[i]);
    free(roots);
}

START_TEST(index_states)
{
    test_store t;
    test_store_begin(&t);
    test_draw_meta(&t, states[_i].plane);
    const vv_stream *s = &test_store_open(&t)->streams[0];
    ck_assert(!s->failed && !s->alive);
    ck_assert_uint_eq(s->execution_count, 1);
    const vv_execution *x = vv_stream_execution_at(s, 0);
    ck_assert_msg(strcmp(vv_index_state_name(x->index_state), states[_i].state) == 0, "%s is %s", states[_i].plane,
                  vv_index_state_name(x->index_state));
    ck_assert_str_eq(vv_exec_status_name(x->status), states[_i].status);
    ck_assert_uint_eq(s->meta_decoded, states[_i].decoded);
    ck_assert_uint_eq(s->meta_contiguous, states[_i].contiguous);
    ck_assert_uint_eq(test_count_gaps(s), states[_i].gaps);
    test_store_done(&t);
}
END_TEST

START_TEST(streams_that_do_not_open)
{
    static const struct {
        const char *plane, *name;
    } rows[] = {
        {"SD", "MetaDuplicateRootStarted"}, {"S-D", "MetaDuplicateRootStarted"}, {"BD", "MetaDuplicateRootStarted"},
        {"SEd", "MetaDuplicateRootEnded"},  {"Ed", "MetaDuplicateRootEnded"},    {"SDEd", "MetaDuplicateRootStarted"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        test_store t;
        test_store_begin(&t);
        test_draw_meta(&t, rows[i].plane);
        t.euid = test_euid(0x22); /* a neighbour, which is unaffected */
        test_draw_meta(&t, "SE");
        const vv_store *st = test_store_open(&t);
        ck_assert_uint_eq(st->stream_count, 2);
        ck_assert_msg(st->streams[0].failed, "%s", rows[i].plane);
        ck_assert_str_eq(st->streams[0].error.name, rows[i].name);
        ck_assert_uint_eq(st->streams[0].execution_count, 0);
        ck_assert(!st->streams[1].failed && st->streams[1].execution_count == 1);
        test_store_done(&t);
    }
}
END_TEST

/* Embedded numbers, foreign ids, versions: each makes the segment undecodable, so a gap. */
START_TEST(stricter_and_foreign_meta)
{
    for (int how = 0; how < 4; how++) {
        test_store t;
        test_store_begin(&t);
        vv_euid euid = how == 0 ? test_euid(0x33) : t.euid;
        vv_meta_record m[] = {test_started(&t, 1), test_header()};
        vv_wr w = vv_wr_growing(1 << 16);
        vv_meta_begin(&w, &euid, how == 1 ? 2 : 1, 0);
        vv_meta_add(&w, &m[0]);
        if (how == 2)
            vv_meta_add(&w, &m[1]); /* StreamStarted as the second record */
        vv_meta_end(&w, how == 2 ? 2 : 1);
        if (how == 3) {
            w.buf[9] = 3; /* version */
            w.len -= 32;
            vv_seal_append(&w, 0);
        }
        test_store_segment(&t, VV_PLANE_META, 1, w);
        const vv_stream *s = &test_store_open(&t)->streams[0];
        ck_assert(!s->failed);
        ck_assert_msg(s->execution_count == 0 && s->meta_decoded == 0 && test_count_gaps(s) == 1, "case %d", how);
        test_store_done(&t);
    }
}
END_TEST

START_TEST(engines_are_listed_as_met)
{
    test_store t;
    test_store_begin(&t);
    vv_meta_record m[] = {test_header(), test_engine(1, true), test_started(&t, 1), test_engine(2, true)};
    test_store_meta(&t, 1, 0, m, VV_ARRAY_LEN(m));
    vv_meta_record later[] = {test_engine(3, true), test_ended(&t, 1, 0, 0, 0)};
    later[0].engine_started.engine_id = 2;
    test_store_meta(&t, 2, 0, later, VV_ARRAY_LEN(later));
    const vv_stream *s = &test_store_open(&t)->streams[0];
    ck_assert_uint_eq(s->engine_count, 3);
    ck_assert_ptr_eq(vv_stream_execution_at(s, 0)->first_engine, &s->engines[0]);
    ck_assert_ptr_eq(vv_stream_execution_at(s, 0)->engine, &s->engines[1]);
    ck_assert(s->has_header && s->header.pid == 7);
    uint64_t unix_ns;
    ck_assert(vv_stream_unix_ns(s, 5, &unix_ns) && unix_ns == 1005);
    ck_assert(vv_stream_unix_ns(s, UINT64_MAX, &unix_ns) && unix_ns == UINT64_MAX);
    test_store_done(&t);
}
END_TEST

/* Ranges of a RootEnded against the files that are there; root 1 has a group in each, 2 in none. */
static const struct {
    const char *name;
    uint64_t first, last, count;
    const char *data; /* as test_draw_meta: g a group, x bad, o only a foreign group, - none */
    const char *issues; /* "M2 C3 G3/1", or the hard error's name after '!' */
} ranges[] = {
    {"whole", 1, 3, 3, "ggg", ""},
    {"nothing", 0, 0, 0, "", ""},
    {"first 0 with a count", 0, 0, 2, "gg", "G2/0"},
    {"first 0, last 2 with a count", 0, 2, 2, "gg", "G2/0"},
    {"a first without a count", 1, 2, 0, "gg", ""},
    {"backwards", 3, 1, 2, "ggg", "G2/0"},
    {"missing", 1, 3, 3, "g-g", "M2 G3/2"},
    {"bad", 1, 3, 3, "gxg", "C2 G3/2"},
    {"all of it", 1, 3, 3, "x-x", "C1 M2 C3 G3/0"},
    {"foreign between", 1, 3, 2, "gog", ""},
    {"too many found", 1, 3, 2, "ggg", "G2/3"},
    {"too few found", 1, 3, 3, "gog", "G3/2"},
    {"beyond the last file", 2, 4, 2, "ggg", "M4"},
    {"at the end of numbers", UINT64_MAX - 1, UINT64_MAX, 1, "g", "M18446744073709551614 M18446744073709551615 G1/0"},
    {"a million missing", 1, 1000001, 1, "g", "many"},
    {"a million and one missing", 1, 1000002, 1, "g", "!RangeTooLarge"},
    {"everything", 1, UINT64_MAX, 1, "g", "!RangeTooLarge"},
};

static void draw_data(test_store *t, const char *plane)
{
    for (uint64_t seq = 1; plane[seq - 1]; seq++) {
        if (plane[seq - 1] == 'x')
            test_store_bad(t, VV_PLANE_DATA, seq);
        else if (plane[seq - 1] != '-')
            test_store_data(t, seq, plane[seq - 1] == 'g' ? 1 : 9);
    }
}

START_TEST(data_ranges)
{
    test_store t;
    test_store_begin(&t);
    vv_meta_record m[] = {test_header(), test_started(&t, 1),
                          test_ended(&t, 1, ranges[_i].first, ranges[_i].last, ranges[_i].count)};
    test_store_meta(&t, 1, 0, m, VV_ARRAY_LEN(m));
    draw_data(&t, ranges[_i].data);
    test_store_open(&t);
    vv_fold *f = test_load(&t, 1);
    char got[256];
    test_issue_text(f, got, sizeof got);
    if (strcmp(ranges[_i].issues, "many") == 0)
        ck_assert_uint_eq(f->issue_count, 1000000);
    else
        ck_assert_msg(strcmp(got, ranges[_i].issues) == 0, "%s: %s", ranges[_i].name, got);
    ck_assert_int_eq(f->complete, ranges[_i].issues[0] == 0);
    vv_fold_free(f);
    test_store_done(&t);
}
END_TEST

/* Without RootEnded: from behind the high water of its start to the highest name. */
START_TEST(data_ranges_without_an_end)
{
    static const struct {
        uint64_t high_water;
        const char *data, *issues;
    } rows[] = {
        {0, "gg", "N"},          {0, "", "N"},          {0, "g-xg", "N M2 C3"},   {1, "x-g", "N M2"},
        {2, "xxg", "N"},         {3, "xxx", "N"},       {9, "xxx", "N"},          {UINT64_MAX, "ggg", "N"},
        {0, "oo", "N"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        test_store t;
        begin_started(&t, 1, rows[i].high_water);
        draw_data(&t, rows[i].data);
        test_store_open(&t);
        vv_fold *f = test_load(&t, 1);
        char got[256];
        test_issue_text(f, got, sizeof got);
        ck_assert_msg(strcmp(got, rows[i].issues) == 0, "%" PRIu64 " %s: %s", rows[i].high_water, rows[i].data, got);
        ck_assert(!f->complete);
        vv_fold_free(f);
        test_store_done(&t);
    }
}
END_TEST

/* Names with the largest numbers cost one range, not a loop. */
START_TEST(enormous_names)
{
    test_store t;
    begin_started(&t, 1, 0);
    test_store_bad(&t, VV_PLANE_DATA, UINT64_MAX);
    test_store_data(&t, 5, 4);
    t.euid = test_euid(0x22);
    test_store_bad(&t, VV_PLANE_META, UINT64_MAX);
    const vv_store *st = test_store_open(&t);
    t.euid = test_euid(0x11);
    vv_fold *f = test_load(&t, 1);
    ck_assert(f->failed);
    ck_assert_str_eq(f->error.name, "RangeTooLarge");
    vv_fold_free(f);
    ck_assert_uint_eq(st->streams[0].data_high, UINT64_MAX);
    ck_assert_uint_eq(st->streams[0].data_contiguous, 0);
    ck_assert_uint_eq(st->streams[0].data_bad_count, 2);
    ck_assert(st->streams[0].data_bad[1].first == 6 && st->streams[0].data_bad[1].last == UINT64_MAX);
    ck_assert(st->streams[1].failed);
    ck_assert_str_eq(st->streams[1].error.name, "RangeTooLarge");
    ck_assert_uint_eq(st->streams[1].meta_high, UINT64_MAX);
    expect_orphans(st, (const uint64_t[]){4}, 1);
    test_store_done(&t);
}
END_TEST

START_TEST(orphans_by_first_appearance)
{
    test_store t;
    begin_started(&t, 3, 0);
    static const uint64_t first[] = {3, 8}, second[] = {2, 7, 8}, bad[] = {1};
    test_store_segment(&t, VV_PLANE_DATA, 2, test_data(&t, 2, first, 2));
    test_store_segment(&t, VV_PLANE_DATA, 4, test_data(&t, 4, second, 3));
    test_store_segment(&t, VV_PLANE_DATA, 5, test_data(&t, 6, bad, 1)); /* says another number: skipped */
    expect_orphans(test_store_open(&t), (const uint64_t[]){8, 2, 7}, 3);
    test_store_done(&t);
}
END_TEST

/* Roots whose thread numbers agree in their low half, and others out of step with it, are still told apart. */
START_TEST(groups_are_found_by_their_whole_root)
{
    static const uint64_t roots[] = {5, 7, ((uint64_t)1 << 32) + 5, ((uint64_t)1 << 33) + 5, UINT64_MAX};
    test_store t;
    test_store_begin(&t);
    for (size_t i = 0; i < VV_ARRAY_LEN(roots); i++) {
        vv_meta_record m[] = {test_started(&t, roots[i]), test_ended(&t, roots[i], 1, 1, 1)};
        test_store_meta(&t, i + 1, 0, m, 2);
    }
    vv_meta_record absent[] = {test_started(&t, ((uint64_t)3 << 32) + 5),
                               test_ended(&t, ((uint64_t)3 << 32) + 5, 1, 1, 1)};
    test_store_meta(&t, 6, 0, absent, 2);
    test_store_segment(&t, VV_PLANE_DATA, 1, test_data(&t, 1, roots, VV_ARRAY_LEN(roots)));
    test_store_open(&t);
    for (size_t i = 0; i < VV_ARRAY_LEN(roots); i++) {
        vv_fold *f = test_load(&t, roots[i]);
        ck_assert(f->complete && f->groups == 1);
        vv_fold_free(f);
    }
    vv_fold *f = test_load(&t, ((uint64_t)3 << 32) + 5);
    ck_assert(!f->complete && f->groups == 0);
    vv_fold_free(f);
    test_store_done(&t);
}
END_TEST

/* Every bit of a data and a meta segment turned, sealed again: a named state each time, the same on a second look. */
START_TEST(flipped_bits)
{
    test_store t;
    test_store_begin(&t);
    vv_meta_record m[] = {test_header(), test_engine(1, true), test_started(&t, 1), test_ended(&t, 1, 1, 1, 1)};
    test_store_meta(&t, 1, 0, m, VV_ARRAY_LEN(m));
    test_store_data(&t, 1, 1);
    for (size_t file = 0; file < 2; file++) {
        vv_wr *w = &t.bytes[file];
        for (size_t bit = 0; bit < (w->len - 32) * 8; bit++) {
            w->buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
            vv_sha256(w->buf, w->len - 32, w->buf + w->len - 32);
            test_store_open(&t);
            const vv_stream *s = &t.store->streams[0];
            ck_assert(!s->failed || s->error.name);
            vv_store *again = NULL;
            ck_assert(vv_store_open(&again, t.source, t.store, NULL) == VV_OK);
            ck_assert_mem_eq(again->generation, t.store->generation, 32);
            for (size_t i = 0; i < s->execution_count; i++) {
                vv_fold *f;
                ck_assert(vv_fold_load(&f, t.store, s, vv_stream_execution_at(s, i), NULL, NULL) == VV_OK);
                ck_assert(!f->failed || f->error.name);
                vv_fold_free(f);
            }
            vv_store_free(again);
            test_store_close(&t);
            w->buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        vv_sha256(w->buf, w->len - 32, w->buf + w->len - 32);
    }
    test_store_open(&t);
    vv_fold *f = test_load(&t, 1);
    ck_assert(f->complete);
    vv_fold_free(f);
    test_store_done(&t);
}
END_TEST

/* Files are verified two at a time, whatever their lengths: one that is damaged leaves its neighbours alone. */
START_TEST(damage_beside_others)
{
    static const uint32_t lengths[] = {1, 4000, 1, 2500, 6000}; /* in contexts of some 160 bytes */
    enum { SEGMENTS = VV_ARRAY_LEN(lengths) };
    test_store t;
    test_store_begin(&t);
    vv_meta_record m[] = {test_started(&t, 1), test_ended(&t, 1, 1, SEGMENTS, SEGMENTS)};
    test_store_meta(&t, 1, 0, m, VV_ARRAY_LEN(m));
    for (uint64_t seq = 1; seq <= SEGMENTS; seq++) {
        vv_wr w = vv_wr_growing(1 << 22);
        vv_data_begin(&w, &t.euid, seq);
        test_group g;
        test_group_begin(&g);
        for (uint32_t i = 1; i <= lengths[seq - 1]; i++) {
            vv_cct_row row = test_context(i, true);
            test_group_row(&g, &row);
        }
        vv_thread_ref root = test_thread(&t, 1);
        test_group_end(&g, &w, &root);
        vv_data_end(&w, 1);
        test_store_segment(&t, VV_PLANE_DATA, seq, w);
    }
    for (unsigned damaged = 0; damaged < 1u << SEGMENTS; damaged++) {
        char want[64] = "", got[64];
        unsigned bad = 0;
        for (unsigned i = 0; i < SEGMENTS; i++) {
            vv_wr *w = &t.bytes[i + 1];
            w->buf[(size_t)damaged * 31 % w->len] ^= (uint8_t)(damaged >> i & 1);
            if (damaged >> i & 1)
                snprintf(want + strlen(want), sizeof want - strlen(want), "%sC%u", bad++ ? " " : "", i + 1);
        }
        if (bad)
            snprintf(want + strlen(want), sizeof want - strlen(want), " G%d/%u", SEGMENTS, SEGMENTS - bad);
        test_store_open(&t);
        vv_fold *f = test_load(&t, 1);
        test_issue_text(f, got, sizeof got);
        ck_assert_str_eq(got, want);
        vv_fold_free(f);
        test_store_close(&t);
        for (unsigned i = 0; i < SEGMENTS; i++)
            t.bytes[i + 1].buf[(size_t)damaged * 31 % t.bytes[i + 1].len] ^= (uint8_t)(damaged >> i & 1);
    }
    test_store_done(&t);
}
END_TEST

START_TEST(function_tables)
{
    test_store t;
    test_store_begin(&t);
    vv_function fn = {.id = 1, .fqn = vv_cstr("f"), .display_name = vv_cstr("f")};
    vv_wr body = vv_wr_growing(4096);
    vv_function_table_encode(&body, &fn, 1, NULL, 0);
    vv_engine engines[4] = {{.has_table = true}, {.has_table = true}, {.has_table = true}, {.has_table = false}};
    static const uint16_t codecs[] = {2, 1, 2};
    for (size_t i = 0; i < 3; i++) {
        size_t n = i == 2 ? body.len - 1 : body.len;
        vv_cid_of(&engines[i].table, codecs[i], body.buf, n);
        char path[VV_CAS_PATH];
        vv_cas_path(path, &engines[i].table);
        vv_wr w = vv_wr_growing(4096);
        vv_cas_encode(&w, codecs[i], body.buf, n);
        test_store_file(&t, path, w);
    }
    test_store_open(&t);
    static const char *const want[] = {NULL, "FunctionTableCodecMismatch", "FunctionTableInvalid", NULL};
    for (size_t i = 0; i < 4; i++) {
        vv_function_table table;
        vv_error err = {0};
        TEST_NAME(vv_engine_table(t.source, &engines[i], &table, &err), &err, want[i]);
        if (!want[i]) {
            ck_assert_uint_eq(table.function_count, i == 0);
            vv_function_table_done(&table);
        }
    }
    vv_engine gone = {.has_table = true};
    vv_function_table table;
    ck_assert_int_eq(vv_engine_table(t.source, &gone, &table, NULL), VV_ERR_NOTFOUND);
    vv_wr_done(&body);
    test_store_done(&t);
}
END_TEST

START_TEST(generation_vector)
{
    const char *top = getenv("top_srcdir");
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/fixtures/demo-store.tar", top ? top : ".");
    vv_source *source;
    vv_store *s;
    vv_error err = {0};
    ck_assert_msg(vv_source_open(&source, path, &err) == VV_OK, "%s", err.msg);
    ck_assert_msg(vv_store_open(&s, source, NULL, &err) == VV_OK, "%s", err.msg);
    char hex[65];
    vv_hex(hex, s->generation, 32);
    vv_blob text = test_file("tests/fixtures/contract-vectors.json");
    char wanted[96];
    snprintf(wanted, sizeof wanted, "\"generation\": \"%s\"", hex);
    ck_assert_msg(strstr((const char *)text.p, wanted) != NULL, "the generation is %s", hex);
    vv_blob_done(&text);
    vv_store_free(s);
    vv_source_close(source);
}
END_TEST

/* Terms of the health plane are attached where they can be read, and nothing else changes where they can't. */
static void add_terms(test_store *t, uint64_t sequence, uint64_t root, uint64_t value, bool damaged)
{
    vv_wr w = vv_wr_growing(1 << 16);
    vv_thread_ref r = test_thread(t, root);
    vv_health_begin(&w, &t->euid, sequence);
    vv_health_add(&w, &r, 1);
    vv_health_add_term(&w, "invocations_attempted", value);
    vv_health_end(&w, 1);
    if (damaged)
        w.buf[w.len / 2] ^= 1;
    test_store_segment(t, VV_PLANE_HEALTH, sequence, w);
}

START_TEST(health_plane)
{
    test_store t;
    test_store_begin(&t);
    vv_meta_record m[] = {test_header(),  test_engine(1, false),     test_started(&t, 1),       test_started(&t, 2),
                          test_started(&t, 3), test_ended(&t, 1, 0, 0, 0), test_ended(&t, 2, 0, 0, 0)};
    test_store_meta(&t, 1, 0, m, VV_ARRAY_LEN(m));
    add_terms(&t, 1, 1, 11, false);
    add_terms(&t, 2, 2, 22, true);
    add_terms(&t, 4, 1, 44, false); /* a second one of a root counts no more; a gap is no matter */
    add_terms(&t, 5, 3, 55, false); /* it has not ended */
    add_terms(&t, 6, 9, 66, false); /* nobody knows it */
    vv_store *store = test_store_open(&t);
    const vv_stream *s = &store->streams[0];
    ck_assert(!s->failed && s->execution_count == 3 && s->meta_gap_count == 0);
    uint64_t v;
    const vv_execution *first = vv_stream_execution_at(s, 0), *second = vv_stream_execution_at(s, 1);
    ck_assert(first->has_terms && vv_health_find(&first->terms, "invocations_attempted", &v));
    ck_assert_uint_eq(v, 11);
    ck_assert(!second->has_terms && second->index_state == VV_INDEX_COMPLETE);
    ck_assert(!vv_stream_execution_at(s, 2)->has_terms);
    uint8_t generation[32];
    memcpy(generation, store->generation, sizeof generation);
    test_store_done(&t);
    /* The same store of a writer that knows no such plane. */
    test_store_begin(&t);
    test_store_meta(&t, 1, 0, m, VV_ARRAY_LEN(m));
    store = test_store_open(&t);
    ck_assert(store->streams[0].execution_count == 3 && !vv_stream_execution_at(&store->streams[0], 0)->has_terms);
    ck_assert_mem_eq(generation, store->generation, sizeof generation);
    test_store_done(&t);
}
END_TEST

int main(void)
{
    TCase *c = test_case("index", 0);
    tcase_add_loop_test(c, index_states, 0, VV_ARRAY_LEN(states));
    tcase_add_test(c, streams_that_do_not_open);
    tcase_add_test(c, stricter_and_foreign_meta);
    tcase_add_test(c, engines_are_listed_as_met);
    tcase_add_test(c, generation_vector);
    tcase_add_test(c, function_tables);
    c = test_case("data", 0);
    tcase_add_loop_test(c, data_ranges, 0, VV_ARRAY_LEN(ranges));
    tcase_add_test(c, data_ranges_without_an_end);
    tcase_add_test(c, enormous_names);
    tcase_add_test(c, orphans_by_first_appearance);
    tcase_add_test(c, groups_are_found_by_their_whole_root);
    tcase_add_test(c, flipped_bits);
    tcase_add_test(c, damage_beside_others);
    tcase_add_test(c, health_plane);
    return test_run();
}
