#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/facts.h"
#include "cli/verbs.h"
#include "views/segments.h"
#include "views/store_use.h"
#include "views/streams.h"

enum { ORPHANS_SHOWN = 20, RUNS_SHOWN = 10, FIELD = 10 };

static void add_stream(vv_cli_table *t, const vv_stream *s)
{
    char hex[33], text[VV_CELL];
    vv_hex(hex, s->euid.b, sizeof s->euid.b);
    vv_cli_cell(t, VV_PAINT_NONE, "%s", hex);
    vv_cli_cell(t, s->failed ? VV_PAINT_BAD : s->alive ? VV_PAINT_LIVE : VV_PAINT_NONE, "%s",
                s->failed ? "unreadable" : s->unprobed ? "?" : s->alive ? "alive" : "ended");
    if (s->has_header)
        vv_cli_cell(t, VV_PAINT_NONE, "%" PRIu32, s->header.pid);
    else
        vv_cli_cell(t, VV_PAINT_NONE, "?");
    vv_cli_cell(t, VV_PAINT_NONE, "%s", s->has_header ? vv_cli_time(text, s->header.zero_unix_ns) : "?");
    vv_cli_cell(t, VV_PAINT_NONE, "%zu", s->execution_count);
    vv_cli_cell(t, VV_PAINT_NONE, "%" PRIu64, s->meta_contiguous);
    vv_cli_cell(t, VV_PAINT_NONE, "%" PRIu64, s->data_contiguous);
    size_t gaps = s->meta_bad_count + s->data_bad_count;
    vv_cli_cell(t, gaps ? VV_PAINT_BAD : VV_PAINT_NONE, "%zu", gaps);
    vv_cli_cell_text(t, VV_PAINT_DIM, s->has_header ? s->header.version : vv_cstr("?"), 40);
}

static int print_streams(const vv_cli *c, vv_query *q)
{
    static const vv_cli_column columns[] = {{"STREAM", false}, {"STATE", false}, {"PID", true}, {"STARTED", false},
                                            {"EXECUTIONS", true}, {"META", true}, {"DATA", true}, {"GAPS", true},
                                            {"VERSION", false}};
    const vv_store *store = q->look->store;
    vv_error err = {0};
    vv_stream_page p;
    if (vv_stream_page_read(&p, q, &err) != VV_OK)
        return vv_cli_fail_view(c, q, &err);
    vv_cli_table *t = vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
    if (!t)
        return vv_cli_fail(VV_EXIT_LIMIT, "no memory for the list");
    for (size_t i = 0; i < p.count; i++)
        add_stream(t, &store->streams[p.first + i]);
    vv_cli_table_print(t);
    if (!store->stream_count)
        printf("no process has recorded into this store\n");
    vv_cli_print_next(p.next);
    vv_cli_table_free(t);
    return VV_EXIT_OK;
}

static void print_plane(const char *name, uint64_t contiguous, uint64_t highest, const vv_range *bad, size_t n)
{
    printf("%-*s whole up to %" PRIu64 ", highest %" PRIu64, FIELD, name, contiguous, highest);
    for (size_t i = 0; i < n && i < RUNS_SHOWN; i++) {
        printf("%s%" PRIu64, i ? ", " : "; missing or damaged ", bad[i].first);
        if (bad[i].last > bad[i].first)
            printf(" to %" PRIu64, bad[i].last);
    }
    printf("%s\n", n > RUNS_SHOWN ? " and more" : "");
}

static void print_engine(const vv_engine *e)
{
    char hex[33], line[VV_CLI_LINE];
    vv_hex(hex, e->program.b, sizeof e->program.b);
    printf("%-*s %" PRIu64 ", program %s", FIELD, "engine", e->id, hex);
    if (e->source.present)
        printf(", %s", vv_cli_line(line, e->source.s));
    printf("\n");
}

static int print_stream(const vv_cli *c, vv_query *q)
{
    vv_error err = {0};
    vv_euid euid;
    char text[VV_CELL], hex[33];
    const vv_stream *s = vv_unhex(euid.b, sizeof euid.b, q->id) ? vv_store_stream(q->look->store, &euid) : NULL;
    if (!s) {
        q->parameter = "euid";
        (void)vv_fail(&err, VV_ERR_NOTFOUND, "no stream of that id in this store");
        return vv_cli_fail_view(c, q, &err);
    }
    vv_hex(hex, euid.b, sizeof euid.b);
    vv_cli_text_line("stream", FIELD, vv_cstr(hex));
    vv_cli_text_line("state", FIELD,
                     vv_cstr(s->failed ? "unreadable" : s->unprobed ? "not known: nothing is committed yet"
                             : s->alive ? "alive" : "ended"));
    if (s->failed)
        vv_cli_text_line("why", FIELD, vv_cstr(s->error.name));
    if (s->has_header) {
        printf("%-*s %" PRIu32 "\n", FIELD, "process", s->header.pid);
        vv_cli_text_line("started", FIELD, vv_cstr(vv_cli_time(text, s->header.zero_unix_ns)));
        vv_cli_text_line("version", FIELD, s->header.version);
        vv_cli_text_line("system", FIELD, s->header.os_arch);
    }
    printf("%-*s %zu\n", FIELD, "executions", s->execution_count);
    print_plane("meta", s->meta_contiguous, s->meta_high, s->meta_bad, s->meta_bad_count);
    print_plane("data", s->data_contiguous, s->data_high, s->data_bad, s->data_bad_count);
    for (size_t i = 0; i < s->engine_count; i++)
        print_engine(&s->engines[i]);
    return VV_EXIT_OK;
}

