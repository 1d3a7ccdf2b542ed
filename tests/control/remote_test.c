/* Requests from other processes: what is on the wire, whom the host listens to, and what neither side can do to the
 * other. */
#include "config.h"

#include "control/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/listen.h"
#include "tests/control/app.h"
#include "tests/testing.h"

enum { PATIENCE_MS = 60000 };

/* The wire. */

static size_t put(uint8_t *out, size_t size, vv_remote_verb verb, const char *subject, const char *arguments)
{
    vv_wr w = vv_wr_fixed(out, size);
    vv_remote_request q = {verb, vv_cstr(subject), vv_cstr(arguments)};
    vv_remote_put_request(&w, &q);
    ck_assert(vv_wr_ok(&w));
    return w.len;
}

START_TEST(request_bytes)
{
    static const uint8_t want[] = {'v', 'a', 'r', 'v', 0, 1, 1, 0, 0, 0, 2, '/', 'p', 0, 0, 0, 1, 'x'};
    uint8_t bytes[64];
    ck_assert_uint_eq(put(bytes, sizeof bytes, VV_REMOTE_ATTACH, "/p", "x"), sizeof want);
    ck_assert_mem_eq(bytes, want, sizeof want);
    vv_remote_request q;
    vv_remote_outcome o;
    ck_assert_int_eq(vv_remote_get_request(want, sizeof want, &q, &o), VV_OK);
    ck_assert_int_eq(q.verb, VV_REMOTE_ATTACH);
    ck_assert(vv_str_eq(q.subject, vv_cstr("/p")) && vv_str_eq(q.arguments, vv_cstr("x")));
}
END_TEST

/* One byte of a good request replaced: at, by, and what becomes of it. */
static const struct {
    size_t at;
    uint8_t by;
    vv_remote_outcome outcome;
} wrong[] = {
    {0, 'V', VV_REMOTE_INVALID}, {5, 2, VV_REMOTE_VERSION},  {4, 9, VV_REMOTE_VERSION}, {6, 0, VV_REMOTE_INVALID},
    {6, 3, VV_REMOTE_INVALID},   {7, 255, VV_REMOTE_INVALID}, {10, 1, VV_REMOTE_INVALID}, {11, 0, VV_REMOTE_INVALID},
    {16, 0, VV_REMOTE_INVALID},  {16, 2, VV_REMOTE_INVALID},
};

START_TEST(wrong_requests)
{
    uint8_t bytes[64];
    vv_remote_request q;
    vv_remote_outcome o;
    size_t n = put(bytes, sizeof bytes, VV_REMOTE_ATTACH, "/p", "x");
    for (size_t i = 0; i < n; i++) {
        uint8_t *cut = test_exact(bytes, i);
        ck_assert_int_eq(vv_remote_get_request(cut, i, &q, &o), VV_ERR_CORRUPT);
        ck_assert_int_eq(o, VV_REMOTE_INVALID);
        free(cut);
    }
    for (unsigned i = 0; i < VV_ARRAY_LEN(wrong); i++) {
        uint8_t *copy = test_exact(bytes, n);
        copy[wrong[i].at] = wrong[i].by;
        ck_assert_int_eq(vv_remote_get_request(copy, n, &q, &o), VV_ERR_CORRUPT);
        ck_assert_msg(o == wrong[i].outcome, "row %u", i);
        free(copy);
    }
}
END_TEST

/* Any bytes at all are read within their bounds. */
START_TEST(random_bytes)
{
    test_rng rng = test_seeded("remote_test");
    for (unsigned i = 0; i < 20000; i++) {
        uint8_t bytes[64];
        size_t n = put(bytes, sizeof bytes, VV_REMOTE_DETACH, "name", "a");
        if (i % 2) {
            vv_wr w = vv_wr_fixed(bytes, sizeof bytes);
            vv_remote_put_answer(&w, VV_REMOTE_REFUSED, "a reason");
            n = w.len;
        }
        for (uint64_t k = test_below(&rng, 4); k; k--)
            bytes[test_below(&rng, n)] = (uint8_t)test_random(&rng);
        n = test_below(&rng, n + 1);
        uint8_t *copy = test_exact(bytes, n);
        vv_remote_request q;
        vv_remote_outcome o;
        vv_remote_answer a;
        if (vv_remote_get_request(copy, n, &q, &o) == VV_OK)
            ck_assert_uint_le(q.subject.n + q.arguments.n, n);
        if (vv_remote_get_answer(copy, n, &a, NULL) == VV_OK)
            ck_assert_uint_lt(strlen(a.text), sizeof a.text);
        free(copy);
    }
}
END_TEST

