/* Lists of single calls on folds made by hand: large ones, and such as no honest store holds. */
#include "config.h"

#include <stdlib.h>

#include "tests/views/folds.h"
#include "views/errors.h"
#include "views/logs.h"
#include "views/spans.h"
#include "views/threads.h"

enum { MANY = 100000 };

static vv_look look;
static const vv_store no_store;

/* A fold of n spans in one thread, all of one context; the caller may change them. */
static test_fold fold_of(size_t n)
{
    test_fold t = test_fold_new(4);
    test_counters(test_context(&t, 1, -1, VV_EDGE_ROOT, 7), n, 10, 0, 0);
    t.fold->spans = calloc(n ? n : 1, sizeof *t.fold->spans);
    ck_assert_ptr_nonnull(t.fold->spans);
    vv_thread_ref thread = t.fold->root;
    for (size_t i = 0; i < n; i++) {
        vv_fold_span *s = &t.fold->spans[i];
        s->call = vv_call_ref_make(&thread, i + 1);
        s->has_start = s->has_end = true;
        s->start = (vv_span_start){.call = s->call, .thread = thread, .context = {.key = test_key(1)},
                                   .function_id = 7, .reasons = 1, .started_ns = i};
        s->end = (vv_span_end){.call = s->call, .ended_ns = i + 1, .inclusive_ns = 1};
        ck_assert_uint_eq(vv_map_put(&t.fold->span_map, s->call.b, NULL), i);
    }
    t.fold->span_count = n;
    return t;
}

typedef struct {
    vv_param params[4];
    size_t count;
} parameters;

static void with(parameters *p, const char *name, const char *value)
{
    p->params[p->count++] = (vv_param){vv_cstr(name), vv_cstr(value)};
}

static vv_query query_of(const parameters *p)
{
    look = (vv_look){.store = &no_store};
    return (vv_query){.look = &look, .params = p->params, .param_count = p->count};
}

static int wanted_order(const void *a, const void *b, void *spans)
{
    const vv_fold_span *x = (const vv_fold_span *)spans + *(const uint32_t *)a,
                       *y = (const vv_fold_span *)spans + *(const uint32_t *)b;
    if (x->has_end != y->has_end)
        return x->has_end ? -1 : 1;
    if (x->has_end && x->end.inclusive_ns != y->end.inclusive_ns)
        return x->end.inclusive_ns > y->end.inclusive_ns ? -1 : 1;
    if (x->start.started_ns != y->start.started_ns)
        return x->start.started_ns > y->start.started_ns ? 1 : -1;
    return memcmp(x->call.b, y->call.b, sizeof x->call.b);
}

/* Many equal durations and starts: the pages still name every span once, in one order. */
START_TEST(pages_of_many_are_whole_and_ordered)
{
    test_fold t = fold_of(MANY);
    test_rng g = test_seeded("pages");
    uint32_t *order = malloc(MANY * sizeof *order);
    ck_assert_ptr_nonnull(order);
    for (uint32_t i = 0; i < MANY; i++) {
        vv_fold_span *s = &t.fold->spans[i];
        s->start.started_ns = test_random(&g) % 50;
        s->has_end = test_random(&g) % 10 != 0;
        s->end.inclusive_ns = test_random(&g) % 20;
        order[i] = i;
    }
    qsort_r(order, MANY, sizeof *order, wanted_order, t.fold->spans);
    vv_profile *p = test_profile(&t);
    char cursor[VV_CURSOR_TEXT] = "";
    size_t at = 0, pages = 0;
    do {
        parameters q = {.count = 0};
        vv_span_list l;
        vv_error err = {0};
        with(&q, "order", "-duration");
        with(&q, "limit", "1000");
        if (pages)
            with(&q, "cursor", cursor);
        vv_query query = query_of(&q);
        ck_assert_msg(vv_span_list_read(&l, &query, &err) == VV_OK, "%s", err.msg);
        ck_assert_msg(vv_span_list_make(&l, &query, p, &err) == VV_OK, "%s", err.msg);
        ck_assert_uint_eq(l.population.matched, MANY);
        ck_assert_uint_le(l.page.count, 1000);
        for (size_t i = 0; i < l.page.count; i++)
            ck_assert_uint_eq(l.page.items[i].row, order[at++]);
        memcpy(cursor, l.page.next, sizeof cursor);
        pages++;
        bool more = l.page.more;
        vv_span_list_done(&l);
        if (!more)
            break;
    } while (pages < 1000);
    ck_assert_uint_eq(at, MANY);
    ck_assert_uint_eq(pages, MANY / 1000);
    free(order);
    vv_profile_free(p);
}
END_TEST

