#include "config.h"

#include "runtime/writer.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/process.h"
#include "runtime/writer_inside.h"

enum {
    ROW_MAX = VV_CCT_ROW_MIN + VV_TUPLE_MAX,
    OVERFLOW_MAX = VV_OVERFLOW_REASONS * VV_EDGES * VV_CCT_OVERFLOW_ROW,
};

bool vv_writer_init(vv_writer *w, vv_wstore *store, vv_decoder *d, _Atomic(varve_engine *) *engines,
                    const char *version, size_t segment_target, size_t objects_target)
{
    memset(w, 0, sizeof *w);
    w->store = store;
    w->decoder = d;
    w->governor = d->governor;
    w->engines = engines;
    w->euid = d->euid;
    w->version = version;
    w->segment_target = segment_target;
    w->objects_target = objects_target;
    w->ended_end = &w->ended;
    w->refs_cap = (uint32_t)(segment_target / ROW_MAX + 64);
    w->flight_cap = (uint32_t)(segment_target / VV_GROUP_FIXED + 1);
    w->file = vv_wr_growing(SIZE_MAX / 4);
    w->cct = vv_wr_growing(SIZE_MAX / 4);
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

/* Writes the queued facts, or (out is NULL) drops them; what they are is in x->sent until the group is settled. */
static void write_facts(vv_writer *w, vv_wr *out, vv_exec *x)
{
    if (!x->facts.count)
        return;
    if (out) {
        vv_wr_u64(out, x->facts.count);
        vv_wr_bytes(out, x->facts.bytes, x->facts.len);
    }
    w->decoder->fact_count -= x->facts.count;
    vv_facts_taken(&x->facts, w->governor, &x->sent);
    x->flight_batch = x->batch++;
}

/* Keeps what is left as one encoded group, where that is small. */
static void encode_group(vv_writer *w, vv_exec *x)
{
    size_t most =
        16 + (size_t)x->cct.dirty_count * ROW_MAX + (x->cct.overflowed ? OVERFLOW_MAX : 0) + facts_bytes(&x->facts);
    /* What is in flight has to be settled first: facts may rest on it. */
    bool small = most <= w->segment_target / 4 && !x->in_flight;
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
    if (!vv_has_group(x)) {
        vv_cct_done(&x->cct);
        vv_facts_done(&x->facts, w->governor);
    } else if (vv_wstore_latch(w->store) == VV_LATCH_OPEN) {
        encode_group(w, x);
    } else {
        w->urgent = true; /* to be dropped, which counts it */
    }
    x->next_ended = NULL;
    *w->ended_end = x;
    w->ended_end = &x->next_ended;
}

bool vv_writer_has_work(const vv_writer *w)
{
    if (w->flight_count || w->ended || w->decoder->admitted || vv_wstore_next(w->store, VV_PLANE_META) == 1)
        return true;
    for (const varve_engine *e = vv_first_engine(w); e; e = vv_next_engine(e))
        if (vv_engine_is_due(e))
            return true;
    for (const vv_exec *x = w->decoder->execs; x; x = x->next)
        if (vv_has_group(x))
            return true;
    return false;
}

void vv_writer_pending(const vv_writer *w, uint64_t *ret_groups, uint64_t *ret_meta)
{
    *ret_groups = *ret_meta = 0;
    for (const vv_exec *x = w->decoder->execs; x; x = x->next)
        *ret_groups += vv_has_group(x) || x->in_flight;
    for (const vv_exec *x = w->decoder->admitted; x; x = x->next_admitted)
        ++*ret_meta;
    for (const vv_exec *x = w->ended; x; x = x->next_ended)
        ++*ret_meta;
    for (const varve_engine *e = vv_first_engine(w); e; e = vv_next_engine(e))
        *ret_meta += vv_engine_is_due(e);
}

bool vv_writer_is_full(const vv_writer *w)
{
    return w->urgent || w->group_bytes >= w->segment_target ||
           vv_objects_bytes(&w->decoder->objects) >= w->objects_target ||
           w->decoder->fact_count * VV_FACT_CHARGE >= w->segment_target;
}

/* What became of a group's facts, and of what rests on them. */
static void settle_facts(vv_writer *w, vv_exec *x, bool committed, bool disk)
{
    uint8_t link_loss = disk ? VV_CAPTURE_LOST_DISK : VV_CAPTURE_LOST_PUBLISH;
    vv_parts_settle(&x->sent, committed, disk, &x->account, &x->health);
    memset(&x->sent, 0, sizeof x->sent);
    if (committed) {
        vv_facts_flight_committed(&x->facts);
    } else {
        vv_exec_batch_lost(x, x->flight_batch, link_loss);
        w->decoder->fact_count -= vv_facts_flight_lost(&x->facts, link_loss, &x->account, &x->health);
    }
    x->flight_batch = 0;
}

/* What became of one group; why is the reason of a loss. */
static void settle_one(vv_writer *w, const vv_flight *f, bool committed, uint64_t sequence, vv_latch why)
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
    if (f->evidence)
        settle_facts(w, x, committed, disk);
    if (committed) {
        x->first = x->first ? x->first : sequence;
        x->last = sequence;
        x->segments++;
        return;
    }
    vv_health_bump(x, VV_H_cct_segment_publish_failed, f->cct);
    vv_health_bump(x, VV_H_evidence_segment_publish_failed, f->evidence);
}

