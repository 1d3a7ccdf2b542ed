#include "config.h"

#include "tests/views/folds.h"
#include "views/drawing.h"

/* A drawing of a profile by a plan. */
typedef struct {
    vv_profile *p;
    vv_draw_plan plan;
    vv_drawing d;
} drawn;

static drawn drawn_of(vv_profile *p, vv_draw_order order)
{
    drawn x = {.p = p, .plan = {.order = order, .options = vv_flame_defaults()}};
    ck_assert(vv_function_grouping_make(&x.plan.groups, &p->tree, NULL) == VV_OK);
    return x;
}

/* Draws, in place of what was drawn before. */
static void draw(drawn *x)
{
    vv_error err = {0};
    vv_drawing_done(&x->d);
    ck_assert_msg(vv_drawing_make(&x->d, &x->plan, &x->p->tree, NULL, &err) == VV_OK, "%s", err.msg);
}

static void drawn_done(drawn *x)
{
    vv_drawing_done(&x->d);
    vv_function_grouping_done(&x->plan.groups);
    vv_profile_free(x->p);
}

/* The group of the function with that number. */
static uint32_t group_of(const drawn *x, uint32_t id)
{
    for (uint32_t i = 0; i < x->p->tree.function_count; i++)
        if (x->p->tree.functions[i].id == id)
            return x->plan.groups.of[i];
    ck_abort_msg("no function %u", id);
}

typedef struct {
    int parent, function; /* function 0: none; -1: a sliver */
    uint64_t calls, self, inclusive, nodes;
} row;

static void expect_rows(const drawn *x, const row *want, size_t n)
{
    ck_assert_uint_eq(x->d.flame.row_count, n);
    for (size_t i = 0; i < n; i++) {
        const vv_node *node;
        vv_sliver s = vv_drawing_row(&x->d, i, &node);
        int parent = x->d.flame.rows[i].parent == VV_NONE ? -1 : (int)x->d.flame.rows[i].parent;
        int function = !node ? -1 : node->function == VV_NONE ? 0 : (int)x->d.tree->functions[node->function].id;
        row got = {parent, function, (uint64_t)s.calls, (uint64_t)s.self_ns, (uint64_t)s.inclusive_ns, s.nodes};
        ck_assert_msg(memcmp(&got, &want[i], sizeof got) == 0,
                      "row %zu: wanted %d %d %d %d %d %d, got %d %d %d %d %d %d", i, want[i].parent, want[i].function,
                      (int)want[i].calls, (int)want[i].self, (int)want[i].inclusive, (int)want[i].nodes, got.parent,
                      got.function, (int)got.calls, (int)got.self, (int)got.inclusive, (int)got.nodes);
    }
}
#define EXPECT(x, ...) expect_rows(x, (const row[]){__VA_ARGS__}, sizeof((const row[]){__VA_ARGS__}) / sizeof(row))

static vv_function names[] = {
    {.id = 1, .fqn = {"main", 4}, .origin = VV_FN_USER},
    {.id = 2, .fqn = {"aaa", 3}, .display_name = {"The First", 9}, .origin = VV_FN_ORIGIN_UNKNOWN},
    {.id = 3, .fqn = {"bbb", 3}, .source_file = {.present = true, .s = {"lib/std.x", 9}}, .origin = VV_FN_BUILTIN},
    {.id = 4, .fqn = {"ccc", 3}, .package = {.present = true, .s = {"net", 3}}, .origin = VV_FN_USER},
};

/*
 * main calls aaa and bbb; aaa calls bbb; that one, below aaa, calls aaa again, which spawns ccc.
 */
