#include "config.h"

#include "index/litter.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

enum { STEM = 32 }; /* hexadecimal digits before ".db" */

static bool is_index_name(const char *name)
{
    return strspn(name, "0123456789abcdef") == STEM && strcmp(name + STEM, ".db") == 0;
}

static bool is_unused(int dirfd, const char *name, time_t now)
{
    struct stat st;
    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
        && now - st.st_mtime > (time_t)VV_INDEX_UNUSED_DAYS * 24 * 3600;
}

/*
 * With all that stands beside it, unless a process writes it. One may have done so since the index was found unused:
 * that is certain only under the lock.
 */
static void remove_index(int dirfd, const char *name, time_t now)
{
    static const char *const tails[] = {"", "-wal", "-shm", ".damaged", ".lock"};
    char path[STEM + 16];
    snprintf(path, sizeof path, "%.*s.db.lock", STEM, name);
    VV_CLEANUP(vv_close) int fd = openat(dirfd, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0 || vv_lock(fd, true, false, NULL) != VV_OK || !is_unused(dirfd, name, now))
        return;
    for (size_t i = 0; i < VV_ARRAY_LEN(tails); i++) {
        snprintf(path, sizeof path, "%.*s.db%s", STEM, name, tails[i]);
        unlinkat(dirfd, path, 0);
    }
}

void vv_index_tidy(const char *path)
{
    const char *slash = strrchr(path, '/');
    utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
    char dir[4096];
    int n = slash ? snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path) : -1;
    DIR *d = n > 0 && (size_t)n < sizeof dir ? opendir(dir) : NULL;
    if (!d)
        return;
    time_t now = time(NULL);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (is_index_name(e->d_name) && strcmp(e->d_name, slash + 1) != 0 && is_unused(dirfd(d), e->d_name, now))
            remove_index(dirfd(d), e->d_name, now);
    closedir(d);
}
