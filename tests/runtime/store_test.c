/* The publication protocol: each step's failure, the ledger, limits, locks, reopening. */
#include "config.h"

#include "runtime/store.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "format/usage.h"
#include "tests/testing.h"

static char dir[64], root[96];

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void setup(void)
{
    snprintf(dir, sizeof dir, "/tmp/varve-store-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(root, sizeof root, "%s/profiles-v1", dir);
}

static void teardown(void)
{
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/*
 * What made the store durable, in order: "fsync NAME SIZE" and "rename NAME", with names below the root. These stand
 * before libc's, and do what those do.
 */
static char journal[4096];
static bool keeps_journal;

static void note(const char *what, int dirfd, const char *name, long long size)
{
    char link[64], path[PATH_MAX] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
    if (!keeps_journal || readlink(link, path, sizeof path - 1) < 0 || strncmp(path, root, strlen(root)) != 0)
        return;
    strncat(path, name, sizeof path - strlen(path) - 1);
    const char *below = path + strlen(root);
    size_t n = strlen(journal);
    if (strstr(below, ".pending") && !strstr(below, "usage"))
        below = "/tmp/*";
    snprintf(journal + n, sizeof journal - n, size < 0 ? "%s %s\n" : "%s %s %lld\n", what, below, size);
}

int fsync(int fd)
{
    struct stat st;
    note("fsync", fd, "", fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (long long)st.st_size : -1);
    return (int)syscall(SYS_fsync, fd);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    char slashed[PATH_MAX];
    snprintf(slashed, sizeof slashed, "/%s", to);
    note("rename", to_dir, slashed, -1);
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    return renameat2(from_dir, from, to_dir, to, 0);
}

/* Faults by step: os is what the step fails with, as long as times is not used up; at it, foreign appears. */
typedef struct {
    vv_step at;
    int os, times;
    unsigned seen[VV_STEPS];
    size_t write_at_most;
    uint64_t free;
    const char *foreign;
} faults;

static void put_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static int fault_step(void *ctx, vv_step step)
{
    faults *f = ctx;
    f->seen[step]++;
    if (step != f->at || f->times == 0)
        return 0;
    f->times--;
    if (f->foreign)
        put_file(f->foreign, "foreign");
    return f->os;
}

static ssize_t fault_write(void *ctx, int fd, const void *p, size_t n)
{
    faults *f = ctx;
    return write(fd, p, f->write_at_most && n > f->write_at_most ? f->write_at_most : n);
}

static uint64_t fault_free(void *ctx)
{
    return ((faults *)ctx)->free;
}

static vv_euid euid_of(uint8_t b)
{
    vv_euid e;
    memset(e.b, b, sizeof e.b);
    return e;
}

static vv_code try_open(vv_wstore **s, uint8_t id, faults *f, uint64_t max_bytes, vv_error *err)
{
    vv_wstore_options o = {
        .root = root, .euid = euid_of(id), .max_project_bytes = max_bytes, .minimum_free_bytes = 1000};
    if (f)
        o.hooks = (vv_wstore_hooks){
            .step = fault_step, .write = fault_write, .free_bytes = f->free ? fault_free : NULL, .ctx = f};
    return vv_wstore_open(s, &o, err);
}

static vv_wstore *open_store(uint8_t id, faults *f)
{
    vv_wstore *s = NULL;
    vv_error err = {0};
    ck_assert_msg(try_open(&s, id, f, 1 << 30, &err) == VV_OK, "%s", err.msg);
    return s;
}

static vv_wr segment(vv_wstore *s, uint8_t id, vv_plane plane)
{
    vv_wr w = vv_wr_growing(1 << 20);
    vv_euid e = euid_of(id);
    if (plane == VV_PLANE_META) {
        vv_meta_begin(&w, &e, vv_wstore_next(s, plane), 0);
        vv_meta_end(&w, 0);
    } else {
        vv_data_begin(&w, &e, vv_wstore_next(s, plane));
        vv_data_end(&w, 0);
    }
    return w;
}

static vv_published publish_as(vv_wstore *s, uint8_t id, vv_plane plane, bool terminal)
{
    vv_wr w = segment(s, id, plane);
    vv_published p = vv_wstore_publish(s, plane, w.buf, w.len, terminal);
    vv_wr_done(&w);
    return p;
}

static vv_published publish(vv_wstore *s, vv_plane plane)
{
    return publish_as(s, 7, plane, false);
}

static uint64_t weighed;

static int weigh(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)at;
    const char *name = strrchr(path, '/') + 1;
    if (kind == FTW_F && strcmp(name, "publish.lock") != 0 && strncmp(name, "usage", 5) != 0)
        weighed += (uint64_t)st->st_size;
    return 0;
}

static uint64_t ledger(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/usage.state", root);
    vv_blob b = {0};
    uint64_t total = 0;
    ck_assert_int_eq(vv_file_read(AT_FDCWD, path, 48, &b, NULL), VV_OK);
    ck_assert_int_eq(vv_usage_decode(b.p, b.n, &total, NULL), VV_OK);
    vv_blob_done(&b);
    return total;
}

static void assert_ledger(void)
{
    weighed = 48;
    nftw(root, weigh, 16, FTW_PHYS);
    ck_assert_uint_eq(ledger(), weighed);
}

static bool exists(const char *name)
{
    char path[256];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", root, name);
    return stat(path, &st) == 0;
}

#define SEVENS "streams/07070707070707070707070707070707"

START_TEST(sequences_and_reopening)
{
    vv_wstore *s = open_store(7, NULL);
    ck_assert_uint_eq(ledger(), 48);
    for (uint64_t i = 1; i <= 3; i++)
        ck_assert_uint_eq(publish(s, VV_PLANE_META).sequence, i);
    ck_assert_uint_eq(publish(s, VV_PLANE_DATA).sequence, 1);
    ck_assert(exists(SEVENS "/meta/00000000000000000003.bamlmeta"));
    assert_ledger();
    vv_error err = {0};
    vv_wstore *twice = NULL;
    ck_assert_int_eq(try_open(&twice, 7, NULL, 1 << 30, &err), VV_ERR_BUSY);
    vv_wstore_close(s);
    s = open_store(7, NULL);
    ck_assert_uint_eq(vv_wstore_high(s, VV_PLANE_META), 3);
    ck_assert_uint_eq(publish(s, VV_PLANE_DATA).sequence, 2);
    assert_ledger();
    vv_wstore_close(s);
    put_file(SEVENS "/data/00000000000000000003.bamldata", "a torn tail of more than thirty-two bytes");
    vv_error_clear(&err);
    ck_assert_int_eq(try_open(&s, 7, NULL, 1 << 30, &err), VV_ERR_CORRUPT);
}
END_TEST

/* The order of a publication: the bytes, the name, the directory, and the ledger in the same way. */
START_TEST(gate_durable_in_order)
{
    static const char ledger_lines[] = "fsync /tmp/usage-state.pending 48\nrename /usage.state\nfsync \n";
    char want[1024];
    keeps_journal = true;
    vv_wstore *s = open_store(7, NULL);
    snprintf(want, sizeof want, "%sfsync /" SEVENS "/meta\nfsync /" SEVENS "/data\nfsync /" SEVENS "/health\n",
             ledger_lines);
    ck_assert_str_eq(journal, want);
    *journal = 0;
    ck_assert_int_eq(publish(s, VV_PLANE_DATA).outcome, VV_COMMITTED);
    snprintf(want, sizeof want, "fsync /tmp/* 82\nrename /" SEVENS "/data/00000000000000000001.bamldata\n"
             "fsync /" SEVENS "/data\n%s", ledger_lines);
    ck_assert_str_eq(journal, want);
    vv_wstore_close(s);
}
END_TEST

/* Objects of one hold: each of them so, one after the other, and the ledger once. */
START_TEST(gate_objects_durable_in_order)
{
    static const char ledger_lines[] = "fsync /tmp/usage-state.pending 48\nrename /usage.state\nfsync \n";
    enum { N = 3 };
    vv_wstore *s = open_store(7, NULL);
    vv_wstore_object o[N];
    vv_published out[N];
    char want[1024] = "", path[VV_CAS_PATH];
    for (size_t i = 0; i < N; i++) {
        o[i] = (vv_wstore_object){.codec = VV_CODEC_VALUE, .body = (const uint8_t *)"abc" + i, .len = N - i};
        vv_cid_of(&o[i].cid, o[i].codec, o[i].body, o[i].len);
        vv_cas_path(path, &o[i].cid);
        size_t n = strlen(want);
        snprintf(want + n, sizeof want - n, "fsync /tmp/* %zu\nrename /%s\nfsync /%.*s\n", VV_CAS_FIXED + o[i].len,
                 path, (int)(strrchr(path, '/') - path), path);
    }
    keeps_journal = true;
    ck_assert(vv_wstore_publish_objects(s, o, N, out));
    for (size_t i = 0; i < N; i++)
        ck_assert_int_eq(out[i].outcome, VV_COMMITTED);
    /* A machine may be so slow that a hold ends before the last object: its ledger does not count. */
    for (char *l; (l = strstr(journal, ledger_lines)) && l[strlen(ledger_lines)];)
        memmove(l, l + strlen(ledger_lines), strlen(l + strlen(ledger_lines)) + 1);
    strncat(want, ledger_lines, sizeof want - strlen(want) - 1);
    ck_assert_str_eq(journal, want);
    vv_wstore_close(s);
}
END_TEST

START_TEST(in_use_by_another_process)
{
    vv_wstore *s = open_store(7, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        vv_wstore *other = NULL;
        /* The registry of this process was inherited: ask for the lock itself. */
        char path[256];
        snprintf(path, sizeof path, "%s/" SEVENS "/stream.lock", root);
        int fd = open(path, O_RDWR);
        int busy = flock(fd, LOCK_EX | LOCK_NB);
        int other_stream = try_open(&other, 8, NULL, 1 << 30, NULL);
        _exit(busy == -1 && other_stream == VV_OK && publish_as(other, 8, VV_PLANE_META, false).outcome == VV_COMMITTED
                  ? 0
                  : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(publish(s, VV_PLANE_META).outcome, VV_COMMITTED);
    assert_ledger();
    vv_wstore_close(s);
}
END_TEST

/* A step that fails before the rename loses this batch, keeps the sequence and charges what stays. */
static const struct {
    vv_step at;
    int os;
    vv_latch reason, gate;
    bool charged; /* a temporary stays */
} before[] = {
    {VV_STEP_LOCK, EIO, VV_LATCH_UNAVAILABLE, VV_LATCH_OPEN, false},
    {VV_STEP_LEDGER_READ, EIO, VV_LATCH_UNAVAILABLE, VV_LATCH_UNAVAILABLE, false},
    {VV_STEP_DIRECTORY, EACCES, VV_LATCH_PERMISSION, VV_LATCH_OPEN, false},
    {VV_STEP_CREATE, ENOSPC, VV_LATCH_DISK, VV_LATCH_DISK, false},
    {VV_STEP_WRITE, ENOSPC, VV_LATCH_DISK, VV_LATCH_DISK, false},
    {VV_STEP_WRITE, EDQUOT, VV_LATCH_DISK, VV_LATCH_DISK, false},
    {VV_STEP_WRITE, EFBIG, VV_LATCH_DISK, VV_LATCH_DISK, false},
    {VV_STEP_WRITE, EIO, VV_LATCH_UNAVAILABLE, VV_LATCH_OPEN, false},
    {VV_STEP_FSYNC_FILE, EIO, VV_LATCH_UNAVAILABLE, VV_LATCH_OPEN, true},
    {VV_STEP_FSYNC_FILE, ENOSPC, VV_LATCH_DISK, VV_LATCH_DISK, true},
    {VV_STEP_RENAME, EIO, VV_LATCH_UNAVAILABLE, VV_LATCH_OPEN, true},
    {VV_STEP_RENAME, EROFS, VV_LATCH_PERMISSION, VV_LATCH_OPEN, true},
};

START_TEST(fails_before_the_rename)
{
    faults f = {.at = before[_i].at, .os = before[_i].os};
    vv_wstore *s = open_store(7, &f);
    ck_assert_int_eq(publish(s, VV_PLANE_DATA).outcome, VV_COMMITTED);
    uint64_t usage = ledger();
    f.times = 1;
    vv_published p = publish(s, VV_PLANE_DATA);
    ck_assert_int_eq(p.outcome, VV_LOST);
    ck_assert_int_eq(p.reason, before[_i].reason);
    ck_assert_int_eq(vv_wstore_latch(s), before[_i].gate);
    ck_assert_uint_eq(vv_wstore_next(s, VV_PLANE_DATA), 2);
    ck_assert(before[_i].charged ? ledger() > usage : ledger() == usage);
    assert_ledger();
    bool open = before[_i].gate == VV_LATCH_OPEN;
    ck_assert(vv_wstore_takes_roots(s) == open);
    p = publish(s, VV_PLANE_DATA);
    ck_assert_int_eq(p.outcome, open ? VV_COMMITTED : VV_LOST);
    /* A latched gate still lets an end through, and a reopened store is open. */
    ck_assert_int_eq(publish_as(s, 7, VV_PLANE_META, true).outcome, VV_COMMITTED);
    vv_wstore_close(s);
    s = open_store(7, NULL);
    ck_assert_int_eq(publish(s, VV_PLANE_DATA).outcome, VV_COMMITTED);
    assert_ledger();
    vv_wstore_close(s);
}
END_TEST

/* After the rename a failure is indeterminate: all is blocked, the lock is held, until it is resolved as committed. */
static const vv_step after[] = {VV_STEP_FSYNC_DIRECTORY, VV_STEP_LEDGER_WRITE, VV_STEP_LEDGER_FSYNC,
                                VV_STEP_LEDGER_RENAME, VV_STEP_FSYNC_ROOT};

START_TEST(indeterminate)
{
    faults f = {.at = after[_i], .os = EIO};
    vv_wstore *s = open_store(7, &f);
    f.times = 2;
    vv_published p = publish(s, VV_PLANE_DATA);
    ck_assert_int_eq(p.outcome, VV_INDETERMINATE);
    ck_assert_uint_eq(p.sequence, 1);
    ck_assert_uint_eq(vv_wstore_high(s, VV_PLANE_DATA), 0);
    ck_assert(!vv_wstore_takes_roots(s));
    ck_assert_int_eq(publish(s, VV_PLANE_META).outcome, VV_BLOCKED);
    char path[128];
    snprintf(path, sizeof path, "%s/publish.lock", root);
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), -1);
    bool settled;
    int plane;
    uint64_t sequence;
    ck_assert(!vv_wstore_resolve(s, &settled, &plane, &sequence));
    ck_assert(vv_wstore_resolve(s, &settled, &plane, &sequence));
    ck_assert(settled && plane == VV_PLANE_DATA && sequence == 1);
    ck_assert_uint_eq(vv_wstore_high(s, VV_PLANE_DATA), 1);
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    flock(fd, LOCK_UN);
    close(fd);
    assert_ledger();
    ck_assert_int_eq(publish(s, VV_PLANE_DATA).sequence, 2);
    ck_assert(vv_wstore_resolve(s, &settled, &plane, &sequence) && !settled);
    assert_ledger();
    vv_wstore_close(s);
}
END_TEST

static atomic_bool opened;

static void *open_slowly(void *arg)
{
    int *fd = arg;
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    atomic_store(&opened, true);
    vv_close(fd);
    return NULL;
}

/* Who publishes lets those go first who open the store: they have a lock of their own on publish.lock. In a flush,
 * which somebody waits for, it does not. */
START_TEST(gate_way_for_an_opener)
{
    vv_wstore *s = open_store(7, NULL);
    char path[256];
    snprintf(path, sizeof path, "%s/publish.lock", root);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct flock first_byte = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &first_byte), 0);
    vv_wstore_be_patient(s, true);
    ck_assert_int_eq(publish(s, VV_PLANE_DATA).outcome, VV_COMMITTED);
    vv_wstore_be_patient(s, false);
    ck_assert(!atomic_load(&opened));
    pthread_t id;
    ck_assert_int_eq(pthread_create(&id, NULL, open_slowly, &fd), 0);
    ck_assert_int_eq(publish(s, VV_PLANE_DATA).outcome, VV_COMMITTED);
    ck_assert(atomic_load(&opened));
    pthread_join(id, NULL);
    vv_wstore_close(s);
}
END_TEST

