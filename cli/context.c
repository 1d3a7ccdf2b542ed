#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "views/context.h"
#include "views/spans.h"

enum { NAME_SHOWN = 70, CHAIN_SHOWN = 64 };

static void name_of(const vv_profile *p, uint32_t node, char out[VV_CLI_LINE])
{
    char scratch[VV_FUNCTION_SCRATCH], id[VV_OVERFLOW_ID];
    const vv_node *n = &p->tree.nodes[node];
    if (n->function != VV_NONE) {
        vv_cli_line(out, vv_function_label(p, p->tree.functions[n->function].id, scratch));
    } else if (n->flags & VV_NODE_OVERFLOW) {
        vv_node_overflow_id(&p->tree.nodes[node], id);
        vv_cli_line(out, vv_cstr(id));
    } else {
        vv_cli_line(out, vv_cstr("? (its definition is missing)"));
    }
}

static void print_site(const vv_profile *p, uint32_t node)
{
    const vv_fold_context *c = vv_profile_context(p, node);
    if (!c || !c->defined || !c->tuple.has_site)
        return;
    const vv_source_file *file = p->has_table ? vv_function_table_file(&p->table, c->tuple.site.file) : NULL;
    char line[VV_CLI_LINE];
    printf("  called at %s:%" PRIu32, vv_cli_line(line, file ? file->path : vv_cstr("?")), c->tuple.site.line);
}

static void print_chain(const vv_context_view *v, const vv_profile *p)
{
    size_t from = v->chain_count > CHAIN_SHOWN ? v->chain_count - CHAIN_SHOWN : 0;
    printf("\nreached through\n");
    if (from)
        printf("  ... %zu more\n", from);
    else if (!v->chain_complete)
        printf("  ? (what called the next one is not known)\n");
    for (size_t i = from; i < v->chain_count; i++) {
        char name[VV_CLI_LINE];
        name_of(p, v->chain[i], name);
        printf("  %-6s", vv_node_edge_name(p->tree.nodes[v->chain[i]].edge));
        vv_cli_print_painted(i + 1 == v->chain_count ? VV_PAINT_BOLD : VV_PAINT_NONE, name);
        print_site(p, v->chain[i]);
        printf("\n");
    }
}

static void print_counters(const vv_context_view *v, const vv_profile *p)
{
    const vv_node *n = &p->tree.nodes[v->node];
    const vv_counters *c = n->counters;
    char a[VV_CELL], b[VV_CELL];
    printf("%-9s %s, %s selected; ", "calls", vv_cli_count(a, c->started), vv_cli_count(b, c->selected));
    printf("%s ok", vv_cli_count(a, c->ok));
    printf(", %s errored, %s cancelled", vv_cli_count(a, c->error), vv_cli_count(b, c->cancelled));
    printf(", %s exited", vv_cli_count(a, c->exited));
    if (vv_counters_open(c) > 0)
        printf(", %s open", vv_cli_count(a, (vv_u128)vv_counters_open(c)));
    printf("\n%-9s inclusive %s", "time", vv_cli_duration(a, c->inclusive_ns));
    printf(", self %s, await %s%s\n", vv_cli_duration(a, n->self_ns), vv_cli_duration(b, c->await_ns),
           n->flags & VV_NODE_TIMING_INCOMPLETE ? " (incomplete)" : "");
    printf("%-9s %s of its own calls", "errors", vv_cli_count(a, c->error));
    if (!(n->flags & VV_NODE_OVERFLOW) && c->started && vv_counts_whole(p->fold))
        printf(" (%.3g %%)", 100 * (double)c->error / (double)c->started);
    printf(", %s of calls below; %s recorded as thrown here\n", vv_cli_count(a, v->errors_below),
           vv_cli_count(b, v->captures));
    printf("%-9s %s kept one by one, of %s selected", "coverage", vv_cli_count(a, v->retained),
           vv_cli_count(b, c->selected));
    printf(", of %s\n", vv_cli_count(a, c->started));
}

static void print_exemplars(const vv_context_view *v, const vv_found *f, const vv_profile *p)
{
    char a[VV_CELL], id[VV_PART_ID];
    if (v->ended) {
        printf("%-9s sample of %" PRIu64 ": least %s", "durations", v->ended, vv_cli_duration(a, v->min_ns));
        for (unsigned i = 0; i < VV_PERCENTILES; i++)
            printf(", p%u %s", vv_percentiles[i], vv_cli_duration(a, v->percentiles[i]));
        printf(", most %s\n", vv_cli_duration(a, v->max_ns));
    }
    for (unsigned e = 0; e < VV_EXEMPLARS; e++) {
        if (!v->has_exemplar[e])
            continue;
        const vv_fold_span *s = &p->fold->spans[v->exemplars[e]];
        vv_call_short(id, &f->execution->root, &s->call);
        printf("%-9s call %s, %s, %s\n", vv_exemplar_words[e], *id ? id : "of another engine",
               s->has_end ? vv_cli_duration(a, s->end.inclusive_ns) : "no end",
               s->has_end ? vv_call_words[s->end.status]
                          : vv_life_word(vv_life_of(f->execution, s->has_start, s->has_end)));
    }
}

