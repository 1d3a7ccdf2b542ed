/* Answers of views over a store on disk: what they look at first. */
#include "config.h"

#include "views/answer.h"

#include "tests/testing.h"

#include "tests/reader/build.h"

#include "tests/index/disk.h"

/* Parameters are looked at before an execution is loaded: one that takes too much memory to load can tell. */
static const struct {
    vv_view *view;
    const char *name, *value; /* NULL: without */
    vv_code code;
} early[] = {
    {vv_answer_spans, NULL, NULL, VV_ERR_LIMIT},       {vv_answer_spans, "functoin", "x", VV_ERR_ARG},
    {vv_answer_spans, "limit", "0", VV_ERR_ARG},       {vv_answer_spans, "cursor", "AAAA", VV_ERR_ARG},
    {vv_answer_spans, "status", "green", VV_ERR_ARG},  {vv_answer_spans, "function", "x", VV_ERR_LIMIT},
    {vv_answer_span, NULL, NULL, VV_ERR_LIMIT},        {vv_answer_span, "limit", "1", VV_ERR_ARG},
    {vv_answer_errors, NULL, NULL, VV_ERR_LIMIT},      {vv_answer_errors, "kind", "fresh", VV_ERR_ARG},
    {vv_answer_errors, "limit", "1001", VV_ERR_ARG},   {vv_answer_errors, "cursor", "AAAA", VV_ERR_ARG},
    {vv_answer_spans, "base", "latest", VV_ERR_LIMIT}, {vv_answer_spans, "base", "oldest", VV_ERR_ARG},
    {vv_answer_errors, "base", "latest", VV_ERR_LIMIT}, {vv_answer_errors, "base", "", VV_ERR_ARG},
    {vv_answer_functions, "sort", "best", VV_ERR_ARG}, {vv_answer_flame, "metric", "time", VV_ERR_ARG},
    {vv_answer_error, NULL, NULL, VV_ERR_LIMIT},       {vv_answer_error, "limit", "1", VV_ERR_ARG},
    {vv_answer_threads, NULL, NULL, VV_ERR_LIMIT},     {vv_answer_threads, "name", "x", VV_ERR_ARG},
    {vv_answer_threads, "limit", "0", VV_ERR_ARG},     {vv_answer_threads, "cursor", "AAAA", VV_ERR_ARG},
};

START_TEST(parameters_come_before_the_load)
{
    fixture f;
    vv_library *l;
    const vv_look *seen;
    vv_error err = {0};
    begin(&f);
    ck_assert(vv_library_open(&l, f.d.root, 1, 0, &err) == VV_OK);
    ck_assert_msg(vv_library_look(l, &seen, &err) == VV_OK, "%s", err.msg);
    uint64_t before = vv_source_bytes_read(seen->store->source);
    const vv_param p = {vv_cstr(early[_i].name), vv_cstr(early[_i].value)};
    char id[VV_THREAD_TEXT];
    vv_thread_text(id, &vv_stream_execution_at(&seen->store->streams[0], 0)->root);
    vv_query q = {.library = l, .look = seen, .params = &p, .param_count = p.name.p != NULL, .id = vv_cstr(id),
                  .sub = vv_cstr("1.1")};
    vv_answer a;
    vv_answer_init(&a);
    ck_assert_int_eq(early[_i].view(&a, &q, &err), early[_i].code);
    if (early[_i].code == VV_ERR_ARG) {
        ck_assert_str_eq(q.parameter, early[_i].name);
        ck_assert_uint_eq(vv_source_bytes_read(seen->store->source), before);
    }
    vv_answer_done(&a);
    vv_look_release(l, seen);
    vv_library_close(l);
    end(&f);
}
END_TEST

int main(void)
{
    TCase *t = test_case("answers", 60);
    tcase_add_loop_test(t, parameters_come_before_the_load, 0, VV_ARRAY_LEN(early));
    return test_run();
}
