/*
 * The small VM of docs/embedding.md, as an embedder has it: what its store says is what it did, by its own count and by
 * what its program says; and a process that embeds the library keeps its signals and its standard streams.
 */
#include "config.h"

#include "runtime/varve.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/json.h"
#include "format/cas.h"
#include "format/value.h"
#include "tests/runtime/inside.h"

uint64_t size_of_files;

/* ---- the VM ---- */

typedef struct {
    test_store store;
    char out[4096], err[4096];
    int status;
} vm_run;

/* All that comes, of which the pipe has room for what nobody reads yet. */
static void read_all(int fd, char *out, size_t n)
{
    size_t got = 0;
    for (ssize_t k; got < n - 1 && (k = read(fd, out + got, n - 1 - got)) > 0;)
        got += (size_t)k;
    out[got] = 0;
    close(fd);
}

static const char *in(const char *variable, const char *rest, char *out, size_t n)
{
    const char *top = getenv(variable);
    snprintf(out, n, "%s/%s", top ? top : ".", rest);
    return out;
}

/* Runs the VM with a program of the examples, or of a path. Its files may grow to the limit. */
static vm_run run_vm_limited(const char *program, const char *profile, rlim_t file_limit)
{
    vm_run r = {.store = store_make()};
    setenv("BAML_PROFILE", profile, 1);
    char vm[PATH_MAX], path[PATH_MAX];
    in("top_builddir", "examples/vm", vm, sizeof vm);
    if (*program == '/')
        snprintf(path, sizeof path, "%s", program);
    else
        in("top_srcdir", program, path, sizeof path);
    char *arguments[] = {vm, path, NULL};
    setenv("BAML_PROFILE_DIR", r.store.root, 1);
    setenv("VM_COUNT", "1", 1);
    int out[2], err[2];
    ck_assert(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){file_limit, file_limit});
        execv(vm, arguments);
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    read_all(out[0], r.out, sizeof r.out);
    read_all(err[0], r.err, sizeof r.err);
    ck_assert_int_eq(waitpid(pid, &r.status, 0), pid);
    ck_assert_msg(WIFEXITED(r.status), "%s", r.err);
    r.status = WEXITSTATUS(r.status);
    return r;
}

static vm_run run_vm(const char *program, const char *profile)
{
    return run_vm_limited(program, profile, RLIM_INFINITY);
}

/* A line "NAME calls failures" or "NAME n" of what the VM counted. */
static void counted_of(const vm_run *r, const char *name, uint64_t *ret_first, uint64_t *ret_second)
{
    char line[64];
    snprintf(line, sizeof line, "%s ", name);
    const char *at = strncmp(r->out, line, strlen(line)) == 0 ? r->out : NULL;
    snprintf(line, sizeof line, "\n%s ", name);
    at = at ? at : strstr(r->out, line);
    ck_assert_msg(at != NULL, "the VM has not counted %s:\n%s", name, r->out);
    unsigned long first = 0, second = 0;
    ck_assert_int_ge(sscanf(at, "%*s %lu %lu", &first, &second), 1);
    *ret_first = first;
    *ret_second = second;
}

/* Sums of a function over all its places. */
static vv_counters of_function(const look *l, const char *name)
{
    vv_counters sum = {0};
    for (uint32_t i = 0; i < l->fold->context_count; i++) {
        const vv_function *f = vv_function_table_find(&l->table, l->fold->contexts[i].tuple.function_id);
        if (f && vv_str_eq(f->fqn, vv_cstr(name)))
            vv_counters_add(&sum, &l->fold->contexts[i].counters);
    }
    return sum;
}

static const char *const functions[] = {"main", "fib", "answer", "price", "checked", "forwards", "careful", "failing",
                                        "worker", "slow", "twice", "ask", "length", "fail-with"};

/* Nothing is lost; and of the health's counters those that count evidence have counted. */
static void assert_healthy(const look *l, uint64_t unwinds, uint64_t links)
{
    static const char *const of_unwinds[] = {"applicable_error_unwinds", "error_captures_queued",
                                             "error_captures_committed"};
    static const char *const of_links[] = {"terminal_error_links_observed", "terminal_error_links_queued",
                                           "terminal_error_links_committed"};
    ck_assert_int_eq(l->execution->index_state, VV_INDEX_COMPLETE);
    ck_assert(l->fold->complete && l->fold->issue_count == 0 && l->fold->thread_issue_count == 0);
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++) {
        const char *name = vv_health_name(i);
        uint64_t want = 0;
        for (unsigned k = 0; k < 3; k++)
            want += (strcmp(name, of_unwinds[k]) == 0 ? unwinds : 0) + (strcmp(name, of_links[k]) == 0 ? links : 0);
        ck_assert_msg(l->execution->health.v[i] == want, "%s is %" PRIu64, name, l->execution->health.v[i]);
    }
}

