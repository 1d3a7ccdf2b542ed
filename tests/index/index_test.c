/* The index is worth its bytes (nothing is read twice) and never needed: whatever happens to it, answers stay. */
#include "config.h"

#include "index/index.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "index/rows.h"

#include "tests/testing.h"

#include "tests/reader/build.h"

#include "tests/index/disk.h"

/* The same, and the index filled by one run. */
static void begin_filled(fixture *f)
{
    begin(f);
    free(disk_run(&f->d));
}

/* Something that happens between the opening of a lock file and its locking. */
static struct {
    const char *path; /* of the lock file; NULL: nothing */
    void (*happen)(void);
} at_lock;

/* Takes the place of the C library's. */
int flock(int fd, int operation)
{
    struct stat held, named;
    if (at_lock.path && stat(at_lock.path, &named) == 0 && fstat(fd, &held) == 0 && held.st_ino == named.st_ino) {
        at_lock.happen();
        at_lock.path = NULL;
    }
    return (int)syscall(SYS_flock, fd, operation);
}

static void segment_path(const fixture *f, char out[512], uint64_t sequence)
{
    char rel[VV_STREAM_PATH];
    vv_segment_path(rel, &f->t.euid, VV_PLANE_DATA, sequence);
    disk_path(&f->d, out, rel);
}

static uint64_t bad_bytes(const fixture *f)
{
    return f->t.bytes[f->t.count - 1].len; /* the segment that never verifies: read again each time */
}

START_TEST(a_restart_verifies_nothing_twice)
{
    fixture f;
    begin(&f);
    char *want = disk_plain(&f.d), *first = disk_run(&f.d);
    uint64_t meta = disk_plane_bytes(&f.t, "/meta/"), data = disk_plane_bytes(&f.t, "/data/");
    ck_assert_str_eq(first, want);
    ck_assert_uint_eq(f.d.bytes_opened, meta + data);
    char *again = disk_run(&f.d);
    ck_assert_str_eq(again, want);
    ck_assert_uint_eq(f.d.bytes_opened, meta + bad_bytes(&f));
    ck_assert_str_eq(f.d.said, "");
    free(want);
    free(first);
    free(again);
    end(&f);
}
END_TEST

START_TEST(an_execution_reads_its_own_groups_only)
{
    fixture f;
    begin_filled(&f);
    vv_source *source = disk_source(&f.d);
    vv_index *x = disk_index(&f.d, source, f.d.index, 0);
    vv_store *s = NULL;
    ck_assert(vv_store_open(&s, source, NULL, NULL) == VV_OK);
    vv_thread_ref root = test_thread(&f.t, 3);
    const vv_stream *st = vv_store_stream(s, &f.t.euid);
    uint64_t before = vv_source_bytes_read(source);
    vv_fold *fold = NULL;
    ck_assert(vv_fold_load(&fold, s, st, vv_stream_execution(st, &root), NULL, NULL) == VV_OK);
    /* One of three equal groups between a header and a seal. */
    uint64_t size = f.t.bytes[4].len;
    ck_assert(strstr(f.t.paths[4], "data/00000000000000000003"));
    ck_assert_uint_eq(vv_source_bytes_read(source) - before, (size - VV_DATA_HEADER - VV_SEAL_BYTES) / 3);
    vv_fold_free(fold);
    vv_store_free(s);
    vv_source_close(source);
    vv_index_close(x);
    end(&f);
}
END_TEST

START_TEST(in_memory)
{
    fixture f;
    begin(&f);
    vv_source *source = disk_source(&f.d);
    vv_index *x = disk_index(&f.d, source, ":memory:", 0);
    char *want = disk_plain(&f.d), *first = disk_text(&f.d, source);
    vv_index_flush(x);
    uint64_t before = vv_source_bytes_read(source);
    char *again = disk_text(&f.d, source);
    ck_assert_str_eq(first, want);
    ck_assert_str_eq(again, want);
    ck_assert_uint_eq(f.d.bytes_opened - before, disk_plane_bytes(&f.t, "/meta/") + bad_bytes(&f));
    ck_assert_str_eq(vv_index_path(x), ":memory:");
    free(want);
    free(first);
    free(again);
    vv_source_close(source);
    vv_index_close(x);
    end(&f);
}
END_TEST

