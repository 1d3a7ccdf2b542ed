#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "views/context.h"
#include "views/functions.h"
#include "views/spans.h"

typedef struct {
    vv_listing l;
    vv_context_view view;
} state;

static const vv_site *site_of(const vv_profile *p, uint32_t node)
{
    const vv_fold_context *c = vv_profile_context(p, node);
    return c && c->defined && c->tuple.has_site ? &c->tuple.site : NULL;
}

static void id_json(vv_json *j, const vv_profile *p, uint32_t node)
{
    char id[VV_OVERFLOW_ID];
    vv_json_key(j, "id");
    if (p->tree.nodes[node].flags & VV_NODE_OVERFLOW) {
        vv_node_overflow_id(&p->tree.nodes[node], id);
        vv_json_cstr(j, id);
    } else {
        vv_json_hex(j, p->tree.nodes[node].key, sizeof(vv_context_key));
    }
}

/* What a row of the chain and of the children says. */
static void row_json(vv_json *j, const vv_profile *p, uint32_t node)
{
    const vv_node *n = &p->tree.nodes[node];
    bool known = n->function != VV_NONE;
    vv_json_obj(j);
    id_json(j, p, node);
    vv_function_id_json(j, p, "", known, known ? p->tree.functions[n->function].id : 0);
    vv_json_kv_cstr(j, "edge_kind", vv_node_edge_name(n->edge));
    vv_site_json(j, p, "call_site", site_of(p, node));
    vv_json_kv_u64(j, "calls", n->counters->started);
    vv_json_kv_i128(j, "open", vv_counters_open(n->counters));
    vv_json_kv_u64(j, "errors", n->counters->error);
    vv_json_kv_u128(j, "inclusive_ns", n->counters->inclusive_ns);
    vv_json_kv_u128(j, "self_ns", n->self_ns);
    vv_json_kv_u128(j, "await_ns", n->counters->await_ns);
    vv_json_kv_bool(j, "timing_complete", !(n->flags & VV_NODE_TIMING_INCOMPLETE));
    vv_json_end_obj(j);
}

static void flags_json(vv_json *j, uint8_t flags)
{
    static const struct {
        uint8_t bit;
        const char *word;
    } words[] = {{VV_NODE_OPEN, "open"}, {VV_NODE_OVERFLOW, "overflow"}, {VV_NODE_ORPHAN, "parent_missing"},
                 {VV_NODE_UNDEFINED, "undefined"}, {VV_NODE_TIMING_INCOMPLETE, "timing_incomplete"}};
    vv_json_kv_arr(j, "flags");
    for (size_t i = 0; i < VV_ARRAY_LEN(words); i++)
        if (flags & words[i].bit)
            vv_json_cstr(j, words[i].word);
    vv_json_end_arr(j);
}

static void counters_json(vv_json *j, const state *s, const vv_profile *p)
{
    const vv_context_view *v = &s->view;
    const vv_node *n = &p->tree.nodes[v->node];
    const vv_counters *c = n->counters;
    const struct {
        const char *key;
        vv_u128 value;
    } fields[] = {{"calls", c->started}, {"selected", c->selected}, {"completed_ok", c->ok},
                  {"completed_error", c->error}, {"completed_cancelled", c->cancelled}, {"completed_exit", c->exited},
                  {"inclusive_ns", c->inclusive_ns}, {"direct_child_ns", c->direct_child_ns}, {"await_ns", c->await_ns},
                  {"await_count", c->await_count}, {"self_ns", n->self_ns},
                  {"await_subtree_ns", v->await_subtree_ns}, {"errors", c->error}, {"errors_below", v->errors_below},
                  {"errors_captured", v->captures}, {"errors_captured_fresh", v->fresh}};
    for (size_t i = 0; i < VV_ARRAY_LEN(fields); i++)
        vv_json_kv_u128(j, fields[i].key, fields[i].value);
    vv_json_kv_i128(j, "open", vv_counters_open(c));
    vv_ratio_json(j, "failure_rate", !(n->flags & VV_NODE_OVERFLOW) && vv_counts_whole(p->fold), c->error, c->started);
    vv_json_kv_bool(j, "timing_complete", !(n->flags & VV_NODE_TIMING_INCOMPLETE));
    flags_json(j, n->flags);
}

static void context_json(vv_json *j, const state *s, const vv_profile *p)
{
    const vv_context_view *v = &s->view;
    const vv_node *n = &p->tree.nodes[v->node];
    vv_json_kv_obj(j, "context");
    id_json(j, p, v->node);
    vv_json_kv_opt_hex(j, "path_id", v->has_path ? v->path.b : NULL, sizeof v->path.b);
    if (vv_json_kv_opt_obj(j, "function", n->function != VV_NONE)) {
        vv_function_fields_json(j, &p->tree.functions[n->function]);
        vv_json_end_obj(j);
    }
    vv_json_kv_cstr(j, "edge_kind", vv_node_edge_name(n->edge));
    vv_site_json(j, p, "call_site", site_of(p, v->node));
    counters_json(j, s, p);
    vv_json_end_obj(j);
}

