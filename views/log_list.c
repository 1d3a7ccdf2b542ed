#include "config.h"

#include "views/logs.h"

#include <strings.h>

enum { KEY_TIME = 8 + 8, KEY_RECORDED = 8 };
#define NS_PER_MS ((uint64_t)1000000)

bool vv_log_time(const vv_log_event *e, uint64_t *ret_unix_ns)
{
    return !__builtin_mul_overflow(e->timestamp_ms, NS_PER_MS, ret_unix_ns);
}

static vv_code read_order(vv_query *q, vv_log_filter *f, vv_error *err)
{
    static const char *const words[] = {"time", "recorded"};
    unsigned at = 0;
    vv_code rc = vv_query_word(q, "order", words, VV_ARRAY_LEN(words), &at, err);
    f->as_recorded = at == 1;
    return rc;
}

vv_code vv_log_list_read(vv_log_list *ret, vv_query *q, vv_error *err)
{
    static const char *const names[] = {"level", "call", "thread", "event", "q", "since", "until", "order",
                                        "limit", "cursor", NULL};
    *ret = (vv_log_list){.population = {.known = false}};
    vv_log_filter *f = &ret->filter;
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = read_order(q, f, err);
    if (rc == VV_OK)
        rc = vv_query_times(q, &f->times, err);
    if (rc == VV_OK)
        rc = vv_page_read(&ret->page, q, "logs", f->as_recorded ? KEY_RECORDED : KEY_TIME, err);
    f->level = vv_query_value(q, "level");
    f->event = vv_query_value(q, "event");
    f->text = vv_query_value(q, "q");
    return rc;
}

static bool is_of_thread(const vv_log_event *e, const vv_thread_ref *t)
{
    return e->has_call && memcmp(e->call.b, t->b, sizeof t->b) == 0;
}

static bool is_of_call(const vv_log_event *e, const vv_call_ref *c)
{
    return e->has_call && memcmp(e->call.b, c->b, sizeof c->b) == 0;
}

/* A call that has a span, or a log. */
static vv_code read_call(vv_query *q, const vv_profile *p, vv_log_filter *f, vv_error *err)
{
    const vv_fold *fold = p->fold;
    const vv_str *s = vv_query_value(q, "call");
    f->has_call = s != NULL;
    if (!s)
        return VV_OK;
    if (!vv_call_named(*s, &fold->root, &f->call))
        return vv_query_fail(q, "call", err, "must be a call's id, or thread.call such as 1.17");
    bool found = vv_map_find(&fold->span_map, f->call.b) != VV_MAP_NONE;
    for (size_t i = 0; i < fold->log_count && !found; i++)
        found = is_of_call(&fold->logs[i], &f->call);
    return found ? VV_OK : vv_query_absent(q, p, "call", err);
}

static vv_code read_thread(vv_query *q, const vv_profile *p, vv_log_filter *f, vv_error *err)
{
    const vv_fold *fold = p->fold;
    const vv_str *s = vv_query_value(q, "thread");
    f->has_thread = s != NULL;
    if (!s)
        return VV_OK;
    if (!vv_thread_named(*s, &fold->root, &f->thread))
        return vv_query_fail(q, "thread", err, "must be a thread's id, or its number");
    bool found = vv_map_find(&fold->thread_map, f->thread.b) != VV_MAP_NONE;
    for (size_t i = 0; i < fold->log_count && !found; i++)
        found = is_of_thread(&fold->logs[i], &f->thread);
    return found ? VV_OK : vv_query_absent(q, p, "thread", err);
}

/* Is it one of the words of a list with commas? Letters' case aside. */
static bool is_among(vv_str list, vv_str word)
{
    for (size_t from = 0; from <= list.n;) {
        const char *p = list.p + from, *comma = list.n > from ? memchr(p, ',', list.n - from) : NULL;
        size_t n = comma ? (size_t)(comma - p) : list.n - from;
        if (n == word.n && strncasecmp(p, word.p, n) == 0)
            return true;
        from += n + 1;
    }
    return false;
}

static bool holds(vv_opt_str s, vv_str text)
{
    return s.present && vv_text_contains(s.s, text);
}

/* A time that can't be told in nanoseconds is later than any that can. */
static bool in_time(const vv_log_filter *f, const vv_log_event *e)
{
    uint64_t ns;
    bool told = vv_log_time(e, &ns);
    const vv_times *t = &f->times;
    return (!t->has_since || !told || ns >= t->since) && (!t->has_until || (told && ns < t->until));
}

static bool matches(const vv_log_filter *f, const vv_log_event *e)
{
    return (!f->level || (e->level.present && is_among(*f->level, e->level.s)))
        && (!f->event || (e->event.present && vv_str_eq(e->event.s, *f->event)))
        && (!f->text || holds(e->message, *f->text) || holds(e->event, *f->text))
        && (!f->has_call || is_of_call(e, &f->call)) && (!f->has_thread || is_of_thread(e, &f->thread))
        && in_time(f, e);
}

static void count_level(vv_log_population *n, vv_opt_str level)
{
    size_t i = 0;
    while (i < n->level_count
           && !(n->levels[i].present == level.present && (!level.present || vv_str_eq(n->levels[i].name, level.s))))
        i++;
    if (i == VV_LOG_LEVELS) {
        n->other_levels++;
        return;
    }
    if (i == n->level_count) {
        n->levels[i].present = level.present;
        n->levels[i].name = level.present ? level.s : (vv_str){NULL, 0};
        n->level_count++;
    }
    n->levels[i].logs++;
}

static void gather(vv_log_list *l, const vv_fold *f)
{
    vv_log_population *n = &l->population;
    n->known = vv_counts_known(f);
    for (size_t i = 0; i < f->log_count && n->known; i++) {
        const vv_log_event *e = &f->logs[i];
        uint8_t key[VV_PAGE_KEY];
        n->logs++;
        count_level(n, e->level);
        if (!matches(&l->filter, e))
            continue;
        n->matched++;
        vv_put64(key, l->filter.as_recorded ? i : e->timestamp_ms);
        vv_put64(key + 8, i);
        vv_page_offer(&l->page, key, (uint32_t)i);
    }
}

vv_code vv_log_list_make(vv_log_list *l, vv_query *q, const vv_profile *p, vv_error *err)
{
    vv_code rc = read_call(q, p, &l->filter, err);
    if (rc == VV_OK)
        rc = read_thread(q, p, &l->filter, err);
    if (rc == VV_OK)
        rc = vv_page_room(&l->page, err);
    if (rc != VV_OK)
        return rc;
    gather(l, p->fold);
    vv_page_sort(&l->page, q, "logs");
    return VV_OK;
}

void vv_log_list_done(vv_log_list *l)
{
    vv_page_done(&l->page);
}
