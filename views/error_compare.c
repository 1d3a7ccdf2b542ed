#include "config.h"

#include <stdlib.h>

#include "base/grow.h"
#include "views/compare.h"
#include "views/errors.h"
#include "views/functions.h"

/* Errors of one kind and source that one function threw in one calling path. */
typedef struct {
    uint32_t node; /* VV_NONE: its context is not there */
    uint8_t kind, source;
    uint8_t function[32]; /* of the throw */
    vv_function_ref thrower;
    uint64_t captures[VV_SIDES], terminals[VV_SIDES];
} group;

typedef struct {
    uint8_t node[4], kind, source, function[32];
} identity;

typedef struct {
    vv_comparison c;
    vv_map map;
    group *groups;
    size_t cap;
    vv_arena texts;
    uint64_t captures[VV_SIDES], links_lost[VV_SIDES], links_unresolved[VV_SIDES];
    bool counts_whole[VV_SIDES]; /* in all executions of the side */
} state;

enum { TEXTS_MAX = 64 * 1024 * 1024 };

static vv_code no_memory(vv_error *err)
{
    return vv_fail(err, VV_ERR_NOMEM, "no memory for errors by calling path");
}

static vv_code find_group(state *s, const vv_loaded *x, const uint32_t *to, const vv_error_capture *e, group **ret,
                          vv_error *err)
{
    const vv_profile *p = x->profile;
    uint32_t node = vv_node_of(p, &e->context);
    group g = {.node = node == VV_NONE ? VV_NONE : to[node], .kind = e->kind, .source = e->source};
    /* The program is known where the context names the function, which is the rule. */
    g.thrower = (vv_function_ref){.id = e->function_id, .def = vv_function_of(p, e->function_id)};
    if (node != VV_NONE && p->tree.nodes[node].function != VV_NONE)
        g.thrower.program = p->tree.functions[p->tree.nodes[node].function].program;
    vv_function_ref_key(&g.thrower, g.function);
    identity id = {.kind = g.kind, .source = g.source};
    vv_put32(id.node, g.node);
    memcpy(id.function, g.function, sizeof id.function);
    bool fresh;
    uint32_t at = vv_map_put(&s->map, &id, &fresh);
    if (at == VV_MAP_NONE)
        return no_memory(err);
    if (!vv_grow(&s->groups, &s->cap, at, sizeof *s->groups))
        return no_memory(err);
    if (fresh) {
        if (g.thrower.def && !(g.thrower.def = vv_function_copy(&s->texts, g.thrower.def)))
            return no_memory(err);
        s->groups[at] = g;
    }
    *ret = &s->groups[at];
    return VV_OK;
}

/* How many retained spans each error ended. */
static void count_terminals(state *s, const vv_scope_item *item, const vv_fold *f, uint64_t *terminals)
{
    memset(terminals, 0, f->error_count * sizeof *terminals);
    for (size_t i = 0; i < f->span_count; i++) {
        const vv_fold_span *span = &f->spans[i];
        if (!span->has_terminal)
            continue;
        uint32_t at = span->terminal.lost ? VV_MAP_NONE : vv_map_find(&f->error_map, span->terminal.capture.b);
        if (at != VV_MAP_NONE)
            terminals[at]++;
        for (size_t side = 0; side < VV_SIDES; side++) {
            s->links_lost[side] += item->on[side] && span->terminal.lost;
            s->links_unresolved[side] += item->on[side] && !span->terminal.lost && at == VV_MAP_NONE;
        }
    }
}

static vv_code add_errors(void *cls, const vv_scope_item *item, const vv_loaded *x, const uint32_t *to, vv_error *err)
{
    state *s = cls;
    const vv_fold *f = x->profile->fold;
    for (size_t side = 0; side < VV_SIDES; side++)
        s->counts_whole[side] &= !item->on[side] || vv_counts_whole(f);
    if (f->failed)
        return VV_OK;
    uint64_t *terminals = malloc((f->error_count + 1) * sizeof *terminals);
    vv_code rc = terminals ? VV_OK : no_memory(err);
    if (terminals)
        count_terminals(s, item, f, terminals);
    for (size_t i = 0; i < f->error_count && rc == VV_OK; i++) {
        group *g = NULL;
        rc = find_group(s, x, to, &f->errors[i], &g, err);
        for (size_t side = 0; side < VV_SIDES && rc == VV_OK; side++)
            if (item->on[side]) {
                g->captures[side]++;
                g->terminals[side] += terminals[i];
                s->captures[side]++;
            }
    }
    free(terminals);
    return rc;
}

