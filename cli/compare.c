#include "config.h"

#include "cli/compare.h"

#include <stdio.h>

#include "cli/facts.h"

typedef const char *print_number(char out[VV_CELL], vv_u128 v);

static const char *change(char out[VV_CELL], vv_u128 base, vv_u128 head, print_number *print)
{
    char text[VV_CELL];
    if (head == base)
        snprintf(out, VV_CELL, "0");
    else
        snprintf(out, VV_CELL, "%s%.40s", head > base ? "+" : "-",
                 print(text, head > base ? head - base : base - head));
    return out;
}

const char *vv_cli_count_change(char out[VV_CELL], vv_u128 base, vv_u128 head)
{
    return change(out, base, head, vv_cli_count);
}

static const char *duration_change(char out[VV_CELL], vv_u128 base, vv_u128 head)
{
    return change(out, base, head, vv_cli_duration);
}

/* What a column holds. */
static bool is_time(vv_function_sort by)
{
    return by == VV_SORT_SELF || by == VV_SORT_INCLUSIVE || by == VV_SORT_AWAIT || by == VV_SORT_NAME;
}

static vv_paint paint_of(vv_u128 base, vv_u128 head)
{
    return head > base ? VV_PAINT_BAD : head < base ? VV_PAINT_GOOD : VV_PAINT_NONE;
}

void vv_cli_cell_number(vv_cli_table *t, vv_paint paint, bool known, bool time, vv_u128 v)
{
    char text[VV_CELL];
    vv_cli_cell(t, paint, "%s", !known ? "?" : time ? vv_cli_duration(text, v) : vv_cli_count(text, v));
}

void vv_cli_cell_change(vv_cli_table *t, bool known, bool time, vv_u128 base, vv_u128 head)
{
    char text[VV_CELL];
    if (known)
        vv_cli_cell(t, paint_of(base, head), "%s",
                    time ? duration_change(text, base, head) : vv_cli_count_change(text, base, head));
    else
        vv_cli_cell(t, VV_PAINT_NONE, "?");
}

static void add_part(vv_cli_table *t, bool known, vv_u128 base, vv_u128 head)
{
    double part = head >= base ? (double)(head - base) : -(double)(base - head);
    if (known && base)
        vv_cli_cell(t, VV_PAINT_NONE, "%+.1f%%", 100 * part / (double)base);
    else
        vv_cli_cell(t, VV_PAINT_NONE, "-");
}

static void add_state(vv_cli_table *t, vv_delta_state state)
{
    static const struct {
        const char *word;
        vv_paint paint;
    } states[] = {{"?", VV_PAINT_NONE}, {"", VV_PAINT_NONE}, {"new", VV_PAINT_WARN}, {"gone", VV_PAINT_WARN}};
    vv_cli_cell(t, states[state].paint, "%s", states[state].word);
}

static void add_row(vv_cli_table *t, const vv_scope *s, const vv_function_group *g, vv_function_sort by)
{
    const vv_function_row *base = &g->side[VV_SIDE_BASE], *head = &g->side[VV_SIDE_HEAD];
    bool has_base = vv_scope_number_known(s, g->on, VV_SIDE_BASE);
    bool has_head = vv_scope_number_known(s, g->on, VV_SIDE_HEAD), both = has_base && has_head, time = is_time(by);
    vv_u128 from = vv_function_value(base, by), to = vv_function_value(head, by);
    vv_cli_cell_change(t, both, time, from, to);
    add_part(t, both, from, to);
    vv_cli_cell_number(t, VV_PAINT_NONE, has_base, time, from);
    vv_cli_cell_number(t, VV_PAINT_NONE, has_head, time, to);
    vv_cli_cell_change(t, both, false, base->calls, head->calls);
    vv_cli_cell_change(t, both, false, base->errors, head->errors);
    add_state(t, vv_scope_state(s, g->on));
    vv_cli_cell_function(t, &g->function);
}

