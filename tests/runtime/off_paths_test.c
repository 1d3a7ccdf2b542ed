/*
 * Off and suppressed: whatever a program does, nothing is owned, made, read or counted, and its language's own results
 * are the ones it has while it is recorded.
 *
 * Counted in two ways: functions of libc that the library could use are wrapped at link time, on the thread of the
 * program; and in a forked child each system call and each read of the clock, inlined ones too, is trapped.
 */
#include "config.h"

#include "runtime/session.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/sha256.h"
#include "runtime/ring.h"
#include "tests/runtime/inside.h"

uint64_t size_of_files;

/* ---- what is counted ---- */

typedef struct {
    uint64_t allocations, files, threads, clocks;
} counts;

static _Thread_local bool counting;
static counts seen;

static void saw(uint64_t *counter)
{
    if (counting)
        ++*counter;
}

#define WRAPPED(counter, result, name, parameters, arguments) \
    result __real_##name parameters; \
    result __wrap_##name parameters; \
    result __wrap_##name parameters \
    { \
        saw(&seen.counter); \
        return __real_##name arguments; \
    }
WRAPPED(allocations, void *, malloc, (size_t n), (n))
WRAPPED(allocations, void *, calloc, (size_t n, size_t k), (n, k))
WRAPPED(allocations, void *, realloc, (void *p, size_t n), (p, n))
WRAPPED(allocations, void *, aligned_alloc, (size_t align, size_t n), (align, n))
WRAPPED(allocations, char *, strdup, (const char *s), (s))
WRAPPED(allocations, void *, mmap, (void *at, size_t n, int prot, int flags, int fd, off_t off),
        (at, n, prot, flags, fd, off))
WRAPPED(threads, int, pthread_create, (pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x),
        (t, a, f, x))
WRAPPED(clocks, int, clock_gettime, (clockid_t clock, struct timespec *ret), (clock, ret))
WRAPPED(files, int, socket, (int family, int type, int protocol), (family, type, protocol))
WRAPPED(files, int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode))
WRAPPED(files, int, renameat, (int from, const char *a, int to, const char *b), (from, a, to, b))
WRAPPED(files, int, unlinkat, (int at, const char *path, int flags), (at, path, flags))
WRAPPED(files, int, fstatat, (int at, const char *path, struct stat *st, int flags), (at, path, st, flags))
WRAPPED(files, int, flock, (int fd, int how), (fd, how))
WRAPPED(files, ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
WRAPPED(files, ssize_t, read, (int fd, void *p, size_t n), (fd, p, n))
WRAPPED(files, char *, getcwd, (char *p, size_t n), (p, n))

int __real_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...)
{
    saw(&seen.files);
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return __real_openat(at, path, flags, mode);
}

/* ---- the program ---- */

/* What the language itself sees, in order; all else that is asked of the library is in wrong. */
typedef struct {
    varve_engine *engine;
    uint32_t f, g, site;
    bool suppressed, recorded; /* neither: the session is off */
    char said[512];
    size_t length;
    unsigned ids, logged;
    const char *wrong;
} program;

static void say(program *p, const char *what)
{
    size_t n = strlen(what);
    if (p->length + n + 2 > sizeof p->said)
        return;
    memcpy(p->said + p->length, what, n);
    p->length += n;
    p->said[p->length++] = ' ';
    p->said[p->length] = 0;
}

static void say_whether(program *p, bool ok)
{
    say(p, ok ? "ok" : "InvalidArgument");
}

static void hold(program *p, bool ok, const char *what)
{
    if (!ok && !p->wrong)
        p->wrong = what;
}

/* What holds where nothing is recorded. */
static void absent(program *p, bool nothing, const char *what)
{
    hold(p, p->recorded || nothing, what);
}

static varve_root *begin_root(program *p, varve_thread **t)
{
    varve_root *r = p->suppressed ? varve_root_suppress(p->engine, t) : varve_root_begin(p->engine, NULL, t);
    absent(p, !r && !*t, "a root");
    return r;
}