/* What may happen to a segment that was verified: each must be noticed, and is by the file's identity. */
static void replace_same_size(const fixture *f, char *path)
{
    vv_wr *w = (vv_wr *)&f->t.bytes[2]; /* data segment 1, with one byte of its seal changed */
    w->buf[w->len - 1] ^= 1;
    unlink(path);
    test_write_file(path, w->buf, w->len);
    w->buf[w->len - 1] ^= 1;
}

static void damage_in_place(const fixture *f, char *path)
{
    (void)f;
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, "\xff", 1, 60), 1);
    const struct timespec times[] = {st.st_atim, st.st_mtim}; /* as if it had not been touched */
    ck_assert_int_eq(futimens(fd, times), 0);
    close(fd);
}

static void truncate_it(const fixture *f, char *path)
{
    (void)f;
    ck_assert_int_eq(truncate(path, 100), 0);
}

static void remove_it(const fixture *f, char *path)
{
    (void)f;
    ck_assert_int_eq(unlink(path), 0);
}

static void replace_with_directory(const fixture *f, char *path)
{
    remove_it(f, path);
    ck_assert_int_eq(mkdir(path, 0755), 0);
}

static void replace_with_link(const fixture *f, char *path)
{
    remove_it(f, path);
    ck_assert_int_eq(symlink("00000000000000000002.varvedata", path), 0);
}

static void (*const accidents[])(const fixture *, char *) = {replace_same_size, damage_in_place, truncate_it, remove_it,
                                                             replace_with_directory, replace_with_link};

START_TEST(what_happens_to_segments_is_noticed)
{
    fixture f;
    begin_filled(&f);
    char path[512];
    segment_path(&f, path, 1);
    char *before = disk_plain(&f.d);
    accidents[_i](&f, path);
    disk_settle();
    char *after = disk_plain(&f.d);
    ck_assert_str_ne(before, after);
    free(before);
    free(after);
    disk_check(&f.d);
    disk_check(&f.d);
    ck_assert_str_eq(f.d.said, "");
    end(&f);
}
END_TEST

static int64_t ask(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *s;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(s), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return n;
}

START_TEST(what_is_gone_is_forgotten)
{
    fixture f;
    begin_filled(&f);
    char path[512];
    ck_assert_int_eq(ask(f.d.index, "SELECT count(*) FROM file"), 10);
    segment_path(&f, path, 1);
    remove_it(&f, path);
    disk_check(&f.d);
    ck_assert_int_eq(ask(f.d.index, "SELECT count(*) FROM file"), 9);
    vv_source *source = disk_source(&f.d);
    vv_index *x = disk_index(&f.d, source, f.d.index, 0);
    vv_euid kept = test_euid(0x22);
    vv_thread_ref here = vv_thread_ref_make(&kept, 1, 1), gone = test_thread(&f.t, 1);
    uint8_t key[32] = {1};
    vv_index_keep_summary(x, &here, key, "here", 4);
    vv_index_keep_summary(x, &gone, key, "gone", 4);
    vv_index_retain(x, &kept, 1);
    vv_index_flush(x);
    vv_blob b = {0};
    ck_assert(vv_index_summary(x, &here, key, &b) && b.n == 4 && memcmp(b.p, "here", 4) == 0);
    vv_blob_done(&b);
    ck_assert(!vv_index_summary(x, &gone, key, &b));
    key[0] = 2;
    ck_assert(!vv_index_summary(x, &here, key, &b));
    vv_source_close(source);
    vv_index_close(x);
    ck_assert_int_eq(ask(f.d.index, "SELECT count(*) FROM file"), 5);
    end(&f);
}
END_TEST

static void put_back(const fixture *f, const vv_blob *db)
{
    char path[96];
    static const char *const tails[] = {"-wal", "-shm", ".damaged"};
    for (size_t i = 0; i < VV_ARRAY_LEN(tails); i++) {
        snprintf(path, sizeof path, "%s%s", f->d.index, tails[i]);
        unlink(path);
    }
    test_write_file(f->d.index, db->p, db->n);
}

