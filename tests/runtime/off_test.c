/* Where profiling is off, by wish or by necessity: nothing exists, nothing is touched, every call is harmless, the
 * reason is told. */
#include "config.h"

#include "runtime/varve.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/runtime/host.h"

uint64_t size_of_files;

static unsigned entries(const char *path)
{
    unsigned n = 0;
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* Every function, on whatever the session gives. */
static void use_all(varve_session *s)
{
    varve_engine *e = varve_engine_open(s, &(varve_engine_info){.source_label = "x"});
    ck_assert_uint_eq(varve_function_add(e, &(varve_function_info){.fqn = "f"}), 0);
    ck_assert_uint_eq(varve_file_add(e, "f"), 0);
    ck_assert_uint_eq(varve_site_add(e, 1, 2, 3, 4), 0);
    varve_thread *t = (varve_thread *)&size_of_files, *c;
    varve_root *r = varve_root_begin(e, NULL, &t);
    ck_assert_ptr_null(r);
    ck_assert_ptr_null(t);
    c = varve_thread_spawn(t, 0, 0, "n", 1);
    ck_assert_ptr_null(c);
    varve_thread_start(c, varve_ticks());
    varve_thread_bind(c);
    varve_call_begin(t, 1, 0);
    varve_call_begin_at(t, 1, 0, varve_ticks());
    varve_await_begin(t, 1);
    varve_await_end(t, 2);
    varve_call_end(t, VARVE_CALL_OK);
    varve_call_end_at(t, VARVE_CALL_OK, varve_ticks());
    ck_assert_uint_eq(varve_thread_depth(t), 0);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    varve_thread_end_at(c, VARVE_THREAD_COMPLETED, 1);
    varve_root_end(r, VARVE_SUCCEEDED);
    ck_assert(!varve_flush(s, 10));
    varve_engine_close(e);
}

static varve_state state_of(varve_session *s, const char *reason_has)
{
    varve_status st = status_of(s);
    ck_assert_msg(strstr(st.reason, reason_has) != NULL, "%s", st.reason);
    return st.state;
}

static const struct {
    const char *value;
    bool on;
} switches[] = {{"0", false}, {"", false}, {"yes", false}, {"on", false}, {"2", false}, {"1", true}, {"true", true},
                {"TRUE", true}, {" True\n", true}, {" 1 ", true}, {"11", false}};

START_TEST(by_environment)
{
    unsigned threads = entries("/proc/self/task"); /* a sanitizer may have its own */
    test_store s = store_make();
    setenv("BAML_PROFILE", switches[_i].value, 1);
    varve_options o = options_in(&s, NULL);
    varve_session *v = varve_session_open(&o);
    ck_assert_ptr_nonnull(v);
    if (!switches[_i].on) {
        ck_assert_int_eq(state_of(v, "BAML_PROFILE"), VARVE_OFF_CONFIGURED);
        use_all(v);
        ck_assert_uint_eq(entries("/proc/self/task"), threads);
    }
    varve_session_close(v);
    ck_assert_uint_eq(entries(s.dir), switches[_i].on ? 2 : 0);
    store_remove(&s);
}
END_TEST

START_TEST(by_memory)
{
    test_store s = store_make();
    varve_options o = options_in(&s, NULL);
    o.memory_bytes = 8921087;
    varve_session *v = varve_session_open(&o);
    ck_assert_int_eq(state_of(v, "8921088"), VARVE_OFF_MEMORY);
    use_all(v);
    varve_session_close(v);
    ck_assert_uint_eq(entries(s.dir), 0);
    store_remove(&s);
}
END_TEST

START_TEST(by_store)
{
    unsigned threads = entries("/proc/self/task");
    test_store s = store_make();
    FILE *f = fopen(s.root, "w");
    fclose(f);
    varve_session *v = varve_session_open(&(varve_options){.struct_size = sizeof(varve_options), .store_root = s.root});
    ck_assert_int_eq(state_of(v, s.root), VARVE_OFF_STORE);
    use_all(v);
    ck_assert_uint_eq(entries("/proc/self/task"), threads);
    varve_session_close(v);
    store_remove(&s);
}
END_TEST

/* The environment's directory wins, and a relative one is taken from where the process is now. */
START_TEST(roots)
{
    test_store s = store_make();
    ck_assert_int_eq(chdir(s.dir), 0);
    setenv("BAML_PROFILE_DIR", "here/profiles-v1/", 1);
    setenv("BAML_PROFILE_PUBLISH_INTERVAL_MS", "nonsense", 1);
    varve_options o = options_in(&s, NULL);
    o.store_root = "/nowhere/at/all";
    varve_session *v = varve_session_open(&o);
    varve_status st = status_of(v);
    char want[128];
    snprintf(want, sizeof want, "%s/here/profiles-v1", s.dir);
    ck_assert_str_eq(st.store_root, want);
    ck_assert_int_eq(chdir("/"), 0);
    varve_session_close(v);
    ck_assert_uint_eq(entries(want), 5); /* cas publish.lock streams tmp usage.state */
    store_remove(&s);
}
END_TEST

/* A forked child records nothing, can't hang, and leaves the parent's stream alone. */
START_TEST(forked)
{
    rig g = rig_live(store_make(), 1000);
    uint32_t f = function(g.engine, "f");
    varve_thread *t = rig_begin(&g);
    varve_call_begin(t, f, 0);
    pid_t pid = fork();
    if (pid == 0) {
        varve_status st = status_of(g.session);
        bool ok = st.state == VARVE_OFF_FORKED && *st.reason;
        for (unsigned i = 0; i < 100000; i++)
            varve_call_begin(t, f, 0);
        varve_thread *none;
        ok = ok && !varve_root_begin(g.engine, NULL, &none) && !varve_thread_spawn(t, 0, 0, NULL, 0) &&
             !varve_engine_open(g.session, NULL);
        ok = ok && !varve_function_add(g.engine, &(varve_function_info){.fqn = "g"}) && !varve_flush(g.session, 1000);
        varve_thread_end(t, VARVE_THREAD_COMPLETED);
        varve_root_end(g.root, VARVE_FAILED);
        varve_session_close(g.session);
        _exit(ok ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    ck_assert_int_eq(status, 0);
    varve_call_end(t, VARVE_CALL_OK);
    rig_end(&g);
    look *l = rig_close(&g);
    assert_whole(l);
    ck_assert_uint_eq(totals(l).started, 1);
    rig_remove(&g);
}
END_TEST

/* While a forked child lives, the stream of its ended parent reads as what it is: ended. */
START_TEST(forked_child_holds_no_lock)
{
    test_store s = store_make();
    varve_session *v = session_at(&s, 1000);
    int wait_for[2];
    ck_assert_int_eq(pipe(wait_for), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char c;
        close(wait_for[1]);
        ssize_t n = read(wait_for[0], &c, 1);
        _exit(n == 0 ? 0 : 1);
    }
    varve_session_close(v);
    look l = look_store(s.root);
    ck_assert_uint_eq(l.store->stream_count, 1);
    ck_assert(!l.store->streams[0].alive);
    look_done(&l);
    close(wait_for[0]);
    close(wait_for[1]);
    int status;
    waitpid(pid, &status, 0);
    store_remove(&s);
}
END_TEST

/* A full disk (here: the limit of the project) stops the recording, not the host; it is told, and new executions
 * stay off. */
START_TEST(disk_limit)
{
    test_store s = store_make();
    uint64_t interval = 5;
    varve_options o = options_in(&s, &interval);
    o.max_project_bytes = 3000;
    rig g = rig_of(s, varve_session_open(&o));
    varve_thread *t = rig_begin(&g);
    uint32_t f = function(g.engine, "f");
    for (unsigned i = 0; i < 100; i++)
        varve_call_begin(t, f, 0);
    ck_assert(!varve_flush(g.session, 10000));
    for (unsigned i = 0; i < 100; i++)
        varve_call_end(t, VARVE_CALL_OK);
    varve_thread *t2;
    ck_assert_ptr_null(varve_root_begin(g.engine, NULL, &t2));
    rig_end(&g);
    varve_flush(g.session, 10000);
    varve_status st = status_of(g.session);
    ck_assert_int_eq(st.state, VARVE_ACTIVE);
    ck_assert_msg(strstr(st.reason, "disk limit"), "%s", st.reason);
    ck_assert_uint_gt(st.batches_lost, 0);
    ck_assert_uint_eq(st.roots_refused, 1);
    look *l = rig_close(&g);
    /* The end found room: it tells of the lost segment. */
    ck_assert_int_eq(l->execution->status, VV_EXEC_SUCCEEDED);
    ck_assert_uint_gt(l->execution->health.v[VV_H_cct_segment_publish_failed], 0);
    assert_ledger(g.store.root);
    rig_remove(&g);
}
END_TEST

/* No file of this process may grow beyond this. */
static int limit_file_size(rlim_t bytes, struct rlimit *ret_old)
{
    getrlimit(RLIMIT_FSIZE, ret_old);
    return setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, ret_old->rlim_max});
}

/* A real refusal by the system: no file may grow beyond 4 KiB. The signal that goes with it must not reach the host. */
START_TEST(file_size_limit)
{
    rig g = rig_live(store_make(), 5);
    varve_thread *t = rig_begin(&g);
    uint32_t f = function(g.engine, "f");
    struct rlimit old;
    ck_assert_int_eq(limit_file_size(4096, &old), 0);
    for (unsigned i = 0; i < 200; i++)
        varve_call_begin(t, f, 0);
    ck_assert(!varve_flush(g.session, 10000));
    rig_end(&g);
    varve_session_close(g.session);
    setrlimit(RLIMIT_FSIZE, &old);
    look l = look_store(g.store.root);
    look_fold(&l, 0, 0);
    ck_assert_int_eq(l.execution->status, VV_EXEC_SUCCEEDED);
    ck_assert_uint_gt(l.execution->health.v[VV_H_cct_segment_publish_failed], 0);
    look_done(&l);
    assert_ledger(g.store.root);
    rig_remove(&g);
}
END_TEST

/* Nor at the start, where the store is made on the host's own thread; and a signal of the host's own stays its own. */
START_TEST(no_file_may_be_written)
{
    test_store s = store_make();
    struct rlimit old;
    int limited = limit_file_size(0, &old);
    sigset_t xfsz, pending;
    sigemptyset(&xfsz);
    sigaddset(&xfsz, SIGXFSZ);
    if (_i) {
        pthread_sigmask(SIG_BLOCK, &xfsz, NULL);
        raise(SIGXFSZ);
    }
    varve_options o = options_in(&s, NULL);
    varve_session *v = varve_session_open(&o);
    varve_status st = status_of(v);
    varve_session_close(v);
    sigpending(&pending);
    setrlimit(RLIMIT_FSIZE, &old); /* before anything is told: the test library writes files too */
    ck_assert_int_eq(limited, 0);
    ck_assert_int_eq(st.state, VARVE_OFF_STORE);
    ck_assert_int_eq(sigismember(&pending, SIGXFSZ), _i);
    store_remove(&s);
}
END_TEST

/* Where so few files may be open, recording would take those of the program: it says so and holds none. */
START_TEST(few_descriptors)
{
    test_store s = store_make();
    struct rlimit old, few;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = (struct rlimit){.rlim_cur = 15, .rlim_max = old.rlim_max};
    int limited = setrlimit(RLIMIT_NOFILE, &few);
    varve_options o = options_in(&s, NULL);
    varve_session *v = varve_session_open(&o);
    setrlimit(RLIMIT_NOFILE, &old);
    ck_assert_int_eq(limited, 0);
    ck_assert_int_eq(state_of(v, "15 files may be open, recording needs 16"), VARVE_OFF_STORE);
    use_all(v);
    ck_assert_uint_eq(entries(s.dir), 0);
    varve_session_close(v);
    store_remove(&s);
}
END_TEST

/* A host that has closed its standard streams finds none of the store's files in their place. */
START_TEST(no_standard_streams)
{
    enum { AWAY = 100 };
    test_store s = store_make();
    for (int fd = 0; fd < 3; fd++) {
        ck_assert_int_ge(dup2(fd, AWAY + fd), 0);
        close(fd);
    }
    rig g = rig_live(s, 20);
    record_execution(g.engine, function(g.engine, "f"), 3);
    bool flushed = varve_flush(g.session, 10000);
    bool taken = false;
    for (int fd = 0; fd < 3; fd++)
        taken = taken || fcntl(fd, F_GETFD) >= 0;
    for (int fd = 0; fd < 3; fd++)
        dup2(AWAY + fd, fd);
    ck_assert(flushed && !taken);
    rig_close(&g);
    rig_remove(&g);
}
END_TEST

/* A store that vanishes while it is written: the status does not say that all is well. */
START_TEST(store_removed)
{
    rig g = rig_live(store_make(), 5);
    varve_thread *t = rig_begin(&g);
    ck_assert(varve_flush(g.session, 10000));
    char command[PATH_MAX + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", g.store.root);
    ck_assert_int_eq(system(command), 0);
    varve_call_begin(t, function(g.engine, "f"), 0);
    varve_flush(g.session, 200);
    varve_status st = status_of(g.session);
    ck_assert_str_ne(st.reason, "");
    rig_end(&g);
    varve_session_close(g.session);
    rig_remove(&g);
}
END_TEST

/* VARVE_STATUS=1 asks for one line on standard error; nothing else is ever printed. */
static const struct {
    const char *ask, *profile, *want;
    bool line;
} lines[] = {
    {"1", NULL, "varve: recorded 1 execution to ", true},
    {"1", "0", "varve: off: off by configuration", true},
    {"0", NULL, "", false},
    {NULL, NULL, "", false},
};

START_TEST(status_line)
{
    test_store s = store_make();
    if (lines[_i].ask)
        setenv("VARVE_STATUS", lines[_i].ask, 1);
    if (lines[_i].profile)
        setenv("BAML_PROFILE", lines[_i].profile, 1);
    int out[2];
    ck_assert_int_eq(pipe(out), 0);
    int old = dup(STDERR_FILENO);
    dup2(out[1], STDERR_FILENO);
    uint64_t interval = 1000;
    varve_options o = options_in(&s, &interval);
    varve_session *v = varve_session_open(&o);
    varve_thread *t;
    varve_root *r = varve_root_begin(varve_engine_open(v, NULL), NULL, &t);
    execution_end(r, t);
    varve_session_close(v);
    dup2(old, STDERR_FILENO);
    close(out[1]);
    char text[1024] = "";
    ssize_t n = read(out[0], text, sizeof text - 1);
    ck_assert_int_ge(n, 0);
    ck_assert_msg(strncmp(text, lines[_i].want, strlen(lines[_i].want)) == 0, "%s", text);
    ck_assert_int_eq(n > 0, lines[_i].line);
    ck_assert(!lines[_i].line || strchr(text, '\n') == text + n - 1);
    store_remove(&s);
}
END_TEST

int main(void)
{
    TCase *c = test_case("off", 30);
    tcase_add_loop_test(c, by_environment, 0, (int)VV_ARRAY_LEN(switches));
    tcase_add_test(c, by_memory);
    tcase_add_test(c, by_store);
    tcase_add_test(c, roots);
    tcase_add_test(c, forked);
    tcase_add_test(c, forked_child_holds_no_lock);
    tcase_add_test(c, disk_limit);
    tcase_add_test(c, file_size_limit);
    tcase_add_loop_test(c, no_file_may_be_written, 0, 2);
    tcase_add_test(c, few_descriptors);
    tcase_add_test(c, no_standard_streams);
    tcase_add_test(c, store_removed);
    tcase_add_loop_test(c, status_line, 0, (int)VV_ARRAY_LEN(lines));
    return test_run();
}
