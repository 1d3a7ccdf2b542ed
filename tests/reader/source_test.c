#include "config.h"

#include "reader/source.h"

#include <unistd.h>

#include "tests/testing.h"

#include "tests/reader/build.h"

static void expect_names(vv_source *s, const char *dir, const char *want)
{
    vv_names names;
    vv_error err = {0};
    ck_assert_msg(vv_source_list(s, dir, &names, &err) == VV_OK, "%s", err.msg);
    char got[512] = "";
    for (size_t i = 0; i < names.count; i++) {
        strcat(got, i ? " " : "");
        strcat(got, names.names[i]);
    }
    ck_assert_str_eq(got, want);
    vv_names_done(&names);
}

static void expect_text(vv_source *s, const char *path, const char *want)
{
    vv_blob b;
    vv_error err = {0};
    ck_assert_msg(vv_source_read(s, path, 1000, &b, &err) == VV_OK, "%s", err.msg);
    ck_assert_str_eq((const char *)b.p, want);
    vv_blob_done(&b);
}

static void expect_code(vv_source *s, const char *path, vv_code code, const char *name)
{
    vv_blob b;
    vv_error err = {0};
    ck_assert_int_eq(vv_source_read(s, path, 4, &b, &err), code);
    if (name)
        ck_assert_str_eq(err.name, name);
}

START_TEST(trees_list_by_bytes)
{
    static const vv_mem_file files[] = {
        {"a/b", "1", 1},  {"a-b", "2", 1}, {"a/b-c/d", "3", 1}, {"a/b/c", "4", 1},
        {"a/b0", "5", 1}, {"z", "6", 1},   {"z", "7", 1},
    };
    vv_source *s;
    ck_assert(vv_source_open_mem(&s, files, VV_ARRAY_LEN(files), NULL) == VV_OK);
    expect_names(s, "a", "b b-c b0");
    expect_names(s, "a/b-c", "d");
    expect_text(s, "z", "7"); /* the last of two counts */
    vv_names names;
    ck_assert_int_eq(vv_source_list(s, "x", &names, NULL), VV_ERR_NOTFOUND);
    vv_error err = {0};
    TEST_NAME(vv_source_list(s, "z", &names, &err), &err, "NotDirectory");
    expect_code(s, "a/c", VV_ERR_NOTFOUND, NULL);
    ck_assert(!vv_source_is_live(s) && vv_source_dirfd(s) == -1);
    vv_source_close(s);
}
END_TEST

/* One ustar entry. A hard or soft link's target is content. */
static void tar_entry(vv_wr *w, const char *name, char type, const char *content)
{
    uint8_t h[512] = {0};
    bool is_link = type == '1' || type == '2';
    size_t n = is_link ? 0 : strlen(content);
    snprintf((char *)h, 100, "%s", name);
    snprintf((char *)h + 100, 8, "0000644");
    snprintf((char *)h + 124, 12, "%011o", (unsigned)n);
    h[156] = (uint8_t)type;
    if (is_link)
        snprintf((char *)h + 157, 100, "%s", content);
    memcpy(h + 257, "ustar\0" "00", 8);
    memset(h + 148, ' ', 8);
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof h; i++)
        sum += h[i];
    snprintf((char *)h + 148, 8, "%06o", sum);
    vv_wr_bytes(w, h, sizeof h);
    vv_wr_bytes(w, content, n);
    while (w->len % 512)
        vv_wr_u8(w, 0);
}

static vv_code open_tar(vv_source **ret, vv_wr *w, vv_error *err)
{
    for (int i = 0; i < 1024; i++)
        vv_wr_u8(w, 0);
    char path[] = "/tmp/varve-test-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert(vv_write_all(fd, w->buf, w->len, NULL) == VV_OK);
    close(fd);
    vv_wr_done(w);
    vv_code rc = vv_source_open(ret, path, err);
    unlink(path);
    return rc;
}

typedef struct {
    const char *name;
    char type;
    const char *content;
} entry;