/* One bit of the database file, all over it: VV_INDEX_FLIPS=1 takes each byte, else each 13th. */
START_TEST(flipped_bits)
{
    fixture f;
    begin_filled(&f);
    test_rng g = test_seeded("flipped_bits");
    vv_blob db = {0};
    ck_assert(vv_file_read(AT_FDCWD, f.d.index, 1 << 24, &db, NULL) == VV_OK);
    const char *step_text = getenv("VV_INDEX_FLIPS");
    size_t step = step_text ? strtoull(step_text, NULL, 10) : 13, made_anew = 0;
    char *want = disk_plain(&f.d);
    for (size_t i = test_below(&g, step); i < db.n; i += step) {
        uint8_t bit = (uint8_t)(1u << test_below(&g, 8));
        db.p[i] ^= bit;
        put_back(&f, &db);
        db.p[i] ^= bit;
        char *got = disk_run(&f.d);
        ck_assert_msg(strcmp(got, want) == 0, "byte %zu, bit %u:\n%s", i, bit, got);
        free(got);
        made_anew += strstr(f.d.said, "made anew") != NULL;
    }
    fprintf(stderr, "# of %zu bytes, made anew %zu times\n", db.n, made_anew);
    ck_assert_uint_gt(made_anew, 0);
    free(want);
    vv_blob_done(&db);
    end(&f);
}
END_TEST

START_TEST(truncated_and_overwritten)
{
    fixture f;
    begin_filled(&f);
    test_rng g = test_seeded("truncated_and_overwritten");
    vv_blob db = {0};
    ck_assert(vv_file_read(AT_FDCWD, f.d.index, 1 << 24, &db, NULL) == VV_OK);
    for (size_t n = 0; n < db.n; n += n % 4096 == 0 || n % 4096 == 4095 ? 1 : 4094) {
        put_back(&f, &(vv_blob){db.p, n});
        disk_check(&f.d);
    }
    for (int i = 0; i < 60; i++) {
        uint8_t *copy = test_exact(db.p, db.n);
        size_t at = test_below(&g, db.n), n = test_below(&g, db.n - at < 600 ? db.n - at : 600);
        test_fill(&g, copy + at, n);
        put_back(&f, &(vv_blob){copy, db.n});
        free(copy);
        disk_check(&f.d);
    }
    vv_blob_done(&db);
    end(&f);
}
END_TEST

/* What is found where the index should be, and what is said and left there. */
static const struct {
    const char *name, *sql;
    const char *said; /* part of it; "" = nothing */
    bool rebuilt;
} strangers[] = {
    {"another application's", "PRAGMA application_id = 7", "no index of Varve", false},
    {"nobody's, with a table", "PRAGMA application_id = 0", "no index of Varve", false},
    {"of a former version", "PRAGMA user_version = 0", "", true},
    {"of a later version", "PRAGMA user_version = 99", "", true},
    {"another store's", "UPDATE store SET identity = zeroblob(32)", "", true},
    {"of no store", "DELETE FROM store", "", true},
    {"with a table less", "DROP TABLE summary", "", true},
    {"with a table more", "CREATE TABLE more (a)", "", true},
    {"with an index more", "CREATE INDEX more ON file (size)", "", true},
    {"with a trigger", "CREATE TRIGGER t AFTER INSERT ON file BEGIN DELETE FROM file; END", "", true},
    {"with a view for a table", "DROP TABLE file; CREATE VIEW file AS SELECT 1", "", true},
    {"with other columns", "DROP TABLE file; CREATE TABLE file (a)", "", true},
};