START_TEST(short_writes)
{
    faults f = {.write_at_most = 7};
    vv_wstore *s = open_store(7, &f);
    ck_assert_int_eq(publish(s, VV_PLANE_DATA).outcome, VV_COMMITTED);
    assert_ledger();
    vv_wstore_close(s);
    ck_assert_uint_eq(f.seen[VV_STEP_UNLOCK], 1);
}
END_TEST

START_TEST(limits)
{
    vv_wstore *s = NULL;
    vv_wr w;
    ck_assert_int_eq(try_open(&s, 7, NULL, 48 + 82 + 48, NULL), VV_OK);
    w = segment(s, 7, VV_PLANE_DATA);
    ck_assert_uint_eq(w.len, 82);
    vv_wr_done(&w);
    ck_assert_int_eq(publish(s, VV_PLANE_DATA).outcome, VV_COMMITTED);
    vv_published p = publish(s, VV_PLANE_DATA);
    ck_assert_int_eq(p.outcome, VV_LOST);
    ck_assert_int_eq(p.reason, VV_LATCH_DISK);
    ck_assert_int_eq(publish_as(s, 7, VV_PLANE_META, true).outcome, VV_LOST);
    vv_wstore_close(s);
    faults f = {.free = 1000 + 82 + 48};
    s = open_store(7, &f);
    ck_assert_int_eq(publish(s, VV_PLANE_DATA).outcome, VV_COMMITTED);
    f.free--;
    ck_assert_int_eq(publish(s, VV_PLANE_DATA).reason, VV_LATCH_DISK);
    vv_wstore_close(s);
    f.free = 999;
    s = open_store(7, &f);
    ck_assert_int_eq(vv_wstore_latch(s), VV_LATCH_DISK);
    vv_wstore_close(s);
    /* A store that is too large already, and one that is just full. */
    uint64_t usage = ledger();
    for (unsigned over = 0; over < 2; over++) {
        ck_assert_int_eq(try_open(&s, 7, NULL, usage - over, NULL), VV_OK);
        ck_assert_int_eq(vv_wstore_latch(s), over ? VV_LATCH_DISK : VV_LATCH_OPEN);
        vv_wstore_close(s);
    }
}
END_TEST