/* What became of the groups in flight. */
static void settle(vv_writer *w, bool committed, uint64_t sequence, vv_latch why)
{
    for (uint32_t i = 0; i < w->flight_count; i++) {
        vv_flight *f = &w->flight[i];
        vv_cct *c = &f->exec->cct;
        vv_cct_settle(c, w->refs + f->first_ref, c->nodes ? f->refs : 0, committed);
        settle_one(w, f, committed, sequence, why);
    }
    w->flight_count = 0;
    w->refs_used = 0;
    w->batch = VV_BATCH_OPEN;
    if (!committed)
        atomic_fetch_add_explicit(&w->batches_lost, 1, memory_order_relaxed);
}

static void begin_segment(vv_writer *w)
{
    /* One execution's facts are in one group, however many: what that took beyond the charge is given back. */
    if (w->file.cap > 2 * w->segment_target) {
        vv_wr_done(&w->file);
        w->file = vv_wr_growing(SIZE_MAX / 4);
    }
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

/*
 * What rows may take of a segment: what the facts leave, but where these are large all of it, as else each segment
 * before the last one would keep room for facts that don't come.
 */
static size_t room_for_rows(size_t room, size_t facts, size_t least)
{
    if (facts <= room / 2)
        room -= facts;
    return room > least ? room - OVERFLOW_MAX : least;
}

/* Seals what a live execution has, over as many segments as it takes; facts go with the last rows. */
static bool add_live(vv_writer *w, vv_exec *x)
{
    enum { LEAST = 16 * ROW_MAX + OVERFLOW_MAX };
    for (bool more = true; more;) {
        size_t facts = (size_t)facts_bytes(&x->facts);
        if (segment_is_full(w, VV_GROUP_FIXED + LEAST + facts) && !end_segment(w))
            return false;
        size_t rows_room = room_for_rows(room_left(w), facts, LEAST);
        size_t refs_room = (size_t)(w->refs_cap - w->refs_used - 1) * ROW_MAX;
        vv_wr_reset(&w->cct);
        uint32_t refs;
        vv_group g = {.root = x->root};
        g.cct_records = vv_cct_seal(&x->cct, &w->cct, rows_room < refs_room ? rows_room : refs_room,
                                    w->refs + w->refs_used, &refs, &g.cct_health, &more);
        if (!more) {
            g.evidence_records = x->facts.count;
            g.evidence_len = (size_t)facts_bytes(&x->facts);
        }
        if (!vv_wr_ok(&w->cct))
            vv_wr_fail(&w->file, "OutOfMemory");
        g.cct = w->cct.buf;
        g.cct_len = w->cct.len;
        if (vv_group_has_cct(&g) || vv_group_has_evidence(&g))
            add_group(w, x, &g, refs, x->cct.sealed_started, x->cct.sealed_awaits);
        if (!more)
            write_facts(w, &w->file, x);
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
        if (!vv_has_group(x))
            continue;
        vv_flight f = {.exec = x,
                       .cct = x->group ? x->group_cct != 0 : vv_cct_is_dirty(&x->cct),
                       .evidence = x->group ? x->group_evidence != 0 : x->facts.count != 0,
                       .started = x->group_started,
                       .awaits = x->group_awaits};
        if (x->group) {
            drop_group(w, x);
        } else {
            vv_cct_discard(&x->cct);
            f.started = x->cct.sealed_started;
            f.awaits = x->cct.sealed_awaits;
            write_facts(w, NULL, x);
        }
        settle_one(w, &f, false, 0, vv_wstore_latch(w->store));
    }
}

/* False: publication is blocked, or memory for the list is denied; what is left waits. */
static bool publish_data(vv_writer *w)
{
    size_t n = 0, at = 0;
    for (vv_exec *x = w->decoder->execs; x; x = x->next)
        n += vv_has_group(x);
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
        if (vv_has_group(x))
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

/* An object that was lost, and why. */
typedef struct {
    vv_cid cid;
    uint8_t code;
} lost_object;

typedef struct {
    lost_object *list; /* by cid, once all are there */
    size_t count, cap;
    bool unknown; /* some had no room in the list: whatever is not known to be there is lost */
} lost_objects;

static void note_lost(void *ctx, const vv_cid *cid, unsigned code)
{
    lost_objects *l = ctx;
    if (l->count == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 16;
        lost_object *p = realloc(l->list, cap * sizeof *p);
        l->unknown = l->unknown || !p;
        if (!p)
            return;
        l->list = p;
        l->cap = cap;
    }
    l->list[l->count++] = (lost_object){*cid, (uint8_t)code};
}

static int by_cid(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(vv_cid));
}

static bool is_lost(void *ctx, const vv_cid *cid, uint8_t *ret_code)
{
    const lost_objects *l = ctx;
    const lost_object *o = l->count ? bsearch(cid, l->list, l->count, sizeof *o, by_cid) : NULL;
    *ret_code = o ? o->code : VV_VALUE_LOST_UNAVAILABLE;
    return o || l->unknown;
}

/* Facts that name lost objects say so, before they are written. */
static void lose_values(vv_writer *w, lost_objects *l)
{
    if (l->count)
        qsort(l->list, l->count, sizeof *l->list, by_cid);
    for (vv_exec *x = w->decoder->execs; x; x = x->next) {
        x->facts.len = vv_facts_lose_values(x->facts.bytes, x->facts.len, &x->facts.parts, is_lost, l);
        if (x->group && x->group_facts)
            x->group_evidence = 8 + vv_facts_lose_values(x->group + x->group_cct + 8, x->group_evidence - 8, &x->sent,
                                                         is_lost, l);
    }
}

/* The captured values, before any fact that refers to them. False: blocked. */
static bool publish_objects(vv_writer *w)
{
    lost_objects lost = {.list = NULL};
    bool ok = vv_objects_publish(&w->decoder->objects, w->store, note_lost, &lost);
    if (lost.count || lost.unknown)
        lose_values(w, &lost);
    free(lost.list);
    return ok;
}

bool vv_writer_cycle(vv_writer *w)
{
    bool settled;
    int plane;
    uint64_t sequence;
    if (!vv_wstore_resolve(w->store, &settled, &plane, &sequence))
        return false;
    if (settled && plane == VV_PLANE_DATA)
        settle(w, true, sequence, VV_LATCH_OPEN);
    else if (settled)
        vv_meta_resolved(w, plane);
    uint64_t lost = atomic_load_explicit(&w->batches_lost, memory_order_relaxed);
    if (w->batch == VV_BATCH_SEALED && !put_segment(w))
        return false;
    if (vv_wstore_latch(w->store) == VV_LATCH_OPEN && !vv_publish_starts(w))
        return false;
    if (!publish_objects(w))
        return false;
    if (!publish_data(w))
        return false;
    w->urgent = false;
    return vv_publish_ends(w) && lost == atomic_load_explicit(&w->batches_lost, memory_order_relaxed) &&
           vv_wstore_latch(w->store) == VV_LATCH_OPEN;
}