/* Every call, every end in error, every wait and every thread, by the VM's own count. */
START_TEST(gate_vm_counts)
{
    vm_run r = run_vm("examples/shop.vm", "1");
    ck_assert_msg(r.status == 0 && !*r.err, "%d: %s", r.status, r.err);
    look l = look_at(&r.store);
    assert_healthy(&l, 6, 4);
    ck_assert_uint_eq(l.stream->execution_count, 1);
    ck_assert_int_eq(l.execution->status, VV_EXEC_SUCCEEDED);
    uint64_t calls, failures, waits, spawns, none, sum = 0, awaited = 0;
    for (unsigned i = 0; i < VV_ARRAY_LEN(functions); i++) {
        vv_counters c = of_function(&l, functions[i]);
        counted_of(&r, functions[i], &calls, &failures);
        ck_assert_uint_gt(calls, 0);
        ck_assert_msg(c.started == calls && c.error == failures && c.ok == calls - failures,
                      "%s: %" PRIu64 " calls, %" PRIu64 " of them in error", functions[i], c.started, c.error);
        awaited += c.await_count;
        sum += calls;
    }
    ck_assert_uint_eq(totals_with_overflow(&l).started, sum);
    counted_of(&r, "awaits", &waits, &none);
    ck_assert_uint_eq(awaited, waits);
    counted_of(&r, "spawns", &spawns, &none);
    ck_assert_uint_eq(l.fold->thread_count, spawns + 1);
    look_done(&l);
    store_remove(&r.store);
}
END_TEST

/* ---- evidence ---- */

static const char *name_of(const look *l, uint32_t id)
{
    static char text[64];
    const vv_function *f = vv_function_table_find(&l->table, id);
    snprintf(text, sizeof text, "%.*s", f ? (int)f->fqn.n : 1, f ? f->fqn.p : "?");
    return text;
}

/* A value as JSON, "-" for none, "lost". */
static void value_text(const test_store *s, bool has, const vv_value_state *v, char *out, size_t n)
{
    snprintf(out, n, "%s", !has ? "-" : "lost");
    if (!has || v->lost)
        return;
    char path[VV_CAS_PATH], full[PATH_MAX];
    vv_cas_path(path, &v->cid);
    snprintf(full, sizeof full, "%s/%s", s->root, path);
    vv_blob b = {0};
    vv_error err = {0};
    ck_assert_msg(vv_file_read(AT_FDCWD, full, 1 << 20, &b, &err) == VV_OK, "%s", err.msg);
    vv_cas_object o;
    ck_assert_msg(vv_cas_decode(&o, b.p, b.n, &v->cid, &err) == VV_OK, "%s", err.msg);
    ck_assert_uint_eq(o.codec, VV_CODEC_VALUE);
    uint8_t json[4096];
    vv_wr w = vv_wr_fixed(json, sizeof json);
    vv_json j = vv_json_init(&w);
    bool cut;
    const vv_value_limits limits = {.max_depth = 16, .max_bytes = sizeof json};
    ck_assert_msg(vv_value_show(&j, o.body, o.body_len, &limits, &cut, &err) == VV_OK, "%s", err.msg);
    snprintf(out, n, "%.*s", (int)w.len, json);
    vv_blob_done(&b);
}

typedef struct {
    char lines[32][512];
    unsigned n;
} lines;

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void assert_lines(lines *got, const char *const *want, unsigned n)
{
    qsort(got->lines, got->n, sizeof *got->lines, by_text);
    for (unsigned i = 0; i < got->n && i < n; i++)
        ck_assert_str_eq(got->lines[i], want[i]);
    ck_assert_uint_eq(got->n, n);
}

/* In order of text: spans with their reasons and roles in bits (root or input 1, LLM or output 2, manual or error 4),
 * and errors with thrower, kind (fresh 0, rethrow 1) and source (bytecode 0, native 1, engine 2, future 3). */
