#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "format/value.h"
#include "views/facts.h"
#include "views/values.h"

enum { PIECE = 64 * 1024, INDENT = 2 };

static int fail_query(const vv_cli *c, const vv_query *q, const vv_error *err)
{
    bool cid = q->parameter && strcmp(q->parameter, "cid") == 0;
    bool path = q->parameter && strcmp(q->parameter, "path") == 0;
    if (err->code == VV_ERR_ARG && cid)
        return vv_cli_usage(c, "\"%.100s\" is no name of a value: it %s", c->args[0], err->msg);
    if (err->code == VV_ERR_NOTFOUND && path)
        return vv_cli_fail(VV_EXIT_STORE, "--path %s; a shorter path shows what is there", err->msg);
    return vv_cli_fail_view(c, q, err);
}

/* The message and exit status of a value that can't be shown; VV_EXIT_OK where it can. */
static int fail_state(const vv_value_status *s)
{
    static const struct {
        const char *word, *message;
        int status;
    } states[] = {
        {"damaged", "the value's object is damaged", VV_EXIT_STORE},
        {"unreadable", "the value's object can't be read", VV_EXIT_STORE},
        {"other_codec", "this object is no captured value, but a table of functions or the like", VV_EXIT_STORE},
        {"malformed", "the value's body can't be decoded; --raw gives it as it is", VV_EXIT_STORE},
        {"too_large", "the value is larger than what is looked into", VV_EXIT_LIMIT},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(states); i++)
        if (strcmp(s->word, states[i].word) == 0)
            return vv_cli_fail(states[i].status, "%s%s%s%s", states[i].message, s->fault ? " (" : "",
                               s->fault ? s->fault : "", s->fault ? ")" : "");
    return VV_EXIT_OK;
}

/* The body as it is stored. */
static int print_raw(const vv_cli *c, vv_query *q)
{
    VV_CLEANUP(vv_object_close) vv_object o = {.file = {.fd = -1}};
    static uint8_t piece[PIECE];
    vv_error err = {0};
    if (isatty(STDOUT_FILENO))
        return vv_cli_usage(c, "--raw does not write to a terminal; redirect it to a file");
    vv_code rc = vv_query_object(q, &o, &err);
    if (rc == VV_OK && o.state == VV_OBJECT_GOOD)
        rc = vv_object_verify(&o, NULL, NULL, &err);
    if (rc != VV_OK)
        return fail_query(c, q, &err);
    vv_value_status status = vv_value_status_of(&o);
    if (o.state != VV_OBJECT_GOOD)
        return fail_state(&status);
    for (uint64_t at = 0; at < o.body_len;) {
        size_t n = o.body_len - at < PIECE ? (size_t)(o.body_len - at) : PIECE;
        if (vv_object_read(&o, at, piece, n, &err) != VV_OK)
            return vv_cli_fail_error(&err, "store", "the body is cut short");
        if (vv_write_all(STDOUT_FILENO, piece, n, &err) != VV_OK)
            return vv_cli_fail_error(&err, "standard output", "the body is cut short");
        at += n;
    }
    return VV_EXIT_OK;
}

static void new_line(unsigned depth)
{
    printf("\n%*s", (int)(depth * INDENT), "");
}

/* One character of a JSON text inside of a string; those that JSON need not escape are shown as they are. */
static size_t print_quoted(const char *p, const char *end)
{
    static const char *const plain[] = {"\\u003c", "\\u003e", "\\u0026"};
    for (size_t i = 0; i < VV_ARRAY_LEN(plain); i++)
        if ((size_t)(end - p) >= 6 && memcmp(p, plain[i], 6) == 0) {
            putchar("<>&"[i]);
            return 6;
        }
    size_t n = *p == '\\' && end - p > 1 ? 2 : 1;
    fwrite(p, 1, n, stdout);
    return n;
}

/* Indents JSON as vv_json writes it: no spaces outside of strings. */
static void print_indented(const char *p, const char *end)
{
    unsigned depth = 0;
    for (bool quoted = false; p < end;) {
        char c = *p;
        if (c == '"')
            quoted = !quoted;
        if (quoted && c != '"') {
            p += print_quoted(p, end);
            continue;
        }
        bool opens = c == '[' || c == '{', closes = c == ']' || c == '}';
        if (closes)
            new_line(--depth);
        putchar(c);
        p++;
        if (opens && p < end && (*p == ']' || *p == '}')) {
            putchar(*p++);
        } else if (opens) {
            new_line(++depth);
        } else if (c == ',') {
            new_line(depth);
        } else if (c == ':') {
            putchar(' ');
        }
    }
    putchar('\n');
}

