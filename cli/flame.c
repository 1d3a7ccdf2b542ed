#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/compare.h"
#include "cli/verbs.h"
#include "views/flame_view.h"

#define ROWS_DEFAULT "40"
enum { BAR = 12, INDENT_MAX = 40, LABEL_MAX = 100 };

static bool is_time(vv_metric m)
{
    return m != VV_METRIC_CALLS && m != VV_METRIC_ERRORS;
}

/* A bar of the share; the smallest that is not nothing is a dot. */
static void add_bar(vv_cli_table *t, vv_u128 v, vv_u128 whole)
{
    char bar[BAR + 1] = "";
    double share = whole ? (double)v / (double)whole : 0;
    int n = (int)(share * BAR + 0.5);
    n = n > BAR ? BAR : n;
    for (int i = 0; i < n; i++)
        bar[i] = '#';
    if (n == 0 && v)
        bar[n++] = '.';
    bar[n] = 0;
    vv_cli_cell(t, VV_PAINT_LIVE, "%s", bar);
}

/* The name, below its parent's by two blanks; a chain that is too deep for that says its level. */
static void add_label(vv_cli_table *t, const vv_flame_view *v, const vv_node *n, const vv_sliver *s, uint32_t level)
{
    char text[VV_CLI_LINE + VV_OVERFLOW_ID], name[VV_CLI_LINE] = "", id[VV_OVERFLOW_ID], depth[16] = "";
    const vv_function_ref *f = n && n->function != VV_NONE ? &v->drawing.tree->functions[n->function] : NULL;
    const char *edge = n && n->edge == VV_EDGE_SPAWN ? "spawn " : "";
    if (f && f->def)
        vv_cli_line(name, f->def->fqn);
    else if (f)
        snprintf(name, sizeof name, "function #%u", f->id);
    else if (!n)
        snprintf(name, sizeof name, "(%llu more)", (unsigned long long)s->nodes);
    else if (n->flags & VV_NODE_OVERFLOW)
        vv_node_overflow_id(n, id);
    else
        snprintf(name, sizeof name, "? (its definition is missing)");
    if (n && n->flags & VV_NODE_OVERFLOW)
        snprintf(name, sizeof name, "%s", id);
    if (level > INDENT_MAX / 2)
        snprintf(depth, sizeof depth, "[%u] ", level);
    int indent = 2 * (int)(level < INDENT_MAX / 2 ? level : INDENT_MAX / 2);
    int len = snprintf(text, sizeof text, "%*s%s%s%s", indent, "", depth, edge, name);
    vv_cli_cell_text(t, n ? VV_PAINT_BOLD : VV_PAINT_DIM, (vv_str){text, (size_t)len}, LABEL_MAX);
}

static void add_sides(vv_cli_table *t, const vv_flame_view *v, size_t at)
{
    const vv_scope *scope = &v->c.scope;
    vv_metric m = v->plan.options.metric;
    vv_sliver sides[VV_SIDES];
    bool on[VV_SIDES];
    vv_flame_view_sides(v, at, sides, on);
    bool has_base = vv_scope_number_known(scope, on, VV_SIDE_BASE);
    bool has_head = vv_scope_number_known(scope, on, VV_SIDE_HEAD);
    vv_u128 base = vv_sliver_value(&sides[VV_SIDE_BASE], m), head = vv_sliver_value(&sides[VV_SIDE_HEAD], m);
    vv_cli_cell_number(t, VV_PAINT_NONE, has_base, is_time(m), base);
    vv_cli_cell_number(t, VV_PAINT_NONE, has_head, is_time(m), head);
    vv_cli_cell_change(t, has_base && has_head, is_time(m), base, head);
}

static void add_row(vv_cli_table *t, const vv_flame_view *v, size_t at, uint32_t level)
{
    const vv_node *n;
    vv_sliver s = vv_drawing_row(&v->drawing, at, &n);
    vv_u128 value = vv_sliver_value(&s, v->plan.options.metric), whole = v->drawing.flame.of_root;
    if (v->c.scope.compares) {
        add_sides(t, v, at);
    } else {
        vv_cli_cell_number(t, VV_PAINT_NONE, true, true, s.inclusive_ns);
        vv_cli_cell_number(t, VV_PAINT_NONE, true, true, s.self_ns);
        vv_cli_cell_number(t, VV_PAINT_NONE, true, false, s.calls);
        vv_cli_cell_number(t, s.errors ? VV_PAINT_BAD : VV_PAINT_NONE, true, false, s.errors);
    }
    if (whole)
        vv_cli_cell(t, VV_PAINT_NONE, "%.1f%%", 100 * (double)value / (double)whole);
    else
        vv_cli_cell(t, VV_PAINT_NONE, "-");
    add_bar(t, value, whole);
    add_label(t, v, n, &s, level);
}

