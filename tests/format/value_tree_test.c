/* Random values: what is written is read, by the rules of its bytes and as JSON, within exact bounds. */
#include "config.h"

#include "format/value_write.h"

#include <math.h>

#include "format/value.h"
#include "tests/format/value_heap.h"

typedef enum { NIL, BOOL, INT, FLOAT, TEXT, BYTES, BIGINT, ENUM, OMITTED, LIST, MAP, OBJECT, NODES } node_kind;

typedef struct node {
    node_kind kind;
    int64_t i; /* bool, int, the reason */
    double d;
    char *a, *b;      /* texts of the node; NUL-terminated, but for bytes and text */
    size_t a_n;
    struct node **items;
    vv_str *keys;     /* of map and object */
    size_t count;
} node;

static const char *const reasons[] = {"omittedArgument", "unsupportedValue", "hostOwnedValue", "invalidRuntimeValue",
                                      "cyclicReference"};

static char *random_text(test_rng *g, size_t *ret_n)
{
    static const char *const pieces[] = {"a", "$", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                         "\xff", "\xe2\x82", "\"<"};
    static const size_t lengths[] = {1, 4, 40, 130, 300, 20000};
    size_t n = test_below(g, lengths[test_below(g, 20) == 0 ? 5 : test_below(g, 5)]), len = 0;
    char *text = malloc(n + 8);
    while (len < n) {
        const char *piece = pieces[test_below(g, 12) ? 0 : test_below(g, VV_ARRAY_LEN(pieces))];
        memcpy(text + len, piece, strlen(piece));
        len += strlen(piece);
    }
    text[len] = 0;
    *ret_n = len;
    return text;
}

static node *random_node(test_rng *g, unsigned depth)
{
    static const int64_t ints[] = {0, 1, -1, 127, 128, INT64_MIN, INT64_MAX, (INT64_C(1) << 53) - 1, INT64_C(1) << 53};
    static const double doubles[] = {0, -0.0, 1.5, -1e300, 0.1, INFINITY, -INFINITY, 12345678.25};
    node *x = calloc(1, sizeof *x);
    x->kind = test_below(g, depth ? NODES : LIST);
    size_t n;
    x->a = random_text(g, &x->a_n);
    x->b = random_text(g, &n);
    x->i = test_below(g, 3) ? ints[test_below(g, VV_ARRAY_LEN(ints))] : (int64_t)test_random(g);
    x->d = doubles[test_below(g, VV_ARRAY_LEN(doubles))];
    if (x->kind == BOOL)
        x->i &= 1;
    if (x->kind == OMITTED)
        x->i = (int64_t)test_below(g, VV_ARRAY_LEN(reasons));
    for (size_t i = 0; x->kind == BYTES && i < x->a_n; i++)
        x->a[i] = (char)test_random(g);
    if (x->kind == BIGINT) {
        x->a_n = x->a_n ? x->a_n : 1;
        for (size_t i = 0; i < x->a_n; i++)
            x->a[i] = "0123456789abcdef"[test_below(g, 16)];
        if (x->a_n > 1 && test_below(g, 2))
            x->a[0] = '-';
    }
    if (x->kind < LIST)
        return x;
    x->count = test_below(g, 6);
    x->items = calloc(x->count + 1, sizeof *x->items);
    x->keys = calloc(x->count + 1, sizeof *x->keys);
    for (size_t i = 0; i < x->count; i++) {
        x->items[i] = random_node(g, depth - 1);
        x->keys[i].p = random_text(g, &x->keys[i].n);
    }
    return x;
}

static void free_node(node *x)
{
    for (size_t i = 0; i < x->count; i++) {
        free_node(x->items[i]);
        free((char *)x->keys[i].p);
    }
    free(x->items);
    free(x->keys);
    free(x->a);
    free(x->b);
    free(x);
}

