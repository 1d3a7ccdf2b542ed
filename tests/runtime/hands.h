/*
 * OS threads of a test, each of which does one thing at a time, when it is told to. The first is the test's own:
 * nothing is started for it, and what it does is called.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include "tests/testing.h"

typedef struct {
    pthread_t id;
    sem_t go, done;
    void (*job)(void); /* NULL ends it */
} hand;

static inline void *hand_work(void *arg)
{
    hand *h = arg;
    for (;;) {
        sem_wait(&h->go);
        if (!h->job)
            return NULL;
        h->job();
        sem_post(&h->done);
    }
}

static inline void hand_start(hand *h)
{
    sem_init(&h->go, 0, 0);
    sem_init(&h->done, 0, 0);
    ck_assert_int_eq(pthread_create(&h->id, NULL, hand_work, h), 0);
}

static inline void hand_stop(hand *h)
{
    h->job = NULL;
    sem_post(&h->go);
    pthread_join(h->id, NULL);
    sem_destroy(&h->go);
    sem_destroy(&h->done);
}

/* Has the job done by a hand that is not the first, and waits for it. */
static inline void hand_do(hand *h, void (*job)(void))
{
    h->job = job;
    sem_post(&h->go);
    sem_wait(&h->done);
}

/* All n but the first. */
static inline void hands_start(hand *hands, unsigned n)
{
    for (unsigned i = 1; i < n; i++)
        hand_start(&hands[i]);
}

static inline void hands_stop(hand *hands, unsigned n)
{
    for (unsigned i = 1; i < n; i++)
        hand_stop(&hands[i]);
}
