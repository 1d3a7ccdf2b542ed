#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/compare.h"
#include "cli/facts.h"
#include "cli/verbs.h"
#include "views/errors.h"

enum { NAME_SHOWN = 50, FRAMES_SHOWN = 100, CALLS_SHOWN = 20, FIELD = 7 };

static const char *short_id(char out[VV_CAPTURE_TEXT], const vv_found *f, const vv_capture_id *id)
{
    vv_capture_short(out, &f->execution->root, id);
    if (!*out)
        vv_capture_text(out, id);
    return out;
}

static void add_rate(vv_cli_table *t, const vv_profile *p, uint32_t node)
{
    char a[VV_CELL], b[VV_CELL];
    const vv_counters *c = node == VV_NONE ? NULL : p->tree.nodes[node].counters;
    if (c)
        vv_cli_cell(t, VV_PAINT_NONE, "%s of %s", vv_cli_count(a, c->error), vv_cli_count(b, c->started));
    else
        vv_cli_cell(t, VV_PAINT_NONE, "?");
}

static void add_row(vv_cli_table *t, const vv_error_list *l, const vv_found *f, const vv_profile *p, size_t at)
{
    const vv_error_capture *c = &p->fold->errors[l->page.items[at].row];
    vv_stack stack = vv_error_stack(l, p, c);
    char id[VV_CAPTURE_TEXT], scratch[VV_FUNCTION_SCRATCH], where[VV_CLI_PLACE];
    size_t ended;
    (void)vv_error_terminals(l, at, &ended);
    vv_cli_cell(t, VV_PAINT_NONE, "%s", short_id(id, f, &c->id));
    vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_capture_kinds[c->kind]);
    vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_capture_sources[c->source]);
    vv_cli_cell(t, c->value.lost ? VV_PAINT_WARN : VV_PAINT_NONE, "%s", vv_value_of(&c->value).word);
    vv_cli_cell(t, VV_PAINT_NONE, "%zu", ended);
    add_rate(t, p, stack.node);
    vv_cli_cell_text(t, VV_PAINT_BOLD, vv_function_label(p, c->function_id, scratch), NAME_SHOWN);
    vv_cli_cell(t, VV_PAINT_DIM, "%s", vv_cli_place(where, p, c->has_site ? &c->site : NULL));
}

static void print_foot(const vv_error_list *l, const vv_digest *d)
{
    char a[VV_CELL];
    const vv_error_population *n = &l->population;
    if (!n->known) {
        printf("no error can be shown: the execution's data is damaged; `varve show` says how\n");
        return;
    }
    printf("%zu of %" PRIu64 " errors recorded (%" PRIu64 " fresh, %" PRIu64 " rethrown); %s calls ended by an error; ",
           l->page.count, n->captures, n->fresh, n->rethrown, vv_cli_count(a, n->errored_calls));
    vv_cli_print_evidence(d->evidence.verdict);
    if (n->lost)
        printf("%" PRIu64 " more errors were lost by the writer\n", n->lost);
    if (n->links_lost || n->links_unresolved)
        printf("of the recorded calls %" PRIu64 " were ended by an error that was lost, %" PRIu64 " by one that is "
               "missing\n", n->links_lost, n->links_unresolved);
    vv_cli_print_next(l->page.next);
}

static void print_list(const vv_error_list *l, const vv_found *f, const vv_loaded *x)
{
    static const vv_cli_column columns[] = {{"ID", false}, {"KIND", false}, {"SOURCE", false}, {"VALUE", false},
                                            {"ENDED", true}, {"FAILS", true}, {"THROWN BY", false}, {"AT", false}};
    vv_cli_table *t = vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
    for (size_t i = 0; i < l->page.count; i++)
        add_row(t, l, f, x->profile, i);
    vv_cli_table_print(t);
    vv_cli_table_free(t);
    print_foot(l, x->digest);
}

static void print_stack(const vv_profile *p, const vv_error_capture *c, const vv_stack *stack)
{
    vv_stack_frame frames[FRAMES_SHOWN];
    size_t n = stack->frames < FRAMES_SHOWN ? stack->frames : FRAMES_SHOWN;
    vv_stack_frames(p, c, stack, n, frames);
    printf("\nstack, the throw last%s\n", stack->complete ? "" : " (incomplete: what called the first is not known)");
    if (n < stack->frames)
        printf("  %zu calls above\n", stack->frames - n);
    for (size_t i = 0; i < n; i++) {
        char scratch[VV_FUNCTION_SCRATCH], line[VV_CLI_LINE], where[VV_CLI_PLACE];
        vv_str name = frames[i].has_function ? vv_function_label(p, frames[i].function_id, scratch) : vv_cstr("?");
        printf("  %s  %s\n", vv_cli_line(line, name), vv_cli_place(where, p, frames[i].site));
    }
}

