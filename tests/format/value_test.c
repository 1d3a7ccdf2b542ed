#include "config.h"

#include "format/value.h"


#include "tests/testing.h"

static const vv_value_limits wide = {60, 1 << 20};

/* Writes protobuf by hand: a varint, and a field of bytes. */
static void put_varint(vv_wr *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        vv_wr_u8(w, (uint8_t)(v | 0x80));
    vv_wr_u8(w, (uint8_t)v);
}

static void put_len(vv_wr *w, uint32_t field, const void *p, size_t n)
{
    put_varint(w, field << 3 | 2);
    put_varint(w, n);
    vv_wr_bytes(w, p, n);
}

static void put_str(vv_wr *w, uint32_t field, const char *s)
{
    put_len(w, field, s, strlen(s));
}

/* The JSON of a body on an exact-size copy, NUL-terminated in out; returns the verdict. */
static vv_code json_of(const uint8_t *body, size_t n, const vv_value_limits *limits, vv_wr *out, bool *ret_cut,
                       vv_error *err)
{
    uint8_t *exact = test_exact(body, n);
    vv_json j = vv_json_init(out);
    vv_code rc = vv_value_show(&j, exact, n, limits, ret_cut, err);
    if (rc == VV_OK)
        ck_assert(vv_json_done(&j));
    vv_wr_u8(out, 0);
    free(exact);
    return rc;
}

static void check_json(const char *hex, const char *want)
{
    vv_blob b = test_unhex(hex);
    vv_wr out = vv_wr_growing(1 << 20);
    bool cut;
    vv_error err = {0};
    vv_code rc = json_of(b.p, b.n, &wide, &out, &cut, &err);
    ck_assert_msg(rc == VV_OK, "%s: %s", hex, err.msg);
    ck_assert_msg(strcmp((const char *)out.buf, want) == 0, "%s: wanted %s, got %s", hex, want, (const char *)out.buf);
    ck_assert(!cut);
    vv_wr_done(&out);
    vv_blob_done(&b);
}

START_TEST(bodies_and_their_json)
{
    static const struct {
        const char *hex, *json;
    } rows[] = {
        {"1200", "null"},
        {"1a00", "\"\""},
        {"1a026869", "\"hi\""},
        {"1a03e282ac", "\"\xe2\x82\xac\""},
        {"2000", "0"},
        {"2007", "7"},
        {"20ffffffffffffffffff01", "-1"},
        {"20ffffffffffffff0f", "9007199254740991"},
        {"208080808080808010", "{\"$int\":\"9007199254740992\"}"},
        {"2081808080808080f0ff01", "-9007199254740991"},
        {"20808080808080808080" "01", "{\"$int\":\"-9223372036854775808\"}"},
        {"20ffffffffffffffff7f", "{\"$int\":\"9223372036854775807\"}"},
        {"29000000000000f83f", "1.5"},
        {"290000000000000000", "0"},
        {"29000000000000f07f", "{\"$float\":\"Infinity\"}"},
        {"29000000000000f0ff", "{\"$float\":\"-Infinity\"}"},
        {"29000000000000f87f", "{\"$float\":\"NaN\"}"},
        {"3000", "false"},
        {"3001", "true"},
        {"420c0a05436f6c6f721203526564", "{\"$enum\":\"Color\",\"variant\":\"Red\"}"},
        {"4200", "{\"$enum\":\"\",\"variant\":\"\"}"},
        {"5a00", "[]"},
        {"5a0d" "12022001" "12031a0178" "12021200", "[1,\"x\",null]"},
        {"5a0d" "0a0178" "1202" "2001" "12045a021200", "[1,[{\"$unknown\":true}]]"},
        {"6200", "{}"},
        {"620b" "1a09" "0a0161" "1204" "1a026869", "{\"a\":\"hi\"}"},
        {"620a" "1a08" "0a022461" "1202" "2001", "{\"$$a\":1}"},
        {"6207" "1a05" "0a0161" "1200", "{\"a\":{\"$unknown\":true}}"},
        {"6202" "1a00", "{\"\":{\"$unknown\":true}}"},
        {"6212" "1a07" "0a0161" "12022001" "1a07" "0a0161" "12022002", "{\"a\":1,\"a\":2}"},
        {"3a00", "{\"$class\":\"\"}"},
        {"3a0e" "0a0141" "1207" "0a0166" "12022001" "1a00", "{\"$class\":\"A\",\"f\":1}"},
        /* the name after the entries, and twice: the last one counts */
        {"3a0f" "0a0142" "1207" "0a0166" "12022001" "0a0141", "{\"$class\":\"A\",\"f\":1}"},
        {"8a0100", "{\"$media\":null,\"mime\":null}"},
        {"8a0115" "0801" "1209696d6167652f706e67" "1a0668747470" "3a2f", "{\"$media\":\"image\",\"mime\":\"image/png\","
                                                                        "\"url\":\"http:/\"}"},
        {"8a0106" "0802" "22026868", "{\"$media\":\"audio\",\"mime\":null,\"base64\":\"hh\"}"},
        {"8a0105" "0805" "2a0178", "{\"$media\":\"other\",\"mime\":null,\"file\":\"x\"}"},
        {"8a0102" "0806", "{\"$media\":null,\"mime\":null}"},
        {"9a0100", "{\"$bytes\":\"\",\"length\":0}"},
        {"9a01020001", "{\"$bytes\":\"AAE=\",\"length\":2}"},
        {"a201023166", "{\"$bigint\":\"0x1f\"}"},
        {"a201032d3166", "{\"$bigint\":\"-0x1f\"}"},
        {"", "{\"$unknown\":true}"},
        {"4a00", "{\"$unknown\":true}"},
        {"820100", "{\"$unknown\":true}"},
        {"b80101" "2007", "7"},
        {"2007" "1a0178", "\"x\""},
        {"1a0178" "2007", "7"},
        {"f50700000000" "2007", "7"}, /* a fixed32 field of another number */
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++)
        check_json(rows[i].hex, rows[i].json);
}
END_TEST

