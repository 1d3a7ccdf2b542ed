#include "config.h"

#include "runtime/facts.h"

#include <string.h>

#include "runtime/varve.h"

enum { FIRST_BYTES = 512, FACT_BYTES_MAX = 512, FACT_HEAD = 5, FIRST_NEEDS = 8 };

_Static_assert(FIRST_BYTES >= 256, "least charge of a fact");

static bool grow_bytes(vv_facts *q, vv_governor *g, bool manual)
{
    size_t cap = q->cap ? q->cap * 2 : FIRST_BYTES;
    uint8_t *p = vv_gov_grow_any(g, &q->pool, manual, VV_OWN_EVIDENCE, q->bytes, q->cap, cap);
    if (!p)
        return false;
    q->bytes = p;
    q->cap = cap;
    return true;
}

static bool needs_room(vv_facts *q, vv_governor *g, bool manual)
{
    if (q->need_count < q->need_cap)
        return true;
    size_t cap = q->need_cap ? q->need_cap * 2 : FIRST_NEEDS;
    vv_need *p = vv_gov_grow_any(g, &q->need_pool, manual, VV_OWN_EVIDENCE, q->needs, q->need_cap * sizeof *p,
                                 cap * sizeof *p);
    if (!p)
        return false;
    q->needs = p;
    q->need_cap = cap;
    return true;
}

bool vv_facts_room(vv_facts *q, vv_governor *g, bool manual, bool needs)
{
    return (q->cap - q->len >= FACT_BYTES_MAX || grow_bytes(q, g, manual)) && (!needs || needs_room(q, g, manual));
}

_Static_assert((unsigned)VV_EVIDENCE_PARTS == (unsigned)VARVE_PARTS, "one equation a part");

void vv_facts_add(vv_facts *q, const vv_fact *f, vv_part part)
{
    vv_wr w = vv_wr_fixed(q->bytes + q->len, q->cap - q->len);
    vv_fact_encode(&w, f);
    if (!vv_wr_ok(&w))
        return;
    q->last = q->len;
    q->len += w.len;
    q->count++;
    q->parts.n[part]++;
}

void vv_facts_need(vv_facts *q, bool start, vv_named named)
{
    if (start || named != VV_NAMED_SAFE)
        q->needs[q->need_count++] = (vv_need){q->last, start, named};
}

void vv_facts_taken(vv_facts *q, vv_governor *g, vv_parts *ret_parts)
{
    *ret_parts = q->parts;
    if (q->pool == VV_POOL_MANUAL || q->need_pool == VV_POOL_MANUAL) {
        vv_facts_done(q, g);
        return;
    }
    q->len = q->count = q->need_count = 0;
    memset(&q->parts, 0, sizeof q->parts);
}

void vv_facts_done(vv_facts *q, vv_governor *g)
{
    vv_gov_free(g, q->pool, VV_OWN_EVIDENCE, q->bytes, q->cap);
    vv_gov_free(g, q->need_pool, VV_OWN_EVIDENCE, q->needs, q->need_cap * sizeof *q->needs);
    *q = (vv_facts){.pool = VV_POOL_GENERAL, .need_pool = VV_POOL_GENERAL};
}

typedef struct {
    uint8_t committed, lost, lost_disk; /* accounts; VV_ACCOUNTS: none */
} part_meaning;

static part_meaning meaning_of(vv_part p)
{
#define MEANS(all, part) {VV_ACCOUNT_##all, VV_ACCOUNT_##part##_LOST_PUBLISH, VV_ACCOUNT_##part##_LOST_DISK}
#define LOST_WITH_ITS_START(account) {account, VV_ACCOUNTS, VV_ACCOUNTS}
    static const part_meaning meanings[VV_PARTS] = {
        [VV_PART_THREAD] = LOST_WITH_ITS_START(VV_ACCOUNTS),
        [VV_PART_START] = MEANS(STARTS_COMMITTED, START),
        [VV_PART_END] = MEANS(ENDS_COMMITTED, END),
        [VV_PART_END_HERE] = LOST_WITH_ITS_START(VV_ACCOUNT_ENDS_COMMITTED),
        [VV_PART_END_LOST_QUEUE] = LOST_WITH_ITS_START(VV_ACCOUNT_END_LOST_QUEUE),
        [VV_PART_END_LOST_TRANSPORT] = LOST_WITH_ITS_START(VV_ACCOUNT_END_LOST_TRANSPORT),
        [VV_PART_END_LOST_JOIN] = LOST_WITH_ITS_START(VV_ACCOUNT_END_LOST_JOIN),
        [VV_PART_RUNTIME_ID] = MEANS(IDS_COMMITTED, ID),
        [VV_PART_VALUE] = MEANS(VALUES_AVAILABLE, VALUE),
        [VV_PART_ERROR] = MEANS(ERRORS_COMMITTED, ERROR),
        [VV_PART_ERROR_VALUE] = LOST_WITH_ITS_START(VV_ACCOUNT_ERROR_VALUES_AVAILABLE),
        [VV_PART_LINK] = MEANS(LINKS_COMMITTED, LINK),
    };
#undef MEANS
#undef LOST_WITH_ITS_START
    if (p >= VV_PART_VALUE_LOST && p < VV_PART_ERROR)
        return (part_meaning){(uint8_t)vv_account_of_value(p - VV_PART_VALUE_LOST, false),
                              VV_ACCOUNT_VALUE_LOST_PUBLISH, VV_ACCOUNT_VALUE_LOST_DISK};
    if (p >= VV_PART_ERROR_VALUE_LOST && p < VV_PART_LINK)
        return (part_meaning){(uint8_t)vv_account_of_value(p - VV_PART_ERROR_VALUE_LOST, true), VV_ACCOUNTS,
                              VV_ACCOUNTS};
    return meanings[p];
}

