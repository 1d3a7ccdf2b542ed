#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/store_path.h"
#include "cli/compare.h"
#include "cli/verbs.h"
#include "views/cause.h"

#define ROWS_DEFAULT "20"
enum { LIMIT_DEFAULT = 20, LIMIT_MAX = 1000, NAMES_SHOWN = 8 };

/* One of the two: an execution of a store. */
typedef struct {
    char *store; /* NULL: that of --store, or the resolver's */
    const char *id;
} place;

/* STORE, STORE#ID, #ID or ID. False without memory. */
static bool read_place(place *ret, const char *s)
{
    const char *mark = strrchr(s, '#');
    *ret = (place){.id = "latest"};
    if (mark && mark[1])
        ret->id = mark + 1;
    if (mark == s)
        return true;
    if (!mark && vv_cli_is_id(s)) {
        ret->id = s;
        return true;
    }
    ret->store = strndup(s, mark ? (size_t)(mark - s) : strlen(s));
    return ret->store != NULL;
}

/* What is neither an id nor there: the next step of a store that is missing would not help. */
static bool is_there(const char *s, const place *p)
{
    if (!p->store || strchr(s, '#') || access(s, F_OK) == 0)
        return true;
    vv_cli_fail(VV_EXIT_STORE, "\"%.200s\" is neither an execution's id nor a store; `varve ls` lists executions", s);
    return false;
}

/* Do both name the same store, however they are written? */
static bool same_store(const char *a, const char *b)
{
    char path[2][PATH_MAX], full[2][PATH_MAX];
    const char *const args[] = {a, b};
    for (size_t i = 0; i < 2; i++) {
        vv_store_origin origin;
        if (vv_store_path_of(path[i], sizeof path[i], args[i], &origin, NULL) != VV_OK || !realpath(path[i], full[i]))
            return false;
    }
    return strcmp(full[0], full[1]) == 0;
}

static void print_cause(const vv_comparison *c, const vv_cause *x)
{
    char from[VV_CELL], to[VV_CELL], delta[VV_CELL];
    bool certain = vv_scope_absence_known(&c->scope, VV_SIDE_BASE) && vv_scope_absence_known(&c->scope, VV_SIDE_HEAD);
    printf("cause%s: ", certain ? "" : " (as far as known)");
    if (!x->changed) {
        printf("no number of calls changed\n");
        return;
    }
    if (x->node == VV_NONE) {
        printf("calls changed in several places, none of which makes most of it\n");
        return;
    }
    char path[VV_CLI_PATH];
    printf("%s: called %s times, was %s; %s calls there and below, %.0f%% of all that changed\n",
           vv_cli_path(path, &c->merged.tree, x->node, NAMES_SHOWN), vv_cli_count(to, x->own_head),
           vv_cli_count(from, x->own_base), vv_cli_count_change(delta, x->base, x->head),
           100 * (double)x->here / (double)x->all);
}

static vv_code print_changes(vv_query *q, vv_function_sort by, uint64_t limit, vv_verdict *ret_verdict, vv_error *err)
{
    vv_comparison c = {.paths = NULL};
    vv_scope s = {.items = NULL};
    vv_function_groups g = {.count = 0};
    vv_cause cause;
    vv_code rc = vv_scope_read(&s, q, err);
    if (rc == VV_OK)
        rc = vv_function_groups_make(&g, &s, err);
    if (rc == VV_OK)
        rc = vv_scope_read(&c.scope, q, err);
    if (rc == VV_OK)
        rc = vv_comparison_make(&c, NULL, NULL, err);
    if (rc == VV_OK)
        rc = vv_cause_find(&cause, &c, err);
    if (rc == VV_OK) {
        vv_function_groups_sort(&g, &s, by);
        vv_cli_print_function_changes(&s, &g, by, limit);
        print_cause(&c, &cause);
        *ret_verdict = s.evidence.verdict;
    }
    vv_function_groups_done(&g);
    vv_scope_done(&s);
    vv_comparison_done(&c);
    return rc;
}

