#include "config.h"

#include "tests/views/folds.h"

/* A profile and its flame by these options. */
typedef struct {
    vv_profile *p;
    vv_flame_options o;
    vv_flame f;
} view;

static view view_of(vv_profile *p)
{
    return (view){.p = p, .o = vv_flame_defaults()};
}

/* Builds the flame, in place of what was built before. */
static void build(view *v)
{
    vv_error err = {0};
    vv_flame_done(&v->f);
    ck_assert_msg(vv_flame_build(&v->f, &v->p->tree, &v->o, &err) == VV_OK, "%s", err.msg);
}

static void view_done(view *v)
{
    vv_flame_done(&v->f);
    vv_profile_free(v->p);
}

static uint32_t key_of(const vv_profile *p, const vv_flame_row *r)
{
    return r->node == VV_NONE ? VV_NONE : vv_be32(p->tree.nodes[r->node].key);
}

/* The rows' keys in order; a sliver is -1. */
static void expect_rows(const view *v, const int *keys, size_t n)
{
    ck_assert_uint_eq(v->f.row_count, n);
    for (size_t i = 0; i < n; i++) {
        int got = (int)key_of(v->p, &v->f.rows[i]);
        ck_assert_msg(got == keys[i], "row %zu: wanted %d, got %d", i, keys[i], got);
    }
}
#define EXPECT_ROWS(v, ...) expect_rows(v, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

/*
 * 1 root: own 100, children 2 (own 50, await 10; child 4 own 40) and 3 (own 5), and a spawned 5 (own 1000; child 6 own
 * 7).
 */
static vv_profile *small_tree(void)
{
    test_fold t = test_fold_new(8);
    test_counters(test_context(&t, 1, -1, VV_EDGE_ROOT, 1), 1, 100, 0, 105);
    test_counters(test_context(&t, 2, 1, VV_EDGE_CALL, 2), 3, 50, 10, 40);
    test_counters(test_context(&t, 3, 1, VV_EDGE_CALL, 3), 2, 5, 0, 0);
    test_counters(test_context(&t, 4, 2, VV_EDGE_CALL, 2), 9, 40, 0, 0);
    test_counters(test_context(&t, 5, 1, VV_EDGE_SPAWN, 4), 1, 1000, 0, 7);
    test_counters(test_context(&t, 6, 5, VV_EDGE_CALL, 3), 1, 7, 0, 0);
    return test_profile(&t);
}

START_TEST(parents_come_first_and_the_largest_next)
{
    view v = view_of(small_tree());
    build(&v);
    EXPECT_ROWS(&v, 1, 5, 6, 2, 4, 3);
    for (size_t i = 0; i < v.f.row_count; i++)
        ck_assert(v.f.rows[i].parent == VV_NONE || v.f.rows[i].parent < i);
    ck_assert(v.f.of_root == 205 && v.f.of_total == 205 && v.f.of_filtered == 205);
    ck_assert(!v.f.truncated && v.f.folded.nodes == 0 && v.f.filtered.nodes == 0);
    view_done(&v);
}
END_TEST

START_TEST(equal_sizes_go_by_key)
{
    test_fold t = test_fold_new(8);
    test_counters(test_context(&t, 9, -1, VV_EDGE_ROOT, 1), 1, 0, 0, 30);
    for (uint32_t n = 8; n >= 6; n--)
        test_counters(test_context(&t, n, 9, VV_EDGE_CALL, n), 1, 10, 0, 0);
    view v = view_of(test_profile(&t));
    build(&v);
    EXPECT_ROWS(&v, 9, 6, 7, 8);
    view_done(&v);
}
END_TEST

START_TEST(sizes_of_every_metric)
{
    static const uint64_t want[] = {
        [VV_METRIC_INCLUSIVE] = 205, [VV_METRIC_SELF] = 1202, [VV_METRIC_AWAIT] = 10, [VV_METRIC_AWAIT_SUBTREE] = 10,
        [VV_METRIC_CALLS] = 17, [VV_METRIC_ERRORS] = 0,
    };
    view v = view_of(small_tree());
    v.o.metric = (vv_metric)_i;
    build(&v);
    ck_assert_uint_eq((uint64_t)v.f.of_root, want[_i]);
    view_done(&v);
}
END_TEST

