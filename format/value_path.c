#include "config.h"

#include "format/value_path.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/text.h"
#include "format/value_wire.h"

/* A text that is being read, and where the keys taken out of it go: never more bytes than it has. */
typedef struct {
    const char *from, *at, *end;
    char *out;
    vv_error *err;
} reader;

static vv_code refuse(const reader *r, const char *what)
{
    size_t off = (size_t)(r->at - r->from);
    vv_fail(r->err, VV_ERR_ARG, "is no path: at byte %zu %s", off, what);
    if (r->err)
        r->err->off = off;
    return VV_ERR_ARG;
}

static bool is_name(char c, bool first)
{
    return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80 || (!first && isdigit((unsigned char)c));
}

static vv_code take_name(reader *r, vv_path_step *ret)
{
    const char *from = r->at;
    while (r->at < r->end && is_name(*r->at, r->at == from))
        r->at++;
    if (r->at == from)
        return refuse(r, "a name must stand (other keys in brackets and quotes)");
    size_t n = (size_t)(r->at - from);
    memcpy(r->out, from, n);
    ret->key = (vv_str){r->out, n};
    r->out += n;
    return VV_OK;
}

static vv_code take_index(reader *r, vv_path_step *ret)
{
    const char *from = r->at;
    uint64_t v = 0;
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++)
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) || __builtin_add_overflow(v, (uint64_t)(*r->at - '0'), &v))
            return refuse(r, "the index is too large");
    if (*from == '0' && r->at - from > 1)
        return refuse(r, "the index begins with a needless 0");
    ret->is_index = true;
    ret->index = v;
    return VV_OK;
}

/* Four hexadecimal digits; -1 where they are not. */
static int take_unit(reader *r)
{
    uint8_t b[2];
    if (r->end - r->at < 4 || !vv_unhex(b, 2, (vv_str){r->at, 4}))
        return -1;
    r->at += 4;
    return b[0] << 8 | b[1];
}

static void put_utf8(reader *r, unsigned c)
{
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *r->out++ = (char)(lead[more] | c >> 6 * more);
    while (more--)
        *r->out++ = (char)(0x80 | (c >> 6 * more & 0x3f));
}

/* The rest of "\uXXXX", which may be one half of a pair. */
static bool take_escaped_unit(reader *r)
{
    int high = take_unit(r);
    if (high < 0 || (high >= 0xdc00 && high < 0xe000))
        return false;
    if (high < 0xd800 || high >= 0xe000) {
        put_utf8(r, (unsigned)high);
        return true;
    }
    if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
        return false;
    r->at += 2;
    int low = take_unit(r);
    if (low < 0xdc00 || low >= 0xe000)
        return false;
    put_utf8(r, 0x10000u + (((unsigned)high & 0x3ff) << 10 | ((unsigned)low & 0x3ff)));
    return true;
}

static bool take_escape(reader *r)
{
    static const char names[] = "\\\"'/bfnrt", values[] = "\\\"'/\b\f\n\r\t";
    if (r->at == r->end)
        return false;
    char c = *r->at++;
    if (c == 'u')
        return take_escaped_unit(r);
    const char *known = memchr(names, c, sizeof names - 1);
    if (known)
        *r->out++ = values[known - names];
    return known != NULL;
}

static vv_code take_quoted(reader *r, vv_path_step *ret)
{
    char quote = *r->at++;
    ret->key = (vv_str){r->out, 0};
    while (r->at < r->end && *r->at != quote) {
        char c = *r->at++;
        if (c != '\\')
            *r->out++ = c;
        else if (!take_escape(r))
            return refuse(r, "an escape is none of JSON's");
    }
    if (r->at == r->end)
        return refuse(r, "the quote is not closed");
    r->at++;
    ret->key.n = (size_t)(r->out - ret->key.p);
    return VV_OK;
}

static vv_code take_bracket(reader *r, vv_path_step *ret)
{
    vv_code rc;
    if (r->at < r->end && isdigit((unsigned char)*r->at))
        rc = take_index(r, ret);
    else if (r->at < r->end && (*r->at == '"' || *r->at == '\''))
        rc = take_quoted(r, ret);
    else
        rc = refuse(r, "an index or a key in quotes must stand");
    if (rc == VV_OK && (r->at == r->end || *r->at != ']'))
        rc = refuse(r, "a ] must stand");
    if (rc == VV_OK)
        r->at++;
    return rc;
}

static vv_code take_step(reader *r, bool bare, vv_path_step *ret)
{
    if (bare)
        return take_name(r, ret);
    if (*r->at == '.') {
        r->at++;
        return take_name(r, ret);
    }
    if (*r->at == '[') {
        r->at++;
        return take_bracket(r, ret);
    }
    return refuse(r, "a . or [ must stand");
}

