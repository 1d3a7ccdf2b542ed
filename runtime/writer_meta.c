/*
 * What a cycle publishes beside data: function tables, starts (of the stream, engines, executions), then, once all
 * groups of an execution are settled (committed or lost), the terms of its equations and its end.
 *
 * "Blocked" below: publish.lock could not be had, or a file's commit is indeterminate. Nothing more goes out in this
 * cycle, and what was begun is tried again or settled in the next.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "format/health_plane.h"
#include "format/usage.h"
#include "runtime/process.h"
#include "runtime/writer_inside.h"

enum {
    META_RECORD_MAX = 290, /* of the root records; the few others are small beside a segment */
    TABLE_MAX = 256 << 20,
};

static bool engine_needs_table(const varve_engine *e)
{
    uint32_t functions = atomic_load_explicit(&e->functions.count, memory_order_acquire);
    return (e->used_function > e->published_functions && functions > e->published_functions) ||
           e->used_file > e->published_files || (!e->announced && !e->has_table && functions);
}

bool vv_engine_is_due(const varve_engine *e)
{
    return !e->announced || engine_needs_table(e);
}

/* Publishes the engine's table if it has grown past what is published. False: blocked. */
static bool publish_table(vv_writer *w, varve_engine *e)
{
    if (!engine_needs_table(e))
        return true;
    vv_wr body = vv_wr_growing(TABLE_MAX);
    uint32_t functions, files;
    vv_engine_encode_table(e, &body, &functions, &files);
    vv_published out = {VV_LOST, VV_LATCH_UNAVAILABLE, 0};
    if (vv_wr_ok(&body)) {
        vv_wstore_object object = {.codec = VV_CODEC_FUNCTION_TABLE, .body = body.buf, .len = body.len};
        vv_cid_of(&object.cid, object.codec, body.buf, body.len);
        out = vv_wstore_publish_object(w->store, &object);
        if (out.outcome == VV_COMMITTED || out.outcome == VV_REUSED) {
            e->has_table = true;
            e->table = object.cid;
            e->published_functions = functions;
            e->published_files = files;
            e->announced = false;
        }
    }
    if (out.outcome == VV_LOST) {
        atomic_fetch_add_explicit(&w->tables_lost, 1, memory_order_relaxed);
        vv_count(VV_COUNT_FUNCTION_TABLE_PUBLISH_FAILED, 1);
    }
    vv_wr_done(&body);
    return out.outcome != VV_BLOCKED && out.outcome != VV_INDETERMINATE;
}

static void add_stream_started(vv_writer *w, uint64_t *records)
{
    struct utsname u;
    char os_arch[160] = "linux-unknown";
    if (uname(&u) == 0) {
        snprintf(os_arch, sizeof os_arch, "%.64s-%.64s", u.sysname, u.machine);
        for (char *p = os_arch; *p; p++)
            *p = *p >= 'A' && *p <= 'Z' ? (char)(*p + 'a' - 'A') : *p;
    }
    vv_meta_record m = {.tag = VV_META_STREAM_STARTED};
    m.stream_started = (vv_stream_started){.pid = (uint32_t)getpid(), .zero_unix_ns = w->decoder->clock->zero_unix_ns,
                                           .version = vv_cstr(w->version), .os_arch = vv_cstr(os_arch)};
    vv_meta_add(&w->file, &m);
    ++*records;
}

static void begin_meta(vv_writer *w)
{
    for (varve_engine *e = vv_first_engine(w); e; e = vv_next_engine(e))
        e->in_batch = false;
    vv_wr_reset(&w->file);
    vv_meta_begin(&w->file, &w->euid, vv_wstore_next(w->store, VV_PLANE_META), vv_wstore_high(w->store, VV_PLANE_DATA));
}

static void add_engines(vv_writer *w, uint64_t *records)
{
    for (varve_engine *e = vv_first_engine(w); e; e = vv_next_engine(e)) {
        e->in_batch = !e->announced;
        if (!e->in_batch)
            continue;
        vv_meta_record m = {.tag = VV_META_ENGINE_STARTED};
        m.engine_started = (vv_engine_started){.engine_id = e->id, .program = e->program, .has_table = e->has_table,
                                               .table = e->table, .revision = e->revision, .source = e->source};
        vv_meta_add(&w->file, &m);
        ++*records;
    }
}

