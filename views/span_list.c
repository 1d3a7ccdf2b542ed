#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "views/spans.h"

static vv_code read_status(vv_query *q, vv_span_filter *f, vv_error *err)
{
    static const char *const words[] = {"ok", "errored", "cancelled", "exited", "unknown"};
    f->has_status = vv_query_value(q, "status") != NULL;
    return vv_query_word(q, "status", words, VV_ARRAY_LEN(words), &f->status, err);
}

static vv_code read_reason(vv_query *q, vv_span_filter *f, vv_error *err)
{
    unsigned at = 0;
    f->has_reason = vv_query_value(q, "reason") != NULL;
    vv_code rc = vv_query_word(q, "reason", vv_reason_words, VV_ARRAY_LEN(vv_reason_words), &at, err);
    f->reason = (uint8_t)(1u << at);
    return rc;
}

static vv_code read_order(vv_query *q, vv_span_filter *f, vv_error *err)
{
    static const char *const words[] = {"start", "-duration"};
    unsigned at = 0;
    vv_code rc = vv_query_word(q, "order", words, VV_ARRAY_LEN(words), &at, err);
    f->by_duration = at == 1;
    return rc;
}

static vv_code read_times(vv_query *q, vv_span_filter *f, vv_error *err)
{
    f->has_from = vv_query_value(q, "from") != NULL;
    f->has_to = vv_query_value(q, "to") != NULL;
    vv_code rc = vv_query_number(q, "from", 0, UINT64_MAX, &f->from, err);
    if (rc == VV_OK)
        rc = vv_query_number(q, "to", 0, UINT64_MAX, &f->to, err);
    if (rc == VV_OK && f->has_from && f->has_to && f->from > f->to)
        rc = vv_query_fail(q, "to", err, "must not be before from");
    return rc;
}

/* Nanoseconds, or a whole number of ns, us, ms or s. */
static bool parse_duration(vv_str s, uint64_t *ret)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"", 1}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    uint64_t v;
    size_t n = vv_str_digits(s);
    if (!vv_str_u64((vv_str){s.p, n}, &v))
        return false;
    for (size_t i = 0; i < VV_ARRAY_LEN(units); i++)
        if (vv_str_eq((vv_str){s.p + n, s.n - n}, vv_cstr(units[i].unit)))
            return !__builtin_mul_overflow(v, units[i].ns, ret);
    return false;
}

static vv_code read_min_duration(vv_query *q, vv_span_filter *f, vv_error *err)
{
    const vv_str *s = vv_query_value(q, "min_duration");
    f->has_min_duration = s != NULL;
    if (!s || parse_duration(*s, &f->min_duration))
        return VV_OK;
    return vv_query_fail(q, "min_duration", err, "must be nanoseconds, or a whole number of us, ms or s, such as 20ms");
}

static vv_code read_thread(vv_query *q, const vv_profile *p, vv_span_filter *f, vv_error *err)
{
    const vv_str *s = vv_query_value(q, "thread");
    f->has_thread = s != NULL;
    if (!s)
        return VV_OK;
    if (!vv_thread_named(*s, &p->fold->root, &f->thread))
        return vv_query_fail(q, "thread", err, "must be a thread's id, or its number");
    bool found = vv_map_find(&p->fold->thread_map, f->thread.b) != VV_MAP_NONE;
    for (size_t i = 0; i < p->fold->span_count && !found; i++)
        found = memcmp(p->fold->spans[i].call.b, f->thread.b, sizeof f->thread.b) == 0;
    return found ? VV_OK : vv_query_absent(q, p, "thread", err);
}

static vv_code read_context(vv_query *q, const vv_profile *p, vv_span_filter *f, vv_error *err)
{
    const vv_str *s = vv_query_value(q, "context");
    f->has_context = s != NULL;
    if (!s)
        return VV_OK;
    for (unsigned r = 0; r < VV_OVERFLOW_REASONS; r++)
        for (unsigned e = 0; e < VV_EDGES; e++) {
            char id[VV_OVERFLOW_ID];
            f->context = (vv_context_ref){.overflow = true, .reason = (uint8_t)r, .edge = (uint8_t)e};
            uint32_t node = vv_node_of(p, &f->context);
            if (node == VV_NONE)
                continue;
            vv_node_overflow_id(&p->tree.nodes[node], id);
            if (vv_str_eq(*s, vv_cstr(id)))
                return VV_OK;
        }
    f->context = (vv_context_ref){.overflow = false};
    if (s->n > 9 && memcmp(s->p, "overflow:", 9) == 0)
        return vv_query_absent(q, p, "context", err);
    if (!vv_unhex(f->context.key.b, sizeof f->context.key.b, *s))
        return vv_query_fail(q, "context", err, "must be a context key (64 hexadecimal digits) or overflow:...");
    return vv_node_of(p, &f->context) == VV_NONE ? vv_query_absent(q, p, "context", err) : VV_OK;
}