static vv_profile *program(void)
{
    test_fold t = test_fold_new(8);
    test_counters(test_context(&t, 1, -1, VV_EDGE_ROOT, 1), 1, 10, 0, 91);
    test_counters(test_context(&t, 2, 1, VV_EDGE_CALL, 2), 2, 20, 0, 51);
    test_counters(test_context(&t, 3, 1, VV_EDGE_CALL, 3), 3, 15, 5, 0);
    test_counters(test_context(&t, 4, 2, VV_EDGE_CALL, 3), 4, 30, 0, 21);
    test_counters(test_context(&t, 5, 4, VV_EDGE_CALL, 2), 5, 21, 0, 0);
    test_counters(test_context(&t, 6, 5, VV_EDGE_SPAWN, 4), 1, 400, 0, 0);
    vv_profile *p = test_profile(&t);
    for (uint32_t i = 0; i < p->tree.function_count; i++)
        p->tree.functions[i].def = &names[p->tree.functions[i].id - 1];
    return p;
}

static drawn of_program(vv_draw_order order, vv_metric metric)
{
    drawn x = drawn_of(program(), order);
    x.plan.options.metric = metric;
    return x;
}

START_TEST(bottom_up_begins_with_functions)
{
    drawn x = of_program(VV_DRAW_BOTTOM_UP, VV_METRIC_SELF);
    draw(&x);
    EXPECT(&x, {-1, 4, 1, 400, 400, 1}, {0, 2, 1, 400, 400, 1}, {1, 3, 1, 400, 400, 1}, {2, 2, 1, 400, 400, 1},
           {3, 1, 1, 400, 400, 1}, {-1, 3, 7, 45, 71, 1}, {5, 2, 4, 30, 51, 1}, {6, 1, 4, 30, 51, 1},
           {5, 1, 3, 15, 20, 1}, {-1, 2, 7, 41, 71, 1}, {9, 3, 5, 21, 0, 1}, {10, 2, 5, 21, 0, 1},
           {11, 1, 5, 21, 0, 1}, {9, 1, 2, 20, 71, 1}, {-1, 1, 1, 10, 101, 1});
    ck_assert(x.d.flame.of_total == 496 && x.d.flame.of_filtered == 496 && x.d.flame.of_root == 496);
    ck_assert(!x.d.flame.truncated && x.d.flame.folded.nodes == 0);
    ck_assert_uint_eq(x.d.tree->nodes[x.d.flame.rows[1].node].edge, VV_EDGE_SPAWN);
    drawn_done(&x);
}
END_TEST

START_TEST(bottom_up_keeps_the_largest)
{
    drawn x = of_program(VV_DRAW_BOTTOM_UP, VV_METRIC_SELF);
    x.plan.options.max_nodes = 3;
    draw(&x);
    EXPECT(&x, {-1, 4, 1, 400, 400, 1}, {0, 2, 1, 400, 400, 1}, {1, 3, 1, 400, 400, 1}, {2, -1, 1, 400, 400, 1},
           {-1, -1, 15, 96, 243, 3});
    ck_assert(x.d.flame.truncated && x.d.flame.folded.nodes == 4);
    ck_assert(x.d.flame.folded.calls == 16 && x.d.flame.folded.self_ns == 496);
    drawn_done(&x);
}
END_TEST

START_TEST(bottom_up_folds_what_is_deep_or_small)
{
    drawn x = of_program(VV_DRAW_BOTTOM_UP, VV_METRIC_SELF);
    x.plan.options.depth = 1;
    draw(&x);
    EXPECT(&x, {-1, 4, 1, 400, 400, 1}, {0, -1, 1, 400, 400, 1}, {-1, 3, 7, 45, 71, 1}, {2, -1, 7, 45, 71, 2},
           {-1, 2, 7, 41, 71, 1}, {4, -1, 7, 41, 71, 2}, {-1, 1, 1, 10, 101, 1});
    ck_assert(!x.d.flame.truncated);
    x.plan.options.depth = 2;
    x.plan.options.width = 5; /* half a pixel of 496 is 49.6 */
    draw(&x);
    EXPECT(&x, {-1, 4, 1, 400, 400, 1}, {0, 2, 1, 400, 400, 1}, {1, -1, 1, 400, 400, 1}, {-1, -1, 15, 96, 243, 3});
    drawn_done(&x);
}
END_TEST