static void engines_announced(vv_writer *w)
{
    for (varve_engine *e = vv_first_engine(w); e; e = vv_next_engine(e)) {
        e->announced = e->announced || e->in_batch;
        e->in_batch = false;
    }
}

static vv_published end_meta(vv_writer *w, uint64_t records, bool terminal)
{
    vv_meta_end(&w->file, records);
    if (!vv_wr_ok(&w->file))
        return (vv_published){VV_LOST, VV_LATCH_UNAVAILABLE, 0};
    return vv_wstore_publish(w->store, VV_PLANE_META, w->file.buf, w->file.len, terminal);
}

/* Takes starts into the batch while it has less than max_bytes, at least one. Returns their number. */
static uint64_t add_starts(vv_writer *w, size_t max_bytes, uint64_t *records)
{
    uint64_t n = 0;
    for (vv_exec *x = w->decoder->admitted; x && (!n || w->file.len + META_RECORD_MAX <= max_bytes);
         x = x->next_admitted, n++) {
        vv_meta_record m = {.tag = VV_META_ROOT_STARTED};
        m.root_started = (vv_root_started){.root = x->root, .started_ns = x->started_ns, .runtime_id = x->runtime_id};
        vv_meta_add(&w->file, &m);
        ++*records;
    }
    return n;
}

/* All that is new: the stream, engines, and starts as add_starts takes them. Returns the number of starts. */
static uint64_t add_news(vv_writer *w, size_t max_bytes, uint64_t *records)
{
    if (vv_wstore_next(w->store, VV_PLANE_META) == 1)
        add_stream_started(w, records);
    add_engines(w, records);
    return add_starts(w, max_bytes, records);
}

/* The batch with the first n starts is over. */
static void starts_done(vv_writer *w, uint64_t n, bool committed)
{
    vv_decoder *d = w->decoder;
    for (; n; n--) {
        vv_exec *x = d->admitted;
        x->start_lost = !committed;
        d->admitted = x->next_admitted;
    }
    if (!d->admitted)
        d->admitted_end = &d->admitted;
}

static void meta_outcome(vv_writer *w, const vv_published *out)
{
    if (out->outcome == VV_COMMITTED)
        engines_announced(w);
    if (out->outcome != VV_LOST)
        return;
    atomic_fetch_add_explicit(&w->batches_lost, 1, memory_order_relaxed);
    vv_count(VV_COUNT_META_BATCH_LOST, 1);
}

static bool starts_due(const vv_writer *w)
{
    if (w->decoder->admitted || vv_wstore_next(w->store, VV_PLANE_META) == 1)
        return true;
    for (const varve_engine *e = vv_first_engine(w); e; e = vv_next_engine(e))
        if (!e->announced)
            return true;
    return false;
}

bool vv_publish_starts(vv_writer *w)
{
    for (varve_engine *e = vv_first_engine(w); e; e = vv_next_engine(e))
        if (!publish_table(w, e))
            return false;
    if (!starts_due(w))
        return true;
    do {
        uint64_t records = 0;
        begin_meta(w);
        uint64_t starts = w->starts_in_flight = add_news(w, w->segment_target, &records);
        vv_published out = end_meta(w, records, false);
        if (out.outcome == VV_INDETERMINATE || out.outcome == VV_BLOCKED) {
            w->meta_in_flight = out.outcome == VV_INDETERMINATE ? VV_META_STARTS : VV_META_NONE;
            return false;
        }
        meta_outcome(w, &out);
        starts_done(w, starts, out.outcome == VV_COMMITTED);
    } while (w->decoder->admitted);
    return true;
}

static bool is_settled(const vv_exec *x)
{
    return !x->in_flight && !vv_has_group(x);
}

/* Bytes of one record of the health plane, at most. */
static size_t terms_bytes(void)
{
    size_t n = VV_HEALTH_RECORD_FIXED;
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        n += VV_HEALTH_TERM_FIXED + strlen(vv_account_name((vv_account)i));
    return n;
}

