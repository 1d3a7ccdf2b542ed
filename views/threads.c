#include "config.h"

#include "views/threads.h"

#include <stdlib.h>

#include "base/grow.h"

enum { KEY = 1 + 8 + 32, NO_RECORD = 3 };

const char *const vv_lane_issue_words[] = {"missing_start", "missing_parent", "root_mismatch", "no_record"};

typedef struct {
    vv_map map; /* thread -> index */
    vv_lane *all;
    size_t cap;
} gathering;

/* The lane of a thread, found or new; NULL without memory. */
static vv_lane *lane_of(gathering *g, const vv_thread_ref *t)
{
    bool fresh;
    uint32_t at = vv_map_put(&g->map, t->b, &fresh);
    if (at == VV_MAP_NONE)
        return NULL;
    if (!vv_grow(&g->all, &g->cap, at, sizeof *g->all))
        return NULL;
    if (fresh)
        g->all[at] = (vv_lane){.thread = *t, .issues = 1u << NO_RECORD};
    return &g->all[at];
}

static void extend(vv_lane *l, uint64_t ns)
{
    if (!l->has_first || ns < l->first_ns)
        l->first_ns = ns;
    if (!l->has_first || ns > l->last_ns)
        l->last_ns = ns;
    l->has_first = true;
}

static bool gather_threads(gathering *g, const vv_fold *f)
{
    for (size_t i = 0; i < f->thread_count; i++) {
        vv_lane *l = lane_of(g, &f->threads[i].thread);
        if (!l)
            return false;
        l->record = &f->threads[i];
        l->issues = 0;
    }
    for (size_t i = 0; i < f->thread_issue_count; i++) {
        vv_lane *l = lane_of(g, &f->thread_issues[i].thread);
        if (!l)
            return false;
        l->issues |= (uint8_t)(1u << f->thread_issues[i].kind);
    }
    return true;
}

static bool gather_calls(gathering *g, const vv_fold *f)
{
    for (size_t i = 0; i < f->span_count; i++) {
        const vv_fold_span *s = &f->spans[i];
        vv_thread_ref t = vv_call_thread(&s->call);
        vv_lane *l = lane_of(g, &t);
        if (!l)
            return false;
        l->spans++;
        if (s->has_start)
            extend(l, s->start.started_ns);
        if (s->has_end)
            extend(l, s->end.ended_ns);
    }
    for (size_t i = 0; i < f->error_count; i++) {
        vv_thread_ref t = vv_capture_thread(&f->errors[i].id);
        vv_lane *l = lane_of(g, &t);
        if (!l)
            return false;
        l->errors++;
    }
    return true;
}

static void put_key(uint8_t key[KEY], const vv_lane *l)
{
    bool known = l->record && l->record->has_start;
    key[0] = !known;
    vv_put64(key + 1, known ? l->record->start.started_ns : 0);
    memcpy(key + 9, l->thread.b, sizeof l->thread.b);
}

static void offer_all(vv_lane_list *l)
{
    for (uint64_t i = 0; i < l->lanes; i++) {
        uint8_t key[KEY];
        const vv_fold_thread *r = l->all[i].record;
        l->started += r && r->has_start;
        l->ended += r && r->has_end;
        put_key(key, &l->all[i]);
        vv_page_offer(&l->page, key, (uint32_t)i);
    }
}

vv_code vv_lane_list_read(vv_lane_list *ret, vv_query *q, vv_error *err)
{
    static const char *const names[] = {"limit", "cursor", NULL};
    *ret = (vv_lane_list){.known = false};
    vv_code rc = vv_query_check(q, names, err);
    return rc == VV_OK ? vv_page_read(&ret->page, q, "threads", KEY, err) : rc;
}

vv_code vv_lane_list_make(vv_lane_list *l, vv_query *q, const vv_profile *p, vv_error *err)
{
    vv_code rc = vv_page_room(&l->page, err);
    if (rc != VV_OK)
        return rc;
    l->known = vv_counts_known(p->fold);
    if (l->known) {
        gathering g = {.all = NULL};
        vv_map_init(&g.map, sizeof(vv_thread_ref));
        bool good = gather_threads(&g, p->fold) && gather_calls(&g, p->fold);
        l->all = g.all;
        l->lanes = g.map.count;
        vv_map_done(&g.map);
        if (!good)
            return vv_fail(err, VV_ERR_NOMEM, "no memory for the threads of an execution");
        offer_all(l);
    }
    vv_page_sort(&l->page, q, "threads");
    return VV_OK;
}

void vv_lane_list_done(vv_lane_list *l)
{
    vv_page_done(&l->page);
    free(l->all);
    l->all = NULL;
}
