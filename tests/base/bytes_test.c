#include "config.h"

#include "base/bytes.h"

#include "tests/testing.h"

static const uint8_t sixteen[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

START_TEST(reads_integers_big_endian)
{
    vv_rd r = vv_rd_init(sixteen, 16);
    ck_assert_uint_eq(vv_rd_u8(&r), 1);
    ck_assert_uint_eq(vv_rd_u16(&r), 0x0203);
    ck_assert_uint_eq(vv_rd_u32(&r), 0x04050607);
    ck_assert_uint_eq(vv_rd_u64(&r), 0x08090a0b0c0d0e0f);
    ck_assert_uint_eq(vv_rd_left(&r), 1);
    ck_assert(vv_rd_ok(&r));
    r = vv_rd_init(sixteen, 16);
    ck_assert(vv_rd_u128(&r) == ((vv_u128)0x0102030405060708 << 64 | 0x090a0b0c0d0e0f10));
}
END_TEST

/* One read of each width: it succeeds with exactly its bytes left, and fails at every shorter length. */
static uint64_t read_one(vv_rd *r, int kind)
{
    uint8_t copy[7];
    switch (kind) {
    case 0:
        return vv_rd_u8(r);
    case 1:
        return vv_rd_u16(r);
    case 2:
        return vv_rd_u32(r);
    case 3:
        return vv_rd_u64(r);
    case 4:
        return (uint64_t)(vv_rd_u128(r) >> 64);
    case 5:
        vv_rd_copy(r, copy, sizeof copy);
        return copy[0];
    case 6:
        return vv_rd_str(r, 5).n;
    default:
        return vv_rd_take(r, 3) != NULL;
    }
}

static const size_t widths[] = {1, 2, 4, 8, 16, 7, 5, 3};

START_TEST(every_read_at_its_boundary)
{
    size_t width = widths[_i];
    for (size_t n = 0; n <= width; n++) {
        uint8_t *p = test_exact(sixteen, n);
        vv_rd r = vv_rd_init(p, n);
        uint64_t got = read_one(&r, _i);
        if (n == width) {
            ck_assert(vv_rd_ok(&r));
            ck_assert_uint_ne(got, 0);
        } else {
            ck_assert_str_eq(r.why, "Truncated");
            ck_assert_uint_eq(got, 0);
            ck_assert_uint_eq(r.bad_off, 0);
        }
        ck_assert_uint_eq(vv_rd_left(&r), 0);
        free(p);
    }
}
END_TEST

START_TEST(failure_sticks_and_keeps_the_first_name)
{
    vv_rd r = vv_rd_init(sixteen, 16);
    vv_rd_u32(&r);
    vv_rd_fail(&r, "First");
    vv_rd_fail(&r, "Second");
    ck_assert_uint_eq(vv_rd_u8(&r), 0);
    ck_assert_ptr_null(vv_rd_take(&r, 1));
    ck_assert_str_eq(r.why, "First");
    ck_assert_uint_eq(r.bad_off, 4);
    vv_error err = {0};
    TEST_NAME(vv_rd_error(&r, "thing", &err), &err, "First");
    ck_assert_int_eq(vv_rd_error(&r, "thing", NULL), VV_ERR_CORRUPT);
}
END_TEST

START_TEST(huge_lengths_are_refused)
{
    static const uint64_t sizes[] = {17, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 15};
    for (size_t i = 0; i < VV_ARRAY_LEN(sizes); i++) {
        vv_rd r = vv_rd_init(sixteen, 16);
        ck_assert_ptr_null(vv_rd_take(&r, sizes[i]));
        r = vv_rd_init(sixteen, 16);
        vv_rd sub = vv_rd_sub(&r, sizes[i]);
        ck_assert_uint_eq(vv_rd_left(&sub), 0);
        ck_assert(!vv_rd_ok(&r));
    }
}
END_TEST

START_TEST(counts_are_held_against_what_is_left)
{
    uint8_t b[8 + 30] = {0};
    for (uint64_t count = 0; count < 12; count++) {
        vv_put64(b, count);
        vv_rd r = vv_rd_init(b, sizeof b);
        ck_assert_uint_eq(vv_rd_count(&r, 10), count <= 3 ? count : 0);
        ck_assert(vv_rd_ok(&r) == (count <= 3));
    }
    vv_put64(b, UINT64_MAX);
    vv_rd r = vv_rd_init(b, sizeof b);
    ck_assert_uint_eq(vv_rd_count(&r, 1), 0);
    ck_assert_str_eq(r.why, "Truncated");
}
END_TEST

START_TEST(sub_reader_sees_only_its_bytes)
{
    vv_rd r = vv_rd_init(sixteen, 16);
    vv_rd sub = vv_rd_sub(&r, 4);
    ck_assert_uint_eq(vv_rd_off(&r), 4);
    ck_assert_uint_eq(vv_rd_u64(&sub), 0);
    ck_assert(!vv_rd_ok(&sub));
    ck_assert(vv_rd_ok(&r));
    ck_assert_uint_eq(vv_rd_u8(&r), 5);
}
END_TEST

START_TEST(empty_and_null_input)
{
    vv_rd r = vv_rd_init(NULL, 0);
    ck_assert_uint_eq(vv_rd_left(&r), 0);
    ck_assert_ptr_nonnull(vv_rd_take(&r, 0));
    ck_assert_uint_eq(vv_rd_u8(&r), 0);
    ck_assert(!vv_rd_ok(&r));
}
END_TEST

START_TEST(writer_mirrors_reader)
{
    vv_wr w = vv_wr_growing(64);
    vv_wr_u8(&w, 1);
    vv_wr_u16(&w, 0x0203);
    vv_wr_u32(&w, 0x04050607);
    vv_wr_u64(&w, 0x08090a0b0c0d0e0f);
    vv_wr_u8(&w, 16);
    ck_assert_mem_eq(w.buf, sixteen, 16);
    vv_wr_reset(&w);
    vv_wr_u128(&w, (vv_u128)0x0102030405060708 << 64 | 0x090a0b0c0d0e0f10);
    test_wrote(&w, sixteen, 16);
    vv_wr_patch32(&w, 0, 0xffffffff);
    vv_wr_patch64(&w, 8, 0);
    vv_wr_patch64(&w, 9, UINT64_MAX); /* would pass the end: nothing happens */
    ck_assert_uint_eq(vv_be32(w.buf), 0xffffffff);
    ck_assert_uint_eq(vv_be64(w.buf + 8), 0);
    vv_wr_done(&w);
    vv_wr_done(&w);
}
END_TEST

START_TEST(growing_writer_stops_at_its_maximum)
{
    vv_wr w = vv_wr_growing(1000);
    for (int i = 0; i < 1000; i++)
        vv_wr_u8(&w, (uint8_t)i);
    ck_assert(vv_wr_ok(&w));
    ck_assert_uint_eq(w.len, 1000);
    vv_wr_u8(&w, 0);
    ck_assert_str_eq(w.why, "LimitExceeded");
    ck_assert_uint_eq(w.len, 1000);
    vv_error err = {0};
    ck_assert_int_eq(vv_wr_error(&w, "thing", &err), VV_ERR_LIMIT);
    ck_assert_str_eq(err.name, "LimitExceeded");
    vv_wr_reset(&w);
    vv_wr_u8(&w, 0);
    ck_assert(vv_wr_ok(&w));
    vv_wr_done(&w);
}
END_TEST

START_TEST(fixed_writer_never_passes_its_buffer)
{
    uint8_t *buf = malloc(7);
    vv_wr w = vv_wr_fixed(buf, 7);
    vv_wr_u32(&w, 1);
    vv_wr_u32(&w, 2);
    ck_assert(!vv_wr_ok(&w));
    ck_assert_uint_eq(w.len, 4);
    vv_wr_u8(&w, 3); /* would fit, but the failure sticks */
    ck_assert_uint_eq(w.len, 4);
    vv_wr_done(&w);
    free(buf);
}
END_TEST

START_TEST(saturating_sums)
{
    ck_assert_uint_eq(vv_sat64(1, 2), 3);
    ck_assert_uint_eq(vv_sat64(UINT64_MAX - 1, 1), UINT64_MAX);
    ck_assert_uint_eq(vv_sat64(UINT64_MAX, 1), UINT64_MAX);
    ck_assert(vv_sat128(~(vv_u128)0, 1) == ~(vv_u128)0);
    ck_assert(vv_sat128(UINT64_MAX, 1) == (vv_u128)1 << 64);
}
END_TEST

int main(void)
{
    TCase *t = test_case("bytes", 0);
    tcase_add_test(t, reads_integers_big_endian);
    tcase_add_loop_test(t, every_read_at_its_boundary, 0, (int)VV_ARRAY_LEN(widths));
    tcase_add_test(t, failure_sticks_and_keeps_the_first_name);
    tcase_add_test(t, huge_lengths_are_refused);
    tcase_add_test(t, counts_are_held_against_what_is_left);
    tcase_add_test(t, sub_reader_sees_only_its_bytes);
    tcase_add_test(t, empty_and_null_input);
    tcase_add_test(t, writer_mirrors_reader);
    tcase_add_test(t, growing_writer_stops_at_its_maximum);
    tcase_add_test(t, fixed_writer_never_passes_its_buffer);
    tcase_add_test(t, saturating_sums);
    return test_run();
}