/* What --of names: a view that takes a base. */
enum { OF_FLAME, OF_FUNCTIONS };
static const struct {
    const char *name;
    vv_view *view;
    vv_code (*table)(vv_query *q, vv_verdict *ret_verdict, vv_error *err); /* as a table; NULL: not by this */
    bool by_path;         /* the head is the execution of the resource's path */
    const char *takes[4]; /* options that are its parameters */
} views[] = {
    [OF_FLAME] = {"flame", vv_answer_flame, NULL, false, {"metric", "order", "max-nodes"}},
    [OF_FUNCTIONS] = {"functions", vv_answer_functions, NULL, false, {"sort", "limit"}},
    {"callers", vv_answer_callers, NULL, false, {"function", "metric", "max-nodes"}},
    {"callees", vv_answer_callees, NULL, false, {"function", "metric", "max-nodes"}},
    {"spans", vv_answer_spans, vv_cli_compare_spans, true, {"function", "limit"}},
    {"errors", vv_answer_errors, vv_cli_compare_errors, true, {"limit"}},
};

/* Options that are parameters of an answer. */
static const struct {
    const char *option, *parameter;
} passed[] = {{"metric", "metric"}, {"order", "order"}, {"max-nodes", "max_nodes"}, {"function", "function"},
              {"sort", "sort"}, {"limit", "limit"}};

static size_t view_of(const vv_cli *c)
{
    const char *name = vv_cli_value(c, "of");
    size_t i = 0;
    if (!name)
        return c->json ? OF_FLAME : OF_FUNCTIONS;
    while (i < VV_ARRAY_LEN(views) && strcmp(views[i].name, name) != 0)
        i++;
    return i;
}

static bool takes(size_t view, const char *option)
{
    for (size_t i = 0; i < VV_ARRAY_LEN(views[view].takes) && views[view].takes[i]; i++)
        if (strcmp(views[view].takes[i], option) == 0)
            return true;
    return false;
}

/* What does not go together; -1 where all does. */
static int check(const vv_cli *c)
{
    size_t view = view_of(c);
    if (view == VV_ARRAY_LEN(views))
        return vv_cli_usage(c, "--of must be one of flame, functions, callers, callees, spans, errors");
    if (!c->json && view != OF_FUNCTIONS && !views[view].table)
        return vv_cli_usage(c, "--of %s goes with --json; `varve %s` with --base shows it", views[view].name,
                            views[view].name);
    for (size_t i = 0; i < VV_ARRAY_LEN(passed); i++)
        if (vv_cli_has(c, passed[i].option) && !takes(view, passed[i].option))
            return vv_cli_usage(c, "--%s does not go with --of %s%s", passed[i].option, views[view].name,
                                vv_cli_has(c, "of") ? "" : ", the default");
    if (takes(view, "function") && !takes(view, "limit") && !vv_cli_has(c, "function"))
        return vv_cli_usage(c, "--of %s needs --function NAME", views[view].name);
    return -1;
}

/* The same answer as HTTP's, then the verdict for the exit status. */
static int print_json(const vv_cli *c, vv_query *q, vv_verdict *ret_verdict)
{
    vv_error err = {0};
    vv_scope s = {.items = NULL};
    vv_code found = vv_scope_read(&s, q, &err);
    vv_scope_done(&s);
    if (found != VV_OK)
        return vv_cli_fail_view(c, q, &err);
    int status = vv_cli_print_answer(c, views[view_of(c)].view, q);
    if (status != VV_EXIT_OK || !vv_cli_has(c, "strict"))
        return status;
    vv_code rc = vv_scope_read(&s, q, &err);
    if (rc == VV_OK)
        rc = vv_scope_fold(&s, NULL, NULL, &err);
    *ret_verdict = s.evidence.verdict;
    vv_scope_done(&s);
    return rc == VV_OK ? status : vv_cli_fail_view(c, q, &err);
}

static int print_table(const vv_cli *c, vv_query *q, uint64_t limit, vv_verdict *ret_verdict)
{
    const char *column = vv_cli_value(c, "sort");
    const vv_param sort = {vv_cstr("sort"), vv_cstr(column ? column : "self_ns")};
    vv_query words = {.params = &sort, .param_count = 1};
    unsigned by = VV_SORT_SELF;
    vv_error err = {0};
    if (vv_query_word(&words, "sort", vv_function_sorts, VV_FUNCTION_SORTS, &by, &err) != VV_OK)
        return vv_cli_fail_view(c, &words, &err);
    size_t view = view_of(c);
    vv_code rc = views[view].table ? views[view].table(q, ret_verdict, &err)
                                   : print_changes(q, (vv_function_sort)by, limit, ret_verdict, &err);
    return rc == VV_OK ? VV_EXIT_OK : vv_cli_fail_view(c, q, &err);
}

