/* Plug-ins: how they are loaded, what they are told, how they go; beside each other and under load. */
#include "config.h"

#include "control/plugin.h"

#include <stdlib.h>
#include <unistd.h>

#include "control/remote.h"
#include "tests/control/app.h"
#include "tests/testing.h"

enum { N = 10, PATIENCE_MS = 60000 };

/* A file that the build made. */
static char *built(const char *path, const char *arguments)
{
    static char specs[4][4096];
    static unsigned at;
    char *spec = specs[at++ % VV_ARRAY_LEN(specs)];
    const char *top = getenv("top_builddir");
    snprintf(spec, sizeof specs[0], "%s/%s%s%s", top ? top : ".", path, arguments ? "=" : "",
             arguments ? arguments : "");
    return spec;
}

#define PROBE "tests/control/.libs/plugin_probe.so"
#define COUNT "examples/.libs/count.so"

typedef struct {
    unsigned count;
    char last[1024];
} told;

static void tell(void *me, const char *line)
{
    told *t = me;
    t->count++;
    snprintf(t->last, sizeof t->last, "%s", line);
    ck_assert_ptr_null(strchr(line, '\n'));
}

static void load(const char *spec)
{
    told t = {0};
    ck_assert_msg(varve_plugins_load(vm_host(), &spec, 1, tell, &t) == 0, "%s", t.last);
    ck_assert_uint_eq(t.count, 0);
}

static void expect_failure(const char *spec, const char *text)
{
    told t = {0};
    ck_assert_uint_eq(varve_plugins_load(vm_host(), &spec, 1, tell, &t), 1);
    ck_assert_uint_eq(t.count, 1);
    ck_assert_msg(strstr(t.last, text), "wanted \"%s\" in \"%s\"", text, t.last);
}

static vv_remote_answer ask(vv_remote_verb verb, const char *subject, const char *arguments)
{
    vv_remote_request q = {verb, vv_cstr(subject), vv_cstr(arguments)};
    vv_remote_answer a;
    vv_error err = {0};
    ck_assert_msg(vv_remote_ask(getpid(), &q, PATIENCE_MS, &a, &err) == VV_OK, "%s", err.msg);
    return a;
}

static void attach(const char *file, const char *arguments)
{
    vv_remote_answer a = ask(VV_REMOTE_ATTACH, file, arguments);
    ck_assert_msg(a.outcome == VV_REMOTE_DONE, "%s", a.text);
}

static void detach(const char *name)
{
    vv_remote_answer a = ask(VV_REMOTE_DETACH, name, "");
    ck_assert_msg(a.outcome == VV_REMOTE_DONE, "%s", a.text);
}

static void expect_refusal(vv_remote_verb verb, const char *subject, const char *arguments, const char *text)
{
    vv_remote_answer a = ask(verb, subject, arguments);
    ck_assert_int_eq(a.outcome, VV_REMOTE_REFUSED);
    ck_assert_msg(strstr(a.text, text), "wanted \"%s\" in \"%s\"", text, a.text);
}

static bool is_loaded(const char *file)
{
    char line[4096];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps))
        found = found || strstr(line, file);
    fclose(maps);
    return found;
}

static void open_vm(void)
{
    ck_assert(vm_open(NULL));
    vm_started();
}

static void run_app(void)
{
    vm_domain *d = vm_domain_open("app", NULL);
    int64_t result;
    vm_start(d, vm_function_of(vm_load(d, &app), 0), N, "main", &result);
    ck_assert_uint_eq(vm_run(2), 0);
    ck_assert_int_eq(result, app_result(N));
    vm_domain_close(d, VARVE_ENDED_OK);
}

/* A plug-in that is not yet copied to its end is refused, and does not take the process with it. */
START_TEST(cut_short)
{
    static uint8_t bytes[1 << 20];
    char path[] = "/tmp/varve-cut-XXXXXX";
    FILE *probe = fopen(built(PROBE, NULL), "rbe");
    ck_assert_ptr_nonnull(probe);
    size_t n = fread(bytes, 1, sizeof bytes, probe);
    fclose(probe);
    ck_assert_uint_gt(n, 4096);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
    open_vm();
    static const size_t cuts[] = {4096, 1024, 100, 64, 63, 3, 0};
    for (unsigned i = 0; i < VV_ARRAY_LEN(cuts); i++) {
        ck_assert_int_eq(ftruncate(fd, (off_t)cuts[i]), 0);
        expect_failure(path, cuts[i] >= 64   ? ": the file is cut short"
                             : cuts[i] == 63 ? ": file too short"
                                             : ": not a shared object: ");
    }
    close(fd);
    unlink(path);
    ck_assert(vm_close());
}
END_TEST

