#include "config.h"

#include "format/value_write.h"

#include <string.h>

#include "base/text.h"
#include "format/value_wire.h"

/*
 * The length of an open container, entry or item is one byte until it ends, when its bytes are moved up for as many
 * more as the length takes:
 *
 *     ... 12 L  5a L  <items>                     a list that is an item of a list
 *     ... 1a L  0a n <key>  12 L  5a L  <items>   a list that is the value of a map's entry
 *
 * All of them end together, so the items move once a container.
 */
#define TAG(field, wire) ((field) << 3 | (wire))
/* Of a field whose tag takes two bytes: as on the wire, little-endian. */
#define WIDE_TAG(field) ((TAG(field, VV_WIRE_LEN) & 0x7f) | 0x80 | TAG(field, VV_WIRE_LEN) >> 7 << 8)
enum {
    TAG_NULL = TAG(VV_VALUE_NULL, VV_WIRE_LEN),
    TAG_STRING = TAG(VV_VALUE_STRING, VV_WIRE_LEN),
    TAG_INT = TAG(VV_VALUE_INT, VV_WIRE_VARINT),
    TAG_FLOAT = TAG(VV_VALUE_FLOAT, VV_WIRE_FIXED64),
    TAG_BOOL = TAG(VV_VALUE_BOOL, VV_WIRE_VARINT),
    TAG_CLASS = TAG(VV_VALUE_CLASS, VV_WIRE_LEN),
    TAG_ENUM = TAG(VV_VALUE_ENUM, VV_WIRE_LEN),
    TAG_LIST = TAG(VV_VALUE_LIST, VV_WIRE_LEN),
    TAG_MAP = TAG(VV_VALUE_MAP, VV_WIRE_LEN),
    TAG_BYTES = WIDE_TAG(VV_VALUE_BYTES),
    TAG_BIGINT = WIDE_TAG(VV_VALUE_BIGINT),
    TAG_FIRST_TEXT = TAG(VV_CLASS_NAME, VV_WIRE_LEN), /* also an enum's type, an entry's key */
    TAG_SECOND_TEXT = TAG(VV_ENUM_VARIANT, VV_WIRE_LEN),
    TAG_CLASS_ENTRY = TAG(VV_CLASS_ENTRY, VV_WIRE_LEN),
    TAG_MAP_ENTRY = TAG(VV_MAP_ENTRY, VV_WIRE_LEN),
    TAG_ITEM = TAG(VV_LIST_ITEM, VV_WIRE_LEN),
    TAG_ENTRY_VALUE = TAG(VV_ENTRY_VALUE, VV_WIRE_LEN),
};
/* A container is begun the same way wherever it stands. */
_Static_assert((int)TAG_ENTRY_VALUE == (int)TAG_ITEM, "an entry's value is an item");
_Static_assert((int)VV_ENUM_TYPE == (int)VV_CLASS_NAME && (int)VV_ENTRY_KEY == (int)VV_CLASS_NAME, "the first text");

/* An open container: where its length is (the byte before is its tag), and its entry's, of a map's or object's. */
typedef struct {
    uint32_t at, entry;
} frame;
_Static_assert(sizeof(frame) == VV_VW_FRAME, "as the header says");

void vv_vw_init(vv_vw *w, void *buf, size_t cap, size_t limit, vv_vw_grow *grow, void *ctx)
{
    size_t most = (size_t)1 << 30;
    *w = (vv_vw){.buf = buf, .cap = cap, .limit = limit < most ? limit : most, .grow = grow, .ctx = ctx};
}

static void fail(vv_vw *w, vv_vw_fault fault)
{
    if (!w->fault)
        w->fault = fault;
}

void vv_vw_give_up(vv_vw *w)
{
    fail(w, VV_VW_GIVEN_UP);
}

vv_vw_fault vv_vw_finish(vv_vw *w)
{
    if (!w->begun || w->depth || w->skip)
        fail(w, VV_VW_MISUSED);
    return w->fault;
}

static size_t varint_size(uint64_t v)
{
    return (70 - (size_t)__builtin_clzll(v | 1)) / 7;
}

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

/* What a field of n bytes takes, tag of one byte and length included. */
static size_t field_size(size_t n)
{
    return 1 + varint_size(n) + n;
}

static uint8_t *put_field_head(uint8_t *p, uint8_t tag, size_t n)
{
    *p = tag;
    return put_varint(p + 1, n);
}

