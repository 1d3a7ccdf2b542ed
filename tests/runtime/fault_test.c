/*
 * The store under other processes and bad disks: a lock that is held by a stopped process, several writers at the
 * limit, objects that change while they are looked at, directory syncs that fail after the rename.
 */
#include "config.h"

#include "runtime/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/runtime/inside.h"

uint64_t size_of_files;

static uint64_t now_ms(void)
{
    return vv_clock_monotonic_ns() / 1000000;
}

/* A process that holds publish.lock and is stopped. */
static pid_t stopped_holder(const char *root)
{
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char path[128];
        snprintf(path, sizeof path, "%s/publish.lock", root);
        int fd = open(path, O_RDWR);
        if (fd < 0 || flock(fd, LOCK_EX) < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        raise(SIGSTOP);
        _exit(0);
    }
    char c;
    ck_assert_int_eq(read(ready[0], &c, 1), 1);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(status));
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void go_on(pid_t pid)
{
    kill(pid, SIGCONT);
    waitpid(pid, NULL, 0);
}

/* So many executions were committed, each once and whole, with so many calls of f. */
static void assert_all_whole(look *l, size_t executions, uint64_t calls)
{
    ck_assert_uint_eq(l->store->streams[0].execution_count, executions);
    for (size_t i = 0; i < executions; i++) {
        look_fold(l, 0, i);
        assert_whole(l);
        ck_assert_uint_eq(started(l, "f"), calls);
    }
}

/* Another process stops while it holds the lock. The host runs on, waits are bounded and counted, and once the process
 * goes on everything is committed, once. */
START_TEST(gate_stopped_lock_holder)
{
    rig g = rig_live(store_make_quick(), 20);
    uint32_t f = function(g.engine, "f");
    record_execution(g.engine, f, 3);
    ck_assert(varve_flush(g.session, 5000));
    pid_t pid = stopped_holder(g.store.root);
    uint64_t from = now_ms();
    for (unsigned i = 0; i < 50; i++)
        record_execution(g.engine, f, 3);
    ck_assert_uint_lt(now_ms() - from, 1000);
    ck_assert(!varve_flush(g.session, 10000));
    ck_assert_uint_lt(now_ms() - from, 8000);
    record_execution(g.engine, f, 3);
    varve_status st = status_of(g.session);
    ck_assert_uint_gt(st.lock_timeouts, 0);
    ck_assert_uint_eq(st.batches_lost, 0);
    go_on(pid);
    ck_assert(varve_flush(g.session, 10000));
    st = status_of(g.session);
    ck_assert_uint_eq(st.batches_lost, 0);
    ck_assert_uint_eq(st.roots_begun, 52);
    look *l = rig_close(&g);
    assert_all_whole(l, 52, 3);
    assert_ledger(g.store.root);
    rig_remove(&g);
}
END_TEST

/* After one wait in vain the next are short, so that a consumer goes on decoding beside a lock that stays away. */
START_TEST(waits_in_vain_get_short)
{
    enum { WAITS = 40 };
    test_store store = store_make_quick();
    vv_wstore_options o = {.root = store.root, .max_project_bytes = 1 << 20};
    vv_wstore *s;
    ck_assert(vv_wstore_open(&s, &o, NULL) == VV_OK);
    pid_t pid = stopped_holder(store.root);
    uint8_t file[100] = {0};
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < WAITS; i++) {
        uint64_t at = now_ms();
        ck_assert_int_eq(vv_wstore_publish(s, VV_PLANE_DATA, file, sizeof file, false).outcome, VV_BLOCKED);
        uint64_t took = now_ms() - at;
        least = took < least ? took : least;
    }
    ck_assert_uint_lt(least, 200);
    ck_assert_uint_eq(vv_wstore_lock_timeouts(s), WAITS);
    go_on(pid);
    vv_wstore_close(s);
    store_remove(&store);
}
END_TEST

/* Ends the session; text is the line it prints for VARVE_STATUS. */
static void close_and_listen(varve_session *v, char *text, size_t size)
{
    int out[2], old = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(out), 0);
    dup2(out[1], STDERR_FILENO);
    setenv("VARVE_STATUS", "1", 1);
    varve_session_close(v);
    unsetenv("VARVE_STATUS");
    dup2(old, STDERR_FILENO);
    close(old);
    close(out[1]);
    ssize_t n = read(out[0], text, size - 1);
    ck_assert_int_gt(n, 0);
    text[n] = 0;
    close(out[0]);
}

/*
 * It never goes on: the host ends in bounded time all the same, says that something is missing, and what was committed
 * before is whole.
 */
