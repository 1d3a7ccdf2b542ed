#include "config.h"

#include <stdio.h>

#include "cli/compare.h"
#include "cli/facts.h"
#include "cli/verbs.h"
#include "views/functions.h"

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

static void print_foot(const vv_scope *s, const vv_function_page *p)
{
    char calls[VV_CELL], self[VV_CELL];
    const vv_totals *t = &s->totals[VV_SIDE_HEAD];
    if (!s->known[VV_SIDE_HEAD]) {
        printf("the execution can't be shown: its data is damaged; `varve show` says how\n");
        return;
    }
    printf("%zu of %zu functions%s; all together %s calls, self %s; ", p->count, p->rows, p->text ? " that match" : "",
           vv_cli_count(calls, t->calls), vv_cli_duration(self, t->self_ns));
    vv_cli_print_evidence(s->evidence.verdict);
    if (s->evidence.overflow_calls)
        printf("%s of the calls found no memory for a place of their own (overflow), and are in no row\n",
               vv_cli_count(calls, s->evidence.overflow_calls));
}

static void print_table(const vv_scope *s, const vv_function_page *p)
{
    static const vv_cli_column columns[] = {{"SELF", true}, {"SELF%", true}, {"INCLUSIVE", true}, {"AWAIT", true},
                                            {"CALLS", true}, {"ERRORS", true}, {"FUNCTION", false}, {"FILE", false}};
    vv_cli_table *t = vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
    for (size_t i = 0; i < p->count; i++)
        add_row(t, p->items[i], s->totals[VV_SIDE_HEAD].self_ns);
    vv_cli_table_print(t);
    print_foot(s, p);
    vv_cli_print_next(p->next);
    vv_cli_table_free(t);
}

static int show(const vv_cli *c, vv_query *q)
{
    vv_error err = {0};
    vv_scope s = {.items = NULL};
    vv_function_groups g = {.count = 0};
    vv_function_page p = {.items = NULL};
    unsigned by = VV_SORT_SELF;
    vv_code rc = vv_query_word(q, "sort", vv_function_sorts, VV_FUNCTION_SORTS, &by, &err);
    if (rc == VV_OK)
        rc = vv_function_page_read(&p, q, &err);
    if (rc == VV_OK)
        rc = vv_scope_read(&s, q, &err);
    if (rc == VV_OK)
        rc = vv_function_groups_make(&g, &s, &err);
    if (rc == VV_OK) {
        vv_function_groups_sort(&g, &s, (vv_function_sort)by);
        rc = vv_function_page_fill(&p, q, &g, &err);
    }
    if (rc == VV_OK && s.compares)
        vv_cli_print_function_changes(&s, &g, (vv_function_sort)by, p.limit);
    else if (rc == VV_OK)
        print_table(&s, &p);
    vv_function_page_done(&p);
    vv_function_groups_done(&g);
    vv_scope_done(&s);
    return rc == VV_OK ? VV_EXIT_OK : vv_cli_fail_view(c, q, &err);
}

static int run(const vv_cli *c)
{
    vv_cli_request r = {.view = vv_answer_functions, .show = show};
    if (!c->json && vv_cli_has(c, "base") && (vv_cli_has(c, "q") || vv_cli_has(c, "cursor")))
        return vv_cli_usage(c, "--q and --cursor go with --base only with --json");
    if (!c->arg_count)
        vv_cli_param(&r.params, "execution", "latest");
    for (unsigned i = 0; i < c->arg_count; i++)
        vv_cli_param(&r.params, "execution", c->args[i]);
    vv_cli_repeated_param(&r.params, c, "base");
    vv_cli_param(&r.params, "sort", vv_cli_value(c, "sort"));
    vv_cli_param(&r.params, "q", vv_cli_value(c, "q"));
    vv_cli_page_params(&r.params, c);
    return vv_cli_answer(c, &r);
}

static const vv_cli_option options[] = {
    {"sort", "COLUMN", "self_ns, inclusive_ns, await_ns, calls, errors, contexts or name", false},
    {"q", "TEXT", "whose name or file holds this text", false},
    {"base", "ID", "compare with this execution, the largest changes first", true},
    VV_CLI_PAGE_OPTIONS,
    VV_CLI_INDEX_OPTION,
};
static const char *const examples[] = {"varve top", "varve top latest~1 --sort calls",
                                       "varve top latest latest~1 latest~2", "varve top --q parse",
                                       "varve top --base latest~1", "varve top -n 5 --json", NULL};

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