START_TEST(answers)
{
    uint8_t bytes[VV_REMOTE_ANSWER_MAX];
    char long_text[4096];
    vv_remote_answer a;
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    vv_wr w = vv_wr_fixed(bytes, sizeof bytes);
    vv_remote_put_answer(&w, VV_REMOTE_PENDING, long_text);
    ck_assert_int_eq(vv_remote_get_answer(bytes, w.len, &a, NULL), VV_OK);
    ck_assert_int_eq(a.outcome, VV_REMOTE_PENDING);
    ck_assert_uint_gt(strlen(a.text), 900);
    w = vv_wr_fixed(bytes, sizeof bytes);
    vv_remote_put_answer(&w, VV_REMOTE_REFUSED, "a\033[31mb");
    ck_assert_int_eq(vv_remote_get_answer(bytes, w.len, &a, NULL), VV_OK);
    ck_assert_str_eq(a.text, "a?[31mb");
    bytes[5] = 7;
    ck_assert_int_eq(vv_remote_get_answer(bytes, w.len, &a, NULL), VV_OK);
    ck_assert(a.outcome == VV_REMOTE_VERSION && a.version == 7);
}
END_TEST

/* Processes. */

static const char *probe(void)
{
    static char path[4096];
    const char *top = getenv("top_builddir");
    snprintf(path, sizeof path, "%s/tests/control/.libs/plugin_probe.so", top ? top : ".");
    return path;
}

static vv_code ask(pid_t pid, vv_remote_verb verb, const char *subject, const char *arguments, unsigned ms,
                   vv_remote_answer *ret, vv_error *err)
{
    vv_remote_request q = {verb, vv_cstr(subject), vv_cstr(arguments)};
    vv_error_clear(err);
    return vv_remote_ask(pid, &q, ms, ret, err);
}

static void expect_service(pid_t pid)
{
    vv_remote_answer a;
    vv_error err = {0};
    ck_assert_msg(ask(pid, VV_REMOTE_DETACH, "nobody", "", PATIENCE_MS, &a, &err) == VV_OK, "%s", err.msg);
    ck_assert_int_eq(a.outcome, VV_REMOTE_REFUSED);
    ck_assert_str_eq(a.text, "no plug-in named nobody is attached");
}

static void expect_error(pid_t pid, unsigned ms, vv_code code, const char *text)
{
    vv_remote_answer a;
    vv_error err = {0};
    ck_assert_int_eq(ask(pid, VV_REMOTE_ATTACH, probe(), "hang", ms, &a, &err), code);
    ck_assert_msg(strstr(err.msg, text), "wanted \"%s\" in \"%s\"", text, err.msg);
}