static void put_entry(vv_wr *w, uint32_t field, const char *key, const char *text)
{
    vv_wr value = vv_wr_growing(1000), entry = vv_wr_growing(1000);
    put_str(&value, 3, text);
    put_str(&entry, 1, key);
    put_len(&entry, 2, value.buf, value.len);
    put_len(w, field, entry.buf, entry.len);
    vv_wr_done(&value);
    vv_wr_done(&entry);
}

START_TEST(omitted_subtrees)
{
    vv_wr class_body = vv_wr_growing(1000), body = vv_wr_growing(1000), out = vv_wr_growing(1000);
    put_str(&class_body, 1, "baml.trace.OmittedValue");
    put_entry(&class_body, 2, "reason", "cyclicReference");
    put_entry(&class_body, 2, "message", "it points <back>");
    put_entry(&class_body, 2, "other", "ignored");
    put_len(&body, 7, class_body.buf, class_body.len);
    bool cut;
    ck_assert_int_eq(json_of(body.buf, body.len, &wide, &out, &cut, NULL), VV_OK);
    ck_assert_str_eq((const char *)out.buf,
                     "{\"$omitted\":\"cyclicReference\",\"message\":\"it points \\u003cback\\u003e\"}");
    ck_assert(!cut);
    vv_wr_reset(&class_body);
    vv_wr_reset(&body);
    vv_wr_reset(&out);
    put_str(&class_body, 1, "baml.trace.OmittedValue");
    put_len(&body, 7, class_body.buf, class_body.len);
    ck_assert_int_eq(json_of(body.buf, body.len, &wide, &out, &cut, NULL), VV_OK);
    ck_assert_str_eq((const char *)out.buf, "{\"$omitted\":null,\"message\":null}");
    vv_wr_done(&class_body);
    vv_wr_done(&body);
    vv_wr_done(&out);
}
END_TEST

