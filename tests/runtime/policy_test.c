/* Which calls are selected, and for which values. */
#include "config.h"

#include "runtime/policy.h"

#include "format/evidence.h"
#include "tests/testing.h"

#define K VARVE_SWITCH_KEEP
#define Y VARVE_SWITCH_ON
#define N VARVE_SWITCH_OFF

/* The outcome table of the design. */
static const struct {
    const char *name;
    bool root, llm, manual;
    varve_switch input, output, error;
    uint8_t want;
} rows[] = {
    {"ordinary", false, false, false, K, K, K, 0x00},
    {"a bare id", false, false, true, K, K, K, 0x48},
    {"inputs", false, false, true, Y, K, K, 0x49},
    {"output", false, false, true, K, Y, K, 0x4a},
    {"error", false, false, true, K, K, Y, 0x4c},
    {"all on", false, false, true, Y, Y, Y, 0x4f},
    {"all off", false, false, true, N, N, N, 0x48},
    {"root", true, false, false, K, K, K, 0x1f},
    {"root with a bare id", true, false, true, K, K, K, 0x5f},
    {"LLM", false, true, false, K, K, K, 0x2f},
    {"LLM with a bare id", false, true, true, K, K, K, 0x6f},
    {"LLM without output", false, true, true, K, N, K, 0x6d},
    {"root and LLM", true, true, false, K, K, K, 0x3f},
    {"root and LLM without error", true, true, true, K, K, N, 0x7b},
    {"an id that was not passed: ordinary", false, false, false, Y, Y, Y, 0x00},
    {"an id that was not passed: root", true, false, false, N, N, N, 0x1f},
    {"an id that was not passed: LLM", false, true, false, N, N, N, 0x2f},
    {"an id that was not passed: root and LLM", true, true, false, N, N, N, 0x3f},
};

START_TEST(gate_outcome_table)
{
    varve_policy p = {.llm = rows[_i].llm, .manual = rows[_i].manual, .input = rows[_i].input,
                      .output = rows[_i].output, .error = rows[_i].error};
    ck_assert_msg(varve_policy_flags(rows[_i].root, &p) == rows[_i].want, "%s: %#x instead of %#x", rows[_i].name,
                  varve_policy_flags(rows[_i].root, &p), rows[_i].want);
}
END_TEST

/* All of it, said the other way round: each bit by itself, as a condition of what holds. */
START_TEST(gate_every_combination)
{
    unsigned seen = 0;
    for (unsigned root = 0; root < 2; root++)
        for (unsigned llm = 0; llm < 2; llm++)
            for (unsigned id = 0; id < 28; id++, seen++) { /* 27: none was passed */
                const varve_switch kinds[] = {K, Y, N};
                const varve_switch digits[] = {kinds[id % 3], kinds[id / 3 % 3], kinds[id / 9 % 3]};
                bool manual = id < 27;
                varve_policy p = {.llm = llm, .manual = manual, .input = digits[0], .output = digits[1],
                                  .error = digits[2]};
                unsigned want = root * 16 + llm * 32 + manual * 64;
                want += want ? 8 : 0;
                for (unsigned role = 0; role < 3; role++) {
                    bool on = manual && digits[role] == Y, off = manual && digits[role] == N;
                    want += (on || ((root || llm) && !off)) ? 1U << role : 0;
                }
                ck_assert_uint_eq(varve_policy_flags(root, &p), want);
            }
    ck_assert_uint_eq(seen, 2 * 2 * (1 + 27));
}
END_TEST

START_TEST(without_a_policy)
{
    ck_assert_uint_eq(varve_policy_flags(false, NULL), 0);
    ck_assert_uint_eq(varve_policy_flags(true, NULL), 0x1f);
    /* A switch that is none leaves its role alone. */
    varve_policy p = {.llm = true, .manual = true, .input = (varve_switch)7};
    ck_assert_uint_eq(varve_policy_flags(false, &p), 0x6f);
}
END_TEST

/* The byte's parts are the store's roles and reasons. */
START_TEST(parts_are_the_stores)
{
    ck_assert_uint_eq(VARVE_INPUT, VV_ROLE_INPUT);
    ck_assert_uint_eq(VARVE_OUTPUT, VV_ROLE_OUTPUT);
    ck_assert_uint_eq(VARVE_ERROR, VV_ROLE_ERROR);
    ck_assert_uint_eq(vv_flags_reasons(VV_FLAG_ROOT), VV_REASON_ROOT);
    ck_assert_uint_eq(vv_flags_reasons(VV_FLAG_LLM), VV_REASON_LLM);
    ck_assert_uint_eq(vv_flags_reasons(VV_FLAG_MANUAL), VV_REASON_MANUAL);
    ck_assert_uint_eq(vv_flags_roles(0x7b), VV_ROLE_INPUT | VV_ROLE_OUTPUT);
}
END_TEST

/* A suppressed root is nothing, whatever was in the variable. */
START_TEST(suppressed_root)
{
    varve_thread *t = (varve_thread *)&t;
    ck_assert_ptr_null(varve_root_suppress(NULL, &t));
    ck_assert_ptr_null(t);
}
END_TEST

int main(void)
{
    TCase *c = test_case("policy", 0);
    tcase_add_loop_test(c, gate_outcome_table, 0, (int)VV_ARRAY_LEN(rows));
    tcase_add_test(c, gate_every_combination);
    tcase_add_test(c, without_a_policy);
    tcase_add_test(c, parts_are_the_stores);
    tcase_add_test(c, suppressed_root);
    return test_run();
}