static const char *const evidence[] = {
    "answer because 2 roles 7: Errored, [\"\"] -> -, linked",
    "answer because 2 roles 7: Ok, [\"what is tea?\"] -> \"an answer\"",
    "ask 0 2 \"NothingToAsk\" ends 1",
    "careful 0 0 \"bad\" ends 0",
    "careful 1 0 \"bad\" ends 1",
    "careful because 4 roles 4: Errored, - -> -, linked",
    "checked because 4 roles 4: Errored, - -> -, linked",
    "fail-with 1 1 \"given\" ends 1",
    "forwards because 4 roles 4: Errored, - -> -, linked",
    "length 0 1 \"NoList\" ends 1",
    "main 1 3 \"no stock\" ends 0",
    "main because 1 roles 7: Ok, [] -> [[1,\"two\"],{\"$omitted\":\"hostOwnedValue\",\"message\":\"an id\"}]",
    "price because 4 roles 0: Ok, - -> -",
    "price because 4 roles 1: Ok, [7] -> -",
    "price because 4 roles 2: Ok, - -> 36",
    "price because 4 roles 5: Ok, [9] -> -",
};

static void describe_span(const look *l, const test_store *s, const vv_fold_span *p, char *out, size_t n)
{
    char input[128], output[128];
    ck_assert(p->has_start && p->has_end);
    value_text(s, p->has_input, &p->input, input, sizeof input);
    value_text(s, p->has_output, &p->output, output, sizeof output);
    snprintf(out, n, "%s because %u roles %u: %s, %s -> %s%s", name_of(l, p->start.function_id), p->start.reasons,
             p->start.roles, vv_call_status_name(p->end.status), input, output,
             !p->has_terminal ? "" : p->terminal.lost ? ", link lost" : ", linked");
}

static void describe_error(const look *l, const test_store *s, const vv_error_capture *e, char *out, size_t n)
{
    char text[128];
    unsigned ends = 0;
    value_text(s, true, &e->value, text, sizeof text);
    for (size_t i = 0; i < l->fold->span_count; i++) {
        const vv_terminal_error *t = &l->fold->spans[i].terminal;
        ends += l->fold->spans[i].has_terminal && !t->lost && memcmp(&t->capture, &e->id, sizeof e->id) == 0;
    }
    snprintf(out, n, "%s %u %u %s ends %u", name_of(l, e->function_id), e->kind, e->source, text, ends);
}

/* A program that is given as text. */
static vm_run run_text(const char *program, const char *profile)
{
    char path[] = "/tmp/varve-vm-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    size_t n = strlen(program);
    ck_assert_int_eq(write(fd, program, n), (ssize_t)n);
    close(fd);
    vm_run r = run_vm(path, profile);
    unlink(path);
    return r;
}

static lines describe_all(const look *l, const test_store *s)
{
    lines got = {.n = 0};
    ck_assert_uint_le(l->fold->span_count + l->fold->error_count, VV_ARRAY_LEN(got.lines));
    for (size_t i = 0; i < l->fold->span_count; i++)
        describe_span(l, s, &l->fold->spans[i], got.lines[got.n++], sizeof got.lines[0]);
    for (size_t i = 0; i < l->fold->error_count; i++)
        describe_error(l, s, &l->fold->errors[i], got.lines[got.n++], sizeof got.lines[0]);
    return got;
}

/* Spans with their reasons, roles, ends and values; errors with their kind, source, thrower, value and links; and the
 * runtime id that the program has set. */
START_TEST(gate_vm_evidence)
{
    vm_run r = run_vm("examples/shop.vm", "1");
    look l = look_at(&r.store);
    lines got = describe_all(&l, &r.store);
    assert_lines(&got, evidence, VV_ARRAY_LEN(evidence));
    for (size_t i = 0; i < l.fold->span_count; i++)
        if (l.fold->spans[i].start.reasons & VV_REASON_ROOT)
            for (unsigned k = 0; k < 16; k++)
                ck_assert_uint_eq(l.fold->spans[i].runtime_id.b[k], k);
    look_done(&l);
    store_remove(&r.store);
}
END_TEST