START_TEST(bottom_up_of_a_part)
{
    drawn x = of_program(VV_DRAW_BOTTOM_UP, VV_METRIC_SELF);
    vv_context_key key = test_key(4);
    x.plan.options.has_root = true;
    memcpy(x.plan.options.root, key.b, sizeof key.b);
    draw(&x); /* the inner call of aaa is the outermost there */
    EXPECT(&x, {-1, 4, 1, 400, 400, 1}, {0, 2, 1, 400, 400, 1}, {1, 3, 1, 400, 400, 1}, {-1, 3, 4, 30, 51, 1},
           {-1, 2, 5, 21, 21, 1}, {4, 3, 5, 21, 21, 1});
    ck_assert(x.d.flame.of_total == 496 && x.d.flame.of_root == 451);
    x.plan.options.edges = 1u << VV_EDGE_CALL;
    draw(&x);
    EXPECT(&x, {-1, 3, 4, 30, 51, 1}, {-1, 2, 5, 21, 21, 1}, {1, 3, 5, 21, 21, 1});
    ck_assert(x.d.filtered.nodes == 1 && x.d.filtered.calls == 1 && x.d.filtered.self_ns == 400);
    drawn_done(&x);
}
END_TEST

START_TEST(callers_of_one_function)
{
    drawn x = of_program(VV_DRAW_CALLERS, VV_METRIC_CALLS);
    x.plan.group = group_of(&x, 2);
    draw(&x);
    EXPECT(&x, {-1, 2, 7, 41, 71, 1}, {0, 3, 5, 21, 0, 1}, {1, 2, 5, 21, 0, 1}, {2, 1, 5, 21, 0, 1},
           {0, 1, 2, 20, 71, 1});
    ck_assert(x.d.flame.of_root == 7 && x.d.flame.of_total == 16);
    drawn_done(&x);
}
END_TEST

START_TEST(callees_of_one_function)
{
    drawn x = of_program(VV_DRAW_CALLEES, VV_METRIC_INCLUSIVE);
    x.plan.group = group_of(&x, 2);
    draw(&x);
    EXPECT(&x, {-1, 2, 7, 41, 71, 1}, {0, 4, 1, 400, 400, 1}, {0, 3, 4, 30, 51, 1});
    x.plan.group = group_of(&x, 4);
    draw(&x);
    EXPECT(&x, {-1, 4, 1, 400, 400, 1});
    drawn_done(&x);
}
END_TEST

static void add_transform(drawn *x, const char *text)
{
    ck_assert(vv_transform_parse(&x->plan.transforms[x->plan.transform_count++], vv_cstr(text)));
}

START_TEST(transforms_parse)
{
    static const char *const bad[] = {"", "focus", "focus:", "hide:", "collapse:", "only_user:", "only_users", "drop:x",
                                      "Focus:x", " hide:x"};
    vv_transform x;
    for (size_t i = 0; i < VV_ARRAY_LEN(bad); i++)
        ck_assert_msg(!vv_transform_parse(&x, vv_cstr(bad[i])), "%s", bad[i]);
    ck_assert(vv_transform_parse(&x, vv_cstr("hide:hide:x")) && x.kind == VV_HIDE && x.text.n == 6);
    ck_assert(vv_transform_parse(&x, vv_cstr("only_user")) && x.kind == VV_ONLY_USER);
}
END_TEST

typedef struct {
    const char *transforms[3];
    row rows[6];
    vv_filtered filtered;
} transformed;

