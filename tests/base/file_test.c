#include "config.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/store_path.h"
#include "tests/testing.h"

static char home[PATH_MAX];

/* Each test works in an empty directory of its own. */
static void setup(void)
{
    const char *tmp = getenv("TMPDIR");
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/varve-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(name));
    ck_assert_int_eq(chdir(name), 0);
    ck_assert_ptr_nonnull(getcwd(home, sizeof home));
    unsetenv("BAML_PROFILE_DIR");
}

static void teardown(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    char command[PATH_MAX + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", home);
    ck_assert_int_eq(system(command), 0);
}

static void put_file(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(vv_write_all(fd, text, strlen(text), NULL), VV_OK);
    close(fd);
}

static void *print_always(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
            if (write(fd, "STRAY", 5) >= 0)
                return "a write to a closed descriptor went somewhere";
    return NULL;
}

static bool is_above(int fd)
{
    return fd > STDERR_FILENO && fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

static void *open_files(void *ret_failed)
{
    int *failed = ret_failed;
    struct stat st = {.st_size = 0};
    for (unsigned i = 0; i < 3000; i++) {
        int fd = vv_open_above(AT_FDCWD, "f", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (!is_above(fd) || fstat(fd, &st) != 0 || st.st_size)
            *failed = 4;
        close(fd);
    }
    return NULL;
}

/* Both ends of a connection: neither says anything that was not sent. */
static int open_sockets(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "socket");
    int listening = vv_socket_above(AF_UNIX, SOCK_STREAM, 0);
    if (!is_above(listening) || bind(listening, (const struct sockaddr *)&name, sizeof name) != 0 ||
        listen(listening, 1) != 0)
        return 7;
    for (unsigned i = 0; i < 3000; i++) {
        int out = vv_socket_above(AF_UNIX, SOCK_STREAM, 0);
        if (!is_above(out) || connect(out, (const struct sockaddr *)&name, sizeof name) != 0)
            return 8;
        int in = vv_accept_above(listening, SOCK_NONBLOCK);
        char byte;
        if (!is_above(in) || recv(in, &byte, 1, 0) != -1 || errno != EAGAIN ||
            recv(out, &byte, 1, MSG_DONTWAIT) != -1 || errno != EAGAIN)
            return 9;
        close(out);
        close(in);
    }
    close(listening);
    return unlink(name.sun_path) == 0 ? 0 : 10;
}

static bool standard_are(bool open, unsigned closed)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if ((fcntl(fd, F_GETFD) >= 0) != (open || !(closed >> fd & 1)))
            return false;
    return true;
}

/* Whoever comes while another stands in keeps the places when that one goes. */
static bool stands_in_for_two(unsigned closed)
{
    vv_standing first = vv_standing_in(), second = vv_standing_in();
    bool ok = standard_are(true, closed);
    vv_standing_done(&first);
    ok = ok && standard_are(true, closed);
    vv_standing_done(&second);
    return ok && standard_are(false, closed);
}

/* In a process of its own, without these standard descriptors: what it prints never lands in a file or socket that is
 * being opened, on two threads at once, and its descriptors are as they were. */
static int open_without(unsigned closed)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        close(fd);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (open("/", O_PATH) != fd)
            return 2;
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (closed & 1U << fd)
            close(fd);
    if (!stands_in_for_two(closed))
        return 11;
    atomic_bool stop = false;
    pthread_t printer, opener;
    int no_file = 0;
    if (pthread_create(&printer, NULL, print_always, &stop) != 0 ||
        pthread_create(&opener, NULL, open_files, &no_file) != 0)
        return 3;
    int failed = open_sockets();
    pthread_join(opener, NULL);
    failed = failed ? failed : no_file;
    atomic_store(&stop, true);
    void *said;
    pthread_join(printer, &said);
    if (!standard_are(false, closed))
        return 5;
    return failed ? failed : said ? 6 : 0;
}