/* What the VM itself ran before main is in its own count and nowhere else. */
START_TEST(gate_vm_suppressed)
{
    vm_run r = run_vm("examples/shop.vm", "1");
    uint64_t calls, failures;
    counted_of(&r, "warm", &calls, &failures);
    ck_assert_uint_eq(calls, 4);
    look l = look_at(&r.store);
    ck_assert_uint_eq(of_function(&l, "warm").started, 0);
    ck_assert_uint_eq(of_function(&l, "setup").started, 0);
    look_done(&l);
    store_remove(&r.store);
}
END_TEST

/* Ways to run the same program, of which the first is whole. */
static const struct {
    const char *name, *profile, *memory;
    rlim_t file_limit;
} ways[] = {
    {"recorded", "1", "0", RLIM_INFINITY},
    {"off", "0", "0", RLIM_INFINITY},
    {"no file may grow", "1", "0", 3000},
    {"the least memory", "1", "8921088", RLIM_INFINITY},
    {"too little memory", "1", "8921087", RLIM_INFINITY},
#if !TEST_SANITIZED /* one of them writes a file of its own at the start */
    {"no file may be written", "1", "0", 0},
#endif
};

static vm_run run_vm_in(unsigned way)
{
    setenv("VM_LOG", "1", 1);
    setenv("VM_MEMORY", ways[way].memory, 1);
    return run_vm_limited("examples/shop.vm", ways[way].profile, ways[way].file_limit);
}

/* The same output, status, counts and log, whatever becomes of the recording. */
START_TEST(gate_vm_is_the_same_anyhow)
{
    vm_run whole = run_vm_in(0), r = run_vm_in((unsigned)_i);
    ck_assert_int_eq(r.status, whole.status);
    ck_assert_str_eq(r.out, whole.out);
    ck_assert_str_eq(r.err, whole.err);
    ck_assert_ptr_nonnull(strstr(whole.err, "main -: begins\n"));
    store_remove(&whole.store);
    store_remove(&r.store);
}
END_TEST

/* Who does not take a LocalId rejects it and does not use it up; whom it is passed to is selected, and not who is
 * called there; one that is only told what to capture selects nothing. */
START_TEST(gate_vm_identity)
{
    static const char program[] = "fn main 0\n id\n capture +..\n try rejected\n int 1\n load 0\n with length 1\n"
                                  " caught\nrejected:\n log rejected\n int 5\n load 0\n with outer 1\n pop\n"
                                  " id\n capture +++\n pop\n int 6\n call outer 1\n return\n"
                                  "fn outer 1\n load 0\n call inner 1\n return\nfn inner 1\n load 0\n return\n";
    static const char *const want[] = {
        "main 0 0 \"InvalidArgument\" ends 0",
        "main because 1 roles 7: Ok, [] -> 6",
        "outer because 4 roles 1: Ok, [5] -> -",
    };
    setenv("VM_LOG", "1", 1);
    vm_run r = run_text(program, "1"), off = run_text(program, "0");
    ck_assert_str_eq(r.err, "main -: rejected\n");
    ck_assert_str_eq(off.err, r.err);
    ck_assert_str_eq(off.out, r.out);
    look l = look_at(&r.store);
    lines got = describe_all(&l, &r.store);
    assert_lines(&got, want, VV_ARRAY_LEN(want));
    look_done(&l);
    store_remove(&r.store);
    store_remove(&off.store);
}
END_TEST

/* An error that nobody catches: the execution has failed, the host says so, and the root is linked to it. */
START_TEST(gate_vm_fails)
{
    vm_run r = run_text("fn main 0\n    try here\n    text first\n    throw\nhere:\n    call inner 1\n"
                        "fn inner 1\n    load 0\n    throw\n", "1");
    ck_assert_int_eq(r.status, 1);
    ck_assert_str_eq(r.err, "vm: main: first\n");
    look l = look_at(&r.store);
    ck_assert_int_eq(l.execution->status, VV_EXEC_FAILED);
    ck_assert_uint_eq(l.fold->span_count, 1);
    ck_assert_uint_eq(l.fold->error_count, 2);
    const vv_fold_span *p = &l.fold->spans[0];
    ck_assert(p->has_terminal && !p->terminal.lost && !p->has_output);
    ck_assert_uint_eq(vv_capture_ordinal(&p->terminal.capture),
                      vv_capture_ordinal(&l.fold->errors[0].id) > vv_capture_ordinal(&l.fold->errors[1].id)
                          ? vv_capture_ordinal(&l.fold->errors[0].id)
                          : vv_capture_ordinal(&l.fold->errors[1].id));
    look_done(&l);
    store_remove(&r.store);
}
END_TEST

