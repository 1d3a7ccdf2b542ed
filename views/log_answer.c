#include "config.h"

#include "views/logs.h"

typedef struct {
    vv_listing l;
    vv_log_list list;
} state;

static void population_json(vv_json *j, const vv_log_population *n)
{
    if (!vv_json_kv_opt_obj(j, "population", n->known))
        return;
    vv_json_kv_u64(j, "logs", n->logs);
    vv_json_kv_u64(j, "matched", n->matched);
    vv_json_kv_arr(j, "levels");
    for (size_t i = 0; i < n->level_count; i++) {
        vv_json_obj(j);
        vv_json_kv_str_or_null(j, "level", n->levels[i].present ? &n->levels[i].name : NULL);
        vv_json_kv_u64(j, "logs", n->levels[i].logs);
        vv_json_end_obj(j);
    }
    vv_json_end_arr(j);
    vv_json_kv_u64(j, "other_levels", n->other_levels);
    vv_json_end_obj(j);
}

static void open_list(vv_listing *l, vv_json *j)
{
    const state *s = (const state *)l;
    vv_head_json(j, l->look, &l->loaded.digest->evidence, s->list.page.more, NULL);
    vv_execution_id_json(j, &l->found);
    population_json(j, &s->list.population);
    vv_json_kv_arr(j, "items");
}

static void time_json(vv_json *j, const vv_log_event *e)
{
    char text[VV_TIME_TEXT];
    uint64_t ns;
    bool known = vv_log_time(e, &ns);
    if (known)
        vv_time_text(text, ns);
    vv_json_kv_u64(j, "timestamp_ms", e->timestamp_ms);
    vv_json_kv_cstr(j, "at", known ? text : NULL);
}

static void call_json(vv_json *j, const vv_found *f, const vv_profile *p, const vv_log_event *e)
{
    char shorter[VV_PART_ID] = "";
    vv_thread_ref thread;
    uint32_t at = e->has_call ? vv_map_find(&p->fold->span_map, e->call.b) : VV_MAP_NONE;
    const vv_fold_span *s = at == VV_MAP_NONE || !p->fold->spans[at].has_start ? NULL : &p->fold->spans[at];
    if (e->has_call) {
        thread = vv_call_thread(&e->call);
        vv_call_short(shorter, &f->execution->root, &e->call);
    }
    vv_call_id_json(j, "call_id", e->has_call ? &e->call : NULL);
    vv_short_json(j, "call_short_id", shorter);
    vv_json_kv_bool(j, "call_retained", at != VV_MAP_NONE);
    vv_thread_id_json(j, "thread_id", e->has_call ? &thread : NULL);
    vv_function_id_json(j, p, "", s, s ? s->start.function_id : 0);
}

static void row_json(vv_listing *l, vv_json *j, size_t at)
{
    const vv_profile *p = l->loaded.profile;
    uint32_t row = ((const state *)l)->list.page.items[at].row;
    const vv_log_event *e = &p->fold->logs[row];
    const vv_value_view context = vv_value_of(&e->context), data = vv_value_of(&e->data);
    vv_json_obj(j);
    vv_json_kv_u64(j, "log", row);
    time_json(j, e);
    vv_json_kv_opt_str(j, "level", &e->level);
    vv_json_kv_opt_str(j, "event_name", &e->event);
    vv_json_kv_opt_str(j, "message", &e->message);
    vv_json_kv_opt_str(j, "distinct_id", &e->distinct_id);
    call_json(j, &l->found, p, e);
    vv_site_json(j, p, "site", e->has_site ? &e->site : NULL);
    vv_number_json(j, "site_column", e->has_column, e->column);
    vv_value_view_json(j, "context", &context);
    vv_value_view_json(j, "data", &data);
    vv_json_end_obj(j);
}

static void free_state(vv_listing *l)
{
    vv_log_list_done(&((state *)l)->list);
}

vv_code vv_answer_logs(vv_answer *a, vv_query *q, vv_error *err)
{
    state *s = vv_listing_new(sizeof *s, free_state, q, err);
    if (!s)
        return VV_ERR_NOMEM;
    vv_code rc = vv_log_list_read(&s->list, q, err);
    if (rc == VV_OK)
        rc = vv_listing_load(&s->l, q, err);
    if (rc == VV_OK)
        rc = vv_log_list_make(&s->list, q, s->l.loaded.profile, err);
    return vv_listing_start_page(a, &s->l, rc, (vv_listing_part){.open = open_list, .row = row_json}, &s->list.page);
}
