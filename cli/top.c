#include "config.h"

#include <stdio.h>

#include "cli/facts.h"
#include "cli/verbs.h"
#include "views/functions.h"

enum { LIMIT_DEFAULT = 20, LIMIT_MAX = 1000 };

/* file:line, as editors and terminals make links of. */
static void add_place(vv_cli_table *t, const vv_function *d)
{
    char text[128];
    vv_str file = d && d->source_file.present ? d->source_file.s : vv_cstr("");
    uint32_t line = file.n ? vv_fn_line(d) : 0;
    int n = line ? snprintf(text, sizeof text, "%.*s:%u", (int)(file.n < 100 ? file.n : 100), file.p, line) : 0;
    vv_cli_cell_text(t, VV_PAINT_DIM, n ? (vv_str){text, (size_t)n} : file, 90);
}

static void add_row(vv_cli_table *t, const vv_function_group *g, vv_u128 total_self)
{
    char text[VV_CELL];
    const vv_function_row *r = &g->side[VV_SIDE_HEAD];
    vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_cli_duration(text, r->self_ns));
    if (total_self && !r->timing_incomplete)
        vv_cli_cell(t, VV_PAINT_NONE, "%.1f%%", 100 * (double)r->self_ns / (double)total_self);
    else
        vv_cli_cell(t, VV_PAINT_NONE, "-");
    vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_cli_duration(text, r->inclusive_ns));
    vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_cli_duration(text, r->await_ns));
    vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_cli_count(text, r->calls));
    vv_cli_cell(t, r->errors ? VV_PAINT_BAD : VV_PAINT_NONE, "%s", vv_cli_count(text, r->errors));
    vv_cli_cell_function(t, &g->function);
    add_place(t, g->function.def);
}

static void print_foot(const vv_scope *s, size_t rows, size_t shown)
{
    char calls[VV_CELL], self[VV_CELL];
    const vv_totals *t = &s->totals[VV_SIDE_HEAD];
    if (!s->known[VV_SIDE_HEAD]) {
        printf("the execution can't be shown: its data is damaged; `varve show` says how\n");
        return;
    }
    printf("%zu of %zu functions; all together %s calls, self %s; ", shown, rows,
           vv_cli_count(calls, t->calls), vv_cli_duration(self, t->self_ns));
    vv_cli_print_evidence(s->evidence.verdict);
    if (s->evidence.overflow_calls)
        printf("%s of the calls found no memory for a place of their own (overflow), and are in no row\n",
               vv_cli_count(calls, s->evidence.overflow_calls));
}

static void print_table(const vv_scope *s, const vv_function_groups *g, uint64_t limit)
{
    static const vv_cli_column columns[] = {{"SELF", true}, {"SELF%", true}, {"INCLUSIVE", true}, {"AWAIT", true},
                                            {"CALLS", true}, {"ERRORS", true}, {"FUNCTION", false}, {"FILE", false}};
    vv_cli_table *t = vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
    size_t shown = g->count < limit ? g->count : (size_t)limit;
    for (size_t i = 0; i < shown; i++)
        add_row(t, &g->items[i], s->totals[VV_SIDE_HEAD].self_ns);
    vv_cli_table_print(t);
    print_foot(s, g->count, shown);
    vv_cli_table_free(t);
}

static int show(const vv_cli *c, vv_query *q, uint64_t limit)
{
    vv_error err = {0};
    vv_scope s = {.items = NULL};
    vv_function_groups g = {.count = 0};
    unsigned by = VV_SORT_SELF;
    vv_code rc = vv_query_word(q, "sort", vv_function_sorts, VV_FUNCTION_SORTS, &by, &err);
    if (rc == VV_OK)
        rc = vv_scope_read(&s, q, &err);
    if (rc == VV_OK)
        rc = vv_function_groups_make(&g, &s, &err);
    if (rc == VV_OK) {
        vv_function_groups_sort(&g, &s, (vv_function_sort)by);
        print_table(&s, &g, limit);
    }
    vv_function_groups_done(&g);
    vv_scope_done(&s);
    return rc == VV_OK ? VV_EXIT_OK : vv_cli_fail_view(c, q, &err);
}

static int run(const vv_cli *c)
{
    vv_library *l;
    const vv_look *look;
    uint64_t limit = LIMIT_DEFAULT;
    if (!vv_cli_number(c, "limit", 1, LIMIT_MAX, &limit))
        return VV_EXIT_USAGE;
    int status = vv_cli_open_library(c, NULL, &l, &look);
    if (status >= 0)
        return status;
    vv_cli_params p = {0};
    if (!c->arg_count)
        vv_cli_param(&p, "execution", "latest");
    for (unsigned i = 0; i < c->arg_count; i++)
        vv_cli_param(&p, "execution", c->args[i]);
    vv_cli_param(&p, "sort", vv_cli_value(c, "sort"));
    vv_cli_param(&p, "limit", vv_cli_value(c, "limit"));
    vv_query q = {.library = l, .look = look, .params = p.items, .param_count = p.count};
    status = c->json ? vv_cli_print_answer(c, vv_answer_functions, &q) : show(c, &q, limit);
    vv_cli_close_library(l, look);
    return status;
}

static const vv_cli_option options[] = {
    {"limit", "N", "rows at most (20; with --json 100); also -n", false},
    {"sort", "COLUMN", "self_ns, inclusive_ns, await_ns, calls, errors, contexts or name", false},
    VV_CLI_INDEX_OPTION,
};
static const char *const examples[] = {"varve top", "varve top latest~1 --sort calls",
                                       "varve top latest latest~1 latest~2", "varve top -n 5 --json", NULL};

const vv_cli_verb vv_verb_top = {
    .name = "top",
    .args = "[ID...]",
    .purpose = "shows the functions of executions, most time of their own first",
    .details = "ID is an execution as `varve ls` lists it; the latest one where none is given, all together where\n"
               "several are. Inclusive time counts a recursive function once.\n",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .max_args = VV_CLI_ARGS,
    .run = run,
};