static bool has_changed(const vv_scope *s, const vv_function_group *g, vv_function_sort by)
{
    const vv_function_row *base = &g->side[VV_SIDE_BASE], *head = &g->side[VV_SIDE_HEAD];
    return vv_scope_state(s, g->on) != VV_STATE_BOTH || vv_function_value(base, by) != vv_function_value(head, by)
        || base->calls != head->calls || base->errors != head->errors;
}

/* A line of a side: `says`, where anything is known of it. */
static void print_side(const vv_scope *s, vv_side side, const char *says)
{
    static const char *const names[VV_SIDES] = {[VV_SIDE_BASE] = "base", [VV_SIDE_HEAD] = "head"};
    const vv_evidence *e = &s->sides[side];
    printf("%s: %s", names[side], s->known[side] ? says : "can't be shown, its data is damaged");
    if (e->executions > 1)
        printf(", %llu executions", (unsigned long long)e->executions);
    printf("; ");
    vv_cli_print_evidence(e->verdict);
}

static void print_totals(const vv_scope *s, vv_side side)
{
    char calls[VV_CELL], self[VV_CELL], line[3 * VV_CELL];
    snprintf(line, sizeof line, "%s calls, self %s", vv_cli_count(calls, s->totals[side].calls),
             vv_cli_duration(self, s->totals[side].self_ns));
    print_side(s, side, line);
}

static void print_unknown(const vv_scope *s)
{
    if (!vv_scope_absence_known(s, VV_SIDE_BASE) || !vv_scope_absence_known(s, VV_SIDE_HEAD))
        printf("? is not known: the recording of a side is not complete, and its numbers are lower bounds\n");
}

static void print_foot(const vv_scope *s, size_t changed, size_t rows, size_t shown)
{
    char calls[VV_CELL], self[VV_CELL];
    const vv_totals *base = &s->totals[VV_SIDE_BASE], *head = &s->totals[VV_SIDE_HEAD];
    print_totals(s, VV_SIDE_BASE);
    print_totals(s, VV_SIDE_HEAD);
    if (s->known[VV_SIDE_BASE] && s->known[VV_SIDE_HEAD])
        printf("change: %s calls, self %s; ", vv_cli_count_change(calls, base->calls, head->calls),
               duration_change(self, base->self_ns, head->self_ns));
    printf("%zu of %zu functions changed%s\n", changed, rows, shown < changed ? ", the first ones are shown" : "");
    print_unknown(s);
}

void vv_cli_print_function_changes(const vv_scope *s, const vv_function_groups *g, vv_function_sort by, uint64_t limit)
{
    static const char *const titles[] = {"SELF", "INCLUSIVE", "AWAIT", "CALLS", "ERRORS", "CONTEXTS", "SELF"};
    const vv_cli_column columns[] = {{titles[by], true}, {"%", true}, {"BASE", true}, {"HEAD", true},
                                     {"CALLS", true}, {"ERRORS", true}, {"", false}, {"FUNCTION", false}};
    vv_cli_table *t = vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
    size_t changed = 0, shown = 0;
    for (size_t i = 0; i < g->count; i++) {
        if (!has_changed(s, &g->items[i], by))
            continue;
        changed++;
        if (shown < limit) {
            add_row(t, s, &g->items[i], by);
            shown++;
        }
    }
    vv_cli_table_print(t);
    print_foot(s, changed, g->count, shown);
    vv_cli_table_free(t);
}

static vv_str name_of(const vv_tree *t, uint32_t node, char scratch[VV_FUNCTION_SCRATCH])
{
    uint32_t f = t->nodes[node].function;
    if (f == VV_NONE)
        return vv_cstr("?");
    vv_str name = vv_function_ref_name(&t->functions[f]);
    if (!name.n) {
        snprintf(scratch, VV_FUNCTION_SCRATCH, "function #%u", t->functions[f].id);
        name = vv_cstr(scratch);
    }
    return name;
}