/* A store, with what a careless or a hostile archive has besides. */
static const entry of_a_store[] = {
    {"./.baml/profiles-v1/streams/x/one", '0', "first"},
    {".baml//profiles-v1/./streams/x/one", '0', "last"},
    {".baml/profiles-v1/streams/x/hard", '1', ".baml/profiles-v1/streams/x/one"},
    {".baml/profiles-v1/streams/x/lost", '1', "nowhere"},
    {".baml/profiles-v1/streams/x/soft", '2', "one"},
    {".baml/profiles-v1/streams/x/fifo", '6', ""},
    {".baml/profiles-v1/streams/empty", '5', ""},
    {".baml/profiles-v1/streams/../../../etc/passwd", '0', "no"},
    {"/.baml/profiles-v1/streams/x/absolute", '0', "yes"},
    {".baml/profiles-v1/cas/v", '0', "value"},
    {".baml/profiles-v1/tmp/t", '0', "not of the store's planes"},
};
static const entry deeper = {"deeper/copy/profiles-v1/streams/y/z", '0', "another store"};
static const entry higher = {"streams/is/elsewhere", '0', "a place without profiles-v1 lies higher"};

static void tar_entries(vv_wr *w, const entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tar_entry(w, entries[i].name, entries[i].type, entries[i].content);
}

START_TEST(the_highest_place_is_the_store)
{
    vv_wr w = vv_wr_growing(1 << 20);
    tar_entries(&w, of_a_store, VV_ARRAY_LEN(of_a_store));
    tar_entries(&w, &deeper, 1);
    tar_entries(&w, &higher, 1);
    vv_source *s;
    vv_error err = {0};
    ck_assert_msg(open_tar(&s, &w, &err) == VV_OK, "%s", err.msg);
    expect_names(s, "streams", "is");
    vv_source_close(s);
}
END_TEST

START_TEST(archives)
{
    vv_wr w = vv_wr_growing(1 << 20);
    tar_entries(&w, &deeper, 1);
    tar_entries(&w, of_a_store, VV_ARRAY_LEN(of_a_store));
    vv_source *s;
    vv_error err = {0};
    ck_assert_msg(open_tar(&s, &w, &err) == VV_OK, "%s", err.msg);
    expect_names(s, "streams", "empty x");
    expect_names(s, "streams/x", "absolute fifo hard lost one soft");
    expect_names(s, "streams/empty", "");
    expect_text(s, "streams/x/one", "last");
    expect_text(s, "streams/x/hard", "last");
    expect_text(s, "streams/x/absolute", "yes");
    expect_text(s, "cas/v", "value");
    expect_code(s, "streams/x/soft", VV_ERR_CORRUPT, "NotRegularFile");
    expect_code(s, "streams/x/lost", VV_ERR_CORRUPT, "NotRegularFile");
    expect_code(s, "streams/x/fifo", VV_ERR_CORRUPT, "NotRegularFile");
    expect_code(s, "streams/x", VV_ERR_CORRUPT, NULL);
    expect_code(s, "tmp/t", VV_ERR_NOTFOUND, NULL);
    expect_code(s, "cas/v", VV_ERR_LIMIT, "FileTooLarge");
    vv_source_close(s);
}
END_TEST

START_TEST(archives_that_hold_no_store)
{
    static const struct {
        const char *path;
        vv_code code;
    } rows[] = {{"readme", VV_ERR_ARG}, {"profiles-v1.lock", VV_ERR_ARG}, {"profiles-v1/publish.lock", VV_OK}};
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++) {
        vv_wr w = vv_wr_growing(1 << 16);
        tar_entry(&w, rows[i].path, '0', "");
        vv_source *s = NULL;
        ck_assert_int_eq(open_tar(&s, &w, NULL), rows[i].code);
        vv_source_close(s);
    }
}
END_TEST

int main(void)
{
    TCase *c = test_case("source", 0);
    tcase_add_test(c, trees_list_by_bytes);
    tcase_add_test(c, the_highest_place_is_the_store);
    tcase_add_test(c, archives);
    tcase_add_test(c, archives_that_hold_no_store);
    return test_run();
}
