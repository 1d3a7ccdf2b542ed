/* A budget: what is taken, refused, given back, and made room for; and that many threads never exceed it. */
#include "config.h"

#include "base/budget.h"

#include <pthread.h>

#include "tests/testing.h"

START_TEST(takes_up_to_the_sum)
{
    vv_budget b;
    vv_budget_init(&b, 100);
    ck_assert(vv_budget_take(&b, 60));
    ck_assert(!vv_budget_take(&b, 41));
    ck_assert(vv_budget_take(&b, 40));
    ck_assert_uint_eq(vv_budget_left(&b), 0);
    ck_assert(!vv_budget_take(&b, 1));
    ck_assert(vv_budget_take(&b, 0));
    vv_budget_give(&b, 60);
    ck_assert_uint_eq(vv_budget_left(&b), 60);
    ck_assert(!vv_budget_take(&b, SIZE_MAX));
    ck_assert_uint_eq(b.used, 40);
}
END_TEST

typedef struct {
    vv_budget b;
    size_t has, asked;
} giver;

static bool give_some(void *cls, size_t n)
{
    giver *g = cls;
    g->asked = n;
    size_t part = g->has < 30 ? g->has : 30;
    g->has -= part;
    vv_budget_give(&g->b, part);
    return part > 0;
}

START_TEST(asks_for_room_until_it_is_enough)
{
    giver g = {.has = 90};
    vv_budget_init(&g.b, 100);
    g.b.release = give_some;
    g.b.cls = &g;
    ck_assert(vv_budget_take(&g.b, 100));
    ck_assert(vv_budget_take(&g.b, 50)); /* 30 and 30 are given back */
    ck_assert_uint_eq(g.asked, 50);
    ck_assert_uint_eq(g.has, 30);
    ck_assert_uint_eq(g.b.used, 90);
    ck_assert(!vv_budget_take(&g.b, 41)); /* the last 30 are not enough */
    ck_assert_uint_eq(g.b.used, 60);
    ck_assert(!vv_budget_take(&g.b, 101)); /* never to be had: nobody is asked */
    ck_assert_uint_eq(g.asked, 41);
}
END_TEST

static void *repay_soon(void *b)
{
    static const struct timespec soon = {.tv_nsec = 100000000};
    nanosleep(&soon, NULL);
    vv_budget_repay(b, 60);
    return NULL;
}

START_TEST(waits_for_loans_of_others)
{
    vv_budget b;
    vv_budget_init(&b, 100);
    ck_assert(vv_budget_borrow(&b, 60, 0));
    ck_assert(!vv_budget_borrow(&b, 60, 60)); /* at once: nobody else has any */
    ck_assert(!vv_budget_borrow(&b, 101, 0)); /* nor does it help to wait for this */
    pthread_t t;
    ck_assert(pthread_create(&t, NULL, repay_soon, &b) == 0);
    ck_assert(vv_budget_borrow(&b, 70, 0));
    pthread_join(t, NULL);
    ck_assert_uint_eq(b.used, 70);
    ck_assert_uint_eq(b.lent, 70);
    vv_budget_repay(&b, 70);
    ck_assert(vv_budget_take(&b, 60));
    ck_assert(!vv_budget_borrow(&b, 60, 0)); /* what is no loan may stay for ever */
    ck_assert_uint_eq(b.lent, 0);
}
END_TEST

START_TEST(an_exceeded_sum_refuses)
{
    vv_budget b;
    vv_budget_init(&b, 10);
    vv_budget_force(&b, 25);
    ck_assert_uint_eq(vv_budget_left(&b), 0);
    ck_assert(!vv_budget_take(&b, 0) && !vv_budget_take(&b, 1));
    vv_budget_give(&b, 20);
    ck_assert(vv_budget_take(&b, 5));
}
END_TEST

enum { THREADS = 4, TURNS = 20000, MAX = 1000 };

static void *take_and_give(void *cls)
{
    vv_budget *b = cls;
    unsigned seed = (unsigned)(uintptr_t)&seed;
    for (int i = 0; i < TURNS; i++) {
        size_t n = (size_t)rand_r(&seed) % 600;
        if (!vv_budget_take(b, n))
            continue;
        if (b->used > MAX)
            return b;
        vv_budget_give(b, n);
    }
    return NULL;
}

START_TEST(threads_never_exceed_it)
{
    vv_budget b;
    pthread_t threads[THREADS];
    vv_budget_init(&b, MAX);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_and_give, &b), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    ck_assert_uint_eq(b.used, 0);
}
END_TEST

int main(void)
{
    TCase *tc = test_case("budget", 60);
    tcase_add_test(tc, takes_up_to_the_sum);
    tcase_add_test(tc, asks_for_room_until_it_is_enough);
    tcase_add_test(tc, waits_for_loans_of_others);
    tcase_add_test(tc, an_exceeded_sum_refuses);
    tcase_add_test(tc, threads_never_exceed_it);
    return test_run();
}