static void print_foot(const vv_flame_view *v)
{
    char calls[VV_CELL];
    const vv_scope *s = &v->c.scope;
    if (!s->known[VV_SIDE_HEAD]) {
        printf("the execution can't be shown: its data is damaged; `varve show` says how\n");
        return;
    }
    printf("shares of %s; ", vv_metric_names[v->plan.options.metric].name);
    if (v->drawing.flame.folded.nodes)
        printf("%llu folded, with %s calls; ", (unsigned long long)v->drawing.flame.folded.nodes,
               vv_cli_count(calls, v->drawing.flame.folded.calls));
    if (v->drawing.filtered.nodes || v->drawing.filtered.calls)
        printf("filtered: %llu contexts, %s calls; ", (unsigned long long)v->drawing.filtered.nodes,
               vv_cli_count(calls, v->drawing.filtered.calls));
    vv_cli_print_evidence(s->evidence.verdict);
}

static void print_table(const vv_flame_view *v)
{
    static const vv_cli_column columns[] = {{"INCLUSIVE", true}, {"SELF", true}, {"CALLS", true}, {"ERRORS", true},
                                            {"SHARE", true}, {"", false}, {"FUNCTION", false}};
    static const vv_cli_column compared[] = {{"BASE", true}, {"HEAD", true}, {"CHANGE", true}, {"SHARE", true},
                                             {"", false}, {"FUNCTION", false}};
    const vv_flame *f = &v->drawing.flame;
    vv_cli_table *t = v->c.scope.compares ? vv_cli_table_new(compared, VV_ARRAY_LEN(compared))
                                          : vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
    uint32_t *level = malloc((f->row_count + 1) * sizeof *level);
    for (size_t i = 0; level && i < f->row_count; i++) {
        level[i] = f->rows[i].parent == VV_NONE ? 0 : level[f->rows[i].parent] + 1;
        add_row(t, v, i, level[i]);
    }
    vv_cli_table_print(t);
    print_foot(v);
    free(level);
    vv_cli_table_free(t);
}

static int show(const vv_cli *c, vv_query *q, vv_draw_order what)
{
    vv_error err = {0};
    vv_flame_view *v = calloc(1, sizeof *v);
    vv_code rc = v ? vv_flame_view_make(v, what, q, &err) : vv_fail(&err, VV_ERR_NOMEM, "no memory for a flame graph");
    if (rc == VV_OK)
        print_table(v);
    if (v)
        vv_flame_view_done(v);
    free(v);
    return rc == VV_OK ? VV_EXIT_OK : vv_cli_fail_view(c, q, &err);
}

static const struct {
    const char *option, *name;
} passed[] = {{"metric", "metric"}, {"order", "order"}, {"root", "root"}, {"depth", "depth"}, {"width", "width"},
              {"edges", "edges"}, {"ids", "ids"}};

static int run(const vv_cli *c, vv_draw_order what, vv_view *view)
{
    vv_library *l;
    const vv_look *look;
    vv_cli_params p = {0};
    unsigned ids = what == VV_DRAW_TOP_DOWN ? 0 : 1; /* the first argument of the others is the function */
    int status = vv_cli_open_library(c, NULL, &l, &look);
    if (status >= 0)
        return status;
    if (ids)
        vv_cli_param(&p, "function", c->args[0]);
    if (c->arg_count <= ids)
        vv_cli_param(&p, "execution", "latest");
    for (unsigned i = ids; i < c->arg_count; i++)
        vv_cli_param(&p, "execution", c->args[i]);
    for (size_t i = 0; i < VV_ARRAY_LEN(passed); i++)
        vv_cli_param(&p, passed[i].name, vv_cli_value(c, passed[i].option));
    const char *most = vv_cli_value(c, "max-nodes");
    vv_cli_param(&p, "max_nodes", most || c->json ? most : ROWS_DEFAULT);
    for (unsigned i = 0; i < c->given_count; i++)
        if (c->given[i].option->repeats)
            vv_cli_param(&p, c->given[i].option->name, c->given[i].value);
    vv_query q = {.library = l, .look = look, .params = p.items, .param_count = p.count};
    status = c->json ? vv_cli_print_answer(c, view, &q) : show(c, &q, what);
    vv_cli_close_library(l, look);
    return status;
}

