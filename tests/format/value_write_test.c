#include "config.h"

#include "format/value_write.h"

#include <math.h>

#include "format/value.h"
#include "tests/testing.h"

/* Blocks of exactly what is asked for; the growth of number deny (from 0) is refused. */
typedef struct {
    unsigned grown, deny;
    size_t most; /* the largest block that may be asked for */
} heap;

static uint8_t *grow(void *ctx, uint8_t *buf, size_t cap, size_t want)
{
    heap *h = ctx;
    ck_assert_uint_gt(want, cap);
    ck_assert_uint_le(want, h->most);
    if (h->grown++ == h->deny)
        return NULL;
    return realloc(buf, want);
}

static vv_vw new_writer(heap *h, size_t limit)
{
    vv_vw w;
    *h = (heap){.deny = UINT32_MAX, .most = limit + VV_VW_OPEN_BYTES};
    vv_vw_init(&w, NULL, 0, limit, grow, h);
    return w;
}

static void done(vv_vw *w)
{
    free(w->buf);
    *w = (vv_vw){0};
}

/* ---- the bytes of each kind ---- */

static void w_null(vv_vw *w) { vv_vw_null(w); }
static void w_false(vv_vw *w) { vv_vw_bool(w, false); }
static void w_true(vv_vw *w) { vv_vw_bool(w, true); }
static void w_zero(vv_vw *w) { vv_vw_int(w, 0); }
static void w_127(vv_vw *w) { vv_vw_int(w, 127); }
static void w_128(vv_vw *w) { vv_vw_int(w, 128); }
static void w_minus(vv_vw *w) { vv_vw_int(w, -1); }
static void w_min(vv_vw *w) { vv_vw_int(w, INT64_MIN); }
static void w_max(vv_vw *w) { vv_vw_int(w, INT64_MAX); }
static void w_float(vv_vw *w) { vv_vw_float(w, 1.5); }
static void w_float_zero(vv_vw *w) { vv_vw_float(w, 0); }
static void w_float_minus_zero(vv_vw *w) { vv_vw_float(w, -0.0); }
static void w_infinity(vv_vw *w) { vv_vw_float(w, INFINITY); }
static void w_no_text(vv_vw *w) { vv_vw_text(w, NULL, 0); }
static void w_text(vv_vw *w) { vv_vw_text(w, "hi", 2); }
static void w_bad_text(vv_vw *w) { vv_vw_text(w, "a\xff\xe2\x82", 4); }
static void w_nul_text(vv_vw *w) { vv_vw_text(w, "a\0b", 3); }
static void w_no_bytes(vv_vw *w) { vv_vw_bytes(w, NULL, 0); }
static void w_bytes(vv_vw *w) { vv_vw_bytes(w, "\0\xff", 2); }
static void w_bigint(vv_vw *w) { vv_vw_bigint(w, "1f", 2); }
static void w_big_minus(vv_vw *w) { vv_vw_bigint(w, "-1f", 3); }
static void w_enum(vv_vw *w) { vv_vw_enum(w, "Color", "Red"); }
static void w_enum_variant(vv_vw *w) { vv_vw_enum(w, NULL, "Red"); }
static void w_no_enum(vv_vw *w) { vv_vw_enum(w, "", ""); }
static void w_omitted(vv_vw *w) { vv_vw_omitted(w, VV_OMIT_CYCLE, "back"); }
static void w_omitted_bare(vv_vw *w) { vv_vw_omitted(w, VV_OMIT_ARGUMENT, NULL); }

static void w_list_empty(vv_vw *w)
{
    vv_vw_list(w);
    vv_vw_end_list(w);
}

static void w_list(vv_vw *w)
{
    vv_vw_list(w);
    vv_vw_int(w, 1);
    vv_vw_text(w, "x", 1);
    vv_vw_null(w);
    vv_vw_list(w);
    vv_vw_end_list(w);
    vv_vw_end_list(w);
}

static void w_map_empty(vv_vw *w)
{
    vv_vw_map(w);
    vv_vw_end_map(w);
}

/* The second key is empty, the third is the first again, and none is sorted. */
static void w_map(vv_vw *w)
{
    vv_vw_map(w);
    vv_vw_key(w, "b", 1);
    vv_vw_int(w, 1);
    vv_vw_key(w, NULL, 0);
    vv_vw_bool(w, false);
    vv_vw_key(w, "b", 1);
    w_list_empty(w);
    vv_vw_end_map(w);
}

