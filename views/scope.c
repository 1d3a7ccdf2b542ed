#include "config.h"

#include "views/scope.h"

#include <stdlib.h>

/* A named execution goes in once, whatever names it has. */
typedef struct {
    uint8_t store; /* the base's, where that is another one */
    uint8_t root[sizeof(vv_thread_ref)];
} identity;

static vv_code no_memory(vv_error *err)
{
    return vv_fail(err, VV_ERR_NOMEM, "no memory for a list of executions");
}

/* The query as the base's store sees it. */
static vv_query base_query(const vv_query *q)
{
    vv_query b = *q;
    if (q->base_look) {
        b.library = q->base_library;
        b.look = q->base_look;
    }
    return b;
}

static void take_blame(vv_query *q, const vv_query *from)
{
    q->parameter = from->parameter;
    q->named = from->named;
    memcpy(q->matches, from->matches, sizeof q->matches);
    q->match_count = from->match_count;
}

/* All that a parameter names, newest first. The caller frees. */
static vv_code find_all(vv_query *q, const char *name, vv_found **ret, size_t *ret_count, vv_error *err)
{
    size_t n = 0, at = 0;
    while (vv_query_each(q, name, &at))
        n++;
    vv_found *list = malloc((n + 1) * sizeof *list);
    if (!list)
        return no_memory(err);
    vv_code rc = VV_OK;
    at = 0;
    for (size_t i = 0; i < n && rc == VV_OK; i++)
        rc = vv_query_execution(q, *vv_query_each(q, name, &at), name, &list[i], err);
    if (rc != VV_OK) {
        free(list);
        return rc;
    }
    qsort(list, n, sizeof *list, vv_found_newest_first);
    *ret = list;
    *ret_count = n;
    return VV_OK;
}

static vv_code add_side(vv_scope *s, vv_map *seen, const vv_query *q, bool other, vv_side side, const vv_found *list,
                        size_t n, vv_error *err)
{
    vv_scope_item *bigger = realloc(s->items, (s->count + n + 1) * sizeof *bigger);
    if (!bigger)
        return no_memory(err);
    s->items = bigger;
    for (size_t i = 0; i < n; i++) {
        identity id = {.store = other};
        bool fresh;
        memcpy(id.root, list[i].execution->root.b, sizeof id.root);
        uint32_t at = vv_map_put(seen, &id, &fresh);
        if (at == VV_MAP_NONE)
            return no_memory(err);
        if (fresh) {
            s->items[at] = (vv_scope_item){.library = q->library, .look = q->look, .found = list[i]};
            s->count = at + 1;
        }
        s->items[at].on[side] = true;
    }
    return VV_OK;
}

static bool same_engine(const vv_scope_item *a, const vv_scope_item *b)
{
    const vv_thread_ref *x = &a->found.execution->root, *y = &b->found.execution->root;
    return memcmp(x->b, y->b, sizeof(vv_euid)) == 0 && vv_thread_engine(x) == vv_thread_engine(y);
}

static vv_code read_head(vv_scope *s, vv_map *seen, vv_query *q, vv_error *err)
{
    vv_found one, *list = NULL;
    size_t n = 1;
    vv_code rc;
    if (q->id.n) {
        rc = vv_query_execution(q, q->id, "id", &one, err);
        return rc == VV_OK ? add_side(s, seen, q, false, VV_SIDE_HEAD, &one, n, err) : rc;
    }
    if (!vv_query_value(q, "execution"))
        return vv_query_fail(q, "execution", err, "is needed: an execution's id, or latest");
    rc = find_all(q, "execution", &list, &n, err);
    if (rc == VV_OK)
        rc = add_side(s, seen, q, false, VV_SIDE_HEAD, list, n, err);
    free(list);
    return rc;
}

static vv_code read_base(vv_scope *s, vv_map *seen, vv_query *q, vv_error *err)
{
    vv_query b = base_query(q);
    vv_found *list = NULL;
    size_t n = 0;
    vv_code rc = find_all(&b, "base", &list, &n, err);
    if (rc == VV_OK)
        rc = add_side(s, seen, &b, q->base_look != NULL, VV_SIDE_BASE, list, n, err);
    else
        take_blame(q, &b);
    free(list);
    s->compares = n > 0;
    return rc;
}

vv_code vv_scope_read(vv_scope *ret, vv_query *q, vv_error *err)
{
    vv_scope s = {.one_engine = true};
    vv_map seen;
    vv_map_init(&seen, sizeof(identity));
    vv_code rc = read_head(&s, &seen, q, err);
    if (rc == VV_OK)
        rc = read_base(&s, &seen, q, err);
    vv_map_done(&seen);
    for (size_t i = 1; i < s.count; i++)
        s.one_engine &= same_engine(&s.items[0], &s.items[i]);
    if (rc == VV_OK)
        *ret = s;
    else
        vv_scope_done(&s);
    return rc;
}

void vv_scope_done(vv_scope *s)
{
    free(s->items);
    vv_evidence_done(&s->evidence);
    for (size_t side = 0; side < VV_SIDES; side++)
        vv_evidence_done(&s->sides[side]);
    *s = (vv_scope){.items = NULL};
}

