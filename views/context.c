#include "config.h"

#include "views/context.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "views/spans.h"

enum { KEY = 16 + 32 }; /* of a child: inclusive time, its context's key */

const char *const vv_exemplar_words[] = {"slowest", "first", "last", "failing"};
const unsigned vv_percentiles[] = {50, 90, 99};

/* "overflow:<reason>:<edge>", or a key in hexadecimal. */
static bool parse_key(vv_str s, vv_context_ref *ret)
{
    *ret = (vv_context_ref){.overflow = false};
    if (vv_unhex(ret->key.b, sizeof ret->key.b, s))
        return true;
    ret->overflow = true;
    for (unsigned r = 0; r < VV_OVERFLOW_REASONS; r++)
        for (unsigned e = 0; e < VV_EDGES; e++) {
            char id[VV_OVERFLOW_ID];
            const vv_node bucket = {.reason = (uint8_t)r, .edge = (uint8_t)e};
            vv_node_overflow_id(&bucket, id);
            ret->reason = (uint8_t)r;
            ret->edge = (uint8_t)e;
            if (vv_str_eq(s, vv_cstr(id)))
                return true;
        }
    return false;
}

vv_code vv_context_read(vv_context_view *ret, vv_query *q, vv_error *err)
{
    static const char *const names[] = {"execution", "limit", "cursor", NULL};
    *ret = (vv_context_view){.node = VV_NONE};
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_page_read(&ret->page, q, "context", KEY, err);
    if (rc == VV_OK && !parse_key(q->id, &ret->ref))
        rc = vv_query_fail(q, "key", err, "must be a context key (64 hexadecimal digits) or overflow:<reason>:<edge>");
    return rc;
}

static bool may_hold(const vv_digest *d, const vv_context_ref *ref)
{
    if (ref->overflow)
        return d->overflow >> (ref->reason * VV_EDGES + ref->edge) & 1;
    return vv_sieve_may_hold(&d->context_sieve, vv_sieve_context(&ref->key));
}

/*
 * Does it hold the context? Loads it only where its digest does not say no; *ret_known: false where it can't be told.
 */
static vv_code holds(const vv_context_view *c, vv_query *q, const vv_found *f, bool *ret, bool *ret_known,
                     vv_error *err)
{
    const vv_digest *d;
    const vv_profile *p;
    vv_code rc = vv_library_digest(q->library, q->look, f->stream, f->execution, &d, err);
    if (rc != VV_OK)
        return rc;
    bool may = may_hold(d, &c->ref);
    *ret = false;
    *ret_known = d->known;
    vv_digest_release(q->library, d);
    if (!may || c->ref.overflow) {
        *ret = may;
        return VV_OK;
    }
    rc = vv_library_profile(q->library, q->look, f->stream, f->execution, &p, err);
    if (rc == VV_OK)
        *ret = vv_node_of(p, &c->ref) != VV_NONE;
    if (rc == VV_OK)
        vv_profile_release(q->library, p);
    return rc;
}

vv_code vv_context_find(const vv_context_view *c, vv_query *q, vv_found *ret, vv_error *err)
{
    if (vv_query_value(q, "execution"))
        return vv_query_scope(q, ret, err);
    const vv_order *o;
    uint64_t unknown = 0;
    vv_code rc = vv_library_order(q->library, q->look, &o, err);
    if (rc != VV_OK)
        return rc;
    q->match_count = 0;
    for (size_t i = 0; i < o->count && rc == VV_OK && q->match_count < VV_QUERY_MATCHES; i++) {
        bool held, known;
        rc = holds(c, q, &o->items[i], &held, &known, err);
        if (rc != VV_OK)
            break;
        unknown += !known;
        if (!held)
            continue;
        *ret = o->items[i];
        q->matches[q->match_count++] = o->items[i].execution->root;
    }
    vv_order_unref(o);
    if (rc != VV_OK || q->match_count == 1)
        return rc;
    q->parameter = q->match_count ? "execution" : "key";
    if (q->match_count)
        return vv_fail(err, VV_ERR_AMBIGUOUS, "that context stands in several executions");
    if (unknown)
        return vv_fail(err, VV_ERR_NOTFOUND,
                       "no execution holds that context, but the data of %" PRIu64 " can't be read", unknown);
    return vv_fail(err, VV_ERR_NOTFOUND, "no execution holds that context");
}