static bool number_after_hash(vv_str s, uint32_t *ret)
{
    uint64_t v;
    if (s.n < 2 || s.p[0] != '#' || !vv_str_u64((vv_str){s.p + 1, s.n - 1}, &v) || v > UINT32_MAX)
        return false;
    *ret = (uint32_t)v;
    return true;
}

static bool key_is(const vv_function *d, vv_str name)
{
    return d->definition_key.present && name.n && vv_str_eq(d->definition_key.s, name);
}

/* Two rows of one name are one function where their definition keys say so. */
static bool same_function(const vv_function *a, const vv_function *b)
{
    char sa[12], sb[12];
    vv_str na, nb;
    return vv_function_name_key(a, a->id, sa, &na) == vv_function_name_key(b, b->id, sb, &nb) && vv_str_eq(na, nb);
}

/* Does the execution know a function of that number: by its table, its contexts, or a call of it? */
static bool number_is_known(const vv_profile *p, uint32_t id)
{
    bool known = vv_function_table_find(&p->table, id) != NULL;
    for (uint32_t i = 0; i < p->tree.function_count && !known; i++)
        known = p->tree.functions[i].id == id;
    for (size_t i = 0; i < p->fold->span_count && !known; i++)
        known = p->fold->spans[i].has_start && p->fold->spans[i].start.function_id == id;
    return known;
}

static vv_code read_function(vv_query *q, const vv_profile *p, vv_span_filter *f, vv_error *err)
{
    const vv_str *s = vv_query_value(q, "function");
    const vv_function_table *t = &p->table;
    const vv_function *found = NULL;
    f->has_function = s != NULL;
    if (!s)
        return VV_OK;
    f->function = *s;
    f->function_kind = VV_NAME_NUMBER;
    if (number_after_hash(*s, &f->function_id))
        return number_is_known(p, f->function_id) ? VV_OK : vv_query_absent(q, p, "function", err);
    f->function_kind = VV_NAME_DEFINITION_KEY;
    for (uint32_t i = 0; i < t->function_count; i++)
        if (key_is(&t->functions[i], *s))
            return VV_OK;
    f->function_kind = VV_NAME_FQN;
    for (uint32_t i = 0; i < t->function_count; i++) {
        const vv_function *d = &t->functions[i];
        if (!vv_str_eq(d->fqn, *s))
            continue;
        if (found && !same_function(found, d)) {
            q->parameter = "function";
            q->match_count = 0;
            return vv_fail(err, VV_ERR_AMBIGUOUS,
                           "that name stands for several functions; use a definition key, or # and the number");
        }
        found = d;
    }
    return found ? VV_OK : vv_query_absent(q, p, "function", err);
}

static bool function_matches(const vv_span_filter *f, const vv_profile *p, uint32_t id)
{
    if (!f->has_function)
        return true;
    if (f->function_kind == VV_NAME_NUMBER)
        return id == f->function_id;
    const vv_function *d = vv_function_of(p, id);
    return d && (f->function_kind == VV_NAME_FQN ? vv_str_eq(d->fqn, f->function) : key_is(d, f->function));
}

/* Is it of the function and in the context asked for? Without its start it is of none that is known. */
static bool belongs(const vv_span_filter *f, const vv_profile *p, const vv_fold_span *s)
{
    if (!s->has_start)
        return !f->has_function && !f->has_context;
    return function_matches(f, p, s->start.function_id)
        && (!f->has_context || vv_same_context(&f->context, &s->start.context));
}

static unsigned status_of(const vv_fold_span *s)
{
    return s->has_end ? s->end.status : VV_SPAN_STATUS_UNKNOWN;
}

/* Began before `to`, and had not ended by `from`: one without an end may go on. */
static bool in_time(const vv_span_filter *f, const vv_fold_span *s)
{
    if (!f->has_from && !f->has_to)
        return true;
    if (!s->has_start || (f->has_to && s->start.started_ns >= f->to))
        return false;
    return !f->has_from || s->start.started_ns >= f->from || !s->has_end || s->end.ended_ns > f->from;
}

static bool matches(const vv_span_filter *f, const vv_fold_span *s)
{
    return (!f->has_status || status_of(s) == f->status)
        && (!f->has_thread || memcmp(s->call.b, f->thread.b, sizeof f->thread.b) == 0)
        && (!f->has_reason || (s->has_start && s->start.reasons & f->reason))
        && (!f->has_min_duration || (s->has_end && s->end.inclusive_ns >= f->min_duration)) && in_time(f, s);
}