static void put_node(vv_vw *w, const node *x)
{
    static void (*const end[])(vv_vw *w) = {vv_vw_end_list, vv_vw_end_map, vv_vw_end_object};
    switch (x->kind) {
    case NIL:
        vv_vw_null(w);
        return;
    case BOOL:
        vv_vw_bool(w, x->i);
        return;
    case INT:
        vv_vw_int(w, x->i);
        return;
    case FLOAT:
        vv_vw_float(w, x->d);
        return;
    case TEXT:
        vv_vw_text(w, x->a, x->a_n);
        return;
    case BYTES:
        vv_vw_bytes(w, x->a, x->a_n);
        return;
    case BIGINT:
        vv_vw_bigint(w, x->a, x->a_n);
        return;
    case ENUM:
        vv_vw_enum(w, x->a, x->b);
        return;
    case OMITTED:
        vv_vw_omitted(w, (vv_omission)x->i, x->b);
        return;
    case LIST:
        vv_vw_list(w);
        break;
    case MAP:
        vv_vw_map(w);
        break;
    case OBJECT:
        vv_vw_object(w, x->a);
        break;
    case NODES:
        return;
    }
    for (size_t i = 0; i < x->count; i++) {
        if (x->kind != LIST)
            vv_vw_key(w, x->keys[i].p, x->keys[i].n);
        put_node(w, x->items[i]);
    }
    end[x->kind - LIST](w);
}

/* A reader of protobuf that shares nothing with ours and takes the canonical form alone. */
typedef struct {
    const uint8_t *p, *end;
} span;

static uint64_t walk_varint(span *s)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        ck_assert(s->p < s->end && shift < 70);
        uint8_t b = *s->p++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            ck_assert_msg(b || !shift, "a longer varint than needed");
            return v;
        }
    }
}

/* The field of this number and wire type that must come next. */
static void walk_tag(span *s, uint32_t field, uint32_t wire)
{
    ck_assert_uint_eq(walk_varint(s), field << 3 | wire);
}

static span walk_len(span *s, uint32_t field)
{
    walk_tag(s, field, 2);
    uint64_t n = walk_varint(s);
    ck_assert_uint_le(n, (uint64_t)(s->end - s->p));
    span inner = {s->p, s->p + n};
    s->p += n;
    return inner;
}

static void walk_raw(span s, const char *p, size_t n)
{
    ck_assert_uint_eq((size_t)(s.end - s.p), n);
    ck_assert_mem_eq(s.p, p, n);
}

static void walk_text(span s, const char *p, size_t n)
{
    char *mended = malloc(n + 1);
    memcpy(mended, p, n);
    vv_utf8_mend(mended, n);
    walk_raw(s, mended, n);
    free(mended);
}

static void walk_plain(span *s, uint32_t field, const char *p, size_t n)
{
    if (n)
        walk_text(walk_len(s, field), p, n);
}

static void walk_node(span s, const node *x);

static void walk_items(span s, uint32_t field, const node *x)
{
    for (size_t i = 0; i < x->count; i++) {
        span item = walk_len(&s, field);
        if (x->kind == LIST) {
            walk_node(item, x->items[i]);
            continue;
        }
        walk_plain(&item, 1, x->keys[i].p, x->keys[i].n);
        walk_node(walk_len(&item, 2), x->items[i]);
        ck_assert_ptr_eq(item.p, item.end);
    }
    ck_assert_ptr_eq(s.p, s.end);
}

static void walk_text_entry(span *s, const char *key, const char *text)
{
    span entry = walk_len(s, 2);
    walk_text(walk_len(&entry, 1), key, strlen(key));
    span value = walk_len(&entry, 2);
    walk_text(walk_len(&value, 3), text, strlen(text));
    ck_assert(entry.p == entry.end && value.p == value.end);
}