static void add_totals(vv_totals *t, const vv_totals *o)
{
    t->calls += o->calls;
    t->errors += o->errors;
    t->cancelled += o->cancelled;
    t->selected += o->selected;
    t->open += o->open;
    t->inclusive_ns = vv_sat128(t->inclusive_ns, o->inclusive_ns);
    t->spawned_inclusive_ns = vv_sat128(t->spawned_inclusive_ns, o->spawned_inclusive_ns);
    t->self_ns = vv_sat128(t->self_ns, o->self_ns);
    t->await_ns = vv_sat128(t->await_ns, o->await_ns);
}

vv_code vv_scope_gather(vv_scope *s, const vv_scope_item *item, const vv_digest *d, vv_error *err)
{
    vv_code rc = vv_evidence_merge(&s->evidence, &d->evidence, err);
    for (size_t side = 0; side < VV_SIDES && rc == VV_OK; side++) {
        if (!item->on[side])
            continue;
        rc = vv_evidence_merge(&s->sides[side], &d->evidence, err);
        if (d->known)
            add_totals(&s->totals[side], &d->totals);
        s->known[side] |= d->known;
    }
    return rc;
}

vv_code vv_scope_fold(vv_scope *s, vv_scope_visit *visit, void *cls, vv_error *err)
{
    vv_code rc = VV_OK;
    for (size_t i = 0; i < s->count && rc == VV_OK; i++) {
        const vv_scope_item *item = &s->items[i];
        const vv_query q = {.library = item->library, .look = item->look};
        vv_loaded x;
        rc = vv_query_load(&q, &item->found, &x, err);
        if (rc != VV_OK)
            break;
        rc = vv_scope_gather(s, item, x.digest, err);
        if (rc == VV_OK && visit)
            rc = visit(cls, item, &x, err);
        vv_loaded_release(item->library, &x);
    }
    return rc;
}

bool vv_scope_absence_known(const vv_scope *s, vv_side side)
{
    return s->sides[side].verdict == VV_VERDICT_COMPLETE;
}

vv_delta_state vv_scope_state(const vv_scope *s, const bool on[VV_SIDES])
{
    if (on[VV_SIDE_HEAD] && on[VV_SIDE_BASE])
        return VV_STATE_BOTH;
    if (!vv_scope_absence_known(s, on[VV_SIDE_HEAD] ? VV_SIDE_BASE : VV_SIDE_HEAD))
        return VV_STATE_UNKNOWN;
    return on[VV_SIDE_HEAD] ? VV_STATE_NEW : VV_STATE_GONE;
}

bool vv_scope_number_known(const vv_scope *s, const bool on[VV_SIDES], vv_side side)
{
    return on[side] || vv_scope_absence_known(s, side);
}

static void side_evidence_json(vv_json *j, const char *key, const vv_evidence *e)
{
    vv_json_kv_obj(j, key);
    vv_json_kv_cstr(j, "verdict", vv_verdict_name(e->verdict));
    vv_json_kv_u64(j, "executions", e->executions);
    vv_json_kv_u64(j, "running", e->running);
    vv_json_kv_u64(j, "abandoned", e->abandoned);
    vv_json_kv_u64(j, "issues_total", e->issues_total);
    vv_json_kv_u64(j, "overflow_calls", e->overflow_calls);
    vv_json_kv_u64(j, "timing_incomplete", e->timing_incomplete);
    vv_json_end_obj(j);
}

static void side_ids_json(vv_json *j, const char *key, const vv_scope *s, vv_side side)
{
    vv_json_kv_arr(j, key);
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].on[side]) {
            char text[VV_THREAD_TEXT];
            vv_thread_text(text, &s->items[i].found.execution->root);
            vv_json_cstr(j, text);
        }
    vv_json_end_arr(j);
}

void vv_scope_head_json(vv_json *j, const vv_query *q, const vv_scope *s, bool truncated, const vv_filtered *filtered)
{
    vv_head_json(j, q->look, &s->evidence, truncated, filtered);
    if (vv_scope_is_single(s))
        return;
    if (q->base_look) {
        vv_snapshot_json(j, "base_snapshot", q->base_look);
    }
    if (s->compares) {
        side_evidence_json(j, "base_evidence", &s->sides[VV_SIDE_BASE]);
        side_evidence_json(j, "head_evidence", &s->sides[VV_SIDE_HEAD]);
    }
    vv_json_kv_obj(j, "scope");
    vv_json_kv_cstr(j, "aligned_by", s->one_engine ? "context" : "path_id");
    side_ids_json(j, "executions", s, VV_SIDE_HEAD);
    side_ids_json(j, "base", s, VV_SIDE_BASE);
    vv_json_end_obj(j);
}

void vv_scope_totals_json(vv_json *j, const vv_scope *s)
{
    vv_json_key(j, "totals");
    vv_totals_json(j, s->known[VV_SIDE_HEAD], &s->totals[VV_SIDE_HEAD]);
    if (s->compares) {
        vv_json_key(j, "base_totals");
        vv_totals_json(j, s->known[VV_SIDE_BASE], &s->totals[VV_SIDE_BASE]);
    }
}
