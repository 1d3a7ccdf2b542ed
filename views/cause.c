#include "config.h"

#include "views/cause.h"

#include <stdlib.h>

#include "views/facts.h"

/* Calls of a subtree on each side, and how many of them changed: a context's change is its difference, unsigned. */
typedef struct {
    vv_u128 base, head, changed;
} sums;

static uint64_t calls_of(const vv_comparison *c, vv_side side, uint32_t node)
{
    return c->merged.side[side].nodes[node].counters->started;
}

static void add_sums(sums *to, const sums *s)
{
    to->base += s->base;
    to->head += s->head;
    to->changed += s->changed;
}

/* Of all subtrees, children before parents; the last one is of everything. */
static void add_up(const vv_comparison *c, sums *of)
{
    const vv_tree *t = &c->merged.tree;
    for (uint32_t k = t->node_count; k-- > 0;) {
        uint32_t i = t->order[k], parent = t->nodes[i].parent;
        if (!c->has_path[i])
            continue;
        uint64_t base = calls_of(c, VV_SIDE_BASE, i), head = calls_of(c, VV_SIDE_HEAD, i);
        const sums own = {base, head, head > base ? head - base : base - head};
        add_sums(&of[i], &own);
        add_sums(&of[parent == VV_NONE ? t->node_count : parent], &of[i]);
    }
}

/* The child with most of the changed calls; equals by path. */
static uint32_t largest(const vv_comparison *c, const sums *of, const uint32_t *list, uint32_t n)
{
    uint32_t best = VV_NONE;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = list[k];
        if (!c->has_path[i])
            continue;
        if (best == VV_NONE || of[i].changed > of[best].changed
            || (of[i].changed == of[best].changed
                && memcmp(c->paths[i].b, c->paths[best].b, sizeof c->paths->b) < 0))
            best = i;
    }
    return best;
}

/* Did a callee's own count change by more than its caller's change makes one expect? */
static bool is_its_own(const vv_comparison *c, uint32_t caller, uint32_t callee)
{
    double caller_base = (double)calls_of(c, VV_SIDE_BASE, caller);
    double caller_head = (double)calls_of(c, VV_SIDE_HEAD, caller);
    double base = (double)calls_of(c, VV_SIDE_BASE, callee), head = (double)calls_of(c, VV_SIDE_HEAD, callee);
    if (caller_base == caller_head)
        return true;
    if (caller_base == 0 || caller_head == 0)
        return false;
    double unexplained = head - base * (caller_head / caller_base), change = head - base;
    return 2 * (unexplained < 0 ? -unexplained : unexplained) >= (change < 0 ? -change : change);
}

static uint32_t walk(const vv_comparison *c, const sums *of)
{
    const vv_tree *t = &c->merged.tree;
    uint32_t at = VV_NONE, next = largest(c, of, t->tops, t->top_count);
    const sums *above = &of[t->node_count];
    while (next != VV_NONE && of[next].changed >= above->changed - above->changed / 10
           && (at == VV_NONE || is_its_own(c, at, next))) {
        at = next;
        above = &of[at];
        next = largest(c, of, t->child + t->child_first[at], t->child_first[at + 1] - t->child_first[at]);
    }
    return at;
}

vv_code vv_cause_find(vv_cause *ret, const vv_comparison *c, vv_error *err)
{
    uint32_t n = c->merged.tree.node_count;
    sums *of = calloc((size_t)n + 1, sizeof *of);
    if (!of)
        return vv_fail(err, VV_ERR_NOMEM, "no memory to compare calls");
    add_up(c, of);
    *ret = (vv_cause){.changed = of[n].changed > 0, .node = VV_NONE, .all = of[n].changed};
    if (ret->changed)
        ret->node = walk(c, of);
    const sums *here = &of[ret->node == VV_NONE ? n : ret->node];
    ret->base = here->base;
    ret->head = here->head;
    ret->here = here->changed;
    if (ret->node != VV_NONE) {
        ret->own_base = calls_of(c, VV_SIDE_BASE, ret->node);
        ret->own_head = calls_of(c, VV_SIDE_HEAD, ret->node);
    }
    free(of);
    return VV_OK;
}

static void calls_json(vv_json *j, const char *key, vv_u128 base, vv_u128 head)
{
    vv_json_kv_obj(j, key);
    vv_json_kv_u128(j, "base", base);
    vv_json_kv_u128(j, "head", head);
    vv_json_key(j, "delta");
    vv_delta_json(j, base, head);
    vv_json_end_obj(j);
}

void vv_cause_json(vv_json *j, const vv_comparison *c, const vv_cause *x)
{
    if (!vv_json_kv_opt_obj(j, "cause", x->changed))
        return;
    bool one = x->node != VV_NONE;
    vv_comparison_place_json(j, c, x->node);
    calls_json(j, "subtree_calls", x->base, x->head);
    if (one)
        calls_json(j, "calls", x->own_base, x->own_head);
    else
        vv_json_kv_null(j, "calls");
    vv_json_kv_u128(j, "changed_calls", x->here);
    vv_ratio_json(j, "of_changed_calls", true, x->here, x->all);
    vv_json_kv_bool(j, "certain", vv_scope_absence_known(&c->scope, VV_SIDE_HEAD)
                                      && vv_scope_absence_known(&c->scope, VV_SIDE_BASE));
    vv_json_end_obj(j);
}