/* A value with something of each kind; into nothing, where it is not wanted. */
static void put_value(program *p, varve_capture *c)
{
    absent(p, !c && varve_capture_is_lost(c), "a capture");
    varve_object_begin(c, "shop.Order");
    varve_map_key(c, "id", 2);
    varve_put_int(c, 7);
    varve_map_key(c, "lines", 5);
    varve_list_begin(c);
    varve_put_text(c, "tea", 3);
    varve_put_float(c, 0.5);
    varve_put_bool(c, true);
    varve_put_null(c);
    varve_put_bytes(c, "\1\2", 2);
    varve_put_bigint(c, "-1f", 3);
    varve_put_enum(c, "shop.Size", "Large");
    varve_put_omitted(c, VARVE_OMITTED_UNSUPPORTED, "a function");
    varve_map_begin(c);
    varve_map_end(c);
    varve_list_end(c);
    varve_object_end(c);
    varve_capture_end(c);
}

static void play_call(program *p, varve_thread *t, const varve_policy *policy)
{
    varve_call_begin_as(t, p->g, p->site, 0, policy);
    absent(p, varve_call_roles(t) == 0, "a role");
    put_value(p, varve_value_begin(t, VARVE_INPUT));
    put_value(p, varve_value_begin(t, VARVE_OUTPUT));
    varve_call_end_at(t, VARVE_CALL_OK, 0);
}

static void play_llm(program *p, varve_thread *t)
{
    play_call(p, t, &(varve_policy){.llm = true});
    play_call(p, t, NULL);
}

static varve_local_id *new_id(program *p)
{
    varve_local_id *id = varve_local_id_new();
    p->ids++;
    hold(p, id, "an id");
    say(p, id && strncmp(varve_local_id_text(id), "baml_id_1_", 10) == 0 ? "id" : "none");
    return id;
}

static void consume(program *p, varve_local_id *id, varve_policy *ret)
{
    static const char *const words[] = {"keep", "on", "off"};
    bool ok = varve_local_id_consume(id, ret);
    say(p, ok ? "consumed" : "InvalidArgument");
    if (!ok)
        return;
    say(p, words[ret->input]);
    say(p, words[ret->output]);
    say(p, words[ret->error]);
    say(p, memcmp(ret->runtime_id, varve_local_id_bytes(id), 16) == 0 ? "same" : "other");
}

static void play_manual(program *p, varve_thread *t)
{
    varve_local_id *id = new_id(p), *alias = varve_local_id_ref(id);
    varve_policy policy = {.llm = false};
    say_whether(p, varve_local_id_capture(id, VARVE_SWITCH_ON, VARVE_SWITCH_KEEP, VARVE_SWITCH_OFF));
    say_whether(p, varve_local_id_capture(alias, VARVE_SWITCH_KEEP, VARVE_SWITCH_ON, VARVE_SWITCH_ON));
    consume(p, alias, &policy);
    play_call(p, t, &policy);
    say_whether(p, varve_local_id_capture(id, VARVE_SWITCH_ON, VARVE_SWITCH_ON, VARVE_SWITCH_ON));
    consume(p, id, &policy);
    varve_local_id_unref(alias);
    varve_local_id_unref(id);
}

static void play_all_false(program *p, varve_thread *t)
{
    varve_local_id *id = new_id(p);
    varve_policy policy = {.llm = false};
    varve_local_id_capture(id, VARVE_SWITCH_OFF, VARVE_SWITCH_OFF, VARVE_SWITCH_OFF);
    consume(p, id, &policy);
    play_call(p, t, &policy);
    varve_local_id_unref(id);
}

/* An error out of two calls, caught by the third. */
static void play_error(program *p, varve_thread *t, varve_error_kind kind, varve_error_source source)
{
    for (unsigned i = 0; i < 3; i++)
        varve_call_begin_as(t, i ? p->g : p->f, p->site, 0, &(varve_policy){.llm = i == 1});
    const varve_error e = {.kind = kind, .source = source, .ends = 2, .site = p->site};
    put_value(p, varve_error_begin(t, &e));
    varve_call_end_at(t, VARVE_CALL_ERRORED, 0);
    varve_call_end_at(t, VARVE_CALL_ERRORED, 0);
    varve_call_end(t, VARVE_CALL_OK);
}

static void play_await(varve_thread *t)
{
    for (unsigned i = 0; i < 3; i++) {
        varve_await_begin(t, 1);
        varve_await_end(t, 2);
    }
}

