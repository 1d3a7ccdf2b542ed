/* The clock's function: continuous, monotone, the same for a tick before and after it was refined, and right;
 * sizing's fixtures. */
#include "config.h"

#include "runtime/clock.h"

#include "runtime/sizing.h"
#include "tests/testing.h"

/* A counter of hz ticks a second that was measured with an error of the first reading. */
static const struct {
    double hz;
    int64_t error_ns;
} clocks[] = {{2.096e9, 0}, {2.096e9, 400}, {3.7e9, -900}, {1e9, 2000}, {24e6, -2000}, {4.5e9, 20000}};

static vv_clock_pair pair_at(double hz, double seconds)
{
    return (vv_clock_pair){(uint64_t)(hz * (1000 + seconds)), (uint64_t)(1e9 * (77 + seconds))};
}

START_TEST(refined)
{
    double hz = clocks[_i].hz;
    vv_clock c;
    vv_clock_pair second = pair_at(hz, 0.002);
    second.raw_ns = (uint64_t)((int64_t)second.raw_ns + clocks[_i].error_ns);
    vv_clock_hardware = true;
    vv_clock_init(&c, pair_at(hz, 0), second, 0);
    ck_assert_uint_eq(vv_clock_ns(&c, c.zero_ticks), 0);
    ck_assert_uint_eq(vv_clock_ns(&c, 0), 0);
    /* Ten minutes of publish ticks; what every tick converted to when it was new is kept and asked again. */
    enum { STEPS = 600 };
    static uint64_t ticks[STEPS * 4], ns[STEPS * 4];
    size_t n = 0;
    uint64_t last = 0;
    for (unsigned i = 1; i <= STEPS; i++) {
        vv_clock_refine(&c, pair_at(hz, i), vv_clock_lead(&c));
        for (unsigned k = 0; k < 4; k++) {
            ticks[n] = pair_at(hz, i + k * 0.25 + 0.001).ticks;
            ns[n] = vv_clock_ns(&c, ticks[n]);
            ck_assert_uint_ge(ns[n], last);
            last = ns[n++];
        }
    }
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(vv_clock_ns(&c, ticks[i]), ns[i]);
    /* Within 0.01 % over the second minute, and right at the end. */
    double minute = (double)(ns[4 * 119] - ns[4 * 59]);
    ck_assert_double_eq_tol(minute, 60e9, 60e9 * 1e-4);
    ck_assert_double_eq_tol((double)ns[n - 1], (STEPS + 0.751) * 1e9, 2000);
    /* Neighbours never run backwards across the seams. */
    for (uint32_t i = 1; i < c.count; i++)
        for (uint64_t t = c.lines[i].base_ticks - 3; t < c.lines[i].base_ticks + 3; t++)
            ck_assert_uint_le(vv_clock_ns(&c, t), vv_clock_ns(&c, t + 1));
    ck_assert_uint_le(c.count, 12);
}
END_TEST

START_TEST(table_is_bounded)
{
    vv_clock c;
    vv_clock_hardware = true;
    vv_clock_init(&c, pair_at(1e9, 0), pair_at(1e9, 0.002), 0);
    for (double s = 1; s < 1e9; s *= 1.001)
        vv_clock_refine(&c, pair_at(1e9, s), 100);
    ck_assert_uint_lt(c.count, VV_CLOCK_LINES);
    ck_assert_uint_gt(c.count, 20);
}
END_TEST

START_TEST(agrees_with_the_kernel)
{
    vv_clock_select();
    vv_clock c;
    vv_clock_pair a = vv_clock_read_pair(), b;
    do
        b = vv_clock_read_pair();
    while (b.raw_ns - a.raw_ns < 5000000);
    vv_clock_init(&c, a, b, 0);
    do
        b = vv_clock_read_pair();
    while (b.raw_ns - a.raw_ns < 50000000);
    double off = (double)vv_clock_ns(&c, b.ticks) - (double)(b.raw_ns - a.raw_ns);
    ck_assert_double_eq_tol(off, 0, 50e6 * 0.002);
}
END_TEST

/* Measured on demand, once, by whoever comes first; ns 0 is the start, whenever that was. */
START_TEST(gate_calibrated_on_demand)
{
    vv_clock_select();
    vv_clock c;
    vv_clock_start(&c);
    ck_assert(!vv_clock_is_ready(&c));
    vv_clock_calibrate(&c);
    ck_assert(vv_clock_is_ready(&c));
    vv_clock_line first = c.lines[0];
    vv_clock_pair now = vv_clock_read_pair();
    ck_assert_uint_ge(now.raw_ns - c.zero_raw_ns, vv_clock_hardware ? 2000000 : 0);
    vv_clock_calibrate(&c);
    ck_assert_int_eq(memcmp(&first, &c.lines[0], sizeof first), 0);
    ck_assert_uint_eq(vv_clock_ns(&c, c.zero_ticks), 0);
    ck_assert_double_eq_tol((double)vv_clock_ns(&c, now.ticks), (double)(now.raw_ns - c.zero_raw_ns), 100000);
}
END_TEST

/* The frozen fixtures of the sizing policy, and rows computed from its formulas by hand. */
static const struct {
    uint64_t total, control, general, slots, segment, epoch, queue, value;
} sizes[] = {
    {8921088, 2097152, 4726784, 224, 262144, 1181696, 1024, 295424},
    {16 << 20, 2097152, 12582912, 224, 393216, 3145728, 1536, 786432},
    {32 << 20, 2097152, 29360128, 224, 917504, 7340032, 3584, 1835008},
    {256 << 20, 16777216, 234881024, 2016, 4194304, 58720256, 16384, 14680064},
    {1ULL << 30, 16777216, 1040187392, 2016, 4194304, 67108864, 16384, 16777216},
};

START_TEST(sizing)
{
    vv_sizing z;
    ck_assert(vv_sizing_derive(sizes[_i].total, &z));
    ck_assert_uint_eq(z.control, sizes[_i].control);
    ck_assert_uint_eq(z.manual, sizes[_i].control);
    ck_assert_uint_eq(z.general, sizes[_i].general);
    ck_assert_uint_eq(z.slots, sizes[_i].slots);
    ck_assert_uint_eq(z.segment_target, sizes[_i].segment);
    ck_assert_uint_eq(z.epoch_target, sizes[_i].epoch);
    ck_assert_uint_eq(z.queue_slots, sizes[_i].queue);
    ck_assert_uint_eq(z.single_value, sizes[_i].value);
    ck_assert(!vv_sizing_derive(VV_MEMORY_MIN - 1, &z));
}
END_TEST

int main(void)
{
    TCase *c = test_case("clock", 0);
    tcase_add_loop_test(c, refined, 0, (int)VV_ARRAY_LEN(clocks));
    tcase_add_test(c, table_is_bounded);
    tcase_add_test(c, agrees_with_the_kernel);
    tcase_add_test(c, gate_calibrated_on_demand);
    tcase_add_loop_test(c, sizing, 0, (int)VV_ARRAY_LEN(sizes));
    return test_run();
}