START_TEST(objects)
{
    static const char body[] = "a body";
    vv_wstore_object o = {.codec = VV_CODEC_FUNCTION_TABLE, .body = (const uint8_t *)body, .len = sizeof body};
    vv_cid_of(&o.cid, o.codec, body, sizeof body);
    faults f = {.at = VV_STEP_LEDGER_READ};
    vv_wstore *s = open_store(7, &f);
    ck_assert_int_eq(vv_wstore_publish_object(s, &o).outcome, VV_COMMITTED);
    uint64_t usage = ledger();
    ck_assert_int_eq(vv_wstore_publish_object(s, &o).outcome, VV_REUSED);
    ck_assert_uint_eq(ledger(), usage);
    /* A latched store still finds what is there. */
    f.os = EIO;
    f.times = 1;
    publish(s, VV_PLANE_DATA);
    ck_assert_int_eq(vv_wstore_latch(s), VV_LATCH_UNAVAILABLE);
    ck_assert_int_eq(vv_wstore_publish_object(s, &o).outcome, VV_REUSED);
    vv_wstore_close(s);
    char path[256], name[VV_CAS_PATH];
    vv_cas_path(name, &o.cid);
    snprintf(path, sizeof path, "%s/%s", root, name);
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(pwrite(fd, "?", 1, 52), 1);
    close(fd);
    s = open_store(7, NULL);
    vv_published p = vv_wstore_publish_object(s, &o);
    ck_assert_int_eq(p.outcome, VV_LOST);
    ck_assert_int_eq(p.reason, VV_LATCH_CONFLICT);
    ck_assert_int_eq(vv_wstore_latch(s), VV_LATCH_OPEN);
    vv_wstore_close(s);
}
END_TEST

