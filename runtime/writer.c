#include "config.h"

#include "runtime/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "format/health_plane.h"
#include "format/usage.h"
#include "runtime/process.h"

enum {
    ROW_MAX = VV_CCT_ROW_MIN + VV_TUPLE_MAX,
    OVERFLOW_MAX = VV_OVERFLOW_REASONS * VV_EDGES * VV_CCT_OVERFLOW_ROW,
    META_RECORD_MAX = 290, /* of the root records; the few others are small beside a segment */
    TABLE_MAX = 256 << 20,
};

bool vv_writer_init(vv_writer *w, vv_wstore *store, vv_decoder *d, _Atomic(varve_engine *) *engines,
                    const char *version, size_t segment_target)
{
    memset(w, 0, sizeof *w);
    w->store = store;
    w->decoder = d;
    w->governor = d->governor;
    w->engines = engines;
    w->euid = d->euid;
    w->version = version;
    w->segment_target = segment_target;
    w->ended_end = &w->ended;
    w->refs_cap = (uint32_t)(segment_target / ROW_MAX + 64);
    w->flight_cap = (uint32_t)(segment_target / VV_GROUP_FIXED + 1);
    w->file = vv_wr_growing(SIZE_MAX / 4);
    w->cct = vv_wr_growing(SIZE_MAX / 4);
    w->evidence = vv_wr_growing(SIZE_MAX / 4);
    w->refs = vv_gov_alloc(w->governor, VV_POOL_GENERAL, VV_OWN_WRITER, w->refs_cap * sizeof *w->refs);
    w->flight = vv_gov_alloc(w->governor, VV_POOL_GENERAL, VV_OWN_WRITER, w->flight_cap * sizeof *w->flight);
    /* The buffers grow to about this much and are kept. */
    w->charged = 2 * segment_target;
    if (!w->refs || !w->flight || !vv_reserve(w->governor, VV_POOL_GENERAL, VV_OWN_WRITER, w->charged)) {
        w->charged = 0;
        vv_writer_done(w);
        return false;
    }
    return true;
}

void vv_writer_done(vv_writer *w)
{
    vv_wr_done(&w->file);
    vv_wr_done(&w->cct);
    vv_wr_done(&w->evidence);
    vv_gov_free(w->governor, VV_POOL_GENERAL, VV_OWN_WRITER, w->refs, w->refs_cap * sizeof *w->refs);
    vv_gov_free(w->governor, VV_POOL_GENERAL, VV_OWN_WRITER, w->flight, w->flight_cap * sizeof *w->flight);
    vv_release(w->governor, VV_POOL_GENERAL, VV_OWN_WRITER, w->charged);
    w->refs = NULL;
    w->flight = NULL;
}

void vv_writer_abandon(vv_writer *w)
{
    uint64_t n = 0;
    for (const vv_exec *x = w->ended; x; x = x->next_ended)
        n++;
    vv_count(VV_COUNT_ROOT_ENDED_LOST, n);
}

static uint64_t facts_bytes(const vv_facts *q)
{
    return q->count ? 8 + q->len : 0;
}

static bool has_group(const vv_exec *x)
{
    return x->group || vv_cct_is_dirty(&x->cct) || x->facts.count;
}

/* Writes the queued facts, or (out is NULL) drops them. */
static void write_facts(vv_writer *w, vv_wr *out, vv_exec *x)
{
    if (!x->facts.count)
        return;
    if (out) {
        vv_wr_u64(out, x->facts.count);
        vv_wr_bytes(out, x->facts.bytes, x->facts.len);
    }
    w->decoder->fact_count -= x->facts.count;
    x->facts.count = 0;
    x->facts.len = 0;
    x->batch++;
}

/* Keeps what is left as one encoded group, where that is small. */
static void encode_group(vv_writer *w, vv_exec *x)
{
    size_t most =
        16 + (size_t)x->cct.dirty_count * ROW_MAX + (x->cct.overflowed ? OVERFLOW_MAX : 0) + facts_bytes(&x->facts);
    bool small = most <= w->segment_target / 4;
    uint8_t *p = small ? vv_gov_alloc(w->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, most) : NULL;
    if (!p) {
        w->urgent = true;
        return;
    }
    /* The references of a segment that is being written, or is indeterminate, stay untouched: these rows need none
     * later. */
    vv_cct_ref *refs = malloc((x->cct.dirty_count + 1ULL) * sizeof *refs);
    if (!refs) {
        vv_gov_free(w->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, p, most);
        w->urgent = true;
        return;
    }
    vv_wr out = vv_wr_fixed(p, most);
    uint32_t n;
    bool more;
    x->group_rows = vv_cct_seal(&x->cct, &out, x->cct.dirty_count * (size_t)ROW_MAX, refs, &n, &x->group_health, &more);
    free(refs);
    x->group_cct = out.len;
    x->group_started = x->cct.sealed_started;
    x->group_awaits = x->cct.sealed_awaits;
    x->group_facts = x->facts.count;
    write_facts(w, &out, x);
    x->group_evidence = out.len - x->group_cct;
    x->group = p;
    x->group_bytes = most;
    w->group_bytes += most;
    vv_cct_done(&x->cct);
    vv_facts_done(&x->facts, w->governor);
}