void vv_parts_settle(const vv_parts *p, bool committed, bool disk, vv_accounting *a, vv_health *h)
{
    for (unsigned i = 0; i < VV_PARTS; i++) {
        if (!p->n[i])
            continue;
        part_meaning m = meaning_of((vv_part)i);
        uint8_t account = committed ? m.committed : disk ? m.lost_disk : m.lost;
        if (account < VV_ACCOUNTS)
            vv_account_add(a, (vv_account)account, p->n[i]);
    }
    unsigned error = committed ? VV_H_error_captures_committed : VV_H_error_capture_evidence_publish_failed;
    unsigned link = committed ? VV_H_terminal_error_links_committed : VV_H_terminal_error_link_evidence_publish_failed;
    h->v[error] = vv_sat64(h->v[error], p->n[VV_PART_ERROR]);
    h->v[link] = vv_sat64(h->v[link], p->n[VV_PART_LINK]);
}

void vv_parts_count(const vv_parts *p, uint64_t ret[VV_EVIDENCE_PARTS])
{
    const uint32_t *n = p->n;
    ret[VARVE_PART_SPAN_STARTS] = n[VV_PART_START];
    ret[VARVE_PART_SPAN_ENDS] = (uint64_t)n[VV_PART_END] + n[VV_PART_END_HERE];
    ret[VARVE_PART_RUNTIME_IDS] = n[VV_PART_RUNTIME_ID];
    ret[VARVE_PART_VALUES] = 0;
    for (unsigned i = VV_PART_VALUE; i < VV_PART_ERROR; i++)
        ret[VARVE_PART_VALUES] += n[i];
    ret[VARVE_PART_ERRORS] = n[VV_PART_ERROR];
    ret[VARVE_PART_ERROR_LINKS] = n[VV_PART_LINK];
}

void vv_facts_flight_committed(vv_facts *q)
{
    q->need_count = 0;
}

/* A section of one fact, which what is read of it may point into. */
typedef struct {
    uint8_t bytes[8 + FACT_BYTES_MAX];
} one_fact;

/* The encoded fact of n bytes at p. */
static bool fact_at(one_fact *o, const uint8_t *p, size_t n, vv_fact *ret)
{
    if (n > FACT_BYTES_MAX)
        return false;
    vv_put64(o->bytes, 1);
    memcpy(o->bytes + 8, p, n);
    vv_evidence_cursor c;
    vv_evidence_open(&c, o->bytes, 8 + n, 1);
    return vv_evidence_next(&c, ret);
}

/* What a fact names is lost. */
static void unname(vv_fact *f, uint8_t link_loss)
{
    if (f->tag == VV_FACT_TERMINAL_ERROR) {
        f->terminal_error.lost = true;
        f->terminal_error.loss = link_loss;
    } else if (f->tag == VV_FACT_THREAD_START) {
        f->thread_start.has_parent = f->thread_start.has_spawn_call = false;
    }
}

/* The part of a value's state. */
static vv_part value_part(const vv_value_state *v, vv_part available)
{
    return v->lost ? available + 1 + v->loss : available;
}

static void count_dropped(vv_accounting *a, vv_health *h, vv_account account, int queued, int lost)
{
    vv_account_add(a, account, 1);
    if (queued >= 0) {
        h->v[queued] -= h->v[queued] != 0;
        h->v[lost] = vv_sat64(h->v[lost], 1);
    }
}