static void w_bad_key(vv_vw *w)
{
    vv_vw_map(w);
    vv_vw_key(w, "\xff", 1);
    vv_vw_null(w);
    vv_vw_end_map(w);
}

static void w_object(vv_vw *w)
{
    vv_vw_object(w, "A");
    vv_vw_key(w, "f", 1);
    vv_vw_int(w, 1);
    vv_vw_key(w, "g", 1);
    vv_vw_object(w, NULL);
    vv_vw_end_object(w);
    vv_vw_end_object(w);
}

static const struct {
    void (*put)(vv_vw *w);
    const char *hex;
} kinds[] = {
    {w_null, "1200"},
    {w_false, "3000"},
    {w_true, "3001"},
    {w_zero, "2000"},
    {w_127, "207f"},
    {w_128, "208001"},
    {w_minus, "20ffffffffffffffffff01"},
    {w_min, "2080808080808080808001"},
    {w_max, "20ffffffffffffffff7f"},
    {w_float, "29000000000000f83f"},
    {w_float_zero, "290000000000000000"},
    {w_float_minus_zero, "290000000000000080"},
    {w_infinity, "29000000000000f07f"},
    {w_no_text, "1a00"},
    {w_text, "1a026869"},
    {w_bad_text, "1a04613f3f3f"},
    {w_nul_text, "1a03610062"},
    {w_no_bytes, "9a0100"},
    {w_bytes, "9a010200ff"},
    {w_bigint, "a201023166"},
    {w_big_minus, "a201032d3166"},
    {w_enum, "420c" "0a05436f6c6f72" "1203526564"},
    {w_enum_variant, "4205" "1203526564"},
    {w_no_enum, "4200"},
    {w_omitted, "3a49" "0a17" "62616d6c2e74726163652e4f6d697474656456616c7565"
                "121b" "0a06726561736f6e" "1211" "1a0f" "6379636c69635265666572656e6365"
                "1211" "0a076d657373616765" "1206" "1a04" "6261636b"},
    {w_omitted_bare, "3a45" "0a17" "62616d6c2e74726163652e4f6d697474656456616c7565"
                     "121b" "0a06726561736f6e" "1211" "1a0f" "6f6d6974746564417267756d656e74"
                     "120d" "0a076d657373616765" "1202" "1a00"},
    {w_list_empty, "5a00"},
    {w_list, "5a11" "12022001" "12031a0178" "12021200" "12025a00"},
    {w_map_empty, "6200"},
    {w_map, "6218" "1a07" "0a0162" "12022001" "1a04" "12023000" "1a07" "0a0162" "12025a00"},
    {w_bad_key, "6209" "1a07" "0a013f" "12021200"},
    {w_object, "3a15" "0a0141" "1207" "0a0166" "12022001" "1207" "0a0167" "12023a00"},
};

START_TEST(bytes_of_each_kind)
{
    heap h;
    vv_vw w = new_writer(&h, 1000);
    kinds[_i].put(&w);
    ck_assert_int_eq(vv_vw_finish(&w), VV_VW_OK);
    vv_blob want = test_unhex(kinds[_i].hex);
    ck_assert_uint_eq(w.len, want.n);
    ck_assert_mem_eq(w.buf, want.p, want.n);
    vv_blob_done(&want);
    done(&w);
}
END_TEST

/* ---- lengths of lengths ---- */

/* Bodies built from the inside out, by hand: what the writer should have written. */
static void by_hand(vv_wr *body, uint32_t tag, const void *p, size_t n)
{
    vv_wr_u8(body, (uint8_t)tag);
    size_t v = n;
    for (; v >= 0x80; v >>= 7)
        vv_wr_u8(body, (uint8_t)(v | 0x80));
    vv_wr_u8(body, (uint8_t)v);
    vv_wr_bytes(body, p, n);
}

typedef enum { IN_LIST, IN_MAP, IN_OBJECT, CONTAINERS } container;
static const struct {
    uint8_t tag, item;
    void (*end)(vv_vw *w);
} containers[CONTAINERS] = {
    {0x5a, 0x12, vv_vw_end_list}, {0x62, 0x1a, vv_vw_end_map}, {0x3a, 0x12, vv_vw_end_object}};