START_TEST(width_folds_what_is_below_half_a_pixel)
{
    view v = view_of(small_tree());
    v.o.width = 5; /* of 205: half a pixel is 20.5, so 3 (5 ns) and 6 (7 ns) fold */
    build(&v);
    EXPECT_ROWS(&v, 1, 5, -1, 2, 4, -1);
    const vv_sliver *s = &v.f.slivers[v.f.rows[2].sliver];
    ck_assert(s->calls == 1 && s->self_ns == 7 && s->inclusive_ns == 7 && s->nodes == 1 && s->flags == VV_NODE_SLIVER);
    ck_assert_uint_eq(v.f.rows[2].parent, 1);
    ck_assert_uint_eq(v.f.rows[5].parent, 0);
    ck_assert(v.f.folded.nodes == 2 && v.f.folded.calls == 3 && v.f.folded.self_ns == 12 && !v.f.truncated);
    view_done(&v);
}
END_TEST

START_TEST(exactly_half_a_pixel_stays)
{
    test_fold t = test_fold_new(4);
    test_counters(test_context(&t, 1, -1, VV_EDGE_ROOT, 1), 1, 81, 0, 19);
    test_counters(test_context(&t, 2, 1, VV_EDGE_CALL, 2), 1, 10, 0, 0); /* of 100 at 5 pixels: half one is 10 */
    test_counters(test_context(&t, 3, 1, VV_EDGE_CALL, 3), 1, 9, 0, 0);
    view v = view_of(test_profile(&t));
    v.o.width = 5;
    build(&v);
    EXPECT_ROWS(&v, 1, 2, -1);
    view_done(&v);
}
END_TEST

START_TEST(a_wide_spawn_keeps_its_narrow_parent)
{
    test_fold t = test_fold_new(4);
    test_counters(test_context(&t, 1, -1, VV_EDGE_ROOT, 1), 1, 999, 0, 1);
    test_counters(test_context(&t, 2, 1, VV_EDGE_CALL, 2), 1, 1, 0, 0);
    test_counters(test_context(&t, 3, 2, VV_EDGE_SPAWN, 3), 1, 800, 0, 0);
    view v = view_of(test_profile(&t));
    v.o.width = 10;
    build(&v);
    EXPECT_ROWS(&v, 1, 2, 3);
    view_done(&v);
}
END_TEST

START_TEST(depth_folds_what_is_deeper)
{
    view v = view_of(small_tree());
    v.o.depth = 1;
    build(&v);
    EXPECT_ROWS(&v, 1, -1);
    const vv_sliver *s = &v.f.slivers[0];
    ck_assert(s->calls == 16 && s->self_ns == 1102 && s->await_ns == 10 && s->nodes == 5);
    ck_assert(s->inclusive_ns == 105); /* the Call children of the root alone */
    view_done(&v);
}
END_TEST

START_TEST(max_nodes_keeps_the_largest)
{
    view v = view_of(small_tree());
    v.o.max_nodes = 3;
    build(&v);
    EXPECT_ROWS(&v, 1, 5, -1, 2, -1, -1);
    ck_assert(v.f.truncated && v.f.folded.nodes == 3);
    v.o.metric = VV_METRIC_CALLS;
    build(&v);
    EXPECT_ROWS(&v, 1, 2, 4, -1);
    view_done(&v);
}
END_TEST

START_TEST(edges_that_are_not_followed_are_filtered)
{
    view v = view_of(small_tree());
    v.o.metric = VV_METRIC_SELF;
    v.o.edges = 1u << VV_EDGE_CALL;
    build(&v);
    EXPECT_ROWS(&v, 1, 2, 4, 3);
    ck_assert(v.f.filtered.nodes == 2 && v.f.filtered.calls == 2 && v.f.filtered.self_ns == 1007);
    ck_assert(v.f.of_total == 1202 && v.f.of_filtered == 195 && v.f.of_root == 195);
    view_done(&v);
}
END_TEST