void vv_writer_hand_off(vv_writer *w, vv_exec *x)
{
    x->slot = NULL;
    if (!has_group(x))
        vv_cct_done(&x->cct);
    else if (vv_wstore_latch(w->store) == VV_LATCH_OPEN)
        encode_group(w, x);
    else
        w->urgent = true; /* to be dropped, which counts it */
    x->next_ended = NULL;
    *w->ended_end = x;
    w->ended_end = &x->next_ended;
}

static bool engine_needs_table(const varve_engine *e)
{
    uint32_t functions = atomic_load_explicit(&e->functions.count, memory_order_acquire);
    return (e->used_function > e->published_functions && functions > e->published_functions) ||
           e->used_file > e->published_files || (!e->announced && functions);
}

static bool engine_is_due(const varve_engine *e)
{
    return !e->announced || engine_needs_table(e);
}

static varve_engine *first_engine(const vv_writer *w)
{
    return atomic_load_explicit(w->engines, memory_order_acquire);
}

static varve_engine *next_engine(const varve_engine *e)
{
    return atomic_load_explicit(&e->next, memory_order_acquire);
}

bool vv_writer_has_work(const vv_writer *w)
{
    if (w->flight_count || w->ended || w->decoder->admitted || vv_wstore_next(w->store, VV_PLANE_META) == 1)
        return true;
    for (const varve_engine *e = first_engine(w); e; e = next_engine(e))
        if (engine_is_due(e))
            return true;
    for (const vv_exec *x = w->decoder->execs; x; x = x->next)
        if (has_group(x))
            return true;
    return false;
}

void vv_writer_pending(const vv_writer *w, uint64_t *ret_groups, uint64_t *ret_meta)
{
    *ret_groups = *ret_meta = 0;
    for (const vv_exec *x = w->decoder->execs; x; x = x->next)
        *ret_groups += has_group(x) || x->in_flight;
    for (const vv_exec *x = w->decoder->admitted; x; x = x->next_admitted)
        ++*ret_meta;
    for (const vv_exec *x = w->ended; x; x = x->next_ended)
        ++*ret_meta;
    for (const varve_engine *e = first_engine(w); e; e = next_engine(e))
        *ret_meta += engine_is_due(e);
}

bool vv_writer_is_full(const vv_writer *w)
{
    return w->urgent || w->group_bytes >= w->segment_target ||
           w->decoder->fact_count * VV_ITEM_CHARGE >= w->segment_target;
}

/* What became of one group; why is the reason of a loss. */
static void settle_one(const vv_flight *f, bool committed, uint64_t sequence, vv_latch why)
{
    bool disk = why == VV_LATCH_DISK;
    vv_account calls = committed ? VV_ACCOUNT_CALLS_FOLDED : disk ? VV_ACCOUNT_CALLS_LOST_DISK
                                                                  : VV_ACCOUNT_CALLS_LOST_PUBLISH;
    vv_account awaits = committed ? VV_ACCOUNT_AWAIT_FOLDED : disk ? VV_ACCOUNT_AWAIT_LOST_DISK
                                                                   : VV_ACCOUNT_AWAIT_LOST_PUBLISH;
    vv_exec *x = f->exec;
    x->in_flight = false;
    vv_account_add(&x->account, calls, f->started);
    vv_account_add(&x->account, awaits, f->awaits);
    if (committed) {
        x->first = x->first ? x->first : sequence;
        x->last = sequence;
        x->segments++;
        return;
    }
    vv_health_bump(x, VV_H_cct_segment_publish_failed, f->cct);
    vv_health_bump(x, VV_H_evidence_segment_publish_failed, f->evidence);
    if (f->evidence)
        vv_exec_batch_lost(x, f->batch);
}