static void exemplars_json(vv_json *j, const state *s, const vv_profile *p)
{
    vv_json_kv_obj(j, "exemplars");
    for (unsigned e = 0; e < VV_EXEMPLARS; e++)
        if (vv_json_kv_opt_obj(j, vv_exemplar_words[e], s->view.has_exemplar[e])) {
            vv_span_brief_json(j, &s->l.found, p, &p->fold->spans[s->view.exemplars[e]]);
            vv_json_end_obj(j);
        }
    vv_json_end_obj(j);
}

static void coverage_json(vv_json *j, const state *s, const vv_profile *p)
{
    const vv_context_view *v = &s->view;
    const vv_counters *c = p->tree.nodes[v->node].counters;
    bool whole = vv_counts_whole(p->fold);
    vv_json_kv_obj(j, "coverage");
    vv_json_kv_u64(j, "calls", c->started);
    vv_json_kv_u64(j, "selected", c->selected);
    vv_json_kv_u64(j, "retained", v->retained);
    vv_json_kv_u64(j, "ended", v->ended);
    vv_ratio_json(j, "of_selected", whole, v->retained, c->selected);
    vv_ratio_json(j, "of_calls", whole, v->retained, c->started);
    vv_json_end_obj(j);
}

static void durations_json(vv_json *j, const state *s, const vv_profile *p)
{
    const vv_context_view *v = &s->view;
    char text[64];
    bool known = v->ended > 0;
    snprintf(text, sizeof text, "sample of %" PRIu64, v->ended);
    vv_json_kv_obj(j, "durations");
    vv_json_kv_cstr(j, "label", text);
    vv_json_kv_u64(j, "sample", v->ended);
    vv_json_kv_u64(j, "of_calls", p->tree.nodes[v->node].counters->started);
    vv_number_json(j, "min_ns", known, v->min_ns);
    for (unsigned i = 0; i < VV_PERCENTILES; i++) {
        snprintf(text, sizeof text, "p%u_ns", vv_percentiles[i]);
        vv_number_json(j, text, known, v->percentiles[i]);
    }
    vv_number_json(j, "max_ns", known, v->max_ns);
    vv_json_end_obj(j);
}

static void open_chain(vv_listing *l, vv_json *j)
{
    const state *s = (const state *)l;
    const vv_profile *p = l->loaded.profile;
    char short_id[VV_SHORT_ID];
    vv_short_id(short_id, &l->found.execution->root);
    vv_head_json(j, l->look, &l->loaded.digest->evidence, s->view.page.more, NULL);
    vv_execution_id_json(j, &l->found);
    vv_json_kv_cstr(j, "execution_short_id", short_id);
    context_json(j, s, p);
    exemplars_json(j, s, p);
    coverage_json(j, s, p);
    durations_json(j, s, p);
    vv_json_kv_bool(j, "chain_complete", s->view.chain_complete);
    vv_json_kv_arr(j, "chain");
}

static void chain_row(vv_listing *l, vv_json *j, size_t at)
{
    row_json(j, l->loaded.profile, ((const state *)l)->view.chain[at]);
}

static void open_children(vv_listing *l, vv_json *j)
{
    vv_json_kv_u64(j, "children_total", ((const state *)l)->view.children);
    vv_json_kv_arr(j, "children");
}

static void child_row(vv_listing *l, vv_json *j, size_t at)
{
    row_json(j, l->loaded.profile, ((const state *)l)->view.page.items[at].row);
}

static void close_all(vv_listing *l, vv_json *j)
{
    vv_page_next_json(j, &((const state *)l)->view.page);
    vv_json_end_obj(j);
}

static void free_view(vv_listing *l)
{
    vv_context_done(&((state *)l)->view);
}

vv_code vv_answer_context(vv_answer *a, vv_query *q, vv_error *err)
{
    state *s = vv_listing_new(sizeof *s, free_view, q, err);
    if (!s)
        return VV_ERR_NOMEM;
    vv_code rc = vv_context_read(&s->view, q, err);
    if (rc == VV_OK)
        rc = vv_context_find(&s->view, q, &s->l.found, err);
    if (rc == VV_OK)
        rc = vv_query_load(q, &s->l.found, &s->l.loaded, err);
    if (rc == VV_OK)
        rc = vv_context_make(&s->view, q, s->l.loaded.profile, err);
    s->l.parts[0] = (vv_listing_part){open_chain, chain_row, s->view.chain_count};
    s->l.parts[1] = (vv_listing_part){open_children, child_row, s->view.page.count};
    s->l.close = close_all;
    return vv_listing_start(a, &s->l, rc);
}
