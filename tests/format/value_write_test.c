#include "config.h"

#include "format/value_write.h"

#include <math.h>

#include "format/value.h"
#include "tests/format/value_heap.h"

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
    return test_run();
}
