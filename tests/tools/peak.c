/*
 * Runs a command and writes the most memory that it held, in KiB, to a file: usage: peak FILE COMMAND [ARGUMENT...].
 *
 * A process that is measured must not begin as the copy of a large one, which would count.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct rusage used;
    int status = 0;
    if (argc < 3)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child)
        return 2;
    FILE *f = fopen(argv[1], "w");
    if (!f || fprintf(f, "%ld\n", used.ru_maxrss) < 0 || fclose(f) != 0)
        return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
