#include "config.h"

#include "views/compare.h"

#include <stdlib.h>

#include "base/sha256.h"
#include "views/facts.h"

enum { STACK_SHOWN = 64 };

vv_code vv_comparison_make(vv_comparison *c, vv_merge_visit *visit, void *cls, vv_error *err)
{
    vv_code rc = vv_merged_make(&c->merged, &c->scope, visit, cls, err);
    if (rc != VV_OK)
        return rc;
    size_t n = (size_t)c->merged.tree.node_count + 1;
    c->paths = malloc(n * sizeof *c->paths);
    c->has_path = malloc(n * sizeof *c->has_path);
    if (!c->paths || !c->has_path)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for path ids");
    vv_tree_paths(&c->merged.tree, c->paths, c->has_path);
    return VV_OK;
}

void vv_comparison_done(vv_comparison *c)
{
    vv_merged_done(&c->merged);
    vv_scope_done(&c->scope);
    free(c->paths);
    free(c->has_path);
    *c = (vv_comparison){.paths = NULL};
}

void vv_comparison_key(const vv_comparison *c, uint32_t node, const void *more, size_t n, vv_u128 base, vv_u128 head,
                       uint8_t out[VV_COMPARISON_KEY])
{
    vv_u128 change = ~(head > base ? head - base : base - head);
    vv_sha256_ctx h;
    vv_sha256_init(&h);
    if (node != VV_NONE) {
        const vv_node *x = &c->merged.tree.nodes[node];
        uint8_t plain[8] = {x->edge, x->reason, x->flags & VV_NODE_OVERFLOW};
        if (!c->has_path[node] && !(x->flags & VV_NODE_OVERFLOW))
            vv_put32(plain + 4, node);
        vv_sha256_update(&h, plain, sizeof plain);
        if (c->has_path[node])
            vv_sha256_update(&h, c->paths[node].b, sizeof c->paths[node].b);
        if (x->key)
            vv_sha256_update(&h, x->key, 32);
    }
    if (n)
        vv_sha256_update(&h, more, n);
    vv_put64(out, (uint64_t)(change >> 64));
    vv_put64(out + 8, (uint64_t)change);
    vv_sha256_final(&h, out + 16);
}

static void name_json(vv_json *j, const vv_tree *t, uint32_t node)
{
    uint32_t f = t->nodes[node].function;
    vv_str name = f == VV_NONE ? (vv_str){NULL, 0} : vv_function_ref_name(&t->functions[f]);
    if (name.n)
        vv_json_str(j, name);
    else
        vv_json_null(j);
}

/* The names from the top to the node: the last ones where there are many. */
static void stack_json(vv_json *j, const vv_tree *t, uint32_t node)
{
    uint32_t chain[STACK_SHOWN];
    size_t n = 0;
    for (; node != VV_NONE && n < STACK_SHOWN; node = t->nodes[node].parent)
        chain[n++] = node;
    vv_json_kv_arr(j, "stack");
    for (size_t i = n; i-- > 0;)
        name_json(j, t, chain[i]);
    vv_json_end_arr(j);
    vv_json_kv_bool(j, "stack_truncated", node != VV_NONE);
}

void vv_comparison_place_json(vv_json *j, const vv_comparison *c, uint32_t node)
{
    const vv_tree *t = &c->merged.tree;
    const vv_node *n = node == VV_NONE ? NULL : &t->nodes[node];
    const vv_function_ref *f = n && n->function != VV_NONE ? &t->functions[n->function] : NULL;
    bool overflow = n && n->flags & VV_NODE_OVERFLOW;
    vv_number_json(j, "function_id", f, f ? f->id : 0);
    vv_json_kv_str_or_null(j, "fqn", f && f->def ? &f->def->fqn : NULL);
    vv_json_kv_opt_str(j, "definition_key", f && f->def ? &f->def->definition_key : NULL);
    vv_json_kv_cstr(j, "edge_kind", n ? vv_node_edge_name(n->edge) : NULL);
    vv_json_kv_opt_hex(j, "path_id", n && c->has_path[node] ? c->paths[node].b : NULL, sizeof c->paths->b);
    vv_json_kv_opt_hex(j, "call_path_id", n ? n->key : NULL, sizeof(vv_context_key));
    char id[VV_OVERFLOW_ID];
    if (overflow)
        vv_node_overflow_id(n, id);
    vv_json_kv_cstr(j, "overflow_id", overflow ? id : NULL);
    stack_json(j, t, node);
}

static void side_json(vv_json *j, const char *key, bool there, const vv_comparison_number *numbers, size_t n,
                      vv_side side)
{
    if (!vv_json_kv_opt_obj(j, key, there))
        return;
    for (size_t i = 0; i < n; i++)
        vv_number_json(j, numbers[i].key, numbers[i].known[side], numbers[i].value[side]);
    vv_json_end_obj(j);
}