vv_code vv_value_path_parse(vv_value_path *ret, vv_str text, vv_error *err)
{
    ret->count = 0;
    ret->keys = malloc(text.n + 1);
    if (!ret->keys)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a path");
    const char *from = text.n ? text.p : "";
    reader r = {from, from, from + text.n, ret->keys, err};
    vv_code rc = VV_OK;
    bool rooted = r.at < r.end && *r.at == '$';
    if (rooted)
        r.at++;
    while (r.at < r.end && rc == VV_OK) {
        if (ret->count == VV_PATH_STEPS) {
            rc = refuse(&r, "it has too many steps");
            break;
        }
        vv_path_step *step = &ret->steps[ret->count];
        *step = (vv_path_step){0};
        rc = take_step(&r, ret->count == 0 && !rooted && is_name(*r.at, true), step);
        step->end = (size_t)(r.at - r.from);
        ret->count++;
    }
    if (rc != VV_OK)
        vv_value_path_done(ret);
    return rc;
}

void vv_value_path_done(vv_value_path *p)
{
    free(p->keys);
    p->keys = NULL;
    p->count = 0;
}

const char *vv_value_kind_word(vv_value_kind k)
{
    static const char *const words[VV_KINDS] = {"unknown", "null", "string", "int",   "float", "bool",   "class",
                                                "enum",    "list", "map",    "media", "bytes", "bigint", "omitted"};
    return words[k];
}

static vv_value_kind kind_of(vv_wire *w, const vv_field *f)
{
    static const uint8_t kinds[VV_VALUE_FIELDS] = {
        [VV_VALUE_NULL] = VV_KIND_NULL,   [VV_VALUE_STRING] = VV_KIND_STRING, [VV_VALUE_INT] = VV_KIND_INT,
        [VV_VALUE_FLOAT] = VV_KIND_FLOAT, [VV_VALUE_BOOL] = VV_KIND_BOOL,     [VV_VALUE_CLASS] = VV_KIND_CLASS,
        [VV_VALUE_ENUM] = VV_KIND_ENUM,   [VV_VALUE_LIST] = VV_KIND_LIST,     [VV_VALUE_MAP] = VV_KIND_MAP,
        [VV_VALUE_MEDIA] = VV_KIND_MEDIA, [VV_VALUE_BYTES] = VV_KIND_BYTES,   [VV_VALUE_BIGINT] = VV_KIND_BIGINT,
    };
    if (f->number != VV_VALUE_CLASS)
        return (vv_value_kind)kinds[f->number];
    vv_opt_str name = vv_wire_text_of(w, f->bytes, VV_CLASS_NAME);
    return name.present && vv_str_eq(name.s, vv_cstr(VV_OMITTED_CLASS)) ? VV_KIND_OMITTED : VV_KIND_CLASS;
}

/* The field of a container's message that holds its items; 0: it is none. */
static uint32_t item_field(vv_value_kind k)
{
    return k == VV_KIND_LIST ? VV_LIST_ITEM : k == VV_KIND_MAP ? VV_MAP_ENTRY : k == VV_KIND_CLASS ? VV_CLASS_ENTRY : 0;
}

/* The item that a step names in a container's message. */
static bool find_item(vv_wire *w, vv_rd r, vv_value_kind kind, const vv_path_step *step, vv_rd *ret)
{
    uint32_t item = item_field(kind);
    bool found = false;
    uint64_t at = 0;
    vv_field f;
    if (!item || step->is_index != (kind == VV_KIND_LIST))
        return false;
    while (vv_wire_next(w, &r, &f)) {
        if (f.number != item || !vv_wire_expect(w, &f, VV_WIRE_LEN))
            continue;
        if (step->is_index) {
            if (at++ != step->index)
                continue;
            *ret = f.bytes;
            return true;
        }
        vv_rd value;
        if (vv_str_eq(vv_wire_entry(w, f.bytes, &value), step->key)) {
            *ret = value;
            found = true;
        }
    }
    return found;
}

static uint64_t count_items(vv_wire *w, vv_rd r, uint32_t item)
{
    uint64_t n = 0;
    vv_field f;
    while (vv_wire_next(w, &r, &f))
        n += f.number == item && vv_wire_expect(w, &f, VV_WIRE_LEN);
    return n;
}

vv_code vv_value_walk(vv_value_place *ret, const uint8_t *body, size_t n, const vv_value_path *path, vv_error *err)
{
    vv_rd message = vv_rd_init(body, n), item;
    vv_wire w = {.base = message.base};
    *ret = (vv_value_place){0};
    for (;;) {
        vv_field f = {0};
        bool known = vv_wire_value(&w, message, &f);
        ret->kind = known ? kind_of(&w, &f) : VV_KIND_UNKNOWN;
        ret->body = message.at;
        ret->body_len = vv_rd_left(&message);
        if (w.why)
            return vv_wire_error(&w, err);
        bool on = ret->matched < path->count && find_item(&w, f.bytes, ret->kind, &path->steps[ret->matched], &item);
        if (w.why)
            return vv_wire_error(&w, err);
        if (!on) {
            ret->has_items = item_field(ret->kind) != 0;
            if (ret->has_items && ret->matched == path->count)
                ret->items = count_items(&w, f.bytes, item_field(ret->kind));
            return w.why ? vv_wire_error(&w, err) : VV_OK;
        }
        ret->matched++;
        message = item;
    }
}