static vv_code no_memory(vv_error *err)
{
    return vv_fail(err, VV_ERR_NOMEM, "no memory for the contexts of an execution");
}

/* From the top to the node. Cycles were cut when the profile was built. */
static vv_code fill_chain(vv_context_view *c, const vv_profile *p, vv_error *err)
{
    size_t n = 0;
    for (uint32_t at = c->node; at != VV_NONE; at = p->tree.nodes[at].parent)
        n++;
    c->chain = malloc(n * sizeof *c->chain);
    if (!c->chain)
        return no_memory(err);
    c->chain_count = n;
    for (uint32_t at = c->node; at != VV_NONE; at = p->tree.nodes[at].parent)
        c->chain[--n] = at;
    c->chain_complete = !(p->tree.nodes[c->chain[0]].flags & (VV_NODE_ORPHAN | VV_NODE_UNDEFINED | VV_NODE_OVERFLOW));
    return VV_OK;
}

/* As vv_tree_paths, of one node. */
static void find_path(vv_context_view *c, const vv_profile *p)
{
    c->has_path = c->chain_complete;
    for (size_t i = 0; i < c->chain_count && c->has_path; i++) {
        const vv_node *n = &p->tree.nodes[c->chain[i]];
        const vv_function_ref *f = n->function == VV_NONE ? NULL : &p->tree.functions[n->function];
        char scratch[12];
        vv_str name;
        c->has_path = f != NULL;
        if (!f)
            break;
        vv_path_id up = c->path;
        vv_name_kind kind = vv_function_name_key(f->def, f->id, scratch, &name);
        vv_path_id_of(&c->path, i ? &up : NULL, n->edge, kind, name);
    }
}

static void child_key(uint8_t key[VV_PAGE_KEY], const vv_profile *p, uint32_t node)
{
    vv_u128 size = ~p->tree.nodes[node].counters->inclusive_ns;
    vv_put64(key, (uint64_t)(size >> 64));
    vv_put64(key + 8, (uint64_t)size);
    memcpy(key + 16, p->tree.nodes[node].key, sizeof(vv_context_key));
}

static vv_code fill_children(vv_context_view *c, const vv_query *q, const vv_profile *p, vv_error *err)
{
    vv_code rc = vv_page_room(&c->page, err);
    if (rc != VV_OK)
        return rc;
    c->children = p->tree.child_first[c->node + 1] - p->tree.child_first[c->node];
    for (uint32_t k = p->tree.child_first[c->node]; k < p->tree.child_first[c->node + 1]; k++) {
        uint8_t key[VV_PAGE_KEY];
        child_key(key, p, p->tree.child[k]);
        vv_page_offer(&c->page, key, p->tree.child[k]);
    }
    vv_page_sort(&c->page, q, "context");
    return VV_OK;
}

/* Await of the node, and of what it calls. */
static vv_code sum_await(vv_context_view *c, const vv_profile *p, vv_error *err)
{
    uint8_t *below = calloc((size_t)p->tree.node_count + 1, 1);
    if (!below)
        return no_memory(err);
    for (uint32_t k = 0; k < p->tree.node_count; k++) { /* parents come before their children */
        uint32_t i = p->tree.order[k], up = p->tree.nodes[i].parent;
        below[i] = i == c->node || (up != VV_NONE && below[up] && p->tree.nodes[i].edge == VV_EDGE_CALL);
        if (below[i])
            c->await_subtree_ns = vv_sat128(c->await_subtree_ns, p->tree.nodes[i].counters->await_ns);
    }
    free(below);
    return VV_OK;
}

