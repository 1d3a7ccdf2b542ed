/*
 * Replays files through a fuzz target and prints TAP: those named as arguments (of a directory, all in it), else the
 * target's own corpus in the source tree.
 */
#include "config.h"

#include "fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"

enum { INPUT_MAX = 1 << 26 };

static int replay_file(const char *path, unsigned number)
{
    vv_blob b = {0};
    vv_error err = {0};
    if (vv_file_read(AT_FDCWD, path, INPUT_MAX, &b, &err) != VV_OK) {
        printf("not ok %u - %s\n", number, err.msg);
        return 1;
    }
    uint8_t *exact = malloc(b.n ? b.n : 1);
    FUZZ_CHECK(exact);
    memcpy(exact, b.p, b.n);
    LLVMFuzzerTestOneInput(exact, b.n);
    free(exact);
    vv_blob_done(&b);
    const char *base = strrchr(path, '/');
    printf("ok %u - %s\n", number, base ? base + 1 : path);
    fflush(stdout);
    return 0;
}

static int no_dots(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int replay(const char *path, unsigned *number)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return replay_file(path, ++*number);
    struct dirent **list = NULL;
    int failed = 0, n = scandir(path, &list, no_dots, alphasort);
    for (int i = 0; i < n; i++) {
        char *full = NULL;
        FUZZ_CHECK(asprintf(&full, "%s/%s", path, list[i]->d_name) >= 0);
        failed |= replay_file(full, ++*number);
        free(full);
        free(list[i]);
    }
    free(list);
    return failed;
}

int main(int argc, char **argv)
{
    unsigned number = 0;
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i], &number);
    if (argc == 1) {
        const char *top = getenv("top_srcdir"), *name = strstr(argv[0], "fuzz_");
        char *corpus = NULL;
        FUZZ_CHECK(name && asprintf(&corpus, "%s/fuzz/corpus/%s", top ? top : ".", name + strlen("fuzz_")) >= 0);
        failed |= replay(corpus, &number);
        free(corpus);
    }
    printf("1..%u\n", number);
    return failed || number == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
