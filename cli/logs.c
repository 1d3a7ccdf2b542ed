#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/facts.h"
#include "cli/verbs.h"
#include "views/logs.h"

enum { MESSAGE_SHOWN = 100, EVENT_SHOWN = 30, LEVEL_SHOWN = 10 };

static void add_opt(vv_cli_table *t, vv_paint paint, const vv_opt_str *s, size_t max)
{
    vv_cli_cell_text(t, paint, s->present ? s->s : vv_cstr("-"), max);
}

static void add_row(vv_cli_table *t, const vv_found *f, const vv_log_event *e)
{
    char text[VV_CELL], id[VV_PART_ID] = "";
    uint64_t ns;
    vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_log_time(e, &ns) ? vv_cli_time(text, ns) : "?");
    add_opt(t, VV_PAINT_NONE, &e->level, LEVEL_SHOWN);
    if (e->has_call)
        vv_call_short(id, &f->execution->root, &e->call);
    vv_cli_cell(t, VV_PAINT_NONE, "%s", *id ? id : "-");
    vv_cli_cell(t, e->data.lost ? VV_PAINT_WARN : VV_PAINT_NONE, "%s", e->data.lost ? "lost" : "yes");
    vv_cli_cell(t, e->context.lost ? VV_PAINT_WARN : VV_PAINT_NONE, "%s", e->context.lost ? "lost" : "yes");
    add_opt(t, VV_PAINT_BOLD, &e->event, EVENT_SHOWN);
    add_opt(t, VV_PAINT_NONE, &e->message, MESSAGE_SHOWN);
}

static void print_foot(const vv_log_list *l, const vv_digest *d)
{
    const vv_log_population *n = &l->population;
    if (!n->known) {
        printf("no log event can be shown: the execution's data is damaged; `varve show` says how\n");
        return;
    }
    printf("%zu of %" PRIu64 " log events that match, of %" PRIu64 " recorded; ", l->page.count, n->matched,
           n->logs);
    vv_cli_print_evidence(d->evidence.verdict);
    if (n->logs == 0)
        printf("what recorded this execution keeps no log events, or there were none\n");
    vv_cli_print_next(l->page.next);
}

static void print_list(const vv_log_list *l, const vv_found *f, const vv_loaded *x)
{
    static const vv_cli_column columns[] = {{"TIME", false}, {"LEVEL", false}, {"CALL", false}, {"DATA", false},
                                            {"CONTEXT", false}, {"EVENT", false}, {"MESSAGE", false}};
    vv_cli_table *t = vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
    for (size_t i = 0; i < l->page.count; i++)
        add_row(t, f, &x->profile->fold->logs[l->page.items[i].row]);
    vv_cli_table_print(t);
    vv_cli_table_free(t);
    print_foot(l, x->digest);
}

static int show(const vv_cli *c, vv_query *q)
{
    vv_error err = {0};
    vv_found f;
    vv_loaded x = {NULL, NULL};
    vv_log_list l = {.population = {.known = false}};
    vv_code rc = vv_log_list_read(&l, q, &err);
    if (rc == VV_OK)
        rc = vv_query_load_own(q, &f, &x, &err);
    if (rc == VV_OK)
        rc = vv_log_list_make(&l, q, x.profile, &err);
    int status = rc == VV_OK ? VV_EXIT_OK : vv_cli_fail_view(c, q, &err);
    if (rc == VV_OK)
        print_list(&l, &f, &x);
    vv_log_list_done(&l);
    vv_loaded_release(q->library, &x);
    return status;
}

static const vv_cli_option options[] = {
    {"level", "WORDS", "of these levels, with commas: warn,error", false},
    {"call", "CALL", "of this call: its id, or thread.call", false},
    {"thread", "THREAD", "of this thread: its id or number", false},
    {"event", "NAME", "of events of this name", false},
    {"q", "TEXT", "whose message or event name holds this text", false},
    {"since", "TIME", "then or later: nanoseconds since 1970, or 2026-01-31T12:00:00Z", false},
    {"until", "TIME", "before then", false},
    {"order", "ORDER", "time (default), or recorded: as they were written", false},
    VV_CLI_PAGE_OPTIONS,
    VV_CLI_INDEX_OPTION,
};

static int run(const vv_cli *c)
{
    static const char *const passed[] = {"level", "call", "thread", "event", "q", "since", "until", "order"};
    vv_cli_request r = {.id = vv_cli_execution(c), .view = vv_answer_logs, .show = show};
    for (size_t i = 0; i < VV_ARRAY_LEN(passed); i++)
        vv_cli_param(&r.params, passed[i], vv_cli_value(c, passed[i]));
    vv_cli_page_params(&r.params, c);
    return vv_cli_answer(c, &r);
}

static const char *const examples[] = {"varve logs", "varve logs latest~1 --level warn,error",
                                       "varve logs --call 1.17", NULL};

const vv_cli_verb vv_verb_logs = {
    .name = "logs",
    .args = "[ID]",
    .purpose = "shows the log events of an execution, where the store has them",
    .details = "ID is an execution as `varve ls` lists it; the latest one where none is given. Varve's own writer\n"
               "keeps no log events; stores of other writers may hold some. DATA and CONTEXT say whether an event's\n"
               "values are there; --json has their names.\n",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .max_args = 1,
    .run = run,
};
