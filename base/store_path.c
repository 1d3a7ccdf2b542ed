#include "config.h"

#include "base/store_path.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

VV_PRINTF(4, 5)
static vv_code put_path(char *path, size_t size, vv_error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(path, size, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= size)
        return vv_fail(err, VV_ERR_LIMIT, "the store's path is longer than %zu bytes", size - 1);
    return VV_OK;
}

vv_code vv_store_path(char *path, size_t size, vv_store_origin *ret_origin, vv_error *err)
{
    const char *env = getenv("BAML_PROFILE_DIR");
    if (env && *env) {
        *ret_origin = VV_STORE_FROM_ENVIRONMENT;
        return put_path(path, size, err, "%s", env);
    }
    char dir[PATH_MAX], probe[PATH_MAX + 8];
    if (!getcwd(dir, sizeof dir))
        return vv_fail_os(err, errno, "working directory");
    for (size_t n = strlen(dir);; ) {
        snprintf(probe, sizeof probe, "%s/.baml", strcmp(dir, "/") ? dir : "");
        if (is_dir(probe)) {
            *ret_origin = VV_STORE_FROM_ANCESTOR;
            return put_path(path, size, err, "%s/profiles-v1", probe);
        }
        if (n <= 1)
            break;
        while (n > 1 && dir[n - 1] != '/')
            n--;
        if (n > 1)
            n--;
        dir[n] = 0;
    }
    *ret_origin = VV_STORE_DEFAULT;
    return put_path(path, size, err, ".baml/profiles-v1");
}

vv_code vv_store_path_of(char *path, size_t size, const char *arg, vv_store_origin *ret_origin, vv_error *err)
{
    if (!arg)
        return vv_store_path(path, size, ret_origin, err);
    if (!*arg)
        return vv_fail(err, VV_ERR_ARG, "the store's path is empty");
    *ret_origin = VV_STORE_FROM_ARGUMENT;
    char probe[PATH_MAX];
    if (put_path(probe, sizeof probe, err, "%s/.baml", arg) != VV_OK)
        return VV_ERR_LIMIT;
    if (is_dir(probe))
        return put_path(path, size, err, "%s/profiles-v1", probe);
    size_t n = strlen(arg);
    while (n > 1 && arg[n - 1] == '/')
        n--;
    bool is_baml = n >= 5 && memcmp(arg + n - 5, ".baml", 5) == 0 && (n == 5 || arg[n - 6] == '/');
    /* A .baml that was copied or moved aside has any name. */
    if (put_path(probe, sizeof probe, err, "%.*s/profiles-v1", (int)n, arg) != VV_OK)
        return VV_ERR_LIMIT;
    if (is_baml || is_dir(probe))
        return put_path(path, size, err, "%s", probe);
    return put_path(path, size, err, "%.*s", (int)n, arg);
}
