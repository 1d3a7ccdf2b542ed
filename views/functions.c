#include "config.h"

#include "views/functions.h"

#include <stdlib.h>

#include "base/sha256.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000, POSITION = 32 };

/* What a group goes by, as 32 bytes: kind and key hashed. */
static void group_key(const vv_function_ref *f, uint8_t out[32])
{
    char scratch[12];
    vv_str name;
    uint8_t kind = (uint8_t)vv_function_name_key(f->def, f->id, scratch, &name);
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, &kind, 1);
    if (kind == VV_NAME_NUMBER)
        vv_sha256_update(&c, f->program.b, sizeof f->program.b);
    vv_sha256_update(&c, name.p, name.n);
    vv_sha256_final(&c, out);
}

/* group[f] of each function, and the number of groups. */
static bool group_functions(const vv_tree *t, uint32_t *group, uint32_t *ret_count)
{
    vv_map map;
    vv_map_init(&map, 32);
    bool good = true;
    for (uint32_t i = 0; i < t->function_count && good; i++) {
        uint8_t key[32];
        group_key(&t->functions[i], key);
        group[i] = vv_map_put(&map, key, NULL);
        good = group[i] != VV_MAP_NONE;
    }
    *ret_count = map.count;
    vv_map_done(&map);
    return good;
}

static void add_own(vv_function_row *row, const vv_tree *t, const vv_node *n)
{
    const vv_counters *c = n->counters;
    if (!row->function)
        row->function = &t->functions[n->function];
    row->contexts++;
    row->calls += c->started;
    row->errors += c->error;
    row->cancelled += c->cancelled;
    row->open += vv_counters_open(c);
    row->self_ns = vv_sat128(row->self_ns, n->self_ns);
    row->await_ns = vv_sat128(row->await_ns, c->await_ns);
    row->timing_incomplete |= (n->flags & VV_NODE_TIMING_INCOMPLETE) != 0;
}

typedef struct {
    uint32_t node, next; /* next child to visit */
} frame;

/*
 * Walks each tree of Call edges with an explicit stack. active[g] counts how often group g stands above: only its
 * outermost context adds its inclusive time. A spawn starts a tree of its own.
 */
static void add_inclusive(const vv_tree *t, const uint32_t *group, vv_function_row *rows, uint32_t *active,
                          frame *stack)
{
    for (uint32_t k = 0; k < t->node_count; k++) {
        uint32_t top = t->order[k];
        if (t->nodes[top].edge == VV_EDGE_CALL && t->nodes[top].parent != VV_NONE)
            continue;
        size_t depth = 0;
        stack[depth++] = (frame){top, VV_NONE};
        while (depth) {
            frame *f = &stack[depth - 1];
            const vv_node *n = &t->nodes[f->node];
            uint32_t g = n->function == VV_NONE ? VV_NONE : group[n->function];
            if (f->next == VV_NONE) {
                f->next = t->child_first[f->node];
                if (g != VV_NONE && active[g]++ == 0)
                    rows[g].inclusive_ns = vv_sat128(rows[g].inclusive_ns, n->counters->inclusive_ns);
            }
            while (f->next < t->child_first[f->node + 1] && t->nodes[t->child[f->next]].edge != VV_EDGE_CALL)
                f->next++;
            if (f->next < t->child_first[f->node + 1]) {
                stack[depth++] = (frame){t->child[f->next++], VV_NONE};
            } else {
                if (g != VV_NONE)
                    active[g]--;
                depth--;
            }
        }
    }
}

vv_code vv_function_rows(const vv_tree *t, vv_function_row **ret, size_t *ret_count, vv_error *err)
{
    uint32_t *group = calloc(t->function_count + 1, sizeof *group), groups = 0, *active = NULL;
    frame *stack = malloc(((size_t)t->node_count + 1) * sizeof *stack);
    vv_function_row *rows = NULL;
    bool good = group && stack && group_functions(t, group, &groups);
    if (good) {
        rows = calloc(groups + 1, sizeof *rows);
        active = calloc(groups + 1, sizeof *active);
        good = rows && active;
    }
    if (good) {
        for (uint32_t i = 0; i < t->node_count; i++)
            if (t->nodes[i].function != VV_NONE)
                add_own(&rows[group[t->nodes[i].function]], t, &t->nodes[i]);
        add_inclusive(t, group, rows, active, stack);
    }
    free(group);
    free(active);
    free(stack);
    if (!good) {
        free(rows);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the table of functions");
    }
    *ret = rows;
    *ret_count = groups;
    return VV_OK;
}

