#include "config.h"

#include "views/digest_bytes.h"

#include <stdlib.h>

#include "base/sha256.h"
#include "format/cas.h"
#include "reader/stream.h"

/* The length of a text that is not there. */
#define NO_TEXT UINT64_MAX
enum { TEXT_MAX = VV_STR_MAX };

static void hash_ident(vv_sha256_ctx *c, const vv_file_ident *f)
{
    uint8_t b[40];
    const uint64_t fields[] = {f->size, f->device, f->inode, (uint64_t)f->mtime_ns, (uint64_t)f->ctime_ns};
    for (size_t i = 0; i < VV_ARRAY_LEN(fields); i++)
        vv_put64(b + 8 * i, fields[i]);
    vv_sha256_update(c, b, sizeof b);
}

void vv_digest_key(uint8_t out[32], const uint8_t signature[32], const vv_store *store, const vv_stream *stream,
                   const vv_execution *x)
{
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, signature, 32);
    for (size_t i = 0; i < stream->engine_count; i++) {
        const vv_engine *e = &stream->engines[i];
        if (e->id != vv_thread_engine(&x->root) || !e->has_table)
            continue;
        char path[VV_CAS_PATH];
        vv_cas_path(path, &e->table);
        vv_file_ident ident = {0};
        if (vv_source_ident(store->source, path, &ident, NULL) != VV_OK)
            ident = (vv_file_ident){0};
        hash_ident(&c, &ident);
        vv_sha256_update(&c, e->program.b, sizeof e->program.b);
    }
    vv_sha256_final(&c, out);
}

bool vv_digest_is_lasting(const vv_execution *x, const vv_profile *p)
{
    if (x->status == VV_EXEC_RUNNING || p->fold->failed || p->table_fault)
        return false;
    for (size_t i = 0; i < p->fold->issue_count; i++)
        if (p->fold->issues[i].kind == VV_ISSUE_MISSING_SEGMENT || p->fold->issues[i].kind == VV_ISSUE_CORRUPT_SEGMENT)
            return false;
    return true;
}

/* Seven bits a byte, low ones first: most numbers here are small. */
static void put(vv_wr *w, vv_u128 v)
{
    for (; v > 0x7f; v >>= 7)
        vv_wr_u8(w, (uint8_t)(v | 0x80));
    vv_wr_u8(w, (uint8_t)v);
}

static vv_u128 get128(vv_rd *r)
{
    vv_u128 v = 0;
    for (unsigned shift = 0; shift < 128; shift += 7) {
        uint8_t b = vv_rd_u8(r);
        v |= (vv_u128)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return v;
    }
    vv_rd_fail(r, "InvalidNumber");
    return 0;
}

static uint64_t get(vv_rd *r, uint64_t max)
{
    vv_u128 v = get128(r);
    if (v > max)
        vv_rd_fail(r, "InvalidNumber");
    return vv_rd_ok(r) ? (uint64_t)v : 0;
}

static void put_text(vv_wr *w, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    put(w, text ? n : NO_TEXT);
    vv_wr_bytes(w, text, n);
}

static char *get_text(vv_rd *r)
{
    uint64_t n = get(r, UINT64_MAX);
    if (n == NO_TEXT)
        return NULL;
    if (n > TEXT_MAX)
        vv_rd_fail(r, "InvalidText");
    vv_str s = vv_rd_str(r, n);
    char *text = s.p ? strndup(s.p, s.n) : NULL;
    if (!text)
        vv_rd_fail(r, "OutOfMemory");
    return text;
}

/* The numbers of the totals in one order, for both directions. */
static void totals_of(vv_totals *t, vv_u128 *out[8])
{
    vv_u128 *const all[8] = {&t->calls, &t->errors, &t->cancelled, &t->selected, &t->inclusive_ns,
                             &t->spawned_inclusive_ns, &t->self_ns, &t->await_ns};
    memcpy(out, all, sizeof all);
}

/* The bytes of an issue that are its kind's; of those with numbers none. */
static uint8_t *issue_bytes(vv_evidence_issue *i, size_t *ret_n)
{
    switch (i->kind) {
    case VV_ISSUE_UNRESOLVED_SPAN_START:
        *ret_n = sizeof i->issue.call.b;
        return i->issue.call.b;
    case VV_ISSUE_UNRESOLVED_CONTEXT:
        *ret_n = sizeof i->issue.key.b;
        return i->issue.key.b;
    case VV_ISSUE_UNRESOLVED_CAPTURE:
        *ret_n = sizeof i->issue.capture.b;
        return i->issue.capture.b;
    default:
        *ret_n = 0;
        return NULL;
    }
}

