#include "config.h"

#include "format/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LEN = 2, WIRE_FIXED32 = 5 };

/* The fields of a value message: one oneof. */
enum {
    VALUE_NULL = 2,
    VALUE_STRING = 3,
    VALUE_INT = 4,
    VALUE_FLOAT = 5,
    VALUE_BOOL = 6,
    VALUE_CLASS = 7,
    VALUE_ENUM = 8,
    VALUE_LIST = 11,
    VALUE_MAP = 12,
    VALUE_MEDIA = 17,
    VALUE_BYTES = 19,
    VALUE_BIGINT = 20,
    VALUE_FIELDS,
};

enum { CLASS_NAME = 1, CLASS_ENTRY = 2, LIST_ITEM = 2, MAP_ENTRY = 3, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { ENUM_TYPE = 1, ENUM_VARIANT = 2, MEDIA_KIND = 1, MEDIA_MIME = 2, MEDIA_URL = 3, MEDIA_FILE = 5 };

/* JSON levels: all that a writer has, and what a leaf may use below its container ({"$media": {"$cut"}}). */
enum { JSON_LEVELS = 64, LEAF_LEVELS = 2, PREVIEW_MAX = 256 };
#define EXACT_MAX ((INT64_C(1) << 53) - 1)

static const char omitted_class[] = "baml.trace.OmittedValue";

typedef struct {
    vv_rd r;       /* what is left of the container's message */
    uint32_t item; /* the field that holds its items */
    bool object;   /* items are entries with keys */
} frame;

typedef struct {
    vv_json *j;
    const uint8_t *base;
    const char *why; /* the first fault */
    size_t bad_off;
    unsigned depth, max_depth;
    size_t start, max_bytes; /* where our JSON begins, and how long it may be */
    bool cut;
    frame stack[JSON_LEVELS];
} shower;

static void fail(shower *s, const uint8_t *at, const char *why)
{
    if (s->why)
        return;
    s->why = why;
    s->bad_off = (size_t)(at - s->base);
}

typedef struct {
    const uint8_t *at; /* where it begins */
    uint32_t number;
    uint8_t wire;
    uint64_t scalar; /* of a varint or fixed field */
    vv_rd bytes;     /* of a LEN field */
} field;

static uint64_t get_varint(vv_rd *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t b = vv_rd_u8(r);
        if (shift == 63 && b > 1)
            break;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return v;
    }
    vv_rd_fail(r, "InvalidTag");
    return 0;
}