/*
 * A foreign file of the name is never replaced: one that was there before costs nothing, beside one that appears while
 * ours is written (2nd turn), or just before it is renamed (3rd), the temporary stays and is charged.
 */
START_TEST(conflict)
{
    static const char name[] = SEVENS "/data/00000000000000000001.bamldata";
    faults f = {.at = _i == 2 ? VV_STEP_RENAME : VV_STEP_FSYNC_FILE, .times = _i > 0, .foreign = name};
    vv_wstore *s = open_store(7, &f);
    if (!_i)
        put_file(name, "foreign");
    vv_published p = publish(s, VV_PLANE_DATA);
    ck_assert_int_eq(p.outcome, VV_LOST);
    ck_assert_int_eq(p.reason, VV_LATCH_CONFLICT);
    ck_assert_int_eq(vv_wstore_latch(s), VV_LATCH_UNAVAILABLE);
    ck_assert_uint_eq(ledger(), _i ? 48 + 82 : 48);
    char path[256];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", root, name);
    ck_assert(stat(path, &st) == 0 && st.st_size == (off_t)strlen("foreign"));
    vv_wstore_close(s);
}
END_TEST

/* What is there at open is charged; a link or special file fails it. */
START_TEST(usage_scan)
{
    vv_wstore_close(open_store(7, NULL));
    put_file("tmp/orphan", "orphan");
    vv_wstore_close(open_store(7, NULL));
    ck_assert_uint_eq(ledger(), 54);
    ck_assert(exists("tmp/orphan"));
    char link[256];
    snprintf(link, sizeof link, "%s/tmp/link", root);
    ck_assert_int_eq(symlink("orphan", link), 0);
    vv_wstore *s = NULL;
    ck_assert_int_ne(try_open(&s, 7, NULL, 1 << 30, NULL), VV_OK);
    unlink(link);
    ck_assert_int_eq(mkfifo(link, 0600), 0);
    ck_assert_int_ne(try_open(&s, 7, NULL, 1 << 30, NULL), VV_OK);
}
END_TEST

