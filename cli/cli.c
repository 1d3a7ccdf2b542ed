#include "config.h"

#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

enum { OUT_STEP = 64 << 10, OUT_MAX = 1 << 30 };

static const vv_cli_option common[] = {
    {"help", NULL, "print this help", false},
    {"json", NULL, "print the view as JSON", false},
    {"store", "STORE", "a profiles-v1 directory, one that holds it or .baml, or an archive of a store", false},
};

VV_PRINTF(1, 0)
static void message(const char *fmt, va_list ap)
{
    char line[1024];
    vsnprintf(line, sizeof line, fmt, ap);
    vv_text_tame(line, strlen(line));
    fprintf(stderr, "varve: %s\n", line);
}

int vv_cli_fail(int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    message(fmt, ap);
    va_end(ap);
    return status;
}

void vv_cli_say(void *state, const char *line)
{
    (void)state;
    vv_cli_fail(0, "%s", line);
}

int vv_cli_usage(const vv_cli *c, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return vv_cli_fail(VV_EXIT_USAGE, "%s; see `varve %s --help`", text, c->verb->name);
}

static int status_of(vv_code code)
{
    switch (code) {
    case VV_OK:
        return VV_EXIT_OK;
    case VV_ERR_ARG:
    case VV_ERR_AMBIGUOUS:
        return VV_EXIT_USAGE;
    case VV_ERR_LIMIT:
    case VV_ERR_CANCELLED:
        return VV_EXIT_LIMIT;
    case VV_ERR_IO:
    case VV_ERR_CORRUPT:
    case VV_ERR_NOTFOUND:
    case VV_ERR_EXISTS:
    case VV_ERR_BUSY:
    case VV_ERR_NOMEM:
        return VV_EXIT_STORE;
    }
    return VV_EXIT_STORE;
}

int vv_cli_fail_error(const vv_error *err, const char *what, const char *next)
{
    /* Many errors name the place themselves: once is enough. */
    bool named = strstr(err->msg, what) != NULL;
    return vv_cli_fail(status_of(err->code), "%s%s%s%s%s", named ? "" : what, named ? "" : ": ", err->msg,
                       next ? "; " : "", next ? next : "");
}

static void option_line(const vv_cli_option *o)
{
    char left[64];
    snprintf(left, sizeof left, "--%s%s%s", o->name, o->value && *o->value != '[' ? " " : "",
             o->value ? o->value : "");
    printf("  %-22s %s%s\n", left, o->help, o->repeats ? " (repeatable)" : "");
}

static void common_line(const vv_cli_verb *verb, const vv_cli_option *o)
{
    vv_cli_option its = *o;
    if (verb->storeless && strcmp(o->name, "store") == 0)
        return;
    if (verb->json && strcmp(o->name, "json") == 0)
        its.help = verb->json;
    option_line(&its);
}

void vv_cli_help(const vv_cli_verb *verb)
{
    printf("varve %s: %s\n\nusage: varve %s [OPTION...]%s%s\n", verb->name, verb->purpose, verb->name,
           verb->args && *verb->args ? " " : "", verb->args ? verb->args : "");
    if (verb->details)
        printf("\n%s", verb->details);
    printf("\noptions:\n");
    for (size_t i = 0; i < verb->option_count; i++)
        option_line(&verb->options[i]);
    for (size_t i = 0; i < VV_ARRAY_LEN(common); i++)
        common_line(verb, &common[i]);
    printf("\nexamples:\n");
    for (const char *const *e = verb->examples; *e; e++)
        printf("  %s\n", *e);
}

static const vv_cli_option *find_option(const vv_cli_option *table, size_t count, const char *name, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(table[i].name) == n && memcmp(table[i].name, name, n) == 0)
            return &table[i];
    return NULL;
}

static int unknown_option(const vv_cli *c, const char *name, size_t n)
{
    const char *names[VV_CLI_GIVEN];
    size_t count = 0;
    for (size_t i = 0; i < c->verb->option_count && count < VV_CLI_GIVEN - VV_ARRAY_LEN(common); i++)
        names[count++] = c->verb->options[i].name;
    for (size_t i = 0; i < VV_ARRAY_LEN(common); i++)
        names[count++] = common[i].name;
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s", (int)(n < 60 ? n : 60), name);
    const char *near = vv_cli_nearest(typed, names, count);
    if (near)
        return vv_cli_usage(c, "unknown option --%s, did you mean --%s?", typed, near);
    return vv_cli_usage(c, "unknown option --%s", typed);
}

static int note_option(vv_cli *c, const vv_cli_option *o, bool is_common, const char *value)
{
    if (is_common && strcmp(o->name, "json") == 0) {
        c->json = true;
        return -1;
    }
    if (is_common && c->store)
        return vv_cli_usage(c, "--store is given twice");
    if (is_common) {
        c->store = value;
        return -1;
    }
    for (unsigned i = 0; i < c->given_count && !o->repeats; i++)
        if (c->given[i].option == o)
            return vv_cli_usage(c, "--%s is given twice", o->name);
    if (c->given_count == VV_CLI_GIVEN)
        return vv_cli_usage(c, "more than %d options", VV_CLI_GIVEN);
    c->given[c->given_count].option = o;
    c->given[c->given_count++].value = value;
    return -1;
}

