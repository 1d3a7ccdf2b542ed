/* What the verbs that show views share: the store as a library, an answer printed as JSON, cells of tables. */
#pragma once

#include "cli/cli.h"
#include "views/answer.h"
#include "views/executions.h"

/* An option of the verbs that open a library; without it they use no index. */
#define VV_CLI_INDEX_OPTION {"index", "PATH", "use the index of the store there; :memory: is nowhere", false}

/* What only an execution's id looks like: a path of that name is given as "./latest". */
bool vv_cli_is_id(const char *s);
/*
 * Of --store or the positional argument (may be NULL). Returns -1 where the store is open and *ret_look taken, else
 * the exit status.
 */
int vv_cli_open_library(const vv_cli *c, const char *arg, vv_library **ret, const vv_look **ret_look);
void vv_cli_close_library(vv_library *l, const vv_look *look);

/* Prints the view's answer: the bytes that HTTP would send. Returns the exit status. */
int vv_cli_print_answer(const vv_cli *c, vv_view *view, vv_query *q);
/* The message of a view's error, and its exit status. */
int vv_cli_fail_view(const vv_cli *c, const vv_query *q, const vv_error *err);

/* Parameters for a query: options that were given, by the names they have in HTTP. */
typedef struct {
    vv_param items[VV_CLI_ARGS + 16];
    size_t count;
} vv_cli_params;
void vv_cli_param(vv_cli_params *p, const char *name, const char *value); /* nothing where value is NULL */
/* All that were given of an option that may be repeated, under its own name. */
void vv_cli_repeated_param(vv_cli_params *p, const vv_cli *c, const char *option);

/* The options of a list that has pages. */
#define VV_CLI_PAGE_OPTIONS                                                                                           \
    {"limit", "N", "rows at most (20; with --json 100); also -n", false},                                             \
    {"cursor", "CURSOR", "go on after a former page", false}
void vv_cli_page_params(vv_cli_params *p, const vv_cli *c);
bool vv_cli_has_page(const vv_cli *c); /* whether one of them was given */

/* What a verb asks of a store. */
typedef struct {
    const char *store; /* the positional argument that names it; NULL: none does */
    vv_str id, sub;    /* of the query */
    vv_cli_params params;
    vv_view *view;     /* what --json prints; NULL: show does that too */
    int (*show)(const vv_cli *c, vv_query *q); /* prints it for people; returns the exit status */
} vv_cli_request;

/* The execution that the first argument names; the latest where there is none. */
vv_str vv_cli_execution(const vv_cli *c);
/* Opens the store, answers, closes it. Returns the exit status. */
int vv_cli_answer(const vv_cli *c, const vv_cli_request *r);

/* Colours: empty texts unless standard output is a terminal and NO_COLOR is not set. */
typedef enum {
    VV_PAINT_NONE,
    VV_PAINT_GOOD,
    VV_PAINT_BAD,
    VV_PAINT_WARN,
    VV_PAINT_LIVE,
    VV_PAINT_DIM,
    VV_PAINT_BOLD,
} vv_paint;
vv_paint vv_cli_status_paint(unsigned status);
vv_paint vv_cli_verdict_paint(vv_verdict v);

/*
 * A table: cells are collected, then printed in columns as wide as they need be. A left-aligned last column is not
 * padded.
 */
typedef struct {
    const char *title;
    bool right;
} vv_cli_column;
typedef struct vv_cli_table vv_cli_table;
/* NULL without memory, which the others accept: such a table shows nothing. */
vv_cli_table *vv_cli_table_new(const vv_cli_column *columns, size_t count);
VV_PRINTF(3, 4) void vv_cli_cell(vv_cli_table *t, vv_paint paint, const char *fmt, ...);
/* Cut at max characters; controls become '?'. */
void vv_cli_cell_text(vv_cli_table *t, vv_paint paint, vv_str text, size_t max);
void vv_cli_table_print(const vv_cli_table *t); /* nothing where there are no rows */
void vv_cli_table_free(vv_cli_table *t);
/*
 * A line of stored text, which may hold anything and be of any length: cut, without what a terminal obeys. Returns out.
 */
enum { VV_CLI_LINE = 1028 };
const char *vv_cli_line(char out[VV_CLI_LINE], vv_str s);
void vv_cli_print_painted(vv_paint paint, const char *text);
void vv_cli_print_evidence(vv_verdict v); /* "evidence complete" and the end of the line */
void vv_cli_print_next(const char *cursor); /* how to see what follows; nothing where the cursor is empty */

/* "1.234 s", "12.3 ms", "456 ns"; at most 12 characters. */
enum { VV_CELL = 48 };
const char *vv_cli_duration(char out[VV_CELL], vv_u128 ns);
/* With separators: "1,234,567". */
const char *vv_cli_count(char out[VV_CELL], vv_u128 v);
/* Local time, "2026-11-29 23:45:29". */
const char *vv_cli_time(char out[VV_CELL], uint64_t unix_ns);