/* *body becomes the one item of a container. */
static void wrap(vv_wr *body, container in, const char *class_name, vv_str key)
{
    size_t max = body->len + strlen(class_name) + key.n + 100;
    vv_wr entry = vv_wr_growing(max), inner = vv_wr_growing(max), outer = vv_wr_growing(max);
    if (in == IN_OBJECT && *class_name)
        by_hand(&inner, 0x0a, class_name, strlen(class_name));
    if (in == IN_LIST) {
        by_hand(&inner, 0x12, body->buf, body->len);
    } else {
        if (key.n)
            by_hand(&entry, 0x0a, key.p, key.n);
        by_hand(&entry, 0x12, body->buf, body->len);
        by_hand(&inner, containers[in].item, entry.buf, entry.len);
    }
    by_hand(&outer, containers[in].tag, inner.buf, inner.len);
    ck_assert(vv_wr_ok(&entry) && vv_wr_ok(&inner) && vv_wr_ok(&outer));
    vv_wr_done(&entry);
    vv_wr_done(&inner);
    vv_wr_done(body);
    *body = outer;
}

static void enter(vv_vw *w, container in, const char *class_name, vv_str key)
{
    if (in == IN_LIST)
        vv_vw_list(w);
    else if (in == IN_MAP)
        vv_vw_map(w);
    else
        vv_vw_object(w, class_name);
    if (in != IN_LIST)
        vv_vw_key(w, key.p, key.n);
}

/* A text in three containers of each kind in each, around the lengths that take one byte more. */
static void check_nested(size_t n, unsigned shape, const char *class_name, vv_str key)
{
    container in[3] = {shape % 3, shape / 3 % 3, shape / 9};
    char *text = malloc(n + 1);
    memset(text, 'x', n);
    vv_wr want = vv_wr_growing(n + 100);
    by_hand(&want, 0x1a, text, n);
    for (unsigned i = 3; i-- > 0;)
        wrap(&want, in[i], class_name, key);
    for (size_t short_by = 0; short_by < 2; short_by++) {
        heap h;
        vv_vw w = new_writer(&h, want.len - short_by);
        for (unsigned i = 0; i < 3; i++)
            enter(&w, in[i], class_name, key);
        vv_vw_text(&w, text, n);
        for (unsigned i = 3; i-- > 0;)
            containers[in[i]].end(&w);
        ck_assert_int_eq(vv_vw_finish(&w), short_by ? VV_VW_TOO_LARGE : VV_VW_OK);
        if (!short_by) {
            ck_assert_uint_eq(w.len, want.len);
            ck_assert_mem_eq(w.buf, want.buf, want.len);
        }
        done(&w);
    }
    vv_wr_done(&want);
    free(text);
}

static const size_t edges[] = {0, 1 << 7, 1 << 14, 1 << 21};

START_TEST(lengths_grow)
{
    size_t edge = edges[_i], from = edge < 40 ? 0 : edge - 40;
    size_t step = edge >= 1 << 21 ? 13 : 1;
    for (size_t n = from; n < edge + 4; n += step)
        for (unsigned shape = 0; shape < 27; shape++)
            check_nested(n, shape, "Name", (vv_str){"key", 3});
}
END_TEST

START_TEST(lengths_grow_by_keys_and_names)
{
    char *key = malloc(16500), *name = malloc(16500);
    memset(key, 'k', 16500);
    memset(name, 'n', 16499);
    name[16499] = 0;
    static const size_t sizes[] = {0, 60, 100, 120, 122, 124, 126, 127, 128, 129, 16360, 16380, 16383, 16384, 16385};
    for (size_t i = 0; i < VV_ARRAY_LEN(sizes); i++)
        for (size_t k = 0; k < VV_ARRAY_LEN(sizes); k++)
            for (unsigned shape = 0; shape < 27; shape++)
                check_nested(i % 4, shape, name + 16499 - sizes[i], (vv_str){key, sizes[k]});
    free(key);
    free(name);
}
END_TEST

/* ---- depth ---- */

static void nest(vv_vw *w, container in, unsigned depth, bool inverse)
{
    for (unsigned i = 0; i < depth; i++)
        enter(w, in, "C", (vv_str){"k", 1});
    vv_vw_int(w, 7);
    for (unsigned i = depth; i-- > 0;)
        containers[inverse && i >= VV_VALUE_DEPTH ? (in + 1) % CONTAINERS : in].end(w);
}

