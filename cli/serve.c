#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/store_path.h"
#include "cli/verbs.h"
#include "server/http.h"

extern char **environ;

#define DRAIN_NS UINT64_C(10000000000)
#define SECOND_NS UINT64_C(1000000000)
enum { MMAP_MIN = 256 * 1024, ARENAS = 8 };
enum { MEMORY_DEFAULT_MIB = 512, TOKEN_MIN = 16, TOKEN_MAX = 256, HOSTS_MAX = 16 };

/* The token: one line of printable characters without blanks. */
static bool read_token(const char *path, char out[TOKEN_MAX + 1], int *ret_status)
{
    vv_blob blob;
    vv_error err = {0};
    if (vv_file_read(AT_FDCWD, path, 4096, &blob, &err) != VV_OK) {
        *ret_status = vv_cli_fail_error(&err, "token file", NULL);
        return false;
    }
    size_t n = blob.n;
    while (n && (blob.p[n - 1] == '\n' || blob.p[n - 1] == '\r'))
        n--;
    bool good = n >= TOKEN_MIN && n <= TOKEN_MAX;
    for (size_t i = 0; i < n && good; i++)
        good = blob.p[i] > 0x20 && blob.p[i] < 0x7f;
    if (good) {
        memcpy(out, blob.p, n);
        out[n] = 0;
    } else {
        *ret_status = vv_cli_fail(VV_EXIT_USAGE, "token file %.200s: not one line of %d to %d characters; make one "
                                  "with `head -c 24 /dev/urandom | base64 >FILE`", path, TOKEN_MIN, TOKEN_MAX);
    }
    vv_blob_done(&blob);
    return good;
}

static void open_browser(const char *url)
{
    char *argv[] = {"xdg-open", (char *)url, NULL};
    pid_t pid;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
        vv_cli_fail(0, "no browser could be started (xdg-open); open %s", url);
}

/* Serves until a signal asks to stop, or nobody has asked anything for idle_ns (0: for ever). */
static void wait_for_end(vv_http *h, const sigset_t *stop, uint64_t idle_ns, vv_log *reopens)
{
    for (;;) {
        uint64_t idle = vv_http_idle_ns(h);
        if (idle_ns && idle >= idle_ns)
            return;
        uint64_t left = idle_ns ? idle_ns - idle : 3600 * SECOND_NS;
        struct timespec t = {.tv_sec = (time_t)(left / SECOND_NS), .tv_nsec = (long)(left % SECOND_NS)};
        int signal = sigtimedwait(stop, NULL, &t);
        if (signal == SIGHUP && reopens)
            vv_log_reopen(reopens);
        else if (signal > 0)
            return;
    }
}

/* From here on a signal ends the program at once. */
static void wait_no_more(vv_http *h, const sigset_t *stop)
{
    vv_http_refuse(h);
    pthread_sigmask(SIG_UNBLOCK, stop, NULL);
}

/* A line for people, or for a script. False where it can't be written. */
static bool tell_address(bool json, const char *name)
{
    if (!json) {
        printf("listening on %s\n", name);
    } else {
        vv_wr w = vv_wr_growing(64 * 1024);
        vv_json j = vv_json_init(&w);
        vv_json_obj(&j);
        vv_json_kv_cstr(&j, "listening", name);
        vv_json_end_obj(&j);
        printf("%.*s\n", (int)w.len, (const char *)w.buf);
        vv_wr_done(&w);
    }
    return fflush(stdout) == 0;
}

static int fail_start(const vv_error *err, const char *listen)
{
    if (err->code == VV_ERR_EXISTS)
        return vv_cli_fail(VV_EXIT_STORE, "%s; choose another with --listen ADDR:PORT (port 0 for any free one) or "
                           "--listen unix:PATH", err->msg);
    if (err->code == VV_ERR_ARG)
        return vv_cli_fail(VV_EXIT_USAGE, "%s; see `varve serve --help`", err->msg);
    return vv_cli_fail_error(err, listen, NULL);
}

/* Who is waited for: a name that was mistyped never comes, nor does a file that was to be --log's. */
static void tell_missing(vv_server *s, const char *name, bool bare_log)
{
    char path[PATH_MAX];
    vv_store_origin origin;
    if (!vv_server_has_store(s) && vv_store_path_of(path, sizeof path, name, &origin, NULL) == VV_OK)
        vv_cli_fail(0, "no store at %s yet; waiting for it%s", path,
                    bare_log ? " (a file for the log is named as --log=FILE)" : "");
}

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int serve(const vv_cli *c, const vv_server_options *so, const vv_http_options *ho, uint64_t idle_ns)
{
    vv_server *server;
    vv_http *http;
    vv_error err = {0};
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &stop, NULL); /* before the first thread, which inherits it */
    if (vv_server_new(&server, so, &err) != VV_OK) {
        int status = vv_cli_fail_error(&err, so->store ? so->store : "store", NULL);
        return status == VV_EXIT_USAGE ? VV_EXIT_STORE : status;
    }
    if (vv_http_start(&http, server, ho, &err) != VV_OK) {
        vv_server_free(server);
        return fail_start(&err, ho->listen ? ho->listen : VV_HTTP_LISTEN);
    }
    int status = VV_EXIT_OK;
    tell_missing(server, so->store, vv_cli_has(c, "log") && !vv_cli_value(c, "log"));
    if (!tell_address(c->json, vv_http_url(http))) {
        status = vv_cli_fail(VV_EXIT_STORE, "standard output: the server's address can't be written");
    } else {
        if (vv_cli_has(c, "open"))
            open_browser(vv_http_url(http));
        wait_for_end(http, &stop, idle_ns, vv_cli_value(c, "log") ? ho->log : NULL);
    }
    wait_no_more(http, &stop);
    vv_http_stop(http, DRAIN_NS);
    vv_server_free(server);
    return status;
}