static int run_flame(const vv_cli *c)
{
    return run(c, VV_DRAW_TOP_DOWN, vv_answer_flame);
}

static int run_callers(const vv_cli *c)
{
    return run(c, VV_DRAW_CALLERS, vv_answer_callers);
}

static int run_callees(const vv_cli *c)
{
    return run(c, VV_DRAW_CALLEES, vv_answer_callees);
}

#define DRAWING_OPTIONS                                                                                               \
    {"metric", "WORD", "inclusive_ns, self_ns, await_ns, await_subtree_ns, calls or errors", false},                  \
    {"depth", "N", "levels at most", false},                                                                          \
    {"width", "PIXELS", "fold what is below half a pixel", false},                                                    \
    {"max-nodes", "N", "rows at most, the largest (40; with --json 20000)", false},                                   \
    {"edges", "LIST", "edges to follow: root,call,spawn", false},                                                     \
    {"transform", "HOW", "focus:TEXT, hide:TEXT, collapse:TEXT or only_user, in this order", true},                   \
    {"base", "ID", "compare with this execution", true}, VV_CLI_INDEX_OPTION

static const vv_cli_option flame_options[] = {
    {"order", "WORD", "top_down, or bottom_up: functions first, below them who called", false},
    {"root", "KEY", "a context key or a path id to begin at", false},
    {"ids", "1", "with --json: context keys and path ids too", false},
    DRAWING_OPTIONS,
};
static const vv_cli_option sandwich_options[] = {DRAWING_OPTIONS};
static const char *const flame_examples[] = {
    "varve flame", "varve flame latest~1 --order bottom_up --metric self_ns",
    "varve flame --transform hide:std. --transform focus:parse", "varve flame --base latest~1", "varve flame --json",
    NULL,
};
static const char *const callers_examples[] = {"varve callers parse.expression", "varve callers '#7' latest~1", NULL};
static const char *const callees_examples[] = {"varve callees main", "varve callees main --metric calls --depth 3",
                                               NULL};

const vv_cli_verb vv_verb_flame = {
    .name = "flame",
    .args = "[ID...]",
    .purpose = "shows the calling contexts of executions as a tree, the largest first",
    .details = "ID is an execution as `varve ls` lists it; the latest one where none is given, all together where\n"
               "several are. Shares are of what stands at the top.\n",
    .options = flame_options,
    .option_count = VV_ARRAY_LEN(flame_options),
    .examples = flame_examples,
    .max_args = VV_CLI_ARGS,
    .run = run_flame,
};

const vv_cli_verb vv_verb_callers = {
    .name = "callers",
    .args = "FUNCTION [ID...]",
    .purpose = "shows who calls a function, and who calls them",
    .details = "FUNCTION is a definition key, a full name, # and its number, or #number/program. ID is an execution\n"
               "as `varve ls` lists it; the latest one where none is given.\n",
    .options = sandwich_options,
    .option_count = VV_ARRAY_LEN(sandwich_options),
    .examples = callers_examples,
    .min_args = 1,
    .max_args = VV_CLI_ARGS,
    .run = run_callers,
};

const vv_cli_verb vv_verb_callees = {
    .name = "callees",
    .args = "FUNCTION [ID...]",
    .purpose = "shows what a function calls, and what those call",
    .details = "FUNCTION is a definition key, a full name, # and its number, or #number/program. ID is an execution\n"
               "as `varve ls` lists it; the latest one where none is given.\n",
    .options = sandwich_options,
    .option_count = VV_ARRAY_LEN(sandwich_options),
    .examples = callees_examples,
    .min_args = 1,
    .max_args = VV_CLI_ARGS,
    .run = run_callees,
};