/* An ordinary child ends before its parent's call does; a detached one, after the root. */
static varve_thread *play_spawns(program *p, varve_thread *t)
{
    varve_call_begin(t, p->f, 0);
    varve_thread *child = varve_thread_spawn(t, 0, p->site, "child", 5);
    varve_thread *detached = varve_thread_spawn(t, 1, p->site, NULL, 0);
    absent(p, !child && !detached, "a thread");
    varve_thread_start(child, 0);
    play_call(p, child, NULL);
    varve_thread_end_at(child, VARVE_THREAD_COMPLETED, 0);
    varve_call_end(t, VARVE_CALL_OK);
    return detached;
}

static void play_runtime_ids(program *p, varve_thread *t)
{
    uint8_t id[16] = {0};
    say(p, varve_runtime_id_parse("baml_id_1_AAAAAAAAAAAAAAAAAAAAAA", 32, id) ? "parsed" : "InvalidArgument");
    varve_call_begin(t, p->f, 0);
    varve_call_set_runtime_id(t, 0, id);
    varve_call_set_runtime_id(t, 1, id);
    varve_call_end(t, VARVE_CALL_OK);
}

static void log_sink(void *ctx, const varve_log_event *event)
{
    program *p = ctx;
    p->logged++;
    say(p, event->message);
}

static void play_log(program *p)
{
    const varve_logger logger = {.least = VARVE_LOG_INFO, .sink = log_sink, .ctx = p};
    varve_log(&logger, &(varve_log_event){.level = VARVE_LOG_ERROR, .message = "logged", .n = 6});
    varve_log(&logger, &(varve_log_event){.level = VARVE_LOG_DEBUG, .message = "never", .n = 5});
}

static void play(program *p)
{
    varve_thread *t = (varve_thread *)p;
    varve_root *r = begin_root(p, &t);
    varve_call_begin(t, p->f, 0);
    play_llm(p, t);
    play_manual(p, t);
    play_all_false(p, t);
    for (int k = VARVE_FRESH; k <= VARVE_RETHROW; k++)
        for (int s = VARVE_FROM_BYTECODE; s <= VARVE_FROM_FUTURE; s++)
            play_error(p, t, (varve_error_kind)k, (varve_error_source)s);
    play_await(t);
    varve_thread *detached = play_spawns(p, t);
    play_runtime_ids(p, t);
    play_log(p);
    absent(p, varve_thread_depth(t) == 0, "a depth");
    varve_execution_state state;
    absent(p, !varve_execution_checkpoint(r, &state), "an execution");
    varve_call_end(t, VARVE_CALL_OK);
    varve_thread_bind(t);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    varve_root_end(r, VARVE_SUCCEEDED);
    varve_thread_start(detached, 0);
    varve_call_begin(detached, p->f, 0);
    varve_call_end(detached, VARVE_CALL_OK);
    varve_thread_end(detached, VARVE_THREAD_COMPLETED);
}

/* A whole process of a host whose session is off: from open to close. */
static void play_off(program *p)
{
    varve_session *s = varve_session_open(&(varve_options){.struct_size = sizeof(varve_options)});
    varve_status st;
    varve_session_status(s, &st);
    hold(p, st.state == VARVE_OFF_CONFIGURED, "a session that is on");
    varve_engine *engines[2];
    for (unsigned i = 0; i < 2; i++) {
        engines[i] = varve_engine_open(s, &(varve_engine_info){.source_label = "x", .roles = VARVE_ALL_ROLES});
        hold(p, !engines[i] && !varve_function_add(engines[i], &(varve_function_info){.fqn = "f"}) &&
                    !varve_site_add(engines[i], varve_file_add(engines[i], "f"), 1, 2, 3), "a name");
        p->engine = engines[i];
        play(p);
    }
    varve_stream_state stream;
    hold(p, !varve_stream_checkpoint(s, &stream) && !varve_flush(s, 1000), "a stream");
    for (unsigned i = 0; i < 2; i++)
        varve_engine_close(engines[i]);
    varve_session_close(s);
}

/* ---- stores that stay as they are ---- */

typedef struct {
    char *text;
    size_t length, size;
} listing;

static listing *listed;