/* What became of the groups in flight. */
static void settle(vv_writer *w, bool committed, uint64_t sequence, vv_latch why)
{
    for (uint32_t i = 0; i < w->flight_count; i++) {
        vv_flight *f = &w->flight[i];
        vv_cct *c = &f->exec->cct;
        vv_cct_settle(c, w->refs + f->first_ref, c->nodes ? f->refs : 0, committed);
        settle_one(f, committed, sequence, why);
    }
    w->flight_count = 0;
    w->refs_used = 0;
    w->batch = VV_BATCH_OPEN;
    if (!committed)
        atomic_fetch_add_explicit(&w->batches_lost, 1, memory_order_relaxed);
}

static void begin_segment(vv_writer *w)
{
    vv_wr_reset(&w->file);
    vv_data_begin(&w->file, &w->euid, vv_wstore_next(w->store, VV_PLANE_DATA));
    w->file_groups = 0;
}

/* The data batch, whole, to the store. False: nothing more can be published now. */
static bool put_segment(vv_writer *w)
{
    vv_published out = {VV_LOST, VV_LATCH_UNAVAILABLE, 0};
    if (vv_wr_ok(&w->file))
        out = vv_wstore_publish(w->store, VV_PLANE_DATA, w->file.buf, w->file.len, false);
    w->batch = out.outcome == VV_BLOCKED ? VV_BATCH_SEALED : VV_BATCH_RENAMED;
    if (out.outcome == VV_INDETERMINATE || out.outcome == VV_BLOCKED)
        return false;
    settle(w, out.outcome == VV_COMMITTED, out.sequence, out.reason);
    return true;
}

/* False: nothing more can be published now. */
static bool end_segment(vv_writer *w)
{
    if (!w->file_groups)
        return true;
    vv_data_end(&w->file, w->file_groups);
    if (!put_segment(w))
        return false;
    begin_segment(w);
    return true;
}

static void add_group(vv_writer *w, vv_exec *x, const vv_group *g, uint32_t refs, uint64_t started, uint64_t awaits)
{
    vv_data_add(&w->file, g);
    w->file_groups++;
    w->flight[w->flight_count++] = (vv_flight){.exec = x,
                                               .first_ref = w->refs_used,
                                               .refs = refs,
                                               .started = started,
                                               .awaits = awaits,
                                               .batch = x->batch - 1,
                                               .cct = vv_group_has_cct(g),
                                               .evidence = vv_group_has_evidence(g)};
    w->refs_used += refs;
    x->in_flight = true;
}

static size_t room_left(const vv_writer *w)
{
    return w->file.len < w->segment_target ? w->segment_target - w->file.len : 0;
}

static bool segment_is_full(const vv_writer *w, size_t want)
{
    return w->file_groups &&
           (room_left(w) < want || w->flight_count == w->flight_cap || w->refs_used + 64 > w->refs_cap);
}

static void drop_group(vv_writer *w, vv_exec *x)
{
    vv_gov_free(w->governor, VV_POOL_GENERAL, VV_OWN_POPULATION, x->group, x->group_bytes);
    w->group_bytes -= x->group_bytes;
    x->group = NULL;
}

static bool add_encoded(vv_writer *w, vv_exec *x)
{
    if (segment_is_full(w, VV_GROUP_FIXED + x->group_cct + x->group_evidence) && !end_segment(w))
        return false;
    vv_group g = {.root = x->root,
                  .cct_health = x->group_health,
                  .cct_records = x->group_rows,
                  .evidence_records = x->group_facts,
                  .cct = x->group,
                  .cct_len = x->group_cct,
                  .evidence = x->group + x->group_cct,
                  .evidence_len = x->group_evidence};
    add_group(w, x, &g, 0, x->group_started, x->group_awaits);
    drop_group(w, x);
    return true;
}

