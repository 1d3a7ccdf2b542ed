#include "config.h"

#include "cli/view.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/store_path.h"
#include "base/text.h"

#define MEMORY ((size_t)4 << 30)
#define ROWS_DEFAULT "20"

bool vv_cli_is_id(const char *s)
{
    size_t hex = strspn(s, "0123456789abcdef");
    if (strncmp(s, "baml_thread_", 12) == 0 || (hex == 8 && s[8] == '.' && isdigit((unsigned char)s[9])))
        return true;
    return strncmp(s, "latest", 6) == 0 && (s[6] == 0 || s[6] == '~');
}

/* What to do where there is no store. */
static const char *next_of_no_store(const char *arg)
{
    return arg && vv_cli_is_id(arg) ? "`varve show ID` shows an execution; name a store here, or none"
                                    : "record a program first, or name a store with --store";
}

int vv_cli_open_library(const vv_cli *c, const char *arg, vv_library **ret, const vv_look **ret_look)
{
    if (c->store && arg)
        return vv_cli_usage(c, "the store is given twice, as --store and as an argument");
    char path[PATH_MAX] = "store";
    vv_store_origin origin;
    vv_error err = {0};
    vv_library *l;
    const char *name = c->store ? c->store : arg;
    vv_code rc = vv_store_path_of(path, sizeof path, name, &origin, &err);
    if (rc == VV_OK)
        rc = vv_library_open(&l, name, MEMORY, 0, &err);
    if (rc != VV_OK)
        return vv_cli_fail_error(&err, path, NULL);
    const vv_index_options index = {.path = vv_cli_value(c, "index"), .say = vv_cli_say};
    if (index.path)
        rc = vv_library_use_index(l, &index, &err);
    if (rc == VV_OK)
        rc = vv_library_look(l, ret_look, &err);
    if (rc != VV_OK) {
        vv_library_close(l);
        const char *next = rc == VV_ERR_NOTFOUND ? next_of_no_store(arg) : NULL;
        int status = vv_cli_fail_error(&err, path, next);
        return status == VV_EXIT_USAGE ? VV_EXIT_STORE : status;
    }
    *ret = l;
    return -1;
}

void vv_cli_close_library(vv_library *l, const vv_look *look)
{
    vv_look_release(l, look);
    vv_library_close(l);
}

/* The id was mistyped, or is the name of something else. */
static int fail_id(const vv_cli *c, const char *typed, const vv_error *err)
{
    const char *next = access(typed, F_OK) == 0 ? "; name a store with --store" : "";
    return vv_cli_usage(c, "\"%.200s\" %s%s", typed, err->msg, next);
}

static bool is_option(const vv_cli *c, const char *name)
{
    for (size_t i = 0; i < c->verb->option_count; i++)
        if (strcmp(c->verb->options[i].name, name) == 0)
            return true;
    return false;
}

/* As it was typed: the option of its name, or else the argument that the parameter is. */
static void name_parameter(const vv_cli *c, const vv_query *q, char *out, size_t cap)
{
    char option[64];
    snprintf(option, sizeof option, "%s", q->parameter);
    for (char *p = option; *p; p++)
        if (*p == '_')
            *p = '-';
    if (is_option(c, option)) {
        snprintf(out, cap, "--%s", option);
        return;
    }
    const vv_str *value = vv_query_value(q, q->parameter);
    if (!value)
        value = strcmp(q->parameter, "plane") == 0 ? &q->sub : &q->id;
    snprintf(out, cap, "\"%.*s\"", (int)(value->n < 200 ? value->n : 200), value->n ? value->p : "");
}