static void walk_leaf(span *s, const node *x)
{
    static const uint32_t fields[] = {[TEXT] = 3, [BYTES] = 19, [BIGINT] = 20};
    span in;
    uint64_t bits = 0;
    switch ((int)x->kind) {
    case NIL:
        walk_raw(walk_len(s, 2), "", 0);
        break;
    case BOOL:
        walk_tag(s, 6, 0);
        ck_assert_int_eq((int64_t)walk_varint(s), x->i);
        break;
    case INT:
        walk_tag(s, 4, 0);
        ck_assert_int_eq((int64_t)walk_varint(s), x->i);
        break;
    case FLOAT:
        walk_tag(s, 5, 1);
        ck_assert_int_ge(s->end - s->p, 8);
        for (unsigned i = 0; i < 64; i += 8)
            bits |= (uint64_t)*s->p++ << i;
        ck_assert_mem_eq(&bits, &x->d, 8);
        break;
    case ENUM:
        in = walk_len(s, 8);
        walk_plain(&in, 1, x->a, strlen(x->a));
        walk_plain(&in, 2, x->b, strlen(x->b));
        ck_assert_ptr_eq(in.p, in.end);
        break;
    case OMITTED:
        in = walk_len(s, 7);
        walk_plain(&in, 1, "baml.trace.OmittedValue", strlen("baml.trace.OmittedValue"));
        walk_text_entry(&in, "reason", reasons[x->i]);
        walk_text_entry(&in, "message", x->b);
        ck_assert_ptr_eq(in.p, in.end);
        break;
    default:
        in = walk_len(s, fields[x->kind]);
        if (x->kind == TEXT)
            walk_text(in, x->a, x->a_n);
        else
            walk_raw(in, x->a, x->a_n);
    }
}

static void walk_node(span s, const node *x)
{
    if (x->kind == LIST) {
        walk_items(walk_len(&s, 11), 2, x);
    } else if (x->kind == MAP) {
        walk_items(walk_len(&s, 12), 3, x);
    } else if (x->kind == OBJECT) {
        span in = walk_len(&s, 7);
        walk_plain(&in, 1, x->a, strlen(x->a));
        walk_items(in, 2, x);
    } else {
        walk_leaf(&s, x);
    }
    ck_assert_ptr_eq(s.p, s.end);
}

/* The JSON that docs/value-json.md asks for, from the tree. */
static void json_text(vv_json *j, const char *key, const char *before, const char *p, size_t n, bool is_key)
{
    size_t ahead = strlen(before), len = ahead + n;
    char *mended = malloc(len + 1);
    memcpy(mended, before, ahead);
    memcpy(mended + ahead, p, n);
    vv_utf8_mend(mended, len);
    if (is_key)
        vv_json_key_str(j, (vv_str){mended, len});
    else if (key)
        vv_json_kv_str(j, key, (vv_str){mended, len});
    else
        vv_json_str(j, (vv_str){mended, len});
    free(mended);
}

static void json_node(vv_json *j, const node *x)
{
    bool exact = x->i <= (INT64_C(1) << 53) - 1 && x->i >= -((INT64_C(1) << 53) - 1);
    bool minus = x->kind == BIGINT && x->a[0] == '-';
    if (x->kind == NIL || x->kind == BOOL || x->kind == TEXT || (x->kind == FLOAT && isfinite(x->d)) ||
        (x->kind == INT && exact)) {
        if (x->kind == NIL)
            vv_json_null(j);
        else if (x->kind == BOOL)
            vv_json_bool(j, x->i);
        else if (x->kind == TEXT)
            json_text(j, NULL, "", x->a, x->a_n, false);
        else if (x->kind == FLOAT)
            vv_json_double(j, x->d);
        else
            vv_json_i64(j, x->i);
        return;
    }
    if (x->kind == LIST) {
        vv_json_arr(j);
        for (size_t i = 0; i < x->count; i++)
            json_node(j, x->items[i]);
        vv_json_end_arr(j);
        return;
    }
    vv_json_obj(j);
    if (x->kind == INT) {
        vv_json_key(j, "$int");
        vv_json_i64(j, x->i);
    } else if (x->kind == FLOAT) {
        vv_json_kv_cstr(j, "$float", x->d > 0 ? "Infinity" : "-Infinity");
    } else if (x->kind == BYTES) {
        vv_json_key(j, "$bytes");
        vv_json_base64(j, x->a, x->a_n);
        vv_json_kv_u64(j, "length", x->a_n);
    } else if (x->kind == BIGINT) {
        json_text(j, "$bigint", minus ? "-0x" : "0x", x->a + minus, x->a_n - minus, false);
    } else if (x->kind == ENUM) {
        json_text(j, "$enum", "", x->a, strlen(x->a), false);
        json_text(j, "variant", "", x->b, strlen(x->b), false);
    } else if (x->kind == OMITTED) {
        vv_json_kv_cstr(j, "$omitted", reasons[x->i]);
        json_text(j, "message", "", x->b, strlen(x->b), false);
    } else if (x->kind == OBJECT) {
        json_text(j, "$class", "", x->a, strlen(x->a), false);
    }
    for (size_t i = 0; i < x->count; i++) {
        json_text(j, NULL, x->keys[i].n && x->keys[i].p[0] == '$' ? "$" : "", x->keys[i].p, x->keys[i].n, true);
        json_node(j, x->items[i]);
    }
    vv_json_end_obj(j);
}