const char *vv_cli_path(char out[VV_CLI_PATH], const vv_tree *t, uint32_t node, unsigned names)
{
    enum { NAMES = 16 };
    uint32_t chain[NAMES];
    size_t n = 0, len = 0;
    for (; node != VV_NONE && n < names && n < NAMES; node = t->nodes[node].parent)
        chain[n++] = node;
    *out = 0;
    if (node != VV_NONE)
        len += (size_t)snprintf(out, VV_CLI_PATH, "\xe2\x80\xa6 > ");
    while (n-- > 0 && len < VV_CLI_PATH) {
        char scratch[VV_FUNCTION_SCRATCH], line[VV_CLI_LINE];
        len += (size_t)snprintf(out + len, VV_CLI_PATH - len, "%s%s",
                                vv_cli_line(line, name_of(t, chain[n], scratch)), n ? " > " : "");
    }
    return out;
}

/* What the tables of spans and of errors say differently. */
typedef struct {
    bool of_errors;
    const char *title, *titles[2], *function; /* of the metric, two more numbers, and the function */
    size_t numbers[2];
    const char *counted, *of; /* what a side has so many of, and of how many calls */
} paths_table;

static const paths_table tables[] = {
    {false, "DURATION", {"SPANS", "ERRORED"}, "FUNCTION", {3, 5}, "calls kept one by one", "counted"},
    {true, "ERRORS", {"ENDED", "FAILED"}, "THROWN BY", {1, 3}, "errors recorded", "calls ended by an error"},
};

static void add_path(vv_cli_table *t, const vv_compared *x, const vv_comparison_row *r)
{
    enum { NAMES = 3, SHOWN = 100 };
    const vv_tree *tree = &x->c->merged.tree;
    char path[VV_CLI_PATH] = "", scratch[VV_FUNCTION_SCRATCH], id[VV_OVERFLOW_ID];
    const vv_node *n = r->node == VV_NONE ? NULL : &tree->nodes[r->node];
    if (r->thrower) {
        vv_cli_cell(t, VV_PAINT_NONE, "%s", r->kind);
        vv_cli_cell_function(t, r->thrower);
    } else if (n && n->flags & VV_NODE_OVERFLOW) {
        vv_node_overflow_id(n, id);
        vv_cli_cell(t, VV_PAINT_NONE, "%s", id);
    } else {
        vv_cli_cell_text(t, VV_PAINT_BOLD, n ? name_of(tree, r->node, scratch) : vv_cstr("?"), SHOWN);
    }
    if (n)
        vv_cli_path(path, tree, n->parent, NAMES);
    vv_cli_cell_text(t, VV_PAINT_DIM, n ? vv_cstr(path) : vv_cstr("?"), SHOWN);
}

static void add_path_row(vv_cli_table *t, const vv_compared *x, const paths_table *kind, const vv_comparison_row *r)
{
    const vv_scope *s = &x->c->scope;
    const vv_comparison_number *m = &r->numbers[0];
    bool known[VV_SIDES];
    for (size_t side = 0; side < VV_SIDES; side++)
        known[side] = vv_scope_number_known(s, r->on, (vv_side)side);
    bool both = known[VV_SIDE_BASE] && known[VV_SIDE_HEAD];
    bool timed = both && m->known[VV_SIDE_BASE] && m->known[VV_SIDE_HEAD];
    vv_cli_cell_change(t, timed, !kind->of_errors, m->value[VV_SIDE_BASE], m->value[VV_SIDE_HEAD]);
    add_part(t, timed, m->value[VV_SIDE_BASE], m->value[VV_SIDE_HEAD]);
    vv_cli_cell_number(t, VV_PAINT_NONE, known[VV_SIDE_BASE] && m->known[VV_SIDE_BASE], !kind->of_errors,
                       m->value[VV_SIDE_BASE]);
    vv_cli_cell_number(t, VV_PAINT_NONE, known[VV_SIDE_HEAD] && m->known[VV_SIDE_HEAD], !kind->of_errors,
                       m->value[VV_SIDE_HEAD]);
    for (size_t i = 0; i < VV_ARRAY_LEN(kind->numbers); i++) {
        const vv_comparison_number *k = &r->numbers[kind->numbers[i]];
        vv_cli_cell_change(t, both && k->known[VV_SIDE_BASE] && k->known[VV_SIDE_HEAD], false,
                           k->value[VV_SIDE_BASE], k->value[VV_SIDE_HEAD]);
    }
    add_state(t, vv_scope_state(s, r->on));
    add_path(t, x, r);
}