#define HIDDEN_B {-1, 1, 1, 25, 101, 1}, {0, 2, 2, 50, 71, 1}, {1, 2, 5, 21, 21, 1}, {2, 4, 1, 400, 400, 1}
static const transformed transforms[] = {
    {{"hide:bbb"}, {HIDDEN_B}, {2, 7, 0}},
    {{"hide:LIB/STD"}, {HIDDEN_B}, {2, 7, 0}},
    {{"only_user"}, {HIDDEN_B}, {2, 7, 0}},
    {{"hide:nobody"}, {{-1, 1, 1, 10, 101, 1}, {0, 2, 2, 20, 71, 1}, {1, 3, 4, 30, 51, 1}, {2, 2, 5, 21, 21, 1},
                       {3, 4, 1, 400, 400, 1}, {0, 3, 3, 15, 20, 1}}, {0}},
    {{"hide:net"}, {{-1, 1, 1, 10, 101, 1}, {0, 2, 2, 20, 71, 1}, {1, 3, 4, 30, 51, 1}, {2, 2, 5, 21, 21, 1},
                    {0, 3, 3, 15, 20, 1}}, {1, 1, 400}},
    {{"hide:main"}, {{-1, 2, 2, 20, 71, 1}, {0, 3, 4, 30, 51, 1}, {1, 2, 5, 21, 21, 1}, {2, 4, 1, 400, 400, 1},
                     {-1, 3, 3, 15, 20, 1}}, {1, 1, 10}},
    {{"collapse:the first"}, {{-1, 1, 1, 10, 101, 1}, {0, 2, 2, 71, 71, 1}, {1, 4, 1, 400, 400, 1},
                              {0, 3, 3, 15, 20, 1}}, {2, 9, 0}},
    {{"collapse:main"}, {{-1, 1, 1, 96, 101, 1}, {0, 4, 1, 400, 400, 1}}, {4, 14, 0}},
    {{"focus:ccc"}, {{-1, 1, 0, 0, 0, 1}, {0, 2, 0, 0, 0, 1}, {1, 3, 0, 0, 0, 1}, {2, 2, 0, 0, 0, 1},
                     {3, 4, 1, 400, 400, 1}}, {1, 15, 96}},
    {{"focus:bbb"}, {{-1, 1, 0, 0, 71, 1}, {0, 2, 0, 0, 51, 1}, {1, 3, 4, 30, 51, 1}, {2, 2, 5, 21, 21, 1},
                     {3, 4, 1, 400, 400, 1}, {0, 3, 3, 15, 20, 1}}, {0, 3, 30}},
    {{"focus:bbb", "hide:bbb"}, {{-1, 1, 0, 15, 71, 1}, {0, 2, 0, 30, 51, 1}, {1, 2, 5, 21, 21, 1},
                                 {2, 4, 1, 400, 400, 1}}, {2, 10, 30}},
    {{"hide:bbb", "focus:bbb"}, {{0}}, {6, 16, 496}},
    {{"hide:bbb", "collapse:aaa", "focus:aaa"}, {{-1, 1, 0, 0, 71, 1}, {0, 2, 2, 71, 71, 1}, {1, 4, 1, 400, 400, 1}},
     {3, 13, 25}},
};

START_TEST(transforms_leave)
{
    const transformed *want = &transforms[_i];
    drawn x = of_program(VV_DRAW_TOP_DOWN, VV_METRIC_INCLUSIVE);
    for (size_t i = 0; i < VV_ARRAY_LEN(want->transforms) && want->transforms[i]; i++)
        add_transform(&x, want->transforms[i]);
    draw(&x);
    size_t n = 0;
    while (n < VV_ARRAY_LEN(want->rows) && want->rows[n].nodes)
        n++;
    expect_rows(&x, want->rows, n);
    ck_assert_uint_eq(x.d.filtered.nodes, want->filtered.nodes);
    ck_assert(x.d.filtered.calls == want->filtered.calls && x.d.filtered.self_ns == want->filtered.self_ns);
    ck_assert(x.d.flame.of_total == 101);
    for (size_t i = 0; i < x.d.flame.row_count; i++) { /* time adds up at each node */
        const vv_node *node;
        vv_sliver s = vv_drawing_row(&x.d, i, &node);
        vv_u128 below = 0;
        for (size_t k = 0; k < x.d.flame.row_count; k++)
            if (x.d.flame.rows[k].parent == i && x.d.tree->nodes[x.d.flame.rows[k].node].edge == VV_EDGE_CALL)
                below += x.d.tree->nodes[x.d.flame.rows[k].node].counters->inclusive_ns;
        ck_assert(s.inclusive_ns == s.self_ns + s.await_ns + below + s.child_ns - s.call_child_ns);
        ck_assert_uint_eq(!!(s.flags & VV_NODE_WAY), s.calls == 0);
    }
    drawn_done(&x);
}
END_TEST