/* A process of its own that listens (as user uid, 0: this one's) until it is killed. */
static pid_t host_begin(uid_t uid)
{
    int ready[2];
    ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        bool ok = (!uid || setuid(uid) == 0) && vm_open(NULL);
        vm_started();
        ok = ok && varve_plugins_listen(vm_host()) == VARVE_OK;
        if (!ok || write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static atomic_bool stray;

static void *print_always(void *unused)
{
    for (;;)
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
            if (write(fd, "STRAY", 5) >= 0)
                atomic_store(&stray, true);
    return unused;
}

/* As host_begin, without standard descriptors, to which it prints all the same. SIGTERM ends it, with 0 where nothing
 * that it printed went anywhere. */
static pid_t closed_host_begin(void)
{
    int ready[2];
    ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        pthread_t printer;
        sigset_t term;
        int got, out = fcntl(ready[1], F_DUPFD_CLOEXEC, 10);
        sigemptyset(&term);
        sigaddset(&term, SIGTERM);
        sigprocmask(SIG_BLOCK, &term, NULL);
        for (int fd = 0; fd < 10; fd++)
            close(fd);
        bool ok = pthread_create(&printer, NULL, print_always, NULL) == 0 && vm_open(NULL);
        vm_started();
        ok = ok && varve_plugins_listen(vm_host()) == VARVE_OK;
        if (!ok || write(out, "", 1) != 1)
            _exit(2);
        sigwait(&term, &got);
        _exit(atomic_load(&stray));
    }
    char byte;
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void host_end(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static int dial(pid_t pid)
{
    struct sockaddr_un at;
    socklen_t n = vv_remote_address(&at, pid);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&at, n), 0);
    return fd;
}

/* Whatever a client does, the next one is served; and it gets an answer, or the end of the connection. */
START_TEST(hostile_clients)
{
    static uint8_t big[200 << 10];
    pid_t pid = host_begin(0);
    uint8_t good[64], answer[VV_REMOTE_ANSWER_MAX];
    size_t n = put(good, sizeof good, VV_REMOTE_DETACH, "nobody", "");
    const struct {
        const void *bytes;
        size_t n;
    } packets[] = {{"garbage", 7}, {good, n / 2}, {good, 1}, {"", 0}, {big, sizeof big / 2}, {big, 16 << 10},
                   {big, (16 << 10) + 1}};
    memcpy(big, good, 7);
    memset(big + 7, 0xff, 4); /* the length of a text */
    for (unsigned i = 0; i < VV_ARRAY_LEN(packets); i++) {
        int fd = dial(pid);
        ck_assert_int_eq(send(fd, packets[i].bytes, packets[i].n, MSG_NOSIGNAL), (ssize_t)packets[i].n);
        ssize_t got = recv(fd, answer, sizeof answer, 0);
        vv_remote_answer a;
        if (packets[i].n) {
            ck_assert_int_gt(got, 0);
            ck_assert_int_eq(vv_remote_get_answer(answer, (size_t)got, &a, NULL), VV_OK);
            ck_assert_int_eq(a.outcome, VV_REMOTE_INVALID);
        }
        close(fd);
        expect_service(pid);
    }
    good[5] = 2;
    int fd = dial(pid);
    ck_assert_int_eq(send(fd, good, n, 0), (ssize_t)n);
    ssize_t got = recv(fd, answer, sizeof answer, 0);
    ck_assert_int_gt(got, 0);
    vv_remote_answer a;
    ck_assert_int_eq(vv_remote_get_answer(answer, (size_t)got, &a, NULL), VV_OK);
    ck_assert_int_eq(a.outcome, VV_REMOTE_VERSION);
    close(fd);
    host_end(pid);
}
END_TEST

/* Clients that say nothing, don't read, leave at once: they cost the others some waiting at most. */
START_TEST(rude_clients)
{
    enum { MANY = 50 };
    pid_t pid = host_begin(0);
    uint8_t good[64];
    size_t n = put(good, sizeof good, VV_REMOTE_DETACH, "nobody", "");
    int silent = dial(pid), deaf[4];
    for (unsigned i = 0; i < VV_ARRAY_LEN(deaf); i++) {
        deaf[i] = dial(pid);
        ck_assert_int_eq(send(deaf[i], good, n, 0), (ssize_t)n);
    }
    expect_service(pid);
    for (unsigned i = 0; i < MANY; i++) {
        int fd = dial(pid);
        if (i % 2)
            send(fd, good, n, MSG_NOSIGNAL);
        close(fd);
    }
    expect_service(pid);
    close(silent);
    for (unsigned i = 0; i < VV_ARRAY_LEN(deaf); i++)
        close(deaf[i]);
    host_end(pid);
}
END_TEST

/* Runs fn as user nobody; its exit status. */
static int as_nobody(int (*fn)(pid_t pid), pid_t pid)
{
    const struct passwd *nobody = getpwnam("nobody");
    ck_assert_ptr_nonnull(nobody);
    uid_t uid = nobody->pw_uid;
    pid_t child = fork();
    if (!child)
        _exit(setuid(uid) == 0 ? fn(pid) : 99);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static int ask_politely(pid_t pid)
{
    vv_remote_answer a;
    vv_error err = {0};
    return ask(pid, VV_REMOTE_ATTACH, probe(), "", PATIENCE_MS, &a, &err) == VV_ERR_ARG &&
                   strstr(err.msg, "belongs to another user") ? 0 : 1;
}

/* A client that does not check whom it talks to gets no answer either. */
static int ask_anyway(pid_t pid)
{
    uint8_t bytes[256];
    size_t n = put(bytes, sizeof bytes, VV_REMOTE_ATTACH, "/tmp/x.so", "");
    int fd = dial(pid);
    send(fd, bytes, n, MSG_NOSIGNAL);
    return recv(fd, bytes, sizeof bytes, 0) <= 0 ? 0 : 1;
}

START_TEST(other_users)
{
    if (geteuid() != 0)
        return; /* can't become another one */
    pid_t pid = host_begin(0);
    ck_assert_int_eq(as_nobody(ask_politely, pid), 0);
    ck_assert_int_eq(as_nobody(ask_anyway, pid), 0);
    expect_service(pid);
    host_end(pid);
    /* Root may ask anybody's. */
    pid = host_begin(getpwnam("nobody")->pw_uid);
    expect_service(pid);
    ck_assert_int_eq(as_nobody(ask_politely, pid), 1);
    host_end(pid);
}
END_TEST

/* A process that has taken another one's name is not taken for it. */
START_TEST(impostor)
{
    pid_t pid = fork();
    if (!pid)
        for (;;)
            pause();
    struct sockaddr_un name;
    socklen_t n = vv_remote_address(&name, pid);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&name, n), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    expect_error(pid, PATIENCE_MS, VV_ERR_ARG, "is not what listens under its name");
    close(fd);
    host_end(pid);
}
END_TEST

START_TEST(nobody_there)
{
    pid_t pid = host_begin(0);
    host_end(pid);
    expect_error(pid, PATIENCE_MS, VV_ERR_NOTFOUND, "there is no process");
    expect_error(getpid(), PATIENCE_MS, VV_ERR_ARG, "is no host that listens");
}
END_TEST

/* A host that stands still: the client gives up, and the host serves again when it goes on. */
START_TEST(stopped_host)
{
    pid_t pid = host_begin(0);
    int status;
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(status));
    expect_error(pid, 100, VV_ERR_LIMIT, "did not answer within 100 ms");
    int waiting[16];
    for (unsigned i = 0; i < VV_ARRAY_LEN(waiting); i++) { /* more than may wait */
        struct sockaddr_un at;
        socklen_t n = vv_remote_address(&at, pid);
        waiting[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(waiting[i], (const struct sockaddr *)&at, n);
    }
    expect_error(pid, 100, VV_ERR_LIMIT, "did not answer within 100 ms");
    for (unsigned i = 0; i < VV_ARRAY_LEN(waiting); i++)
        close(waiting[i]);
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    host_end(pid);
}
END_TEST

/* Asks on its own process's behalf, to be killed; or with a host that is. */
static pid_t client_begin(pid_t host, int *ret_fd)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (!pid) {
        vv_remote_answer a;
        vv_error err = {0};
        vv_code rc = ask(host, VV_REMOTE_ATTACH, probe(), "hang", PATIENCE_MS, &a, &err);
        char byte = (char)rc;
        _exit(write(ends[1], &byte, 1) == 1 ? 0 : 1);
    }
    close(ends[1]);
    *ret_fd = ends[0];
    return pid;
}

