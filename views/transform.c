#include "config.h"

#include "views/transform.h"

#include <stdlib.h>

#include "views/query.h"

/* What the transforms work on; arrays by node of the source. */
typedef struct {
    const vv_tree *t;
    vv_node *nodes;          /* as they stand now; parent and edge skip what is hidden */
    uint8_t *alive;
    uint8_t *matches;        /* by function, of the transform at work */
    uint32_t *owner;         /* of the transform at work */
    uint32_t *place;         /* of changed numbers in `changed`, VV_NONE = the source's */
    vv_counters *changed;
    uint32_t changed_count, changed_cap;
    vv_u128 *call_child_ns;
    bool failed;             /* no memory */
} work;

bool vv_transform_parse(vv_transform *ret, vv_str s)
{
    static const struct {
        const char *word;
        vv_transform_kind kind;
    } with_text[] = {{"focus:", VV_FOCUS}, {"hide:", VV_HIDE}, {"collapse:", VV_COLLAPSE}};
    if (vv_str_eq(s, vv_cstr("only_user"))) {
        *ret = (vv_transform){VV_ONLY_USER, {NULL, 0}};
        return true;
    }
    for (size_t i = 0; i < VV_ARRAY_LEN(with_text); i++) {
        size_t n = strlen(with_text[i].word);
        if (s.n > n && memcmp(s.p, with_text[i].word, n) == 0) {
            *ret = (vv_transform){with_text[i].kind, {s.p + n, s.n - n}};
            return true;
        }
    }
    return false;
}

/* The name, display name, file or package has the text as a part, ASCII case aside. */
static bool contains(const vv_function_ref *f, vv_str text)
{
    const vv_function *d = f->def;
    if (!d)
        return false;
    return vv_text_contains(d->fqn, text) || vv_text_contains(d->display_name, text)
        || (d->source_file.present && vv_text_contains(d->source_file.s, text))
        || (d->package.present && vv_text_contains(d->package.s, text));
}

static bool known_not_to_be_the_users(const vv_function_ref *f)
{
    return f->def && f->def->origin != VV_FN_USER && f->def->origin != VV_FN_ORIGIN_UNKNOWN;
}

static void match_functions(work *w, const vv_transform *x)
{
    for (uint32_t i = 0; i < w->t->function_count; i++)
        w->matches[i] = x->kind == VV_ONLY_USER ? known_not_to_be_the_users(&w->t->functions[i])
                                                : contains(&w->t->functions[i], x->text);
}

static bool matches(const work *w, uint32_t i)
{
    return w->nodes[i].function != VV_NONE && w->matches[w->nodes[i].function];
}

/* The numbers of a node, to be changed; NULL without memory. Pointers are set when all is done. */
static vv_counters *own(work *w, uint32_t i)
{
    if (w->place[i] != VV_NONE)
        return &w->changed[w->place[i]];
    if (w->changed_count == w->changed_cap) {
        uint32_t cap = w->changed_cap ? w->changed_cap * 2 : 256;
        vv_counters *bigger = realloc(w->changed, cap * sizeof *bigger);
        if (!bigger) {
            w->failed = true;
            return NULL;
        }
        w->changed = bigger;
        w->changed_cap = cap;
    }
    w->place[i] = w->changed_count++;
    w->changed[w->place[i]] = *w->t->nodes[i].counters;
    return &w->changed[w->place[i]];
}

static const vv_counters *numbers(const work *w, uint32_t i)
{
    return w->place[i] == VV_NONE ? w->t->nodes[i].counters : &w->changed[w->place[i]];
}

/*
 * Node `to` takes over what `from`, part of its inclusive time, spent itself. Its calls and errors stay what they were:
 * those of `from` are calls of another function.
 */
static void give(work *w, uint32_t to, uint32_t from)
{
    vv_counters *c = own(w, to);
    if (!c)
        return;
    const vv_counters *gone = numbers(w, from);
    w->nodes[to].self_ns = vv_sat128(w->nodes[to].self_ns, w->nodes[from].self_ns);
    c->await_ns = vv_sat128(c->await_ns, gone->await_ns);
    c->await_count = vv_sat64(c->await_count, gone->await_count);
    c->direct_child_ns = vv_sat128(c->direct_child_ns, gone->direct_child_ns);
    w->call_child_ns[to] = vv_sat128(w->call_child_ns[to], w->call_child_ns[from]);
    w->nodes[to].flags |= w->nodes[from].flags & VV_NODE_TIMING_INCOMPLETE;
}