/* A loss that did not happen has no term. */
static bool is_stored(const vv_exec *x, unsigned i)
{
    return x->account.v[i] || !vv_account_is_loss((vv_account)i);
}

static void add_terms(vv_wr *out, const vv_exec *x)
{
    uint16_t n = 0;
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        n += is_stored(x, i);
    vv_health_add(out, &x->root, n);
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        if (is_stored(x, i))
            vv_health_add_term(out, vv_account_name((vv_account)i), x->account.v[i]);
}

/* Calls that no reason explains, now that all groups are settled: begins whose execution could not be told when they
 * were decoded, as memory for their thread was denied. */
static void reconcile_calls(vv_exec *x)
{
    vv_accounting *a = &x->account;
    uint64_t known = a->v[VV_ACCOUNT_CALLS_FOLDED];
    for (unsigned i = VV_ACCOUNT_CALLS_LOST_PUBLISH; i <= VV_ACCOUNT_CALLS_LOST_UNMATCHED; i++)
        known = vv_sat64(known, a->v[i]);
    uint64_t attempted = a->v[VV_ACCOUNT_CALLS_ATTEMPTED];
    if (attempted <= known)
        return;
    vv_account_add(a, VV_ACCOUNT_CALLS_LOST_UNRECONCILED, attempted - known);
    vv_health_bump(x, VV_H_unmatched_call_facts, attempted - known);
}

/* What the terms of the ends became that were to be written. */
static void terms_settled(vv_writer *w, unsigned outcome)
{
    for (vv_exec *x = w->ended; x; x = x->next_ended)
        if (x->terms == VV_TERMS_IN_FLIGHT)
            x->terms = outcome;
}

/* At most: a terminal batch with so many ends, and what a latched store puts in front of them. */
static uint64_t terminal_bytes(const vv_writer *w, uint64_t ends)
{
    uint64_t records = ends;
    for (const vv_exec *x = w->decoder->admitted; x; x = x->next_admitted)
        records++;
    uint64_t n = VV_META_HEADER + VV_SEAL_BYTES + records * META_RECORD_MAX;
    if (vv_wstore_next(w->store, VV_PLANE_META) == 1)
        n += META_RECORD_MAX + strlen(w->version);
    for (const varve_engine *e = vv_first_engine(w); e; e = vv_next_engine(e))
        if (!e->announced)
            n += META_RECORD_MAX + e->source.s.n + e->revision.s.n;
    return n;
}

/* Through the latch the ends have one try: the terms must leave them room, and the ledger of both. */
static bool terms_fit(const vv_writer *w, size_t terms, uint64_t ends)
{
    return vv_wstore_latch(w->store) == VV_LATCH_OPEN ||
           vv_wstore_fits(w->store, terms + terminal_bytes(w, ends) + VV_USAGE_BYTES);
}

/* One file of terms, of the ends from x on; *ret_rest is where the next goes on. False: blocked. */
static bool publish_some_terms(vv_writer *w, vv_exec *x, vv_exec **ret_rest)
{
    size_t each = terms_bytes();
    uint64_t n = 0;
    vv_wr_reset(&w->file);
    vv_health_begin(&w->file, &w->euid, vv_wstore_next(w->store, VV_PLANE_HEALTH));
    for (; x && is_settled(x) && (!n || w->file.len + each <= w->segment_target); x = x->next_ended) {
        if (x->terms != VV_TERMS_OPEN)
            continue;
        reconcile_calls(x);
        vv_account_reconcile(&x->account);
        add_terms(&w->file, x);
        x->terms = VV_TERMS_IN_FLIGHT;
        n++;
    }
    *ret_rest = x && is_settled(x) ? x : NULL;
    if (!n)
        return true;
    vv_health_end(&w->file, n);
    vv_published out = {VV_LOST, VV_LATCH_UNAVAILABLE, 0};
    if (vv_wr_ok(&w->file) && terms_fit(w, w->file.len, n))
        out = vv_wstore_publish(w->store, VV_PLANE_HEALTH, w->file.buf, w->file.len, true);
    if (out.outcome == VV_INDETERMINATE)
        return false;
    terms_settled(w, out.outcome == VV_BLOCKED ? VV_TERMS_OPEN : VV_TERMS_DONE);
    if (out.outcome == VV_LOST)
        vv_count(VV_COUNT_HEALTH_RECORD_LOST, n);
    return out.outcome != VV_BLOCKED;
}