/* Which of two spans of the context is the better example; equal ones go by the call. */
static bool is_better(vv_exemplar e, const vv_fold_span *a, const vv_fold_span *b)
{
    uint64_t x = a->start.started_ns, y = b->start.started_ns;
    if (e == VV_EXEMPLAR_SLOWEST && a->end.inclusive_ns != b->end.inclusive_ns)
        return a->end.inclusive_ns > b->end.inclusive_ns;
    if (x != y)
        return e == VV_EXEMPLAR_LAST ? x > y : x < y;
    int c = memcmp(a->call.b, b->call.b, sizeof a->call.b);
    return e == VV_EXEMPLAR_LAST ? c > 0 : c < 0;
}

static void consider(vv_context_view *c, const vv_fold *f, uint32_t at)
{
    const vv_fold_span *s = &f->spans[at];
    const bool fits[VV_EXEMPLARS] = {s->has_end, true, true, s->has_end && s->end.status == VV_CALL_ERRORED};
    for (unsigned e = 0; e < VV_EXEMPLARS; e++) {
        if (!fits[e] || (c->has_exemplar[e] && !is_better(e, s, &f->spans[c->exemplars[e]])))
            continue;
        c->has_exemplar[e] = true;
        c->exemplars[e] = at;
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The smallest duration that at least so many of a hundred do not exceed. */
static void measure(vv_context_view *c, uint64_t *durations)
{
    size_t n = (size_t)c->ended;
    if (n == 0)
        return;
    qsort(durations, n, sizeof *durations, by_value);
    c->min_ns = durations[0];
    c->max_ns = durations[n - 1];
    for (unsigned i = 0; i < VV_PERCENTILES; i++)
        c->percentiles[i] = durations[(size_t)(((vv_u128)n * vv_percentiles[i] + 99) / 100) - 1];
}

static bool is_of(const vv_context_view *c, const vv_fold_span *s)
{
    return s->has_start && vv_same_context(&s->start.context, &c->ref);
}

static vv_code look_at_spans(vv_context_view *c, const vv_fold *f, vv_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < f->span_count; i++)
        n += is_of(c, &f->spans[i]) && f->spans[i].has_end;
    uint64_t *durations = malloc((n + 1) * sizeof *durations);
    if (!durations)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the calls of a context");
    for (size_t i = 0; i < f->span_count; i++) {
        const vv_fold_span *s = &f->spans[i];
        if (!is_of(c, s))
            continue;
        c->retained++;
        if (s->has_end)
            durations[c->ended++] = s->end.inclusive_ns;
        consider(c, f, (uint32_t)i);
    }
    measure(c, durations);
    free(durations);
    for (size_t i = 0; i < f->error_count; i++)
        if (vv_same_context(&f->errors[i].context, &c->ref)) {
            c->captures++;
            c->fresh += f->errors[i].kind == 0;
        }
    return VV_OK;
}

vv_code vv_context_make(vv_context_view *c, vv_query *q, const vv_profile *p, vv_error *err)
{
    c->node = p->fold->failed ? VV_NONE : vv_node_of(p, &c->ref);
    if (c->node == VV_NONE) {
        q->parameter = "key";
        return vv_fail(err, VV_ERR_NOTFOUND, "%s",
                       p->fold->failed ? "the data of that execution is damaged: none of its contexts can be shown"
                                       : "that execution has no such context");
    }
    vv_code rc = fill_chain(c, p, err);
    if (rc != VV_OK)
        return rc;
    find_path(c, p);
    rc = fill_children(c, q, p, err);
    if (rc == VV_OK)
        rc = sum_await(c, p, err);
    if (rc == VV_OK)
        rc = vv_errors_below(p, c->node, &c->errors_below, err);
    if (rc == VV_OK)
        rc = look_at_spans(c, p->fold, err);
    return rc;
}

void vv_context_done(vv_context_view *c)
{
    vv_page_done(&c->page);
    free(c->chain);
    c->chain = NULL;
}
