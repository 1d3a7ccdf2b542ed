#include "config.h"

#include <stdlib.h>

#include "base/grow.h"
#include "views/compare.h"
#include "views/spans.h"

vv_parent vv_span_parent(const vv_fold *f, const vv_fold_span *s, uint32_t *ret_at)
{
    *ret_at = VV_NONE;
    if (!s->has_start)
        return VV_PARENT_UNKNOWN;
    if (!s->start.has_parent)
        return VV_PARENT_NONE;
    uint32_t at = vv_map_find(&f->span_map, s->start.parent.b);
    if (at == VV_MAP_NONE)
        return VV_PARENT_NOT_RETAINED;
    *ret_at = at;
    return VV_PARENT_RETAINED;
}

static void words_json(vv_json *j, const char *key, bool known, uint8_t bits, const char *const *words, unsigned n)
{
    vv_json_key(j, key);
    if (!known) {
        vv_json_null(j);
        return;
    }
    vv_json_arr(j);
    for (unsigned i = 0; i < n; i++)
        if (bits & 1u << i)
            vv_json_cstr(j, words[i]);
    vv_json_end_arr(j);
}

static void runtime_id_json(vv_json *j, const char *key, const vv_runtime_id *id)
{
    char text[VV_RUNTIME_TEXT];
    if (id)
        vv_runtime_text(text, id);
    vv_json_kv_cstr(j, key, id ? text : NULL);
}

static void identity_json(vv_json *j, const vv_found *f, const vv_profile *p, const vv_fold_span *s)
{
    static const char *const parents[] = {"none", "retained", "not_retained", "unknown"};
    const vv_span_start *b = s->has_start ? &s->start : NULL;
    vv_thread_ref own = vv_call_thread(&s->call);
    char shorter[VV_PART_ID];
    uint32_t at;
    vv_call_short(shorter, &f->execution->root, &s->call);
    vv_call_id_json(j, "call_id", &s->call);
    vv_short_json(j, "short_id", shorter);
    vv_call_id_json(j, "parent_call_id", b && b->has_parent ? &b->parent : NULL);
    vv_json_kv_cstr(j, "parent_state", parents[vv_span_parent(p->fold, s, &at)]);
    vv_thread_id_json(j, "thread_id", &own);
}

static void start_json(vv_json *j, const vv_profile *p, const vv_fold_span *s)
{
    static const char *const roles[] = {"input", "output", "error"};
    const vv_span_start *b = s->has_start ? &s->start : NULL;
    const vv_function *d = b ? vv_function_of(p, b->function_id) : NULL;
    vv_context_ref_json(j, "call_path_id", "call_path_overflow_reason", b ? &b->context : NULL);
    vv_function_id_json(j, p, "", b, b ? b->function_id : 0);
    vv_json_kv_cstr(j, "kind", d ? vv_fn_kind_name(d->kind) : NULL);
    vv_json_kv_cstr(j, "edge_kind", b ? vv_node_edge_name(b->edge) : NULL);
    vv_site_json(j, p, "call_site", b && b->has_site ? &b->site : NULL);
    words_json(j, "selection_reasons", b, b ? b->reasons : 0, vv_reason_words, VV_ARRAY_LEN(vv_reason_words));
    words_json(j, "roles", b, b ? b->roles : 0, roles, VV_ARRAY_LEN(roles));
    runtime_id_json(j, "runtime_id", s->has_runtime_id ? &s->runtime_id : NULL);
}

static void life_json(vv_json *j, const vv_found *f, const vv_fold_span *s)
{
    uint64_t started = s->has_start ? s->start.started_ns : 0, ended = s->has_end ? s->end.ended_ns : 0;
    vv_number_json(j, "started_ns", s->has_start, started);
    vv_number_json(j, "ended_ns", s->has_end, ended);
    vv_number_json(j, "duration_ns", s->has_end, s->has_end ? s->end.inclusive_ns : 0);
    vv_clock_json(j, "started_at", f->stream, s->has_start, started);
    vv_clock_json(j, "ended_at", f->stream, s->has_end, ended);
    vv_json_kv_cstr(j, "status", s->has_end ? vv_call_words[s->end.status] : NULL);
    vv_json_kv_cstr(j, "state", vv_life_word(vv_life_of(f->execution, s->has_start, s->has_end)));
}

