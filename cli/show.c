#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "views/checkpoint.h"

enum { ISSUES_SHOWN = 20 };

static void field(const char *name, vv_paint paint, const char *value)
{
    printf("%-11s ", name);
    vv_cli_print_painted(paint, value);
    printf("\n");
}

static void print_text(vv_str s)
{
    char line[VV_CLI_LINE];
    printf("%s", vv_cli_line(line, s));
}

static void field_text(const char *name, vv_str s)
{
    printf("%-11s ", name);
    print_text(s);
    printf("\n");
}

static void print_process(const vv_stream_started *h)
{
    printf("%-11s %" PRIu32 ", ", "process", h->pid);
    print_text(h->version);
    printf(", ");
    print_text(h->os_arch);
    printf("\n");
}

static void print_identity(const vv_found *f, const vv_digest *d)
{
    const vv_execution *x = f->execution;
    char text[VV_THREAD_TEXT], shorter[VV_SHORT_ID];
    vv_thread_text(text, &x->root);
    vv_short_id(shorter, &x->root);
    field("execution", VV_PAINT_NONE, text);
    field("id", VV_PAINT_BOLD, shorter);
    if (d->entry_fqn)
        field_text("entry", vv_cstr(d->entry_fqn));
    if (x->engine && x->engine->source.present)
        field_text("source", x->engine->source.s);
    if (x->engine && x->engine->revision.present)
        field_text("revision", x->engine->revision.s);
    if (f->stream->has_header)
        print_process(&f->stream->header);
}

static void print_state(const vv_found *f, const vv_digest *d)
{
    char text[VV_CELL];
    const vv_execution *x = f->execution;
    field("status", vv_cli_status_paint(x->status), vv_status_word(x->status));
    field("started", VV_PAINT_NONE, f->has_time ? vv_cli_time(text, f->unix_ns) : "?");
    field("duration", VV_PAINT_NONE, d->has_duration ? vv_cli_duration(text, d->duration_ns) : "-");
    field("index", VV_PAINT_NONE, vv_index_state_text(x->index_state));
    field("data", VV_PAINT_NONE, vv_data_state_word(d->data_state));
    field("evidence", vv_cli_verdict_paint(d->evidence.verdict), vv_verdict_name(d->evidence.verdict));
}

/* "1 thread", "2,048 threads" */
static void print_number(vv_u128 v, const char *one)
{
    char text[VV_CELL];
    printf("%s %s%s", vv_cli_count(text, v), one, v == 1 ? "" : "s");
}

static void print_totals(const vv_digest *d)
{
    char a[VV_CELL];
    if (!d->known) {
        printf("\nno totals: the execution's data can't be folded\n");
        return;
    }
    printf("\n");
    print_number(d->totals.calls, "call");
    printf(", ");
    print_number(d->totals.errors, "error");
    printf(", %s cancelled; ", vv_cli_count(a, d->totals.cancelled));
    print_number(d->contexts, "context");
    printf(", ");
    print_number(d->threads, "thread");
    printf(", ");
    print_number(d->spans, "span");
    printf(" kept\ninclusive %s", vv_cli_duration(a, d->totals.inclusive_ns));
    printf(", spawned %s", vv_cli_duration(a, d->totals.spawned_inclusive_ns));
    printf(", self %s", vv_cli_duration(a, d->totals.self_ns));
    printf(", await %s\n", vv_cli_duration(a, d->totals.await_ns));
}

static void print_issues(const vv_evidence *e)
{
    if (e->issues_total || e->overflow_calls || e->timing_incomplete)
        printf("\nissues\n");
    for (size_t i = 0; i < e->issue_count && i < ISSUES_SHOWN; i++) {
        char text[VV_ISSUE_TEXT];
        vv_evidence_issue_text(text, &e->issues[i]);
        printf("  %s\n", text);
    }
    if (e->issues_total > ISSUES_SHOWN)
        printf("  and %" PRIu64 " more\n", e->issues_total - ISSUES_SHOWN);
    if (e->overflow_calls) {
        printf("  ");
        print_number(e->overflow_calls, "call");
        printf(" without a context of their own (overflow)\n");
    }
    if (e->timing_incomplete) {
        printf("  ");
        print_number(e->timing_incomplete, "context");
        printf(" with incomplete timing\n");
    }
}

static void print_count(bool *any, vv_str name, uint64_t value, bool loss)
{
    if (!value)
        return;
    if (!*any)
        printf("\nhealth\n");
    *any = true;
    char text[VV_HEALTH_NAME_MAX + 1] = "";
    memcpy(text, name.p, name.n);
    vv_text_tame(text, name.n);
    printf("  %-42s %" PRIu64 "%s\n", text, value, loss ? "  loss" : "");
}