static bool has_numbers(const vv_evidence_issue *i)
{
    return i->kind == VV_ISSUE_MISSING_SEGMENT || i->kind == VV_ISSUE_CORRUPT_SEGMENT || i->kind == VV_ISSUE_GROUP_COUNT
        || i->kind == VV_ISSUE_UNRESOLVED_OVERFLOW;
}

static void put_issue(vv_wr *w, const vv_evidence_issue *i)
{
    vv_evidence_issue copy = *i;
    size_t n;
    const uint8_t *bytes = issue_bytes(&copy, &n);
    vv_wr_bytes(w, i->execution.b, sizeof i->execution.b);
    put(w, i->kind);
    vv_wr_bytes(w, bytes, n);
    if (has_numbers(i)) {
        put(w, i->issue.a);
        put(w, i->issue.b);
    }
    vv_wr_bytes(w, i->error, strnlen(i->error, sizeof i->error - 1));
    vv_wr_u8(w, 0);
}

/* What is used as an index later is checked. */
static void get_issue(vv_rd *r, vv_evidence_issue *ret)
{
    vv_rd_copy(r, ret->execution.b, sizeof ret->execution.b);
    ret->kind = (unsigned)get(r, VV_ISSUE_FUNCTION_TABLE);
    bool of_fold = ret->kind <= VV_ISSUE_UNRESOLVED_CAPTURE;
    if (!of_fold && ret->kind < VV_ISSUE_FOLD_ERROR)
        vv_rd_fail(r, "InvalidIssue");
    ret->issue.kind = of_fold ? (vv_issue_kind)ret->kind : 0;
    size_t n;
    uint8_t *bytes = issue_bytes(ret, &n);
    if (bytes)
        vv_rd_copy(r, bytes, n);
    if (has_numbers(ret)) {
        ret->issue.a = get(r, UINT64_MAX);
        ret->issue.b = get(r, UINT64_MAX);
    }
    if (ret->kind == VV_ISSUE_UNRESOLVED_OVERFLOW
        && (ret->issue.a >= VV_OVERFLOW_REASONS || ret->issue.b >= VV_EDGES))
        vv_rd_fail(r, "InvalidIssue");
    size_t len = 0;
    for (uint8_t c; (c = vv_rd_u8(r)) != 0 && len < sizeof ret->error; len++)
        ret->error[len] = (char)c;
    if (len == sizeof ret->error) {
        ret->error[len - 1] = 0;
        vv_rd_fail(r, "InvalidIssue");
    }
}

static void put_evidence(vv_wr *w, const vv_evidence *e)
{
    put(w, e->executions);
    put(w, e->running);
    put(w, e->abandoned);
    for (size_t i = 0; i < VV_ARRAY_LEN(e->index_states); i++)
        put(w, e->index_states[i]);
    for (size_t i = 0; i < VV_ARRAY_LEN(e->data_states); i++)
        put(w, e->data_states[i]);
    put(w, e->issue_count);
    for (size_t i = 0; i < e->issue_count; i++)
        put_issue(w, &e->issues[i]);
    put(w, e->issues_total);
    for (size_t i = 0; i < VV_HEALTH_COUNT; i++)
        put(w, e->losses[i]);
    put(w, e->overflow_calls);
    put(w, e->timing_incomplete);
    for (size_t i = 0; i < VV_EQUATIONS; i++) {
        const vv_equation *q = &e->equations[i];
        vv_wr_u8(w, (uint8_t)(q->no_left | q->no_right << 1 | (unsigned)q->holds << 2));
        put(w, q->left);
        put(w, q->right);
        for (size_t k = 0; k < VV_EQUATION_TERMS; k++)
            put(w, q->terms[k]);
    }
    put(w, e->verdict);
}

static void get_issues(vv_rd *r, vv_evidence *e)
{
    size_t n = (size_t)get(r, VV_EVIDENCE_ISSUES);
    if (n == 0)
        return;
    /* As many as are ever added: the evidence may grow. */
    e->issues = calloc(VV_EVIDENCE_ISSUES, sizeof *e->issues);
    if (!e->issues)
        vv_rd_fail(r, "OutOfMemory");
    for (; e->issues && e->issue_count < n && vv_rd_ok(r); e->issue_count++)
        get_issue(r, &e->issues[e->issue_count]);
}