START_TEST(gate_stopped_for_good)
{
    char line[1024];
    varve_process_counts before, after;
    varve_process_counters(&before);
    rig g = rig_live(store_make_quick(), 20);
    uint32_t f = function(g.engine, "f");
    record_execution(g.engine, f, 3);
    ck_assert(varve_flush(g.session, 5000));
    pid_t pid = stopped_holder(g.store.root);
    record_execution(g.engine, f, 3);
    uint64_t from = now_ms();
    close_and_listen(g.session, line, sizeof line);
    ck_assert_uint_lt(now_ms() - from, 7000);
    ck_assert_msg(strstr(line, ": another process held the store's lock") != NULL, "%s", line);
    varve_process_counters(&after);
    ck_assert_uint_eq(after.root_ended_lost, before.root_ended_lost + 1);
    /* A new session can't be had, and says so, also within bounds. */
    varve_options o = options_in(&g.store, NULL);
    varve_session *next = varve_session_open(&o);
    ck_assert_int_eq(status_of(next).state, VARVE_OFF_STORE);
    varve_session_close(next);
    ck_assert_uint_lt(now_ms() - from, 12000);
    go_on(pid);
    look l = look_at(&g.store);
    assert_whole(&l);
    ck_assert_uint_eq(l.stream->execution_count, 1);
    look_done(&l);
    rig_remove(&g);
}
END_TEST

/* Writers in several processes up to the byte limit: together they never pass it, and the ledger is exact. */
START_TEST(gate_processes_at_the_limit)
{
    enum { WRITERS = 4, LIMIT = 20000 };
    test_store s = store_make_quick();
    pid_t pids[WRITERS];
    for (unsigned i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i])
            continue;
        vv_wstore *w = NULL;
        vv_wstore_options o = {.root = s.root, .max_project_bytes = LIMIT, .minimum_free_bytes = 1};
        memset(o.euid.b, 1 + (int)i, sizeof o.euid.b);
        if (vv_wstore_open(&w, &o, NULL) != VV_OK)
            _exit(2);
        unsigned committed = 0;
        for (bool more = true; more && committed < 1000;) {
            vv_wr b = vv_wr_growing(1000);
            vv_data_begin(&b, &o.euid, vv_wstore_next(w, VV_PLANE_DATA));
            vv_data_end(&b, 0);
            vv_published p = vv_wstore_publish(w, VV_PLANE_DATA, b.buf, b.len, false);
            more = p.outcome == VV_COMMITTED || p.outcome == VV_BLOCKED;
            committed += p.outcome == VV_COMMITTED;
            if (p.outcome == VV_LOST && p.reason != VV_LATCH_DISK)
                _exit(3);
            vv_wr_done(&b);
        }
        bool ok = vv_wstore_latch(w) == VV_LATCH_DISK && vv_wstore_high(w, VV_PLANE_DATA) == committed;
        vv_wstore_close(w);
        _exit(ok ? 0 : 4);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        ck_assert_int_eq(status, 0);
    }
    assert_ledger(s.root);
    ck_assert_uint_le(size_of_files, LIMIT);
    ck_assert_uint_gt(size_of_files, LIMIT - 500);
    store_remove(&s);
}
END_TEST

/* A file of the object's name is put in place of the verified one, n times, before the lock is taken. */
typedef struct {
    char path[256], other[280];
    int swaps;
    bool remove, bad;
} swapper;

static void write_file(const char *path, const uint8_t *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(write(fd, p, n), (ssize_t)n);
    close(fd);
}

static int swap_file(void *ctx, vv_step at)
{
    swapper *w = ctx;
    if (at != VV_STEP_LOCK || w->swaps == 0)
        return 0;
    w->swaps--;
    vv_blob b = {0};
    if (vv_file_read(AT_FDCWD, w->path, 10000, &b, NULL) == VV_OK) {
        if (w->bad)
            b.p[60] ^= 1;
        write_file(w->other, b.p, b.n);
        if (w->remove)
            unlink(w->path);
        else if (rename(w->other, w->path) < 0)
            return EIO;
    } else {
        /* Not there yet: another process is faster. */
        if (rename(w->other, w->path) < 0)
            return EIO;
    }
    vv_blob_done(&b);
    return 0;
}

static const struct {
    int swaps;
    bool remove, bad, absent;
    vv_outcome outcome;
    vv_latch reason;
} swaps[] = {
    {0, false, false, false, VV_REUSED, VV_LATCH_OPEN},
    {1, false, false, false, VV_REUSED, VV_LATCH_OPEN},          /* another good file: looked at again */
    {3, false, false, false, VV_REUSED, VV_LATCH_OPEN},
    {1, true, false, false, VV_COMMITTED, VV_LATCH_OPEN},        /* gone: published */
    {1, false, true, false, VV_LOST, VV_LATCH_CONFLICT},         /* a bad one: never accepted on the old look */
    {100, false, false, false, VV_LOST, VV_LATCH_UNAVAILABLE},   /* it never holds still */
    {1, false, false, true, VV_REUSED, VV_LATCH_OPEN},           /* absent, then another was faster */
};

