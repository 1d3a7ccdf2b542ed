#include "config.h"

#include <stdlib.h>

#include "views/compare.h"
#include "views/errors.h"
#include "views/spans.h"

/* Of one row of the list: frames nearest to the throw, and calls that the error ended. */
enum { FRAMES_SHOWN = 64, TERMINALS_SHOWN = 100 };

typedef struct {
    vv_listing l;
    vv_error_list list;
    vv_stack_frame *frames; /* of one error: all of them */
    vv_stack stack;
    vv_u128 errors_below;
    bool counts_whole; /* as vv_counts_whole */
    bool has_before, has_after;
    vv_capture_id before, after; /* its neighbours in the list */
} state;

static const vv_error_capture *capture_at(const state *s, size_t item)
{
    return &s->l.loaded.profile->fold->errors[s->list.page.items[item].row];
}

static void population_json(vv_json *j, const vv_error_population *n)
{
    if (!vv_json_kv_opt_obj(j, "population", n->known))
        return;
    vv_json_kv_u64(j, "captures", n->captures);
    vv_json_kv_u64(j, "fresh", n->fresh);
    vv_json_kv_u64(j, "rethrow", n->rethrown);
    vv_json_kv_u128(j, "errored_calls", n->errored_calls);
    vv_number_json(j, "captures_lost", n->lost_known, n->lost);
    vv_json_kv_u64(j, "links_lost", n->links_lost);
    vv_json_kv_u64(j, "links_unresolved", n->links_unresolved);
    vv_json_end_obj(j);
}

static void failure_json(vv_json *j, const state *s, uint32_t node)
{
    const vv_counters *c = node == VV_NONE ? NULL : s->l.loaded.profile->tree.nodes[node].counters;
    vv_number_json(j, "context_calls", c, c ? c->started : 0);
    vv_number_json(j, "context_errors", c, c ? c->error : 0);
    vv_ratio_json(j, "failure_rate", c && s->counts_whole, c ? c->error : 0, c ? c->started : 0);
}

static void fields_json(vv_json *j, const state *s, const vv_error_capture *c, const vv_stack *stack)
{
    const vv_profile *p = s->l.loaded.profile;
    const vv_value_view value = vv_value_of(&c->value);
    vv_thread_ref thread = vv_call_thread(&c->throw_call);
    char text[VV_CAPTURE_TEXT], shorter[VV_PART_ID];
    vv_capture_text(text, &c->id);
    vv_capture_short(shorter, &s->l.found.execution->root, &c->id);
    vv_json_kv_cstr(j, "error_id", text);
    vv_short_json(j, "short_id", shorter);
    vv_json_kv_cstr(j, "kind", vv_capture_kinds[c->kind]);
    vv_json_kv_cstr(j, "source", vv_capture_sources[c->source]);
    vv_call_id_json(j, "throw_call_id", &c->throw_call);
    vv_json_kv_bool(j, "throw_call_retained",
                    vv_map_find(&p->fold->span_map, c->throw_call.b) != VV_MAP_NONE);
    vv_thread_id_json(j, "throw_thread_id", &thread);
    vv_context_ref_json(j, "throw_call_path_id", "throw_call_path_overflow_reason", &c->context);
    vv_function_id_json(j, p, "throw_", true, c->function_id);
    vv_site_json(j, p, "throw_site", c->has_site ? &c->site : NULL);
    vv_value_view_json(j, "value", &value);
    failure_json(j, s, stack->node);
    vv_json_kv_bool(j, "stack_complete", stack->complete);
    vv_json_kv_u64(j, "stack_frames", stack->frames);
}

/* The names alone, from the root to the throw: the last ones where there are many. */
static void names_json(vv_json *j, const vv_profile *p, const vv_error_capture *c, const vv_stack *stack)
{
    vv_stack_frame frames[FRAMES_SHOWN];
    size_t n = stack->frames < FRAMES_SHOWN ? stack->frames : FRAMES_SHOWN;
    vv_stack_frames(p, c, stack, n, frames);
    vv_json_kv_arr(j, "stack");
    for (size_t i = 0; i < n; i++) {
        char scratch[VV_FUNCTION_SCRATCH];
        if (frames[i].has_function)
            vv_json_str(j, vv_function_label(p, frames[i].function_id, scratch));
        else
            vv_json_null(j);
    }
    vv_json_end_arr(j);
    vv_json_kv_bool(j, "stack_truncated", n < stack->frames);
}

static void open_list(vv_listing *l, vv_json *j)
{
    const state *s = (const state *)l;
    vv_head_json(j, l->look, &l->loaded.digest->evidence, s->list.page.more, NULL);
    vv_execution_id_json(j, &l->found);
    population_json(j, &s->list.population);
    vv_json_kv_arr(j, "items");
}

static void list_row(vv_listing *l, vv_json *j, size_t at)
{
    const state *s = (const state *)l;
    const vv_profile *p = l->loaded.profile;
    const vv_error_capture *c = capture_at(s, at);
    vv_stack stack = vv_error_stack(&s->list, p, c);
    size_t n;
    const vv_terminal *ended = vv_error_terminals(&s->list, at, &n);
    vv_json_obj(j);
    fields_json(j, s, c, &stack);
    names_json(j, p, c, &stack);
    vv_json_kv_u64(j, "terminal_calls", n);
    vv_json_kv_arr(j, "terminal_call_ids");
    for (size_t i = 0; i < n && i < TERMINALS_SHOWN; i++) {
        char text[VV_CALL_TEXT];
        vv_call_text(text, &p->fold->spans[ended[i].span].call);
        vv_json_cstr(j, text);
    }
    vv_json_end_arr(j);
    vv_json_end_obj(j);
}