static void population_json(vv_json *j, const void *cls, vv_side side)
{
    const state *s = cls;
    vv_json_kv_u64(j, "captures", s->captures[side]);
    vv_json_kv_u128(j, "errored_calls", s->c.scope.totals[side].errors);
    vv_json_kv_u64(j, "links_lost", s->links_lost[side]);
    vv_json_kv_u64(j, "links_unresolved", s->links_unresolved[side]);
}

/* Calls and errors of the context on a side; false where they are not known. */
static bool context_numbers(const state *s, const group *g, vv_side side, uint64_t *calls, uint64_t *errors)
{
    *calls = *errors = 0;
    if (g->node == VV_NONE || !vv_scope_number_known(&s->c.scope, s->c.merged.on[g->node], side))
        return false;
    const vv_counters *c = s->c.merged.side[side].nodes[g->node].counters;
    *calls = c->started;
    *errors = c->error;
    return true;
}

static void failure_json(vv_json *j, const void *cls, uint32_t row)
{
    const state *s = cls;
    const group *g = &s->groups[row];
    double rate[VV_SIDES] = {0, 0};
    bool known[VV_SIDES];
    static const char *const keys[VV_SIDES] = {[VV_SIDE_BASE] = "base_failure_rate",
                                               [VV_SIDE_HEAD] = "head_failure_rate"};
    static const vv_side order[] = {VV_SIDE_BASE, VV_SIDE_HEAD};
    for (size_t i = 0; i < VV_SIDES; i++) {
        vv_side side = order[i];
        uint64_t calls, errors;
        known[side] = context_numbers(s, g, side, &calls, &errors) && calls && s->counts_whole[side];
        rate[side] = known[side] ? (double)errors / (double)calls : 0;
        vv_ratio_json(j, keys[side], known[side], errors, calls);
    }
    vv_json_key(j, "delta_failure_rate");
    if (known[VV_SIDE_HEAD] && known[VV_SIDE_BASE])
        vv_json_ratio(j, rate[VV_SIDE_HEAD] - rate[VV_SIDE_BASE]);
    else
        vv_json_null(j);
}

static void describe_row(const void *cls, uint32_t row, vv_comparison_row *ret)
{
    static const char *const keys[] = {"captures", "terminal_calls", "context_calls", "context_errors"};
    const state *s = cls;
    const group *g = &s->groups[row];
    *ret = (vv_comparison_row){
        .node = g->node,
        .count = VV_ARRAY_LEN(keys),
        .total = s->captures[VV_SIDE_BASE],
        .thrower = &g->thrower,
        .kind = vv_capture_kinds[g->kind],
        .source = vv_capture_sources[g->source],
    };
    for (size_t side = 0; side < VV_SIDES; side++) {
        uint64_t calls, errors;
        bool context = context_numbers(s, g, (vv_side)side, &calls, &errors);
        const vv_u128 values[] = {g->captures[side], g->terminals[side], calls, errors};
        ret->on[side] = g->captures[side] > 0;
        for (size_t i = 0; i < VV_ARRAY_LEN(keys); i++) {
            ret->numbers[i].key = keys[i];
            ret->numbers[i].known[side] = i < 2 || context;
            ret->numbers[i].value[side] = values[i];
        }
    }
}

static vv_u128 count_captures(const void *cls, vv_side side)
{
    return ((const state *)cls)->captures[side];
}

static vv_code offer_rows(void *cls, vv_query *q, vv_page *page, vv_error *err)
{
    (void)q;
    (void)err;
    const state *s = cls;
    for (uint32_t i = 0; i < s->map.count; i++) {
        const group *g = &s->groups[i];
        uint8_t key[VV_COMPARISON_KEY], more[2 + sizeof g->function] = {g->kind, g->source};
        memcpy(more + 2, g->function, sizeof g->function);
        vv_comparison_key(&s->c, g->node, more, sizeof more, g->captures[VV_SIDE_BASE], g->captures[VV_SIDE_HEAD],
                          key);
        vv_page_offer(page, key, i);
    }
    return VV_OK;
}

vv_code vv_compare_errors(vv_query *q, vv_comparison_show *show, void *cls, vv_error *err)
{
    static const vv_comparison_list list = {
        .view = "errors",
        .of = "captured_errors",
        .metric = "captures",
        .unit = "errors",
        .visit = add_errors,
        .offer = offer_rows,
        .counted = count_captures,
        .population = population_json,
        .row = describe_row,
        .rest = failure_json,
    };
    static const char *const names[] = {"base+", "limit", "cursor", NULL};
    state s = {.texts = vv_arena_init(TEXTS_MAX), .counts_whole = {true, true}};
    vv_map_init(&s.map, sizeof(identity));
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_comparison_run(q, &s.c, &list, &s, show, cls, err);
    vv_map_done(&s.map);
    free(s.groups);
    vv_arena_done(&s.texts);
    return rc;
}
