#include "config.h"

#include "views/errors.h"

#include <stdlib.h>

#include "base/grow.h"

static void count_links(vv_error_population *n, const vv_fold *f)
{
    for (size_t i = 0; i < f->span_count; i++) {
        const vv_fold_span *s = &f->spans[i];
        if (!s->has_terminal)
            continue;
        n->links_lost += s->terminal.lost;
        n->links_unresolved +=
            !s->terminal.lost && vv_map_find(&f->error_map, s->terminal.capture.b) == VV_MAP_NONE;
    }
}

static vv_error_population count_all(const vv_found *found, const vv_loaded *x)
{
    const vv_fold *f = x->profile->fold;
    const uint64_t *h = found->execution->health.v;
    vv_error_population n = {.known = x->digest->known};
    if (!n.known)
        return n;
    n.captures = f->error_count;
    for (size_t i = 0; i < f->error_count; i++)
        n.rethrown += f->errors[i].kind == 1;
    n.fresh = n.captures - n.rethrown;
    n.errored_calls = x->digest->totals.errors;
    n.lost_known = found->execution->has_end;
    const unsigned first = VV_H_error_capture_attempt_transport_exceeded,
                   last = VV_H_error_capture_evidence_publish_failed;
    for (unsigned i = first; i <= last; i++)
        n.lost = vv_sat64(n.lost, h[i]);
    count_links(&n, f);
    return n;
}

static vv_code no_memory(vv_error *err)
{
    return vv_fail(err, VV_ERR_NOMEM, "no memory for the errors of an execution");
}

static bool begins_nowhere(const vv_node *n)
{
    return n->flags & (VV_NODE_ORPHAN | VV_NODE_UNDEFINED | VV_NODE_OVERFLOW);
}

/* Parents come before their children in the order of the profile, so one pass measures all stacks. */
static vv_code measure_stacks(vv_error_list *l, const vv_profile *p, vv_error *err)
{
    l->depth = malloc(((size_t)p->tree.node_count + 1) * sizeof *l->depth);
    l->whole = malloc(((size_t)p->tree.node_count + 1) * sizeof *l->whole);
    if (!l->depth || !l->whole)
        return no_memory(err);
    for (uint32_t k = 0; k < p->tree.node_count; k++) {
        uint32_t i = p->tree.order[k];
        const vv_node *n = &p->tree.nodes[i];
        l->depth[i] = n->parent == VV_NONE ? 1 : l->depth[n->parent] + 1;
        l->whole[i] = !begins_nowhere(n) && (n->parent == VV_NONE || l->whole[n->parent]);
    }
    return VV_OK;
}

static int compare_terminals(const void *a, const void *b, void *fold)
{
    const vv_terminal *x = a, *y = b;
    const vv_fold *f = fold;
    if (x->item != y->item)
        return x->item > y->item ? 1 : -1;
    return memcmp(f->spans[x->span].call.b, f->spans[y->span].call.b, sizeof f->spans->call.b);
}

/* One pass over the spans for all errors of the page. */
static vv_code find_terminals(vv_error_list *l, const vv_fold *f, vv_error *err)
{
    vv_map map;
    vv_code rc = VV_OK;
    size_t cap = 0;
    vv_map_init(&map, sizeof(vv_capture_id));
    for (size_t i = 0; i < l->page.count && rc == VV_OK; i++)
        if (vv_map_put(&map, f->errors[l->page.items[i].row].id.b, NULL) == VV_MAP_NONE)
            rc = no_memory(err);
    for (size_t i = 0; i < f->span_count && rc == VV_OK && l->page.count; i++) {
        const vv_fold_span *s = &f->spans[i];
        uint32_t item = s->has_terminal && !s->terminal.lost ? vv_map_find(&map, s->terminal.capture.b) : VV_MAP_NONE;
        if (item == VV_MAP_NONE)
            continue;
        if (vv_grow(&l->terminals, &cap, l->terminal_count, sizeof *l->terminals))
            l->terminals[l->terminal_count++] = (vv_terminal){item, (uint32_t)i};
        else
            rc = no_memory(err);
    }
    vv_map_done(&map);
    if (l->terminal_count)
        qsort_r(l->terminals, l->terminal_count, sizeof *l->terminals, compare_terminals, (void *)(uintptr_t)f);
    return rc;
}