/* Puts a node where its hidden parent was: it is called the way that was, unless it was spawned itself. */
static void move_up(work *w, uint32_t i)
{
    vv_node *n = &w->nodes[i];
    const vv_node *hidden = &w->nodes[n->parent];
    if (n->edge == VV_EDGE_CALL)
        n->edge = hidden->edge;
    n->flags |= hidden->flags & VV_NODE_ORPHAN;
    n->parent = hidden->parent;
}

static void hide(work *w)
{
    for (uint32_t k = 0; k < w->t->node_count; k++) {
        uint32_t i = w->t->order[k];
        vv_node *n = &w->nodes[i];
        if (!w->alive[i])
            continue;
        if (n->parent != VV_NONE && !w->alive[n->parent])
            move_up(w, i);
        if (!matches(w, i))
            continue;
        w->alive[i] = 0;
        if (n->parent != VV_NONE && n->edge == VV_EDGE_CALL)
            give(w, n->parent, i);
    }
}

/* What was spawned runs beside its spawner, so it is not taken in: it hangs below the match then. */
static void collapse(work *w)
{
    for (uint32_t k = 0; k < w->t->node_count; k++) {
        uint32_t i = w->t->order[k], up = w->nodes[i].parent;
        if (!w->alive[i])
            continue;
        w->owner[i] = matches(w, i) ? i : VV_NONE;
        if (up == VV_NONE || w->owner[up] == VV_NONE)
            continue;
        w->nodes[i].parent = w->owner[up];
        if (w->nodes[i].edge != VV_EDGE_CALL)
            continue;
        w->alive[i] = 0;
        w->owner[i] = w->owner[up];
        give(w, w->owner[i], i);
    }
}

/* Leaves a node only as the way to those below it, as wide as they are together. */
static void make_way(work *w, uint32_t i, vv_u128 below)
{
    vv_counters *c = own(w, i);
    if (!c)
        return;
    *c = (vv_counters){.inclusive_ns = below, .direct_child_ns = below};
    w->call_child_ns[i] = below;
    w->nodes[i].self_ns = 0;
    w->nodes[i].flags = (uint8_t)((w->nodes[i].flags & VV_NODE_ORPHAN) | VV_NODE_WAY);
}

/* owner: 0 = outside, 1 = the way to a match, 2 = a match or below one. */
static void focus(work *w, vv_u128 *below)
{
    enum { OUTSIDE, WAY, INSIDE };
    uint32_t n = w->t->node_count;
    memset(below, 0, n * sizeof *below);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = w->t->order[k], up = w->nodes[i].parent;
        if (w->alive[i])
            w->owner[i] = matches(w, i) || (up != VV_NONE && w->owner[up] == INSIDE) ? INSIDE : OUTSIDE;
    }
    for (uint32_t k = n; k-- > 0;) {
        uint32_t i = w->t->order[k], up = w->nodes[i].parent;
        if (!w->alive[i])
            continue;
        if (w->owner[i] == WAY)
            make_way(w, i, below[i]);
        if (w->failed)
            return;
        w->alive[i] = w->owner[i] != OUTSIDE;
        if (!w->alive[i] || up == VV_NONE)
            continue;
        if (w->owner[up] == OUTSIDE)
            w->owner[up] = WAY;
        if (w->nodes[i].edge == VV_EDGE_CALL)
            below[up] = vv_sat128(below[up], numbers(w, i)->inclusive_ns);
    }
}

static vv_code transform(work *w, const vv_transform *x, vv_error *err)
{
    match_functions(w, x);
    switch (x->kind) {
    case VV_HIDE:
    case VV_ONLY_USER:
        hide(w);
        break;
    case VV_COLLAPSE:
        collapse(w);
        break;
    case VV_FOCUS: {
        vv_u128 *below = malloc(((size_t)w->t->node_count + 1) * sizeof *below);
        if (below)
            focus(w, below);
        else
            w->failed = true;
        free(below);
        break;
    }
    }
    return w->failed ? vv_fail(err, VV_ERR_NOMEM, "no memory for a transform") : VV_OK;
}

static vv_code begin(work *w, vv_error *err)
{
    size_t n = (size_t)w->t->node_count + 1;
    w->nodes = malloc(n * sizeof *w->nodes);
    w->alive = malloc(n);
    w->matches = malloc((size_t)w->t->function_count + 1);
    w->owner = malloc(n * sizeof *w->owner);
    w->place = malloc(n * sizeof *w->place);
    w->call_child_ns = malloc(n * sizeof *w->call_child_ns);
    if (!w->nodes || !w->alive || !w->matches || !w->owner || !w->place || !w->call_child_ns)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a transform");
    memcpy(w->nodes, w->t->nodes, w->t->node_count * sizeof *w->nodes);
    memset(w->alive, 1, w->t->node_count);
    memset(w->place, 0xff, n * sizeof *w->place);
    for (uint32_t i = 0; i < w->t->node_count; i++)
        w->call_child_ns[i] = vv_node_call_children(w->t, i);
    return VV_OK;
}

