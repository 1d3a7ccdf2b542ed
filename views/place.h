/*
 * A store's source and who uses it: a store that was removed and made anew is another place. Counted by the library,
 * under its lock.
 */
#pragma once

#include <limits.h>

#include "index/index.h"
#include "reader/store.h"

typedef struct {
    vv_source *source;
    vv_index *index; /* or NULL */
    bool retained;   /* the index was told which streams there are */
    char path[PATH_MAX];
    unsigned refs;
} vv_place;

/*
 * Opens the store that arg names (as vv_store_path_of takes it), with an index where index is not NULL. path[PATH_MAX]
 * gets where it is, or would be. Errors: NOTFOUND where there is no store yet; others where it can't be opened.
 */
VV_MUST_CHECK vv_code vv_place_open(vv_place **ret, const char *arg, const vv_index_options *index, char *path,
                                    vv_error *err);
/*
 * One user less. Gives the place back to the last one, who closes it without the library's lock: an index may have much
 * to write before it is closed. Both accept NULL.
 */
VV_MUST_CHECK vv_place *vv_place_unref(vv_place *p);
void vv_place_close(vv_place *p);

/* The store's directory was removed, or another one stands in its place. */
bool vv_place_is_gone(const vv_place *p);
/* Once for a place: what the index has of streams that are gone is of no use to anybody. */
void vv_place_retain(vv_place *p, const vv_store *store);
