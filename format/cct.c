#include "config.h"

#include "format/cct.h"

const char *vv_overflow_reason_name(vv_overflow_reason r)
{
    static const char *const names[VV_OVERFLOW_REASONS] = {
        "ContextMemoryUnavailableAfterDrain",
        "InvalidParentContext",
    };
    return (unsigned)r < VV_OVERFLOW_REASONS ? names[r] : NULL;
}

/* dst += src; 1 where the sum was cut. Numbers, so that all sums can be joined without a branch each. */
static inline unsigned add64(uint64_t *dst, uint64_t src)
{
    bool over = __builtin_add_overflow(*dst, src, dst);
    if (VV_UNLIKELY(over))
        *dst = UINT64_MAX;
    return over;
}

static inline unsigned add128(vv_u128 *dst, vv_u128 src)
{
    bool over = __builtin_add_overflow(*dst, src, dst);
    if (VV_UNLIKELY(over))
        *dst = ~(vv_u128)0;
    return over;
}

bool vv_counters_zero(const vv_counters *c)
{
    return !(c->started | c->selected | c->ok | c->error | c->cancelled | c->exited | c->await_count) &&
           !(c->inclusive_ns | c->direct_child_ns | c->await_ns);
}

vv_u128 vv_counters_self(const vv_counters *c, bool *ret_complete)
{
    vv_u128 deducted = vv_sat128(c->direct_child_ns, c->await_ns);
    bool complete = deducted <= c->inclusive_ns;
    if (ret_complete)
        *ret_complete = complete;
    return complete ? c->inclusive_ns - deducted : 0;
}

static inline vv_u128 be128(const uint8_t *p)
{
    return (vv_u128)vv_be64(p) << 64 | vv_be64(p + 8);
}

static inline VV_INLINE void counters_get(const uint8_t *p, vv_counters *ret)
{
    ret->started = vv_be64(p);
    ret->selected = vv_be64(p + 8);
    ret->ok = vv_be64(p + 16);
    ret->error = vv_be64(p + 24);
    ret->cancelled = vv_be64(p + 32);
    ret->exited = vv_be64(p + 40);
    ret->inclusive_ns = be128(p + 48);
    ret->direct_child_ns = be128(p + 64);
    ret->await_ns = be128(p + 80);
    ret->await_count = vv_be64(p + 96);
}

static inline VV_INLINE uint8_t counters_add(vv_counters *dst, const vv_counters *src)
{
    unsigned counter = add64(&dst->started, src->started) | add64(&dst->selected, src->selected) |
                       add64(&dst->ok, src->ok) | add64(&dst->error, src->error) |
                       add64(&dst->cancelled, src->cancelled) | add64(&dst->exited, src->exited) |
                       add128(&dst->inclusive_ns, src->inclusive_ns) |
                       add128(&dst->direct_child_ns, src->direct_child_ns);
    unsigned await = add128(&dst->await_ns, src->await_ns) | add64(&dst->await_count, src->await_count);
    return (uint8_t)((counter ? VV_HEALTH_COUNTER_SATURATED : 0) | (await ? VV_HEALTH_AWAIT_SATURATED : 0));
}

uint8_t vv_counters_add(vv_counters *dst, const vv_counters *src)
{
    return counters_add(dst, src);
}

VV_HOT uint8_t vv_counters_add_encoded(vv_counters *dst, const uint8_t *src)
{
    vv_counters c;
    counters_get(src, &c);
    return counters_add(dst, &c);
}

void vv_cct_open(vv_cct_cursor *c, const uint8_t *p, size_t n, uint8_t health, uint64_t record_count)
{
    *c = (vv_cct_cursor){.r = vv_rd_init(p, n), .expected = record_count};
    if (health & ~VV_HEALTH_ALL)
        vv_rd_fail(&c->r, "InvalidHealth");
    c->contexts_left = c->records = vv_rd_count(&c->r, VV_CCT_ROW_MIN);
}

static bool fail_row(vv_cct_cursor *c, const char *why)
{
    vv_rd_fail(&c->r, why);
    c->contexts_left = c->overflow_left = 0;
    return false;
}

bool vv_cct_check_key(vv_cct_cursor *c, const vv_cct_row *row)
{
    vv_context_key key;
    vv_context_key_of_bytes(&key, row->encoded, row->encoded_len);
    return VV_LIKELY(memcmp(key.b, row->key.b, sizeof key.b) == 0) || fail_row(c, "InvalidContextKey");
}