/* Makes a tree of what is alive. The numbers' array and the list of call times become its own. */
static vv_code finish(work *w, vv_derived *ret, vv_error *err)
{
    const vv_tree *t = w->t;
    uint32_t n = 0, *place = w->owner;
    for (uint32_t i = 0; i < t->node_count; i++)
        place[i] = w->alive[i] ? n++ : VV_NONE;
    vv_code rc = vv_tree_make(&ret->tree, n, err);
    ret->origin = malloc(((size_t)n + 1) * sizeof *ret->origin);
    ret->tree.functions = malloc(((size_t)t->function_count + 1) * sizeof *t->functions);
    if (rc == VV_OK && (!ret->origin || !ret->tree.functions))
        rc = vv_fail(err, VV_ERR_NOMEM, "no memory for a transform");
    if (rc != VV_OK)
        return rc;
    for (uint32_t i = 0; i < t->node_count; i++) {
        if (!w->alive[i]) {
            ret->filtered.nodes++;
            continue;
        }
        vv_node *to = &ret->tree.nodes[place[i]];
        *to = w->nodes[i];
        to->parent = to->parent == VV_NONE ? VV_NONE : place[to->parent];
        to->counters = numbers(w, i);
        ret->origin[place[i]] = i;
        w->call_child_ns[place[i]] = w->call_child_ns[i];
    }
    if (t->function_count)
        memcpy(ret->tree.functions, t->functions, t->function_count * sizeof *t->functions);
    ret->tree.function_count = t->function_count;
    ret->counters = w->changed;
    ret->call_child_ns = w->call_child_ns;
    ret->tree.call_child_ns = w->call_child_ns;
    w->changed = NULL;
    w->call_child_ns = NULL;
    return vv_tree_link(&ret->tree, err);
}

/* What the source has and the result lacks. */
static void count_filtered(vv_derived *d, const vv_tree *t)
{
    vv_u128 self[2] = {0};
    for (uint32_t i = 0; i < t->node_count; i++) {
        d->filtered.calls += t->nodes[i].counters->started;
        self[0] = vv_sat128(self[0], t->nodes[i].self_ns);
    }
    for (uint32_t i = 0; i < d->tree.node_count; i++) {
        d->filtered.calls -= d->tree.nodes[i].counters->started;
        self[1] = vv_sat128(self[1], d->tree.nodes[i].self_ns);
    }
    d->filtered.self_ns = self[0] > self[1] ? self[0] - self[1] : 0;
}

size_t vv_transform_most(uint32_t n)
{
    const size_t at_work = sizeof(vv_node) + sizeof(uint8_t) + 2 * sizeof(uint32_t) + sizeof(vv_counters);
    return n * (at_work + sizeof(vv_node) + 5 * sizeof(uint32_t) + 2 * sizeof(vv_u128) + sizeof(vv_counters));
}

size_t vv_derived_bytes(const vv_derived *d)
{
    size_t each = (d->origin ? sizeof *d->origin : 0) + (d->counters ? sizeof *d->counters : 0)
        + (d->call_child_ns ? sizeof *d->call_child_ns : 0) + (d->keys ? sizeof *d->keys : 0);
    return vv_tree_bytes(&d->tree) + d->tree.node_count * each;
}

vv_code vv_transform_tree(vv_derived *ret, const vv_tree *t, const vv_transform *list, size_t n, vv_error *err)
{
    work w = {.t = t};
    *ret = (vv_derived){0};
    vv_code rc = begin(&w, err);
    for (size_t i = 0; i < n && rc == VV_OK; i++)
        rc = transform(&w, &list[i], err);
    if (rc == VV_OK)
        rc = finish(&w, ret, err);
    if (rc == VV_OK)
        count_filtered(ret, t);
    else
        vv_derived_done(ret);
    free(w.nodes);
    free(w.alive);
    free(w.matches);
    free(w.owner);
    free(w.place);
    free(w.changed);
    free(w.call_child_ns);
    return rc;
}

void vv_derived_done(vv_derived *d)
{
    vv_tree_clear(&d->tree);
    free(d->origin);
    free(d->counters);
    free(d->call_child_ns);
    free(d->keys);
    *d = (vv_derived){0};
}
