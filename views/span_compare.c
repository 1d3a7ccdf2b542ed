#include "config.h"

#include <stdlib.h>

#include "views/compare.h"
#include "views/pick.h"
#include "views/spans.h"

/* The retained spans of a calling path, on one side. */
typedef struct {
    uint64_t spans, status[VV_SPAN_STATUS_UNKNOWN + 1];
    vv_u128 total_ns;
    uint64_t min_ns, max_ns, timed; /* of those whose duration is known */
} tally;

/* What of a side is in no row, or in all of them. */
typedef struct {
    uint64_t retained, matched, without_start, without_end, without_context;
} population;

typedef struct {
    vv_comparison c;
    uint8_t reason; /* bit of those asked for; 0: all */
    bool has_function;
    vv_function_grouping groups; /* of the tree's functions, where one is asked for */
    uint32_t group;              /* of that one; VV_NONE: what can be read has none */
    tally (*tallies)[VV_SIDES]; /* by node */
    size_t cap;
    population populations[VV_SIDES];
    vv_u128 total[VV_SIDES];
} state;

static void count_span(state *s, size_t side, uint32_t node, const vv_fold_span *span)
{
    tally *t = &s->tallies[node][side];
    population *p = &s->populations[side];
    p->matched++;
    p->without_end += !span->has_end;
    t->spans++;
    t->status[span->has_end ? span->end.status : VV_SPAN_STATUS_UNKNOWN]++;
    if (!span->has_end)
        return;
    uint64_t ns = span->end.inclusive_ns;
    t->total_ns += ns;
    t->min_ns = !t->timed || ns < t->min_ns ? ns : t->min_ns;
    t->max_ns = ns > t->max_ns ? ns : t->max_ns;
    t->timed++;
    s->total[side] += ns;
}

static vv_code make_room(state *s, const vv_tree *t, const uint32_t *to, vv_error *err)
{
    size_t need = s->cap;
    for (uint32_t i = 0; i < t->node_count; i++)
        if (to[i] >= need)
            need = (size_t)to[i] + 1;
    if (need == s->cap)
        return VV_OK;
    tally(*bigger)[VV_SIDES] = realloc(s->tallies, need * sizeof *bigger);
    if (!bigger)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for spans by calling path");
    memset(bigger + s->cap, 0, (need - s->cap) * sizeof *bigger);
    s->tallies = bigger;
    s->cap = need;
    return VV_OK;
}

static vv_code add_spans(void *cls, const vv_scope_item *item, const vv_loaded *x, const uint32_t *to, vv_error *err)
{
    state *s = cls;
    const vv_profile *p = x->profile;
    vv_code rc = make_room(s, &p->tree, to, err);
    for (size_t i = 0; i < p->fold->span_count && rc == VV_OK && !p->fold->failed; i++) {
        const vv_fold_span *span = &p->fold->spans[i];
        uint32_t node = span->has_start ? vv_node_of(p, &span->start.context) : VV_NONE;
        for (size_t side = 0; side < VV_SIDES; side++) {
            if (!item->on[side])
                continue;
            population *n = &s->populations[side];
            n->retained++;
            n->without_start += !span->has_start;
            n->without_context += span->has_start && node == VV_NONE;
            if (node != VV_NONE && (!s->reason || span->start.reasons & s->reason))
                count_span(s, side, to[node], span);
        }
    }
    return rc;
}

static vv_code read_options(state *s, vv_query *q, vv_error *err)
{
    static const char *const names[] = {"base+", "function", "reason", "limit", "cursor", NULL};
    static const char *const alone[] = {"status", "thread", "context", "from", "to", "min_duration", "order"};
    unsigned reason = 0;
    for (size_t i = 0; i < VV_ARRAY_LEN(alone); i++)
        if (vv_query_value(q, alone[i]))
            return vv_query_fail(q, alone[i], err, "chooses single calls, and does not go with base");
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_query_word(q, "reason", vv_reason_words, VV_ARRAY_LEN(vv_reason_words), &reason, err);
    s->reason = vv_query_value(q, "reason") ? (uint8_t)(1u << reason) : 0;
    s->has_function = vv_query_value(q, "function") != NULL;
    return rc;
}

static void population_json(vv_json *j, const void *cls, vv_side side)
{
    const state *s = cls;
    const population *n = &s->populations[side];
    const vv_totals *t = &s->c.scope.totals[side];
    vv_json_kv_u128(j, "calls", t->calls);
    vv_json_kv_u128(j, "selected", t->selected);
    vv_json_kv_u64(j, "retained", n->retained);
    vv_json_kv_u64(j, "matched", n->matched);
    vv_json_kv_u64(j, "without_start", n->without_start);
    vv_json_kv_u64(j, "without_end", n->without_end);
    vv_json_kv_u64(j, "without_context", n->without_context);
}

static vv_u128 count_matched(const void *cls, vv_side side)
{
    return ((const state *)cls)->populations[side].matched;
}