static void free_state(vv_listing *l)
{
    state *s = (state *)l;
    vv_error_list_done(&s->list);
    free(s->frames);
}

vv_code vv_answer_errors(vv_answer *a, vv_query *q, vv_error *err)
{
    if (vv_query_value(q, "base"))
        return vv_compare_errors(q, vv_comparison_answer, a, err);
    state *s = vv_listing_new(sizeof *s, free_state, q, err);
    if (!s)
        return VV_ERR_NOMEM;
    vv_code rc = vv_error_list_read(&s->list, q, err);
    if (rc == VV_OK)
        rc = vv_listing_load(&s->l, q, err);
    if (rc == VV_OK)
        rc = vv_error_list_make(&s->list, q, &s->l.found, &s->l.loaded, err);
    if (rc == VV_OK)
        s->counts_whole = vv_counts_whole(s->l.loaded.profile->fold);
    return vv_listing_start_page(a, &s->l, rc, (vv_listing_part){.open = open_list, .row = list_row}, &s->list.page);
}

/* One error. */

static void neighbour_json(vv_json *j, const char *key, bool has, const vv_capture_id *id)
{
    char text[VV_CAPTURE_TEXT];
    if (has)
        vv_capture_text(text, id);
    vv_json_kv_cstr(j, key, has ? text : NULL);
}

static void open_stack(vv_listing *l, vv_json *j)
{
    const state *s = (const state *)l;
    const vv_profile *p = l->loaded.profile;
    const vv_error_capture *c = capture_at(s, 0);
    const vv_value_view value = vv_value_of(&c->value);
    vv_head_json(j, l->look, &l->loaded.digest->evidence, false, NULL);
    vv_execution_id_json(j, &l->found);
    vv_json_kv_obj(j, "error");
    fields_json(j, s, c, &s->stack);
    vv_value_object_json(j, "value_object", &value);
    vv_json_end_obj(j);
    vv_context_totals_json(j, p, vv_node_of(p, &c->context), s->errors_below);
    neighbour_json(j, "previous", s->has_before, &s->before);
    neighbour_json(j, "following", s->has_after, &s->after);
    vv_json_kv_arr(j, "stack");
}

static void frame_row(vv_listing *l, vv_json *j, size_t at)
{
    const state *s = (const state *)l;
    const vv_profile *p = l->loaded.profile;
    const vv_stack_frame *f = &s->frames[at];
    bool known = f->node != VV_NONE;
    vv_json_obj(j);
    vv_function_id_json(j, p, "", f->has_function, f->function_id);
    vv_json_kv_opt_hex(j, "call_path_id", known ? p->tree.nodes[f->node].key : NULL, sizeof(vv_context_key));
    vv_json_kv_cstr(j, "edge_kind", known ? vv_node_edge_name(p->tree.nodes[f->node].edge) : NULL);
    vv_site_json(j, p, "site", f->site);
    vv_json_end_obj(j);
}

static void open_terminals(vv_listing *l, vv_json *j)
{
    (void)l;
    vv_json_kv_arr(j, "terminal_calls");
}

static void terminal_row(vv_listing *l, vv_json *j, size_t at)
{
    const state *s = (const state *)l;
    const vv_profile *p = l->loaded.profile;
    const vv_fold_span *span = &p->fold->spans[s->list.terminals[at].span];
    vv_json_obj(j);
    vv_span_brief_json(j, &l->found, p, span);
    vv_json_end_obj(j);
}

static void find_neighbours(state *s)
{
    const vv_fold *f = s->l.loaded.profile->fold;
    const vv_capture_id *own = &capture_at(s, 0)->id;
    for (size_t i = 0; i < f->error_count; i++) {
        const vv_capture_id *id = &f->errors[i].id;
        int c = memcmp(id, own, sizeof *id);
        if (c < 0 && (!s->has_before || memcmp(id, &s->before, sizeof *id) > 0)) {
            s->before = *id;
            s->has_before = true;
        }
        if (c > 0 && (!s->has_after || memcmp(id, &s->after, sizeof *id) < 0)) {
            s->after = *id;
            s->has_after = true;
        }
    }
}

static vv_code prepare(state *s, vv_query *q, vv_error *err)
{
    vv_code rc = vv_query_check(q, NULL, err);
    if (rc == VV_OK)
        rc = vv_listing_load(&s->l, q, err);
    const vv_profile *p = s->l.loaded.profile;
    if (rc == VV_OK)
        rc = vv_error_list_find(&s->list, q, p, err);
    if (rc != VV_OK)
        return rc;
    s->counts_whole = vv_counts_whole(p->fold);
    const vv_error_capture *c = capture_at(s, 0);
    uint32_t node = vv_node_of(p, &c->context);
    s->stack = vv_error_stack(&s->list, p, c);
    s->frames = calloc(s->stack.frames, sizeof *s->frames);
    if (!s->frames)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a stack");
    vv_stack_frames(p, c, &s->stack, s->stack.frames, s->frames);
    find_neighbours(s);
    return node == VV_NONE ? VV_OK : vv_errors_below(p, node, &s->errors_below, err);
}

vv_code vv_answer_error(vv_answer *a, vv_query *q, vv_error *err)
{
    state *s = vv_listing_new(sizeof *s, free_state, q, err);
    if (!s)
        return VV_ERR_NOMEM;
    vv_code rc = prepare(s, q, err);
    s->l.parts[0] = (vv_listing_part){open_stack, frame_row, s->stack.frames};
    s->l.parts[1] = (vv_listing_part){open_terminals, terminal_row, s->list.terminal_count};
    return vv_listing_start(a, &s->l, rc);
}
