#include "config.h"

#include "format/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "format/value_wire.h"

/* JSON levels: all that a writer has, and what a leaf may use below its container ({"$media": {"$cut"}}). */
enum { JSON_LEVELS = 64, LEAF_LEVELS = 2, PREVIEW_MAX = 256 };
#define EXACT_MAX ((INT64_C(1) << 53) - 1)

typedef struct {
    vv_rd r;       /* what is left of the container's message */
    uint32_t item; /* the field that holds its items */
    bool object;   /* items are entries with keys */
} frame;

typedef struct {
    vv_json *j;
    vv_wire w;
    unsigned depth, max_depth;
    size_t start, max_bytes; /* where our JSON begins, and how long it may be */
    bool cut;
    frame stack[JSON_LEVELS];
} shower;

/* Whether n more bytes stay inside the bound. */
static bool fits(shower *s, size_t n)
{
    size_t used = s->j->out->len - s->start;
    if (used < s->max_bytes && n <= s->max_bytes - used)
        return true;
    s->cut = true;
    return false;
}

static void put_preview(shower *s, vv_str text)
{
    vv_json_obj(s->j);
    vv_json_kv_cstr(s->j, "$cut", "bytes");
    vv_json_kv_u64(s->j, "length", text.n);
    vv_json_kv_str(s->j, "preview", (vv_str){text.p, vv_utf8_cut(text, PREVIEW_MAX)});
    vv_json_end_obj(s->j);
}

static void put_text(shower *s, vv_str text)
{
    if (fits(s, text.n))
        vv_json_str(s->j, text);
    else
        put_preview(s, text);
}

static void put_opt_text(shower *s, const char *key, vv_opt_str text)
{
    vv_json_key(s->j, key);
    if (text.present)
        put_text(s, text.s);
    else
        vv_json_null(s->j);
}

/* Data keys keep clear of ours: one that begins with '$' gets another. */
static void put_key(shower *s, vv_str key)
{
    if (key.n == 0 || key.p[0] != '$') {
        vv_json_key_str(s->j, key);
        return;
    }
    vv_wr longer = vv_wr_growing(key.n + 1);
    vv_wr_u8(&longer, '$');
    vv_wr_bytes(&longer, key.p, key.n);
    if (!vv_wr_ok(&longer))
        vv_wr_fail(s->j->out, longer.why);
    vv_json_key_str(s->j, (vv_str){(const char *)longer.buf, longer.len});
    vv_wr_done(&longer);
}

static void put_int(shower *s, int64_t v)
{
    if (v >= -EXACT_MAX && v <= EXACT_MAX) {
        vv_json_i64(s->j, v);
        return;
    }
    vv_json_obj(s->j);
    vv_json_key(s->j, "$int");
    vv_json_i64(s->j, v);
    vv_json_end_obj(s->j);
}