static uint8_t *put_text(uint8_t *p, uint8_t tag, vv_str s)
{
    p = put_field_head(p, tag, s.n);
    if (s.n)
        memcpy(p, s.p, s.n);
    vv_utf8_mend((char *)p, s.n);
    return p + s.n;
}

/* A text outside of the oneof: absent where it is empty. */
static size_t plain_size(vv_str s)
{
    return s.n ? field_size(s.n) : 0;
}

static uint8_t *put_plain(uint8_t *p, uint8_t tag, vv_str s)
{
    return s.n ? put_text(p, tag, s) : p;
}

/* n more bytes, which are within the limit. More than twice as large is only what must be. */
static bool grow_for(vv_vw *w, size_t n, size_t open_bytes)
{
    size_t want = 2 * w->cap, need = w->len + n + open_bytes, most = w->limit + VV_VW_OPEN_BYTES;
    size_t noted = w->depth * (size_t)VV_VW_FRAME, cap = w->cap;
    want = want > most ? most : want;
    want = want < need ? need : want;
    uint8_t *buf = w->grow(w->ctx, w->buf, cap, want);
    if (!buf) {
        fail(w, VV_VW_DENIED);
        return false;
    }
    memmove(buf + want - noted, buf + cap - noted, noted);
    w->buf = buf;
    w->cap = want;
    return true;
}

/* Room for n more bytes, and for notes of so many more containers. */
static bool has_room(vv_vw *w, size_t n, unsigned containers)
{
    size_t open_bytes = (w->depth + containers) * (size_t)VV_VW_FRAME;
    if (n > w->limit - w->len) {
        fail(w, VV_VW_TOO_LARGE);
        return false;
    }
    return w->len + n + open_bytes <= w->cap || grow_for(w, n, open_bytes);
}

static void push(vv_vw *w, frame f)
{
    w->depth++;
    memcpy(w->buf + w->cap - w->depth * (size_t)VV_VW_FRAME, &f, sizeof f);
}

/* The container at a depth, from 1. */
static frame opened(const vv_vw *w, unsigned depth)
{
    frame f;
    memcpy(&f, w->buf + w->cap - depth * (size_t)VV_VW_FRAME, sizeof f);
    return f;
}

/* Its tag; at depth 0: none, 0. */
static uint8_t kind_at(const vv_vw *w, unsigned depth)
{
    return depth ? w->buf[opened(w, depth).at - 1] : 0;
}

/* Of the innermost container. */
static uint8_t inside(const vv_vw *w)
{
    return kind_at(w, w->depth);
}

/* Whether a value may come here. */
static bool may_put(vv_vw *w)
{
    if (w->fault || w->skip)
        return false;
    uint8_t in = inside(w);
    bool ok = in == 0 ? !w->begun : in == TAG_LIST || w->keyed;
    if (!ok)
        fail(w, VV_VW_MISUSED);
    return ok;
}

/* Moves a part of the buffer up. */
static void lift(vv_vw *w, size_t from, size_t to, size_t by)
{
    if (by)
        memmove(w->buf + from + by, w->buf + from, to - from);
}

/* Ends the open entry ahead of time: n bytes of it are still to come, and there is room for more. */
static void close_entry(vv_vw *w, size_t n)
{
    size_t length = w->len - w->entry - 1 + n, more = varint_size(length) - 1;
    lift(w, w->entry + (size_t)1, w->len, more);
    put_varint(w->buf + w->entry, length);
    w->len += more;
    w->keyed = false;
}

/* The n bytes of a value's message, to be filled in; NULL: none. */
static uint8_t *new_value(vv_vw *w, size_t n)
{
    if (!may_put(w))
        return NULL;
    /* A text of any length may be asked for: sums come after this. */
    if (n > w->limit) {
        fail(w, VV_VW_TOO_LARGE);
        return NULL;
    }
    size_t head = w->depth ? 1 + varint_size(n) : 0;
    size_t entry = w->keyed ? varint_size(w->len - w->entry - 1 + head + n) - 1 : 0;
    if (!has_room(w, entry + head + n, 0))
        return NULL;
    if (w->keyed)
        close_entry(w, head + n);
    if (head)
        put_field_head(w->buf + w->len, TAG_ITEM, n);
    w->begun = true;
    w->len += head + n;
    return w->buf + w->len - n;
}