static void add_segment(vv_cli_table *t, const vv_segment_row *row, const vv_segment_facts *f)
{
    char text[VV_CELL], hex[65];
    bool good = strcmp(f->state, "good") == 0;
    if (row->last > row->first)
        vv_cli_cell(t, VV_PAINT_NONE, "%" PRIu64 "-%" PRIu64, row->first, row->last);
    else
        vv_cli_cell(t, VV_PAINT_NONE, "%" PRIu64, row->first);
    vv_cli_cell(t, good ? VV_PAINT_NONE : VV_PAINT_BAD, "%s%s%s", f->state, f->error ? ": " : "",
                f->error ? f->error : "");
    vv_cli_cell(t, VV_PAINT_NONE, "%s", f->has_file ? vv_cli_count(text, f->bytes) : "-");
    vv_cli_cell(t, VV_PAINT_NONE, "%s", f->has_count ? vv_cli_count(text, f->count) : "-");
    vv_hex(hex, f->sum, sizeof f->sum);
    vv_cli_cell(t, VV_PAINT_DIM, "%s", f->has_file ? hex : "-");
}

static void print_foot(const vv_segment_rows *r)
{
    uint64_t contiguous, highest;
    vv_plane_waters(&r->found, &contiguous, &highest);
    printf("%zu %s of plane %s, which is whole up to %" PRIu64 "; highest %" PRIu64 "\n", r->page.count,
           r->page.count == 1 ? "row" : "rows", vv_plane_dir(r->found.plane), contiguous, highest);
    vv_cli_print_next(r->page.next);
}

static int print_segments(const vv_cli *c, vv_query *q)
{
    static const vv_cli_column data[] = {{"SEQUENCE", true}, {"STATE", false}, {"BYTES", true}, {"GROUPS", true},
                                         {"SHA-256", false}},
                               records[] = {{"SEQUENCE", true}, {"STATE", false}, {"BYTES", true}, {"RECORDS", true},
                                            {"SHA-256", false}};
    vv_error err = {0};
    vv_segment_rows r;
    vv_code rc = vv_segment_rows_make(&r, q, &err);
    vv_cli_table *t = vv_cli_table_new(rc == VV_OK && r.found.plane == VV_PLANE_DATA ? data : records,
                                       VV_ARRAY_LEN(data));
    for (size_t i = 0; i < r.page.count && rc == VV_OK; i++) {
        vv_segment_facts f;
        rc = vv_segment_facts_of(&f, q->library, q->look, &r.found, &r.rows[i], &err);
        if (rc == VV_OK)
            add_segment(t, &r.rows[i], &f);
    }
    int status = rc == VV_OK ? VV_EXIT_OK : vv_cli_fail_view(c, q, &err);
    if (rc == VV_OK) {
        vv_cli_table_print(t);
        print_foot(&r);
    }
    vv_cli_table_free(t);
    vv_segment_rows_done(&r);
    return status;
}

static void print_use(const vv_store_use *u)
{
    static const vv_cli_column columns[] = {{"KIND", false}, {"FILES", true}, {"BYTES", true}};
    char text[VV_CELL];
    vv_cli_table *t = vv_cli_table_new(columns, VV_ARRAY_LEN(columns));
    for (unsigned k = 0; k <= VV_USES; k++) {
        const vv_use *use = k < VV_USES ? &u->use[k] : &u->total;
        vv_cli_cell(t, VV_PAINT_NONE, "%s", k < VV_USES ? vv_use_words[k] : "total");
        vv_cli_cell(t, VV_PAINT_NONE, "%s", vv_cli_count(text, use->files));
        vv_cli_cell(t, k == VV_USES ? VV_PAINT_BOLD : VV_PAINT_NONE, "%s", vv_cli_count(text, use->bytes));
    }
    vv_cli_table_print(t);
    vv_cli_table_free(t);
}

static void print_counts(const vv_store_use *u)
{
    char a[VV_CELL], b[VV_CELL];
    const vv_segment_counts *const planes[] = {&u->meta, &u->data};
    printf("%s streams, %" PRIu64 " of them alive, %" PRIu64 " unreadable; %s executions, %" PRIu64 " running\n",
           vv_cli_count(a, u->streams), u->alive, u->unreadable, vv_cli_count(b, u->executions), u->running);
    for (size_t i = 0; i < VV_ARRAY_LEN(planes); i++)
        printf("%s segments: %s good, %" PRIu64 " corrupt, %" PRIu64 " unreadable, %" PRIu64 " missing\n",
               vv_plane_dir((vv_plane)i), vv_cli_count(a, planes[i]->good), planes[i]->corrupt,
               planes[i]->unreadable, planes[i]->missing);
    if (!u->has_ledger)
        printf("the store's ledger of its use is missing or damaged\n");
    else if (u->is_settled && u->ledger != u->counted)
        printf("the store's ledger says %s bytes, its files come to %s\n", vv_cli_count(a, u->ledger),
               vv_cli_count(b, u->counted));
    if (u->irregular)
        printf("%" PRIu64 " names are links, devices or the like, which keep programs from recording here until they "
               "are gone, or directories that this user may not read\n", u->irregular);
}