static int list_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)at;
    char sum[65] = "";
    if (kind == FTW_F) {
        vv_blob b = {0};
        uint8_t digest[VV_SHA256_BYTES];
        ck_assert_int_eq(vv_file_read(AT_FDCWD, path, 1 << 26, &b, NULL), VV_OK);
        vv_sha256(b.p, b.n, digest);
        vv_hex(sum, digest, sizeof digest);
        vv_blob_done(&b);
    }
    char line[PATH_MAX + 256];
    int n = snprintf(line, sizeof line, "%s %o %lu %lu %lld %lld.%09ld %lld.%09ld %s\n", path, st->st_mode,
                     (unsigned long)st->st_ino, (unsigned long)st->st_nlink, (long long)st->st_size,
                     (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec,
                     st->st_ctim.tv_nsec, sum);
    if (listed->length + (size_t)n + 1 > listed->size) {
        listed->size = (listed->length + (size_t)n + 1) * 2;
        listed->text = realloc(listed->text, listed->size);
        ck_assert_ptr_nonnull(listed->text);
    }
    memcpy(listed->text + listed->length, line, (size_t)n + 1);
    listed->length += (size_t)n;
    return 0;
}

static int by_line(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every name below, its mode, inode, links, size, times and content; the caller frees it. */
static char *all_of(const char *dir)
{
    listing l = {NULL, 0, 0};
    listed = &l;
    ck_assert_int_eq(nftw(dir, list_entry, 16, FTW_PHYS), 0);
    char *lines[1024], *sorted = calloc(1, l.length + 1), *rest = NULL;
    size_t n = 0;
    for (char *at = l.text, *line; n < VV_ARRAY_LEN(lines) && (line = strtok_r(at, "\n", &rest)) != NULL; at = NULL)
        lines[n++] = line;
    qsort(lines, n, sizeof *lines, by_line);
    for (size_t i = 0; i < n; i++)
        strcat(strcat(sorted, lines[i]), "\n");
    free(l.text);
    return sorted;
}

static void name_things(program *p)
{
    p->f = function(p->engine, "f");
    p->g = function(p->engine, "g");
    p->site = varve_site_add(p->engine, varve_file_add(p->engine, "a.x"), 1, 2, 3);
}

/* The program, recorded: what it says then is what it must always say. */
static void play_recorded(program *p, const test_store *s)
{
    varve_session *v = session_at(s, 3600000);
    p->engine = varve_engine_open(v, &(varve_engine_info){.source_label = "x", .roles = VARVE_ALL_ROLES});
    p->recorded = true;
    name_things(p);
    play(p);
    varve_session_close(v);
    ck_assert_msg(!p->wrong, "%s", p->wrong);
}

static void assert_nothing_seen(uint64_t ids)
{
    ck_assert_uint_eq(seen.allocations, ids);
    ck_assert_uint_eq(seen.files, 0);
    ck_assert_uint_eq(seen.threads, 0);
    ck_assert_uint_eq(seen.clocks, 0);
}

static void count_from_now(bool on)
{
    if (on)
        seen = (counts){0};
    counting = on;
}

/* The clock's hardware counter is inlined where it is read; without it each read is a call, which is counted. */
static void clock_is_called(bool called)
{
    static bool hardware;
    if (called)
        hardware = vv_clock_hardware;
    vv_clock_hardware = called ? false : hardware;
}

/* The counters count: an active session needs some of each. */
START_TEST(counters_count)
{
    test_store s = store_make();
    varve_options o = options_in(&s, NULL);
    count_from_now(true);
    varve_session *v = varve_session_open(&o);
    count_from_now(false);
    varve_session_close(v);
    ck_assert_uint_gt(seen.allocations, 0);
    ck_assert_uint_gt(seen.files, 0);
    ck_assert_uint_gt(seen.threads, 0);
    ck_assert_uint_gt(seen.clocks, 0);
    store_remove(&s);
}
END_TEST

/* Every path of a program with BAML_PROFILE=0, beside a store that is there: a LocalId is one allocation, and all else
 * is none; the store is as it was, and the program's results are those of its recording. */
START_TEST(gate_off_owns_nothing)
{
    test_store s = store_make();
    program on = {.engine = NULL}, off = {.engine = NULL};
    play_recorded(&on, &s);
    char *before = all_of(s.dir);
    ck_assert_int_eq(chdir(s.dir), 0);
    setenv("BAML_PROFILE", "0", 1);
    if (_i)
        setenv("BAML_PROFILE_DIR", s.root, 1);
    clock_is_called(true);
    count_from_now(true);
    play_off(&off);
    count_from_now(false);
    clock_is_called(false);
    ck_assert_msg(!off.wrong, "%s", off.wrong);
    assert_nothing_seen(off.ids);
    ck_assert_uint_eq(off.logged, 2 * on.logged);
    ck_assert_msg(strncmp(off.said, on.said, on.length) == 0 && strcmp(off.said + on.length, on.said) == 0,
                  "%s\ninstead of twice %s", off.said, on.said);
    char *after = all_of(s.dir);
    ck_assert_str_eq(after, before);
    free(before);
    free(after);
    ck_assert_int_eq(chdir("/"), 0);
    store_remove(&s);
}
END_TEST

static uint64_t reserved(const varve_session *v)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < VV_POOLS; i++)
        sum += atomic_load(&v->governor.pools[i].used);
    return sum;
}