/* Callers in a circle, and one that is its own: each is told once, and the chain is not called whole. */
START_TEST(callers_in_a_circle)
{
    test_fold t = fold_of(4);
    for (size_t i = 0; i < 3; i++) {
        t.fold->spans[i].start.has_parent = true;
        t.fold->spans[i].start.parent = t.fold->spans[(i + 1) % 3].call;
    }
    t.fold->spans[3].start.has_parent = true;
    t.fold->spans[3].start.parent = t.fold->spans[3].call;
    vv_profile *p = test_profile(&t);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t *parents;
        size_t n;
        bool complete;
        vv_error err = {0};
        ck_assert(vv_span_parents(p->fold, i, &parents, &n, &complete, &err) == VV_OK);
        ck_assert_uint_le(n, 4);
        ck_assert(!complete);
        free(parents);
    }
    vv_profile_free(p);
}
END_TEST

/* A chain of callers, and of contexts, as deep as there are spans: no recursion, and not cut. */
START_TEST(deep_chains)
{
    test_fold t = test_fold_new(MANY);
    for (uint32_t i = 0; i < MANY; i++)
        test_counters(test_context(&t, i, (int64_t)i - 1, i ? VV_EDGE_CALL : VV_EDGE_ROOT, i), 1, 1, 0, 0);
    vv_error_capture c = {.context = {.key = test_key(MANY - 1)}, .function_id = MANY - 1};
    t.fold->errors = malloc(sizeof *t.fold->errors);
    ck_assert_ptr_nonnull(t.fold->errors);
    t.fold->errors[0] = c;
    t.fold->error_count = 1;
    ck_assert_uint_eq(vv_map_put(&t.fold->error_map, c.id.b, NULL), 0);
    vv_profile *p = test_profile(&t);
    static const vv_execution execution = {.status = VV_EXEC_SUCCEEDED};
    vv_digest digest = {.known = true};
    const vv_found found = {.execution = &execution};
    const vv_loaded loaded = {&digest, p};
    vv_error_list l;
    vv_error err = {0};
    const parameters none = {.count = 0};
    vv_query query = query_of(&none);
    ck_assert_msg(vv_error_list_read(&l, &query, &err) == VV_OK, "%s", err.msg);
    ck_assert_msg(vv_error_list_make(&l, &query, &found, &loaded, &err) == VV_OK, "%s", err.msg);
    ck_assert_uint_eq(l.page.count, 1);
    vv_stack stack = vv_error_stack(&l, p, &c);
    ck_assert_uint_eq(stack.frames, MANY);
    ck_assert(stack.complete);
    vv_stack_frame *frames = malloc(MANY * sizeof *frames);
    ck_assert_ptr_nonnull(frames);
    vv_stack_frames(p, &c, &stack, MANY, frames);
    for (uint32_t i = 0; i < MANY; i++)
        ck_assert_uint_eq(frames[i].function_id, i);
    vv_stack_frames(p, &c, &stack, 2, frames);
    ck_assert_uint_eq(frames[0].function_id, MANY - 2);
    free(frames);
    vv_error_list_done(&l);
    vv_profile_free(p);
}
END_TEST

/* One error that ended every call: found in one pass, in the order of the calls. */
START_TEST(an_error_that_ends_all)
{
    test_fold t = fold_of(MANY);
    vv_error_capture c = {.context = {.key = test_key(1)}, .function_id = 7};
    t.fold->errors = malloc(sizeof *t.fold->errors);
    ck_assert_ptr_nonnull(t.fold->errors);
    t.fold->errors[0] = c;
    t.fold->error_count = 1;
    ck_assert_uint_eq(vv_map_put(&t.fold->error_map, c.id.b, NULL), 0);
    for (size_t i = 0; i < MANY; i++) {
        t.fold->spans[i].has_terminal = true;
        t.fold->spans[i].terminal = (vv_terminal_error){.capture = c.id};
    }
    t.fold->spans[5].terminal = (vv_terminal_error){.lost = true, .loss = 3};
    t.fold->spans[6].terminal.capture.b[39] = 9;
    vv_profile *p = test_profile(&t);
    static const vv_execution execution = {.status = VV_EXEC_SUCCEEDED, .has_end = true};
    vv_digest digest = {.known = true};
    const vv_found found = {.execution = &execution};
    const vv_loaded loaded = {&digest, p};
    vv_error_list l;
    vv_error err = {0};
    const parameters none = {.count = 0};
    vv_query query = query_of(&none);
    ck_assert_msg(vv_error_list_read(&l, &query, &err) == VV_OK, "%s", err.msg);
    ck_assert_msg(vv_error_list_make(&l, &query, &found, &loaded, &err) == VV_OK, "%s", err.msg);
    size_t n;
    const vv_terminal *ended = vv_error_terminals(&l, 0, &n);
    ck_assert_uint_eq(n, MANY - 2);
    for (size_t i = 1; i < n; i++)
        ck_assert_int_lt(memcmp(p->fold->spans[ended[i - 1].span].call.b, p->fold->spans[ended[i].span].call.b, 40), 0);
    ck_assert_uint_eq(l.population.links_lost, 1);
    ck_assert_uint_eq(l.population.links_unresolved, 1);
    ck_assert_str_eq(vv_span_error(&execution, p->fold, &p->fold->spans[5]).word, "lost:evidence_queue_full");
    ck_assert_str_eq(vv_span_error(&execution, p->fold, &p->fold->spans[6]).word, "unresolved");
    (void)vv_error_terminals(&l, 1, &n);
    ck_assert_uint_eq(n, 0);
    vv_error_list_done(&l);
    vv_profile_free(p);
}
END_TEST