static void print_paths_foot(const vv_compared *x, const paths_table *kind, bool pages)
{
    static const vv_side sides[] = {VV_SIDE_BASE, VV_SIDE_HEAD};
    const vv_scope *s = &x->c->scope;
    for (size_t i = 0; i < VV_ARRAY_LEN(sides); i++) {
        char a[VV_CELL], b[VV_CELL], line[4 * VV_CELL];
        const vv_totals *t = &s->totals[sides[i]];
        snprintf(line, sizeof line, "%s %s, %s %s", vv_cli_count(a, x->list->counted(x->state, sides[i])),
                 kind->counted, vv_cli_count(b, kind->of_errors ? t->errors : t->calls), kind->of);
        print_side(s, sides[i], line);
    }
    print_unknown(s);
    if (pages)
        vv_cli_print_next(x->page->next);
    else if (x->page->more)
        printf("more follow; --limit shows up to 1000\n");
}

/* cls of the show: which table, whether the verb takes a cursor, and the verdict to tell. */
typedef struct {
    const paths_table *kind;
    bool pages;
    vv_verdict verdict;
} shown;

static vv_code print_paths(void *cls, const vv_query *q, const vv_compared *x, vv_error *err)
{
    (void)q;
    (void)err;
    shown *show = cls;
    const paths_table *kind = show->kind;
    enum { COLUMNS = 10 };
    vv_cli_column columns[COLUMNS] = {{kind->title, true}, {"%", true}, {"BASE", true}, {"HEAD", true},
                                      {kind->titles[0], true}, {kind->titles[1], true}, {"", false}, {"KIND", false}};
    columns[COLUMNS - 2 - !kind->of_errors] = (vv_cli_column){kind->function, false};
    columns[COLUMNS - 1 - !kind->of_errors] = (vv_cli_column){"CALLED BY", false};
    vv_cli_table *t = vv_cli_table_new(columns, COLUMNS - !kind->of_errors);
    for (size_t i = 0; i < x->page->count; i++) {
        vv_comparison_row r;
        x->list->row(x->state, x->page->items[i].row, &r);
        add_path_row(t, x, kind, &r);
    }
    vv_cli_table_print(t);
    print_paths_foot(x, kind, show->pages);
    vv_cli_table_free(t);
    show->verdict = x->c->scope.evidence.verdict;
    return VV_OK;
}

static vv_code compare(vv_query *q, vv_compare *how, const paths_table *kind, vv_verdict *ret_verdict, vv_error *err)
{
    shown s = {.kind = kind, .pages = !ret_verdict};
    vv_code rc = how(q, print_paths, &s, err);
    if (rc == VV_OK && ret_verdict)
        *ret_verdict = s.verdict;
    return rc;
}

vv_code vv_cli_compare_spans(vv_query *q, vv_verdict *ret_verdict, vv_error *err)
{
    return compare(q, vv_compare_spans, &tables[0], ret_verdict, err);
}

vv_code vv_cli_compare_errors(vv_query *q, vv_verdict *ret_verdict, vv_error *err)
{
    return compare(q, vv_compare_errors, &tables[1], ret_verdict, err);
}