START_TEST(errors_by_name)
{
    static const struct {
        const char *hex, *name;
    } rows[] = {
        {"12", "Truncated"},                     /* no length */
        {"1201", "Truncated"},
        {"1a0568", "Truncated"},
        {"20", "Truncated"},
        {"2080", "Truncated"},
        {"29000000", "Truncated"},
        {"5a0312022a", "Truncated"},             /* inside an item */
        {"5a041203" "2001", "Truncated"},        /* an item longer than its list */
        {"6203" "1a0a" "00", "Truncated"},
        {"f507000000", "Truncated"},             /* a cut fixed32 */
        {"1affffffffffffffffff01", "Truncated"}, /* a length near 2^64 */
        {"00", "InvalidTag"},                    /* field 0 */
        {"0207", "InvalidTag"},
        {"23", "InvalidTag"},                    /* groups */
        {"24", "InvalidTag"},
        {"26", "InvalidTag"},
        {"27", "InvalidTag"},
        {"2200", "InvalidTag"},                  /* an int as bytes */
        {"1800", "InvalidTag"},                  /* a string as a varint */
        {"5807", "InvalidTag"},
        {"5a02" "1007", "InvalidTag"},           /* an item as a varint */
        {"6204" "1a02" "1007", "InvalidTag"},    /* a value as a varint */
        {"8a01020a00", "InvalidTag"},            /* a media kind as bytes */
        {"2080808080808080808002", "InvalidTag"}, /* a varint above 64 bits */
        {"20ffffffffffffffffffff01", "InvalidTag"},
        {"8080808010" "00", "InvalidTag"},       /* a key above 32 bits */
        {"1a01ff", "InvalidUtf8"},
        {"1a02c080", "InvalidUtf8"},
        {"1a03eda080", "InvalidUtf8"},
        {"3a030a01ff", "InvalidUtf8"},
        {"6205" "1a03" "0a01ff", "InvalidUtf8"},
        {"42031201ff", "InvalidUtf8"},
        {"8a01031a01ff", "InvalidUtf8"},
        {"a20101ff", "InvalidUtf8"},
        {"a20100", "InvalidHex"},
        {"a201012d", "InvalidHex"},
        {"a2010167", "InvalidHex"},
        {"a201033078" "31", "InvalidHex"},
        {"5a06" "12022001" "1201", "Truncated"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        vv_blob b = test_unhex(rows[i].hex);
        vv_wr out = vv_wr_growing(1 << 20);
        bool cut;
        vv_error err = {0};
        vv_code rc = json_of(b.p, b.n, &wide, &out, &cut, &err);
        ck_assert_msg(rc == VV_ERR_CORRUPT && err.name && strcmp(err.name, rows[i].name) == 0, "%s: wanted %s, got %s",
                      rows[i].hex, rows[i].name, err.name ? err.name : (const char *)out.buf);
        ck_assert_uint_le(err.off, b.n);
        vv_wr_done(&out);
        vv_blob_done(&b);
    }
}
END_TEST

/* depth lists around one int. Each level's header is counted first, so the body is built from the outside in. */
static vv_blob nested(size_t depth)
{
    size_t *lengths = malloc((depth + 1) * sizeof *lengths);
    lengths[0] = 2;
    vv_wr size = vv_wr_growing(100);
    for (size_t i = 1; i <= depth; i++) {
        vv_wr_reset(&size);
        put_varint(&size, lengths[i - 1]);
        size_t item = 1 + size.len + lengths[i - 1];
        vv_wr_reset(&size);
        put_varint(&size, item);
        lengths[i] = 1 + size.len + item;
    }
    vv_wr w = vv_wr_growing(lengths[depth]);
    for (size_t i = depth; i > 0; i--) {
        vv_wr_reset(&size);
        put_varint(&size, lengths[i - 1]);
        put_varint(&w, 11 << 3 | 2);
        put_varint(&w, 1 + size.len + lengths[i - 1]);
        put_varint(&w, 2 << 3 | 2);
        put_varint(&w, lengths[i - 1]);
    }
    vv_wr_bytes(&w, "\x20\x07", 2);
    ck_assert(vv_wr_ok(&w));
    vv_wr_done(&size);
    free(lengths);
    return (vv_blob){w.buf, w.len};
}

START_TEST(depth_is_bounded)
{
    static const struct {
        size_t depth;
        unsigned max;
        const char *json;
        bool cut;
    } rows[] = {
        {0, 0, "7", false},
        {1, 0, "{\"$cut\":\"depth\"}", true},
        {1, 1, "[7]", false},
        {3, 2, "[[{\"$cut\":\"depth\"}]]", true},
        {3, 3, "[[[7]]]", false},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        vv_blob b = nested(rows[i].depth);
        vv_wr out = vv_wr_growing(1 << 20);
        bool cut;
        ck_assert_int_eq(json_of(b.p, b.n, &(vv_value_limits){rows[i].max, 1000}, &out, &cut, NULL), VV_OK);
        ck_assert_str_eq((const char *)out.buf, rows[i].json);
        ck_assert(cut == rows[i].cut);
        vv_wr_done(&out);
        vv_blob_done(&b);
    }
}
END_TEST

START_TEST(hostile_depth)
{
    vv_blob b = nested(100000);
    vv_wr out = vv_wr_growing(1 << 20);
    bool cut;
    ck_assert_int_eq(json_of(b.p, b.n, &(vv_value_limits){UINT32_MAX, SIZE_MAX}, &out, &cut, NULL), VV_OK);
    ck_assert(cut);
    ck_assert_uint_lt(out.len, 200);
    /* Inside a document that is already deep there is less room. */
    vv_wr_reset(&out);
    vv_json j = vv_json_init(&out);
    for (int i = 0; i < 62; i++)
        vv_json_arr(&j);
    ck_assert_int_eq(vv_value_show(&j, b.p, b.n, &wide, &cut, NULL), VV_OK);
    ck_assert(cut);
    for (int i = 0; i < 62; i++)
        vv_json_end_arr(&j);
    ck_assert(vv_json_done(&j));
    vv_wr_done(&out);
    vv_blob_done(&b);
}
END_TEST

/* A body of many fields that count for nothing takes time in proportion to its length. */
START_TEST(hostile_width)
{
    enum { BYTES = 4 << 20 };
    uint8_t *body = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i += 2)
        memcpy(body + i, "\x12", 2); /* null, again and again */
    vv_wr out = vv_wr_growing(1 << 20);
    bool cut;
    ck_assert_int_eq(json_of(body, BYTES, &wide, &out, &cut, NULL), VV_OK);
    ck_assert_str_eq((const char *)out.buf, "null");
    /* The same as the items of a list: as many of them as the bound lets through. */
    vv_wr list = vv_wr_growing(BYTES + 16);
    put_len(&list, 11, body, BYTES);
    vv_wr_reset(&out);
    ck_assert_int_eq(json_of(list.buf, list.len, &(vv_value_limits){8, 4096}, &out, &cut, NULL), VV_OK);
    ck_assert(cut);
    ck_assert_uint_lt(out.len, 4096 + 64);
    vv_wr_done(&list);
    vv_wr_done(&out);
    free(body);
}
END_TEST