START_TEST(root_zooms_by_key_and_path)
{
    view v = view_of(small_tree());
    vv_context_key key = test_key(2);
    v.o.has_root = true;
    memcpy(v.o.root, key.b, sizeof key.b);
    build(&v);
    EXPECT_ROWS(&v, 2, 4);
    ck_assert(v.f.of_root == 100 && v.f.of_total == 205 && v.f.root_found && v.f.rows[0].parent == VV_NONE);

    vv_path_id paths[6];
    bool has[6];
    vv_tree_paths(&v.p->tree, paths, has);
    uint32_t at = v.p->node_at[vv_fold_find_context(v.p->fold, &key)];
    ck_assert(has[at]);
    v.o.root_is_path = true;
    memcpy(v.o.root, paths[at].b, sizeof paths[at].b);
    build(&v);
    EXPECT_ROWS(&v, 2, 4);

    v.o.root[0] ^= 1;
    build(&v);
    ck_assert(!v.f.root_found && v.f.row_count == 0);
    view_done(&v);
}
END_TEST

START_TEST(contexts_that_differ_by_site_share_a_path)
{
    test_fold t = test_fold_new(4);
    test_counters(test_context(&t, 1, -1, VV_EDGE_ROOT, 1), 1, 1, 0, 5);
    for (uint32_t n = 2; n <= 3; n++) {
        vv_fold_context *c = test_context(&t, n, 1, VV_EDGE_CALL, 2);
        test_counters(c, 1, n, 0, 0);
        c->tuple.has_site = true;
        c->tuple.site.line = n;
    }
    view v = view_of(test_profile(&t));
    vv_path_id paths[3];
    bool has[3];
    vv_tree_paths(&v.p->tree, paths, has);
    ck_assert(memcmp(&paths[1], &paths[2], sizeof paths[1]) == 0);
    v.o.has_root = v.o.root_is_path = true;
    memcpy(v.o.root, paths[1].b, sizeof paths[1].b);
    build(&v);
    EXPECT_ROWS(&v, 3, 2);
    ck_assert(v.f.of_root == 5);
    view_done(&v);
}
END_TEST