static void print_orphans(const vv_orphans *o)
{
    char text[VV_THREAD_TEXT];
    printf("%" PRIu64 " executions have data and stand in no index\n", o->total);
    for (size_t i = 0; i < o->count && i < ORPHANS_SHOWN; i++) {
        vv_thread_text(text, &o->roots[i]);
        printf("  %s\n", text);
    }
}

/* What the store takes on disk. */
static int print_store(const vv_cli *c, vv_query *q)
{
    bool scan = vv_cli_has(c, "scan");
    vv_store_use use;
    VV_CLEANUP(vv_orphans_done) vv_orphans orphans = {0};
    vv_error err = {0};
    vv_code rc = vv_store_use_of(&use, q->look, &err);
    if (rc == VV_OK && scan)
        rc = vv_orphans_of(&orphans, q->look, &err);
    if (rc != VV_OK)
        return vv_cli_fail_error(&err, "store", NULL);
    print_use(&use);
    print_counts(&use);
    if (scan)
        print_orphans(&orphans);
    return VV_EXIT_OK;
}

static bool is_euid(const char *s)
{
    uint8_t bytes[16];
    return s && vv_unhex(bytes, sizeof bytes, vv_cstr(s));
}

/* What does not go together; -1 where all does. */
static int check(const vv_cli *c, bool one, bool plane)
{
    static const char *const paging[] = {"limit", "cursor"};
    bool use = vv_cli_has(c, "use");
    if (use && (one || vv_cli_has_page(c)))
        return vv_cli_usage(c, "--use tells of the whole store; but --scan, no other option goes with it");
    if (vv_cli_has(c, "scan") && !use)
        return vv_cli_usage(c, "--scan goes with --use");
    if (c->arg_count == 2 && !one)
        return vv_cli_usage(c, "\"%.100s\" is no stream's id of 32 hexadecimal digits", c->args[0]);
    if (vv_cli_has(c, "after") && !plane)
        return vv_cli_usage(c, "--after goes with a plane: `varve streams STREAM data --after 7`");
    for (size_t i = 0; i < VV_ARRAY_LEN(paging); i++)
        if (one && !plane && vv_cli_has(c, paging[i]))
            return vv_cli_usage(c, "--%s goes with a list, not with one stream", paging[i]);
    return -1;
}

static int run(const vv_cli *c)
{
    bool one = c->arg_count && is_euid(c->args[0]), plane = one && c->arg_count == 2;
    int wrong = check(c, one, plane);
    if (wrong >= 0)
        return wrong;
    vv_cli_request r = {.store = c->arg_count && !one ? c->args[0] : NULL, .id = vv_cstr(one ? c->args[0] : NULL),
                        .sub = vv_cstr(plane ? c->args[1] : NULL), .view = vv_answer_streams, .show = print_streams};
    if (vv_cli_has(c, "use")) {
        r.view = vv_answer_store;
        r.show = print_store;
    } else if (one) {
        r.view = plane ? vv_answer_segments : vv_answer_stream;
        r.show = plane ? print_segments : print_stream;
    }
    vv_cli_param(&r.params, "scan", vv_cli_has(c, "scan") ? "1" : NULL);
    vv_cli_param(&r.params, "after", vv_cli_value(c, "after"));
    vv_cli_page_params(&r.params, c);
    return vv_cli_answer(c, &r);
}

static const vv_cli_option options[] = {
    {"use", NULL, "tell what the store takes on disk, and what is in it", false},
    {"scan", NULL, "with --use: read all data for executions that no index names", false},
    {"after", "N", "segments with higher sequences than this", false},
    VV_CLI_PAGE_OPTIONS,
    VV_CLI_INDEX_OPTION,
};
static const char *const examples[] = {"varve streams", "varve streams ./run.tar.gz", "varve streams --use",
                                       "varve streams 019abc04d2a07c5e8f31d6a2b4c7e901",
                                       "varve streams 019abc04d2a07c5e8f31d6a2b4c7e901 data --after 100", NULL};

const vv_cli_verb vv_verb_streams = {
    .name = "streams",
    .args = "[STORE | STREAM [PLANE]]",
    .purpose = "lists the processes that recorded into a store, and their segment files",
    .details = "STREAM is a process's id, 32 hexadecimal digits; PLANE is meta, data or health: the segment files of\n"
               "that plane, with what is missing between them. META and DATA say up to which sequence all segments\n"
               "are there and whole. A plane's files are read through, for their digests.\n",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .max_args = 2,
    .run = run,
};
