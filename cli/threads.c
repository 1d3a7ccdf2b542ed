#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/facts.h"
#include "cli/verbs.h"
#include "views/threads.h"

enum { NAME_SHOWN = 40 };

/* Its status, or why there is none. */
static const char *status_text(const vv_execution *x, const vv_fold_thread *r)
{
    if (r && r->has_end)
        return vv_thread_words[r->end.status];
    return vv_cli_life_text(vv_life_of(x, r && r->has_start, false));
}

static vv_paint status_paint(const vv_execution *x, const vv_fold_thread *r)
{
    static const vv_paint paints[] = {VV_PAINT_NONE, VV_PAINT_WARN, VV_PAINT_BAD};
    vv_life life = vv_life_of(x, r && r->has_start, r && r->has_end);
    return r && r->has_end ? paints[r->end.status] : life == VV_LIFE_OPEN ? VV_PAINT_LIVE : VV_PAINT_WARN;
}

static void add_id(vv_cli_table *t, const vv_thread_ref *root, const vv_thread_ref *thread)
{
    char id[VV_PART_ID], full[VV_THREAD_TEXT];
    vv_thread_short(id, root, thread);
    vv_thread_text(full, thread);
    vv_cli_cell(t, VV_PAINT_NONE, "%s", *id ? id : full);
}

static void add_row(vv_cli_table *t, const vv_found *f, const vv_lane *l)
{
    char text[VV_CELL];
    const vv_execution *x = f->execution;
    const vv_fold_thread *r = l->record;
    const vv_thread_start *b = r && r->has_start ? &r->start : NULL;
    const vv_thread_end *e = r && r->has_end ? &r->end : NULL;
    add_id(t, &x->root, &l->thread);
    if (b && b->has_parent)
        add_id(t, &x->root, &b->parent);
    else
        vv_cli_cell(t, VV_PAINT_NONE, "%s", b ? "" : "?");
    if (b && x->has_start && b->started_ns >= x->started_ns)
        vv_cli_cell(t, VV_PAINT_NONE, "+%s", vv_cli_duration(text, b->started_ns - x->started_ns));
    else
        vv_cli_cell(t, VV_PAINT_NONE, "?");
    bool lasted = b && e && e->ended_ns >= b->started_ns;
    vv_cli_cell(t, VV_PAINT_NONE, "%s", lasted ? vv_cli_duration(text, e->ended_ns - b->started_ns) : "-");
    vv_cli_cell(t, status_paint(x, r), "%s", status_text(x, r));
    vv_cli_cell(t, VV_PAINT_NONE, "%" PRIu64, l->spans);
    vv_cli_cell(t, l->errors ? VV_PAINT_BAD : VV_PAINT_NONE, "%" PRIu64, l->errors);
    vv_cli_cell_text(t, VV_PAINT_BOLD, b ? b->name : vv_cstr("?"), NAME_SHOWN);
}

static void print_list(const vv_lane_list *l, const vv_found *f, const vv_digest *d)
{
    static const vv_cli_column columns[] = {{"THREAD", true}, {"PARENT", true}, {"START", true}, {"LASTED", true},
                                            {"STATUS", false}, {"CALLS KEPT", true}, {"ERRORS", true},
                                            {"NAME", false}};
    vv_cli_table *t = vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
    for (size_t i = 0; i < l->page.count; i++)
        add_row(t, f, &l->all[l->page.items[i].row]);
    vv_cli_table_print(t);
    vv_cli_table_free(t);
    if (!l->known) {
        printf("no thread can be shown: the execution's data is damaged; `varve show` says how\n");
        return;
    }
    printf("%zu of %" PRIu64 " threads; of %" PRIu64 " the start is recorded, of %" PRIu64 " the end; ",
           l->page.count, l->lanes, l->started, l->ended);
    vv_cli_print_evidence(d->evidence.verdict);
    vv_cli_print_next(l->page.next);
}

static int show(const vv_cli *c, vv_query *q)
{
    vv_error err = {0};
    vv_found f;
    vv_loaded x = {NULL, NULL};
    vv_lane_list l = {.known = false};
    vv_code rc = vv_lane_list_read(&l, q, &err);
    if (rc == VV_OK)
        rc = vv_query_load_own(q, &f, &x, &err);
    if (rc == VV_OK)
        rc = vv_lane_list_make(&l, q, x.profile, &err);
    int status = rc == VV_OK ? VV_EXIT_OK : vv_cli_fail_view(c, q, &err);
    if (rc == VV_OK)
        print_list(&l, &f, x.digest);
    vv_lane_list_done(&l);
    vv_loaded_release(q->library, &x);
    return status;
}

static int run(const vv_cli *c)
{
    vv_cli_request r = {.id = vv_cli_execution(c), .view = vv_answer_threads, .show = show};
    vv_cli_page_params(&r.params, c);
    return vv_cli_answer(c, &r);
}

static const vv_cli_option options[] = {
    VV_CLI_PAGE_OPTIONS,
    VV_CLI_INDEX_OPTION,
};
static const char *const examples[] = {"varve threads", "varve threads latest~1 --json", NULL};

const vv_cli_verb vv_verb_threads = {
    .name = "threads",
    .args = "[ID]",
    .purpose = "shows the threads of an execution: what spawned them, and from when to when they ran",
    .details = "ID is an execution as `varve ls` lists it; the latest one where none is given. Coroutines and other\n"
               "tasks of a program count as threads.\n",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .max_args = 1,
    .run = run,
};