START_TEST(a_stranger_in_its_place)
{
    fixture f;
    begin_filled(&f);
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(f.d.index, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, strangers[_i].sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    disk_check(&f.d);
    bool right = strangers[_i].said[0] ? strstr(f.d.said, strangers[_i].said) != NULL : !f.d.said[0];
    ck_assert_msg(right, "%s: said \"%s\"", strangers[_i].name, f.d.said);
    char *text = disk_run(&f.d);
    bool used = f.d.bytes_opened < disk_plane_bytes(&f.t, "/");
    ck_assert_msg(used == strangers[_i].rebuilt, "%s", strangers[_i].name);
    free(text);
    end(&f);
}
END_TEST

/* A text of the user's, named by mistake, stays what it is. */
START_TEST(no_file_of_the_user_is_touched)
{
    fixture f;
    begin(&f);
    test_write_file(f.d.index, "Notes of mine, not to be lost. They are longer than any header that a database could "
                    "have, and none of it looks like one.", 120);
    disk_check(&f.d);
    ck_assert_ptr_nonnull(strstr(f.d.said, "no index of Varve"));
    vv_blob b = {0};
    ck_assert(vv_file_read(AT_FDCWD, f.d.index, 1 << 16, &b, NULL) == VV_OK);
    ck_assert(b.n == 120 && memcmp(b.p, "Notes", 5) == 0);
    vv_blob_done(&b);
    char path[96];
    snprintf(path, sizeof path, "%s.lock", f.d.index);
    ck_assert_int_ne(access(path, F_OK), 0);
    end(&f);
}
END_TEST

static void expect_private(const char *index)
{
    static const char *const tails[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < VV_ARRAY_LEN(tails); i++) {
        char path[300];
        struct stat st;
        snprintf(path, sizeof path, "%s%s", index, tails[i]);
        ck_assert_msg(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600, "%s", path);
    }
}

/* In the cache directory such a file is ours to put aside. */
START_TEST(the_cache_directory)
{
    fixture f;
    umask(0);
    begin(&f);
    char cache[128];
    snprintf(cache, sizeof cache, "%s/cache/deep", f.d.dir);
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", cache, 1), 0);
    disk_check_at(&f.d, NULL);
    vv_source *source = disk_source(&f.d);
    vv_index *x = disk_index(&f.d, source, NULL, 0);
    char path[256], aside[300];
    snprintf(path, sizeof path, "%s", vv_index_path(x));
    snprintf(aside, sizeof aside, "%s.damaged", path);
    ck_assert(strncmp(path, cache, strlen(cache)) == 0);
    struct stat st;
    strcat(cache, "/varve");
    ck_assert(stat(cache, &st) == 0 && (st.st_mode & 0777) == 0700);
    expect_private(path);
    vv_source_close(source);
    vv_index_close(x);
    test_write_file(path, "no database", 11);
    disk_check_at(&f.d, NULL);
    ck_assert_ptr_nonnull(strstr(f.d.said, "made anew"));
    ck_assert_int_eq(access(aside, F_OK), 0);
    char *text = disk_run_at(&f.d, NULL, 0);
    ck_assert_str_eq(f.d.said, "");
    ck_assert_uint_eq(f.d.bytes_opened, disk_plane_bytes(&f.t, "/meta/") + bad_bytes(&f));
    free(text);
    end(&f);
}
END_TEST

/* What stands in the cache directory, and whether it stays. */
static const struct {
    const char *name;
    int days;
    bool stays;
} litter[] = {
    {"00000000000000000000000000000000.db", 91, false},
    {"00000000000000000000000000000000.db-wal", 91, false},
    {"00000000000000000000000000000000.db.damaged", 1, false},
    {"00000000000000000000000000000001.db", 89, true},
    {"00000000000000000000000000000001.db-wal", 99, true},
    {"0000000000000000000000000000000.db", 99, true},
    {"0000000000000000000000000000000g.db", 99, true},
    {"00000000000000000000000000000002.db.mine", 99, true},
};

START_TEST(indexes_that_nobody_opens_go)
{
    fixture f;
    begin(&f);
    char path[256];
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", f.d.dir, 1), 0);
    for (int round = 0; round < 2; round++) {
        disk_check_at(&f.d, NULL);
        for (size_t i = 0; i < VV_ARRAY_LEN(litter); i++) {
            snprintf(path, sizeof path, "%s/varve/%s", f.d.dir, litter[i].name);
            ck_assert_msg(round == 0 || (access(path, F_OK) == 0) == litter[i].stays, "%s", litter[i].name);
            const struct timespec then = {time(NULL) - litter[i].days * 24 * 3600L, 0}, times[] = {then, then};
            test_write_file(path, "x", 1);
            ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
        }
    }
    end(&f);
}
END_TEST

static void touch_index(void)
{
    char path[256];
    snprintf(path, sizeof path, "%.*s", (int)(strlen(at_lock.path) - strlen(".lock")), at_lock.path);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, NULL, 0), 0);
}