static const struct {
    const char *old, *want;
} ignores[] = {
    {NULL, "*\n"},       {"*\n", "*\n"}, {"a\n  *\t\r\nb", "a\n  *\t\r\nb"}, {"x\n", "x\n*\n"}, {"x", "x\n*\n"},
    {"**\n", "**\n*\n"}, {"", "*\n"},
};

START_TEST(gitignore)
{
    char baml[80], path[96];
    snprintf(baml, sizeof baml, "%s/.baml", dir);
    snprintf(root, sizeof root, "%s/profiles-v1", baml);
    snprintf(path, sizeof path, "%s/.gitignore", baml);
    ck_assert_int_eq(mkdir(baml, 0777), 0);
    FILE *f = ignores[_i].old ? fopen(path, "w") : NULL;
    if (f) {
        fputs(ignores[_i].old, f);
        fclose(f);
    }
    vv_wstore_close(open_store(7, NULL));
    vv_blob b = {0};
    ck_assert_int_eq(vv_file_read(AT_FDCWD, path, 100, &b, NULL), VV_OK);
    ck_assert(vv_str_eq((vv_str){(const char *)b.p, b.n}, vv_cstr(ignores[_i].want)));
    vv_blob_done(&b);
}
END_TEST

/* By a link to it a store is the same one: its lease is beside the directory. */
START_TEST(root_is_a_link)
{
    vv_wstore_close(open_store(7, NULL));
    char store[96], lease[128];
    snprintf(store, sizeof store, "%s", root);
    snprintf(root, sizeof root, "%s/link", dir);
    ck_assert_int_eq(symlink("profiles-v1", root), 0);
    vv_wstore *s = open_store(8, NULL);
    ck_assert_int_eq(publish_as(s, 8, VV_PLANE_DATA, false).outcome, VV_COMMITTED);
    snprintf(lease, sizeof lease, "%s.lock", root);
    ck_assert_int_eq(access(lease, F_OK), -1);
    vv_wstore_close(s);
    unlink(root);
    ck_assert_int_eq(symlink("link", root), 0);
    vv_error err = {0};
    ck_assert_int_ne(try_open(&s, 7, NULL, 1 << 30, &err), VV_OK);
    unlink(root);
    snprintf(root, sizeof root, "%s", store);
    ck_assert(exists("streams/08080808080808080808080808080808/data/00000000000000000001.bamldata"));
}
END_TEST