/* The first terminal of an item or of one after it. */
static size_t terminals_from(const vv_error_list *l, size_t item)
{
    size_t low = 0, high = l->terminal_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->terminals[middle].item < item)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const vv_terminal *vv_error_terminals(const vv_error_list *l, size_t item, size_t *ret_count)
{
    size_t from = terminals_from(l, item);
    *ret_count = terminals_from(l, item + 1) - from;
    return *ret_count ? l->terminals + from : NULL;
}

vv_code vv_error_list_read(vv_error_list *ret, vv_query *q, vv_error *err)
{
    static const char *const names[] = {"limit", "cursor", NULL};
    *ret = (vv_error_list){.depth = NULL};
    vv_code rc = vv_query_check(q, names, err);
    return rc == VV_OK ? vv_page_read(&ret->page, q, "errors", sizeof(vv_capture_id), err) : rc;
}

vv_code vv_error_list_make(vv_error_list *l, const vv_query *q, const vv_found *f, const vv_loaded *x, vv_error *err)
{
    const vv_fold *fold = x->profile->fold;
    vv_code rc = vv_page_room(&l->page, err);
    if (rc != VV_OK)
        return rc;
    for (size_t i = 0; i < fold->error_count && !fold->failed; i++)
        vv_page_offer(&l->page, fold->errors[i].id.b, (uint32_t)i);
    vv_page_sort(&l->page, q, "errors");
    l->population = count_all(f, x);
    rc = measure_stacks(l, x->profile, err);
    return rc == VV_OK ? find_terminals(l, fold, err) : rc;
}

vv_code vv_error_list_find(vv_error_list *ret, vv_query *q, const vv_profile *p, vv_error *err)
{
    const vv_fold *fold = p->fold;
    vv_capture_id id;
    *ret = (vv_error_list){.page = {.key_len = sizeof id, .limit = 1}};
    if (!vv_capture_named(q->sub, &fold->root, &id))
        return vv_query_fail(q, "error", err, "is not an error's id: use its full id, or thread~number such as 1~2");
    uint32_t at = fold->failed ? VV_MAP_NONE : vv_map_find(&fold->error_map, id.b);
    if (at == VV_MAP_NONE) {
        q->parameter = "error";
        return vv_fail(err, VV_ERR_NOTFOUND, "%s",
                       fold->failed ? "the data of that execution is damaged: none of its errors can be shown"
                                    : "no error of that id was recorded");
    }
    vv_code rc = vv_page_room(&ret->page, err);
    if (rc != VV_OK)
        return rc;
    vv_page_offer(&ret->page, id.b, at);
    return find_terminals(ret, fold, err);
}

void vv_error_list_done(vv_error_list *l)
{
    vv_page_done(&l->page);
    free(l->depth);
    free(l->whole);
    free(l->terminals);
    l->depth = NULL;
    l->whole = NULL;
    l->terminals = NULL;
}

/* Of one: up to where it begins. The parents of a profile never go in a circle. */
static vv_stack measure_stack(const vv_profile *p, uint32_t node)
{
    vv_stack s = {.complete = true, .node = node};
    for (uint32_t i = node; i != VV_NONE; i = p->tree.nodes[i].parent) {
        s.frames++;
        s.complete &= !begins_nowhere(&p->tree.nodes[i]);
    }
    return s;
}

vv_stack vv_error_stack(const vv_error_list *l, const vv_profile *p, const vv_error_capture *c)
{
    uint32_t node = c->context.overflow ? VV_NONE : vv_node_of(p, &c->context);
    if (node == VV_NONE)
        return (vv_stack){1, false, VV_NONE};
    return l->depth ? (vv_stack){l->depth[node], l->whole[node], node} : measure_stack(p, node);
}

void vv_stack_frames(const vv_profile *p, const vv_error_capture *c, const vv_stack *s, size_t n, vv_stack_frame *out)
{
    uint32_t node = s->node;
    const vv_site *site = c->has_site ? &c->site : NULL;
    for (size_t at = n; at-- > 0;) {
        const vv_fold_context *context = node == VV_NONE ? NULL : vv_profile_context(p, node);
        bool defined = context && context->defined, throws = at + 1 == n;
        out[at] = (vv_stack_frame){.has_function = throws || defined, .node = node, .site = site};
        out[at].function_id = throws ? c->function_id : defined ? context->tuple.function_id : 0;
        /* Where this one was called is where its caller was. */
        site = defined && context->tuple.has_site ? &context->tuple.site : NULL;
        node = node == VV_NONE ? VV_NONE : p->tree.nodes[node].parent;
    }
}