static int compare(const vv_cli *c, vv_query *q, uint64_t limit)
{
    vv_verdict verdict = VV_VERDICT_COMPLETE;
    int status = c->json ? print_json(c, q, &verdict) : print_table(c, q, limit, &verdict);
    if (status == VV_EXIT_OK && vv_cli_has(c, "strict") && verdict != VV_VERDICT_COMPLETE)
        return vv_cli_fail(VV_EXIT_INCOMPLETE, "the evidence is %s; `varve show ID` says why",
                           vv_verdict_name(verdict));
    return status;
}

/* Opens a store of its own for a side. */
static int open_place(const vv_cli *c, const place *p, vv_library **l, const vv_look **look)
{
    vv_cli one = *c;
    if (p->store)
        one.store = p->store;
    return vv_cli_open_library(&one, NULL, l, look);
}

/* The question, as HTTP would put it. */
static void ask(const vv_cli *c, const place *base, const place *head, vv_cli_params *p, vv_query *q)
{
    size_t view = view_of(c);
    if (views[view].by_path)
        q->id = vv_cstr(head->id);
    else
        vv_cli_param(p, "execution", head->id);
    vv_cli_param(p, "base", base->id);
    for (size_t i = 0; i < VV_ARRAY_LEN(passed) && (c->json || views[view].table); i++)
        vv_cli_param(p, passed[i].parameter, vv_cli_value(c, passed[i].option));
    if (!c->json && views[view].table && !vv_cli_has(c, "limit"))
        vv_cli_param(p, "limit", ROWS_DEFAULT);
    q->params = p->items;
    q->param_count = p->count;
}

static int run_places(const vv_cli *c, const place *base, const place *head, uint64_t limit)
{
    vv_library *l, *base_l = NULL;
    const vv_look *look, *base_look = NULL;
    int status = open_place(c, head, &l, &look);
    if (status >= 0)
        return status;
    const char *base_store = base->store ? base->store : c->store, *head_store = head->store ? head->store : c->store;
    if (!same_store(base_store, head_store))
        status = open_place(c, base, &base_l, &base_look);
    if (status < 0) {
        vv_cli_params p = {0};
        vv_query q = {.library = l, .look = look, .base_library = base_l, .base_look = base_look};
        ask(c, base, head, &p, &q);
        status = compare(c, &q, limit);
    }
    if (base_l)
        vv_cli_close_library(base_l, base_look);
    vv_cli_close_library(l, look);
    return status;
}

static int run(const vv_cli *c)
{
    uint64_t limit = LIMIT_DEFAULT;
    if (!vv_cli_number(c, "limit", 1, LIMIT_MAX, &limit))
        return VV_EXIT_USAGE;
    int status = check(c);
    if (status >= 0)
        return status;
    place base = {NULL, NULL}, head = {NULL, NULL};
    status = VV_EXIT_STORE;
    if (!read_place(&base, c->args[0]) || !read_place(&head, c->args[1]))
        status = vv_cli_fail(VV_EXIT_LIMIT, "no memory for a path");
    else if (is_there(c->args[0], &base) && is_there(c->args[1], &head))
        status = run_places(c, &base, &head, limit);
    free(base.store);
    free(head.store);
    return status;
}

static const vv_cli_option options[] = {
    {"limit", "N", "rows at most (20; with --json what the view has); also -n", false},
    {"sort", "COLUMN", "self_ns, inclusive_ns, await_ns, calls, errors, contexts or name: whose change counts", false},
    {"strict", NULL, "exit status 3 unless the evidence of both is complete", false},
    {"of", "VIEW", "functions (default), spans or errors; with --json also flame (default), callers, callees", false},
    {"function", "NAME", "of callers, callees (which need it) and spans", false},
    {"metric", "NAME", "with --json: of flame, callers and callees", false},
    {"order", "NAME", "with --json: of flame: top_down or bottom_up", false},
    {"max-nodes", "N", "with --json: of flame, callers and callees: nodes that stay", false},
    VV_CLI_INDEX_OPTION,
};
static const char *const examples[] = {"varve diff latest~1 latest", "varve diff baseline.tar.gz . --sort calls",
                                       "varve diff before.zip#latest~2 after.zip --json",
                                       "varve diff latest~1 latest --of errors",
                                       "varve diff latest~1 latest --json --of callers --function parse", NULL};

const vv_cli_verb vv_verb_diff = {
    .name = "diff",
    .args = "BASE HEAD",
    .purpose = "compares two executions, the largest changes first",
    .details = "Each is an execution's ID as `varve ls` lists it, a store (its latest execution), or STORE#ID.\n"
               "Functions are matched by name, calling contexts by the path of names that leads to them, so\n"
               "builds may differ. The last line names the callee whose calls changed most of all.\n",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
