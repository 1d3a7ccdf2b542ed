#include "config.h"

#include "format/value_wire.h"

#include "base/text.h"

void vv_wire_fail(vv_wire *w, const uint8_t *at, const char *why)
{
    if (w->why)
        return;
    w->why = why;
    w->bad_off = (size_t)(at - w->base);
}

vv_code vv_wire_error(const vv_wire *w, vv_error *err)
{
    return vv_fail_decode(err, w->why, w->bad_off, "captured value: %s at byte %zu", w->why, w->bad_off);
}

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

bool vv_wire_next(vv_wire *w, vv_rd *r, vv_field *ret)
{
    if (vv_rd_left(r) == 0)
        return false;
    const uint8_t *at = r->at;
    uint64_t key = get_varint(r);
    *ret = (vv_field){.at = at, .number = (uint32_t)(key >> 3), .wire = key & 7};
    if (vv_rd_ok(r) && (key > UINT32_MAX || ret->number == 0))
        vv_rd_fail(r, "InvalidTag");
    switch (ret->wire) {
    case VV_WIRE_VARINT:
        ret->scalar = get_varint(r);
        break;
    case VV_WIRE_FIXED64:
        ret->scalar = get_fixed(r, 8);
        break;
    case VV_WIRE_LEN:
        ret->bytes = vv_rd_sub(r, get_varint(r));
        break;
    case VV_WIRE_FIXED32:
        ret->scalar = get_fixed(r, 4);
        break;
    default:
        vv_rd_fail(r, "InvalidTag");
    }
    if (!vv_rd_ok(r))
        vv_wire_fail(w, at, r->why);
    return vv_rd_ok(r);
}

bool vv_wire_expect(vv_wire *w, const vv_field *f, uint8_t wire)
{
    if (f->wire != wire)
        vv_wire_fail(w, f->at, "InvalidTag");
    return f->wire == wire;
}

vv_str vv_wire_text(vv_wire *w, const vv_field *f)
{
    if (!vv_wire_expect(w, f, VV_WIRE_LEN))
        return (vv_str){NULL, 0};
    vv_str text = {(const char *)f->bytes.at, vv_rd_left(&f->bytes)};
    if (!vv_utf8_valid(text)) {
        vv_wire_fail(w, f->at, "InvalidUtf8");
        return (vv_str){NULL, 0};
    }
    return text;
}

vv_opt_str vv_wire_text_of(vv_wire *w, vv_rd r, uint32_t number)
{
    vv_opt_str ret = {0};
    vv_field f;
    while (vv_wire_next(w, &r, &f))
        if (f.number == number)
            ret = (vv_opt_str){true, vv_wire_text(w, &f)};
    return ret;
}

uint64_t vv_wire_varint_of(vv_wire *w, vv_rd r, uint32_t number)
{
    uint64_t ret = 0;
    vv_field f;
    while (vv_wire_next(w, &r, &f))
        if (f.number == number && vv_wire_expect(w, &f, VV_WIRE_VARINT))
            ret = f.scalar;
    return ret;
}

bool vv_wire_value(vv_wire *w, vv_rd r, vv_field *ret)
{
    static const struct {
        bool known;
        uint8_t wire;
    } members[VV_VALUE_FIELDS] = {
        [VV_VALUE_NULL] = {true, VV_WIRE_LEN},
        [VV_VALUE_STRING] = {true, VV_WIRE_LEN},
        [VV_VALUE_INT] = {true, VV_WIRE_VARINT},
        [VV_VALUE_FLOAT] = {true, VV_WIRE_FIXED64},
        [VV_VALUE_BOOL] = {true, VV_WIRE_VARINT},
        [VV_VALUE_CLASS] = {true, VV_WIRE_LEN},
        [VV_VALUE_ENUM] = {true, VV_WIRE_LEN},
        [VV_VALUE_LIST] = {true, VV_WIRE_LEN},
        [VV_VALUE_MAP] = {true, VV_WIRE_LEN},
        [VV_VALUE_MEDIA] = {true, VV_WIRE_LEN},
        [VV_VALUE_BYTES] = {true, VV_WIRE_LEN},
        [VV_VALUE_BIGINT] = {true, VV_WIRE_LEN},
    };
    bool found = false;
    vv_field f;
    while (vv_wire_next(w, &r, &f)) {
        if (f.number >= VV_VALUE_FIELDS || !members[f.number].known)
            continue;
        if (!vv_wire_expect(w, &f, members[f.number].wire))
            return false;
        *ret = f;
        found = true;
    }
    return found;
}

vv_str vv_wire_entry(vv_wire *w, vv_rd entry, vv_rd *ret_value)
{
    vv_str key = {NULL, 0};
    *ret_value = vv_rd_init(entry.at, 0);
    vv_field f;
    while (vv_wire_next(w, &entry, &f)) {
        if (f.number == VV_ENTRY_KEY)
            key = vv_wire_text(w, &f);
        else if (f.number == VV_ENTRY_VALUE && vv_wire_expect(w, &f, VV_WIRE_LEN))
            *ret_value = f.bytes;
    }
    return key;
}