static void put_float(shower *s, uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    if (isfinite(v)) {
        vv_json_double(s->j, v);
        return;
    }
    vv_json_obj(s->j);
    vv_json_kv_cstr(s->j, "$float", isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
    vv_json_end_obj(s->j);
}

static void put_enum(shower *s, vv_rd r)
{
    vv_opt_str type = vv_wire_text_of(&s->w, r, VV_ENUM_TYPE), variant = vv_wire_text_of(&s->w, r, VV_ENUM_VARIANT);
    type.present = variant.present = true; /* proto3: absent is empty */
    vv_json_obj(s->j);
    put_opt_text(s, "$enum", type);
    put_opt_text(s, "variant", variant);
    vv_json_end_obj(s->j);
}

static void put_media(shower *s, vv_rd r)
{
    static const char *const kinds[] = {NULL, "image", "audio", "pdf", "video", "other"};
    static const char *const sources[] = {"url", "base64", "file"};
    uint64_t kind = vv_wire_varint_of(&s->w, r, VV_MEDIA_KIND);
    vv_json_obj(s->j);
    vv_json_kv_cstr(s->j, "$media", kind < VV_ARRAY_LEN(kinds) ? kinds[kind] : NULL);
    put_opt_text(s, "mime", vv_wire_text_of(&s->w, r, VV_MEDIA_MIME));
    vv_field f, source = {0};
    for (vv_rd at = r; vv_wire_next(&s->w, &at, &f);)
        if (f.number >= VV_MEDIA_URL && f.number <= VV_MEDIA_FILE)
            source = f;
    if (source.number)
        put_opt_text(s, sources[source.number - VV_MEDIA_URL], (vv_opt_str){true, vv_wire_text(&s->w, &source)});
    vv_json_end_obj(s->j);
}

static void put_bytes(shower *s, const vv_rd *r)
{
    size_t n = vv_rd_left(r);
    vv_json_obj(s->j);
    if (fits(s, n)) {
        vv_json_key(s->j, "$bytes");
        vv_json_base64(s->j, r->at, n);
    } else {
        vv_json_kv_cstr(s->j, "$cut", "bytes");
    }
    vv_json_kv_u64(s->j, "length", n);
    vv_json_end_obj(s->j);
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void put_bigint(shower *s, const vv_field *f)
{
    vv_str text = vv_wire_text(&s->w, f);
    size_t sign = text.n && text.p[0] == '-';
    bool valid = text.n > sign;
    for (size_t i = sign; i < text.n; i++)
        valid = valid && is_hex(text.p[i]);
    if (!valid) {
        vv_wire_fail(&s->w, f->at, "InvalidHex");
        return;
    }
    vv_json_obj(s->j);
    vv_json_key(s->j, "$bigint");
    if (fits(s, text.n)) {
        vv_wr digits = vv_wr_growing(text.n + 2);
        vv_wr_bytes(&digits, sign ? "-0x" : "0x", 2 + sign);
        vv_wr_bytes(&digits, text.p + sign, text.n - sign);
        if (!vv_wr_ok(&digits))
            vv_wr_fail(s->j->out, digits.why);
        vv_json_str(s->j, (vv_str){(const char *)digits.buf, digits.len});
        vv_wr_done(&digits);
    } else {
        put_preview(s, text);
    }
    vv_json_end_obj(s->j);
}

static void put_omitted(shower *s, vv_rd r)
{
    vv_opt_str reason = {0}, message = {0};
    vv_field f, value;
    while (vv_wire_next(&s->w, &r, &f)) {
        if (f.number != VV_CLASS_ENTRY || !vv_wire_expect(&s->w, &f, VV_WIRE_LEN))
            continue;
        vv_rd body;
        vv_str key = vv_wire_entry(&s->w, f.bytes, &body);
        if (!vv_wire_value(&s->w, body, &value) || value.number != VV_VALUE_STRING)
            continue;
        if (vv_str_eq(key, vv_cstr("reason")))
            reason = (vv_opt_str){true, vv_wire_text(&s->w, &value)};
        else if (vv_str_eq(key, vv_cstr("message")))
            message = (vv_opt_str){true, vv_wire_text(&s->w, &value)};
    }
    vv_json_obj(s->j);
    put_opt_text(s, "$omitted", reason);
    put_opt_text(s, "message", message);
    vv_json_end_obj(s->j);
}

static void put_mark(shower *s, const char *key, const char *what)
{
    vv_json_obj(s->j);
    vv_json_key(s->j, key);
    if (what)
        vv_json_cstr(s->j, what);
    else
        vv_json_bool(s->j, true);
    vv_json_end_obj(s->j);
}

static void open_container(shower *s, vv_rd r, uint32_t item, bool object, const vv_opt_str *class_name)
{
    if (s->depth == s->max_depth) {
        s->cut = true;
        put_mark(s, "$cut", "depth");
        return;
    }
    s->stack[s->depth++] = (frame){r, item, object};
    if (object)
        vv_json_obj(s->j);
    else
        vv_json_arr(s->j);
    if (class_name)
        put_opt_text(s, "$class", (vv_opt_str){true, class_name->s});
}

static void open_class(shower *s, vv_rd r)
{
    vv_opt_str name = vv_wire_text_of(&s->w, r, VV_CLASS_NAME);
    if (name.present && vv_str_eq(name.s, vv_cstr(VV_OMITTED_CLASS)))
        put_omitted(s, r);
    else
        open_container(s, r, VV_CLASS_ENTRY, true, &name);
}

/* Writes a scalar, or opens a container and leaves its items to the loop in vv_value_show. */
static void put_value(shower *s, vv_rd message)
{
    vv_field f;
    if (!vv_wire_value(&s->w, message, &f)) {
        put_mark(s, "$unknown", NULL);
        return;
    }
    switch (f.number) {
    case VV_VALUE_NULL:
        vv_json_null(s->j);
        break;
    case VV_VALUE_STRING:
        put_text(s, vv_wire_text(&s->w, &f));
        break;
    case VV_VALUE_INT:
        put_int(s, (int64_t)f.scalar);
        break;
    case VV_VALUE_FLOAT:
        put_float(s, f.scalar);
        break;
    case VV_VALUE_BOOL:
        vv_json_bool(s->j, f.scalar != 0);
        break;
    case VV_VALUE_CLASS:
        open_class(s, f.bytes);
        break;
    case VV_VALUE_ENUM:
        put_enum(s, f.bytes);
        break;
    case VV_VALUE_LIST:
        open_container(s, f.bytes, VV_LIST_ITEM, false, NULL);
        break;
    case VV_VALUE_MAP:
        open_container(s, f.bytes, VV_MAP_ENTRY, true, NULL);
        break;
    case VV_VALUE_MEDIA:
        put_media(s, f.bytes);
        break;
    case VV_VALUE_BYTES:
        put_bytes(s, &f.bytes);
        break;
    case VV_VALUE_BIGINT:
        put_bigint(s, &f);
        break;
    }
}

static bool next_item(shower *s, frame *top, vv_rd *ret)
{
    vv_field f;
    while (vv_wire_next(&s->w, &top->r, &f)) {
        if (f.number == top->item && vv_wire_expect(&s->w, &f, VV_WIRE_LEN)) {
            *ret = f.bytes;
            return true;
        }
    }
    return false;
}

static void close_container(shower *s)
{
    if (s->stack[--s->depth].object)
        vv_json_end_obj(s->j);
    else
        vv_json_end_arr(s->j);
}

/* The bound is met: marks the innermost container and closes them all. */
static void cut_short(shower *s)
{
    s->cut = true;
    if (s->stack[s->depth - 1].object)
        vv_json_kv_cstr(s->j, "$cut", "bytes");
    else
        put_mark(s, "$cut", "bytes");
    while (s->depth)
        close_container(s);
}

static void put_item(shower *s, vv_rd item)
{
    if (!s->stack[s->depth - 1].object) {
        if (fits(s, 1))
            put_value(s, item);
        else
            cut_short(s);
        return;
    }
    vv_rd value;
    vv_str key = vv_wire_entry(&s->w, item, &value);
    if (!fits(s, key.n + 1)) {
        cut_short(s);
        return;
    }
    put_key(s, key);
    put_value(s, value);
}

vv_code vv_value_show(vv_json *j, const uint8_t *body, size_t n, const vv_value_limits *limits, bool *ret_cut,
                      vv_error *err)
{
    vv_rd r = vv_rd_init(body, n);
    unsigned levels = j->depth + LEAF_LEVELS < JSON_LEVELS ? JSON_LEVELS - LEAF_LEVELS - j->depth : 0;
    shower s = {
        .j = j,
        .w = {.base = r.base},
        .max_depth = limits->max_depth < levels ? limits->max_depth : levels,
        .start = j->out->len,
        .max_bytes = limits->max_bytes,
    };
    put_value(&s, r);
    while (s.depth && !s.w.why && vv_wr_ok(j->out)) {
        vv_rd item;
        if (next_item(&s, &s.stack[s.depth - 1], &item))
            put_item(&s, item);
        else
            close_container(&s);
    }
    *ret_cut = s.cut;
    if (s.w.why)
        return vv_wire_error(&s.w, err);
    return vv_wr_error(j->out, "captured value", err);
}