START_TEST(bytes_are_bounded)
{
    char text[1001];
    memset(text, 'x', 1000);
    text[1000] = 0;
    vv_wr body = vv_wr_growing(1 << 20), out = vv_wr_growing(1 << 20);
    bool cut;
    char want[400];
    put_str(&body, 3, text);
    ck_assert_int_eq(json_of(body.buf, body.len, &(vv_value_limits){8, 999}, &out, &cut, NULL), VV_OK);
    ck_assert(cut);
    snprintf(want, sizeof want, "{\"$cut\":\"bytes\",\"length\":1000,\"preview\":\"%.256s\"}", text);
    ck_assert_str_eq((const char *)out.buf, want);
    vv_wr_reset(&out);
    ck_assert_int_eq(json_of(body.buf, body.len, &(vv_value_limits){8, 1000}, &out, &cut, NULL), VV_OK);
    ck_assert(!cut);

    vv_wr_reset(&body);
    vv_wr_reset(&out);
    put_len(&body, 19, text, 1000);
    ck_assert_int_eq(json_of(body.buf, body.len, &(vv_value_limits){8, 500}, &out, &cut, NULL), VV_OK);
    ck_assert(cut);
    ck_assert_str_eq((const char *)out.buf, "{\"$cut\":\"bytes\",\"length\":1000}");

    vv_wr_reset(&body);
    vv_wr_reset(&out);
    put_str(&body, 20, "-0123456789abcdef");
    ck_assert_int_eq(json_of(body.buf, body.len, &(vv_value_limits){8, 20}, &out, &cut, NULL), VV_OK);
    ck_assert_str_eq((const char *)out.buf, "{\"$bigint\":{\"$cut\":\"bytes\",\"length\":17,"
                                            "\"preview\":\"-0123456789abcdef\"}}");

    /* Lists and maps end by a mark, and so does everything around them. */
    vv_wr map = vv_wr_growing(1 << 20), list = vv_wr_growing(1 << 20), inner = vv_wr_growing(1000);
    for (int i = 0; i < 10; i++)
        put_entry(&map, 3, "key", "0123456789");
    put_len(&inner, 12, map.buf, map.len);
    put_len(&list, 2, inner.buf, inner.len);
    put_len(&list, 2, "\x20\x07", 2);
    vv_wr_reset(&body);
    vv_wr_reset(&out);
    put_len(&body, 11, list.buf, list.len);
    ck_assert_int_eq(json_of(body.buf, body.len, &(vv_value_limits){8, 40}, &out, &cut, NULL), VV_OK);
    ck_assert(cut);
    ck_assert_str_eq((const char *)out.buf, "[{\"key\":\"0123456789\",\"key\":\"0123456789\",\"$cut\":\"bytes\"}]");
    vv_wr_reset(&out);
    ck_assert_int_eq(json_of(body.buf, body.len, &(vv_value_limits){8, 0}, &out, &cut, NULL), VV_OK);
    ck_assert_str_eq((const char *)out.buf, "[{\"$cut\":\"bytes\"}]");
    vv_wr_done(&map);
    vv_wr_done(&list);
    vv_wr_done(&inner);
    vv_wr_done(&body);
    vv_wr_done(&out);
}
END_TEST