/* The same in suppressed roots of an active session, between whose looks a user's root is open. */
START_TEST(gate_suppressed_owns_nothing)
{
    enum { CALLS = 5 };
    test_store s = store_make(), other = store_make();
    program on = {.engine = NULL}, quiet = {.suppressed = true};
    play_recorded(&on, &other);
    store_remove(&other);
    varve_session *v = passive(&s, 0, NULL);
    quiet.engine = varve_engine_open(v, &(varve_engine_info){.source_label = "x", .roles = VARVE_ALL_ROLES});
    name_things(&quiet);
    varve_thread *user;
    varve_root *r = varve_root_begin(quiet.engine, NULL, &user);
    varve_call_begin(user, quiet.f, 0);
    settle(v);
    ck_assert(publish(v));
    char *before = all_of(s.dir);
    varve_process_counts counted, then;
    varve_process_counters(&counted);
    uint64_t memory = reserved(v);
    varve_status st = status_of(v);
    clock_is_called(true);
    count_from_now(true);
    play(&quiet);
    count_from_now(false);
    clock_is_called(false);
    ck_assert_msg(!quiet.wrong, "%s", quiet.wrong);
    assert_nothing_seen(quiet.ids);
    ck_assert_str_eq(quiet.said, on.said);
    ck_assert_uint_eq(reserved(v), memory);
    varve_process_counters(&then);
    ck_assert_mem_eq(&then, &counted, sizeof then);
    varve_status now = status_of(v);
    ck_assert_mem_eq(&now, &st, sizeof now);
    char *after = all_of(s.dir);
    ck_assert_str_eq(after, before);
    free(before);
    free(after);
    for (unsigned i = 1; i < CALLS; i++)
        call_once(user, quiet.f);
    varve_call_end(user, VARVE_CALL_OK);
    execution_end(r, user);
    settle(v);
    ck_assert(publish(v));
    varve_session_close(v);
    look l = look_at(&s);
    ck_assert_uint_eq(l.stream->execution_count, 1);
    ck_assert_uint_eq(totals_with_overflow(&l).started, CALLS);
    assert_whole(&l);
    look_done(&l);
    store_remove(&s);
}
END_TEST

/* One session that is off serves all who ask; it stays off, and another one on, whatever the environment becomes. */
START_TEST(gate_off_is_one_and_stays)
{
    test_store s = store_make();
    setenv("BAML_PROFILE", "0", 1);
    varve_options o = options_in(&s, NULL);
    varve_session *off = varve_session_open(&o);
    ck_assert_ptr_eq(varve_session_open(&o), off);
    setenv("BAML_PROFILE", "1", 1);
    varve_session *on = varve_session_open(&o);
    ck_assert_int_eq(status_of(on).state, VARVE_ACTIVE);
    setenv("BAML_PROFILE", "0", 1);
    varve_thread *t;
    varve_engine *e = varve_engine_open(off, NULL);
    ck_assert_ptr_null(varve_root_begin(e, NULL, &t));
    e = varve_engine_open(on, NULL);
    record_execution(e, function(e, "f"), 3);
    ck_assert_int_eq(status_of(off).state, VARVE_OFF_CONFIGURED);
    varve_session_close(off);
    varve_session_close(on);
    look l = look_at(&s);
    ck_assert_uint_eq(totals(&l).started, 3);
    look_done(&l);
    store_remove(&s);
}
END_TEST

