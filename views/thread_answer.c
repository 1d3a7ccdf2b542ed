#include "config.h"

#include "views/threads.h"

typedef struct {
    vv_listing l;
    vv_lane_list list;
} state;

static void open_list(vv_listing *l, vv_json *j)
{
    const state *s = (const state *)l;
    vv_head_json(j, l->look, &l->loaded.digest->evidence, s->list.page.more, NULL);
    vv_execution_id_json(j, &l->found);
    if (vv_json_kv_opt_obj(j, "population", s->list.known)) {
        vv_json_kv_u64(j, "threads", s->list.lanes);
        vv_json_kv_u64(j, "with_start", s->list.started);
        vv_json_kv_u64(j, "with_end", s->list.ended);
        vv_json_end_obj(j);
    }
    vv_json_kv_arr(j, "items");
}

/* What spawned it. The function is known where the spawning call was recorded. */
static void spawn_json(vv_json *j, const vv_profile *p, const vv_thread_start *b)
{
    uint32_t at = b && b->has_spawn_call ? vv_map_find(&p->fold->span_map, b->spawn_call.b) : VV_MAP_NONE;
    const vv_fold_span *spawner = at == VV_MAP_NONE || !p->fold->spans[at].has_start ? NULL : &p->fold->spans[at];
    vv_thread_id_json(j, "parent_thread_id", b && b->has_parent ? &b->parent : NULL);
    vv_call_id_json(j, "spawn_call_id", b && b->has_spawn_call ? &b->spawn_call : NULL);
    vv_function_id_json(j, p, "spawn_", spawner, spawner ? spawner->start.function_id : 0);
    vv_site_json(j, p, "spawn_site", b && b->has_spawn_site ? &b->spawn_site : NULL);
}

static void life_json(vv_json *j, const vv_found *f, const vv_thread_start *b, const vv_thread_end *e)
{
    vv_number_json(j, "started_ns", b, b ? b->started_ns : 0);
    vv_number_json(j, "ended_ns", e, e ? e->ended_ns : 0);
    vv_clock_json(j, "started_at", f->stream, b, b ? b->started_ns : 0);
    vv_clock_json(j, "ended_at", f->stream, e, e ? e->ended_ns : 0);
    vv_json_kv_cstr(j, "end_status", e ? vv_thread_words[e->status] : NULL);
    vv_json_kv_cstr(j, "state", vv_life_word(vv_life_of(f->execution, b, e)));
}

static void lane_row(vv_listing *l, vv_json *j, size_t at)
{
    const state *s = (const state *)l;
    const vv_lane *lane = &s->list.all[s->list.page.items[at].row];
    const vv_fold_thread *r = lane->record;
    const vv_thread_start *b = r && r->has_start ? &r->start : NULL;
    char shorter[VV_PART_ID];
    vv_thread_short(shorter, &l->found.execution->root, &lane->thread);
    vv_json_obj(j);
    vv_thread_id_json(j, "thread_id", &lane->thread);
    vv_short_json(j, "short_id", shorter);
    vv_json_kv_cstr(j, "kind", b ? (b->kind ? "spawn" : "root") : NULL);
    vv_json_kv_str_or_null(j, "name", b && b->name.n ? &b->name : NULL);
    spawn_json(j, l->loaded.profile, b);
    life_json(j, &l->found, b, r && r->has_end ? &r->end : NULL);
    vv_number_json(j, "first_recorded_ns", lane->has_first, lane->first_ns);
    vv_number_json(j, "last_recorded_ns", lane->has_first, lane->last_ns);
    vv_json_kv_u64(j, "calls_retained", lane->spans);
    vv_json_kv_u64(j, "errors_captured", lane->errors);
    vv_json_kv_arr(j, "issues");
    for (unsigned i = 0; i < VV_LANE_ISSUES; i++)
        if (lane->issues & 1u << i)
            vv_json_cstr(j, vv_lane_issue_words[i]);
    vv_json_end_arr(j);
    vv_json_end_obj(j);
}

static void free_state(vv_listing *l)
{
    vv_lane_list_done(&((state *)l)->list);
}

vv_code vv_answer_threads(vv_answer *a, vv_query *q, vv_error *err)
{
    state *s = vv_listing_new(sizeof *s, free_state, q, err);
    if (!s)
        return VV_ERR_NOMEM;
    vv_code rc = vv_lane_list_read(&s->list, q, err);
    if (rc == VV_OK)
        rc = vv_listing_load(&s->l, q, err);
    if (rc == VV_OK)
        rc = vv_lane_list_make(&s->list, q, s->l.loaded.profile, err);
    return vv_listing_start_page(a, &s->l, rc, (vv_listing_part){.open = open_list, .row = lane_row}, &s->list.page);
}