START_TEST(an_index_that_is_used_after_all_stays)
{
    fixture f;
    begin(&f);
    char path[256], lock_path[300];
    const struct timespec then = {time(NULL) - 91 * 24 * 3600L, 0}, times[] = {then, then};
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", f.d.dir, 1), 0);
    disk_check_at(&f.d, NULL);
    snprintf(path, sizeof path, "%s/varve/%s", f.d.dir, litter[0].name);
    snprintf(lock_path, sizeof lock_path, "%s.lock", path);
    test_write_file(path, "x", 1);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    at_lock.path = lock_path;
    at_lock.happen = touch_index;
    disk_check_at(&f.d, NULL);
    ck_assert_ptr_null(at_lock.path);
    ck_assert_int_eq(access(path, F_OK), 0);
    end(&f);
}
END_TEST

static const char *const nowhere[] = {"/proc/varve/x", "/dev/null/x"};

START_TEST(a_place_that_can_hold_none)
{
    fixture f;
    begin(&f);
    disk_check_at(&f.d, nowhere[_i]);
    ck_assert_ptr_nonnull(strstr(f.d.said, "going on without"));
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", nowhere[_i], 1), 0);
    disk_check_at(&f.d, NULL);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    disk_check_at(&f.d, NULL);
    end(&f);
}
END_TEST

/* Runs in a child process without the rights of the superuser; true where it exited well. */
static bool in_child(void (*fn)(fixture *), fixture *f)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(1);
        fn(f);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status == 0;
}

static void expect_reading(fixture *f)
{
    char *want = disk_plain(&f->d), *got = disk_run(&f->d);
    if (strcmp(got, want) != 0 || f->d.bytes_opened != disk_plane_bytes(&f->t, "/meta/") + bad_bytes(f))
        _exit(1);
    free(want);
    free(got);
}

START_TEST(a_readonly_directory)
{
    fixture f;
    begin_filled(&f);
    ck_assert_int_eq(chmod(f.d.dir, 0555), 0);
    ck_assert_int_eq(chmod(f.d.index, 0644), 0); /* its owner may let others read it */
    ck_assert(in_child(expect_reading, &f));
    ck_assert_int_eq(chmod(f.d.dir, 0755), 0);
    disk_check(&f.d);
    end(&f);
}
END_TEST

static void with_small_files(fixture *f)
{
    struct rlimit limit = {6000, 6000};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(1);
    char *want = disk_plain(&f->d), *got = disk_run(&f->d);
    if (strcmp(got, want) != 0 || strstr(f->d.said, "can't be used") == NULL)
        _exit(1);
    free(want);
    free(got);
}

START_TEST(no_space)
{
    fixture f;
    begin(&f);
    ck_assert_int_eq(chmod(f.d.dir, 0777), 0);
    ck_assert(in_child(with_small_files, &f));
    char inside[96];
    snprintf(inside, sizeof inside, "%s.own", f.d.index);
    char *want = disk_plain(&f.d);
    /* The tables alone fill such an index. */
    vv_source *source = disk_source(&f.d);
    vv_index *x = disk_index(&f.d, source, inside, 1);
    char *got = disk_text(&f.d, source);
    ck_assert_str_eq(got, want);
    uint8_t key[32] = {0};
    vv_thread_ref root = test_thread(&f.t, 1);
    uint8_t *much = calloc(1, VV_SUMMARY_MAX);
    vv_index_keep_summary(x, &root, key, much, VV_SUMMARY_MAX);
    vv_index_flush(x);
    ck_assert_msg(strstr(f.d.said, "can't be written (database or disk is full)") != NULL, "%s", f.d.said);
    ck_assert(!vv_index_writes(x));
    free(much);
    free(got);
    got = disk_text(&f.d, source);
    ck_assert_str_eq(got, want);
    free(got);
    free(want);
    vv_source_close(source);
    vv_index_close(x);
    end(&f);
}
END_TEST