static void get_evidence(vv_rd *r, vv_evidence *e)
{
    e->executions = get(r, UINT64_MAX);
    e->running = get(r, UINT64_MAX);
    e->abandoned = get(r, UINT64_MAX);
    for (size_t i = 0; i < VV_ARRAY_LEN(e->index_states); i++)
        e->index_states[i] = get(r, UINT64_MAX);
    for (size_t i = 0; i < VV_ARRAY_LEN(e->data_states); i++)
        e->data_states[i] = get(r, UINT64_MAX);
    get_issues(r, e);
    e->issues_total = get(r, UINT64_MAX);
    for (size_t i = 0; i < VV_HEALTH_COUNT; i++)
        e->losses[i] = get(r, UINT64_MAX);
    e->overflow_calls = get(r, UINT64_MAX);
    e->timing_incomplete = get(r, UINT64_MAX);
    for (size_t i = 0; i < VV_EQUATIONS; i++) {
        vv_equation *q = &e->equations[i];
        uint8_t bits = vv_rd_u8(r);
        if (bits >> 2 > VV_HOLDS_NO)
            vv_rd_fail(r, "InvalidEquation");
        q->no_left = bits & 1;
        q->no_right = bits >> 1 & 1;
        q->holds = bits >> 2;
        q->left = get128(r);
        q->right = get128(r);
        for (size_t k = 0; k < VV_EQUATION_TERMS; k++)
            q->terms[k] = get128(r);
    }
    e->verdict = get(r, VV_VERDICT_DAMAGED);
}

static void put_sieve(vv_wr *w, const vv_sieve *s)
{
    vv_wr_u8(w, s->all);
    put(w, s->n);
    vv_wr_bytes(w, s->p, s->n);
}

static void get_sieve(vv_rd *r, vv_sieve *s)
{
    uint8_t all = vv_rd_u8(r);
    size_t n = (size_t)get(r, VV_SIEVE_BYTES_MAX);
    if (all > 1)
        vv_rd_fail(r, "InvalidSieve");
    s->all = all;
    if (n && n <= vv_rd_left(r) && !(s->p = malloc(n)))
        vv_rd_fail(r, "OutOfMemory");
    if (s->p)
        s->n = (uint32_t)n;
    else if (n)
        vv_rd_fail(r, "Truncated");
    if (s->p)
        vv_rd_copy(r, s->p, n);
}

void vv_digest_put(vv_wr *w, const vv_digest *d)
{
    vv_u128 *totals[8];
    vv_totals t = d->totals;
    totals_of(&t, totals);
    vv_wr_u8(w, (uint8_t)(d->known | d->has_entry << 1 | d->has_duration << 2));
    for (size_t i = 0; i < VV_ARRAY_LEN(totals); i++)
        put(w, *totals[i]);
    vv_wr_u128(w, (vv_u128)d->totals.open);
    const uint64_t numbers[] = {d->contexts, d->spans, d->threads, d->errors_captured, d->entry_function,
                                d->duration_ns, d->cct_health, d->data_state};
    for (size_t i = 0; i < VV_ARRAY_LEN(numbers); i++)
        put(w, numbers[i]);
    put_text(w, d->entry_fqn);
    put_text(w, d->entry_display);
    put_evidence(w, &d->evidence);
    put_sieve(w, &d->context_sieve);
    put_sieve(w, &d->text_sieve);
    vv_wr_u8(w, d->overflow);
}

static void get_digest(vv_rd *r, vv_digest *d)
{
    vv_u128 *totals[8];
    totals_of(&d->totals, totals);
    uint8_t bits = vv_rd_u8(r);
    if (bits > 7)
        vv_rd_fail(r, "InvalidDigest");
    d->known = bits & 1;
    d->has_entry = bits >> 1 & 1;
    d->has_duration = bits >> 2 & 1;
    for (size_t i = 0; i < VV_ARRAY_LEN(totals); i++)
        *totals[i] = get128(r);
    d->totals.open = (__int128)vv_rd_u128(r);
    d->contexts = get(r, UINT64_MAX);
    d->spans = get(r, UINT64_MAX);
    d->threads = get(r, UINT64_MAX);
    d->errors_captured = get(r, UINT64_MAX);
    d->entry_function = (uint32_t)get(r, UINT32_MAX);
    d->duration_ns = get(r, UINT64_MAX);
    d->cct_health = (uint8_t)get(r, UINT8_MAX);
    d->data_state = get(r, VV_DATA_ERROR);
    d->entry_fqn = get_text(r);
    d->entry_display = get_text(r);
    get_evidence(r, &d->evidence);
    get_sieve(r, &d->context_sieve);
    get_sieve(r, &d->text_sieve);
    d->overflow = vv_rd_u8(r);
    if (vv_rd_ok(r) && vv_rd_left(r))
        vv_rd_fail(r, "TrailingBytes");
}

vv_code vv_digest_get(vv_digest **ret, const uint8_t *p, size_t n, vv_error *err)
{
    vv_digest *d = calloc(1, sizeof *d);
    if (!d)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a summary");
    vv_rd r = vv_rd_init(p, n);
    get_digest(&r, d);
    vv_code rc = vv_rd_error(&r, "summary", err);
    if (rc == VV_OK)
        *ret = d;
    else
        vv_digest_free(d);
    return rc;
}