static void values_json(vv_json *j, const vv_found *f, const vv_profile *p, const vv_fold_span *s)
{
    const vv_value_view input = vv_span_input(f->execution, s), output = vv_span_output(f->execution, s),
                        error = vv_span_error(f->execution, p->fold, s);
    char text[VV_CAPTURE_TEXT];
    bool has_capture = s->has_terminal && !s->terminal.lost;
    if (has_capture)
        vv_capture_text(text, &s->terminal.capture);
    vv_value_view_json(j, "args", &input);
    vv_value_view_json(j, "output", &output);
    vv_value_view_json(j, "error", &error);
    vv_json_kv_cstr(j, "error_id", has_capture ? text : NULL);
    vv_json_kv_cstr(j, "error_lost_reason",
                    s->has_terminal && s->terminal.lost ? vv_capture_loss_word(s->terminal.loss) : NULL);
}

void vv_span_fields_json(vv_json *j, const vv_found *f, const vv_profile *p, const vv_fold_span *s)
{
    identity_json(j, f, p, s);
    start_json(j, p, s);
    life_json(j, f, s);
    values_json(j, f, p, s);
}

void vv_span_brief_json(vv_json *j, const vv_found *f, const vv_profile *p, const vv_fold_span *s)
{
    char shorter[VV_PART_ID];
    vv_call_short(shorter, &f->execution->root, &s->call);
    vv_call_id_json(j, "call_id", &s->call);
    vv_short_json(j, "short_id", shorter);
    vv_function_id_json(j, p, "", s->has_start, s->has_start ? s->start.function_id : 0);
    life_json(j, f, s);
}

/* The list. */

typedef struct {
    vv_listing l;
    vv_span_list list;
} list_state;

static void population_json(vv_json *j, const vv_span_population *n)
{
    if (!vv_json_kv_opt_obj(j, "population", n->known))
        return;
    vv_number_json(j, "calls", n->calls_known, n->calls);
    vv_number_json(j, "selected", n->calls_known, n->selected);
    vv_json_kv_u64(j, "retained", n->retained);
    vv_json_kv_u64(j, "matched", n->matched);
    vv_json_kv_u64(j, "without_start", n->without_start);
    vv_json_kv_u64(j, "without_end", n->without_end);
    vv_json_end_obj(j);
}

static void open_list(vv_listing *l, vv_json *j)
{
    list_state *s = (list_state *)l;
    vv_head_json(j, l->look, &l->loaded.digest->evidence, s->list.page.more, NULL);
    vv_execution_id_json(j, &l->found);
    population_json(j, &s->list.population);
    vv_json_kv_arr(j, "items");
}

static void list_row(vv_listing *l, vv_json *j, size_t at)
{
    list_state *s = (list_state *)l;
    const vv_profile *p = l->loaded.profile;
    vv_json_obj(j);
    vv_span_fields_json(j, &l->found, p, &p->fold->spans[s->list.page.items[at].row]);
    vv_json_end_obj(j);
}

static void free_list(vv_listing *l)
{
    vv_span_list_done(&((list_state *)l)->list);
}

vv_code vv_answer_spans(vv_answer *a, vv_query *q, vv_error *err)
{
    if (vv_query_value(q, "base"))
        return vv_compare_spans(q, vv_comparison_answer, a, err);
    list_state *s = vv_listing_new(sizeof *s, free_list, q, err);
    if (!s)
        return VV_ERR_NOMEM;
    vv_code rc = vv_span_list_read(&s->list, q, err);
    if (rc == VV_OK)
        rc = vv_listing_load(&s->l, q, err);
    if (rc == VV_OK)
        rc = vv_span_list_make(&s->list, q, s->l.loaded.profile, err);
    return vv_listing_start_page(a, &s->l, rc, (vv_listing_part){.open = open_list, .row = list_row}, &s->list.page);
}

/* One span. */

vv_code vv_span_find(vv_query *q, const vv_profile *p, uint32_t *ret_at, vv_error *err)
{
    vv_call_ref call;
    if (!vv_call_named(q->sub, &p->fold->root, &call))
        return vv_query_fail(q, "call", err, "is not a call's id: use baml_call_1_..., or thread.call such as 1.17");
    q->parameter = "call";
    if (p->fold->failed)
        return vv_fail(err, VV_ERR_NOTFOUND, "the data of that execution is damaged: none of its calls can be shown");
    *ret_at = vv_map_find(&p->fold->span_map, call.b);
    if (*ret_at == VV_MAP_NONE)
        return vv_fail(err, VV_ERR_NOTFOUND,
                       "no call of that id was recorded on its own; one that was not selected is only counted");
    q->parameter = NULL;
    return VV_OK;
}