static void print_head(const vv_value_loaded *v)
{
    char cid[VV_CID_TEXT], items[VV_CELL] = "", bytes[VV_CELL], line[VV_CID_TEXT + 3 * VV_CELL];
    vv_cid_text(cid, &v->object.cid);
    if (v->place.has_items)
        snprintf(items, sizeof items, ", %" PRIu64 " %s", v->place.items, v->place.items == 1 ? "item" : "items");
    snprintf(line, sizeof line, "%s: %s%s, %s bytes\n", cid, vv_value_kind_word(v->place.kind), items,
             vv_cli_count(bytes, v->place.body_len));
    vv_cli_print_painted(VV_PAINT_DIM, line);
}

/* The value at the place as JSON into w. Returns the exit status. */
static int render(const vv_value_loaded *v, const vv_value_bounds *b, vv_wr *w, bool *ret_cut)
{
    const vv_value_limits limits = {(unsigned)b->depth, (size_t)b->bytes};
    vv_json j = vv_json_init(w);
    vv_error err = {0};
    vv_code rc = vv_value_show(&j, v->place.body, v->place.body_len, &limits, ret_cut, &err);
    if (rc == VV_ERR_CORRUPT)
        return fail_state(&(vv_value_status){"malformed", err.name});
    return rc == VV_OK ? VV_EXIT_OK : vv_cli_fail_error(&err, "value", NULL);
}

static void print_value(const vv_value_loaded *v, vv_wr *w, bool cut)
{
    vv_text_tame((char *)w->buf, w->len);
    print_head(v);
    print_indented((const char *)w->buf, (const char *)w->buf + w->len);
    if (cut)
        printf("cut where it says $cut; --path leads deeper, --max-bytes and --max-depth show more, --raw all\n");
}

/* What HTTP answers, and the status of a value that can't be shown. */
static int print_json(const vv_query *q, vv_value_loaded *v, const vv_value_bounds *b, vv_wr *w)
{
    vv_json j = vv_json_init(w);
    vv_error err = {0};
    if (vv_value_json(&j, q, v, b, &err) != VV_OK)
        return vv_cli_fail_error(&err, "value", NULL);
    if (vv_write_all(STDOUT_FILENO, w->buf, w->len, &err) != VV_OK)
        return vv_cli_fail_error(&err, "standard output", "the answer is cut short");
    return fail_state(&v->status);
}

static int show(const vv_cli *c, vv_query *q)
{
    vv_error err = {0};
    vv_value_bounds bounds;
    vv_value_loaded v;
    bool cut = false;
    vv_code rc = vv_query_bounds(q, &bounds, &err);
    if (rc == VV_OK)
        rc = vv_value_load(q, &v, &err);
    if (rc != VV_OK)
        return fail_query(c, q, &err);
    vv_wr w = vv_wr_growing(8 * (size_t)VV_VALUE_BYTES_MAX + (1 << 20));
    int status;
    if (c->json) {
        status = print_json(q, &v, &bounds, &w);
    } else {
        status = fail_state(&v.status);
        if (status == VV_EXIT_OK)
            status = render(&v, &bounds, &w, &cut);
        if (status == VV_EXIT_OK)
            print_value(&v, &w, cut);
    }
    vv_wr_done(&w);
    vv_value_loaded_done(&v);
    return status;
}

typedef struct {
    vv_cli_table *table;
    size_t count;
} use_table;

static void add_use(void *state, const vv_found *f, const vv_profile *p, const vv_value_use *u)
{
    use_table *t = state;
    char text[VV_SHORT_ID + VV_PART_ID], scratch[VV_FUNCTION_SCRATCH];
    const vv_thread_ref *root = &f->execution->root;
    t->count++;
    vv_short_id(text, root);
    vv_cli_cell(t->table, VV_PAINT_NONE, "%s", text);
    vv_cli_cell(t->table, VV_PAINT_NONE, "%s", u->role);
    text[0] = 0;
    if (u->capture)
        vv_capture_short(text, root, u->capture);
    else if (u->call)
        vv_call_short(text, root, u->call);
    vv_cli_cell(t->table, VV_PAINT_NONE, "%s", text[0] ? text : "-");
    if (u->has_function)
        vv_cli_cell_text(t->table, VV_PAINT_BOLD, vv_function_label(p, u->function, scratch), 80);
    else
        vv_cli_cell(t->table, VV_PAINT_NONE, "-");
}