START_TEST(hidden_spawners_spawn)
{
    drawn x = of_program(VV_DRAW_TOP_DOWN, VV_METRIC_INCLUSIVE);
    add_transform(&x, "hide:ccc");
    add_transform(&x, "hide:main");
    draw(&x);
    ck_assert_uint_eq(x.d.tree->nodes[x.d.flame.rows[0].node].edge, VV_EDGE_ROOT); /* where main was */
    drawn_done(&x);

    test_fold t = test_fold_new(4);
    test_counters(test_context(&t, 1, -1, VV_EDGE_ROOT, 1), 1, 10, 0, 0);
    test_counters(test_context(&t, 2, 1, VV_EDGE_SPAWN, 2), 1, 7, 0, 30);
    test_counters(test_context(&t, 3, 2, VV_EDGE_CALL, 3), 1, 30, 0, 0);
    vv_profile *p = test_profile(&t);
    for (uint32_t i = 0; i < 3; i++)
        p->tree.functions[i].def = &names[p->tree.functions[i].id - 1];
    x = drawn_of(p, VV_DRAW_TOP_DOWN);
    add_transform(&x, "hide:aaa");
    draw(&x);
    EXPECT(&x, {-1, 1, 1, 10, 10, 1}, {0, 3, 1, 30, 30, 1});
    ck_assert_uint_eq(x.d.tree->nodes[x.d.flame.rows[1].node].edge, VV_EDGE_SPAWN);
    ck_assert(x.d.filtered.self_ns == 7 && x.d.filtered.calls == 1);
    drawn_done(&x);
}
END_TEST

START_TEST(nameless_contexts_stand_for_themselves)
{
    test_fold t = test_fold_new(4);
    test_counters(test_context(&t, 1, -1, VV_EDGE_ROOT, 1), 1, 10, 0, 0);
    test_counters(test_context(&t, 2, 77, VV_EDGE_CALL, 1), 1, 8, 0, 0);
    test_counters(test_context(&t, 3, -1, VV_EDGE_CALL, 0), 1, 6, 0, 5);
    t.fold->contexts[2].defined = false;
    test_counters(test_context(&t, 4, 3, VV_EDGE_CALL, 1), 1, 5, 0, 0);
    t.fold->overflow_present[1][VV_EDGE_CALL] = true;
    t.fold->overflow[1][VV_EDGE_CALL] = (vv_counters){.started = 9, .ok = 9};
    drawn x = drawn_of(test_profile(&t), VV_DRAW_BOTTOM_UP);
    x.plan.options.metric = VV_METRIC_SELF;
    draw(&x);
    EXPECT(&x, {-1, 1, 3, 23, 23, 1}, {0, 0, 1, 5, 5, 1}, {-1, 0, 1, 6, 11, 1}, {-1, 0, 9, 0, 0, 1});
    static const uint8_t flags[] = {VV_NODE_ORPHAN, VV_NODE_UNDEFINED, VV_NODE_UNDEFINED, VV_NODE_OVERFLOW};
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(x.d.tree->nodes[x.d.flame.rows[i].node].flags, flags[i]);
    drawn_done(&x);
}
END_TEST

/* Roots of all rows hold all that there is, whatever is folded below them. */
static void expect_self_at_top(const drawn *x, uint64_t self)
{
    vv_u128 sum = 0;
    for (size_t i = 0; i < x->d.flame.row_count; i++) {
        const vv_node *node;
        vv_sliver s = vv_drawing_row(&x->d, i, &node);
        if (x->d.flame.rows[i].parent == VV_NONE)
            sum += s.self_ns;
    }
    ck_assert(sum == self);
}