static void print_ended(const vv_error_list *l, const vv_found *f, const vv_profile *p)
{
    size_t n;
    const vv_terminal *ended = vv_error_terminals(l, 0, &n);
    printf("\n%s\n", n ? "recorded calls that it ended" : "it ended no recorded call");
    for (size_t i = 0; i < n && i < CALLS_SHOWN; i++) {
        const vv_fold_span *s = &p->fold->spans[ended[i].span];
        char id[VV_PART_ID], scratch[VV_FUNCTION_SCRATCH], line[VV_CLI_LINE];
        vv_call_short(id, &f->execution->root, &s->call);
        printf("  %s  %s\n", id, vv_cli_line(line, vv_span_label(p, s, scratch)));
    }
    if (n > CALLS_SHOWN)
        printf("  and %zu more\n", n - CALLS_SHOWN);
}

static void print_one(const vv_error_list *l, const vv_found *f, const vv_profile *p)
{
    const vv_error_capture *c = &p->fold->errors[l->page.items[0].row];
    vv_stack stack = vv_error_stack(l, p, c);
    char id[VV_CAPTURE_TEXT], a[VV_CELL], b[VV_CELL];
    vv_capture_text(id, &c->id);
    printf("%-*s %s\n", FIELD, "error", id);
    printf("%-*s %s, of %s\n", FIELD, "kind", vv_capture_kinds[c->kind], vv_capture_sources[c->source]);
    vv_cli_value_line("value", FIELD, vv_value_of(&c->value));
    if (stack.node != VV_NONE) {
        const vv_counters *n = p->tree.nodes[stack.node].counters;
        printf("%-*s %s of %s calls of this context\n", FIELD, "fails", vv_cli_count(a, n->error),
               vv_cli_count(b, n->started));
    }
    print_stack(p, c, &stack);
    print_ended(l, f, p);
}

static int show(const vv_cli *c, vv_query *q)
{
    vv_error err = {0};
    vv_found f;
    vv_loaded x = {NULL, NULL};
    vv_error_list l = {.depth = NULL};
    bool one = q->sub.p != NULL;
    vv_code rc = one ? VV_OK : vv_error_list_read(&l, q, &err);
    if (rc == VV_OK)
        rc = vv_query_load_own(q, &f, &x, &err);
    if (rc == VV_OK)
        rc = one ? vv_error_list_find(&l, q, x.profile, &err) : vv_error_list_make(&l, q, &f, &x, &err);
    int status = VV_EXIT_OK;
    if (rc != VV_OK)
        status = vv_cli_fail_view(c, q, &err);
    else if (one)
        print_one(&l, &f, x.profile);
    else
        print_list(&l, &f, &x);
    vv_error_list_done(&l);
    vv_loaded_release(q->library, &x);
    return status;
}

static int show_compared(const vv_cli *c, vv_query *q)
{
    vv_error err = {0};
    return vv_cli_compare_errors(q, NULL, &err) == VV_OK ? VV_EXIT_OK : vv_cli_fail_view(c, q, &err);
}

static const vv_cli_option options[] = {
    {"error", "ERROR", "show one error: its value, its stack, the calls it ended", false},
    {"base", "ID", "compare with this execution, by what was thrown where", true},
    VV_CLI_PAGE_OPTIONS,
    VV_CLI_INDEX_OPTION,
};

static int run(const vv_cli *c)
{
    const char *error = vv_cli_value(c, "error");
    vv_cli_request r = {.id = vv_cli_execution(c), .sub = vv_cstr(error),
                        .view = error ? vv_answer_error : vv_answer_errors,
                        .show = vv_cli_has(c, "base") ? show_compared : show};
    vv_cli_repeated_param(&r.params, c, "base");
    if (error && (r.params.count || vv_cli_has_page(c)))
        return vv_cli_usage(c, "--error shows one error; it goes with no other option");
    if (!error)
        vv_cli_page_params(&r.params, c);
    return vv_cli_answer(c, &r);
}

static const char *const examples[] = {"varve errors", "varve errors latest~1", "varve errors --error 1~2",
                                       "varve errors --base latest~1", NULL};

const vv_cli_verb vv_verb_errors = {
    .name = "errors",
    .args = "[ID]",
    .purpose = "shows the errors that were recorded in an execution, and where they came from",
    .details = "ID is an execution as `varve ls` lists it; the latest one where none is given. ERROR is thread~n as\n"
               "the table has it, or a full id. ENDED counts the recorded calls that an error ended, FAILS the calls\n"
               "of the same context that failed. An error that passes through a hundred calls is one row here, and a\n"
               "hundred failed calls elsewhere. With --base a row is what was thrown where: how many errors more, how\n"
               "many more recorded calls they ENDED, and how many more calls of that context FAILED.\n",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .max_args = 1,
    .run = run,
};