/* What is deeper is one omitted value, whatever is in it; what comes after it is written. */
START_TEST(depth_is_bounded)
{
    container in = (container)_i;
    for (unsigned depth = 62; depth < 130; depth += depth == 66 ? 60 : 1) {
        heap h;
        vv_vw w = new_writer(&h, 1 << 20);
        nest(&w, in, depth, true);
        ck_assert_int_eq(vv_vw_finish(&w), VV_VW_OK);
        vv_wr want = vv_wr_growing(1000);
        if (depth <= VV_VALUE_DEPTH) {
            vv_wr_bytes(&want, "\x20\x07", 2);
        } else {
            heap h2;
            vv_vw omitted = new_writer(&h2, 1000);
            vv_vw_omitted(&omitted, VV_OMIT_UNSUPPORTED, "nested more than 32 deep");
            ck_assert_int_eq(vv_vw_finish(&omitted), VV_VW_OK);
            vv_wr_bytes(&want, omitted.buf, omitted.len);
            done(&omitted);
        }
        for (unsigned i = 0; i < depth && i < VV_VALUE_DEPTH; i++)
            wrap(&want, in, "C", (vv_str){"k", 1});
        ck_assert_uint_eq(w.len, want.len);
        ck_assert_mem_eq(w.buf, want.buf, want.len);
        /* The reader shows what it can. */
        vv_wr out = vv_wr_growing(1 << 16);
        vv_json j = vv_json_init(&out);
        bool cut;
        ck_assert_int_eq(vv_value_show(&j, w.buf, w.len, &(vv_value_limits){100, 1 << 16}, &cut, NULL), VV_OK);
        ck_assert(vv_json_done(&j));
        ck_assert(!cut);
        vv_wr_done(&out);
        vv_wr_done(&want);
        done(&w);
    }
}
END_TEST

START_TEST(after_the_too_deep)
{
    heap h;
    vv_vw w = new_writer(&h, 1 << 20);
    for (unsigned i = 0; i < VV_VALUE_DEPTH; i++)
        vv_vw_list(&w);
    for (unsigned i = 0; i < 2; i++) {
        vv_vw_map(&w);
        vv_vw_key(&w, "k", 1);
        vv_vw_list(&w);
        vv_vw_key(&w, "passed over", 11);
        vv_vw_end_list(&w);
        vv_vw_end_map(&w);
    }
    vv_vw_int(&w, 7);
    size_t len = w.len;
    ck_assert_mem_eq(w.buf + len - 4, "\x12\x02\x20\x07", 4);
    for (unsigned i = 0; i < VV_VALUE_DEPTH; i++)
        vv_vw_end_list(&w);
    ck_assert_int_eq(vv_vw_finish(&w), VV_VW_OK);
    done(&w);
    w = new_writer(&h, 1 << 20);
    for (unsigned i = 0; i < VV_VALUE_DEPTH + 2; i++)
        vv_vw_list(&w);
    for (unsigned i = 0; i < VV_VALUE_DEPTH + 1; i++)
        vv_vw_end_list(&w);
    ck_assert_int_eq(vv_vw_finish(&w), VV_VW_MISUSED);
    done(&w);
}
END_TEST

/* ---- misuse ---- */

static const char ops[] = "n[]{}()k";

static void play_op(vv_vw *w, char op)
{
    switch (op) {
    case 'n':
        vv_vw_null(w);
        break;
    case '[':
        vv_vw_list(w);
        break;
    case ']':
        vv_vw_end_list(w);
        break;
    case '{':
        vv_vw_map(w);
        break;
    case '}':
        vv_vw_end_map(w);
        break;
    case '(':
        vv_vw_object(w, "C");
        break;
    case ')':
        vv_vw_end_object(w);
        break;
    default:
        vv_vw_key(w, "key", 3);
    }
}

/* value := n | [ value* ] | { (k value)* } | ( (k value)* ). The rest of s after one value, or NULL. */
static const char *one_value(const char *s)
{
    if (*s == 'n')
        return s + 1;
    char close = *s == '[' ? ']' : *s == '{' ? '}' : *s == '(' ? ')' : 0;
    if (!close)
        return NULL;
    for (s++; s && *s != close;) {
        if (close != ']' && *s++ != 'k')
            return NULL;
        s = one_value(s);
    }
    return s ? s + 1 : NULL;
}