START_TEST(overflow_orphans_and_undefined_stand_at_the_top)
{
    test_fold t = test_fold_new(4);
    test_counters(test_context(&t, 1, -1, VV_EDGE_ROOT, 1), 1, 10, 0, 0);
    test_counters(test_context(&t, 2, 77, VV_EDGE_CALL, 2), 1, 8, 0, 0);
    test_counters(test_context(&t, 3, -1, VV_EDGE_CALL, 0), 1, 6, 0, 0);
    t.fold->contexts[2].defined = false;
    t.fold->overflow_present[1][VV_EDGE_CALL] = true;
    t.fold->overflow[1][VV_EDGE_CALL] = (vv_counters){.started = 5, .ok = 4};
    view v = view_of(test_profile(&t));
    static const struct {
        uint8_t flags, edge;
    } want[] = {{0, VV_EDGE_ROOT}, {VV_NODE_ORPHAN, VV_EDGE_CALL}, {VV_NODE_UNDEFINED, VV_EDGE_UNKNOWN},
                {VV_NODE_OVERFLOW | VV_NODE_OPEN, VV_EDGE_CALL}};
    ck_assert_uint_eq(v.p->tree.node_count, 4);
    for (size_t i = 0; i < VV_ARRAY_LEN(want); i++) {
        ck_assert_uint_eq(v.p->tree.nodes[i].flags, want[i].flags);
        ck_assert_uint_eq(v.p->tree.nodes[i].edge, want[i].edge);
    }
    build(&v);
    ck_assert_uint_eq(v.f.row_count, 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(v.f.rows[i].parent, VV_NONE);
    char id[VV_OVERFLOW_ID];
    vv_node_overflow_id(&v.p->tree.nodes[3], id);
    ck_assert_str_eq(id, "overflow:invalid_parent_context:call");
    vv_path_id paths[4];
    bool has[4];
    vv_tree_paths(&v.p->tree, paths, has);
    ck_assert(has[0] && !has[1] && !has[2] && !has[3]);
    view_done(&v);
}
END_TEST

START_TEST(open_calls_are_as_wide_as_their_children)
{
    test_fold t = test_fold_new(4);
    vv_fold_context *root = test_context(&t, 1, -1, VV_EDGE_ROOT, 1), *mid;
    root->counters = (vv_counters){.started = 1};
    mid = test_context(&t, 2, 1, VV_EDGE_CALL, 2);
    mid->counters = (vv_counters){.started = 1, .direct_child_ns = 70};
    test_counters(test_context(&t, 3, 2, VV_EDGE_CALL, 3), 7, 70, 0, 0);
    view v = view_of(test_profile(&t));
    build(&v);
    ck_assert(v.f.of_root == 70);
    ck_assert_uint_eq(v.p->tree.nodes[0].flags, VV_NODE_OPEN);
    ck_assert_uint_eq(v.p->tree.nodes[1].flags, VV_NODE_OPEN); /* as it is open, its children took longer */
    ck_assert(vv_node_call_children(&v.p->tree, 1) == 70 && vv_node_call_children(&v.p->tree, 0) == 0);
    view_done(&v);
}
END_TEST

START_TEST(a_cycle_is_cut)
{
    test_fold t = test_fold_new(4);
    test_counters(test_context(&t, 1, 3, VV_EDGE_CALL, 1), 1, 1, 0, 0);
    test_counters(test_context(&t, 2, 1, VV_EDGE_CALL, 2), 1, 1, 0, 0);
    test_counters(test_context(&t, 3, 2, VV_EDGE_CALL, 3), 1, 1, 0, 0);
    test_counters(test_context(&t, 4, 4, VV_EDGE_CALL, 4), 1, 1, 0, 0);
    view v = view_of(test_profile(&t));
    build(&v);
    ck_assert_uint_eq(v.f.row_count, 4);
    ck_assert_uint_eq(v.p->tree.top_count, 2);
    vv_function_row *rows;
    size_t n;
    ck_assert(vv_function_rows(&v.p->tree, &rows, &n, NULL) == VV_OK);
    ck_assert_uint_eq(n, 4);
    free(rows);
    view_done(&v);
}
END_TEST

START_TEST(saturated_counters_do_not_wrap)
{
    const vv_u128 most = ~(vv_u128)0;
    test_fold t = test_fold_new(4);
    vv_fold_context *c = test_context(&t, 1, -1, VV_EDGE_ROOT, 1);
    c->counters = (vv_counters){.started = UINT64_MAX, .ok = UINT64_MAX, .error = UINT64_MAX, .inclusive_ns = most,
                                .await_ns = most, .direct_child_ns = most};
    c = test_context(&t, 2, 1, VV_EDGE_CALL, 2);
    c->counters = (vv_counters){.started = UINT64_MAX, .inclusive_ns = most};
    t.fold->health = VV_HEALTH_ALL;
    view v = view_of(test_profile(&t));
    v.o.width = 1000000;
    for (v.o.metric = VV_METRIC_INCLUSIVE; v.o.metric <= VV_METRIC_ERRORS; v.o.metric++) {
        build(&v);
        ck_assert_uint_ge(v.f.row_count, 2);
    }
    ck_assert(vv_counters_open(v.p->tree.nodes[0].counters) == -(__int128)UINT64_MAX);
    view_done(&v);
}
END_TEST

START_TEST(a_chain_of_180000)
{
    enum { DEPTH = 180000 };
    test_fold t = test_fold_new(DEPTH);
    for (uint32_t n = 0; n < DEPTH; n++)
        test_counters(test_context(&t, n, (int64_t)n - 1, n ? VV_EDGE_CALL : VV_EDGE_ROOT, n % 3), 1, 1, 0,
                      DEPTH - 1 - n);
    view v = view_of(test_profile(&t));
    v.o.max_nodes = DEPTH;
    build(&v);
    ck_assert_uint_eq(v.f.row_count, DEPTH);
    ck_assert(v.f.of_root == DEPTH);
    v.o = vv_flame_defaults();
    build(&v);
    ck_assert_uint_eq(v.f.row_count, VV_FLAME_MAX_NODES + 1);
    ck_assert_uint_eq(v.f.folded.nodes, DEPTH - VV_FLAME_MAX_NODES);
    vv_function_row *rows;
    size_t n;
    ck_assert(vv_function_rows(&v.p->tree, &rows, &n, NULL) == VV_OK);
    ck_assert_uint_eq(n, 3);
    for (size_t i = 0; i < n; i++)
        ck_assert(rows[i].inclusive_ns == DEPTH - rows[i].function->id);
    free(rows);
    view_done(&v);
}
END_TEST

START_TEST(recursion_counts_once_and_a_spawn_starts_afresh)
{
    test_fold t = test_fold_new(8);
    test_counters(test_context(&t, 1, -1, VV_EDGE_ROOT, 1), 1, 10, 0, 30);
    test_counters(test_context(&t, 2, 1, VV_EDGE_CALL, 2), 1, 10, 0, 20);
    test_counters(test_context(&t, 3, 2, VV_EDGE_CALL, 1), 1, 10, 0, 10); /* 1 below itself */
    test_counters(test_context(&t, 4, 3, VV_EDGE_CALL, 2), 1, 10, 0, 0);  /* 2 below itself */
    test_counters(test_context(&t, 5, 4, VV_EDGE_SPAWN, 1), 1, 500, 0, 0); /* a thread of its own */
    vv_profile *p = test_profile(&t);
    vv_function_row *rows;
    size_t n;
    ck_assert(vv_function_rows(&p->tree, &rows, &n, NULL) == VV_OK);
    ck_assert_uint_eq(n, 2);
    const vv_function_row *one = &rows[rows[0].function->id != 1], *two = &rows[rows[0].function->id == 1];
    ck_assert(one->function->id == 1 && one->inclusive_ns == 540 && one->self_ns == 520 && one->contexts == 3);
    ck_assert(two->function->id == 2 && two->inclusive_ns == 30 && two->self_ns == 20 && two->calls == 2);
    free(rows);
    vv_profile_free(p);
}
END_TEST

START_TEST(a_failed_fold_shows_nothing)
{
    test_fold t = test_fold_new(4);
    test_counters(test_context(&t, 1, -1, VV_EDGE_ROOT, 1), 1, 10, 0, 0);
    t.fold->failed = true;
    t.fold->error.name = "DuplicateSpanEnd";
    view v = view_of(test_profile(&t));
    build(&v);
    ck_assert_uint_eq(v.f.row_count, 0);
    vv_digest *d;
    vv_execution x = {.status = VV_EXEC_SUCCEEDED, .has_end = true};
    ck_assert(vv_digest_new(&d, &x, v.p, NULL) == VV_OK);
    ck_assert(!d->known && d->evidence.verdict == VV_VERDICT_DAMAGED && d->evidence.issues_total == 1);
    ck_assert_str_eq(d->evidence.issues[0].error, "DuplicateSpanEnd");
    vv_digest_free(d);
    view_done(&v);
}
END_TEST

/* Random parents and numbers, keys in no order of the tree; some calls open, some contexts undefined. */
static test_fold random_fold(test_rng *g, uint32_t n)
{
    test_fold t = test_fold_new(n);
    uint32_t keys[64];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (uint32_t)test_below(g, i + 1);
        keys[i] = keys[at];
        keys[at] = i + 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        int64_t parent = i && test_below(g, 8) ? (int64_t)keys[test_below(g, i)] : -1;
        vv_fold_context *c = test_context(&t, keys[i], parent, (vv_edge)test_below(g, VV_EDGES), i % 7);
        test_counters(c, 1 + test_below(g, 5), 10 * test_below(g, 5), test_below(g, 2), test_below(g, 40));
        c->counters.ok -= test_below(g, 6) == 0;
        if (test_below(g, 5) == 0)
            c->counters.inclusive_ns = 0; /* as while it is open */
        c->defined = test_below(g, 20) != 0;
    }
    t.fold->overflow_present[0][VV_EDGE_CALL] = test_below(g, 2);
    t.fold->overflow[0][VV_EDGE_CALL] = (vv_counters){.started = 3, .ok = 3, .inclusive_ns = 77};
    return t;
}