static void describe_row(const void *cls, uint32_t node, vv_comparison_row *ret)
{
    const state *s = cls;
    const tally *base = &s->tallies[node][VV_SIDE_BASE], *head = &s->tallies[node][VV_SIDE_HEAD];
    const bool whole[VV_SIDES] = {true, true};
    const bool timed[VV_SIDES] = {[VV_SIDE_HEAD] = head->timed > 0, [VV_SIDE_BASE] = base->timed > 0};
    const bool summed[VV_SIDES] = {[VV_SIDE_HEAD] = head->timed || !head->spans, /* of no spans it is 0 */
                                   [VV_SIDE_BASE] = base->timed || !base->spans};
    const struct {
        const char *key;
        const bool *known;
        vv_u128 base, head;
    } numbers[] = {
        {"duration_total_ns", summed, base->total_ns, head->total_ns},
        {"duration_min_ns", timed, base->min_ns, head->min_ns},
        {"duration_max_ns", timed, base->max_ns, head->max_ns},
        {"spans", whole, base->spans, head->spans},
        {"ok", whole, base->status[0], head->status[0]},
        {"errored", whole, base->status[1], head->status[1]},
        {"cancelled", whole, base->status[2], head->status[2]},
        {"exited", whole, base->status[3], head->status[3]},
        {"unknown", whole, base->status[VV_SPAN_STATUS_UNKNOWN], head->status[VV_SPAN_STATUS_UNKNOWN]},
    };
    uint32_t up = s->c.merged.tree.nodes[node].parent;
    *ret = (vv_comparison_row){
        .node = node,
        .on = {[VV_SIDE_HEAD] = head->spans > 0, [VV_SIDE_BASE] = base->spans > 0},
        .count = VV_ARRAY_LEN(numbers),
        .total = s->total[VV_SIDE_BASE],
        .parent = up == VV_NONE ? 0 : s->tallies[up][VV_SIDE_BASE].total_ns,
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(numbers); i++)
        ret->numbers[i] = (vv_comparison_number){
            .key = numbers[i].key,
            .known = {[VV_SIDE_HEAD] = numbers[i].known[VV_SIDE_HEAD],
                      [VV_SIDE_BASE] = numbers[i].known[VV_SIDE_BASE]},
            .value = {[VV_SIDE_HEAD] = numbers[i].head, [VV_SIDE_BASE] = numbers[i].base}};
}

/* What is damaged can't be said to lack a function: it has no rows of it then. */
static vv_code find_function(state *s, vv_query *q, vv_error *err)
{
    const vv_tree *t = &s->c.merged.tree;
    s->group = VV_NONE;
    if (!s->has_function)
        return VV_OK;
    vv_code rc = vv_function_grouping_make(&s->groups, t, err);
    if (rc == VV_OK)
        rc = vv_query_function(q, t, &s->groups, &s->group, err);
    if (rc != VV_ERR_NOTFOUND || (s->c.scope.known[VV_SIDE_HEAD] && s->c.scope.known[VV_SIDE_BASE]))
        return rc;
    vv_error_clear(err);
    return VV_OK;
}

static bool is_asked_for(const state *s, uint32_t node)
{
    uint32_t f = s->c.merged.tree.nodes[node].function;
    return !s->has_function || (s->group != VV_NONE && f != VV_NONE && s->groups.of[f] == s->group);
}

/* Offers all paths that have spans. */
static vv_code offer_rows(void *cls, vv_query *q, vv_page *page, vv_error *err)
{
    state *s = cls;
    vv_code rc = find_function(s, q, err);
    for (uint32_t i = 0; i < s->c.merged.tree.node_count && rc == VV_OK; i++) {
        uint8_t key[VV_COMPARISON_KEY];
        const tally *sides = s->tallies[i];
        if (!is_asked_for(s, i) || (!sides[VV_SIDE_HEAD].spans && !sides[VV_SIDE_BASE].spans))
            continue;
        vv_comparison_key(&s->c, i, NULL, 0, sides[VV_SIDE_BASE].total_ns, sides[VV_SIDE_HEAD].total_ns, key);
        vv_page_offer(page, key, i);
    }
    return rc;
}

vv_code vv_compare_spans(vv_query *q, vv_comparison_show *show, void *cls, vv_error *err)
{
    static const vv_comparison_list list = {
        .view = "spans",
        .of = "retained_spans",
        .metric = "duration_total_ns",
        .unit = "ns",
        .visit = add_spans,
        .offer = offer_rows,
        .counted = count_matched,
        .population = population_json,
        .row = describe_row,
    };
    state s = {.cap = 0};
    vv_code rc = read_options(&s, q, err);
    if (rc == VV_OK)
        rc = vv_comparison_run(q, &s.c, &list, &s, show, cls, err);
    vv_function_grouping_done(&s.groups);
    free(s.tallies);
    return rc;
}