/*
 * What one long answer took goes back to the system with it, on whichever of the many threads: the C library would keep
 * it, the more of it the larger it was.
 */
static void give_memory_back(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, MMAP_MIN);
    mallopt(M_TRIM_THRESHOLD, MMAP_MIN);
    mallopt(M_ARENA_MAX, ARENAS);
#endif
}

/* Whoever reads neither the log nor standard error must not keep the server from its end. */
static void say_if_heard(void *state, const char *line)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&p, 1, 0) == 1)
        vv_cli_say(state, line);
}

static int run(const vv_cli *c)
{
    char token[TOKEN_MAX + 1];
    const char *hosts[HOSTS_MAX], *arg = c->arg_count ? c->args[0] : NULL;
    const char *token_file = vv_cli_value(c, "token-file"), *listen = vv_cli_value(c, "listen");
    const char *web_dir = vv_cli_value(c, "web-dir");
    uint64_t memory = MEMORY_DEFAULT_MIB, idle = 0;
    vv_http_options ho = {.listen = listen, .allow_hosts = hosts};
    const vv_index_options index = {.path = vv_cli_value(c, "index"), .say = vv_cli_say};
    int status;
    if (vv_cli_has(c, "no-index") && index.path)
        return vv_cli_usage(c, "--index and --no-index exclude each other");
    if (c->store && arg)
        return vv_cli_usage(c, "the store is given twice, as --store and as an argument");
    if (!vv_cli_number(c, "memory", 16, 1u << 20, &memory) || !vv_cli_number(c, "idle-exit", 1, 1u << 30, &idle))
        return VV_EXIT_USAGE;
    for (unsigned i = 0; i < c->given_count; i++)
        if (strcmp(c->given[i].option->name, "allow-host") == 0) {
            if (ho.allow_host_count == HOSTS_MAX)
                return vv_cli_usage(c, "more than %d of --allow-host", HOSTS_MAX);
            hosts[ho.allow_host_count++] = c->given[i].value;
        }
    if (web_dir && !is_dir(web_dir))
        return vv_cli_usage(c, "--web-dir %.200s is not a directory", web_dir);
    if (token_file && !read_token(token_file, token, &status))
        return status;
    ho.has_token = token_file != NULL;
    vv_server_options so = {.store = c->store ? c->store : arg, .token = token_file ? token : NULL,
                            .web_dir = web_dir, .memory_bytes = (size_t)memory << 20,
                            .index = vv_cli_has(c, "no-index") ? NULL : &index};
    if (vv_cli_has(c, "open") && listen && strncmp(listen, "unix:", 5) == 0)
        return vv_cli_usage(c, "--open needs an address: browsers open no Unix socket");
    if (vv_cli_has(c, "log")) {
        vv_error err = {0};
        if (vv_log_open(&ho.log, vv_cli_value(c, "log"), say_if_heard, NULL, &err) != VV_OK)
            return vv_cli_fail_error(&err, "log", NULL);
    }
    give_memory_back();
    status = serve(c, &so, &ho, idle * SECOND_NS);
    vv_log_close(ho.log);
    return status;
}

static const vv_cli_option options[] = {
    {"listen", "ADDR:PORT", "where to listen (" VV_HTTP_LISTEN "); port 0 is any free one; or unix:PATH, a socket",
     false},
    {"token-file", "FILE", "ask clients for the token in FILE; needed for other addresses than loopback", false},
    {"allow-host", "HOST", "answer to this host name too", true},
    {"memory", "MIB", "memory for loaded executions (512)", false},
    {"index", "PATH", "keep the index of the store there; :memory: is nowhere (the cache directory)", false},
    {"no-index", NULL, "keep no index", false},
    {"log", "[=FILE]", "log requests, a line each, to standard error or FILE; SIGHUP opens FILE anew", false},
    {"open", NULL, "open the dashboard in a browser", false},
    {"idle-exit", "SECONDS", "end after so long without a request", false},
    {"web-dir", "DIR", "take the dashboard's files from DIR, for working on them", false},
};
static const char *const examples[] = {"varve serve", "varve serve --open ./run.tar.gz",
                                       "varve serve --listen 127.0.0.1:0 --idle-exit 600",
                                       "varve serve --listen unix:varve.sock --log=requests.log", NULL};

const vv_cli_verb vv_verb_serve = {
    .name = "serve",
    .args = "[STORE]",
    .purpose = "serves the dashboard and the HTTP API of a store",
    .details = "Prints `listening on URL` once ready, and ends on SIGINT or SIGTERM. Where there is no store yet it\n"
               "waits for one. Only programs on this machine reach it, unless a token file is given; only this user's\n"
               "reach a Unix socket. A socket that was opened for it (LISTEN_FDS) is served in place of --listen. A\n"
               "signal lets running answers end for 10 seconds; a second one ends them.\n",
    .json = "print the address as JSON",
    .options = options,
    .option_count = VV_ARRAY_LEN(options),
    .examples = examples,
    .max_args = 1,
    .run = run,
};
