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

static inline varve_session *passive(const test_store *s, uint64_t memory, const vv_wstore_hooks *hooks)
{
    uint64_t interval = 3600000;
    vv_session_test test = {.no_consumer = true};
    if (hooks)
        test.hooks = *hooks;
    varve_session *v = vv_session_open(&(varve_options){.struct_size = sizeof(varve_options), .store_root = s->root,
                                                        .minimum_free_bytes = 1, .memory_bytes = memory,
                                                        .publish_interval_ms = &interval}, &test);
    ck_assert(vv_session_active(v));
    return v;
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