/* "state", "base", "head", "delta" and the ratios. */
static void numbers_json(vv_json *j, const vv_scope *s, const vv_comparison_row *r)
{
    const bool *on = r->on;
    const vv_comparison_number *numbers = r->numbers;
    size_t n = r->count;
    bool has_base = vv_scope_number_known(s, on, VV_SIDE_BASE), has_head = vv_scope_number_known(s, on, VV_SIDE_HEAD);
    vv_json_kv_cstr(j, "state", vv_delta_state_word(vv_scope_state(s, on)));
    side_json(j, "base", has_base, numbers, n, VV_SIDE_BASE);
    side_json(j, "head", has_head, numbers, n, VV_SIDE_HEAD);
    if (vv_json_kv_opt_obj(j, "delta", has_base && has_head)) {
        for (size_t i = 0; i < n; i++) {
            vv_json_key(j, numbers[i].key);
            if (numbers[i].known[VV_SIDE_HEAD] && numbers[i].known[VV_SIDE_BASE])
                vv_delta_json(j, numbers[i].value[VV_SIDE_BASE], numbers[i].value[VV_SIDE_HEAD]);
            else
                vv_json_null(j);
        }
        vv_json_end_obj(j);
    }
    bool has_metric = has_base && has_head && numbers[0].known[VV_SIDE_BASE] && numbers[0].known[VV_SIDE_HEAD];
    const vv_u128 from = numbers[0].value[VV_SIDE_BASE], to = numbers[0].value[VV_SIDE_HEAD];
    const struct {
        const char *key;
        vv_u128 whole;
    } ratios[] = {{"delta_of_base", from}, {"delta_of_total", r->total}, {"delta_of_parent", r->parent}};
    for (size_t i = 0; i < VV_ARRAY_LEN(ratios); i++) {
        vv_json_key(j, ratios[i].key);
        vv_delta_ratio_json(j, has_metric, from, to, ratios[i].whole);
    }
}

static void population_json(vv_json *j, const vv_compared *x, const char *key, vv_side side)
{
    if (!vv_json_kv_opt_obj(j, key, x->c->scope.known[side]))
        return;
    x->list->population(j, x->state, side);
    vv_json_end_obj(j);
}

static void thrower_json(vv_json *j, const vv_comparison_row *r)
{
    const vv_function_ref *f = r->thrower;
    vv_json_kv_cstr(j, "kind", r->kind);
    vv_json_kv_cstr(j, "source", r->source);
    vv_json_kv_u64(j, "throw_function_id", f->id);
    vv_json_kv_str_or_null(j, "throw_fqn", f->def ? &f->def->fqn : NULL);
    vv_json_kv_opt_str(j, "throw_definition_key", f->def ? &f->def->definition_key : NULL);
}

static void row_json(vv_json *j, const vv_compared *x, uint32_t row)
{
    vv_comparison_row r = {.node = VV_NONE};
    x->list->row(x->state, row, &r);
    vv_json_obj(j);
    if (r.thrower)
        thrower_json(j, &r);
    vv_comparison_place_json(j, x->c, r.node);
    numbers_json(j, &x->c->scope, &r);
    if (x->list->rest)
        x->list->rest(j, x->state, row);
    vv_json_end_obj(j);
}

vv_code vv_comparison_answer(void *cls, const vv_query *q, const vv_compared *x, vv_error *err)
{
    vv_answer *a = cls;
    vv_json *j = &a->j;
    vv_scope_head_json(j, q, &x->c->scope, x->page->more, NULL);
    vv_json_kv_cstr(j, "of", x->list->of);
    vv_json_kv_obj(j, "metric");
    vv_json_kv_cstr(j, "name", x->list->metric);
    vv_json_kv_cstr(j, "unit", x->list->unit);
    vv_json_end_obj(j);
    population_json(j, x, "population", VV_SIDE_HEAD);
    population_json(j, x, "base_population", VV_SIDE_BASE);
    vv_json_kv_arr(j, "items");
    for (size_t i = 0; i < x->page->count; i++)
        row_json(j, x, x->page->items[i].row);
    vv_json_end_arr(j);
    vv_page_next_json(j, x->page);
    vv_json_end_obj(j);
    return vv_wr_error(&a->w, "answer", err);
}

vv_code vv_comparison_run(vv_query *q, vv_comparison *c, const vv_comparison_list *list, void *state,
                          vv_comparison_show *show, void *cls, vv_error *err)
{
    vv_page page;
    vv_code rc = vv_page_read(&page, q, list->view, VV_COMPARISON_KEY, err);
    if (rc == VV_OK)
        rc = vv_scope_read(&c->scope, q, err);
    if (rc == VV_OK)
        rc = vv_comparison_make(c, list->visit, state, err);
    if (rc == VV_OK)
        rc = vv_page_room(&page, err);
    if (rc == VV_OK)
        rc = list->offer(state, q, &page, err);
    if (rc == VV_OK) {
        vv_page_sort(&page, q, list->view);
        rc = show(cls, q, &(vv_compared){list, c, &page, state}, err);
    }
    vv_comparison_done(c);
    vv_page_done(&page);
    return rc;
}