START_TEST(two_at_once)
{
    fixture f;
    begin(&f);
    char *want = disk_plain(&f.d);
    vv_source *one = disk_source(&f.d), *two = disk_source(&f.d);
    vv_index *x = disk_index(&f.d, one, f.d.index, 0);
    vv_index *y = disk_index(&f.d, two, f.d.index, 0);
    ck_assert(vv_index_writes(x) && !vv_index_writes(y));
    char *a = disk_text(&f.d, one);
    vv_index_flush(x);
    char *b = disk_text(&f.d, two);
    ck_assert_uint_eq(f.d.bytes_opened, disk_plane_bytes(&f.t, "/meta/") + bad_bytes(&f));
    ck_assert_str_eq(a, want);
    ck_assert_str_eq(b, want);
    vv_source_close(one);
    vv_index_close(x);
    /* Whoever is left writes what it has to tell next. */
    vv_thread_ref root = test_thread(&f.t, 1);
    uint8_t key[32] = {0};
    vv_index_keep_summary(y, &root, key, "kept", 4);
    vv_index_flush(y);
    ck_assert(vv_index_writes(y));
    vv_source_close(two);
    vv_index_close(y);
    ck_assert_int_eq(ask(f.d.index, "SELECT count(*) FROM summary"), 1);
    ck_assert_str_eq(f.d.said, "");
    free(a);
    free(b);
    free(want);
    end(&f);
}
END_TEST

static void remove_lock_file(void)
{
    ck_assert_int_eq(unlink(at_lock.path), 0);
}

/* Only who holds the lock file that is there writes. */
START_TEST(a_lock_file_that_is_removed)
{
    fixture f;
    begin_filled(&f);
    char path[96];
    snprintf(path, sizeof path, "%s.lock", f.d.index);
    vv_source *one = disk_source(&f.d), *two = disk_source(&f.d);
    at_lock.path = path;
    at_lock.happen = remove_lock_file;
    vv_index *x = disk_index(&f.d, one, f.d.index, 0);
    ck_assert_ptr_null(at_lock.path);
    vv_index *y = disk_index(&f.d, two, f.d.index, 0);
    ck_assert(vv_index_writes(x) && !vv_index_writes(y));
    vv_source_close(one);
    vv_source_close(two);
    vv_index_close(x);
    vv_index_close(y);
    end(&f);
}
END_TEST

/* Two stores at one place: the second gets it when the first has gone. */
START_TEST(another_stores_and_in_use)
{
    fixture f, g;
    begin(&f);
    begin(&g);
    vv_source *one = disk_source(&f.d), *two = disk_source(&g.d);
    vv_index *x = disk_index(&f.d, one, f.d.index, 0), *y = disk_index(&g.d, two, f.d.index, 0);
    ck_assert(vv_index_writes(x) && !vv_index_writes(y));
    char *want = disk_plain(&g.d);
    for (int round = 0; round < 2; round++) {
        char *got = disk_text(&g.d, two);
        ck_assert_str_eq(got, want);
        free(got);
        vv_index_flush(y);
        ck_assert_int_eq(vv_index_writes(y), round);
        if (round == 0) {
            vv_source_close(one);
            vv_index_close(x);
        }
    }
    char *line = strchr(g.d.said, '\n');
    ck_assert_msg(strstr(g.d.said, "another process's for now") && line && !line[1], "%s", g.d.said);
    vv_source_close(two);
    vv_index_close(y);
    ck_assert_int_gt(ask(f.d.index, "SELECT count(*) FROM file"), 0);
    free(want);
    end(&f);
    end(&g);
}
END_TEST

/* An index that somebody is still making is read once it is there. */
START_TEST(in_the_making)
{
    fixture f;
    begin_filled(&f);
    char path[96];
    vv_blob db = {0};
    snprintf(path, sizeof path, "%s.lock", f.d.index);
    int maker = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(flock(maker, LOCK_EX), 0);
    ck_assert(vv_file_read(AT_FDCWD, f.d.index, 1 << 24, &db, NULL) == VV_OK);
    test_write_file(f.d.index, "", 0);
    vv_source *source = disk_source(&f.d);
    vv_index *x = disk_index(&f.d, source, f.d.index, 0);
    char *want = disk_plain(&f.d), *first = disk_text(&f.d, source);
    test_write_file(f.d.index, db.p, db.n);
    vv_thread_ref root = test_thread(&f.t, 1);
    uint8_t key[32] = {0};
    vv_index_keep_summary(x, &root, key, "kept", 4);
    vv_index_flush(x);
    ck_assert(!vv_index_writes(x));
    uint64_t before = vv_source_bytes_read(source);
    char *again = disk_text(&f.d, source);
    ck_assert_uint_eq(f.d.bytes_opened - before, disk_plane_bytes(&f.t, "/meta/") + bad_bytes(&f));
    ck_assert_str_eq(first, want);
    ck_assert_str_eq(again, want);
    vv_close(&maker);
    vv_source_close(source);
    vv_index_close(x);
    vv_blob_done(&db);
    free(want);
    free(first);
    free(again);
    end(&f);
}
END_TEST

