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

static void add_row(vv_cli_table *t, const vv_scope *s, const vv_function_group *g, vv_function_sort by)
{
    static const struct {
        const char *word;
        vv_paint paint;
    } states[] = {{"?", VV_PAINT_NONE}, {"", VV_PAINT_NONE}, {"new", VV_PAINT_WARN}, {"gone", VV_PAINT_WARN}};
    const vv_function_row *base = &g->side[VV_SIDE_BASE], *head = &g->side[VV_SIDE_HEAD];
    vv_delta_state state = vv_scope_state(s, g->on);
    bool has_base = vv_scope_number_known(s, g->on, VV_SIDE_BASE);
    bool has_head = vv_scope_number_known(s, g->on, VV_SIDE_HEAD), both = has_base && has_head, time = is_time(by);
    vv_u128 from = vv_function_value(base, by), to = vv_function_value(head, by);
    vv_cli_cell_change(t, both, time, from, to);
    add_part(t, both, from, to);
    vv_cli_cell_number(t, VV_PAINT_NONE, has_base, time, from);
    vv_cli_cell_number(t, VV_PAINT_NONE, has_head, time, to);
    vv_cli_cell_change(t, both, false, base->calls, head->calls);
    vv_cli_cell_change(t, both, false, base->errors, head->errors);
    vv_cli_cell(t, states[state].paint, "%s", states[state].word);
    vv_cli_cell_function(t, &g->function);
}

static bool has_changed(const vv_scope *s, const vv_function_group *g, vv_function_sort by)
{
    const vv_function_row *base = &g->side[VV_SIDE_BASE], *head = &g->side[VV_SIDE_HEAD];
    return vv_scope_state(s, g->on) != VV_STATE_BOTH || vv_function_value(base, by) != vv_function_value(head, by)
        || base->calls != head->calls || base->errors != head->errors;
}

static void print_side(const char *name, const vv_scope *s, vv_side side)
{
    char calls[VV_CELL], self[VV_CELL];
    const vv_evidence *e = &s->sides[side];
    const vv_totals *t = &s->totals[side];
    printf("%s: ", name);
    if (s->known[side])
        printf("%s calls, self %s", vv_cli_count(calls, t->calls), vv_cli_duration(self, t->self_ns));
    else
        printf("can't be shown, its data is damaged");
    if (e->executions > 1)
        printf(", %llu executions", (unsigned long long)e->executions);
    printf("; ");
    vv_cli_print_evidence(e->verdict);
}

static void print_foot(const vv_scope *s, size_t changed, size_t rows, size_t shown)
{
    char calls[VV_CELL], self[VV_CELL];
    const vv_totals *base = &s->totals[VV_SIDE_BASE], *head = &s->totals[VV_SIDE_HEAD];
    print_side("base", s, VV_SIDE_BASE);
    print_side("head", s, VV_SIDE_HEAD);
    if (s->known[VV_SIDE_BASE] && s->known[VV_SIDE_HEAD])
        printf("change: %s calls, self %s; ", vv_cli_count_change(calls, base->calls, head->calls),
               duration_change(self, base->self_ns, head->self_ns));
    printf("%zu of %zu functions changed%s\n", changed, rows, shown < changed ? ", the first ones are shown" : "");
    if (!vv_scope_absence_known(s, VV_SIDE_BASE) || !vv_scope_absence_known(s, VV_SIDE_HEAD))
        printf("? is not known: the recording of a side is not complete, and its numbers are lower bounds\n");
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