VV_HOT bool vv_cct_next_context(vv_cct_cursor *c, vv_cct_row *ret)
{
    if (c->contexts_left == 0)
        return false;
    c->contexts_left--;
    vv_rd *r = &c->r;
    if (VV_UNLIKELY(vv_rd_left(r) < 33))
        return fail_row(c, "Truncated");
    memcpy(ret->key.b, r->at, 32);
    uint8_t defined = r->at[32];
    if (VV_UNLIKELY(defined > 1))
        return fail_row(c, "InvalidTag");
    ret->defined = defined;
    r->at += 33;
    if (defined) {
        const char *why;
        size_t n = vv_tuple_read(r->at, vv_rd_left(r), &ret->tuple, &why);
        if (VV_UNLIKELY(n == 0))
            return fail_row(c, why);
        ret->encoded = r->at;
        ret->encoded_len = n;
        if (!c->trust_keys && VV_UNLIKELY(!vv_cct_check_key(c, ret)))
            return false;
        r->at += n;
    }
    if (VV_UNLIKELY(vv_rd_left(r) < VV_COUNTERS_BYTES))
        return fail_row(c, "Truncated");
    counters_get(r->at, &ret->counters);
    r->at += VV_COUNTERS_BYTES;
    return true;
}

/* Passes over what the caller left of the contexts and reads the second count. */
static void enter_overflow(vv_cct_cursor *c)
{
    vv_cct_row unread;
    while (vv_cct_next_context(c, &unread))
        ;
    c->in_overflow = true;
    c->overflow_left = vv_rd_count(&c->r, VV_CCT_OVERFLOW_ROW);
    c->records += c->overflow_left;
}

bool vv_cct_next_overflow(vv_cct_cursor *c, vv_cct_overflow *ret)
{
    if (!c->in_overflow)
        enter_overflow(c);
    if (c->overflow_left == 0)
        return false;
    c->overflow_left--;
    const uint8_t *p = vv_rd_take(&c->r, VV_CCT_OVERFLOW_ROW);
    if (!p)
        return fail_row(c, "Truncated");
    if (p[0] >= VV_OVERFLOW_REASONS || p[1] >= VV_EDGES)
        return fail_row(c, "InvalidTag");
    ret->reason = (vv_overflow_reason)p[0];
    ret->edge = (vv_edge)p[1];
    counters_get(p + 2, &ret->counters);
    return true;
}

vv_code vv_cct_finish(vv_cct_cursor *c, vv_error *err)
{
    vv_cct_overflow unread;
    while (vv_cct_next_overflow(c, &unread))
        ;
    if (vv_rd_left(&c->r))
        vv_rd_fail(&c->r, "TrailingBytes");
    if (c->records != c->expected)
        vv_rd_fail(&c->r, "RecordCountMismatch");
    return vv_rd_error(&c->r, "calling contexts", err);
}

void vv_counters_encode(vv_wr *w, const vv_counters *c)
{
    uint8_t *p = vv_wr_take(w, VV_COUNTERS_BYTES);
    if (!p)
        return;
    const uint64_t counts[] = {c->started, c->selected, c->ok, c->error, c->cancelled, c->exited};
    for (size_t i = 0; i < VV_ARRAY_LEN(counts); i++, p += 8)
        vv_put64(p, counts[i]);
    const vv_u128 times[] = {c->inclusive_ns, c->direct_child_ns, c->await_ns};
    for (size_t i = 0; i < VV_ARRAY_LEN(times); i++, p += 16) {
        vv_put64(p, (uint64_t)(times[i] >> 64));
        vv_put64(p + 8, (uint64_t)times[i]);
    }
    vv_put64(p, c->await_count);
}

void vv_cct_encode_row(vv_wr *w, const vv_cct_row *row)
{
    vv_wr_bytes(w, row->key.b, sizeof row->key.b);
    vv_wr_u8(w, row->defined);
    if (row->defined) {
        uint8_t tuple[VV_TUPLE_MAX];
        vv_wr_bytes(w, tuple, vv_tuple_encode(tuple, &row->tuple));
    }
    vv_counters_encode(w, &row->counters);
}

void vv_cct_encode_overflow(vv_wr *w, const vv_cct_overflow *row)
{
    vv_wr_u8(w, (uint8_t)row->reason);
    vv_wr_u8(w, (uint8_t)row->edge);
    vv_counters_encode(w, &row->counters);
}