/* Where to look for what was not found. */
static const char *next_step(const char *parameter)
{
    static const struct {
        const char *parameter, *next;
    } steps[] = {
        {"function", "; `varve search TEXT` finds functions"},
        {"thread", "; `varve threads ID` lists them"},
        {"call", "; `varve spans ID` lists those that were"},
        {"error", "; `varve errors ID` lists those that were"},
        {"key", "; `varve flame --json --ids 1` names those of an execution"},
        {"context", "; `varve flame --json --ids 1` names those of an execution"},
        {"root", "; `varve flame --json --ids 1` names those of an execution"},
        {"euid", "; `varve streams` lists them"},
        {"cid", "; `varve value CID --uses` tells where it was captured"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(steps); i++)
        if (strcmp(parameter, steps[i].parameter) == 0)
            return steps[i].next;
    return "";
}

int vv_cli_fail_view(const vv_cli *c, const vv_query *q, const vv_error *err)
{
    bool id = q->parameter && (strcmp(q->parameter, "id") == 0 || strcmp(q->parameter, "execution") == 0
                               || strcmp(q->parameter, "base") == 0);
    bool key = q->parameter && strcmp(q->parameter, "key") == 0;
    char typed[256], name[256] = "";
    snprintf(typed, sizeof typed, "%.*s", (int)(q->named.n < 200 ? q->named.n : 200), q->named.n ? q->named.p : "");
    if (err->code == VV_ERR_NOTFOUND && id)
        return vv_cli_fail(VV_EXIT_STORE, "\"%s\": %s; `varve ls` lists the executions of a store", typed, err->msg);
    if (q->parameter)
        name_parameter(c, q, name, sizeof name);
    if (err->code == VV_ERR_AMBIGUOUS && q->match_count == 0)
        return vv_cli_usage(c, "%s: %s", name, err->msg);
    if (err->code == VV_ERR_AMBIGUOUS) {
        char text[VV_THREAD_TEXT];
        vv_thread_text(text, &q->matches[0]);
        return vv_cli_fail(VV_EXIT_USAGE, "%s; use %sa full id, such as %s", err->msg,
                           is_option(c, "execution") ? "--execution with " : "", text);
    }
    if (err->code == VV_ERR_ARG && (id || key))
        return fail_id(c, key ? c->args[0] : typed, err);
    if (err->code == VV_ERR_ARG && q->parameter)
        return vv_cli_usage(c, "%s %s", name, err->msg);
    if (err->code == VV_ERR_NOTFOUND && q->parameter)
        return vv_cli_fail(VV_EXIT_STORE, "%s: %s%s", name, err->msg, next_step(q->parameter));
    return vv_cli_fail_error(err, "store", NULL);
}

int vv_cli_print_answer(const vv_cli *c, vv_view *view, vv_query *q)
{
    vv_answer a;
    vv_str piece;
    vv_error err = {0};
    int status = VV_EXIT_OK;
    vv_answer_init(&a);
    if (view(&a, q, &err) != VV_OK)
        status = vv_cli_fail_view(c, q, &err);
    while (status == VV_EXIT_OK && vv_answer_next(&a, &piece))
        if (vv_write_all(STDOUT_FILENO, piece.p, piece.n, &err) != VV_OK)
            status = vv_cli_fail_error(&err, "standard output", "the answer is cut short");
    if (status == VV_EXIT_OK && a.failed)
        status = vv_cli_fail(VV_EXIT_LIMIT, "no memory for the answer; it is cut short");
    vv_answer_done(&a);
    return status;
}

void vv_cli_param(vv_cli_params *p, const char *name, const char *value)
{
    if (value && p->count < VV_ARRAY_LEN(p->items))
        p->items[p->count++] = (vv_param){vv_cstr(name), vv_cstr(value)};
}

void vv_cli_repeated_param(vv_cli_params *p, const vv_cli *c, const char *option)
{
    for (unsigned i = 0; i < c->given_count; i++)
        if (strcmp(c->given[i].option->name, option) == 0)
            vv_cli_param(p, option, c->given[i].value);
}

void vv_cli_page_params(vv_cli_params *p, const vv_cli *c)
{
    const char *limit = vv_cli_value(c, "limit");
    vv_cli_param(p, "limit", limit || c->json ? limit : ROWS_DEFAULT);
    vv_cli_param(p, "cursor", vv_cli_value(c, "cursor"));
}

bool vv_cli_has_page(const vv_cli *c)
{
    return vv_cli_has(c, "limit") || vv_cli_has(c, "cursor");
}

vv_str vv_cli_execution(const vv_cli *c)
{
    return vv_cstr(c->arg_count ? c->args[0] : "latest");
}

int vv_cli_answer(const vv_cli *c, const vv_cli_request *r)
{
    vv_library *l;
    const vv_look *look;
    int status = vv_cli_open_library(c, r->store, &l, &look);
    if (status >= 0)
        return status;
    vv_query q = {.library = l, .look = look, .params = r->params.items, .param_count = r->params.count,
                  .id = r->id, .sub = r->sub};
    status = c->json && r->view ? vv_cli_print_answer(c, r->view, &q) : r->show(c, &q);
    vv_cli_close_library(l, look);
    return status;
}

vv_paint vv_cli_status_paint(unsigned status)
{
    switch (status) {
    case VV_EXEC_SUCCEEDED:
        return VV_PAINT_GOOD;
    case VV_EXEC_RUNNING:
        return VV_PAINT_LIVE;
    case VV_EXEC_CANCELLED:
        return VV_PAINT_WARN;
    default:
        return VV_PAINT_BAD;
    }
}

vv_paint vv_cli_verdict_paint(vv_verdict v)
{
    switch (v) {
    case VV_VERDICT_COMPLETE:
        return VV_PAINT_NONE;
    case VV_VERDICT_RUNNING:
        return VV_PAINT_LIVE;
    case VV_VERDICT_PARTIAL:
        return VV_PAINT_WARN;
    case VV_VERDICT_DAMAGED:
        return VV_PAINT_BAD;
    }
    return VV_PAINT_NONE;
}

static bool colours(void)
{
    const char *no = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no && *no);
}

static const char *paint_code(vv_paint p)
{
    static const char *const codes[] = {"", "\033[32m", "\033[31m", "\033[33m", "\033[36m", "\033[2m", "\033[1m"};
    return colours() ? codes[p] : "";
}

void vv_cli_print_painted(vv_paint paint, const char *text)
{
    const char *code = paint_code(paint);
    printf("%s%s%s", code, text, *code ? "\033[0m" : "");
}

