/* The control block: states, masks, attaching, detaching, closing. */
#include "config.h"

#include "tests/control/fake.h"

START_TEST(a_life)
{
    varve_host *host = fake_open();
    fake_profiler p = {.mask = VARVE_MON_MODULE_LOADS};
    ck_assert_int_eq(fake_attach(host, &p, false), VARVE_OK);
    ck_assert_int_eq(p.kind, VARVE_AT_STARTUP);
    varve_host_started(host);
    ck_assert_uint_eq(varve_host_mask(host), VARVE_MON_MODULE_LOADS);
    VARVE_RAISE(host, module_loaded, 1, 2);
    VARVE_RAISE(host, exception_caught, 1, 2);
    VARVE_RAISE(host, module_unloaded, 1);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_module_loaded), 1);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_module_unloaded), 1);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_exception_caught), 0);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_OK);
    ck_assert_uint_eq(varve_host_mask(host), 0);
    ck_assert_int_eq(p.info->request_detach(p.self, 0), VARVE_E_DETACHING);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_detached), 0);
    ck_assert_uint_eq(varve_host_detach_step(host, NULL), 0);
    ck_assert_uint_eq(fake_count(&p, VV_EVENT_detached), 1);
    ck_assert_uint_eq(p.ended, 1);
    ck_assert(varve_host_close(host));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("block");
    TCase *c = tcase_create("block");
    tcase_add_test(c, a_life);
    suite_add_tcase(s, c);
    return test_main(s);
}