vv_code vv_span_parents(const vv_fold *f, uint32_t at, uint32_t **ret, size_t *ret_count, bool *ret_complete,
                        vv_error *err)
{
    uint32_t *list = NULL, up;
    size_t n = 0, cap = 0;
    vv_parent state;
    /* A chain in a circle, which no honest store holds, ends once it has named every span. */
    while ((state = vv_span_parent(f, &f->spans[at], &up)) == VV_PARENT_RETAINED && n < f->span_count) {
        if (!vv_grow(&list, &cap, n, sizeof *list)) {
            free(list);
            return vv_fail(err, VV_ERR_NOMEM, "no memory for the parents of a call");
        }
        list[n++] = at = up;
    }
    *ret = list;
    *ret_count = n;
    *ret_complete = state == VV_PARENT_NONE;
    return VV_OK;
}

typedef struct {
    uint32_t ordinal;
    size_t at; /* in the order recorded */
    vv_runtime_id id;
} annotation;

typedef struct {
    vv_listing l;
    const vv_fold_span *span;
    uint32_t node;
    vv_u128 errors_below;
    uint32_t *parents; /* nearest first */
    size_t parent_count;
    bool parents_complete;
    annotation *ids;
    size_t id_count;
    uint64_t children, in_context; /* spans that have it for their parent; spans of its context */
} one_state;

