/* A path into a captured value and a body to walk it in: the text up to the first NUL, and what stands behind it. */
#include "config.h"

#include "fuzz/fuzz.h"

#include "format/value.h"
#include "format/value_path.h"

/* The path in one form: every key in quotes with all its bytes escaped that need be. */
static void put_steps(vv_wr *w, const vv_value_path *p)
{
    char digits[24];
    for (size_t i = 0; i < p->count; i++) {
        const vv_path_step *s = &p->steps[i];
        if (s->is_index) {
            snprintf(digits, sizeof digits, "[%llu]", (unsigned long long)s->index);
            vv_wr_cstr(w, digits);
            continue;
        }
        vv_wr_bytes(w, "[\"", 2);
        for (size_t k = 0; k < s->key.n; k++) {
            if (s->key.p[k] == '"' || s->key.p[k] == '\\')
                vv_wr_u8(w, '\\');
            vv_wr_u8(w, (uint8_t)s->key.p[k]);
        }
        vv_wr_bytes(w, "\"]", 2);
    }
}

static void check_again(const vv_value_path *p)
{
    vv_wr w = vv_wr_growing(1 << 20);
    vv_value_path again;
    put_steps(&w, p);
    FUZZ_CHECK(vv_wr_ok(&w));
    FUZZ_CHECK(vv_value_path_parse(&again, (vv_str){(const char *)w.buf, w.len}, NULL) == VV_OK);
    FUZZ_CHECK(again.count == p->count);
    for (size_t i = 0; i < p->count; i++) {
        const vv_path_step *a = &p->steps[i], *b = &again.steps[i];
        FUZZ_CHECK(a->is_index == b->is_index && a->index == b->index && vv_str_eq(a->key, b->key));
    }
    vv_value_path_done(&again);
    vv_wr_done(&w);
}

/* Where a path leads is a message inside of the body, and what can be shown of the whole can be shown of it. */
static void check_walk(const vv_value_path *p, const uint8_t *body, size_t n)
{
    static const vv_value_limits limits = {62, 1 << 16};
    vv_value_place at;
    vv_error err = {0};
    if (vv_value_walk(&at, body, n, p, &err) != VV_OK) {
        FUZZ_CHECK(err.code == VV_ERR_CORRUPT && err.name && err.off <= n);
        return;
    }
    FUZZ_CHECK(at.matched <= p->count && at.kind < VV_KINDS && at.body_len <= n);
    FUZZ_CHECK(at.items <= at.body_len && (at.body_len == 0 || (at.body >= body && at.body + at.body_len <= body + n)));
    vv_wr w = vv_wr_growing(1 << 20);
    vv_json j = vv_json_init(&w);
    bool cut;
    if (vv_value_show(&j, at.body, at.body_len, &limits, &cut, NULL) == VV_OK)
        FUZZ_CHECK(vv_json_done(&j));
    vv_wr_done(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n = strnlen((const char *)data, size);
    vv_value_path p;
    vv_error err = {0};
    if (vv_value_path_parse(&p, (vv_str){(const char *)data, n}, &err) != VV_OK) {
        FUZZ_CHECK(err.code == VV_ERR_ARG && err.off <= n);
        return 0;
    }
    check_again(&p);
    size_t from = n < size ? n + 1 : size;
    uint8_t *exact = malloc(size - from + 1);
    FUZZ_CHECK(exact);
    memcpy(exact, data + from, size - from);
    check_walk(&p, exact, size - from);
    free(exact);
    vv_value_path_done(&p);
    return 0;
}