START_TEST(a_full_writer_is_reported)
{
    char small[5];
    vv_wr out = vv_wr_fixed(small, sizeof small);
    vv_json j = vv_json_init(&out);
    bool cut;
    ck_assert_int_eq(vv_value_show(&j, (const uint8_t *)"\x1a\x05hello", 7, &wide, &cut, NULL), VV_ERR_LIMIT);
}
END_TEST

/* Seeds of the fuzz corpus, cut at every place and changed at random: a verdict each time, and JSON that is whole. */
START_TEST(prop_mutations_end)
{
    static const char *const seeds[] = {"fuzz/corpus/cas/value-all", "fuzz/corpus/cas/value-deep"};
    test_rng g = test_seeded("value mutations");
    for (size_t k = 0; k < VV_ARRAY_LEN(seeds); k++) {
        vv_blob b = test_file(seeds[k]);
        for (int round = 0; round < 10000; round++) {
            size_t n = round <= (int)b.n ? (size_t)round : b.n;
            uint8_t *p = test_exact(b.p, n);
            for (uint64_t i = round <= (int)b.n ? 0 : 1 + test_below(&g, 3); i; i--)
                p[test_below(&g, n)] = test_below(&g, 2) ? (uint8_t)test_random(&g) : (uint8_t)test_below(&g, 32);
            vv_wr out = vv_wr_growing(1 << 20);
            bool cut;
            vv_error err = {0};
            if (json_of(p, n, &wide, &out, &cut, &err) == VV_OK)
                ck_assert(vv_utf8_valid((vv_str){(const char *)out.buf, out.len - 1}));
            else
                ck_assert(err.name && err.off <= n);
            vv_wr_done(&out);
            free(p);
        }
        vv_blob_done(&b);
    }
}
END_TEST

int main(void)
{
    TCase *t = test_case("value", 0);
    tcase_add_test(t, bodies_and_their_json);
    tcase_add_test(t, omitted_subtrees);
    tcase_add_test(t, errors_by_name);
    tcase_add_test(t, depth_is_bounded);
    tcase_add_test(t, hostile_depth);
    tcase_add_test(t, hostile_width);
    tcase_add_test(t, bytes_are_bounded);
    tcase_add_test(t, a_full_writer_is_reported);
    tcase_add_test(t, prop_mutations_end);
    return test_run();
}