static void print_children(const vv_context_view *v, const vv_profile *p)
{
    static const vv_cli_column columns[] = {{"CALLS", true}, {"ERRORS", true}, {"INCLUSIVE", true}, {"SELF", true},
                                            {"EDGE", false}, {"CONTEXT", false}, {"FUNCTION", false}};
    vv_cli_table *t = vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
    char text[VV_CELL], name[VV_CLI_LINE], hex[65];
    printf("\n");
    for (size_t i = 0; i < v->page.count; i++) {
        uint32_t node = v->page.items[i].row;
        const vv_node *n = &p->tree.nodes[node];
        vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_cli_count(text, n->counters->started));
        vv_cli_cell(t, n->counters->error ? VV_PAINT_BAD : VV_PAINT_NONE, "%s", vv_cli_count(text, n->counters->error));
        vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_cli_duration(text, n->counters->inclusive_ns));
        vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_cli_duration(text, n->self_ns));
        vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_node_edge_name(n->edge));
        vv_hex(hex, p->tree.nodes[node].key, sizeof(vv_context_key));
        vv_cli_cell(t, VV_PAINT_DIM, "%s", hex);
        name_of(p, node, name);
        vv_cli_cell_text(t, VV_PAINT_BOLD, vv_cstr(name), NAME_SHOWN);
    }
    vv_cli_table_print(t);
    vv_cli_table_free(t);
    printf("%zu of %s below it\n", v->page.count, vv_cli_count(text, v->children));
}

static void print_all(const vv_context_view *v, const vv_found *f, const vv_loaded *x)
{
    char short_id[VV_SHORT_ID], name[VV_CLI_LINE];
    vv_short_id(short_id, &f->execution->root);
    name_of(x->profile, v->node, name);
    vv_cli_print_painted(VV_PAINT_BOLD, name);
    printf(" in %s; ", short_id);
    vv_cli_print_evidence(x->digest->evidence.verdict);
    print_counters(v, x->profile);
    print_exemplars(v, f, x->profile);
    print_chain(v, x->profile);
    print_children(v, x->profile);
}

static int show(const vv_cli *c, vv_query *q)
{
    vv_error err = {0};
    vv_found f;
    vv_loaded x = {NULL, NULL};
    vv_context_view v;
    int status = VV_EXIT_OK;
    vv_code rc = vv_context_read(&v, q, &err);
    if (rc == VV_OK)
        rc = vv_context_find(&v, q, &f, &err);
    if (rc == VV_OK)
        rc = vv_query_load(q, &f, &x, &err);
    if (rc == VV_OK)
        rc = vv_context_make(&v, q, x.profile, &err);
    if (rc == VV_OK)
        print_all(&v, &f, &x);
    else
        status = vv_cli_fail_view(c, q, &err);
    vv_context_done(&v);
    vv_loaded_release(q->library, &x);
    return status;
}

static const vv_cli_option options[] = {
    {"execution", "ID", "in this execution; needed where several have the context", false},
    {"limit", "N", "rows of what is below it, at most (20; with --json 100); also -n", false},
    {"cursor", "CURSOR", "go on after a former page", false},
    VV_CLI_INDEX_OPTION,
};

static int run(const vv_cli *c)
{
    if (c->arg_count == 0)
        return vv_cli_usage(c, "the context's key is missing: call_path_id of `varve spans --json`");
    vv_cli_request r = {.id = vv_cstr(c->args[0]), .view = vv_answer_context, .show = show};
    vv_cli_param(&r.params, "execution", vv_cli_value(c, "execution"));
    vv_cli_page_params(&r.params, c);
    return vv_cli_answer(c, &r);
}

static const char *const examples[] = {
    "varve context 5d41402abc4b2a76b9719d911017c592ae2b1e9e3f0c7d1a8e64f3d6c0b2a190",
    "varve context overflow:context_memory_unavailable_after_drain:call --execution latest", NULL};

const vv_cli_verb vv_verb_context = {
    .name = "context",
    .args = "KEY",
    .purpose = "shows one calling context: how it is reached, what is counted in it, examples",
    .details = "KEY is the context's key, 64 hexadecimal digits, or overflow:REASON:EDGE. A context is the same\n"
               "in all executions of one program: where several have it, --execution says which one is meant.\n"
               "Durations are those of the calls that were kept one by one: a sample, and no more than that.\n",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .max_args = 1,
    .run = run,
};
