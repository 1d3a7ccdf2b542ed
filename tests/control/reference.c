/*
 * Prints the reference of the contract as Markdown, from the tables. docs/host-contract-reference.md is what it prints;
 * `make contract-reference` writes it anew, and a test compares.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "control/contract.h"

static const char *const item_names[2][VV_ITEMS] = {
    {"throws", "safepoint", "mode", "locks", "host's locks", "allocation"},
    {"throws", "safepoint", "mode", "locks", "thread", "allocation"},
};

/* Parameters without the first, which is always the same. */
static const char *rest_of(const char *params)
{
    const char *comma = strchr(params, ',');
    return comma ? comma + 2 : "";
}

static int length_of_rest(const char *params)
{
    size_t n = strlen(rest_of(params));
    return (int)(n && rest_of(params)[n - 1] == ')' ? n - 1 : n);
}

static void print_items(const vv_item *items, unsigned kind)
{
    printf("Contract: ");
    for (unsigned i = 0; i < VV_ITEMS; i++)
        printf("%s%s%s%s", i ? ", " : "", items[i].reason ? "**" : "", items[i].word, items[i].reason ? "**" : "");
    printf("\n");
    for (unsigned i = 0; i < VV_ITEMS; i++)
        if (items[i].reason)
            printf("- %s, %s: %s\n", item_names[kind][i], items[i].word, items[i].reason);
    printf("\n");
}

static void print_event(const vv_event_row *e)
{
    printf("### %s\n\n`%s(%.*s)`\n\n%s\n\n", e->name, e->name, length_of_rest(e->params), rest_of(e->params), e->text);
    if (e->bit)
        printf("Bit: `VARVE_ON_%s` = 0x%llx.", e->name, (unsigned long long)e->bit);
    else
        printf("The library calls it; no bit.");
    printf("%s%s%s%s\n\n", e->flags & VARVE_AFTER_ATTACH ? "" : " Not after attach.",
           e->flags & VARVE_WHILE_INIT ? " While initializing." : "",
           e->flags & VARVE_WHILE_DETACHING ? " While detaching." : "",
           e->flags & VARVE_FOR_THREAD ? " About the thread that is its first argument, wherever it is told." : "");
    print_items(e->items, 0);
}

static void print_info(const vv_info_row *i)
{
    static const char *const classes[] = {"SYNC", "ASYNC", "INIT_ONLY"};
    printf("### %s\n\n`%s(self%s%.*s)`\n\n%s\n\n", i->name, i->name, *rest_of(i->params) ? ", " : "",
           length_of_rest(i->params), rest_of(i->params), i->text);
    printf("%s.", classes[i->cls]);
    if (strcmp(i->triggers, "false") == 0)
        printf(" Triggers nothing.");
    else if (strcmp(i->triggers, "true") == 0)
        printf(" Triggers: only from a callback that allows a safepoint.");
    else
        printf(" Triggers if `%s`: only from a callback that allows a safepoint then.", i->triggers);
    printf("%s%s\n\n", i->flags & VARVE_AFTER_ATTACH ? "" : " Not after attach.",
           i->flags & VARVE_SIMPLE ? " So simple that no-suspend regions do not matter to it." : "");
    print_items(i->items, 1);
}

int main(void)
{
    printf("# Host contract: reference\n\n"
           "Made from the tables in control/varve-profiler.h by `make contract-reference`. docs/host-contract.md has "
           "the rules.\nIn bold: what is not the preferred value, with its reason.\n\n"
           "## Events\n\n| event | bit | parameters |\n|---|---|---|\n");
    for (unsigned e = 0; e < VV_EVENTS; e++) {
        const vv_event_row *row = &vv_event_rows[e];
        int n = length_of_rest(row->params);
        printf("| [%s](#%s) | 0x%llx | ", row->name, row->name, (unsigned long long)row->bit);
        printf(n ? "`%.*s` |\n" : "|\n", n, rest_of(row->params));
    }
    printf("\n");
    for (unsigned e = 0; e < VV_EVENTS; e++)
        print_event(&vv_event_rows[e]);
    printf("## Info functions\n\n");
    for (unsigned i = 0; i < VV_INFOS; i++)
        print_info(&vv_info_rows[i]);
    return 0;
}