START_TEST(a_chain_that_recurs_is_bounded)
{
    enum { DEPTH = 100000 };
    test_fold t = test_fold_new(DEPTH);
    for (uint32_t n = 0; n < DEPTH; n++)
        test_counters(test_context(&t, n, (int64_t)n - 1, n ? VV_EDGE_CALL : VV_EDGE_ROOT, n % 3 + 1), 1, 1, 0,
                      DEPTH - 1 - n);
    vv_profile *p = test_profile(&t);
    for (uint32_t i = 0; i < 3; i++)
        p->tree.functions[i].def = &names[p->tree.functions[i].id - 1];
    drawn x = drawn_of(p, VV_DRAW_BOTTOM_UP);
    x.plan.options.metric = VV_METRIC_SELF;
    x.plan.options.max_nodes = 300;
    draw(&x);
    ck_assert(x.d.flame.truncated);
    expect_self_at_top(&x, DEPTH);
    x.plan.options.max_nodes = VV_FLAME_MAX_NODES_LIMIT; /* time ends it, not the number of rows */
    draw(&x);
    ck_assert(x.d.flame.truncated);
    ck_assert_uint_lt(x.d.tree->node_count, 10000);
    expect_self_at_top(&x, DEPTH);

    x.plan.order = VV_DRAW_CALLEES;
    x.plan.group = group_of(&x, 2);
    draw(&x);
    EXPECT(&x, {-1, 2, 33333, 33333, DEPTH - 1, 1}, {0, 3, 33333, 33333, DEPTH - 2, 1},
           {1, 1, 33333, 33333, DEPTH - 3, 1});

    static const char *const all[] = {"hide:bbb", "collapse:main", "focus:aaa"};
    static const uint64_t calls_left[] = {66667, 1, 99999};
    for (size_t i = 0; i < VV_ARRAY_LEN(all); i++) {
        x.plan.order = VV_DRAW_TOP_DOWN;
        x.plan.transform_count = 0;
        add_transform(&x, all[i]);
        draw(&x);
        ck_assert(x.d.filtered.calls == DEPTH - calls_left[i]);
        ck_assert(x.d.filtered.self_ns == (i == 2));
    }
    drawn_done(&x);
}
END_TEST

START_TEST(a_cycle_is_cut)
{
    test_fold t = test_fold_new(4);
    test_counters(test_context(&t, 1, 3, VV_EDGE_CALL, 1), 1, 1, 0, 0);
    test_counters(test_context(&t, 2, 1, VV_EDGE_CALL, 2), 1, 1, 0, 0);
    test_counters(test_context(&t, 3, 2, VV_EDGE_CALL, 3), 1, 1, 0, 0);
    test_counters(test_context(&t, 4, 4, VV_EDGE_CALL, 4), 1, 1, 0, 0);
    drawn x = drawn_of(test_profile(&t), VV_DRAW_BOTTOM_UP);
    for (x.plan.order = VV_DRAW_BOTTOM_UP; x.plan.order <= VV_DRAW_CALLEES; x.plan.order++) {
        x.plan.group = group_of(&x, 3);
        draw(&x);
        ck_assert_uint_ge(x.d.flame.row_count, 1);
    }
    drawn_done(&x);
}
END_TEST

START_TEST(saturated_counters_do_not_wrap)
{
    const vv_u128 most = ~(vv_u128)0;
    test_fold t = test_fold_new(4);
    for (uint32_t n = 0; n < 3; n++)
        test_context(&t, n, (int64_t)n - 1, n ? VV_EDGE_CALL : VV_EDGE_ROOT, n % 2 + 1)->counters =
            (vv_counters){.started = UINT64_MAX, .error = UINT64_MAX, .inclusive_ns = most, .await_ns = most,
                          .direct_child_ns = most};
    vv_profile *p = test_profile(&t);
    for (uint32_t i = 0; i < 2; i++)
        p->tree.functions[i].def = &names[p->tree.functions[i].id - 1];
    drawn x = drawn_of(p, VV_DRAW_TOP_DOWN);
    add_transform(&x, "hide:aaa");
    for (x.plan.order = VV_DRAW_TOP_DOWN; x.plan.order <= VV_DRAW_CALLEES; x.plan.order++)
        for (unsigned m = VV_METRIC_INCLUSIVE; m <= VV_METRIC_ERRORS; m++) {
            x.plan.options.metric = (vv_metric)m;
            x.plan.options.width = m % 2 ? 100 : 0;
            x.plan.group = group_of(&x, 1);
            draw(&x);
            ck_assert_uint_ge(x.d.flame.row_count, 1);
        }
    drawn_done(&x);
}
END_TEST

