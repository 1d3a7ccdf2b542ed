#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/compare.h"
#include "cli/facts.h"
#include "cli/verbs.h"
#include "views/spans.h"

enum { NAME_SHOWN = 70, PARENTS_SHOWN = 100, FIELD = 9 };

/* What has no end is only painted as going on where it does. */
static vv_paint status_paint(const vv_execution *x, const vv_fold_span *s)
{
    static const vv_paint paints[] = {VV_PAINT_NONE, VV_PAINT_BAD, VV_PAINT_WARN, VV_PAINT_WARN};
    vv_life life = vv_life_of(x, s->has_start, s->has_end);
    return s->has_end ? paints[s->end.status] : life == VV_LIFE_OPEN ? VV_PAINT_LIVE : VV_PAINT_WARN;
}

/* The call's status, or why there is none. */
static const char *status_text(const vv_execution *x, const vv_fold_span *s)
{
    return s->has_end ? vv_call_words[s->end.status] : vv_cli_life_text(vv_life_of(x, s->has_start, false));
}

/* A value in a table: there, lost, still to come, not known, not kept by choice; nothing where it can't be. */
static void add_value(vv_cli_table *t, vv_value_view v)
{
    static const char *const marks[] = {"yes", "-", "", "pending", "?", "?", "lost"};
    vv_cli_cell(t, v.fate == VV_VALUE_LOST ? VV_PAINT_WARN : VV_PAINT_NONE, "%s", marks[v.fate]);
}

static void add_name(vv_cli_table *t, const vv_profile *p, const vv_fold_span *s)
{
    char scratch[VV_FUNCTION_SCRATCH];
    vv_cli_cell_text(t, VV_PAINT_BOLD, vv_span_label(p, s, scratch), NAME_SHOWN);
}

/* Since the start of the execution; a call that began before it is told to have done so. */
static const char *since_start(char out[VV_CELL], const vv_execution *x, bool known, uint64_t ns)
{
    if (!known || !x->has_start || ns < x->started_ns)
        return "?";
    char text[VV_CELL];
    snprintf(out, VV_CELL, "+%.40s", vv_cli_duration(text, ns - x->started_ns));
    return out;
}

static void add_row(vv_cli_table *t, const vv_found *f, const vv_profile *p, const vv_fold_span *s)
{
    char text[VV_CELL], id[VV_PART_ID];
    const vv_execution *x = f->execution;
    vv_call_short(id, &x->root, &s->call);
    if (!*id)
        snprintf(id, sizeof id, "?.%" PRIu64, vv_call_number(&s->call));
    vv_cli_cell(t, VV_PAINT_NONE, "%s", id);
    vv_cli_cell(t, VV_PAINT_NONE, "%s", since_start(text, x, s->has_start, s->has_start ? s->start.started_ns : 0));
    vv_cli_cell(t, VV_PAINT_NONE, "%s", s->has_end ? vv_cli_duration(text, s->end.inclusive_ns) : "-");
    vv_cli_cell(t, status_paint(x, s), "%s", status_text(x, s));
    add_value(t, vv_span_input(x, s));
    add_value(t, vv_span_output(x, s));
    add_value(t, vv_span_error(x, p->fold, s));
    add_name(t, p, s);
}

static void print_foot(const vv_span_list *l, const vv_digest *d)
{
    char a[VV_CELL], b[VV_CELL];
    const vv_span_population *n = &l->population;
    if (!n->known) {
        printf("no call can be shown: the execution's data is damaged; `varve show` says how\n");
        return;
    }
    printf("%zu of %" PRIu64 " calls that match, of %" PRIu64 " kept one by one", l->page.count, n->matched,
           n->retained);
    if (n->calls_known)
        printf("; %s calls were counted, %s of them selected", vv_cli_count(a, n->calls), vv_cli_count(b, n->selected));
    printf("; ");
    vv_cli_print_evidence(d->evidence.verdict);
    if (n->without_start)
        printf("of %" PRIu64 " the start is missing: a filter may not find them\n", n->without_start);
    vv_cli_print_next(l->page.next);
}