/* The option `name` at argv[*at]; steps over a value that stands apart. */
static int take_option(vv_cli *c, const char *name, int argc, char **argv, int *at)
{
    const char *eq = strchr(name, '=');
    size_t n = eq ? (size_t)(eq - name) : strlen(name);
    const vv_cli_option *o = find_option(c->verb->options, c->verb->option_count, name, n);
    bool is_common = !o;
    if (is_common)
        o = find_option(common, VV_ARRAY_LEN(common), name, n);
    if (!o)
        return unknown_option(c, name, n);
    if (!o->value && eq)
        return vv_cli_usage(c, "--%s takes no value", o->name);
    const char *value = eq ? eq + 1 : NULL;
    if (o->value && *o->value != '[' && !eq) {
        if (*at + 1 >= argc)
            return vv_cli_usage(c, "--%s needs a value", o->name);
        value = argv[++*at];
    }
    if (value && !*value)
        return vv_cli_usage(c, "--%s needs a value; the one given is empty", o->name);
    return note_option(c, o, is_common, value);
}

static int take_arg(vv_cli *c, const char *arg)
{
    unsigned max = c->verb->max_args < VV_CLI_ARGS ? c->verb->max_args : VV_CLI_ARGS;
    if (c->arg_count == max)
        return vv_cli_usage(c, "unexpected argument \"%.200s\"", arg);
    c->args[c->arg_count++] = arg;
    return -1;
}

static bool asks_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

int vv_cli_parse(vv_cli *ret, const vv_cli_verb *verb, int argc, char **argv)
{
    *ret = (vv_cli){.verb = verb};
    if (asks_help(argc, argv)) {
        vv_cli_help(verb);
        return VV_EXIT_OK;
    }
    bool options_end = false;
    int status = -1;
    for (int i = 0; i < argc && status < 0; i++) {
        if (!options_end && strcmp(argv[i], "--") == 0)
            options_end = true;
        else if (!options_end && strncmp(argv[i], "--", 2) == 0)
            status = take_option(ret, argv[i] + 2, argc, argv, &i);
        else if (!options_end && strcmp(argv[i], "-n") == 0 &&
                 find_option(verb->options, verb->option_count, "limit", 5))
            status = take_option(ret, "limit", argc, argv, &i);
        else if (!options_end && argv[i][0] == '-' && argv[i][1])
            status = vv_cli_usage(ret, "unknown option %.20s", argv[i]);
        else
            status = take_arg(ret, argv[i]);
    }
    if (status < 0 && ret->arg_count < verb->min_args)
        return vv_cli_usage(ret, "%s needs %s", verb->name, verb->args);
    return status;
}

bool vv_cli_has(const vv_cli *c, const char *option)
{
    for (unsigned i = 0; i < c->given_count; i++)
        if (strcmp(c->given[i].option->name, option) == 0)
            return true;
    return false;
}

const char *vv_cli_value(const vv_cli *c, const char *option)
{
    for (unsigned i = 0; i < c->given_count; i++)
        if (strcmp(c->given[i].option->name, option) == 0)
            return c->given[i].value;
    return NULL;
}

bool vv_cli_number(const vv_cli *c, const char *option, uint64_t min, uint64_t max, uint64_t *value)
{
    const char *s = vv_cli_value(c, option);
    if (!s)
        return true;
    uint64_t v;
    if (!vv_str_u64(vv_cstr(s), &v) || v < min || v > max) {
        vv_cli_usage(c, "--%s %.60s is not a number from %llu to %llu", option, s, (unsigned long long)min,
                     (unsigned long long)max);
        return false;
    }
    *value = v;
    return true;
}

/* Edit distance with transpositions, of names below 32 characters. */
static unsigned distance(const char *a, const char *b)
{
    enum { MAX = 32 };
    unsigned d[MAX + 1][MAX + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > MAX || m > MAX)
        return MAX;
    for (size_t i = 0; i <= n; i++) {
        for (size_t k = 0; k <= m; k++) {
            if (i == 0 || k == 0) {
                d[i][k] = (unsigned)(i + k);
                continue;
            }
            unsigned best = d[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
            if (d[i - 1][k] + 1 < best)
                best = d[i - 1][k] + 1;
            if (d[i][k - 1] + 1 < best)
                best = d[i][k - 1] + 1;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && d[i - 2][k - 2] + 1 < best)
                best = d[i - 2][k - 2] + 1;
            d[i][k] = best;
        }
    }
    return d[n][m];
}

const char *vv_cli_nearest(const char *typed, const char *const *names, size_t n)
{
    const char *near = NULL;
    unsigned best = strlen(typed) < 5 ? 2 : 3; /* two letters of three wrong is another word */
    for (size_t i = 0; i < n; i++) {
        unsigned d = distance(typed, names[i]);
        if (d < best && d < strlen(names[i])) {
            best = d;
            near = names[i];
        }
    }
    return near;
}

void vv_cli_out_init(vv_cli_out *o)
{
    *o = (vv_cli_out){.w = vv_wr_growing(OUT_MAX), .fd = STDOUT_FILENO};
    o->j = vv_json_init(&o->w);
}

static void flush(vv_cli_out *o)
{
    if (o->err.code == VV_OK && vv_wr_error(&o->w, "output", &o->err) == VV_OK && o->w.len && o->fd >= 0)
        (void)!vv_write_all(o->fd, o->w.buf, o->w.len, &o->err);
    vv_wr_reset(&o->w);
}

bool vv_cli_out_step(vv_cli_out *o)
{
    if (o->w.len >= OUT_STEP || !vv_wr_ok(&o->w))
        flush(o);
    return o->err.code == VV_OK;
}

int vv_cli_out_done(vv_cli_out *o, int status)
{
    flush(o);
    vv_wr_done(&o->w);
    if (o->err.code == VV_OK)
        return status;
    vv_cli_fail_error(&o->err, "standard output", "the answer is cut short");
    return VV_EXIT_STORE;
}
