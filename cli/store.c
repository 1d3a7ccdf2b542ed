#include "config.h"

#include "cli/store.h"

#include <limits.h>

#include "base/store_path.h"

static int fail_open(const vv_error *err, const char *path)
{
    const char *next = err->code == VV_ERR_NOTFOUND ? "record a program first, or name a store with --store" : NULL;
    /* The path is the user's, but what stands there is a matter of the store, not of usage. */
    int status = vv_cli_fail_error(err, path, next);
    return status == VV_EXIT_USAGE ? VV_EXIT_STORE : status;
}

int vv_cli_open_store(const vv_cli *c, const char *arg, vv_source **ret_source, vv_store **ret_store)
{
    if (c->store && arg)
        return vv_cli_usage(c, "the store is given twice, as --store and as an argument");
    char path[PATH_MAX];
    vv_store_origin origin;
    vv_error err = {0};
    vv_code rc = vv_store_path_of(path, sizeof path, c->store ? c->store : arg, &origin, &err);
    if (rc != VV_OK)
        return vv_cli_fail_error(&err, "store", NULL);
    vv_source *source;
    rc = vv_source_open(&source, path, &err);
    if (rc != VV_OK)
        return fail_open(&err, path);
    rc = vv_store_open(ret_store, source, NULL, &err);
    if (rc != VV_OK) {
        vv_source_close(source);
        return fail_open(&err, path);
    }
    *ret_source = source;
    return -1;
}