static uint64_t get_fixed(vv_rd *r, size_t width)
{
    const uint8_t *p = vv_rd_take(r, width);
    uint64_t v = 0;
    for (size_t i = 0; p && i < width; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* The next field of a message; false at its end or at a fault, which lands in s. */
static bool next_field(shower *s, vv_rd *r, field *ret)
{
    if (vv_rd_left(r) == 0)
        return false;
    const uint8_t *at = r->at;
    uint64_t key = get_varint(r);
    *ret = (field){.at = at, .number = (uint32_t)(key >> 3), .wire = key & 7};
    if (vv_rd_ok(r) && (key > UINT32_MAX || ret->number == 0))
        vv_rd_fail(r, "InvalidTag");
    switch (ret->wire) {
    case WIRE_VARINT:
        ret->scalar = get_varint(r);
        break;
    case WIRE_FIXED64:
        ret->scalar = get_fixed(r, 8);
        break;
    case WIRE_LEN:
        ret->bytes = vv_rd_sub(r, get_varint(r));
        break;
    case WIRE_FIXED32:
        ret->scalar = get_fixed(r, 4);
        break;
    default:
        vv_rd_fail(r, "InvalidTag");
    }
    if (!vv_rd_ok(r))
        fail(s, at, r->why);
    return vv_rd_ok(r);
}

static bool expect_wire(shower *s, const field *f, uint8_t wire)
{
    if (f->wire != wire)
        fail(s, f->at, "InvalidTag");
    return f->wire == wire;
}

static vv_str field_text(shower *s, const field *f)
{
    if (!expect_wire(s, f, WIRE_LEN))
        return (vv_str){NULL, 0};
    vv_str text = {(const char *)f->bytes.at, vv_rd_left(&f->bytes)};
    if (!vv_utf8_valid(text)) {
        fail(s, f->at, "InvalidUtf8");
        return (vv_str){NULL, 0};
    }
    return text;
}

/* The last text of a field of a message: protobuf's rule for a field that repeats. */
static vv_opt_str find_text(shower *s, vv_rd r, uint32_t number)
{
    vv_opt_str ret = {0};
    field f;
    while (next_field(s, &r, &f))
        if (f.number == number)
            ret = (vv_opt_str){true, field_text(s, &f)};
    return ret;
}

static uint64_t find_varint(shower *s, vv_rd r, uint32_t number)
{
    uint64_t ret = 0;
    field f;
    while (next_field(s, &r, &f))
        if (f.number == number && expect_wire(s, &f, WIRE_VARINT))
            ret = f.scalar;
    return ret;
}

/* Which member of the oneof a value message has: the last one. False where none is set. */
static bool find_value(shower *s, vv_rd r, field *ret)
{
    static const struct {
        bool known;
        uint8_t wire;
    } members[VALUE_FIELDS] = {
        [VALUE_NULL] = {true, WIRE_LEN},   [VALUE_STRING] = {true, WIRE_LEN},    [VALUE_INT] = {true, WIRE_VARINT},
        [VALUE_BOOL] = {true, WIRE_VARINT}, [VALUE_FLOAT] = {true, WIRE_FIXED64}, [VALUE_CLASS] = {true, WIRE_LEN},
        [VALUE_ENUM] = {true, WIRE_LEN},   [VALUE_LIST] = {true, WIRE_LEN},      [VALUE_MAP] = {true, WIRE_LEN},
        [VALUE_MEDIA] = {true, WIRE_LEN},  [VALUE_BYTES] = {true, WIRE_LEN},     [VALUE_BIGINT] = {true, WIRE_LEN},
    };
    bool found = false;
    field f;
    while (next_field(s, &r, &f)) {
        if (f.number >= VALUE_FIELDS || !members[f.number].known)
            continue;
        if (!expect_wire(s, &f, members[f.number].wire))
            return false;
        *ret = f;
        found = true;
    }
    return found;
}

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
    vv_opt_str type = find_text(s, r, ENUM_TYPE), variant = find_text(s, r, ENUM_VARIANT);
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
    uint64_t kind = find_varint(s, r, MEDIA_KIND);
    vv_json_obj(s->j);
    vv_json_kv_cstr(s->j, "$media", kind < VV_ARRAY_LEN(kinds) ? kinds[kind] : NULL);
    put_opt_text(s, "mime", find_text(s, r, MEDIA_MIME));
    field f, source = {0};
    for (vv_rd at = r; next_field(s, &at, &f);)
        if (f.number >= MEDIA_URL && f.number <= MEDIA_FILE)
            source = f;
    if (source.number)
        put_opt_text(s, sources[source.number - MEDIA_URL], (vv_opt_str){true, field_text(s, &source)});
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

static void put_bigint(shower *s, const field *f)
{
    vv_str text = field_text(s, f);
    size_t sign = text.n && text.p[0] == '-';
    bool valid = text.n > sign;
    for (size_t i = sign; i < text.n; i++)
        valid = valid && is_hex(text.p[i]);
    if (!valid) {
        fail(s, f->at, "InvalidHex");
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

/* An entry of a class or map: its key, and its value message (empty where absent). */
static vv_str get_entry(shower *s, vv_rd entry, vv_rd *ret_value)
{
    vv_str key = {NULL, 0};
    *ret_value = vv_rd_init(entry.at, 0);
    field f;
    while (next_field(s, &entry, &f)) {
        if (f.number == ENTRY_KEY)
            key = field_text(s, &f);
        else if (f.number == ENTRY_VALUE && expect_wire(s, &f, WIRE_LEN))
            *ret_value = f.bytes;
    }
    return key;
}

static void put_omitted(shower *s, vv_rd r)
{
    vv_opt_str reason = {0}, message = {0};
    field f, value;
    while (next_field(s, &r, &f)) {
        if (f.number != CLASS_ENTRY || !expect_wire(s, &f, WIRE_LEN))
            continue;
        vv_rd body;
        vv_str key = get_entry(s, f.bytes, &body);
        if (!find_value(s, body, &value) || value.number != VALUE_STRING)
            continue;
        if (vv_str_eq(key, vv_cstr("reason")))
            reason = (vv_opt_str){true, field_text(s, &value)};
        else if (vv_str_eq(key, vv_cstr("message")))
            message = (vv_opt_str){true, field_text(s, &value)};
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
    vv_opt_str name = find_text(s, r, CLASS_NAME);
    if (name.present && vv_str_eq(name.s, vv_cstr(omitted_class)))
        put_omitted(s, r);
    else
        open_container(s, r, CLASS_ENTRY, true, &name);
}

/* Writes a scalar, or opens a container and leaves its items to the loop in vv_value_json. */
static void put_value(shower *s, vv_rd message)
{
    field f;
    if (!find_value(s, message, &f)) {
        put_mark(s, "$unknown", NULL);
        return;
    }
    switch (f.number) {
    case VALUE_NULL:
        vv_json_null(s->j);
        break;
    case VALUE_STRING:
        put_text(s, field_text(s, &f));
        break;
    case VALUE_INT:
        put_int(s, (int64_t)f.scalar);
        break;
    case VALUE_FLOAT:
        put_float(s, f.scalar);
        break;
    case VALUE_BOOL:
        vv_json_bool(s->j, f.scalar != 0);
        break;
    case VALUE_CLASS:
        open_class(s, f.bytes);
        break;
    case VALUE_ENUM:
        put_enum(s, f.bytes);
        break;
    case VALUE_LIST:
        open_container(s, f.bytes, LIST_ITEM, false, NULL);
        break;
    case VALUE_MAP:
        open_container(s, f.bytes, MAP_ENTRY, true, NULL);
        break;
    case VALUE_MEDIA:
        put_media(s, f.bytes);
        break;
    case VALUE_BYTES:
        put_bytes(s, &f.bytes);
        break;
    case VALUE_BIGINT:
        put_bigint(s, &f);
        break;
    }
}

static bool next_item(shower *s, frame *top, vv_rd *ret)
{
    field f;
    while (next_field(s, &top->r, &f)) {
        if (f.number == top->item && expect_wire(s, &f, WIRE_LEN)) {
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
    vv_str key = get_entry(s, item, &value);
    if (!fits(s, key.n + 1)) {
        cut_short(s);
        return;
    }
    put_key(s, key);
    put_value(s, value);
}

vv_code vv_value_json(vv_json *j, const uint8_t *body, size_t n, const vv_value_limits *limits, bool *ret_cut,
                      vv_error *err)
{
    vv_rd r = vv_rd_init(body, n);
    unsigned levels = j->depth + LEAF_LEVELS < JSON_LEVELS ? JSON_LEVELS - LEAF_LEVELS - j->depth : 0;
    shower s = {
        .j = j,
        .base = r.base,
        .max_depth = limits->max_depth < levels ? limits->max_depth : levels,
        .start = j->out->len,
        .max_bytes = limits->max_bytes,
    };
    put_value(&s, r);
    while (s.depth && !s.why && vv_wr_ok(j->out)) {
        vv_rd item;
        if (next_item(&s, &s.stack[s.depth - 1], &item))
            put_item(&s, item);
        else
            close_container(&s);
    }
    *ret_cut = s.cut;
    if (s.why)
        return vv_fail_decode(err, s.why, s.bad_off, "captured value: %s at byte %zu", s.why, s.bad_off);
    return vv_wr_error(j->out, "captured value", err);
}
