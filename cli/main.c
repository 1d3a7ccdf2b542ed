#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/verbs.h"

static void print_help(void)
{
    printf("varve: reads what a recorded program left in its store\n\n"
           "usage: varve VERB [OPTION...] [ARGUMENT...]\n\nverbs:\n");
    for (const vv_cli_verb *const *v = vv_cli_verbs; *v; v++)
        printf("  %-10s %s\n", (*v)->name, (*v)->purpose);
    printf("\n`varve VERB --help` explains a verb, `varve --version` prints the version.\n"
           "The store is $BAML_PROFILE_DIR, else the nearest .baml at or above the working directory, or what\n"
           "--store names.\n");
}

static int unknown_verb(const char *typed)
{
    const char *names[64];
    size_t n = 0;
    for (const vv_cli_verb *const *v = vv_cli_verbs; *v && n < VV_ARRAY_LEN(names); v++)
        names[n++] = (*v)->name;
    const char *near = vv_cli_nearest(typed, names, n);
    if (near)
        return vv_cli_fail(VV_EXIT_USAGE, "no verb \"%.60s\"; did you mean `varve %s`?", typed, near);
    return vv_cli_fail(VV_EXIT_USAGE, "no verb \"%.60s\"; `varve --help` lists them", typed);
}

static int run_verb(const vv_cli_verb *verb, int argc, char **argv)
{
    vv_cli c;
    int status = vv_cli_parse(&c, verb, argc, argv);
    return status >= 0 ? status : verb->run(&c);
}

static const vv_cli_verb *find_verb(const char *name)
{
    const vv_cli_verb *const *v = vv_cli_verbs;
    while (*v && strcmp((*v)->name, name) != 0)
        v++;
    return *v;
}

static int help(int n, char **words)
{
    const vv_cli_verb *verb = n > 0 ? find_verb(words[0]) : NULL;
    if (n > 0 && !verb)
        return unknown_verb(words[0]);
    if (n > 1)
        return vv_cli_fail(VV_EXIT_USAGE, "unexpected argument \"%.60s\"; help explains one verb", words[1]);
    if (verb)
        vv_cli_help(verb);
    else
        print_help();
    return VV_EXIT_OK;
}

static int command(int argc, char **argv)
{
    if (argc < 2)
        return vv_cli_fail(VV_EXIT_USAGE, "no verb given; `varve --help` lists them");
    const char *first = argv[1];
    if (strcmp(first, "--version") == 0) {
        printf("varve %s\n", PACKAGE_VERSION);
        return VV_EXIT_OK;
    }
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0)
        return help(argc - 2, argv + 2);
    if (*first == '-')
        return vv_cli_fail(VV_EXIT_USAGE, "%.60s: options come after the verb; `varve --help` lists the verbs", first);
    const vv_cli_verb *verb = find_verb(first);
    return verb ? run_verb(verb, argc - 2, argv + 2) : unknown_verb(first);
}

/* Stands in for closed standard descriptors, so that no file or socket gets their numbers: using them fails. */
static void fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    fill_standard();
    /* A reader that hangs up, and a file that may not grow (ulimit -f), are write errors with a line and a status. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    int status = command(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == VV_EXIT_OK)
        status = vv_cli_fail(VV_EXIT_STORE, "standard output: write failed; the answer is cut short");
    return status;
}