static void check_script(const char *script)
{
    heap h;
    vv_vw w = new_writer(&h, 1000);
    for (const char *s = script; *s; s++)
        play_op(&w, *s);
    const char *rest = one_value(script);
    vv_vw_fault want = rest && !*rest ? VV_VW_OK : VV_VW_MISUSED, got = vv_vw_finish(&w);
    ck_assert_msg(got == want, "%s: wanted %d, got %d", script, want, got);
    done(&w);
}

/* Every sequence of up to six calls is one value or is misuse. */
START_TEST(misuse_is_told)
{
    char script[7];
    enum { OPS = sizeof ops - 1 };
    for (unsigned n = 0, count = 1; n <= 6; n++, count *= OPS)
        for (unsigned i = 0; i < count; i++) {
            for (unsigned k = 0, rest = i; k < n; k++, rest /= OPS)
                script[k] = ops[rest % OPS];
            script[n] = 0;
            check_script(script);
        }
}
END_TEST

START_TEST(bad_arguments)
{
    static const char *const bad[] = {"", "-", "0x1f", "1F", "1g", "--1", "1-"};
    heap h;
    for (size_t i = 0; i < VV_ARRAY_LEN(bad); i++) {
        vv_vw w = new_writer(&h, 1000);
        vv_vw_bigint(&w, bad[i], strlen(bad[i]));
        ck_assert_int_eq(vv_vw_finish(&w), VV_VW_MISUSED);
        done(&w);
    }
    vv_vw w = new_writer(&h, 1000);
    vv_vw_text(&w, NULL, 1);
    ck_assert_int_eq(vv_vw_finish(&w), VV_VW_MISUSED);
    done(&w);
    w = new_writer(&h, 1000);
    vv_vw_bigint(&w, NULL, 2);
    ck_assert_int_eq(vv_vw_finish(&w), VV_VW_MISUSED);
    done(&w);
    w = new_writer(&h, 1000);
    vv_vw_omitted(&w, VV_OMISSIONS, "why");
    ck_assert_int_eq(vv_vw_finish(&w), VV_VW_MISUSED);
    done(&w);
    w = new_writer(&h, 1000);
    vv_vw_text(&w, "x", SIZE_MAX); /* not looked at: it is too large */
    ck_assert_int_eq(vv_vw_finish(&w), VV_VW_TOO_LARGE);
    done(&w);
    w = new_writer(&h, 1000);
    vv_vw_map(&w);
    vv_vw_key(&w, "x", SIZE_MAX);
    ck_assert_int_eq(vv_vw_finish(&w), VV_VW_TOO_LARGE);
    done(&w);
}
END_TEST

/* The first failure stays. */
START_TEST(giving_up)
{
    heap h;
    vv_vw w = new_writer(&h, 1000);
    vv_vw_list(&w);
    vv_vw_give_up(&w);
    vv_vw_end_list(&w);
    vv_vw_end_list(&w);
    ck_assert_int_eq(vv_vw_finish(&w), VV_VW_GIVEN_UP);
    done(&w);
    w = new_writer(&h, 1000);
    vv_vw_end_list(&w);
    vv_vw_give_up(&w);
    ck_assert_int_eq(vv_vw_finish(&w), VV_VW_MISUSED);
    done(&w);
}
END_TEST

/* ---- random trees ---- */

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
    containers[x->kind - LIST].end(w);
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
    TCase *c = test_case("value_write", 60);
    tcase_add_loop_test(c, bytes_of_each_kind, 0, (int)VV_ARRAY_LEN(kinds));
    tcase_add_loop_test(c, lengths_grow, 0, (int)VV_ARRAY_LEN(edges));
    tcase_add_test(c, lengths_grow_by_keys_and_names);
    tcase_add_loop_test(c, depth_is_bounded, 0, CONTAINERS);
    tcase_add_test(c, after_the_too_deep);
    tcase_add_test(c, misuse_is_told);
    tcase_add_test(c, bad_arguments);
    tcase_add_test(c, giving_up);
    tcase_add_test(c, random_trees);
    return test_run();
}