static int by_ordinal(const void *a, const void *b)
{
    const annotation *x = a, *y = b;
    if (x->ordinal != y->ordinal)
        return x->ordinal > y->ordinal ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

static vv_code find_runtime_ids(one_state *s, const vv_fold *f, vv_error *err)
{
    const vv_span_start *b = &s->span->start;
    bool has_first = s->span->has_start && b->has_runtime_id;
    size_t n = has_first;
    for (size_t i = 0; i < f->runtime_id_count; i++)
        n += memcmp(&f->runtime_ids[i].call, &s->span->call, sizeof s->span->call) == 0;
    s->ids = malloc((n + 1) * sizeof *s->ids);
    if (!s->ids)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for runtime ids");
    if (has_first)
        s->ids[s->id_count++] = (annotation){b->annotation_ordinal, 0, b->runtime_id};
    for (size_t i = 0; i < f->runtime_id_count; i++)
        if (memcmp(&f->runtime_ids[i].call, &s->span->call, sizeof s->span->call) == 0)
            s->ids[s->id_count++] = (annotation){f->runtime_ids[i].ordinal, i + 1, f->runtime_ids[i].id};
    qsort(s->ids, s->id_count, sizeof *s->ids, by_ordinal);
    return VV_OK;
}

vv_code vv_errors_below(const vv_profile *p, uint32_t node, vv_u128 *ret, vv_error *err)
{
    uint8_t *below = calloc((size_t)p->tree.node_count + 1, 1);
    if (!below)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the contexts of an execution");
    *ret = 0;
    for (uint32_t k = 0; k < p->tree.node_count; k++) { /* parents come before their children */
        uint32_t i = p->tree.order[k], up = p->tree.nodes[i].parent;
        below[i] = up != VV_NONE && (up == node || below[up]);
        if (below[i])
            *ret += p->tree.nodes[i].counters->error;
    }
    free(below);
    return VV_OK;
}

void vv_context_totals_json(vv_json *j, const vv_profile *p, uint32_t node, vv_u128 errors_below)
{
    if (!vv_json_kv_opt_obj(j, "context", node != VV_NONE))
        return;
    const vv_node *n = &p->tree.nodes[node];
    const vv_counters *c = n->counters;
    bool overflow = n->flags & VV_NODE_OVERFLOW;
    vv_json_key(j, "id");
    if (overflow) {
        char id[VV_OVERFLOW_ID];
        vv_node_overflow_id(&p->tree.nodes[node], id);
        vv_json_cstr(j, id);
    } else {
        vv_json_hex(j, n->key, sizeof(vv_context_key));
    }
    vv_json_kv_u64(j, "calls", c->started);
    vv_json_kv_u64(j, "selected", c->selected);
    vv_json_kv_i128(j, "open", vv_counters_open(c));
    vv_json_kv_u64(j, "errors", c->error);
    vv_json_kv_u64(j, "cancelled", c->cancelled);
    vv_ratio_json(j, "failure_rate", !overflow && vv_counts_whole(p->fold), c->error, c->started);
    vv_json_kv_u128(j, "errors_below", errors_below);
    vv_json_kv_u128(j, "inclusive_ns", c->inclusive_ns);
    vv_json_kv_u128(j, "self_ns", n->self_ns);
    vv_json_kv_u128(j, "await_ns", c->await_ns);
    vv_json_kv_bool(j, "timing_complete", !(n->flags & VV_NODE_TIMING_INCOMPLETE));
    vv_json_end_obj(j);
}

static void error_link_json(vv_json *j, const vv_fold *f, const vv_fold_span *s)
{
    uint32_t at = s->has_terminal && !s->terminal.lost ? vv_map_find(&f->error_map, s->terminal.capture.b)
                                                       : VV_MAP_NONE;
    if (!vv_json_kv_opt_obj(j, "error", at != VV_MAP_NONE))
        return;
    const vv_error_capture *c = &f->errors[at];
    vv_json_kv_cstr(j, "kind", vv_capture_kinds[c->kind]);
    vv_json_kv_cstr(j, "source", vv_capture_sources[c->source]);
    vv_call_id_json(j, "throw_call_id", &c->throw_call);
    vv_json_kv_bool(j, "thrown_here", memcmp(&c->throw_call, &s->call, sizeof s->call) == 0);
    vv_json_end_obj(j);
}

static void open_parents(vv_listing *l, vv_json *j)
{
    const one_state *s = (const one_state *)l;
    const vv_profile *p = l->loaded.profile;
    const vv_value_view input = vv_span_input(l->found.execution, s->span),
                        output = vv_span_output(l->found.execution, s->span),
                        error = vv_span_error(l->found.execution, p->fold, s->span);
    vv_head_json(j, l->look, &l->loaded.digest->evidence, false, NULL);
    vv_execution_id_json(j, &l->found);
    vv_json_kv_obj(j, "span");
    vv_span_fields_json(j, &l->found, p, s->span);
    vv_value_object_json(j, "args_object", &input);
    vv_value_object_json(j, "output_object", &output);
    vv_value_object_json(j, "error_object", &error);
    error_link_json(j, p->fold, s->span);
    vv_json_end_obj(j);
    vv_context_totals_json(j, p, s->node, s->errors_below);
    vv_number_json(j, "retained_in_context", s->node != VV_NONE, s->in_context);
    vv_json_kv_u64(j, "children_retained", s->children);
    vv_json_kv_bool(j, "parents_complete", s->parents_complete);
    vv_json_kv_arr(j, "parents");
}

/* The outermost one first. */
static void parent_row(vv_listing *l, vv_json *j, size_t at)
{
    const one_state *s = (const one_state *)l;
    const vv_profile *p = l->loaded.profile;
    vv_json_obj(j);
    vv_span_brief_json(j, &l->found, p, &p->fold->spans[s->parents[s->parent_count - 1 - at]]);
    vv_json_end_obj(j);
}

static void open_ids(vv_listing *l, vv_json *j)
{
    (void)l;
    vv_json_kv_arr(j, "runtime_ids");
}

static void id_row(vv_listing *l, vv_json *j, size_t at)
{
    char text[VV_RUNTIME_TEXT];
    vv_runtime_text(text, &((one_state *)l)->ids[at].id);
    vv_json_cstr(j, text);
}

static void free_one(vv_listing *l)
{
    one_state *s = (one_state *)l;
    free(s->parents);
    free(s->ids);
}

static void count_around(one_state *s, const vv_fold *f)
{
    for (size_t i = 0; i < f->span_count; i++) {
        const vv_fold_span *other = &f->spans[i];
        if (!other->has_start)
            continue;
        s->children += other->start.has_parent && memcmp(&other->start.parent, &s->span->call, sizeof other->call) == 0;
        s->in_context += s->span->has_start && vv_same_context(&other->start.context, &s->span->start.context);
    }
}

static vv_code prepare(one_state *s, vv_query *q, vv_error *err)
{
    uint32_t at = 0;
    vv_code rc = vv_query_check(q, NULL, err);
    if (rc == VV_OK)
        rc = vv_listing_load(&s->l, q, err);
    const vv_profile *p = s->l.loaded.profile;
    if (rc == VV_OK)
        rc = vv_span_find(q, p, &at, err);
    if (rc != VV_OK)
        return rc;
    s->span = &p->fold->spans[at];
    s->node = s->span->has_start ? vv_node_of(p, &s->span->start.context) : VV_NONE;
    rc = vv_span_parents(p->fold, at, &s->parents, &s->parent_count, &s->parents_complete, err);
    if (rc == VV_OK)
        rc = find_runtime_ids(s, p->fold, err);
    if (rc == VV_OK && s->node != VV_NONE)
        rc = vv_errors_below(p, s->node, &s->errors_below, err);
    count_around(s, p->fold);
    return rc;
}

vv_code vv_answer_span(vv_answer *a, vv_query *q, vv_error *err)
{
    one_state *s = vv_listing_new(sizeof *s, free_one, q, err);
    if (!s)
        return VV_ERR_NOMEM;
    vv_code rc = prepare(s, q, err);
    s->l.parts[0] = (vv_listing_part){open_parents, parent_row, s->parent_count};
    s->l.parts[1] = (vv_listing_part){open_ids, id_row, s->id_count};
    return vv_listing_start(a, &s->l, rc);
}