static int print_uses(const vv_cli *c, vv_query *q)
{
    static const vv_cli_column columns[] = {{"EXECUTION", false}, {"ROLE", false}, {"CALL", false},
                                            {"FUNCTION", false}};
    use_table t = {.table = vv_cli_table_new(columns, VV_ARRAY_LEN(columns))};
    vv_evidence evidence = {0};
    char next[VV_CURSOR_TEXT];
    vv_error err = {0};
    if (!t.table)
        return vv_cli_fail(VV_EXIT_STORE, "no memory for a table");
    int status = VV_EXIT_OK;
    if (vv_value_uses(q, add_use, &t, &evidence, next, &err) != VV_OK) {
        status = fail_query(c, q, &err);
    } else {
        vv_cli_table_print(t.table);
        printf("%zu %s of this value in %" PRIu64 " searched %s; ", t.count, t.count == 1 ? "use" : "uses",
               evidence.executions, evidence.executions == 1 ? "execution" : "executions");
        vv_cli_print_evidence(evidence.verdict);
        vv_cli_print_next(next);
    }
    vv_cli_table_free(t.table);
    vv_evidence_done(&evidence);
    return status;
}

/* Options that go together; -1 where they do. */
static int check_options(const vv_cli *c)
{
    static const char *const decoding[] = {"path", "max-bytes", "max-depth"};
    uint64_t number;
    bool raw = vv_cli_has(c, "raw"), uses = vv_cli_has(c, "uses"), decodes = false;
    for (size_t i = 0; i < VV_ARRAY_LEN(decoding); i++)
        decodes |= vv_cli_has(c, decoding[i]);
    if (raw && (uses || decodes || c->json))
        return vv_cli_usage(c, "--raw gives the whole body as it is stored: no other option goes with it");
    if (uses && decodes)
        return vv_cli_usage(c, "--uses tells where the whole value was captured; of its content it shows nothing");
    if (vv_cli_has_page(c) && !uses)
        return vv_cli_usage(c, "--limit and --cursor go with --uses");
    bool good = vv_cli_number(c, "max-bytes", 0, VV_VALUE_BYTES_MAX, &number)
        && vv_cli_number(c, "max-depth", 0, VV_VALUE_LEVELS_MAX, &number)
        && vv_cli_number(c, "limit", 1, VV_VALUE_USES_MAX, &number);
    return good ? -1 : VV_EXIT_USAGE;
}

static int answer(const vv_cli *c, vv_query *q)
{
    if (vv_cli_has(c, "raw"))
        return print_raw(c, q);
    if (!vv_cli_has(c, "uses"))
        return show(c, q);
    if (!c->json)
        return print_uses(c, q);
    /* Before any byte is printed: a name that is none has this verb's message. */
    vv_error err = {0};
    vv_cid cid;
    if (vv_query_cid(q, &cid, &err) != VV_OK)
        return fail_query(c, q, &err);
    return vv_cli_print_answer(c, vv_answer_value_uses, q);
}

static int run(const vv_cli *c)
{
    int wrong = check_options(c);
    if (wrong >= 0)
        return wrong;
    vv_cli_request r = {.id = vv_cstr(c->args[0]), .show = answer};
    vv_cli_param(&r.params, "path", vv_cli_value(c, "path"));
    vv_cli_param(&r.params, "max_bytes", vv_cli_value(c, "max-bytes"));
    vv_cli_param(&r.params, "max_depth", vv_cli_value(c, "max-depth"));
    vv_cli_param(&r.params, "limit", vv_cli_value(c, "limit"));
    vv_cli_param(&r.params, "cursor", vv_cli_value(c, "cursor"));
    return vv_cli_answer(c, &r);
}

static const vv_cli_option options[] = {
    {"path", "PATH", "show what is there: $.items[0][\"a key\"]", false},
    {"max-bytes", "N", "of JSON, about (65536; at most 4194304)", false},
    {"max-depth", "N", "levels of containers (32; at most 64)", false},
    {"raw", NULL, "write the body as it is stored", false},
    {"uses", NULL, "list where it was captured, in all executions", false},
    {"limit", "N", "uses at most (100; at most 1000); also -n", false},
    {"cursor", "CURSOR", "go on after a former page of uses", false},
    VV_CLI_INDEX_OPTION,
};
static const char *const examples[] = {"varve value bamlv_1_2d11...", "varve value bamlv_1_2d11... --path '$.items[0]'",
                                       "varve value bamlv_1_2d11... --raw >body",
                                       "varve value bamlv_1_2d11... --uses", NULL};

const vv_cli_verb vv_verb_value = {
    .name = "value",
    .args = "CID",
    .purpose = "shows a captured value",
    .details = "CID is a value's name as other verbs show it (bamlv_1_ and 64 digits), or the digits alone.\n",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
