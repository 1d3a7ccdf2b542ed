/* The sieves of digests: "no" is certain, "yes" seldom wrong, and full ones say yes. */
#include "config.h"

#include "views/query.h"
#include "views/sieve.h"

#include "tests/testing.h"

START_TEST(holds_what_was_added)
{
    static const size_t sizes[] = {1, 2, 7, 100, 5000, 80000};
    for (size_t k = 0; k < VV_ARRAY_LEN(sizes); k++) {
        vv_sieve s;
        test_rng g = {k};
        vv_sieve_init(&s, sizes[k]);
        for (size_t i = 0; i < sizes[k]; i++)
            vv_sieve_add(&s, test_random(&g));
        g = (test_rng){k};
        for (size_t i = 0; i < sizes[k]; i++)
            ck_assert(vv_sieve_may_hold(&s, test_random(&g)));
        size_t wrong = 0;
        for (size_t i = 0; i < 10000; i++)
            wrong += vv_sieve_may_hold(&s, test_random(&g));
        ck_assert_uint_lt(wrong, 300); /* of 10,000; a few dozen are to be expected */
        ck_assert_uint_le(s.n, VV_SIEVE_BYTES_MAX);
        vv_sieve_done(&s);
    }
}
END_TEST

START_TEST(empty_and_full)
{
    vv_sieve s;
    vv_sieve_init(&s, 0);
    ck_assert(!vv_sieve_may_hold(&s, 7));
    vv_sieve_done(&s);
    vv_sieve_init(&s, SIZE_MAX);
    ck_assert(s.all && !s.p);
    vv_sieve_add(&s, 7);
    ck_assert(vv_sieve_may_hold(&s, 8));
    vv_sieve_done(&s);
}
END_TEST

/* Every part of every text is found, and what the sieve rules out is in none. */
START_TEST(texts)
{
    static const vv_str kept[] = {{"app.Main", 8}, {"", 0}, {"ab", 2}, {"a\0\xff" "b", 4}, {"100%_'\"*", 8},
                                  {"Gr\xc3\xb6\xc3\x9f" "e", 7}};
    static const vv_str parts[] = {{"APP.", 4}, {"main", 4}, {"maim", 4}, {"ab", 2}, {"xy", 2}, {"", 0},
                                   {"\0\xff", 2}, {"a\0\xff" "B", 4}, {"00%", 3}, {"%_'", 3}, {"___", 3},
                                   {"OR 1", 4}, {"\xc3\xb6\xc3", 3}, {"\xc3\x96\xc3", 3}, {"app.main.", 9}};
    vv_sieve_texts t;
    vv_sieve s;
    vv_sieve_texts_init(&t);
    for (size_t i = 0; i < VV_ARRAY_LEN(kept); i++)
        vv_sieve_texts_add(&t, kept[i]);
    vv_sieve_texts_finish(&t, &s);
    for (size_t k = 0; k < VV_ARRAY_LEN(parts); k++) {
        bool found = false;
        for (size_t i = 0; i < VV_ARRAY_LEN(kept); i++)
            found |= vv_text_contains(kept[i], parts[k]);
        ck_assert_msg(!found || vv_sieve_may_contain(&s, parts[k]), "part %zu", k);
    }
    ck_assert(!vv_sieve_may_contain(&s, (vv_str){"nothing like it", 15}));
    vv_sieve_done(&s);
}
END_TEST

START_TEST(too_many_texts)
{
    vv_sieve_texts t;
    vv_sieve s;
    test_rng g = {1};
    vv_sieve_texts_init(&t);
    for (unsigned i = 0; i < 8 * VV_SIEVE_THREES_MAX; i++) {
        uint64_t v = test_random(&g);
        vv_sieve_texts_add(&t, (vv_str){(const char *)&v, sizeof v});
    }
    vv_sieve_texts_finish(&t, &s);
    ck_assert(s.all && !s.p);
    ck_assert(vv_sieve_may_contain(&s, (vv_str){"anything", 8}));
    vv_sieve_done(&s);
}
END_TEST

int main(void)
{
    TCase *c = test_case("sieve", 60);
    tcase_add_test(c, holds_what_was_added);
    tcase_add_test(c, empty_and_full);
    tcase_add_test(c, texts);
    tcase_add_test(c, too_many_texts);
    return test_run();
}