/* A value that is a number of bytes. A tag that takes two bytes has its continuation bit set. */
static uint8_t *new_leaf(vv_vw *w, unsigned tag, size_t n)
{
    size_t tag_size = tag > 0xff ? 2 : 1, head = tag_size + varint_size(n);
    uint8_t *p = new_value(w, n < SIZE_MAX - head ? head + n : n);
    if (!p)
        return NULL;
    for (size_t i = 0; i < tag_size; i++, tag >>= 8)
        *p++ = (uint8_t)tag;
    return put_varint(p, n);
}

void vv_vw_null(vv_vw *w)
{
    new_leaf(w, TAG_NULL, 0);
}

void vv_vw_bool(vv_vw *w, bool v)
{
    uint8_t *p = new_value(w, 2);
    if (!p)
        return;
    p[0] = TAG_BOOL;
    p[1] = v;
}

void vv_vw_int(vv_vw *w, int64_t v)
{
    uint8_t *p = new_value(w, 1 + varint_size((uint64_t)v));
    if (!p)
        return;
    *p = TAG_INT;
    put_varint(p + 1, (uint64_t)v);
}

void vv_vw_float(vv_vw *w, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    uint8_t *p = new_value(w, 9);
    if (!p)
        return;
    *p++ = TAG_FLOAT;
    for (int i = 0; i < 8; i++, bits >>= 8)
        *p++ = (uint8_t)bits;
}

/* Bytes that the caller has not. */
static bool is_misused(vv_vw *w, const void *p, size_t n)
{
    if (!p && n)
        fail(w, VV_VW_MISUSED);
    return !p && n;
}

static uint8_t *put_leaf(vv_vw *w, unsigned tag, const void *p, size_t n)
{
    if (is_misused(w, p, n))
        return NULL;
    uint8_t *at = new_leaf(w, tag, n);
    if (at && n)
        memcpy(at, p, n);
    return at;
}

void vv_vw_text(vv_vw *w, const char *p, size_t n)
{
    char *at = (char *)put_leaf(w, TAG_STRING, p, n);
    if (at)
        vv_utf8_mend(at, n);
}

void vv_vw_bytes(vv_vw *w, const void *p, size_t n)
{
    put_leaf(w, TAG_BYTES, p, n);
}

static bool is_hex(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f')))
            return false;
    return n;
}

void vv_vw_bigint(vv_vw *w, const char *hex, size_t n)
{
    size_t sign = hex && n && hex[0] == '-';
    if (!hex || !is_hex(hex + sign, n - sign))
        fail(w, VV_VW_MISUSED);
    put_leaf(w, TAG_BIGINT, hex, n);
}

void vv_vw_enum(vv_vw *w, const char *type, const char *variant)
{
    vv_str t = vv_cstr(type), v = vv_cstr(variant);
    uint8_t *p = new_leaf(w, TAG_ENUM, plain_size(t) + plain_size(v));
    if (p)
        put_plain(put_plain(p, TAG_FIRST_TEXT, t), TAG_SECOND_TEXT, v);
}

/* An entry of a class whose value is a text. */
static size_t text_entry_size(vv_str key, vv_str text)
{
    return field_size(key.n) + field_size(field_size(text.n));
}

static uint8_t *put_text_entry(uint8_t *p, vv_str key, vv_str text)
{
    p = put_field_head(p, TAG_CLASS_ENTRY, text_entry_size(key, text));
    p = put_text(p, TAG_FIRST_TEXT, key);
    p = put_field_head(p, TAG_ENTRY_VALUE, field_size(text.n));
    return put_text(p, TAG_STRING, text);
}

void vv_vw_omitted(vv_vw *w, vv_omission why, const char *message)
{
    static const char *const reasons[] = {
        [VV_OMIT_ARGUMENT] = "omittedArgument",       [VV_OMIT_UNSUPPORTED] = "unsupportedValue",
        [VV_OMIT_HOST_OWNED] = "hostOwnedValue",      [VV_OMIT_INVALID] = "invalidRuntimeValue",
        [VV_OMIT_CYCLE] = "cyclicReference",
    };
    if ((unsigned)why >= VV_ARRAY_LEN(reasons)) {
        fail(w, VV_VW_MISUSED);
        return;
    }
    vv_str reason = vv_cstr(reasons[why]), text = vv_cstr(message), name = vv_cstr(VV_OMITTED_CLASS);
    vv_str reason_key = vv_cstr("reason"), text_key = vv_cstr("message");
    uint8_t *p = new_leaf(w, TAG_CLASS, field_size(name.n) + field_size(text_entry_size(reason_key, reason)) +
                                            field_size(text_entry_size(text_key, text)));
    if (!p)
        return;
    p = put_text(p, TAG_FIRST_TEXT, name);
    p = put_text_entry(p, reason_key, reason);
    put_text_entry(p, text_key, text);
}

