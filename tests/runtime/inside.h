/* A session without a consumer thread: the test takes its passes, so every order is made on purpose. */
#pragma once

#include "runtime/session.h"
#include "tests/runtime/host.h"

/* A sanitizer's own memory and system calls are not the library's. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

/* Of this process, in bytes. */
static inline uint64_t resident(void)
{
    unsigned long total, pages;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%lu %lu", &total, &pages), 2);
    fclose(f);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static inline varve_session *session_tested(const test_store *s, uint64_t interval_ms, uint64_t memory,
                                            const vv_session_test *test)
{
    varve_options o = options_in(s, &interval_ms);
    o.memory_bytes = memory;
    varve_session *v = vv_session_open(&o, test);
    ck_assert(vv_session_active(v));
    return v;
}

/* memory: of the profiler, in bytes, 0 for its default; hooks may be NULL. */
static inline varve_session *passive(const test_store *s, uint64_t memory, const vv_wstore_hooks *hooks)
{
    vv_session_test test = {.no_consumer = true};
    if (hooks)
        test.hooks = *hooks;
    return session_tested(s, 3600000, memory, &test);
}

/* Of the publications that come to a step the first `after` pass, the next `times` fail with this errno. */
typedef struct {
    vv_step at;
    int os;
    unsigned after, times;
} bad_disk;

enum { ALWAYS = UINT_MAX };

static inline int bad_disk_step(void *ctx, vv_step at)
{
    bad_disk *d = ctx;
    if (at != d->at || !d->times)
        return 0;
    if (d->after) {
        d->after--;
        return 0;
    }
    d->times -= d->times != ALWAYS;
    return d->os;
}

/* A rig whose consumer is the test; d: NULL for a disk without faults. */
static inline rig rig_stepped(test_store store, uint64_t memory, bad_disk *d)
{
    vv_wstore_hooks hooks = {.step = bad_disk_step, .ctx = d};
    return rig_of(store, passive(&store, memory, d ? &hooks : NULL));
}

static inline void settle(varve_session *v)
{
    for (unsigned i = 0; i < 10; i++)
        vv_consumer_pass(v);
}

static inline bool publish(varve_session *v)
{
    settle(v);
    return vv_writer_cycle(&v->writer);
}

/* Of the accounts whose names begin so. */
static inline uint64_t lost_of(const vv_accounting *a, const char *prefix)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        if (strncmp(vv_account_name((vv_account)i), prefix, strlen(prefix)) == 0)
            sum += a->v[i];
    return sum;
}

/* Each account of what was tried is what was folded and what was lost, and a reader found just what was folded. */
static inline void assert_accounts(const vv_accounting *a, const vv_counters *found)
{
    ck_assert_uint_eq(a->v[VV_ACCOUNT_AWAIT_STARTED], a->v[VV_ACCOUNT_AWAIT_FOLDED] + lost_of(a, "await_lost."));
    ck_assert_uint_eq(a->v[VV_ACCOUNT_CALLS_ATTEMPTED],
                      a->v[VV_ACCOUNT_CALLS_FOLDED] + lost_of(a, "invocations_lost."));
    static const struct {
        vv_account all, committed;
        const char *lost;
    } parts[] = {
        {VV_ACCOUNT_SPANS_SELECTED, VV_ACCOUNT_STARTS_COMMITTED, "span_start_lost."},
        {VV_ACCOUNT_STARTS_COMMITTED, VV_ACCOUNT_ENDS_COMMITTED, "span_end_lost."},
        {VV_ACCOUNT_IDS_OBSERVED, VV_ACCOUNT_IDS_COMMITTED, "runtime_id_annotation_lost."},
        {VV_ACCOUNT_VALUES_APPLICABLE, VV_ACCOUNT_VALUES_AVAILABLE, "value_lost."},
        {VV_ACCOUNT_ERRORS_APPLICABLE, VV_ACCOUNT_ERRORS_COMMITTED, "error_capture_lost."},
        {VV_ACCOUNT_ERRORS_COMMITTED, VV_ACCOUNT_ERROR_VALUES_AVAILABLE, "error_value_lost."},
        {VV_ACCOUNT_LINKS_OBSERVED, VV_ACCOUNT_LINKS_COMMITTED, "terminal_error_link_lost."},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(parts); i++)
        ck_assert_msg(a->v[parts[i].all] == a->v[parts[i].committed] + lost_of(a, parts[i].lost),
                      "%s: %" PRIu64 " of %" PRIu64 ", and %" PRIu64 " lost", vv_account_name(parts[i].all),
                      a->v[parts[i].committed], a->v[parts[i].all], lost_of(a, parts[i].lost));
    ck_assert_uint_eq(found->started, a->v[VV_ACCOUNT_CALLS_FOLDED]);
    ck_assert_uint_eq(found->await_count, a->v[VV_ACCOUNT_AWAIT_FOLDED]);
}