static void print_list(const vv_span_list *l, const vv_found *f, const vv_loaded *x)
{
    static const vv_cli_column columns[] = {{"CALL", false}, {"START", true}, {"DURATION", true}, {"STATUS", false},
                                            {"ARGS", false}, {"OUTPUT", false}, {"ERROR", false}, {"FUNCTION", false}};
    vv_cli_table *t = vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
    for (size_t i = 0; i < l->page.count; i++)
        add_row(t, f, x->profile, &x->profile->fold->spans[l->page.items[i].row]);
    vv_cli_table_print(t);
    vv_cli_table_free(t);
    print_foot(l, x->digest);
}

static void print_context(const vv_profile *p, const vv_fold_span *s)
{
    char a[VV_CELL], b[VV_CELL], c[VV_CELL];
    uint32_t at = s->has_start ? vv_node_of(p, &s->start.context) : VV_NONE;
    if (at == VV_NONE)
        return;
    const vv_node *n = &p->tree.nodes[at];
    printf("%-*s calls %s, errors %s, inclusive %s%s\n", FIELD, "context", vv_cli_count(a, n->counters->started),
           vv_cli_count(b, n->counters->error), vv_cli_duration(c, n->counters->inclusive_ns),
           n->flags & VV_NODE_OVERFLOW ? " (of all calls that found no memory for a context)" : "");
}

static int print_parents(const vv_found *f, const vv_profile *p, uint32_t at)
{
    uint32_t *parents;
    size_t n;
    bool complete;
    vv_error err = {0};
    if (vv_span_parents(p->fold, at, &parents, &n, &complete, &err) != VV_OK)
        return vv_cli_fail_error(&err, "spans", NULL);
    if (n)
        printf("\ncalled by, of the calls that were kept%s\n", complete ? "" : " (who called the first was not)");
    else if (!complete && p->fold->spans[at].has_start)
        printf("\nits caller was not kept on its own\n");
    for (size_t i = 0; i < n && i < PARENTS_SHOWN; i++) {
        const vv_fold_span *s = &p->fold->spans[parents[i]];
        char id[VV_PART_ID], scratch[VV_FUNCTION_SCRATCH], line[VV_CLI_LINE];
        vv_call_short(id, &f->execution->root, &s->call);
        printf("  %s  %s\n", id, vv_cli_line(line, vv_span_label(p, s, scratch)));
    }
    if (n > PARENTS_SHOWN)
        printf("  and %zu more\n", n - PARENTS_SHOWN);
    free(parents);
    return VV_EXIT_OK;
}

static int print_one(const vv_found *f, const vv_profile *p, uint32_t at)
{
    const vv_fold_span *s = &p->fold->spans[at];
    const vv_execution *x = f->execution;
    char text[VV_CELL], id[VV_CALL_TEXT], scratch[VV_FUNCTION_SCRATCH], capture[VV_CAPTURE_TEXT],
        site[VV_CLI_PLACE];
    vv_call_text(id, &s->call);
    vv_cli_text_line("call", FIELD, vv_cstr(id));
    if (s->has_start)
        vv_cli_text_line("function", FIELD, vv_function_label(p, s->start.function_id, scratch));
    if (*vv_cli_place(site, p, s->has_start && s->start.has_site ? &s->start.site : NULL))
        vv_cli_text_line("called at", FIELD, vv_cstr(site));
    printf("%-*s ", FIELD, "status");
    vv_cli_print_painted(status_paint(x, s), status_text(x, s));
    printf("\n");
    vv_cli_text_line("started", FIELD,
                     vv_cstr(since_start(text, x, s->has_start, s->has_start ? s->start.started_ns : 0)));
    vv_cli_text_line("duration", FIELD, vv_cstr(s->has_end ? vv_cli_duration(text, s->end.inclusive_ns) : "-"));
    vv_cli_value_line("args", FIELD, vv_span_input(x, s));
    vv_cli_value_line("output", FIELD, vv_span_output(x, s));
    vv_cli_value_line("error", FIELD, vv_span_error(x, p->fold, s));
    if (s->has_terminal && !s->terminal.lost) {
        vv_capture_text(capture, &s->terminal.capture);
        vv_cli_text_line("ended by", FIELD, vv_cstr(capture));
    }
    print_context(p, s);
    return print_parents(f, p, at);
}