/* Each is told in one line; none of them stays; the host goes on. */
START_TEST(failures)
{
    static const struct {
        const char *file, *arguments, *text;
    } table[] = {
        {"nowhere/none.so", NULL, "No such file or directory"},
        {"tests", NULL, "not a file"},
        {"config.h", NULL, "config.h: not a shared object: "}, /* and the linker's words */
        {"tests/runtime/.libs/fault_shim.so", NULL, "no varve_plugin_open"},
        {"tests/control/.libs/plugin_data.so", NULL, "varve_plugin_open is no function"},
        {PROBE, "refuse-open", "refused to open (VARVE_E_REFUSED)"},
        {PROBE, "no-callbacks", "no callbacks"},
        {PROBE, "version", "made for version 2000 of the profiling contract, this is version 1000"},
        {PROBE, "no-initialize", "VARVE_E_ARG"},
        {PROBE, "refuse-start", "refused to start"},
    };
    open_vm();
    for (unsigned i = 0; i < VV_ARRAY_LEN(table); i++) {
        expect_failure(built(table[i].file, table[i].arguments), table[i].text);
        ck_assert(!is_loaded("plugin_probe.so"));
    }
    run_app();
    ck_assert(vm_close());
}
END_TEST

START_TEST(main_place)
{
    ck_assert(vm_open(NULL));
    load(built(PROBE, "main"));
    expect_failure(built(PROBE, NULL), "named plugin_probe is attached already");
    vm_started();
    run_app();
    ck_assert_int_eq(varve_plugins_listen(vm_host()), VARVE_OK);
    detach("");
    for (unsigned i = 0; i < 20; i++) { /* the place is free as soon as detach says so */
        attach(built(PROBE, NULL), "main");
        detach("");
    }
    varve_plugins_close();
    ck_assert(!is_loaded("plugin_probe.so"));
    ck_assert(vm_close());
}
END_TEST

/* A list's parts may be empty; one that fails does not stop the others. */
START_TEST(lists)
{
    char list[8192];
    told t = {0};
    open_vm();
    ck_assert_uint_eq(varve_plugins_load_list(vm_host(), NULL, tell, &t), 0);
    ck_assert_uint_eq(varve_plugins_load_list(vm_host(), "", tell, &t), 0);
    snprintf(list, sizeof list, ":%s:nowhere/none.so::%s:", built(PROBE, NULL), built(COUNT, "/dev/null"));
    ck_assert_uint_eq(varve_plugins_load_list(vm_host(), list, tell, &t), 1);
    ck_assert_ptr_nonnull(strstr(t.last, "nowhere/none.so: "));
    ck_assert(is_loaded("plugin_probe.so") && is_loaded("count.so"));
    run_app();
    ck_assert(vm_close());
}
END_TEST

/* The line that the sample has added to its file. */
static void expect_count(const char *file, const char *want)
{
    char line[256] = "";
    FILE *in = fopen(file, "re");
    ck_assert_ptr_nonnull(in);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, in));
    ck_assert_ptr_null(fgets(line + 128, 128, in));
    fclose(in);
    ck_assert_str_eq(line, want);
    ck_assert_int_eq(unlink(file), 0);
}

/* The sample counts exactly, and says so when the host ends as when it is detached. */
START_TEST(sample)
{
    char file[] = "/tmp/varve-count-XXXXXX", want[256];
    close(mkstemp(file));
    unlink(file);
    snprintf(want, sizeof want, "count: %u calls, %d exceptions, %d objects, %d bytes\n", (unsigned)app_calls(N),
             APP_EXCEPTIONS, APP_OBJECTS, APP_BYTES);
    ck_assert(vm_open(NULL));
    load(built(COUNT, file));
    vm_started();
    run_app();
    if (_i) {
        ck_assert_int_eq(varve_plugins_listen(vm_host()), VARVE_OK);
        detach("count");
        varve_plugins_close();
        expect_count(file, want);
        ck_assert(!is_loaded("count.so"));
        run_app();
        ck_assert(vm_close());
    } else {
        ck_assert(vm_close());
        expect_count(file, want);
    }
}
END_TEST

/* In and out of a process at work, time after time: it is told something each time, and unloaded each time. */
START_TEST(twenty_times)
{
    char file[] = "/tmp/varve-count-XXXXXX", line[256];
    close(mkstemp(file));
    open_vm();
    ck_assert_int_eq(varve_plugins_listen(vm_host()), VARVE_OK);
    app_load load;
    app_load_begin(&load);
    for (unsigned i = 0; i < 20; i++) {
        attach(built(COUNT, NULL), file);
        unsigned rounds = atomic_load(&load.rounds);
        while (atomic_load(&load.rounds) < rounds + 2)
            sched_yield();
        detach(i % 2 ? "count" : "");
        ck_assert(!is_loaded("count.so"));
    }
    varve_plugins_close();
    app_load_end(&load);
    ck_assert(vm_close());
    unsigned lines = 0;
    FILE *in = fopen(file, "re");
    while (fgets(line, sizeof line, in)) {
        unsigned calls, exceptions, objects;
        ck_assert_int_eq(sscanf(line, "count: %u calls, %u exceptions, %u objects", &calls, &exceptions, &objects), 3);
        ck_assert(calls > exceptions && objects >= exceptions);
        ck_assert_uint_ge(calls, app_calls(8));
        lines++;
    }
    ck_assert_uint_eq(lines, 20);
    fclose(in);
    unlink(file);
}
END_TEST