/* Each node stands behind its parent and all of its elder siblings' trees, largest first, with its fold's numbers. */
static void expect_laid_out(const vv_profile *p)
{
    const vv_tree *t = &p->tree;
    uint32_t chain[80], depth = 0;
    ck_assert(t->laid_out && t->node_count < VV_ARRAY_LEN(chain));
    for (uint32_t i = 0; i < t->node_count; i++) {
        const vv_node *n = &t->nodes[i];
        while (depth && chain[depth - 1] != n->parent)
            depth--;
        ck_assert(n->parent == VV_NONE || depth > 0);
        chain[depth++] = i;
        ck_assert_uint_eq(t->order[i], i);
        ck_assert(i >= p->context_count ? n->key == NULL : p->node_at[p->context_at[i]] == i);
        const vv_fold_context *c = vv_profile_context(p, i);
        ck_assert((c == NULL) == (n->key == NULL));
        ck_assert(!c || (n->key == c->key.b && memcmp(n->counters, &c->counters, sizeof c->counters) == 0));
        for (uint32_t k = t->child_first[i] + 1; k < t->child_first[i + 1]; k++)
            ck_assert(t->nodes[t->child[k - 1]].counters->inclusive_ns >= t->nodes[t->child[k]].counters->inclusive_ns);
    }
}

