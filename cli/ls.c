#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/verbs.h"
#include "cli/view.h"

enum { LIMIT_DEFAULT = 20, LIMIT_MAX = 1000, FAULTS_SHOWN = 3 };

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

static void print_hint(size_t executions, const vv_look *look)
{
    if (executions == 0)
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

static int print_table(vv_library *l, const vv_look *look, uint64_t limit)
{
    static const vv_cli_column columns[] = {{"ID", false}, {"STATUS", false}, {"EVIDENCE", false}, {"STARTED", false},
                                            {"DURATION", true}, {"CALLS", true}, {"ERRORS", true}, {"ENTRY", false},
                                            {"SOURCE", false}};
    vv_error err = {0};
    const vv_order *o;
    vv_cli_table *t = vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
    if (!t || vv_library_order(l, look, &o, &err) != VV_OK) {
        vv_cli_table_free(t);
        return vv_cli_fail(VV_EXIT_LIMIT, "no memory for the list");
    }
    vv_code rc = VV_OK;
    for (size_t i = 0; i < o->count && i < limit && rc == VV_OK; i++) {
        const vv_digest *d;
        rc = vv_library_digest(l, look, o->items[i].stream, o->items[i].execution, &d, &err);
        if (rc != VV_OK)
            break;
        add_row(t, &o->items[i], d);
        vv_digest_release(l, d);
    }
    if (rc == VV_OK && o->count)
        vv_cli_table_print(t);
    if (rc == VV_OK && o->count > limit)
        printf("%zu more; --limit shows them\n", o->count - (size_t)limit);
    print_hint(o->count, look);
    vv_cli_table_free(t);
    vv_order_unref(o);
    return rc == VV_OK ? VV_EXIT_OK : vv_cli_fail_error(&err, "store", NULL);
}

static int run(const vv_cli *c)
{
    vv_library *l;
    const vv_look *look;
    uint64_t limit = LIMIT_DEFAULT;
    if (!vv_cli_number(c, "limit", 1, LIMIT_MAX, &limit))
        return VV_EXIT_USAGE;
    int status = vv_cli_open_library(c, c->arg_count ? c->args[0] : NULL, &l, &look);
    if (status >= 0)
        return status;
    if (c->json) {
        vv_cli_params p = {0};
        vv_cli_param(&p, "limit", vv_cli_value(c, "limit"));
        vv_query q = {.library = l, .look = look, .params = p.items, .param_count = p.count};
        status = vv_cli_print_answer(c, vv_answer_executions, &q);
    } else {
        status = print_table(l, look, limit);
    }
    vv_cli_close_library(l, look);
    return status;
}

static const vv_cli_option options[] = {
    {"limit", "N", "rows at most (20; with --json 100); also -n", false},
    VV_CLI_INDEX_OPTION,
};
static const char *const examples[] = {"varve ls", "varve ls -n 5", "varve ls --json ./run.tar.gz", NULL};

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