/* ---- the process around ---- */

static void all_signals(struct sigaction out[NSIG])
{
    memset(out, 0, NSIG * sizeof *out);
    for (int i = 1; i < NSIG; i++)
        sigaction(i, NULL, &out[i]);
}

/* What lies behind a set's last signal is nobody's. */
static bool same_set(const sigset_t *a, const sigset_t *b)
{
    for (int i = 1; i < NSIG; i++)
        if (sigismember(a, i) != sigismember(b, i))
            return false;
    return true;
}

static bool same_signals(const struct sigaction *a, const struct sigaction *b)
{
    for (int i = 1; i < NSIG; i++)
        if (a[i].sa_handler != b[i].sa_handler || a[i].sa_flags != b[i].sa_flags ||
            !same_set(&a[i].sa_mask, &b[i].sa_mask))
            return false;
    return true;
}

static void on_signal(int sig)
{
    (void)sig;
}

/* Standard output and error, kept in a file meanwhile. */
typedef struct {
    FILE *file;
    int out, err;
} kept;

static kept keep_streams(void)
{
    fflush(NULL);
    kept k = {tmpfile(), dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    ck_assert_ptr_nonnull(k.file);
    dup2(fileno(k.file), STDOUT_FILENO);
    dup2(fileno(k.file), STDERR_FILENO);
    return k;
}

/* How much was written to them. */
static off_t release_streams(kept *k)
{
    fflush(NULL);
    off_t n = lseek(fileno(k->file), 0, SEEK_END);
    dup2(k->out, STDOUT_FILENO);
    dup2(k->err, STDERR_FILENO);
    close(k->out);
    close(k->err);
    fclose(k->file);
    return n;
}

static const struct {
    const char *name, *profile;
    uint64_t limit;
} lives[] = {{"on", "1", 0}, {"off", "0", 0}, {"a full disk", "1", 2000}};

/* From open to close, on, off and where the disk is full: no signal's action, no mask and no stream has changed, then
 * and after. */
START_TEST(gate_process_is_left_alone)
{
    test_store s = store_make();
    setenv("BAML_PROFILE", lives[_i].profile, 1);
    struct sigaction before[NSIG], inside[NSIG], after[NSIG];
    sigset_t mask, mask_inside, mask_after;
    signal(SIGUSR1, on_signal);
    signal(SIGPIPE, SIG_IGN);
    all_signals(before);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    kept streams = keep_streams();
    uint64_t interval = 1;
    varve_options o = options_in(&s, &interval);
    o.max_project_bytes = lives[_i].limit;
    varve_session *v = varve_session_open(&o);
    varve_engine *e = varve_engine_open(v, &(varve_engine_info){.source_label = "x", .roles = VARVE_ALL_ROLES});
    varve_thread *t;
    varve_root *r = varve_root_begin(e, NULL, &t);
    for (unsigned i = 0; i < 100; i++)
        call_once(t, varve_function_add(e, &(varve_function_info){.fqn = "f"}));
    varve_flush(v, 10000);
    all_signals(inside);
    pthread_sigmask(SIG_BLOCK, NULL, &mask_inside);
    execution_end(r, t);
    varve_engine_close(e);
    varve_session_close(v);
    all_signals(after);
    pthread_sigmask(SIG_BLOCK, NULL, &mask_after);
    off_t written = release_streams(&streams);
    ck_assert_msg(same_signals(before, inside) && same_signals(before, after), "%s: an action", lives[_i].name);
    ck_assert_msg(same_set(&mask, &mask_inside) && same_set(&mask, &mask_after), "%s: the mask", lives[_i].name);
    ck_assert_int_eq(written, 0);
    store_remove(&s);
}
END_TEST

int main(void)
{
    TCase *c = test_case("embed", 60);
    tcase_add_test(c, gate_vm_counts);
    tcase_add_test(c, gate_vm_evidence);
    tcase_add_test(c, gate_vm_suppressed);
    tcase_add_loop_test(c, gate_vm_is_the_same_anyhow, 1, (int)VV_ARRAY_LEN(ways));
    tcase_add_test(c, gate_vm_identity);
    tcase_add_test(c, gate_vm_fails);
    tcase_add_loop_test(c, gate_process_is_left_alone, 0, (int)VV_ARRAY_LEN(lives));
    return test_run();
}