/* What is drawn from a tree that lies in order is what is drawn from one that has to be sorted. */
START_TEST(trees_are_laid_out_and_drawn_the_same)
{
    test_rng g = test_seeded("laid out");
    for (int round = 0; round < 400; round++) {
        test_fold t = random_fold(&g, 1 + (uint32_t)test_below(&g, 60));
        view v = view_of(test_profile(&t));
        expect_laid_out(v.p);
        v.o.metric = (vv_metric)(round % (VV_METRIC_ERRORS + 1));
        build(&v);
        vv_flame quick = v.f;
        v.f = (vv_flame){0};
        v.p->tree.laid_out = false;
        build(&v);
        ck_assert_uint_eq(quick.row_count, v.f.row_count);
        ck_assert_mem_eq(quick.rows, v.f.rows, quick.row_count * sizeof *quick.rows);
        ck_assert(quick.of_total == v.f.of_total && quick.sliver_count == 0 && v.f.sliver_count == 0);
        vv_flame_done(&quick);
        view_done(&v);
    }
}
END_TEST

int main(void)
{
    TCase *t = test_case("flame", 0);
    tcase_add_test(t, trees_are_laid_out_and_drawn_the_same);
    tcase_add_test(t, parents_come_first_and_the_largest_next);
    tcase_add_test(t, equal_sizes_go_by_key);
    tcase_add_loop_test(t, sizes_of_every_metric, VV_METRIC_INCLUSIVE, VV_METRIC_ERRORS + 1);
    tcase_add_test(t, width_folds_what_is_below_half_a_pixel);
    tcase_add_test(t, exactly_half_a_pixel_stays);
    tcase_add_test(t, a_wide_spawn_keeps_its_narrow_parent);
    tcase_add_test(t, depth_folds_what_is_deeper);
    tcase_add_test(t, max_nodes_keeps_the_largest);
    tcase_add_test(t, edges_that_are_not_followed_are_filtered);
    tcase_add_test(t, root_zooms_by_key_and_path);
    tcase_add_test(t, contexts_that_differ_by_site_share_a_path);
    tcase_add_test(t, overflow_orphans_and_undefined_stand_at_the_top);
    tcase_add_test(t, open_calls_are_as_wide_as_their_children);
    tcase_add_test(t, a_cycle_is_cut);
    tcase_add_test(t, saturated_counters_do_not_wrap);
    tcase_add_test(t, a_chain_of_180000);
    tcase_add_test(t, recursion_counts_once_and_a_spawn_starts_afresh);
    tcase_add_test(t, a_failed_fold_shows_nothing);
    return test_run();
}