START_TEST(two_at_once)
{
    open_vm();
    ck_assert_int_eq(varve_plugins_listen(vm_host()), VARVE_OK);
    ck_assert_int_eq(varve_plugins_listen(vm_host()), VARVE_E_BUSY);
    app_load load;
    app_load_begin(&load);
    expect_refusal(VV_REMOTE_DETACH, "", "", "no plug-in is attached");
    for (unsigned i = 0; i < 5; i++) {
        attach(built(COUNT, NULL), "/dev/null");
        attach(built(PROBE, NULL), "");
        expect_refusal(VV_REMOTE_ATTACH, built(COUNT, NULL), "", "named count is attached already");
        expect_refusal(VV_REMOTE_DETACH, "", "", "several plug-ins are attached, count and plugin_probe");
        expect_refusal(VV_REMOTE_DETACH, "other", "", "no plug-in named other is attached; attached: ");
        expect_refusal(VV_REMOTE_DETACH, "./other.so", "", "; attached: plugin_probe, count");
        detach(i % 2 ? "count.so" : "./plugin_probe.so");
        ck_assert(is_loaded(i % 2 ? "plugin_probe.so" : "count.so"));
        ck_assert(!is_loaded(i % 2 ? "count.so" : "plugin_probe.so"));
        detach("");
        ck_assert(!is_loaded("plugin_probe.so") && !is_loaded("count.so"));
    }
    expect_refusal(VV_REMOTE_ATTACH, built(PROBE, NULL), "refuse-start", "refused to start");
    expect_refusal(VV_REMOTE_ATTACH, "/nowhere/none.so", "", "No such file");
    ck_assert_int_eq(ask(VV_REMOTE_ATTACH, "relative.so", "").outcome, VV_REMOTE_INVALID);
    varve_plugins_close();
    app_load_end(&load);
    ck_assert(vm_close());
}
END_TEST

/* One that can't be detached says so and stays; one that detaches itself inside a callback is unloaded by the library,
 * after that callback. */
START_TEST(by_itself)
{
    open_vm();
    ck_assert_int_eq(varve_plugins_listen(vm_host()), VARVE_OK);
    attach(built(PROBE, NULL), "leave");
    run_app();
    time_t until = time(NULL) + PATIENCE_MS / 1000;
    while (is_loaded("plugin_probe.so") && time(NULL) < until)
        usleep(1000);
    ck_assert(!is_loaded("plugin_probe.so"));
    attach(built(PROBE, NULL), "no-detach");
    expect_refusal(VV_REMOTE_DETACH, "plugin_probe", "", "plugin_probe can't be detached (VARVE_E_NOT_DETACHABLE)");
    run_app();
    varve_plugins_close();
    ck_assert(vm_close());
    ck_assert(is_loaded("plugin_probe.so"));
}
END_TEST

/* While a callback of it runs it is not unloaded, however long that takes. */
START_TEST(stays_while_inside)
{
    open_vm();
    vv_plugin_detach_wait_ms = 50;
    ck_assert_int_eq(varve_plugins_listen(vm_host()), VARVE_OK);
    app_load load;
    app_load_begin(&load);
    attach(built(PROBE, NULL), "stay");
    unsigned rounds = 0;
    vv_remote_answer a;
    do { /* until a thread was caught inside */
        rounds++;
        a = ask(VV_REMOTE_DETACH, "plugin_probe", "");
        if (a.outcome == VV_REMOTE_DONE)
            attach(built(PROBE, NULL), "stay");
    } while (a.outcome == VV_REMOTE_DONE && rounds < 100);
    ck_assert_int_eq(a.outcome, VV_REMOTE_PENDING);
    ck_assert_ptr_nonnull(strstr(a.text, "a callback of it still runs"));
    ck_assert(is_loaded("plugin_probe.so"));
    expect_refusal(VV_REMOTE_ATTACH, built(PROBE, NULL), "", "attached already");
    ck_assert_int_eq(dup2(STDERR_FILENO, 99), 99);
    do
        a = ask(VV_REMOTE_DETACH, "plugin_probe", "");
    while (a.outcome == VV_REMOTE_PENDING);
    ck_assert(!is_loaded("plugin_probe.so"));
    varve_plugins_close();
    app_load_end(&load);
    ck_assert(vm_close());
}
END_TEST

int main(void)
{
    TCase *t = test_case("plugin", 120);
    tcase_add_test(t, failures);
    tcase_add_test(t, cut_short);
    tcase_add_test(t, main_place);
    tcase_add_test(t, lists);
    tcase_add_loop_test(t, sample, 0, 2);
    tcase_add_test(t, twenty_times);
    tcase_add_test(t, two_at_once);
    tcase_add_test(t, by_itself);
    tcase_add_test(t, stays_while_inside);
    return test_run();
}