/* What is not zero of the counters, and of the terms those that tell of a loss: the others are in the equations. */
static void print_health(const vv_execution *x)
{
    bool any = false;
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        print_count(&any, vv_cstr(vv_health_name(i)), x->health.v[i], vv_health_is_loss(i));
    vv_health_record r = x->terms;
    vv_str name;
    uint64_t value;
    while (x->has_terms && vv_health_term(&r, &name, &value))
        if (memmem(name.p, name.n, "_lost.", 6))
            print_count(&any, name, value, true);
}

static void print_equations(const vv_evidence *e)
{
    static const char *const words[] = {"not checked", "holds", "FAILS"};
    static const vv_paint paints[] = {VV_PAINT_DIM, VV_PAINT_GOOD, VV_PAINT_BAD};
    printf("\nequations\n");
    for (unsigned i = 0; i < VV_EQUATIONS; i++) {
        const vv_equation *q = &e->equations[i];
        char left[40] = "?", right[40] = "?";
        if (!q->no_left)
            vv_u128_text(left, q->left);
        if (!q->no_right)
            vv_u128_text(right, q->right);
        const char *sign = !q->holds || q->no_left || q->no_right ? "and" : q->left == q->right ? "=" : "!=";
        printf("  %-22s %s %s %s  ", vv_equation_name(i), left, sign, right);
        vv_cli_print_painted(paints[q->holds], words[q->holds]);
        printf("\n");
    }
}

static void print_rest(const vv_checkpoint *c)
{
    char a[VV_CELL], b[VV_CELL];
    if (!c->known) {
        printf("nothing is on its way\n");
        return;
    }
    printf("in flight   %s%s calls, %" PRIu64 " spans, %" PRIu64 " threads\n", c->open_calls < 0 ? "-" : "",
           vv_cli_count(a, c->open_calls < 0 ? -(vv_u128)c->open_calls : (vv_u128)c->open_calls), c->open_spans,
           c->open_threads);
    printf("queued      %s spans, %" PRIu64 " values, %" PRIu64 " errors, definitions of %" PRIu64 " contexts%s\n",
           vv_cli_count(b, c->spans), c->values, c->errors, c->contexts,
           strcmp(c->state, "abandoned") == 0 ? "; they were lost with the process" : "");
}

static int show_checkpoint(const vv_cli *c, vv_query *q)
{
    vv_error err = {0};
    vv_found f;
    vv_loaded x;
    char text[VV_CELL];
    vv_code rc = vv_query_load_own(q, &f, &x, &err);
    if (rc != VV_OK)
        return vv_cli_fail_view(c, q, &err);
    const vv_checkpoint k = vv_checkpoint_of(q->look->store->source, &f, &x);
    char id[VV_THREAD_TEXT];
    vv_thread_text(id, &f.execution->root);
    field("execution", VV_PAINT_NONE, id);
    field("state", vv_cli_status_paint(f.execution->status), k.state);
    printf("committed   meta %" PRIu64 ", data %" PRIu64 "; groups %" PRIu64 "\n", f.stream->meta_contiguous,
           f.stream->data_contiguous, x.profile->fold->groups);
    field("written", VV_PAINT_NONE, k.has_written ? vv_cli_time(text, k.written_unix_ns) : "?");
    if (x.digest->known)
        print_rest(&k);
    else
        printf("the execution's data is damaged: what is on its way can't be told\n");
    vv_loaded_release(q->library, &x);
    return VV_EXIT_OK;
}

static int show(const vv_cli *c, vv_query *q)
{
    vv_error err = {0};
    vv_found f;
    const vv_digest *d;
    vv_code rc = vv_query_execution(q, q->id, "id", &f, &err);
    if (rc == VV_OK)
        rc = vv_library_digest(q->library, q->look, f.stream, f.execution, &d, &err);
    if (rc != VV_OK)
        return vv_cli_fail_view(c, q, &err);
    print_identity(&f, d);
    print_state(&f, d);
    print_totals(d);
    print_issues(&d->evidence);
    print_health(f.execution);
    print_equations(&d->evidence);
    vv_digest_release(q->library, d);
    return VV_EXIT_OK;
}

static int run(const vv_cli *c)
{
    bool checkpoint = vv_cli_has(c, "checkpoint");
    const vv_cli_request r = {.id = vv_cli_execution(c),
                              .view = checkpoint ? vv_answer_checkpoint : vv_answer_execution,
                              .show = checkpoint ? show_checkpoint : show};
    return vv_cli_answer(c, &r);
}

static const vv_cli_option options[] = {
    {"checkpoint", NULL, "how far the recording has come: what is committed, what the process still keeps", false},
    VV_CLI_INDEX_OPTION,
};
static const char *const examples[] = {"varve show", "varve show latest~1", "varve show --checkpoint",
                                       "varve show --json", NULL};

const vv_cli_verb vv_verb_show = {
    .name = "show",
    .args = "[ID]",
    .purpose = "shows one execution: states, totals, issues, health, equations",
    .details = "ID is an execution as `varve ls` lists it; the latest one where none is given.\n",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .max_args = 1,
    .run = run,
};