START_TEST(descriptors_above_the_standard_ones)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(open_without((unsigned)_i));
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert_int_eq(vv_open_above(AT_FDCWD, "missing", O_RDONLY, 0), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(vv_socket_above(AF_UNIX, 99, 0), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(vv_accept_above(-1, 0), -1);
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(reads_a_regular_file_whole)
{
    vv_blob b = {0};
    put_file("f", "hello");
    ck_assert_int_eq(vv_file_read(AT_FDCWD, "f", 5, &b, NULL), VV_OK);
    ck_assert_uint_eq(b.n, 5);
    ck_assert_mem_eq(b.p, "hello", 6);
    vv_blob_done(&b);
    put_file("empty", "");
    ck_assert_int_eq(vv_file_read(AT_FDCWD, "empty", 0, &b, NULL), VV_OK);
    ck_assert_uint_eq(b.n, 0);
    vv_blob_done(&b);
    vv_blob_done(&b);
    int dir = open(".", O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(vv_file_read(dir, "f", 100, &b, NULL), VV_OK);
    vv_blob_done(&b);
    vv_close(&dir);
    ck_assert_int_eq(dir, -1);
    vv_close(&dir);
}
END_TEST

START_TEST(refuses_what_is_not_a_regular_file)
{
    put_file("f", "hello");
    ck_assert_int_eq(mkdir("dir", 0700), 0);
    ck_assert_int_eq(symlink("f", "link"), 0);
    ck_assert_int_eq(symlink("nowhere", "dangling"), 0);
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    int sock = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "socket"};
    ck_assert_int_eq(bind(sock, (struct sockaddr *)&a, sizeof a), 0);
    static const char *const names[] = {"dir", "link", "dangling", "fifo", "socket", "/dev/null"};
    for (size_t i = 0; i < VV_ARRAY_LEN(names); i++) {
        vv_blob b = {0};
        vv_error err = {0};
        TEST_NAME(vv_file_read(AT_FDCWD, names[i], 100, &b, &err), &err, "NotRegularFile");
        ck_assert_ptr_null(b.p);
    }
    close(sock);
}
END_TEST

START_TEST(refuses_too_large_and_missing)
{
    vv_blob b = {0};
    vv_error err = {0};
    put_file("f", "hello");
    TEST_NAME(vv_file_read(AT_FDCWD, "f", 4, &b, &err), &err, "FileTooLarge");
    ck_assert_int_eq(vv_file_read(AT_FDCWD, "f", 4, &b, &err), VV_ERR_LIMIT);
    vv_error_clear(&err);
    ck_assert_int_eq(vv_file_read(AT_FDCWD, "g", 4, &b, &err), VV_ERR_NOTFOUND);
    ck_assert_int_eq(err.os, ENOENT);
    ck_assert_int_eq(vv_file_read(AT_FDCWD, "f/g", 4, &b, NULL), VV_ERR_NOTFOUND);
    /* A sparse file beyond any memory is refused before it is read. */
    int fd = open("sparse", O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(ftruncate(fd, (off_t)1 << 40), 0);
    close(fd);
    vv_error_clear(&err);
    TEST_NAME(vv_file_read(AT_FDCWD, "sparse", 1 << 20, &b, &err), &err, "FileTooLarge");
}
END_TEST

START_TEST(makes_directories)
{
    vv_error err = {0};
    ck_assert_int_eq(vv_mkdirs(AT_FDCWD, "a/b/c", &err), VV_OK);
    ck_assert_int_eq(vv_mkdirs(AT_FDCWD, "a/b/c", &err), VV_OK);
    ck_assert_int_eq(vv_mkdirs(AT_FDCWD, "a//d/", &err), VV_OK);
    struct stat st;
    ck_assert(stat("a/b/c", &st) == 0 && S_ISDIR(st.st_mode));
    ck_assert(stat("a/d", &st) == 0 && S_ISDIR(st.st_mode));
    put_file("a/file", "x");
    ck_assert_int_ne(vv_mkdirs(AT_FDCWD, "a/file", NULL), VV_OK);
    ck_assert_int_ne(vv_mkdirs(AT_FDCWD, "a/file/x", NULL), VV_OK);
    ck_assert_int_eq(vv_mkdirs(AT_FDCWD, "", NULL), VV_ERR_ARG);
    char path[PATH_MAX + 10];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = 0;
    ck_assert_int_eq(vv_mkdirs(AT_FDCWD, path, NULL), VV_ERR_ARG);
}
END_TEST

START_TEST(locks_exclude)
{
    put_file("lock", "");
    int a = open("lock", O_RDWR), b = open("lock", O_RDONLY);
    ck_assert_int_eq(vv_lock(a, true, false, NULL), VV_OK);
    ck_assert_int_eq(vv_lock(b, false, false, NULL), VV_ERR_BUSY);
    vv_unlock(a);
    ck_assert_int_eq(vv_lock(b, false, false, NULL), VV_OK);
    ck_assert_int_eq(vv_lock(a, false, false, NULL), VV_OK);
    ck_assert_int_eq(vv_lock(a, true, false, NULL), VV_ERR_BUSY);
    close(b);
    ck_assert_int_eq(vv_lock(a, true, true, NULL), VV_OK);
    close(a);
    ck_assert_int_eq(vv_lock(-1, true, false, NULL), VV_ERR_IO);
}
END_TEST

START_TEST(write_all_reports)
{
    int p[2];
    vv_error err = {0};
    ck_assert_int_eq(pipe(p), 0);
    close(p[0]);
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(vv_write_all(p[1], "x", 1, &err), VV_ERR_IO);
    ck_assert_int_eq(err.os, EPIPE);
    ck_assert_int_eq(vv_write_all(p[1], "x", 0, NULL), VV_OK);
    close(p[1]);
}
END_TEST

/* The resolved path, below the test's directory where it is. */
static const char *resolve(const char *arg, vv_store_origin want)
{
    static char path[PATH_MAX];
    vv_store_origin origin;
    vv_error err = {0};
    ck_assert_msg(vv_store_path_of(path, sizeof path, arg, &origin, &err) == VV_OK, "%s", err.msg);
    ck_assert_int_eq(origin, want);
    size_t n = strlen(home);
    return strncmp(path, home, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

/* Whether a directory above the test's own holds a store, as a stray /tmp/.baml would: the search has no ceiling. */
static bool store_above(void)
{
    char probe[PATH_MAX + 8];
    struct stat st;
    for (size_t n = strlen(home); n-- > 0;) {
        if (home[n] != '/')
            continue;
        snprintf(probe, sizeof probe, "%.*s/.baml", (int)n, home);
        if (stat(probe, &st) == 0 && S_ISDIR(st.st_mode))
            return true;
    }
    return false;
}

START_TEST(store_path_of_a_writer)
{
    if (!store_above())
        ck_assert_str_eq(resolve(NULL, VV_STORE_DEFAULT), ".baml/profiles-v1");
    ck_assert_int_eq(vv_mkdirs(AT_FDCWD, "x/y/z", NULL), VV_OK);
    ck_assert_int_eq(mkdir(".baml", 0700), 0);
    ck_assert_int_eq(chdir("x/y/z"), 0);
    ck_assert_str_eq(resolve(NULL, VV_STORE_FROM_ANCESTOR), ".baml/profiles-v1");
    put_file("../.baml", "a file is no store");
    ck_assert_str_eq(resolve(NULL, VV_STORE_FROM_ANCESTOR), ".baml/profiles-v1");
    ck_assert_int_eq(mkdir(".baml", 0700), 0);
    ck_assert_str_eq(resolve(NULL, VV_STORE_FROM_ANCESTOR), "x/y/z/.baml/profiles-v1");
    setenv("BAML_PROFILE_DIR", "/else/where", 1);
    ck_assert_str_eq(resolve(NULL, VV_STORE_FROM_ENVIRONMENT), "/else/where");
    setenv("BAML_PROFILE_DIR", "", 1);
    ck_assert_str_eq(resolve(NULL, VV_STORE_FROM_ANCESTOR), "x/y/z/.baml/profiles-v1");
}
END_TEST

START_TEST(store_path_of_an_argument)
{
    setenv("BAML_PROFILE_DIR", "/else/where", 1);
    ck_assert_int_eq(vv_mkdirs(AT_FDCWD, "p/.baml/profiles-v1", NULL), VV_OK);
    ck_assert_int_eq(vv_mkdirs(AT_FDCWD, "p/copy/profiles-v1", NULL), VV_OK);
    static const struct {
        const char *arg, *want;
    } rows[] = {
        {"p", "p/.baml/profiles-v1"},
        {"p/", "p//.baml/profiles-v1"},
        {"p/.baml", "p/.baml/profiles-v1"},
        {"p/.baml/", "p/.baml/profiles-v1"},
        {"q/.baml", "q/.baml/profiles-v1"},
        {".baml", ".baml/profiles-v1"},
        {"p/.baml/profiles-v1", "p/.baml/profiles-v1"},
        {"p/.baml/profiles-v1/", "p/.baml/profiles-v1"},
        {"p/copy", "p/copy/profiles-v1"},
        {"p/copy/", "p/copy/profiles-v1"},
        {"p/copy/profiles-v1", "p/copy/profiles-v1"},
        {"run.tar.gz", "run.tar.gz"},
        {"x.baml", "x.baml"},
        {"/", "/"},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(rows); i++)
        ck_assert_str_eq(resolve(rows[i].arg, VV_STORE_FROM_ARGUMENT), rows[i].want);
    vv_store_origin origin;
    char path[PATH_MAX], small[8];
    ck_assert_int_eq(vv_store_path_of(path, sizeof path, "", &origin, NULL), VV_ERR_ARG);
    ck_assert_int_eq(vv_store_path_of(small, sizeof small, "12345678", &origin, NULL), VV_ERR_LIMIT);
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = 0;
    char out[PATH_MAX];
    ck_assert_int_eq(vv_store_path_of(out, sizeof out, path, &origin, NULL), VV_ERR_LIMIT);
}
END_TEST

int main(void)
{
    TCase *t = test_case("file", 0);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, descriptors_above_the_standard_ones, 0, 8);
    tcase_add_test(t, reads_a_regular_file_whole);
    tcase_add_test(t, refuses_what_is_not_a_regular_file);
    tcase_add_test(t, refuses_too_large_and_missing);
    tcase_add_test(t, makes_directories);
    tcase_add_test(t, locks_exclude);
    tcase_add_test(t, write_all_reports);
    tcase_add_test(t, store_path_of_a_writer);
    tcase_add_test(t, store_path_of_an_argument);
    return test_run();
}