static void check_json(const vv_vw *w, const node *x)
{
    enum { MAX = 1 << 26 };
    vv_wr got = vv_wr_growing(MAX), want = vv_wr_growing(MAX);
    vv_json g = vv_json_init(&got), t = vv_json_init(&want);
    uint8_t *exact = test_exact(w->buf, w->len);
    bool cut;
    vv_error err = {0};
    vv_code rc = vv_value_show(&g, exact, w->len, &(vv_value_limits){60, MAX / 2}, &cut, &err);
    ck_assert_msg(rc == VV_OK && vv_json_done(&g) && !cut, "%s", err.msg);
    json_node(&t, x);
    ck_assert(vv_json_done(&t));
    ck_assert_uint_eq(got.len, want.len);
    ck_assert_mem_eq(got.buf, want.buf, want.len);
    vv_wr_done(&got);
    vv_wr_done(&want);
    free(exact);
}

/* The fault and, in *w, the writer after the tree was put within a limit, with a growth denied. */
static vv_vw_fault encode(vv_vw *w, heap *h, const node *x, size_t limit, unsigned deny)
{
    *w = new_writer(h, limit);
    h->deny = deny;
    put_node(w, x);
    return vv_vw_finish(w);
}

/* Limit and memory: exactly enough is enough, a byte less is too little; no growth may fail unnoticed. */
static void check_bounds(const vv_vw *whole, unsigned grown, const node *x)
{
    vv_vw w;
    heap h;
    ck_assert_int_eq(encode(&w, &h, x, whole->len, UINT32_MAX), VV_VW_OK);
    ck_assert_uint_eq(w.len, whole->len);
    ck_assert_mem_eq(w.buf, whole->buf, w.len);
    done(&w);
    ck_assert_int_eq(encode(&w, &h, x, whole->len - 1, UINT32_MAX), VV_VW_TOO_LARGE);
    done(&w);
    ck_assert_int_eq(encode(&w, &h, x, whole->len / 2, UINT32_MAX), VV_VW_TOO_LARGE);
    done(&w);
    for (unsigned deny = 0; deny < grown; deny++) {
        ck_assert_int_eq(encode(&w, &h, x, SIZE_MAX >> 1, deny), VV_VW_DENIED);
        ck_assert_uint_eq(h.grown, deny + 1);
        done(&w);
    }
}

START_TEST(random_trees)
{
    test_rng g = test_seeded("random_trees");
    for (unsigned i = 0; i < 400; i++) {
        node *x = random_node(&g, 1 + (unsigned)test_below(&g, 6));
        vv_vw w, again;
        heap h;
        ck_assert_int_eq(encode(&w, &h, x, SIZE_MAX >> 1, UINT32_MAX), VV_VW_OK);
        unsigned grown = h.grown;
        walk_node((span){w.buf, w.buf + w.len}, x);
        check_json(&w, x);
        ck_assert_int_eq(encode(&again, &h, x, 1 << 28, UINT32_MAX), VV_VW_OK);
        ck_assert_uint_eq(again.len, w.len);
        ck_assert_mem_eq(again.buf, w.buf, w.len);
        check_bounds(&w, grown, x);
        done(&again);
        done(&w);
        free_node(x);
    }
}
END_TEST

int main(void)
{
    TCase *c = test_case("value_tree", 60);
    tcase_add_test(c, random_trees);
    return test_run();
}