/* What a failed fold holds is not to be shown. */
START_TEST(a_failed_fold_shows_nothing)
{
    test_fold t = fold_of(3);
    t.fold->failed = true;
    vv_profile *p = test_profile(&t);
    static const vv_execution execution = {.status = VV_EXEC_FAILED, .has_end = true};
    vv_digest digest = {.known = false};
    const vv_found found = {.execution = &execution};
    const vv_loaded loaded = {&digest, p};
    vv_span_list spans;
    vv_error_list errors;
    vv_lane_list lanes;
    vv_error err = {0};
    const parameters none = {.count = 0};
    vv_query query = query_of(&none);
    ck_assert(vv_span_list_read(&spans, &query, &err) == VV_OK && vv_span_list_make(&spans, &query, p, &err) == VV_OK);
    ck_assert(vv_error_list_read(&errors, &query, &err) == VV_OK);
    ck_assert(vv_error_list_make(&errors, &query, &found, &loaded, &err) == VV_OK);
    ck_assert(vv_lane_list_read(&lanes, &query, &err) == VV_OK && vv_lane_list_make(&lanes, &query, p, &err) == VV_OK);
    ck_assert_uint_eq(spans.page.count + errors.page.count + lanes.page.count, 0);
    ck_assert(!spans.population.known && !errors.population.known && !lanes.known);
    query.sub = vv_cstr("0.1");
    uint32_t at;
    ck_assert(vv_span_find(&query, p, &at, &err) == VV_ERR_NOTFOUND);
    vv_span_list_done(&spans);
    vv_error_list_done(&errors);
    vv_lane_list_done(&lanes);
    vv_profile_free(p);
}
END_TEST

/* Threads that only calls and errors name are lanes; whose end is missing has none. */
START_TEST(lanes_without_records)
{
    test_fold t = fold_of(2);
    t.fold->spans[1].call.b[31] = 9;
    t.fold->spans[1].has_end = false;
    vv_profile *p = test_profile(&t);
    vv_lane_list l;
    vv_error err = {0};
    const parameters none = {.count = 0};
    vv_query query = query_of(&none);
    ck_assert(vv_lane_list_read(&l, &query, &err) == VV_OK && vv_lane_list_make(&l, &query, p, &err) == VV_OK);
    ck_assert_uint_eq(l.lanes, 2);
    ck_assert_uint_eq(l.started + l.ended, 0);
    for (size_t i = 0; i < 2; i++) {
        const vv_lane *lane = &l.all[l.page.items[i].row];
        ck_assert_ptr_null(lane->record);
        ck_assert_uint_eq(lane->issues, 1u << 3);
        ck_assert_uint_eq(lane->spans, 1);
        ck_assert_uint_eq(vv_thread_number(&lane->thread), i ? 9 : 0);
    }
    vv_lane_list_done(&l);
    vv_profile_free(p);
}
END_TEST

/* Where one function's calls are not told apart from others', no number of them is given. */
START_TEST(calls_of_a_function_that_are_not_told)
{
    enum { ALL, OTHER, UNDEFINED, OVERFLOW, CASES };
    for (int i = 0; i < CASES; i++) {
        test_fold t = fold_of(1);
        if (i != ALL)
            test_counters(test_context(&t, 2, 1, VV_EDGE_CALL, 8), 3, 10, 0, 0);
        if (i == UNDEFINED)
            t.fold->contexts[1].defined = false;
        t.fold->overflow_present[0][VV_EDGE_CALL] = i == OVERFLOW;
        vv_profile *p = test_profile(&t);
        parameters q = {.count = 0};
        vv_span_list l;
        vv_error err = {0};
        with(&q, "function", "#7");
        vv_query query = query_of(&q);
        ck_assert(vv_span_list_read(&l, &query, &err) == VV_OK && vv_span_list_make(&l, &query, p, &err) == VV_OK);
        ck_assert_int_eq(l.population.calls_known, i == ALL || i == OTHER);
        ck_assert_uint_eq(l.population.retained, 1);
        if (l.population.calls_known)
            ck_assert_uint_eq((uint64_t)l.population.calls, 1);
        vv_span_list_done(&l);
        vv_profile_free(p);
    }
}
END_TEST

