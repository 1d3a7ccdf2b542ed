/*
 * Every interleaving of a few actors, by enumeration of all states that can be reached.
 *
 * A model is a small state of plain bytes and a step function: the next atomic operation of one actor. All orders of
 * steps are walked, each state once; the check holds in every state, the end's where nobody can go on. A model that is
 * known to be wrong must be found wrong, or the check says nothing. Operations are sequentially consistent here; the
 * orderings themselves are ThreadSanitizer's to look at, in the stress tests.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/testing.h"

enum { MODEL_BYTES = 64, MODEL_STATES_MAX = 1 << 22 };

typedef struct {
    unsigned actors;
    /* state is all zero before. wrong: 0 for the real thing, else which mistake is made. */
    void (*init)(void *state, unsigned wrong);
    /* False: the actor can do nothing, now or ever; the state is as it was. */
    bool (*step)(void *state, unsigned actor, unsigned wrong);
    const char *(*check)(const void *state);
    const char *(*check_end)(const void *state);
} model;

typedef struct {
    uint8_t b[MODEL_BYTES];
} model_state;

typedef struct {
    model_state *slots;
    bool *used;
    size_t mask, count;
    model_state *stack;
    size_t depth, cap;
} model_walk;

static inline size_t model_hash(const model_state *s)
{
    uint64_t h = 0xcbf29ce484222325ULL;
    for (unsigned i = 0; i < MODEL_BYTES; i += 8) {
        uint64_t v;
        memcpy(&v, s->b + i, sizeof v);
        h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
        h ^= h >> 29;
    }
    return (size_t)h;
}

/* True: not met before. */
static inline bool model_insert(model_walk *w, const model_state *s)
{
    size_t i = model_hash(s) & w->mask;
    for (; w->used[i]; i = (i + 1) & w->mask)
        if (memcmp(&w->slots[i], s, sizeof *s) == 0)
            return false;
    w->used[i] = true;
    w->slots[i] = *s;
    w->count++;
    ck_assert_uint_lt(w->count, w->mask / 2);
    return true;
}

static inline void model_push(model_walk *w, const model_state *s)
{
    if (w->depth == w->cap) {
        w->cap = w->cap ? w->cap * 2 : 1024;
        w->stack = realloc(w->stack, w->cap * sizeof *w->stack);
        ck_assert_ptr_nonnull(w->stack);
    }
    w->stack[w->depth++] = *s;
}

/* NULL: all is well in each of *ret_states states; else what is not, in the first bad state met. */
static inline const char *model_run(const model *m, unsigned wrong, size_t *ret_states)
{
    model_walk w = {.mask = MODEL_STATES_MAX - 1};
    w.slots = calloc(MODEL_STATES_MAX, sizeof *w.slots);
    w.used = calloc(MODEL_STATES_MAX, sizeof *w.used);
    ck_assert(w.slots && w.used);
    model_state s = {{0}};
    m->init(s.b, wrong);
    model_insert(&w, &s);
    model_push(&w, &s);
    const char *bad = NULL;
    while (w.depth && !bad) {
        s = w.stack[--w.depth];
        bad = m->check(s.b);
        bool over = true;
        for (unsigned a = 0; a < m->actors && !bad; a++) {
            model_state next = s;
            if (!m->step(next.b, a, wrong))
                continue;
            over = false;
            if (model_insert(&w, &next))
                model_push(&w, &next);
        }
        if (over && !bad)
            bad = m->check_end(s.b);
    }
    *ret_states = w.count;
    free(w.slots);
    free(w.used);
    free(w.stack);
    return bad;
}

/* The real thing holds, and each mistake is found. */
static inline void model_assert(const model *m, unsigned mistakes, size_t at_least)
{
    size_t states;
    const char *bad = model_run(m, 0, &states);
    ck_assert_msg(!bad, "after %zu states: %s", states, bad);
    ck_assert_msg(states >= at_least, "only %zu states", states);
    for (unsigned i = 1; i <= mistakes; i++)
        ck_assert_msg(model_run(m, i, &states), "mistake %u was not found", i);
}