void vv_cli_print_evidence(vv_verdict v)
{
    printf("evidence ");
    vv_cli_print_painted(vv_cli_verdict_paint(v), vv_verdict_name(v));
    printf("\n");
}

void vv_cli_print_next(const char *cursor)
{
    if (*cursor)
        printf("more follow: up to 1000 at a time with --limit, the next ones with\n--cursor %s\n", cursor);
}

const char *vv_cli_line(char out[VV_CLI_LINE], vv_str s)
{
    size_t n = vv_utf8_cut(s, VV_CLI_LINE - 4);
    if (n)
        memcpy(out, s.p, n);
    vv_text_tame(out, n);
    strcpy(out + n, n < s.n ? "\xe2\x80\xa6" : "");
    return out;
}

typedef struct {
    char *text;
    size_t width; /* in characters */
    vv_paint paint;
} cell;

struct vv_cli_table {
    const vv_cli_column *columns;
    size_t column_count;
    cell *cells;
    size_t count, cap;
};

vv_cli_table *vv_cli_table_new(const vv_cli_column *columns, size_t count)
{
    vv_cli_table *t = calloc(1, sizeof *t);
    if (t)
        *t = (vv_cli_table){.columns = columns, .column_count = count};
    return t;
}

static size_t characters(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += (*s & 0xc0) != 0x80;
    return n;
}

void vv_cli_cell_text(vv_cli_table *t, vv_paint paint, vv_str text, size_t max)
{
    if (!t || !vv_grow(&t->cells, &t->cap, t->count, sizeof *t->cells))
        return;
    size_t n = 0, seen = 0;
    while (n < text.n && (seen < max || ((uint8_t)text.p[n] & 0xc0) == 0x80))
        seen += ((uint8_t)text.p[n++] & 0xc0) != 0x80;
    bool cut = n < text.n;
    char *copy = malloc(n + 4);
    if (!copy)
        return;
    memcpy(copy, text.p, n);
    vv_text_tame(copy, n);
    strcpy(copy + n, cut ? "\xe2\x80\xa6" : "");
    t->cells[t->count++] = (cell){copy, characters(copy), paint};
}

void vv_cli_cell(vv_cli_table *t, vv_paint paint, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    vv_cli_cell_text(t, paint, vv_cstr(text), sizeof text);
}

static void print_row(const vv_cli_table *t, const size_t *widths, size_t from, bool title)
{
    for (size_t c = 0; c < t->column_count; c++) {
        const char *text = title ? t->columns[c].title : t->cells[from + c].text;
        size_t width = title ? strlen(text) : t->cells[from + c].width;
        int pad = (int)(widths[c] - width);
        bool last = c + 1 == t->column_count;
        if (c)
            printf("  ");
        if (t->columns[c].right)
            printf("%*s", pad, "");
        vv_cli_print_painted(title ? VV_PAINT_DIM : t->cells[from + c].paint, text);
        if (!t->columns[c].right && !last)
            printf("%*s", pad, "");
    }
    printf("\n");
}

void vv_cli_table_print(const vv_cli_table *t)
{
    enum { COLUMNS_MAX = 16 };
    size_t widths[COLUMNS_MAX] = {0};
    if (!t || t->count < t->column_count || t->column_count > COLUMNS_MAX)
        return;
    for (size_t c = 0; c < t->column_count; c++)
        widths[c] = strlen(t->columns[c].title);
    for (size_t i = 0; i < t->count; i++)
        if (t->cells[i].width > widths[i % t->column_count])
            widths[i % t->column_count] = t->cells[i].width;
    print_row(t, widths, 0, true);
    for (size_t i = 0; i + t->column_count <= t->count; i += t->column_count)
        print_row(t, widths, i, false);
}

void vv_cli_table_free(vv_cli_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i].text);
    free(t->cells);
    free(t);
}

const char *vv_cli_duration(char out[VV_CELL], vv_u128 ns)
{
    static const struct {
        double ns;
        const char *unit;
    } units[] = {{3600e9, "h"}, {60e9, "min"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "\xc2\xb5s"}};
    for (size_t i = 0; i < VV_ARRAY_LEN(units); i++)
        if ((double)ns >= units[i].ns) {
            double v = (double)ns / units[i].ns;
            snprintf(out, VV_CELL, "%.*f %s", v < 10 ? 3 : v < 100 ? 2 : 1, v, units[i].unit);
            return out;
        }
    snprintf(out, VV_CELL, "%u ns", (unsigned)ns);
    return out;
}

const char *vv_cli_count(char out[VV_CELL], vv_u128 v)
{
    char digits[40];
    size_t n = vv_u128_text(digits, v), at = 0;
    for (size_t i = 0; i < n && at + 2 < VV_CELL; i++) {
        if (i && (n - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

const char *vv_cli_time(char out[VV_CELL], uint64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000u);
    struct tm tm;
    localtime_r(&seconds, &tm);
    strftime(out, VV_CELL, "%Y-%m-%d %H:%M:%S", &tm);
    return out;
}