static int wanted_log(const void *a, const void *b, void *logs)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const uint64_t s = ((const vv_log_event *)logs)[x].timestamp_ms, t = ((const vv_log_event *)logs)[y].timestamp_ms;
    return s != t ? (s > t) - (s < t) : (x > y) - (x < y);
}

/* All log events, page by page, against an order of their numbers. */
static void check_log_pages(vv_profile *p, const char *order, const uint32_t *wanted, size_t n)
{
    char cursor[VV_CURSOR_TEXT] = "";
    size_t at = 0;
    for (bool more = true; more;) {
        parameters q = {.count = 0};
        vv_log_list l;
        vv_error err = {0};
        with(&q, "order", order);
        with(&q, "limit", "999");
        if (at)
            with(&q, "cursor", cursor);
        vv_query query = query_of(&q);
        ck_assert_msg(vv_log_list_read(&l, &query, &err) == VV_OK, "%s", err.msg);
        ck_assert_msg(vv_log_list_make(&l, &query, p, &err) == VV_OK, "%s", err.msg);
        ck_assert_uint_eq(l.population.logs, n);
        ck_assert_uint_eq(l.population.matched, n);
        ck_assert_uint_eq(l.population.level_count, VV_LOG_LEVELS);
        uint64_t counted = l.population.other_levels;
        for (size_t i = 0; i < l.population.level_count; i++)
            counted += l.population.levels[i].logs;
        ck_assert_uint_eq(counted, n);
        for (size_t i = 0; i < l.page.count; i++)
            ck_assert_uint_eq(l.page.items[i].row, wanted[at++]);
        memcpy(cursor, l.page.next, sizeof cursor);
        more = l.page.more;
        vv_log_list_done(&l);
    }
    ck_assert_uint_eq(at, n);
}

START_TEST(logs_of_any_time)
{
    enum { LOGS = 5000, LEVELS = 30 };
    static const uint64_t times[] = {0, 1, 18446744073709, 18446744073710, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
    test_fold t = fold_of(0);
    test_rng g = test_seeded("logs");
    char names[LEVELS][8];
    uint32_t *order = malloc(LOGS * sizeof *order);
    t.fold->logs = calloc(LOGS, sizeof *t.fold->logs);
    t.fold->log_count = LOGS;
    ck_assert(order && t.fold->logs);
    for (uint32_t i = 0; i < LOGS; i++) {
        vv_log_event *e = &t.fold->logs[i];
        size_t level = test_below(&g, LEVELS);
        snprintf(names[level], sizeof names[level], "l%zu", level);
        e->timestamp_ms = times[test_below(&g, VV_ARRAY_LEN(times))];
        e->level = (vv_opt_str){level != 0, vv_cstr(names[level])};
        e->context.lost = e->data.lost = true;
        order[i] = i;
    }
    vv_profile *p = test_profile(&t);
    check_log_pages(p, "recorded", order, LOGS);
    qsort_r(order, LOGS, sizeof *order, wanted_log, t.fold->logs);
    check_log_pages(p, "time", order, LOGS);
    uint64_t ns;
    ck_assert(vv_log_time(&(vv_log_event){.timestamp_ms = times[2]}, &ns) && ns == times[2] * 1000000);
    ck_assert(!vv_log_time(&(vv_log_event){.timestamp_ms = times[3]}, &ns));
    free(order);
    vv_profile_free(p);
}
END_TEST

int main(void)
{
    TCase *t = test_case("calls", 60);
    tcase_add_test(t, pages_of_many_are_whole_and_ordered);
    tcase_add_test(t, callers_in_a_circle);
    tcase_add_test(t, deep_chains);
    tcase_add_test(t, an_error_that_ends_all);
    tcase_add_test(t, a_failed_fold_shows_nothing);
    tcase_add_test(t, lanes_without_records);
    tcase_add_test(t, calls_of_a_function_that_are_not_told);
    tcase_add_test(t, logs_of_any_time);
    return test_run();
}