START_TEST(bad_roots)
{
    vv_wstore *s = NULL;
    vv_error err = {0};
    FILE *f = fopen(root, "w");
    fclose(f);
    ck_assert_int_ne(try_open(&s, 7, NULL, 1 << 30, &err), VV_OK);
    ck_assert_ptr_null(s);
    ck_assert_int_gt(strlen(err.msg), 0);
}
END_TEST

int main(void)
{
    TCase *c = test_case("store", 30);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, sequences_and_reopening);
    tcase_add_test(c, gate_durable_in_order);
    tcase_add_test(c, gate_objects_durable_in_order);
    tcase_add_test(c, in_use_by_another_process);
    tcase_add_loop_test(c, fails_before_the_rename, 0, (int)VV_ARRAY_LEN(before));
    tcase_add_loop_test(c, indeterminate, 0, (int)VV_ARRAY_LEN(after));
    tcase_add_test(c, gate_way_for_an_opener);
    tcase_add_test(c, short_writes);
    tcase_add_test(c, limits);
    tcase_add_test(c, objects);
    tcase_add_loop_test(c, conflict, 0, 3);
    tcase_add_test(c, usage_scan);
    tcase_add_loop_test(c, gitignore, 0, (int)VV_ARRAY_LEN(ignores));
    tcase_add_test(c, root_is_a_link);
    tcase_add_test(c, bad_roots);
    return test_run();
}