START_TEST(gate_cas_hit_is_rehashed_and_rechecked)
{
    static const char body[] = "a body of some length, so that one bit of it can be wrong";
    test_store s = store_make_quick();
    vv_wstore_object obj = {.codec = VV_CODEC_FUNCTION_TABLE, .body = (const uint8_t *)body, .len = sizeof body};
    vv_cid_of(&obj.cid, obj.codec, body, sizeof body);
    char name[VV_CAS_PATH];
    vv_cas_path(name, &obj.cid);
    swapper w = {.swaps = 0, .remove = swaps[_i].remove, .bad = swaps[_i].bad};
    snprintf(w.path, sizeof w.path, "%s/%s", s.root, name);
    snprintf(w.other, sizeof w.other, "%s.other", w.path);
    vv_wstore *store = NULL;
    vv_wstore_options o = {.root = s.root, .max_project_bytes = 1 << 20, .minimum_free_bytes = 1,
                           .hooks = {.step = swap_file, .ctx = &w}};
    memset(o.euid.b, 7, sizeof o.euid.b);
    ck_assert_int_eq(vv_wstore_open(&store, &o, NULL), VV_OK);
    ck_assert_int_eq(vv_wstore_publish_object(store, &obj).outcome, VV_COMMITTED);
    if (swaps[_i].absent)
        ck_assert_int_eq(rename(w.path, w.other), 0);
    w.swaps = swaps[_i].swaps;
    vv_published p = vv_wstore_publish_object(store, &obj);
    ck_assert_int_eq(p.outcome, swaps[_i].outcome);
    if (p.outcome == VV_LOST)
        ck_assert_int_eq(p.reason, swaps[_i].reason);
    ck_assert_int_eq(vv_wstore_latch(store), VV_LATCH_OPEN);
    vv_wstore_close(store);
    store_remove(&s);
}
END_TEST

/* A hit of 64 MiB is read without the lock: it is free meanwhile. */
typedef struct {
    char lock[128];
    unsigned taken;
} probe;

static int probe_lock(void *ctx, vv_step at)
{
    probe *p = ctx;
    if (at != VV_STEP_LOCK)
        return 0;
    int fd = open(p->lock, O_RDWR);
    p->taken += flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return 0;
}

START_TEST(gate_hit_is_hashed_outside_the_lock)
{
    test_store s = store_make_quick();
    enum { N = 8 << 20 };
    uint8_t *body = calloc(1, N);
    vv_wstore_object obj = {.codec = VV_CODEC_FUNCTION_TABLE, .body = body, .len = N};
    vv_cid_of(&obj.cid, obj.codec, body, N);
    probe pr = {.taken = 0};
    snprintf(pr.lock, sizeof pr.lock, "%s/publish.lock", s.root);
    vv_wstore *store = NULL;
    vv_wstore_options o = {.root = s.root, .max_project_bytes = 1 << 30, .minimum_free_bytes = 1,
                           .hooks = {.step = probe_lock, .ctx = &pr}};
    memset(o.euid.b, 7, sizeof o.euid.b);
    ck_assert_int_eq(vv_wstore_open(&store, &o, NULL), VV_OK);
    ck_assert_int_eq(vv_wstore_publish_object(store, &obj).outcome, VV_COMMITTED);
    pr.taken = 0;
    ck_assert_int_eq(vv_wstore_publish_object(store, &obj).outcome, VV_REUSED);
    ck_assert_uint_eq(pr.taken, 1); /* the read is over, and the lock was not held for it */
    vv_wstore_close(store);
    free(body);
    store_remove(&s);
}
END_TEST

/* The directory's sync fails for a while after the rename: nothing passes it, and then it is committed once. */
START_TEST(gate_failed_directory_sync)
{
    bad_disk disk = {VV_STEP_FSYNC_DIRECTORY, EIO, .times = 0};
    rig g = rig_stepped(store_make_quick(), 0, &disk);
    uint32_t f = function(g.engine, "f");
    record_execution(g.engine, f, 1);
    disk.times = 5;
    for (unsigned i = 0; i < 5; i++) {
        ck_assert(!publish(g.session));
        ck_assert(!vv_wstore_takes_roots(g.session->store));
        varve_thread *none;
        ck_assert_ptr_null(varve_root_begin(g.engine, NULL, &none));
    }
    ck_assert(publish(g.session));
    record_execution(g.engine, f, 1);
    ck_assert(publish(g.session));
    look *l = rig_close(&g);
    assert_all_whole(l, 2, 1);
    assert_ledger(g.store.root);
    rig_remove(&g);
}
END_TEST

int main(void)
{
    TCase *c = test_case("fault", 60);
    tcase_add_test(c, gate_stopped_lock_holder);
    tcase_add_test(c, gate_stopped_for_good);
    tcase_add_test(c, waits_in_vain_get_short);
    tcase_add_test(c, gate_processes_at_the_limit);
    tcase_add_loop_test(c, gate_cas_hit_is_rehashed_and_rechecked, 0, (int)VV_ARRAY_LEN(swaps));
    tcase_add_test(c, gate_hit_is_hashed_outside_the_lock);
    tcase_add_test(c, gate_failed_directory_sync);
    return test_run();
}
