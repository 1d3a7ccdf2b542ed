#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "views/search.h"

enum { TEXT_SHOWN = 70, ID = VV_SHORT_ID + VV_PART_ID };

/* "execution part": what a verb takes to show it. */
static void put_id(char out[ID], const vv_hit *h)
{
    char part[VV_PART_ID] = "";
    const vv_thread_ref *root = h->found ? &h->found->execution->root : NULL;
    if (root)
        vv_short_id(out, root);
    else
        strcpy(out, "-");
    if (h->type == VV_HIT_THREAD)
        vv_thread_short(part, root, &h->profile->fold->threads[h->at].thread);
    else if (h->type == VV_HIT_ERROR)
        vv_capture_short(part, root, &h->profile->fold->errors[h->at].id);
    else if (h->type == VV_HIT_SPAN)
        vv_call_short(part, root, &h->profile->fold->spans[h->at].call);
    if (*part)
        snprintf(out + strlen(out), VV_PART_ID + 1, " %s", part);
}

static vv_str text_of(const vv_hit *h, char scratch[VV_FUNCTION_SCRATCH])
{
    const vv_fold *f = h->profile ? h->profile->fold : NULL;
    switch (h->type) {
    case VV_HIT_FUNCTION:
        return h->function.def->fqn;
    case VV_HIT_EXECUTION:
        return vv_cstr(h->digest->entry_fqn ? h->digest->entry_fqn : "?");
    case VV_HIT_THREAD:
        return f->threads[h->at].start.name;
    case VV_HIT_ERROR:
        return vv_function_label(h->profile, f->errors[h->at].function_id, scratch);
    case VV_HIT_SPAN:
        return vv_span_label(h->profile, &f->spans[h->at], scratch);
    case VV_HIT_TYPES:
        break;
    }
    return (vv_str){NULL, 0};
}

typedef struct {
    vv_cli_table *table;
    size_t count;
} hit_table;

static void add_row(void *state, const vv_hit *h)
{
    hit_table *hits = state;
    vv_cli_table *t = hits->table;
    hits->count++;
    char id[ID], scratch[VV_FUNCTION_SCRATCH];
    put_id(id, h);
    vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_hit_words[h->type]);
    vv_cli_cell(t, VV_PAINT_NONE, "%s", id);
    vv_cli_cell(t, VV_PAINT_DIM, "%s", h->matched);
    vv_cli_cell_text(t, VV_PAINT_BOLD, text_of(h, scratch), TEXT_SHOWN);
    bool has_file = h->type == VV_HIT_FUNCTION && h->function.def->source_file.present;
    vv_cli_cell_text(t, VV_PAINT_NONE, has_file ? h->function.def->source_file.s : vv_cstr(""), TEXT_SHOWN);
}

static int show(const vv_cli *c, vv_query *q)
{
    static const vv_cli_column columns[] = {{"TYPE", false}, {"ID", false}, {"BY", false}, {"NAME", false},
                                            {"FILE", false}};
    hit_table t = {.table = vv_cli_table_new(columns, VV_ARRAY_LEN(columns))};
    vv_search_result r;
    vv_error err = {0};
    int status = VV_EXIT_OK;
    if (vv_search(q, add_row, &t, &r, &err) != VV_OK) {
        status = vv_cli_fail_view(c, q, &err);
    } else {
        if (t.count)
            vv_cli_table_print(t.table);
        else
            printf("nothing that holds this text\n");
        vv_cli_print_next(r.next);
        if (r.tables_unreadable)
            printf("%" PRIu64 " of %" PRIu64 " tables of functions can't be read\n", r.tables_unreadable, r.tables);
        vv_cli_print_evidence(r.evidence.verdict);
    }
    vv_search_result_done(&r);
    vv_cli_table_free(t.table);
    return status;
}

static const vv_cli_option options[] = {
    {"kind", "TYPE", "function, execution, thread, error or span alone", false},
    VV_CLI_PAGE_OPTIONS,
    VV_CLI_INDEX_OPTION,
};

static int run(const vv_cli *c)
{
    if (c->arg_count == 0)
        return vv_cli_usage(c, "the text to look for is missing");
    vv_cli_request r = {.view = vv_answer_search, .show = show};
    vv_cli_param(&r.params, "q", c->args[0]);
    vv_cli_param(&r.params, "kind", vv_cli_value(c, "kind"));
    vv_cli_page_params(&r.params, c);
    return vv_cli_answer(c, &r);
}

static const char *const examples[] = {"varve search checkout", "varve search baml_id_1_ --kind span",
                                       "varve search rethrow --kind error -n 5", NULL};

const vv_cli_verb vv_verb_search = {
    .name = "search",
    .args = "TEXT",
    .purpose = "finds functions, executions, threads, errors and calls by text, in the whole store",
    .details = "A text is found wherever it is a part of a name, whatever the case of its letters: of a function's\n"
               "names and file (also where it threw, or was called), of an execution's id, entry, source and\n"
               "revision, of a thread, or of an id that the program gave a call. ID is what `varve show`,\n"
               "`spans --call`, `spans --thread` and `errors --error` take. A function that no execution has called\n"
               "is found too.\n",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .max_args = 1,
    .run = run,
};