/* Killed anywhere in the middle of writing. */
START_TEST(killed_while_writing)
{
    fixture f;
    begin(&f);
    for (int round = 0; round < 12; round++) {
        int pipe_fds[2];
        ck_assert_int_eq(pipe(pipe_fds), 0);
        pid_t pid = fork();
        if (pid == 0) {
            vv_source *source = disk_source(&f.d);
            vv_index *x = disk_index(&f.d, source, f.d.index, 0);
            free(disk_text(&f.d, source));
            vv_thread_ref root = test_thread(&f.t, 1);
            uint8_t key[32] = {0}, body[3000] = {0};
            for (uint64_t i = 0;; i++) {
                vv_put64(root.b + 24, i);
                vv_index_keep_summary(x, &root, key, body, sizeof body);
                if (i % 500 == 499)
                    vv_index_flush(x);
                if (i == 600 + 37 * (uint64_t)round && write(pipe_fds[1], "", 1) != 1)
                    _exit(1);
            }
        }
        char byte;
        ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 1);
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        close(pipe_fds[0]);
        close(pipe_fds[1]);
        disk_check(&f.d);
        ck_assert_str_eq(f.d.said, "");
    }
    end(&f);
}
END_TEST

/* The groups of a row as they are found. */
static vv_blob groups_of(sqlite3 *db, uint64_t sequence)
{
    sqlite3_stmt *s;
    ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT groups FROM file WHERE plane = 1 AND hex(stream) LIKE '11%' "
                                        "AND sequence = ?1", -1, &s, NULL), SQLITE_OK);
    sqlite3_bind_int64(s, 1, (int64_t)sequence);
    ck_assert_int_eq(sqlite3_step(s), SQLITE_ROW);
    vv_blob b = {NULL, (size_t)sqlite3_column_bytes(s, 0)};
    b.p = test_exact(sqlite3_column_blob(s, 0), b.n);
    sqlite3_finalize(s);
    return b;
}

/* Puts the row back with these groups and a sum that is right. */
static void forge(sqlite3 *db, const fixture *f, uint64_t sequence, const vv_blob *groups)
{
    char path[512];
    uint8_t sum[VV_ROW_SUM];
    struct stat st;
    segment_path(f, path, sequence);
    ck_assert_int_eq(stat(path, &st), 0);
    vv_file_ident ident = {(uint64_t)st.st_size, st.st_dev, st.st_ino,
                           st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec,
                           st.st_ctim.tv_sec * INT64_C(1000000000) + st.st_ctim.tv_nsec};
    vv_file_row_sum(sum, &f->t.euid, VV_PLANE_DATA, sequence, &ident, groups->p, groups->n);
    sqlite3_stmt *s;
    ck_assert_int_eq(sqlite3_prepare_v2(db, "UPDATE file SET groups = ?1, sum = ?2 WHERE plane = 1 AND "
                                        "hex(stream) LIKE '11%' AND sequence = ?3", -1, &s, NULL), SQLITE_OK);
    sqlite3_bind_blob(s, 1, groups->p, (int)groups->n, SQLITE_STATIC);
    sqlite3_bind_blob(s, 2, sum, sizeof sum, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, (int64_t)sequence);
    ck_assert_int_eq(sqlite3_step(s), SQLITE_DONE);
    sqlite3_finalize(s);
}