static void begin(vv_vw *w, uint8_t tag, const char *name)
{
    if (w->skip) {
        w->skip++;
        return;
    }
    if (w->depth == VV_VALUE_DEPTH) {
        vv_vw_omitted(w, VV_OMIT_UNSUPPORTED, "nested more than 32 deep");
        w->skip = !w->fault;
        return;
    }
    if (!may_put(w))
        return;
    vv_str class_name = vv_cstr(name);
    size_t head = w->depth ? 4 : 2;
    if (!has_room(w, head + plain_size(class_name), 1))
        return;
    uint8_t *p = w->buf + w->len;
    if (w->depth)
        p = put_field_head(p, TAG_ITEM, 0);
    p = put_field_head(p, tag, 0);
    put_plain(p, TAG_FIRST_TEXT, class_name);
    push(w, (frame){(uint32_t)(w->len + head - 1), w->keyed ? w->entry : 0});
    w->len += head + plain_size(class_name);
    w->begun = true;
    w->keyed = false;
}

/* The container's length, and those of the item and the entry that it is. */
static void close_container(vv_vw *w, frame f, uint8_t parent)
{
    size_t content = w->len - f.at - 1, more = varint_size(content) - 1;
    size_t item = 1 + varint_size(content) + content, item_more = parent ? varint_size(item) - 1 : 0;
    bool in_entry = parent && parent != TAG_LIST;
    size_t entry = w->len - f.entry - 1 + more + item_more, entry_more = in_entry ? varint_size(entry) - 1 : 0;
    size_t lifted = more + item_more + entry_more;
    if (!has_room(w, lifted, 0))
        return;
    if (lifted) {
        uint8_t tag = w->buf[f.at - 1];
        lift(w, f.at + (size_t)1, w->len, lifted);
        w->buf[f.at - 1 + item_more + entry_more] = tag;
        if (in_entry)
            lift(w, f.entry + (size_t)1, f.at - (size_t)2, entry_more);
    }
    put_varint(w->buf + f.at + item_more + entry_more, content);
    if (parent)
        put_varint(w->buf + f.at - 2 + entry_more, item);
    if (in_entry)
        put_varint(w->buf + f.entry, entry);
    w->len += lifted;
}

static void end(vv_vw *w, uint8_t tag)
{
    if (w->fault)
        return;
    if (w->skip) {
        w->skip--;
        return;
    }
    if (inside(w) != tag || w->keyed) {
        fail(w, VV_VW_MISUSED);
        return;
    }
    close_container(w, opened(w, w->depth), kind_at(w, w->depth - 1u));
    w->depth--;
}

void vv_vw_list(vv_vw *w)
{
    begin(w, TAG_LIST, NULL);
}

void vv_vw_end_list(vv_vw *w)
{
    end(w, TAG_LIST);
}

void vv_vw_map(vv_vw *w)
{
    begin(w, TAG_MAP, NULL);
}

void vv_vw_end_map(vv_vw *w)
{
    end(w, TAG_MAP);
}

void vv_vw_object(vv_vw *w, const char *class_name)
{
    begin(w, TAG_CLASS, class_name);
}

void vv_vw_end_object(vv_vw *w)
{
    end(w, TAG_CLASS);
}

void vv_vw_key(vv_vw *w, const char *p, size_t n)
{
    if (w->fault || w->skip || is_misused(w, p, n))
        return;
    uint8_t in = inside(w);
    if ((in != TAG_MAP && in != TAG_CLASS) || w->keyed) {
        fail(w, VV_VW_MISUSED);
        return;
    }
    if (n > w->limit) {
        fail(w, VV_VW_TOO_LARGE);
        return;
    }
    vv_str key = {p, n};
    if (!has_room(w, 2 + plain_size(key), 0))
        return;
    put_plain(put_field_head(w->buf + w->len, in == TAG_MAP ? TAG_MAP_ENTRY : TAG_CLASS_ENTRY, 0), TAG_FIRST_TEXT, key);
    w->entry = (uint32_t)w->len + 1;
    w->keyed = true;
    w->len += 2 + plain_size(key);
}