typedef enum { SORT_SELF, SORT_INCLUSIVE, SORT_AWAIT, SORT_CALLS, SORT_ERRORS, SORT_CONTEXTS, SORT_NAME } sort_by;
const char *const vv_function_sorts[] = {"self_ns", "inclusive_ns", "await_ns", "calls", "errors", "contexts", "name"};

static vv_u128 sort_value(const vv_function_row *r, sort_by by)
{
    switch (by) {
    case SORT_SELF:
        return r->self_ns;
    case SORT_INCLUSIVE:
        return r->inclusive_ns;
    case SORT_AWAIT:
        return r->await_ns;
    case SORT_CALLS:
        return r->calls;
    case SORT_ERRORS:
        return r->errors;
    case SORT_CONTEXTS:
        return r->contexts;
    case SORT_NAME:
        break;
    }
    return 0;
}

static int compare_str(vv_str a, vv_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

/* Largest first; equals by name, then by identity, so that the order is total. Functions without a name come last. */
static int compare_rows(const void *a, const void *b, void *by)
{
    const vv_function_row *x = a, *y = b;
    vv_u128 vx = sort_value(x, *(sort_by *)by), vy = sort_value(y, *(sort_by *)by);
    if (vx != vy)
        return vx > vy ? -1 : 1;
    if (!x->function->def != !y->function->def)
        return x->function->def ? -1 : 1;
    int c = compare_str(vv_function_ref_name(x->function), vv_function_ref_name(y->function));
    if (c)
        return c;
    uint8_t kx[32], ky[32];
    group_key(x->function, kx);
    group_key(y->function, ky);
    return memcmp(kx, ky, sizeof kx);
}

void vv_function_rows_sort(vv_function_row *rows, size_t n, unsigned by)
{
    sort_by column = (sort_by)by;
    qsort_r(rows, n, sizeof *rows, compare_rows, &column);
}

void vv_function_fields_json(vv_json *j, const vv_function_ref *ref)
{
    const vv_function *d = ref->def;
    vv_json_key(j, "name");
    if (d)
        vv_json_str(j, d->fqn);
    else
        vv_json_null(j);
    vv_json_key(j, "display_name");
    if (d)
        vv_json_str(j, d->display_name);
    else
        vv_json_null(j);
    vv_json_kv_opt_str(j, "definition_key", d ? &d->definition_key : NULL);
    vv_json_kv_u64(j, "function_id", ref->id);
    vv_json_kv_hex(j, "program", ref->program.b, sizeof ref->program.b);
    vv_json_kv_cstr(j, "kind", d ? vv_fn_kind_name(d->kind) : NULL);
    vv_json_kv_cstr(j, "origin", d ? vv_fn_origin_name(d->origin) : NULL);
    vv_json_kv_opt_str(j, "file", d ? &d->source_file : NULL);
    vv_json_key(j, "line");
    if (d && vv_fn_line(d))
        vv_json_u64(j, vv_fn_line(d));
    else
        vv_json_null(j);
    vv_json_key(j, "span");
    if (d && d->has_span) {
        vv_json_arr(j);
        vv_json_u64(j, d->span_start);
        vv_json_u64(j, d->span_end);
        vv_json_end_arr(j);
    } else {
        vv_json_null(j);
    }
}

static void row_json(vv_json *j, const vv_function_row *r)
{
    vv_json_obj(j);
    vv_function_fields_json(j, r->function);
    vv_json_kv_u128(j, "calls", r->calls);
    vv_json_kv_i128(j, "open", r->open);
    vv_json_kv_u128(j, "errors", r->errors);
    vv_json_kv_u128(j, "cancelled", r->cancelled);
    vv_json_kv_u128(j, "self_ns", r->self_ns);
    vv_json_kv_u128(j, "inclusive_ns", r->inclusive_ns);
    vv_json_kv_u128(j, "await_ns", r->await_ns);
    vv_json_kv_u64(j, "contexts", r->contexts);
    vv_json_kv_bool(j, "timing_complete", !r->timing_incomplete);
    vv_json_end_obj(j);
}

/* Calls that no function can be named for: they stand beside the rows, so that all sums come out. */
static void unattributed_json(vv_json *j, const vv_tree *t)
{
    static const struct {
        const char *key;
        uint8_t flag;
    } kinds[] = {{"overflow", VV_NODE_OVERFLOW}, {"undefined", VV_NODE_UNDEFINED}};
    vv_json_kv_obj(j, "unattributed");
    for (size_t k = 0; k < VV_ARRAY_LEN(kinds); k++) {
        vv_u128 calls = 0, self = 0;
        uint64_t contexts = 0;
        for (uint32_t i = 0; i < t->node_count; i++)
            if (t->nodes[i].flags & kinds[k].flag) {
                contexts++;
                calls += t->nodes[i].counters->started;
                self = vv_sat128(self, t->nodes[i].self_ns);
            }
        vv_json_kv_obj(j, kinds[k].key);
        vv_json_kv_u64(j, "contexts", contexts);
        vv_json_kv_u128(j, "calls", calls);
        vv_json_kv_u128(j, "self_ns", self);
        vv_json_end_obj(j);
    }
    vv_json_end_obj(j);
}

static bool row_matches(const vv_function_row *r, const vv_str *text)
{
    const vv_function *d = r->function->def;
    if (!text || text->n == 0)
        return true;
    if (!d)
        return false;
    const vv_str none = {NULL, 0};
    const vv_str fields[] = {d->fqn, d->display_name, d->definition_key.present ? d->definition_key.s : none,
                             d->source_file.present ? d->source_file.s : none};
    for (size_t i = 0; i < VV_ARRAY_LEN(fields); i++)
        if (fields[i].n && vv_text_contains(fields[i], *text))
            return true;
    return false;
}

typedef struct {
    sort_by by;
    uint64_t limit;
    const vv_str *text;
    bool has_cursor;
    uint8_t after[POSITION];
} options;

static vv_code read_options(vv_query *q, options *o, vv_error *err)
{
    static const char *const names[] = {"execution", "sort", "q", "limit", "cursor", NULL};
    unsigned by = SORT_SELF;
    *o = (options){.limit = LIMIT_DEFAULT};
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_query_word(q, "sort", vv_function_sorts, VV_FUNCTION_SORTS, &by, err);
    if (rc == VV_OK)
        rc = vv_query_number(q, "limit", 1, LIMIT_MAX, &o->limit, err);
    if (rc == VV_OK)
        rc = vv_query_cursor(q, "functions", o->after, sizeof o->after, &o->has_cursor, err);
    o->by = (sort_by)by;
    o->text = vv_query_value(q, "q");
    return rc;
}

/*
 * A cursor names the last row by its group. In a look where numbers have moved, the page goes on after where that row
 * stands now; a row that is gone ends the list.
 */
static size_t start_of_page(const options *o, const vv_function_row *rows, size_t n)
{
    for (size_t i = 0; o->has_cursor && i < n; i++) {
        uint8_t key[32];
        group_key(rows[i].function, key);
        if (memcmp(key, o->after, sizeof key) == 0)
            return i + 1;
    }
    return o->has_cursor ? n : 0;
}

static void answer_json(vv_json *j, const vv_query *q, const options *o, const vv_tree *t, const vv_digest *d,
                        const vv_function_row *rows, size_t n)
{
    size_t at = start_of_page(o, rows, n), last = n, total = 0, left = o->limit;
    for (size_t i = 0; i < n; i++)
        total += row_matches(&rows[i], o->text);
    bool more = false;
    for (size_t i = at, seen = 0; i < n && !more; i++)
        more = row_matches(&rows[i], o->text) && ++seen > o->limit;
    vv_head_json(j, q->look, &d->evidence, more, NULL);
    vv_json_key(j, "totals");
    vv_totals_json(j, d->known, &d->totals);
    unattributed_json(j, t);
    vv_json_kv_u64(j, "total_rows", total);
    vv_json_kv_arr(j, "items");
    for (; at < n && left; at++)
        if (row_matches(&rows[at], o->text)) {
            row_json(j, &rows[at]);
            last = at;
            left--;
        }
    vv_json_end_arr(j);
    bool has_next = more && last < n;
    uint8_t key[POSITION];
    if (has_next)
        group_key(rows[last].function, key);
    vv_query_next_json(j, q, "functions", has_next ? key : NULL, sizeof key);
    vv_json_end_obj(j);
}

vv_code vv_view_functions(vv_json *j, vv_query *q, vv_error *err)
{
    options o;
    vv_found f;
    vv_loaded x;
    vv_function_row *rows;
    size_t n;
    vv_code rc = read_options(q, &o, err);
    if (rc == VV_OK)
        rc = vv_query_scope(q, &f, err);
    if (rc == VV_OK)
        rc = vv_query_load(q, &f, &x, err);
    if (rc != VV_OK)
        return rc;
    rc = vv_function_rows(&x.profile->tree, &rows, &n, err);
    if (rc == VV_OK) {
        vv_function_rows_sort(rows, n, o.by);
        answer_json(j, q, &o, &x.profile->tree, x.digest, rows, n);
        free(rows);
    }
    vv_loaded_release(q->library, &x);
    return rc;
}
