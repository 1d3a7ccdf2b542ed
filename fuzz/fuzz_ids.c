/* Texts: ids, segment names, hexadecimal, base64url, UTF-8, and what JSON makes of them. */
#include "config.h"

#include "fuzz/fuzz.h"

#include "base/json.h"
#include "base/text.h"
#include "format/segment.h"

/* A text that parses is the one text of its id. */
static void fuzz_id_texts(vv_str s)
{
    char text[VV_CALL_TEXT];
    vv_thread_ref t;
    vv_call_ref c;
    vv_runtime_id r;
    vv_cid v, again;
    vv_error err = {0};
    if (vv_thread_parse(s, &t, &err) == VV_OK) {
        vv_thread_text(text, &t);
        FUZZ_CHECK(vv_str_eq(vv_cstr(text), s));
    } else {
        FUZZ_CHECK(err.name && err.off <= s.n);
    }
    if (vv_call_parse(s, &c, NULL) == VV_OK) {
        vv_call_text(text, &c);
        FUZZ_CHECK(vv_str_eq(vv_cstr(text), s));
    }
    if (vv_runtime_parse(s, &r, NULL) == VV_OK) {
        vv_runtime_text(text, &r);
        FUZZ_CHECK(vv_str_eq(vv_cstr(text), s));
    }
    if (vv_cid_parse(s, &v)) {
        char name[VV_CID_TEXT];
        vv_cid_text(name, &v);
        FUZZ_CHECK(vv_cid_parse(vv_cstr(name), &again) && memcmp(&again, &v, sizeof v) == 0);
        FUZZ_CHECK(s.n == VV_CID_TEXT - 1 || s.n == 64);
    }
}

static void fuzz_names(const char *name)
{
    for (int plane = VV_PLANE_META; plane < VV_PLANES; plane++) {
        uint64_t sequence;
        char again[VV_SEGMENT_NAME];
        if (!vv_segment_parse(name, (vv_plane)plane, &sequence))
            continue;
        vv_segment_name(again, (vv_plane)plane, sequence);
        FUZZ_CHECK(strcmp(again, name) == 0);
    }
}

static void fuzz_encodings(vv_str s)
{
    uint8_t *bytes = malloc(s.n + 1);
    char *text = malloc(4 * s.n + 8);
    FUZZ_CHECK(bytes && text);
    ptrdiff_t n = vv_unbase64url(bytes, s);
    if (n >= 0) {
        vv_base64url(text, bytes, (size_t)n);
        FUZZ_CHECK(vv_str_eq(vv_cstr(text), s));
    }
    vv_hex(text, s.p, s.n);
    FUZZ_CHECK(vv_unhex(bytes, s.n, vv_cstr(text)) && memcmp(bytes, s.p, s.n) == 0);
    if (vv_unhex(bytes, s.n / 2, s))
        FUZZ_CHECK(s.n % 2 == 0);
    FUZZ_CHECK(vv_base64(text, s.p, s.n) == (s.n + 2) / 3 * 4);
    free(bytes);
    free(text);
}

static void fuzz_json(vv_str s)
{
    vv_wr w = vv_wr_growing(24 * s.n + 1024);
    vv_json j = vv_json_init(&w);
    vv_json_obj(&j);
    vv_json_key_str(&j, s);
    vv_json_text(&j, s);
    vv_json_kv_str(&j, "again", s);
    vv_json_end_obj(&j);
    FUZZ_CHECK(vv_json_done(&j) && vv_utf8_valid((vv_str){(const char *)w.buf, w.len}));
    vv_wr_done(&w);
    bool valid = vv_utf8_valid(s);
    for (size_t max = 0; valid && max <= s.n && max < 64; max++) {
        size_t cut = vv_utf8_cut(s, max);
        FUZZ_CHECK(cut <= max && cut + 4 > max && vv_utf8_valid((vv_str){s.p, cut}));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vv_str s = {(const char *)data, size};
    fuzz_id_texts(s);
    fuzz_encodings(s);
    fuzz_json(s);
    char *name = strndup((const char *)data, size);
    FUZZ_CHECK(name);
    fuzz_names(name);
    free(name);
    return 0;
}