START_TEST(nothing_makes_an_empty_table)
{
    test_fold t = test_fold_new(1);
    drawn x = drawn_of(test_profile(&t), VV_DRAW_BOTTOM_UP);
    draw(&x);
    ck_assert_uint_eq(x.d.flame.row_count, 0);
    add_transform(&x, "focus:x");
    draw(&x);
    ck_assert_uint_eq(x.d.flame.row_count, 0);
    drawn_done(&x);
}
END_TEST

/* What a drawing may need is taken before it is made, what it holds until it is done; too little room makes none. */
START_TEST(drawings_come_out_of_the_budget)
{
    static const vv_draw_order orders[] = {VV_DRAW_TOP_DOWN, VV_DRAW_BOTTOM_UP, VV_DRAW_CALLERS, VV_DRAW_CALLEES};
    test_fold t = test_fold_new(400);
    for (uint32_t i = 0; i < 400; i++)
        test_counters(test_context(&t, i + 1, i ? (int64_t)(i - 1) / 3 + 1 : -1, i ? VV_EDGE_CALL : VV_EDGE_ROOT,
                                   i % 7 + 1), 1, 10, 0, 0);
    drawn x = drawn_of(test_profile(&t), orders[_i / 2]);
    vv_budget budget;
    vv_error err = {0};
    vv_budget_init(&budget, 1 << 30);
    x.plan.budget = &budget;
    x.plan.group = group_of(&x, 3);
    if (_i % 2) {
        x.plan.transforms[0] = (vv_transform){.kind = VV_HIDE, .text = vv_cstr("nothing")};
        x.plan.transform_count = 1;
    }
    draw(&x);
    size_t held = budget.used;
    ck_assert_uint_gt(held, 0);
    ck_assert_uint_eq(held, x.d.bytes);
    vv_drawing_done(&x.d);
    ck_assert_uint_eq(budget.used, 0);
    budget.max = held;
    ck_assert(vv_drawing_make(&x.d, &x.plan, &x.p->tree, NULL, &err) == VV_ERR_LIMIT);
    vv_drawing_done(&x.d);
    ck_assert_uint_eq(budget.used, 0);
    drawn_done(&x);
}
END_TEST

int main(void)
{
    TCase *t = test_case("tree", 60);
    tcase_add_test(t, bottom_up_begins_with_functions);
    tcase_add_test(t, bottom_up_keeps_the_largest);
    tcase_add_test(t, bottom_up_folds_what_is_deep_or_small);
    tcase_add_test(t, bottom_up_of_a_part);
    tcase_add_test(t, callers_of_one_function);
    tcase_add_test(t, callees_of_one_function);
    tcase_add_test(t, transforms_parse);
    tcase_add_loop_test(t, transforms_leave, 0, VV_ARRAY_LEN(transforms));
    tcase_add_test(t, hidden_spawners_spawn);
    tcase_add_test(t, nameless_contexts_stand_for_themselves);
    tcase_add_test(t, a_chain_that_recurs_is_bounded);
    tcase_add_test(t, a_cycle_is_cut);
    tcase_add_test(t, saturated_counters_do_not_wrap);
    tcase_add_test(t, nothing_makes_an_empty_table);
    tcase_add_loop_test(t, drawings_come_out_of_the_budget, 0, 8);
    return test_run();
}