/* The host's listener is inside the plug-in's initialize, for ever. */
static void wait_until_hanging(pid_t host)
{
    vv_remote_answer a;
    vv_error err = {0};
    while (ask(host, VV_REMOTE_DETACH, "nobody", "", 100, &a, &err) == VV_OK)
        ;
    ck_assert_int_eq(err.code, VV_ERR_LIMIT);
}

START_TEST(killed_host)
{
    pid_t host = host_begin(0);
    int fd;
    pid_t client = client_begin(host, &fd);
    wait_until_hanging(host);
    host_end(host);
    char byte;
    ck_assert_int_eq(read(fd, &byte, 1), 1);
    ck_assert_int_eq(byte, VV_ERR_IO);
    ck_assert_int_eq(waitpid(client, NULL, 0), client);
    close(fd);
    /* Nothing is left that could be in the way of a process with the same number. */
    struct sockaddr_un name;
    socklen_t n = vv_remote_address(&name, host);
    int again = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(again, (const struct sockaddr *)&name, n), 0);
    close(again);
}
END_TEST

/* What a client asked for that is not there any more is not done. */
START_TEST(killed_client)
{
    pid_t host = host_begin(0);
    ck_assert_int_eq(kill(host, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(host, NULL, WUNTRACED), host);
    expect_error(host, 100, VV_ERR_LIMIT, "did not answer");
    uint8_t bytes[4096];
    size_t n = put(bytes, sizeof bytes, VV_REMOTE_ATTACH, probe(), "");
    pid_t client = fork();
    if (!client) {
        int fd = dial(host);
        send(fd, bytes, n, 0);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(client, NULL, 0), client);
    ck_assert_int_eq(kill(host, SIGCONT), 0);
    vv_remote_answer a;
    vv_error err = {0};
    ck_assert_int_eq(ask(host, VV_REMOTE_DETACH, "", "", PATIENCE_MS, &a, &err), VV_OK);
    ck_assert_int_eq(a.outcome, VV_REMOTE_REFUSED);
    ck_assert_str_eq(a.text, "no plug-in is attached");
    host_end(host);
}
END_TEST

/* A child of fork neither listens nor holds the socket, whose name is free when the parent closes it. */
START_TEST(forked)
{
    ck_assert(vm_open(NULL));
    vm_started();
    ck_assert_int_eq(varve_plugins_listen(vm_host()), VARVE_OK);
    int ready[2];
    ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
    pid_t child = fork();
    if (!child) {
        varve_plugins_close();
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    ck_assert_int_eq(read(ready[0], &byte, 1), 1); /* until it runs it holds what its parent held */
    close(ready[0]);
    close(ready[1]);
    expect_service(getpid());
    expect_error(child, PATIENCE_MS, VV_ERR_ARG, "is no host that listens");
    varve_plugins_close();
    expect_error(getpid(), PATIENCE_MS, VV_ERR_ARG, "is no host that listens");
    ck_assert_int_eq(varve_plugins_listen(vm_host()), VARVE_OK);
    expect_service(getpid());
    varve_plugins_close();
    varve_plugins_close();
    host_end(child);
    ck_assert(vm_close());
}
END_TEST

/* What a program prints that runs with its standard descriptors closed reaches no socket and no plug-in's file. */
START_TEST(closed_standard_descriptors)
{
    pid_t host = closed_host_begin();
    vv_remote_answer a;
    vv_error err = {0};
    for (unsigned i = 0; i < 300; i++)
        expect_service(host);
    ck_assert_msg(ask(host, VV_REMOTE_ATTACH, probe(), "", PATIENCE_MS, &a, &err) == VV_OK, "%s", err.msg);
    ck_assert_msg(a.outcome == VV_REMOTE_DONE, "%s", a.text);
    ck_assert_int_eq(kill(host, SIGTERM), 0);
    int status;
    ck_assert_int_eq(waitpid(host, &status, 0), host);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

/* The end of the host does not wait for ever for a request that does. */
static vv_remote_outcome serve_for_ever(void *ctx, const vv_remote_request *q, char *text, size_t size)
{
    (void)q;
    (void)text;
    (void)size;
    atomic_store((atomic_bool *)ctx, true);
    while (atomic_load((atomic_bool *)ctx))
        pause();
    return VV_REMOTE_DONE;
}

START_TEST(close_while_serving)
{
    static atomic_bool serving;
    vv_error err = {0};
    ck_assert_int_eq(vv_listen_open(serve_for_ever, &serving, &err), VV_OK);
    int fd;
    pid_t client = client_begin(getpid(), &fd);
    while (!atomic_load(&serving))
        usleep(1000);
    ck_assert(!vv_listen_close(50));
    char byte;
    ck_assert_int_eq(read(fd, &byte, 1), 1);
    ck_assert_int_eq(byte, VV_ERR_IO);
    ck_assert_int_eq(waitpid(client, NULL, 0), client);
    close(fd);
    ck_assert(!vv_listen_close(50)); /* it is there still */
    ck_assert_int_eq(vv_listen_open(serve_for_ever, &serving, &err), VV_ERR_EXISTS);
}
END_TEST

/* Signals sent to the process are not the listener's to take. */
START_TEST(signals_are_masked)
{
    ck_assert(vm_open(NULL));
    vm_started();
    ck_assert_int_eq(varve_plugins_listen(vm_host()), VARVE_OK);
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    kill(getpid(), SIGUSR1); /* would end the process in a thread that does not block it */
    expect_service(getpid());
    int got;
    ck_assert_int_eq(sigwait(&usr1, &got), 0);
    varve_plugins_close();
    ck_assert(vm_close());
}
END_TEST

int main(void)
{
    TCase *wire = test_case("wire", 0), *t = test_case("processes", 120);
    tcase_add_test(wire, request_bytes);
    tcase_add_test(wire, wrong_requests);
    tcase_add_test(wire, random_bytes);
    tcase_add_test(wire, answers);
    tcase_add_test(t, hostile_clients);
    tcase_add_test(t, rude_clients);
    tcase_add_test(t, other_users);
    tcase_add_test(t, impostor);
    tcase_add_test(t, nobody_there);
    tcase_add_test(t, stopped_host);
    tcase_add_test(t, killed_host);
    tcase_add_test(t, killed_client);
    tcase_add_test(t, forked);
    tcase_add_test(t, closed_standard_descriptors);
    tcase_add_test(t, close_while_serving);
    tcase_add_test(t, signals_are_masked);
    return test_run();
}