/* Seals what a live execution has, over as many segments as it takes; facts go with the last rows. */
static bool add_live(vv_writer *w, vv_exec *x)
{
    enum { LEAST = 16 * ROW_MAX + OVERFLOW_MAX };
    for (bool more = true; more;) {
        size_t facts = (size_t)facts_bytes(&x->facts);
        if (segment_is_full(w, VV_GROUP_FIXED + LEAST + facts) && !end_segment(w))
            return false;
        size_t room = room_left(w), rows_room = room > LEAST + facts ? room - facts - OVERFLOW_MAX : LEAST;
        size_t refs_room = (size_t)(w->refs_cap - w->refs_used - 1) * ROW_MAX;
        vv_wr_reset(&w->cct);
        vv_wr_reset(&w->evidence);
        uint32_t refs;
        vv_group g = {.root = x->root};
        g.cct_records = vv_cct_seal(&x->cct, &w->cct, rows_room < refs_room ? rows_room : refs_room,
                                    w->refs + w->refs_used, &refs, &g.cct_health, &more);
        if (!more) {
            g.evidence_records = x->facts.count;
            write_facts(w, &w->evidence, x);
        }
        if (!vv_wr_ok(&w->cct) || !vv_wr_ok(&w->evidence))
            vv_wr_fail(&w->file, "OutOfMemory");
        g.cct = w->cct.buf;
        g.cct_len = w->cct.len;
        g.evidence = w->evidence.buf;
        g.evidence_len = w->evidence.len;
        if (vv_group_has_cct(&g) || vv_group_has_evidence(&g))
            add_group(w, x, &g, refs, x->cct.sealed_started, x->cct.sealed_awaits);
        if (more && !end_segment(w))
            return false;
    }
    return true;
}

static int by_root(const void *a, const void *b)
{
    const vv_exec *const *x = a, *const *y = b;
    return memcmp(&(*x)->root, &(*y)->root, sizeof(vv_thread_ref));
}

/* The store takes no data any more: what there is is lost, without being encoded. */
static void discard_data(vv_writer *w)
{
    for (vv_exec *x = w->decoder->execs; x; x = x->next) {
        if (!has_group(x))
            continue;
        vv_flight f = {.exec = x,
                       .cct = x->group ? x->group_cct != 0 : vv_cct_is_dirty(&x->cct),
                       .evidence = x->group ? x->group_evidence != 0 : x->facts.count != 0,
                       .started = x->group_started,
                       .awaits = x->group_awaits,
                       .batch = x->batch};
        if (x->group) {
            drop_group(w, x);
        } else {
            vv_cct_discard(&x->cct);
            f.started = x->cct.sealed_started;
            f.awaits = x->cct.sealed_awaits;
            write_facts(w, NULL, x);
        }
        settle_one(&f, false, 0, vv_wstore_latch(w->store));
    }
}

/* False: publication is blocked, or memory for the list is denied; what is left waits. */
static bool publish_data(vv_writer *w)
{
    size_t n = 0, at = 0;
    for (vv_exec *x = w->decoder->execs; x; x = x->next)
        n += has_group(x);
    if (!n)
        return true;
    if (vv_wstore_latch(w->store) != VV_LATCH_OPEN) {
        discard_data(w);
        atomic_fetch_add_explicit(&w->batches_lost, 1, memory_order_relaxed);
        return true;
    }
    vv_exec **list = malloc(n * sizeof *list);
    if (!list)
        return false;
    for (vv_exec *x = w->decoder->execs; x; x = x->next)
        if (has_group(x))
            list[at++] = x;
    qsort(list, n, sizeof *list, by_root);
    begin_segment(w);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = list[i]->group ? add_encoded(w, list[i]) : add_live(w, list[i]);
    ok = ok && end_segment(w);
    free(list);
    return ok;
}

