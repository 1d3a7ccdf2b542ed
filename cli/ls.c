#include "config.h"

#include <stdio.h>

#include "base/text.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "views/execution_list.h"

enum { FAULTS_SHOWN = 3 };

/* Options that are parameters of the list. */
static const char *const filters[] = {"status", "q", "since", "until", "stream", "program"};

static void cell_count(vv_cli_table *t, const vv_digest *d, vv_u128 v, bool bad)
{
    char text[VV_CELL];
    vv_cli_cell(t, bad && v ? VV_PAINT_BAD : VV_PAINT_NONE, "%s", d->known ? vv_cli_count(text, v) : "?");
}

static void add_row(vv_cli_table *t, const vv_found *f, const vv_digest *d)
{
    char text[VV_CELL], id[VV_SHORT_ID];
    const vv_execution *x = f->execution;
    const vv_engine *e = x->engine;
    vv_short_id(id, &x->root);
    vv_cli_cell(t, VV_PAINT_NONE, "%s", id);
    vv_cli_cell(t, vv_cli_status_paint(x->status), "%s", vv_status_word(x->status));
    vv_cli_cell(t, vv_cli_verdict_paint(d->evidence.verdict), "%s", vv_verdict_name(d->evidence.verdict));
    vv_cli_cell(t, VV_PAINT_NONE, "%s", f->has_time ? vv_cli_time(text, f->unix_ns) : "?");
    vv_cli_cell(t, VV_PAINT_NONE, "%s", d->has_duration ? vv_cli_duration(text, d->duration_ns) : "-");
    cell_count(t, d, d->totals.calls, false);
    cell_count(t, d, d->totals.errors, true);
    vv_cli_cell_text(t, VV_PAINT_BOLD, d->entry_fqn ? vv_cstr(d->entry_fqn) : vv_cstr("?"), 40);
    vv_cli_cell_text(t, VV_PAINT_DIM, e && e->source.present ? e->source.s : vv_cstr(""), 60);
}

static bool is_filtered(const vv_cli *c)
{
    bool filtered = vv_cli_has(c, "cursor");
    for (size_t i = 0; i < VV_ARRAY_LEN(filters); i++)
        filtered |= vv_cli_has(c, filters[i]);
    return filtered;
}

static void print_hint(const vv_cli *c, size_t executions, const vv_look *look)
{
    if (executions == 0 && is_filtered(c))
        printf("no such executions\n");
    else if (executions == 0)
        printf("no executions yet; record one with `varve-lua SCRIPT`, or any program that uses libvarve\n");
    size_t failed = 0;
    for (size_t i = 0; i < look->store->stream_count; i++) {
        const vv_stream *s = &look->store->streams[i];
        char hex[33];
        vv_hex(hex, s->euid.b, sizeof s->euid.b);
        if (s->failed && failed++ < FAULTS_SHOWN)
            vv_cli_fail(0, "the index of stream %s can't be read: %s; see `varve dump`", hex, s->error.msg);
    }
    if (failed > FAULTS_SHOWN)
        vv_cli_fail(0, "nor can those of %zu more streams", failed - FAULTS_SHOWN);
}

static int show(const vv_cli *c, vv_query *q)
{
    static const vv_cli_column columns[] = {{"ID", false}, {"STATUS", false}, {"EVIDENCE", false}, {"STARTED", false},
                                            {"DURATION", true}, {"CALLS", true}, {"ERRORS", true}, {"ENTRY", false},
                                            {"SOURCE", false}};
    vv_error err = {0};
    vv_execution_page p;
    int status = VV_EXIT_OK;
    if (vv_execution_page_read(&p, q, &err) != VV_OK) {
        status = vv_cli_fail_view(c, q, &err);
    } else {
        vv_cli_table *t = vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
        for (size_t i = 0; i < p.count; i++)
            add_row(t, &p.items[i].found, p.items[i].digest);
        if (p.count)
            vv_cli_table_print(t);
        vv_cli_table_free(t);
        vv_cli_print_next(p.next);
        print_hint(c, p.count, q->look);
    }
    vv_execution_page_done(q, &p);
    return status;
}

static int run(const vv_cli *c)
{
    vv_cli_request r = {.store = c->arg_count ? c->args[0] : NULL, .view = vv_answer_executions, .show = show};
    for (size_t i = 0; i < VV_ARRAY_LEN(filters); i++)
        vv_cli_param(&r.params, filters[i], vv_cli_value(c, filters[i]));
    vv_cli_page_params(&r.params, c);
    return vv_cli_answer(c, &r);
}

static const vv_cli_option options[] = {
    {"status", "WORD", "succeeded, failed, cancelled, panicked, abandoned or running", false},
    {"q", "TEXT", "whose id, entry, source or revision holds this text", false},
    {"since", "TIME", "started then or later: nanoseconds since 1970, or 2026-01-31T12:00:00Z", false},
    {"until", "TIME", "started before then", false},
    {"stream", "STREAM", "of this process", false},
    {"program", "PROGRAM", "of this program", false},
    VV_CLI_PAGE_OPTIONS,
    VV_CLI_INDEX_OPTION,
};
static const char *const examples[] = {"varve ls", "varve ls -n 5", "varve ls --status failed --q checkout",
                                       "varve ls --json ./run.tar.gz", NULL};

const vv_cli_verb vv_verb_ls = {
    .name = "ls",
    .args = "[STORE]",
    .purpose = "lists the executions of a store, newest first",
    .details = "An execution is named by its ID, by its full id (--json), or by latest, latest~1, and so on.\n"
               "EVIDENCE says how far the numbers can be trusted: complete, running, partial or damaged.\n",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .max_args = 1,
    .run = run,
};