/* By start: unknown ones last, then the time, then the call. Before that the duration, where it orders. */
enum { BY_START = 1 + 8 + 40, BY_DURATION = 1 + 8 + BY_START };

static void put_key(uint8_t key[VV_PAGE_KEY], const vv_fold_span *s, bool by_duration)
{
    uint8_t *p = key;
    if (by_duration) {
        *p++ = !s->has_end;
        vv_put64(p, s->has_end ? ~s->end.inclusive_ns : 0);
        p += 8;
    }
    *p++ = !s->has_start;
    vv_put64(p, s->has_start ? s->start.started_ns : 0);
    memcpy(p + 8, s->call.b, sizeof s->call.b);
}

static void count_calls(vv_span_population *n, const vv_span_filter *f, const vv_profile *p)
{
    uint32_t only = f->has_context ? vv_node_of(p, &f->context) : VV_NONE;
    n->calls_known = true;
    for (uint32_t i = 0; i < p->tree.node_count; i++) {
        const vv_node *node = &p->tree.nodes[i];
        if (f->has_context && i != only)
            continue;
        if (f->has_function && node->function == VV_NONE)
            n->calls_known = false; /* some of its calls may be those of the function */
        else if (f->has_function && !function_matches(f, p, p->tree.functions[node->function].id))
            continue;
        n->calls += node->counters->started;
        n->selected += node->counters->selected;
    }
}

static void gather(vv_span_list *l, const vv_profile *p)
{
    const vv_span_filter *f = &l->filter;
    vv_span_population *n = &l->population;
    n->known = vv_counts_known(p->fold);
    if (!n->known)
        return;
    count_calls(n, f, p);
    for (size_t i = 0; i < p->fold->span_count; i++) {
        const vv_fold_span *s = &p->fold->spans[i];
        bool own = belongs(f, p, s);
        n->without_start += !s->has_start;
        n->retained += own;
        n->without_end += own && !s->has_end;
        if (!own || !matches(f, s))
            continue;
        uint8_t key[VV_PAGE_KEY];
        n->matched++;
        put_key(key, s, f->by_duration);
        vv_page_offer(&l->page, key, (uint32_t)i);
    }
}

static vv_code read_filter(vv_query *q, const vv_profile *p, vv_span_filter *f, vv_error *err)
{
    vv_code rc = read_function(q, p, f, err);
    if (rc == VV_OK)
        rc = read_thread(q, p, f, err);
    if (rc == VV_OK)
        rc = read_context(q, p, f, err);
    return rc;
}

/* Names a function, which is looked for later. */
static vv_code check_function(vv_query *q, vv_error *err)
{
    const vv_str *s = vv_query_value(q, "function");
    return !s || s->n ? VV_OK
        : vv_query_fail(q, "function", err, "must be a definition key, a full name, or # and a number");
}

static vv_code read_plain(vv_query *q, vv_span_filter *f, vv_error *err)
{
    static const char *const names[] = {"function", "status", "thread", "context", "reason", "from", "to",
                                        "min_duration", "order", "limit", "cursor", NULL};
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = check_function(q, err);
    if (rc == VV_OK)
        rc = read_status(q, f, err);
    if (rc == VV_OK)
        rc = read_reason(q, f, err);
    if (rc == VV_OK)
        rc = read_order(q, f, err);
    if (rc == VV_OK)
        rc = read_times(q, f, err);
    if (rc == VV_OK)
        rc = read_min_duration(q, f, err);
    return rc;
}

vv_code vv_span_list_read(vv_span_list *ret, vv_query *q, vv_error *err)
{
    *ret = (vv_span_list){.population = {.known = false}};
    vv_code rc = read_plain(q, &ret->filter, err);
    if (rc == VV_OK)
        rc = vv_page_read(&ret->page, q, "spans", ret->filter.by_duration ? BY_DURATION : BY_START, err);
    return rc;
}

vv_code vv_span_list_make(vv_span_list *l, vv_query *q, const vv_profile *p, vv_error *err)
{
    vv_code rc = read_filter(q, p, &l->filter, err);
    if (rc == VV_OK)
        rc = vv_page_room(&l->page, err);
    if (rc != VV_OK)
        return rc;
    gather(l, p);
    vv_page_sort(&l->page, q, "spans");
    return VV_OK;
}

void vv_span_list_done(vv_span_list *l)
{
    vv_page_done(&l->page);
}
