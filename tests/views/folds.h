/* Folds made by hand, for tests of the views. */
#pragma once

#include "views/flame.h"
#include "views/functions.h"

#include "tests/testing.h"

typedef struct {
    vv_fold *fold;
    uint32_t cap;
} test_fold;

static inline test_fold test_fold_new(uint32_t cap)
{
    test_fold t = {calloc(1, sizeof *t.fold), cap};
    ck_assert_ptr_nonnull(t.fold);
    vv_map_init(&t.fold->context_map, 32);
    vv_map_init(&t.fold->thread_map, 32);
    vv_map_init(&t.fold->span_map, 40);
    vv_map_init(&t.fold->error_map, 40);
    t.fold->texts = vv_arena_init(1 << 20);
    t.fold->contexts = calloc(cap, sizeof *t.fold->contexts);
    ck_assert_ptr_nonnull(t.fold->contexts);
    return t;
}

/* The n-th key: its number is all that counts, as tuples are not hashed here. */
static inline vv_context_key test_key(uint32_t n)
{
    vv_context_key k = {{0}};
    vv_put32(k.b, n);
    return k;
}

/* Adds the context with key n below parent (-1 = none). Returns it for the counters. */
static inline vv_fold_context *test_context(test_fold *t, uint32_t n, int64_t parent, vv_edge edge, uint32_t function)
{
    vv_context_key key = test_key(n);
    uint32_t at = vv_map_put(&t->fold->context_map, key.b, NULL);
    ck_assert_uint_lt(at, t->cap);
    vv_fold_context *c = &t->fold->contexts[at];
    *c = (vv_fold_context){.key = key, .defined = true, .parent = VV_MAP_NONE};
    c->tuple = (vv_tuple){.has_parent = parent >= 0, .edge = (uint8_t)edge, .function_id = function};
    if (parent >= 0)
        c->tuple.parent = test_key((uint32_t)parent);
    t->fold->context_count = at + 1;
    return c;
}

/* One call that has ended: its own time, its await, and the inclusive time of its children. */
static inline void test_counters(vv_fold_context *c, uint64_t calls, vv_u128 own, vv_u128 await_ns, vv_u128 children)
{
    c->counters = (vv_counters){.started = calls, .ok = calls, .inclusive_ns = own + await_ns + children,
                                .direct_child_ns = children, .await_ns = await_ns};
}

static inline vv_profile *test_profile(test_fold *t)
{
    static const vv_store store;
    static const vv_stream stream;
    vv_execution execution = {.status = VV_EXEC_SUCCEEDED};
    vv_profile *p;
    vv_error err = {0};
    for (size_t i = 0; i < t->fold->context_count; i++) {
        vv_fold_context *c = &t->fold->contexts[i];
        if (c->tuple.has_parent)
            c->parent = vv_fold_find_context(t->fold, &c->tuple.parent);
    }
    ck_assert_msg(vv_profile_new(&p, t->fold, NULL, &store, &stream, &execution, &err) == VV_OK, "%s", err.msg);
    return p;
}