static int show(const vv_cli *c, vv_query *q)
{
    vv_error err = {0};
    vv_found f;
    vv_loaded x = {NULL, NULL};
    vv_span_list l = {0};
    uint32_t at = 0;
    bool one = q->sub.p != NULL;
    vv_code rc = one ? VV_OK : vv_span_list_read(&l, q, &err);
    if (rc == VV_OK)
        rc = vv_query_load_own(q, &f, &x, &err);
    if (rc == VV_OK)
        rc = one ? vv_span_find(q, x.profile, &at, &err) : vv_span_list_make(&l, q, x.profile, &err);
    int status = VV_EXIT_OK;
    if (rc != VV_OK)
        status = vv_cli_fail_view(c, q, &err);
    else if (one)
        status = print_one(&f, x.profile, at);
    else
        print_list(&l, &f, &x);
    vv_span_list_done(&l);
    vv_loaded_release(q->library, &x);
    return status;
}

static int show_compared(const vv_cli *c, vv_query *q)
{
    vv_error err = {0};
    return vv_cli_compare_spans(q, NULL, &err) == VV_OK ? VV_EXIT_OK : vv_cli_fail_view(c, q, &err);
}

static const vv_cli_option options[] = {
    {"call", "CALL", "show one call: values, error, callers", false},
    {"function", "NAME", "of this function: its full name, definition key, or #NUMBER", false},
    {"status", "WORD", "ok, errored, cancelled, exited, or unknown (no end recorded)", false},
    {"thread", "THREAD", "of this thread: its id or number", false},
    {"context", "KEY", "in this calling context", false},
    {"reason", "WORD", "selected for being root, llm or manual", false},
    {"from", "NS", "that ran at or after this time of the process's clock", false},
    {"to", "NS", "that began before this time", false},
    {"min-duration", "TIME", "that took at least so long: 250us, 20ms, 3s", false},
    {"order", "ORDER", "start (default), or -duration: longest first", false},
    {"base", "ID", "compare with this execution, by calling path; goes with --function and --reason", true},
    VV_CLI_PAGE_OPTIONS,
    VV_CLI_INDEX_OPTION,
};

static int run(const vv_cli *c)
{
    static const struct {
        const char *option, *parameter;
    } passed[] = {{"function", "function"}, {"status", "status"}, {"thread", "thread"}, {"context", "context"},
                  {"reason", "reason"}, {"from", "from"}, {"to", "to"}, {"min-duration", "min_duration"},
                  {"order", "order"}};
    const char *call = vv_cli_value(c, "call");
    vv_cli_request r = {.id = vv_cli_execution(c), .sub = vv_cstr(call),
                        .view = call ? vv_answer_span : vv_answer_spans,
                        .show = vv_cli_has(c, "base") ? show_compared : show};
    for (size_t i = 0; i < VV_ARRAY_LEN(passed); i++)
        vv_cli_param(&r.params, passed[i].parameter, vv_cli_value(c, passed[i].option));
    vv_cli_repeated_param(&r.params, c, "base");
    if (call && (r.params.count || vv_cli_has_page(c)))
        return vv_cli_usage(c, "--call shows one call; it goes with no other option");
    if (!call)
        vv_cli_page_params(&r.params, c);
    return vv_cli_answer(c, &r);
}

static const char *const examples[] = {"varve spans", "varve spans latest~1 --status errored",
                                       "varve spans --order -duration -n 5", "varve spans --call 1.17",
                                       "varve spans --base latest~1", NULL};

const vv_cli_verb vv_verb_spans = {
    .name = "spans",
    .args = "[ID]",
    .purpose = "shows the calls of an execution that were recorded one by one",
    .details = "ID is an execution as `varve ls` lists it; the latest one where none is given. CALL is thread.call as\n"
               "the table has it, or a full id. Of ARGS, OUTPUT and ERROR the table says yes where the value is\n"
               "there, - where it was not to be kept, lost, pending, or ? where the recording does not say; it leaves\n"
               "blank what did not happen. Calls that were not selected are counted (`varve top`), and not here.\n"
               "With --base a row is a calling path: the change of the time of its calls, how many there were more,\n"
               "and how many more of them failed.\n",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .max_args = 1,
    .run = run,
};
