/*
 * The VM as a program, linked with libvarve as anybody's host is: runs the app once for each byte of its standard
 * input. It records where profiling is on, loads the plug-ins of --profiler SPEC and VARVE_PROFILER, and listens for
 * `varve attach`. Says "ready PID" when it does, and "ran" after each run.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/varve.h"
#include "tests/control/app.h"

static void tell(void *me, const char *line)
{
    (void)me;
    fprintf(stderr, "vm: %s\n", line);
}

static void load_plugins(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], "--profiler"))
            varve_plugins_load(vm_host(), (const char *const *)&argv[i + 1], 1, tell, NULL);
    varve_plugins_load_list(vm_host(), secure_getenv("VARVE_PROFILER"), tell, NULL);
}

int main(int argc, char **argv)
{
    varve_session *session = varve_session_open(&(varve_options){.struct_size = sizeof(varve_options),
                                                                 .host_version = "vm 1"});
    if (!vm_open(NULL))
        return EXIT_FAILURE;
    varve_recorder_attach(vm_host(), session); /* refused where profiling is off */
    load_plugins(argc, argv);
    vm_started();
    if (varve_plugins_listen(vm_host()) != VARVE_OK)
        tell(NULL, "can't listen");
    printf("ready %ld\n", (long)getpid());
    fflush(stdout);
    vm_domain *d = vm_domain_open("app", NULL);
    vm_module *m = vm_load(d, &app);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) == 1) {
        vm_start(d, vm_function_of(m, 0), 8, "main", NULL);
        vm_run(2);
        puts("ran");
        fflush(stdout);
    }
    vm_domain_close(d, VARVE_ENDED_OK);
    varve_plugins_close();
    bool clean = vm_close();
    varve_session_close(session);
    return clean ? EXIT_SUCCESS : EXIT_FAILURE;
}