/* The terms of the equations, before the ends they belong to. False: blocked. */
static bool publish_terms(vv_writer *w)
{
    for (vv_exec *x = w->ended; x && is_settled(x);) {
        vv_exec *rest;
        if (!publish_some_terms(w, x, &rest))
            return false;
        x = rest;
    }
    return true;
}

static void add_end(vv_writer *w, const vv_exec *x, uint64_t *records)
{
    vv_meta_record m = {.tag = VV_META_ROOT_ENDED};
    m.root_ended = (vv_root_ended){.root = x->root, .ended_ns = x->ended_ns, .status = x->status,
                                   .flags = x->start_lost ? VV_ROOT_START_LOST : 0, .first = x->first, .last = x->last,
                                   .count = x->segments, .health = x->health};
    vv_meta_add(&w->file, &m);
    ++*records;
}

/* Drops the executions whose ends were in the batch. */
static void ends_done(vv_writer *w, uint64_t n, bool committed)
{
    if (!committed) {
        atomic_fetch_add_explicit(&w->root_ends_lost, n, memory_order_relaxed);
        vv_count(VV_COUNT_ROOT_ENDED_LOST, n);
    }
    for (; n && w->ended; n--) {
        vv_exec *x = w->ended;
        w->ended = x->next_ended;
        vv_decoder_drop(w->decoder, x);
    }
    if (!w->ended)
        w->ended_end = &w->ended;
}

/* One terminal batch. *ret_done: none is left that may go. False: blocked. */
static bool publish_some_ends(vv_writer *w, bool *ret_done)
{
    uint64_t records = 0, starts = 0, ends = 0;
    begin_meta(w);
    /* Through the latch there is one way only, so the starts go in front. */
    if (vv_wstore_latch(w->store) != VV_LATCH_OPEN)
        starts = add_news(w, SIZE_MAX, &records);
    for (vv_exec *x = w->ended; x && is_settled(x) && (!ends || w->file.len + META_RECORD_MAX <= w->segment_target);
         x = x->next_ended, ends++)
        add_end(w, x, &records);
    if ((*ret_done = ends == 0))
        return true;
    w->starts_in_flight = starts;
    w->ends_in_flight = ends;
    vv_published out = end_meta(w, records, true);
    if (out.outcome == VV_INDETERMINATE || out.outcome == VV_BLOCKED) {
        w->meta_in_flight = out.outcome == VV_INDETERMINATE ? VV_META_ENDS : VV_META_NONE;
        return false;
    }
    meta_outcome(w, &out);
    starts_done(w, starts, out.outcome == VV_COMMITTED);
    ends_done(w, ends, out.outcome == VV_COMMITTED);
    return true;
}

bool vv_publish_ends(vv_writer *w)
{
    /* Ends that must wait for a group go to the back, so that they hold up no other. */
    vv_exec *waiting = NULL, **waiting_end = &waiting, **at = &w->ended;
    while (*at) {
        vv_exec *x = *at;
        if (is_settled(x)) {
            at = &x->next_ended;
            continue;
        }
        *at = x->next_ended;
        x->next_ended = NULL;
        *waiting_end = x;
        waiting_end = &x->next_ended;
    }
    *at = waiting;
    w->ended_end = waiting ? waiting_end : at;
    if (!publish_terms(w))
        return false;
    for (bool done = false; !done;)
        if (!publish_some_ends(w, &done))
            return false;
    return true;
}

void vv_meta_resolved(vv_writer *w, int plane)
{
    if (plane == VV_PLANE_HEALTH) {
        terms_settled(w, VV_TERMS_DONE);
    } else if (plane == VV_PLANE_META) {
        engines_announced(w);
        starts_done(w, w->starts_in_flight, true);
        if (w->meta_in_flight == VV_META_ENDS)
            ends_done(w, w->ends_in_flight, true);
        w->meta_in_flight = VV_META_NONE;
    }
}