/* Offsets that lie, in rows whose sums are right: what they point at is compared, and the file read after all. */
START_TEST(forged_offsets)
{
    fixture f;
    begin_filled(&f);
    test_rng g = test_seeded("forged_offsets");
    char *want = disk_plain(&f.d);
    for (int round = 0; round < 150; round++) {
        sqlite3 *db;
        ck_assert_int_eq(sqlite3_open(f.d.index, &db), SQLITE_OK);
        uint64_t sequence = 1 + test_below(&g, 3);
        vv_blob b = groups_of(db, sequence);
        uint32_t count = (uint32_t)(b.n / 8);
        for (uint64_t n = 1 + test_below(&g, 3); n; n--) {
            uint8_t *at = b.p + 4 * test_below(&g, count + 1);
            uint32_t v = vv_be32(at);
            vv_put32(at, test_below(&g, 4) ? v + (uint32_t)test_below(&g, 41) - 20 : (uint32_t)test_random(&g));
        }
        forge(db, &f, sequence, &b);
        sqlite3_close(db);
        vv_blob_done(&b);
        char *got = disk_run(&f.d);
        ck_assert_msg(strcmp(got, want) == 0, "round %d:\n%s", round, got);
        free(got);
    }
    free(want);
    end(&f);
}
END_TEST

/* Anything at all where groups should be: no answer is promised, only that there is one. */
START_TEST(forged_groups)
{
    fixture f;
    begin_filled(&f);
    test_rng g = test_seeded("forged_groups");
    for (int round = 0; round < 200; round++) {
        sqlite3 *db;
        ck_assert_int_eq(sqlite3_open(f.d.index, &db), SQLITE_OK);
        uint64_t sequence = 1 + test_below(&g, 3);
        vv_blob b = groups_of(db, sequence);
        size_t n = test_below(&g, 3) ? b.n : test_below(&g, 200);
        uint8_t *bytes = calloc(1, n + b.n + 1);
        memcpy(bytes, b.p, b.n);
        for (uint64_t k = test_below(&g, 6); k && n; k--)
            bytes[test_below(&g, n)] = (uint8_t)test_random(&g);
        forge(db, &f, sequence, &(vv_blob){bytes, n});
        sqlite3_close(db);
        vv_blob_done(&b);
        free(bytes);
        free(disk_run(&f.d));
        /* And a run without a row that lies makes it right again. */
        if (round % 10 == 0) {
            ck_assert_int_eq(unlink(f.d.index), 0);
            free(disk_run(&f.d));
        } else {
            ck_assert_int_eq(sqlite3_open(f.d.index, &db), SQLITE_OK);
            sqlite3_exec(db, "DELETE FROM file WHERE plane = 1", NULL, NULL, NULL);
            sqlite3_close(db);
            disk_check(&f.d);
        }
    }
    end(&f);
}
END_TEST

static void suite_cases(void)
{
    TCase *c = test_case("worth", 0);
    tcase_add_test(c, a_restart_verifies_nothing_twice);
    tcase_add_test(c, an_execution_reads_its_own_groups_only);
    tcase_add_test(c, in_memory);
    c = test_case("changes", 0);
    tcase_add_loop_test(c, what_happens_to_segments_is_noticed, 0, VV_ARRAY_LEN(accidents));
    tcase_add_test(c, what_is_gone_is_forgotten);
    c = test_case("damage", 120);
    tcase_add_test(c, flipped_bits);
    tcase_add_test(c, truncated_and_overwritten);
    tcase_add_loop_test(c, a_stranger_in_its_place, 0, VV_ARRAY_LEN(strangers));
    tcase_add_test(c, no_file_of_the_user_is_touched);
    tcase_add_test(c, the_cache_directory);
    tcase_add_test(c, indexes_that_nobody_opens_go);
    tcase_add_test(c, an_index_that_is_used_after_all_stays);
    tcase_add_test(c, forged_offsets);
    tcase_add_test(c, forged_groups);
    c = test_case("trouble", 60);
    tcase_add_loop_test(c, a_place_that_can_hold_none, 0, VV_ARRAY_LEN(nowhere));
    tcase_add_test(c, a_readonly_directory);
    tcase_add_test(c, no_space);
    tcase_add_test(c, two_at_once);
    tcase_add_test(c, a_lock_file_that_is_removed);
    tcase_add_test(c, another_stores_and_in_use);
    tcase_add_test(c, in_the_making);
    tcase_add_test(c, killed_while_writing);
}

int main(void)
{
    suite_cases();
    return test_run();
}
