#include "config.h"

#include "views/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/store_path.h"

/*
 * A directory that is no store yet, but may get one: it is not called like a store's root, and no stream was ever
 * begun in it.
 */
static bool is_waiting(const char *path)
{
    char streams[PATH_MAX];
    struct stat st;
    const char *name = strrchr(path, '/');
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode) || strcmp(name ? name + 1 : path, "profiles-v1") == 0)
        return false;
    int n = snprintf(streams, sizeof streams, "%s/streams", path);
    return n > 0 && (size_t)n < sizeof streams && stat(streams, &st) != 0 && errno == ENOENT;
}

static vv_code open_index(vv_place *p, const vv_index_options *index, vv_error *err)
{
    if (!index || !vv_source_is_live(p->source))
        return VV_OK;
    vv_code rc = vv_index_open(&p->index, p->source, index, err);
    if (rc == VV_OK)
        vv_source_set_ledger(p->source, vv_index_ledger(p->index));
    return rc;
}

vv_code vv_place_open(vv_place **ret, const char *arg, const vv_index_options *index, char *path, vv_error *err)
{
    vv_store_origin origin;
    path[0] = 0;
    vv_code rc = vv_store_path_of(path, PATH_MAX, arg, &origin, err);
    if (rc != VV_OK)
        return rc;
    if (is_waiting(path))
        return vv_fail(err, VV_ERR_NOTFOUND, "no store in this directory");
    vv_place *p = calloc(1, sizeof *p);
    if (!p)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a store");
    p->refs = 1;
    strcpy(p->path, path);
    rc = vv_source_open(&p->source, path, err);
    if (rc == VV_OK)
        rc = open_index(p, index, err);
    if (rc != VV_OK) {
        vv_place_close(p);
        return rc;
    }
    *ret = p;
    return VV_OK;
}

vv_place *vv_place_unref(vv_place *p)
{
    return p && --p->refs == 0 ? p : NULL;
}

void vv_place_close(vv_place *p)
{
    if (!p)
        return;
    vv_index_close(p->index); /* it is of the source */
    vv_source_close(p->source);
    free(p);
}

bool vv_place_is_gone(const vv_place *p)
{
    struct stat held, named;
    int fd = vv_source_dirfd(p->source);
    if (fd < 0)
        return false;
    return fstat(fd, &held) != 0 || stat(p->path, &named) != 0 || held.st_dev != named.st_dev
        || held.st_ino != named.st_ino;
}

void vv_place_retain(vv_place *p, const vv_store *store)
{
    if (!p->index || p->retained)
        return;
    vv_euid *ids = malloc((store->stream_count + 1) * sizeof *ids);
    for (size_t i = 0; ids && i < store->stream_count; i++)
        ids[i] = store->streams[i].euid;
    if (ids)
        vv_index_retain(p->index, ids, store->stream_count);
    free(ids);
    p->retained = true;
}
