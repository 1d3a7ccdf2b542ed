/* The gate on its own: who is inside, who is seen inside, and what becomes of pins when threads and processes end. */
#include "config.h"

#include "control/gate.h"

#include <pthread.h>
#include <unistd.h>

#include "control/gate_inside.h"
#include "tests/testing.h"

static bool empty(unsigned slot)
{
    return vv_gate_is_evacuated(slot, NULL);
}

/* Pins of one thread nest, and each slot has its own. */
START_TEST(nesting)
{
    enum { A = VV_GATE_PROFILER, B = VV_GATE_SLOTS - 1 };
    vv_gate_flush();
    ck_assert(empty(A) && empty(B));
    vv_gate_pin a = vv_gate_enter(A);
    ck_assert_ptr_nonnull(a.record);
    vv_gate_pin b = vv_gate_enter(B), again = vv_gate_enter(A);
    ck_assert_uint_eq(vv_gate_held(A), 2);
    pid_t tid = 0;
    ck_assert(!vv_gate_is_evacuated(A, &tid));
    ck_assert_int_eq(tid, gettid());
    vv_gate_leave(a, A);
    ck_assert(!empty(A) && !empty(B));
    vv_gate_leave(again, A);
    ck_assert(empty(A) && !empty(B));
    vv_gate_leave(b, B);
    ck_assert(empty(B));
    ck_assert_uint_eq(vv_gate_held(A), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("control/gate");
    TCase *t = tcase_create("gate");
    tcase_add_test(t, nesting);
    suite_add_tcase(s, t);
    return test_main(s);
}