/* A fact goes, as the start that it rests on is lost. Of an end nothing is told: it is the start that is missing. */
static void drop(vv_facts *q, const vv_fact *f, vv_accounting *a, vv_health *h)
{
    switch (f->tag) {
    case VV_FACT_SPAN_END:
        q->parts.n[VV_PART_END]--;
        break;
    case VV_FACT_SPAN_RUNTIME_ID:
        q->parts.n[VV_PART_RUNTIME_ID]--;
        count_dropped(a, h, VV_ACCOUNT_ID_LOST_START, -1, -1);
        break;
    case VV_FACT_VALUE:
        q->parts.n[value_part(&f->value.value, VV_PART_VALUE)]--;
        count_dropped(a, h, VV_ACCOUNT_VALUE_LOST_START, -1, -1);
        break;
    case VV_FACT_ERROR_CAPTURE:
        q->parts.n[VV_PART_ERROR]--;
        q->parts.n[value_part(&f->error_capture.value, VV_PART_ERROR_VALUE)]--;
        count_dropped(a, h, VV_ACCOUNT_ERROR_LOST_START, VV_H_error_captures_queued,
                      VV_H_error_capture_start_uncommitted);
        break;
    case VV_FACT_TERMINAL_ERROR:
        q->parts.n[VV_PART_LINK]--;
        count_dropped(a, h, VV_ACCOUNT_LINK_LOST_START, VV_H_terminal_error_links_queued,
                      VV_H_terminal_error_link_start_uncommitted);
        break;
    case VV_FACT_THREAD_END:
        q->parts.n[VV_PART_THREAD]--;
        break;
    case VV_FACT_SPAN_START:
    case VV_FACT_THREAD_START:
    case VV_FACT_LOG:
    case VV_FACT_CALL_SCOPE:
        break; /* rest on nothing */
    }
    q->count--;
}

static size_t put_fact(uint8_t *at, const vv_fact *f)
{
    vv_wr w = vv_wr_fixed(at, FACT_BYTES_MAX);
    vv_fact_encode(&w, f);
    return w.len;
}

uint64_t vv_facts_flight_lost(vv_facts *q, uint8_t link_loss, vv_accounting *a, vv_health *h)
{
    uint64_t before = q->count;
    size_t to = 0, need = 0;
    for (size_t at = 0, n; q->need_count && at < q->len; at += n) {
        n = FACT_HEAD + vv_be32(q->bytes + at + 1);
        const vv_need *rests = need < q->need_count && q->needs[need].at == at ? &q->needs[need++] : NULL;
        vv_fact f;
        one_fact one;
        if (!rests || !fact_at(&one, q->bytes + at, n, &f)) {
            memmove(q->bytes + to, q->bytes + at, n);
            to += n;
        } else if (rests->start) {
            drop(q, &f, a, h);
        } else {
            unname(&f, rests->named == VV_NAMED_RESTS ? VV_CAPTURE_LOST_START : link_loss);
            to += put_fact(q->bytes + to, &f);
        }
    }
    if (q->need_count)
        q->len = to;
    q->need_count = 0;
    return before - q->count;
}

/* The state of a fact's value, and its part where available. The fact is of a tag that has one. */
static vv_value_state *value_of(vv_fact *f, vv_part *ret_part)
{
    *ret_part = f->tag == VV_FACT_VALUE ? VV_PART_VALUE : VV_PART_ERROR_VALUE;
    return f->tag == VV_FACT_VALUE ? &f->value.value : &f->error_capture.value;
}

size_t vv_facts_lose_values(uint8_t *p, size_t n, vv_parts *parts,
                            bool (*lost)(void *ctx, const vv_cid *cid, uint8_t *ret_code), void *ctx)
{
    size_t to = 0;
    for (size_t at = 0, each; at < n; at += each) {
        each = FACT_HEAD + vv_be32(p + at + 1);
        vv_fact f;
        one_fact one;
        vv_part part;
        bool has_value = p[at] == VV_FACT_VALUE || p[at] == VV_FACT_ERROR_CAPTURE;
        vv_value_state *v = has_value && fact_at(&one, p + at, each, &f) ? value_of(&f, &part) : NULL;
        uint8_t code;
        if (v && !v->lost && lost(ctx, &v->cid, &code)) {
            *v = (vv_value_state){.lost = true, .loss = code};
            parts->n[part]--;
            parts->n[part + 1 + code]++;
            to += put_fact(p + to, &f);
        } else {
            memmove(p + to, p + at, each);
            to += each;
        }
    }
    return to;
}