/* Sanitizers make calls of their own; the filter names calls of this machine, and the clock's trap is its own. */
#if defined(__x86_64__) && !TEST_SANITIZED
#define HAVE_TRAP 1

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* Shared with the forked child. */
static struct traps {
    uint64_t system_calls, clocks, calls_checked, clocks_checked;
    int first_call;
    char wrong[128];
    unsigned ids;
    bool done;
} *traps;

static void on_system_call(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    if (!traps->system_calls++)
        traps->first_call = info->si_syscall;
}

/* rdtsc or rdtscp: counted, passed over. */
static void on_clock(int sig, siginfo_t *info, void *context)
{
    (void)info;
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *at = (const uint8_t *)g[REG_RIP];
    bool plain = at[0] == 0x0f && at[1] == 0x31, other = at[0] == 0x0f && at[1] == 0x01 && at[2] == 0xf9;
    if (!plain && !other)
        _exit(sig); /* a fault of another kind */
    traps->clocks++;
    g[REG_RIP] += plain ? 2 : 3;
    g[REG_RAX] = g[REG_RDX] = 0;
}

/* From now on each system call of this thread is counted and not made, but for getrandom and those that end a process
 * or a handler; and each read of the time stamp counter is counted. */
static bool trap_all(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog filter = {VV_ARRAY_LEN(code), code};
    struct sigaction call = {.sa_sigaction = on_system_call, .sa_flags = SA_SIGINFO};
    struct sigaction clock = {.sa_sigaction = on_clock, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &call, NULL);
    sigaction(SIGSEGV, &clock, NULL);
    return prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

enum { EXIT_NO_FILTER = 77 };

/* The traps trap. */
static void check_traps(void)
{
    getppid();
    (void)__rdtsc();
    traps->calls_checked = traps->system_calls;
    traps->clocks_checked = traps->clocks;
    traps->system_calls = traps->clocks = 0;
}

static void play_trapped(const test_store *s, bool suppressed)
{
    program p = {.suppressed = suppressed};
    if (suppressed) {
        varve_session *v = session_at(s, 3600000);
        p.engine = varve_engine_open(v, &(varve_engine_info){.source_label = "x", .roles = VARVE_ALL_ROLES});
        name_things(&p);
    } else {
        setenv("BAML_PROFILE", "0", 1);
    }
    varve_local_id_unref(varve_local_id_new()); /* the allocator has its memory */
    if (!trap_all())
        _exit(EXIT_NO_FILTER);
    check_traps();
    if (suppressed)
        play(&p);
    else
        play_off(&p);
    if (p.wrong)
        strncpy(traps->wrong, p.wrong, sizeof traps->wrong - 1);
    traps->ids = p.ids;
    traps->done = true;
    _exit(0);
}

/* Off, and in a suppressed root: no system call and no clock read at all, inlined or not. */
START_TEST(gate_no_system_call_no_clock)
{
    test_store s = store_make();
    traps = mmap(NULL, sizeof *traps, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(traps, MAP_FAILED);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        play_trapped(&s, _i);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != EXIT_NO_FILTER) {
        ck_assert_uint_eq(traps->calls_checked, 1);
        ck_assert_uint_eq(traps->clocks_checked, 1);
        ck_assert(traps->done && traps->ids);
        ck_assert_str_eq(traps->wrong, "");
        ck_assert_msg(!traps->system_calls, "%" PRIu64 ", the first is %d", traps->system_calls, traps->first_call);
        ck_assert_uint_eq(traps->clocks, 0);
    }
    munmap(traps, sizeof *traps);
    store_remove(&s);
}
END_TEST
#else
#define HAVE_TRAP 0
#endif

int main(void)
{
    TCase *c = test_case("off paths", 60);
    tcase_add_test(c, counters_count);
    tcase_add_loop_test(c, gate_off_owns_nothing, 0, 2);
    tcase_add_test(c, gate_suppressed_owns_nothing);
    tcase_add_test(c, gate_off_is_one_and_stays);
#if HAVE_TRAP
    tcase_add_loop_test(c, gate_no_system_call_no_clock, 0, 2);
#endif
    return test_run();
}