/* Publishes the engine's table if it has grown past what is published. False: blocked. */
static bool publish_table(vv_writer *w, varve_engine *e)
{
    if (!engine_needs_table(e))
        return true;
    vv_wr body = vv_wr_growing(TABLE_MAX), object = vv_wr_growing(TABLE_MAX + VV_CAS_FIXED);
    uint32_t functions, files;
    vv_engine_encode_table(e, &body, &functions, &files);
    vv_published out = {VV_LOST, VV_LATCH_UNAVAILABLE, 0};
    if (vv_wr_ok(&body)) {
        vv_cas_encode(&object, VV_CODEC_FUNCTION_TABLE, body.buf, body.len);
        vv_cid cid;
        vv_cid_of(&cid, VV_CODEC_FUNCTION_TABLE, body.buf, body.len);
        if (vv_wr_ok(&object))
            out = vv_wstore_publish_object(w->store, &cid, object.buf, object.len);
        if (out.outcome == VV_COMMITTED || out.outcome == VV_REUSED) {
            e->has_table = true;
            e->table = cid;
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
    vv_wr_done(&object);
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
    for (varve_engine *e = first_engine(w); e; e = next_engine(e))
        e->in_batch = false;
    vv_wr_reset(&w->file);
    vv_meta_begin(&w->file, &w->euid, vv_wstore_next(w->store, VV_PLANE_META), vv_wstore_high(w->store, VV_PLANE_DATA));
}

static void add_engines(vv_writer *w, uint64_t *records)
{
    for (varve_engine *e = first_engine(w); e; e = next_engine(e)) {
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
    for (varve_engine *e = first_engine(w); e; e = next_engine(e)) {
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

static bool meta_pre_due(const vv_writer *w)
{
    if (w->decoder->admitted || vv_wstore_next(w->store, VV_PLANE_META) == 1)
        return true;
    for (const varve_engine *e = first_engine(w); e; e = next_engine(e))
        if (!e->announced)
            return true;
    return false;
}

/* False: blocked. */
static bool publish_starts(vv_writer *w)
{
    for (varve_engine *e = first_engine(w); e; e = next_engine(e))
        if (!publish_table(w, e))
            return false;
    if (!meta_pre_due(w))
        return true;
    do {
        uint64_t records = 0;
        begin_meta(w);
        if (vv_wstore_next(w->store, VV_PLANE_META) == 1)
            add_stream_started(w, &records);
        add_engines(w, &records);
        uint64_t starts = w->starts_in_flight = add_starts(w, w->segment_target, &records);
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
    return !x->in_flight && !has_group(x);
}

/* Bytes of one record of the health plane. All have the same terms. */
static size_t terms_bytes(void)
{
    size_t n = VV_HEALTH_RECORD_FIXED;
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        n += VV_HEALTH_TERM_FIXED + strlen(vv_account_name((vv_account)i));
    return n;
}

static void add_terms(vv_wr *out, const vv_exec *x)
{
    vv_health_add(out, &x->root, VV_ACCOUNTS);
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
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
    for (const varve_engine *e = first_engine(w); e; e = next_engine(e))
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
    vv_wr_reset(&w->evidence);
    vv_health_begin(&w->evidence, &w->euid, vv_wstore_next(w->store, VV_PLANE_HEALTH));
    for (; x && is_settled(x) && (!n || w->evidence.len + each <= w->segment_target); x = x->next_ended) {
        if (x->terms != VV_TERMS_OPEN)
            continue;
        reconcile_calls(x);
        add_terms(&w->evidence, x);
        x->terms = VV_TERMS_IN_FLIGHT;
        n++;
    }
    *ret_rest = x && is_settled(x) ? x : NULL;
    if (!n)
        return true;
    vv_health_end(&w->evidence, n);
    vv_published out = {VV_LOST, VV_LATCH_UNAVAILABLE, 0};
    if (vv_wr_ok(&w->evidence) && terms_fit(w, w->evidence.len, n))
        out = vv_wstore_publish(w->store, VV_PLANE_HEALTH, w->evidence.buf, w->evidence.len, true);
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
    if (vv_wstore_latch(w->store) != VV_LATCH_OPEN) {
        /* Through the latch there is one way only, so the starts go in front. */
        if (vv_wstore_next(w->store, VV_PLANE_META) == 1)
            add_stream_started(w, &records);
        add_engines(w, &records);
        starts = add_starts(w, SIZE_MAX, &records);
    }
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

static bool publish_ends(vv_writer *w)
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

/* The indeterminate publication turned out committed. */
static void settle_resolved(vv_writer *w, int plane, uint64_t sequence)
{
    if (plane == VV_PLANE_DATA) {
        settle(w, true, sequence, VV_LATCH_OPEN);
    } else if (plane == VV_PLANE_HEALTH) {
        terms_settled(w, VV_TERMS_DONE);
    } else if (plane == VV_PLANE_META) {
        engines_announced(w);
        starts_done(w, w->starts_in_flight, true);
        if (w->meta_in_flight == VV_META_ENDS)
            ends_done(w, w->ends_in_flight, true);
        w->meta_in_flight = VV_META_NONE;
    }
}

bool vv_writer_cycle(vv_writer *w)
{
    bool settled;
    int plane;
    uint64_t sequence;
    if (!vv_wstore_resolve(w->store, &settled, &plane, &sequence))
        return false;
    if (settled)
        settle_resolved(w, plane, sequence);
    uint64_t lost = atomic_load_explicit(&w->batches_lost, memory_order_relaxed);
    if (w->batch == VV_BATCH_SEALED && !put_segment(w))
        return false;
    if (vv_wstore_latch(w->store) == VV_LATCH_OPEN && !publish_starts(w))
        return false;
    if (!publish_data(w))
        return false;
    w->urgent = false;
    return publish_ends(w) && lost == atomic_load_explicit(&w->batches_lost, memory_order_relaxed) &&
           vv_wstore_latch(w->store) == VV_LATCH_OPEN;
}
