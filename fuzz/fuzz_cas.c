/* Content-addressed objects and what they hold: function tables, captured values. */
#include "config.h"

#include "fuzz/fuzz.h"

#include "base/text.h"
#include "format/cas.h"
#include "format/function_table.h"
#include "format/value.h"

/* Decoding, encoding and decoding again ends in the same bytes (unknown codes become 255 on the way). */
static void fuzz_table(const uint8_t *p, size_t n)
{
    vv_function_table t = {0}, t2 = {0};
    vv_error err = {0};
    if (vv_function_table_decode(&t, p, n, &err) != VV_OK) {
        FUZZ_CHECK(err.code == VV_ERR_LIMIT || (err.name && err.off <= n));
        return;
    }
    for (uint32_t i = 0; i < t.function_count; i++) {
        char scratch[12];
        vv_str key;
        FUZZ_CHECK(vv_function_table_find(&t, t.functions[i].id) == &t.functions[i]);
        vv_function_name_key(&t.functions[i], t.functions[i].id, scratch, &key);
        FUZZ_CHECK(vv_utf8_valid(key) && key.n);
    }
    for (uint32_t i = 0; i < t.file_count; i++)
        FUZZ_CHECK(vv_function_table_file(&t, t.files[i].id) == &t.files[i]);
    vv_wr one = vv_wr_growing(2 * n + 64), two = vv_wr_growing(2 * n + 64);
    vv_function_table_encode(&one, t.functions, t.function_count, t.files, t.file_count);
    if (vv_wr_ok(&one)) {
        FUZZ_CHECK(one.len == n);
        FUZZ_CHECK(vv_function_table_decode(&t2, one.buf, one.len, NULL) == VV_OK);
        vv_function_table_encode(&two, t2.functions, t2.function_count, t2.files, t2.file_count);
        FUZZ_CHECK(two.len == one.len && memcmp(two.buf, one.buf, one.len) == 0);
    }
    vv_wr_done(&one);
    vv_wr_done(&two);
    vv_function_table_done(&t);
    vv_function_table_done(&t2);
}

static void fuzz_value(const uint8_t *p, size_t n)
{
    static const vv_value_limits limits[] = {{32, 65536}, {3, 40}, {100, 1 << 20}, {0, 0}};
    for (size_t i = 0; i < VV_ARRAY_LEN(limits); i++) {
        /* Escapes and marks may pass the bound, but only by so much. */
        vv_wr w = vv_wr_growing(8 * limits[i].max_bytes + 65536);
        vv_json j = vv_json_init(&w);
        bool cut;
        vv_error err = {0};
        if (vv_value_show(&j, p, n, &limits[i], &cut, &err) == VV_OK) {
            FUZZ_CHECK(vv_json_done(&j));
            FUZZ_CHECK(vv_utf8_valid((vv_str){(const char *)w.buf, w.len}));
        } else {
            FUZZ_CHECK(err.code == VV_ERR_CORRUPT && err.name && err.off <= n);
        }
        vv_wr_done(&w);
    }
}

static void fuzz_object(const uint8_t *p, size_t n)
{
    vv_cas_object o;
    vv_error err = {0};
    if (vv_cas_decode(&o, p, n, NULL, &err) != VV_OK)
        return;
    vv_wr again = vv_wr_growing(n);
    vv_cas_encode(&again, o.codec, o.body, o.body_len);
    FUZZ_CHECK(again.len == n && memcmp(again.buf, p, n) == 0);
    vv_wr_done(&again);
    char path[VV_CAS_PATH];
    vv_cas_path(path, &o.cid);
    FUZZ_CHECK(strlen(path) < sizeof path);
    if (o.codec == VV_CODEC_FUNCTION_TABLE)
        fuzz_table(o.body, o.body_len);
    else
        fuzz_value(o.body, o.body_len);
}

/* The input with its frame mended: length, content id and seal. */
static void fuzz_mended(const uint8_t *data, size_t n)
{
    uint8_t *copy = fuzz_resealed(data, n);
    if (n >= VV_CAS_FIXED) {
        vv_cid cid;
        vv_put64(copy + 12, n - VV_CAS_FIXED);
        vv_cid_of(&cid, vv_be16(copy + 10), copy + 52, n - VV_CAS_FIXED);
        memcpy(copy + 20, &cid, sizeof cid);
        vv_sha256(copy, n - 32, copy + n - 32);
    }
    fuzz_object(copy, n);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_object(data, size);
    fuzz_mended(data, size);
    fuzz_table(data, size);
    fuzz_value(data, size);
    return 0;
}
